/* Measuring the limits of a device: a product, in two bytes where the backend has them, and a sum
 * of large tensors. */
#include "exec/limits.h"

#include <math.h>

/* Runs of this many seconds are long enough that launches and clocks do not count. */
static const double PRODUCT_S = 20e-3, SUM_S = 5e-3;
enum {
    EXTENT_LEAST = 256,
    EXTENT_MOST = 8192,
    ELEMENTS_LEAST = 1 << 20,
    ELEMENTS_MOST = 1 << 26
};

/* One op, or, without a graph, the sum of two shards, on each local rank. */
typedef struct {
    const Graph *graph;
    OpId op;
    uint32_t n_in;    /* the output, or the shard added to, follows the inputs */
    ExecShard *shard; /* [local * (n_in + 1) + operand] */
} Work;

static void limits_run(ExecBackend *backend, const Work *work)
{
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const ExecShard *in = work->shard + (size_t)local * (work->n_in + 1);
        if (work->graph)
            backend->ops->run_op(backend, local, work->graph, work->op, in,
                                 in + work->n_in);
        else
            backend->ops->add(backend, local, in, in + work->n_in);
    }
    exec_backend_synchronise(backend);
}

/* Seconds of the fastest run on any process. */
static double seconds_of(ExecBackend *backend, const ExecProfile *profile,
                         const Work *work)
{
    double most = -INFINITY; /* the maximum of the negative times */
    for (uint32_t i = 0; i < profile->warm_up + profile->repeats; i++) {
        double start = 0;
        exec_backend_maximum(backend, &start, 1); /* a common start */
        start = exec_backend_seconds(backend);
        limits_run(backend, work);
        if (i >= profile->warm_up)
            most = fmax(most, start - exec_backend_seconds(backend));
    }
    exec_backend_maximum(backend, &most, 1);
    return -most;
}

/* Gives each operand memory and random values. */
static bool fill(ExecBackend *backend, Work *work, const ExecShard *shape, uint64_t seed,
                 GError **error)
{
    const uint64_t n = exec_shard_elements(shape);
    const uint32_t n_shards = backend->n_local * (work->n_in + 1);
    g_autoptr(GRand) random = g_rand_new_with_seed((guint32)seed);
    g_autofree double *value = g_try_new(double, n);
    work->shard = g_new0(ExecShard, n_shards);
    for (uint64_t i = 0; value && i < n; i++)
        value[i] = g_rand_double_range(random, -1, 1);
    bool good = value != NULL;
    for (uint32_t i = 0; good && i < n_shards; i++) {
        const uint32_t local = i / (work->n_in + 1);
        work->shard[i] = *shape;
        work->shard[i].data = backend->ops->allocate(backend, local, n);
        good = work->shard[i].data != NULL;
        if (good)
            backend->ops->write(backend, local, &work->shard[i], value);
    }
    double lacks = good ? 0 : 1;
    exec_backend_maximum(backend, &lacks, 1);
    return lacks == 0 ||
           kilter_fail(error, KILTER_ERROR_FAILED,
                       "no memory for tensors of %" G_GUINT64_FORMAT " elements", n);
}

static void clear(ExecBackend *backend, Work *work)
{
    for (uint32_t i = 0; i < backend->n_local * (work->n_in + 1); i++)
        if (work->shard[i].data)
            backend->ops->release(backend, i / (work->n_in + 1), work->shard[i].data);
    g_free(work->shard);
}

/* Measures the seconds of the work on operands of shape `shape`. */
static bool time_work(ExecBackend *backend, const ExecProfile *profile, Work *work,
                      const ExecShard *shape, double *seconds, GError **error)
{
    const bool good = fill(backend, work, shape, profile->seed, error);
    if (good)
        *seconds = seconds_of(backend, profile, work);
    clear(backend, work);
    return good;
}

static bool time_product(ExecBackend *backend, const ExecProfile *profile, uint32_t n,
                         double *seconds, GError **error)
{
    g_assert(n > 0);
    const ExecShard shape = {.rank = 2, .dim = {n, n}, .numbers = backend->half};
    g_autoptr(Graph) graph = graph_new("product");
    const TensorId in[] = {graph_input(graph, "x", DTYPE_F32, 2, shape.dim),
                           graph_parameter(graph, "w", 2, shape.dim)};
    graph_op(graph, OP_LINEAR, "y", (OpAttr){0}, G_N_ELEMENTS(in), in, NULL);
    graph_seal(graph);
    Work work = {.graph = graph, .n_in = G_N_ELEMENTS(in)};
    return time_work(backend, profile, &work, &shape, seconds, error);
}

static bool time_sum(ExecBackend *backend, const ExecProfile *profile, uint32_t n,
                     double *seconds, GError **error)
{
    const ExecShard shape = {.rank = 1, .dim = {n}};
    Work work = {.n_in = 1};
    return time_work(backend, profile, &work, &shape, seconds, error);
}

bool exec_limits(ExecBackend *backend, const ExecProfile *profile, ExecLimits *limits,
                 GError **error)
{
    double seconds = 0;
    *limits = (ExecLimits){0};
    for (uint32_t n = EXTENT_LEAST; n <= EXTENT_MOST && seconds < PRODUCT_S; n *= 2) {
        if (!time_product(backend, profile, n, &seconds, error))
            return false;
        limits->rate = MAX(limits->rate, 2.0 * n * n * n / seconds);
        limits->extent = n;
    }
    seconds = 0;
    for (uint32_t n = ELEMENTS_LEAST; n <= ELEMENTS_MOST && seconds < SUM_S; n *= 2) {
        if (!time_sum(backend, profile, n, &seconds, error))
            return false;
        limits->bandwidth =
            MAX(limits->bandwidth, 3.0 * n * backend->element_bytes / seconds);
        limits->elements = n;
    }
    return true;
}
