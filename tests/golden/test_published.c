/* data/published.csv holds what Kilter predicts for published iterations today. With
 * KILTER_RECORD=1 the predictions are written anew. A row is found among the scorecard's trials
 * by its GPUs, degrees and published time. */
#include <math.h>

#include "tests/support/stored.h"

/* The columns of the file, in its order. */
enum {
    MODEL,
    DEVICE,
    FAMILY,
    GPUS,
    BITS,
    TP,
    PP,
    CP,
    EP,
    FLOPS,
    PUBLISHED,
    SHARES,
    KERNELS,
    SOURCE,
    COLUMNS
};
/* `shares` has no dispatchers: the rows that name one keep what was predicted without. */
static const struct {
    int column;
    const char *set, *db;
} COSTS[] = {{KERNELS, "costs=kernels", "kernels.db"},
             {SHARES, "costs=shares --set dispatcher=runtime", "shares.db"}};

/* The measured and the predicted time of each trial like the row. Caller frees. */
static char *trials_like(const Sandbox *box, const char *db, char **row)
{
    g_autoptr(GString) sql = g_string_new(
        "SELECT json_extract(detail, '$.measured_s'), iteration_time_s FROM "
        "(SELECT *, ',' || json_extract(subject, '$.trial.options') || ',' AS given "
        "FROM result) WHERE ");
    g_string_append_printf(
        sql,
        "json_extract(detail, '$.contest') LIKE '%%, %s x %%' AND cluster LIKE '%% %s' ",
        row[GPUS], row[DEVICE]);
    static const struct {
        int column;
        const char *key;
    } DEGREE[] = {{TP, "tp"}, {PP, "pp"}, {CP, "cp"}, {EP, "ep"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(DEGREE); i++) {
        const char *value = row[DEGREE[i].column], *key = DEGREE[i].key;
        g_string_append_printf(sql, "AND (given LIKE '%%,%s=%s,%%'", key, value);
        if (strcmp(value, "1") == 0)
            g_string_append_printf(sql, " OR given NOT LIKE '%%,%s=%%'", key);
        g_string_append(sql, ") ");
    }
    return stored_ask(box, db, sql->str);
}

/* The row's prediction; NAN: no trial is the row. */
static double predicted(const Sandbox *box, const char *db, char **row)
{
    const double published_s = g_ascii_strtod(row[PUBLISHED], NULL);
    g_autofree char *rows = trials_like(box, db, row);
    g_auto(GStrv) line = g_strsplit(rows, "\n", -1);
    double found = NAN;
    for (char **next = line; *next && **next; next++) {
        g_auto(GStrv) cell = g_strsplit(*next, "|", -1);
        if (fabs(g_ascii_strtod(cell[0], NULL) / published_s - 1) > 6e-4)
            continue;
        assert_true(isnan(found));
        found = g_ascii_strtod(cell[1], NULL);
    }
    return found;
}

static void check_row(const Sandbox *box, char **row, uint32_t *missing)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(COSTS); i++) {
        char **cell = &row[COSTS[i].column];
        const double now_s = predicted(box, COSTS[i].db, row),
                     then_s = g_ascii_strtod(*cell, NULL);
        missing[i] += isnan(now_s);
        if (isnan(now_s) || fabs(now_s / then_s - 1) < 1e-3)
            continue;
        print_message("%s on %s %s by %s: %s s is now %.4g s\n", row[MODEL], row[GPUS],
                      row[DEVICE], COSTS[i].set, *cell, now_s);
        g_free(*cell);
        *cell = g_strdup_printf("%.4g", now_s);
    }
}

static void test_predictions(void **state)
{
    (void)state;
    const char *folder = test_shared("measured");
    if (!folder)
        skip();
    g_autofree char *measured = g_strdup(folder),
                    *file = g_build_filename(KILTER_HOME, "data/published.csv", NULL),
                    *text = NULL;
    g_autoptr(Sandbox) box = sandbox_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(COSTS); i++) {
        g_autofree char *line =
            g_strdup_printf("reproduce scorecard:modern --plain --measured '%s' --db %s "
                            "--set %s",
                            measured, COSTS[i].db, COSTS[i].set);
        program_runs(box, line);
    }
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    uint32_t missing[G_N_ELEMENTS(COSTS)] = {0}, rows = 0;
    bool header = true;
    for (char **next = line; **next; next++) {
        g_auto(GStrv) cell = g_strsplit(*next, ",", -1);
        if (**next == '#')
            continue;
        assert_int_equal(g_strv_length(cell), COLUMNS);
        if (!header)
            check_row(box, cell, missing);
        rows += !header;
        header = false;
        g_free(*next);
        *next = g_strjoinv(",", cell);
    }
    print_message("%u rows; not among the trials: %u, %u\n", rows, missing[0],
                  missing[1]);
    assert_at_most(missing[0], 0);
    assert_at_most(missing[1], 5);
    g_autofree char *now = g_strjoinv("\n", line);
    if (g_getenv("KILTER_RECORD"))
        assert_true(g_file_set_contents(file, now, -1, NULL));
    else
        assert_string_equal(now, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_predictions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
