/* The experiments that a store has answers for, each with its claims judged. Private to experiments/report. */
#ifndef KILTER_EXPERIMENTS_REPORT_PARTS_H
#define KILTER_EXPERIMENTS_REPORT_PARTS_H

#include "experiments/figures/claims.h"
#include "experiments/sweep/experiment.h"

/* An experiment of the store. */
typedef struct {
    char *name, *paper;     /* paper: up to the first dash; "" if it is none of ours */
    Experiment *experiment; /* NULL: none of ours */
    Claims *claims;
    uint32_t n_held;
} ReportPart;

typedef struct {
    const char *file;
    Store *store;
    GPtrArray *part; /* ReportPart, those of a paper together */
    GString *page;
    uint32_t n_claims, n_held;
} ReportParts;

void report_parts_clear(ReportParts *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ReportParts, report_parts_clear)

/* Those of the list (NULL: all), a paper's together, sweeps last. Errors as report_store. */
bool report_parts_open(ReportParts *report, const char *file, const char *const *names,
                       GError **error);
/* All rows of the store are there again, after experiments have chosen theirs. */
bool report_parts_reopen(ReportParts *report, GError **error);

const char *report_title(const char *paper);
const char *report_verdict(const Claim *claim);

#endif
