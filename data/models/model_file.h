/* Files of models: where they lie, and their content as JSON (private to data). */
#pragma once

#include <glib.h>
#include <jansson.h>

/* A model's name in lower case without dashes, its owner, and words and dates that say how it was
 * trained: "llama3.18b" for "meta-llama/Meta-Llama-3.1-8B-Instruct". Caller frees. */
char *model_name_plain(const char *name);

/* The configuration that is called by a name, "llama-3.1-70b", in upper or lower case, else by the
 * same plain name, with or without its owner on the hub: the file NAME.json in a folder configs
 * of the search path, or NULL. Caller frees. */
char *model_file_named(const char *name);

/* The file of a name, a folder's config.json, a bundled file, a place in the local cache of the
 * hub, or the path itself. Caller frees. */
char *model_file_path(const char *path);

/* "Llama-3.1-8B" for .../Llama-3.1-8B/config.json and .../Llama-3.1-8B.json. Caller frees. */
char *model_file_name(const char *path);

/* The object of a file in JSON (with Python's Infinity and NaN as null), YAML or ONNX, or of a
 * profile's tables. NULL with KILTER_ERROR_INPUT. */
json_t *model_file_load(const char *path, GError **error);
