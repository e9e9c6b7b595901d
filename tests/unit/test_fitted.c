/* Fitted costs of a cluster: its file, the bytes and FLOPs of ops, the lines of collectives,
 * stretched devices. */
#include <stdlib.h>

#include "data/data.h"
#include "synth/planners/planner.h"
#include "tests/support/random_plan.h"
#include "tests/test.h"

#define HEAD                      \
    "name: pair\ndevice_types:\n" \
    "  - name: cpu\n    rate: 2 GFLOP/s\n    memory: 8 GiB\n    source: s\n"
#define OPS                                                                       \
    "    ops:\n"                                                                  \
    "      - {kind: linear, overhead: 3 us, rate: 4 GFLOP/s, bandwidth: 1 GB/s, " \
    "smallest: 1 kB, largest: 1 MB}\n"                                            \
    "      - {kind: relu, overhead: 1 us, bandwidth: 2 GB/s, smallest: 1 kB, "    \
    "largest: 1 MB}\n"
#define MACHINES "machines:\n  - {name: m, count: 2, type: cpu, gpus: 1, source: s}\n"
#define LINKS                                                        \
    "collectives:\n  source: s\n"                                    \
    "  all_gather: {latency: 1 us, bandwidth: 1 GB/s}\n"             \
    "  grouped_all_gather: {latency: 1 us, bandwidth: 1 GB/s}\n"     \
    "  reduce_scatter: {latency: 1 us, bandwidth: 1 GB/s}\n"         \
    "  grouped_reduce_scatter: {latency: 1 us, bandwidth: 1 GB/s}\n" \
    "  all_to_all: {latency: 1 us, bandwidth: 1 GB/s}\n"
#define ALL_REDUCE                                                              \
    "  all_reduce: {latency: 9 us, bandwidth: 2 GB/s, smallest: 8 B, largest: " \
    "1 MB, pieces: [{up_to: 1 kB, latency: 4 us, bandwidth: 1 GB/s}, {up_to: "  \
    "64 kB, latency: 5 us, bandwidth: 1.5 GB/s}]}\n"

static Cluster *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("pair.yaml", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

static void test_file(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = parse(HEAD OPS MACHINES LINKS ALL_REDUCE);
    const OpCost *linear = &cluster->type[0].op[OP_LINEAR];
    assert_close(linear->overhead_s, 3e-6, 1e-15);
    assert_close(linear->rate, 4e9, 1e-15);
    assert_close(linear->bandwidth, 1e9, 1e-15);
    assert_true(cluster->type[0].op[OP_RELU].rate == INFINITY);
    assert_true(cluster->type[0].op[OP_GELU].largest == 0);
    assert_int_equal(cluster->pieces[COLLECTIVE_ALL_REDUCE].n, 2);
    assert_int_equal(cluster->pieces[COLLECTIVE_ALL_GATHER].n, 0);
}

static void expect_refusal(const char *text, const char *part)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("pair.yaml", text, strlen(text), &error);
    assert_null(cluster);
    assert_error(error, KILTER_ERROR_INPUT, part);
}

static void test_bad_files(void **state)
{
    (void)state;
    expect_refusal(
        HEAD
        "    ops: [{kind: liner, overhead: 3 us, smallest: 1 B, largest: 1 B}]\n" MACHINES
            LINKS ALL_REDUCE,
        "device_types[0].ops[0].kind: expected the name of an op kind");
    expect_refusal(
        HEAD
        "    ops: [{kind: relu, overhead: 3 us, smallest: 2 B, largest: 1 B}]\n" MACHINES
            LINKS ALL_REDUCE,
        "device_types[0].ops[0].largest: expected 2 B to");
    expect_refusal(HEAD OPS OPS MACHINES LINKS ALL_REDUCE, "ops");
    expect_refusal(
        HEAD MACHINES LINKS
        "  all_reduce: {latency: 9 us, bandwidth: 2 GB/s, pieces: [{up_to: 2 kB, "
        "latency: 4 us, bandwidth: 1 GB/s}, {up_to: 1 kB, latency: 5 us, bandwidth: "
        "1 GB/s}]}\n",
        "collectives.all_reduce.pieces[1].up_to: expected");
}

/* read(write(x)) == x, compared as text. */
static void test_round_trip(void **state)
{
    (void)state;
    GRand *rand = g_rand_new_with_seed(1);
    for (uint32_t i = 0; i < 100; i++) {
        g_autoptr(Cluster) cluster = random_cluster(rand, 4);
        random_fit(rand, cluster);
        g_autofree char *text = cluster_write(cluster);
        g_autoptr(Cluster) again = parse(text);
        g_autofree char *second = cluster_write(again);
        assert_string_equal(text, second);
        assert_true(again->type[0].rate == cluster->type[0].rate);
        assert_true(again->type[0].rates[NUMBERS_F16] ==
                    cluster->type[0].rates[NUMBERS_F16]);
        for (uint32_t kind = 0; cluster->type[0].op && kind < OP_KINDS; kind++)
            assert_memory_equal(&again->type[0].op[kind], &cluster->type[0].op[kind],
                                sizeof(OpCost));
    }
    g_rand_free(rand);
}

/* x[8, 4] -> linear to 6 -> relu; x is float32. */
static Graph *make_graph(Precision precision)
{
    const OpAttr none = {0};
    Graph *g = graph_new("fitted");
    graph_set_precision(g, precision);
    const TensorId labels = graph_input(g, "labels", DTYPE_I64, 1, (uint32_t[]){8});
    const TensorId w = graph_parameter(g, "w", 2, (uint32_t[]){6, 4});
    TensorId y = graph_input(g, "x", DTYPE_F32, 2, (uint32_t[]){8, 4});
    y = graph_op(g, OP_LINEAR, "linear", none, 2, (TensorId[]){y, w}, NULL);
    y = graph_op(g, OP_RELU, "relu", none, 1, &y, NULL);
    y = graph_op(g, OP_NLL_SUM, "loss", none, 2, (TensorId[]){y, labels}, NULL);
    graph_differentiate(g, y, OPTIMIZER_SGD);
    graph_seal(g);
    return g;
}

static double rule_seconds(const Graph *g, const ClusterView *view, OpId op, bool sharded,
                           double share)
{
    Rule rule[OP_MAX_RULES];
    SimWork work;
    const uint32_t n = op_rules(g, op, rule);
    uint32_t r = 0;
    while (sharded && r + 1 < n && rule[r].loop != 0)
        r++;
    sim_work_op(NULL, g, view, op, &rule[r], &work);
    return sim_work_s(&work, &view->device[1], share);
}

static void test_work(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = parse(HEAD OPS MACHINES LINKS ALL_REDUCE);
    g_autoptr(GError) error = NULL;
    cluster_stretch(cluster, GRANULARITY_MACHINE, "1=3", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Graph) g = make_graph(PRECISION_SINGLE);
    const double flops = 2 * 8 * 6 * 4, x = 8 * 4 * 4, w = 6 * 4 * 4, y = 8 * 6 * 4;
    /* Replicated; then over the rows, where w stays whole. */
    assert_close(rule_seconds(g, view, 0, false, 0.25),
                 3 * (3e-6 + flops / 4e9 + (x + w + y) / 1e9), 1e-12);
    assert_close(rule_seconds(g, view, 0, true, 0.25),
                 3 * (3e-6 + 0.25 * flops / 4e9 + (w + 0.25 * (x + y)) / 1e9), 1e-12);
    assert_close(rule_seconds(g, view, 1, true, 0.5), 3 * (1e-6 + y / 2e9), 1e-12);
    /* Not fitted: FLOPs / rate. */
    assert_close(rule_seconds(g, view, 2, false, 1), 3 * 8 / 2e9, 1e-12);
}

/* Of a table of 100 rows, only those named by ids [6] are read, whichever loop is cut; likewise one
 * of the logits [6, 100] per label. All logits are read for the sum. */
static void test_lookups(void **state)
{
    (void)state;
    const OpAttr none = {0};
    g_autoptr(Cluster) cluster = parse(HEAD OPS MACHINES LINKS ALL_REDUCE);
    const OpCost by_bytes = {.rate = INFINITY, .bandwidth = 1e9, .largest = INFINITY};
    cluster->type[0].op[OP_EMBEDDING] = by_bytes;
    cluster->type[0].op[OP_LABEL_LOGIT] = by_bytes;
    cluster->type[0].op[OP_SUM_EXP] = by_bytes;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Graph) g = graph_new("lookups");
    const TensorId ids = graph_input(g, "ids", DTYPE_I64, 1, (uint32_t[]){6});
    const TensorId w = graph_parameter(g, "w", 2, (uint32_t[]){100, 3});
    const TensorId x = graph_input(g, "x", DTYPE_F32, 2, (uint32_t[]){6, 100});
    graph_op(g, OP_EMBEDDING, "rows", none, 2, (TensorId[]){ids, w}, NULL);
    const TensorId t =
        graph_op(g, OP_LABEL_LOGIT, "logit", none, 2, (TensorId[]){x, ids}, NULL);
    graph_op(g, OP_SUM_EXP, "sum", none, 2, (TensorId[]){x, t}, NULL);
    graph_seal(g);
    const struct {
        OpId op;
        char loop;             /* '-': replicated */
        double whole, sharded; /* bytes */
    } cases[] = {
        {0, '-', 6 * 8 + 2 * 6 * 3 * 4, 0},     {0, '*', 0, 6 * 8 + 2 * 6 * 3 * 4},
        {0, 'v', 6 * 8 + 6 * 3 * 4, 6 * 3 * 4}, {0, 'h', 6 * 8, 2 * 6 * 3 * 4},
        {1, '-', 6 * 8 + 2 * 6 * 4, 0},         {1, '*', 0, 6 * 8 + 2 * 6 * 4},
        {1, 'v', 6 * 8 + 6 * 4, 6 * 4},         {2, 'v', 2 * 6 * 4, 6 * 100 * 4}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Rule rule[OP_MAX_RULES];
        OpSpace space;
        SimWork work;
        graph_op_space(g, cases[i].op, &space);
        uint32_t r = 0, n = op_rules(g, cases[i].op, rule);
        while (cases[i].loop != '-' &&
               (rule[r].loop < 0 || space.loop[rule[r].loop].letter != cases[i].loop))
            assert_true(++r < n);
        sim_work_op(NULL, g, view, cases[i].op, &rule[r], &work);
        assert_close(sim_work_s(&work, &view->device[0], 0.25),
                     (cases[i].whole + 0.25 * cases[i].sharded) / 1e9, 1e-12);
    }
}

/* Ops on half-precision numbers have another rate, fitted or not; updates do not. */
static void test_half_rate(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster =
        parse(HEAD "    half_rate: 6 GFLOP/s\n" OPS MACHINES LINKS ALL_REDUCE);
    g_autoptr(Cluster) plain =
        parse(HEAD "    half_rate: 6 GFLOP/s\n" MACHINES LINKS ALL_REDUCE);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(ClusterView) plain_view = cluster_view(plain, GRANULARITY_MACHINE);
    g_autoptr(Graph) half = make_graph(PRECISION_MIXED);
    g_autoptr(Graph) single = make_graph(PRECISION_SINGLE);
    const double flops = 2 * 8 * 6 * 4, x = 8 * 4 * 4, w = 6 * 4 * 2, y = 8 * 6 * 2;
    assert_close(rule_seconds(half, view, 0, false, 1),
                 3e-6 + flops / (3 * 4e9) + (x + w + y) / 1e9, 1e-12);
    assert_close(rule_seconds(half, plain_view, 0, false, 1), flops / 6e9, 1e-12);
    assert_close(rule_seconds(half, plain_view, 0, true, 0.25), 0.25 * flops / 6e9,
                 1e-12);
    assert_close(rule_seconds(single, plain_view, 0, true, 0.25), 0.25 * flops / 2e9,
                 1e-12);
    const OpId update = graph_n_ops(half) - 1;
    assert_int_equal(graph_get_op(half, update)->pass, PASS_UPDATE);
    assert_close(rule_seconds(half, plain_view, update, false, 1), 2 * 6 * 4 / 2e9,
                 1e-12);
    expect_refusal(
        HEAD "    half_rate: 6 GFLOP/s\n    rates: {fp16: 6 GFLOP/s}\n" MACHINES LINKS
            ALL_REDUCE,
        "either half_rate or rates.fp16");
    expect_refusal(HEAD "    half_rate: 6\n" MACHINES LINKS ALL_REDUCE,
                   "device_types[0].half_rate: expected a rate");
}

/* Each format has its own rate: products with parameters run in fp8, the others as bf16; a type
 * without a rate of a format is named. */
static void test_rates(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = parse(
        HEAD "    rates: {bf16: 6 GFLOP/s, fp8: 12 GFLOP/s}\n" MACHINES LINKS ALL_REDUCE);
    g_autoptr(Cluster) old =
        parse(HEAD "    half_rate: 6 GFLOP/s\n" MACHINES LINKS ALL_REDUCE);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Graph) bf16 = make_graph(PRECISION_BF16);
    g_autoptr(Graph) fp8 = make_graph(PRECISION_FP8);
    g_autoptr(Graph) mixed = make_graph(PRECISION_MIXED);
    g_autoptr(GError) error = NULL;
    const double flops = 2 * 8 * 6 * 4;
    assert_close(rule_seconds(bf16, view, 0, false, 1), flops / 6e9, 1e-12);
    assert_close(rule_seconds(fp8, view, 0, false, 1), flops / 12e9, 1e-12);
    assert_close(rule_seconds(mixed, view, 0, false, 1), flops / 2e9, 1e-12);
    assert_true(cluster_check_precision(cluster, PRECISION_FP8, NULL));
    assert_true(cluster_check_precision(old, PRECISION_MIXED, NULL));
    assert_false(cluster_check_precision(old, PRECISION_BF16, &error));
    assert_non_null(strstr(error->message, "no rate of bf16 numbers"));
}

/* Waves of 20 elements: 10 of the 48 are empty, whatever the share of the rows; in the gradient of
 * w, a sum over the rows, the same part of the share's FLOPs. A wave larger than the output is
 * empty once more at most. */
static void test_waves(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = parse(HEAD OPS MACHINES LINKS ALL_REDUCE);
    g_autoptr(Graph) g = make_graph(PRECISION_SINGLE);
    cluster->type[0].op[OP_LINEAR_DW] = cluster->type[0].op[OP_LINEAR];
    const OpId dw = graph_tensor(g, graph_gradient(g, 1))->producer;
    assert_int_equal(graph_get_op(g, dw)->kind, OP_LINEAR_DW);
    const double flops = 2 * 8 * 6 * 4;
    for (uint32_t sharded = 0; sharded < 2; sharded++) {
        double none[2], some[2], all[2], *of[] = {none, some, all};
        const uint32_t wave[] = {0, 20, 1000};
        for (uint32_t i = 0; i < 3; i++) {
            cluster->type[0].op[OP_LINEAR].wave = wave[i];
            cluster->type[0].op[OP_LINEAR_DW].wave = wave[i];
            g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
            of[i][0] = rule_seconds(g, view, 0, sharded, 0.25);
            of[i][1] = rule_seconds(g, view, dw, sharded, 0.25);
        }
        assert_close(some[0] - none[0], 10.0 / 48 * flops / 4e9, 1e-9);
        assert_close(all[0] - none[0], flops / 4e9, 1e-9);
        assert_close(some[1] - none[1], (sharded ? 0.25 : 1) * 10.0 / 24 * flops / 4e9,
                     1e-9);
    }
}

static void test_lines(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = parse(HEAD MACHINES LINKS ALL_REDUCE);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    const struct {
        double bytes, seconds;
    } cases[] = {{1000, 4e-6 + 1e-6},
                 {1001, 5e-6 + 1001 / 1.5e9},
                 {64000, 5e-6 + 64000 / 1.5e9},
                 {64001, 9e-6 + 64001 / 2e9}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_close(sim_collective_s(view, COLLECTIVE_ALL_REDUCE, cases[i].bytes, 0, 0),
                     cases[i].seconds, 1e-12);
}

static void test_stretch(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "1", "2=2", "0=0.5", "0=2x", "-1=2", "0=1001"};
    g_autoptr(Cluster) cluster = parse(HEAD MACHINES LINKS ALL_REDUCE);
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(cluster_stretch(cluster, GRANULARITY_MACHINE, bad[i], &error));
        assert_error(error, KILTER_ERROR_INPUT, "--slowdown");
    }
    g_autoptr(GError) error = NULL;
    assert_true(cluster_stretch(cluster, GRANULARITY_GPU, "0=2", &error));
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    assert_close(view->device[0].rate, 1e9, 1e-15);
    assert_close(view->device[1].rate, 2e9, 1e-15);
    cluster->machine[1].gpus = 2;
    assert_false(cluster_stretch(cluster, GRANULARITY_GPU, "2=2", &error));
    assert_error(error, KILTER_ERROR_INPUT, "one of several GPUs");
}

/* A table that says FLOPs / rate for every kind changes no plan. */
static void test_table_of_rates(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < planner_count(); p++) {
        if (planner_can(planner_at(p), PLANNER_GROUPS))
            continue;
        double time_s[2];
        for (uint32_t i = 0; i < 2; i++) {
            g_autoptr(Cluster) cluster = cluster_load("hap-8", NULL);
            for (uint32_t t = 0; i == 1 && t < cluster->n_types; t++) {
                cluster->type[t].op = g_new(OpCost, OP_KINDS);
                for (uint32_t kind = 0; kind < OP_KINDS; kind++)
                    cluster->type[t].op[kind] = (OpCost){.rate = cluster->type[t].rate,
                                                         .bandwidth = INFINITY,
                                                         .smallest = 1,
                                                         .largest = 1e9};
            }
            g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
            PlannerOptions options;
            planner_options_init(&options);
            g_autoptr(GError) error = NULL;
            g_autoptr(Plan) plan = planner_plan(planner_at(p), "vit:layers=1", "hap-8",
                                                view, &options, NULL, &error);
            assert_no_error(error);
            time_s[i] = plan->iteration_time_s;
            assert_at_most(plan->lower_bound_s, plan->iteration_time_s);
        }
        assert_close(time_s[1], time_s[0], 1e-9);
    }
}

/* The lower bound of hap's plan holds for every planner's plan, where costs are fitted too.
 * (HiDup's microbatches take turns and overlap, and ddp and horovod fuse all-reduces in buckets,
 * which no program of hap's does.) */
static void test_bound_holds(void **state)
{
    (void)state;
    GRand *rand = g_rand_new_with_seed(7);
    Cluster *cluster = random_cluster(rand, 3);
    while (!cluster->type[0].op || cluster->n_machines < 3) {
        cluster_free(cluster);
        cluster = random_cluster(rand, 3);
        random_fit(rand, cluster);
    }
    g_rand_free(rand);
    for (uint32_t t = 0; t < cluster->n_types; t++)
        cluster->type[t].memory_bytes = UINT64_C(1) << 40;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    double best_s = INFINITY, bound_s = 0;
    for (uint32_t p = 0; p < planner_count(); p++) {
        if (planner_can(planner_at(p), PLANNER_GROUPS))
            continue;
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) plan = planner_plan(
            planner_at(p), "vit:layers=1,hidden=12,heads=2,ffn=24,global_batch=16",
            "random", view, &options, NULL, &error);
        assert_no_error(error);
        if (plan->program->n_microbatches == 1 && plan->bucket_bytes == 0)
            best_s = fmin(best_s, plan->fractional_time_s);
        bound_s = fmax(bound_s, plan->lower_bound_s);
    }
    assert_at_most(bound_s, best_s * (1 + 1e-9));
    assert_true(bound_s > 0);
    cluster_free(cluster);
}

/* No operand of an op has more bytes than its tensor: table lookups read fewer, other operands
 * all. */
static void test_operands(void **state)
{
    (void)state;
    static const char *const model[] = {
        "llama:layers=1,hidden=16,heads=2,kv_heads=1,ffn=32,vocab=64,seq=8",
        "gpt2:layers=1,hidden=16,heads=2,ffn=32,vocab=64,seq=8"};
    for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(model[m], 1, NULL, &error);
        assert_no_error(error);
        for (OpId id = 0; id < graph_n_ops(graph); id++) {
            const Op *op = graph_get_op(graph, id);
            for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
                const uint64_t all = tensor_bytes(graph_tensor(
                    graph, i < op->n_in ? op->in[i] : op->out[i - op->n_in]));
                const uint64_t bytes = graph_op_bytes(graph, id, i);
                assert_true(i == op_kind_looked_up(op->kind) ? bytes <= all
                                                             : bytes == all);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),           cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_work),
        cmocka_unit_test(test_lookups),        cmocka_unit_test(test_half_rate),
        cmocka_unit_test(test_rates),          cmocka_unit_test(test_waves),
        cmocka_unit_test(test_lines),          cmocka_unit_test(test_stretch),
        cmocka_unit_test(test_table_of_rates), cmocka_unit_test(test_bound_holds),
        cmocka_unit_test(test_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
