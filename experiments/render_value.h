/* One member of a JSON value as text (experiments/render.h says which kinds there are). */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* Whether the value is there: not NULL, null, false, "" or an empty list. */
bool render_is_there(const json_t *value);

/* Appends the value, or "-", and returns whether it is there. */
bool render_value(GString *out, const json_t *value, const char *spec);

/* Appends text of a page, escaped; of a number the blanks keep it in one line, and `small` marks its
 * unit. */
void render_html_escape(GString *out, const char *text, bool number, bool small);

/* Appends the text in at least `width` columns. */
void render_pad(GString *out, const char *text, int width, bool left);
