/* sim_linear on hand-made programs of one linear layer: stages, coefficients and times
 * worked out by hand.
 *
 * x[8,4] -> linear(w[6,4], b[6]) -> log_softmax -> nll_sum, SGD. FLOPs: linear 2*8*6*4 +
 * 8*6 = 432; log_softmax and its gradient 5*8*6 = 240 each; loss and its gradient 8 each;
 * dw 384; db 48; updates 48 and 12. */
#include "sim/sim.h"
#include "tests/test.h"

enum { BATCH = 8, IN = 4, OUT = 6 };
static const Form I = FORM_IDENTITY, R = FORM_REDUCE, G0 = FORM_GATHER0,
                  G1 = FORM_GATHER0 + 1;

typedef struct {
    Graph *graph;
    TensorId x, labels, w, b, y, seed, dy, dw, db;
    OpId linear, softmax, loss, loss_dx, softmax_dx, grad_w, grad_b, update_w, update_b;
    Device device[2];
    ClusterView view;
} Fixture;

static OpId producer(const Fixture *f, TensorId tensor)
{
    return graph_tensor(f->graph, tensor)->producer;
}

static void build_graph(Fixture *f)
{
    Graph *g = f->graph = graph_new("linear");
    const OpAttr none = {0};

    f->x = graph_input(g, "x", DTYPE_F32, 2, (uint32_t[]){BATCH, IN});
    f->labels = graph_input(g, "labels", DTYPE_I64, 1, (uint32_t[]){BATCH});
    f->w = graph_parameter(g, "w", 2, (uint32_t[]){OUT, IN});
    f->b = graph_parameter(g, "b", 1, (uint32_t[]){OUT});
    f->y =
        graph_op(g, OP_LINEAR, "linear", none, 3, (TensorId[]){f->x, f->w, f->b}, NULL);
    const TensorId p = graph_op(g, OP_LOG_SOFTMAX, "softmax", none, 1, &f->y, NULL);
    const TensorId loss =
        graph_op(g, OP_NLL_SUM, "loss", none, 2, (TensorId[]){p, f->labels}, NULL);
    graph_differentiate(g, loss, OPTIMIZER_SGD);
    graph_seal(g);
    f->seed = graph_gradient(g, loss);
    f->dy = graph_gradient(g, f->y);
    f->dw = graph_gradient(g, f->w);
    f->db = graph_gradient(g, f->b);
    f->linear = producer(f, f->y);
    f->softmax = producer(f, p);
    f->loss = producer(f, loss);
    f->loss_dx = producer(f, graph_gradient(g, p));
    f->softmax_dx = producer(f, f->dy);
    f->grad_w = producer(f, f->dw);
    f->grad_b = producer(f, f->db);
    f->update_w = producer(f, graph_updated(g, f->w));
    f->update_b = producer(f, graph_updated(g, f->b));
}

/* Two devices of 100 and 50 FLOP/s; every collective 0.1 s and 96 B/s. */
static int setup(void **state)
{
    Fixture *f = g_new0(Fixture, 1);

    build_graph(f);
    f->device[0] = (Device){.name = "fast", .rate = 100, .gpus = 1, .memory_bytes = 4096};
    f->device[1] = (Device){.name = "slow", .rate = 50, .gpus = 1, .memory_bytes = 4096};
    f->view = (ClusterView){.n_devices = 2, .device = f->device};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        f->view.collective[kind] = (LinkCost){0.1, 96};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    Fixture *f = *state;

    graph_free(f->graph);
    g_free(f);
    return 0;
}

static void load(const Fixture *f, Program *p, Form x, Form labels, Form parameters)
{
    program_load(p, f->x, x);
    program_load(p, f->labels, labels);
    program_load(p, f->w, parameters);
    program_load(p, f->b, parameters);
    program_load(p, f->seed, I);
}

/* Everything from the linear's output in `form` to its gradient in the same form. */
static void loss_and_back(const Fixture *f, Program *p, Form form)
{
    program_compute(p, f->softmax, (Form[]){form, form}, 2);
    program_compute(p, f->loss, (Form[]){form, form, form == I ? I : R}, 3);
    program_compute(p, f->loss_dx, (Form[]){I, form, form}, 3);
    program_compute(p, f->softmax_dx, (Form[]){form, form, form}, 3);
}

static Program *data_parallel(const Fixture *f)
{
    Program *p = program_new();

    load(f, p, G0, G0, I);
    program_compute(p, f->linear, (Form[]){G0, I, I, G0}, 4);
    loss_and_back(f, p, G0);
    program_compute(p, f->grad_w, (Form[]){G0, G0, R}, 3);
    program_compute(p, f->grad_b, (Form[]){G0, R}, 2);
    program_collective(p, COLLECTIVE_ALL_REDUCE, f->dw, R, I);
    program_collective(p, COLLECTIVE_ALL_REDUCE, f->db, R, I);
    program_compute(p, f->update_b, (Form[]){I, I, I}, 3);
    program_compute(p, f->update_w, (Form[]){I, I, I}, 3);
    return p;
}

/* Output features sharded, with three conversions of the logits. */
static Program *tensor_parallel(const Fixture *f)
{
    Program *p = program_new();

    load(f, p, I, I, G0);
    program_compute(p, f->linear, (Form[]){I, G0, G0, G1}, 4);
    program_collective(p, COLLECTIVE_ALL_TO_ALL, f->y, G1, G0);
    program_collective(p, COLLECTIVE_ALL_GATHER, f->y, G1, I);
    program_collective(p, COLLECTIVE_GROUPED_ALL_GATHER, f->y, G1, I);
    loss_and_back(f, p, I);
    program_collective(p, COLLECTIVE_SLICE, f->dy, I, G1);
    program_compute(p, f->grad_w, (Form[]){G1, I, G0}, 3);
    program_compute(p, f->grad_b, (Form[]){G1, G0}, 2);
    program_compute(p, f->update_b, (Form[]){G0, G0, G0}, 3);
    program_compute(p, f->update_w, (Form[]){G0, G0, G0}, 3);
    return p;
}

static void assert_program(const Fixture *f, const Program *program)
{
    g_autoptr(GError) error = NULL;

    program_check(program, f->graph, &error);
    assert_no_error(error);
}

static void test_data_parallel(void **state)
{
    const Fixture *f = *state;
    g_autoptr(Program) program = data_parallel(f);
    assert_program(f, program);
    g_autoptr(SimLinear) linear = sim_linear(program, f->graph, &f->view, NULL, 0);
    const double share[] = {0.75, 0.25};
    double comm, comp;

    assert_int_equal(linear->n_splits, 1);
    assert_int_equal(linear->split[0].segment, 0);
    assert_int_equal(linear->split[0].units, BATCH);
    assert_int_equal(linear->n_stages, 2);
    assert_int_equal(linear->n_terms, 0);
    assert_int_equal(linear->stage[0].first, 0);
    assert_int_equal(linear->stage[0].n, 12);
    assert_int_equal(linear->stage[1].first, 12);
    assert_int_equal(linear->stage[1].n, 4);
    assert_close(linear->flops[0], 432 + 240 + 8 + 8 + 240 + 384 + 48, 1e-12);
    assert_true(linear->flops[1] == 0);
    assert_true(linear->stage[0].fixed.flops == 0);
    assert_close(linear->stage[1].fixed.flops, 48 + 12, 1e-12);
    /* dw 96 B, db 24 B: 0.1 + 1 and 0.1 + 0.25 s */
    assert_true(linear->stage[0].comm_s == 0);
    assert_close(linear->stage[1].comm_s, 1.45, 1e-12);
    /* the fast device: 0.75 * 1360 / 100; the slow one: the updates, 60 / 50 */
    assert_close(sim_linear_time(linear, &f->view, share, &comm, &comp),
                 1.45 + 10.2 + 1.2, 1e-12);
    assert_close(comm, 1.45, 1e-12);
    assert_close(comp, 11.4, 1e-12);
}

static void test_terms(void **state)
{
    const Fixture *f = *state;
    g_autoptr(Program) program = tensor_parallel(f);
    assert_program(f, program);
    g_autoptr(SimLinear) linear = sim_linear(program, f->graph, &f->view, NULL, 0);
    const double share[] = {0.5, 0.5, 0.375, 0.625}; /* units 6, units 8 */
    double comm, comp;

    assert_int_equal(linear->n_splits, 2);
    assert_int_equal(linear->split[0].units, OUT);
    assert_int_equal(linear->split[1].units, BATCH);
    assert_int_equal(linear->n_stages, 2);
    assert_close(linear->flops[0], 432, 1e-12);
    assert_true(linear->flops[1] == 0 && linear->flops[3] == 0);
    assert_close(linear->flops[2], 384 + 48 + 48 + 12, 1e-12);
    assert_close(linear->stage[1].fixed.flops, 240 + 8 + 8 + 240, 1e-12);
    /* y has 192 B: 2 s. Fixed: two latencies, and grouped 2 a + V/w. */
    assert_close(linear->stage[1].comm_s, 0.1 + 0.1 + 0.2 + 2, 1e-12);
    assert_int_equal(linear->n_terms, 2);
    assert_int_equal(linear->term[0].stage, 1);
    assert_int_equal(linear->term[0].from, 0);
    assert_int_equal(linear->term[0].to, 1);
    assert_close(linear->term[0].seconds, 1. / 2 * 2, 1e-12);
    assert_int_equal(linear->term[1].from, 0);
    assert_int_equal(linear->term[1].to, 0);
    assert_close(linear->term[1].seconds, 2, 1e-12);
    /* slow: 216 / 50, then (496 + 246) / 50 */
    sim_linear_time(linear, &f->view, share, &comm, &comp);
    assert_close(comm, 2.4 + 0.625 * 1 + 0.5 * 2, 1e-12);
    assert_close(comp, 4.32 + 14.84, 1e-12);
}

/* dw and db are 96 and 24 bytes. */
static void test_buckets(void **state)
{
    const Fixture *f = *state;
    const struct {
        uint64_t bucket;
        double comm_s;
    } cases[] = {{0, 1.45}, {119, 1.45}, {120, 1.35}, {1000, 1.35}, {50, 1.45}};
    g_autoptr(Program) program = data_parallel(f);

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(SimLinear) linear =
            sim_linear(program, f->graph, &f->view, NULL, cases[i].bucket);
        assert_close(linear->stage[1].comm_s, cases[i].comm_s, 1e-12);
    }
}

/* Reduce-scatters fill buckets, too; one that follows an all-reduce opens a bucket of its own. Each
 * takes 0.1 s; of its 120 bytes the faster device gets 3/4. */
static void test_scattered_buckets(void **state)
{
    const Fixture *f = *state;
    const struct {
        uint64_t bucket;
        Collective first;
        double comm_s;
    } cases[] = {{0, COLLECTIVE_REDUCE_SCATTER, 0.2},
                 {119, COLLECTIVE_REDUCE_SCATTER, 0.2},
                 {120, COLLECTIVE_REDUCE_SCATTER, 0.1},
                 {120, COLLECTIVE_GROUPED_REDUCE_SCATTER, 0.3}};
    /* The batch and the dimension that G0 cuts of the parameters: a share each. */
    const double share[] = {0.75, 0.25, 0.75, 0.25};

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Program) p = program_new();
        double comm;
        load(f, p, G0, G0, G0);
        program_compute(p, f->grad_w, (Form[]){G0, G0, R}, 3);
        program_compute(p, f->grad_b, (Form[]){G0, R}, 2);
        program_collective(p, cases[i].first, f->dw, R, G0);
        program_collective(p, COLLECTIVE_REDUCE_SCATTER, f->db, R, G0);
        g_autoptr(SimLinear) linear =
            sim_linear(p, f->graph, &f->view, NULL, cases[i].bucket);
        assert_int_equal(linear->n_splits, 2);
        sim_linear_time(linear, &f->view, share, &comm, NULL);
        const bool grouped = cases[i].first == COLLECTIVE_GROUPED_REDUCE_SCATTER;
        const double first_bytes = grouped ? 96 : 96 * 0.75;
        assert_close(comm, cases[i].comm_s + (first_bytes + 24 * 0.75) / 96, 1e-12);
    }
}

/* The fast device is a machine of 2 GPUs with a link of 0.01 s and 100 B/s: a message of
 * V bytes takes 0.01 + V/200 s. */
static void test_inner(void **state)
{
    Fixture *f = *state;
    const double share[] = {0.75, 0.25}, both[] = {0.5, 0.5, 0.375, 0.625};
    g_autoptr(Program) data = data_parallel(f);
    g_autoptr(Program) tensor = tensor_parallel(f);
    double comp;

    f->device[0].gpus = 2;
    f->device[0].inner = (LinkCost){0.01, 100};
    g_autoptr(SimLinear) linear = sim_linear(data, f->graph, &f->view, NULL, 0);
    assert_int_equal(linear->stage[0].fixed.inner_messages, 2);
    assert_close(linear->stage[0].fixed.inner_bytes, 120, 1e-12);
    assert_int_equal(linear->stage[1].fixed.inner_messages, 2);
    /* dw, db reduced (0.62 s), then handed back (0.62 s, beside 60 / 100 against 60 / 50)
     */
    sim_linear_time(linear, &f->view, share, NULL, &comp);
    assert_close(comp, 10.2 + 0.62 + 1.22, 1e-12);

    /* Stage 1: y by units 6 before and 8 after, gathered twice from units 6 to whole;
     * then dw, db, both updates by 6. */
    g_autoptr(SimLinear) other = sim_linear(tensor, f->graph, &f->view, NULL, 0);
    assert_int_equal(other->stage[1].fixed.inner_messages, 2 + 2 + 2 + 4);
    assert_close(other->stage[1].fixed.inner_bytes, 192 + 192, 1e-12);
    assert_close(other->inner_bytes[2], 192 + 192 + 2 * 120, 1e-12);
    assert_close(other->inner_bytes[3], 192 + 192, 1e-12);
    sim_linear_time(other, &f->view, both, NULL, &comp);
    const double bytes = 384 + 0.5 * 624 + 0.375 * 384;
    assert_close(comp, 4.32 + fmax(14.84, 7.42 + 0.1 + bytes / 200), 1e-12);
}

static void test_one_device(void **state)
{
    Fixture *f = *state;
    const double share[] = {1, 1};
    g_autoptr(Program) program = tensor_parallel(f);

    f->view.n_devices = 1;
    g_autoptr(SimLinear) linear = sim_linear(program, f->graph, &f->view, NULL, 0);
    assert_int_equal(linear->n_terms, 0);
    assert_close(sim_linear_time(linear, &f->view, share, NULL, NULL), (1360 + 60) / 100.,
                 1e-12);
}

static void test_segments(void **state)
{
    const Fixture *f = *state;
    g_autoptr(Program) program = data_parallel(f);
    g_autofree uint16_t *segment = g_new0(uint16_t, graph_n_ops(f->graph));

    segment[f->softmax] = segment[f->loss] = segment[f->loss_dx] = 1;
    g_autoptr(SimLinear) linear = sim_linear(program, f->graph, &f->view, segment, 0);
    assert_int_equal(linear->n_splits, 2);
    assert_int_equal(linear->split[0].segment, 0);
    assert_int_equal(linear->split[1].segment, 1);
    assert_close(linear->flops[0], 432 + 240 + 384 + 48, 1e-12);
    assert_close(linear->flops[1], 240 + 8 + 8, 1e-12);
    const double ratio[] = {0.9, 0.1, 0.2, 0.8};
    g_autofree double *share = sim_shares(linear, &f->view, ratio);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(share[i] == ratio[i]);

    /* A tensor is cut by its producer's segment: the logits y by the linear's. */
    g_autoptr(Program) tensor = tensor_parallel(f);
    memset(segment, 0, graph_n_ops(f->graph) * sizeof *segment);
    segment[f->linear] = 1;
    g_autoptr(SimLinear) other = sim_linear(tensor, f->graph, &f->view, segment, 0);
    assert_int_equal(other->n_terms, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(other->split[other->term[i].from].segment, 1);
}

/* x -> linear(w, b) twice with the same w and b: each gradient is the sum of two
 * contributions, of which only the sum is reduced inside a machine. */
static void test_tied_parameters(void **state)
{
    const OpAttr none = {0};
    g_autoptr(Graph) g = graph_new("tied");
    const TensorId labels = graph_input(g, "labels", DTYPE_I64, 1, (uint32_t[]){8});
    const TensorId w = graph_parameter(g, "w", 2, (uint32_t[]){4, 4});
    TensorId y = graph_input(g, "x", DTYPE_F32, 2, (uint32_t[]){8, 4});
    y = graph_op(g, OP_LINEAR, "first", none, 2, (TensorId[]){y, w}, NULL);
    y = graph_op(g, OP_LINEAR, "second", none, 2, (TensorId[]){y, w}, NULL);
    y = graph_op(g, OP_NLL_SUM, "loss", none, 2, (TensorId[]){y, labels}, NULL);
    const ClusterView view = {0};
    uint32_t messages = 0;

    (void)state;
    graph_differentiate(g, y, OPTIMIZER_SGD);
    graph_seal(g);
    for (OpId id = 0; id < graph_n_ops(g); id++) {
        Rule rule[OP_MAX_RULES];
        SimWork work;
        op_rules(g, id, rule);
        sim_work_op(NULL, g, &view, id, &rule[0], &work);
        const Op *op = graph_get_op(g, id);
        const bool last = op->out[0] == graph_gradient(g, w);
        assert_int_equal(work.inner_messages, last || op->pass == PASS_UPDATE);
        assert_true(!last || op->kind == OP_ADD);
        messages += work.inner_messages;
    }
    assert_int_equal(messages, 2);
}

/* The share of the device that a stage waits for matters, and no other. */
static void test_matters(void **state)
{
    const Fixture *f = *state;
    static const double SLOW_WAITS[] = {0.8, 0.2}, FAST_WAITS[] = {0.3, 0.7};
    g_autoptr(Program) program = data_parallel(f);
    g_autoptr(SimLinear) linear = sim_linear(program, f->graph, &f->view, NULL, 0);
    assert_int_equal(linear->n_splits, 1);
    bool fast[2] = {false, false}, slow[2] = {false, false};
    sim_linear_matters(linear, &f->view, SLOW_WAITS, fast);
    sim_linear_matters(linear, &f->view, FAST_WAITS, slow);
    assert_true(fast[0] && !fast[1]);
    assert_true(slow[1] && !slow[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_data_parallel),
        TEST(test_terms),
        TEST(test_buckets),
        TEST(test_scattered_buckets),
        TEST(test_inner),
        TEST(test_one_device),
        TEST(test_matters),
        TEST(test_segments),
        cmocka_unit_test(test_tied_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
