/* Ops by the times of their kernels: exact times are those of the kernels, lines for searches lie
 * below them, times never fall with a device's share, and no iteration is faster than the bound. */
#include "tests/support/kernel_device.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/cost/op_kernels.h"
#include "tests/support/sanitized.h"

static const char CLUSTER[] = "{name: two, machines: [{device: a100-80g, gpus: 4, count: "
                              "2, nic: ib-hdr, nics: 4}]}";
static const char MODEL[] = "llama:layers=2,hidden=2048,heads=16,kv_heads=8,ffn=5632,"
                            "seq=1024,vocab=32000,global_batch=16,precision=bf16";

typedef struct {
    Cluster *cluster;
    ClusterView *view, *priced;
    Graph *graph;
} Setting;

static Setting setting(const char *runtime)
{
    g_autoptr(GError) error = NULL;
    SimOptions options;
    Setting s = {.cluster = cluster_parse("two", CLUSTER, strlen(CLUSTER), &error)};
    assert_no_error(error);
    sim_options_init(&options);
    assert_true(sim_options_set(&options, "runtime", runtime, &error));
    s.view = cluster_view(s.cluster, GRANULARITY_GPU);
    assert_true(sim_options_set(&options, "costs", "shares", &error));
    assert_null(sim_options_view(&options, NULL, s.view));
    assert_true(sim_options_set(&options, "costs", "kernels", &error)); /* the default */
    g_autoptr(Runtime) held = *runtime ? runtime_load(runtime, &error) : NULL;
    s.priced = sim_options_view(&options, held, s.view);
    assert_non_null(s.priced);
    s.graph = model_build(MODEL, 8, NULL, &error);
    assert_no_error(error);
    return s;
}

static void clear(Setting *s)
{
    graph_free(s->graph);
    cluster_view_free(s->priced);
    cluster_view_free(s->view);
    cluster_free(s->cluster);
}

static OpId first_of(const Graph *graph, OpKind kind)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (graph_get_op(graph, id)->kind == kind)
            return id;
    fail_msg("no op of that kind");
    return GRAPH_NONE;
}

/* ffn.down: [16 x 1024, 5632] by [5632, 2048], its gradients, and attention, on a quarter of the
 * batch. */
static void test_products(void **state)
{
    (void)state;
    Setting s = setting("");
    const KernelPricing *pricing = s.priced->device[0].kernels;
    OpKernel kernel[OP_KERNELS_MAX];
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = l == 0 ? 0.25 : 1;
    OpId down = first_of(s.graph, OP_LINEAR);
    while (graph_tensor(s.graph, graph_get_op(s.graph, down)->in[1])->dim[1] != 5632)
        down++;
    assert_int_equal(op_kernels(s.graph, down, part, &pricing->stack, kernel), 1);
    assert_int_equal(kernel[0].kernel.kind, KERNEL_PRODUCT);
    assert_int_equal(kernel[0].kernel.format, KERNEL_BF16);
    assert_close(kernel[0].kernel.product.m, 4 * 1024, 1e-12);
    assert_close(kernel[0].kernel.product.n, 2048, 1e-12);
    assert_close(kernel[0].kernel.product.k, 5632, 1e-12);
    const double gap = pricing->device->constants.stream.gap * 1e-6;
    assert_close(op_kernels_s(pricing, s.graph, down, part),
                 kernel_time_s(pricing->device, &kernel[0].kernel) + gap, 1e-12);
    const OpId attention = first_of(s.graph, OP_FUSED_ATTENTION);
    assert_int_equal(op_kernels(s.graph, attention, part, &pricing->stack, kernel), 1);
    assert_int_equal(kernel[0].kernel.kind, KERNEL_ATTENTION);
    assert_close(kernel[0].kernel.attention.batch, 4, 1e-12);
    assert_close(kernel[0].kernel.attention.heads, 16, 1e-12);
    assert_close(kernel[0].kernel.attention.kv_heads, 8, 1e-12);
    assert_true(kernel[0].kernel.attention.causal);
    clear(&s);
}

/* Gradients of the weights of chosen experts, and gates, pass over memory; experts are products. */
static void test_pairs(void **state)
{
    (void)state;
    Setting s = setting("");
    const KernelPricing *pricing = s.priced->device[0].kernels;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build("mixtral:layers=1,hidden=1024,heads=8,kv_heads="
                                         "8,ffn=2048,seq=1024,precision=bf16",
                                         8, NULL, &error);
    assert_no_error(error);
    OpKernel kernel[OP_KERNELS_MAX];
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    const OpId pairs = first_of(graph, OP_ROUTE_WEIGH_DW),
               expert = first_of(graph, OP_EXPERT);
    assert_int_equal(op_kernels(graph, pairs, part, &pricing->stack, kernel), 1);
    assert_int_equal(kernel[0].kernel.kind, KERNEL_ELEMENTWISE);
    assert_true(op_kernels_s(pricing, graph, pairs, part) <
                op_kernels_s(pricing, graph, expert, part));
    assert_int_equal(op_kernels(graph, expert, part, &pricing->stack, kernel), 1);
    assert_int_equal(kernel[0].kernel.kind, KERNEL_GROUPED);
    clear(&s);
}

static void check_rule(const Setting *s, SimMemo *memo, OpId op, const Rule *rule)
{
    static const double SHARE[] = {1.0 / 64, 1.0 / 32, 1.0 / 16, 1.0 / 8, 0.25, 0.5, 1};
    SimWork work;
    double before = 0;
    sim_work_op(NULL, s->graph, s->priced, op, rule, &work);
    for (uint32_t i = 0; i < G_N_ELEMENTS(SHARE); i++) {
        const Device *device = &s->priced->device[0];
        const double exact = sim_op_s(memo, s->graph, s->priced, op, rule,
                                      (SimOpShare){NULL, 1, SHARE[i]}, device);
        assert_true(exact >= before * (1 - 1e-12));
        if (sim_work_s(&work, device, SHARE[i]) > exact * 1.05 + 2e-6)
            fail_msg("%s, loop %d: at %g the line is %g s, the time %g s",
                     graph_get_op(s->graph, op)->name, rule->loop, SHARE[i],
                     sim_work_s(&work, device, SHARE[i]), exact);
        assert_close(exact,
                     sim_op_s(memo, s->graph, s->priced, op, rule,
                              (SimOpShare){NULL, 1, SHARE[i]}, device),
                     0);
        double once;
        assert_true(SHARE[i] * op_kernels_least_s(device->kernels, s->graph, op, &once) <=
                    exact * (1 + 1e-9));
        assert_true(once <= exact * (1 + 1e-9));
        before = exact;
    }
}

static void test_shares(void **state)
{
    (void)state;
    Setting s = setting("");
    g_autoptr(SimMemo) memo = sim_memo_new();
    for (OpId op = 0; op < graph_n_ops(s.graph); op++) {
        Rule rule[OP_MAX_RULES];
        const uint32_t n = op_rules(s.graph, op, rule);
        for (uint32_t r = 0; r < n; r++)
            if (rule[r].loop >= 0)
                check_rule(&s, memo, op, &rule[r]);
    }
    clear(&s);
}

/* Autocast converts weights, gradients and what norms read and write, beside what DDP does
 * without. */
static void test_autocast(void **state)
{
    (void)state;
    Setting plain = setting("ddp"), cast = setting("ddp-autocast");
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    const OpId slower[] = {first_of(plain.graph, OP_RMS_NORM),
                           first_of(plain.graph, OP_SWIGLU),
                           first_of(plain.graph, OP_LINEAR_DW)};
    for (uint32_t i = 0; i < G_N_ELEMENTS(slower); i++)
        assert_true(
            op_kernels_s(cast.priced->device[0].kernels, cast.graph, slower[i], part) >
            op_kernels_s(plain.priced->device[0].kernels, plain.graph, slower[i], part));
    const OpId same = first_of(plain.graph, OP_FUSED_ATTENTION);
    assert_close(op_kernels_s(cast.priced->device[0].kernels, cast.graph, same, part),
                 op_kernels_s(plain.priced->device[0].kernels, plain.graph, same, part),
                 1e-12);
    clear(&plain);
    clear(&cast);
}

/* Kept times are those that are computed, with more of them than there are places at first. */
static void test_many_prices(void **state)
{
    (void)state;
    enum { SHARES = 6000 };
    Setting s = setting("");
    g_autoptr(SimMemo) memo = sim_memo_new();
    const OpId op = first_of(s.graph, OP_LINEAR);
    Rule rule[OP_MAX_RULES];
    op_rules(s.graph, op, rule);
    for (uint32_t i = 0; i < 2 * SHARES; i++) {
        const SimOpShare has = {NULL, 1, (double)(i % SHARES + 1) / SHARES};
        const Device *device = &s.priced->device[0];
        assert_close(sim_op_s(memo, s.graph, s.priced, op, &rule[1], has, device),
                     sim_op_s(NULL, s.graph, s.priced, op, &rule[1], has, device), 0);
    }
    clear(&s);
}

/* A memo that was freed is given out again with what it holds, which are times of other graphs
 * and of other software. */
static void test_kept_memos(void **state)
{
    (void)state;
    static const char *const RUNTIME[] = {"", "llm-foundry", "ddp-autocast", ""};
    for (uint32_t i = 0; i < G_N_ELEMENTS(RUNTIME); i++) {
        Setting s = setting(RUNTIME[i]);
        g_autoptr(SimMemo) memo = sim_memo_new();
        for (OpId op = 0; op < graph_n_ops(s.graph); op++) {
            Rule rule[OP_MAX_RULES];
            op_rules(s.graph, op, rule);
            const SimOpShare has = {NULL, 1, 0.25};
            const Device *device = &s.priced->device[0];
            assert_close(sim_op_s(memo, s.graph, s.priced, op, &rule[0], has, device),
                         sim_op_s(NULL, s.graph, s.priced, op, &rule[0], has, device), 0);
        }
        clear(&s);
    }
}

/* The key of kept times is a hash of what the times depend on, and of nothing else: priced once
 * more, or as another one of the types, a device has the same. */
static void test_keys(void **state)
{
    (void)state;
    static const char *const TYPE[] = {"v100", "a100-80g"};
    uint64_t key[2][2];
    for (uint32_t i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(
            "{name: two, machines: [{device: %s, gpus: 4, nic: ib-hdr}, {device: %s, "
            "gpus: 4, nic: ib-hdr}]}",
            TYPE[i], TYPE[1 - i]);
        g_autoptr(Cluster) cluster = cluster_parse("two", text, strlen(text), &error);
        assert_no_error(error);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU),
                               priced = cluster_view_priced(view, true, NULL),
                               again = cluster_view_priced(priced, true, NULL);
        for (uint32_t t = 0; t < 2; t++) {
            key[i][t] = priced->device[4 * t].kernels->key;
            assert_true(again->device[4 * t].kernels->key == key[i][t]);
        }
    }
    assert_true(key[0][0] != key[0][1] && key[0][0] != 0);
    assert_true(key[0][0] == key[1][1] && key[0][1] == key[1][0]);
}

/* At most a microsecond of the processor per op, in the best of some rounds. */
static void test_quick(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    Setting s = setting("");
    double part[OP_MAX_LOOPS], seconds = 0, best_s = INFINITY;
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 0.5;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const clock_t begin = clock();
        for (OpId op = 0; op < graph_n_ops(s.graph); op++)
            seconds += op_kernels_s(s.priced->device[0].kernels, s.graph, op, part);
        best_s = fmin(best_s, (double)(clock() - begin) / CLOCKS_PER_SEC);
    }
    assert_true(seconds > 0);
    print_message("%.0f ns per op\n", 1e9 * best_s / graph_n_ops(s.graph));
#if defined __OPTIMIZE__ && !defined TEST_SANITIZED
    assert_at_most(1e6 * best_s / graph_n_ops(s.graph), 1);
#endif
    clear(&s);
}

/* The options of a stack have an effect, and a runtime without a row has the default. */
static void test_stack(void **state)
{
    (void)state;
    Setting plain = setting(""), other = setting("llm-foundry");
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    const OpId attention = first_of(plain.graph, OP_FUSED_ATTENTION);
    const double fast =
        op_kernels_s(plain.priced->device[0].kernels, plain.graph, attention, part);
    const double slow =
        op_kernels_s(other.priced->device[0].kernels, other.graph, attention, part);
    assert_close(slow / fast, other.priced->pricing[0].stack.attention, 1e-9);
    assert_true(slow > fast);
    /* its loss and metrics: 18 accesses to the logits for three */
    assert_close(other.priced->pricing[0].stack.loss, 18.0 / 3, 1e-9);
    clear(&plain);
    clear(&other);
}

/* Without compilation an RMS norm and a rotary embedding are several kernels: they move at least
 * the accesses that the runtime says beside those of one. */
static void test_several_kernels(void **state)
{
    static const OpKind KIND[] = {OP_RMS_NORM, OP_RMS_NORM_DX, OP_ROTARY, OP_ROTARY_DX};
    (void)state;
    Setting plain = setting(""), other = setting("fsdp");
    const Stack *stack = &other.priced->device[0].kernels->stack;
    assert_true(stack->rms_norm > 0 && stack->rms_norm_dx > 0 && stack->rotary > 0);
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(KIND); i++) {
        const OpId op = first_of(plain.graph, KIND[i]);
        const double one = op_kernels_s(plain.priced->device[0].kernels, plain.graph, op,
                                        part),
                     many = op_kernels_s(other.priced->device[0].kernels, other.graph, op,
                                         part),
                     accesses = i == 0   ? stack->rms_norm
                                : i == 1 ? stack->rms_norm_dx
                                         : stack->rotary;
        assert_true(many >
                    one + accesses * (double)graph_op_bytes(plain.graph, op, 0) /
                              plain.priced->device[0].kernels->device->chip.bandwidth);
    }
    clear(&plain);
    clear(&other);
}

/* The bytes that the longest pass of attention moves for a score. */
static double score_bytes(const OpKernel *kernel, uint32_t n, double scores)
{
    double bytes = 0;
    for (uint32_t k = 0; k < n; k++)
        if (kernel[k].kernel.kind == KERNEL_ELEMENTWISE)
            bytes = fmax(bytes, kernel[k].kernel.elementwise.elements *
                                    (kernel[k].kernel.elementwise.read +
                                     kernel[k].kernel.elementwise.written) /
                                    scores);
    return bytes;
}

/* In 16 bits it takes fours of heads only. Six of three samples and two heads are cast to float32
 * and back (12 bytes), where scale and mask move 16 and softmax 4 more; four and eight are not. */
static void test_odd_scores(void **state)
{
    (void)state;
    Setting s = setting("megatron-2021");
    for (uint32_t batch = 1; batch <= 4; batch++) {
        g_autoptr(GError) error = NULL;
        Graph *graph =
            model_build("gpt2:layers=1,hidden=64,heads=2,ffn=64,seq=64,batch=1,"
                        "vocab=64,precision=mixed",
                        batch, NULL, &error);
        assert_no_error(error);
        static const double ONE[OP_MAX_LOOPS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        Stack stack = s.priced->device[0].kernels->stack;
        OpKernel kernel[OP_KERNELS_MAX];
        const OpId op = first_of(graph, OP_ATTENTION);
        const bool odd = batch % 2 == 1;
        const uint32_t n = op_kernels(graph, op, ONE, &stack, kernel);
        const double bytes = score_bytes(kernel, n, batch * 2 * 64 * 64.0);
        stack.wide_scores = 0;
        assert_int_equal(n - op_kernels(graph, op, ONE, &stack, kernel), odd);
        if (odd)
            assert_close(bytes, 32, 1e-9);
        graph_free(graph);
    }
    clear(&s);
}

/* Megatron's kernel of scale, mask and softmax takes 16 bits. In float32 the former two are four
 * accesses of 8 x 4 x 64 x 64 scores of 4 bytes, forward and backward. */
static void test_wide_scores(void **state)
{
    static const OpKind KIND[] = {OP_ATTENTION, OP_ATTENTION_DX};
    static const double ONE[OP_MAX_LOOPS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    Setting s = setting("megatron-2021");
    for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(KIND); i++) {
        g_autoptr(GError) error = NULL;
        const bool wide = i % 2;
        Graph *graph =
            model_build(wide ? "gpt2:layers=1,hidden=64,heads=4,ffn=64,seq=64,batch=1,"
                               "vocab=64,precision=single"
                             : "gpt2:layers=1,hidden=64,heads=4,ffn=64,seq=64,batch=1,"
                               "vocab=64,precision=mixed",
                        8, NULL, &error);
        assert_no_error(error);
        Stack stack = s.priced->device[0].kernels->stack;
        assert_true(stack.wide_scores == 4 && stack.scores == 0);
        OpKernel kernel[OP_KERNELS_MAX];
        const OpId op = first_of(graph, KIND[i / 2]);
        const uint32_t n = op_kernels(graph, op, ONE, &stack, kernel);
        const double accesses = score_bytes(kernel, n, 8 * 4 * 64 * 64 * 4.0);
        stack.wide_scores = 0;
        assert_int_equal(n - op_kernels(graph, op, ONE, &stack, kernel), wide);
        if (wide)
            assert_close(accesses, 4, 1e-9);
        graph_free(graph);
    }
    clear(&s);
}

/* An optimizer that goes over the parameters in several kernels moves the accesses of each. */
static void test_updates(void **state)
{
    static const double ONE[OP_MAX_LOOPS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    Setting s = setting("llm-foundry");
    OpId op = 0;
    while (!op_kind_updates(graph_get_op(s.graph, op)->kind))
        op++;
    Stack stack = s.priced->device[0].kernels->stack;
    assert_close(stack.update, 22.0 / 7, 0.02);
    OpKernel many[OP_KERNELS_MAX], one[OP_KERNELS_MAX];
    assert_int_equal(op_kernels(s.graph, op, ONE, &stack, many), 1);
    stack.update = STACK_DEFAULT.update;
    assert_int_equal(op_kernels(s.graph, op, ONE, &stack, one), 1);
    assert_close(many->kernel.elementwise.elements * many->kernel.elementwise.read,
                 3.1 * one->kernel.elementwise.elements * one->kernel.elementwise.read,
                 1e-9);
    clear(&s);
}

/* PyTorch takes FlashAttention 2 on Hopper, forward and backward; Transformer Engine does not. */
static void test_flash(void **state)
{
    static const struct {
        const char *runtime;
        KernelAttention library;
    } CASE[] = {{"", KERNEL_ATTENTION_AUTO},
                {"fsdp-te", KERNEL_ATTENTION_AUTO},
                {"fsdp-compiled", KERNEL_ATTENTION_FA2}};
    static const OpKind KIND[] = {OP_FUSED_ATTENTION, OP_FUSED_ATTENTION_DX};
    (void)state;
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE) * G_N_ELEMENTS(KIND); i++) {
        Setting s = setting(CASE[i / 2].runtime);
        OpKernel kernel[OP_KERNELS_MAX];
        assert_int_equal(op_kernels(s.graph, first_of(s.graph, KIND[i % 2]), part,
                                    &s.priced->device[0].kernels->stack, kernel),
                         1);
        assert_int_equal(kernel[0].kernel.attention.library, CASE[i / 2].library);
        clear(&s);
    }
}

/* Mamba-2 runs by chunks of 128 tokens (Dao and Gu 2024, Sec. 6): per token 2 c N G + 2 c P H of
 * its FLOPs are inside of chunks and 4 N P H make and read states, whose backward is twice as much
 * and the states again. */
static void test_recurrence(void **state)
{
    static const double TOKENS = 4 * 1024, C = 128, N = 256, GROUPS = 8, P = 64, H = 256;
    static const OpKind KIND[] = {OP_SCAN, OP_SCAN_DX};
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(
        "nemotron-h-56b:seq=1024,global_batch=4,precision=bf16", 4, NULL, &error);
    assert_no_error(error);
    Setting s = setting("");
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(KIND); i++) {
        OpKernel kernel[OP_KERNELS_MAX];
        const OpId op = first_of(graph, KIND[i]);
        const uint32_t n =
            op_kernels(graph, op, part, &s.priced->device[0].kernels->stack, kernel);
        double flops = 0, states = 0;
        for (uint32_t k = 0; k < n; k++)
            if (kernel[k].kernel.kind == KERNEL_BATCHED)
                flops += kernel[k].times * 2 * kernel[k].kernel.product.batch *
                         kernel[k].kernel.product.m * kernel[k].kernel.product.n *
                         kernel[k].kernel.product.k;
            else
                states += kernel[k].times * kernel[k].kernel.elementwise.elements *
                          kernel[k].kernel.elementwise.written;
        const double makes = 2 * N * P * H,
                     once = 2 * C * N * GROUPS + 2 * C * P * H + 2 * N * P * H;
        assert_close(flops, TOKENS * (i == 0 ? once + makes : 2 * once + 3 * makes),
                     1e-9);
        assert_true(states > (i + 1) * 2 * TOKENS / C * N * P * H * 4);
    }
    clear(&s);
}

/* Where the software sorts, pads and converts the tokens of experts in kernels of its own, each
 * exchange with them takes as many accesses to them longer, and nothing else does. */
static void test_dispatch(void **state)
{
    static const OpKind KIND[] = {OP_ROUTE, OP_UNROUTE};
    static const bool OUTPUT[] = {true, false};
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build("mixtral:layers=1,hidden=4096,heads=32,kv_heads=8,ffn=1024,experts=8,"
                    "top=2,seq=4096,vocab=256,global_batch=4,precision=bf16",
                    4, NULL, &error);
    assert_no_error(error);
    Setting plain = setting("nemo"), other = setting("nemo-2025");
    const KernelPricing *fused = plain.priced->device[0].kernels,
                        *apart = other.priced->device[0].kernels;
    assert_true(fused->stack.dispatch == 0 && apart->stack.dispatch > 0);
    double part[OP_MAX_LOOPS], all = 0, added = 0;
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        all +=
            op_kernels_s(apart, graph, id, part) - op_kernels_s(fused, graph, id, part);
    for (uint32_t i = 0; i < G_N_ELEMENTS(KIND); i++) {
        const OpId id = first_of(graph, KIND[i]);
        const double longer = op_kernels_s(apart, graph, id, part) -
                              op_kernels_s(fused, graph, id, part),
                     bytes = graph_op_bytes(
                         graph, id, OUTPUT[i] ? graph_get_op(graph, id)->n_in : 0);
        added += 2 * longer; /* each is the other's gradient */
        assert_close(longer,
                     apart->stack.dispatch * bytes /
                         (fused->device->chip.bandwidth *
                          fused->device->constants.memory.share_hbm),
                     0.05);
    }
    assert_close(all, added, 1e-9);
    clear(&plain);
    clear(&other);
}

/* Where few tokens reach many experts, their products take what the host needs to launch them, one
 * for each expert; from a graph they take the device's time, and attention in 8 bits takes less. */
static void test_host(void **state)
{
    enum { EXPERTS = 64 };
    static const struct {
        const char *runtime;
        double launch_s;
    } CASE[] = {{"nemo-host", 19e-6}, {"nemo-2025", 10e-6}, {"nemo-graphs", 0}};
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build("mixtral:layers=1,hidden=512,heads=8,kv_heads=8,ffn=256,experts=64,"
                    "top=2,seq=512,vocab=256,global_batch=1,precision=bf16",
                    1, NULL, &error);
    assert_no_error(error);
    double part[OP_MAX_LOOPS], attention_s[G_N_ELEMENTS(CASE)];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        Setting s = setting(CASE[i].runtime);
        const KernelPricing *pricing = s.priced->device[0].kernels;
        const double seconds =
            op_kernels_s(pricing, graph, first_of(graph, OP_EXPERT), part);
        assert_close(pricing->stack.launch_s, CASE[i].launch_s, 1e-9);
        if (CASE[i].launch_s > 0)
            assert_close(seconds, EXPERTS * CASE[i].launch_s, 1e-9);
        else
            assert_true(seconds > 0 && seconds < EXPERTS * 5e-6);
        attention_s[i] =
            op_kernels_s(pricing, s.graph, first_of(s.graph, OP_FUSED_ATTENTION), part);
        clear(&s);
    }
    assert_close(attention_s[1], attention_s[0], 1e-9);
    assert_close(attention_s[2] / attention_s[1], 0.71, 1e-9);
}

/* Gradients of weights: a product that adds to its gradient reads it, too, beside its computation
 * (experts) or in its traffic; in 8 bits they and conversions have factors of their own. */
static void test_gradients_of_weights(void **state)
{
    static const OpKind KIND[] = {OP_EXPERT_DW, OP_LINEAR_DW};
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(KernelDevice) device = kernel_device_of("h100-sxm");
    g_autoptr(Graph) graph =
        model_build("mixtral:layers=1,hidden=4096,heads=32,kv_heads=8,ffn=1024,experts=8,"
                    "top=2,seq=4096,vocab=256,global_batch=4,precision=fp8",
                    4, NULL, &error);
    assert_no_error(error);
    double part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    Stack stack = STACK_DEFAULT;
    OpKernel plain[OP_KERNELS_MAX], with[OP_KERNELS_MAX], pass[OP_KERNELS_MAX];
    for (uint32_t i = 0; i < G_N_ELEMENTS(KIND); i++) {
        const OpId id = first_of(graph, KIND[i]);
        stack.adds = 0, stack.narrow_dw = 1;
        assert_int_equal(op_kernels(graph, id, part, &stack, plain), 1);
        stack.adds = 1, stack.narrow_dw = 1.4;
        assert_int_equal(op_kernels(graph, id, part, &stack, with), 1);
        assert_close(with->times, 1.4 * plain->times, 1e-12);
        const double s = kernel_time_s(device, &plain->kernel),
                     more = kernel_time_s(device, &with->kernel);
        assert_true(more > s);
        if (KIND[i] != OP_EXPERT_DW)
            continue;
        const double written_s =
            8 * 4096 * 1024 * 2 /
            (device->chip.bandwidth * device->constants.tensor.bandwidth);
        assert_close(more * more - s * s, 3 * written_s * written_s, 1e-9);
    }
    stack.convert = 2.5;
    assert_int_equal(op_kernels(graph, first_of(graph, OP_EXPERT), part, &stack, pass),
                     2);
    assert_close(pass[0].times, 2.5, 1e-12);
    assert_close(pass[1].times, 1, 1e-12);
}

/* The slowdown of the first device of a cluster under a runtime. */
static double slowdown_on(const char *machines, const char *runtime, double measured)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("{name: made, machines: [{%s}]}", machines);
    g_autoptr(Cluster) cluster = cluster_parse("made", text, strlen(text), &error);
    assert_no_error(error);
    cluster->type[0].slowdown = measured;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Runtime) held = runtime_load(runtime, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) priced = cluster_view_priced(view, true, &held->stack);
    g_autoptr(ClusterView) again = cluster_view_priced(priced, true, &STACK_DEFAULT);
    assert_true(again->device[0].slowdown == fmax(measured, 1));
    g_autoptr(ClusterView) shares = cluster_view_priced(priced, false, NULL);
    assert_true(shares->device[0].slowdown == fmax(measured, 1));
    return priced->device[0].slowdown;
}

/* A collective's kernel takes two multiprocessors for each ring: one of 20 GB/s inside a machine,
 * one of a port between machines, and 24 at the most. A slowdown that the cluster's file says
 * counts instead. */
static void test_channels(void **state)
{
    static const char DGX[] = "device: a100-80g, gpus: 8, count: 2, nic: ib-hdr, nics: 8",
                      PORTS[] =
                          "device: a100-80g, gpus: 8, count: 2, nic: ib-hdr, nics: 4",
                      ALONE[] = "device: h100-sxm, gpus: 8, nic: ib-ndr, nics: 8",
                      PCIE[] = "device: t4, gpus: 4, nic: eth-100";
    (void)state;
    assert_close(slowdown_on(DGX, "fsdp", 1), 108.0 / (108 - 2 * 8), 1e-12);
    assert_close(slowdown_on(PORTS, "fsdp", 1), 108.0 / (108 - 2 * 4), 1e-12);
    assert_close(slowdown_on(ALONE, "fsdp", 1), 132.0 / (132 - 24), 1e-12);
    assert_close(slowdown_on(PCIE, "ddp", 1), 40.0 / (40 - 2), 1e-12);
    assert_close(slowdown_on(DGX, "fsdp", 1.3), 1.3, 1e-12);
    assert_true(slowdown_on(DGX, "none", 1) == 1);
}

/* The host launches a grouped product once for each expert, in 8 and 4 bits three times: where
 * experts have few rows, it takes longer than the product. */
static void test_launches(void **state)
{
    static const char *const PRECISION[] = {"bf16", "fp8", "nvfp4"};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PRECISION); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *model = g_strdup_printf(
            "mixtral:layers=1,hidden=256,heads=4,kv_heads=4,ffn=128,experts=64,top=1,"
            "seq=64,vocab=256,global_batch=1,precision=%s",
            PRECISION[i]);
        Setting s = setting("");
        g_autoptr(Graph) graph = model_build(model, 1, NULL, &error);
        assert_no_error(error);
        const KernelPricing *pricing = s.priced->device[0].kernels;
        double part[OP_MAX_LOOPS];
        for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
            part[l] = 1;
        OpId id = 0;
        while (!g_str_has_prefix(op_kind_name(graph_get_op(graph, id)->kind), "expert"))
            id++;
        OpKernel kernel[OP_KERNELS_MAX];
        const uint32_t n = op_kernels(graph, id, part, &pricing->stack, kernel);
        assert_int_equal(n, 1 + (i > 0)); /* in 8 and 4 bits after a conversion */
        assert_close(kernel[n - 1].launches, i > 0 ? 3 * 64 : 64, 0);
        if (i == 0)
            assert_close(op_kernels_s(pricing, graph, id, part),
                         64 * pricing->stack.launch_s, 1e-9);
        clear(&s);
    }
}

static void test_bound(void **state)
{
    (void)state;
    Setting s = setting("");
    const double bound = sim_compute_bound_s(s.graph, s.priced);
    double all = 0, part[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        part[l] = 1;
    for (OpId op = 0; op < graph_n_ops(s.graph); op++)
        all += op_kernels_s(s.priced->device[0].kernels, s.graph, op, part);
    assert_true(bound > 0.3 * all / 8 && bound <= all / 8);
    clear(&s);
}

/* Ops that are alike take equally long in every form, by kernels and by rates; layers repeat. */
static void test_alike(void **state)
{
    (void)state;
    Setting s = setting("");
    const ClusterView *view[] = {s.priced, s.view};
    uint32_t first = 0;
    for (OpId id = 0; id < graph_n_ops(s.graph); id++) {
        const OpId like = graph_op_alike(s.graph, id);
        Rule own[OP_MAX_RULES], other[OP_MAX_RULES];
        const uint32_t n = op_rules(s.graph, id, own);
        assert_int_equal(op_rules(s.graph, like, other), n);
        first += like == id;
        for (uint32_t k = 0; like < id && k < n; k++)
            for (uint32_t v = 0; v < G_N_ELEMENTS(view); v++)
                assert_true(sim_op_s(NULL, s.graph, view[v], id, &own[k],
                                     (SimOpShare){NULL, 1, 0.25}, &view[v]->device[0]) ==
                            sim_op_s(NULL, s.graph, view[v], like, &other[k],
                                     (SimOpShare){NULL, 1, 0.25}, &view[v]->device[0]));
    }
    assert_true(2 * first < graph_n_ops(s.graph));
    clear(&s);
}

/* Frozen weights in four or eight bits are turned into 16 before each product, forward and
 * backward; the head, which is left as it was, and adapters are not. */
static void test_unpacked(void **state)
{
    (void)state;
    static const char *const FORMAT[] = {"bf16", "nf4", "int8"};
    double one[OP_MAX_LOOPS];
    uint32_t passes[3] = {0};
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        one[l] = 1;
    for (uint32_t f = 0; f < G_N_ELEMENTS(FORMAT); f++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *spec = g_strdup_printf("%s,train=lora:8%s%s", MODEL,
                                                f ? ",weights=" : "", f ? FORMAT[f] : "");
        g_autoptr(Graph) graph = model_build(spec, 1, NULL, &error);
        assert_no_error(error);
        for (OpId id = 0; id < graph_n_ops(graph); id++) {
            OpKernel kernel[OP_KERNELS_MAX];
            if (strcmp(op_kind_linear(graph_get_op(graph, id)->kind), "0|1") != 0)
                continue;
            const uint32_t n = op_kernels(graph, id, one, &STACK_DEFAULT, kernel);
            for (uint32_t k = 0; k + 1 < n; k++)
                passes[f] += kernel[k].kernel.kind == KERNEL_ELEMENTWISE &&
                             kernel[k].kernel.elementwise.scalar;
        }
    }
    /* of two layers the products of queries, keys with values, outputs, gates and downwards; of
     * the first layer no gradient of its inputs is needed */
    assert_int_equal(passes[0], 0);
    assert_int_equal(passes[1], 2 * 5 + 2 * 5 - 2);
    assert_int_equal(passes[2], passes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),    cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_shares),      cmocka_unit_test(test_stack),
        cmocka_unit_test(test_autocast),    cmocka_unit_test(test_several_kernels),
        cmocka_unit_test(test_flash),       cmocka_unit_test(test_recurrence),
        cmocka_unit_test(test_dispatch),    cmocka_unit_test(test_channels),
        cmocka_unit_test(test_launches),    cmocka_unit_test(test_bound),
        cmocka_unit_test(test_many_prices), cmocka_unit_test(test_kept_memos),
        cmocka_unit_test(test_keys),        cmocka_unit_test(test_quick),
        cmocka_unit_test(test_alike),       cmocka_unit_test(test_wide_scores),
        cmocka_unit_test(test_odd_scores),  cmocka_unit_test(test_updates),
        cmocka_unit_test(test_unpacked),    cmocka_unit_test(test_gradients_of_weights),
        cmocka_unit_test(test_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
