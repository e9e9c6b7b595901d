/* Plans to verify: random ones, and those of the planners for shrunk models. */
#ifndef KILTER_TESTS_CONFORMANCE_VERIFY_CASES_H
#define KILTER_TESTS_CONFORMANCE_VERIFY_CASES_H

#include "exec/exec.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_program.h"
#include "tests/test.h"

/* A random graph, and a random program on a random cluster, with random ratios and splits in one or
 * two segments. */
typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    Plan *plan;
} RandomCase;

enum { MOST_RANDOM_DEVICES = 5 };

static inline RandomCase random_case(uint32_t seed)
{
    GRand *random = g_rand_new_with_seed(seed);
    RandomCase c = {.graph = random_graph(random, 4),
                    .cluster = random_cluster(random, MOST_RANDOM_DEVICES)};
    c.view = cluster_view(c.cluster, GRANULARITY_MACHINE);
    c.plan = random_plan(random, c.graph, c.view, random_program(random, c.graph));
    g_rand_free(random);
    return c;
}

static inline void random_case_clear(RandomCase *c)
{
    plan_free(c->plan);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
}

/* Fails the test, naming the case, unless the plan is right. Returns the error. */
static inline double check_right(const char *name, const Plan *plan, const Graph *graph)
{
    g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    g_autoptr(GError) error = NULL;
    if (!exec_verify(backend, plan, graph, 1, EXEC_TOLERANCE, &verdict, &error))
        fail_msg("%s: %s", name, error->message);
    if (!verdict.right)
        fail_msg("%s: error %g of %s on rank %u; first wrong: %s, %s", name,
                 verdict.error, verdict.where, verdict.rank, verdict.wrong_tensor,
                 verdict.wrong_instr);
    assert_true(verdict.n_tensors > 0);
    if (2 * verdict.n_zero > verdict.n_tensors)
        fail_msg("%s: %u of %u tensors are zero", name, verdict.n_zero,
                 verdict.n_tensors);
    return verdict.error;
}

static inline void check_random_cases(uint32_t first, uint32_t n)
{
    for (uint32_t seed = first; seed < first + n; seed++) {
        RandomCase c = random_case(seed);
        g_autofree char *name = g_strdup_printf("random case %u", seed);
        check_right(name, c.plan, c.graph);
        random_case_clear(&c);
    }
}

#endif
