/* What searches over the same programs share (private to synth). */
#ifndef KILTER_SYNTH_EXACT_SPACE_H
#define KILTER_SYNTH_EXACT_SPACE_H

#include "synth/synth.h"

struct SynthSpace {
    const Graph *graph;
    const SynthPins *pins;
};

#endif
