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
    double n, price;       /* price: of a second on one of them, above 0 */
    const double *seconds; /* [work]; infinite: not in its format */
} Kind;

/* A work at the price of a kind at which it costs as much there as elsewhere. */
typedef struct {
    uint32_t work;
    double price, elsewhere, here;
} Edge;

static ORDER_DEFINE(by_price, Edge, ASCENDING(price), ASCENDING(work));

/* The price of a work where it costs least, on any kind but `out`. */
static double cheapest(GArray *kinds, uint32_t work, const Kind *out)
{
    double least = INFINITY;
    array_each (const Kind, kind, kinds) {
        if (kind != out)
            least = fmin(least, kind->price * kind->seconds[work]);
    }
    return least;
}

/* Seconds: the price of all works where each costs least over that of a second on all devices. */
static double bound_of_prices(GArray *kinds, GArray *edges)
{
    double works = 0, devices = 0;
    array_each (const Edge, edge, edges)
        works += cheapest(kinds, edge->work, NULL);
    array_each (const Kind, kind, kinds)
        devices += kind->n * kind->price;
    return works / devices;
}

/* Takes the best price of a kind, the others as they are. It is that of an edge: between two of
 * them the prices of the works and of the devices are linear in it. */
static void settle(GArray *kinds, Kind *kind, GArray *edges)
{
    double done = 0, open = 0, others = 0, most = 0;
    array_each (const Kind, other, kinds)
        others += other != kind ? other->n * other->price : 0;
    array_each (Edge, edge, edges) {
        const double s = kind->seconds[edge->work];
        edge->elsewhere = cheapest(kinds, edge->work, kind);
        edge->here = isfinite(s) ? s : 0;
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

/* Whatever the prices of a second on each kind of device, a work costs at least as much as where it
 * is cheapest, and in t seconds all devices together do work of at most t times the price of a
 * second on each of them. The prices decide only how high this bound is. They are set one after
 * the other until it rises no more: the dual of the linear program that divides the works among the
 * kinds, by coordinates, and so exact for two kinds. At first each kind would take as much for
 * all. */
double sim_divided_bound_s(const DeviceKinds *found, uint32_t n, const double *seconds)
{
    enum { ROUNDS = 20 };
    const double enough = 1e-6;
    g_autoptr(GArray) kinds = g_array_new(FALSE, TRUE, sizeof(Kind)),
                      edges = g_array_new(FALSE, TRUE, sizeof(Edge));
    for (uint32_t k = 0; k < found->n; k++) {
        const Kind kind = {found->count[k], 0, seconds + (size_t)k * n};
        const double whole =
            sum_over(double, i, n, isfinite(kind.seconds[i]) ? kind.seconds[i] : 0);
        g_array_append_val(kinds, kind);
        g_array_index(kinds, Kind, k).price = whole > 0 ? 1 / whole : 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        const Edge edge = {.work = i};
        if (cheapest(kinds, i, NULL) > 0)
            g_array_append_val(edges, edge);
    }
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
    const uint32_t n = graph_n_ops(graph);
    g_autoptr(ClusterView) measured =
        graph_has_times(graph) ? cluster_view_measured(view) : NULL;
    const ClusterView *priced = measured ? measured : view;
    g_auto(DeviceKinds) kinds = {0};
    device_kinds(priced, priced->n_devices, &kinds);
    g_autofree double *once = g_new(double, n),
                      *seconds = g_new0(double, (size_t)kinds.n *n);
    for (uint32_t k = 0; k < kinds.n; k++) {
        g_autofree Least *least =
            all_least(graph, priced, &priced->device[kinds.first[k]]);
        for (OpId op = 0; op < n; op++) { /* those that are alike are one work */
            once[op] = k > 0 ? fmin(once[op], least[op].once) : least[op].once;
            seconds[(size_t)k * n + graph_op_alike(graph, op)] += least[op].whole;
        }
    }
    const double bound_s = sim_divided_bound_s(&kinds, n, seconds);
    return isfinite(bound_s) ? fmax(bound_s, path_s(graph, once)) : 0;
}
