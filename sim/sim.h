/* sim: what an iteration costs.
 *
 *     Program --sim_linear-->  SimLinear   time, piecewise linear in the shares (HAP Eq. 3)
 *             --sim_memory-->  SimMemory   live bytes, linear in the shares
 *     Plan    --sim_evaluate-> SimReport   an iteration under one fidelity:
 *
 *         analytic   the stage-synchronized formula (HAP Sec. 3.2)
 *         stage      discrete events, a global barrier at each collective; equals analytic
 *                    where launching takes no time
 *         flow       discrete events, streams whose order and dependencies decide
 *
 * The cost model (HAP Sec. 3.2). For stages i and devices j,
 *
 *     t = sum_i ( comm_i + max_j comp_ij )                                             (1)
 *     comp_ij = (R_i + sum_k S_ik B_kj) / rate_j + inner_ij                            (2)
 *
 * R, S: FLOPs that are replicated, and sharded with segment k. Where the cluster has a fitted time
 * of an op's kind (data/cluster/cluster.h), FLOPs / rate is replaced by
 *
 *     stretch overhead + (FLOPs / rate_kind + bytes / bandwidth_kind) rate_type / rate_j
 *
 * with the bytes of the op's operands (graph_op_bytes): those of a sharded operand count as S, the
 * others as R. Where the type has a rate of the numbers that an op computes with
 * (graph_op_numbers), the op has that rate / rate_type times the rate, fitted or not.
 * Where the kind has waves, the overhead holds the empty part of the last one; a device that sums
 * over its share only has as much less of it. One collective on V bytes over n devices, with
 * latency a and bandwidth w of its kind (and, where they were fitted by size, of V):
 *
 *     all-reduce                      a + 2 (n-1)/n V / w
 *     all-gather, reduce-scatter      a + (n-1) max_j(B_j) V / w   (padded to the largest)
 *     the same, grouped               n a + V / w
 *     all-to-all                      a + max_j(B_j) (n-1)/n V / w   (source, destination)
 *     slice, keep, pad                0
 *
 * Stages: a priced collective that comes after a computation opens the next stage. Loads, slice,
 * keep and pad cost nothing, open no stage and end no step. Collectives of one step add up. With
 * buckets, all-reduces of parameter gradients that follow one another in a step, no other priced
 * collective between them, fill buckets in program order and pay `a` once a bucket; one larger than
 * a bucket has its own.
 *
 * A device that is a machine of g GPUs adds inner communication over its own link (a_in, w_in) to
 * comp, HAP Sec. 6:
 *
 *     inner_ij = sum over messages of ( a_in + (g-1)/g bytes / w_in )                  (3)
 *
 *     the op that completes a parameter's gradient    reduce it among the GPUs
 *     an update                                       hand the gradient back to the GPUs
 *     a priced collective on a parameter, optimizer
 *     state or updated value                          broadcast the result
 *     one on a parameter's gradient                   none
 *     one on anything else                            gather before, scatter after
 *
 * `bytes` are the device's own: of a sharded tensor its share (of an all-to-all the share after it,
 * for both messages). The inner communication of a step's collectives counts as computation of the
 * stage that they open. Contributions to the gradient of a parameter with several consumers count
 * as its gradient, but only their sum is reduced.
 *
 * One device (n = 1): collectives are free; its inner communication is not.
 *
 * Launches. The host of a device launches what it runs, one after the other in program order, and
 * does not wait for the device: with l_i the launch time of instruction i (data/cluster/cluster.h),
 * h_i when its launch has ended and e_i when it has ended itself,
 *
 *     h_i = h_(i-1) + l_i,   e_i = max(h_i, when the device and its operands are ready) + t_i
 *
 * A long op hides the launches of those after it; n short ones take n l. Views are not launched, a
 * bucket is launched once. Collectives are launched on all their devices, transfers where they are
 * sent and where they are received. An iteration begins with the first launch, as the host has
 * waited for the end of the one before. `stage` and `flow` do this; `analytic`, SimLinear and all
 * that searches and balances with them leave the launches out: where they take time theirs is a
 * lower bound of that of `stage`. A stretched device has the same host. With host=waits (as in
 * Megatron-LM, which synchronizes after each receive) the launch of a computation on what was sent
 * comes when the transfer has ended: launches of pipeline stages no longer hide behind one another.
 *
 * Memory. A value (one making of an instance) is alive from the instruction that makes it to its
 * last use, both included, in a buffer of its own, but
 *
 *   - a parameter or optimizer state lies at rest: it lives through the whole iteration;
 *   - an updated value takes the buffer of the old value in its form once that is used no
 *     more; what the next iteration starts from lives to the end;
 *   - what an op keeps for its backward beside tensors, masks of dropout among it
 *     (graph_op_kept_bytes), lives from its computation to the backward's last op, in the
 *     output's form;
 *   - float32 gradients of half-precision parameters are accumulated where they are (Megatron-LM's
 *     main gradients): what a computation makes of them has its buffer all the time;
 *   - the output of a view (op_kind_is_view) shares its input's buffer, and a slice of a
 *     value at rest is a view of it;
 *   - all-reduce and keep work in place when their input dies there. So does an
 *     elementwise op (its operands are all *) with one output, on the first input that
 *     dies there and has its shape, form and kind (held or divided, see SimMemory).
 *
 * Padding and buckets take no memory.
 *
 * In the `flow` fidelity a buffer is alive from the start of the instruction that makes it until
 * all instructions that use it have ended, whenever the streams run them. An instruction that takes
 * no time runs with the next one that does, or with the first one that uses what it makes if that
 * is earlier. */
#ifndef KILTER_SIM_SIM_H
#define KILTER_SIM_SIM_H

#include "data/data.h"
#include "sim/campaign/campaign.h"
#include "sim/flow/execution.h"
#include "sim/flow/timeline.h"
#include "sim/network/collective_run.h"
#include "sim/options.h"
#include "sim/tasks/quick.h"
#include "sim/tasks/task_file.h"

/* --- the pieces that searches price with --- */

/* Seconds of one priced or local collective on `bytes` of the whole tensor. share_*: the
 * largest share of any device on the sharded dim before and after (ignored where that
 * form is not Gather). */
double sim_collective_s(const ClusterView *view, Collective kind, double bytes,
                        double max_share_from, double max_share_to);

/* Fitted times of one device type, as overhead and FLOPs that take as long at its rate. */
typedef struct {
    double overhead_s, flops, flops_sharded;
} SimFitted;

/* Work that one instruction gives every device: fixed + sharded * share, of FLOPs and of
 * inner bytes; of a timed graph (data/graph/graph.h) given seconds instead of FLOPs. */
typedef struct {
    double seconds;
    double flops, flops_sharded;
    SimFitted fitted[CLUSTER_MAX_FITTED]; /* instead of FLOPs, by Device.fitted - 1 */
    double inner_bytes, inner_bytes_sharded;
    uint32_t inner_messages;
} SimWork;

void sim_work_op(const Graph *graph, const ClusterView *view, OpId op, const Rule *rule,
                 SimWork *work);
/* The same on a part of the batch, where `form` says which operands have parts
 * (data/program/batch.h; NULL: none has, `part` is not used). */
void sim_work_part(const Graph *graph, const ClusterView *view, OpId op, const Rule *rule,
                   const Form *form, double part, SimWork *work);
void sim_work_collective(const Graph *graph, Collective kind, TensorId tensor, Form from,
                         Form to, SimWork *work);

/* Its FLOPs that no share divides, as the device counts them. */
static inline double *sim_work_flops(SimWork *work, const Device *device)
{
    return device->fitted ? &work->fitted[device->fitted - 1].flops : &work->flops;
}

/* Seconds of `work` on a device that has `share` of the sharded dim. */
double sim_work_s(const SimWork *work, const Device *device, double share);

/* A bound on the seconds of an iteration by any plan, any grouping, any schedule: every FLOP and
 * byte of the graph's ops once, all devices busy with what suits them best, no communication and no
 * overhead. 0 where nothing is proved (timed graphs). */
double sim_compute_bound_s(const Graph *graph, const ClusterView *view);
/* The same by any program of one microbatch, or of two that take turns, in which every GPU has an equal share of all that
 * is cut: what the device computes that takes longest for its part. */
double sim_even_bound_s(const Graph *graph, const ClusterView *view);

/* What every program of one microbatch that computes nothing again holds when its forward has ended,
 * on all devices together: bytes that each GPU of a machine holds, and bytes that they divide. */
typedef struct {
    double held_bytes, divided_bytes;
} SimMemoryFloor;
SimMemoryFloor sim_memory_floor(const Graph *graph);
/* false: there is not so much memory, however it is shared out. */
bool sim_memory_floor_fits(const SimMemoryFloor *floor, const ClusterView *view);

/* --- a program's cost as a function of the shares --- */

typedef struct {
    uint32_t segment, units;
} SimSplit;

typedef struct {
    uint32_t first, n; /* instructions */
    double comm_s;     /* communication that no share changes */
    SimWork fixed; /* the part of the work that no share changes (its *_sharded are 0) */
    bool joins;    /* it is of the turn of the stage before, */
    bool beside;   /* and its computation runs beside those of the turn's other stages */
} SimStage;

/* seconds * max(max_j share[from][j], max_j share[to][j]); from == to but for all-to-all
 * between splits. */
typedef struct {
    uint32_t stage;
    uint32_t from, to; /* splits */
    double seconds;
} SimTerm;

typedef struct {
    uint32_t n_stages, n_splits, n_terms;
    SimStage *stage;
    SimSplit *split; /* sorted by (segment, units) */
    double *flops; /* [stage * n_splits + split], FLOPs that the split's shares divide */
    /* likewise, as devices of fitted types count them */
    double *fitted[CLUSTER_MAX_FITTED];
    double *inner_bytes; /* likewise */
    SimTerm *term;       /* sorted by stage */
} SimLinear;

/* `segment`: of each op (NULL: all 0); instances go by plan_segments(). The program must have
 * passed program_check, be of one group, and its batch can be cut if it has microbatches.
 *
 * The stages of a program whose microbatches take turns (below) are not one after the other: those
 * that join form a turn with the stage before. Its communication is one chain, its computation
 * another one on each device that waits, before stage i, for the communication of stages up to i:
 *
 *     turn = max over devices j, stages i of ( sum of comm_k, k <= i  +  comp_ij  +  sum of comp_kj, k > i, k not beside ) (4)
 *
 * Without stages that join, the sum of turns is equation (1). */
SimLinear *sim_linear(const Program *program, const Graph *graph, const ClusterView *view,
                      const uint16_t *segment, uint64_t bucket_bytes);
void sim_linear_free(SimLinear *linear);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimLinear, sim_linear_free)

/* FLOPs of a cell that shares divide, as the device counts them. */
static inline double sim_linear_flops(const SimLinear *linear, size_t cell,
                                      const Device *device)
{
    return device->fitted ? linear->fitted[device->fitted - 1][cell]
                          : linear->flops[cell];
}

/* The first stage after the turn that begins with this one. */
static inline uint32_t sim_turn_end(const SimLinear *linear, uint32_t stage)
{
    do
        stage++;
    while (stage < linear->n_stages && linear->stage[stage].joins);
    return stage;
}

/* Equations (1) and (4). share[split * n_devices + device]. comm_s, comp_s: parts of the sum, may
 * be NULL; of a turn comp_s is its largest sum of computations, comm_s the rest. */
double sim_linear_time(const SimLinear *linear, const ClusterView *view,
                       const double *share, double *comm_s, double *comp_s);

/* Shares of every split from ratios [segment * n_devices + device] (fractional). Caller
 * frees. */
double *sim_shares(const SimLinear *linear, const ClusterView *view, const double *ratio);

/* --- two microbatches in alternation --- */

/* A stage of both microbatches: communication, then computation. */
typedef struct {
    double comm_s[2], comp_s[2];
} SimDuplexStage;

/* Time of two microbatches that take turns (HiDup Sec. 3, Eq. 4 and 5): while the first one
 * computes its stage i the second one communicates for its stage i, then the second computes and
 * the first communicates for its stage i + 1. With psi the time up to a stage and -phi the second
 * microbatch's computation in it,
 *
 *     phi_i = -comp2_i                                                                      (4)
 *     psi_i = psi_(i-1) + phi_(i-1) + max(-phi_(i-1), comm1_i) + max(comm2_i, comp1_i) - phi_i   (5)
 *
 * In the paper both microbatches have the same times. They differ where one of them communicates
 * for both: what gathers a parameter for the first one serves the second too, and gradients are
 * summed before they are synchronized. */
double sim_duplex_time(uint32_t n_stages, const SimDuplexStage *stage);

/* --- memory --- */

/* Live bytes of one GPU of device j at a point = (whole + sum_s sharded_s share_sj) for
 * tensors that every GPU of the machine holds in full (parameters, their gradients,
 * optimizer states) + the same / g for those the GPUs split (activations). Points that
 * another point exceeds everywhere are left out. */
typedef struct {
    uint32_t n_points, n_splits;
    uint32_t *instr;        /* the instruction at which the point's bytes are live */
    double *held, *divided; /* [point]: parts that no share changes */
    double *held_sharded, *divided_sharded; /* [point * n_splits + split] */
} SimMemory;

/* Whether every GPU of a machine holds all of the tensor's shard. */
bool sim_is_held(const Graph *graph, const Tensor *tensor);

SimMemory *sim_memory(const Program *program, const Graph *graph, const SimLinear *linear,
                      const uint16_t *segment);
void sim_memory_free(SimMemory *memory);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimMemory, sim_memory_free)

/* Peak bytes of one GPU of device j and the point (index) where it is. */
double sim_memory_peak(const SimMemory *memory, const ClusterView *view,
                       const double *share, uint32_t device, uint32_t *point);

/* Whether every device's peak, in whole bytes, fits. */
bool sim_memory_fits(const SimMemory *memory, const ClusterView *view,
                     const double *share);

/* --- evaluation of a plan --- */

typedef struct {
    double start_s, comm_s, comp_s;
    uint32_t first, n; /* instructions */
} SimStageReport;

typedef struct {
    const char *fidelity;
    double iteration_time_s;
    double comm_s, comp_s; /* parts of it; with a timeline those of the critical path, to
                              which what a failure cost is added */
    double launch_s; /* part of comp_s in which the critical path waits for a host */
    uint32_t n_devices, n_stages;
    double *busy_s, *comm_busy_s, *idle_s; /* per device; sum to the iteration time */
    double *hidden_s; /* per device: communication while it computes, part of busy_s */
    uint64_t *memory_bytes; /* peak of one GPU of each device */
    uint32_t *memory_instr; /* instruction at the peak */
    SimStageReport *stage;
    bool feasible;          /* every device's peak fits */
    uint32_t worst_device;  /* where peak - capacity is largest, */
    uint64_t missing_bytes; /* and by how much it does not fit; 0 when feasible */
    char *worst_instr;      /* text of the instruction at its peak */
    SimTimeline *timeline;  /* NULL: the fidelity has none */
} SimReport;

/* The categories of a device's memory: id, name. Activations are what the forward makes and
 * keeps, buffers what is in flight: gradients of activations, parameters that were gathered. */
#define SIM_MEMORY_TABLE(X)      \
    X(WEIGHTS, "weights")        \
    X(GRADIENTS, "gradients")    \
    X(OPTIMIZER, "optimizer")    \
    X(ACTIVATIONS, "activations") \
    X(BUFFERS, "buffers")        \
    X(RUNTIME, "runtime")

typedef enum {
#define X(id, name) SIM_MEMORY_##id,
    SIM_MEMORY_TABLE(X)
#undef X
        SIM_MEMORY_CATEGORIES
} SimMemoryCategory;

const char *sim_memory_category(SimMemoryCategory category);

/* Bytes of one GPU of a device at its peak, instructions run in program order. */
typedef struct {
    uint32_t device, n_alike; /* the fullest one of its type, and how many there are of that */
    uint32_t instr;
    uint64_t bytes[SIM_MEMORY_CATEGORIES];
    uint64_t total_bytes, capacity_bytes; /* the device's memory */
} SimMemoryRow;

/* A row for each type of devices, in the order in which they come (SimMemoryRow); free with
 * g_array_unref. memory_bytes: of the plan's devices, as a report has them. Errors as sim_evaluate. */
GArray *sim_memory_table(const Plan *plan, const Graph *graph, const ClusterView *view,
                         const uint64_t *memory_bytes, GError **error);

/* What an iteration works on. Divided by its time: samples/s, tokens/s; MFU is model_flops over what
 * the GPUs could do in that time, time_s * peak, and HFU run_flops over the same (Korthikanti et al.
 * 2022, Sec. 6.3). */
typedef struct {
    double samples, tokens; /* tokens: 0 where the model's input is something else */
    double model_flops;     /* of forward and backward, each op once */
    double run_flops; /* of all devices: with what is computed again, or by several alike */
    double peak;      /* FLOP/s of all GPUs in the model's precision: of their data sheets,
                       * or, where the cluster's file has none, at the rates that it has */
    bool of_peaks;    /* whether all of them have data sheets' peaks */
    uint32_t gpus;
    double power_w; /* of all boards at most; 0: not known of some */
    double price;   /* of all machines, US dollars an hour; 0: not known of some */
} SimWorkload;

SimWorkload sim_workload(const Plan *plan, const Graph *graph, const ClusterView *view);

typedef struct {
    const char *name, *description;
} SimFidelity;

uint32_t sim_fidelity_count(void);
const SimFidelity *sim_fidelity(uint32_t index);
/* KILTER_ERROR_INPUT lists the known ones. */
const SimFidelity *sim_fidelity_find(const char *name, GError **error);

/* Evaluates a plan (with its rounded splits). KILTER_ERROR_INPUT on an unknown fidelity
 * or a plan for another number of devices; the errors of program_check. */
SimReport *sim_evaluate_with(const Plan *plan, const Graph *graph,
                             const ClusterView *view, const char *fidelity,
                             const SimOptions *options, GError **error);
/* The same with the default options. */
SimReport *sim_evaluate(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const char *fidelity, GError **error);
void sim_report_free(SimReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimReport, sim_report_free)

/* --- samples under noise --- */

typedef struct {
    uint32_t n;
    double *time_s; /* of the iteration in each sample */
    double mean_s, median_s, p95_s, deviation_s;
    double low_s, high_s; /* 95 % confidence interval of the mean (Student's t) */
} SimSamples;

/* `n` iterations of the flow fidelity on `jobs` threads; neither the number of threads
 * nor that of samples changes a sample. Errors as sim_evaluate_with; KILTER_ERROR_FAILED
 * names the first sample that does not end. */
SimSamples *sim_samples(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const SimOptions *options, uint32_t n, uint32_t jobs,
                        GError **error);
void sim_samples_free(SimSamples *samples);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimSamples, sim_samples_free)

/* Shares [split * n_devices + device] of the plan's rounded splits, in the order of
 * `linear`; the plan's ratios where it has no such split. Caller frees. */
double *sim_plan_shares(const Plan *plan, const SimLinear *linear);

/* --- messages alone on the network, for searches that price them --- */

/* The links of a view, which carry nothing but what is asked about: network=topology of the
 * fidelity `flow`. Not for several threads at once. */
typedef struct SimAlone SimAlone;
SimAlone *sim_alone_new(const ClusterView *view, GError **error);
void sim_alone_free(SimAlone *alone);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimAlone, sim_alone_free)

/* Seconds of a collective on even shares of `bytes` in each of some groups at the same time,
 * device [group * n + rank]. */
double sim_alone_collective_s(SimAlone *alone, Collective kind, double bytes, uint32_t n,
                              uint32_t n_groups, const uint32_t *device);
/* Of `bytes` from device[2 i] to device[2 i + 1], all at the same time. */
double sim_alone_send_s(SimAlone *alone, double bytes, uint32_t n_pairs,
                        const uint32_t *device);

#endif
