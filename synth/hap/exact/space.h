/* The state shared by searches over the same programs (private to synth). */
#pragma once

#include "synth/hap/exact/states.h"
#include "synth/hap/search.h"

struct SynthSpace {
    const Graph *graph;
    const SynthPins *pins;
    const uint16_t *segment; /* [op]; NULL: one segment, and n_segments is 0 */
    uint32_t n_segments;
    bool large; /* a search asked for more states than can be tried */
    /* [0] without and [1] with a charge for memory; NULL until a search asks for them */
    States *states[2];
};

/* The states for a pricer of the space's graph and pins, at its prices. Fails as states_new
 * does. */
States *space_states(SynthSpace *space, const Pricer *pricer, GError **error);
