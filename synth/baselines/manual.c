/* The planner manual: makes a strategy's program, without any search. */
#include "synth/answer/complete.h"
#include "synth/baselines/make.h"
#include "synth/pipeline/strategy.h"

/* Says how long a program may take that is evaluated with all that its devices do. */
static void manual_say(const StrategyPipelines *pipelines, const Graph *graph)
{
    const double each_s = 1.7e-6, each_bytes = 210; /* op and microbatch, as measured */
    double all = 0;
    for (uint32_t p = 0; p < pipelines->n; p++)
        all += (double)pipelines->pipeline[p].n_microbatches * graph_n_ops(graph);
    g_autofree char *what = g_strdup_printf("a program of about %.2g ops", all);
    planner_say(what, each_s * all, each_bytes * all);
}

bool baselines_make_manual(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    const Graph *graph = question->graph;
    const ClusterView *view = question->view;
    g_auto(StrategyPipelines) pipelines = {0};
    if (!strategy_lay_out_pipelines(&question->options->strategy, graph, view->n_devices,
                                    &pipelines, error) ||
        !strategy_check_effects(&question->options->strategy, &pipelines, error))
        return false;
    if (!answer->unbounded) /* no part of a search */
        manual_say(&pipelines, graph);
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
