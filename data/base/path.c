/* Finding bundled files: beside the installed program or library, or in the checkout in which it
 * was built. */
#include "data/base/path.h"

#include <dlfcn.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/text.h"

/* --- the project's own folder --- */

/* The file that contains this code: the program, or a library that another program has loaded. The
 * caller frees it. */
static char *own_file(void)
{
    static const char here = 0;
    Dl_info info;
    char *program = g_file_read_link("/proc/self/exe", NULL);
    if (dladdr(&here, &info) == 0 || !strstr(info.dli_fname, ".so"))
        return program;
    g_free(program);
    return g_canonicalize_filename(info.dli_fname, NULL);
}

static bool is_home(const char *folder)
{
    g_autofree char *clusters = g_build_filename(folder, "data", "clusters", NULL);
    g_autofree char *plots = g_build_filename(folder, "plots", NULL);
    return g_file_test(clusters, G_FILE_TEST_IS_DIR) &&
           g_file_test(plots, G_FILE_TEST_IS_DIR);
}

/* PREFIX/share/kilter for PREFIX/bin/kilter and PREFIX/lib/TRIPLET/libkilter.so; a checkout for
 * build/kilter and build/tests/test_NAME; else the folder in which the code was compiled. The
 * caller frees it. */
static char *home(void)
{
    enum { MOST_LEVELS = 4 };
    g_autofree char *at = own_file();
    for (int i = 0; at && i < MOST_LEVELS; i++) {
        char *folder = g_path_get_dirname(at);
        put_block(at, folder);
        g_autofree char *installed = g_build_filename(at, "share", "kilter", NULL);
        if (is_home(installed))
            return g_steal_pointer(&installed);
        if (is_home(at))
            return g_steal_pointer(&at);
    }
    return g_strdup(KILTER_HOME);
}

char **path_folders(void)
{
    GPtrArray *folder = g_ptr_array_new();
    const char *set = g_getenv("KILTER_PATH");
    g_auto(GStrv) own = g_strsplit(set ? set : "", G_SEARCHPATH_SEPARATOR_S, -1);
    for (char **name = own; *name; name++)
        if (**name)
            g_ptr_array_add(folder, g_strdup(*name));
    g_ptr_array_add(folder, g_build_filename(g_get_user_config_dir(), "kilter", NULL));
    char *ours = home();
    g_ptr_array_add(folder, g_build_filename(ours, "data", NULL));
    g_ptr_array_add(folder, ours);
    g_ptr_array_add(folder, NULL);
    return (char **)g_ptr_array_free(folder, FALSE);
}

char *path_searched(void)
{
    g_auto(GStrv) folder = path_folders();
    return g_strjoinv(", ", folder);
}

char *path_find(const char *relative)
{
    g_assert(relative && *relative);
    g_auto(GStrv) folder = path_folders();
    for (char **dir = folder; *dir; dir++) {
        g_autofree char *path = g_build_filename(*dir, relative, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&path);
    }
    return NULL;
}

char *path_bundled(const char *relative, GError **error)
{
    char *path = path_find(relative);
    if (!path)
        refuse(error, "expected %s on the search path", relative);
    return path;
}

char *path_line(const char *relative, const char *key)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = path_bundled(relative, &error);
    g_autofree char *text = file ? text_read(file, &error) : NULL;
    if (!text)
        return g_strdup(error->message);
    g_autofree char *start = g_strdup_printf("\n  %s  ", key);
    const char *line = strstr(text, start);
    line = line ? line + strlen(start) : "";
    return g_strndup(line, strcspn(line, "\n"));
}

char **path_list(const char *folder, const char *suffix)
{
    g_assert(folder && suffix && *suffix);
    g_auto(GStrv) root = path_folders();
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *list = g_ptr_array_new();
    for (char **dir = root; *dir; dir++) {
        g_autofree char *path = g_build_filename(*dir, folder, NULL);
        g_autoptr(GDir) open = g_dir_open(path, 0, NULL);
        const char *entry;
        while (open && (entry = g_dir_read_name(open))) {
            if (entry[0] == '.' || !g_str_has_suffix(entry, suffix))
                continue;
            char *name = g_strndup(entry, strlen(entry) - strlen(suffix));
            if (g_hash_table_contains(
                    seen, name)) { /* adding would keep this key, not the one before */
                g_free(name);
                continue;
            }
            g_hash_table_add(seen, name);
            g_ptr_array_add(list, name);
        }
    }
    g_ptr_array_sort(list, names_compare);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

bool path_is_yaml(const char *path)
{
    return g_str_has_suffix(path, ".yaml") || g_str_has_suffix(path, ".yml");
}
