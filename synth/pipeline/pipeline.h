/* Pipelines: the program of one replica becomes one of pipeline stages, replicas and microbatches.
 *
 *     inner program + stage of each op + groups + schedule  --synth_pipeline-->  program
 *
 * A stage (pipeline stage) is a part of the forward ops with everything that belongs to them: their
 * backward ops, the parameters that they are the first to use, and the updates of these parameters.
 * Stage s runs on group s mod n_groups, so several stages on one group are the chunks of an
 * interleaved schedule. Conversions keep the forms of the inner program: partial sums are summed
 * where they are made, other conversions are made where their result is used. Tensors that another
 * group needs are transferred as soon as they are made. Gradients and updates come after all
 * microbatches; gradients are all-reduced over the replicas right before the first update.
 *
 * Recomputation. The forward of a recomputed layer runs once more right before the first of its
 * backward ops that uses its results, from the instances of other layers that are its inputs: only
 * these live from the forward to the backward. RECOMPUTE_FULL runs all of the layer's forward
 * again, its collectives too. RECOMPUTE_SELECTIVE runs single ops again, those with an output that
 * only backward ops read (the probabilities of attention); their other outputs are kept. Ops that
 * add to a sum over the batch run once.
 *
 * Schedules (Narayanan et al., SC 2021, doi:10.1145/3458817.3476209, Sec. 2.2). With P groups, V
 * stages per group and M microbatches, group p runs its forward steps in order; from its first
 * backward step on forward and backward steps alternate. Before that it runs this number of forward
 * steps:
 *
 *     gpipe          all M V of them (Huang et al. 2019)
 *     1f1b           P - 1 - p, and V = 1
 *     interleaved    2 (P - 1 - p) + (V - 1) R, all of them if M = P
 *     breadth-first  all of them (Lamy-Poirier, MLSys 2023)
 *     zb-h1          P - 1 - p, and V = 1
 *     zb-h2          2 (P - 1 - p), and V = 1
 *
 * Stages of a group take turns, each for a round of R microbatches: all of them under breadth-
 * first; else M is dealt to the largest number of rounds with at least P each, the first ones one
 * more than the last ones if need be.
 *
 * zb-h1 and zb-h2 (Qi et al., ICLR 2024, arXiv:2401.10241, Sec. 2) split the backward of all stages
 * but the first: a backward step computes what the stage before waits for, and a step of its own, p
 * (zb-h2: 2 p) microbatches later, the rest, which is gradients of weights. So gradients travel
 * faster, and devices have work while they would wait; a group keeps the activations of at most P
 * (2 P - 1) microbatches. The rest uses what a layer computed again for its backward; tensors that
 * sequence parallelism gathers are gathered once more for it.
 *
 * zb-v, v-half and v-min (Qi et al., NeurIPS 2024, arXiv:2405.15362) have V = 2 stages per group, p
 * and 2 P - 1 - p, which take turns and split their backwards. Under zb-v at most 2 P of the
 * groups' forwards are in flight, as many bytes as 1f1b's, and with M >= 2 P - 1 equal steps no
 * device waits between its first step and its last. v-half and v-min repeat one pattern of six
 * steps per microbatch, with slopes over the groups (Sec. 3.2) that keep P + 3 and 2 P / 3 + 3
 * forwards at most in flight. dualpipev is DeepSeek's (DualPipe, 2025): M is at least 2 P, 2 P + 1
 * forwards are in flight, and most backwards are whole. dualpipe is two pipelines that are replicas
 * of each other, in opposite directions over the same P groups, with M / 2 microbatches each: at
 * every time both do what dualpipev does on P / 2 groups, of which each has stages p and P - 1 - p.
 *
 * Pieces. In a step of the schedule `pieces` microbatches take turns (HiDup Sec. 3.2): a turn is
 * exchanges, then computations up to the next exchange of a microbatch. The step has the first
 * turns of all its pieces, then the second ones, so that one computes while others exchange.
 * Parameters are gathered, and gradients scattered, once per step.
 *
 * Where a schedule is SUCCESSIVE (data/strategy/strategy.h) strategies are priced by the time
 * between two iterations; searches of planners price one iteration by itself. */
#pragma once

#include "data/program/program.h"
#include "data/strategy/strategy.h"

typedef Schedule SynthSchedule;

typedef struct {
    uint32_t stage, microbatch;
    bool backward;
    bool weights; /* the rest of a backward that is split */
} SynthStep;

/* How far a group lets things wait. */
typedef struct {
    uint32_t ahead; /* forward steps before its first backward step */
    uint32_t lag;   /* microbatches by which the rest of a split backward comes later */
} SynthDepth;

/* Of the schedules without V whose steps follow from a depth. */
SynthDepth synth_schedule_depth(SynthSchedule schedule, uint32_t n_stages,
                                uint32_t n_groups, uint32_t n_microbatches,
                                uint32_t group);
/* The steps of all groups (SynthStep): each stage runs forward and backward once on each
 * microbatch, in an order in which a step comes after those that it waits for: round by round, the
 * next step of each group, unless it waits. n_stages must be a multiple of n_groups. depth:
 * [group]; no group is less far ahead than the next one, and the last group may be 0 steps ahead;
 * NULL: the schedule's. Free with g_array_unref. KILTER_ERROR_INPUT if the schedule does not suit
 * these numbers. */
GArray *synth_schedule_order(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                             uint32_t n_microbatches, const SynthDepth *depth,
                             GError **error);

typedef struct {
    uint32_t n_stages, n_microbatches;
    /* neighbouring microbatches that take turns in a step of the schedule, which counts so many as
     * one; 0: 1 */
    uint32_t pieces;
    /* [op]: set for forward ops; never decreases along the edges of the graph */
    const uint16_t *stage;
    uint32_t n_groups;
    const DeviceGroup *group;
    const ClusterView *cluster; /* prices what shards divide; NULL without shards */
    SynthSchedule schedule;
    const SynthDepth *depth; /* [group], or NULL: the schedule's */
    /* [layer], or NULL for none: the part that is computed again right before the layer's
     * backward */
    const Recompute *recompute;
    /* [layer], or NULL for none: whether tensors gathered in the forward are gathered again for the
     * backward instead of kept */
    const bool *sequence;
    /* ZeRO level: zero_ranks neighbouring replicas divide optimizer states (1), also gradients (2),
     * also parameters (3) among them, or nothing (0) */
    uint32_t zero, zero_ranks;
    /* [group], or NULL: degrees of each, of which zero and ep count: in a group all replicas divide
     * its states; zero and ep are the highest */
    const StageDegrees *degrees;
    /* how many neighbouring replicas divide the experts of a layer; 0, 1: none. Where the groups
     * have shards, these divide sequences, and experts, too, unless it `folds`: then replicas get
     * whole samples before they divide experts, as they have without shards */
    uint32_t ep;
    bool folds, whole_experts; /* whole_experts: positions have different experts */
    /* attention takes whole sequences of some heads instead of some queries of all heads */
    bool all_to_all;
    uint32_t a2a_ranks; /* the strategy's: of the shards that exchange heads; 0: none */
    /* a device that would cut a received tensor at once is sent only its part of it; not with
     * shards */
    bool scatters;
    bool successive;   /* the program's (data/program/program.h) */
    uint32_t left_out; /* of the microbatches, which do not run (data/program/period.h) */
} SynthPipeline;

/* `inner` has passed program_check as an SPMD program. KILTER_ERROR_INPUT if the batch or the
 * stages do not fit; the result has passed program_check. */
Program *synth_pipeline(const Program *inner, const Graph *graph,
                        const SynthPipeline *pipeline, GError **error);

/* Unlike replicas: pipelines that each have the whole model, on devices of their own (or, under
 * dualpipe, on the same ones in opposite directions, with microbatches in turns), with stages,
 * groups, schedule and recomputation of their own, and n_microbatches of the batch, one after the
 * other. When a pipeline has run its last microbatch, its gradients are all-reduced over the
 * replicas of all pipelines, tensor by tensor, in the order in which the backward makes them; then
 * each pipeline updates its own parameters. */
typedef struct {
    const Program *inner;
    SynthPipeline pipeline; /* zero at most 1 */
} SynthReplica;

/* KILTER_ERROR_INPUT as synth_pipeline, and where pipelines divide a parameter over unlike numbers
 * of devices, or in unlike ways. */
Program *synth_pipelines(SynthReplica *replica, uint32_t n, const Graph *graph,
                         GError **error);

/* The same without microbatches that the middle of a long program repeats, as far as
 * sim_evaluate_shortly wants them: program_whole puts them back. Changes left_out. */
Program *synth_pipelines_briefly(SynthReplica *replica, uint32_t n, const Graph *graph,
                                 GError **error);

/* The inner program on all devices, with the recomputation of `pipeline`, which has one stage, one
 * group and one microbatch. KILTER_ERROR_INPUT if an op reads a sum over the batch. */
Program *synth_recompute(const Program *inner, const Graph *graph,
                         const SynthPipeline *pipeline, GError **error);

/* Whether the op has an output that only backward ops read and that is at least as large as an
 * output that the forward reads: such ops are computed again by themselves. Fused attention has no
 * such output. read: [tensor], whether a forward op reads it. */
bool synth_makes_inner(const Graph *graph, const bool *read, OpId op);

/* [tensor]: whether a forward op reads it. The caller frees it. */
bool *synth_forward_reads(const Graph *graph);

/* The ops [op] of the forward that run again where all layers have a mode, and the tensors [tensor]
 * that are not kept until the backward. */
typedef struct {
    bool *op, *drop;
} SynthAgain;

SynthAgain synth_again(const Graph *graph, Recompute mode);
AUTOCLEAR(synth_again_clear, SynthAgain)

/* Cuts the batch of a program of one group on n_devices into microbatches, and computes layers
 * again (NULL: none). The program's batch must not be cut yet. Gradients are added up and
 * communicated once, after the last microbatch; parameters are gathered once, before the first.
 * With one microbatch the program keeps its order and stays SPMD. KILTER_ERROR_INPUT as above. */
Program *synth_train(const Program *program, const Graph *graph, uint32_t n_devices,
                     uint32_t n_microbatches, const Recompute *recompute, GError **error);
