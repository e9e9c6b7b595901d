/* A joint search over pipelines whose stages may differ. In this folder a stage is a pipeline
 * stage.
 *
 * A stage is a run of layers on a device group of its own: GPUs of one machine, or whole machines
 * of one kind or of several. Inside a stage `tp` GPUs of a machine share each layer (Megatron's
 * tensor parallelism), and the replicas get samples of each microbatch by their speed; or all of
 * its devices run one SPMD program with a ratio per device, such as HAP's search finds, which cuts
 * batches, weights, sequences and experts in whatever way. Stages may differ in group, degrees,
 * layers and recomputation.
 *
 *     synth_joint_menu()     the costs of each group for each run of layers, layer by layer; SPMD
 *                            programs are promised, and found where a promise may win
 *     synth_joint_solve()    the best pipelines of a menu, by dynamic programming over suffixes of
 *                            stages
 *     synth_joint_program()  the program of a pipeline
 *     synth_joint_solve_pair(), synth_joint_pair_program()
 *                            the same for two pipelines that are replicas of each other
 *
 * Cost. f, b: seconds of a stage's forward and backward on one microbatch, m = f + b; c: seconds of
 * the transfer over the border behind it, one way; M: number of microbatches; s: seconds of the
 * stage's work after its last backward. With S the sum of m + 2 c behind stage p, and n the number
 * of microbatches that it has in flight minus one, an iteration of 1f1b takes at least
 *
 *     Z = max over p of  sum over q < p (m_q + 2 c_q)  +  max( M m_p,  S + M m_p - n min(f_p, b_p),
 *                        t S + (M - (t - 1) n) m_p  for t = 2 and the most round trips )
 *
 * and sum over all (m_q + 2 c_q) + (M - 1) max c, since each term is the length of a chain of
 * dependencies. S and Z follow stage by stage from the last to the first, from a stage's numbers
 * and the count of stages behind it; with the syncs E = max(E + f + c, Z + s). Where backwards are
 * split, with w of b for gradients of weights, which come k microbatches later, S counts b - w in
 * the place of b, Z ends with the last b - w, so that a stage's own chains lack min(M, k + 1) w,
 * and E has these again. n and k are as large as the schedule says if the stage's memory allows it,
 * else less. With V chunks per group S counts m / V, and n is that of one chunk, over V; this is no
 * bound.
 *
 * A label of the dynamic program is (S, Z, E, stages, the front stage's share and tp); of two
 * labels of the same layers on the same devices with equally many stages, the one
 * that is worse in every part is dropped. */
#pragma once

#include "sim/sim.h"
#include "synth/pipeline/pipeline.h"

/* A program of the whole model for all devices of a group (one SPMD program with a ratio per
 * device), of which a stage runs its layers. */
typedef struct {
    Program *program;
    double *ratio;           /* [device], in the order of JointDevices; sums to 1 */
    const ClusterView *view; /* of these devices alone, */
    double *view_ratio;      /* and the ratios in its order */
} JointInside;

/* One way to run layers on a group. Arrays are prefix sums over the layers: [n_layers + 1]. */
typedef struct {
    uint32_t dp, tp;
    /* [replica]: samples of a microbatch, at least one each; with `inside` of each device, as if
     * the batch were cut */
    uint32_t *samples;
    double share;              /* the largest part of a microbatch that one machine has */
    const JointInside *inside; /* NULL: replicas of Megatron's tensor parallelism */
    /* with `inside`, [layer]: how many devices need each byte that crosses the border in front of
     * it; NULL: tp */
    double *copies;
    /* its numbers are not above those of any SPMD program of the group */
    bool promised;
    Recompute recompute;
    bool divides; /* the replicas divide the optimizer's states among them */
    double *forward_s, *backward_s; /* of a microbatch */
    double *weights_s; /* the part of the backward that no stage before waits for */
    double *sync_s;    /* gradients' all-reduce and updates, */
    double start_s;    /* before the first of them */
    double *held,
        *kept;    /* bytes of the fullest GPU: at rest, and per microbatch in flight */
    double *late; /* and per microbatch whose gradients of weights come later */
    double work;  /* further bytes beside these */
    double capacity;
    /* an entry before it in its group that is slower in no layer and has the same tp, or itself */
    uint32_t faster;
} JointEntry;

/* A group of devices that a stage may have. */
typedef struct {
    uint32_t *use;  /* [kind]: number of units */
    uint32_t kinds; /* bits of the first 32 kinds of which it has some */
    uint32_t n_devices, n_machines;
    /* of a piece of one machine: 1 + kind, the units of the machine, and its links; else 0 */
    uint32_t piece, room;
    LinkCost inner;
    uint32_t n_entries;
    JointEntry *entry;
    /* its programs were looked for: the entry that was promised counts for bounds only */
    bool settled;
    uint32_t polished; /* the first entry by joint_hap_polish; 0: it was not asked */
} JointGroup;

/* Stages that are all alike: pp of them, each of dp replicas of tp devices. */
typedef struct {
    uint32_t pp, dp, tp;
    bool divides;
    bool even; /* replicas have equal parts of the batch */
    Recompute recompute;
} JointKeep;

typedef struct {
    const JointKeep *keep; /* pipelines have such stages; NULL: any */
    uint32_t n_layers, n_microbatches;
    uint32_t samples; /* of a microbatch */
    uint32_t n_kinds;
    uint32_t *units; /* [kind]: number of units in the cluster */
    /* [kind]: machines of the kind that others have, in front of these; NULL: none */
    const uint32_t *skip;
    uint32_t n_groups;
    JointGroup *group;
    /* [layer]: bytes of a microbatch that come from the layer before, and that go back; 0 for layer
     * 0 */
    double *sent, *returned;
    double latency_s, bandwidth; /* latency and bandwidth of a machine's port */
    /* [kind * n_kinds + kind]: the same between machines of two kinds; NULL: all are alike */
    LinkCost *border;
    /* [kind * n_layers + layer]: the fewest unit-seconds that any stage spends on a microbatch */
    double *least_s;
    double headroom; /* the part of the memory that stages may use */
    bool recompute;  /* stages may compute layers again */
} JointProblem;

void synth_joint_problem_free(JointProblem *problem);

/* Orders of the kinds to search in, [order * n_kinds + place]: first by speed, then the reverse,
 * and so on, at most `most`. Caller frees. */
uint32_t *synth_joint_orders(const JointProblem *problem, uint32_t most,
                             uint32_t *n_orders);

/* Fills `faster` of all entries. */
void synth_joint_rank(JointProblem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JointProblem, synth_joint_problem_free)

typedef struct {
    uint32_t first;        /* layer */
    uint32_t group, entry; /* indices in the problem */
} JointStage;

/* A pipeline, first stage first. */
typedef struct {
    uint32_t n_stages;
    JointStage *stage;
    /* 1f1b; zb-h1 or zb-h2; interleaved, also with one stage per group: twice as many microbatches
     * in flight, so that stages wait less for transfers; or gpipe, with all of them */
    SynthSchedule schedule;
    /* interleaved: each group has so many runs of layers (chunks), which come round by round; a
     * stage's range is all of its layers as if they were one run; 0 is as in JointWay */
    uint32_t chunks;
    double cost_s; /* E */
} JointPipeline;

void synth_joint_pipeline_clear(JointPipeline *pipeline);

/* The pipelines that are searched for. */
typedef struct {
    SynthSchedule schedule;
    /* device groups; 0: any number; given where backwards are split, and for several chunks */
    uint32_t n_stages;
    /* per group; relaxed: 1, or 0 for any number; else 0 is 1 */
    uint32_t chunks;
    /* count computation only: transfers and syncs take no time, memory is unlimited, and a stage
     * never waits between microbatches. This bounds every schedule, also one that splits
     * backwards */
    bool relaxed;
    /* transfers take no time, memory is unlimited, and all-reduces have no latency: below the time
     * of every pipeline under the schedule, with one chunk per group */
    bool free;
} JointWay;

typedef struct {
    JointWay way;
    /* NULL, or [kind]: the stages have the kinds in this order, the last stage the first one, and a
     * stage of several kinds has neighbours in it: many times fewer states */
    const uint32_t *order;
    uint32_t n_best; /* number of pipelines wanted */
    /* pipelines are wanted that take up to so many times as long as the best one; 0: 1.1 */
    double slack;
    /* labels kept for the same layers on the same devices; 0: all (exact) */
    uint32_t beam;
    bool plain;           /* no SPMD programs, promised or not */
    double upper_s;       /* only faster pipelines are wanted; INFINITY: all */
    uint64_t most_labels; /* the search stops at this number; 0: no limit */
    /* stages that may still be prepended, counted down; NULL: any number */
    uint64_t *left;
    gint64 deadline_us; /* 0: none */
} JointOptions;

typedef struct {
    GArray *best; /* JointPipeline, cheapest first */
    /* labels were dropped only for equally good ones, or by upper_s: in the order, if there is
     * one */
    bool exact;
    uint64_t labels;
} JointResult;

AUTOCLEAR(synth_joint_result_clear, JointResult)

void synth_joint_solve(const JointProblem *problem, const JointOptions *options,
                       JointResult *result);

/* One step of the same without entries that are only promised. Returns the groups (uint32_t) on
 * whose promises the best pipelines rely: the caller settles them, by synth_joint_add_inside and
 * setting `settled`, and takes the next step with the same result, until NULL is returned. As a
 * promise is never worse than a program, the best pipelines are then those of a search with all
 * groups settled beforehand. At the deadline, pipelines with promises are left out. */
GArray *synth_joint_solve_lazily(const JointProblem *problem, const JointOptions *options,
                                 JointResult *result);

/* Seconds of a pipeline by the formula above, or under JointWay's relaxation if `relaxed`;
 * INFINITY if it does not fit. */
double synth_joint_cost(const JointProblem *problem, const JointPipeline *pipeline,
                        bool relaxed);

static inline JointEntry *joint_entry_of(const JointProblem *p, const JointStage *stage)
{
    return &p->group[stage->group].entry[stage->entry];
}

/* Whether the stages have the memory for the microbatches that the schedule has in flight. */
bool synth_joint_fits(const JointProblem *problem, const JointPipeline *pipeline);

/* A lower bound in seconds for all plans of stages from the menu, whatever the grouping, order and
 * schedule: each layer's seconds at the best price of a unit's time, over all units. */
double synth_joint_density_s(const JointProblem *problem);

/* --- the menu of a model on a cluster --- */

/* The common part of all menus of a model on a view. The view must consist of single GPUs (else
 * KILTER_ERROR_INPUT). coarse: groups of many GPUs only, for a quick search that shows which
 * numbers of microbatches are worth a finer one. */
typedef struct JointMenu JointMenu;
JointMenu *synth_joint_menu_new(const Graph *graph, const ClusterView *view, bool coarse,
                                GError **error);
AUTOPTR(synth_joint_menu_free, JointMenu)

/* The devices of a group: of machine[i] the first gpus[i] GPUs. */
typedef struct {
    uint32_t n;
    uint32_t *machine, *gpus;
} JointDevices;
AUTOCLEAR(synth_joint_devices_clear, JointDevices)
JointDevices synth_joint_devices(const JointMenu *menu, const JointGroup *group);

/* Adds the entries of an SPMD program on these devices to a group that was promised some, for at
 * most JOINT_PROGRAMS programs: for shares as they are; without cutting the batch, which may have
 * few pieces; for shares that are rounded to the pieces of a microbatch. The menu takes the program
 * and the ratios. */
enum { JOINT_PROGRAMS = 3 };
void synth_joint_add_inside(JointMenu *menu, JointProblem *problem, JointGroup *group,
                            const JointInside *inside);

/* The problem with n_microbatches, which must divide the batch. headroom: the part of the memory
 * that stages may use. recompute: stages may compute layers again. NULL if no group can run the
 * microbatch. */
JointProblem *synth_joint_problem(JointMenu *menu, uint32_t n_microbatches,
                                  double headroom, bool recompute);

/* Seconds of a pipeline by its schedule, step by step, with the transfers between its devices: the
 * time that the fidelity `stage` gives for its program, up to latencies of all-reduces that join,
 * or more, where the bytes of all its borders take longer at the busiest port. */
double synth_joint_walk_s(const JointMenu *menu, const JointProblem *problem,
                          const JointPipeline *pipeline);

/* A pipeline on its devices: the program, and each device's ratio (0: the device is unused). */
typedef struct {
    Program *program;
    double *ratio; /* [device] */
} JointProgram;
AUTOCLEAR(synth_joint_program_clear, JointProgram)

/* The program of a pipeline. KILTER_ERROR_INPUT if the batch or a tensor cannot be cut in this
 * way. */
bool synth_joint_program(JointMenu *menu, const JointProblem *problem,
                         const JointPipeline *pipeline, JointProgram *made,
                         GError **error);

/* --- two pipelines that are replicas of each other --- */

/* The problem for pipelines on whole machines that exchange gradients with another pipeline:
 * entries of replicas with this tp, whose sync has the all-reduce with the other pipeline's
 * replicas through the machines' ports in the place of their own. Free with
 * synth_joint_shared_free. */
JointProblem *synth_joint_shared(JointMenu *menu, const JointProblem *problem,
                                 uint32_t tp);
void synth_joint_shared_free(JointProblem *shared);

/* Two pipelines, each with some of the units and of the microbatches. */
typedef struct {
    JointPipeline pipeline[2];
    uint32_t n_microbatches[2];
    uint32_t *units[2], *skip[2]; /* [kind] */
    double cost_s;                /* of the slower one */
} JointPair;

void synth_joint_pair_clear(JointPair *pair);

/* The problem of one of the pipelines, whose arrays are those of the pair and of the problem. */
JointProblem synth_joint_half(const JointProblem *shared, const JointPair *pair,
                              uint32_t half);

/* [kind]: the units of one machine; NULL where a unit is several machines, or kinds have an order.
 * Caller frees. */
uint32_t *synth_joint_machine_units(const JointMenu *menu);

/* Finds the best pair of pipelines, by the options, with `step` units in each machine of a kind
 * [kind]. Every division of the machines is tried, or, where these are many, those of whole kinds;
 * of the microbatches that which makes the slower pipeline fastest: with more of them no pipeline
 * is faster. False if no pair is faster than upper_s. */
bool synth_joint_solve_pair(const JointProblem *shared, const uint32_t *step,
                            const JointOptions *options, JointPair *best);

/* The program of a pair, on all devices of the menu. KILTER_ERROR_INPUT as above. */
bool synth_joint_pair_program(JointMenu *menu, const JointProblem *shared,
                              const JointPair *pair, JointProgram *made, GError **error);
