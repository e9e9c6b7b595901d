/* The planner manual: makes a strategy's program, without any search. */
#include "synth/answer/complete.h"
#include "synth/baselines/make.h"
#include "synth/pipeline/strategy.h"

bool baselines_make_manual(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    const Graph *graph = question->graph;
    const ClusterView *view = question->view;
    g_auto(StrategyPipelines) pipelines = {0};
    if (planner_options_of_amp(question->options))
        return refuse(
            error,
            "manual with an option of AMP's search: expected those of the strategy, tp "
            "for tmp, micro_batch for mbs, virtual_stages for chunks");
    if (!strategy_lay_out_pipelines(&question->options->strategy, graph, view->n_devices,
                                    &pipelines, error) ||
        !strategy_check_effects(&question->options->strategy, &pipelines, error))
        return false;
    const gint64 start = g_get_monotonic_time();
    Program *program =
        pipelines.n == 1
            ? synth_strategy_briefly(graph, view, &pipelines.pipeline[0], error)
            : synth_strategy_pipelines(graph, view, &pipelines, error);
    if (!program)
        return false;
    g_autofree double *ratio =
        synth_strategy_pipeline_ratios(&pipelines, view->n_devices);
    plan_set(plan, graph, view, program, ratio);
    plan->strategy = question->options->strategy;
    plan->search_time_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return true;
}
