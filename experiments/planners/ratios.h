/* Ratios by a rule (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_RATIOS_H
#define KILTER_EXPERIMENTS_PLANNERS_RATIOS_H

#include "data/data.h"

/* By number of GPUs, by a GPU's memory, and by speed. Caller frees. */
double *ratios_even(const ClusterView *view);
double *ratios_by_memory(const ClusterView *view);
double *ratios_proportional(const ClusterView *view);

/* The ratios that the option `ratios` pins, NULL if it pins none. Caller frees. */
double *ratios_pinned(const ClusterView *view, uint32_t choice);

/* Whether they differ by no more than what rounding errors do. */
bool ratios_same(const double *a, const double *b, uint32_t n);

#endif
