/* Plans, and the segments whose ratios cut their tensors. */
#include "data/plan/plan.h"
#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/order.h"
#include "data/base/sets.h"
#include "data/plan/fidelity.h"

#include <math.h>
#include <stdlib.h>

Plan *plan_new(void)
{
    Plan *plan = g_new0(Plan, 1);
    strategy_init(&plan->strategy);
    return plan;
}

FREE_DEFINE(plan_free, Plan, plan,
            free_each(plan->model, plan->content, plan->cluster, plan->cluster_text,
                      plan->planner, plan->maker, plan->version, plan->target,
                      plan->options, plan->revision, plan->exports, plan->any_why),
            program_free(plan->program), free_each(plan->ratio, plan->segment),
            free_column(plan->split, plan->n_splits, count),
            free_each(plan->split, plan->memory_bytes, plan->runtime, plan->misfit,
                      plan->bound_over),
            let_go(plan->bounds, g_array_unref));

const char *plan_fidelity(const Plan *plan)
{
    Fidelity first = 0;
    if (!program_is_spmd(plan->program))
        while (!fidelity_can(fidelity_name(first), FIDELITY_GROUPS))
            first++;
    return fidelity_name(first);
}

void plan_add_bound(Plan *plan, double bound_s, const char *over)
{
    g_assert(bound_s > 0 && over);
    const PlanBound bound = {bound_s, over};
    if (!plan->bounds)
        plan->bounds = g_array_new(FALSE, FALSE, sizeof(PlanBound));
    g_array_append_val(plan->bounds, bound);
}

void plan_drop_proofs(Plan *plan)
{
    plan->lower_bound_s = 0;
    plan->fractional_time_s = 0;
    g_clear_pointer(&plan->bound_over, g_free);
    g_clear_pointer(&plan->bounds, g_array_unref);
    plan->certificate = CERTIFICATE_NONE;
    plan->optimal = false;
}

double plan_rounding_loss(const Plan *plan)
{
    return plan->fractional_time_s > 0 && isfinite(plan->iteration_time_s)
               ? plan->iteration_time_s / plan->fractional_time_s - 1
               : 0;
}

double plan_gap(const Plan *plan)
{
    if (!(plan->lower_bound_s > 0))
        return INFINITY;
    return (plan->iteration_time_s - plan->lower_bound_s) / plan->lower_bound_s;
}

#define CERTIFICATE_NAME(id, name, text) name,
NAMES_LIST(certificate_name, Certificate, CERTIFICATES,
           CERTIFICATE_TABLE(CERTIFICATE_NAME))

#define CERTIFICATE_TEXT(id, name, text) text,
NAMES_LIST(certificate_text, Certificate, CERTIFICATES,
           CERTIFICATE_TABLE(CERTIFICATE_TEXT))

static uint16_t *tensor_segments(const Graph *graph, const uint16_t *segment)
{
    const uint32_t n_tensors = graph_n_tensors(graph);
    uint16_t *result = g_new0(uint16_t, n_tensors);
    if (!segment)
        return result;
    g_autofree bool *seen = g_new0(bool, n_tensors);
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in; i++) {
            if (!seen[op->in[i]])
                result[op->in[i]] = segment[id];
            seen[op->in[i]] = true;
        }
        for (uint32_t i = 0; i < op->n_out; i++) {
            result[op->out[i]] = segment[id];
            seen[op->out[i]] = true;
        }
    }
    return result;
}

static size_t instance_of(TensorId tensor, Form form)
{
    KILTER_ASSERT(form_inside(form) < FORM_MAX);
    return (size_t)tensor * FORM_MAX + form_inside(form);
}

/* Calls `each` for every sharded operand of every computation, in program order. */
static void each_sharded(const Program *program, const Graph *graph,
                         void (*each)(OpId op, size_t instance, bool made, void *data),
                         void *data)
{
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(graph, instr->op);
        for (uint32_t f = 0; f < op->n_in + op->n_out; f++) {
            bool made = f >= op->n_in;
            if (form_is_gather(instr->form[f]))
                each(
                    instr->op,
                    instance_of(made ? op->out[f - op->n_in] : op->in[f], instr->form[f]),
                    made, data);
        }
    }
}

typedef struct {
    const uint16_t *of_op;
    uint16_t *segment; /* [instance] */
    bool *known;
} Segments;

static void set_segment(OpId op, size_t instance, bool made, void *data)
{
    Segments *s = data;
    if (made || !s->known[instance])
        s->segment[instance] = s->of_op[op];
    s->known[instance] = true;
}

uint16_t *plan_segments(const Program *program, const Graph *graph,
                        const uint16_t *segment)
{
    const size_t n = (size_t)graph_n_tensors(graph) * FORM_MAX;
    uint16_t *result = g_new0(uint16_t, n);
    bool one = true;
    for (OpId id = 0; segment && id < graph_n_ops(graph) && one; id++)
        one = segment[id] == 0;
    if (one)
        return result;
    g_autofree uint16_t *of_tensor = tensor_segments(graph, segment);
    g_autofree bool *known = g_new0(bool, n);
    for (size_t i = 0; i < n; i++)
        result[i] = of_tensor[i / FORM_MAX];
    Segments s = {segment, result, known};
    each_sharded(program, graph, set_segment, &s);
    return result;
}

typedef struct {
    OpId *above;  /* [op]: an op towards the least op of its set */
    OpId *reader; /* [instance] an op that holds it sharded */
} Ties;

static void tie(OpId op, size_t instance, bool made, void *data)
{
    (void)made;
    Ties *t = data;
    if (t->reader[instance] == GRAPH_NONE)
        t->reader[instance] = op;
    OpId a = set_find(t->above, op), b = set_find(t->above, t->reader[instance]);
    t->above[MAX(a, b)] = MIN(a, b);
}

static void plan_mark(OpId op, size_t instance, bool made, void *data)
{
    (void)instance, (void)made;
    ((bool *)data)[op] = true;
}

bool *plan_sharded_ops(const Program *program, const Graph *graph)
{
    bool *sharded = g_new0(bool, graph_n_ops(graph));
    each_sharded(program, graph, plan_mark, sharded);
    return sharded;
}

OpId *plan_ties(const Program *program, const Graph *graph)
{
    const size_t n = (size_t)graph_n_tensors(graph) * FORM_MAX;
    g_autofree OpId *reader = g_new(OpId, n);
    OpId *above = g_new(OpId, graph_n_ops(graph));
    for (size_t i = 0; i < n; i++)
        reader[i] = GRAPH_NONE;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        above[id] = id;
    Ties ties = {above, reader};
    each_sharded(program, graph, tie, &ties);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        above[id] = set_find(above, id);
    return above;
}

ORDER_DEFINE(plan_compare_splits, Split, ASCENDING(group), ASCENDING(kind),
             ASCENDING(segment), ASCENDING(units));

const Split *plan_find_split(const Plan *plan, const Split *key)
{
    return plan->n_splits ? bsearch(key, plan->split, plan->n_splits, sizeof *key,
                                    plan_compare_splits)
                          : NULL;
}
