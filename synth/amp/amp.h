/* AMP's search for three-dimensional parallelism (Li et al., NeurIPS'22).
 *
 * A strategy (Sec. 3.3): pp pipeline stages of consecutive layers, dp replicas of the pipeline, tmp
 * devices that share each layer's tensors, the device of each of the pp x dp x tmp ranks, the
 * samples of a micro-batch (mbs), and where the layers are cut. Each replica gets `gas`
 * micro-batches of the global batch.
 *
 *     synth_amp_model()    layers of a graph: time, memory and messages by degree of tensor
 *                          parallelism
 *     synth_amp_cluster()  devices; synth_amp_connect(): bandwidths between them
 *     synth_amp_cost()     the cost of a strategy, Eq. 3 to 5
 *     synth_amp_assign()   the best cuts of given stages, exactly
 *     synth_amp_search()   all degrees and micro-batch sizes; baselines and annealing beside it
 *     synth_amp_program()  a strategy's program: stages are device groups, dp their replicas
 *                          (synth/pipeline/pipeline.h)
 *
 * In this folder a stage is a pipeline stage. With V chunks a device has the stages i, i + pp, ...
 * of V pp; t_i is the sum over them, and filling the pipeline takes 1/V of the time.
 *
 * Cost. t_i: seconds of a micro-batch in stage i, forward and backward; e_i: seconds of its message
 * to the next stage; s_i: seconds of the all-reduce of its gradients among replicas.
 *
 *     T = (gas - 1) max_i t_i + sum_i t_i + sum_i e_i + max_i s_i                          (4), (5)
 *     all-reduce of M bytes among n: 2 (n-1)/n M / w, w the least bandwidth between two     (3)
 *
 * Two readings of it:
 *
 *     faithful   as in the paper: a layer takes its average over the cluster's devices, whatever
 *                device runs it, in proportion to the samples; a message has its link to itself and
 *                goes one way; latencies are 0; the assignment does not see s_i
 *     default    close to the fidelity `flow`: the schedule is walked step by step, with the
 *                launches, ops and messages of each replica's layers on its own devices, transfers
 *                beside computation, and gradients that are all-reduced while the last backward
 *                goes on (synth/amp/walk.c). A message takes the time that the network needs for it
 *                alone (sim_alone_new). The layers are assigned by T above, with the slowest
 *                replica's t_i, e_i both ways and s_i; a link that is busier than every stage takes
 *                the place of max t.
 *
 * The default leaves out that transfers, all-reduces and messages of tensor parallelism slow one
 * another down where they meet on a link (all-reduces of several stages excepted). So times are
 * hardly ever too long, but too short where links are shared (tests/property/test_amp_cost.c). */
#pragma once

#include "data/formats/measured/layer_profile.h"
#include "sim/sim.h"
#include "synth/pipeline/pipeline.h"

/* --- layers and devices --- */

/* Bytes that a forward op keeps for the backward, per sample: whole + cut / degree per device. */
typedef struct {
    OpId by;
    TensorId tensor;
    bool beside; /* beside its tensors */
    uint32_t layer;
    double whole, cut;
} AmpKept;

/* Arrays are [.. layer]; a degree of tensor parallelism is its index in `degree`. Bytes are per
 * device. */
typedef struct {
    uint32_t n_layers, n_types, n_degrees, n_sizes, global_batch;
    uint32_t *degree;   /* increasing */
    double *size;       /* micro-batch sizes with times, increasing */
    double *time_s;     /* [type][degree][size]: forward and backward of a micro-batch */
    double *held;       /* [degree]: parameters, gradients and optimizer states, */
    double *states;     /* [degree]: the last of these alone */
    double *gradient;   /* [degree]: bytes that replicas all-reduce */
    double *activation; /* [degree]: bytes kept for the backward, per sample, */
    GArray *kept;       /* AmpKept: its parts */
    /* [degree]: bytes per sample that the steps read that wait (AmpStep.waits) */
    double *late;
    double *output; /* [degree]: bytes sent to the next layer, per sample */
    /* [degree]: bytes sent to the devices that share the layer, per sample; 0 if the times include
     * them */
    double *exchange;
    double *parameters; /* elements of the whole layer */
    bool measured;      /* times are a profile's */
    const Graph *graph; /* borrowed; NULL: nothing runs again */
    GHashTable *again;  /* Recompute -> AmpAgain found so far (synth/amp/again.c) */
    /* the steps of each layer (synth/amp/steps.h); NULL: the model serves the faithful reading
     * only */
    struct AmpSteps *steps;
} AmpModel;

AmpModel *synth_amp_model_new(uint32_t n_layers, uint32_t n_types, uint32_t n_degrees,
                              uint32_t n_sizes);
AUTOPTR(synth_amp_model_free, AmpModel)

/* [layer] of time_s. */
double *synth_amp_times(const AmpModel *model, uint32_t type, uint32_t degree,
                        uint32_t size);

typedef struct {
    uint32_t n_devices, n_machines;
    uint32_t *type;    /* [device]: of equal type, speed and host, as in AmpModel */
    uint32_t *machine; /* [device] */
    double *memory;    /* [device]: bytes */
    /* [device]: bytes/s to its host, and its part of those of the host's memory; 0: not known */
    double *host_link, *host_memory;
    double host_bytes;  /* of all machines */
    double *inner;      /* [device]: bytes/s inside its machine */
    double *bandwidth;  /* [machine * n_machines + machine]; NULL: not connected */
    SimAlone *alone;    /* the cluster's links */
    uint32_t most_gpus; /* of a machine */
    /* a latency and a bandwidth that no all-reduce or transfer goes below and above by the fidelity
     * `stage`: between machines, and anywhere; 0 and INFINITY: not known */
    LinkCost fastest_between, fastest;
} AmpCluster;

/* The devices of a view, which must be single GPUs (KILTER_ERROR_INPUT). */
AmpCluster *synth_amp_cluster(const ClusterView *view, GError **error);
AUTOPTR(synth_amp_cluster_free, AmpCluster)

/* Adds bandwidths for the faithful cost: the narrowest link's on a route, or an all-reduce's. */
bool synth_amp_connect(AmpCluster *amp, const ClusterView *view, GError **error);

/* The view's kinds of devices in the order of their types: the types of model and cluster. Free
 * with device_kinds_clear. */
DeviceKinds amp_kinds(const ClusterView *view);

/* Layers are those of the graph. Tensor parallelism is Megatron's (BASELINE_MEGATRON), over every
 * number of devices that divides the cluster. Times are FLOPs over the devices' rates and the
 * all-reduces of tensor parallelism over the link in a machine; with a profile
 * (data/formats/measured/layer_profile.h) the profile's times, for its degrees and micro-batch
 * sizes, where the forward takes a third of a layer's time. KILTER_ERROR_INPUT if the profile lacks
 * the model or a device type of the cluster. */
AmpModel *synth_amp_model(const Graph *graph, const ClusterView *view,
                          const LayerProfile *profile, GError **error);
/* The same, where tensors that tensor parallelism leaves whole are cut along the sequence. */
AmpModel *synth_amp_model_along_sequence(const Graph *graph, const ClusterView *view,
                                         GError **error);

/* A bound on the seconds, by the fidelities `stage` and `flow`, of strategies of any stages and
 * replicas with any tensor parallelism inside machines, without context and expert parallelism. 0:
 * not known (synth/amp/inside.c). */
double synth_amp_inside_bound_s(const Graph *graph, const ClusterView *view);

/* --- strategies --- */

typedef struct {
    uint32_t pp, dp, tmp, mbs;
    uint32_t chunks; /* stages per device: 1 except in interleaved schedules */
    /* [pp * chunks + 1]: first layer of each stage; the last element is n_layers */
    uint32_t *first;
    uint32_t *device; /* [(stage * dp + replica) * tmp + position] */
} AmpStrategy;

/* The terms of T, and T itself. In the default reading the terms are those that assign the layers,
 * and total_s is the end of the walk. */
typedef struct {
    double bubble_s; /* (gas - 1) max t */
    double stages_s, transfers_s, sync_s;
    double total_s;
    bool fits; /* every stage fits the memory of its devices, and all that of hosts */
} AmpCost;

typedef struct {
    bool faithful;
    /* decides how many micro-batches a stage keeps until their backward */
    SynthSchedule schedule;
    /* stages per device in an interleaved schedule; 0: 1 */
    uint32_t chunks;
    /* what programs compute again, as in a strategy: a word for all layers, for each stage, or with
     * layers */
    const char *recompute;
    /* states that replicas divide, as in a strategy, and among how many of them; 0: all */
    uint32_t zero, zero_ranks;
    Strategy hosts; /* of which `offload` says what lies on hosts */
    uint64_t seed;  /* seed of annealing and of random strategies */
    uint32_t draws; /* number of random strategies that fit; 0: one */
    /* simulated annealing: strategies that are tried; 0: one for each choice */
    uint32_t steps;
    bool domino; /* random strategies are domino tilings with equal numbers of layers */
    /* the degrees and micro-batch size that a strategy must have, and the largest tmp; 0: any */
    uint32_t pp, dp, tmp, mbs, most_tmp;
    /* plans that take this long by the fidelity `stage` are of no use: choices of degrees that must
     * are left out, also of annealing; 0: none is. Not for the faithful reading, nor for measured
     * times */
    double upper_s;
    uint64_t *work; /* NULL, or the count of all assignments' work (AmpAssignment) */
    bool *beaten;   /* NULL, or set if no strategy is faster than upper_s */
} AmpOptions;

/* The degrees of a strategy, and its micro-batch size. */
typedef struct {
    uint32_t pp, dp, tmp, mbs;
} AmpDegrees;

/* Whether the degrees suit model and cluster. KILTER_ERROR_INPUT, one line: degrees whose product
 * is not the number of devices, more stages than layers, micro-batches that do not divide a
 * replica's batch or do not suit the schedule, a degree without times. */
bool synth_amp_check(const AmpModel *model, const AmpCluster *cluster,
                     const AmpOptions *options, const AmpDegrees *degrees,
                     GError **error);

AmpCost synth_amp_cost(const AmpModel *model, const AmpCluster *cluster,
                       const AmpOptions *options, const AmpStrategy *strategy);

/* The program of a strategy on a graph; the layers are the graph's. KILTER_ERROR_INPUT if the
 * schedule does not suit these numbers, or if the batch or a tensor cannot be cut in this way. */
Program *synth_amp_program(const Graph *graph, const ClusterView *view,
                           const AmpOptions *options, const AmpStrategy *strategy,
                           GError **error);

/* --- layer assignment (Sec. 3.5) --- */

/* Stages of consecutive layers, at least one each. Arrays [stage * n_layers + layer], not negative:
 *
 *     minimize repeats * max_i (t_i, link * e_i) + sum_i t_i + sum_i e_i + max_i s_i
 *     subject to memory_i <= capacity_i */
typedef struct {
    uint32_t n_layers, n_stages;
    double repeats;
    /* the part of e_i for which one direction of a link is busy; 0: links never limit */
    double link;
    const double *time; /* t_i is the sum over the stage's layers */
    /* e_i is the value of the stage's last layer; unused for the last stage */
    const double *transfer;
    const double *sync;              /* s_i is the sum over the stage's layers; NULL: 0 */
    const double *memory, *capacity; /* capacity [stage]; NULL: not counted */
    /* NULL, or a count that grows by the cells of each table that is filled */
    uint64_t *work;
} AmpAssignment;

/* first [n_stages + 1]. False if no assignment fits the memory. Takes O(k L) per threshold on max
 * t_i (and s_i). Thresholds decrease until no lower one can pay, which takes few in practice (the
 * paper's algorithm is O(k L^4)). */
bool synth_amp_assign(const AmpAssignment *problem, uint32_t *first, double *cost);

/* --- search (Algorithm 1) --- */

typedef struct {
    AmpStrategy strategy;
    AmpCost cost;
    /* by the fidelity `stage` its program takes no fewer seconds; 0 with the faithful reading, or
     * measured times: not known */
    double least_s;
} AmpCandidate;

typedef enum {
    /* every degree and micro-batch size, layers assigned exactly, the paper's placement; by default
     * also the placement that keeps a replica's stages together */
    AMP_SEARCH,
    AMP_ANNEAL, /* the same degrees, placements by simulated annealing (Sec. 4.2) */
    /* Megatron's heuristics (Sec. 4.1): tensor parallelism inside machines, the least tmp x pp
     * that fits, equal numbers of layers per stage */
    AMP_MEGATRON_LAYERS,
    /* the same with about equal numbers of parameters per stage */
    AMP_MEGATRON_PARAMETERS,
    AMP_RANDOM /* random strategies that fit */
} AmpMethod;

/* AmpCandidates that fit, cheapest first (random ones as drawn); free with g_array_unref. *n_most
 * (may be NULL) gets the most candidates that there could be, whatever the memory is: one per
 * choice of degrees and micro-batch size, or all that are to be drawn. KILTER_ERROR_INPUT as
 * synth_amp_check for degrees that the options fix; KILTER_ERROR_INFEASIBLE if no strategy fits. */
GArray *synth_amp_search(const AmpModel *model, const AmpCluster *cluster,
                         const AmpOptions *options, AmpMethod method, uint32_t *n_most,
                         GError **error);
