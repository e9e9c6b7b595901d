/* From a strategy to its program: what one replica runs, by Megatron's tensor parallelism over its
 * devices, is cut into stages and micro-batches by synth_pipeline(). */
#include "synth/assignment.h"

/* Everything whole, on the one device of a replica. */
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

static Program *inner_program(const Graph *graph, const ClusterView *view, uint32_t tmp,
                              GError **error)
{
    if (tmp == 1)
        return whole_program(graph, view, error);
    g_autofree double *even = g_new(double, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        even[j] = 1.0 / view->n_devices;
    SynthResult result;
    return synth_baseline(graph, view, even, BASELINE_MEGATRON, &result, error)
               ? result.program
               : NULL;
}

Program *synth_amp_program(const Graph *graph, const ClusterView *view,
                           const AmpOptions *options, const AmpStrategy *strategy,
                           GError **error)
{
    const uint32_t n_stages = strategy->pp * strategy->chunks;
    g_autoptr(Program) inner = inner_program(graph, view, strategy->tmp, error);
    if (!inner)
        return NULL;
    g_autofree uint16_t *stage = g_new0(uint16_t, graph_n_ops(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        while (graph_get_op(graph, id)->layer >= strategy->first[stage[id] + 1])
            stage[id]++;
    g_autofree DeviceGroup *group = g_new(DeviceGroup, strategy->pp);
    for (uint32_t p = 0; p < strategy->pp; p++)
        group[p] =
            (DeviceGroup){strategy->dp, strategy->tmp,
                          strategy->device + (size_t)p * strategy->dp * strategy->tmp};
    const Tensor *input = graph_tensor(graph, graph_get_op(graph, 0)->in[0]);
    const SynthPipeline pipeline = {
        .n_stages = n_stages,
        .n_microbatches = input->dim[0] / strategy->dp / strategy->mbs,
        .stage = stage,
        .n_groups = strategy->pp,
        .group = group,
        .schedule = options->schedule,
        .recompute = options->recompute,
    };
    return synth_pipeline(inner, graph, &pipeline, error);
}
