/* The line of each key in a YAML text. libcyaml forgets lines once it has loaded a file, so one
 * pass over libyaml's events (which libcyaml itself reads) keeps them. The pass also refuses
 * constructs that Kilter's files never contain. */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct YamlLines YamlLines;

/* KILTER_ERROR_INPUT, "FILE:LINE: ...", if the text is not one well-formed document of
 * mappings, lists and texts with unique keys, without aliases and NUL bytes. */
YamlLines *yaml_lines_read(const char *file, const char *text, size_t length,
                           GError **error);
void yaml_lines_free(YamlLines *lines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(YamlLines, yaml_lines_free)

/* The line (from 1) of a key such as "machines[1].gpus", or of the nearest key around it. */
uint32_t yaml_lines_at(const YamlLines *lines, const char *key);
