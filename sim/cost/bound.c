/* A time that no plan can beat: the FLOPs and bytes of an iteration, done once, by all devices at
 * once. */
#include <math.h>

#include "sim/cost/op_kernels.h"
#include "sim/sim.h"

/* Seconds of the whole op on one device, without overheads: the part of its time that shares
 * divide. */
static double seconds_of(const Graph *graph, const ClusterView *view, OpId op,
                         const Device *device)
{
    Rule rule[OP_MAX_RULES];
    SimWork work;
    if (device->kernels)
        return op_kernels_least_s(device->kernels, graph, op) * device->stretch /
               device->gpus;
    op_rules(graph, op, rule); /* the first rule is the whole op */
    sim_work_op(NULL, graph, view, op, &rule[0], &work);
    return *sim_work_flops(&work, device) / device->rate;
}

/* [op], equal kernels once. Caller frees. */
static double *all_seconds(const Graph *graph, const ClusterView *view,
                           const Device *device)
{
    const uint32_t n = graph_n_ops(graph);
    double *seconds = g_new(double, n);
    g_autoptr(GHashTable) first = g_hash_table_new(NULL, NULL); /* traits -> seconds */
    for (OpId op = 0; op < n; op++) {
        const gpointer traits =
            device->kernels ? (gpointer)(uintptr_t)op_kernels_traits(graph, op) : NULL;
        const double *same = traits ? g_hash_table_lookup(first, traits) : NULL;
        seconds[op] = same ? *same : seconds_of(graph, view, op, device);
        if (traits && !same)
            g_hash_table_insert(first, traits, &seconds[op]);
    }
    return seconds;
}

/* The least part of the seconds of the reference, [op], that an op takes on the device. */
static double least_ratio(const Graph *graph, const ClusterView *view,
                          const Device *device, const Device *reference,
                          const double *seconds)
{
    g_autofree double *other =
        device_compare(device, reference) == 0 ? NULL : all_seconds(graph, view, device);
    const double *own = other ? other : seconds;
    double least = INFINITY;
    for (OpId op = 0; op < graph_n_ops(graph); op++)
        if (seconds[op] > 0)
            least = fmin(least, own[op] / seconds[op]);
    return least;
}

/* Device j takes seconds_oj for op o, the first one that computes in all formats of the ops (here
 * 0) seconds_o0, and k_j = min over o of seconds_oj / seconds_o0. In t seconds device j does at
 * most the work that takes device 0 t / k_j seconds, whatever ops it chooses. All devices together
 * do at least the work that takes device 0 sum_o seconds_o0. */
double sim_compute_bound_s(const Graph *graph, const ClusterView *view)
{
    const uint32_t n_ops = graph_n_ops(graph);
    double whole = INFINITY, speed = 0;
    if (graph_is_timed(graph) || !cluster_view_check_times(view, graph, NULL))
        return 0;
    g_autoptr(ClusterView) measured =
        graph_has_times(graph) ? cluster_view_measured(view) : NULL;
    view = measured ? measured : view;
    g_autofree double *first = NULL;
    const Device *reference = NULL;
    for (uint32_t j = 0; !isfinite(whole) && j < view->n_devices; j++) {
        if (reference && device_compare(&view->device[j], reference) == 0)
            continue;
        reference = &view->device[j];
        g_free(first);
        first = all_seconds(graph, view, reference);
        whole = 0;
        for (OpId op = 0; op < n_ops; op++)
            whole += first[op];
    }
    double least = INFINITY;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const bool again =
            j > 0 && device_compare(&view->device[j], &view->device[j - 1]) == 0;
        if (!again)
            least = least_ratio(graph, view, &view->device[j], reference, first);
        if (!(least > 0 && isfinite(least)))
            return 0;
        speed += 1 / least;
    }
    return whole / speed;
}

/* The least part of an op that falls to a device with `part` of all that is cut, when parts are
 * rounded to units: of the dims of its tensors any may be the one that is cut, and the batch of
 * each of two microbatches that take turns. */
static double least_share(const Graph *graph, const Op *op, double part)
{
    enum { TURNS = 2 };
    double least = part;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const Tensor *tensor =
            graph_tensor(graph, i < op->n_in ? op->in[i] : op->out[i - op->n_in]);
        for (uint32_t d = 0; d < tensor->rank; d++) {
            const double units = tensor->units[d];
            if (tensor->units[d] > 1)
                least = fmin(least, floor(part * units / TURNS) * TURNS / units);
        }
    }
    return least;
}

double sim_even_bound_s(const Graph *graph, const ClusterView *view)
{
    double gpus = 0, most = 0;
    if (graph_is_timed(graph))
        return 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        gpus += view->device[j].gpus;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const Device *device = &view->device[j];
        if (j > 0 && device_compare(device, &view->device[j - 1]) == 0)
            continue;
        g_autofree double *seconds = all_seconds(graph, view, device);
        double own = 0;
        for (OpId op = 0; op < graph_n_ops(graph); op++)
            own += least_share(graph, graph_get_op(graph, op), device->gpus / gpus) *
                   seconds[op];
        most = fmax(most, own);
    }
    return most;
}
