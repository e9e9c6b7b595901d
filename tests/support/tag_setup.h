/* Random strategies of TAG, for tests. */
#ifndef KILTER_TESTS_SUPPORT_TAG_SETUP_H
#define KILTER_TESTS_SUPPORT_TAG_SETUP_H

#include "data/data.h"
#include "sim/sim.h"
#include "synth/synth.h"
#include "tests/test.h"

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    BatchForms *batch;
    TagSpace *space;
    uint16_t *group;
    double *time_s;
    TagWork work;
} Setup;

static inline void setup_clear(Setup *s)
{
    synth_tag_space_free(s->space);
    batch_forms_free(s->batch);
    cluster_view_free(s->view);
    cluster_free(s->cluster);
    graph_free(s->graph);
    g_free(s->group);
    g_free(s->time_s);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

/* Random op groups: runs of neighbours, with backward ops and updates separate from their forward
 * ops. */
static inline Setup setup_new(const char *model, const char *cluster, uint32_t n_groups,
                              GRand *rand)
{
    Setup s = {0};
    g_autoptr(GError) error = NULL;
    s.graph = model_build(model, 1, NULL, &error);
    assert_no_error(error);
    s.cluster = cluster_load(cluster, &error);
    assert_no_error(error);
    s.view = cluster_view(s.cluster, GRANULARITY_GPU);
    s.batch = batch_forms_new(s.graph, &error);
    assert_no_error(error);
    s.space = synth_tag_space(s.view, false, &error);
    assert_no_error(error);
    const uint32_t n = graph_n_ops(s.graph);
    s.group = g_new(uint16_t, n);
    s.time_s = g_new(double, n);
    for (OpId id = 0; id < n; id++) {
        s.group[id] =
            (uint16_t)(g_rand_int_range(rand, 0, 4)
                           ? id * n_groups / n
                           : (uint32_t)g_rand_int_range(rand, 0, (gint32)n_groups));
        s.time_s[id] = g_rand_double(rand);
    }
    s.work = (TagWork){.graph = s.graph,
                       .batch = s.batch,
                       .n_groups = n_groups,
                       .group = s.group,
                       .time_s = s.time_s};
    return s;
}

static inline Program *random_strategy(const Setup *s, GRand *rand, bool all_groups)
{
    g_autofree uint16_t *action = g_new(uint16_t, s->work.n_groups);
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(s->graph);
    for (uint32_t i = 0; i < s->work.n_groups; i++)
        action[i] = (uint16_t)g_rand_int_range(rand, 0, (gint32)s->space->n_actions);
    synth_tag_place(s->space, &s->work, action, placement);
    return synth_tag_program(s->space, &s->work, placement, all_groups);
}

/* The time of a plan on links without sharing, as in TAG's searches. */
static inline double simulated_s(const Setup *s, const Plan *plan, const char *fidelity)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    sim_options_init(&options);
    sim_options_set(&options, "network", "crossbar", NULL);
    g_autoptr(SimReport) report =
        sim_evaluate_with(plan, s->graph, s->view, fidelity, &options, &error);
    assert_no_error(error);
    return report->iteration_time_s;
}

#endif
