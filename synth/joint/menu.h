/* What menus of one model on one view have in common (private to synth). */
#ifndef KILTER_SYNTH_JOINT_MENU_H
#define KILTER_SYNTH_JOINT_MENU_H

#include "synth/amp/cost.h"
#include "synth/joint/joint.h"

/* Equal machines. */
typedef struct {
    uint32_t n_machines, *machine;
    uint32_t gpus;  /* of each */
    uint32_t first; /* GPU of the first machine */
    uint32_t unit,
        n_units; /* GPUs of a unit: a piece of a machine, or several machines */
} JointKind;

struct JointMenu {
    const Graph *graph;
    const ClusterView *view;
    AmpCluster *cluster;
    AmpModel *model;
    AmpLayers *layers;
    GArray *kind;       /* JointKind */
    GHashTable *passes; /* "kind tp samples" -> seconds, sums over the layers before */
};

/* Fills `kind`. */
void joint_find_kinds(JointMenu *menu);

#endif
