/* A joint search over pipelines of unlike stages.
 *
 * A stage is a run of layers on a device group of its own: GPUs of one machine, whole machines of one kind or of
 * several. Inside it `tp` GPUs of a machine share each layer (Megatron's tensor parallelism), and the replicas have
 * samples of each microbatch by their speed. Stages may differ in all of it: group, degrees, layers, recomputation.
 *
 *     synth_joint_menu()     what each group could take for each run of layers: the costs, layer by layer
 *     synth_joint_solve()    the best pipelines of a menu, by dynamic programming over suffixes of stages
 *     synth_joint_program()  the program of one
 *
 * Cost. f, b: seconds of a stage's forward and backward on one microbatch, m = f + b; c: of the transfer over the
 * border behind it, one way; M microbatches; s: what the stage does once after its last backward. With S the sum of
 * m + 2 c behind stage p, and n the microbatches that it has in flight less one, an iteration of 1f1b takes at least
 *
 *     Z = max over p of  sum over q < p (m_q + 2 c_q)  +  max( M m_p,  S + M m_p - n min(f_p, b_p),
 *                                                              t S + (M - (t - 1) n) m_p  for t = 2 and the most round trips )
 *
 * since each is the length of a chain of dependencies. Both fold from the last stage to the first with a stage's
 * numbers and the count of stages behind it; with the syncs E = max(E + f + c, Z + s). A label of the dynamic program
 * is (S, Z, E, stages, the front stage's port); of two labels of the same layers on the same devices with as many
 * stages the one that is worse in all goes. */
#ifndef KILTER_SYNTH_JOINT_JOINT_H
#define KILTER_SYNTH_JOINT_JOINT_H

#include "sim/sim.h"
#include "synth/pipeline.h"

/* One way to run layers on a group. Arrays are sums over the layers before: [n_layers + 1]. */
typedef struct {
    uint32_t dp, tp;
    uint32_t *samples; /* [replica] of a microbatch, at least one each */
    bool recompute;
    double *forward_s, *backward_s; /* of a microbatch */
    double *sync_s;                 /* gradients' all-reduce and updates */
    double *held,
        *kept; /* bytes of the fullest GPU: at rest, and for each microbatch in flight */
    double work; /* bytes beside these */
    double capacity;
} JointEntry;

/* Devices that a stage may have. */
typedef struct {
    uint32_t *use; /* [kind]: units */
    uint32_t n_devices, n_machines;
    uint32_t n_entries;
    JointEntry *entry;
} JointGroup;

typedef struct {
    uint32_t n_layers, n_microbatches;
    uint32_t n_kinds;
    uint32_t *units; /* [kind]: how many there are */
    uint32_t n_groups;
    JointGroup *group;
    /* [layer]: bytes of a microbatch that pass from the layer before, and come back; of 0: 0 */
    double *sent, *returned;
    double latency_s, bandwidth; /* of a machine's port */
    /* [kind * n_layers + layer]: no stage spends fewer seconds of a unit on a microbatch */
    double *least_s;
} JointProblem;

void synth_joint_problem_free(JointProblem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JointProblem, synth_joint_problem_free)

typedef struct {
    uint32_t first;        /* layer */
    uint32_t group, entry; /* of the problem */
} JointStage;

/* A pipeline, first stage first. */
typedef struct {
    uint32_t n_stages;
    JointStage *stage;
    double cost_s; /* E */
} JointPipeline;

void synth_joint_pipeline_clear(JointPipeline *pipeline);

typedef struct {
    uint32_t n_best; /* pipelines wanted */
    uint32_t
        beam; /* labels kept of the same layers on the same devices; 0: all of them (exact) */
    double upper_s;       /* pipelines that take as long are of no use; INFINITY */
    uint64_t most_labels; /* the search stops with so many; 0: any number */
    gint64 deadline_us;   /* 0: none */
    /* nothing but computation: transfers and syncs take no time, memory is no matter, and a stage works on
     * microbatches without a wait: a bound on every schedule in which a device has one stage */
    bool relaxed;
} JointOptions;

typedef struct {
    GArray *best; /* JointPipeline, cheapest first */
    bool
        exact; /* no label was left out but for one that is as good in all, or by upper_s */
    uint64_t labels;
} JointResult;

void synth_joint_result_clear(JointResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(JointResult, synth_joint_result_clear)

void synth_joint_solve(const JointProblem *problem, const JointOptions *options,
                       JointResult *result);

/* Seconds of a pipeline by the formula above; INFINITY: it does not fit. As `relaxed` has it if it is set. */
double synth_joint_cost(const JointProblem *problem, const JointPipeline *pipeline,
                        bool relaxed);

/* No plan of stages from the menu takes less, whatever the grouping, order and schedule: each layer's seconds at the best
 * price of a unit's time, over all units. */
double synth_joint_density_s(const JointProblem *problem);

/* --- of a model on a cluster --- */

/* What menus of a model on a view have in common. The view is of single GPUs (KILTER_ERROR_INPUT). */
typedef struct JointMenu JointMenu;
JointMenu *synth_joint_menu_new(const Graph *graph, const ClusterView *view,
                                GError **error);
void synth_joint_menu_free(JointMenu *menu);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JointMenu, synth_joint_menu_free)

/* The problem with so many microbatches, which divide the batch. headroom: the part of the memory that stages may
 * plan with. recompute: stages may compute layers again. NULL if no group can have the microbatch. */
JointProblem *synth_joint_problem(JointMenu *menu, uint32_t n_microbatches,
                                  double headroom, bool recompute);

/* A pipeline on its devices: the program, and each device's ratio (0: it has no part). */
typedef struct {
    Program *program;
    double *ratio; /* [device] */
    uint32_t most_tp;
} JointProgram;
void synth_joint_program_clear(JointProgram *made);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(JointProgram, synth_joint_program_clear)

/* KILTER_ERROR_INPUT if the batch or a tensor cannot be cut so. */
bool synth_joint_program(JointMenu *menu, const JointProblem *problem,
                         const JointPipeline *pipeline, SynthSchedule schedule,
                         JointProgram *made, GError **error);

#endif
