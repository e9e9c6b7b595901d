/* The exact layer assignment. Under a bound on every stage's time and all-reduce the least sum of
 * times and messages is a shortest path over cuts,
 *
 *     g_j(b) = T_j(b) + min over a of ( g_{j-1}(a) + e_{j-1}(a) - T_j(a) )
 *
 * with T_j(b) the time in stage j of the layers before b, where the stage [a, b) keeps the bounds
 * from some a on that grows with b: the minimum is one of a sliding window, O(1) each. The sum
 * found for a bound has some largest time m. Every other assignment whose largest time is at least
 * m and below the bound costs no less, so the next bound is m itself, until even the smallest
 * possible largest time cannot make up for the sum. An outer loop lowers the bound on all-reduces
 * in the same way. */
#include "synth/amp/amp.h"

#include <math.h>
#include <string.h>

/* Prefix sums of a row over layers [0, b) for every stage; NULL rows are 0. */
typedef struct {
    double *sum;  /* [stage * (n_layers + 1) + b]; NULL: all 0 */
    double bound; /* a stage's sum must be below it */
} Bounded;

typedef struct {
    const AmpAssignment *problem;
    Bounded time, sync;
    double *memory; /* sums, as Bounded.sum */
    /* [stage * (n_layers + 1) + b]: the least value of the first stages on the first b layers */
    double *value;
    uint32_t *from;  /* likewise: the layer where the last of these stages starts */
    uint32_t *queue; /* the sliding window */
    uint32_t *found; /* the cuts of the last sum */
} Cuts;

static double *sums(const AmpAssignment *p, const double *row)
{
    if (!row)
        return NULL;
    double *sum = g_new(double, (size_t)p->n_stages *(p->n_layers + 1));
    for (uint32_t j = 0; j < p->n_stages; j++) {
        double *to = sum + (size_t)j * (p->n_layers + 1);
        to[0] = 0;
        for (uint32_t l = 0; l < p->n_layers; l++)
            to[l + 1] = to[l] + row[(size_t)j * p->n_layers + l];
    }
    return sum;
}

static double between(const Cuts *c, const double *sum, uint32_t stage, uint32_t a,
                      uint32_t b)
{
    KILTER_ASSERT(a <= b && b <= c->problem->n_layers && stage < c->problem->n_stages);
    if (!sum)
        return 0;
    sum += (size_t)stage * (c->problem->n_layers + 1);
    return sum[b] - sum[a];
}

static bool is_allowed(const Cuts *c, uint32_t stage, uint32_t a, uint32_t b)
{
    KILTER_ASSERT(a < b && b <= c->problem->n_layers);
    return between(c, c->time.sum, stage, a, b) < c->time.bound &&
           between(c, c->sync.sum, stage, a, b) < c->sync.bound &&
           (!c->memory ||
            between(c, c->memory, stage, a, b) <= c->problem->capacity[stage]);
}

/* The time of the message that the stage before `stage` sends if that starts with layer a > 0. */
static double transfer_at(const Cuts *c, uint32_t stage, uint32_t a)
{
    KILTER_ASSERT(stage > 0 && a > 0 && a <= c->problem->n_layers);
    return c->problem->transfer[(size_t)(stage - 1) * c->problem->n_layers + a - 1];
}

/* The term that a path through cut a before `stage` adds to T_stage(b); infinite if the link would
 * be busy for too long. */
static double entry(const Cuts *c, uint32_t stage, uint32_t a)
{
    const size_t row = (size_t)(stage - 1) * (c->problem->n_layers + 1);
    const double transfer = transfer_at(c, stage, a);
    return c->problem->link * transfer < c->time.bound
               ? c->value[row + a] + transfer - between(c, c->time.sum, stage, 0, a)
               : INFINITY;
}

/* Adds one stage, by a sliding window of cuts with growing entries. */
static void add_stage(Cuts *c, uint32_t stage)
{
    KILTER_ASSERT(stage < c->problem->n_stages);
    const uint32_t n = c->problem->n_layers;
    const size_t row = (size_t)stage * (n + 1);
    uint32_t head = 0, tail = 0;
    for (uint32_t b = 0; b <= n; b++) {
        c->value[row + b] = INFINITY;
        if (b <= stage)
            continue;
        const double last = entry(c, stage, b - 1);
        while (tail > head && entry(c, stage, c->queue[tail - 1]) >= last)
            tail--;
        c->queue[tail++] = b - 1;
        while (head < tail && !is_allowed(c, stage, c->queue[head], b))
            head++;
        if (head == tail || isinf(entry(c, stage, c->queue[head])))
            continue;
        c->from[row + b] = c->queue[head];
        c->value[row + b] =
            between(c, c->time.sum, stage, 0, b) + entry(c, stage, c->queue[head]);
    }
}

static void count_table(const Cuts *c)
{
    if (c->problem->work)
        *c->problem->work += (uint64_t)c->problem->n_stages * (c->problem->n_layers + 1);
}

/* The least sum of times and messages within bounds, and its cuts; infinite if there is none. */
static double least_sum(Cuts *c)
{
    const uint32_t n = c->problem->n_layers, k = c->problem->n_stages;
    count_table(c);
    for (uint32_t b = 0; b <= n; b++)
        c->value[b] =
            b > 0 && is_allowed(c, 0, 0, b) ? between(c, c->time.sum, 0, 0, b) : INFINITY;
    for (uint32_t stage = 1; stage < k; stage++)
        add_stage(c, stage);
    const double sum = c->value[(size_t)(k - 1) * (n + 1) + n];
    c->found[k] = n;
    for (uint32_t stage = k; isfinite(sum) && stage-- > 0;)
        c->found[stage] =
            stage ? c->from[(size_t)stage * (n + 1) + c->found[stage + 1]] : 0;
    return sum;
}

static double assign_largest(const Cuts *c, const double *sum, double link,
                             const uint32_t *first)
{
    double most = 0;
    for (uint32_t j = 0; j < c->problem->n_stages; j++)
        most = fmax(fmax(most, between(c, sum, j, first[j], first[j + 1])),
                    j > 0 ? link * transfer_at(c, j, first[j]) : 0);
    return most;
}

/* The least possible largest element of a row within the bounds. */
static double least_largest(Cuts *c, const double *sum, double link)
{
    const uint32_t n = c->problem->n_layers, k = c->problem->n_stages;
    count_table(c);
    for (uint32_t stage = 0; stage < k; stage++) {
        double *to = c->value + (size_t)stage * (n + 1);
        for (uint32_t b = 0; b <= n; b++) {
            to[b] = INFINITY;
            const uint32_t low = stage == 0 ? 0 : stage, high = stage == 0 ? 1 : b;
            for (uint32_t a = MIN(high, b); a-- > low;) {
                const double own = between(c, sum, stage, a, b);
                if (own >= to[b] || !is_allowed(c, stage, a, b))
                    break;
                const double before = stage > 0 ? fmax(link * transfer_at(c, stage, a),
                                                       to[(gssize)a - (gssize)n - 1])
                                                : 0;
                to[b] = fmin(to[b], fmax(own, before));
            }
        }
    }
    return c->value[(size_t)(k - 1) * (n + 1) + n];
}

/* The least cost without the all-reduces' own cost, within the bound on them, and its cuts. */
static double within_sync(Cuts *c, uint32_t *first)
{
    const AmpAssignment *p = c->problem;
    double best = INFINITY, sum;
    c->time.bound = INFINITY;
    const double lowest = least_largest(c, c->time.sum, p->link);
    if (!isfinite(lowest))
        return INFINITY;
    c->time.bound = nextafter(lowest, INFINITY); /* begin with the most even assignment */
    for (bool even = true; isfinite(sum = least_sum(c)); even = false) {
        const double most = assign_largest(c, c->time.sum, p->link, c->found);
        if (sum + p->repeats * most < best) {
            best = sum + p->repeats * most;
            memcpy(first, c->found, (p->n_stages + 1) * sizeof *first);
        }
        if (!even && sum + p->repeats * lowest >= best)
            break;
        c->time.bound = even ? INFINITY : most;
    }
    return best;
}

bool synth_amp_assign(const AmpAssignment *p, uint32_t *first, double *cost)
{
    g_assert(p->n_stages > 0);
    const size_t cells = (size_t)p->n_stages * (p->n_layers + 1);
    g_autofree double *time = sums(p, p->time), *sync = sums(p, p->sync),
                      *memory = sums(p, p->memory), *value = g_new(double, cells);
    g_autofree uint32_t *from = g_new0(uint32_t, cells),
                        *queue = g_new(uint32_t, p->n_layers + 1),
                        *found = g_new(uint32_t, p->n_stages + 1),
                        *inner = g_new(uint32_t, p->n_stages + 1);
    Cuts c = {.problem = p,
              .time = {time, INFINITY},
              .sync = {sync, INFINITY},
              .memory = memory,
              .value = value,
              .from = from,
              .queue = queue,
              .found = found};
    *cost = INFINITY;
    if (p->n_stages > p->n_layers)
        return false;
    const double lowest = sync ? least_largest(&c, sync, 0) : 0;
    double rest;
    while (isfinite(rest = within_sync(&c, inner))) {
        const double most = assign_largest(&c, sync, 0, inner);
        if (rest + most < *cost) {
            *cost = rest + most;
            memcpy(first, inner, (p->n_stages + 1) * sizeof *first);
        }
        if (rest + lowest >= *cost)
            break;
        c.sync.bound = most;
    }
    return isfinite(*cost);
}
