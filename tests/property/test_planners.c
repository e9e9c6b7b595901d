/* hap contains the baselines in its space: it can't be slower than one that fits, and its bound
 * can't be above any plan.
 *
 *     KILTER_ALL=1    every model on every size of HAP's testbed, with slower and faster links (the test planners_long) */
#include "data/data.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

#include "synth/planners/planner.h"
#include "synth/synth.h"

static double time_of(const char *planner, const char *model, const char *name,
                      bool *feasible, double *bound)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    const Planner *method = planner_find(planner, &error);
    assert_no_error(error);
    g_autoptr(Plan) plan =
        planner_plan(method, model, name, view, &options, NULL, &error);
    assert_no_error(error);
    *feasible = plan->feasible;
    if (bound)
        *bound = plan->lower_bound_s;
    return plan->iteration_time_s;
}

static void compare(const char *model, const char *cluster)
{
    static const char *const baseline[] = {"dp-ev", "dp-cp", "deepspeed", "gshard",
                                           "tensor-parallel"};
    bool hap_fits, fits;
    double bound = 0, hap = time_of("hap", model, cluster, &hap_fits, &bound);
    assert_at_most(bound, hap);
    assert_true(bound > 0);
    for (uint32_t b = 0; b < G_N_ELEMENTS(baseline); b++) {
        double time_s = time_of(baseline[b], model, cluster, &fits, NULL);
        assert_true(hap_fits || !fits);
        if (fits == hap_fits)
            assert_at_most(hap, time_s);
        assert_at_most(bound, time_s);
    }
}

static void test_hap_is_never_slower(void **state)
{
    (void)state;
    static const char *const model[] = {"vgg19", "vit", "bert-base", "bert-moe"};
    static const char *const cluster[] = {"hap-8", "hap-16", "hap-32", "hap-64",
                                          "hap-p100-8"};
    bool all = g_getenv("KILTER_ALL") != NULL;
    for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++)
        for (uint32_t c = 0; c < G_N_ELEMENTS(cluster); c++)
            if (all || (m < 3 && c % 3 == 0))
                compare(model[m], cluster[c]);
    compare("bert-moe:layers=2,hidden=96,ffn=192,vocab=640", "hap-16");
}

/* The plan of a planner with this much memory on every GPU. */
static Plan *plan_with(const char *planner, const char *model, uint64_t memory_bytes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    for (uint32_t j = 0; j < view->n_devices; j++)
        view->device[j].memory_bytes = memory_bytes;
    PlannerOptions options;
    planner_options_init(&options);
    const Planner *method = planner_find(planner, &error);
    assert_no_error(error);
    Plan *plan = planner_plan(method, model, "hap-8", view, &options, NULL, &error);
    assert_no_error(error);
    return plan;
}

/* Data parallelism sums each gradient by one all-reduce, as frameworks do, on a cluster where a
 * reduce-scatter and an all-gather of a small one take less. */
static void test_data_parallel_all_reduces(void **state)
{
    (void)state;
    static const char *const planner[] = {"dp-nccl", "dp-nccl-p", "horovod"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("tag-sfb", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t p = 0; p < G_N_ELEMENTS(planner); p++) {
        PlannerOptions options;
        planner_options_init(&options);
        g_autoptr(Plan) plan =
            planner_plan(planner_find(planner[p], NULL), "tag-inceptionv3:global_batch=4",
                         "tag-sfb", view, &options, NULL, &error);
        assert_no_error(error);
        uint32_t n = 0;
        for (uint32_t i = 0; i < plan->program->n; i++) {
            const Instr *instr = &plan->program->instr[i];
            if (instr->kind != INSTR_COLLECTIVE)
                continue;
            assert_int_equal(instr->collective, COLLECTIVE_ALL_REDUCE);
            n++;
        }
        assert_int_equal(n, 190);
    }
}

/* As memory shrinks, hap finds plans that fit long after data parallelism does not: it shards
 * optimizer states, parameters and layers. Once no plan is found, none is found with less memory;
 * in the end there is a proof that there is none. */
static void test_memory_pressure(void **state)
{
    (void)state;
    static const char *const model =
        "bert-base:layers=1,hidden=128,heads=4,ffn=512,vocab=1024,batch=1,seq=8";
    const double part = test_rounds(50, 70) / 100.0;
    uint64_t memory = 0, least_replicated = 0, least = 0;
    bool fits = true, proved = false;
    {
        g_autoptr(Plan) plan = plan_with("hap", model, UINT64_C(1) << 40);
        assert_true(plan->feasible);
        for (uint32_t j = 0; j < plan->n_devices; j++)
            memory = MAX(memory, plan->memory_bytes[j]);
    }
    for (; memory > 10000; memory = (uint64_t)(part * (double)memory)) {
        g_autoptr(Plan) plan = plan_with("hap", model, memory);
        g_autoptr(Plan) replicated = plan_with("dp-ev", model, memory);
        assert_true(fits || !plan->feasible);
        assert_true(plan->feasible || !replicated->feasible);
        assert_true(!proved || plan->misfit);
        assert_true(!plan->feasible || !plan->misfit);
        fits = plan->feasible;
        proved = plan->misfit != NULL;
        least_replicated = replicated->feasible ? memory : least_replicated;
        least = plan->feasible ? memory : least;
    }
    print_message("data parallelism fits in %" G_GUINT64_FORMAT
                  " bytes, hap in %" G_GUINT64_FORMAT "\n",
                  least_replicated, least);
    assert_true(proved);
    assert_true(3 * least < least_replicated);
}

/* The plan of a batch on devices of which the first is far faster, its ratios pinned. */
static Plan *plan_at(const char *ratios, uint64_t memory_bytes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "ratios", ratios, &error));
    view->device[0].rate *= 100;
    for (uint32_t j = 0; j < view->n_devices; j++)
        view->device[j].memory_bytes = memory_bytes;
    Plan *plan = planner_plan(planner_find("hap", NULL),
                              "vit:layers=1,hidden=64,heads=4,ffn=128,batch=64", "hap-8",
                              view, &options, NULL, &error);
    assert_no_error(error);
    return plan;
}

/* A proof that nothing fits is about the pinned ratios: even shares may fit where shares in
 * proportion to speed do not fit the fast device. */
static void test_proof_at_pinned_ratios(void **state)
{
    (void)state;
    static const uint64_t memory_bytes = UINT64_C(32) << 20;
    g_autoptr(Plan) even = plan_at("even", memory_bytes);
    g_autoptr(Plan) proportional = plan_at("proportional", memory_bytes);
    assert_true(even->feasible);
    assert_false(proportional->feasible);
    assert_non_null(proportional->misfit);
}

/* The time of the plan at pinned ratios; infinite if it does not fit. */
static double planned_s(const char *planner, const char *search, const char *ratios,
                        const char *model, const char *name, const ClusterView *view)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "ratios", ratios, &error));
    assert_true(planner_options_set(&options, "search", search, &error));
    g_autoptr(Plan) plan = planner_plan(planner_find(planner, NULL), model, name, view,
                                        &options, NULL, &error);
    if (!plan && error->code == KILTER_ERROR_INFEASIBLE)
        return INFINITY;
    assert_no_error(error);
    return plan->feasible ? plan->iteration_time_s : INFINITY;
}

/* The exact search's program takes at most as long as that of HAP's own search at the same ratios:
 * by speed, or equal. */
static void compare_searches(const char *model, const ClusterView *view, bool by_speed)
{
    g_autofree double *ratio = g_new(double, view->n_devices);
    double sum = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        sum += ratio[j] = by_speed ? view->device[j].rate : 1;
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] /= sum;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build(model, cluster_gpus(view->cluster), NULL, &error);
    assert_no_error(error);
    g_autoptr(SynthSpace) space = synth_space_new(graph, NULL);
    const SynthOptions options = {.beam = 500};
    g_auto(SynthResult) exact = {0}, reference = {0};
    synth_search(space, view, ratio, &options, &exact, &error);
    assert_no_error(error);
    synth_reference(graph, view, ratio, &reference, &error);
    assert_no_error(error);
    assert_at_most(exact.time_s, reference.time_s * (1 + 1e-9));
}

/* At the same ratios no plan of others is faster than hap's. HAP's own search may only be luckier
 * in rounding, which no search takes into account: its program for BERT-MoE on links ten times as
 * fast is 1.7 % slower than the exact one, but where 8 devices take whole experts out of 16 its
 * plan is 1.1 % faster. */
static void compare_at(const char *model, const char *name, double bandwidth)
{
    static const struct {
        const char *planner, *search;
        double slack;
    } other[] = {{"dp-ev", "exact", 0},
                 {"deepspeed", "exact", 0},
                 {"gshard", "exact", 0},
                 {"tensor-parallel", "exact", 0},
                 {"hap", "reference", 0.015}};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    for (int kind = 0; kind < COLLECTIVES_PRICED; kind++)
        view->collective[kind].bandwidth *= bandwidth;
    static const char *const ratios[] = {"even", "proportional"};
    for (uint32_t r = 0; r < G_N_ELEMENTS(ratios); r++) {
        compare_searches(model, view, r == 1);
        double hap = planned_s("hap", "exact", ratios[r], model, name, view);
        for (uint32_t o = 0; o < G_N_ELEMENTS(other); o++) {
            double time_s = planned_s(other[o].planner, other[o].search, ratios[r], model,
                                      name, view);
            if (hap > time_s * (1 + other[o].slack) * (1 + 1e-12))
                fail_msg("%s on %s, bandwidth x %g, ratios %s: hap %g s, %s (%s) %g s",
                         model, name, bandwidth, ratios[r], hap, other[o].planner,
                         other[o].search, time_s);
        }
    }
}

static void test_hap_is_never_slower_at_the_same_ratios(void **state)
{
    (void)state;
    static const char *const model[] = {"vgg19", "vit:layers=4", "bert-base:layers=4",
                                        "bert-moe:layers=4"};
    static const char *const cluster[] = {"hap-8", "hap-16", "hap-32", "hap-64",
                                          "hap-p100-8"};
    static const double bandwidth[] = {1, 0.25, 0.1, 10};
    bool all = g_getenv("KILTER_ALL") != NULL;
    for (uint32_t m = 0; all && m < G_N_ELEMENTS(model); m++)
        for (uint32_t c = 0; c < G_N_ELEMENTS(cluster); c++)
            for (uint32_t b = 0; b < G_N_ELEMENTS(bandwidth); b++)
                compare_at(model[m], cluster[c], bandwidth[b]);
    compare_at("vit:layers=1", "hap-8", 0.1);
    compare_at("vgg19:width=8,fc=64", "hap-16", 10);
}

/* A deep model that only just fits gets a plan without a budget, and by the search: data
 * parallelism takes 3.9 s. */
static void test_tight_memory_ends(void **state)
{
    (void)state;
    bool fits;
    double bound_s;
    double time_s = time_of("hap", "vit:layers=96,batch=4", "hap-8", &fits, &bound_s);
    assert_true(fits);
    assert_at_most(time_s, 1.8);
    /* The bound takes memory into account: without it the gap was 18 %. */
    assert_at_most(bound_s, time_s);
    assert_at_most(time_s, bound_s * 1.12);
}

/* A search that has spent its budget leaves time for the bound. */
static void test_a_spent_budget_leaves_a_bound(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    options.budget_s = 1e-6;
    for (int certified = 0; certified < 2; certified++) {
        options.certify = certified ? 1e-3 : 0;
        g_autoptr(Plan) plan =
            planner_plan(planner_find("hap", NULL), "vgg19:width=8,fc=64", "hap-8", view,
                         &options, NULL, &error);
        assert_no_error(error);
        assert_true(plan->lower_bound_s > 0);
        assert_at_most(plan->lower_bound_s, plan->fractional_time_s * (1 + 1e-9));
        assert_int_equal(plan->certificate,
                         certified ? CERTIFICATE_BUDGET : CERTIFICATE_NONE);
    }
}

/* The number of boxes is a limit of time, which a budget takes the place of. */
static void test_a_budget_allows_more_boxes(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    options.certify = 1e-3;
    options.boxes = 1;
    double bound_s[2];
    for (int budgeted = 0; budgeted < 2; budgeted++) {
        options.budget_s = budgeted ? 1000 : 0;
        g_autoptr(Plan) plan =
            planner_plan(planner_find("hap", NULL), "vgg19:width=16,fc=1024", "hap-8",
                         view, &options, NULL, &error);
        assert_no_error(error);
        assert_true(budgeted || plan->certificate == CERTIFICATE_BOXES);
        bound_s[budgeted] = plan->lower_bound_s;
        assert_at_most(plan->lower_bound_s, plan->fractional_time_s * (1 + 1e-9));
    }
    assert_true(bound_s[1] > bound_s[0]);
}

/* A planner with one plan reports that others are faster; formerly, that there were too few
 * boxes. */
static void test_certificate_of_one_plan(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    options.certify = 0.02;
    g_autoptr(Plan) plan =
        planner_plan(planner_find("dp-ev", NULL), "vgg19:width=16,fc=1024", "hap-8", view,
                     &options, NULL, &error);
    assert_no_error(error);
    assert_int_equal(plan->certificate, CERTIFICATE_PLANNER);
    g_autoptr(Plan) best =
        planner_plan(planner_find("hap", NULL), "vgg19:width=16,fc=1024", "hap-8", view,
                     &options, NULL, &error);
    assert_no_error(error);
    assert_at_most(plan->lower_bound_s, best->fractional_time_s * (1 + 1e-9));
    assert_at_most(best->fractional_time_s, plan->lower_bound_s * 1.05);
}

/* A certificate goes on to the gap that is printed where rounding leaves room for it; formerly it
 * ended at 1.2 %, since rounding costs more than half of what was asked for. */
static void test_certificate_of_the_rounded_plan(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    options.certify = 0.01;
    g_autoptr(Plan) plan = planner_plan(planner_find("hap", NULL), "bert-base", "hap-8",
                                        view, &options, NULL, &error);
    assert_no_error(error);
    assert_int_equal(plan->certificate, CERTIFICATE_REACHED);
    assert_at_most(plan->iteration_time_s, plan->lower_bound_s * 1.01);
    assert_true(plan->iteration_time_s > plan->fractional_time_s * 1.005);
}

/* --- rounding --- */

/* One slow, three middling and one fast device, on a network that makes sharding experts worth
 * it. */
static const char UNLIKE[] =
    "name: unlike\ndescription: five devices of three types\n\ndevice_types:\n"
    "  - {name: slow, rate: 1.387 TFLOP/s, memory: 64 GiB, source: made up}\n"
    "  - {name: middling, rate: 2.265 TFLOP/s, memory: 64 GiB, source: made up}\n"
    "  - {name: fast, rate: 22.66 TFLOP/s, memory: 64 GiB, source: made "
    "up}\n\nmachines:\n"
    "  - {name: slow, count: 1, type: slow, gpus: 1, source: made up}\n"
    "  - {name: middling, count: 3, type: middling, gpus: 1, source: made up}\n"
    "  - {name: fast, count: 1, type: fast, gpus: 1, source: made up}\n\ncollectives:\n"
    "  all_reduce: {latency: 16 us, bandwidth: 6.296 GB/s}\n"
    "  all_gather: {latency: 16 us, bandwidth: 5.037 GB/s}\n"
    "  grouped_all_gather: {latency: 16 us, bandwidth: 5.540 GB/s}\n"
    "  reduce_scatter: {latency: 16 us, bandwidth: 5.163 GB/s}\n"
    "  grouped_reduce_scatter: {latency: 16 us, bandwidth: 5.352 GB/s}\n"
    "  all_to_all: {latency: 16 us, bandwidth: 1.637 GB/s}\n"
    "  source: made up\n";

static Plan *plan_on_unlike(const ClusterView *view, const char *pin, Graph **graph)
{
    PlannerOptions options;
    planner_options_init(&options);
    g_autoptr(GError) error = NULL;
    if (pin)
        assert_true(planner_options_set(&options, "pin", pin, &error));
    Plan *plan = planner_plan(planner_find("hap", NULL), "bert-sgmoe:layers=2,batch=8",
                              "unlike", view, &options, graph, &error);
    assert_no_error(error);
    return plan;
}

/* Nearest units gave 0,1,0,0,4 of 5 experts, and 123.8 ms. */
static void test_shards_are_rounded_by_time(void **state)
{
    (void)state;
    static const char *const pin[] = {"*moe*.weight=identity", "*moe*.weight=gather(0)",
                                      "*attention*.weight=identity"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("unlike", UNLIKE, strlen(UNLIKE), &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = plan_on_unlike(view, NULL, &graph);
    assert_at_most(plan->iteration_time_s, 0.105);
    for (uint32_t i = 0; i < G_N_ELEMENTS(pin); i++) {
        g_autoptr(Plan) pinned = plan_on_unlike(view, pin[i], NULL);
        assert_at_most(plan->iteration_time_s, pinned->iteration_time_s * (1 + 1e-9));
    }

    /* Moving any unit does not make it faster. */
    g_autoptr(SimLinear) linear =
        sim_linear(plan->program, graph, view, plan->segment, plan->bucket_bytes);
    g_autofree double *share = sim_plan_shares(plan, linear);
    for (uint32_t k = 0; k < linear->n_splits; k++)
        for (uint32_t i = 0; i < plan->n_devices * plan->n_devices; i++) {
            const double unit = 1.0 / linear->split[k].units;
            double *from = &share[k * plan->n_devices + i / plan->n_devices],
                   *to = &share[k * plan->n_devices + i % plan->n_devices];
            if (from == to || *from < unit / 2)
                continue;
            *from -= unit;
            *to += unit;
            assert_at_most(plan->iteration_time_s * (1 - 1e-3),
                           sim_linear_time(linear, view, share, NULL, NULL));
            *from += unit;
            *to -= unit;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tight_memory_ends),
        cmocka_unit_test(test_shards_are_rounded_by_time),
        cmocka_unit_test(test_a_spent_budget_leaves_a_bound),
        cmocka_unit_test(test_a_budget_allows_more_boxes),
        cmocka_unit_test(test_certificate_of_one_plan),
        cmocka_unit_test(test_certificate_of_the_rounded_plan),
        cmocka_unit_test(test_hap_is_never_slower_at_the_same_ratios),
        cmocka_unit_test(test_hap_is_never_slower),
        cmocka_unit_test(test_data_parallel_all_reduces),
        cmocka_unit_test(test_memory_pressure),
        cmocka_unit_test(test_proof_at_pinned_ratios)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
