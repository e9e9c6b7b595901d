/* Plans that are proved by running them as they are, for tests. */
#pragma once

#include "exec/exec.h"
#include "tests/support/made_plan.h"

/* The plan of `planner` under "key=value" options computes what one device does, on data drawn from
 * `seed`; `what` says in a failure which model it is. */
static inline void check_proved_on(uint64_t seed, const char *planner, const char *model,
                                   const char *cluster, const char *set, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_auto(Made) made = make(planner, model, cluster, set, &error);
    g_auto(ExecVerdict) verdict = {0};
    if (made.plan) {
        g_autoptr(ExecBackend) backend = exec_reference_new(made.plan->n_devices);
        exec_verify(backend, made.plan, made.graph, seed, EXEC_TOLERANCE, &verdict,
                    &error);
    }
    if (error || !verdict.right)
        fail_msg("%s on %s with %s: %s", planner, what, set,
                 error ? error->message : verdict.where);
}

static inline void check_proved(const char *planner, const char *model,
                                const char *cluster, const char *set, const char *what)
{
    check_proved_on(3, planner, model, cluster, set, what);
}
