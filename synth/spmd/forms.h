/* Sets of forms, and which of them a tensor may be held in (private to synth). */
#pragma once

#include "data/graph/rule.h"

typedef uint8_t FormSet; /* bit f: form f */
G_STATIC_ASSERT(FORM_MAX <= 8 * sizeof(FormSet));

static inline FormSet form_bit(Form form)
{
    return (FormSet)(1u << form);
}

/* Whether a tensor may be held in a form: sharded dims need units > 1, and indices have no partial
 * sums. */
bool form_can_hold(const Graph *graph, TensorId tensor, Form form);
/* All forms that the tensor may be held in. */
FormSet forms_of_tensor(const Graph *graph, TensorId tensor);
