/* Choices of an op: the states of its tensors, its halves, and the arcs between states. */
#include "data/base/free.h"
#include "synth/hap/exact/transition.h"

/* Forms in which the gradient of an output may arrive; Identity also stands for "none" and for the
 * loss's seed. */
static FormSet gradient_arrivals(const Graph *graph, TensorId tensor)
{
    TensorId dy = graph_gradient(graph, tensor);
    bool seed = dy == GRAPH_NONE || graph_tensor(graph, dy)->role == ROLE_INPUT;
    return seed ? form_bit(FORM_IDENTITY) : forms_of_tensor(graph, dy);
}

Range range_of(const Graph *graph, TensorId tensor)
{
    Range range = {0};
    FormSet forms = forms_of_tensor(graph, tensor),
            gradients = gradient_arrivals(graph, tensor);
    for (Form form = 0; form < FORM_MAX; form++) {
        if (forms >> form & 1u) {
            range.form_at[form] = (uint8_t)range.n_forms;
            range.form[range.n_forms++] = form;
        }
        if (gradients >> form & 1u)
            range.gradient[range.n_gradients++] = form;
    }
    range.n = range.n_forms * range.n_gradients;
    return range;
}

void choices_inputs(const Choices *c, uint32_t in, Held held[TRANSITION_IN])
{
    KILTER_ASSERT(in < c->n_in);
    held[0] = range_held(&c->in[0], c->same ? in : in / c->in[1].n);
    held[1] = range_held(&c->in[1], c->same ? in : in % c->in[1].n);
}

static const Range nothing = {.n = 1, .n_forms = 1, .n_gradients = 1};

Choices *choices_new(const Pricer *pricer, const OpView *view,
                     const bool survives[TRANSITION_IN], const bool lives[TRANSITION_OUT],
                     GError **error)
{
    Choices *c = g_new0(Choices, 1);
    c->pricer = pricer;
    c->view = *view;
    if (!op_view_find(pricer, &c->view, error)) {
        op_view_clear(&c->view);
        g_free(c);
        return NULL;
    }
    c->op = graph_get_op(pricer->graph, view->op);
    g_assert(c->op->n_out <= TRANSITION_OUT);
    c->same = view->n_in == 2 && view->tensor[0] == view->tensor[1];
    c->n_to = 1;
    for (uint32_t i = 0; i < TRANSITION_IN; i++) {
        c->in[i] = i < view->n_in ? range_of(pricer->graph, view->tensor[i]) : nothing;
        c->survives[i] = survives[i] && !(c->same && i == 0);
        c->n_to *= c->survives[i] ? c->in[i].n : 1;
    }
    for (uint32_t o = 0; o < TRANSITION_OUT; o++) {
        c->out[o] = o < c->op->n_out ? range_of(pricer->graph, c->op->out[o]) : nothing;
        c->lives[o] = lives[o];
        c->n_to *= lives[o] ? c->out[o].n : 1;
    }
    c->n_in = c->same ? c->in[0].n : c->in[0].n * c->in[1].n;
    c->halves = g_array_new(FALSE, FALSE, sizeof(Half));
    c->groups = g_array_new(FALSE, FALSE, sizeof(Group));
    c->found = g_array_new(FALSE, TRUE, sizeof(Found));
    c->lists = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    c->arcs.to = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    c->arcs.least = g_array_new(FALSE, FALSE, sizeof(double));
    c->first_arc = g_new0(uint32_t, c->n_in + 1);
    choices_enumerate(c);
    c->elimination = elimination_new(c);
    choices_price_halves(c);
    choices_price_arcs(c);
    return c;
}

void choices_price(Choices *c, const Pricer *pricer)
{
    c->pricer = pricer;
    index_empty(&c->asked);
    g_array_set_size(c->found, 0);
    g_ptr_array_set_size(c->lists, 0);
    op_view_price(pricer, &c->view);
    choices_price_halves(c);
    choices_price_arcs(c);
}

FREE_DEFINE(choices_free, Choices, c, op_view_clear(&c->view),
            unref_arrays(c->halves, c->groups), elimination_free(c->elimination),
            unref_arrays(c->arcs.to, c->arcs.least), g_free(c->first_arc),
            index_clear(&c->asked), g_array_unref(c->found), g_ptr_array_unref(c->lists));
