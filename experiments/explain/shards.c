/* The shards of a plan that are cut unevenly. */
#include "experiments/explain/shards.h"

#include "data/base/json.h"

#include <string.h>

/* The part of the model that is cut in one way. */
typedef struct {
    const Plan *plan;
    const Graph *graph;
    const uint16_t *segment; /* [instance] */
    const Split *split;
    bool *seen; /* [tensor] */
} Cut;

static void note(const Cut *cut, TensorId id, Form form)
{
    if (form_is_gather(form) &&
        graph_tensor(cut->graph, id)->units[form_dim(form)] == cut->split->units &&
        cut->segment[(size_t)id * FORM_MAX + form_inside(form)] == cut->split->segment)
        cut->seen[id] = true;
}

static void note_instr(const Cut *cut, const Instr *instr)
{
    if (instr->kind != INSTR_COMPUTE) {
        note(cut, instr->tensor, instr->to);
        return;
    }
    const Op *op = graph_get_op(cut->graph, instr->op);
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
        note(cut, i < op->n_in ? op->in[i] : op->out[i - op->n_in], instr->form[i]);
}

/* Counts the forward tensors that the split cuts; *first: the first of them, parameters before
 * others, NULL without any. */
static uint32_t count_tensors(const Cut *cut, const char **first)
{
    const Program *program = cut->plan->program;
    uint32_t n = 0;
    *first = NULL;
    for (uint32_t i = 0; i < program->n; i++)
        note_instr(cut, &program->instr[i]);
    for (uint32_t k = 0; k < 2; k++)
        tensors_each (tensor, t, cut->graph) {
            if (!cut->seen[t] ||
                tensor->role != (k == 0 ? ROLE_PARAMETER : ROLE_ACTIVATION))
                continue;
            *first = *first ? *first : tensor->name;
            n++;
        }
    return n;
}

static bool shards_is_uneven(const Plan *plan, const Split *split)
{
    static const double visible = 1.05;
    const double *ratio = &plan->ratio[(size_t)split->segment * plan->n_devices];
    return any_of(j, plan->n_devices,
                  split->count[j] > ratio[j] * split->units * visible);
}

json_t *explain_shards(const Plan *plan, const Graph *graph)
{
    json_t *list = json_array();
    if (plan->program->n_groups > 0)
        return list;
    const uint32_t n_tensors = graph_n_tensors(graph);
    g_autofree uint16_t *segment = plan_segments(plan->program, graph, plan->segment);
    g_autofree bool *seen = g_new(bool, n_tensors);
    items_each (const Split, split, plan->split, plan->n_splits) {
        memset(seen, 0, n_tensors * sizeof *seen);
        const Cut cut = {plan, graph, segment, split, seen};
        const char *first;
        const uint32_t n = count_tensors(&cut, &first);
        json_array_append_new(
            list, json_pack("{s:i, s:I, s:o, s:b, s:s?, s:i}", "segment",
                            (int)split->segment, "units", (json_int_t)split->units,
                            "counts", json_integers(split->count, plan->n_devices),
                            "uneven", (int)shards_is_uneven(plan, split), "tensor", first,
                            "tensors", (int)n));
    }
    return list;
}
