/* From a strategy to its program: the program of one replica, divided over the devices that share
 * it, which synth_pipeline() cuts into pipeline stages, replicas and microbatches. */
#include "synth/pipeline/strategy.h"
#include "data/base/free.h"
#include "synth/pipeline/build.h"

#include "synth/spmd/baseline_parts.h"

/* Everything whole, on the one device of a replica. */
static bool assign_whole(const Graph *graph, const void *how, Assignment *whole)
{
    g_assert(!how);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        Rule rule[OP_MAX_RULES];
        op_rules(graph, id, rule);
        whole->rule[id] = rule[0];
    }
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        whole->gradient[t] = whole->rest[t] = FORM_IDENTITY;
    return true;
}

/* The fewest experts of a layer that has any; 0: none has. */
static uint32_t fewest_experts(const Graph *graph)
{
    uint32_t fewest = 0;
    ops_each (op, id, graph) {
        OpSpace space;
        if (op->pass != PASS_FORWARD)
            continue;
        graph_op_space(graph, id, &space);
        for (uint32_t i = 0; i < op->n_in; i++)
            if (pipeline_reads_experts(graph, op, &space, i)) {
                const uint32_t n = graph_tensor(graph, op->in[i])->dim[0];
                fewest = fewest ? MIN(fewest, n) : n;
            }
    }
    return fewest;
}

/* Layers are divided as their stages are. */
static Program *unlike_program(const Graph *graph, const ClusterView *view,
                               const StrategyLayout *layout, GError **error)
{
    const uint32_t n_layers = graph_n_layers(graph);
    g_autofree uint32_t *ways = g_new(uint32_t, n_layers + 1);
    for (uint32_t l = 0, stage = 0; l < n_layers; l++) {
        while (l >= layout->first[stage + 1])
            stage++;
        ways[l] =
            layout_degrees(layout, schedule_group(layout->schedule, stage, layout->pp))
                .tp;
    }
    return synth_megatron_ways(graph, view, ways, error);
}

static Program *inner_program(const Graph *graph, const ClusterView *view,
                              const StrategyLayout *layout, GError **error)
{
    for (uint32_t p = 0; layout->stage && p < layout->pp; p++)
        if (layout->stage[p].tp != layout->tp)
            return unlike_program(graph, view, layout, error);
    if (layout->tp == 1)
        return baseline_program(graph, view, assign_whole, NULL, error);
    const uint32_t ep = layout->tp * layout->ep,
                   experts = layout->experts ? fewest_experts(graph) : UINT32_MAX;
    if (ep > experts)
        return refused(
            error,
            "ep=%u with etp=1: expected a model with at least as many experts; a "
            "layer has %u",
            ep, experts);
    return synth_megatron(graph, view, layout->tp, layout->sequence, layout->experts,
                          error);
}

/* A pipeline of a strategy, with the arrays that it needs. */
typedef struct {
    Program *inner;
    uint16_t *stage;
    DeviceGroup *group;
    SynthPipeline pipeline;
} Made;

static CLEAR_DEFINE(made_clear, Made, made, program_free(made->inner),
                    free_each(made->stage, made->group));

static bool make(const Graph *graph, const ClusterView *view,
                 const StrategyLayout *layout, Made *made, GError **error)
{
    uint32_t *device = layout->device;
    made->inner = inner_program(graph, view, layout, error);
    if (!made->inner)
        return false;
    made->stage = g_new0(uint16_t, graph_n_ops(graph));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        while (graph_get_op(graph, id)->layer >= layout->first[made->stage[id] + 1])
            made->stage[id]++;
    made->group = g_new(DeviceGroup, layout->pp);
    for (uint32_t p = 0; p < layout->pp; p++) {
        const StageDegrees of = layout_degrees(layout, p);
        made->group[p] = (DeviceGroup){of.dp * of.cp, of.tp, device, of.cp, 0};
        device += layout_devices(layout, p);
    }
    made->pipeline = (SynthPipeline){
        .n_stages = layout->n_stages,
        .n_microbatches = layout->n_microbatches * MAX(layout->pieces, 1),
        .pieces = layout->pieces,
        .stage = made->stage,
        .n_groups = layout->pp,
        .group = made->group,
        .cluster = view,
        .schedule = layout->schedule,
        .successive = schedule_is_successive(layout->schedule, layout->pp),
        .recompute = layout->recompute,
        .sequence = layout->sequence,
        .zero = layout->zero,
        .zero_ranks = layout->zero_ranks,
        .degrees = layout->stage,
        .ep = layout->ep,
        .whole_experts = layout->experts,
        .folds = layout->ep > 1 && (layout->stage || layout->ep != layout->cp),
        .all_to_all = layout->cp_comm == CP_COMM_A2A,
        .a2a_ranks = layout->a2a_ranks};
    return true;
}

/* Makes one program of pipelines. */
typedef Program *Join(SynthReplica *replica, uint32_t n, const Graph *graph,
                      GError **error);

static Program *join_pipelines(const Graph *graph, const ClusterView *view,
                               const StrategyPipelines *pipelines, Join *join,
                               GError **error)
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
        program = join(replica, n, graph, error);
    clear_items(made, n, made_clear);
    return program;
}

Program *synth_strategy_pipelines(const Graph *graph, const ClusterView *view,
                                  const StrategyPipelines *pipelines, GError **error)
{
    return join_pipelines(graph, view, pipelines, synth_pipelines, error);
}

Program *synth_strategy_briefly(const Graph *graph, const ClusterView *view,
                                const StrategyPipelines *pipelines, GError **error)
{
    return join_pipelines(graph, view, pipelines, synth_pipelines_briefly, error);
}

double *synth_strategy_pipeline_ratios(const StrategyPipelines *pipelines,
                                       uint32_t n_devices)
{
    uint32_t n_all = 0;
    double *ratio = g_new0(double, n_devices);
    items_each (const StrategyLayout, l, pipelines->pipeline, pipelines->n)
        n_all += l->n_microbatches;
    items_each (const StrategyLayout, l, pipelines->pipeline, pipelines->n) {
        const uint32_t *device = l->device;
        for (uint32_t p = 0; p < l->pp; p++) {
            const StageDegrees of = layout_degrees(l, p);
            const uint32_t of_replica = of.cp * of.tp;
            for (uint32_t i = 0; i < of.dp * of_replica; i++, device++)
                ratio[*device] += (l->stage ? 1.0 / of.dp : l->share[i / of_replica]) /
                                  of_replica / l->pp * l->n_microbatches / n_all;
        }
    }
    return ratio;
}

/* --- words --- */

const char *synth_strategy_list(const uint32_t *number, uint32_t n)
{
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%u", i ? " " : "", number[i]);
    return n ? g_intern_string(text->str) : NULL;
}
