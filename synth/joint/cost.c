/* The cost of a pipeline, stage by stage from the last to the first (synth/joint/joint.h). */
#include "synth/joint/cost.h"
#include "synth/joint/menu.h"

#include <math.h>

static uint32_t chunks_of(const JointWay *way)
{
    return MAX(way->chunks, 1);
}

/* --- entries --- */

JointEntry joint_entry_new(uint32_t n_layers, uint32_t dp, uint32_t tp)
{
    return (JointEntry){.dp = dp,
                        .tp = tp,
                        .samples = g_new(uint32_t, dp),
                        .forward_s = g_new0(double, n_layers + 1),
                        .backward_s = g_new0(double, n_layers + 1),
                        .weights_s = g_new0(double, n_layers + 1),
                        .sync_s = g_new0(double, n_layers + 1),
                        .held = g_new0(double, n_layers + 1),
                        .kept = g_new0(double, n_layers + 1),
                        .late = g_new0(double, n_layers + 1)};
}

static bool is_never_more(const double *a, const double *b, uint32_t n)
{
    return !any_of(l, n, a[l + 1] - a[l] > b[l + 1] - b[l]);
}

static bool is_no_slower(const JointEntry *a, const JointEntry *b, uint32_t n)
{
    return a->tp == b->tp && a->start_s <= b->start_s &&
           is_never_more(a->backward_s, b->backward_s, n) &&
           is_never_more(a->forward_s, b->forward_s, n) &&
           is_never_more(a->sync_s, b->sync_s, n);
}

void synth_joint_rank(JointProblem *p)
{
    for (uint32_t g = 0; g < p->n_groups; g++) {
        JointEntry *entry = p->group[g].entry;
        for (uint32_t e = 0; e < p->group[g].n_entries; e++) {
            entry[e].faster = 0;
            while (entry[e].faster < e &&
                   !is_no_slower(&entry[entry[e].faster], &entry[e], p->n_layers))
                entry[e].faster++;
        }
    }
}

/* --- microbatches in flight --- */

/* How many forward steps a stage is ahead of its backward steps, in microbatches: at least, where
 * memory is short, and at most. */
static void ahead(const JointProblem *p, const JointWay *way, uint32_t behind,
                  double *least, double *most)
{
    const double all = p->n_microbatches - 1.0;
    const bool rounds = chunks_of(way) > 1;
    *most = MIN(all, behind);
    if (way->schedule == SCHEDULE_GPIPE || (rounds && p->n_microbatches == way->n_stages))
        *most = all;
    else if (way->schedule == SCHEDULE_INTERLEAVED || way->schedule == SCHEDULE_ZB_H2)
        *most = MIN(all, 2.0 * behind / chunks_of(way));
    *least = rounds || way->schedule == SCHEDULE_GPIPE ? *most : MIN(all, behind);
}

/* Further microbatches whose activations a stage keeps, since some of its chunks are ahead of
 * others. */
static double more_kept(const JointWay *way)
{
    return chunks_of(way) > 1 ? (way->chunks - 1.0) * (way->n_stages - 1.0) / way->chunks
                              : 0;
}

/* Bytes that are free for activations. */
static double free_bytes(const JointFront *front, uint32_t layer)
{
    const JointEntry *e = front->e;
    return e->capacity - joint_span(e->held, layer, front->last) - e->work;
}

static bool has_memory(const JointProblem *p, const JointWay *way,
                       const JointFront *front, uint32_t layer, double in)
{
    const double kept = MIN(p->n_microbatches, in + 1 + more_kept(way));
    return kept * joint_span(front->e->kept, layer, front->last) <=
           free_bytes(front, layer);
}

bool joint_front_fits(const JointProblem *p, const JointWay *way, const JointFront *front,
                      uint32_t layer)
{
    return way->free || has_memory(p, way, front, layer, front->least_in);
}

bool joint_front_is_ample(const JointProblem *p, const JointWay *way,
                          const JointFront *front, uint32_t layer)
{
    return way->free || has_memory(p, way, front, layer, front->most_in);
}

/* As deep as the memory allows: first ahead, which hides transfers, then late with the rest of
 * split backwards. Both are whole numbers for one chunk per group. */
static void deepen(const JointProblem *p, const JointWay *way, const JointFront *front,
                   uint32_t layer, double *in, double *lag)
{
    const double m = p->n_microbatches, free = free_bytes(front, layer);
    const double each = joint_span(front->e->kept, layer, front->last),
                 late = joint_span(front->e->late, layer, front->last);
    *in = front->most_in;
    *lag = front->most_lag;
    if (way->free || (front->least_in == *in && *lag == 0) ||
        MIN(m, *in + 1) * each + MIN(m, *lag) * late <= free)
        return;
    if (each > 0)
        *in = CLAMP(floor(free / each) - 1, front->least_in, front->most_in);
    const double left = fmax(0, free - MIN(m, *in + 1) * each);
    *lag = late > 0 ? MIN(front->most_lag, floor(left / late)) : front->most_lag;
}

/* --- borders --- */

/* Seconds to cross the border in front of layer `at`, one way; every device of a group that shares
 * layers receives all bytes. */
static double cost_transfer_s(const JointProblem *p, const JointEntry *sender,
                              const JointEntry *receiver, LinkCost line, uint32_t at,
                              bool back)
{
    const double bytes = back ? p->returned[at] * joint_copies(sender, at)
                              : p->sent[at] * joint_copies(receiver, at);
    return bytes > 0 ? line.latency_s +
                           bytes * MAX(sender->share, receiver->share) / line.bandwidth
                     : 0;
}

/* The slowest link between machines of two groups; of two pieces the one inside, if they are in the
 * same machine. */
static LinkCost border_line(const JointProblem *p, const JointGroup *from,
                            const JointGroup *to, const uint32_t *used)
{
    LinkCost line = {p->latency_s, p->bandwidth};
    const uint32_t k = from->piece - 1;
    if (used && from->piece > 0 && from->piece == to->piece && used[k] % from->room > 0 &&
        used[k] % from->room + from->use[k] <= from->room)
        return from->inner;
    if (!p->border)
        return line;
    line = (LinkCost){0, INFINITY};
    for (uint32_t a = 0; from->kinds >> a && a < p->n_kinds; a++)
        for (uint32_t b = 0; (from->kinds >> a & 1) && b < p->n_kinds; b++) {
            const LinkCost *border = &p->border[a * p->n_kinds + b];
            if (!(to->kinds >> b & 1))
                continue;
            line.latency_s = fmax(line.latency_s, border->latency_s);
            line.bandwidth = fmin(line.bandwidth, border->bandwidth);
        }
    return line;
}

JointFront joint_front(const JointProblem *p, const JointWay *way, const JointSuffix *l,
                       const uint32_t *used, const JointStage *stage, uint32_t last)
{
    const JointGroup *g = &p->group[stage->group];
    JointFront front = {.group = stage->group,
                        .entry = stage->entry,
                        .e = &g->entry[stage->entry],
                        .last = last};
    if (way->relaxed)
        return front;
    ahead(p, way, l->n, &front.least_in, &front.most_in);
    g_assert(!schedule_splits(way->schedule) || l->n < way->n_stages);
    front.splits = schedule_splits(way->schedule) && l->n + 1u < way->n_stages;
    if (front.splits)
        front.most_lag = schedule_lag(way->schedule, way->n_stages - 1 - l->n);
    if (l->n > 0 && !way->free) {
        const JointEntry *e = &p->group[l->group].entry[l->entry];
        const LinkCost line = border_line(p, g, &p->group[l->group], used);
        front.there_s = cost_transfer_s(p, front.e, e, line, last, false);
        front.back_s = cost_transfer_s(p, front.e, e, line, last, true);
    }
    return front;
}

/* --- stages --- */

/* The longest of the chains through one stage, from its first forward to its last backward. */
static double own_pace_s(const JointProblem *p, const JointWay *way, double in,
                         double behind_s, double f, double b)
{
    const double m = p->n_microbatches, both = f + b;
    double pace = MAX(m * both, behind_s + m * both - in * MIN(f, b));
    const double most = chunks_of(way) > 1 ? 0 : floor((m + in) / (in + 1));
    if (most >= 2) {
        pace = MAX(pace, 2 * behind_s + (m - in) * both);
        pace = MAX(pace, most * behind_s + (m - (most - 1) * in) * both);
    }
    return pace;
}

/* The least time of every schedule, also if a device has several stages: transfers, syncs and
 * waits between microbatches take no time. */
static void relax(const JointProblem *p, const JointWay *way, double f, double b,
                  double w, JointSuffix *made)
{
    const double m = p->n_microbatches, before = way->chunks == 1 ? 1 : 0;
    made->sum_s += f + b - w;
    made->pace_s =
        MAX(MAX(made->pace_s + before * (f + b - w), m * (f + b - w)), made->sum_s);
    made->end_s = MAX(MAX(made->end_s + before * f, m * (f + b)), made->pace_s);
}

JointSuffix joint_prepend(const JointProblem *p, const JointWay *way,
                          const JointSuffix *l, const JointFront *front, uint32_t i)
{
    KILTER_ASSERT(i < front->last && front->last <= p->n_layers);
    const JointEntry *e = front->e;
    const double f = joint_span(e->forward_s, i, front->last),
                 b = joint_span(e->backward_s, i, front->last),
                 w = joint_span(e->weights_s, i, front->last);
    JointSuffix made = *l;
    made.group = (uint16_t)front->group;
    made.entry = (uint16_t)front->entry;
    made.first = (uint16_t)i;
    made.n = (uint16_t)(l->n + 1);
    if (way->relaxed) {
        relax(p, way, f, b, w, &made);
        return made;
    }
    double in, lag;
    deepen(p, way, front, i, &in, &lag);
    const double part = 1.0 / chunks_of(way), late = front->splits ? w : 0;
    const double rest = MIN(p->n_microbatches, lag + 1) * late;
    const double behind = l->sum_s + front->there_s + front->back_s;
    const double once = part * (f + b - late);
    const double own = own_pace_s(p, way, in, behind, f, b) - rest;
    const double others = l->pace_s + once + front->there_s + front->back_s;
    made.sum_s = behind + once;
    const double busy = (p->n_microbatches - 1) * MAX(front->there_s, front->back_s);
    made.pace_s = MAX(MAX(others, own), made.sum_s + busy);
    const double end = l->n > 0 ? l->end_s + part * f + front->there_s : 0;
    made.end_s = MAX(end, made.pace_s + rest + (way->free ? 0 : e->start_s) +
                              joint_span(e->sync_s, i, front->last));
    return made;
}

/* --- whole pipelines --- */

static JointWay cost_way_of(const JointPipeline *pipeline, bool relaxed)
{
    return (JointWay){pipeline->schedule, pipeline->n_stages, pipeline->chunks, relaxed,
                      false};
}

double synth_joint_cost(const JointProblem *p, const JointPipeline *pipeline,
                        bool relaxed)
{
    const JointWay way = cost_way_of(pipeline, relaxed);
    g_autofree uint32_t *used = g_new0(uint32_t, p->n_kinds);
    JointSuffix l = {0};
    uint32_t j = p->n_layers;
    for (uint32_t i = pipeline->n_stages; i-- > 0;) {
        const JointStage *stage = &pipeline->stage[i];
        const JointFront front = joint_front(p, &way, &l, used, stage, j);
        if (!relaxed && !joint_front_fits(p, &way, &front, stage->first))
            return INFINITY;
        l = joint_prepend(p, &way, &l, &front, stage->first);
        j = stage->first;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            used[k] += p->group[stage->group].use[k];
    }
    return l.end_s;
}

bool synth_joint_fits(const JointProblem *p, const JointPipeline *pipeline)
{
    return isfinite(synth_joint_cost(p, pipeline, false));
}

SynthDepth *joint_depths(const JointProblem *p, const JointPipeline *pipeline)
{
    const JointWay way = cost_way_of(pipeline, false);
    const uint32_t n = pipeline->n_stages;
    SynthDepth *depth = g_new(SynthDepth, n);
    JointSuffix l = {0};
    for (uint32_t i = n, j = p->n_layers; i-- > 0; l.n++) {
        const JointStage *stage = &pipeline->stage[i];
        const JointFront front = joint_front(p, &way, &l, NULL, stage, j);
        double in, lag;
        deepen(p, &way, &front, stage->first, &in, &lag);
        depth[i] = synth_schedule_depth(way.schedule, n * chunks_of(&way), n,
                                        p->n_microbatches, i);
        if (chunks_of(&way) == 1)
            depth[i] = (SynthDepth){MIN(depth[i].ahead, (uint32_t)in), (uint32_t)lag};
        l.group = (uint16_t)stage->group;
        l.entry = (uint16_t)stage->entry;
        j = stage->first;
    }
    for (uint32_t i = 1; i < n && chunks_of(&way) == 1; i++)
        depth[i].ahead = MIN(depth[i].ahead, depth[i - 1].ahead);
    return depth;
}
