/* A replay that trains: its numbers are those of two iterations on one device, whatever shares
 * memory, and the memory that it holds at its peak is the memory that the model predicts,
 * category by category. */
#include "synth/planners/planner.h"
#include "tests/conformance/verify_cases.h"
#include "tests/support/trained.h"

#include "sim/sim.h"
#ifdef KILTER_EMULATED
#include "exec/cuda/module.h"
#include "tests/support/device/device.h"
#endif

/* --- numbers --- */

static void check_trains(const char *name, const Plan *plan, const Graph *graph)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
    g_autoptr(ExecReplay) replay = trained_replay(backend, plan, graph, 2, 1, &error);
    if (!replay)
        fail_msg("%s: %s", name, error->message);
    ExecTensor *want = trained_values(graph, 2, 1);
    uint32_t n;
    const double found = trained_error(backend, replay, graph, want, &n);
    if (!(found <= 1e-9) || n == 0)
        fail_msg("%s: error %g after two iterations, of %u shards", name, found, n);
    exec_values_free(graph, want);
}

static void test_random_plans(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 100; seed++) {
        RandomCase c = random_case(seed);
        g_autofree char *name = g_strdup_printf("random case %u", seed);
        check_trains(name, c.plan, c.graph);
        random_case_clear(&c);
    }
}

/* --- memory --- */

typedef struct {
    const char *planner, *model, *set;
    bool bf16; /* where the model is in half precision: bf16 instead of fp16 */
} Case;

#define BERT "bert-base:hidden=64,heads=4,ffn=128,vocab=256,global_batch=8"
#define LLAMA                                                                            \
    "llama:hidden=64,heads=4,kv_heads=2,ffn=128,seq=16,vocab=256,global_batch=8,layers=" \
    "2"
static const Case CASES[] = {
    {"dp-ev", BERT ",seq=16,layers=2,dropout=0", "", false},
    {"dp-ev", BERT ",seq=16,layers=2,dropout=0", "recompute=full", false},
    {"dp-ev", LLAMA ",attention=fused", "recompute=selective", false},
    {"manual", BERT ",seq=16,layers=2,dropout=0", "tp=2 pp=2 microbatches=4", false},
    {"manual", LLAMA, "dp=2 pp=2 microbatches=2 recompute=full", false},
    {"manual", LLAMA, "tp=2 dp=2 zero=3", false},
    {"manual", LLAMA, "dp=4 zero=1", false},
    {"manual", LLAMA, "pipeline_layers=2;1,1 microbatches=4 pipeline_shares=3,1", false},
    {"hidup", BERT ",seq=16,layers=2,dropout=0", "", false},
    {"joint", LLAMA, "", false},
    {"tag", LLAMA, "", false},
};

static Plan *plan_of(const Case *c, ClusterView *view, Graph **graph)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    g_auto(GStrv) pair = g_strsplit(c->set, " ", -1);
    for (uint32_t k = 0; pair[k]; k++) {
        g_auto(GStrv) side = g_strsplit(pair[k], "=", 2);
        planner_options_set(&options, side[0], side[1], &error);
        assert_no_error(error);
    }
    Plan *plan = planner_plan(planner_find(c->planner, NULL), c->model, "star:hosts=4",
                              view, &options, graph, &error);
    assert_no_error(error);
    return plan;
}

/* The reference, or, for a model in half precision, the cuda backend's kernels on the host. */
static ExecBackend *backend_of(const Case *c, const Plan *plan, const Graph *graph)
{
    const ExecNumbers half = graph_precision(graph) == PRECISION_SINGLE ? EXEC_PLAIN
                             : c->bf16                                  ? EXEC_BF16
                                                                        : EXEC_FP16;
    if (half == EXEC_PLAIN)
        return exec_reference_new(plan->n_devices);
#ifdef KILTER_EMULATED
    const ExecCudaWorld world = {.ranks = EXEC_CUDA_VIRTUAL,
                                 .n_ranks = plan->n_devices,
                                 .n_processes = 1,
                                 .half = half,
                                 .loss_scale = exec_half_loss_scale(graph, half)};
    g_autoptr(GError) error = NULL;
    device_reset(1, 1);
    ExecBackend *backend = kilter_cuda_new(&world, sizeof(float), &error);
    assert_no_error(error);
    return backend;
#else
    return NULL; /* test_half_precision is skipped */
#endif
}

/* The fullest device as the memory model predicts it, and as a replay finds it; float64 counts
 * half. In half precision the numbers are right, too. */
static void find_peaks(const Case *c, SimMemoryRow *predicted, ExecHeld *held)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("star:hosts=4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = plan_of(c, view, &graph);
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "stage", &error);
    assert_no_error(error);
    g_autoptr(GArray) rows =
        sim_memory_table(plan, graph, view, "", false, report->memory_bytes, &error);
    assert_no_error(error);
    *predicted = g_array_index(rows, SimMemoryRow, 0);
    g_autoptr(ExecBackend) backend = backend_of(c, plan, graph);
    if (backend->half != EXEC_PLAIN) {
        g_auto(ExecVerdict) verdict = {0};
        exec_verify(backend, plan, graph, 1, exec_tolerance(backend), &verdict, &error);
        assert_no_error(error);
        if (!verdict.right)
            fail_msg("%s %s: error %g of %s", c->planner, c->model, verdict.error,
                     verdict.where);
    }
    g_autoptr(ExecReplay) replay = trained_replay(backend, plan, graph, 2, 1, &error);
    assert_no_error(error);
    *held = *exec_replay_peak(replay);
    const uint64_t per_byte = backend->element_bytes / sizeof(float);
    held->total /= per_byte;
    for (uint32_t k = 0; k < MEMORY_CATEGORIES; k++)
        held->bytes[k] /= per_byte;
}

/* Gradients of replicas with unlike stages join in place. */
static void test_unlike_replicas(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("star:hosts=4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    static const char *const set[] = {
        "pipeline_layers=2;1,1 microbatches=4 pipeline_shares=3,1",
        "pipeline_layers=2;2;1,1 ranks=0;3;2;1 microbatches=8",
        "pipeline_layers=2;1,1 microbatches=4 zero=1 schedule=zb-h1"};
    for (uint32_t k = 0; k < G_N_ELEMENTS(set); k++) {
        g_autoptr(Graph) graph = NULL;
        const Case c = {"manual", LLAMA, set[k], false};
        g_autoptr(Plan) plan = plan_of(&c, view, &graph);
        check_trains(set[k], plan, graph);
    }
}

/* Inputs that stay and indices of four bytes make the difference, and where a sum over the batch
 * takes temporary memory the peak may be elsewhere. */
static void check_memory(const Case *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        SimMemoryRow predicted;
        ExecHeld held;
        find_peaks(&c[i], &predicted, &held);
        const double want = (double)predicted.total_bytes;
        if (fabs((double)held.total - want) > 0.03 * want)
            fail_msg("%s %s %s: holds %g bytes, %g predicted", c[i].planner, c[i].model,
                     c[i].set, (double)held.total, want);
        for (uint32_t k = 0; held.bytes[MEMORY_RUNTIME] == 0 && k < MEMORY_CATEGORIES;
             k++)
            if (fabs((double)held.bytes[k] - (double)predicted.bytes[k]) > 0.01 * want)
                fail_msg("%s %s %s: holds %g bytes of %s, %g predicted", c[i].planner,
                         c[i].model, c[i].set, (double)held.bytes[k], memory_category(k),
                         (double)predicted.bytes[k]);
    }
}

static void test_memory(void **state)
{
    (void)state;
    check_memory(CASES, G_N_ELEMENTS(CASES));
}

/* In mixed precision tensors take two bytes, and the optimizer's states four. */
static void test_half_precision(void **state)
{
    (void)state;
    static const Case half[] = {
        {"dp-ev", BERT ",seq=16,layers=2,dropout=0,precision=mixed", "", false},
        {"dp-ev", LLAMA ",attention=fused,precision=mixed", "recompute=full", true},
        {"manual", LLAMA ",precision=mixed-fp32-grads", "dp=2 pp=2 microbatches=2",
         false},
        {"manual", LLAMA ",precision=mixed", "tp=2 dp=2 zero=3", false},
        {"joint", BERT ",seq=16,layers=2,dropout=0,precision=mixed", "", true},
    };
#ifndef KILTER_EMULATED
    skip();
#endif
    check_memory(half, G_N_ELEMENTS(half));
}

/* A replay makes dropout's masks again instead of keeping them. */
static void test_masks(void **state)
{
    (void)state;
    SimMemoryRow predicted;
    ExecHeld held;
    find_peaks(&(Case){"dp-ev", BERT ",seq=32,layers=3,dropout=0.1", "", false},
               &predicted, &held);
    assert_true(held.bytes[MEMORY_ACTIVATIONS] < predicted.bytes[MEMORY_ACTIVATIONS]);
    for (uint32_t k = 0; k < MEMORY_CATEGORIES; k++)
        assert_true(k == MEMORY_ACTIVATIONS || held.bytes[k] == predicted.bytes[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_plans),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_unlike_replicas), cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
