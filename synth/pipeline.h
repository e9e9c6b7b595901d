/* Pipelines: the program of one replica becomes one of pipeline stages, replicas and microbatches.
 *
 *     inner program + stage of each op + groups + schedule  --synth_pipeline-->  program
 *
 * A stage is a part of the forward ops with all that belongs to them: their backward ops, the parameters that they are the
 * first to use, and the updates of these. Stage s runs on group s mod n_groups, so that several stages of a group are the
 * chunks of an interleaved schedule. Conversions keep the forms of the inner program: partial sums are summed where they are
 * made, other conversions are made where their result is used. What another group made is transferred to it as soon as it is
 * made. Gradients and updates come after all microbatches; gradients are all-reduced over the replicas right before the
 * first update.
 *
 * Recomputation. What a layer that is computed again makes in the forward is made once more before the first of its backward
 * ops that uses some of it, from the instances of other layers that it started from: only these live from the forward to
 * the backward. RECOMPUTE_FULL makes all of the layer's forward again, its collectives too; RECOMPUTE_SELECTIVE single ops,
 * those with an output that only backward ops read (the probabilities of attention): what the forward reads of them is kept. Ops that add to a sum over the batch run once.
 *
 * Schedules (Narayanan et al., SC 2021, doi:10.1145/3458817.3476209, Sec. 2.2). With P groups, V stages a group, M
 * microbatches, group p works off its forward steps in order, from its first backward step on alternately with its
 * backward steps. It runs before that:
 *
 *     gpipe          all M V of them (Huang et al. 2019)
 *     1f1b           P - 1 - p, and V = 1
 *     interleaved    2 (P - 1 - p) + (V - 1) P, all of them if M = P; M is a multiple of P
 */
#ifndef KILTER_SYNTH_PIPELINE_H
#define KILTER_SYNTH_PIPELINE_H

#include "data/data.h"

typedef Schedule SynthSchedule;

typedef struct {
    uint32_t stage, microbatch;
    bool backward;
} SynthStep;

/* The steps of group `group` (SynthStep), each stage forward and backward on each microbatch once.
 * Free with g_array_unref. KILTER_ERROR_INPUT if the schedule does not do these numbers; n_stages
 * is a multiple of n_groups. */
GArray *synth_schedule(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                       uint32_t n_microbatches, uint32_t group, GError **error);

typedef struct {
    uint32_t n_stages, n_microbatches;
    /* [op]; of forward ops, not falling along the edges of the graph */
    const uint16_t *stage;
    uint32_t n_groups;
    const DeviceGroup *group;
    SynthSchedule schedule;
    /* [layer], or NULL for none: what is computed again right before the backward of the layer */
    const Recompute *recompute;
    /* [layer], or NULL for none: whether what is gathered in the forward is gathered again for the
     * backward, not kept */
    const bool *sequence;
    /* what neighbouring replicas, zero_ranks at a time, divide among them: 1 optimizer states, 2 gradients,
     * too, 3 parameters, too; 0: nothing */
    uint32_t zero, zero_ranks;
    /* how many neighbouring replicas divide the experts of a layer; 0, 1: none. Where the groups have shards,
     * these divide sequences, and experts if ep is as many */
    uint32_t ep;
    bool
        all_to_all; /* attention takes some heads of whole sequences, not queries of all heads */
} SynthPipeline;

/* `inner` has passed program_check as an SPMD program. KILTER_ERROR_INPUT if the batch or the
 * stages do not fit; the result has passed program_check. */
Program *synth_pipeline(const Program *inner, const Graph *graph,
                        const SynthPipeline *pipeline, GError **error);

/* The inner program as it is, on all devices, with what `pipeline` (of one stage, one group and one
 * microbatch) computes again. KILTER_ERROR_INPUT if an op reads a sum over the batch. */
Program *synth_recompute(const Program *inner, const Graph *graph,
                         const SynthPipeline *pipeline, GError **error);

/* A program of one group for n_devices, whose batch is not cut, with its batch in microbatches and
 * layers computed again (NULL: none). Gradients are added up and communicated once, after the last
 * microbatch; parameters are gathered once, before the first. With one microbatch the program stays in
 * its order, and SPMD. KILTER_ERROR_INPUT as above. */
Program *synth_train(const Program *program, const Graph *graph, uint32_t n_devices,
                     uint32_t n_microbatches, const Recompute *recompute, GError **error);

#endif
