#include "data/plan.h"

#include <math.h>
#include <stdlib.h>

Plan *plan_new(void)
{
    return g_new0(Plan, 1);
}

void plan_free(Plan *plan)
{
    if (!plan)
        return;
    g_free(plan->model);
    g_free(plan->cluster);
    g_free(plan->planner);
    g_free(plan->version);
    program_free(plan->program);
    g_free(plan->ratio);
    g_free(plan->segment);
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    g_free(plan->split);
    g_free(plan->memory_bytes);
    g_free(plan->misfit);
    g_free(plan);
}

double plan_gap(const Plan *plan)
{
    if (!(plan->lower_bound_s > 0))
        return INFINITY;
    return (plan->iteration_time_s - plan->lower_bound_s) / plan->lower_bound_s;
}

const char *certificate_name(Certificate certificate)
{
    static const char *const name[CERTIFICATES] = {
#define X(id, name, text) name,
        CERTIFICATE_TABLE(X)
#undef X
    };
    return name[certificate];
}

const char *certificate_text(Certificate certificate)
{
    static const char *const text[CERTIFICATES] = {
#define X(id, name, text) text,
        CERTIFICATE_TABLE(X)
#undef X
    };
    return text[certificate];
}

uint16_t *plan_tensor_segments(const Graph *graph, const uint16_t *segment)
{
    const uint32_t n_tensors = graph_n_tensors(graph);
    uint16_t *result = g_new0(uint16_t, n_tensors);
    if (!segment)
        return result;
    g_autofree bool *seen = g_new0(bool, n_tensors);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
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

int plan_compare_splits(const void *a, const void *b)
{
    const Split *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->batch != y->batch)
        return x->batch ? 1 : -1;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    return (x->units > y->units) - (x->units < y->units);
}

const Split *plan_find_split(const Plan *plan, const Split *key)
{
    return plan->n_splits ? bsearch(key, plan->split, plan->n_splits, sizeof *key,
                                    plan_compare_splits)
                          : NULL;
}
