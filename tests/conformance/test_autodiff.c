/* The gradients of graph_differentiate, run by the reference backend and compared with central
 * differences of the loss: for each differentiable op kind, for a parameter with several uses, and
 * for all models with dropout active. Updates are compared with their formulas. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/conformance/sample.h"

/* Relative to the larger of both numbers, or to NOISE_FLOOR below which a difference
 * of losses is rounding. */
static const double TOLERANCE = 1e-6, NOISE_FLOOR = 1e-3;
static const double STEP = 2e-5;
enum { SEEDS = 6, ENTRIES_OF_OP = 6, ENTRIES_OF_MODEL = 2, MAX_REDRAWS = 20 };

static const OpKind FORWARD[] = {
    OP_LINEAR,
    OP_EMBEDDING,
    OP_LAYER_NORM,
    OP_GELU,
    OP_RELU,
    OP_DROPOUT,
    OP_ADD,
    OP_ADD_ROWS,
    OP_SPLIT,
    OP_MERGE,
    OP_TRANSPOSE,
    OP_RESHAPE,
    OP_QKV,
    OP_ATTENTION,
    OP_OUT_PROJ,
    OP_CONV2D,
    OP_MAX_POOL2D,
    OP_AVG_POOL2D,
    OP_APPEND_TOKEN,
    OP_TAKE_TOKEN,
    OP_GATE_TOP2,
    OP_MOE_DISPATCH,
    OP_MOE_COMBINE,
    OP_EXPERT,
    OP_LOG_SOFTMAX,
    OP_NLL_SUM,
    OP_GATE_TOP1,
    OP_CROSS_ENTROPY,
    OP_TIED,
    OP_MOMENTS,
    OP_BATCH_NORM,
    OP_CONCAT,
    OP_SPLIT_CHANNELS,
    OP_MERGE_CHANNELS,
    OP_GROUP_CONV2D,
    OP_SIGMOID_LOSS,
    OP_SMOOTH_NLL_SUM,
    OP_RMS_NORM,
    OP_KEY_NORM,
    OP_SILU,
    OP_LINEAR_PAIR,
    OP_SWIGLU,
    OP_GEGLU,
    OP_ROTARY,
    OP_Q_PROJ,
    OP_KV_PROJ,
    OP_JOIN_KEYS,
    OP_GROUPED_ATTENTION,
    OP_FUSED_ATTENTION,
    OP_GROUPED_OUT,
    OP_GATE_TOPK,
    OP_ROUTE,
    OP_UNROUTE,
    OP_ROUTE_WEIGH,
    OP_EXPERT_PAIR,
    OP_EXPERT_BIAS,
    OP_OPAQUE,
    OP_OPAQUE_WEIGHTS,
    OP_OPAQUE_WHOLE,
    OP_OPAQUE_WHOLE_WEIGHTS,
    OP_OPAQUE_LOSS,
    OP_RELU2,
    OP_MULTIPLY,
    OP_GATE,
    OP_HEAD_SCALE,
    OP_SHORT_CONV,
    OP_SCAN_GATES,
    OP_SCAN,
    OP_DELTA_SCAN,
    OP_LINEAR_ATTENTION,
    OP_GROUP_NORM,
    OP_SQUARES,
    OP_NORM_BY,
    OP_JOIN,
    OP_SPARSE_ATTENTION,
    OP_SELECTIVE_SCAN,
    OP_WKV,
    OP_DELTA_WKV,
    OP_BONUS,
    OP_TOKEN_SHIFT,
    OP_CHANNEL_SCALE,
    OP_CHANNEL_BIAS,
    OP_TANH,
    OP_SCALE,
    OP_SAMPLE_SCALE,
    OP_SAMPLE_BIAS,
    OP_PLAIN_NORM,
    OP_PART,
    OP_RELATIVE_ATTENTION,
    OP_SQUARE_LOSS,
};

static bool close_to(double a, double b)
{
    return fabs(a - b) <= TOLERANCE * fmax(NOISE_FLOOR, fmax(fabs(a), fabs(b)));
}

/* The loss with value[t].data[i] moved by `delta`; activations are computed again. */
static double loss_at(const Graph *graph, ExecTensor *value, TensorId t, uint64_t i,
                      double delta)
{
    const double before = value[t].data[i];
    value[t].data[i] += delta;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->pass != PASS_FORWARD)
            continue;
        ExecTensor in[OP_MAX_IN], out[OP_MAX_OUT];
        for (uint32_t k = 0; k < op->n_in; k++)
            in[k] = value[op->in[k]];
        for (uint32_t k = 0; k < op->n_out; k++)
            out[k] = value[op->out[k]];
        exec_run_op(graph, id, in, out);
    }
    value[t].data[i] = before;
    return value[graph_loss(graph)].data[0];
}

static double central_difference(const Graph *graph, ExecTensor *value, TensorId t,
                                 uint64_t i, double step)
{
    return (loss_at(graph, value, t, i, step) - loss_at(graph, value, t, i, -step)) /
           (2 * step);
}

/* Compares `n` random entries of the gradient of parameter `t`. Where two steps
 * disagree, the loss has a kink (of relu, a maximum, a routing) between them, and
 * another entry is drawn. Returns the largest gradient seen. */
static double check_parameter(const Graph *graph, ExecTensor *value, TensorId t,
                              uint32_t n, GRand *random)
{
    const ExecTensor *gradient = &value[graph_gradient(graph, t)];
    const uint64_t size = exec_tensor_elements(gradient);
    double largest = 0;
    for (uint32_t k = 0, redraws = 0; k < n; k++) {
        const uint64_t i = (uint64_t)g_rand_int_range(random, 0, (gint32)size);
        const double got = gradient->data[i];
        const double want = central_difference(graph, value, t, i, STEP);
        largest = fmax(largest, fabs(want));
        if (close_to(got, want))
            continue;
        const double finer = central_difference(graph, value, t, i, STEP / 2);
        /* Richardson's extrapolation: free of the error of second order in the step. */
        if (close_to(got, (4 * finer - want) / 3))
            continue;
        if (close_to(want, finer) || ++redraws == MAX_REDRAWS)
            fail_msg(
                "%s, %s[%u]: gradient %.12g, difference quotient %.12g (finer %.12g)",
                graph_name(graph), graph_tensor(graph, t)->name, (unsigned)i, got, want,
                finer);
        k--;
    }
    return largest;
}

/* Counts of checked parameters, and of those with a gradient above the noise among the drawn
 * entries. */
typedef struct {
    uint32_t checked, alive;
} Tally;

static void check_graph(const Graph *graph, ExecTensor *value, uint32_t entries,
                        GRand *random, Tally *tally)
{
    exec_run_graph(graph, value);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_PARAMETER &&
            !graph_tensor(graph, t)->frozen) {
            assert_true(graph_gradient(graph, t) != GRAPH_NONE);
            tally->checked++;
            tally->alive +=
                check_parameter(graph, value, t, entries, random) > NOISE_FLOOR;
        }
}

/* Comparing zero with zero proves nothing. */
static void check_tally(const Tally *tally, const char *what)
{
    if (2 * tally->alive < tally->checked)
        fail_msg("%s: only %u of %u parameters have a gradient that can be checked", what,
                 tally->alive, tally->checked);
}

/* A loss that weighs every element of `y`: its log-softmax at random labels. */
static TensorId append_loss(Graph *graph, TensorId y)
{
    const Tensor tensor = *graph_tensor(graph, y);
    const TensorId labels =
        graph_input(graph, "labels", DTYPE_I64, tensor.rank - 1, tensor.dim);
    const TensorId logp =
        graph_op(graph, OP_LOG_SOFTMAX, "logp", (OpAttr){0}, 1, &y, NULL);
    return graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){logp, labels},
                    NULL);
}

static void check_kind(OpKind kind, uint32_t seed, bool seen[OP_KINDS], Tally *tally)
{
    GRand *random = g_rand_new_with_seed(seed);
    g_autoptr(Graph) graph = graph_new(op_kind_name(kind));
    graph_set_precision(graph, (Precision)((seed + kind) / OPTIMIZERS % PRECISIONS));
    const OpId id = sample_op(graph, kind, 2, true, random);
    TensorId loss = graph_get_op(graph, id)->out[0];
    if (graph_tensor(graph, loss)->role != ROLE_LOSS)
        loss = append_loss(graph, loss);
    graph_differentiate(graph, loss, (Optimizer)((seed + kind) % OPTIMIZERS));
    graph_seal(graph);
    for (OpId i = 0; i < graph_n_ops(graph); i++)
        seen[graph_get_op(graph, i)->kind] = true;
    ExecTensor *value = exec_values_new(graph, g_rand_int(random));
    check_graph(graph, value, ENTRIES_OF_OP, random, tally);
    exec_values_free(graph, value);
    g_rand_free(random);
}

/* Together with their backward and update ops the forward kinds are the whole table. */
static void test_every_forward_kind(void **state)
{
    (void)state;
    bool seen[OP_KINDS] = {false};
    for (uint32_t k = 0; k < G_N_ELEMENTS(FORWARD); k++) {
        Tally tally = {0};
        for (uint32_t seed = 0; seed < SEEDS; seed++)
            check_kind(FORWARD[k], seed, seen, &tally);
        check_tally(&tally, op_kind_name(FORWARD[k]));
    }
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        /* the gradient of a choice is 0; a product alone is the head, which Adam updates */
        if (!seen[kind] && kind != OP_TOP_KEYS && kind != OP_TOP_KEYS_DX &&
            !g_str_has_prefix(op_kind_name(kind), "muon"))
            fail_msg("%s was not differentiated and is in no gradient",
                     op_kind_name(kind));
}

/* z = linear(gelu(y), w) + y + y, y = linear(x, w): w has two consumers, y three uses. */
static void test_several_consumers_accumulate(void **state)
{
    (void)state;
    GRand *random = g_rand_new_with_seed(1);
    g_autoptr(Graph) graph = graph_new("tied weights");
    const TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){3, 4});
    const TensorId w = graph_parameter(graph, "w", 2, (uint32_t[]){4, 4});
    const OpAttr none = {0};
    const TensorId y = graph_op(graph, OP_LINEAR, "y", none, 2, (TensorId[]){x, w}, NULL);
    const TensorId a = graph_op(graph, OP_GELU, "a", none, 1, &y, NULL);
    const TensorId b = graph_op(graph, OP_LINEAR, "b", none, 2, (TensorId[]){a, w}, NULL);
    const TensorId c = graph_op(graph, OP_ADD, "c", none, 2, (TensorId[]){y, y}, NULL);
    const TensorId z = graph_op(graph, OP_ADD, "z", none, 2, (TensorId[]){b, c}, NULL);
    graph_differentiate(graph, append_loss(graph, z), OPTIMIZER_SGD);
    graph_seal(graph);
    ExecTensor *value = exec_values_new(graph, g_rand_int(random));
    Tally tally = {0};
    check_graph(graph, value, 16, random, &tally);
    check_tally(&tally, graph_name(graph));
    exec_values_free(graph, value);
    g_rand_free(random);
}

/* Mean of the squares of the gradient over the row (stride 1) or the column of entry i. */
static double mean_square(const double *g, uint64_t first, uint64_t n, uint64_t stride)
{
    double sum = 0;
    for (uint64_t k = 0; k < n; k++)
        sum += g[first + k * stride] * g[first + k * stride];
    return sum / (double)n;
}

/* Adafactor by its definition, at its second step: V = R C / mean(R), U = g / sqrt(V), and a step
 * of U / max(1, RMS(U)). */
static void check_adafactor(const Graph *graph, const ExecTensor *value, TensorId t,
                            const Op *op)
{
    const double keep = 1 - pow(2, -0.8), rate = 1e-3;
    const Tensor *p = graph_tensor(graph, t);
    const uint64_t cols = p->dim[p->rank - 1], rows = p->dim[p->rank - 2];
    const double *g = value[op->in[1]].data, *next = value[op->out[0]].data;
    for (uint64_t m = 0; m < tensor_elements(p) / (rows * cols); m++) {
        const uint64_t at = m * rows * cols;
        const double *r = value[op->out[1]].data + m * rows,
                     *c = value[op->out[2]].data + m * cols;
        double mean = 0, square = 0;
        for (uint64_t i = 0; i < rows; i++) {
            assert_close(r[i],
                         keep * value[op->in[2]].data[m * rows + i] +
                             (1 - keep) * mean_square(g, at + i * cols, cols, 1),
                         1e-12);
            mean += r[i] / (double)rows;
        }
        for (uint64_t j = 0; j < cols; j++)
            assert_close(c[j],
                         keep * value[op->in[3]].data[m * cols + j] +
                             (1 - keep) * mean_square(g, at + j, rows, cols),
                         1e-12);
        for (uint64_t k = 0; k < rows * cols; k++)
            square += g[at + k] * g[at + k] * mean / (r[k / cols] * c[k % cols]);
        const double clip = fmax(1, sqrt(square / (double)(rows * cols)));
        for (uint64_t k = 0; k < rows * cols; k++)
            assert_close(next[at + k],
                         value[t].data[at + k] -
                             rate * g[at + k] / clip /
                                 sqrt(r[k / cols] * c[k % cols] / mean),
                         1e-12);
    }
}

/* The next value of every parameter by the optimizer's formula at its first step. */
static void check_updates(const Graph *graph, const ExecTensor *value)
{
    const double rate = 1e-3, beta1 = 0.9, beta2 = 0.999;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        if (graph_tensor(graph, t)->role != ROLE_PARAMETER ||
            graph_tensor(graph, t)->frozen)
            continue;
        const TensorId next = graph_updated(graph, t);
        const Op *op = graph_get_op(graph, graph_tensor(graph, next)->producer);
        if (op->kind == OP_ADAFACTOR) {
            check_adafactor(graph, value, t, op);
            continue;
        }
        if (g_str_has_prefix(op_kind_name(op->kind), "muon"))
            continue; /* tests/unit/test_kernels.c */
        for (uint64_t i = 0; i < exec_tensor_elements(&value[t]); i++) {
            const double g = value[graph_gradient(graph, t)].data[i];
            double step = g;
            if (op->kind == OP_LION) {
                const double m = 0.9 * value[op->in[2]].data[i] + 0.1 * g;
                step = (m > 0) - (m < 0);
            }
            if (op->kind == OP_ADAFACTOR_VECTOR)
                step = g / sqrt(value[op->out[1]].data[i]);
            const bool decays = op->kind == OP_ADAMW || op->kind == OP_ADAMW_MASTER;
            if (op->kind == OP_ADAM || op->kind == OP_ADAM_MASTER || decays) {
                const double m = beta1 * value[op->in[2]].data[i] + (1 - beta1) * g;
                const double v = beta2 * value[op->in[3]].data[i] + (1 - beta2) * g * g;
                assert_close(value[graph_updated(graph, op->in[2])].data[i], m, 1e-12);
                assert_close(value[graph_updated(graph, op->in[3])].data[i], v, 1e-12);
                step = m / (1 - beta1) / (sqrt(v / (1 - beta2)) + 1e-8) +
                       (decays ? 0.01 * value[t].data[i] : 0);
            }
            assert_close(value[next].data[i], value[t].data[i] - rate * step, 1e-12);
        }
    }
}

static void test_models(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < G_N_ELEMENTS(SAMPLE_MODELS); m++) {
        GRand *random = g_rand_new_with_seed(m);
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(SAMPLE_MODELS[m], 2, NULL, &error);
        assert_no_error(error);
        ExecTensor *value = exec_values_new(graph, g_rand_int(random));
        Tally tally = {0};
        check_graph(graph, value, ENTRIES_OF_MODEL, random, &tally);
        check_tally(&tally, graph_name(graph));
        check_updates(graph, value);
        exec_values_free(graph, value);
        g_rand_free(random);
    }
}

/* A cross entropy of logits x, whose normaliser is that of `sum` shifted by the logits of `shift`,
 * under the logarithm shifted by those of `last`; each 0: of x and the labels, 1: of other
 * logits, 2: of other labels. */
static void differentiate_loss(int sum, int shift, int last)
{
    const OpAttr none = {0};
    g_autoptr(Graph) graph = graph_new("loss");
    const uint32_t dim[] = {4, 7};
    const TensorId w[] = {graph_parameter(graph, "x", 2, dim),
                          graph_parameter(graph, "z", 2, dim)};
    const TensorId labels[] = {graph_input(graph, "labels", DTYPE_I64, 1, dim),
                               graph_input(graph, "others", DTYPE_I64, 1, dim)};
    TensorId t[3];
    for (int i = 0; i < 3; i++) {
        g_autofree char *name = g_strdup_printf("t%d", i);
        t[i] = graph_op(graph, OP_LABEL_LOGIT, name, none, 2,
                        (TensorId[]){w[i == 1], labels[i == 2]}, NULL);
    }
    const TensorId s =
        graph_op(graph, OP_SUM_EXP, "s", none, 2, (TensorId[]){w[sum], t[shift]}, NULL);
    const TensorId z =
        graph_op(graph, OP_LOG_SUM_EXP, "n", none, 2, (TensorId[]){s, t[last]}, NULL);
    const TensorId loss = graph_op(graph, OP_CROSS_ENTROPY, "loss", none, 3,
                                   (TensorId[]){w[0], labels[0], z}, NULL);
    graph_differentiate(graph, loss, OPTIMIZER_SGD);
}

/* The gradient of a cross entropy holds for its own normaliser only, so no other one is
 * differentiated. */
static void test_other_normalisers(void **state)
{
    (void)state;
    static const int wrong[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 2, 0},
                                   {0, 0, 2}, {0, 1, 1}, {0, 2, 2}, {1, 1, 1}};
    differentiate_loss(0, 0, 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            const struct rlimit no_core = {0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO);
            differentiate_loss(wrong[i][0], wrong[i][1], wrong[i][2]);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_forward_kind),
        cmocka_unit_test(test_several_consumers_accumulate),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_other_normalisers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
