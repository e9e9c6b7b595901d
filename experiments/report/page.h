/* A page of HTML in one file, which can be read without any other file, a network or scripts. All
 * texts are escaped. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* A whole page: the template of that name in plots/, filled in with the facts (render_html).
 * KILTER_ERROR_INPUT if a file is missing. Caller frees. */
char *page_of(const char *template, const char *title, const json_t *facts,
              GError **error);

/* An SVG file of gnuplot as an element of a page, in fewer bytes. Later ones of a page use the
 * shapes of points that the first one has. KILTER_ERROR_INPUT without plots/picture.txt. Caller
 * frees. */
char *page_svg(const char *svg, bool first, GError **error);
