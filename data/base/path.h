/* Where bundled files are: the directories of KILTER_PATH (colon-separated), then the
 * project's own: its data/ folder and its root. So "clusters/hap-8.yaml" is
 * data/clusters/hap-8.yaml unless KILTER_PATH has another. */
#ifndef KILTER_DATA_BASE_PATH_H
#define KILTER_DATA_BASE_PATH_H

#include <glib.h>

/* First existing DIR/relative over the search path, or NULL. Caller frees. */
char *path_find(const char *relative);

/* Sorted base names (without suffix) of files DIR/folder/(name)suffix over the search
 * path; free with g_strfreev. */
char **path_list(const char *folder, const char *suffix);

#endif
