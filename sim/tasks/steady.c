/* Long pipelines, shortly: by the few of their microbatches that are unlike each other. */
#include "data/program/blocks.h"
#include "data/program/period.h"
#include "sim/evaluate.h"

#include <math.h>

/* The report by a part of the microbatches, without what devices do when: where the time alone is
 * asked for, or the plan takes long enough, without memory, or a brief one. NULL: all of the report
 * is wanted, or all of the program. */
static SimReport *steady_brief(const Plan *plan, const Graph *graph,
                               const ClusterView *view, const SimOptions *options)
{
    SimOptions alone = *options;
    alone.time_only = options->time_only || !options->brief;
    if ((alone.time_only && !options->time_only && options->enough_s == 0) ||
        plan->program->successive || plan->strategy.offload ||
        (view->toll && !alone.time_only))
        return NULL;
    g_autoptr(ProgramBlocks) blocks = program_blocks(plan->program, graph);
    if (!blocks)
        return NULL;
    Plan part = *plan;
    part.program = blocks->part;
    alone.blocks = blocks;
    g_autoptr(SimReport) report = sim_evaluate_with(
        &part, graph, view, fidelity_name(FIDELITY_STAGE), &alone, NULL);
    if (!report || isnan(report->iteration_time_s))
        return NULL;
    const bool enough =
        options->time_only ||
        (options->enough_s > 0 && report->iteration_time_s >= options->enough_s);
    if (!enough && !options->brief)
        return NULL;
    g_clear_pointer(&report->timeline, sim_timeline_free);
    report->brief = true;
    items_each (SimStageReport, stage, report->stage, report->n_stages)
        stage->n = plan->program->n;
    if (!enough)
        sim_report_fit(report, plan->program, graph, view);
    return g_steal_pointer(&report);
}

SimReport *sim_evaluate_shortly(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const char *fidelity,
                                const SimOptions *options, GError **error)
{
    SimReport *report = g_strcmp0(fidelity, fidelity_name(FIDELITY_STAGE)) == 0
                            ? steady_brief(plan, graph, view, options)
                            : NULL;
    if (report || plan->program->left_out == 0)
        return report ? report
                      : sim_evaluate_with(plan, graph, view, fidelity, options, error);
    Plan whole = *plan;
    whole.program = program_copy(plan->program);
    program_whole(&whole.program);
    report = sim_evaluate_with(&whole, graph, view, fidelity, options, error);
    program_free(whole.program);
    return report;
}
