/* sim_memory against liveness counted by hand on a two-layer perceptron with Adam:
 *
 *     x[8,16] -> up(w1[32,16], b1) -> relu -> down(w2[4,32], b2) -> softmax -> loss */
#include "sim/sim.h"
#include "tests/test.h"

enum { B = 8, K = 16, H = 32, C = 4 };
enum { W1 = H * K, W2 = C * H, PARAMETERS = W1 + H + W2 + C };
static const Form I = FORM_IDENTITY, R = FORM_REDUCE, G0 = FORM_GATHER0;

typedef struct {
    Graph *graph;
    TensorId x, labels, w1, b1, w2, b2;
} Fixture;

static int setup(void **state)
{
    Fixture *f = g_new0(Fixture, 1);
    Graph *g = f->graph = graph_new("mlp");
    const OpAttr none = {0};

    f->x = graph_input(g, "x", DTYPE_F32, 2, (uint32_t[]){B, K});
    f->labels = graph_input(g, "labels", DTYPE_I64, 1, (uint32_t[]){B});
    f->w1 = graph_parameter(g, "w1", 2, (uint32_t[]){H, K});
    f->b1 = graph_parameter(g, "b1", 1, (uint32_t[]){H});
    f->w2 = graph_parameter(g, "w2", 2, (uint32_t[]){C, H});
    f->b2 = graph_parameter(g, "b2", 1, (uint32_t[]){C});
    TensorId y =
        graph_op(g, OP_LINEAR, "up", none, 3, (TensorId[]){f->x, f->w1, f->b1}, NULL);
    y = graph_op(g, OP_RELU, "relu", none, 1, &y, NULL);
    y = graph_op(g, OP_LINEAR, "down", none, 3, (TensorId[]){y, f->w2, f->b2}, NULL);
    y = graph_op(g, OP_LOG_SOFTMAX, "softmax", none, 1, &y, NULL);
    const TensorId loss =
        graph_op(g, OP_NLL_SUM, "loss", none, 2, (TensorId[]){y, f->labels}, NULL);
    graph_differentiate(g, loss, OPTIMIZER_ADAM);
    graph_seal(g);
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

static bool is_parameter_gradient(const Graph *g, TensorId tensor)
{
    const Tensor *t = graph_tensor(g, tensor);

    return t->role == ROLE_GRADIENT && graph_tensor(g, t->of)->role == ROLE_PARAMETER;
}

/* Batch sharded up to the gradients of the parameters; optimizer states rest in `state`.
 */
static Program *start(const Fixture *f, Form state)
{
    const Graph *g = f->graph;
    Program *p = program_new();

    for (TensorId t = 0; t < graph_n_tensors(g); t++) {
        const Tensor *tensor = graph_tensor(g, t);
        if (tensor->producer == GRAPH_NONE)
            program_load(p, t,
                         tensor->role == ROLE_OPTIMIZER               ? state
                         : tensor->role == ROLE_INPUT && tensor->rank ? G0
                                                                      : I);
    }
    for (OpId id = 0; id < graph_n_ops(g); id++) {
        const Op *op = graph_get_op(g, id);
        Form form[OP_MAX_OPERANDS];
        if (op->pass == PASS_UPDATE)
            continue;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(g, op->in[i]);
            form[i] = tensor->rank == 0 || tensor->role == ROLE_PARAMETER ? I : G0;
        }
        form[op->n_in] =
            is_parameter_gradient(g, op->out[0]) || graph_tensor(g, op->out[0])->rank == 0
                ? R
                : G0;
        program_compute(p, id, form, op->n_in + 1);
    }
    return p;
}

static Program *data_parallel(const Fixture *f)
{
    const Graph *g = f->graph;
    Program *p = start(f, I);

    for (TensorId t = 0; t < graph_n_tensors(g); t++)
        if (is_parameter_gradient(g, t))
            program_collective(p, COLLECTIVE_ALL_REDUCE, t, R, I);
    for (OpId id = 0; id < graph_n_ops(g); id++)
        if (graph_get_op(g, id)->pass == PASS_UPDATE)
            program_compute(p, id, (Form[]){I, I, I, I, I, I, I}, 7);
    return p;
}

/* ZeRO-1: states sharded; gradients reduce-scattered, the updated shards of parameters
 * gathered. */
static Program *zero(const Fixture *f)
{
    const Graph *g = f->graph;
    Program *p = start(f, G0);

    for (TensorId t = 0; t < graph_n_tensors(g); t++)
        if (is_parameter_gradient(g, t))
            program_collective(p, COLLECTIVE_REDUCE_SCATTER, t, R, G0);
    for (OpId id = 0; id < graph_n_ops(g); id++) {
        const Op *op = graph_get_op(g, id);
        if (op->pass != PASS_UPDATE)
            continue;
        program_collective(p, COLLECTIVE_SLICE, op->in[0], I, G0);
        program_compute(p, id, (Form[]){G0, G0, G0, G0, G0, G0, G0}, 7);
        program_collective(p, COLLECTIVE_ALL_GATHER, op->out[0], G0, I);
    }
    return p;
}

static SimMemory *memory_of(const Fixture *f, const Program *program,
                            const ClusterView *view, SimLinear **linear)
{
    g_autoptr(GError) error = NULL;

    program_check(program, f->graph, &error);
    assert_no_error(error);
    *linear = sim_linear(program, f->graph, view, NULL, 0);
    return sim_memory(program, f->graph, *linear, NULL, NULL);
}

static uint32_t instr_of(const Fixture *f, const Program *program, const char *op)
{
    for (uint32_t i = 0; i < program->n; i++)
        if (program->instr[i].kind == INSTR_COMPUTE &&
            strcmp(graph_get_op(f->graph, program->instr[i].op)->name, op) == 0)
            return i;
    fail_msg("no op %s", op);
    return 0;
}

/* Points that no other exceeds, in program order. relu works in place, all-reduces and
 * updates as well; the seed (4 bytes) lives to the loss's gradient, labels (8 bytes each)
 * too. */
static void test_data_parallel(void **state)
{
    const Fixture *f = *state;
    Device device[2] = {{.gpus = 4, .rate = 1}, {.gpus = 1, .rate = 1}};
    const ClusterView view = {.n_devices = 2, .device = device};
    g_autoptr(Program) program = data_parallel(f);
    g_autoptr(SimLinear) linear = NULL;
    g_autoptr(SimMemory) memory = memory_of(f, program, &view, &linear);
    const struct {
        const char *op;
        double held, divided, divided_sharded;
    } want[] = {
        /* x, h, z, y, labels */
        {"softmax", 12 * PARAMETERS, 4, 4 * B * (K + H + 2 * C) + 8 * B},
        /* x, h, y, labels; seed and loss */
        {"loss", 12 * PARAMETERS, 8, 4 * B * (K + H + C) + 8 * B},
        /* x, h, dz, dh */
        {"down.db", 12 * PARAMETERS + 4 * (W2 + C), 0, 4 * B * (K + 2 * H + C)},
        /* x, dh in relu's gradient's place; w2, b2 and w1 have gradients */
        {"up.dw", 12 * PARAMETERS + 4 * (W2 + C + W1), 0, 4 * B * (K + H)},
        {"up.db", 16 * PARAMETERS, 0, 4 * B * H},
    };

    assert_int_equal(memory->n_splits, 1);
    assert_int_equal(memory->n_points, G_N_ELEMENTS(want));
    for (uint32_t p = 0; p < memory->n_points; p++) {
        assert_int_equal(memory->instr[p], instr_of(f, program, want[p].op));
        assert_true(memory->held[p] == want[p].held);
        assert_true(memory->held_sharded[p] == 0);
        assert_true(memory->divided[p] == want[p].divided);
        assert_true(memory->divided_sharded[p] == want[p].divided_sharded);
    }

    const double share[] = {0.75, 0.25};
    uint32_t point;
    assert_close(sim_memory_peak(memory, &view, share, 0, &point),
                 16 * PARAMETERS + 4 * B * H * 0.75 / 4, 1e-12);
    assert_int_equal(point, 4);
    /* A plan fits if it does on every device. */
    for (uint32_t little = 0; little <= 2; little++) {
        for (uint32_t j = 0; j < 2; j++)
            device[j].memory_bytes = j == little ? 16 * PARAMETERS : 1 << 30;
        assert_int_equal(sim_memory_fits(memory, &view, share), little == 2);
    }
    assert_close(sim_memory_peak(memory, &view, share, 1, NULL),
                 16 * PARAMETERS + 4 * B * H * 0.25, 1e-12);
}

/* Of every parameter: 4 bytes whole and 8 sharded at rest, 4 whole for gradients; a
 * gradient's shard is new while it is scattered; the slices and updates need nothing. */
static void test_zero(void **state)
{
    const Fixture *f = *state;
    Device device[2] = {{.gpus = 1, .rate = 1}, {.gpus = 1, .rate = 1}};
    const ClusterView view = {.n_devices = 2, .device = device};
    g_autoptr(Program) program = zero(f);
    g_autoptr(SimLinear) linear = NULL;
    g_autoptr(SimMemory) memory = memory_of(f, program, &view, &linear);
    double last_whole = 0, last_sharded = 0, states = 0;

    for (uint32_t p = 0; p < memory->n_points; p++) {
        double sharded = 0;
        for (uint32_t k = 0; k < memory->n_splits; k++)
            sharded += memory->held_sharded[p * memory->n_splits + k];
        if (p == 0)
            states = sharded;
        if (program->instr[memory->instr[p]].kind == INSTR_COLLECTIVE) {
            last_whole = memory->held[p];
            last_sharded = sharded;
        }
        assert_true(program->instr[memory->instr[p]].kind != INSTR_COMPUTE ||
                    graph_get_op(f->graph, program->instr[memory->instr[p]].op)->pass !=
                        PASS_UPDATE);
    }
    assert_true(states == 8 * PARAMETERS);
    /* The last one scattered is b1 (bias of the first layer), when all others have been;
     * it dies there. */
    assert_true(last_whole == 4 * PARAMETERS + 4 * H);
    assert_true(last_sharded == 12 * PARAMETERS);
}

/* An all-reduce whose input is still used needs a second buffer; a dead one does not. */
static void test_all_reduce_in_place(void **state)
{
    const Fixture *f = *state;
    Device device[2] = {{.gpus = 1, .rate = 1}, {.gpus = 1, .rate = 1}};
    const ClusterView view = {.n_devices = 2, .device = device};
    g_autoptr(Program) program = data_parallel(f);
    const TensorId dw = graph_gradient(f->graph, f->w1);

    /* A use of dw|reduce after its all-reduce keeps it alive to the end. */
    program_collective(program, COLLECTIVE_REDUCE_SCATTER, dw, R, G0);
    g_autoptr(SimLinear) linear = NULL;
    g_autoptr(SimMemory) memory = memory_of(f, program, &view, &linear);
    double most = 0;
    for (uint32_t p = 0; p < memory->n_points; p++)
        most = fmax(most, memory->held[p]);
    assert_true(most == 16 * PARAMETERS + 4 * W1);
}

/* An old value that is used after its update keeps its buffer, and the new one lives
 * beside it to the end. */
static void test_old_value_used_after_update(void **state)
{
    const Fixture *f = *state;
    Device device[2] = {{.gpus = 1, .rate = 1}, {.gpus = 1, .rate = 1}};
    const ClusterView view = {.n_devices = 2, .device = device};
    g_autoptr(Program) program = data_parallel(f);

    program_collective(program, COLLECTIVE_REDUCE_SCATTER,
                       graph_gradient(f->graph, f->w1), R, G0);
    program_collective(program, COLLECTIVE_SLICE, f->w1, I, G0);
    g_autoptr(SimLinear) linear = NULL;
    g_autoptr(SimMemory) memory = memory_of(f, program, &view, &linear);
    /* At the last but one: all at rest, dw1 as partial sums and its shard, the new w1. */
    const uint32_t last = memory->n_points - 1;
    assert_int_equal(memory->instr[last], program->n - 2);
    assert_true(memory->held[last] == 12 * PARAMETERS + 8 * W1);
}

/* A view needs no memory of its own: merge(x) and x are one. */
static void test_views(void **state)
{
    const OpAttr none = {0};
    g_autoptr(Graph) g = graph_new("views");
    const TensorId labels = graph_input(g, "labels", DTYPE_I64, 1, (uint32_t[]){B});
    const TensorId w = graph_parameter(g, "w", 2, (uint32_t[]){4, 24});
    TensorId y = graph_input(g, "x", DTYPE_F32, 3, (uint32_t[]){B, 6, 4});
    y = graph_op(g, OP_MERGE, "merge", none, 1, &y, "n=24");
    y = graph_op(g, OP_LINEAR, "linear", none, 2, (TensorId[]){y, w}, NULL);
    y = graph_op(g, OP_NLL_SUM, "loss", none, 2, (TensorId[]){y, labels}, NULL);
    Device device = {.gpus = 1, .rate = 1};
    const ClusterView view = {.n_devices = 1, .device = &device};
    g_autoptr(Program) program = program_new();

    (void)state;
    graph_differentiate(g, y, OPTIMIZER_SGD);
    graph_seal(g);
    for (TensorId t = 0; t < graph_n_tensors(g); t++)
        if (graph_tensor(g, t)->producer == GRAPH_NONE)
            program_load(program, t, I);
    for (OpId id = 0; id < graph_n_ops(g); id++)
        program_compute(program, id, (Form[OP_MAX_OPERANDS]){I}, OP_MAX_OPERANDS);
    g_autoptr(SimLinear) linear = sim_linear(program, g, &view, NULL, 0);
    g_autoptr(SimMemory) memory = sim_memory(program, g, linear, NULL, NULL);
    /* x once; y, labels, seed, loss at the loss; x, dy, dw at the end of the backward. */
    const double share[] = {1};
    assert_int_equal(memory->n_splits, 0);
    assert_close(sim_memory_peak(memory, &view, share, 0, NULL),
                 4 * 96 + fmax(4 * B * (24 + 4) + 8 * B + 8, 4 * B * (24 + 4) + 4 * 96),
                 1e-12);
}

/* A tensor that is dropped and gathered again does not live in between. */
static void test_gathered_twice(void **state)
{
    const Fixture *f = *state;
    Device device[2] = {{.gpus = 1, .rate = 1}, {.gpus = 1, .rate = 1}};
    const ClusterView view = {.n_devices = 2, .device = device};
    g_autoptr(Program) once = data_parallel(f), twice = program_new();
    const TensorId w2 = f->w2;

    /* w2 rests in shards; it is gathered for `down`, and again for its gradient where
     * `twice` says so. */
    for (uint32_t i = 0; i < once->n; i++) {
        Instr *instr = &once->instr[i];
        if (instr->kind == INSTR_LOAD && instr->tensor == w2) {
            program_load(twice, w2, G0);
            continue;
        }
        const char *name =
            instr->kind == INSTR_COMPUTE ? graph_get_op(f->graph, instr->op)->name : "";
        if (strcmp(name, "down") == 0 || strcmp(name, "down.dx") == 0 ||
            strcmp(name, "w2.update") == 0)
            program_collective(twice, COLLECTIVE_ALL_GATHER, w2, G0, I);
        if (instr->kind == INSTR_LOAD)
            program_load(twice, instr->tensor, instr->to);
        else if (instr->kind == INSTR_COMPUTE)
            program_compute(twice, instr->op, instr->form, OP_MAX_OPERANDS);
        else
            program_collective(twice, instr->collective, instr->tensor, instr->from,
                               instr->to);
    }
    program_collective(twice, COLLECTIVE_SLICE, graph_updated(f->graph, w2), I, G0);
    g_autoptr(SimLinear) linear = NULL;
    g_autoptr(SimMemory) memory = memory_of(f, twice, &view, &linear);
    double at_loss = 0;
    for (uint32_t p = 0; p < memory->n_points; p++)
        if (memory->instr[p] == instr_of(f, twice, "loss"))
            at_loss = memory->held[p];
    assert_true(at_loss == 12 * PARAMETERS - 4 * W2);
}

/* --- floors --- */

/* Whether parts of a program that sum to 1 fit the devices: of part x a GPU of device j holds
 * x held + x divided / gpus. */
static bool parts_fit(const SimMemoryFloor *floor, const ClusterView *view)
{
    double most = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        most += (double)view->device[j].memory_bytes /
                (floor->held_bytes + floor->divided_bytes / view->device[j].gpus);
    return most >= 1;
}

/* A floor refuses nothing that fits, and on equal devices accepts nothing else. */
static void test_floors(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);
    uint32_t refused = 0, fits = 0;
    for (uint32_t round = 0; round < 4000; round++) {
        Device device[4] = {0};
        const bool alike = g_rand_boolean(rand);
        const ClusterView view = {.n_devices = (uint32_t)g_rand_int_range(rand, 1, 5),
                                  .device = device};
        for (uint32_t j = 0; j < view.n_devices; j++) {
            device[j].gpus = (uint32_t)g_rand_int_range(rand, 1, 9);
            device[j].memory_bytes = (uint64_t)g_rand_int_range(rand, 1, 1 << 20);
            if (alike && j > 0)
                device[j] = device[0];
        }
        const SimMemoryFloor floor = {.held_bytes = g_rand_double_range(rand, 1, 1 << 20),
                                      .divided_bytes =
                                          g_rand_double_range(rand, 1, 1 << 22)};
        const bool may = sim_memory_floor_fits(&floor, &view),
                   can = parts_fit(&floor, &view);
        assert_true(may || !can);
        assert_true(!alike || may == can);
        refused += !may;
        fits += can;
    }
    assert_true(refused > 500 && fits > 500);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_data_parallel),       TEST(test_zero),
        TEST(test_all_reduce_in_place), TEST(test_old_value_used_after_update),
        cmocka_unit_test(test_views),   TEST(test_gathered_twice),
        cmocka_unit_test(test_floors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
