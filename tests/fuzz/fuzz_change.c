/* Fuzz target: lines "add h100 x 8", "scale network=2" and so on change a cluster, or are
 * refused and leave it as it was. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static bool change(Cluster *cluster, const char *line)
{
    g_autoptr(GError) error = NULL;
    const char *blank = strchr(line, ' ');
    if (!blank)
        return false;
    for (ChangeKind kind = 0; kind < CHANGES; kind++)
        if (strncmp(change_name(kind), line, (size_t)(blank - line)) == 0) {
            const bool good = cluster_change(cluster, kind, blank + 1, &error);
            fuzz_check(good == !error, "either a change or an error");
            if (!good)
                fuzz_check_refused(error, NULL);
            return good;
        }
    return false;
}

bool fuzz_read(const void *data, size_t size)
{
    g_autofree char *text = g_strndup(data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", 8);
    g_autoptr(Cluster) cluster = cluster_load("hap-64", NULL);
    bool good = cluster && *lines;
    for (char **line = lines; good && *line; line++)
        good = !**line || change(cluster, *line);
    fuzz_check(cluster->n_machines > 0, "machines are left");
    if (cluster_gpus(cluster) > 4096)
        return good;
    g_autofree char *written = cluster_write(cluster);
    fuzz_note("%s", written);
    g_autoptr(Cluster) again =
        cluster_parse("again.yaml", written, strlen(written), NULL);
    fuzz_check(again, "its file can be read");
    return good;
}
