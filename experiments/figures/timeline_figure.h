/* The figure `timeline`: the work of each device over time, from a trace that `kilter simulate
 * --trace` wrote. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Draws FOLDER/timeline.png and .svg. KILTER_ERROR_INPUT names the file and its fault. */
bool timeline_figure_draw(const char *trace, const char *folder, GError **error);
