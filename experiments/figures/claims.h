/* Claims: what a paper says of a figure, beside what our results say.
 *
 * data/paper/PAPER.csv holds the paper's side, one claim per line: figure, claim, text, value,
 * tolerance, where. PAPER is the figure's name up to its first dash. plots/NAME-claims.sql computes
 * ours: columns claim, ours, note, reason. A claim holds if |ours - value| <= tolerance. */
#ifndef KILTER_EXPERIMENTS_FIGURES_CLAIMS_H
#define KILTER_EXPERIMENTS_FIGURES_CLAIMS_H

#include "data/data.h"

typedef struct {
    char *claim; /* id */
    char *text;
    double value, tolerance; /* of the paper */
    char *where;
    double ours;  /* NaN: our results say nothing */
    char *note;   /* what the results say about it */
    char *reason; /* why it does not hold, as far as the results tell; "" if it holds */
    bool holds;
} Claim;

typedef struct {
    uint32_t n;
    Claim *claim;
} Claims;

/* The claims of `figure`, in the file's order, judged by the store's results. KILTER_ERROR_INPUT
 * names file and line of a bad claim, or the claim of a query that the file lacks. */
Claims *claims_judge(const char *figure, Store *store, GError **error);
void claims_free(Claims *claims);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Claims, claims_free)

#endif
