/* Figures: plots/NAME.sql says what is drawn, plots/NAME.gp how.
 *
 * The query's rows go to a file of tab-separated columns (its header is a comment, NULL is
 * written NaN), which gnuplot draws twice, as PNG and as SVG (px is 1), or once, as PDF (px is an
 * inch / 96). The script gets, as ARG1 to ARG4: that file, the output file, the terminal
 * (pngcairo or svg), the folder that the script lies in. Scripts that load page.gp have below
 * them, unless they are bare, a strip with what claims.tsv beside the data holds: each claim of
 * the paper with what is allowed, and our value (plots/page.gp says the columns).
 *
 * A last column FIGURE_ROWS is not drawn: the ordinals, separated by spaces, of the experiment's
 * rows that a number is made of, for numbers that no row has itself. */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "experiments/figures/claims.h"
#include "experiments/figures/query.h"

typedef struct Store Store; /* data/store/store.h */

#define FIGURE_ROWS "rows"

/* Draws `name` and the claims about it (NULL: none), without the strip below if `bare`, from
 * the store into folder/NAME.png and folder/NAME.svg, or into the file that `folder` names
 * (figure_path); they appear whole or not at all. Each file says inside from which command,
 * commit and configurations it is (figure.c). KILTER_ERROR_INPUT on an
 * unknown figure or a folder that cannot be written, KILTER_ERROR_FAILED if the store holds
 * nothing to draw or gnuplot is missing or fails. */
bool figure_draw(const char *name, Store *store, const Claims *claims, bool bare,
                 const char *folder, GError **error);
/* Its file number `which`, from 0, in a folder, or the file itself if `target` ends with .png, .svg
 * or .pdf; NULL: there are no more. Caller frees. */
char *figure_path(const char *name, const char *target, int which);
/* Draws the figure from the text of its data file. */
bool figure_draw_text(const char *name, const char *text, const char *folder,
                      GError **error);
