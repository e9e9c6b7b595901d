/* From a pipeline of the joint search to its program: each layer is divided over the tp devices of
 * its stage. */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/joint/menu.h"
#include "synth/spmd/spmd.h"

CLEAR_DEFINE(synth_joint_program_clear, JointProgram, made,
             let_go(made->program, program_free), let_go(made->ratio, g_free));

typedef struct {
    const JointMenu *menu;
    const JointProblem *problem;
    const JointPipeline *pipeline;
    uint32_t *used;   /* [place]: number of GPUs taken by stages */
    uint32_t *device; /* [stage * n_devices + place] */
} Placing;

static const JointGroup *group_of(const Placing *p, uint32_t stage)
{
    KILTER_ASSERT(stage < p->pipeline->n_stages);
    return &p->problem->group[p->pipeline->stage[stage].group];
}

static const JointEntry *entry_of(const Placing *p, uint32_t stage)
{
    KILTER_ASSERT(stage < p->pipeline->n_stages);
    return joint_entry_of(p->problem, &p->pipeline->stage[stage]);
}

/* Takes GPUs of a kind for a stage: a piece of the first machine with enough GPUs left, or whole
 * machines. Returns the number of places filled so far. */
static uint32_t place_kind(const Placing *p, uint32_t k, uint32_t gpus, uint32_t *device)
{
    const JointKind *kind = &g_array_index(p->menu->kind, JointKind, k);
    uint32_t n = 0;
    const uint32_t *skip = p->problem->skip;
    for (uint32_t i = skip ? skip[k] : 0; i < kind->n_machines && n < gpus; i++) {
        const uint32_t m = kind->machine[i], wanted = MIN(gpus - n, kind->gpus);
        if (p->used[m] + wanted > kind->gpus)
            continue;
        for (uint32_t d = 0; d < wanted; d++)
            device[n++] = g_array_index(p->menu->place, uint32_t, m) + p->used[m]++;
    }
    g_assert(n ==
             gpus); /* sizes divide one another: pieces fit if the largest come first */
    return n;
}

/* Places all stages, those with more GPUs of a kind first. */
static void place(const Placing *p)
{
    const uint32_t n_all = p->menu->view->n_devices;
    g_autofree uint32_t *filled = g_new0(uint32_t, p->pipeline->n_stages);
    array_at (const JointKind, kind, k, p->menu->kind) {
        for (uint32_t units = kind->n_units; units > 0; units--)
            for (uint32_t s = 0; s < p->pipeline->n_stages; s++)
                if (group_of(p, s)->use[k] == units)
                    filled[s] += place_kind(p, k, units * kind->unit,
                                            p->device + (size_t)s * n_all + filled[s]);
    }
}

/* Sets the ratios of the devices of a pipeline that has `part` of the batch. */
static void fill_ratios(const Placing *p, double part, double *ratio)
{
    const uint32_t n_all = p->menu->view->n_devices, n_stages = p->pipeline->n_stages;
    const double batch = p->problem->samples;
    for (uint32_t s = 0; s < n_stages; s++) {
        const JointEntry *e = entry_of(p, s);
        for (uint32_t i = 0; i < e->dp * e->tp; i++)
            ratio[p->device[(size_t)s * n_all + i]] =
                (e->inside ? e->inside->ratio[i]
                           : e->samples[i / e->tp] / batch / e->tp) *
                part / n_stages;
    }
}

/* The layer after the last one of stage s. */
static uint32_t last_layer(const JointProblem *p, const JointPipeline *pipeline,
                           uint32_t s)
{
    KILTER_ASSERT(s < pipeline->n_stages);
    return s + 1 < pipeline->n_stages ? pipeline->stage[s + 1].first : p->n_layers;
}

/* The end of run v of V of a stage's layers, which begins at `begin`: where the time is nearest to
 * its part, with a layer for each run. */
static uint32_t run_end(const JointEntry *e, uint32_t first, uint32_t last,
                        uint32_t begin, uint32_t v, uint32_t n_runs)
{
    const double *f = e->forward_s, *b = e->backward_s;
    const double part = (f[last] - f[first] + b[last] - b[first]) * (v + 1) / n_runs;
    uint32_t end = begin + 1;
    while (end + n_runs - v - 1 < last &&
           fabs(f[end + 1] - f[first] + b[end + 1] - b[first] - part) <
               fabs(f[end] - f[first] + b[end] - b[first] - part))
        end++;
    return v + 1 == n_runs ? last : end;
}

uint32_t *joint_runs(const JointProblem *p, const JointPipeline *pipeline)
{
    const uint32_t n = pipeline->n_stages, n_runs = MAX(pipeline->chunks, 1);
    uint32_t *first = g_new0(uint32_t, (size_t)n * n_runs + 1);
    items_at (const JointStage, stage, s, pipeline->stage, n) {
        const JointEntry *e = joint_entry_of(p, stage);
        const uint32_t last = last_layer(p, pipeline, s);
        for (uint32_t v = 0, begin = stage->first; v < n_runs; v++) {
            const uint32_t end = run_end(e, stage->first, last, begin, v, n_runs);
            g_assert(begin < end && end <= last);
            first[v * n + s + 1] = end - begin;
            begin = end;
        }
    }
    for (uint32_t i = 0; i < n * n_runs; i++)
        first[i + 1] += first[i];
    g_assert(first[n * n_runs] == p->n_layers);
    return first;
}

/* Puts the programs of stages that have one in the place of what `inner`, which is taken over, does
 * in their layers. stage_of: [layer]. */
static Program *put_inside(const Placing *p, Program *inner, const uint32_t *stage_of,
                           GError **error)
{
    const uint32_t n_layers = p->problem->n_layers;
    g_autofree bool *own = g_new(bool, n_layers);
    for (uint32_t s = 0; inner && s < p->pipeline->n_stages; s++) {
        const JointInside *inside = entry_of(p, s)->inside;
        if (!inside)
            continue;
        for (uint32_t l = 0; l < n_layers; l++)
            own[l] = stage_of[l] % p->pipeline->n_stages == s;
        g_autoptr(Program) before = inner;
        inner = synth_mix(p->menu->graph, inside->view, inside->view_ratio, before,
                          inside->program, own, error);
    }
    return inner;
}

/* The input of synth_pipeline(), with its arrays. */
typedef struct {
    SynthReplica replica;
    Program *inner;
    SynthDepth *depth;
    Recompute *recompute;
    uint16_t *stage;
    DeviceGroup *group;
    StageDegrees *degrees;
} Written;

OWN_CLEAR_DEFINE(written_clear, Written, w, let_go(w->inner, program_free),
                 free_each(w->depth, w->recompute, w->stage, w->group, w->degrees));

/* Describes the stages' groups, and what runs in each layer: ways, stage_of: [layer]. */
static void write_groups(const Placing *p, Written *w, uint32_t *ways, uint32_t *stage_of)
{
    const uint32_t n_groups = p->pipeline->n_stages,
                   n_stages = n_groups * MAX(p->pipeline->chunks, 1);
    g_autofree uint32_t *first = joint_runs(p->problem, p->pipeline);
    bool any = false, scatters = false;
    for (uint32_t s = 0; s < n_stages; s++) {
        const JointEntry *e = entry_of(p, s % n_groups);
        any |= w->degrees[s % n_groups].zero = e->divides;
        scatters |= e->inside != NULL;
        w->group[s % n_groups] = (DeviceGroup){
            .n_replicas = e->inside ? 1 : e->dp,
            .n_devices = e->inside ? e->dp : e->tp,
            .device = p->device + (size_t)(s % n_groups) * p->menu->view->n_devices};
        for (uint32_t l = first[s]; l < first[s + 1]; l++) {
            ways[l] = e->tp;
            stage_of[l] = s;
            w->recompute[l] = e->recompute;
        }
    }
    w->replica.pipeline =
        (SynthPipeline){.n_stages = n_stages,
                        .n_microbatches = p->problem->n_microbatches,
                        .stage = w->stage,
                        .n_groups = n_groups,
                        .group = w->group,
                        .schedule = p->pipeline->schedule,
                        .successive = schedule_is_successive(p->pipeline->schedule,
                                                             p->pipeline->n_stages),
                        .depth = w->depth,
                        .recompute = w->recompute,
                        .scatters = scatters,
                        .zero = any,
                        .degrees = w->degrees};
}

static bool write_pipeline(const Placing *p, Written *w, GError **error)
{
    const Graph *graph = p->menu->graph;
    const uint32_t n_groups = p->pipeline->n_stages, n_layers = p->problem->n_layers;
    g_autofree uint32_t *ways = g_new(uint32_t, n_layers),
                        *stage_of = g_new(uint32_t, n_layers);
    *w = (Written){.depth = joint_depths(p->problem, p->pipeline),
                   .recompute = g_new0(Recompute, n_layers),
                   .stage = g_new(uint16_t, graph_n_ops(graph)),
                   .group = g_new(DeviceGroup, n_groups),
                   .degrees = g_new0(StageDegrees, n_groups)};
    write_groups(p, w, ways, stage_of);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        w->stage[id] = (uint16_t)stage_of[graph_get_op(graph, id)->layer];
    w->inner = put_inside(p, synth_megatron_ways(graph, p->menu->view, ways, error),
                          stage_of, error);
    w->replica.inner = w->inner;
    return w->inner != NULL;
}

uint32_t *joint_place(const JointMenu *menu, const JointProblem *problem,
                      const JointPipeline *pipeline)
{
    g_autofree uint32_t *used = g_new0(uint32_t, menu->place->len);
    const Placing p = {
        menu, problem, pipeline, used,
        g_new0(uint32_t, (size_t)pipeline->n_stages * menu->view->n_devices)};
    place(&p);
    return p.device;
}

bool synth_joint_program(JointMenu *menu, const JointProblem *problem,
                         const JointPipeline *pipeline, JointProgram *made,
                         GError **error)
{
    g_autofree uint32_t *device = joint_place(menu, problem, pipeline);
    const Placing p = {menu, problem, pipeline, NULL, device};
    g_auto(Written) written = {0};
    *made = (JointProgram){.ratio = g_new0(double, menu->view->n_devices)};
    fill_ratios(&p, 1, made->ratio);
    if (write_pipeline(&p, &written, error))
        made->program = synth_pipelines_briefly(&written.replica, 1, menu->graph, error);
    if (made->program)
        return true;
    synth_joint_program_clear(made);
    return false;
}

bool synth_joint_pair_program(JointMenu *menu, const JointProblem *shared,
                              const JointPair *pair, JointProgram *made, GError **error)
{
    uint32_t *device[2];
    Written written[2];
    memset(written, 0, sizeof written);
    SynthReplica replica[2];
    bool good = true;
    *made = (JointProgram){.ratio = g_new0(double, menu->view->n_devices)};
    for (uint32_t h = 0; h < 2; h++) {
        const JointProblem half = synth_joint_half(shared, pair, h);
        device[h] = joint_place(menu, &half, &pair->pipeline[h]);
        const Placing p = {menu, &half, &pair->pipeline[h], NULL, device[h]};
        fill_ratios(&p, (double)half.n_microbatches / shared->n_microbatches,
                    made->ratio);
        good = good && write_pipeline(&p, &written[h], error);
        replica[h] = written[h].replica;
    }
    if (good)
        made->program = synth_pipelines(replica, 2, menu->graph, error);
    for (uint32_t h = 0; h < 2; h++) {
        written_clear(&written[h]);
        g_free(device[h]);
    }
    if (!made->program)
        synth_joint_program_clear(made);
    return made->program != NULL;
}
