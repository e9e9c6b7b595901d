/* The planner manual: makes a strategy's program, without any search. */
#include "synth/answer/complete.h"
#include "synth/baselines/make.h"
#include "synth/pipeline/strategy.h"

/* Says how long a program may take: all of it is made; evaluated, with all that its devices do, is
 * a part, where a schedule repeats its middle. By op and microbatch, as measured. */
static void manual_say(const StrategyPipelines *pipelines, const Graph *graph)
{
    enum { ROUNDS = 32, MORE = 3 }; /* most rounds until the middle is found to repeat */
    const double made_s = 0.14e-6, made_bytes = 51, each_s = 1.7e-6, each_bytes = 210;
    double all = 0, part = 0;
    items_each (const StrategyLayout, l, pipelines->pipeline, pipelines->n) {
        const bool ahead = l->schedule == SCHEDULE_GPIPE ||
                           l->schedule == SCHEDULE_BREADTH_FIRST || pipelines->n > 1;
        const uint32_t some = ahead ? UINT32_MAX : ROUNDS * (l->n_stages + MORE);
        all += (double)l->n_microbatches * graph_n_ops(graph);
        part += (double)MIN(l->n_microbatches, some) * graph_n_ops(graph);
    }
    g_autofree char *what = g_strdup_printf("a program of about %.2g ops", all);
    planner_say(what, made_s * all + each_s * part, made_bytes * all + each_bytes * part);
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
    Program *program = synth_strategy_briefly(graph, view, &pipelines, error);
    if (!program)
        return false;
    g_autofree double *ratio =
        synth_strategy_pipeline_ratios(&pipelines, view->n_devices);
    plan_set(plan, graph, view, program, ratio);
    plan->strategy = question->options->strategy;
    plan->search_time_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return true;
}
