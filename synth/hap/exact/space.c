/* The state graphs of a space, made when a search first asks for them. */
#include "synth/hap/exact/space.h"

#include "data/base/free.h"

SynthSpace *synth_space_new(const Graph *graph, const SynthPins *pins)
{
    SynthSpace *space = g_new(SynthSpace, 1);
    *space = (SynthSpace){.graph = graph, .pins = pins};
    return space;
}

SynthSpace *synth_space_of_segments(const Graph *graph, const SynthPins *pins,
                                    const uint16_t *segment, uint32_t n_segments)
{
    g_assert(segment && n_segments > 0);
    SynthSpace *space = synth_space_new(graph, pins);
    space->segment = segment;
    space->n_segments = n_segments;
    return space;
}

FREE_DEFINE(synth_space_free, SynthSpace, space,
            release_items(space->states, G_N_ELEMENTS(space->states), states_free));

States *space_states(SynthSpace *space, const Pricer *pricer, GError **error)
{
    g_assert(pricer->graph == space->graph && pricer->pins == space->pins);
    g_autoptr(GError) wrong = NULL;
    States **states = &space->states[pricer->charges];
    if (*states)
        states_price(*states, pricer);
    else
        *states = states_new(pricer, &wrong);
    space->large |= wrong && wrong->code == KILTER_ERROR_FAILED && !space->pins;
    if (wrong)
        g_propagate_error(error, g_steal_pointer(&wrong));
    return *states;
}

bool synth_space_is_large(const SynthSpace *space)
{
    return space->large;
}
