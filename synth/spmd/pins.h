/* Pins as masks of forms (private to synth; synth/synth.h defines them). Without pins (NULL)
 * everything is allowed. */
#pragma once

#include "synth/spmd/forms.h"
#include "synth/spmd/spmd.h"

/* Forms that a tensor may be made in (or rest in, if no op makes it). */
FormSet pins_made(const SynthPins *pins, TensorId tensor);

/* Whether all of an op's operands are made and read in forms that the pins allow. */
bool pins_allow(const SynthPins *pins, const Graph *graph, OpId op, const Form *form);

/* Whether an operand of the op is pinned. */
bool pins_touch(const SynthPins *pins, const Graph *graph, OpId op);

/* Appends to a key everything that decides which rules of this op are allowed. */
void pins_describe(const SynthPins *pins, const Graph *graph, OpId op, GString *key);

/* Sets KILTER_ERROR_INPUT, which names the op and the pins of its operands under which it cannot
 * run; returns false. */
bool pins_fail(const SynthPins *pins, const Graph *graph, OpId op, GError **error);
