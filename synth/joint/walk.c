/* A pipeline of unlike stages, step by step: what its schedule takes (synth/joint/joint.h).
 *
 * A stage works off its steps in order. A forward waits for what the stage before sent, a backward for what the stage
 * behind sent back; what is sent between two stages goes one after another, each way. After its last backward a stage
 * sums its gradients and updates. */
#include <math.h>

#include "synth/joint/menu.h"

typedef struct {
    double forward_s, backward_s, sync_s;
    double there_s, back_s;    /* of the border behind it */
    double now_s;              /* until when it is busy */
    double sent_s, returned_s; /* until when the links behind it are */
    uint32_t next;             /* of its steps */
    GArray *step;              /* SynthStep */
} Stage;

typedef struct {
    uint32_t n, m;
    Stage *stage;
    /* [stage * m + microbatch]: when a forward's or a backward's input is there; INFINITY: not yet */
    double *arrives, *returns;
} Walk;

/* Runs a stage's next step if its input is there. */
static bool run_step(Walk *w, uint32_t p)
{
    Stage *s = &w->stage[p];
    if (s->next == s->step->len)
        return false;
    const SynthStep step = g_array_index(s->step, SynthStep, s->next);
    const size_t at = (size_t)p * w->m + step.microbatch;
    const double ready = step.backward ? w->returns[at] : w->arrives[at];
    if (!isfinite(ready))
        return false;
    s->next++;
    s->now_s = fmax(s->now_s, ready) + (step.backward ? s->backward_s : s->forward_s);
    if (!step.backward && p + 1 == w->n)
        w->returns[at] = s->now_s;
    else if (!step.backward)
        w->arrives[at + w->m] = s->sent_s = fmax(s->sent_s, s->now_s) + s->there_s;
    else if (p > 0) {
        Stage *before = &w->stage[p - 1];
        w->returns[at - w->m] = before->returned_s =
            fmax(before->returned_s, s->now_s) + before->back_s;
    }
    return true;
}

/* --- borders --- */

/* What devices of stage `from` send those of stage `to`: a replica gets its samples of whoever has them, all devices of a
 * replica all of these, from the sender's device at the same part of its places. */
static GArray *pieces_of(const JointEntry *from, const uint32_t *senders,
                         const JointEntry *to, const uint32_t *receivers, uint32_t batch)
{
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(SimPiece));
    uint32_t begin = 0, sent = 0, s = 0;
    for (uint32_t r = 0; r < to->dp; r++) {
        const uint32_t end = begin + to->samples[r];
        while (begin < end) {
            const uint32_t n = MIN(end, sent + from->samples[s]) - begin;
            for (uint32_t p = 0; p < to->tp; p++) {
                const SimPiece piece = {senders[s * from->tp + p * from->tp / to->tp],
                                        receivers[r * to->tp + p], r, (double)n / batch};
                g_array_append_val(pieces, piece);
            }
            begin += n;
            if (begin == sent + from->samples[s])
                sent += from->samples[s++];
        }
    }
    return pieces;
}

/* Seconds over the border between neighbours, on the devices that they have. */
static double border_s(const JointMenu *menu, const JointEntry *from,
                       const uint32_t *senders, const JointEntry *to,
                       const uint32_t *receivers, double bytes, uint32_t batch)
{
    double latency_s, byte_s;
    g_autoptr(GArray) pieces = pieces_of(from, senders, to, receivers, batch);
    sim_pieces_time(menu->view, pieces, &latency_s, &byte_s);
    return bytes > 0 ? latency_s + byte_s * bytes : 0;
}

static void fill_borders(const JointMenu *menu, const JointProblem *p,
                         const JointPipeline *pipeline, Stage *stage)
{
    const uint32_t batch = menu->model->global_batch / p->n_microbatches;
    g_autofree uint32_t *device = joint_place(menu, p, pipeline);
    for (uint32_t i = 0; i + 1 < pipeline->n_stages; i++) {
        const JointStage *at = &pipeline->stage[i];
        const JointEntry *e = &p->group[at->group].entry[at->entry],
                         *f = &p->group[at[1].group].entry[at[1].entry];
        const uint32_t *own = device + (size_t)i * menu->view->n_devices,
                       *next = own + menu->view->n_devices;
        stage[i].there_s = border_s(menu, e, own, f, next, p->sent[at[1].first], batch);
        stage[i].back_s =
            border_s(menu, f, next, e, own, p->returned[at[1].first], batch);
    }
}

/* --- the whole --- */

static void fill_stages(const JointProblem *p, const JointPipeline *pipeline,
                        Stage *stage)
{
    const uint32_t n = pipeline->n_stages;
    for (uint32_t i = 0; i < n; i++) {
        const JointStage *at = &pipeline->stage[i];
        const uint32_t last = i + 1 < n ? at[1].first : p->n_layers;
        const JointEntry *e = &p->group[at->group].entry[at->entry];
        stage[i] = (Stage){
            .forward_s = e->forward_s[last] - e->forward_s[at->first],
            .backward_s = e->backward_s[last] - e->backward_s[at->first],
            .sync_s = e->start_s + e->sync_s[last] - e->sync_s[at->first],
            .step = synth_schedule(pipeline->schedule, n, n, p->n_microbatches, i, NULL)};
        g_assert(stage[i].step);
    }
}

static double run(Walk *w)
{
    double end = 0;
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < w->n; i++)
            while (run_step(w, i))
                any = true;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        g_assert(w->stage[i].next == w->stage[i].step->len);
        end = fmax(end, w->stage[i].now_s + w->stage[i].sync_s);
    }
    return end;
}

double synth_joint_walk_s(const JointMenu *menu, const JointProblem *p,
                          const JointPipeline *pipeline)
{
    const uint32_t n = pipeline->n_stages, m = p->n_microbatches;
    g_autofree Stage *stage = g_new0(Stage, n);
    g_autofree double *arrives = g_new(double, (size_t)n *m),
                      *returns = g_new(double, (size_t)n *m);
    Walk w = {n, m, stage, arrives, returns};
    fill_stages(p, pipeline, stage);
    fill_borders(menu, p, pipeline, stage);
    for (size_t k = 0; k < (size_t)n * m; k++) {
        arrives[k] = k < m ? 0 : INFINITY;
        returns[k] = INFINITY;
    }
    const double end = run(&w);
    for (uint32_t i = 0; i < n; i++)
        g_array_unref(stage[i].step);
    return end;
}
