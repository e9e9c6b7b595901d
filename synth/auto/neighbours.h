/* Neighbours of a strategy: one or two of its degrees doubled or halved, or another technique. They
 * are for the degrees that no planner searches, those of context and expert parallelism, and for
 * what goes with them. The planner manual makes their plans. */
#pragma once

#include "synth/auto/technique.h"

/* The next neighbour of a strategy with given degrees whose changes the options leave open; *row, 0
 * at first, is where to go on; it may be the strategy itself. False: there is none. */
bool neighbour_next(const Strategy *at, const PlannerOptions *asked, TechniqueNeeds has,
                    uint32_t *row, Strategy *next);

/* The keys of a strategy that are not at their defaults, as words for --set; interned. */
const char *neighbour_words(const Strategy *strategy);
