/* The experiments that a store has answers for, each with its claims judged. Private to
 * experiments/report. */
#pragma once

#include "experiments/figures/claims.h"
#include "experiments/sweep/experiment.h"

typedef struct Store Store; /* data/store/store.h */

/* An experiment of the store. */
typedef struct {
    char *name;
    char *paper; /* the name up to the first dash; "": not a bundled experiment */
    Experiment *experiment; /* NULL: not a bundled experiment */
    Claims *claims;
    ClaimsCount count;
} ReportPart;

typedef struct {
    const char *file;
    Store *store;
    GPtrArray *part;   /* ReportPart, with the experiments of a paper together */
    ClaimsCount count; /* of all parts */
} ReportParts;

AUTOCLEAR(report_parts_clear, ReportParts)

/* Opens the experiments of the list (NULL: all): those of a paper together, sweeps last. Fails as
 * report_store does. */
bool report_parts_open(ReportParts *report, const char *file, const char *const *names,
                       GError **error);
/* Shows all rows of the store again, after experiments have selected their own. */
bool report_parts_reopen(ReportParts *report, GError **error);

/* The columns of experiments that tables of claims have columns for; the list ends with NULL. */
extern const char *const report_columns[];

/* A name escaped for quotes in SQL. Caller frees. */
char *report_quoted(const char *name);
const char *report_title(const char *paper);
