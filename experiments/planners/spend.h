/* Programs that fit where the fastest one does not (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_SPEND_H
#define KILTER_EXPERIMENTS_PLANNERS_SPEND_H

#include "experiments/planners/alternation.h"

/* From ratios by speed and even ones: those whose memory is limited (ration.h), or, where none of
 * them is an improvement once rounded, charged for. time_s, fractional_s: the time of the fastest program, which does not
 * fit, and the same before rounding. */
bool spend_memory(Alternation *a, const double *proportional, const double *even,
                  double time_s, double fractional_s, GError **error);

#endif
