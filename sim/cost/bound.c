/* A time that no plan can beat: the FLOPs and bytes of an iteration, done once, by all devices at
 * once, or the launches of ops that follow from one another. */
#include <math.h>

#include "sim/cost/op_kernels.h"
#include "sim/sim.h"

/* Seconds of an op on one device that no cutting avoids: of the whole op, and of each part of
 * it. */
typedef struct {
    double whole, once;
} Least;

static Least least_of(const Graph *graph, const ClusterView *view, OpId op,
                      const Device *device)
{
    Rule rule[OP_MAX_RULES];
    SimWork work;
    Least least = {0};
    if (device->kernels) {
        const double part = device->stretch / device->gpus;
        least.whole = part * op_kernels_least_s(device->kernels, graph, op, &least.once);
        least.once *= part;
        return least;
    }
    op_rules(graph, op, rule); /* the first rule is the whole op */
    sim_work_op(NULL, graph, view, op, &rule[0], &work);
    least.whole = *sim_work_flops(&work, device) / device->rate;
    return least;
}

/* [op]. Caller frees. */
static Least *all_least(const Graph *graph, const ClusterView *view, const Device *device)
{
    const uint32_t n = graph_n_ops(graph);
    Least *least = g_new(Least, n);
    for (OpId op = 0; op < n; op++) {
        const OpId first = graph_op_alike(graph, op);
        least[op] = first < op ? least[first] : least_of(graph, view, op, device);
    }
    return least;
}

/* The least part of the seconds of the reference, [op], that an op takes on the device. once:
 * [op] gets the least that a part of it takes so far. */
static double least_ratio(const Graph *graph, const ClusterView *view,
                          const Device *device, const Device *reference,
                          const Least *first, double *once)
{
    g_autofree Least *other =
        device_compare(device, reference) == 0 ? NULL : all_least(graph, view, device);
    const Least *own = other ? other : first;
    double least = INFINITY;
    for (OpId op = 0; op < graph_n_ops(graph); op++) {
        once[op] = fmin(once[op], own[op].once);
        if (first[op].whole > 0)
            least = fmin(least, own[op].whole / first[op].whole);
    }
    return least;
}

/* Of any part of any microbatch, ops that follow from one another run one after the other: the
 * longest path through the graph. once: [op]. */
static double path_s(const Graph *graph, const double *once)
{
    g_autofree double *end = g_new(double, graph_n_ops(graph));
    double longest = 0;
    ops_each (op, id, graph) {
        double start = 0;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId producer = graph_tensor(graph, op->in[i])->producer;
            if (producer != GRAPH_NONE)
                start = fmax(start, end[producer]);
        }
        end[id] = start + once[id];
        longest = fmax(longest, end[id]);
    }
    return longest;
}

/* The first device that computes in all formats of the ops, with its seconds [op]; NULL: none. */
static const Device *reference_of(const Graph *graph, const ClusterView *view,
                                  Least **first)
{
    const Device *reference = NULL;
    *first = NULL;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        double whole = 0;
        if (reference && device_compare(&view->device[j], reference) == 0)
            continue;
        reference = &view->device[j];
        g_free(*first);
        *first = all_least(graph, view, reference);
        for (OpId op = 0; op < graph_n_ops(graph); op++)
            whole += (*first)[op].whole;
        if (isfinite(whole))
            return reference;
    }
    return NULL;
}

/* Device j takes seconds_oj for op o, the first one that computes in all formats of the ops (here
 * 0) seconds_o0, and k_j = min over o of seconds_oj / seconds_o0. In t seconds device j does at
 * most the work that takes device 0 t / k_j seconds, whatever ops it chooses. All devices together
 * do at least the work that takes device 0 sum_o seconds_o0. */
double sim_compute_bound_s(const Graph *graph, const ClusterView *view)
{
    const uint32_t n_ops = graph_n_ops(graph);
    if (graph_is_timed(graph) || !cluster_view_check_times(view, graph, NULL))
        return 0;
    g_autoptr(ClusterView) measured =
        graph_has_times(graph) ? cluster_view_measured(view) : NULL;
    view = measured ? measured : view;
    g_autofree Least *first = NULL;
    const Device *reference = reference_of(graph, view, &first);
    g_autofree double *once = g_new(double, n_ops);
    double whole = 0, speed = 0, least = INFINITY;
    for (OpId op = 0; op < n_ops; op++) {
        whole += reference ? first[op].whole : INFINITY;
        once[op] = INFINITY;
    }
    for (uint32_t j = 0; reference && j < view->n_devices; j++) {
        const bool again =
            j > 0 && device_compare(&view->device[j], &view->device[j - 1]) == 0;
        if (!again)
            least = least_ratio(graph, view, &view->device[j], reference, first, once);
        if (!(least > 0 && isfinite(least)))
            return 0;
        speed += 1 / least;
    }
    return reference ? fmax(whole / speed, path_s(graph, once)) : 0;
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
        values_at (const double, units, d, tensor->units, tensor->rank) {
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
    items_at (const Device, device, j, view->device, view->n_devices) {
        if (j > 0 && device_compare(device, &view->device[j - 1]) == 0)
            continue;
        g_autofree Least *least = all_least(graph, view, device);
        double own = 0;
        for (OpId op = 0; op < graph_n_ops(graph); op++) {
            const double share =
                least_share(graph, graph_get_op(graph, op), device->gpus / gpus);
            own += share > 0 ? fmax(share * least[op].whole, least[op].once) : 0;
        }
        most = fmax(most, own);
    }
    return most;
}
