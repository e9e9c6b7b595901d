/* Claims: a paper's statements about a figure, beside the numbers of our results.
 *
 * data/paper/PAPER.csv holds the paper's side, one claim per line: figure, claim, text, value,
 * tolerance, none, fitted, where. PAPER is the figure's name up to its first dash.
 * plots/NAME-claims.sql computes our numbers: columns claim, ours, note, reason.
 *
 * `none` is the value without the effect that the paper reports: 1 for a speed-up, 0 for a gain in
 * per cent; empty if the paper reports no effect. A claim holds if ours lies on the paper's side of
 * `none` and |ours - value| is at most the tolerance and at most half of the effect, |value -
 * none|; it holds by ratio, whatever the effect is, if |ours - value| <= tolerance. `fitted` is yes
 * if a number of ours was fitted to this one: then it counts as calibrated only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"

typedef struct Store Store;           /* data/store/store.h */
typedef struct Experiment Experiment; /* experiments/sweep/experiment.h */

/* The claim's result in another column of the experiment. */
typedef struct {
    double ours; /* NaN: the column's results do not say */
    bool holds, by_ratio;
    bool tests; /* it removes the cause that is given where the claim does not hold */
} ClaimColumn;

/* The column whose numbers were fitted to the paper, and the one of Kilter's own plans. */
#define CLAIMS_CALIBRATED "calibrated"
#define CLAIMS_BEST       "best"
/* In the text of a claim that holds or does not, without a number of its own. */
#define CLAIMS_YES "(1: yes)"

typedef struct {
    char *claim; /* id */
    char *text;
    double value, tolerance; /* of the paper */
    double none;             /* NaN: no effect is claimed */
    double allowed; /* of the distance from `value`: tolerance, half the effect */
    bool fitted;    /* a number of ours was fitted to it */
    char *where;
    double ours;  /* NaN: the results do not say */
    char *note;   /* a remark on our number */
    char *reason; /* why it does not hold, as far as the results tell; "" if it holds */
    bool holds, by_ratio;
    ClaimColumn *column; /* [Claims.n_columns] */
} Claim;

typedef struct {
    uint32_t n;
    Claim *claim;
    uint32_t n_columns;
    char **column; /* their names */
} Claims;

/* The claims of `figure`, in the file's order, judged by the store's results. KILTER_ERROR_INPUT
 * names file and line of a bad claim, or the claim of a query that the file lacks. */
Claims *claims_judge(const char *figure, Store *store, GError **error);
/* Adds a column of the experiment: the same claims, judged by the results of that column.
 * KILTER_ERROR_INPUT names a claim that the column tests, but the figure lacks. */
bool claims_add_column(Claims *claims, const Experiment *experiment, uint32_t index,
                       const Claims *judged, GError **error);
/* The claim's results in all columns but those of `except` (a list that ends with NULL, or NULL),
 * as "calibrated 2.77, best 3.33 (holds)". Columns that test its cause have the part of
 * the distance from the paper that is gone there: "(cause: 56 %)". Returns "" if there
 * are none. Caller frees. */
char *claims_columns_text(const Claims *claims, const Claim *claim,
                          const char *const *except);
/* Whether the claim holds or does not, without a number of its own. */
bool claims_is_yes(const Claim *claim);
/* The claim's text without that remark. Caller frees. */
char *claims_words(const Claim *claim);
/* "holds", "by ratio only", "does not hold", "no results" or, of one that holds since it was
 * fitted, "fitted". */
const char *claims_verdict(const Claim *claim);
/* The paper's number, ours or the distance that is allowed as "2.41", with the decimals that two
 * digits of that distance have (2 if it is 0), or as yes or no; "-" if it is not known. Caller
 * frees. */
char *claims_value_text(const Claim *claim, double value);
/* The claim's result in the column of that name, or NULL. */
const ClaimColumn *claims_column(const Claims *claims, const Claim *claim,
                                 const char *name);
typedef struct {
    uint32_t n, held;  /* claims, and those that hold by the experiment itself */
    uint32_t by_ratio; /* those that hold by ratio */
    uint32_t open;     /* those without a result */
    /* those that hold with the column `calibrated` where it says something */
    uint32_t calibrated;
    /* those that do not hold, but whose cause a column tests; those that hold there */
    uint32_t tested, explained;
} ClaimsCount;

/* Adds the claims to the count. */
void claims_count(const Claims *claims, ClaimsCount *count);
/* "6 of 9 claims hold (7 by ratio)". Caller frees. */
char *claims_count_text(const ClaimsCount *count);

AUTOPTR(claims_free, Claims)
