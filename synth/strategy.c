/* From a strategy to its program: the program of one replica, divided over the devices that share
 * it, which synth_pipeline() cuts into pipeline stages, replicas and microbatches. */
#include "synth/strategy.h"

#include "synth/assignment.h"

/* The program that holds everything whole, on the one device of a replica. */
static Program *whole_program(const Graph *graph, const ClusterView *view, GError **error)
{
    g_autofree double *even = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        even[j] = 1.0 / view->n_devices;
    Pricer pricer;
    pricer_init(&pricer, graph, view, even, 0);
    Assignment whole;
    assignment_init(&whole, graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        Rule rule[OP_MAX_RULES];
        op_rules(graph, id, rule);
        whole.rule[id] = rule[0];
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        whole.gradient[t] = whole.rest[t] = FORM_IDENTITY;
    Program *program = synth_emit(&pricer, &whole, error);
    assignment_clear(&whole);
    pricer_clear(&pricer);
    return program;
}

static Program *inner_program(const Graph *graph, const ClusterView *view,
                              const StrategyLayout *layout, GError **error)
{
    if (layout->tp == 1)
        return whole_program(graph, view, error);
    return synth_megatron(graph, view, layout->tp, layout->sequence, error);
}

Program *synth_strategy_program(const Graph *graph, const ClusterView *view,
                                const StrategyLayout *layout, GError **error)
{
    g_autoptr(Program) inner = inner_program(graph, view, layout, error);
    if (!inner)
        return NULL;
    g_autofree uint16_t *stage = g_new0(uint16_t, graph_n_ops(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        while (graph_get_op(graph, id)->layer >= layout->first[stage[id] + 1])
            stage[id]++;
    g_autofree DeviceGroup *group = g_new(DeviceGroup, layout->pp);
    for (uint32_t p = 0; p < layout->pp; p++)
        group[p] = (DeviceGroup){layout->dp * layout->cp, layout->tp,
                                 layout->device +
                                     (size_t)p * layout->dp * layout->cp * layout->tp,
                                 layout->cp};
    const SynthPipeline pipeline = {.n_stages = layout->n_stages,
                                    .n_microbatches = layout->n_microbatches,
                                    .stage = stage,
                                    .n_groups = layout->pp,
                                    .group = group,
                                    .schedule = layout->schedule,
                                    .recompute = layout->recompute,
                                    .sequence = layout->sequence,
                                    .zero = layout->zero,
                                    .zero_ranks = layout->zero_ranks,
                                    .ep = layout->ep,
                                    .all_to_all = layout->all_to_all};
    return synth_pipeline(inner, graph, &pipeline, error);
}

double *synth_strategy_ratios(const StrategyLayout *layout)
{
    const uint32_t of_replica = layout->cp * layout->tp;
    double *ratio = g_new(double, (size_t)layout->pp * layout->dp * of_replica);
    for (uint32_t i = 0; i < layout->pp * layout->dp * of_replica; i++)
        ratio[layout->device[i]] =
            layout->share[i / of_replica % layout->dp] / of_replica / layout->pp;
    return ratio;
}
