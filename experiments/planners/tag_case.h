/* A model on a cluster in the space of TAG's strategies, ready to be searched (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_TAG_CASE_H
#define KILTER_EXPERIMENTS_PLANNERS_TAG_CASE_H

#include "balance/balance.h"
#include "synth/synth.h"

typedef struct {
    TagSpace *space;
    BatchForms *batch;
    SimQuick *quick;
    uint16_t *group; /* [op]: 0; the caller fills it, */
    double *time_s;  /* [op]: these too, */
    TagWork work;    /* and this */
} TagCase;

/* Of subsets that are alike one stands for all. The graph and the view must outlive it. */
bool tag_case_open(TagCase *c, const Graph *graph, const ClusterView *view,
                   const double *ratio, GError **error);
void tag_case_clear(TagCase *c);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TagCase, tag_case_clear)

#endif
