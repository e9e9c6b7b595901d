/* Which splits a program needs (private to data). */
#ifndef KILTER_DATA_PLAN_CUT_H
#define KILTER_DATA_PLAN_CUT_H

#include "data/plan/plan.h"

/* Appends the splits of one instruction to an array of Split. */
void plan_instr_splits(const Plan *plan, const Graph *graph, const BatchForms *batch,
                       const uint16_t *instance_segment, const Instr *instr,
                       GArray *splits);

#endif
