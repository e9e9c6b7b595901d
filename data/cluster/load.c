/* Finding a cluster by its name, as a file, as machines, or as a network to be built. */
#include "data/cluster/cluster.h"

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/cluster/network_spec.h"
#include "data/formats/format.h"

#include <string.h>

/* A name is a path if it looks like one; machines, "4x8xh100-sxm@8x400Gb/s", are not, unless the
 * file exists. */
static bool load_is_file(const char *name)
{
    return path_is_yaml(name) ||
           (strchr(name, G_DIR_SEPARATOR) &&
            (!machines_spec_is(name) || g_file_test(name, G_FILE_TEST_EXISTS)));
}

/* A file of another format is refused with the command that reads it. */
static bool is_another(const char *name, GError **error)
{
    g_autofree char *hint = path_is_yaml(name) ? NULL : format_hint(name, NULL, 0);
    return hint && *hint && !refuse(error, "%s: expected a cluster%s", name, hint);
}

static Cluster *read_file(const char *name, GError **error)
{
    return is_another(name, error) ? NULL : cluster_read(name, error);
}

Cluster *cluster_load(const char *name, GError **error)
{
    if (host_spec_is(name))
        return cluster_from_spec(name, error);
    if (random_spec_is(name))
        return cluster_random(name, error);
    if (load_is_file(name))
        return read_file(name, error);
    g_autofree char *relative = g_strdup_printf("clusters/%s.yaml", name);
    g_autofree char *path = path_find(relative);
    if (path)
        return cluster_read(path, error);
    if (machines_spec_is(name))
        return cluster_from_machines(name, error);
    g_auto(GStrv) known = path_list("clusters", ".yaml");
    if (!*known) {
        g_autofree char *searched = path_searched();
        return refused(
            error,
            "no bundled data found: no clusters/ in %s; KILTER_PATH names further "
            "folders",
            searched);
    }
    g_autofree char *sheet = g_strdup_printf("devices/%s.yaml", name);
    g_autofree char *device = path_find(sheet);
    if (device)
        return refused(
            error,
            "unknown cluster '%s'; it is a device: 1x%s is a machine of one, 8x%s of "
            "eight",
            name, name, name);
    if (is_another(name, error))
        return NULL;
    g_autofree char *expected = names_meant(
        name, (const char *const *)known,
        "expected the path of a YAML file, machines such as "
        "4x8xh100-sxm@8xib-ndr or 2xp5.48xlarge (data/instances.txt), a network "
        "such as star:hosts=8, or a name that kilter clusters lists");
    return refused(error, "unknown cluster '%s'; %s", name, expected);
}
