/* The numbers behind a figure's picture. Private to experiments/report. */
#pragma once

#include "experiments/report/parts.h"

/* A table with a row for each bar or point of the picture: its texts and numbers, and links to the
 * experiment's rows that the query names (FIGURE_ROWS) or that have one of these numbers. The
 * experiment must have selected its rows. */
bool report_add_drawn(const ReportParts *report, const ReportPart *part, GError **error);

/* The id of an experiment's row, which links lead to. Caller frees. */
char *report_row_id(const char *experiment, const char *ordinal);
