/* libyaml and cyaml where there is no memory. */
#include "data/base/libyaml.h"

#include <glib.h>
#include <stdlib.h>

void libyaml_no_memory(void)
{
    g_log("GLib", G_LOG_LEVEL_ERROR, "failed to allocate memory for a text");
    abort();
}

void libyaml_failed(const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        libyaml_no_memory();
}

void libyaml_begin(yaml_parser_t *parser, const char *text, size_t length)
{
    if (!yaml_parser_initialize(parser))
        libyaml_no_memory();
    yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
}

bool libyaml_read(const char *text, size_t length, yaml_document_t *document)
{
    yaml_parser_t parser;
    libyaml_begin(&parser, text, length);
    const bool good = yaml_parser_load(&parser, document);
    if (!good)
        libyaml_failed(&parser);
    yaml_parser_delete(&parser);
    return good;
}

void *libyaml_allocate(void *unused, void *block, size_t size)
{
    (void)unused;
    return g_realloc(block, size); /* frees it if the size is 0 */
}
