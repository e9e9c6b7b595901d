/* The beginning of a page of papers, before the details. Private to experiments/report. */
#ifndef KILTER_EXPERIMENTS_REPORT_SUMMARY_H
#define KILTER_EXPERIMENTS_REPORT_SUMMARY_H

#include "experiments/report/parts.h"

/* The paper's claims; of all papers if NULL. */
ClaimsCount report_count(const ReportParts *report, const char *paper);
/* A table of claims by paper: how many there are, and how many hold. */
void report_add_summary(const ReportParts *report);
/* Tables of where the paper contradicts itself (data/paper/contradictions.csv), and of what of it
 * is not covered, and why (data/paper/uncovered.csv). KILTER_ERROR_INPUT on a bad file. */
bool report_add_remarks(const ReportParts *report, const char *paper, GError **error);

#endif
