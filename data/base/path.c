#include "data/base/path.h"

#include <string.h>

/* Directories in the order they are searched, NULL-terminated. */
static char **search_path(void)
{
    GPtrArray *folder = g_ptr_array_new();
    const char *set = g_getenv("KILTER_PATH");
    g_auto(GStrv) own = g_strsplit(set ? set : "", G_SEARCHPATH_SEPARATOR_S, -1);
    for (char **name = own; *name; name++)
        if (**name)
            g_ptr_array_add(folder, g_strdup(*name));
    g_ptr_array_add(folder, g_build_filename(KILTER_HOME, "data", NULL));
    g_ptr_array_add(folder, g_strdup(KILTER_HOME));
    g_ptr_array_add(folder, NULL);
    return (char **)g_ptr_array_free(folder, FALSE);
}

char *path_find(const char *relative)
{
    g_auto(GStrv) folder = search_path();
    for (char **dir = folder; *dir; dir++) {
        g_autofree char *path = g_build_filename(*dir, relative, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&path);
    }
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **path_list(const char *folder, const char *suffix)
{
    g_auto(GStrv) root = search_path();
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
            if (g_hash_table_add(seen, name))
                g_ptr_array_add(list, name);
            else
                g_free(name);
        }
    }
    g_ptr_array_sort(list, by_name);
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}
