/* A time that no plan can beat: the FLOPs and bytes of an iteration, done once, by all devices at
 * once, or the launches of ops that follow from one another. */
#include <math.h>

#include "data/base/each.h"
#include "data/base/order.h"
#include "sim/cost/op_kernels.h"
#include "sim/sim.h"

/* Seconds of an op on one device that no cutting avoids: of the whole op, and of each part. */
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

/* Devices that are alike. */
typedef struct {
    double n, price; /* price: of a second on one of them, above 0 */
    Least *least;    /* [op]; infinite: not in its format */
} Kind;

static void kind_clear(void *kind)
{
    g_free(((Kind *)kind)->least);
}

/* [Kind], at prices at which each would take as much for the whole work. Caller owns. */
static GArray *all_kinds(const Graph *graph, const ClusterView *view)
{
    g_auto(DeviceKinds) found = {0};
    device_kinds(view, view->n_devices, &found);
    GArray *kinds = array_owning(Kind, kind_clear);
    for (uint32_t k = 0; k < found.n; k++) {
        Kind kind = {.n = found.count[k],
                     .least = all_least(graph, view, &view->device[found.first[k]])};
        double whole = 0;
        for (OpId op = 0; op < graph_n_ops(graph); op++)
            whole += isfinite(kind.least[op].whole) ? kind.least[op].whole : 0;
        kind.price = whole > 0 ? 1 / whole : 1;
        g_array_append_val(kinds, kind);
    }
    return kinds;
}

/* Ops that are alike, at the price of a kind at which they cost as much there as elsewhere. */
typedef struct {
    OpId op;
    double n, price, elsewhere, here;
} Edge;

static ORDER_DEFINE(by_price, Edge, ASCENDING(price), ASCENDING(op));

/* The price of an op where it costs least, on any kind but `out`. */
static double cheapest(GArray *kinds, OpId op, const Kind *out)
{
    double least = INFINITY;
    array_each (const Kind, kind, kinds) {
        if (kind != out)
            least = fmin(least, kind->price * kind->least[op].whole);
    }
    return least;
}

/* Seconds: the price of all ops where each costs least over that of a second on all devices. */
static double bound_of_prices(GArray *kinds, GArray *edges)
{
    double ops = 0, devices = 0;
    array_each (const Edge, edge, edges)
        ops += edge->n * cheapest(kinds, edge->op, NULL);
    array_each (const Kind, kind, kinds)
        devices += kind->n * kind->price;
    return ops / devices;
}

/* Takes the best price of a kind, the others as they are. It is that of an edge: between two of
 * them the prices of the ops and of the devices are linear in it. */
static void settle(GArray *kinds, Kind *kind, GArray *edges)
{
    double done = 0, open = 0, others = 0, most = 0;
    array_each (const Kind, other, kinds)
        others += other != kind ? other->n * other->price : 0;
    array_each (Edge, edge, edges) {
        const double s = kind->least[edge->op].whole;
        edge->elsewhere = edge->n * cheapest(kinds, edge->op, kind);
        edge->here = isfinite(s) ? edge->n * s : 0;
        edge->price = isfinite(s) ? edge->elsewhere / edge->here : 0;
        open += edge->here;
    }
    g_array_sort(edges, by_price);
    array_each (const Edge, edge, edges) {
        done += edge->elsewhere;
        open -= edge->here;
        const double bound =
            (done + edge->price * open) / (others + edge->price * kind->n);
        if (edge->price > 0 && isfinite(edge->price) && bound > most) {
            most = bound;
            kind->price = edge->price;
        }
    }
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

/* The ops, one of those that are alike. Caller owns. */
static GArray *all_edges(const Graph *graph, GArray *kinds)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    g_autofree double *n = g_new0(double, graph_n_ops(graph));
    for (OpId op = 0; op < graph_n_ops(graph); op++)
        n[graph_op_alike(graph, op)]++;
    for (OpId op = 0; op < graph_n_ops(graph); op++) {
        const Edge edge = {.op = op, .n = n[op]};
        if (n[op] > 0 && cheapest(kinds, op, NULL) > 0)
            g_array_append_val(edges, edge);
    }
    return edges;
}

/* Whatever the prices of a second on each kind of device, an op costs at least as much as where it
 * is cheapest, and in t seconds all devices together do work of at most t times the price of a
 * second on each of them. The prices decide only how high this bound is. They are set one after
 * the other until it rises no more: the dual of the linear program that divides the ops among the
 * kinds, by coordinates, and so exact for two kinds. Infinite: no device has an op's format. */
static double work_s(const Graph *graph, GArray *kinds)
{
    enum { ROUNDS = 20 };
    const double enough = 1e-6;
    g_autoptr(GArray) edges = all_edges(graph, kinds);
    double bound_s = bound_of_prices(kinds, edges), before_s = 0;
    for (uint32_t i = 0; i < ROUNDS && kinds->len > 1 && isfinite(bound_s) &&
                         bound_s > before_s * (1 + enough);
         i++) {
        before_s = bound_s;
        array_each (Kind, kind, kinds)
            settle(kinds, kind, edges);
        bound_s = bound_of_prices(kinds, edges);
    }
    return bound_s;
}

double sim_compute_bound_s(const Graph *graph, const ClusterView *view)
{
    if (graph_is_timed(graph) || !cluster_view_check_times(view, graph, NULL))
        return 0;
    g_autoptr(ClusterView) measured =
        graph_has_times(graph) ? cluster_view_measured(view) : NULL;
    g_autoptr(GArray) kinds = all_kinds(graph, measured ? measured : view);
    g_autofree double *once = g_new(double, graph_n_ops(graph));
    for (OpId op = 0; op < graph_n_ops(graph); op++) {
        once[op] = INFINITY;
        array_each (const Kind, kind, kinds)
            once[op] = fmin(once[op], kind->least[op].once);
    }
    const double bound_s = work_s(graph, kinds);
    return isfinite(bound_s) ? fmax(bound_s, path_s(graph, once)) : 0;
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
