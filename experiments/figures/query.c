/* The files of a figure: its query, with what it shares with others. */
#include "experiments/figures/query.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/base/text.h"

/* Scripts without a query are parts of others, or draw something else than the store. */
char **figure_list(void)
{
    g_auto(GStrv) scripts = path_list("plots", ".gp");
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    for (char **name = scripts; *name; name++) {
        g_autofree char *relative = g_strdup_printf("plots/%s.sql", *name);
        g_autofree char *query = path_find(relative);
        if (query)
            g_strv_builder_add(list, *name);
    }
    return g_strv_builder_end(list);
}

char *figure_file(const char *name, const char *suffix, GError **error)
{
    g_autofree char *relative = g_strdup_printf("plots/%s%s", name, suffix);
    char *path = strchr(name, '/') ? NULL : path_find(relative);
    if (path)
        return path;
    g_auto(GStrv) known = figure_list();
    uint32_t index;
    if (names_find("figure", name, (const char *const *)known, &index, error))
        refuse(error, "figure '%s' lacks %s", name, relative);
    return NULL;
}

static bool append_file(GString *text, const char *path, GError **error)
{
    g_autofree char *part = text_read(path, error);
    if (part)
        g_string_append(text, part);
    return part != NULL;
}

/* Lines `.read FILE` stand for the text of plots/FILE, which queries share. */
static char *with_parts(const char *path, const char *query, GError **error)
{
    static const char READ[] = ".read ";
    g_auto(GStrv) lines = g_strsplit(query, "\n", -1);
    g_autoptr(GString) text = g_string_new(NULL);
    for (char **line = lines; *line; line++) {
        if (!g_str_has_prefix(*line, READ)) {
            g_string_append_printf(text, "%s%s", *line, line[1] ? "\n" : "");
            continue;
        }
        const char *name = *line + strlen(READ);
        g_autofree char *relative = g_strdup_printf("plots/%s", name);
        g_autofree char *part = strstr(name, "..") ? NULL : path_find(relative);
        if (!part)
            return refused(error, "%s:%u: expected a file of plots/, got '%s'", path,
                           (uint32_t)(line - lines) + 1, name);
        if (!append_file(text, part, error))
            return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *figure_query(const char *name, const char *suffix, GError **error)
{
    g_autofree char *path = figure_file(name, suffix, error);
    g_autofree char *query = path ? text_read(path, error) : NULL;
    return query ? with_parts(path, query, error) : NULL;
}
