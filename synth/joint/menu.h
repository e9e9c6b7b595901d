/* The common part of all menus of one model on one view (private to synth). */
#ifndef KILTER_SYNTH_JOINT_MENU_H
#define KILTER_SYNTH_JOINT_MENU_H

#include "synth/amp/cost.h"
#include "synth/joint/joint.h"

/* Equal machines. */
typedef struct {
    uint32_t n_machines, *machine;
    uint32_t gpus;  /* GPUs of each machine */
    uint32_t first; /* first GPU of the first machine */
    uint32_t unit,
        /* GPUs per unit, which is a piece of a machine or several machines; number of units */
        n_units;
} JointKind;

struct JointMenu {
    const Graph *graph;
    const ClusterView *view;
    AmpCluster *cluster;
    AmpModel *model;
    GArray *kind; /* JointKind */
    bool
        in_order; /* the units of all kinds together have too many combinations for one search */
    GHashTable *passes; /* "kind tp samples" -> seconds, prefix sums over the layers */
};

/* The GPUs of a pipeline's stages, [stage * n_devices + place]: replica by replica. Caller frees. */
uint32_t *joint_place(const JointMenu *menu, const JointProblem *problem,
                      const JointPipeline *pipeline);

/* The first layer of each run of layers, round by round, and the number of layers at the end:
 * [chunks * n_stages + 1]. The layers of a stage are divided into runs of about equal time. Caller
 * frees. */
uint32_t *joint_runs(const JointProblem *problem, const JointPipeline *pipeline);

/* [stage]: how far each stage is ahead, and late, with the memory that it has. Caller frees. */
SynthDepth *joint_depths(const JointProblem *problem, const JointPipeline *pipeline);

/* Appends the groups (JointGroup), without entries. */
void joint_add_groups(JointMenu *menu, GArray *groups);

/* Fills `kind`. */
void joint_find_kinds(JointMenu *menu, bool coarse);

/* The line of an all-reduce of `bytes` over the replicas, when each of the tp devices of a replica
 * takes part in one at the same time. */
LinkCost synth_joint_line(const JointMenu *menu, const JointGroup *group, uint32_t dp,
                          uint32_t tp, double bytes);

#endif
