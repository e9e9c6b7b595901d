/* The search for programs at ratios by segment (private to synth). */
#pragma once

#include "synth/hap/alternation.h"

/* Alternates between the best program for ratios by segment and the best ratios by segment for this
 * program, from the ratios of the fastest programs met so far, and from plans in which some
 * segments are divided by speed and the others evenly. Takes the best plan with segments if it is
 * better than the best one without. */
bool segmented_search(Alternation *a, const double *proportional, const double *even,
                      GError **error);
