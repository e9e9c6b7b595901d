/* SPMD programs with random ratios for the joint search, for tests. */
#ifndef KILTER_TESTS_SUPPORT_SPMD_FINDER_H
#define KILTER_TESTS_SUPPORT_SPMD_FINDER_H

#include "data/data.h"
#include "synth/synth.h"
#include "tests/test.h"

typedef struct {
    GRand *rand;
    const Graph *graph;
    const Cluster *cluster;
    GPtrArray *view; /* ClusterView, of all programs so far */
    uint32_t found;
} SpmdFinder;

/* The view of some machines, or of the first GPUs of machines. */
static inline ClusterView *spmd_view(const Cluster *whole, const JointDevices *devices)
{
    g_autofree char *text = cluster_write(whole);
    g_autofree bool *keep = g_new0(bool, whole->n_machines);
    g_autoptr(Cluster) part = cluster_parse("part", text, strlen(text), NULL);
    for (uint32_t i = 0; i < devices->n; i++) {
        keep[devices->machine[i]] = true;
        part->machine[devices->machine[i]].gpus = devices->gpus[i];
    }
    assert_true(cluster_keep(part, keep, NULL));
    ClusterView *view = cluster_view(part, GRANULARITY_GPU);
    cluster_view_own(view, g_steal_pointer(&part));
    return view;
}

/* Adds entries of a random baseline with random ratios to a group; uncut: of one that does not cut
 * the batch. The machines of a lab are in the order of its kinds. */
static inline void spmd_add(SpmdFinder *f, JointMenu *menu, JointProblem *p,
                            JointGroup *group, bool uncut)
{
    g_auto(JointDevices) devices = synth_joint_devices(menu, group);
    ClusterView *view = spmd_view(f->cluster, &devices);
    const uint32_t n = view->n_devices;
    double *ratio = g_new(double, n), sum = 0;
    g_ptr_array_add(f->view, view);
    for (uint32_t d = 0; d < n; d++)
        sum += ratio[d] = g_rand_double_range(f->rand, 0.05, 1);
    for (uint32_t d = 0; d < n; d++)
        ratio[d] /= sum;
    const Baseline baseline =
        uncut ? BASELINE_MEGATRON : (Baseline)g_rand_int_range(f->rand, 0, BASELINES);
    SynthResult result;
    const bool made = synth_baseline(f->graph, view, ratio, baseline, &result, NULL);
    f->found += made;
    if (made)
        synth_joint_add_inside(menu, p, group,
                               &(JointInside){result.program, ratio, view,
                                              g_memdup2(ratio, n * sizeof *ratio)});
    else
        g_free(ratio);
}

static inline void spmd_finder_clear(SpmdFinder *f)
{
    g_ptr_array_unref(f->view);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SpmdFinder, spmd_finder_clear)

static inline SpmdFinder spmd_finder(GRand *rand, const Graph *graph,
                                     const Cluster *cluster)
{
    return (SpmdFinder){rand, graph, cluster,
                        g_ptr_array_new_with_free_func((GDestroyNotify)cluster_view_free),
                        0};
}

/* Settles all groups that are promised programs, by three each. */
static inline void spmd_settle_all(SpmdFinder *f, JointMenu *menu, JointProblem *p)
{
    for (uint32_t g = 0; g < p->n_groups; g++) {
        bool promised = false;
        for (uint32_t e = 0; e < p->group[g].n_entries; e++)
            promised |= p->group[g].entry[e].promised;
        if (!promised)
            continue;
        p->group[g].settled = true;
        for (uint32_t i = 0; i < JOINT_PROGRAMS; i++)
            spmd_add(f, menu, p, &p->group[g], i == 1);
    }
}

#endif
