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
 * others as R. Where the type has a rate of its own for the number format in which an op computes
 * (graph_op_numbers), the op's rate is multiplied by that rate / rate_type, fitted or not. Where
 * the kind has waves, the overhead contains the empty part of the last wave; a device that sums
 * over its share only has proportionally less of it. With costs=kernels an op on a device of a data
 * sheet takes the time of its kernels (sim/cost/op_kernels.h) at the extents that the device has:
 * exactly so in `stage` and `flow`; what is linear in shares has a line below it, which is best at
 * the working share (KernelPricing). One collective on V bytes over n devices, with latency a and
 * bandwidth w of its kind (and, where they were fitted by size, of V):
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
 * collective between them, fill buckets in program order and pay `a` once per bucket; an all-reduce
 * larger than a bucket has a bucket of its own. So do reduce-scatters, grouped ones excepted.
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
 *     such a collective on a parameter's gradient     none
 *     such a collective on any other tensor           gather before, scatter after
 *
 * `bytes` are the device's own: its share of a sharded tensor (for an all-to-all its share
 * afterwards, for both messages). The inner communication of a step's collectives counts as
 * computation of the stage that they open. Contributions to the gradient of a parameter with
 * several consumers count as its gradient, but only their sum is reduced.
 *
 * One device (n = 1): collectives are free; its inner communication is not.
 *
 * Launches. The host of a device launches the device's instructions one after the other in program
 * order, and does not wait for the device: with l_i the launch time of instruction i
 * (data/cluster/cluster.h), h_i when its launch has ended and e_i when it has ended itself,
 *
 *     h_i = h_(i-1) + l_i,   e_i = max(h_i, when the device and its operands are ready) + t_i
 *
 * A long op hides the launches of the ops after it; n short ops take n l. Views are not launched,
 * and a bucket is launched once. Collectives are launched on all their devices, transfers where
 * they are sent and where they are received. An iteration begins with the first launch, as the host
 * has waited for the end of the iteration before. `stage` and `flow` count launches; `analytic`,
 * SimLinear and the searches and balancing that use them leave launches out, so where launching
 * takes time their time is a lower bound of the time of `stage`. A stretched device has a host of
 * normal speed. With host=waits (as in Megatron-LM, which synchronizes after each receive) a
 * computation on received data is launched when the transfer has ended: launches of pipeline stages
 * no longer hide behind one another.
 *
 * Memory. A value (one making of an instance) is alive from the instruction that makes it to its
 * last use, both included, in a buffer of its own, with these exceptions:
 *
 *   - a parameter or optimizer state lies at rest: it lives through the whole iteration;
 *   - an updated value takes the buffer of the old value in its form once the old value is no
 *     longer used; the values that the next iteration starts from live to the end;
 *   - data other than tensors that an op keeps for its backward, such as dropout masks
 *     (graph_op_kept_bytes), live from its computation to the backward's last op, in the output's
 *     form;
 *   - float32 gradients of half-precision parameters are accumulated in place (Megatron-LM's main
 *     gradients): the buffer of such a gradient exists all the time;
 *   - the output of a view (op_kind_is_view) shares its input's buffer, and a slice of a
 *     value at rest is a view of it;
 *   - all-reduce and keep work in place when their input dies there. So does an
 *     elementwise op (its operands are all *) with one output, on the first input that
 *     dies there and has its shape, form and kind (held or divided, see SimMemory).
 *
 * Padding and buckets take no memory. What a framework holds beside that (data/cluster/runtime.h)
 * is added with the option runtime=NAME: gradients lie there all the time, and there are copies of
 * those that replicas exchange, of the logits from the loss to its backward, and of a gathered
 * layer; then the allocator's reserve, the context, the workspace and communicators. Searches plan
 * within what it leaves (cluster_view_held).
 *
 * In the `flow` fidelity a buffer is alive from the start of the instruction that makes it until
 * all instructions that use it have ended, whenever the streams run them. As hosts issue, allocate
 * and release in the program's order, it is there by the time at which any later computation
 * starts, and until the last computation before its last use has started: streams hold what
 * program order holds (`stage`), and what runs ahead. An instruction that takes no time runs with
 * the next one that takes time, or with the first user of its result if that is earlier. */
#pragma once

#include "sim/flow/timeline.h"
#include "sim/options.h"

/* --- the pieces that searches price with --- */

/* Seconds of one priced or local collective on `bytes` of the whole tensor. max_share_*: the
 * largest share of any device on the sharded dim before and after (ignored if the form there is not
 * Gather). */
double sim_collective_s(const ClusterView *view, Collective kind, double bytes,
                        double max_share_from, double max_share_to);

/* The same among n devices over the given line; 0 for a local collective. */
double sim_collective_over(LinkCost line, uint32_t n_devices, Collective kind,
                           double bytes, double max_share_from, double max_share_to);

/* The part of an exchange of tensor parallelism among n such devices that runs beside products
 * where these take long enough (sim/tasks/task_overlap.c). */
double sim_overlap_part(const Device *device, Collective kind, uint32_t n);

/* The fitted time of one device type: an overhead, and the FLOPs that take the rest of the time at
 * its rate. */
typedef struct {
    double overhead_s, flops, flops_sharded;
} SimFitted;

/* Work that one instruction gives every device: fixed + sharded * share, of FLOPs and of inner
 * bytes; for a timed graph (data/graph/graph.h) given seconds instead of FLOPs. */
typedef struct {
    double seconds;
    double flops, flops_sharded;
    SimFitted fitted[CLUSTER_MAX_FITTED]; /* instead of FLOPs, by Device.fitted - 1 */
    /* Of an op with measured times (data/graph/times.h), which sim_work_s reads at the samples of a
     * device; the FLOPs that `fitted` has then, for all that is linear in shares, are those of a
     * line below the curve. NULL: of other work. */
    const OpTimes *times;
    double samples, samples_sharded;
    double inner_bytes, inner_bytes_sharded;
    uint32_t inner_messages;
} SimWork;

/* Times of kernels that were priced before, on any graph and view; for one thread at a time. */
typedef struct SimMemo SimMemo;
SimMemo *sim_memo_new(void);
AUTOPTR(sim_memo_free, SimMemo)

/* memo may be NULL. */
void sim_work_op(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId op,
                 const Rule *rule, SimWork *work);
/* The part of an op on one device: `share` of the sharded dim, of the part `part` of what `form`
 * cuts (data/program/batch.h; NULL: nothing, and `part` is not used). */
typedef struct {
    const Form *form;
    double part, share;
} SimOpShare;

/* The same on a part of the batch; its share is not used. */
void sim_work_part(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId op,
                   const Rule *rule, SimOpShare has, SimWork *work);
void sim_work_collective(const Graph *graph, Collective kind, TensorId tensor, Form from,
                         Form to, SimWork *work);

/* Seconds of a part of an op: exactly, where sim_work_s has a line. */
double sim_op_s(SimMemo *memo, const Graph *graph, const ClusterView *view, OpId op,
                const Rule *rule, SimOpShare has, const Device *device);

/* The FLOPs of `work` that no share divides, as the device counts them. */
static inline double *sim_work_flops(SimWork *work, const Device *device)
{
    return device->fitted ? &work->fitted[device->fitted - 1].flops : &work->flops;
}

/* Seconds of `work` on a device that has `share` of the sharded dim. */
double sim_work_s(const SimWork *work, const Device *device, double share);

/* A bound on the seconds of an iteration by any plan, any grouping, any schedule, the larger
 * of two: every FLOP and byte of the graph's ops and every launch is counted once, all devices
 * are always busy with the ops that suit them best, and communication takes no time; or ops
 * that follow from one another are launched one after the other. 0 where nothing is proved
 * (timed graphs). */
double sim_compute_bound_s(const Graph *graph, const ClusterView *view);
/* A bound on the seconds in which kinds of devices together do n works, each of them on any of
 * them, in parts: of the whole work i one of kind k takes seconds[k * n + i]. */
double sim_divided_bound_s(const DeviceKinds *found, uint32_t n, const double *seconds);

/* The memory that every program of one microbatch without recomputation holds when its forward has
 * ended, on all devices together: bytes that each GPU of a machine holds, and bytes that they
 * divide. adapts: some parameters are not trained. */
typedef struct {
    double held_bytes, divided_bytes;
    bool adapts;
} SimMemoryFloor;
SimMemoryFloor sim_memory_floor(const Graph *graph);
/* Whether so much memory exists at all, however it is shared out. */
bool sim_memory_floor_fits(const SimMemoryFloor *floor, const ClusterView *view);

/* --- a program's cost as a function of the shares --- */

typedef struct {
    uint32_t segment, units;
} SimSplit;

typedef struct {
    uint32_t first, n; /* instructions */
    double comm_s;     /* communication that no share changes */
    SimWork fixed; /* the part of the work that no share changes (its *_sharded are 0) */
    bool joins;    /* it belongs to the turn of the stage before */
    bool beside;   /* its computation runs beside those of the turn's other stages */
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
    double *flops; /* [stage * n_splits + split]: FLOPs that the split's shares divide */
    /* likewise, as devices of fitted types count them */
    double *fitted[CLUSTER_MAX_FITTED];
    double *inner_bytes; /* likewise */
    SimTerm *term;       /* sorted by stage */
} SimLinear;

/* `segment`: [op], its segment (NULL: all 0); instances have the segments of plan_segments(). The
 * program must have passed program_check and have one group; if it has microbatches, its batch must
 * be one that can be cut.
 *
 * The stages of a duplex program, whose microbatches take turns (below), do not all run one after
 * the other: a stage that joins belongs to the same turn as the stage before. The communication of
 * a turn is one chain; its computation is another chain on each device, which waits before stage i
 * for the communication of all stages up to i:
 *
 *     turn = max_ij ( sum_(k<=i) comm_k + comp_ij + sum_(k>i, k not beside) comp_kj )    (4)
 *
 * Without stages that join, the sum of turns is equation (1). */
SimLinear *sim_linear(const Program *program, const Graph *graph, const ClusterView *view,
                      const uint16_t *segment, uint64_t bucket_bytes);
AUTOPTR(sim_linear_free, SimLinear)

/* The FLOPs of a cell (stage, split) that shares divide, as the device counts them. */
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
 * be NULL; a turn adds its largest sum of computations to comp_s and the rest to comm_s. */
double sim_linear_time(const SimLinear *linear, const ClusterView *view,
                       const double *share, double *comm_s, double *comp_s);

/* matters: out, [split * n_devices + device], zeroed by the caller: whether the iteration can be
 * shorter with a smaller share of this device alone, the others' shares being as they are or
 * larger: where it is the slowest of a stage, or has the largest share of a split that collectives
 * wait for. */
void sim_linear_matters(const SimLinear *linear, const ClusterView *view,
                        const double *share, bool *matters);

/* Shares [split * n_devices + device] of every split from ratios [segment * n_devices + device],
 * not rounded. The caller frees them. */
double *sim_shares(const SimLinear *linear, const ClusterView *view, const double *ratio);

/* --- memory --- */

/* Live bytes of one GPU of device j at a point = (whole + sum_s sharded_s share_sj) for tensors
 * that every GPU of the machine holds in full (parameters, their gradients, optimizer states) + the
 * same / g for tensors that the GPUs split (activations). Points that another point exceeds in
 * every part are left out. */
typedef struct {
    uint32_t n_points, n_splits;
    uint32_t *instr;        /* the instruction at which the point's bytes are live */
    double *held, *divided; /* [point]: parts that no share changes */
    double *held_sharded, *divided_sharded; /* [point * n_splits + split] */
} SimMemory;

/* runtime: what is held beside the plan as buffers; NULL: nothing. */
SimMemory *sim_memory(const Program *program, const Graph *graph, const SimLinear *linear,
                      const uint16_t *segment, const Runtime *runtime);
/* The buffers of an SPMD program with those that a runtime holds beside it (PlanBuffer.beside), for
 * searches that count layer by layer. */
PlanBuffers *sim_runtime_buffers(const Program *program, const Graph *graph,
                                 const Runtime *runtime);
/* The kinds of groups that a device communicates in, by the degrees that a strategy sets. */
uint32_t sim_communicators(const Strategy *strategy, uint32_t n_devices);
AUTOPTR(sim_memory_free, SimMemory)

/* Peak bytes of one GPU of device j and the point (index) where it is. */
double sim_memory_peak(const SimMemory *memory, const ClusterView *view,
                       const double *share, uint32_t device, uint32_t *point);

/* Whether the peak of every device, in whole bytes, fits its memory. */
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
    /* parts of it; with a timeline, of the critical path plus the time lost to a failure */
    double comm_s, comp_s;
    /* US dollars for what is sent between regions with prices; 0 for time_only */
    double toll;
    double launch_s; /* part of comp_s in which the critical path waits for a host */
    uint32_t n_devices, n_stages;
    double *busy_s, *comm_busy_s, *idle_s; /* per device; sum to the iteration time */
    double *hidden_s; /* per device: communication while it computes, part of busy_s */
    uint64_t *memory_bytes; /* peak of one GPU of each device */
    uint32_t *memory_instr; /* instruction at the peak */
    SimStageReport *stage;
    bool feasible;          /* every device's peak fits */
    uint32_t worst_device;  /* the device with the largest peak - capacity */
    uint64_t missing_bytes; /* the bytes by which it does not fit; 0 when feasible */
    char *worst_instr;      /* text of the instruction at its peak */
    /* the machine whose host's memory is the shortest: what its devices take of it, and what it
     * lacks; 0: nothing is offloaded */
    uint32_t host;
    uint64_t host_bytes, host_missing_bytes;
    const char *runtime;   /* the option; "": none */
    bool kernels;          /* ops took the times of their kernels (costs=kernels) */
    SimTimeline *timeline; /* NULL: the fidelity has none */
} SimReport;

/* Bytes of one GPU of a device at its peak, instructions run in program order. */
typedef struct {
    /* the fullest device of its type (and stage), and the number of such devices */
    uint32_t device, n_alike;
    uint16_t group; /* the first group that it is in, which is its pipeline stage */
    uint32_t instr;
    uint64_t bytes[MEMORY_CATEGORIES];
    uint64_t total_bytes, capacity_bytes; /* the device's memory */
} SimMemoryRow;

/* One SimMemoryRow per device type, in the order in which the types first occur, or for each type
 * of each pipeline stage, by stages; free with g_array_unref. memory_bytes: [device], as in a
 * report. runtime: a name, or "" for none. Errors as sim_evaluate. */
GArray *sim_memory_table(const Plan *plan, const Graph *graph, const ClusterView *view,
                         const char *runtime, bool by_stage, const uint64_t *memory_bytes,
                         GError **error);
/* A device's buffers by program order, as blocks of a snapshot: bytes of one GPU without what the
 * allocator does not give out. Appends to `block` (SnapshotBlock), whose texts the graph owns. */
bool sim_memory_blocks(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const char *runtime, uint32_t device, GArray *block,
                       GError **error);

/* The workload of an iteration. Divided by the time it gives samples/s and tokens/s. MFU is
 * model_flops / (time_s * peak), HFU is run_flops / (time_s * peak) (Korthikanti et al. 2022, Sec.
 * 6.3). */
typedef struct {
    double samples, tokens; /* tokens: 0 where the model's input is something else */
    double model_flops;     /* FLOPs of forward and backward, each op once */
    /* FLOPs of all devices, recomputation and replicated computation included */
    double run_flops;
    /* FLOP/s of all GPUs in the model's precision, from data sheets, or, where the cluster's file
     * gives no peak, from its rates */
    double peak;
    bool of_peaks; /* the peak is from data sheets for all GPUs */
    uint32_t gpus;
    double power_w; /* most power of all boards in W; 0: unknown for some */
    /* US dollars an hour for all machines, and where those that have such a price may be taken
     * away; 0: unknown for some, or none has one */
    double price, preemptible;
} SimWorkload;

SimWorkload sim_workload(const Plan *plan, const Graph *graph, const ClusterView *view);

/* Evaluates a plan (with its rounded splits). KILTER_ERROR_INPUT on an unknown fidelity
 * or a plan for another number of devices; the errors of program_check. */
SimReport *sim_evaluate_with(const Plan *plan, const Graph *graph,
                             const ClusterView *view, const char *fidelity,
                             const SimOptions *options, GError **error);
/* The same with the default options. */
SimReport *sim_evaluate(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const char *fidelity, GError **error);
/* The same to 1e-9, but under `stage` a long pipeline's is that of the few microbatches that are
 * unlike each other, and has no timeline; instructions are numbered as in the whole program. */
SimReport *sim_evaluate_shortly(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const char *fidelity,
                                const SimOptions *options, GError **error);
/* Seconds of a long pipeline by flow, from the pace of a few repetitions of its middle. INFINITY:
 * these keep no pace to 1e-3, have more than `most` instructions, or are over half of all. The
 * options are without failures, noise and times of layers. */
double sim_flow_estimate_s(const Plan *plan, const Graph *graph, const ClusterView *view,
                           const SimOptions *options, uint32_t most);
/* Adds memory over time to the report's timeline where its fidelity has recorded none. Errors as
 * sim_evaluate_with. */
bool sim_record_memory(const Plan *plan, const Graph *graph, const ClusterView *view,
                       SimReport *report, GError **error);
AUTOPTR(sim_report_free, SimReport)
/* The device that computes longest. */
uint32_t sim_busiest(const SimReport *report);

/* --- samples under noise --- */

typedef struct {
    uint32_t n;
    double *time_s; /* [sample]: time of the iteration */
    double mean_s, median_s, p95_s, deviation_s;
    double low_s, high_s; /* 95 % confidence interval of the mean (Student's t) */
} SimSamples;

/* Simulates `n` iterations with the flow fidelity on `jobs` threads; a sample depends neither on
 * the number of threads nor on the number of samples. Errors as sim_evaluate_with;
 * KILTER_ERROR_FAILED names the first sample that does not end. */
SimSamples *sim_samples(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const SimOptions *options, uint32_t n, uint32_t jobs,
                        GError **error);
AUTOPTR(sim_samples_free, SimSamples)

/* Shares [split * n_devices + device] of the plan's rounded splits, in the order of
 * `linear`; the plan's ratios where it has no such split. Caller frees. */
double *sim_plan_shares(const Plan *plan, const SimLinear *linear);

/* --- messages alone on the network, for searches that price them --- */

/* Prices messages alone on the network of a view, as network=topology of the fidelity `flow` does:
 * nothing else shares the links. The view must outlive it. For one thread at a time. */
typedef struct SimAlone SimAlone;
SimAlone *sim_alone_new(const ClusterView *view, GError **error);
AUTOPTR(sim_alone_free, SimAlone)

/* Seconds of a collective on even shares of `bytes` in each of some groups at the same time,
 * device [group * n + rank]. */
double sim_alone_collective_s(SimAlone *alone, Collective kind, double bytes, uint32_t n,
                              uint32_t n_groups, const uint32_t *device);
/* Seconds of n_pairs messages of `bytes` each, from device[2 i] to device[2 i + 1], all at the same
 * time. */
double sim_alone_send_s(SimAlone *alone, double bytes, uint32_t n_pairs,
                        const uint32_t *device);
/* Whether any message among the first devices takes what it takes among the others. */
bool sim_alone_same(SimAlone *alone, uint32_t n, const uint32_t *device,
                    const uint32_t *other);
