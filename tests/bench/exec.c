/* The overhead of a replay on the mpi backend: the time of a free run outside of ops, copies, sums
 * and exchanges, over the time inside. Run by mpirun on two ranks (./run bench).
 *
 *     mpirun -n 2 build/tests/bench_exec */
#include <stdio.h>

#include "exec/exec.h"
#include "synth/planners/planner.h"

enum { RANKS = 2, WARM_UP = 3, REPEATS = 15 };

/* A backend that passes every call on to another one and notes its time. */
typedef struct {
    ExecBackend base;
    ExecBackend *inner;
    double spent_s;
} Probe;

static Probe *as_probe(ExecBackend *backend)
{
    return (Probe *)(void *)backend;
}

static void *probe_allocate(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    ExecBackend *inner = as_probe(backend)->inner;
    return inner->ops->allocate(inner, local, elements);
}

static void probe_release(ExecBackend *backend, uint32_t local, void *data)
{
    ExecBackend *inner = as_probe(backend)->inner;
    inner->ops->release(inner, local, data);
}

static void probe_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                        const double *from)
{
    ExecBackend *inner = as_probe(backend)->inner;
    inner->ops->write(inner, local, to, from);
}

static void probe_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                       double *to)
{
    ExecBackend *inner = as_probe(backend)->inner;
    inner->ops->read(inner, local, from, to);
}

static void probe_copy(ExecBackend *backend, uint32_t local, const ExecShard *from,
                       const ExecShard *to)
{
    Probe *probe = as_probe(backend);
    const double start = exec_backend_seconds(probe->inner);
    probe->inner->ops->copy(probe->inner, local, from, to);
    probe->spent_s += exec_backend_seconds(probe->inner) - start;
}

static void probe_add(ExecBackend *backend, uint32_t local, const ExecShard *from,
                      const ExecShard *to)
{
    Probe *probe = as_probe(backend);
    const double start = exec_backend_seconds(probe->inner);
    probe->inner->ops->add(probe->inner, local, from, to);
    probe->spent_s += exec_backend_seconds(probe->inner) - start;
}

static void probe_run_op(ExecBackend *backend, uint32_t local, const Graph *graph,
                         OpId op, const ExecShard *in, const ExecShard *out)
{
    Probe *probe = as_probe(backend);
    const double start = exec_backend_seconds(probe->inner);
    probe->inner->ops->run_op(probe->inner, local, graph, op, in, out);
    probe->spent_s += exec_backend_seconds(probe->inner) - start;
}

static bool probe_exchange(ExecBackend *backend, const ExecExchange *exchange,
                           GError **error)
{
    Probe *probe = as_probe(backend);
    const double start = exec_backend_seconds(probe->inner);
    const bool good = probe->inner->ops->exchange(probe->inner, exchange, error);
    probe->spent_s += exec_backend_seconds(probe->inner) - start;
    return good;
}

static double probe_seconds(ExecBackend *backend)
{
    return exec_backend_seconds(as_probe(backend)->inner);
}

static void probe_maximum(ExecBackend *backend, double *value, uint32_t n)
{
    exec_backend_maximum(as_probe(backend)->inner, value, n);
}

static void probe_free(ExecBackend *backend)
{
    exec_backend_free(as_probe(backend)->inner);
}

static const ExecBackendOps PROBE_OPS = {
    .name = "probe",
    .allocate = probe_allocate,
    .release = probe_release,
    .write = probe_write,
    .read = probe_read,
    .copy = probe_copy,
    .add = probe_add,
    .run_op = probe_run_op,
    .exchange = probe_exchange,
    .free = probe_free,
    .seconds = probe_seconds,
    .maximum = probe_maximum,
};

typedef struct {
    const char *model, *planner, *set; /* "key=value", or NULL */
} Job;

static Plan *plan_of(const Job *job, Graph **graph, GError **error)
{
    static const char name[] = "star:hosts=2,bandwidth=10Gb/s";
    g_autoptr(Cluster) cluster = cluster_load(name, error);
    if (!cluster)
        return NULL;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    g_auto(GStrv) pair = job->set ? g_strsplit(job->set, "=", 2) : NULL;
    if (pair && !planner_options_set(&options, pair[0], pair[1], error))
        return NULL;
    return planner_plan(planner_find(job->planner, NULL), job->model, name, view,
                        &options, graph, error);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool measure(const Job *job, Probe *probe, GError **error)
{
    ExecBackend *backend = &probe->base;
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = plan_of(job, &graph, error);
    g_autoptr(ExecReplay) replay =
        plan ? exec_replay_new(backend, plan, graph, error) : NULL;
    if (!replay || !exec_replay_load(replay, 1, error))
        return false;
    double kernels[REPEATS], rest[REPEATS];
    for (int i = -WARM_UP; i < REPEATS; i++) {
        double start = 0;
        exec_backend_maximum(backend, &start, 1); /* a common start */
        probe->spent_s = 0;
        start = exec_backend_seconds(backend);
        if (!exec_replay_run(replay, error))
            return false;
        if (i < 0)
            continue;
        kernels[i] = probe->spent_s;
        rest[i] = exec_backend_seconds(backend) - start - probe->spent_s;
    }
    qsort(kernels, REPEATS, sizeof *kernels, compare);
    qsort(rest, REPEATS, sizeof *rest, compare);
    const double kernels_s = kernels[REPEATS / 2], rest_s = rest[REPEATS / 2];
    if (backend->first == 0)
        printf("%-74s %-9s %5u instructions %8.2f ms in kernels and exchanges, %8.1f us "
               "beside them: %5.2f %%\n",
               job->model, job->planner, plan->program->n, 1e3 * kernels_s, 1e6 * rest_s,
               100 * rest_s / kernels_s);
    return true;
}

int main(void)
{
    static const Job jobs[] = {
        {"vit:layers=2,hidden=16,heads=2,ffn=32,image=8,global_batch=8", "dp-ev", NULL},
        {"vgg19:width=4,fc=64,global_batch=8", "dp-ev", NULL},
        {"vit:layers=2,hidden=128,heads=4,ffn=512,patch=8,global_batch=16", "dp-ev",
         NULL},
        {"bert-base:layers=2,hidden=128,heads=4,ffn=512,seq=32,vocab=512,global_batch=8",
         "dp-ev", NULL},
        {"bert-base:layers=2,hidden=128,heads=4,ffn=512,seq=32,vocab=512,global_batch=8",
         "tensor-parallel", NULL},
        {"gpt2:layers=2,hidden=128,heads=4,ffn=512,seq=32,vocab=512,global_batch=16",
         "amp", "pp=2"},
    };
    uint32_t n_ranks, rank;
    g_autoptr(GError) error = NULL;
    if (!exec_mpi(&error) || !exec_mpi(NULL)->start(&n_ranks, &rank, &error))
        return g_printerr("%s\n", error->message), 1;
    if (n_ranks != RANKS)
        return g_printerr("expected mpirun -n %d\n", RANKS), 1;
    Probe probe = {.inner = exec_mpi(NULL)->backend_new(sizeof(float))};
    probe.base = *probe.inner;
    probe.base.ops = &PROBE_OPS;
    for (uint32_t i = 0; i < G_N_ELEMENTS(jobs); i++)
        if (!measure(&jobs[i], &probe, &error))
            return g_printerr("%s\n", error->message), 1;
    exec_backend_free(&probe.base);
    exec_mpi(NULL)->stop();
    return 0;
}
