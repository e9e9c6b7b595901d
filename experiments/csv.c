#include "experiments/csv.h"

#include <glib.h>
#include <stdbool.h>

char **csv_split(const char *line)
{
    GPtrArray *fields = g_ptr_array_new();
    GString *field = g_string_new(NULL);
    bool quoted = false;
    for (const char *c = line; *c; c++) {
        if (quoted && c[0] == '"' && c[1] == '"')
            g_string_append_c(field, *c++);
        else if (*c == '"')
            quoted = !quoted;
        else if (*c == ',' && !quoted) {
            g_ptr_array_add(fields, g_string_free(field, FALSE));
            field = g_string_new(NULL);
        } else
            g_string_append_c(field, *c);
    }
    g_ptr_array_add(fields, g_string_free(field, FALSE));
    g_ptr_array_add(fields, NULL);
    return (char **)g_ptr_array_free(fields, FALSE);
}
