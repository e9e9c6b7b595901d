/* The inputs of AMP's search for a model on a cluster, for tests. */
#ifndef KILTER_TESTS_SUPPORT_AMP_SETUP_H
#define KILTER_TESTS_SUPPORT_AMP_SETUP_H

#include "data/program/period.h"
#include "synth/synth.h"
#include "tests/support/plan_of.h"

typedef struct {
    Cluster *cluster;
    ClusterView *view;
    Graph *graph;
    AmpModel *model;
    AmpCluster *devices;
} AmpSetup;

/* The setup on a cluster, which it takes over. */
static inline AmpSetup amp_setup_on(Cluster *cluster, const char *model)
{
    GError *error = NULL;
    AmpSetup s = {.cluster = cluster, .view = cluster_view(cluster, GRANULARITY_GPU)};
    s.graph = model_build(model, cluster_gpus(cluster), NULL, &error);
    assert_no_error(error);
    s.model = synth_amp_model(s.graph, s.view, NULL, &error);
    assert_no_error(error);
    s.devices = synth_amp_cluster(s.view, &error);
    assert_no_error(error);
    assert_true(synth_amp_connect(s.devices, s.view, &error));
    return s;
}

/* The setup on a cluster with this name. */
static inline AmpSetup amp_setup_new(const char *model, const char *cluster)
{
    GError *error = NULL;
    Cluster *loaded = cluster_load(cluster, &error);
    assert_no_error(error);
    return amp_setup_on(loaded, model);
}

static inline void amp_setup_clear(AmpSetup *s)
{
    synth_amp_model_free(s->model);
    synth_amp_cluster_free(s->devices);
    graph_free(s->graph);
    cluster_view_free(s->view);
    cluster_free(s->cluster);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(AmpSetup, amp_setup_clear)

/* The strategy's program, all microbatches of it, with even shares. */
static inline Plan *amp_setup_plan(const AmpSetup *s, const AmpOptions *options,
                                   const AmpStrategy *strategy)
{
    GError *error = NULL;
    Program *program = synth_amp_program(s->graph, s->view, options, strategy, &error);
    assert_no_error(error);
    program_whole(&program);
    return plan_of(s->graph, s->view->n_devices, false, program);
}

#endif
