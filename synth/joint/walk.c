/* A pipeline of unlike stages, step by step: what its schedule takes (synth/joint/joint.h).
 *
 * A group works off its steps in order. A forward waits for what the stage before sent, a backward
 * for what the stage behind sent back; what is sent between two stages goes one after another,
 * each way. After its last step a group sums its gradients and updates. Where iterations overlap,
 * a group's time is from its first step on. */
#include <math.h>

#include "sim/tasks/piece.h"
#include "synth/joint/menu.h"

/* A run of layers of a group. */
typedef struct {
    double forward_s, backward_s, weights_s; /* weights_s: of a split backward */
    double there_s, back_s;                  /* of the border behind it */
    double sent_s, returned_s;               /* until when the links behind it are busy */
} Stage;

typedef struct {
    double sync_s, first_s, now_s; /* when its first step begins; until when it is busy */
} Group;

typedef struct {
    uint32_t n_groups, n, m;
    Group *group;
    Stage *stage; /* [n], stage s on group s mod n_groups */
    /* [stage * m + microbatch]: when a forward's or a backward's input is there */
    double *arrives, *returns;
} Walk;

/* Hands the result of a forward or backward on. */
static void hand_on(Walk *w, const SynthStep *step, double now_s)
{
    const size_t at = (size_t)step->stage * w->m + step->microbatch;
    Stage *s = &w->stage[step->stage];
    if (!step->backward && step->stage + 1 == w->n)
        w->returns[at] = now_s;
    else if (!step->backward)
        w->arrives[at + w->m] = s->sent_s = fmax(s->sent_s, now_s) + s->there_s;
    else if (step->stage > 0) {
        Stage *before = s - 1;
        w->returns[at - w->m] = before->returned_s =
            fmax(before->returned_s, now_s) + before->back_s;
    }
}

static void run_step(Walk *w, const SynthStep *step)
{
    Group *g = &w->group[step->stage % w->n_groups];
    const Stage *s = &w->stage[step->stage];
    const size_t at = (size_t)step->stage * w->m + step->microbatch;
    if (step->weights) {
        g->now_s += s->weights_s;
        return;
    }
    const double from_s =
        fmax(g->now_s, step->backward ? w->returns[at] : w->arrives[at]);
    g->first_s = fmin(g->first_s, from_s);
    g->now_s = from_s + (step->backward ? s->backward_s - s->weights_s : s->forward_s);
    hand_on(w, step, g->now_s);
}

/* --- borders --- */

/* The pieces that devices of stage `from` send those of stage `to`: a replica gets its samples of
 * whoever has them, all devices of a replica all of these, from the sender's device at the same
 * part of its places. */
static GArray *pieces_of(const JointEntry *from, const uint32_t *senders,
                         const JointEntry *to, const uint32_t *receivers, uint32_t batch)
{
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(SimPiece));
    uint32_t begin = 0, sent = 0, s = 0;
    for (uint32_t r = 0; r < to->dp; r++) {
        const uint32_t end = begin + to->samples[r];
        while (begin < end) {
            const uint32_t n = MIN(end, sent + from->samples[s]) - begin;
            for (uint32_t p = 0; n > 0 && p < to->tp; p++) {
                const SimPiece piece = {senders[s * from->tp + p * from->tp / to->tp],
                                        receivers[r * to->tp + p], r, (double)n / batch};
                g_array_append_val(pieces, piece);
            }
            begin += n;
            /* a device of an SPMD program may have none */
            if (begin == sent + from->samples[s])
                sent += from->samples[s++];
        }
    }
    return pieces;
}

/* Seconds over the border between neighbours, on the devices that they have; adds its pieces to
 * `all`. */
static double border_s(const JointMenu *menu, const GArray *pieces, double bytes,
                       GArray *all)
{
    double latency_s, byte_s;
    sim_pieces_time(menu->view, pieces, &latency_s, &byte_s);
    array_each (const SimPiece, piece, pieces) {
        SimPiece sent = *piece;
        sent.part *= bytes;
        g_array_append_val(all, sent);
    }
    return bytes > 0 ? latency_s + byte_s * bytes : 0;
}

/* Fills the seconds over borders. Returns those of a microbatch at the busiest port, which several
 * borders may share. */
static double fill_borders(const JointMenu *menu, const JointProblem *p,
                           const JointPipeline *pipeline, const uint32_t *first,
                           Stage *stage)
{
    const uint32_t n = pipeline->n_stages, n_all = menu->view->n_devices;
    g_autofree uint32_t *device = joint_place(menu, p, pipeline);
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(SimPiece));
    double latency_s, port_s;
    for (uint32_t i = 0; i + 1 < n * MAX(pipeline->chunks, 1); i++) {
        const uint32_t next = first[i + 1];
        const JointStage *at = &pipeline->stage[i % n],
                         *to = &pipeline->stage[(i + 1) % n];
        const JointEntry *e = joint_entry_of(p, at), *f = joint_entry_of(p, to);
        const uint32_t *own = device + (size_t)(i % n) * n_all,
                       *others = device + (size_t)((i + 1) % n) * n_all;
        g_autoptr(GArray) there = pieces_of(e, own, f, others, p->samples),
                          back = pieces_of(f, others, e, own, p->samples);
        stage[i].there_s =
            border_s(menu, there, joint_copies(f, next) / f->tp * p->sent[next], all);
        stage[i].back_s =
            border_s(menu, back, joint_copies(e, next) / e->tp * p->returned[next], all);
    }
    sim_pieces_time(menu->view, all, &latency_s, &port_s);
    return port_s;
}

/* --- the whole --- */

static void fill_stages(const JointProblem *p, const JointPipeline *pipeline,
                        const uint32_t *first, Walk *w)
{
    const uint32_t n = pipeline->n_stages;
    const bool splits = schedule_splits(pipeline->schedule);
    for (uint32_t i = 0; i < w->n; i++) {
        const JointStage *at = &pipeline->stage[i % n];
        const JointEntry *e = joint_entry_of(p, at);
        const uint32_t begin = first[i], end = first[i + 1];
        w->stage[i] = (Stage){
            .forward_s = e->forward_s[end] - e->forward_s[begin],
            .backward_s = e->backward_s[end] - e->backward_s[begin],
            .weights_s = splits && i > 0 ? e->weights_s[end] - e->weights_s[begin] : 0};
        Group *g = &w->group[i % n];
        g->first_s = i < n ? INFINITY : g->first_s;
        g->sync_s += (i < n ? e->start_s : 0) + e->sync_s[end] - e->sync_s[begin];
    }
}

double synth_joint_walk_s(const JointMenu *menu, const JointProblem *p,
                          const JointPipeline *pipeline)
{
    const uint32_t n = pipeline->n_stages * MAX(pipeline->chunks, 1),
                   m = p->n_microbatches;
    g_autofree Stage *stage = g_new0(Stage, n);
    g_autofree Group *group = g_new0(Group, pipeline->n_stages);
    g_autofree uint32_t *first = joint_runs(p, pipeline);
    g_autofree double *arrives = g_new0(double, (size_t)n *m),
                      *returns = g_new0(double, (size_t)n *m);
    g_autofree SynthDepth *depth = joint_depths(p, pipeline);
    g_autoptr(GArray) order =
        synth_schedule_order(pipeline->schedule, n, pipeline->n_stages, m, depth, NULL);
    Walk w = {pipeline->n_stages, n, m, group, stage, arrives, returns};
    fill_stages(p, pipeline, first, &w);
    const double port_s = fill_borders(menu, p, pipeline, first, stage);
    for (uint32_t i = 0; i < order->len; i++)
        run_step(&w, &g_array_index(order, SynthStep, i));
    const bool overlap = schedule_is_successive(pipeline->schedule, pipeline->n_stages);
    return most_over(double, i, w.n_groups, m *port_s,
                     group[i].now_s + group[i].sync_s - (overlap ? group[i].first_s : 0));
}
