/* Minimum cuts by Dinic's algorithm (1970) on integer capacities. Private to synth/tag. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* More than the sum of all capacities that can be cut. */
#define CUT_INFINITE (INT64_MAX / 4)

typedef struct Cut Cut;

/* An empty network; node 0 is the source, node 1 the sink. */
Cut *cut_new(uint32_t n_nodes);
void cut_free(Cut *cut);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Cut, cut_free)

void cut_arc(Cut *cut, uint32_t from, uint32_t to, int64_t capacity);

/* Finds the cut; *on_source_side: out, [node], of all minimum cuts the one with the fewest nodes on
 * the side of the source. Returns its capacity. */
int64_t cut_solve(Cut *cut, bool *on_source_side);
