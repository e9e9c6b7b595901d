/* Plans with device groups, replicas, microbatches and transfers on four real ranks: run by mpirun
 * (see tests/CMakeLists.txt). Each rank is in some groups only, so each message must be expected by
 * its receiver. */
#include "exec/exec.h"
#include "synth/planners/planner.h"
#include "tests/support/ranks.h"

enum { TIME_LIMIT_S = 100, RANKS = 4 };

#define SMALL  ":layers=2,hidden=16,heads=4,kv_heads=4,ffn=24,seq=8,vocab=24,"
#define FOLDED SMALL "experts=4,global_batch=16"
#define UNLIKE SMALL "global_batch=16"
#define ONE    SMALL "global_batch=1"

static const struct {
    const char *planner, *model, *set; /* "key=value key=value" */
    uint32_t n_groups;
} CASES[] = {
    {"amp", "gpt2:layers=4,global_batch=16", "pp=2 dp=2 mbs=2", 2},
    {"amp", "gpt2:layers=4,global_batch=16", "pp=2 tmp=2 mbs=4 schedule=gpipe", 2},
    {"amp", "gpt2:layers=4,global_batch=16", "dp=2 tmp=2 mbs=2", 1},
    {"megatron", "gpt2:layers=6,global_batch=16", "pp=4 mbs=4", 4},
    {"amp", "gpt2:layers=6,global_batch=16", "pp=2 dp=2 mbs=1 schedule=interleaved", 2},
    {"amp", "transgan:layers=2", "pp=2 dp=2", 2},
    {"hidup", "bert-sgmoe:layers=2", "duplex=on", 0},
    {"dp-cp", "vgg19", "duplex=on", 0},
    {"hidup", "bert-sgmoe:layers=2", "pieces=4", 0},
    {"manual", "mixtral" FOLDED, "pp=2 tp=2 microbatches=2 pieces=2", 2},
    /* experts folded over what shares sequences and tensors; one sequence on all; unlike stages */
    {"manual", "mixtral" FOLDED, "cp=2 dp=2 ep=4 microbatches=2", 3},
    {"manual", "mixtral" FOLDED, "cp=4 ep=2 zero=1 microbatches=2", 3},
    {"manual", "mixtral" FOLDED, "tp=2 dp=2 ep=4 etp=1 sequence_parallel=on", 2},
    {"manual", "mixtral" FOLDED, "tp=2 cp=2 ep=4 etp=1 zero=3", 1},
    {"manual", "llama" ONE, "cp=4 cp_comm=a2a zero=1", 1},
    {"manual", "llama" ONE, "cp=2 pp=2 recompute=full", 2},
    {"manual", "llama" UNLIKE, "stage_cp=2,1 stage_dp=1,2 stage_zero=2,1 microbatches=2",
     3},
    {"manual", "mixtral" FOLDED, "pp=2 dp=2 stage_ep=2,1 microbatches=2", 3},
};

/* The plan of a case for four GPUs, for the model with small sizes. */
static Plan *plan_of(uint32_t i, Graph **small)
{
    static const char cluster_name[] = "star:hosts=4,bandwidth=10Gb/s";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    g_auto(GStrv) pair = g_strsplit(CASES[i].set, " ", -1);
    for (uint32_t k = 0; pair[k]; k++) {
        g_auto(GStrv) side = g_strsplit(pair[k], "=", 2);
        planner_options_set(&options, side[0], side[1], &error);
        assert_no_error(error);
    }
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan =
        planner_plan(planner_find(CASES[i].planner, NULL), CASES[i].model, cluster_name,
                     view, &options, &graph, &error);
    assert_no_error(error);
    assert_int_equal(plan->program->n_groups, CASES[i].n_groups);
    Plan *shrunk = exec_shrink_plan(plan, graph, NULL, small, &error);
    assert_no_error(error);
    return shrunk;
}

static void check_case(uint32_t i, ExecBackend *backend, double tolerance)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) plan = plan_of(i, &small);
    g_auto(ExecVerdict) verdict = {0};
    exec_verify(backend, plan, small, 1, tolerance, &verdict, &error);
    assert_no_error(error);
    if (!verdict.right)
        fail_msg("%s %s: error %g of %s; first wrong: %s", CASES[i].planner, CASES[i].set,
                 verdict.error, verdict.where, verdict.wrong_tensor);
    assert_true(2 * verdict.n_zero < verdict.n_tensors);
}

static void test_plans_are_right(void **state)
{
    (void)state;
    g_autoptr(ExecBackend) backend = exec_mpi(NULL)->backend_new(sizeof(double));
    assert_int_equal(backend->n_ranks, RANKS);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++)
        check_case(i, backend, EXEC_TOLERANCE);
}

/* Iterations one after the other: the sums keep nothing of the previous one, and every rank makes
 * as many measurements. */
static void test_repeats(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecBackend) backend = exec_mpi(NULL)->backend_new(sizeof(float));
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) plan = plan_of(0, &small);
    g_autoptr(ExecReplay) replay = exec_replay_new(backend, plan, small, &error);
    assert_no_error(error);
    exec_replay_load(replay, 1, &error);
    assert_no_error(error);
    g_auto(ExecMeasurement) m = {0};
    exec_measure(backend, replay, plan, small, (ExecRuns){1, 3}, &m, &error);
    assert_no_error(error);
    double least_s = -m.iteration.median_s;
    exec_backend_maximum(backend, &least_s, 1);
    assert_close(-least_s, m.iteration.median_s, 1e-12);
    assert_true(m.iteration.median_s > 0 && m.op[OP_LINEAR].n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_right),
        cmocka_unit_test(test_repeats),
    };
    RUN_ON_RANKS(tests, TIME_LIMIT_S);
}
