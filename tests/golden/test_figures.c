/* Figures without results, and the numbers of Fig. 4, which needs no plan. test_golden.c checks the
 * numbers of all figures and claims. */
#include <math.h>

#include "data/data.h"
#include "data/store/store.h"
#include "experiments/figures/claims.h"
#include "experiments/figures/figure.h"
#include "experiments/figures/reproduce.h"
#include "experiments/sweep/experiment.h"
#include "experiments/sweep/result.h"
#include "experiments/sweep/sweep.h"
#include "tests/support/program.h"

static Experiment *load(const char *name)
{
    GError *error = NULL;
    Experiment *experiment = experiment_load(name, NULL, &error);
    assert_no_error(error);
    assert_string_equal(experiment_name(experiment), name);
    return experiment;
}

static Store *open_store(const Sandbox *box, const char *name)
{
    GError *error = NULL;
    g_autofree char *file = g_build_filename(box->folder, name, NULL);
    Store *store = store_open(file, &error);
    assert_no_error(error);
    assert_true(store_begin_run(store, "test", "", &error));
    return store;
}

static void count(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)value;
    (void)column;
    assert_true(n_columns >= 5);
    ++*(uint32_t *)data;
}

static void assert_drawable(const char *name, Store *store)
{
    GError *error = NULL;
    uint32_t rows = 0;
    g_autofree char *sql = figure_query(name, ".sql", &error);
    assert_no_error(error);
    store_query(store, sql, count, &rows, &error);
    assert_no_error(error);
    if (rows < 3)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %u rows to draw", name, rows);
    g_autoptr(Claims) claims = claims_judge(name, store, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < claims->n; i++) {
        const Claim *claim = &claims->claim[i];
        if (isnan(claim->ours) || !*claim->note || (!claim->holds && !*claim->reason))
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s: claim %s: ours %g, note '%s', reason '%s'", name,
                         claim->claim, claim->ours, claim->note, claim->reason);
    }
}

/* A figure without any result says so; it does not fail. */
static void test_no_results(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Store) store = open_store(box, "empty.db");
    g_auto(GStrv) names = path_list("experiments", ".yaml");
    for (char **name = names; *name; name++) {
        GError *error = NULL;
        if (!g_str_has_prefix(*name, "hap-") && !g_str_has_prefix(*name, "amp-"))
            continue;
        g_autoptr(Claims) claims = claims_judge(*name, store, &error);
        assert_no_error(error);
        for (uint32_t i = 0; i < claims->n; i++)
            if (!isnan(claims->claim[i].ours))
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: claim %s without results: ours %g",
                             *name, claims->claim[i].claim, claims->claim[i].ours);
    }
}

/* HAP Fig. 4: padded and grouped change places once. */
static void test_exchanges(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment = load("hap-fig4");
    g_autoptr(Store) store = open_store(box, "r.db");
    SweepOptions options = {.threads = 1};
    SweepProgress progress;
    GError *error = NULL;
    sweep_run(experiment, store, &options, &progress, &error);
    assert_no_error(error);
    assert_int_equal(progress.done, experiment_count(experiment));
    assert_drawable("hap-fig4", store);
    g_autoptr(Claims) claims = claims_judge("hap-fig4", store, &error);
    assert_int_equal(claims->n, 2);
    assert_true(claims->claim[0].holds && claims->claim[1].holds);
    /* 4 MB at even shares on 4 GPUs: latency + 3/4 V / bandwidth. */
    const Configuration *even = experiment_at(experiment, 0);
    const double even_s = 65e-6 + 0.75 * 4e6 / 8.28e9;
    assert_close(configuration_exchange_s(even), even_s, 1e-12);
    /* Nothing is computed, and nothing was searched. */
    g_auto(Result) result = {0};
    assert_true(result_evaluate(even, "hap-fig4", &result, &error));
    assert_close(result.row.communication_s, even_s, 1e-12);
    assert_close(result.row.iteration_time_s, even_s, 1e-12);
    assert_true(result.row.computation_s == 0 && result.row.search_time_s == 0 &&
                result.row.balance_time_s == 0);
}

/* Runs of equal devices in a row's details have all devices: hap-8 has two of one kind and six
 * of another. */
static void test_devices_of_rows(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: ['vit:layers=1']\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev]\n");
    g_autofree char *path = g_build_filename(box->folder, "x.yaml", NULL);
    GError *error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(path, NULL, &error);
    assert_no_error(error);
    g_auto(Result) result = {0};
    assert_true(result_evaluate(experiment_at(experiment, 0), "x", &result, &error));
    g_autoptr(GRegex) run = g_regex_new("\"n\": *([0-9]+)", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint64_t devices = 0, runs = 0;
    for (g_regex_match(run, result.detail, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL), runs++) {
        g_autofree char *n = g_match_info_fetch(match, 1);
        devices += g_ascii_strtoull(n, NULL, 10);
    }
    assert_int_equal(devices, 8);
    assert_true(runs >= 2 && runs < 8);
}

static void test_bad_exchanges(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *bytes, *share, *part;
    } cases[] = {{"gossip", "4 MB", "0.5", "unknown collective 'gossip'"},
                 {"slice", "4 MB", "0.5", "unknown collective 'slice'"},
                 {"all_gather", "4", "0.5", "expected"},
                 {"all_gather", "4 MB", "1.5", "expected a share from 0 to 1"},
                 {"all_gather", "4 MB", "nan", "expected a share from 0 to 1"}};
    g_autoptr(Cluster) cluster = cluster_load("hap-a100-4", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(configuration_of_exchange(cases[i].kind, cases[i].bytes,
                                              cases[i].share, "hap-a100-4", cluster,
                                              GRANULARITY_GPU, &error));
        assert_error(error, KILTER_ERROR_INPUT, cases[i].part);
    }
}

/* --- parts that queries share --- */

static void put(const Sandbox *box, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(box->folder, name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    assert_int_equal(g_mkdir_with_parents(folder, 0700), 0);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void test_parts(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(GError) error = NULL;
    put(box, "plots/shared/one.sql", "one (n) AS (VALUES (1))\n");
    put(box, "plots/good.sql", "WITH\n.read shared/one.sql\nSELECT n FROM one;\n");
    put(box, "plots/bad.sql", "WITH\n.read shared/none.sql\nSELECT n FROM none;\n");
    put(box, "plots/out.sql", ".read ../plots/good.sql\n");
    g_setenv("KILTER_PATH", box->folder, TRUE);
    g_autofree char *good = figure_query("good", ".sql", &error);
    assert_no_error(error);
    assert_string_equal(good, "WITH\none (n) AS (VALUES (1))\nSELECT n FROM one;\n");
    assert_null(figure_query("bad", ".sql", &error));
    assert_error(error, KILTER_ERROR_INPUT,
                 "plots/bad.sql:2: expected a file of plots/, got 'shared/none.sql'");
    g_clear_error(&error);
    assert_null(figure_query("out", ".sql", &error));
    assert_error(error, KILTER_ERROR_INPUT, "plots/out.sql:1: expected a file of plots/");
    g_unsetenv("KILTER_PATH");
}

/* Claims are counted on top of others; the column `calibrated` counts where it says something. */
static void test_counts_of_claims(void **state)
{
    (void)state;
    ClaimColumn column[][2] = {
        {{.ours = 9, .holds = false}, {.ours = 1, .holds = true}},
        {{.ours = 9, .holds = true}, {.ours = NAN, .holds = false}},
        {{.ours = 9, .holds = true}, {.ours = 1, .holds = false}}};
    Claim claim[] = {{.holds = false, .column = column[0]},
                     {.holds = true, .column = column[1]},
                     {.holds = true, .column = column[2]}};
    char *name[] = {(char *)CLAIMS_BEST, (char *)CLAIMS_CALIBRATED};
    const Claims with = {.n = 3, .claim = claim, .n_columns = 2, .column = name};
    const Claims without = {.n = 3, .claim = claim};
    ClaimsCount count = {.n = 10, .held = 5, .calibrated = 4};
    claims_count(&with, &count);
    assert_int_equal(count.n, 13);
    assert_int_equal(count.held, 7);
    assert_int_equal(count.calibrated, 6);
    claims_count(&without, &count);
    assert_int_equal(count.n, 16);
    assert_int_equal(count.held, 9);
    assert_int_equal(count.calibrated, 8);
}

/* A column that tests a cause says how much of the distance from the paper it takes. */
static void test_causes(void **state)
{
    (void)state;
    static const char FILE_TEXT[] =
        "name: lab\n"
        "grid: {model: ['vit:layers=1'], cluster: [hap-8], planner: [dp-ev]}\n"
        "columns:\n"
        "  - {name: half, tests: [a]}\n"
        "  - {name: all, tests: [a]}\n"
        "  - {name: past, tests: [a]}\n"
        "  - {name: worse, tests: [a]}\n"
        "  - {name: other}\n"
        "  - {name: wrong, tests: [b]}\n";
    static const double OURS[] = {1.5, 2, 2.5, 0.5, 1.5, 2};
    GError *error = NULL;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *path = g_build_filename(box->folder, "lab.yaml", NULL);
    assert_true(g_file_set_contents(path, FILE_TEXT, -1, NULL));
    g_autoptr(Experiment) lab = experiment_load(path, NULL, &error);
    assert_no_error(error);
    Claims *claims = g_new0(Claims, 1);
    claims->n = 1;
    claims->claim = g_new0(Claim, 1);
    claims->claim[0] = (Claim){.claim = g_strdup("a"),
                               .text = g_strdup("a"),
                               .value = 2,
                               .allowed = 0.1,
                               .ours = 1};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OURS); i++) {
        Claim one = {.claim = (char *)"a", .ours = OURS[i], .holds = OURS[i] == 2};
        const Claims judged = {.n = 1, .claim = &one};
        if (claims_add_column(claims, lab, i, &judged, &error) != (i < 5))
            TEST_FAIL_AT(__FILE__, __LINE__, "column %u: %s", i,
                         error ? error->message : "no error");
    }
    assert_string_equal(error->message,
                        "column wrong tests 'b', which is no claim of lab");
    g_clear_error(&error);
    g_autofree char *text =
        claims_columns_text(claims, claims->claim, (const char *const[]){"wrong", NULL});
    assert_string_equal(text,
                        "half 1.50 (cause: 50 %), all 2.00 (cause: holds), past 2.50 "
                        "(cause: more than the distance), worse 0.50 (cause: 0 %), "
                        "other 1.50");
    ClaimsCount count = {0};
    claims_count(claims, &count);
    assert_int_equal(count.tested, 1);
    assert_int_equal(count.explained, 1);
    claims->claim[0].holds = true;
    claims_count(claims, &count);
    assert_int_equal(count.tested, 1);
    claims_free(claims);
}

/* A figure takes over the answers of a database that is known, and evaluates only the rest. */
static void test_known_answers(void **state)
{
    (void)state;
    GError *error = NULL;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autoptr(Experiment) experiment = load("hap-fig4");
    g_autofree char *known = g_build_filename(box->folder, "known.db", NULL),
                    *other = g_build_filename(box->folder, "other.db", NULL);
    ReproduceOptions options = {
        .database = known, .folder = box->folder, .command = "test", .revision = ""};
    for (uint32_t i = 0; i < 2; i++) {
        g_auto(Reproduction) made = {0};
        reproduce_run(experiment, &options, &made, &error);
        assert_no_error(error);
        assert_true(made.progress.total > 10);
        assert_int_equal(made.progress.present, i ? made.progress.total : 0);
        assert_string_equal(made.database, i ? other : known);
        options.known = known;
        options.database = other;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),    cmocka_unit_test(test_parts),
        cmocka_unit_test(test_no_results),       cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_bad_exchanges),    cmocka_unit_test(test_devices_of_rows),
        cmocka_unit_test(test_counts_of_claims), cmocka_unit_test(test_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
