/* A program as a plan, for tests. */
#ifndef KILTER_TESTS_SUPPORT_PLAN_OF_H
#define KILTER_TESTS_SUPPORT_PLAN_OF_H

#include "data/data.h"
#include "tests/test.h"

/* A plan with even or other ratios that takes the program over. */
static inline Plan *plan_of(const Graph *graph, uint32_t n_devices, bool uneven,
                            Program *program)
{
    Plan *plan = plan_new();
    g_autoptr(GError) error = NULL;
    plan->program = program;
    plan->n_devices = n_devices;
    plan->n_segments = 1;
    plan->ratio = g_new(double, n_devices);
    double sum = 0;
    for (uint32_t j = 0; j < n_devices; j++)
        sum += plan->ratio[j] = uneven ? 1 + j % 3 : 1;
    for (uint32_t j = 0; j < n_devices; j++)
        plan->ratio[j] /= sum;
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
    plan_round(plan, graph, &error);
    assert_no_error(error);
    return plan;
}

#endif
