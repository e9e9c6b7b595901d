/* Optimizer states on the host: bytes on both sides and the time of updates, by hand. */
#include "sim/sim.h"
#include "synth/auto/technique.h"
#include "tests/support/made_plan.h"

#define MODEL                                                                            \
    "llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,global_batch=8," \
    "precision=mixed"
#define HOST(memory)                                                            \
    "name: c\ndevice_types: [{name: D, rate: 1e12 FLOP/s, memory: 1 GiB}]\n"    \
    "machines: [{type: D, gpus: 4, inner: {latency: 0 s, bandwidth: 1e9 B/s}, " \
    "host_memory: " memory ", host_link: 1e9 B/s, host_bandwidth: 2e9 B/s}]\n"

/* The plan on a cluster of this text, or the error. */
static Made planned_by(const char *planner, const char *text, const char *set,
                       GError **error)
{
    Made made = {.cluster = cluster_parse("c.yaml", text, strlen(text), error)};
    assert_no_error(*error);
    made.view = cluster_view(made.cluster, GRANULARITY_GPU);
    PlannerOptions options;
    if (set_options(&options, set, error))
        made.plan = planner_plan(planner_find(planner, NULL), MODEL, "c.yaml", made.view,
                                 &options, &made.graph, error);
    return made;
}

static Made planned(const char *text, const char *set, GError **error)
{
    return planned_by("manual", text, set, error);
}

static double parameters_of(const Graph *graph)
{
    double n = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_PARAMETER)
            n += (double)tensor_elements(graph_tensor(graph, t));
    return n;
}

static void test_bytes(void **state)
{
    (void)state;
    for (uint32_t zero = 0; zero <= 3; zero++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *set = g_strdup_printf("zero=%u", zero),
                        *there = g_strdup_printf("%s offload=optimizer", set);
        g_auto(Made) plain = planned(HOST("1 GB"), set, &error),
                     off = planned(HOST("1 GB"), there, &error);
        assert_no_error(error);
        g_autoptr(SimReport)
            here = sim_evaluate(plain.plan, plain.graph, plain.view, "stage", &error),
            host = sim_evaluate(off.plan, off.graph, off.view, "stage", &error),
            flow = sim_evaluate(off.plan, off.graph, off.view, "flow", &error);
        assert_no_error(error);
        /* each of 4 GPUs has all 12 bytes of states, or its part; and 4 of divided gradients */
        const double n = parameters_of(off.graph);
        const double bytes = n * (zero == 0 ? 4 * 12 : zero == 1 ? 12 : 12 + 4);
        assert_close((double)host->host_bytes, bytes, 0.02); /* shards are rounded */
        assert_int_equal(here->host_bytes, 0);
        assert_true(host->memory_bytes[0] + (uint64_t)(n * (zero ? 3 : 12) * 0.9) <=
                    here->memory_bytes[0]);
        /* gradients there and parameters back, 2 bytes each, over half a GB/s that a GPU has of the
         * host's memory, which passes by gradients and, twice, by states */
        const double part = n / (zero ? 4 : 1), s = part * (2 + 2 + 2 + 2 * 12) / 0.5e9;
        assert_close(host->iteration_time_s - here->iteration_time_s, s, 0.05);
        assert_true(flow->iteration_time_s >= s);
    }
}

/* Parameters on hosts: 2 bytes each more there, which come back twice, to be gathered by both
 * passes, and take no time of their own in `flow` where computations are long. */
static void test_parameters(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_auto(Made) plain = planned(HOST("1 GB"), "zero=3 offload=optimizer", &error),
                 off =
                     planned(HOST("1 GB"), "zero=3 offload=optimizer+parameters", &error);
    assert_no_error(error);
    g_autoptr(SimReport)
        here = sim_evaluate(plain.plan, plain.graph, plain.view, "stage", &error),
        host = sim_evaluate(off.plan, off.graph, off.view, "stage", &error),
        flow = sim_evaluate(off.plan, off.graph, off.view, "flow", &error);
    assert_no_error(error);
    const double n = parameters_of(off.graph);
    assert_close((double)host->host_bytes, n * (12 + 4 + 2), 0.02);
    assert_true(host->memory_bytes[0] < here->memory_bytes[0]);
    /* half a GB/s a GPU: fetched by both passes; the update reads it there and sends none back */
    const double fetched_s = 2 * n / 4 * 2 / 0.5e9;
    assert_close(host->iteration_time_s - here->iteration_time_s, fetched_s, 0.1);
    assert_true(flow->iteration_time_s <= host->iteration_time_s * (1 + 1e-9));
}

/* On one GPU nothing is divided: parameters come before each of their layer's runs, gradients go as
 * they are made, and with more microbatches more often. What searches count of it fits. */
static void test_one_gpu(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) part = g_strsplit(HOST("1 GB"), "gpus: 4", 2);
    g_autofree char *text = g_strjoin("gpus: 1", part[0], part[1], NULL);
    static const char *const set[] = {
        "", "zero=2 offload=optimizer", "zero=3 offload=optimizer+parameters",
        "zero=3 offload=optimizer+parameters microbatches=2"};
    double time_s[G_N_ELEMENTS(set)], n = 0;
    uint64_t bytes[G_N_ELEMENTS(set)];
    for (uint32_t k = 0; k < G_N_ELEMENTS(set); k++) {
        g_auto(Made) made = planned(text, set[k], &error);
        assert_no_error(error);
        g_autoptr(SimReport)
            stage = sim_evaluate(made.plan, made.graph, made.view, "stage", &error),
            flow = sim_evaluate(made.plan, made.graph, made.view, "flow", &error);
        assert_no_error(error);
        n = parameters_of(made.graph);
        time_s[k] = stage->iteration_time_s;
        bytes[k] = stage->memory_bytes[0];
        assert_true(flow->iteration_time_s <= time_s[k] * (1 + 1e-9));
        assert_true(flow->memory_bytes[0] >= bytes[k]);
        assert_int_equal(stage->host_bytes, n * (k == 0   ? 0
                                                 : k == 1 ? 12 + 4
                                                          : 12 + 4 + 2));
    }
    assert_true(bytes[0] - bytes[1] >= 12 * (uint64_t)n);
    assert_true(bytes[2] < bytes[1]);
    /* half a GB/s more for the host's memory; the update reads parameters there */
    assert_close(time_s[1] - time_s[0], n * (2 + 2 + (2 + 2 * 12) / 2.0) / 1e9, 0.01);
    assert_true(time_s[2] - time_s[1] >= 2 * n / 1e9);
    assert_true(time_s[3] - time_s[2] >= 2 * n * (1.5 + 1) / 1e9);
    g_auto(GStrv) rest = g_strsplit(text, "1 GiB", 2);
    g_autofree char *small = g_strjoin("160 KiB", rest[0], rest[1], NULL);
    g_auto(Made) whole = planned_by(
        "amp", small, "runtime=none recompute=full zero=2 offload=optimizer", &error);
    assert_error(error, KILTER_ERROR_INFEASIBLE, "fits the memory");
    g_clear_error(&error);
    g_auto(Made) fits = planned_by(
        "amp", small, "runtime=none recompute=full zero=3 offload=optimizer+parameters",
        &error);
    assert_no_error(error);
    assert_true(fits.plan->feasible);
}

/* Stages with degrees of their own keep states on hosts, too. */
static void test_unlike_stages(void **state)
{
    (void)state;
    static const char *const base = "stage_tp=2,1 stage_dp=1,2 microbatches=2 zero=1";
    g_autoptr(GError) error = NULL;
    g_autofree char *off = g_strconcat(base, " offload=optimizer", NULL);
    g_auto(Made) plain = planned(HOST("1 GB"), base, &error),
                 there = planned(HOST("1 GB"), off, &error);
    assert_no_error(error);
    g_autoptr(SimReport)
        here = sim_evaluate(plain.plan, plain.graph, plain.view, "stage", &error),
        host = sim_evaluate(there.plan, there.graph, there.view, "stage", &error);
    assert_no_error(error);
    assert_close((double)host->host_bytes, 12 * parameters_of(there.graph), 0.02);
    for (uint32_t d = 0; d < 4; d++)
        assert_true(host->memory_bytes[d] < here->memory_bytes[d]);
    assert_true(host->iteration_time_s > here->iteration_time_s);
    g_auto(Made) none = planned(
        HOST("1 GB"),
        "stage_tp=2,1 stage_dp=1,2 stage_zero=0,1 microbatches=2 offload=optimizer",
        &error);
    assert_error(error, KILTER_ERROR_INPUT, "zero for all stages");
}

/* With whole layers computed again their inputs wait on hosts, those that the last ones need at
 * once excepted; in `stage` they take their time both ways, in `flow` no more than that. */
static void test_activations(void **state)
{
    (void)state;
    static const char *const set[] = {"zero=1 recompute=full", "zero=1",
                                      "pp=2 microbatches=4", "tp=2 sequence_parallel=on"};
    const double input = 8.0 / 4 * 16 * 64 * 2; /* samples of a GPU, seq, hidden, bytes */
    for (uint32_t k = 0; k < G_N_ELEMENTS(set); k++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *off = g_strconcat(set[k], " offload=activations", NULL);
        g_auto(Made) plain = planned(HOST("1 GB"), set[k], &error),
                     there = planned(HOST("1 GB"), off, &error);
        assert_no_error(error);
        g_autoptr(SimReport)
            here = sim_evaluate(plain.plan, plain.graph, plain.view, "stage", &error),
            beside = sim_evaluate(plain.plan, plain.graph, plain.view, "flow", &error),
            host = sim_evaluate(there.plan, there.graph, there.view, "stage", &error),
            flow = sim_evaluate(there.plan, there.graph, there.view, "flow", &error);
        assert_no_error(error);
        assert_true(host->host_bytes > 0);
        if (k < 2) /* a GPU's part of them goes over half a GB/s and comes back */
            assert_close(host->iteration_time_s - here->iteration_time_s,
                         2 * (double)host->host_bytes / 4 / 0.5e9, 0.01);
        if (k == 0)
            assert_true((double)host->host_bytes >= 4 * input &&
                        (double)host->host_bytes <= 4 * 4 * input);
        assert_true(host->memory_bytes[0] < here->memory_bytes[0]);
        assert_true(flow->memory_bytes[0] >= host->memory_bytes[0]);
        assert_true(flow->iteration_time_s >= beside->iteration_time_s);
        assert_true(flow->iteration_time_s <= host->iteration_time_s * (1 + 1e-9));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_auto(Made) small = planned(HOST("1 kB"), "zero=1 offload=optimizer", &error);
    assert_no_error(error);
    g_autoptr(SimReport) report =
        sim_evaluate(small.plan, small.graph, small.view, "stage", &error);
    assert_false(report->feasible);
    assert_true(report->host_missing_bytes > 0 && report->missing_bytes == 0);
    g_auto(Made) none = make("manual", MODEL, "star:hosts=4,bandwidth=1Gb/s,latency=5us",
                             "offload=optimizer", &error);
    assert_null(none.plan);
    assert_error(error, KILTER_ERROR_INPUT,
                 "expected its host_memory, host_link and host_bandwidth");
    g_clear_error(&error);
    g_auto(Made) hap = make("hap", MODEL, "star:hosts=4,bandwidth=1Gb/s,latency=5us",
                            "offload=optimizer", &error);
    assert_null(hap.plan);
    assert_error(error, KILTER_ERROR_INPUT, "with option 'offload': expected one of the planners");
    g_clear_error(&error);
    g_auto(Made) word = make("manual", MODEL, "star:hosts=4,bandwidth=1Gb/s,latency=5us",
                             "offload=parameters", &error);
    assert_error(error, KILTER_ERROR_INPUT,
                 "expected none, or optimizer, optimizer+parameters, activations");
    g_clear_error(&error);
    g_auto(Made) whole =
        planned(HOST("1 GB"), "zero=2 offload=optimizer+parameters", &error);
    assert_error(error, KILTER_ERROR_INPUT, "expected zero=3");
}

/* Searches count states on hosts, and find plans where nothing else fits. */
static void test_searches(void **state)
{
    (void)state;
    static const char *const set = "runtime=none pp=1 tp=1 zero=1",
                             *const there =
                                 "runtime=none pp=1 tp=1 zero=1 offload=optimizer";
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) part = g_strsplit(HOST("1 GB"), "1 GiB", 2);
    g_autofree char *text = g_strjoin("400 KiB", part[0], part[1], NULL);
    g_auto(Made) plain = planned_by("amp", text, set, &error);
    assert_null(plain.plan);
    assert_error(error, KILTER_ERROR_INFEASIBLE, "fits the memory");
    g_clear_error(&error);
    g_auto(Made) off = planned_by("amp", text, there, &error);
    assert_no_error(error);
    assert_true(off.plan->feasible);
    g_autoptr(SimReport) report =
        sim_evaluate(off.plan, off.graph, off.view, "stage", &error);
    assert_no_error(error);
    assert_true(report->host_bytes > 0);
}

/* Whether auto tries states on hosts with amp where nothing else fits. */
static bool is_tried(bool hosts, const PlannerOptions *options)
{
    bool tried = false;
    const char *set;
    for (uint32_t row = 0;
         (set = technique_next(planner_find("amp", NULL),
                               (TechniqueNeeds){.attention = true, .hosts = hosts},
                               options, &row));)
        tried |=
            strstr(set, "offload=optimizer") && technique_when(set) == TECHNIQUE_MISFIT;
    return tried;
}

static void test_techniques(void **state)
{
    (void)state;
    GError *error = NULL;
    PlannerOptions options;
    g_autoptr(Cluster) known =
        cluster_parse("c.yaml", HOST("1 GB"), strlen(HOST("1 GB")), &error),
                       unknown = cluster_load("hap-8", &error);
    assert_no_error(error);
    assert_true(technique_has_hosts(known));
    assert_false(technique_has_hosts(unknown));
    assert_true(set_options(&options, "runtime=none", &error));
    assert_true(is_tried(true, &options));
    assert_false(is_tried(false, &options));
    /* every second product where attention keeps no scores that selective could make again */
    uint32_t row = 0, alternate = 0;
    const char *set;
    while ((set = technique_next(planner_find("amp", NULL),
                                 (TechniqueNeeds){.attention = true, .fused = true},
                                 &options, &row))) {
        alternate += strstr(set, "recompute=alternate") != NULL;
        assert_null(strstr(set, "selective"));
    }
    assert_int_equal(alternate, 2);
    assert_int_equal(technique_when("zero=1 offload=optimizer"), TECHNIQUE_NEAR);
    /* the user's choice, which leaves the rest open */
    assert_true(set_options(&options, "recompute=full zero=2", &error));
    assert_true(is_tried(true, &options));
    assert_true(set_options(&options, "zero=3 recompute=selective", &error));
    assert_false(is_tried(true, &options));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_one_gpu),     cmocka_unit_test(test_unlike_stages),
        cmocka_unit_test(test_activations), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_searches),    cmocka_unit_test(test_techniques),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
