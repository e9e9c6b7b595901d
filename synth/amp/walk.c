/* An iteration by its schedule: the steps of every stage on every microbatch, each of which
 * moves the clocks of a replica by the delays of its layers, then the all-reduces of gradients
 * and the updates. A message starts when its data are made, one message after the other between
 * two stages, and only users of the data wait for it. Gradients of a layer are all-reduced as
 * soon as the stage's last backward has passed it on all replicas, between the messages of
 * tensor parallelism. */
#include <math.h>
#include <string.h>

#include "synth/amp/cost.h"

typedef struct {
    const AmpRows *rows;
    const uint32_t *first;
    uint32_t n_groups, n_layers;
    AmpDelay *forward, *backward; /* [stage * dp + replica] */
    AmpClocks *clocks;            /* [group * dp + replica] */
    /* [(stage * n_microbatches + microbatch) * dp + replica]: when the data that it waits for have
     * arrived */
    double *arrives, *returns;
    /* [(group * n_groups + to_group) * dp + replica]: when the link is free */
    double *link;
    double *reduced; /* [layer]: when its gradients have been all-reduced */
    /* the first of the replicas that take the same times: the others do as they do */
    uint32_t n_unlike, *unlike;
} Walk;

static const AmpDelay *delay_of(const Walk *w, AmpPass pass, uint32_t group, uint32_t r,
                                uint32_t layer)
{
    KILTER_ASSERT(pass < AMP_PASSES);
    return &w->rows->delay[group * w->rows->dp + r][pass * w->n_layers + layer];
}

static void amp_join(AmpDelay *all, const AmpDelay *then)
{
    *all = amp_delay_join(all, then);
}

/* Of the first layer of a stage's backward the early part runs before the stage waits. */
static AmpWhen first_part(const Walk *w, uint32_t stage, uint32_t layer)
{
    return layer + 1 == w->first[stage + 1] ? AMP_LATE : AMP_EARLY;
}

static void join_layers(Walk *w, uint32_t stage, uint32_t r)
{
    KILTER_ASSERT(w->first[stage] <= w->first[stage + 1] &&
                  w->first[stage + 1] <= w->n_layers);
    const uint32_t group = stage % w->n_groups, at = stage * w->rows->dp + r;
    const uint32_t begin = w->first[stage], end = w->first[stage + 1];
    w->forward[at] = w->backward[at] = amp_delay_none();
    for (uint32_t l = begin; l < end; l++)
        amp_join(&w->forward[at], delay_of(w, AMP_FORWARD, group, r, l));
    for (uint32_t l = end; l-- > begin;) {
        for (AmpWhen part = first_part(w, stage, l); part < AMP_AGAIN_PARTS; part++) {
            const AmpDelay *again = amp_again_of(w->rows, stage, r, l, part);
            if (again)
                amp_join(&w->backward[at], again);
        }
        amp_join(&w->backward[at], delay_of(w, AMP_BACKWARD, group, r, l));
    }
}

/* --- messages --- */

static void launch(const Walk *w, uint32_t group, uint32_t r)
{
    KILTER_ASSERT(group < w->n_groups);
    const uint32_t at = group * w->rows->dp + r;
    w->clocks[at].s[CLOCK_HOST] += w->rows->launch_s[at];
}

static double made_s(const AmpClocks *clocks)
{
    return MAX(clocks->s[CLOCK_DEVICE], clocks->s[CLOCK_SHARED]);
}

/* Sends a stage's result; sets the time at which it has arrived at `to`. */
static double amp_send(Walk *w, uint32_t from, uint32_t to, uint32_t r, double seconds)
{
    g_assert(seconds >= 0);
    const uint32_t sender = from % w->n_groups, receiver = to % w->n_groups;
    const uint32_t dp = w->rows->dp;
    const AmpClocks *clocks = &w->clocks[sender * dp + r],
                    *to_clocks = &w->clocks[receiver * dp + r];
    double *link = &w->link[(sender * w->n_groups + receiver) * dp + r];
    if (sender == receiver)
        return made_s(clocks);
    launch(w, sender, r);
    launch(w, receiver, r);
    if (w->rows->launch_s[sender * dp + r] > 0)
        *link = MAX(*link, clocks->s[CLOCK_HOST]);
    if (w->rows->launch_s[receiver * dp + r] > 0)
        *link = MAX(*link, to_clocks->s[CLOCK_HOST]);
    *link = MAX(*link, made_s(clocks)) + seconds;
    return *link;
}

static void send_on(Walk *w, SynthStep step, uint32_t r)
{
    const AmpRows *rows = w->rows;
    const uint32_t dp = rows->dp, n = rows->n_microbatches, s = step.stage;
    const size_t at = ((size_t)s * n + step.microbatch) * dp + r;
    if (!step.backward && s + 1 < rows->problem.n_stages)
        w->arrives[at + (size_t)n * dp] = amp_send(
            w, s, s + 1, r,
            rows->send_s[((size_t)s * dp + r) * w->n_layers + w->first[s + 1] - 1]);
    else if (step.backward && s > 0)
        w->returns[at - (size_t)n * dp] = amp_send(
            w, s, s - 1, r,
            rows->return_s[((size_t)(s - 1) * dp + r) * w->n_layers + w->first[s] - 1]);
}

static void run_again(Walk *w, uint32_t stage, uint32_t r, uint32_t layer, AmpWhen part)
{
    const AmpDelay *again = amp_again_of(w->rows, stage, r, layer, part);
    AmpClocks *clocks = &w->clocks[stage % w->n_groups * w->rows->dp + r];
    if (again)
        *clocks = amp_clocks_pass(clocks, again);
}

/* --- the last backward of a stage --- */

/* Runs the last backward of a stage, with the all-reduces of its gradients, for which the replicas
 * wait for one another. */
static void last_backward(Walk *w, uint32_t stage)
{
    KILTER_ASSERT(w->first[stage] <= w->first[stage + 1]);
    const AmpRows *rows = w->rows;
    const uint32_t group = stage % w->n_groups, dp = rows->dp;
    AmpClocks *clocks = &w->clocks[group * dp];
    for (uint32_t l = w->first[stage + 1]; l-- > w->first[stage];) {
        double end = 0;
        values_at (const uint32_t, r, i, w->unlike, w->n_unlike) {
            for (AmpWhen part = first_part(w, stage, l); part < AMP_AGAIN_PARTS; part++)
                run_again(w, stage, r, l, part);
            clocks[r] = amp_clocks_pass(
                &clocks[r], &rows->last[group * dp + r][AMP_BACKWARD * w->n_layers + l]);
            end = MAX(end, clocks[r].s[CLOCK_STREAM]);
        }
        for (uint32_t i = 0; dp > 1 && i < w->n_unlike; i++)
            clocks[w->unlike[i]].s[CLOCK_STREAM] = end;
        w->reduced[l] = end;
    }
}

/* --- the schedule --- */

static void amp_run_step(Walk *w, SynthStep step)
{
    const AmpRows *rows = w->rows;
    const uint32_t dp = rows->dp, group = step.stage % w->n_groups;
    const size_t at = ((size_t)step.stage * rows->n_microbatches + step.microbatch) * dp;
    AmpClocks *clocks = &w->clocks[group * dp];
    values_at (const uint32_t, r, i, w->unlike, w->n_unlike)
        if (step.backward && w->first[step.stage] < w->first[step.stage + 1])
            run_again(w, step.stage, r, w->first[step.stage + 1] - 1, AMP_EARLY);
    values_at (const uint32_t, r, i, w->unlike, w->n_unlike)
        clocks[r].s[CLOCK_DEVICE] =
            MAX(clocks[r].s[CLOCK_DEVICE],
                step.backward ? w->returns[at + r] : w->arrives[at + r]);
    if (step.backward && step.microbatch + 1 == rows->n_microbatches)
        last_backward(w, step.stage);
    else
        values_at (const uint32_t, r, i, w->unlike, w->n_unlike)
            clocks[r] = amp_clocks_pass(
                &clocks[r],
                &(step.backward ? w->backward : w->forward)[step.stage * dp + r]);
    values_at (const uint32_t, r, i, w->unlike, w->n_unlike)
        send_on(w, step, r);
}

static void run_steps(Walk *w)
{
    const AmpRows *rows = w->rows;
    g_autoptr(GArray) order =
        synth_schedule_order(rows->options->schedule, rows->problem.n_stages, w->n_groups,
                             rows->n_microbatches, NULL, NULL);
    for (uint32_t i = 0; i < order->len; i++)
        amp_run_step(w, g_array_index(order, SynthStep, i));
}

/* --- after the schedule --- */

/* The all-reduces of a group, as if one after the other up to the last one's end; what would have
 * begun before the iteration belongs to updates. */
typedef struct {
    double start_s, left_s, end_s;
} Sync;

static Sync sync_of(const Walk *w, uint32_t group)
{
    KILTER_ASSERT(group < w->n_groups);
    Sync sync = {0};
    for (uint32_t stage = group; stage < w->rows->problem.n_stages; stage += w->n_groups)
        for (uint32_t l = w->first[stage]; l < w->first[stage + 1]; l++) {
            sync.left_s += w->rows->sync[(size_t)stage * w->n_layers + l];
            sync.end_s = MAX(sync.end_s, w->reduced[l]);
        }
    sync.left_s = MIN(sync.left_s, sync.end_s);
    sync.start_s = sync.end_s - sync.left_s;
    return sync;
}

static bool is_under_way(const Sync *sync, double now)
{
    return sync->left_s > 0 && sync->start_s <= now;
}

/* The part of its own speed that a group has while all-reduces of others use the same ports. */
static double speed_of(const Walk *w, const Sync *sync, uint32_t group, double now)
{
    KILTER_ASSERT(now >= 0);
    const uint32_t n =
        sum_over(uint32_t, g, w->n_groups,
                 is_under_way(&sync[g], now) &&
                     (g == group || w->rows->meet[group * w->n_groups + g]));
    return is_under_way(&sync[group], now) ? 1.0 / n : 0;
}

/* Advances to the time at which the next all-reduce starts or ends, and returns it; INFINITY after
 * the last. */
static double advance(const Walk *w, Sync *sync, double now)
{
    g_autofree double *speed = g_new(double, w->n_groups);
    double next = INFINITY;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        speed[g] = speed_of(w, sync, g, now);
        if (speed[g] > 0)
            next = MIN(next, now + sync[g].left_s / speed[g]);
        else if (sync[g].left_s > 0)
            next = MIN(next, sync[g].start_s);
    }
    for (uint32_t g = 0; g < w->n_groups; g++) {
        if (speed[g] == 0)
            continue;
        const bool ends = now + sync[g].left_s / speed[g] <= next;
        sync[g].left_s = ends ? 0 : sync[g].left_s - speed[g] * (next - now);
        sync[g].end_s = next;
    }
    return next;
}

/* The ends [group] of the groups' all-reduces, which share the ports of machines. */
static Sync *share_ports(const Walk *w)
{
    Sync *sync = g_new(Sync, w->n_groups);
    double now = INFINITY;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        sync[g] = sync_of(w, g);
        now = MIN(now, sync[g].start_s);
    }
    while (isfinite(now))
        now = advance(w, sync, now);
    return sync;
}

/* The updates of a group's replica, later layers first; returns when they are done. */
static double update(const Walk *w, uint32_t group, uint32_t r, double reduced_s)
{
    const AmpRows *rows = w->rows;
    AmpClocks clocks = w->clocks[group * rows->dp + r];
    for (uint32_t stage = rows->problem.n_stages; stage-- > 0;)
        for (uint32_t l = w->first[stage + 1];
             stage % w->n_groups == group && l-- > w->first[stage];) {
            const double at =
                l == w->first[group] ? MAX(reduced_s, w->reduced[l]) : w->reduced[l];
            clocks.s[CLOCK_DEVICE] = MAX(clocks.s[CLOCK_DEVICE], at);
            clocks = amp_clocks_pass(&clocks, delay_of(w, AMP_UPDATE, group, r, l));
            if (rows->offload_s)
                clocks.s[CLOCK_DEVICE] +=
                    rows->offload_s[(size_t)stage * rows->problem.n_layers + l];
        }
    return made_s(&clocks);
}

/* Whether two replicas take the same times. */
static bool walk_is_alike(const AmpRows *rows, uint32_t n_layers, uint32_t r,
                          uint32_t other)
{
    const uint32_t dp = rows->dp, n_groups = rows->problem.n_stages / rows->chunks;
    bool alike = true;
    for (uint32_t g = 0; alike && g < n_groups; g++) {
        const uint32_t x = g * dp + r, y = g * dp + other;
        alike = rows->delay[x] == rows->delay[y] && rows->last[x] == rows->last[y] &&
                rows->launch_s[x] == rows->launch_s[y];
        for (uint32_t m = 0; m < rows->n_modes; m++)
            alike &=
                rows->again[m * n_groups * dp + x] == rows->again[m * n_groups * dp + y];
    }
    for (uint32_t s = 0; alike && s + 1 < rows->problem.n_stages; s++) {
        const size_t x = ((size_t)s * dp + r) * n_layers,
                     y = ((size_t)s * dp + other) * n_layers,
                     bytes = n_layers * sizeof *rows->send_s;
        alike = memcmp(rows->send_s + x, rows->send_s + y, bytes) == 0 &&
                memcmp(rows->return_s + x, rows->return_s + y, bytes) == 0;
    }
    return alike;
}

double amp_rows_walk(const AmpRows *rows, const uint32_t *first)
{
    g_assert(first[0] == 0);
    const uint32_t n_stages = rows->problem.n_stages, dp = rows->dp;
    const uint32_t n_groups = n_stages / rows->chunks;
    const size_t n_steps = (size_t)n_stages * rows->n_microbatches * dp;
    g_autofree AmpDelay *forward = g_new(AmpDelay, n_stages * dp),
                        *backward = g_new(AmpDelay, n_stages * dp);
    g_autofree AmpClocks *clocks = g_new0(AmpClocks, n_groups * dp);
    g_autofree double *arrives = g_new0(double, n_steps),
                      *returns = g_new0(double, n_steps),
                      *link = g_new0(double, n_groups *n_groups *dp),
                      *reduced = g_new0(double, rows->problem.n_layers);
    g_autofree uint32_t *unlike = g_new(uint32_t, dp);
    Walk w = {rows,    first,    n_groups, rows->problem.n_layers,
              forward, backward, clocks,   arrives,
              returns, link,     reduced,  0,
              unlike};
    double end = 0;
    for (uint32_t r = 0, k; r < dp; r++) {
        for (k = 0; k < w.n_unlike && !walk_is_alike(rows, w.n_layers, unlike[k], r);)
            k++;
        if (k == w.n_unlike)
            unlike[w.n_unlike++] = r;
    }
    for (uint32_t stage = 0; stage < n_stages; stage++)
        values_at (const uint32_t, r, i, w.unlike, w.n_unlike)
            join_layers(&w, stage, r);
    run_steps(&w);
    g_autofree Sync *sync = share_ports(&w);
    for (uint32_t group = 0; group < n_groups; group++)
        values_at (const uint32_t, r, i, w.unlike, w.n_unlike)
            end = MAX(end, update(&w, group, r, sync[group].end_s));
    return end;
}
