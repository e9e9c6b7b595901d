/* Techniques that apply to any program of one group, as a pipeline of one stage. */
#include "synth/pipeline/pipeline.h"

Program *synth_train(const Program *program, const Graph *graph, uint32_t n_devices,
                     uint32_t n_microbatches, const Recompute *recompute, GError **error)
{
    g_autofree uint16_t *stage = g_new0(uint16_t, graph_n_ops(graph));
    g_autofree uint32_t *device = g_new(uint32_t, n_devices);
    for (uint32_t j = 0; j < n_devices; j++)
        device[j] = j;
    const DeviceGroup all = {1, n_devices, device, 1, 0};
    const SynthPipeline pipeline = {.n_stages = 1,
                                    .n_microbatches = n_microbatches,
                                    .stage = stage,
                                    .n_groups = 1,
                                    .group = &all,
                                    .schedule = SCHEDULE_1F1B,
                                    .recompute = recompute};
    return n_microbatches == 1 ? synth_recompute(program, graph, &pipeline, error)
                               : synth_pipeline(program, graph, &pipeline, error);
}
