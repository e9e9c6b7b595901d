/* The time and memory of strategies, each evaluated once. */
#include <string.h>

#include "synth/tag/search.h"

typedef struct {
    SimQuickTimes times;
    double lacks; /* negative: not known yet */
} Known;

struct TagEvaluator {
    const TagSpace *space;
    const TagWork *work;
    SimQuick *quick;
    TagObjective objective;
    TagPlacement *placement;
    GHashTable *known; /* actions as bytes -> Known */
    uint64_t *peak;    /* [device] */
};

TagEvaluator *tag_evaluator_new(const TagSpace *space, const TagWork *work,
                                SimQuick *quick, TagObjective objective)
{
    TagEvaluator *e = g_new0(TagEvaluator, 1);
    e->space = space;
    e->work = work;
    e->quick = quick;
    e->objective = objective;
    e->placement = synth_tag_placement_new(work->graph);
    e->known = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                     (GDestroyNotify)g_bytes_unref, g_free);
    e->peak = g_new0(uint64_t, space->view->n_devices);
    return e;
}

void tag_evaluator_free(TagEvaluator *e)
{
    if (!e)
        return;
    synth_tag_placement_free(e->placement);
    g_hash_table_unref(e->known);
    g_free(e->peak);
    g_free(e);
}

uint32_t tag_evaluations(const TagEvaluator *e)
{
    return g_hash_table_size(e->known);
}

static Program *program_of(const TagEvaluator *e, const uint16_t *action)
{
    synth_tag_place(e->space, e->work, action, e->placement);
    return synth_tag_program(e->space, e->work, e->placement, true);
}

static double lacking(const TagEvaluator *e, const Program *program)
{
    double lacks = 0;
    sim_quick_memory(e->quick, program, e->peak);
    for (uint32_t j = 0; j < e->space->view->n_devices; j++) {
        const uint64_t has = e->space->view->device[j].memory_bytes;
        lacks += e->peak[j] > has ? (double)(e->peak[j] - has) : 0;
    }
    return lacks;
}

static double objective_s(const TagEvaluator *e, const SimQuickTimes *times)
{
    return e->objective == TAG_BY_FLOW ? times->flow_s : times->stage_s;
}

TagScore tag_evaluate(TagEvaluator *e, const uint16_t *action, double below_s)
{
    g_autoptr(GBytes) key = g_bytes_new(action, e->work->n_groups * sizeof *action);
    g_autoptr(Program) program = NULL;
    Known *known = g_hash_table_lookup(e->known, key);
    if (!known) {
        known = g_new(Known, 1);
        program = program_of(e, action);
        *known = (Known){sim_quick_times(e->quick, program), -1};
        g_hash_table_insert(e->known, g_bytes_ref(key), known);
    }
    TagScore score = {objective_s(e, &known->times), 0};
    if (score.time_s < below_s && known->lacks < 0) {
        if (!program)
            program = program_of(e, action);
        known->lacks = lacking(e, program);
    }
    score.lacks = MAX(known->lacks, 0);
    return score;
}

SimQuickTimes tag_times(TagEvaluator *e, const uint16_t *action)
{
    g_autoptr(Program) program = program_of(e, action);
    return sim_quick_times(e->quick, program);
}
