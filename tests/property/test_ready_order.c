/* The options of flow that relax an order: devices that run the first ready op, and transfers of a
 * pipeline that do not wait for one another. */
#include <math.h>

#include "sim/sim.h"
#include "synth/synth.h"
#include "tests/support/pipeline_case.h"
#include "tests/support/tag_setup.h"
#include "tests/test.h"

static SimReport *evaluate(const Plan *plan, const Graph *graph, const ClusterView *view,
                           const char *key, const char *value)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    sim_options_init(&options);
    sim_options_set(&options, "network", "crossbar", &error);
    sim_options_set(&options, key, value, &error);
    assert_no_error(error);
    SimReport *report = sim_evaluate_with(plan, graph, view, "flow", &options, &error);
    assert_no_error(error);
    return report;
}

/* Two branches of 10 ms ops that a third op adds: a1 and then a2, and b1. */
static Graph *branches(void)
{
    enum { BATCH = 8, WIDTH = 4 };
    Graph *graph = graph_new("branches");
    const uint32_t square[] = {WIDTH, WIDTH};
    const TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){BATCH, WIDTH});
    const TensorId labels =
        graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){BATCH});
    static const char *const names[] = {"a1", "a2", "b1"};
    TensorId out[G_N_ELEMENTS(names)];
    for (uint32_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *weight = g_strdup_printf("w_%s", names[i]);
        const TensorId w = graph_parameter(graph, weight, 2, square);
        out[i] = graph_op(graph, OP_LINEAR, names[i], (OpAttr){0}, 2,
                          (TensorId[]){i == 1 ? out[0] : x, w}, NULL);
    }
    TensorId y = graph_op(graph, OP_ADD, "sum", (OpAttr){0}, 2,
                          (TensorId[]){out[1], out[2]}, NULL);
    y = graph_op(graph, OP_LOG_SOFTMAX, "log_p", (OpAttr){0}, 1, &y, NULL);
    y = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){y, labels},
                 NULL);
    graph_differentiate(graph, y, OPTIMIZER_SGD);
    graph_set_timed(graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (graph_get_op(graph, id)->kind == OP_LINEAR)
            graph_set_seconds(graph, id, 10e-3);
    graph_seal(graph);
    return graph;
}

/* a1 on one device, everything else on another. */
static Program *apart(const TagSpace *space, const Graph *graph, const BatchForms *batch)
{
    const uint32_t n = graph_n_ops(graph);
    g_autofree uint16_t *group = g_new0(uint16_t, n);
    g_autofree double *time_s = g_new0(double, n);
    for (OpId id = 0; id < n; id++)
        group[id] = graph_get_op(graph, id)->of != 0 && id != 0;
    const TagWork work = {
        .graph = graph, .batch = batch, .n_groups = 2, .group = group, .time_s = time_s};
    uint16_t action[2] = {0};
    for (uint32_t s = 0; s < space->n_actions; s++)
        for (uint16_t i = 0; i < 2; i++)
            if (space->action[s].subset == (i ? 1 : 2) &&
                space->action[s].option == TAG_AR)
                action[i] = (uint16_t)s;
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(graph);
    synth_tag_place(space, &work, action, placement);
    return synth_tag_program(space, &work, placement, false);
}

static const SimSpan *span_of(const SimReport *report, const Program *program, OpId op)
{
    for (uint32_t i = 0; i < report->timeline->n_spans; i++) {
        const SimSpan *span = &report->timeline->span[i];
        const Instr *instr = &program->instr[span->instr];
        if (instr->kind == INSTR_COMPUTE && instr->op == op && span->lane != SIM_TEAM)
            return span;
    }
    fail_msg("op %u has no span", op);
    return NULL;
}

/* In the program's order b1 waits behind a2, which waits for a1 on the other device; the first
 * ready op is b1. */
static void test_branches(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = branches();
    g_autoptr(Cluster) cluster =
        cluster_load("star:hosts=2,bandwidth=1Gb/s,latency=5us", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(BatchForms) batch = batch_forms_new(graph, &error);
    assert_no_error(error);
    g_autoptr(TagSpace) space = synth_tag_space(view, false, &error);
    assert_no_error(error);
    g_autoptr(Plan) plan =
        plan_of(graph, view->n_devices, false, apart(space, graph, batch));
    const Program *program = plan->program;
    g_autoptr(SimReport) fixed = evaluate(plan, graph, view, "order", "program");
    g_autoptr(SimReport) ready = evaluate(plan, graph, view, "order", "ready");
    const double sent_s = span_of(fixed, program, 1)->start_s - 10e-3;
    assert_true(sent_s > 0 && sent_s < 1e-3);
    assert_close(span_of(fixed, program, 2)->start_s, 20e-3 + sent_s, 1e-12);
    assert_true(span_of(ready, program, 2)->start_s == 0);
    assert_close(span_of(ready, program, 1)->start_s, 10e-3 + sent_s, 1e-12);
    assert_close(fixed->iteration_time_s - ready->iteration_time_s, 10e-3, 1e-9);
}

/* Devices do the same work in either order, one task at a time, each after its inputs. */
static void check_strategy(const Setup *s, const Plan *plan)
{
    g_autoptr(SimReport) fixed = evaluate(plan, s->graph, s->view, "order", "program");
    g_autoptr(SimReport) ready = evaluate(plan, s->graph, s->view, "order", "ready");
    g_autoptr(SimReport) again = evaluate(plan, s->graph, s->view, "order", "ready");
    const SimTimeline *timeline = ready->timeline;
    assert_true(ready->iteration_time_s == again->iteration_time_s);
    for (uint32_t j = 0; j < s->view->n_devices; j++)
        assert_close(ready->busy_s[j], fixed->busy_s[j], 1e-9);
    for (uint32_t a = 0; a < timeline->n_spans; a++)
        for (uint32_t b = 0; b < timeline->n_spans; b++) {
            const SimSpan *x = &timeline->span[a], *y = &timeline->span[b];
            if (a != b && x->lane == y->lane && x->lane != SIM_TEAM &&
                x->start_s < y->start_s)
                assert_at_most(x->end_s, y->start_s * (1 + 1e-12));
        }
}

static void test_random_strategies(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(33);
    for (uint32_t round = 0; round < 16; round++) {
        g_auto(Setup) s = setup_new(round % 2 ? MOE : VIT,
                                    "star:hosts=5,bandwidth=1Gb/s,latency=5us", 6, rand);
        g_autoptr(Plan) plan = plan_of(s.graph, s.view->n_devices, round % 3 == 0,
                                       random_strategy(&s, rand, false));
        check_strategy(&s, plan);
    }
}

/* A pipeline of one chain runs in order anyway. */
static void test_chain(void **state)
{
    (void)state;
    const Setting setting = {NULL, STAR,           BASELINE_DATA_PARALLEL, 4,    4, 1, 3,
                             1,    SCHEDULE_GPIPE, RECOMPUTE_NONE,         false};
    g_auto(Case) c = case_new(&setting);
    g_autoptr(SimReport) fixed = evaluate(c.plan, c.graph, c.view, "order", "program");
    g_autoptr(SimReport) ready = evaluate(c.plan, c.graph, c.view, "order", "ready");
    assert_at_most(ready->iteration_time_s, fixed->iteration_time_s * (1 + 1e-9));
}

/* A stage gets two tensors from the previous one, its input and a skip connection: one after the
 * other, or at the same time. */
static void test_transfers(void **state)
{
    (void)state;
    uint32_t faster = 0;
    for (uint32_t k = 0; k < G_N_ELEMENTS(SETTINGS); k++) {
        if (SETTINGS[k].n_groups < 2 || SETTINGS[k].n_microbatches < 2)
            continue;
        g_auto(Case) c = case_new(&SETTINGS[k]);
        g_autoptr(SimReport) queued =
            evaluate(c.plan, c.graph, c.view, "transfers", "queued");
        g_autoptr(SimReport) free =
            evaluate(c.plan, c.graph, c.view, "transfers", "free");
        assert_at_most(free->iteration_time_s, queued->iteration_time_s * (1 + 1e-9));
        faster += free->iteration_time_s < queued->iteration_time_s * (1 - 1e-6);
    }
    assert_true(faster > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_random_strategies),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_transfers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
