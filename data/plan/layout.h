/* The layout of a plan over devices: its groups, the dims of the batch, and for every instance
 * of a tensor the segment whose ratios cut it. Simulators (shares) and replays (elements) both
 * use it. */
#pragma once

#include "data/plan/plan.h"

typedef struct {
    const Plan *plan;
    const Graph *graph;
    uint32_t n_groups;
    DeviceGroup *group;
    BatchForms *batch; /* NULL: the batch is not cut */
    Instances *instances;
    uint16_t *segment; /* [tensor * FORM_MAX + form]: plan_segments() */
} PlanLayout;

/* The plan's groups must have been checked. KILTER_ERROR_INPUT if its batch cannot be cut. */
bool plan_layout_init(PlanLayout *layout, const Plan *plan, const Graph *graph,
                      GError **error);
void plan_layout_clear(PlanLayout *layout);

/* How a group's instance of a tensor is cut, by the ratios of its own segment. */
PlanCut plan_layout_cut(const PlanLayout *layout, uint32_t group, TensorId tensor,
                        Form form);
