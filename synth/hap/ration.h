/* Multipliers of the memory constraint, for hap's search and its certificate (private to
 * experiments). */
#pragma once

#include "synth/hap/search.h"

/* Approximates the best Lagrangian multipliers of memory at ratios `at` (lo and hi of the box;
 * upper_s and deadline_us apply), equal for all devices. memory_s: output, as in SynthOptions; all
 * 0 where memory does not matter. */
bool ration_multipliers(SynthSpace *space, const ClusterView *view, const SynthBox *at,
                        double *memory_s, GError **error);
