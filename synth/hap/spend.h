/* Programs that fit where the fastest one does not (private to synth). */
#pragma once

#include "synth/hap/alternation.h"

/* Searches from ratios by speed and from even ratios: for programs within the memory (ration.h) or,
 * where none of these is better once rounded, for programs whose memory is charged for. time_s,
 * fractional_s: the time of the fastest program, which does not fit, after and before rounding. */
bool spend_memory(Alternation *a, const double *proportional, const double *even,
                  double time_s, double fractional_s, GError **error);
