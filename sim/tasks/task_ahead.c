/* How far gathers of parameters run ahead of the layers that compute (SimOptions.prefetch).
 *
 * The parameters that a group gathers for one layer and microbatch, one after the other, are a
 * unit. A unit is released when the computations that read it have ended and its gradients are
 * reduced, as far as the program has come. The gathers of a unit wait for the release of the one
 * that lies `prefetch` + 1 before it, as in PyTorch's FSDP, which gathers at most one layer beside
 * the one that computes. */
#include "sim/tasks/task_lower.h"
#include "data/base/free.h"

typedef struct {
    uint32_t layer;
    uint16_t microbatch;
    /* first task and number of tasks of its last computation, and of the last reduction of its
     * gradients; n 0: none */
    uint32_t used, n_used, reduced, n_reduced;
} Unit;

struct TaskAhead {
    uint32_t *layer;    /* [tensor] */
    GArray **unit;      /* [group]: Unit */
    uint32_t *of;       /* [place * FORM_MAX + form]: 1 + the unit of a gathered instance; 0: none */
    uint32_t *of_layer; /* [group * n_layers + layer]: 1 + its last unit; 0: none */
    uint32_t n_groups, n_layers;
};

void task_ahead_init(Lower *lower)
{
    const SimCase *sim = lower->sim;
    const PlanLayout *layout = &sim->parts->layout;
    lower->ahead = NULL;
    if (lower->how->ahead == 0)
        return;
    TaskAhead *a = lower->ahead = g_new0(TaskAhead, 1);
    a->n_groups = layout->n_groups;
    a->n_layers = graph_n_layers(sim->graph);
    a->layer = graph_tensor_layers(sim->graph);
    a->unit = g_new(GArray *, a->n_groups);
    for (uint32_t g = 0; g < a->n_groups; g++)
        a->unit[g] = g_array_new(false, false, sizeof(Unit));
    a->of = g_new0(uint32_t, (size_t)layout->instances->n_places *FORM_MAX);
    a->of_layer = g_new0(uint32_t, (size_t)a->n_groups *MAX(a->n_layers, 1));
}

void task_ahead_clear(Lower *lower)
{
    TaskAhead *a = lower->ahead;
    if (!a)
        return;
    for (uint32_t g = 0; g < a->n_groups; g++)
        g_array_unref(a->unit[g]);
    free_each(a->unit, a->layer, a->of, a->of_layer, a);
}

static uint32_t *unit_of(const Lower *lower, const Instr *instr, TensorId tensor, Form form)
{
    return &lower->ahead->of[task_instance(lower, instr->group, instr->microbatch, tensor,
                                           form)];
}

static uint32_t *unit_of_layer(const TaskAhead *a, uint32_t group, uint32_t layer)
{
    KILTER_ASSERT(group < a->n_groups && layer < a->n_layers);
    return &a->of_layer[(size_t)group * a->n_layers + layer];
}

static bool gathers(const Lower *lower, const Instr *instr)
{
    const FormAxis axis = instr_axis(instr);
    return graph_tensor(lower->sim->graph, instr->tensor)->role == ROLE_PARAMETER &&
           form_is_gather(form_on(axis, instr->from)) &&
           !form_is_gather(form_on(axis, instr->to));
}

/* Adds the tasks whose end releases a unit to the dependencies of the next task. */
static void wait_for(Lower *lower, const Unit *unit)
{
    for (uint32_t i = 0; i < unit->n_used; i++)
        task_add_dep(lower, unit->used + i);
    for (uint32_t i = 0; i < unit->n_reduced; i++)
        task_add_dep(lower, unit->reduced + i);
}

void task_ahead_gather(Lower *lower, const Instr *instr)
{
    TaskAhead *a = lower->ahead;
    if (!a || !gathers(lower, instr))
        return;
    GArray *units = a->unit[instr->group];
    const uint32_t layer = a->layer[instr->tensor];
    const Unit *last = units->len ? &g_array_index(units, Unit, units->len - 1) : NULL;
    if (!last || last->layer != layer || last->microbatch != instr->microbatch) {
        const Unit fresh = {.layer = layer, .microbatch = instr->microbatch};
        g_array_append_val(units, fresh);
        *unit_of_layer(a, instr->group, layer) = units->len;
    }
    *unit_of(lower, instr, instr->tensor, instr->to) = units->len;
    if (units->len > lower->how->ahead)
        wait_for(lower,
                 &g_array_index(units, Unit, units->len - 1 - lower->how->ahead));
}

void task_ahead_use(Lower *lower, const Instr *instr, uint32_t first, uint32_t n)
{
    if (!lower->ahead)
        return;
    const Op *op = graph_get_op(lower->sim->graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const uint32_t unit = *unit_of(lower, instr, op->in[i], instr->form[i]);
        if (unit == 0)
            continue;
        Unit *of = &g_array_index(lower->ahead->unit[instr->group], Unit, unit - 1);
        of->used = first;
        of->n_used = n;
    }
}

void task_ahead_pass_on(Lower *lower, const Instr *instr)
{
    if (lower->ahead)
        *unit_of(lower, instr, instr->tensor, instr->to) =
            *unit_of(lower, instr, instr->tensor, instr->from);
}

void task_ahead_reduce(Lower *lower, const Instr *instr, uint32_t first, uint32_t n)
{
    TaskAhead *a = lower->ahead;
    if (!a || !task_reduces_gradient(lower->sim->graph, instr))
        return;
    const uint32_t unit = *unit_of_layer(a, instr->group, a->layer[instr->tensor]);
    if (unit == 0)
        return;
    Unit *of = &g_array_index(a->unit[instr->group], Unit, unit - 1);
    of->reduced = first;
    of->n_reduced = n;
}
