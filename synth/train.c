/* The techniques that any program of one group can be given: a pipeline of one stage. */
#include "synth/pipeline.h"

/* The program without the group that it was given, where that is all devices as one replica on the
 * whole batch. */
static void drop_group(Program *program)
{
    for (uint32_t i = 0; i < program->n; i++)
        if (program->instr[i].microbatch == PROGRAM_WHOLE)
            program->instr[i].microbatch = 0;
    program_groups_free(program->group, program->n_groups);
    program->group = NULL;
    program->n_groups = 0;
}

Program *synth_train(const Program *program, const Graph *graph, uint32_t n_devices,
                     uint32_t n_microbatches, const Recompute *recompute, GError **error)
{
    g_autofree uint16_t *stage = g_new0(uint16_t, graph_n_ops(graph));
    g_autofree uint32_t *device = g_new(uint32_t, n_devices);
    for (uint32_t j = 0; j < n_devices; j++)
        device[j] = j;
    const DeviceGroup all = {1, n_devices, device, 1};
    const SynthPipeline pipeline = {.n_stages = 1,
                                    .n_microbatches = n_microbatches,
                                    .stage = stage,
                                    .n_groups = 1,
                                    .group = &all,
                                    .schedule = SCHEDULE_1F1B,
                                    .recompute = recompute};
    Program *trained = synth_pipeline(program, graph, &pipeline, error);
    if (trained && n_microbatches == 1)
        drop_group(trained);
    return trained;
}
