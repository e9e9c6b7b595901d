/* The layout of a plan. */
#include "data/plan/layout.h"

#include "data/base/free.h"

bool plan_layout_init(PlanLayout *layout, const Plan *plan, const Graph *graph,
                      GError **error)
{
    const Program *program = plan->program;
    *layout = (PlanLayout){.plan = plan, .graph = graph};
    layout->group = program_groups(program, plan->n_devices, &layout->n_groups);
    for (uint32_t g = 0; g < layout->n_groups; g++)
        if (group_shards(&layout->group[g]) == plan->strategy.cp)
            layout->group[g].n_heads = plan->strategy.a2a_ranks;
    if (!batch_forms_of_program(program, graph, &layout->batch, error))
        return false;
    layout->instances = instances_new(program, graph, layout->batch);
    layout->segment = plan_segments(program, graph, plan->segment);
    return true;
}

CLEAR_DEFINE(plan_layout_clear, PlanLayout, layout, g_free(layout->segment),
             instances_free(layout->instances), batch_forms_free(layout->batch),
             program_groups_free(layout->group, layout->n_groups));

PlanCut plan_layout_cut(const PlanLayout *layout, uint32_t group, TensorId tensor,
                        Form form)
{
    KILTER_ASSERT(group < layout->n_groups);
    return plan_cut(layout->plan->program, layout->graph, layout->batch, group,
                    layout->segment[(size_t)tensor * FORM_MAX + form_inside(form)],
                    tensor, form);
}
