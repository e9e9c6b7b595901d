/* Remarks on papers as a whole. Private to experiments/report. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* Sets the lists `contradictions` (data/paper/contradictions.csv) and `uncovered`
 * (data/paper/uncovered.csv) of the paper, each of {place, what, why}. KILTER_ERROR_INPUT on a bad
 * file. */
bool report_remarks(json_t *row, const char *paper, GError **error);
