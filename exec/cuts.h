/* Cuts: which part of a tensor each rank has. Private to exec. */
#ifndef KILTER_EXEC_CUTS_H
#define KILTER_EXEC_CUTS_H

#include "exec/backend.h"

typedef struct {
    PlanLayout layout;
    GArray *splits; /* Split: every one that the program needs */
} ExecCuts;

/* By the plan's splits and, where it has none, its ratios rounded. Errors as plan_check_groups and
 * batch_forms_new. */
ExecCuts *exec_cuts_new(const Plan *plan, const Graph *graph, GError **error);
void exec_cuts_free(ExecCuts *cuts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecCuts, exec_cuts_free)

/* Shards [n_devices] of a group's instance as an op or tensor of `segment` is cut, without memory;
 * ranks that are not in the group get empty ones. */
void exec_cut(const ExecCuts *cuts, uint32_t group, uint32_t microbatch, TensorId tensor,
              Form form, uint32_t segment, ExecShard *shard);

#endif
