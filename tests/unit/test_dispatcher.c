/* How tokens reach experts: to each machine once, exchanges are shorter by the closed form of the
 * machines that a token needs; beside a microbatch in the other direction they are hidden. */
#include <math.h>
#include <string.h>

#include "experiments/calibration/trial_plan.h"
#include "tests/support/made_plan.h"
#include "tests/support/program.h"

/* NVLink so fast that ports alone decide. */
#define CLUSTER                                                                          \
    "{name: four, machines: [{device: h100-sxm, gpus: 2, count: 4, nic: ib-ndr, inner: " \
    "{latency: "                                                                         \
    "1us, bandwidth: 4000GB/s}}]}"

typedef struct {
    double seconds, comm_s;
} Times;

static Times times_of_model(char *model, const char *fidelity, const char *dispatcher,
                            const char *further)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *options =
        g_strdup_printf("micro_batch=1,network=crossbar,runtime=none,dispatcher=%s%s",
                        dispatcher, further);
    Trial trial = {.model = model,
                   .planner = "manual",
                   .options = options,
                   .fidelity = fidelity,
                   .cluster = cluster_parse("four", CLUSTER, strlen(CLUSTER), &error)};
    assert_no_error(error);
    g_auto(TrialPlan) plan = {0};
    TrialDetail detail;
    Times times;
    assert_true(trial_plan_make(&trial, NULL, &plan, &error));
    assert_no_error(error);
    assert_true(trial_plan_predict(&plan, NULL, &times.seconds, &detail, &error));
    times.comm_s = detail.comm_s;
    cluster_free(trial.cluster);
    return times;
}

static Times times_of(const char *fidelity, const char *dispatcher, uint32_t top,
                      const char *further)
{
    g_autofree char *model = g_strdup_printf(
        "mixtral:layers=4,hidden=4096,heads=32,kv_heads=8,ffn=2048,experts=32,top=%u,"
        "seq=4096,vocab=1024,global_batch=64,precision=bf16",
        top);
    return times_of_model(model, fidelity, dispatcher, further);
}

/* Machines that have an expert of a token: 4 machines of 8 of 32 experts. */
static double machines(uint32_t top)
{
    double none = 1;
    for (uint32_t i = 0; i < top; i++)
        none *= (24.0 - i) / (32.0 - i);
    return 4 * (1 - none);
}

static void test_once(void **state)
{
    static const char *const FIDELITY[] = {"stage", "flow"};
    static const uint32_t TOP[] = {2, 8};
    (void)state;
    for (uint32_t f = 0; f < G_N_ELEMENTS(FIDELITY); f++) {
        const Times one = times_of(FIDELITY[f], "alltoall", 1, ",ep=8"),
                    two = times_of(FIDELITY[f], "alltoall", 2, ",ep=8");
        const double copy_s =
            two.comm_s - one.comm_s; /* of one more copy of each token */
        assert_true(copy_s > 0.2 * two.comm_s);
        for (uint32_t i = 0; i < G_N_ELEMENTS(TOP); i++) {
            const Times all = times_of(FIDELITY[f], "alltoall", TOP[i], ",ep=8"),
                        once = times_of(FIDELITY[f], "once", TOP[i], ",ep=8");
            assert_close((all.comm_s - once.comm_s) / copy_s, TOP[i] - machines(TOP[i]),
                         0.02);
        }
    }
}

/* A token's experts are in K of G groups: as many machines as groups have 8 experts each, and half
 * as many as groups have two groups of 4. */
static void test_groups(void **state)
{
    static const struct {
        uint32_t groups, open;
        double machines;
    } OF[] = {
        {1, 1, 4 * (1 - 24.0 * 23 / (32 * 31))},
        {4, 2, 2 * (1 - 8.0 * 7 / (16 * 15))},
        {4, 1, 1},
        {8, 1, 1},
        /* C(6, 1) of C(8, 2) pairs of groups have one of the machine's two, 1 both */
        {8, 2, 4 * (2 * 6 / 28.0 * (1 - 4.0 * 3 / (8 * 7)) + 1 / 28.0)}};
    g_autoptr(Sandbox) box = sandbox_new();
    double all[2] = {0};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF) + 1; i++) {
        const uint32_t top = i ? 2 : 1, k = i ? i - 1 : 0;
        g_autofree char *config = g_strdup_printf(
            "{'model_type':'glm4_moe','num_hidden_layers':4,'hidden_size':4096,"
            "'num_attention_heads':32,'num_key_value_heads':8,'moe_intermediate_size':"
            "2048,"
            "'n_routed_experts':32,'n_shared_experts':0,'num_experts_per_tok':%u,"
            "'vocab_size':1024,'first_k_dense_replace':0,'n_group':%u,'topk_group':%u}",
            top, OF[k].groups, OF[k].open);
        g_strdelimit(config, "'", '"');
        sandbox_write(box, "groups.json", config);
        g_autofree char *model = g_strdup_printf(
            "%s/groups.json:seq=4096,global_batch=64,precision=bf16", box->folder);
        all[i > 0] = times_of_model(model, "stage", "alltoall", ",ep=8").comm_s;
        if (i > 0)
            assert_close(
                (all[1] - times_of_model(model, "stage", "once", ",ep=8").comm_s) /
                    (all[1] - all[0]),
                2 - OF[k].machines, 0.02);
    }
}

/* Inside a machine each expert has its own copy. */
static void test_inside(void **state)
{
    (void)state;
    assert_close(times_of("stage", "once", 8, ",ep=2").seconds,
                 times_of("stage", "alltoall", 8, ",ep=2").seconds, 1e-12);
}

/* Of passes in turn all make pairs but the first and the last one, also those of the last stage,
 * and without stages, where a backward pass is beside the next microbatch's forward. Of 8
 * microbatches then 7 / 8 of all exchanges run beside computation, as far as software has them
 * there. */
static void test_overlapped(void **state)
{
    (void)state;
    static const char *const FIDELITY[] = {"stage", "flow"};
    for (uint32_t f = 0; f < G_N_ELEMENTS(FIDELITY); f++) {
        const Times once = times_of(FIDELITY[f], "once", 8, ",pp=2,ep=4"),
                    beside = times_of(FIDELITY[f], "overlapped", 8, ",pp=2,ep=4");
        assert_true(beside.seconds < once.seconds && beside.comm_s < 0.9 * once.comm_s);
        assert_true(beside.comm_s > 0.15 * once.comm_s);
        const Times copies = times_of(FIDELITY[f], "alltoall", 8, ",pp=2,ep=4"),
                    hidden =
                        times_of(FIDELITY[f], "alltoall-overlapped", 8, ",pp=2,ep=4");
        assert_true(hidden.seconds < copies.seconds && hidden.comm_s < copies.comm_s);
        assert_true(hidden.comm_s > beside.comm_s - 1e-12);
        Times of[3]; /* with so many copies of a token; 0: one, beside computation */
        for (uint32_t top = 0; top < 3; top++) {
            g_autofree char *model = g_strdup_printf(
                "mixtral:layers=4,hidden=4096,heads=32,kv_heads=8,ffn=14336,"
                "experts=8,top=%u,seq=4096,vocab=1024,global_batch=64,"
                "precision=bf16",
                MAX(top, 1));
            of[top] = times_of_model(model, FIDELITY[f],
                                     top ? "alltoall" : "alltoall-overlapped", ",ep=8");
        }
        assert_close((of[1].comm_s - of[0].comm_s) / (of[2].comm_s - of[1].comm_s),
                     (1 - 20.0 / 132) * 7 / 8, 0.05);
    }
}

/* Two passes take turns at their exchanges: those that are longer than all computations hide what
 * is computed between them, and gradients of weights, but not the head, which both passes of a pair
 * compute where no exchange of the other is. */
static void test_turns(void **state)
{
    (void)state;
    double computed_s[2], hidden_s[2];
    for (uint32_t i = 0; i < 2; i++) {
        g_autofree char *model = g_strdup_printf(
            "mixtral:layers=1,hidden=4096,heads=32,kv_heads=8,ffn=2048,experts=32,top=8,"
            "seq=4096,vocab=%u,global_batch=64,precision=bf16",
            i ? 32768 : 1024);
        const Times copies = times_of_model(model, "stage", "alltoall", ",ep=8"),
                    beside =
                        times_of_model(model, "stage", "alltoall-overlapped", ",ep=8");
        computed_s[i] = copies.seconds - copies.comm_s;
        hidden_s[i] = copies.comm_s - beside.comm_s;
    }
    const double more_s = computed_s[1] - computed_s[0];
    assert_true(more_s > 0.1 * computed_s[0]);
    assert_at_most(hidden_s[1] - hidden_s[0], 0.5 * more_s);
}

/* Where it would change nothing it is refused, with the reason. */
static void test_without_effect(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cluster, *costs, *why;
    } OF[] = {{"mixtral", "dgx-h100", "shares", "costs=kernels"},
              {"mixtral", "star:hosts=8", "kernels", "GPUs of data sheets"},
              {"llama", "dgx-h100", "kernels", "a model with experts"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *model = g_strdup_printf(
            "%s:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,"
            "global_batch=16",
            OF[i].model);
        g_autofree char *set = g_strdup_printf("dispatcher=once costs=%s", OF[i].costs);
        g_auto(Made) made = make("manual", model, OF[i].cluster, set, &error);
        assert_null(made.plan);
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        assert_non_null(strstr(error->message, "dispatcher has no effect here"));
        assert_non_null(strstr(error->message, OF[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),   cmocka_unit_test(test_groups),
        cmocka_unit_test(test_inside), cmocka_unit_test(test_overlapped),
        cmocka_unit_test(test_turns),  cmocka_unit_test(test_without_effect)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
