/* Which splits a program needs (private to data). */
#pragma once

#include "data/plan/plan.h"

/* Appends the splits of one instruction to an array of Split. */
void plan_instr_splits(const Plan *plan, const Graph *graph, const BatchForms *batch,
                       const uint16_t *instance_segment, const Instr *instr,
                       GArray *splits);
