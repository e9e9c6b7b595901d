#include "synth/exact/space.h"

SynthSpace *synth_space_new(const Graph *graph, const SynthPins *pins)
{
    SynthSpace *space = g_new(SynthSpace, 1);
    *space = (SynthSpace){graph, pins};
    return space;
}

void synth_space_free(SynthSpace *space)
{
    g_free(space);
}
