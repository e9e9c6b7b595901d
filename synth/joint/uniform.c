/* The strategy of a pipeline whose stages have equal degrees, shares and states: plans with one can
 * be written for frameworks. */
#include <string.h>

#include "data/formats/export/export.h"
#include "synth/joint/menu.h"
#include "synth/pipeline/strategy.h"

/* Whether a stage's devices do as those of the first one, each with its part of every
 * microbatch. */
static bool uniform_alike(const JointEntry *a, const JointEntry *b)
{
    return !a->inside && !b->inside && a->dp == b->dp && a->tp == b->tp &&
           (a->divides == b->divides || a->dp == 1) &&
           memcmp(a->samples, b->samples, a->dp * sizeof *a->samples) == 0;
}

/* Whether every stage is as far ahead as the schedule says: none is held back by its memory. The
 * first backward step comes after the last forward one whether that is ahead of it or beside it. */
static bool uniform_deep(const JointProblem *p, const JointPipeline *pipeline)
{
    const uint32_t n = pipeline->n_stages, chunks = MAX(pipeline->chunks, 1),
                   most = chunks * p->n_microbatches - 1;
    g_autofree SynthDepth *depth = joint_depths(p, pipeline);
    bool deep = true;
    for (uint32_t g = 0; g < n; g++) {
        const SynthDepth want =
            synth_schedule_depth(pipeline->schedule, n * chunks, n, p->n_microbatches, g);
        deep &= MIN(depth[g].ahead, most) == MIN(want.ahead, most) &&
                depth[g].lag == want.lag;
    }
    return deep;
}

/* The numbers of layers of each run, with embedding and head. */
static const char *uniform_layers(const JointProblem *p, const JointPipeline *pipeline)
{
    const uint32_t n = pipeline->n_stages * MAX(pipeline->chunks, 1);
    g_autofree uint32_t *first = joint_runs(p, pipeline);
    g_autofree uint32_t *layers = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        layers[i] = first[i + 1] - first[i];
    return synth_strategy_list(layers, n);
}

static const char *uniform_recompute(const JointProblem *p, const JointPipeline *pipeline)
{
    const uint32_t n = pipeline->n_stages;
    g_autoptr(GString) text = g_string_new(NULL);
    bool any = false;
    for (uint32_t i = 0; i < n * MAX(pipeline->chunks, 1); i++) {
        const Recompute mode = joint_entry_of(p, &pipeline->stage[i % n])->recompute;
        any |= mode != RECOMPUTE_NONE;
        g_autofree char *words = recompute_words(mode);
        g_string_append_printf(text, "%s%s", i ? " " : "", words);
    }
    return any ? g_intern_string(text->str) : NULL;
}

bool joint_strategy(const JointMenu *menu, const JointProblem *p,
                    const JointPipeline *pipeline, Strategy *strategy)
{
    const JointEntry *e = joint_entry_of(p, &pipeline->stage[0]);
    const uint32_t n = pipeline->n_stages, chunks = MAX(pipeline->chunks, 1);
    bool alike = uniform_deep(p, pipeline), even = true;
    for (uint32_t s = 0; s < n && alike; s++)
        alike = uniform_alike(e, joint_entry_of(p, &pipeline->stage[s]));
    for (uint32_t r = 0; r < e->dp; r++)
        even &= e->samples[r] == e->samples[0];
    strategy_init(strategy);
    if (!alike || n * e->dp * e->tp != menu->view->n_devices)
        return false;
    g_autofree uint32_t *device = joint_place(menu, p, pipeline);
    strategy->pp = n;
    strategy->dp = e->dp;
    strategy->tp = e->tp;
    strategy->microbatches = p->n_microbatches;
    strategy->schedule = pipeline->schedule;
    strategy->virtual_stages = pipeline->schedule == SCHEDULE_INTERLEAVED ? chunks : 0;
    strategy->layers = n * chunks > 1 ? uniform_layers(p, pipeline) : NULL;
    strategy->ranks =
        strategy_ranks_text(device, menu->view->n_devices, n, e->dp * e->tp);
    strategy->shares = even ? NULL : synth_strategy_list(e->samples, e->dp);
    strategy->recompute = uniform_recompute(p, pipeline);
    strategy->zero = e->divides && e->dp > 1;
    return true;
}

/* --- for a framework --- */

static bool uniform_is_run(const JointMenu *menu, const Strategy *strategy,
                           const char *target, GError **error)
{
    g_auto(StrategyLayout) layout = {0};
    return strategy_lay_out(strategy, menu->graph, menu->view->n_devices, &layout,
                            NULL) &&
           export_check(target, &layout, menu->graph, menu->view, error);
}

bool joint_is_for(const JointMenu *menu, const JointProblem *p,
                  const JointPipeline *pipeline, const char *target)
{
    Strategy strategy;
    return joint_strategy(menu, p, pipeline, &strategy) &&
           uniform_is_run(menu, &strategy, target, NULL);
}

/* The strategy of stages that are kept, with layers as they come. */
static Strategy uniform_probe(const JointKeep *keep)
{
    g_autofree char *words = recompute_words(keep->recompute);
    Strategy probe;
    strategy_init(&probe);
    probe.pp = keep->pp;
    probe.dp = keep->dp;
    probe.tp = keep->tp;
    probe.zero = keep->divides;
    probe.recompute = keep->recompute ? g_intern_string(words) : NULL;
    return probe;
}

bool joint_way_is_for(const JointMenu *menu, const JointProblem *p, const JointWay *way,
                      const char *target)
{
    Strategy probe = uniform_probe(p->keep);
    probe.microbatches = p->n_microbatches;
    probe.schedule = way->schedule;
    probe.virtual_stages =
        way->schedule == SCHEDULE_INTERLEAVED ? MAX(way->chunks, 1) : 0;
    return uniform_is_run(menu, &probe, target, NULL);
}

/* Adds the stages unless the target refuses a strategy of them; the first refusal is kept. */
static void uniform_add(const JointMenu *menu, JointKeep keep, const char *target,
                        GArray *keeps, GError **first)
{
    g_autofree char *uneven = g_strnfill(2 * keep.dp - 1, ' ');
    for (uint32_t r = 0; r < keep.dp; r++)
        uneven[2 * r] = r ? '1' : '2';
    Strategy probe = uniform_probe(&keep);
    if (!uniform_is_run(menu, &probe, target, *first ? NULL : first))
        return;
    probe.shares = uneven;
    keep.even = keep.dp > 1 && !uniform_is_run(menu, &probe, target, NULL);
    g_array_append_val(keeps, keep);
}

GArray *joint_keeps(const JointMenu *menu, const char *target, GError **error)
{
    const uint32_t n = menu->view->n_devices;
    g_autoptr(GArray) keeps = g_array_new(FALSE, FALSE, sizeof(JointKeep));
    g_autoptr(GError) first = NULL;
    for (uint32_t d = 0; d < menu->model->n_degrees; d++)
        for (uint32_t tp = menu->model->degree[d], dp = 1; dp * tp <= n; dp++)
            for (uint32_t way = 0; n % (dp * tp) == 0 && way < 2 * JOINT_MODES; way++) {
                const Recompute mode = menu->mode[way / 2];
                const JointKeep keep = {.pp = n / dp / tp,
                                        .dp = dp,
                                        .tp = tp,
                                        .divides = way % 2,
                                        .recompute = mode};
                if ((dp > 1 || !keep.divides) && joint_may_recompute(menu, way / 2, true))
                    uniform_add(menu, keep, target, keeps, &first);
            }
    if (keeps->len > 0)
        return g_steal_pointer(&keeps);
    if (!first)
        refuse(error, "no strategy of equal stages for %s can be laid out", target);
    else
        g_propagate_error(error, g_steal_pointer(&first));
    return NULL;
}
