/* Plans that are proved after shrinking, for tests. */
#ifndef KILTER_TESTS_SUPPORT_SHRUNK_H
#define KILTER_TESTS_SUPPORT_SHRUNK_H

#include "exec/exec.h"
#include "tests/test.h"

/* On a small model of the same structure the plan computes what one device does. */
static inline void check_shrunk(const Plan *plan, const Graph *graph)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) shrunk = exec_shrink_plan(plan, graph, NULL, &small, &error);
    assert_no_error(error);
    g_autoptr(ExecBackend) backend = exec_reference_new(shrunk->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    exec_verify(backend, shrunk, small, 1, EXEC_TOLERANCE, &verdict, &error);
    assert_no_error(error);
    assert_true(verdict.right);
}

#endif
