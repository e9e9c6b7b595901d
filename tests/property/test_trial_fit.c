/* kilter fit: trials with known costs on a cluster of two device types give these costs back;
 * tables of trials, their errors, and damaged tables. */
#include <math.h>
#include <time.h>

#include "data/data.h"
#include "experiments/calibration/prediction.h"
#include "experiments/calibration/trial_cluster.h"
#include "experiments/calibration/trial_file.h"
#include "experiments/calibration/trial_suggest.h"
#include "experiments/sweep/configuration.h"
#include "tests/support/damage.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

static const char CLUSTER[] = "name: mixed\nmachines:\n"
                              "  - {device: v100-16g, gpus: 4, count: 2, nic: eth-100}\n"
                              "  - {device: t4, gpus: 4, count: 2, nic: eth-100}\n";

#define MODEL                                                                         \
    "\"gpt2:layers=2,hidden=512,heads=8,ffn=2048,seq=256,vocab=1024,global_batch=32," \
    "precision=mixed\""
#define WIDE                                                                           \
    "\"gpt2:layers=2,hidden=1024,heads=8,ffn=4096,seq=256,vocab=1024,global_batch=32," \
    "precision=mixed\""

#define LONG                                                                         \
    "gpt2:layers=2,hidden=1024,heads=8,ffn=4096,seq=256,vocab=1024,global_batch=64," \
    "precision=mixed"

static const char TABLE[] =
    "model,machines,gpus,tp,pp,micro_batch,recompute,seconds,peak,group\n" MODEL
    ",v100-16g=1,4,1,1,8,,1,,v1\n" MODEL ",v100-16g=1,4,2,1,2,,1,3 GiB,v2\n" MODEL
    ",v100-16g=2,4,1,2,4,full,1,,v3\n" WIDE ",v100-16g=2,4,4,1,4,,1,,v4\n" WIDE
    ",v100-16g=1,2,1,1,16,,1,,v5\n" MODEL ",t4=1,4,1,1,8,,1,,t1\n" MODEL
    ",t4=1,4,2,1,2,,1,,t2\n" MODEL ",t4=2,4,1,2,4,full,1,,t3\n" WIDE
    ",t4=2,4,4,1,4,,1,,t4\n" WIDE ",v100-16g=1 t4=1,,1,1,2,,1,,m1\n" WIDE
    ",v100-16g=1 t4=1,,2,1,2,,,,m2\n";
enum { MEASURED = 10, ALL = 11 };

static Cluster *cluster(void)
{
    g_autoptr(GError) error = NULL;
    Cluster *made = cluster_parse("mixed", CLUSTER, strlen(CLUSTER), &error);
    assert_no_error(error);
    return made;
}

static GArray *parsed(const Cluster *on, const char *text, GError **error)
{
    static Sheets *sheets = NULL; /* made once */
    if (!sheets)
        sheets = sheets_load(NULL);
    return trial_file_parse("t.csv", text, strlen(text), on, sheets, error);
}

static GArray *table(const Cluster *on, const char *text)
{
    g_autoptr(GError) error = NULL;
    GArray *list = parsed(on, text, &error);
    assert_no_error(error);
    return list;
}

/* The truth: factors on the starting values of costs, by type. */
static double truth(const char *type, Cost cost)
{
    const bool v100 = strcmp(type, "v100-16g") == 0;
    switch (cost) {
    case COST_RATE_HALF:
        return v100 ? -0.3 : 0.15;
    case COST_BANDWIDTH:
        return v100 ? 0.5 : 0.3;
    case COST_OVERHEAD:
        return -0.8;
    case COST_LAUNCH:
        return -1.5;
    case COST_OUTER_BANDWIDTH:
        return -0.2;
    default:
        return 0;
    }
}

static void measure(GArray *list)
{
    g_autoptr(GError) error = NULL;
    for (uint32_t i = 0; i < MEASURED; i++) {
        Trial *trial = &g_array_index(list, Trial, i);
        g_autofree double *log = g_new(double, trial_slots(trial));
        g_auto(TrialPlan) plan = {0};
        for (uint32_t s = 0; s < trial_slots(trial); s++)
            log[s] = truth(trial->cluster->type[s / COSTS].name, (Cost)(s % COSTS));
        trial_plan_make(trial, log, &plan, &error);
        assert_no_error(error);
        trial_plan_predict(&plan, log, &trial->measured_s, NULL, &error);
        assert_no_error(error);
    }
}

/* The table measured, and the cluster fitted to it once for the tests that read them. */
typedef struct {
    Cluster *on;
    GArray *list;
    TrialCluster fitted;
} Measured;

static int measure_once(void **state)
{
    Measured *all = g_new0(Measured, 1);
    g_autoptr(GError) error = NULL;
    all->on = cluster();
    all->list = table(all->on, TABLE);
    measure(all->list);
    trial_cluster_fit(all->on, all->list, 1, &all->fitted, &error);
    assert_no_error(error);
    *state = all;
    return 0;
}

static int forget(void **state)
{
    Measured *all = *state;
    trial_cluster_clear(&all->fitted);
    g_array_unref(all->list);
    cluster_free(all->on);
    g_free(all);
    return 0;
}

static void test_recovers(void **state)
{
    const GArray *list = ((const Measured *)*state)->list;
    const TrialCluster fitted = ((const Measured *)*state)->fitted;
    assert_int_equal(list->len, ALL);
    assert_int_equal(fitted.fit.n, MEASURED);
    assert_at_most(fitted.fit.fitted.mape, 0.03);
    assert_at_most(fitted.fit.fitted.mape, fitted.fit.held_out.mape);
    uint32_t near = 0;
    for (uint32_t i = 0; i < MEASURED; i++)
        near += fabs(log(fitted.fit.held_out_s[i] /
                         g_array_index(list, Trial, i).measured_s)) < 0.1;
    assert_at_most(MEASURED - 2,
                   near); /* only one trial tells about the launch of its type */
    /* On the T4 the rate decides; its interval contains the truth. */
    const FittedCost *common = fitted_costs_find(&fitted.fit.costs, COST_RATE_HALF, ""),
                     *own = fitted_costs_find(&fitted.fit.costs, COST_RATE_HALF, "t4");
    assert_close(exp(common->log + own->log), exp(0.15), 0.25);
    assert_true(own->low < own->log && own->log < own->high);
    /* The runtime's memory is the excess of the only peak over its plan. */
    assert_int_equal(fitted.runtime[0].n, 1);
    assert_int_equal(fitted.runtime[1].n, 0);
    assert_true(fitted.runtime[0].bytes > 0 && fitted.runtime[0].bytes < 3.0 * (1 << 30));
    assert_int_equal(fitted.cluster->type[0].runtime_bytes,
                     (uint64_t)fitted.runtime[0].bytes);
    assert_at_most(fitted.peaks.mape, 1e-9);
}

/* Costs of a network are known by the cluster's name, those of devices by their types', and none by
 * another name. More of a logarithm is as many times the value. */
static void check_values(const TrialCluster *fitted)
{
    const char *const network = fitted->from->name;
    uint32_t n[2] = {0};
    for (uint32_t p = 0; p < fitted->fit.costs.n; p++) {
        const FittedCost *cost = &fitted->fit.costs.cost[p];
        const bool of_network = cost_is_of_network(cost->cost);
        if (!*cost->key)
            continue;
        const double value =
            trial_cluster_value(fitted, cost->cost, cost->key, cost->log);
        if (of_network ? strcmp(cost->key, network) != 0
                       : strcmp(cost->key, network) == 0)
            assert_true(isnan(value));
        assert_true(isnan(trial_cluster_value(fitted, cost->cost, "nowhere", cost->log)));
        if (isnan(value) || cost_info(cost->cost)->absent)
            continue;
        const double more =
            trial_cluster_value(fitted, cost->cost, cost->key, cost->log + log(3));
        assert_close(more, 3 * value, 1e-9);
        n[of_network]++;
    }
    assert_true(n[0] > 0 && n[1] > 0);
}

/* The table's first rows twice, the second time as if measured again; `unlike`: these have words
 * of their own. */
enum { FIRST = 6 };
static GArray *twice(const GArray *measured, const Cluster *on, const char *unlike)
{
    GArray *list = table(on, TABLE), *more = table(on, TABLE);
    g_array_set_size(list, FIRST);
    g_array_set_size(more, FIRST);
    for (uint32_t i = 0; i < FIRST; i++) {
        g_array_index(list, Trial, i).measured_s =
            g_array_index(measured, Trial, i).measured_s;
        Trial *again = &g_array_index(more, Trial, i);
        again->measured_s = 1.1 * g_array_index(list, Trial, i).measured_s;
        again->fidelity = unlike;
    }
    g_array_append_vals(list, more->data, FIRST);
    g_array_set_clear_func(more, NULL); /* the list owns them now */
    g_array_unref(more);
    return list;
}

/* Trials that are measured again are predicted once, and the fit is what it is when each is
 * predicted for itself. */
static void test_alike(void **state)
{
    const Measured *all = *state;
    const Cluster *on = all->on;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) once = twice(all->list, on, NULL),
                      each = twice(all->list, on, "stage");
    uint32_t first[2 * FIRST];
    const uint32_t n = trial_list_alike(once, first);
    assert_int_equal(trial_list_alike(each, first), 2 * n);
    g_auto(TrialCluster) shared = {0}, own = {0};
    trial_cluster_fit(on, once, 2, &shared, &error);
    assert_no_error(error);
    trial_cluster_fit(on, each, 2, &own, &error);
    assert_no_error(error);
    assert_int_equal(shared.fit.n, 2 * FIRST);
    assert_int_equal(own.fit.n, 2 * FIRST);
    for (uint32_t i = 0; i < 2 * FIRST; i++) {
        assert_true(shared.fit.predicted_s[i] == own.fit.predicted_s[i]);
        assert_true(shared.fit.held_out_s[i] == own.fit.held_out_s[i]);
    }
    assert_true(shared.memory.failed == own.memory.failed &&
                shared.runtime[0].bytes == own.runtime[0].bytes);
}

/* Thousands of rows of a few strategies take seconds. */
static void test_many_rows(void **state)
{
    const uint32_t times = test_rounds(100, 400);
    (void)state;
    g_autoptr(Cluster) on = cluster();
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(TABLE);
    for (uint32_t i = 0; i < times; i++)
        g_string_append(text, strchr(TABLE, '\n') + 1);
    g_autoptr(GArray) list = table(on, text->str);
    for (uint32_t i = 0; i < list->len; i++)
        if (!g_array_index(list, Trial, i).failed)
            g_array_index(list, Trial, i).measured_s = 1 + i % 7;
    g_auto(TrialCluster) fitted = {0};
    const clock_t begin = clock();
    trial_cluster_fit(on, list, 1, &fitted, &error);
    assert_no_error(error);
    assert_true(fitted.fit.n > times);
    assert_at_most((double)(clock() - begin) / CLOCKS_PER_SEC, 20);
}

/* On the written cluster, the commands predict the times of the fit. */
static void test_cluster(void **state)
{
    const GArray *list = ((const Measured *)*state)->list;
    const TrialCluster fitted = ((const Measured *)*state)->fitted;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = cluster_write(fitted.cluster);
    g_autoptr(Cluster) read = cluster_parse("mine", text, strlen(text), &error);
    assert_no_error(error);
    const bool keep[] = {false, false, true, true};
    cluster_keep(read, keep, &error);
    assert_no_error(error);
    PlannerOptions options;
    planner_options_init(&options);
    g_autoptr(Spec) spec = spec_read_pairs("tp=1,pp=2,micro_batch=4,recompute=full");
    options_assign(&options, spec, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(read, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    const Trial *trial = &g_array_index(list, Trial, 7);
    g_autoptr(Plan) plan = planner_plan(planner_find("manual", NULL), trial->model,
                                        "mine", view, &options, &graph, &error);
    assert_no_error(error);
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "stage", &error);
    assert_no_error(error);
    assert_close(report->iteration_time_s, fitted.fit.predicted_s[7], 1e-9);
    check_values(&fitted);
}

/* A suggestion was not measured. Returns whether its strategy was, for something else. */
static bool check_new(const GArray *list, const Suggestion *s)
{
    bool elsewhere = false;
    for (uint32_t k = 0; k < MEASURED; k++) {
        const Trial *trial = &g_array_index(list, Trial, k);
        assert_false(strcmp(trial->contest, s->trial.contest) == 0 &&
                     strcmp(trial->options, s->trial.options) == 0);
        elsewhere |= strcmp(trial->options, s->trial.options) == 0;
    }
    return elsewhere;
}

static void test_suggestions(void **state)
{
    const GArray *list = ((const Measured *)*state)->list;
    const TrialCluster fitted = ((const Measured *)*state)->fitted;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) best = trial_suggest(&fitted.fit, list, 4, 1, &error);
    assert_no_error(error);
    assert_int_equal(best->len, 4);
    for (uint32_t i = 0; i < best->len; i++) {
        const Suggestion *s = &g_array_index(best, Suggestion, i);
        assert_true(s->information > 0 && s->predicted_s > 0);
        if (i > 0)
            assert_at_most(s->information,
                           g_array_index(best, Suggestion, i - 1).information);
        check_new(list, s);
    }
    /* All that can be suggested: nothing that was measured, for four models on their machines
     * and the trial that was not measured. */
    g_autoptr(GArray) all = trial_suggest(&fitted.fit, list, 1000, 1, &error);
    g_autoptr(GHashTable) contests = g_hash_table_new(g_str_hash, g_str_equal);
    uint32_t elsewhere = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        const Suggestion *s = &g_array_index(all, Suggestion, i);
        elsewhere += check_new(list, s);
        g_hash_table_add(contests, s->trial.contest);
    }
    assert_int_equal(g_hash_table_size(contests), 5);
    assert_true(elsewhere > 1); /* the trial that was not measured is one */
}

/* Any spaces and semicolons part the types of a trial's machines. */
static void test_machines_of_a_trial(void **state)
{
    (void)state;
    static const char *const TEXT[] = {"v100-16g=1 t4=2", "v100-16g=1;t4=2",
                                       "v100-16g=1 ; t4=2", " v100-16g=1  t4=2 "};
    g_autoptr(Cluster) on = cluster();
    for (uint32_t i = 0; i < G_N_ELEMENTS(TEXT); i++) {
        g_autofree char *text =
            g_strdup_printf("model,machines,seconds,tp\n" MODEL ",%s,1,1\n", TEXT[i]);
        g_autoptr(GArray) list = table(on, text);
        const Cluster *kept = g_array_index(list, Trial, 0).cluster;
        assert_int_equal(kept->n_machines, 3);
        assert_int_equal(kept->n_types, 2);
    }
}

/* A trial runs with its row's software, and the fit records whose trials it saw. */
static void test_software_of_a_trial(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) on = cluster();
    g_autoptr(GArray) list =
        table(on, "model,machines,seconds,tp,software\n" MODEL ",1,1,1,pytorch\n" MODEL
                  ",2,2,1,megatron\n" MODEL ",1,1,1,pytorch\n");
    assert_string_equal(g_array_index(list, Trial, 0).options, "tp=1,runtime=pytorch");
    g_auto(TrialCluster) fitted = {0};
    assert_true(trial_cluster_fit(on, list, 1, &fitted, &error));
    assert_no_error(error);
    assert_string_equal(fitted.cluster->fitted->software, "pytorch+megatron");
}

/* Keys of models may have columns of their own. */
static void test_model_columns(void **state)
{
    (void)state;
    g_autoptr(Cluster) on = cluster();
    g_autoptr(GArray) list = table(on, "model,seq,global_batch,precision,seconds\n"
                                       "gpt2,,16,,1\n\"gpt2:layers=2\",64,,mixed,1\n");
    assert_string_equal(g_array_index(list, Trial, 0).model, "gpt2:global_batch=16");
    assert_string_equal(g_array_index(list, Trial, 1).model,
                        "gpt2:layers=2,seq=64,precision=mixed");
    assert_string_equal(g_array_index(list, Trial, 0).group, "gpt2");
}

static void refuses(const char *header, const char *row, const char *expected)
{
    g_autoptr(Cluster) on = cluster();
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strconcat(header, "\n", row, "\n", NULL);
    g_auto(TrialCluster) fitted = {0};
    g_autoptr(GArray) list = parsed(on, text, &error);
    if (list)
        assert_false(trial_cluster_fit(on, list, 1, &fitted, &error));
    assert_error(error, KILTER_ERROR_INPUT, expected);
}

static void test_refusals(void **state)
{
    (void)state;
    refuses("model,seconds,software", MODEL ",1,nomo", "nemo");
    refuses("model,machines,seconds", MODEL ",9,1",
            "t.csv:2: machines: expected at most 4");
    refuses("model,machines,seconds", MODEL ",t4=3,1", "of t4, which cluster mixed has");
    refuses("model,machines,seconds", MODEL ",t4=x,1", "expected TYPE=COUNT");
    refuses("model,gpus,seconds", MODEL ",8,1", "t.csv:2: gpus: expected at most 4");
    refuses("model,seconds", MODEL ",-1", "t.csv:2: seconds");
    refuses("model,seconds", MODEL ",", "no trial was measured");
    refuses("model,seconds", "vgg20,1", "t.csv:2: ");
    refuses("model,seconds,tensor", MODEL ",1,2", "tensor");
    refuses("model,seconds,tp", MODEL ",1,3", "t.csv:2: pp=1, dp=5, tp=3");
    refuses("model,seconds,peak", MODEL ",1,much", "t.csv:2: peak: expected");
    refuses("model,seconds,fidelity", MODEL ",1,flaw", "t.csv:2: fidelity: ");
    refuses("seconds", "1", "model");
}

/* A row says which fidelity predicts it, and a pipeline of many micro-batches is simulated with
 * fewer: both give the time of the whole. */
static void test_fidelity(void **state)
{
    (void)state;
    static const char *const NAME[] = {"stage", "flow"};
    g_autoptr(Cluster) on = cluster();
    g_autoptr(GArray) list = table(
        on, "model,machines,gpus,pp,micro_batch,seconds,fidelity\n"
            "\"" LONG "\",v100-16g=1,2,2,1,1,\n\"" LONG "\",v100-16g=1,2,2,1,1,flow\n");
    for (uint32_t i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        Trial *trial = &g_array_index(list, Trial, i);
        double time_s[2];
        assert_string_equal(trial_fidelity(trial), NAME[i]);
        for (uint32_t whole = 0; whole < 2; whole++) {
            g_auto(TrialPlan) plan = {0};
            trial->steady = !whole;
            assert_true(trial_plan_make(trial, NULL, &plan, &error));
            assert_true((plan.fewer == NULL) == whole);
            assert_true(trial_plan_predict(&plan, NULL, &time_s[whole], NULL, &error));
        }
        assert_close(time_s[0], time_s[1], 0.01);
    }
}

/* Damaged tables are read or refused with the file's name. */
static void test_mutants(void **state)
{
    (void)state;
    enum { DAMAGES = 4 };
    const uint32_t mutants = test_rounds(100, 300);
    static const char *const piece[] = {",",   "\n", "oom",   "=",   "99999999999",
                                        "nan", "\"", "t4=1",  " ",   "machines",
                                        "GiB", "-1", "1e308", "zero"};
    g_autoptr(Cluster) on = cluster();
    GRand *rand = g_rand_new_with_seed(5);
    for (uint32_t i = 0; i < mutants; i++) {
        g_autoptr(GString) text = g_string_new(TABLE);
        g_string_truncate(text, 400);
        for (gint32 d = g_rand_int_range(rand, 1, DAMAGES + 1); d > 0; d--)
            damage_text(text, rand, piece, G_N_ELEMENTS(piece));
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) list = parsed(on, text->str, &error);
        if (list) {
            for (uint32_t k = 0; k < list->len; k++)
                assert_true(trial_gpus(&g_array_index(list, Trial, k)) > 0);
        } else {
            assert_int_equal(error->code, KILTER_ERROR_INPUT);
        }
    }
    g_rand_free(rand);
}

/* Approximately normal with deviation 1. */
static double draw_normal(GRand *random)
{
    double sum = -6;
    for (uint32_t i = 0; i < 12; i++)
        sum += g_rand_double(random);
    return sum;
}

/* The probability that a plan is faster; with normal errors it is given by Phi. */
static void test_faster(void **state)
{
    (void)state;
    enum { ERRORS = 300 };
    static const double deviation = 0.1;
    static const double lead[] = {0.0, 0.05, 0.1, 0.3};
    char types[] = "t4", others[] = "a100";
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    FittedError error[ERRORS], other[ERRORS];
    Fitted fitted = {.n_errors = ERRORS, .error = error},
           few = {.n_errors = 9, .error = error},
           unlike = {.n_errors = ERRORS, .error = other};
    double p, back;
    for (uint32_t i = 0; i < ERRORS; i++) {
        error[i] = (FittedError){types, deviation * draw_normal(random)};
        other[i] = (FittedError){others, error[i].error};
    }
    for (uint32_t k = 0; k < G_N_ELEMENTS(lead); k++) {
        const double phi = 0.5 * erfc(-lead[k] / (2 * deviation));
        assert_true(prediction_faster(&fitted, &fitted, "t4", 1, exp(lead[k]), &p));
        assert_true(prediction_faster(&fitted, &fitted, "t4", exp(lead[k]), 1, &back));
        assert_close(p, phi, 0.03);
        assert_close(p + back, 1, 1e-9);
    }
    assert_false(prediction_faster(&few, &few, "t4", 1, 2, &p)); /* ten are needed */
    assert_false(prediction_faster(&fitted, &unlike, "t4", 1, 2, &p));
    assert_false(prediction_faster(NULL, &fitted, "t4", 1, 2, &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_columns),
        cmocka_unit_test(test_recovers),
        cmocka_unit_test(test_machines_of_a_trial),
        cmocka_unit_test(test_software_of_a_trial),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_fidelity),
        cmocka_unit_test(test_faster),
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_many_rows),
    };
    return cmocka_run_group_tests(tests, measure_once, forget);
}
