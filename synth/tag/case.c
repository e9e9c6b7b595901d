/* The setup shared by searches and list schedulers in TAG's space. */
#include "synth/tag/case.h"

#include <string.h>

#include "data/base/free.h"

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

CLEAR_DEFINE(tag_case_clear, TagCase, c, sim_quick_free(c->quick),
             synth_tag_space_free(c->space), batch_forms_free(c->batch),
             free_each(c->group, c->time_s));

void tag_mean_times(const Graph *graph, const TagSpace *space, SimQuick *quick,
                    double *time_s)
{
    const uint32_t n = space->view->n_devices;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        for (uint32_t j = 0; j < n; j++)
            time_s[id] += sim_quick_place_s(quick, space->single[j], id, 0) / n;
}

Device *tag_devices_alike(const ClusterView *view)
{
    Device *device = g_memdup2(view->device, view->n_devices * sizeof *device);
    const double sum = sum_over(double, j, view->n_devices, view->device[j].rate);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        device[j].rate = sum / view->n_devices;
        device[j].fitted = device[0].fitted;
        device[j].stretch = device[0].stretch;
    }
    return device;
}

uint32_t tag_microbatches(const PlannerOptions *options)
{
    return MAX(options->strategy.microbatches, 1);
}

BatchForms *tag_batch(const PlannerOptions *options, const Graph *graph, GError **error)
{
    const uint32_t n = tag_microbatches(options);
    g_autoptr(BatchForms) batch =
        n > 1 ? batch_forms_of_microbatches(graph, error) : batch_forms_new(graph, error);
    if (batch && batch->units % n != 0)
        return refused(
            error,
            "option 'microbatches': expected a divisor of the %u pieces of the batch, "
            "got %u",
            batch->units, n);
    return g_steal_pointer(&batch);
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
    if (strcmp(recompute, "none") == 0)
        return true;
    if (!strategy_layer_modes(&strategy, graph, 1, all, modes, error))
        return false;
    for (uint32_t l = 0; l < graph_n_layers(graph); l++)
        if ((*modes)[l] > RECOMPUTE_FULL) {
            g_autofree char *words = recompute_words((*modes)[l]);
            return refuse(error,
                          "option 'recompute': planners of op groups take none, "
                          "selective and full, not '%s'",
                          words);
        }
    return true;
}

TagNet *tag_network(const PlannerOptions *options, GError **error)
{
    g_autofree char *path = planner_options_path(options, "priors", error);
    return path ? tag_net_read(path, error) : NULL;
}
