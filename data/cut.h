/* Which splits a program needs (private to data). */
#ifndef KILTER_DATA_CUT_H
#define KILTER_DATA_CUT_H

#include "data/plan.h"

/* Order of a plan's splits. */
int plan_compare_splits(const void *a, const void *b);

/* Every split that the program needs, sorted, without counts. Caller frees. */
GArray *plan_needed_splits(const Plan *plan, const Graph *graph, const BatchForms *batch);

/* The splits of one instruction, appended to an array of Split. */
void plan_instr_splits(const Plan *plan, const Graph *graph, const BatchForms *batch,
                       const uint16_t *tensor_segment, const Instr *instr,
                       GArray *splits);

#endif
