/* State that searches over the same programs share (private to synth). */
#ifndef KILTER_SYNTH_EXACT_SPACE_H
#define KILTER_SYNTH_EXACT_SPACE_H

#include "synth/exact/states.h"

struct SynthSpace {
    const Graph *graph;
    const SynthPins *pins;
    /* without a charge for memory and with one; NULL until a search asks */
    States *states[2];
};

/* The states for a pricer of the space's graph and pins, at its prices. Fails as states_new
 * does. */
States *space_states(SynthSpace *space, const Pricer *pricer, GError **error);

#endif
