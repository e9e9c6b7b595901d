/* The planner hidup and the option duplex: the time by `stage` is that of the search, and the costs
 * and savings of duplex programs. */
#include <math.h>

#include "synth/planners/planner.h"
#include "synth/synth.h"
#include "tests/test.h"

typedef struct {
    Cluster *cluster;
    ClusterView *view;
} Place;

static Place open_place(const char *name, Granularity granularity)
{
    g_autoptr(GError) error = NULL;
    Place place = {.cluster = cluster_load(name, &error)};
    assert_no_error(error);
    place.view = cluster_view(place.cluster, granularity);
    return place;
}

static void close_place(Place *place)
{
    cluster_view_free(place->view);
    cluster_free(place->cluster);
}

static Plan *make(const char *planner, const char *duplex, const char *model,
                  const char *cluster, const Place *place, Graph **graph)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "duplex", duplex, &error));
    Plan *plan = planner_plan(planner_find(planner, NULL), model, cluster, place->view,
                              &options, graph, &error);
    assert_no_error(error);
    return plan;
}

static double time_of(const Plan *plan, const Graph *graph, const Place *place,
                      const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimReport) report =
        sim_evaluate(plan, graph, place->view, fidelity, &error);
    assert_no_error(error);
    return report->iteration_time_s;
}

/* On even GPUs the duplex program takes, turn by turn, the time of Eq. 5 in the search. */
static void test_stage_is_eq_5(void **state)
{
    (void)state;
    static const char *const models[] = {"bert-sgmoe:layers=4", "bert-switch:layers=2",
                                         "vit-sgmoe:layers=4", "vgg19"};
    static const char *const clusters[] = {"hidup-1x4", "hidup-2x4-100", "hidup-2x4-10"};
    for (uint32_t c = 0; c < G_N_ELEMENTS(clusters); c++) {
        Place place = open_place(clusters[c], GRANULARITY_GPU);
        const uint32_t n = place.view->n_devices;
        g_autofree double *ratio = g_new(double, n);
        for (uint32_t j = 0; j < n; j++)
            ratio[j] = 1.0 / n;
        for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
            g_autoptr(Graph) graph = NULL;
            g_autoptr(Plan) plan =
                make("hidup", "own", models[m], clusters[c], &place, &graph);
            SynthResult result;
            assert_true(synth_hidup(graph, place.view, ratio, NULL, &result, NULL));
            /* Compared before rounding, since 12 heads on 8 GPUs need it. */
            const double time_s = plan->fractional_time_s;
            /* If the first op's input has no gradient, the program has slightly less work than the
             * search counts. */
            assert_at_most(time_s, result.time_s * (1 + 1e-9));
            assert_at_most(result.time_s * 0.997, time_s);
            if (g_str_has_prefix(models[m], "bert"))
                assert_close(time_s, result.time_s, 1e-9);
            synth_result_clear(&result);
        }
        close_place(&place);
    }
}

/* A duplex program needs about the memory of the plan (Sec. 3.2) and never less computation. */
static void test_doubled_plans(void **state)
{
    (void)state;
    static const char *const planners[] = {"hidup", "deepspeed", "fastmoe", "ddp",
                                           "horovod"};
    Place place = open_place("hidup-2x4-100", GRANULARITY_GPU);
    for (uint32_t p = 0; p < G_N_ELEMENTS(planners); p++) {
        g_autoptr(Graph) graph = NULL, again = NULL;
        g_autoptr(Plan) one = make(planners[p], "off", "vit-sgmoe:layers=4",
                                   "hidup-2x4-100", &place, &graph);
        g_autoptr(Plan) two = make(planners[p], "on", "vit-sgmoe:layers=4",
                                   "hidup-2x4-100", &place, &again);
        assert_int_equal(one->program->n_microbatches, 1);
        assert_int_equal(two->program->n_microbatches, 2);
        assert_at_most((double)two->memory_bytes[0], 1.15 * (double)one->memory_bytes[0]);
        g_autoptr(SimReport) report = sim_evaluate(two, again, place.view, "flow", NULL);
        assert_at_most(report->busy_s[0], report->iteration_time_s * (1 + 1e-12));
        assert_at_most(time_of(two, again, &place, "stage"),
                       1.05 * time_of(one, graph, &place, "stage"));
    }
    close_place(&place);
}

static Plan *make_with(const char *planner, const char *key, const char *value,
                       const char *model, const char *cluster, const Place *place,
                       const char *ratios, Graph **graph)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, key, value, &error));
    assert_true(planner_options_set(&options, "ratios", ratios, &error));
    Plan *plan = planner_plan(planner_find(planner, NULL), model, cluster, place->view,
                              &options, graph, &error);
    assert_no_error(error);
    return plan;
}

/* Uneven machines: the best ratios are nowhere slower than those by speed and even ones, and
 * somewhere much faster; equal devices get equal ratios. */
static void test_uneven(void **state)
{
    (void)state;
    static const char *const models[] = {"vgg19", "vit:layers=2", "bert-switch:layers=2"};
    static const char *const clusters[] = {"hap-8", "hap-16", "hap-a100-p100-4"};
    double most = 1;
    for (uint32_t c = 0; c < G_N_ELEMENTS(clusters); c++) {
        Place place = open_place(clusters[c], GRANULARITY_MACHINE);
        for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++) {
            g_autoptr(Graph) graph = NULL;
            g_autoptr(Plan) best = make_with("hidup", "max_rounds", "8", models[m],
                                             clusters[c], &place, "best", &graph);
            g_autoptr(Plan) speed = make_with("hidup", "max_rounds", "8", models[m],
                                              clusters[c], &place, "proportional", NULL);
            g_autoptr(Plan) even = make_with("hidup", "max_rounds", "8", models[m],
                                             clusters[c], &place, "even", NULL);
            const double other_s = fmin(speed->iteration_time_s, even->iteration_time_s);
            assert_at_most(best->iteration_time_s, other_s * (1 + 1e-12));
            most = fmax(most, other_s / best->iteration_time_s);
            assert_close(time_of(best, graph, &place, "stage"), best->iteration_time_s,
                         0);
            assert_true(time_of(best, graph, &place, "flow") > 0);
            for (uint32_t j = 1; j < place.view->n_devices; j++)
                if (device_compare(&place.view->device[j - 1], &place.view->device[j]) ==
                    0)
                    assert_close(best->ratio[j], best->ratio[j - 1], 1e-12);
        }
        close_place(&place);
    }
    assert_true(most > 1.1);
}

/* Duplex programs of other planners' plans: ratios that were best for one microbatch are found
 * again for two. */
static void test_doubled_ratios(void **state)
{
    (void)state;
    static const char *const planners[] = {"hap", "dp-cp", "gshard"};
    Place place = open_place("hap-a100-p100-4", GRANULARITY_MACHINE);
    for (uint32_t p = 0; p < G_N_ELEMENTS(planners); p++) {
        g_autoptr(Graph) graph = NULL, again = NULL;
        g_autoptr(Plan) own =
            make_with(planners[p], "duplex", "on", "bert-switch:layers=2",
                      "hap-a100-p100-4", &place, "proportional", &graph);
        g_autoptr(Plan) best =
            make_with(planners[p], "duplex", "on", "bert-switch:layers=2",
                      "hap-a100-p100-4", &place, "best", &again);
        assert_int_equal(best->program->n_microbatches, 2);
        assert_at_most(best->iteration_time_s, own->iteration_time_s * (1 + 1e-12));
        assert_false(best->optimal);
        assert_close(best->lower_bound_s, 0, 0);
    }
    close_place(&place);
}

/* Wrong estimates in the search cost time and never gain any (before rounding); equal seeds draw
 * equal noise. */
static void test_wrong_estimates(void **state)
{
    (void)state;
    static const char *const beliefs[][2] = {{"noise", "0.2"},
                                             {"noise", "0.9"},
                                             {"communication", "-0.9"},
                                             {"communication", "4"},
                                             {"backward", "serial"}};
    Place place = open_place("hidup-2x4-10", GRANULARITY_GPU);
    g_autoptr(Plan) right = make_with("hidup", "max_rounds", "8", "bert-sgmoe:layers=4",
                                      "hidup-2x4-10", &place, "own", NULL);
    double worst = 1;
    for (uint32_t b = 0; b < G_N_ELEMENTS(beliefs); b++) {
        g_autoptr(Plan) plan =
            make_with("hidup", beliefs[b][0], beliefs[b][1], "bert-sgmoe:layers=4",
                      "hidup-2x4-10", &place, "own", NULL);
        g_autoptr(Plan) again =
            make_with("hidup", beliefs[b][0], beliefs[b][1], "bert-sgmoe:layers=4",
                      "hidup-2x4-10", &place, "own", NULL);
        assert_at_most(right->fractional_time_s * (1 - 1e-9), plan->fractional_time_s);
        assert_close(again->iteration_time_s, plan->iteration_time_s, 0);
        assert_true(right->optimal && !plan->optimal);
        worst = fmax(worst, plan->fractional_time_s / right->fractional_time_s);
    }
    assert_true(worst > 1.01);
    close_place(&place);
}

static void test_refusals(void **state)
{
    (void)state;
    Place place = open_place("hap-8", GRANULARITY_MACHINE);
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "certify", "0.01", &error));
    assert_null(planner_plan(planner_find("hidup", NULL), "vit:layers=2", "hap-8",
                             place.view, &options, NULL, &error));
    assert_error(error, KILTER_ERROR_INPUT, "expected duplex=off");
    g_clear_error(&error);
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "noise", "0.5", &error));
    assert_null(planner_plan(planner_find("hap", NULL), "vit:layers=2", "hap-8",
                             place.view, &options, NULL, &error));
    assert_error(error, KILTER_ERROR_INPUT, "expected planner hidup");
    g_clear_error(&error);
    assert_false(planner_options_set(&options, "communication", "-2", &error));
    assert_error(error, KILTER_ERROR_INPUT, "a number from -1 to 100");
    close_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stage_is_eq_5),   cmocka_unit_test(test_doubled_plans),
        cmocka_unit_test(test_uneven),          cmocka_unit_test(test_doubled_ratios),
        cmocka_unit_test(test_wrong_estimates), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
