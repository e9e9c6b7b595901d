/* Finding bundled files: they are searched in the directories of KILTER_PATH (colon-separated),
 * then in the user's (~/.config/kilter, or kilter/ in XDG_CONFIG_HOME), then in
 * the project's own: its data/ folder and its root. So "clusters/hap-8.yaml" is
 * data/clusters/hap-8.yaml unless a directory of KILTER_PATH has the file. The project's own folder
 * is found relative to the running program or the loaded library: PREFIX/share/kilter for an
 * installed program, the checkout for a program in its build folder. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The first existing DIR/relative over the search path, or NULL. The caller frees it. */
char *path_find(const char *relative);
/* The same; without the file KILTER_ERROR_INPUT. */
char *path_bundled(const char *relative, GError **error);

/* The text beside a key, which is a line "  KEY  TEXT" of a bundled file; "" without it, and why
 * the file cannot be read: a user's folder may hide it. Caller frees. */
char *path_line(const char *relative, const char *key);

/* The folders that are searched, in this order; they need not exist. Free with g_strfreev. */
char **path_folders(void);
/* The same, as a text for messages. Caller frees. */
char *path_searched(void);

/* Whether the name ends in .yaml or .yml. */
bool path_is_yaml(const char *path);

/* Sorted base names (without suffix) of files DIR/folder/(name)suffix over the search
 * path; free with g_strfreev. */
char **path_list(const char *folder, const char *suffix);
