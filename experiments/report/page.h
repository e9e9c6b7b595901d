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

/* <ELEMENT>text</ELEMENT>; ELEMENT may have attributes, as in "p class='x'". */
void page_add(GString *page, const char *element, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* A link to a place of the page. */
void page_anchor(GString *page, const char *id, const char *text);

/* Begins a table; scripts make it sortable by its head. A column whose name begins with '#' holds
 * numbers; the '#' is not shown. */
void page_table(GString *page, const char *const *columns);
/* Begins a row with an id that links can lead to; a cell for each column follows: page_cell,
 * page_number, page_link, or page_mark with a class of its own. */
void page_row_of(GString *page, const char *id);
void page_cell(GString *page, const char *text);
void page_number(GString *page, double value, const char *format);
void page_mark(GString *page, const char *class, const char *text);
/* A cell with such a link. */
void page_link(GString *page, const char *id, const char *text);
void page_row_end(GString *page);
void page_table_end(GString *page);

/* An SVG file of gnuplot as an element of a page, in fewer bytes. Later ones of a page use the
 * shapes of points that the first one has. KILTER_ERROR_INPUT without plots/picture.txt. Caller
 * frees. */
char *page_svg(const char *svg, bool first, GError **error);
