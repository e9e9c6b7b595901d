/* The setup shared by searches and list schedulers in TAG's space. */
#include "experiments/planners/tag_case.h"

#include <string.h>

bool tag_case_open(TagCase *c, const Graph *graph, const ClusterView *view,
                   const double *ratio, GError **error)
{
    c->space = synth_tag_space(view, true, error);
    c->batch = c->space ? batch_forms_new(graph, error) : NULL;
    c->quick = c->batch ? sim_quick_new(graph, view, ratio, c->space->n_groups,
                                        c->space->group, error)
                        : NULL;
    c->group = g_new0(uint16_t, graph_n_ops(graph) + 1);
    c->time_s = g_new0(double, graph_n_ops(graph) + 1);
    return c->quick != NULL;
}

void tag_case_clear(TagCase *c)
{
    sim_quick_free(c->quick);
    synth_tag_space_free(c->space);
    batch_forms_free(c->batch);
    g_free(c->group);
    g_free(c->time_s);
}

const char *tag_recompute(const PlannerOptions *options, uint32_t i)
{
    static const char *const in_turn[] = {"none", "selective", "full"};
    const char *asked = options->strategy.recompute;
    if (g_strcmp0(asked, "auto") == 0)
        return i < G_N_ELEMENTS(in_turn) ? in_turn[i] : NULL;
    return i > 0 ? NULL : asked ? asked : "none";
}

bool tag_modes(const Graph *graph, const char *recompute, Recompute **modes,
               GError **error)
{
    const uint32_t all[] = {0, graph_n_layers(graph)};
    const Strategy strategy = {.recompute = recompute};
    *modes = NULL;
    return strcmp(recompute, "none") == 0 ||
           strategy_layer_modes(&strategy, graph, 1, all, modes, error);
}
