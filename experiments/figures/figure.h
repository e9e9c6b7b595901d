/* Figures: plots/NAME.sql says what is drawn, plots/NAME.gp how.
 *
 * The query's rows go to a file of tab-separated columns (its header is a comment, NULL is written
 * NaN), which gnuplot draws twice, as PNG and as SVG. The script gets, as ARG1 to ARG4: that file,
 * the output file, the terminal (pngcairo or svg), the folder that the script lies in. */
#ifndef KILTER_EXPERIMENTS_FIGURES_FIGURE_H
#define KILTER_EXPERIMENTS_FIGURES_FIGURE_H

#include "data/data.h"

/* Names of all figures of stored results, sorted. Free with g_strfreev. */
char **figure_list(void);

/* Reads plots/NAMEsuffix, in which a line `.read FILE` stands for the text of plots/FILE: what several queries share.
 * KILTER_ERROR_INPUT lists the known figures. Caller frees. */
char *figure_query(const char *name, const char *suffix, GError **error);

/* Draws `name` from the store into folder/NAME.png and folder/NAME.svg, which appear whole or not
 * at all. Both say inside which command, commit and configurations they are from
 * (experiments/figures/stamp.h). KILTER_ERROR_INPUT on an unknown figure or a folder that cannot be written,
 * KILTER_ERROR_FAILED if the store holds nothing to draw or gnuplot is missing or fails. */
bool figure_draw(const char *name, Store *store, const char *folder, GError **error);
/* Draws the figure from the text of its data file. */
bool figure_draw_text(const char *name, const char *text, const char *folder,
                      GError **error);

#endif
