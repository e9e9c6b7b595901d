/* Dropless experts with uneven tokens: devices wait for the one with the fullest expert, which
 * holds more of what experts keep, by the closed form of how many experts it has beside it. */
#include <math.h>
#include <string.h>

#include "data/models/model.h"
#include "exec/exec.h"
#include "tests/support/made_plan.h"
#include "tests/support/program.h"
#include "tests/support/shrunk.h"

enum { EXPERTS = 8 };

#define MODEL                                                                            \
    "mixtral:layers=4,hidden=256,heads=8,kv_heads=8,ffn=2048,seq=256,vocab=256,experts=" \
    "8,global_batch=16,capacity_factor="

typedef struct {
    double compute_s, time_s, bytes,
        other_bytes; /* bytes: of the first device, of the last */
} Measured;

static Measured measure_with(const char *fidelity, const char *costs, const char *cluster,
                             const char *keys)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *set = g_strdup_printf("runtime=none costs=%s %s", costs, keys);
    g_auto(Made) made = made_plan("manual", MODEL "0", cluster, set);
    SimOptions options;
    sim_options_init(&options);
    options.costs = strcmp(costs, "shares") == 0 ? SIM_COSTS_SHARES : SIM_COSTS_KERNELS;
    g_autoptr(SimReport) report =
        sim_evaluate_with(made.plan, made.graph, made.view, fidelity, &options, &error);
    assert_no_error(error);
    return (Measured){report->comp_s, report->iteration_time_s,
                      (double)report->memory_bytes[0],
                      (double)report->memory_bytes[report->n_devices - 1]};
}

static Measured measure(const char *fidelity, const char *costs, const char *degrees,
                        double imbalance)
{
    g_autofree char *keys = g_strdup_printf("%s imbalance=%g", degrees, imbalance);
    return measure_with(fidelity, costs, "dgx-h100", keys);
}

/* Tokens of a device with `experts` of them, over the mean. */
static double load(double imbalance, double experts)
{
    return (imbalance + (experts - 1) * (EXPERTS - imbalance) / (EXPERTS - 1)) / experts;
}

/* Degrees under which a device has so many experts. */
static const struct {
    const char *degrees;
    double experts;
} DEGREES[] = {{"ep=8", 1},
               {"ep=4", 2},
               {"ep=2", 4},
               {"tp=2 ep=8 etp=1", 1},
               {"tp=2 ep=4 etp=1", 2},
               {"cp=4 ep=4", 2}};

/* Stages with unlike degrees that share the experts among as many replicas each. */
static const char *const UNLIKE[] = {"stage_tp=2,1 stage_dp=2,4 ep=2 zero=1",
                                     "stage_tp=1,2 stage_dp=4,2 ep=2 microbatches=2",
                                     "stage_tp=1,1 stage_dp=4,4 ep=4 imbalance=2"};

static void test_unlike_stages(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(UNLIKE); i++) {
        g_auto(Made) made = made_plan("manual", MODEL "0", "dgx-h100", UNLIKE[i]);
        check_shrunk(made.plan, made.graph);
    }
    g_autoptr(GError) error = NULL;
    g_auto(Made) none =
        make("manual", MODEL "0", "dgx-h100", "stage_tp=2,1 stage_dp=2,4 ep=4", &error);
    assert_null(none.plan);
    assert_non_null(strstr(error->message, "ep=4 zero=0: expected"));
    /* equal degrees, said by stage, are the same plan as said once */
    const Measured one = measure_with("flow", "shares", "dgx-h100",
                                      "pp=2 ep=4 imbalance=2"),
                   two = measure_with("flow", "shares", "dgx-h100", UNLIKE[2]);
    assert_close(two.time_s, one.time_s, 1e-9);
    assert_close(two.bytes, one.bytes, 1e-9);
}

static void test_fullest_waits(void **state)
{
    static const char *const FIDELITY[] = {"stage", "flow"};
    static const double IMBALANCE[] = {1.5, 3};
    (void)state;
    for (uint32_t f = 0; f < G_N_ELEMENTS(FIDELITY); f++) {
        const double one = measure(FIDELITY[f], "shares", "ep=8", 2).compute_s -
                           measure(FIDELITY[f], "shares", "ep=8", 1).compute_s;
        assert_true(one > 0);
        for (uint32_t d = 0; d < G_N_ELEMENTS(DEGREES); d++)
            for (uint32_t i = 0; i < G_N_ELEMENTS(IMBALANCE); i++) {
                const char *degrees = DEGREES[d].degrees;
                const Measured even = measure(FIDELITY[f], "shares", degrees, 1),
                               uneven =
                                   measure(FIDELITY[f], "shares", degrees, IMBALANCE[i]);
                const double more = load(IMBALANCE[i], DEGREES[d].experts) - 1;
                assert_close((uneven.compute_s - even.compute_s) / one, more, 1e-4);
                assert_true(uneven.time_s - even.time_s >
                            0.999 * (uneven.compute_s - even.compute_s));
            }
    }
}

static void test_memory(void **state)
{
    (void)state;
    const double one = measure("stage", "shares", "ep=8", 2).bytes -
                       measure("stage", "shares", "ep=8", 1).bytes;
    assert_true(one > 0);
    for (uint32_t d = 0; d < G_N_ELEMENTS(DEGREES); d++) {
        const char *degrees = DEGREES[d].degrees;
        const Measured even = measure("stage", "shares", degrees, 1),
                       uneven = measure("stage", "shares", degrees, 3);
        const double more = load(3, DEGREES[d].experts) - 1;
        assert_close((uneven.bytes - even.bytes) / one, more, 1e-3);
        if (strcmp(degrees, "ep=8") == 0) /* the other experts have less */
            assert_close((uneven.other_bytes - even.other_bytes) / one, -2.0 / 7, 1e-3);
    }
}

/* Kernels' times grow with the slots, too, about as a capacity of so many makes them. */
static void test_kernels(void **state)
{
    (void)state;
    const double even = measure("stage", "kernels", "ep=8", 1).time_s,
                 uneven = measure("stage", "kernels", "ep=8", 2).time_s;
    g_auto(Made) padded = made_plan("manual", MODEL "2", "dgx-h100", "runtime=none ep=8");
    const double gain = padded.plan->iteration_time_s - even;
    assert_true(gain > 0);
    assert_close((uneven - even) / gain, 1, 0.2);
}

/* Measured tokens of each expert. The times of `imbalance` are those of a first expert with so
 * many; of two experts that a device has the tokens add up; layers wait each for its own
 * fullest. */
static void test_measured_tokens(void **state)
{
    static const struct {
        const char *keys;
        double more; /* of the fullest device over the mean, less 1, over layers */
    } OF[] = {
        {"ep=8 expert_tokens=14,6,6,6,6,6,6,6", 1},
        {"ep=8 expert_tokens=6,6,6,6,14,6,6,6", 1},
        {"ep=8 expert_tokens=0,0,20,20,20,20,20,60", 2},
        {"ep=4 expert_tokens=0,0,20,20,20,20,20,60", 1},
        {"ep=4 expert_tokens=5,15,5,15,15,5,15,5", 0},
        {"ep=2 expert_tokens=0,0,20,20,20,20,20,60", 0.5},
        {"tp=2 ep=8 etp=1 expert_tokens=6,6,6,6,6,14,6,6", 1},
        {"tp=2 ep=4 etp=1 expert_tokens=0,0,20,20,20,20,20,60", 1},
        {"cp=4 ep=4 expert_tokens=0,0,20,20,20,20,20,60", 1},
        {"ep=8 expert_tokens=1,1,1,1,1,1,1,1;0,1,1,1,1,1,1,2;3,1,0,0,1,1,1,1;1,1,1,1,"
         "1,1,1,1",
         0.75}};
    (void)state;
    const double one = measure("stage", "shares", "ep=8", 2).compute_s -
                       measure("stage", "shares", "ep=8", 1).compute_s;
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        g_autofree char *degrees = g_strndup(OF[i].keys, strcspn(OF[i].keys, "x") - 1);
        const double even = measure("stage", "shares", degrees, 1).compute_s,
                     uneven = measure_with("stage", "shares", "dgx-h100", OF[i].keys)
                                  .compute_s;
        if (fabs((uneven - even) / one - OF[i].more) > 1e-4)
            fail_msg("%s: %g, expected %g", OF[i].keys, (uneven - even) / one,
                     OF[i].more);
    }
}

/* flow sends each device its tokens: 16 exchanges wait for the port of the fullest one, which gets
 * 7/8 of its tokens from other hosts. */
static void test_exact_exchange(void **state)
{
    static const char *const STAR = "star:hosts=8,bandwidth=1Gb/s,latency=5us";
    (void)state;
    const Measured even = measure_with("flow", "shares", STAR, "ep=8"),
                   uneven = measure_with("flow", "shares", STAR,
                                         "ep=8 expert_tokens=0,0,20,20,20,20,20,60");
    const double tokens = 2 * 2 * 256, bytes = 4.0 * 256 * tokens, port = 1e9 / 8;
    assert_close((uneven.time_s - uneven.compute_s) - (even.time_s - even.compute_s),
                 16 * 2 * bytes * 7 / 8 / port, 5e-3);
}

static void test_file(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *file = g_build_filename(box->folder, "tokens", NULL);
    g_autofree char *keys = g_strdup_printf("ep=8 expert_tokens=@%s", file);
    sandbox_write(box, "tokens",
                  "1 1 1 1 1 1 1 1\n0,1,1,1,1,1,1,2\n3 1 0 0 1 1 1 1\n"
                  "1 1 1 1 1 1 1 1\n");
    g_auto(Made) made = made_plan("manual", MODEL "0", "dgx-h100", keys);
    assert_string_equal(made.plan->strategy.expert_tokens,
                        "1 1 1 1 1 1 1 1; 0 1 1 1 1 1 1 2; 3 1 0 0 1 1 1 1; "
                        "1 1 1 1 1 1 1 1");
    check_shrunk(made.plan, made.graph);
}

/* The small model has room for all tokens of an expert, so the proof is of dropless routing. */
static void test_proved(void **state)
{
    (void)state;
    for (uint32_t d = 0; d < G_N_ELEMENTS(DEGREES); d++) {
        g_autofree char *set = g_strconcat(DEGREES[d].degrees, " imbalance=2", NULL);
        g_auto(Made) made = made_plan("manual", MODEL "0", "dgx-h100", set);
        check_shrunk(made.plan, made.graph);
    }
    /* where all devices of a sequence have experts or heads of their own */
    static const char *const OWN[] = {"tp=4 cp=2 ep=8 etp=1", "tp=4 cp=2 cp_comm=a2a"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OWN); i++) {
        g_auto(Made) whole = made_plan("manual", "olmoe-1b-7b:seq=4096,global_batch=8",
                                       "dgx-h100", OWN[i]);
        check_shrunk(whole.plan, whole.graph);
    }
    g_autofree char *small = model_shrink(MODEL "0", 4, 1, 0, NULL);
    g_autoptr(Graph) graph = model_build(small, 4, NULL, NULL);
    const Tensor *slots = graph_tensor(graph, graph_find(graph, "layers.0.moe.route"));
    const Op *route = graph_get_op(graph, slots->producer);
    assert_int_equal(slots->dim[2], graph_tensor(graph, route->in[1])->dim[1]);
}

static ExecTensor like(const Graph *graph, TensorId id, GRand *random)
{
    const Tensor *tensor = graph_tensor(graph, id);
    ExecTensor made = exec_tensor_new(tensor->rank, tensor->dim);
    for (uint64_t i = 0; random && i < exec_tensor_elements(&made); i++)
        made.data[i] = g_rand_double_range(random, 1, 2);
    return made;
}

/* Checks that experts get uneven numbers of tokens [b,S,e], and returns that of all. */
static uint32_t check_ragged(const ExecTensor *weight)
{
    const uint32_t experts = weight->dim[2];
    const uint64_t tokens = exec_tensor_elements(weight) / experts;
    uint32_t all = 0, least = UINT32_MAX, most = 0;
    for (uint32_t e = 0; e < experts; e++) {
        uint32_t own = 0;
        for (uint64_t s = 0; s < tokens; s++)
            own += weight->data[s * experts + e] > 0;
        least = MIN(least, own);
        most = MAX(most, own);
        all += own;
    }
    assert_true(least < most && most > (double)all / experts);
    return all;
}

/* The ops that the proof compares with: as many tokens as choose an expert go there, however
 * uneven, and each copy comes back. */
static void test_ragged(void **state)
{
    (void)state;
    g_autofree char *small = model_shrink(MODEL "0", 4, 1, 0, NULL);
    g_autoptr(Graph) graph = model_build(small, 4, NULL, NULL);
    g_autoptr(GRand) random = g_rand_new_with_seed(33);
    const OpId route =
        graph_tensor(graph, graph_find(graph, "layers.0.moe.route"))->producer;
    const Op *op = graph_get_op(graph, route);
    const OpId gate = graph_tensor(graph, op->in[0])->producer;
    OpId back = route;
    while (graph_get_op(graph, back)->kind != OP_UNROUTE)
        back++;
    ExecTensor logit = like(graph, graph_get_op(graph, gate)->in[0], random),
               in[] = {like(graph, op->in[0], NULL), like(graph, op->in[1], random)},
               slots = like(graph, op->out[0], NULL);
    const uint32_t width = in[1].dim[2];
    exec_run_op(graph, gate, &logit, &in[0]);
    const uint32_t copies = check_ragged(&in[0]);
    exec_run_op(graph, route, in, &slots);
    uint32_t filled = 0;
    for (uint64_t i = 0; i < exec_tensor_elements(&slots); i += width)
        filled += slots.data[i] > 0;
    assert_int_equal(filled, copies);
    ExecTensor of[] = {slots, in[0]}, y = like(graph, op->in[1], NULL);
    exec_run_op(graph, back, of, &y);
    for (uint64_t i = 0; i < exec_tensor_elements(&y); i++)
        assert_close(y.data[i], graph_get_op(graph, gate)->attr.top * in[1].data[i],
                     1e-12);
    ExecTensor *all[] = {&logit, &in[0], &in[1], &slots, &y};
    for (uint32_t i = 0; i < G_N_ELEMENTS(all); i++)
        exec_tensor_clear(all[i]);
}

/* Experts in groups, folded over tp: proved, too. */
static void test_groups_proved(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "groups.json",
        "{\"model_type\":\"glm4_moe\",\"num_hidden_layers\":2,\"hidden_size\":64,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":64,"
        "\"moe_intermediate_size\":32,\"n_routed_experts\":8,\"n_group\":4,"
        "\"topk_group\":2,\"num_experts_per_tok\":2,\"first_k_dense_replace\":0}");
    g_autofree char *model =
        g_strdup_printf("%s/groups.json:global_batch=16,seq=16", box->folder);
    for (uint32_t d = 0; d < G_N_ELEMENTS(DEGREES); d++) {
        g_auto(Made) made = made_plan("manual", model, "dgx-h100", DEGREES[d].degrees);
        check_shrunk(made.plan, made.graph);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model, *set, *why;
    } OF[] = {{MODEL "1", "ep=8 imbalance=2", "capacity_factor=0"},
              {MODEL "0", "ep=8 imbalance=4.5", "with at most 4 times"},
              {MODEL "0", "imbalance=2", "expected ep above 1"},
              {"gpt2:layers=2", "imbalance=2", "capacity_factor=0"},
              {MODEL "1", "ep=2 expert_tokens=1,1,1,1,1,1,1,2", "capacity_factor=0"},
              {MODEL "0", "ep=2 expert_tokens=1,2", "expected 8 numbers"},
              {MODEL "0", "ep=2 expert_tokens=1,2;1,2", "one for each of 4"},
              {MODEL "0", "ep=8 expert_tokens=1,0,0,0,0,0,0,0", "with at most 4 times"},
              {MODEL "0", "ep=8 expert_tokens=0,0,0,0,0,0,0,0", "some tokens"},
              {MODEL "0", "ep=8 expert_tokens=1,1,1,1,1,1,1,x", "'x'"},
              {MODEL "0", "ep=8 expert_tokens=@/nowhere", "/nowhere: no such file"},
              {MODEL "0", "ep=8 expert_tokens=1,1,1,1,1,1,1,2 imbalance=2", "got both"},
              {MODEL "0", "expert_tokens=1,1,1,1,1,1,1,2", "expected ep above 1"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", OF[i].model, "dgx-h100", OF[i].set, &error);
        assert_null(made.plan);
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        const char *key =
            strstr(OF[i].set, "expert_tokens") ? "expert_tokens" : "imbalance";
        if (!strstr(error->message, key) || !strstr(error->message, OF[i].why))
            fail_msg("%s: %s", OF[i].set, error->message);
    }
}

/* Where all devices of a sequence have different experts, the small model has one for each. Experts
 * that are no multiple of these are refused, and not run with tokens and weights that are cut
 * differently. */
static void test_too_few(void **state)
{
    (void)state;
    static const struct {
        const char *model, *set;
        bool proved;
    } OF[] = {{"16", "tp=4 cp=2 ep=8 etp=1", true},
              {"16", "tp=4 cp=4 ep=16 etp=1", true},
              {"12", "tp=4 cp=2 ep=8 etp=1", false}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(GStrv) part = g_strsplit(MODEL "0", "experts=8", 2);
        g_autofree char *model =
            g_strdup_printf("%sexperts=%s%s", part[0], OF[i].model, part[1]);
        g_auto(Made) made = made_plan("manual", model, "2x8xh100@8xib-ndr", OF[i].set);
        if (OF[i].proved) {
            check_shrunk(made.plan, made.graph);
            continue;
        }
        g_autoptr(ExecBackend) backend = exec_reference_new(made.plan->n_devices);
        g_auto(ExecVerdict) verdict = {0};
        assert_false(exec_verify(backend, made.plan, made.graph, 1, EXEC_TOLERANCE,
                                 &verdict, &error));
        assert_non_null(strstr(error->message, "in multiples of them, got 12"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fullest_waits),  cmocka_unit_test(test_memory),
        cmocka_unit_test(test_kernels),        cmocka_unit_test(test_measured_tokens),
        cmocka_unit_test(test_exact_exchange), cmocka_unit_test(test_file),
        cmocka_unit_test(test_proved),         cmocka_unit_test(test_ragged),
        cmocka_unit_test(test_unlike_stages),  cmocka_unit_test(test_groups_proved),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_too_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
