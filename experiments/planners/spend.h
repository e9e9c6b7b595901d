/* Programs that fit where the fastest one does not (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_SPEND_H
#define KILTER_EXPERIMENTS_PLANNERS_SPEND_H

#include "experiments/planners/alternation.h"

/* From ratios by speed and even ones: those whose memory is limited (ration.h), or, where none of
 * them is an improvement once rounded, charged for. time_s: of the fastest program, which does not
 * fit. */
bool spend_memory(Alternation *a, const double *proportional, const double *even,
                  double time_s, GError **error);

#endif
