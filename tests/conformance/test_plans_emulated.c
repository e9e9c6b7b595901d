/* Plans of every kind of planner, shrunk, on the cuda backend's own code and emulated devices
 * (tests/support/device): each row on 1, 2, 4 and 7 devices of two speeds, in many orders of the
 * devices' work, all results kept and compared, or in memory that is used again, as `kilter exec`
 * runs them. KILTER_SEEDS: how many orders of each; without it a sample of rows and orders.
 * KILTER_PART=K/N: only the rows whose number leaves K when divided by N. */
#include "exec/cuda/module.h"
#include "exec/exec.h"
#include "synth/planners/planner.h"
#include "tests/support/device/device.h"
#include "tests/support/made_plan.h"
#include "tests/support/trained.h"

#define VGG "vgg19:width=8,fc=64,global_batch=28"
#define VIT "vit:layers=2,hidden=64,heads=4,ffn=128,global_batch=28"
#define BERT \
    "bert-base:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=96,global_batch=28"
#define MOE "bert-moe:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=96,global_batch=28"
#define GPT "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=96,global_batch=28"
#define LLAMA                                                                           \
    "llama:layers=4,hidden=64,heads=4,kv_heads=4,ffn=128,seq=16,vocab=96,global_batch=" \
    "28"
#define FUSED LLAMA ",attention=fused"

/* The numbers of devices that a row is planned for; other numbers do not divide its degrees. */
enum { ONE = 1, TWO = 2, FOUR = 4, SEVEN = 8, ALL = 15 };
static const uint32_t N_DEVICES[] = {1, 2, 4, 7};

typedef struct {
    const char *planner, *model, *set;
    uint32_t devices;
} Row;

static const Row ROWS[] = {
    {"hap", VGG, "", ALL},
    {"hap", VIT, "", ALL},
    {"hap", BERT, "collectives=grouped", ALL},
    {"hap", BERT, "collectives=padded ratios=best", ALL},
    {"hap", MOE, "", ALL},
    {"hap", GPT ",precision=mixed", "segments=layers", ALL},
    {"hap", FUSED, "microbatches=2", ALL},
    {"hap", LLAMA, "recompute=full", ALL},
    {"hidup", VIT, "", TWO | FOUR | SEVEN},
    {"hidup", BERT, "ratios=best", TWO | FOUR | SEVEN},
    {"hidup", MOE, "", TWO | FOUR | SEVEN},
    {"dp-ev", GPT, "duplex=on bucket=1KiB", TWO | FOUR | SEVEN},
    {"deepspeed", MOE, "", TWO | FOUR | SEVEN},
    {"fastmoe", MOE, "duplex=on", TWO | FOUR},
    {"gshard", MOE, "", TWO | FOUR},
    {"tensor-parallel", VIT, "", TWO | FOUR},
    {"ddp", VGG, "bucket=4KiB", ALL},
    {"amp", GPT, "micro_batch=2", ALL},
    {"amp", LLAMA, "pp=2 micro_batch=2", TWO | FOUR},
    {"amp", GPT ",precision=mixed", "pp=2 dp=2 micro_batch=2", FOUR},
    {"amp", GPT, "schedule=gpipe pp=4 micro_batch=1", FOUR},
    {"megatron", LLAMA, "", ALL},
    {"amp-random", GPT, "", ALL},
    {"tag", VGG, "", TWO | FOUR},
    {"tag", VIT, "", TWO | FOUR | SEVEN},
    {"tag", BERT, "microbatches=2", TWO | FOUR},
    {"dp-nccl-sfb", VGG, "", TWO | FOUR | SEVEN},
    {"flexflow", VIT, "", TWO | FOUR},
    {"heterog", BERT, "", TWO | FOUR},
    {"m-etf", VGG, "", TWO | FOUR | SEVEN},
    {"joint", GPT, "microbatches=4", ALL},
    {"joint", LLAMA, "microbatches=2", TWO | FOUR | SEVEN},
    {"joint", MOE, "", TWO | FOUR | SEVEN},
    {"manual", GPT, "pp=2 tp=2 micro_batch=2", FOUR},
    {"manual", GPT, "dp=2 pp=2 zero=1 micro_batch=2", FOUR},
    {"manual", GPT, "dp=7 zero=2", SEVEN},
    {"manual", LLAMA, "tp=4 sequence_parallel=on", FOUR},
    {"manual", LLAMA, "tp=2 dp=2 zero=3", FOUR},
    {"manual", GPT ",precision=mixed", "pp=2 schedule=interleaved chunks=2 micro_batch=7",
     TWO},
    {"manual", GPT, "pp=4 schedule=zb-h1 micro_batch=4", FOUR},
};

/* Machines of n devices: fast GPUs, and slow ones of half the memory. */
static Cluster *lab_new(uint32_t n)
{
    static const char inner[] = "inner: {latency: 2 us, bandwidth: 2 GB/s}";
    const uint32_t fast = (n + 1) / 2, slow = n / 2;
    g_autofree char *rest =
        slow ? g_strdup_printf("  - {name: s, type: slow, gpus: 1}\n"
                               "%s  - {name: t, type: slow, gpus: %u, %s}\n",
                               slow > 1 ? "" : "#", MAX(slow - 1, 1), inner)
             : g_strdup("");
    g_autofree char *text = g_strdup_printf(
        "name: lab\ndevice_types:\n"
        "  - {name: fast, rate: 30 GFLOP/s, memory: 1 GiB}\n"
        "  - {name: slow, rate: 10 GFLOP/s, memory: 512 MiB}\n"
        "machines:\n  - {name: f, type: fast, gpus: %u, %s}\n%s"
        "collectives:\n"
        "  all_reduce: {latency: 20 us, bandwidth: 200 MB/s}\n"
        "  all_gather: {latency: 20 us, bandwidth: 200 MB/s}\n"
        "  grouped_all_gather: {latency: 20 us, bandwidth: 200 MB/s}\n"
        "  reduce_scatter: {latency: 20 us, bandwidth: 200 MB/s}\n"
        "  grouped_reduce_scatter: {latency: 20 us, bandwidth: 200 MB/s}\n"
        "  all_to_all: {latency: 20 us, bandwidth: 200 MB/s}\n",
        fast, inner, rest);
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("lab", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

/* The row's plan for n devices, shrunk; *small gets the graph. */
static Plan *row_plan(const Row *row, uint32_t n, Graph **small)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = lab_new(n);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    PlannerOptions options;
    set_options(&options, row->set, &error);
    assert_no_error(error);
    g_autoptr(Plan) plan = planner_plan(planner_find(row->planner, NULL), row->model,
                                        "lab", view, &options, &graph, &error);
    Plan *shrunk = plan ? exec_shrink_plan(plan, graph, NULL, small, &error) : NULL;
    if (error)
        fail_msg("%s for %s on %u devices (%s): %s", row->planner, row->model, n,
                 row->set, error->message);
    return shrunk;
}

/* A row's plan for some devices. */
typedef struct {
    const Row *row;
    const Plan *plan;
    const Graph *graph;
    ExecTensor *trained; /* the values after ITERATIONS of training on one device */
} Planned;

/* Every second four seeds, one of each order of the devices' work, train. */
enum { ITERATIONS = 2, ORDERS = 4 };

static ExecBackend *planned_backend(const Planned *p, uint32_t seed)
{
    const ExecNumbers half = graph_precision(p->graph) == PRECISION_SINGLE ? EXEC_PLAIN
                             : seed % 2                                    ? EXEC_BF16
                                                                           : EXEC_FP16;
    const size_t size =
        half != EXEC_PLAIN || seed % 3 == 2 ? sizeof(float) : sizeof(double);
    const ExecCudaWorld world = {.ranks = EXEC_CUDA_GPUS,
                                 .n_ranks = p->plan->n_devices,
                                 .n_processes = 1,
                                 .half = half,
                                 .loss_scale = exec_half_loss_scale(p->graph, half)};
    g_autoptr(GError) error = NULL;
    device_reset(p->plan->n_devices, seed);
    ExecBackend *backend = kilter_cuda_new(&world, size, &error);
    assert_no_error(error);
    return backend;
}

static void planned_fail(const Planned *p, uint32_t seed, const char *what, double error,
                         const char *where)
{
    fail_msg("%s for %s on %u devices (%s), seed %u: %s %g of %s", p->row->planner,
             p->row->model, p->plan->n_devices, p->row->set, seed, what, error, where);
}

/* In float64, every third seed in float32; models of mixed precision in two bytes. */
static void check_results(const Planned *p, uint32_t seed)
{
    g_autoptr(GError) error = NULL;
    g_auto(ExecVerdict) verdict = {0};
    g_autoptr(ExecBackend) backend = planned_backend(p, seed);
    /* Adam's first step divides small gradients by their own size: float32 errs by more there */
    const double tolerance =
        backend->half == EXEC_PLAIN && backend->element_bytes == sizeof(float)
            ? 20 * EXEC_SINGLE_TOLERANCE
            : exec_tolerance(backend);
    exec_verify(backend, p->plan, p->graph, 1 + seed / 10, tolerance, &verdict, &error);
    if (error || !verdict.right)
        planned_fail(p, seed, error ? error->message : "error", verdict.error,
                     error ? "the run" : verdict.where);
    assert_true(verdict.n_tensors > 2 * verdict.n_zero);
    assert_true(device_counts().kernels > 0);
}

/* Rooms are left and entered while exchanges run. */
static void check_training(const Planned *p, uint32_t seed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecBackend) backend = planned_backend(p, seed);
    g_autoptr(ExecReplay) replay =
        trained_replay(backend, p->plan, p->graph, ITERATIONS, 1, &error);
    if (!replay)
        planned_fail(p, seed, error->message, 0, "training");
    uint32_t n;
    const double found = trained_error(backend, replay, p->graph, p->trained, &n);
    const bool single = backend->element_bytes == sizeof(float);
    if (!(found <= (single ? 20 * EXEC_SINGLE_TOLERANCE : 1e-9)) || n == 0)
        planned_fail(p, seed, "error", found, "the trained values");
}

/* Whether devices of a row's plan exchanged data. */
static bool row_run(const Row *row, uint32_t n, uint32_t first, uint32_t n_seeds)
{
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) plan = row_plan(row, n, &small);
    const bool trains = graph_precision(small) == PRECISION_SINGLE;
    const Planned p = {row, plan, small,
                       trains ? trained_values(small, ITERATIONS, 1) : NULL};
    for (uint32_t seed = first; seed < first + n_seeds; seed++)
        if (trains && seed / ORDERS % 2)
            check_training(&p, seed);
        else
            check_results(&p, seed);
    if (trains)
        exec_values_free(small, p.trained);
    return device_counts().moved_bytes > 0;
}

static void test_plans(void **state)
{
    (void)state;
    enum { SAMPLE = 4 };
    const char *text = g_getenv("KILTER_SEEDS");
    const uint32_t n_seeds = text ? (uint32_t)strtoul(text, NULL, 10) : 1;
    uint32_t n = 0, several = 0, exchanged = 0;
    const char *part = g_getenv("KILTER_PART");
    uint32_t k = 0, parts = 1;
    if (part)
        assert_true(sscanf(part, "%u/%u", &k, &parts) == 2 && k < parts);
    for (uint32_t r = 0; r < G_N_ELEMENTS(ROWS); r++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(N_DEVICES); i++)
            /* the sample takes each row on another number of devices */
            if (r % parts == k && (ROWS[r].devices >> i & 1) &&
                (n++ % SAMPLE == 1 || text)) {
                const bool moved = row_run(&ROWS[r], N_DEVICES[i], text ? 0 : n, n_seeds);
                several += N_DEVICES[i] > 1;
                exchanged += moved && N_DEVICES[i] > 1;
            }
    if (part) /* a share of all rows is asked for */
        return;
    assert_true(3 * several > n / (text ? 1 : SAMPLE));
    if (4 * exchanged < 3 * several) /* the others lie on one device */
        fail_msg("only %u of %u plans exchange data", exchanged, several);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
