/* The bound that prices prove, and the check of ratios against it. Shares no code with solvers. */
#include "balance/check.h"

#include <math.h>

/* Relative error allowed in sums and limits. */
#define TOLERANCE 1e-9

static double positive_sum(const double *value, uint32_t n)
{
    g_assert(n > 0);
    return sum_over(double, i, n, fmax(value[i], 0));
}

/* Adds y times stage i's slopes on device j to g and returns y times its fixed part. */
static double add_work(const SimLinear *linear, const ClusterView *view, uint32_t i,
                       uint32_t j, double y, double *g)
{
    KILTER_ASSERT(i < linear->n_stages && j < view->n_devices);
    const uint32_t n = view->n_devices;
    const SimWork *fixed = &linear->stage[i].fixed;
    const Device *device = &view->device[j];
    /* Seconds per FLOP and per byte; a device of rate 0 has no FLOPs to do. */
    double per_flop = device->rate > 0 ? 1 / device->rate : 0, per_byte = 0, constant = 0;
    if (y == 0)
        return 0;
    if (device->gpus > 1 && fixed->inner_messages > 0) {
        per_byte = (device->gpus - 1.0) / device->gpus / device->inner.bandwidth;
        constant += y * fixed->inner_messages * device->inner.latency_s;
    }
    double flops = fixed->flops, overhead_s = 0;
    if (device->fitted) {
        flops = fixed->fitted[device->fitted - 1].flops;
        overhead_s = fixed->fitted[device->fitted - 1].overhead_s * device->stretch;
    }
    constant += y * (fixed->seconds + overhead_s + flops * per_flop +
                     fixed->inner_bytes * per_byte);
    for (uint32_t s = 0; s < linear->n_splits; s++) {
        size_t at = (size_t)i * linear->n_splits + s;
        g[(size_t)linear->split[s].segment * n + j] +=
            y * (sim_linear_flops(linear, at, device) * per_flop +
                 linear->inner_bytes[at] * per_byte);
    }
    return constant;
}

/* Adds the y_ij slopes of a turn to g and returns the sum of its y_ij fixed parts. comm: out,
 * [stage], the part of the stage's communication that y counts. */
static double check_add_turn(const SimLinear *linear, const ClusterView *view,
                             uint32_t first, uint32_t end, const double *price,
                             double *comm, double *g)
{
    g_assert(first < end && end <= linear->n_stages);
    uint32_t n = view->n_devices;
    double constant = 0, sum = positive_sum(price + (size_t)first * n, (end - first) * n);
    for (uint32_t i = first; i < end; i++)
        comm[i] = end == first + 1 ? 1 : 0;
    for (uint32_t j = 0; j < n && sum > 0; j++) {
        double before = 0; /* y of the stages before this one */
        for (uint32_t i = first; i < end; i++) {
            double y = fmax(price[(size_t)i * n + j], 0) / sum;
            double of = y + (linear->stage[i].beside ? 0 : before);
            constant += add_work(linear, view, i, j, of, g);
            for (uint32_t k = first; k <= i && end > first + 1; k++)
                comm[k] += y;
            before += y;
        }
    }
    for (uint32_t i = first; i < end; i++)
        constant += comm[i] * linear->stage[i].comm_s;
    return constant;
}

/* comm: [stage], as add_turn returns it. */
static void balance_add_terms(const SimLinear *linear, const ClusterView *view,
                              const BalancePrices *prices, const double *comm, double *g)
{
    uint32_t n = view->n_devices;
    items_at (const SimTerm, term, t, linear->term, linear->n_terms) {
        const double *from = prices->from + (size_t)t * n,
                     *to = prices->to + (size_t)t * n;
        double sum = positive_sum(from, n) + positive_sum(to, n);
        double scale = sum > 0 ? comm[term->stage] * term->seconds / sum : 0;
        for (uint32_t j = 0; j < n; j++) {
            g[(size_t)linear->split[term->from].segment * n + j] +=
                scale * fmax(from[j], 0);
            g[(size_t)linear->split[term->to].segment * n + j] += scale * fmax(to[j], 0);
        }
    }
}

/* Adds the slopes of the memory points to g and returns the sum of their fixed parts. */
static double balance_add_limits(const SimLinear *linear, const SimMemory *memory,
                                 const ClusterView *view, const double *price, double *g)
{
    uint32_t n = view->n_devices;
    double constant = 0;
    for (uint32_t p = 0; p < memory->n_points; p++) {
        for (uint32_t j = 0; j < n; j++) {
            double y = fmax(price[(size_t)p * n + j], 0), gpus = view->device[j].gpus;
            if (y == 0)
                continue;
            constant += y * (memory->held[p] + memory->divided[p] / gpus -
                             (double)view->device[j].memory_bytes);
            for (uint32_t s = 0; s < memory->n_splits; s++) {
                size_t at = (size_t)p * memory->n_splits + s;
                g[(size_t)linear->split[s].segment * n + j] +=
                    y * (memory->held_sharded[at] + memory->divided_sharded[at] / gpus);
            }
        }
    }
    return constant;
}

/* The bound in seconds that these prices prove. The prices of a stage or term are scaled to the sum
 * that they must have; negative prices count as 0. */
static double balance_bound(const SimLinear *linear, const SimMemory *memory,
                            const ClusterView *view, uint32_t n_segments,
                            const BalancePrices *prices)
{
    g_assert(n_segments > 0);
    uint32_t n = view->n_devices;
    g_autofree double *g = g_new0(double, (size_t)n_segments *n);
    g_autofree double *comm = g_new0(double, linear->n_stages);
    double bound = 0;
    for (uint32_t i = 0, end; i < linear->n_stages; i = end) {
        end = sim_turn_end(linear, i);
        bound += check_add_turn(linear, view, i, end, prices->stage, comm, g);
    }
    balance_add_terms(linear, view, prices, comm, g);
    if (memory)
        bound += balance_add_limits(linear, memory, view, prices->memory, g);
    for (uint32_t k = 0; k < n_segments; k++) {
        double least = INFINITY;
        for (uint32_t j = 0; j < n; j++) {
            if (view->device[j].rate > 0)
                least = fmin(least, g[(size_t)k * n + j]);
        }
        bound += least;
    }
    return bound;
}

/* Whether (4) holds and devices of rate 0 have ratio 0. */
static bool check_sums(const ClusterView *view, uint32_t n_segments, const double *ratio,
                       GError **error)
{
    for (uint32_t k = 0; k < n_segments; k++) {
        double sum = 0;
        for (uint32_t j = 0; j < view->n_devices; j++) {
            double b = ratio[(size_t)k * view->n_devices + j];
            if (!(b >= 0 && b <= 1 + TOLERANCE) || (b > 0 && view->device[j].rate == 0))
                return kilter_fail(error, KILTER_ERROR_FAILED,
                                   "balance: ratio %g of device %s in segment %u", b,
                                   view->device[j].name, k);
            sum += b;
        }
        if (!(fabs(sum - 1) <= TOLERANCE))
            return kilter_fail(error, KILTER_ERROR_FAILED,
                               "balance: ratios of segment %u sum to %.12g", k, sum);
    }
    return true;
}

/* Whether (3) holds. */
static bool check_memory(const SimMemory *memory, const ClusterView *view,
                         const double *share, GError **error)
{
    for (uint32_t j = 0; j < view->n_devices; j++) {
        uint32_t point;
        double peak = sim_memory_peak(memory, view, share, j, &point);
        double over = peak - (double)view->device[j].memory_bytes;
        if (!(over <= TOLERANCE * fmax(peak, 1)))
            return kilter_fail(error, KILTER_ERROR_FAILED,
                               "balance: device %s is %.0f bytes over its memory",
                               view->device[j].name, over);
    }
    return true;
}

bool balance_check(const SimLinear *linear, const SimMemory *memory,
                   const ClusterView *view, BalanceSolution *solution, GError **error)
{
    const uint32_t n_segments = solution->n_segments;
    if (!check_sums(view, n_segments, solution->ratio, error))
        return false;
    g_autofree double *share = sim_shares(linear, view, solution->ratio);
    if (memory && !check_memory(memory, view, share, error))
        return false;
    const double time_s = sim_linear_time(linear, view, share, NULL, NULL),
                 bound_s =
                     balance_bound(linear, memory, view, n_segments, solution->prices);
    /* A bound above the time by more than rounding would prove the check itself wrong. */
    if (!(fabs(time_s - bound_s) <= BALANCE_GAP * time_s))
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "balance: ratios take %.12g s, but only %.12g s is proved",
                           time_s, bound_s);
    solution->time_s = time_s;
    solution->bound_s = fmin(bound_s, time_s);
    return true;
}
