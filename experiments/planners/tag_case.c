/* The setup that searches and lists in TAG's space share. */
#include "experiments/planners/tag_case.h"

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
