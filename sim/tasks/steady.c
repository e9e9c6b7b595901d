/* Long pipelines, shortly: by the few of their microbatches that are unlike each other. */
#include "data/program/blocks.h"
#include "data/program/period.h"
#include "sim/evaluate.h"

#include <math.h>

ProgramBlocks *sim_shorten(const Plan *plan, const Graph *graph, Plan *part,
                           SimOptions *options)
{
    g_autoptr(ProgramBlocks) blocks = plan->strategy.offload || plan->strategy.pieces > 1
                                          ? NULL
                                          : program_blocks(plan->program, graph);
    if (blocks) {
        *part = *plan;
        part->program = blocks->part;
        options->blocks = blocks;
    }
    return g_steal_pointer(&blocks);
}

/* The report by a part of the microbatches; NULL: these do not tell. */
static SimReport *steady_report(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const SimOptions *options)
{
    Plan part;
    SimOptions alone = *options;
    if (view->toll && !options->time_only)
        return NULL;
    g_autoptr(ProgramBlocks) blocks = sim_shorten(plan, graph, &part, &alone);
    g_autoptr(SimReport) report =
        blocks ? sim_evaluate_part(&part, graph, view, fidelity_name(FIDELITY_STAGE),
                                   &alone, NULL)
               : NULL;
    if (!report || isnan(report->iteration_time_s))
        return NULL;
    g_clear_pointer(&report->timeline, sim_timeline_free);
    const ProgramBlock *end = &blocks->block[blocks->n - 1];
    items_each (SimStageReport, stage, report->stage, report->n_stages)
        stage->n = end->first + blocks->first[end->of + 1] - blocks->first[end->of];
    return g_steal_pointer(&report);
}

SimReport *sim_evaluate_shortly(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const char *fidelity,
                                const SimOptions *options, GError **error)
{
    SimReport *report = g_strcmp0(fidelity, fidelity_name(FIDELITY_STAGE)) == 0
                            ? steady_report(plan, graph, view, options)
                            : NULL;
    return report ? report
                  : sim_evaluate_with(plan, graph, view, fidelity, options, error);
}
