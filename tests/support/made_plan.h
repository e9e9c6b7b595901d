/* Plans as the command line makes them, for tests: from planner, model, cluster, and options in one
 * text. */
#ifndef KILTER_TESTS_SUPPORT_MADE_PLAN_H
#define KILTER_TESTS_SUPPORT_MADE_PLAN_H

#include <string.h>

#include "synth/planners/planner.h"
#include "tests/test.h"

typedef struct {
    Cluster *cluster;
    bool kept; /* the cluster is for others, too */
    ClusterView *view;
    Graph *graph;
    Plan *plan;
} Made;

static inline void made_clear(Made *made)
{
    plan_free(made->plan);
    graph_free(made->graph);
    cluster_view_free(made->view);
    if (!made->kept)
        cluster_free(made->cluster);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Made, made_clear)

/* Sets options from "key=value key=value". */
static inline bool set_options(PlannerOptions *options, const char *set, GError **error)
{
    planner_options_init(options);
    g_auto(GStrv) pair = g_strsplit(set, " ", -1);
    for (uint32_t i = 0; pair[i]; i++) {
        g_auto(GStrv) side = g_strsplit(pair[i], "=", 2);
        if (*pair[i] && !planner_options_set(options, side[0], side[1], error))
            return false;
    }
    return true;
}

/* A cluster by its name, read once: its file takes longer than a small plan. */
static inline Cluster *kept_cluster(const char *name, GError **error)
{
    static GHashTable *known;
    if (!known)
        known = g_hash_table_new(g_str_hash, g_str_equal);
    Cluster *cluster = g_hash_table_lookup(known, name);
    if (!cluster && (cluster = cluster_load(name, error)))
        g_hash_table_insert(known, g_strdup(name), cluster);
    return cluster;
}

/* The plan of `planner` on single GPUs; if it is refused, an error and no plan. */
static inline Made make(const char *planner, const char *model, const char *cluster,
                        const char *set, GError **error)
{
    Made made = {.cluster = kept_cluster(cluster, error), .kept = true};
    if (!made.cluster)
        return made;
    made.view = cluster_view(made.cluster, GRANULARITY_GPU);
    PlannerOptions options;
    if (set_options(&options, set, error))
        made.plan = planner_plan(planner_find(planner, NULL), model, cluster, made.view,
                                 &options, &made.graph, error);
    return made;
}

/* As `make`, for plans that must not be refused. */
static inline Made made_plan(const char *planner, const char *model, const char *cluster,
                             const char *set)
{
    g_autoptr(GError) error = NULL;
    const Made made = make(planner, model, cluster, set, &error);
    assert_no_error(error);
    return made;
}

#endif
