/* Cuts: which part of a tensor each rank holds. Private to exec. */
#pragma once

#include "data/plan/layout.h"
#include "exec/backend.h"

typedef struct {
    PlanLayout layout;
    GArray *splits; /* of Split: every split that the program needs */
} ExecCuts;

/* Where all devices that share a sequence, by shards and positions, have experts or heads of their
 * own, some tensors are cut over the shards first, others over the positions: the parts are as many
 * only where experts and heads are a multiple of these devices, whose number it returns; 0: they
 * can be any number. */
uint32_t exec_even(const Strategy *strategy);

/* The cuts by the plan's splits, or, where the plan has none, by its rounded ratios. Fails as
 * plan_check_groups and batch_forms_new do. */
ExecCuts *exec_cuts_new(const Plan *plan, const Graph *graph, GError **error);
AUTOPTR(exec_cuts_free, ExecCuts)

/* Sets the shards [n_devices], without memory, of a group's instance, cut as the ops and tensors of
 * `segment` are. Ranks outside the group get empty shards. */
void exec_cut(const ExecCuts *cuts, uint32_t group, uint32_t microbatch, TensorId tensor,
              Form form, uint32_t segment, ExecShard *shard);
