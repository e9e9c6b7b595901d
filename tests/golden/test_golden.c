/* Golden rows: the results of a paper's bundled experiments, compared with tests/golden/PAPER.csv.
 *
 * A line of that file is a result of the experiment (row), a value that a figure draws (drawn), or
 * a claim beside the paper's value (claim). Text must be equal, and numbers must agree within the
 * file's tolerance. Wall-clock times are replaced before figures and claims are computed.
 * KILTER_PAPER names the paper; with KILTER_RECORD set the file is written instead (`./run
 * golden`), with KILTER_FIGURE only the lines of that experiment. KILTER_GOLDEN_STORE names a
 * folder whose databases are used and kept, for work on queries, which does not change results. */
#include <sqlite3.h>

#include "data/data.h"
#include "data/store/database.h"
#include "data/store/store.h"
#include "experiments/figures/claims.h"
#include "experiments/figures/figure.h"
#include "experiments/sweep/sweep.h"
#include "tests/support/program.h"
#include "tests/support/rounds.h"

static const char RULE[] = "# What the bundled experiments come out as, recorded by "
                           "./run golden; tests/golden/test_golden.c compares.\n"
                           "# A line may change only in a commit that says why: a defect "
                           "that was mended, a model or a cluster that became more\n"
                           "# faithful, a grid that was extended. A change without such "
                           "a reason is a defect of the change.\n"
                           "# Wall-clock times are not results: the search time of a row "
                           "is taken as a ten-billionth of its peak memory in bytes.\n"
                           "# tolerance 1e-6, relative, of every number\n";

static const char *paper(void)
{
    const char *name = g_getenv("KILTER_PAPER");
    return name ? name : "hap";
}

/* --- lines --- */

static void add_line(GString *lines, const char *figure, const char *kind,
                     const char *key, const char *values)
{
    g_assert(!strchr(key, '"') && !strchr(values, '"'));
    g_string_append_printf(lines, "%s,%s,\"%s\",\"%s\"\n", figure, kind, key, values);
}

/* Rounds a number, so that the file does not hold noise. */
static void add_number(GString *values, const char *value)
{
    char *end = NULL;
    const double number = value ? g_ascii_strtod(value, &end) : 0;
    if (value && end != value && *end == '\0')
        g_string_append_printf(values, "%.9g", number);
    else
        g_string_append(values, value ? value : "-");
}

static void add_value(GString *values, const char *name, const char *value)
{
    g_string_append_printf(values, "%s%s=", values->len > 0 ? " " : "", name);
    add_number(values, value);
}

/* Options of the configuration that are not at their defaults, as "key=value ...". */
static char *options_set(const PlannerOptions *options)
{
    PlannerOptions plain;
    planner_options_init(&plain);
    g_auto(GStrv) list = planner_options_list(options, NULL);
    g_auto(GStrv) defaults = planner_options_list(&plain, NULL);
    g_autoptr(GHashTable) usual = g_hash_table_new(g_str_hash, g_str_equal);
    for (char **pair = defaults; pair[0] && pair[1]; pair += 2)
        g_hash_table_insert(usual, pair[0], pair[1]);
    GString *text = g_string_new(NULL);
    for (char **pair = list; pair[0] && pair[1]; pair += 2)
        if (g_strcmp0(g_hash_table_lookup(usual, pair[0]), pair[1]) != 0)
            add_value(text, pair[0], pair[1]);
    return g_string_free(text, FALSE);
}

static char *row_key(const Configuration *c)
{
    g_autofree char *options = c->planner ? options_set(c->options) : g_strdup("");
    return g_strdup_printf("%s on %s by %s(%s) %s %s seed %" G_GUINT64_FORMAT, c->model,
                           c->cluster_name, c->planner ? c->planner->name : "none",
                           options, granularity_name(c->granularity),
                           c->fidelity ? c->fidelity : "-", c->seed);
}

static void keep_row(uint32_t n_columns, char **value, char **column, void *data)
{
    GString *values = g_string_new(NULL);
    for (uint32_t i = 1; i < n_columns; i++)
        add_value(values, column[i], value[i]);
    g_hash_table_insert(data, g_strdup(value[0]), g_string_free(values, FALSE));
}

static void add_rows(GString *lines, const Experiment *experiment, Store *store)
{
    GError *error = NULL;
    g_autoptr(GHashTable) row =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    store_query(store,
                "SELECT hash, status, iteration_time_s AS time_s, communication_s, "
                "computation_s, peak_memory_bytes, stages FROM result",
                keep_row, row, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < experiment_count(experiment); i++) {
        const Configuration *c = experiment_at(experiment, i);
        const char *values = g_hash_table_lookup(row, c->hash);
        assert_non_null(values);
        g_autofree char *key = row_key(c);
        add_line(lines, experiment_name(experiment), "row", key, values);
    }
}

typedef struct {
    GString *lines;
    const char *figure;
    uint32_t n;
} Drawn;

static void add_drawn(uint32_t n_columns, char **value, char **column, void *data)
{
    Drawn *drawn = data;
    g_autoptr(GString) values = g_string_new(NULL);
    for (uint32_t i = 0; i < n_columns && strcmp(column[i], FIGURE_ROWS) != 0; i++) {
        g_string_append(values, i > 0 ? " | " : "");
        add_number(values, value[i]);
    }
    g_autofree char *key = g_strdup_printf("%u", drawn->n++);
    add_line(drawn->lines, drawn->figure, "drawn", key, values->str);
}

static void add_figure(GString *lines, const char *figure, Store *store)
{
    GError *error = NULL;
    Drawn drawn = {.lines = lines, .figure = figure};
    g_autofree char *sql = figure_query(figure, ".sql", &error);
    assert_no_error(error);
    store_query(store, sql, add_drawn, &drawn, &error);
    assert_no_error(error);
    if (drawn.n < 3)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %u rows to draw", figure, drawn.n);
}

/* `some`: a column may lack a claim. */
static void add_claims(GString *lines, const char *name, const char *figure, bool some,
                       Store *store)
{
    GError *error = NULL;
    g_autoptr(Claims) claims = claims_judge(figure, store, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < claims->n; i++) {
        const Claim *claim = &claims->claim[i];
        if (some && isnan(claim->ours))
            continue;
        if (isnan(claim->ours) || !*claim->note || (!claim->holds && !*claim->reason))
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s: claim %s: ours %g, note '%s', reason '%s'", figure,
                         claim->claim, claim->ours, claim->note, claim->reason);
        g_autofree char *values = g_strdup_printf(
            "paper=%.9g tolerance=%.9g allowed=%.9g ours=%.9g %s", claim->value,
            claim->tolerance, claim->allowed, claim->ours, claims_verdict(claim));
        add_line(lines, name, "claim", claim->claim, values);
    }
}

/* --- results --- */

/* Replaces wall-clock times, which differ between runs. */
static void replace_wall_clock(const char *database)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    assert_true(store_add_functions(db));
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE answer SET search_time_s = "
                                  "peak_memory_bytes / 1e10, balance_time_s = 0 "
                                  "WHERE search_time_s IS NOT NULL; "
                                  "UPDATE answer SET seal = "
                                  "kilter_seal(" STORE_ANSWER_COLUMNS ")",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Every configuration is planned and simulated, or does not fit the memory: none is refused. */
static void evaluate(const Experiment *experiment, const char *database)
{
    GError *error = NULL;
    g_autoptr(Store) store = store_open(database, &error);
    assert_no_error(error);
    assert_true(store_begin_run(store, "test", "", &error));
    SweepProgress progress;
    sweep_run(experiment, store, &(SweepOptions){0}, &progress, &error);
    assert_no_error(error);
}

/* The experiment, or one of its columns (NULL: none); for a column no figure is drawn. */
static void add_results(GString *lines, const char *name, const char *column,
                        const Sandbox *box)
{
    GError *error = NULL;
    const ExperimentChange change = {.column = column};
    g_autoptr(Experiment) experiment = experiment_load(name, &change, &error);
    assert_no_error(error);
    const char *kept = g_getenv("KILTER_GOLDEN_STORE");
    g_autofree char *database =
        g_build_filename(kept ? kept : box->folder, experiment_name(experiment), NULL);
    evaluate(experiment, database);
    replace_wall_clock(database);
    g_autoptr(Store) store = store_open_read(database, &error);
    assert_no_error(error);
    assert_true(experiment_select(experiment, store, &error));
    add_rows(lines, experiment, store);
    if (!column)
        add_figure(lines, name, store);
    add_claims(lines, experiment_name(experiment), name, column != NULL, store);
}

/* Columns take several times as long as their experiments: they are left to the long test. */
static bool with_columns(void)
{
    return test_rounds(0, 1) || g_getenv("KILTER_RECORD");
}

/* So is one figure of two that ask the same on other machines. */
static bool is_left_out(const char *line)
{
    return !with_columns() && !g_getenv("KILTER_FIGURE") &&
           g_str_has_prefix(line, "hap-fig14");
}

static void add_experiment(GString *lines, const char *name, const Sandbox *box)
{
    GError *error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(name, NULL, &error);
    assert_no_error(error);
    add_results(lines, name, NULL, box);
    for (uint32_t i = 0; with_columns() && i < experiment_n_columns(experiment); i++)
        add_results(lines, name, experiment_column(experiment, i), box);
}

/* All lines of the experiments whose name starts with `prefix`. */
static char *compute(const char *prefix)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(GStrv) names = path_list("experiments", ".yaml");
    GString *lines = g_string_new(NULL);
    const bool one = g_strcmp0(g_getenv("KILTER_FIGURE"), prefix) == 0;
    for (char **name = names; *name; name++)
        if (one ? strcmp(*name, prefix) == 0 : g_str_has_prefix(*name, prefix))
            if (!is_left_out(*name))
                add_experiment(lines, *name, box);
    return g_string_free(lines, FALSE);
}

/* --- comparing --- */

static bool agree(const char *a, const char *b, double tolerance)
{
    while (*a && *b) {
        if (g_ascii_isdigit(*a) && g_ascii_isdigit(*b)) {
            char *rest_a, *rest_b;
            const double x = g_ascii_strtod(a, &rest_a), y = g_ascii_strtod(b, &rest_b);
            if (fabs(x - y) > tolerance * fmax(fabs(x), fabs(y)))
                return false;
            a = rest_a;
            b = rest_b;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

/* Lines of `golden` about experiments whose name starts with `prefix`, each of which must agree
 * with the same line of `now`. Returns the first difference, or NULL. */
static char *difference(const char *golden, const char *now, const char *prefix)
{
    const char *stated = strstr(golden, "# tolerance ");
    assert_non_null(stated);
    const double tolerance = g_ascii_strtod(stated + strlen("# tolerance "), NULL);
    assert_true(tolerance > 0 && tolerance < 1e-3);
    g_auto(GStrv) was = g_strsplit(golden, "\n", -1);
    g_auto(GStrv) is = g_strsplit(now, "\n", -1);
    char **got = is;
    for (char **want = was; *want; want++) {
        const size_t name = strcspn(*want, ",");
        if (!g_str_has_prefix(*want, prefix) || is_left_out(*want) ||
            (!with_columns() && memchr(*want, '@', name)))
            continue;
        if (!*got || !agree(*want, *got, tolerance))
            return g_strdup_printf("line %td\n  golden: %s\n  now:    %s", want - was + 1,
                                   *want, *got ? *got : "-");
        got++;
    }
    return **got ? g_strdup_printf("not in the golden file: %s", *got) : NULL;
}

static char *golden_file(void)
{
    return g_strdup_printf("%s/tests/golden/%s.csv", KILTER_HOME, paper());
}

static char *golden(void)
{
    g_autofree char *file = golden_file();
    char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, NULL))
        TEST_FAIL_AT(__FILE__, __LINE__, "no %s; ./run golden makes it", file);
    return text;
}

/* The file with these lines: all of them, or in place of those of $KILTER_FIGURE. */
static char *whole_with(const char *now)
{
    const char *one = g_getenv("KILTER_FIGURE");
    if (!one)
        return g_strconcat(RULE, "figure,kind,key,values\n", now, NULL);
    g_autofree char *was = golden();
    g_auto(GStrv) line = g_strsplit(was, "\n", -1);
    const size_t length = strlen(one);
    bool done = false;
    GString *text = g_string_new("");
    for (char **each = line; *each && (**each || each[1]); each++) {
        const bool own = g_str_has_prefix(*each, one) &&
                         ((*each)[length] == ',' || (*each)[length] == '@');
        const bool header = **each == '#' || g_str_has_prefix(*each, "figure,");
        if (!done && !header && (own || strcmp(*each, one) > 0)) {
            g_string_append(text, now);
            done = true;
        }
        if (!own)
            g_string_append_printf(text, "%s\n", *each);
    }
    if (!done)
        g_string_append(text, now);
    return g_string_free(text, FALSE);
}

static void test_experiments(void **state)
{
    (void)state;
    g_autofree char *prefix = g_strconcat(paper(), "-", NULL);
    const char *one = g_getenv("KILTER_FIGURE");
    g_autofree char *now = compute(one ? one : prefix);
    if (g_getenv("KILTER_RECORD")) {
        g_autofree char *file = golden_file();
        g_autofree char *text = whole_with(now);
        assert_true(g_file_set_contents(file, text, -1, NULL));
        return;
    }
    g_autofree char *was = golden();
    g_autofree char *differs = difference(was, now, prefix);
    if (differs)
        TEST_FAIL_AT(__FILE__, __LINE__,
                     "%s\nIf this is meant, say why in the commit and run ./run golden",
                     differs);
}

/* --- the comparison finds differences --- */

/* HAP's Fig. 4 changes if `from` is replaced by `to` in one of its files. */
static void assert_seen(const char *file, const char *from, const char *to)
{
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *source = g_build_filename(KILTER_HOME, file, NULL);
    g_autofree char *copy = g_build_filename(box->folder, file, NULL);
    g_autofree char *folder = g_path_get_dirname(copy);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(source, &text, NULL, NULL));
    assert_non_null(strstr(text, from));
    g_auto(GStrv) parts = g_strsplit(text, from, 2);
    g_autofree char *changed = g_strconcat(parts[0], to, parts[1], NULL);
    assert_int_equal(g_mkdir_with_parents(folder, 0700), 0);
    assert_true(g_file_set_contents(copy, changed, -1, NULL));
    g_autofree char *was = golden();
    g_setenv("KILTER_PATH", box->folder, TRUE);
    g_autofree char *now = compute("hap-fig4");
    g_unsetenv("KILTER_PATH");
    g_autofree char *differs = difference(was, now, "hap-fig4");
    if (!differs)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' in place of '%s' was not seen", file,
                     to, from);
}

static void test_changes_are_seen(void **state)
{
    (void)state;
    if (strcmp(paper(), "hap") != 0 || g_getenv("KILTER_RECORD"))
        return;
    g_autofree char *was = golden();
    g_autofree char *now = compute("hap-fig4");
    g_autofree char *differs = difference(was, now, "hap-fig4");
    assert_null(differs);
    assert_seen("plots/hap-fig4.sql", "/ iteration_time_s", "/ 1.5 / iteration_time_s");
    assert_seen("plots/hap-fig4-claims.sql", "padded_s < grouped_s AS ours",
                "1.5 * (padded_s < grouped_s) AS ours");
    assert_seen("data/paper/hap.csv", "nearly even (1: yes),1.00",
                "nearly even (1: yes),1.10");
    assert_seen("experiments/hap-fig4.yaml", "0.95, 1]", "0.96, 1]");
    assert_seen("experiments/hap-fig4.yaml", "0.95, 1]", "0.95]");
}

/* Every paper must be recorded, or it would not be checked. */
static void test_all_papers(void **state)
{
    (void)state;
    if (g_getenv("KILTER_RECORD"))
        return;
    g_auto(GStrv) names = path_list("experiments", ".yaml");
    for (char **name = names; *name; name++) {
        g_auto(GStrv) part = g_strsplit(*name, "-", 2);
        g_autofree char *file =
            g_strdup_printf("%s/tests/golden/%s.csv", KILTER_HOME, part[0]);
        if (!g_file_test(file, G_FILE_TEST_EXISTS))
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s: no %s; add golden_%s to tests/CMakeLists.txt and run "
                         "./run golden",
                         *name, file, part[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experiments),
        cmocka_unit_test(test_changes_are_seen),
        cmocka_unit_test(test_all_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
