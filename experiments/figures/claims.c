/* Claims of a paper beside our values. */
#include "experiments/figures/claims.h"

#include <math.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/base/units.h"
#include "data/store/store.h"
#include "experiments/figures/query.h"
#include "experiments/sweep/experiment.h"

/* --- the paper's side --- */

static const char *const COLUMN[] = {"figure", "claim",  "text",  "value", "tolerance",
                                     "none",   "fitted", "where", NULL};

typedef struct {
    const char *figure;
    GArray *claims; /* claims about the figure */
} Reader;

/* No published number is larger. */
static const double MOST = 1e15;

static bool claims_add_claim(const Csv *csv, void *data, GError **error)
{
    const Reader *reader = data;
    Claim claim = {.ours = NAN, .none = NAN};
    if (strcmp(csv_text(csv, "figure"), reader->figure) != 0)
        return true;
    if (!csv_number(csv, "value", -MOST, MOST, &claim.value, error) ||
        !csv_number(csv, "tolerance", 0, MOST, &claim.tolerance, error) ||
        (*csv_text(csv, "none") &&
         !csv_number(csv, "none", -MOST, MOST, &claim.none, error)))
        return false;
    claim.fitted = strcmp(csv_text(csv, "fitted"), "yes") == 0;
    if (*csv_text(csv, "fitted") && !claim.fitted)
        return csv_fail(csv, "fitted", error, "expected yes, or nothing");
    /* fmin leaves out what is NaN. */
    claim.allowed = fmin(claim.tolerance, fabs(claim.value - claim.none) / 2);
    claim.claim = g_strdup(csv_text(csv, "claim"));
    claim.text = g_strdup(csv_text(csv, "text"));
    claim.where = g_strdup(csv_text(csv, "where"));
    g_array_append_val(reader->claims, claim);
    return true;
}

static bool read_claims(const char *figure, GArray *claims, GError **error)
{
    g_autofree char *relative =
        g_strdup_printf("data/paper/%.*s.csv", (int)strcspn(figure, "-"), figure);
    g_autofree char *path = path_find(relative);
    if (!path)
        return true;
    static const char *const others[] = {NULL};
    Reader reader = {figure, claims};
    g_autoptr(Csv) csv = csv_read(path, error);
    return csv && csv_expect(csv, COLUMN, others, error) &&
           csv_each(csv, claims_add_claim, &reader, error);
}

/* --- ours --- */

/* Numbers that are written with few digits in the paper are equal to ours up to rounding. */
static void claim_decide(Claim *claim)
{
    const double far = fabs(claim->ours - claim->value), rounding = 1e-9;
    claim->by_ratio = far <= claim->tolerance + rounding;
    claim->holds = far <= claim->allowed + rounding &&
                   (isnan(claim->none) ||
                    (claim->ours - claim->none) * (claim->value - claim->none) > 0);
}

typedef struct {
    Claims *claims;
    char *unknown; /* a claim of the query that the paper's file lacks */
} Judge;

static void judge_row(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)column;
    Judge *judge = data;
    if (n_columns < 4 || !value[0])
        return;
    items_each (Claim, claim, judge->claims->claim, judge->claims->n) {
        if (claim->note || strcmp(claim->claim, value[0]) != 0)
            continue;
        if (value[1] && !(number_is(value[1], &claim->ours) && isfinite(claim->ours)))
            claim->ours = NAN;
        claim_decide(claim);
        claim->note = g_strdup(value[2] ? value[2] : "");
        claim->reason = g_strdup(claim->holds || !value[3] ? "" : value[3]);
        return;
    }
    if (!judge->unknown)
        judge->unknown = g_strdup(value[0]);
}

static bool claims_ask(const char *figure, Store *store, Claims *claims, GError **error)
{
    g_autofree char *sql = figure_query(figure, "-claims.sql", error);
    Judge judge = {.claims = claims};
    bool good = sql && store_query(store, sql, judge_row, &judge, error);
    if (good && judge.unknown)
        good = refuse(error, "plots/%s-claims.sql: claim '%s' is not in data/paper",
                      figure, judge.unknown);
    g_free(judge.unknown);
    for (uint32_t i = 0; i < claims->n; i++)
        if (!claims->claim[i].note) {
            claims->claim[i].note = g_strdup("");
            claims->claim[i].reason = g_strdup("no results to judge it by");
        }
    return good;
}

Claims *claims_judge(const char *figure, Store *store, GError **error)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Claim));
    bool good = read_claims(figure, list, error);
    g_autoptr(Claims) claims = g_new0(Claims, 1);
    claims->n = list->len;
    claims->claim = (Claim *)g_array_free(list, FALSE);
    if (good && claims->n > 0)
        good = claims_ask(figure, store, claims, error);
    return good ? g_steal_pointer(&claims) : NULL;
}

bool claims_add_column(Claims *claims, const Experiment *experiment, uint32_t index,
                       const Claims *judged, GError **error)
{
    g_assert(claims->n == judged->n);
    uint32_t n_tests;
    char *const *tests = experiment_column_tests(experiment, index, &n_tests);
    const uint32_t at = claims->n_columns++;
    claims->column = g_renew(char *, claims->column, claims->n_columns);
    claims->column[at] = g_strdup(experiment_column(experiment, index));
    items_at (Claim, claim, i, claims->claim, claims->n) {
        claim->column = g_renew(ClaimColumn, claim->column, claims->n_columns);
        claim->column[at] = (ClaimColumn){
            judged->claim[i].ours, judged->claim[i].holds, judged->claim[i].by_ratio,
            TEXT_PLACE(tests, n_tests, claim->claim) < n_tests};
    }
    for (uint32_t k = 0; k < n_tests; k++)
        if (NAME_PLACE(claims->claim, claims->n, claim, tests[k]) == claims->n)
            return refuse(error, "column %s tests '%s', which is no claim of %s",
                          claims->column[at], tests[k], experiment_name(experiment));
    return true;
}

const ClaimColumn *claims_column(const Claims *claims, const Claim *claim,
                                 const char *name)
{
    const uint32_t k = TEXT_PLACE(claims->column, claims->n_columns, name);
    return k < claims->n_columns ? &claim->column[k] : NULL;
}

const char *claims_verdict(const Claim *claim)
{
    return isnan(claim->ours)                 ? "no results"
           : claim->fitted && claim->by_ratio ? "fitted"
           : claim->holds                     ? "holds"
           : claim->by_ratio                  ? "by ratio only"
                                              : "does not hold";
}

char *claims_value_text(const Claim *claim, double value)
{
    enum { USUAL_PLACES = 2, MOST_PLACES = 6 };
    if (isnan(value))
        return g_strdup("-");
    if (claims_is_yes(claim))
        return g_strdup(value >= 0.5 ? "yes" : "no");
    const double places =
        claim->allowed > 0 ? 1 - floor(log10(claim->allowed)) : USUAL_PLACES;
    g_autofree char *format =
        g_strdup_printf("%%.%df", (int)CLAMP(places, 0, MOST_PLACES));
    return number_rounded(value, format);
}

bool claims_is_yes(const Claim *claim)
{
    return g_str_has_suffix(claim->text, CLAIMS_YES);
}

char *claims_words(const Claim *claim)
{
    g_auto(GStrv) words = g_strsplit(claim->text, CLAIMS_YES, 2);
    return g_strchomp(g_strdup(*words));
}

/* " (cause: holds)", or the part of the distance that is gone in the column. */
static void add_cause(GString *text, const Claim *claim, const ClaimColumn *column)
{
    const double was = claim->ours - claim->value, is = column->ours - claim->value;
    if (column->holds)
        g_string_append(text, " (cause: holds)");
    else if (was * is < 0)
        g_string_append(text, " (cause: more than the distance)");
    else
        g_string_append_printf(text, " (cause: %.0f %%)", 100 * fmax(0, 1 - is / was));
}

char *claims_columns_text(const Claims *claims, const Claim *claim,
                          const char *const *except)
{
    g_autoptr(GString) text = g_string_new("");
    items_at (const ClaimColumn, column, k, claim->column, claims->n_columns) {
        if (isnan(column->ours) || (except && g_strv_contains(except, claims->column[k])))
            continue;
        g_autofree char *value = claims_value_text(claim, column->ours);
        g_string_append_printf(text, "%s%s %s", text->len ? ", " : "", claims->column[k],
                               value);
        if (column->tests && !claim->holds)
            add_cause(text, claim, column);
        else if (column->holds)
            g_string_append(text, " (holds)");
    }
    return g_strdup(text->str);
}

void claims_count(const Claims *claims, ClaimsCount *count)
{
    items_each (const Claim, claim, claims->claim, claims->n) {
        const ClaimColumn *fitted = claims_column(claims, claim, CLAIMS_CALIBRATED);
        count->n++;
        count->open += isnan(claim->ours);
        count->held += claim->holds && !claim->fitted;
        count->by_ratio += claim->by_ratio && !claim->fitted;
        count->calibrated +=
            fitted && !isnan(fitted->ours) ? fitted->holds : claim->holds;
        bool tested = false, explained = false;
        items_each (const ClaimColumn, column, claim->column, claims->n_columns) {
            tested |= column->tests && !isnan(column->ours);
            explained |= column->tests && column->holds;
        }
        count->tested += tested && !claim->holds;
        count->explained += explained && !claim->holds;
    }
}

char *claims_count_text(const ClaimsCount *count)
{
    return g_strdup_printf("%u of %u claims hold (%u by ratio)", count->held, count->n,
                           count->by_ratio);
}

void claims_free(Claims *claims)
{
    if (!claims)
        return;
    free_items(claims->column, claims->n_columns);
    g_free(claims->column);
    for (uint32_t i = 0; i < claims->n; i++) {
        free_each(claims->claim[i].column, claims->claim[i].claim, claims->claim[i].text,
                  claims->claim[i].where, claims->claim[i].note, claims->claim[i].reason);
    }
    free_each(claims->claim, claims);
}
