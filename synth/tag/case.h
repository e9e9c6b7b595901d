/* A model on a cluster in the space of TAG's strategies, to be searched (private to synth). */
#pragma once

#include "balance/balance.h"
#include "synth/question/planner_options.h"
#include "synth/tag/search.h"
#include "synth/tag/tag.h"

typedef struct {
    TagSpace *space;
    BatchForms *batch;
    SimQuick *quick;
    uint16_t *group; /* [op]: 0 at first; the caller fills it */
    double *time_s;  /* [op]: filled by the caller */
    TagWork work;    /* filled by the caller */
} TagCase;

/* One subset stands for all equal ones. The graph and the view must outlive it. */
bool tag_case_open(TagCase *c, const Graph *graph, const ClusterView *view,
                   const double *ratio, GError **error);
void tag_case_clear(TagCase *c);

/* Adds to time_s [op] the times of the whole batch, as means over the devices. */
void tag_mean_times(const Graph *graph, const TagSpace *space, SimQuick *quick,
                    double *time_s);
/* The devices, all with the average rate. Caller frees. */
Device *tag_devices_alike(const ClusterView *view);

/* The number of microbatches that the options ask for, at least 1, and the forms of a batch that is
 * cut so. KILTER_ERROR_INPUT if it cannot be. */
uint32_t tag_microbatches(const PlannerOptions *options);
BatchForms *tag_batch(const PlannerOptions *options, const Graph *graph, GError **error);

/* The recomputation that the option `recompute` asks of planners of op groups, the i-th of those
 * tried until a plan fits: itself, or for auto none, selective, full. NULL: that was all. */
const char *tag_recompute(const PlannerOptions *options, uint32_t i);
/* The mode of each layer, allocated; NULL where nothing is computed again. KILTER_ERROR_INPUT. */
bool tag_modes(const Graph *graph, const char *recompute, Recompute **modes,
               GError **error);
/* The network of the option `priors`, which is not uniform. KILTER_ERROR_INPUT. */
TagNet *tag_network(const PlannerOptions *options, GError **error);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TagCase, tag_case_clear)
