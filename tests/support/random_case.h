/* A random graph, cluster, program and plan, and its evaluation. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_CASE_H
#define KILTER_TESTS_SUPPORT_RANDOM_CASE_H

#include "tests/support/random_graph.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_program.h"
#include "tests/test.h"

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    Plan *plan;
} RandomCase;

static inline RandomCase random_case_new(uint32_t seed)
{
    enum { MAX_BLOCKS = 3, MAX_MACHINES = 5 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GError) error = NULL;
    RandomCase c;

    c.graph = random_graph(rand, MAX_BLOCKS);
    c.cluster = random_cluster(rand, MAX_MACHINES);
    if (seed % 2)
        random_fit(rand, c.cluster);
    c.view = cluster_view(c.cluster,
                          g_rand_boolean(rand) ? GRANULARITY_MACHINE : GRANULARITY_GPU);
    Program *program = random_program(rand, c.graph);
    program_check(program, c.graph, &error);
    assert_no_error(error);
    c.plan = random_plan(rand, c.graph, c.view, program);
    return c;
}

static inline void random_case_free(RandomCase *c)
{
    plan_free(c->plan);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
}

static inline SimReport *random_case_evaluate(const RandomCase *c, const char *fidelity,
                                              const SimOptions *options)
{
    g_autoptr(GError) error = NULL;
    SimReport *report =
        sim_evaluate_with(c->plan, c->graph, c->view, fidelity, options, &error);

    assert_no_error(error);
    return report;
}

#endif
