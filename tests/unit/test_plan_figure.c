/* The data of a plan's figure: every layer of every row, the busiest device among the rows, no span
 * beyond the iteration. */
#include "experiments/figures/plan_figure.h"
#include "synth/planners/planner.h"
#include "tests/support/program.h"

#define MODEL "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=32"

typedef struct {
    Cluster *cluster;
    ClusterView *view;
    Graph *graph;
    Plan *plan;
    SimReport *report;
    char **part; /* of the data */
} Made;

static Made make(const char *planner, const char *cluster, Granularity granularity)
{
    Made m = {0};
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    m.cluster = cluster_load(cluster, &error);
    m.view = cluster_view(m.cluster, granularity);
    m.plan = planner_plan(planner_find(planner, NULL), MODEL, cluster, m.view, &options,
                          &m.graph, &error);
    assert_no_error(error);
    m.report = sim_evaluate(m.plan, m.graph, m.view, "flow", &error);
    assert_no_error(error);
    g_autofree char *text = plan_figure_data(m.plan, m.graph, m.view, m.report);
    m.part = g_strsplit(text, "\n\n\n", -1);
    return m;
}

static void clear(Made *m)
{
    g_strfreev(m->part);
    sim_report_free(m->report);
    plan_free(m->plan);
    graph_free(m->graph);
    cluster_view_free(m->view);
    cluster_free(m->cluster);
}

/* Rows of numbers of one index, without its comment. */
static GArray *numbers_of(const char *part, uint32_t n_columns)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(double));
    g_auto(GStrv) line = g_strsplit(part, "\n", -1);
    for (uint32_t i = 0; line[i]; i++) {
        g_auto(GStrv) word = g_strsplit(line[i], "\t", -1);
        if (*line[i] == '#' || !*line[i])
            continue;
        assert_int_equal(g_strv_length(word), n_columns);
        for (uint32_t k = 0; k < n_columns; k++) {
            const double value = g_ascii_strtod(word[k], NULL);
            g_array_append_val(all, value);
        }
    }
    return all;
}

static void check(const char *planner, const char *cluster, Granularity granularity,
                  bool all_layers)
{
    Made m = make(planner, cluster, granularity);
    assert_int_equal(g_strv_length(m.part), 4);
    assert_non_null(strstr(m.part[1], "(busiest)"));
    g_autoptr(GArray) box = numbers_of(m.part[2], 5), span = numbers_of(m.part[3], 5);
    const double layers = graph_n_layers(m.graph);
    g_autofree double *covered = g_new0(double, 16);
    double together = 0;
    assert_true(box->len > 0 && span->len > 0);
    for (uint32_t i = 0; i < box->len; i += 5) {
        const double *b = &g_array_index(box, double, i);
        assert_true(b[0] < 16 && b[1] < b[2] && b[2] <= layers);
        assert_true(b[3] >= 1 && b[3] <= 4 && b[4] >= 0 && b[4] <= 1);
        covered[(uint32_t)b[0]] += b[2] - b[1];
        together += b[2] - b[1];
    }
    assert_true(together >= layers);
    for (uint32_t r = 0; all_layers && r < 16; r++)
        assert_true(covered[r] == 0 || covered[r] == layers);
    bool seen[5] = {
        false}; /* forward, backward, update, inside a machine, other messages */
    for (uint32_t i = 0; i < span->len; i += 5) {
        const double *s = &g_array_index(span, double, i);
        assert_true(s[2] <= s[3]);
        assert_true(s[4] >= 0 && s[4] <= 4);
        seen[(uint32_t)s[4]] = true;
        /* computations that touch are one box */
        for (uint32_t j = i + 5; s[1] == 0 && j < span->len; j += 5) {
            const double *next = &g_array_index(span, double, j);
            if (next[0] == s[0] && next[1] == s[1] && next[4] == s[4])
                assert_true(next[2] > s[3] || next[3] < s[2]);
        }
        assert_at_most(s[3], 1e3 * m.report->iteration_time_s * (1 + 1e-6));
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    clear(&m);
}

static void test_data(void **state)
{
    (void)state;
    check("hap", "hap-8", GRANULARITY_MACHINE, true);
    check("deepspeed", "hap-16", GRANULARITY_GPU, true);
    check("joint", "hap-16", GRANULARITY_GPU, false);
    check("amp", "hap-32", GRANULARITY_GPU, false);
}

static void test_command(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "plan " MODEL " hap-16 -p joint -q -o a.json");
    g_auto(Ran) none = program_run(box, "figure plan");
    assert_int_equal(none.status, 2);
    g_auto(Ran) missing = program_run(box, "figure plan b.json");
    assert_int_equal(missing.status, 2);
    g_auto(Ran) two = program_run(box, "figure timeline a.json");
    assert_int_equal(two.status, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
