/* The source tree as conformance tests see it. */
#ifndef KILTER_TESTS_CONFORMANCE_TREE_H
#define KILTER_TESTS_CONFORMANCE_TREE_H

#include <glib.h>
#include <stdint.h>

/* The modules, in the order of data flow. */
static const char *const MODULES[] = {"data",    "sim",  "synth",
                                      "balance", "exec", "experiments"};

/* Adds the paths, relative to `root`, of all files below root/folder whose names end in one of
 * `suffixes`. */
static void tree_list(const char *root, const char *folder, const char *const *suffixes,
                      GPtrArray *paths)
{
    g_autofree char *full = g_build_filename(root, folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(full, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *below = g_build_filename(root, path, NULL);
        if (g_file_test(below, G_FILE_TEST_IS_DIR)) {
            tree_list(root, path, suffixes, paths);
            continue;
        }
        for (uint32_t i = 0; suffixes[i]; i++)
            if (g_str_has_suffix(name, suffixes[i]))
                g_ptr_array_add(paths, g_steal_pointer(&path));
    }
}

#endif
