/* Two pipelines that are replicas of each other (synth/joint/joint.h).
 *
 * Given which machines each has, and how many of the microbatches, the two are independent: each is
 * searched on its own, with a sync that counts the exchange. Each takes longer the more
 * microbatches it has, so that the best division of these lies where the slower of the two becomes
 * the other. */
#include <math.h>

#include "data/base/free.h"
#include "synth/joint/menu.h"

enum { MOST_DIVISIONS = 256 };

/* --- the problem --- */

/* Fills in the sync of an entry whose replicas are in a ring with those of another pipeline,
 * through the port of a machine, which the tp devices of a replica share. The update stays; so
 * does, where replicas divide the states, the gathering of the parameters. */
static void share_sync(const JointMenu *menu, const JointProblem *p,
                       const JointGroup *group, const JointEntry *of, JointEntry *e)
{
    const AmpSteps *steps = menu->model->steps;
    g_autofree double *more = g_new0(double, p->n_layers);
    array_each (const AmpGradient, g, steps->gradient) {
        const AmpGradientKind *bytes =
            &g_array_index(steps->gradient_kind, AmpGradientKind, g->kind);
        const double all = bytes->whole + bytes->cut / e->tp, dp = e->dp;
        const double bandwidth =
            dp > 1 ? synth_joint_line(menu, group, e->dp, e->tp, all).bandwidth
                   : INFINITY;
        more[g_array_index(steps->step, AmpStep, g->step).layer] +=
            2 * dp / (dp + 1) * e->tp * all / p->bandwidth -
            (e->divides ? 1 : 2) * (dp - 1) / dp * all / bandwidth;
    }
    e->sync_s = g_new0(double, p->n_layers + 1);
    for (uint32_t l = 0; l < p->n_layers; l++)
        e->sync_s[l + 1] =
            e->sync_s[l] + fmax(0, of->sync_s[l + 1] - of->sync_s[l] + more[l]);
    e->start_s = p->latency_s;
}

JointProblem *synth_joint_shared(JointMenu *menu, const JointProblem *p, uint32_t tp)
{
    JointProblem *shared = g_memdup2(p, sizeof *p);
    shared->group = g_memdup2(p->group, p->n_groups * sizeof *p->group);
    items_at (const JointGroup, of, g, p->group, p->n_groups) {
        JointGroup *group = &shared->group[g];
        group->entry = g_new0(JointEntry, of->n_entries + 1);
        group->n_entries = 0;
        for (uint32_t i = 0; i < of->n_entries; i++) {
            if (of->entry[i].tp != tp || of->entry[i].inside || of->entry[i].promised)
                continue;
            JointEntry *e = &group->entry[group->n_entries++];
            *e = of->entry[i];
            share_sync(menu, p, of, &of->entry[i], e);
        }
    }
    synth_joint_rank(shared);
    return shared;
}

static CLEAR_DEFINE(shared_clear, JointGroup, group,
                    free_column(group->entry, group->n_entries, sync_s),
                    g_free(group->entry));

FREE_DEFINE(synth_joint_shared_free, JointProblem, shared,
            clear_items(shared->group, shared->n_groups, shared_clear),
            g_free(shared->group));

void synth_joint_pair_clear(JointPair *pair)
{
    for (uint32_t h = 0; h < 2; h++) {
        synth_joint_pipeline_clear(&pair->pipeline[h]);
        g_clear_pointer(&pair->units[h], g_free);
        g_clear_pointer(&pair->skip[h], g_free);
    }
}

JointProblem synth_joint_half(const JointProblem *shared, const JointPair *pair,
                              uint32_t half)
{
    g_assert(half < 2);
    JointProblem p = *shared;
    p.units = pair->units[half];
    p.skip = pair->skip[half];
    p.n_microbatches = pair->n_microbatches[half];
    return p;
}

/* --- the search --- */

typedef struct {
    const JointProblem *p;
    const JointOptions *options;
    const uint32_t *step; /* [kind]: units of a division's step */
    JointPair *best;
    double upper_s;
} Pairs;

/* The best pipeline of one half; cost INFINITY if there is none below the best pair. */
static JointPipeline solve_half(const Pairs *s, const JointPair *pair, uint32_t half)
{
    const JointProblem p = synth_joint_half(s->p, pair, half);
    JointOptions options = *s->options;
    g_auto(JointResult) result = {0};
    options.n_best = 1;
    options.upper_s = s->upper_s;
    synth_joint_solve(&p, &options, &result);
    if (result.best->len == 0)
        return (JointPipeline){.cost_s = INFINITY};
    JointPipeline *found = &g_array_index(result.best, JointPipeline, 0);
    const JointPipeline best = *found;
    found->stage = NULL;
    return best;
}

static void keep(Pairs *s, JointPair *pair)
{
    synth_joint_pair_clear(s->best);
    *s->best = *pair;
    for (uint32_t h = 0; h < 2; h++) {
        const size_t bytes = s->p->n_kinds * sizeof(uint32_t);
        s->best->units[h] = g_memdup2(pair->units[h], bytes);
        s->best->skip[h] = g_memdup2(pair->skip[h], bytes);
        pair->pipeline[h].stage = NULL;
    }
    s->upper_s = pair->cost_s;
}

/* Finds the best numbers of microbatches of a division of the units, by halves of what is left. */
static void divide_microbatches(Pairs *s, JointPair *pair)
{
    const uint32_t m = s->p->n_microbatches;
    uint32_t low = 1, high = m - 1, at = m / 2;
    while (low <= high) {
        pair->n_microbatches[0] = at;
        pair->n_microbatches[1] = m - at;
        double cost_s[2];
        for (uint32_t h = 0; h < 2; h++) {
            pair->pipeline[h] = solve_half(s, pair, h);
            cost_s[h] = pair->pipeline[h].cost_s;
        }
        pair->cost_s = fmax(cost_s[0], cost_s[1]);
        if (pair->cost_s < s->upper_s)
            keep(s, pair);
        clear_items(pair->pipeline, 2, synth_joint_pipeline_clear);
        if (!isfinite(fmin(cost_s[0], cost_s[1])))
            return; /* one has too many, whichever gets more */
        if (cost_s[0] < cost_s[1])
            low = at + 1;
        else
            high = at - 1;
        at = low + (high - low) / 2;
    }
}

/* The number of divisions of a kind's machines. */
static uint32_t divisions_of(const JointProblem *p, const uint32_t *step, uint32_t kind)
{
    KILTER_ASSERT(step[kind] > 0);
    return p->units[kind] / step[kind] + 1;
}

/* Where there are too many divisions, the machines of each kind go together. */
static void coarsen(const JointProblem *p, const uint32_t *step, uint32_t *coarse)
{
    double n = 1;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        coarse[k] = step[k];
        n *= divisions_of(p, step, k);
    }
    for (uint32_t k = 0; k < p->n_kinds && n > MOST_DIVISIONS; k++)
        coarse[k] = MAX(p->units[k], 1);
}

uint32_t *synth_joint_machine_units(const JointMenu *menu)
{
    uint32_t *step = g_new(uint32_t, menu->kind->len);
    array_at (const JointKind, kind, k, menu->kind) {
        step[k] = kind->gpus / kind->unit;
        if (step[k] == 0 || menu->in_order) {
            g_free(step);
            return NULL;
        }
    }
    return step;
}

bool synth_joint_solve_pair(const JointProblem *p, const uint32_t *step,
                            const JointOptions *options, JointPair *best)
{
    const uint32_t n_kinds = p->n_kinds;
    g_autofree uint32_t *coarse = g_new(uint32_t, n_kinds),
                        *units = g_new0(uint32_t, 2 * (size_t)n_kinds),
                        *skip = g_new0(uint32_t, 2 * (size_t)n_kinds);
    JointPair pair = {.units = {units, units + n_kinds}, .skip = {skip, skip + n_kinds}};
    Pairs s = {p, options, coarse, best, options->upper_s};
    uint32_t n = 1;
    *best = (JointPair){.cost_s = INFINITY};
    coarsen(p, step, coarse);
    for (uint32_t k = 0; k < n_kinds; k++)
        n *= divisions_of(p, coarse, k);
    if (p->n_microbatches < 2 || n > MOST_DIVISIONS * MOST_DIVISIONS)
        return false;
    /* division n - 1 - c is division c with the halves exchanged */
    for (uint32_t c = 1; c <= (n - 1) / 2; c++) {
        uint32_t rest = c;
        if (options->deadline_us > 0 && g_get_monotonic_time() >= options->deadline_us)
            break;
        for (uint32_t k = 0; k < n_kinds; k++) {
            const uint32_t n_of = divisions_of(p, coarse, k), first = rest % n_of;
            rest /= n_of;
            units[k] = first * coarse[k];
            units[n_kinds + k] = p->units[k] - units[k];
            skip[n_kinds + k] = units[k] / step[k];
        }
        divide_microbatches(&s, &pair);
    }
    return isfinite(best->cost_s);
}
