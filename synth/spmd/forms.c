/* Which forms a tensor may be held in. */
#include "synth/spmd/forms.h"

bool form_can_hold(const Graph *graph, TensorId tensor, Form form)
{
    KILTER_ASSERT(form < FORM_MAX);
    const Tensor *t = graph_tensor(graph, tensor);
    if (form_is_gather(form))
        return form_dim(form) < t->rank && t->units[form_dim(form)] > 1;
    return form != FORM_REDUCE || t->dtype != DTYPE_I64;
}

FormSet forms_of_tensor(const Graph *graph, TensorId tensor)
{
    FormSet forms = 0;
    for (Form form = 0; form < FORM_MAX; form++)
        if (form_can_hold(graph, tensor, form))
            forms |= (FormSet)(1u << form);
    return forms;
}
