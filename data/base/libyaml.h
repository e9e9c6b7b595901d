/* libyaml and cyaml where there is no memory. Private to data.
 *
 * They report it as any other failure of reading. Their callers may then do without what could not
 * be read, and the answer would be another one; so the program ends, as GLib ends it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

/* Begins to read a text. yaml_parser_delete ends it. */
void libyaml_begin(yaml_parser_t *parser, const char *text, size_t length);

/* To be called when a parser failed: returns if there was memory. */
void libyaml_failed(const yaml_parser_t *parser);

/* Reads a text as a document, which yaml_document_delete frees. False: it is not YAML. */
bool libyaml_read(const char *text, size_t length, yaml_document_t *document);

/* There is no memory. */
void libyaml_no_memory(void) __attribute__((noreturn));

/* A cyaml_mem_fn_t. */
void *libyaml_allocate(void *unused, void *block, size_t size);
