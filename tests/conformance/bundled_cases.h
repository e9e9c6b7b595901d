/* Every configuration of a bundled experiment can be planned and simulated, or does not fit the
 * memory: none is refused. */
#ifndef KILTER_TESTS_CONFORMANCE_BUNDLED_CASES_H
#define KILTER_TESTS_CONFORMANCE_BUNDLED_CASES_H

#include "experiments/sweep/experiment.h"
#include "tests/test.h"

static inline void assert_plannable(const char *name, const Configuration *c)
{
    g_autoptr(GError) error = NULL;
    g_auto(Evaluation) evaluation = {0};
    if (!configuration_evaluate(c, &evaluation, &error) &&
        !g_error_matches(error, KILTER_ERROR, KILTER_ERROR_INFEASIBLE))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s on %s with %s: %s", name, c->model,
                     c->cluster_name, c->planner->name, error->message);
}

/* Of the experiments whose name starts with `prefix`; returns how many different ones
 * there are. */
static inline uint32_t assert_all_plannable(const char *prefix)
{
    g_auto(GStrv) names = path_list("experiments", ".yaml");
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **name = names; *name; name++) {
        if (!g_str_has_prefix(*name, prefix))
            continue;
        g_autoptr(GError) error = NULL;
        g_autoptr(Experiment) experiment = experiment_load(*name, NULL, &error);
        assert_no_error(error);
        for (uint32_t i = 0; i < experiment_count(experiment); i++) {
            const Configuration *c = experiment_at(experiment, i);
            if (c->planner && g_hash_table_add(seen, g_strdup(c->hash)))
                assert_plannable(*name, c);
        }
    }
    return g_hash_table_size(seen);
}

#endif
