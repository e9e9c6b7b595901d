/* Values of the reference backend's kernels where they are known independently: small
 * numbers by hand, closed forms, and properties. (That kernels agree on shards and
 * with their gradients is proved in tests/conformance.) */
#include "exec/exec.h"
#include "exec/half.h"
#include "tests/test.h"

/* An input of the op: {rank, {dims}, elements}. */
typedef struct {
    uint32_t rank;
    uint32_t dim[TENSOR_MAX_RANK];
    const double *data;
} Input;

/* Runs one op; its outputs belong to the caller. */
static void run_one(OpKind kind, OpAttr attr, const char *extents, uint32_t n_in,
                    const Input *input, ExecTensor out[OP_MAX_OUT])
{
    g_autoptr(Graph) graph = graph_new("one op");
    TensorId id[OP_MAX_IN];
    ExecTensor in[OP_MAX_IN];
    for (uint32_t i = 0; i < n_in; i++) {
        g_autofree char *name = g_strdup_printf("in%u", i);
        id[i] = graph_input(graph, name, DTYPE_F64, input[i].rank, input[i].dim);
        in[i] = exec_tensor_new(input[i].rank, input[i].dim);
        memcpy(in[i].data, input[i].data, exec_tensor_elements(&in[i]) * sizeof(double));
    }
    graph_op(graph, kind, "op", attr, n_in, id, extents);
    graph_seal(graph);
    const Op *op = graph_get_op(graph, 0);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Tensor *tensor = graph_tensor(graph, op->out[o]);
        out[o] = exec_tensor_new(tensor->rank, tensor->dim);
    }
    exec_run_op(graph, 0, in, out);
    for (uint32_t i = 0; i < n_in; i++)
        exec_tensor_clear(&in[i]);
}

/* Runs an op of one output and compares it with `want`. */
static void expect(OpKind kind, OpAttr attr, const char *extents, uint32_t n_in,
                   const Input *input, const double *want, uint32_t n_want)
{
    ExecTensor out[OP_MAX_OUT] = {0};
    run_one(kind, attr, extents, n_in, input, out);
    assert_int_equal(exec_tensor_elements(&out[0]), n_want);
    for (uint32_t i = 0; i < n_want; i++)
        assert_close(out[0].data[i], want[i], 1e-12);
    for (uint32_t o = 0; o < OP_MAX_OUT; o++)
        exec_tensor_clear(&out[o]);
}

#define NUMBERS(...) ((const double[]){__VA_ARGS__})
#define EXPECT(kind, attr, extents, inputs, ...)                      \
    expect(kind, (OpAttr)attr, extents, G_N_ELEMENTS(inputs), inputs, \
           NUMBERS(__VA_ARGS__), G_N_ELEMENTS(NUMBERS(__VA_ARGS__)))
#define NO_ATTR \
    {           \
        0       \
    }

static void test_linear(void **state)
{
    (void)state;
    const Input in[] = {{2, {2, 2}, NUMBERS(1, 2, 3, 4)},
                        {2, {3, 2}, NUMBERS(1, 0, 0, 1, 1, -1)},
                        {1, {3}, NUMBERS(10, 20, 30)}};
    EXPECT(OP_LINEAR, NO_ATTR, NULL, in, 11, 22, 29, 13, 24, 29);
}

/* x 3x3 of 1..9, a 2x2 kernel, stride 2, padding 1: the corners of the image meet one
 * tap each. */
static void test_conv2d_stride_and_padding(void **state)
{
    (void)state;
    const Input in[] = {{4, {1, 1, 3, 3}, NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9)},
                        {4, {1, 1, 2, 2}, NUMBERS(1, 10, 100, 1000)},
                        {1, {1}, NUMBERS(0.5)}};
    const OpAttr attr = {.stride = 2, .padding = 1, .padding_columns = 1};
    const double want[] = {1000 * 1 + 0.5, 100 * 2 + 1000 * 3 + 0.5,
                           10 * 4 + 1000 * 7 + 0.5,
                           5 + 10 * 6 + 100 * 8 + 1000 * 9 + 0.5};
    expect(OP_CONV2D, attr, "P=2,Q=2", 3, in, want, 4);
}

static void test_pooling(void **state)
{
    (void)state;
    const Input row[] = {{4, {1, 1, 1, 5}, NUMBERS(4, 2, 6, 8, 1)}};
    const OpAttr window = {.window = 1, .stride = 2};
    expect(OP_MAX_POOL2D, window, "P=1,Q=3", 1, row, NUMBERS(4, 6, 1), 3);
    const Input square[] = {{4, {1, 1, 2, 2}, NUMBERS(4, 2, 6, 8)}};
    expect(OP_MAX_POOL2D, (OpAttr){.window = 2, .stride = 2}, "P=1,Q=1", 1, square,
           NUMBERS(8), 1);
    /* Adaptive, 5 to 3: spans [0,2), [1,4), [3,5). 1 to 3: the one element thrice. */
    EXPECT(OP_AVG_POOL2D, NO_ATTR, "P=1,Q=3", row, 3, 16.0 / 3, 4.5);
    const Input one[] = {{4, {1, 1, 1, 1}, NUMBERS(7)}};
    EXPECT(OP_AVG_POOL2D, NO_ATTR, "P=1,Q=3", one, 7, 7, 7);
    /* Of equal elements the first gets the gradient. */
    const Input tie[] = {{4, {1, 1, 1, 1}, NUMBERS(3)},
                         {4, {1, 1, 2, 2}, NUMBERS(1, 5, 5, 5)}};
    expect(OP_MAX_POOL2D_DX, (OpAttr){.window = 2, .stride = 2}, NULL, 2, tie,
           NUMBERS(0, 3, 0, 0), 4);
}

static void test_pointwise(void **state)
{
    (void)state;
    /* x Phi(x) at 0, 1, -1, with Phi(1) = 0.841344746068542948... (Abramowitz and
     * Stegun 26.2). */
    const Input x[] = {{1, {3}, NUMBERS(0, 1, -1)}};
    EXPECT(OP_GELU, NO_ATTR, NULL, x, 0, 0.841344746068542948, -0.158655253931457052);
    const Input dx[] = {{1, {1}, NUMBERS(2)}, {1, {1}, NUMBERS(0)}};
    EXPECT(OP_GELU_DX, NO_ATTR, NULL, dx, 1);
    EXPECT(OP_RELU, NO_ATTR, NULL, x, 0, 1, 0);
    const Input rows[] = {{2, {2, 2}, NUMBERS(1, 2, 3, 4)}, {1, {2}, NUMBERS(10, 20)}};
    EXPECT(OP_ADD_ROWS, NO_ATTR, NULL, rows, 11, 22, 13, 24);
    const Input split[] = {{1, {4}, NUMBERS(1, 2, 3, 4)}};
    EXPECT(OP_SPLIT, NO_ATTR, "n=2,D=2", split, 1, 2, 3, 4);
    const Input transpose[] = {{2, {2, 3}, NUMBERS(1, 2, 3, 4, 5, 6)}};
    EXPECT(OP_TRANSPOSE, NO_ATTR, NULL, transpose, 1, 4, 2, 5, 3, 6);
}

static void test_normalisation(void **state)
{
    (void)state;
    /* mean 2, variance 1 */
    const double r = 1 / sqrt(1 + 1e-5);
    const Input norm[] = {{2, {1, 2}, NUMBERS(1, 3)},
                          {1, {2}, NUMBERS(10, 100)},
                          {1, {2}, NUMBERS(0.5, 0.25)}};
    EXPECT(OP_LAYER_NORM, NO_ATTR, NULL, norm, -10 * r + 0.5, 100 * r + 0.25);
    const Input soft[] = {{1, {3}, NUMBERS(1000, 1000 + log(2), 1000 + log(5))}};
    EXPECT(OP_LOG_SOFTMAX, NO_ATTR, NULL, soft, log(1.0 / 8), log(2.0 / 8), log(5.0 / 8));
}

static void test_vocabulary(void **state)
{
    (void)state;
    const Input look[] = {{1, {3}, NUMBERS(2, 0, 2)},
                          {2, {3, 2}, NUMBERS(1, 2, 3, 4, 5, 6)}};
    EXPECT(OP_EMBEDDING, NO_ATTR, NULL, look, 5, 6, 1, 2, 5, 6);
    const Input back[] = {{2, {3, 1}, NUMBERS(1, 2, 4)}, {1, {3}, NUMBERS(2, 0, 2)}};
    EXPECT(OP_EMBEDDING_DW, NO_ATTR, "v=3", back, 2, 0, 5);
    const Input loss[] = {{2, {2, 2}, NUMBERS(-1, -2, -3, -4)}, {1, {2}, NUMBERS(1, 0)}};
    EXPECT(OP_NLL_SUM, NO_ATTR, NULL, loss, 5);
    const Input seed[] = {{0, {0}, NUMBERS(1)}, {1, {2}, NUMBERS(1, 0)}};
    EXPECT(OP_NLL_SUM_DX, NO_ATTR, "v=2", seed, 0, -1, -1, 0);
}

/* Logits of probabilities 1/8, 2/8, 5/8, shifted far, and labels 1, 2. */
static void test_cross_entropy(void **state)
{
    (void)state;
    const double *x = NUMBERS(900, 900 + log(2), 900 + log(5), -900, -900 + log(2),
                              -900 + log(5)),
                 *label = NUMBERS(1, 2), *t = NUMBERS(900 + log(2), -900 + log(5)),
                 *s = NUMBERS(8.0 / 2, 8.0 / 5),
                 *z = NUMBERS(900 + log(8), -900 + log(8));
    const Input logit[] = {{2, {2, 3}, x}, {1, {2}, label}};
    EXPECT(OP_LABEL_LOGIT, NO_ATTR, NULL, logit, 900 + log(2), -900 + log(5));
    const Input sum[] = {{2, {2, 3}, x}, {1, {2}, t}};
    EXPECT(OP_SUM_EXP, NO_ATTR, NULL, sum, 8.0 / 2, 8.0 / 5);
    const Input logarithm[] = {{1, {2}, s}, {1, {2}, t}};
    EXPECT(OP_LOG_SUM_EXP, NO_ATTR, NULL, logarithm, 900 + log(8), -900 + log(8));
    const Input loss[] = {{2, {2, 3}, x}, {1, {2}, label}, {1, {2}, z}};
    EXPECT(OP_CROSS_ENTROPY, NO_ATTR, NULL, loss, log(8.0 / 2) + log(8.0 / 5));
    const Input back[] = {
        {0, {0}, NUMBERS(8)}, {2, {2, 3}, x}, {1, {2}, label}, {1, {2}, z}};
    EXPECT(OP_CROSS_ENTROPY_DX, NO_ATTR, NULL, back, 1, -6, 5, 1, 2, -3);
}

static void test_class_token(void **state)
{
    (void)state;
    const Input append[] = {{3, {2, 1, 2}, NUMBERS(1, 2, 3, 4)}, {1, {2}, NUMBERS(8, 9)}};
    EXPECT(OP_APPEND_TOKEN, NO_ATTR, "T=2", append, 8, 9, 1, 2, 8, 9, 3, 4);
    const Input y[] = {{3, {2, 2, 2}, NUMBERS(8, 9, 1, 2, 6, 7, 3, 4)}};
    EXPECT(OP_DROP_TOKEN, NO_ATTR, "S=1", y, 1, 2, 3, 4);
    EXPECT(OP_SUM_TOKEN, NO_ATTR, NULL, y, 14, 16);
    EXPECT(OP_TAKE_TOKEN, NO_ATTR, NULL, y, 8, 9, 6, 7);
    const Input pad[] = {{2, {2, 2}, NUMBERS(1, 2, 3, 4)}};
    EXPECT(OP_PAD_TOKEN, NO_ATTR, "T=2", pad, 1, 2, 0, 0, 3, 4, 0, 0);
}

/* One head of size 4, two positions. Queries (0,0,0,0) and (2 log 3, 0, 0, 0), keys
 * (0,...) and (1,0,0,0): scores/sqrt(4) are (0, 0) and (0, log 3), so weights (1/2,
 * 1/2) and (1/4, 3/4). */
static void test_attention(void **state)
{
    (void)state;
    const double q = 2 * log(3);
    const Input in[] = {
        {5,
         {1, 2, 3, 1, 4},
         NUMBERS(0, 0, 0, 0, /**/ 0, 0, 0, 0, /**/ 4, 0, 0, 1, /* position 0 */
                 q, 0, 0, 0, /**/ 1, 0, 0, 0, /**/ 8, 0, 4, 1)}};
    ExecTensor out[OP_MAX_OUT];
    run_one(OP_ATTENTION, (OpAttr){0}, "K=2", 1, in, out);
    const double y[] = {6, 0, 2, 1, 7, 0, 3, 1}, p[] = {0.5, 0.5, 0.25, 0.75};
    for (uint32_t i = 0; i < 8; i++)
        assert_close(out[0].data[i], y[i], 1e-12);
    for (uint32_t i = 0; i < 4; i++)
        assert_close(out[1].data[i], p[i], 1e-12);
    exec_tensor_clear(&out[0]);
    exec_tensor_clear(&out[1]);

    /* Causal: the first query sees its own key only. */
    run_one(OP_ATTENTION, (OpAttr){.causal = true}, "K=2", 1, in, out);
    const double masked_y[] = {4, 0, 0, 1, 7, 0, 3, 1}, masked_p[] = {1, 0, 0.25, 0.75};
    for (uint32_t i = 0; i < 8; i++)
        assert_close(out[0].data[i], masked_y[i], 1e-12);
    for (uint32_t i = 0; i < 4; i++)
        assert_close(out[1].data[i], masked_p[i], 1e-12);
    exec_tensor_clear(&out[0]);
    exec_tensor_clear(&out[1]);
}

/* Four tokens, three experts, two slots. First choices 0, 0, 0, 1: the third finds
 * expert 0 full. Second choices 1, 1, 2, 0: token 0 gets the last slot of expert 1,
 * behind token 3's first choice; token 1 finds it full; token 3 finds expert 0 full. */
static void test_gate_capacity_and_priority(void **state)
{
    (void)state;
    enum { TOKENS = 4, EXPERTS = 3, SLOTS = 2 };
    const Input in[] = {{3,
                         {1, TOKENS, EXPERTS},
                         NUMBERS(log(6), log(3), log(1), /**/ log(5), log(3), log(2), /**/
                                 log(5), log(1), log(4), /**/ log(2), log(7), log(1))}};
    const struct {
        uint32_t token, expert, slot;
        double weight;
    } kept[] = {{0, 0, 0, 6.0 / 9},
                {0, 1, 1, 3.0 / 9},
                {1, 0, 1, 5.0 / 8},
                {2, 2, 0, 4.0 / 9},
                {3, 1, 0, 7.0 / 9}};
    double want[TOKENS * EXPERTS * SLOTS] = {0};
    for (uint32_t i = 0; i < G_N_ELEMENTS(kept); i++)
        want[(kept[i].token * EXPERTS + kept[i].expert) * SLOTS + kept[i].slot] =
            kept[i].weight;
    ExecTensor out[OP_MAX_OUT];
    run_one(OP_GATE_TOP2, (OpAttr){0}, "C=2", 1, in, out);
    for (uint32_t i = 0; i < G_N_ELEMENTS(want); i++) {
        assert_close(out[0].data[i], want[i], 1e-12);
        assert_true(out[1].data[i] == (want[i] > 0));
    }
    exec_tensor_clear(&out[0]);
    exec_tensor_clear(&out[1]);
}

/* One choice per token, with its whole probability: of [6 3 1], [5 3 2], [5 1 4], [2 7 1] the third
 * finds no slot. */
static void test_gate_top1(void **state)
{
    (void)state;
    const Input in[] = {{3,
                         {1, 4, 3},
                         NUMBERS(log(6), log(3), log(1), /**/ log(5), log(3), log(2), /**/
                                 log(5), log(1), log(4), /**/ log(2), log(7), log(1))}};
    double want[4 * 3 * 2] = {0};
    want[0] = 0.6;         /* token 0, expert 0, slot 0 */
    want[1 * 6 + 1] = 0.5; /* token 1, expert 0, slot 1 */
    want[3 * 6 + 2] = 0.7; /* token 3, expert 1, slot 0 */
    ExecTensor out[OP_MAX_OUT];
    run_one(OP_GATE_TOP1, (OpAttr){0}, "C=2", 1, in, out);
    for (uint32_t i = 0; i < G_N_ELEMENTS(want); i++) {
        assert_close(out[0].data[i], want[i], 1e-12);
        assert_true(out[1].data[i] == (want[i] > 0));
    }
    exec_tensor_clear(&out[0]);
    exec_tensor_clear(&out[1]);
}

/* With one expert there is no second choice. */
static void test_gate_single_expert(void **state)
{
    (void)state;
    const Input in[] = {{3, {1, 2, 1}, NUMBERS(0.3, -2)}};
    EXPECT(OP_GATE_TOP2, NO_ATTR, "C=2", in, 1, 0, 0, 1);
}

/* About `rate` of the elements are dropped, the others scaled so that the mean stays;
 * another seed, another mask. */
/* Scores .9 .1 | .6 .5 | .3 .75: of the two groups with the most in two experts, the best two. */
static void test_gate_groups(void **state)
{
    (void)state;
    const Input in[] = {{3,
                         {1, 1, 6},
                         NUMBERS(log(.9 / .1), log(.1 / .9), log(.6 / .4), 0,
                                 log(.3 / .7), log(.75 / .25))}};
    const OpAttr attr = {
        .top = 2, .groups = 3, .top_groups = 2, .sigmoid = true, .scale = 2};
    const double want[] = {0, 0, 1.2, 0, 0, 1.5};
    expect(OP_GATE_TOPK, attr, NULL, 1, in, want, G_N_ELEMENTS(want));
}

static void test_dropout(void **state)
{
    (void)state;
    enum { N = 20000 };
    const double rate = 0.3;
    g_autofree double *ones = g_new(double, N);
    for (uint32_t i = 0; i < N; i++)
        ones[i] = 1;
    const Input in[] = {{2, {N / 100, 100}, ones}};
    ExecTensor a[OP_MAX_OUT], b[OP_MAX_OUT];
    run_one(OP_DROPOUT, (OpAttr){.rate = rate, .seed = 1}, NULL, 1, in, a);
    run_one(OP_DROPOUT, (OpAttr){.rate = rate, .seed = 2}, NULL, 1, in, b);
    uint32_t kept = 0, both = 0;
    for (uint32_t i = 0; i < N; i++) {
        assert_true(a[0].data[i] == 0 || a[0].data[i] == 1 / (1 - rate));
        kept += a[0].data[i] > 0;
        both += a[0].data[i] > 0 && b[0].data[i] > 0;
    }
    /* Five standard deviations of a binomial count. */
    const double p = 1 - rate;
    assert_at_most(fabs(kept - N * p), 5 * sqrt(N * p * (1 - p)));
    assert_at_most(fabs(both - N * p * p), 5 * sqrt(N * p * p * (1 - p * p)));
    exec_tensor_clear(&a[0]);
    exec_tensor_clear(&b[0]);
}

/* An update with a master copy steps from the copy, whatever the parameter is, just as the one
 * without steps from its parameter, and gives the next copy as well as the next parameter. */
static void test_master_copies(void **state)
{
    (void)state;
    static const struct {
        OpKind plain, master;
        uint32_t n_in; /* of the plain one */
    } UPDATE[] = {{OP_ADAM, OP_ADAM_MASTER, 4},
                  {OP_ADAMW, OP_ADAMW_MASTER, 4},
                  {OP_ADAFACTOR, OP_ADAFACTOR_MASTER, 4},
                  {OP_ADAFACTOR_VECTOR, OP_ADAFACTOR_VECTOR_MASTER, 3},
                  {OP_LION, OP_LION_MASTER, 3},
                  {OP_MUON, OP_MUON_MASTER, 3},
                  {OP_SGD, OP_SGD_MASTER, 2}};
    for (uint32_t u = 0; u < G_N_ELEMENTS(UPDATE); u++) {
        const uint32_t n_in = UPDATE[u].n_in;
        const bool factored = UPDATE[u].plain == OP_ADAFACTOR;
        Input in[OP_MAX_IN] = {{2, {2, 3}, NUMBERS(1, -2, 3, -4, 5, -6)},
                               {2, {2, 3}, NUMBERS(.5, .25, -.5, 1, -1, 2)},
                               {2, {2, 3}, NUMBERS(.1, .2, .3, .4, .5, .6)},
                               {2, {2, 3}, NUMBERS(.7, .6, .5, .4, .3, .2)}};
        const double *rows = NUMBERS(.1, .2), *columns = NUMBERS(.3, .2, .1);
        if (factored) {
            in[2] = (Input){1, {2}, rows};
            in[3] = (Input){1, {3}, columns};
        }
        ExecTensor plain[OP_MAX_OUT] = {0}, master[OP_MAX_OUT] = {0};
        run_one(UPDATE[u].plain, (OpAttr){0}, NULL, n_in, in, plain);
        in[n_in] = in[0];
        in[0].data = NUMBERS(9, 9, 9, 9, 9, 9);
        run_one(UPDATE[u].master, (OpAttr){0}, NULL, n_in + 1, in, master);
        for (uint32_t o = 0; o < n_in - 1; o++)
            for (uint64_t i = 0; i < exec_tensor_elements(&plain[o]); i++)
                assert_close(master[o].data[i], plain[o].data[i], 1e-15);
        for (uint32_t i = 0; i < 6; i++)
            assert_close(master[n_in - 1].data[i], plain[0].data[i], 1e-15);
        for (uint32_t o = 0; o < OP_MAX_OUT; o++) {
            exec_tensor_clear(&plain[o]);
            exec_tensor_clear(&master[o]);
        }
    }
}

/* Muon's step has singular values near 1, whatever the gradient's are, for a wide matrix and for a
 * tall one: of a diagonal gradient the step is diagonal. */
static void test_muon(void **state)
{
    (void)state;
    for (uint32_t tall = 0; tall < 2; tall++) {
        const uint32_t rows = tall ? 3 : 2, columns = tall ? 2 : 3;
        double g[6] = {0};
        g[0] = 4;
        g[columns + 1] = .2;
        const Input in[] = {{2, {rows, columns}, NUMBERS(0, 0, 0, 0, 0, 0)},
                            {2, {rows, columns}, g},
                            {2, {rows, columns}, NUMBERS(0, 0, 0, 0, 0, 0)}};
        ExecTensor out[OP_MAX_OUT] = {0};
        run_one(tall ? OP_MUON_TALL : OP_MUON, (OpAttr){0}, NULL, 3, in, out);
        const double rate = 1e-3 * sqrt(tall ? 3. / 2 : 1);
        for (uint32_t i = 0; i < 6; i++) {
            const bool diagonal = i == 0 || i == columns + 1;
            const double step = -out[0].data[i] / rate;
            assert_true(diagonal ? step > .65 && step < 1.25 : fabs(step) < 1e-9);
            assert_close(out[1].data[i], .05 * g[i], 1e-12);
        }
        exec_tensor_clear(&out[0]);
        exec_tensor_clear(&out[1]);
    }
}

static void test_slices_know_their_offset(void **state)
{
    (void)state;
    ExecTensor whole = exec_tensor_new(2, (uint32_t[]){3, 4});
    for (uint32_t i = 0; i < 12; i++)
        whole.data[i] = i;
    ExecTensor columns = exec_tensor_slice(&whole, 1, 1, 4);
    ExecTensor both = exec_tensor_slice(&columns, 0, 2, 3);
    ExecTensor inner = exec_tensor_slice(&both, 1, 1, 3);
    ExecTensor empty = exec_tensor_slice(&whole, 0, 3, 3);
    assert_int_equal(inner.offset[0], 2);
    assert_int_equal(inner.offset[1], 2);
    assert_int_equal(exec_tensor_elements(&inner), 2);
    assert_true(inner.data[0] == 10 && inner.data[1] == 11);
    assert_int_equal(exec_tensor_elements(&empty), 0);
    exec_tensor_clear(&whole);
    exec_tensor_clear(&columns);
    exec_tensor_clear(&both);
    exec_tensor_clear(&inner);
    exec_tensor_clear(&empty);
}

/* Every number of two bytes is its own nearest one; between two neighbours the middle goes to the
 * even one, and what is nearer to one goes there. */
static void test_half(void **state)
{
    (void)state;
    for (ExecNumbers n = EXEC_FP16; n <= EXEC_BF16; n++)
        for (uint32_t bits = 0; bits < 0x7f80u; bits++) {
            const float low = exec_half_value((uint16_t)bits, n),
                        high = exec_half_value((uint16_t)(bits + 1), n);
            if (n == EXEC_FP16 && bits >= 0x7bffu)
                break;
            assert_int_equal(exec_half_bits(low, n), bits);
            assert_int_equal(exec_half_bits(-low, n), bits | 0x8000u);
            if (isinf(high))
                continue;
            assert_true(high > low);
            const float middle = low / 2 + high / 2;
            assert_int_equal(exec_half_bits(middle, n), bits + (bits & 1u));
            assert_int_equal(exec_half_bits(nextafterf(middle, low), n), bits);
            assert_int_equal(exec_half_bits(nextafterf(middle, high), n), bits + 1);
        }
    assert_true(exec_half_value(0x3c00, EXEC_FP16) == 1 &&
                exec_half_value(0x7bff, EXEC_FP16) == 65504);
    assert_true(exec_half_value(0x3f80, EXEC_BF16) == 1);
    assert_int_equal(exec_half_bits(65519, EXEC_FP16), 0x7bff);
    assert_int_equal(exec_half_bits(65520, EXEC_FP16), 0x7c00);
    assert_true(isnan(exec_half_value(exec_half_bits(NAN, EXEC_FP16), EXEC_FP16)));
    assert_true(isnan(exec_half_value(exec_half_bits(NAN, EXEC_BF16), EXEC_BF16)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_conv2d_stride_and_padding),
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_pointwise),
        cmocka_unit_test(test_normalisation),
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_class_token),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_gate_capacity_and_priority),
        cmocka_unit_test(test_gate_top1),
        cmocka_unit_test(test_gate_single_expert),
        cmocka_unit_test(test_gate_groups),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_master_copies),
        cmocka_unit_test(test_muon),
        cmocka_unit_test(test_slices_know_their_offset),
        cmocka_unit_test(test_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
