/* The common part of all menus of one model on one view (private to synth). */
#pragma once

#include "synth/amp/cost.h"
#include "synth/joint/joint.h"
#include "synth/pipeline/pipeline.h"

/* Equal machines; of machines with unlike GPUs, equal runs of neighbouring GPUs of one type. */
typedef struct {
    uint32_t n_machines, *machine; /* their numbers in `place` */
    uint32_t gpus;                 /* GPUs of each machine */
    uint32_t first;                /* first GPU of the first machine */
    uint32_t unit,
        /* GPUs per unit, which is a piece of a machine or several machines; number of units */
        n_units;
} JointKind;

/* The modes of recomputation that stages may have: none, and from the least to all. */
enum { JOINT_MODES = 5 };

struct JointMenu {
    const Graph *graph;
    const ClusterView *view;
    AmpCluster *cluster;
    AmpModel *model;
    GArray *kind; /* JointKind */
    /* first GPU of each machine, or of each run of equal GPUs in it, and the view's devices
     * after the last */
    GArray *place; /* uint32_t */
    /* the units of all kinds together have too many combinations for one search, which needs an
     * order of kinds */
    bool in_order;
    Recompute mode[JOINT_MODES];   /* without classes of which the model has no ops */
    bool is_worth[JOINT_MODES];    /* stages may have it */
    SynthAgain again[JOINT_MODES]; /* what each mode runs again */
    GHashTable *passes;    /* "kind tp samples" -> seconds, prefix sums over the layers */
    GPtrArray *inside;     /* JointInside found so far */
    const JointKeep *keep; /* of the next problem; NULL: any */
    /* problems promise SPMD programs, on groups of unlike devices and, in models with experts, on
     * all groups */
    bool promises;
    bool hosts; /* optimizer states lie on hosts, which update them */
};

/* The rows of a table of passes: the passes, the part of the backward that waits, and those of the
 * forward that modes run again. */
enum { JOINT_WEIGHTS = AMP_PASSES, JOINT_AGAIN, JOINT_ROWS = JOINT_AGAIN + JOINT_MODES };

/* An entry with rows of 0. */
JointEntry joint_entry_new(uint32_t n_layers, uint32_t dp, uint32_t tp);
/* Whether each mode is worth it by the seconds that it takes again and the bytes that it saves:
 * there are no two others that, each for a part of the layers, save as much in less time, and it
 * saves a 16th of what all do, as with each mode every pipeline is found once more. */
void joint_find_worth(const double *again_s, const double *less, bool *is_worth);
/* Whether a stage of all layers has the memory for all microbatches at once. */
bool joint_is_ample(const JointProblem *problem, const JointEntry *entry);
/* Whether a stage may recompute in this way. */
bool joint_may_recompute(const JointMenu *menu, uint32_t mode, bool recompute);

/* --- SPMD programs (synth/joint/inside.c, synth/joint/promise.c) --- */

/* Adds promises to groups, which have room for entries, and lowers the least unit-seconds to
 * those of any SPMD program. */
void joint_promise(const JointMenu *menu, JointProblem *problem);
/* The most entries that a group gets by a promise and its program. */
enum { JOINT_MOST_INSIDE = 1 + JOINT_MODES * JOINT_PROGRAMS };

/* How many devices of a stage need each byte that crosses the border in front of a layer. */
static inline double joint_copies(const JointEntry *entry, uint32_t layer)
{
    return entry->copies ? entry->copies[layer] : entry->tp;
}

/* The GPUs of a pipeline's stages, [stage * n_devices + place]: replica by replica. Caller
 * frees. */
uint32_t *joint_place(const JointMenu *menu, const JointProblem *problem,
                      const JointPipeline *pipeline);

/* The first layer of each run of layers, round by round, and the number of layers at the end:
 * [chunks * n_stages + 1]. The layers of a stage are divided into runs of about equal time. Caller
 * frees. */
uint32_t *joint_runs(const JointProblem *problem, const JointPipeline *pipeline);

/* [stage]: how far each stage is ahead, and late, with the memory that it has. Caller frees. */
SynthDepth *joint_depths(const JointProblem *problem, const JointPipeline *pipeline);

/* Sets the strategy that makes the pipeline's program; false if no strategy does, and *strategy has
 * all defaults. */
bool joint_strategy(const JointMenu *menu, const JointProblem *problem,
                    const JointPipeline *pipeline, Strategy *strategy);

/* The stages (JointKeep) of strategies that the target runs; without any, KILTER_ERROR_INPUT
 * gives a reason why it runs none. Free with g_array_unref. */
GArray *joint_keeps(const JointMenu *menu, const char *target, GError **error);
/* Whether the target runs stages that are kept under a schedule, and the pipeline. */
bool joint_way_is_for(const JointMenu *menu, const JointProblem *problem,
                      const JointWay *way, const char *target);
bool joint_is_for(const JointMenu *menu, const JointProblem *problem,
                  const JointPipeline *pipeline, const char *target);

/* Appends the groups (JointGroup), without entries. */
void joint_add_groups(JointMenu *menu, GArray *groups);

/* Fills `kind`. */
void joint_find_kinds(JointMenu *menu, bool coarse);

/* The line of an all-reduce of `bytes` over the replicas, when each of the tp devices of a replica
 * takes part in one at the same time. */
LinkCost synth_joint_line(const JointMenu *menu, const JointGroup *group, uint32_t dp,
                          uint32_t tp, double bytes);
