#include "experiments/claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/csv.h"
#include "experiments/figure.h"

/* --- the paper's side --- */

enum {
    COLUMN_FIGURE,
    COLUMN_CLAIM,
    COLUMN_TEXT,
    COLUMN_VALUE,
    COLUMN_TOLERANCE,
    COLUMN_WHERE,
    COLUMNS
};
static const char *const header[COLUMNS] = {"figure", "claim",     "text",
                                            "value",  "tolerance", "where"};

static bool number(const char *text, double *value)
{
    char *end = NULL;
    *value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static bool add_claim(GArray *claims, char **field, GError **error)
{
    Claim claim = {.ours = NAN};
    if (!number(field[COLUMN_VALUE], &claim.value))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "key 'value': expected a number, got '%s'",
                           field[COLUMN_VALUE]);
    if (!number(field[COLUMN_TOLERANCE], &claim.tolerance))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "key 'tolerance': expected a number, got '%s'",
                           field[COLUMN_TOLERANCE]);
    claim.claim = g_strdup(field[COLUMN_CLAIM]);
    claim.text = g_strdup(field[COLUMN_TEXT]);
    claim.where = g_strdup(field[COLUMN_WHERE]);
    g_array_append_val(claims, claim);
    return true;
}

static bool read_line(const char *figure, unsigned number_of_line, const char *line,
                      GArray *claims, GError **error)
{
    g_auto(GStrv) field = csv_split(line);
    if (g_strv_length(field) != COLUMNS)
        return kilter_fail(error, KILTER_ERROR_INPUT, "expected %d columns, got %u",
                           COLUMNS, g_strv_length(field));
    if (number_of_line == 1) {
        for (int i = 0; i < COLUMNS; i++)
            if (strcmp(field[i], header[i]) != 0)
                return kilter_fail(error, KILTER_ERROR_INPUT,
                                   "expected column '%s', got '%s'", header[i], field[i]);
        return true;
    }
    return strcmp(field[COLUMN_FIGURE], figure) != 0 || add_claim(claims, field, error);
}

static bool read_claims(const char *figure, GArray *claims, GError **error)
{
    const char *dash = strchr(figure, '-');
    g_autofree char *paper =
        dash ? g_strndup(figure, (gsize)(dash - figure)) : g_strdup(figure);
    g_autofree char *relative = g_strdup_printf("data/paper/%s.csv", paper);
    g_autofree char *path = path_find(relative);
    if (!path)
        return true;
    g_autofree char *text = NULL;
    g_autoptr(GError) read_error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &read_error))
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s", read_error->message);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        g_strchomp(lines[i]);
        if (*lines[i] && !read_line(figure, i + 1, lines[i], claims, error)) {
            g_prefix_error(error, "%s:%u: ", path, i + 1);
            return false;
        }
    }
    return true;
}

/* --- ours --- */

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
    for (uint32_t i = 0; i < judge->claims->n; i++) {
        Claim *claim = &judge->claims->claim[i];
        if (claim->note || strcmp(claim->claim, value[0]) != 0)
            continue;
        if (value[1] && !number(value[1], &claim->ours))
            claim->ours = NAN;
        claim->holds = fabs(claim->ours - claim->value) <= claim->tolerance;
        claim->note = g_strdup(value[2] ? value[2] : "");
        claim->reason = g_strdup(claim->holds || !value[3] ? "" : value[3]);
        return;
    }
    if (!judge->unknown)
        judge->unknown = g_strdup(value[0]);
}

static bool ask(const char *figure, Store *store, Claims *claims, GError **error)
{
    g_autofree char *sql = figure_query(figure, "-claims.sql", error);
    if (!sql)
        return false;
    Judge judge = {.claims = claims};
    bool good = store_query(store, sql, judge_row, &judge, error);
    if (good && judge.unknown)
        good = kilter_fail(error, KILTER_ERROR_INPUT,
                           "plots/%s-claims.sql: claim '%s' is not in data/paper", figure,
                           judge.unknown);
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
        good = ask(figure, store, claims, error);
    return good ? g_steal_pointer(&claims) : NULL;
}

void claims_free(Claims *claims)
{
    if (!claims)
        return;
    for (uint32_t i = 0; i < claims->n; i++) {
        g_free(claims->claim[i].claim);
        g_free(claims->claim[i].text);
        g_free(claims->claim[i].where);
        g_free(claims->claim[i].note);
        g_free(claims->claim[i].reason);
    }
    g_free(claims->claim);
    g_free(claims);
}
