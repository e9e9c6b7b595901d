/* From a strategy to its program: the program of one replica, divided over the devices that share
 * it, which synth_pipeline() cuts into pipeline stages, replicas and microbatches. */
#include "synth/pipeline/strategy.h"

#include "synth/spmd/assignment.h"

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

/* A pipeline of a strategy, with the arrays that it needs. */
typedef struct {
    Program *inner;
    uint16_t *stage;
    DeviceGroup *group;
    SynthPipeline pipeline;
} Made;

static void made_clear(Made *made)
{
    program_free(made->inner);
    g_free(made->stage);
    g_free(made->group);
}

static bool make(const Graph *graph, const ClusterView *view,
                 const StrategyLayout *layout, Made *made, GError **error)
{
    const uint32_t of_stage = layout->dp * layout->cp * layout->tp;
    made->inner = inner_program(graph, view, layout, error);
    if (!made->inner)
        return false;
    made->stage = g_new0(uint16_t, graph_n_ops(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        while (graph_get_op(graph, id)->layer >= layout->first[made->stage[id] + 1])
            made->stage[id]++;
    made->group = g_new(DeviceGroup, layout->pp);
    for (uint32_t p = 0; p < layout->pp; p++)
        made->group[p] = (DeviceGroup){layout->dp * layout->cp, layout->tp,
                                       layout->device + (size_t)p * of_stage, layout->cp};
    made->pipeline = (SynthPipeline){.n_stages = layout->n_stages,
                                     .n_microbatches = layout->n_microbatches,
                                     .stage = made->stage,
                                     .n_groups = layout->pp,
                                     .group = made->group,
                                     .cluster = view,
                                     .schedule = layout->schedule,
                                     .recompute = layout->recompute,
                                     .sequence = layout->sequence,
                                     .zero = layout->zero,
                                     .zero_ranks = layout->zero_ranks,
                                     .ep = layout->ep,
                                     .all_to_all = layout->all_to_all};
    return true;
}

Program *synth_strategy_pipelines(const Graph *graph, const ClusterView *view,
                                  const StrategyPipelines *pipelines, GError **error)
{
    const uint32_t n = pipelines->n;
    g_autofree Made *made = g_new0(Made, n);
    g_autofree SynthReplica *replica = g_new(SynthReplica, n);
    Program *program = NULL;
    bool good = true;
    for (uint32_t k = 0; good && k < n; k++) {
        good = make(graph, view, &pipelines->pipeline[k], &made[k], error);
        replica[k] = (SynthReplica){made[k].inner, made[k].pipeline};
    }
    if (good)
        program = synth_pipelines(replica, n, graph, error);
    for (uint32_t k = 0; k < n; k++)
        made_clear(&made[k]);
    return program;
}

Program *synth_strategy_program(const Graph *graph, const ClusterView *view,
                                const StrategyLayout *layout, GError **error)
{
    StrategyLayout one = *layout;
    const StrategyPipelines pipelines = {1, &one};
    return synth_strategy_pipelines(graph, view, &pipelines, error);
}

static uint32_t all_microbatches(const StrategyPipelines *pipelines)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < pipelines->n; k++)
        n += pipelines->pipeline[k].n_microbatches;
    return n;
}

double *synth_strategy_pipeline_ratios(const StrategyPipelines *pipelines,
                                       uint32_t n_devices)
{
    const uint32_t n_all = all_microbatches(pipelines);
    double *ratio = g_new0(double, n_devices);
    for (uint32_t k = 0; k < pipelines->n; k++) {
        const StrategyLayout *l = &pipelines->pipeline[k];
        const uint32_t of_replica = l->cp * l->tp;
        for (uint32_t i = 0; i < l->pp * l->dp * of_replica; i++)
            ratio[l->device[i]] = l->share[i / of_replica % l->dp] / of_replica / l->pp *
                                  l->n_microbatches / n_all;
    }
    return ratio;
}

double *synth_strategy_ratios(const StrategyLayout *layout)
{
    StrategyLayout one = *layout;
    const StrategyPipelines pipelines = {1, &one};
    return synth_strategy_pipeline_ratios(&pipelines, layout->pp * layout->dp *
                                                          layout->cp * layout->tp);
}
