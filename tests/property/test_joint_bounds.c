/* The bounds of the joint search below 100,000 random pipelines on a cluster of two kinds of
 * machines, whose stages run Megatron's programs or SPMD programs with random ratios. */
#include <math.h>
#include <string.h>

#include "synth/joint/menu.h"
#include "synth/synth.h"
#include "tests/support/spmd_finder.h"
#include "tests/support/uneven_lab.h"

/* Gives each group several runs of layers, if there are enough of them. */
static void cut_runs(GRand *rand, const JointProblem *p, JointPipeline *made)
{
    uint32_t least = p->n_layers;
    for (uint32_t i = 0; i < made->n_stages; i++) {
        const uint32_t end =
            i + 1 < made->n_stages ? made->stage[i + 1].first : p->n_layers;
        least = MIN(least, end - made->stage[i].first);
    }
    if (made->n_stages > 0 && p->n_microbatches % made->n_stages == 0)
        made->chunks = (uint32_t)g_rand_int_range(rand, 1, (gint32)least + 1);
}

/* A pipeline drawn from the problem: groups as long as there are units, with random cuts and
 * entries; stages are NULL if none fits the memory. */
static JointPipeline random_pipeline(GRand *rand, const JointProblem *p)
{
    g_autofree uint32_t *left = g_memdup2(p->units, p->n_kinds * sizeof *left);
    const uint32_t most = (uint32_t)g_rand_int_range(rand, 1, 7);
    JointPipeline made = {
        .stage = g_new0(JointStage, most),
        .schedule = (SynthSchedule)g_rand_int_range(rand, 0, SCHEDULE_ZB_H2 + 1),
        .chunks = 1};
    uint32_t from = 0;
    for (uint32_t tries = 0; tries < 20 && made.n_stages < most && from < p->n_layers;
         tries++) {
        const uint32_t g = (uint32_t)g_rand_int_range(rand, 0, (gint32)p->n_groups);
        bool enough = p->group[g].n_entries > 0;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            enough &= p->group[g].use[k] <= left[k];
        if (!enough)
            continue;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            left[k] -= p->group[g].use[k];
        const uint32_t entry =
            (uint32_t)g_rand_int_range(rand, 0, (gint32)p->group[g].n_entries);
        if (p->group[g].entry[entry].promised)
            continue;
        made.stage[made.n_stages++] = (JointStage){from, g, entry};
        from += (uint32_t)g_rand_int_range(rand, 1, (gint32)(p->n_layers - from) + 1);
    }
    if (made.schedule == SCHEDULE_INTERLEAVED && g_rand_boolean(rand))
        cut_runs(rand, p, &made);
    if (made.n_stages == 0 || !synth_joint_fits(p, &made))
        g_clear_pointer(&made.stage, g_free);
    return made;
}

static bool has_inside(const JointProblem *p, const JointPipeline *made)
{
    bool any = false;
    for (uint32_t i = 0; i < made->n_stages; i++)
        any |= p->group[made->stage[i].group].entry[made->stage[i].entry].inside != NULL;
    return any;
}

/* Promises to a group are not above the times of its programs, layer by layer. */
static void check_promises(const JointProblem *p)
{
    const uint32_t n = p->n_layers;
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t e = 0; e < p->group[g].n_entries; e++)
            for (uint32_t k = 0; k < p->group[g].n_entries; k++) {
                const JointEntry *a = &p->group[g].entry[e], *b = &p->group[g].entry[k];
                if (!a->promised || !b->inside)
                    continue;
                for (uint32_t l = 0; l < n; l++) {
                    const double f = a->forward_s[l + 1] - a->forward_s[l],
                                 back = a->backward_s[l + 1] - a->backward_s[l];
                    assert_at_most(f,
                                   (b->forward_s[l + 1] - b->forward_s[l]) * (1 + 1e-9));
                    assert_at_most(back, (b->backward_s[l + 1] - b->backward_s[l]) *
                                             (1 + 1e-9));
                }
            }
}

static bool grows_no_more(const double *a, const double *b, uint32_t n)
{
    bool never = true;
    for (uint32_t l = 0; l < n; l++)
        never &= a[l + 1] - a[l] <= b[l + 1] - b[l];
    return never;
}

/* Whether an entry has the same tp as another one and is slower in no layer. */
static bool is_no_slower(const JointEntry *a, const JointEntry *b, uint32_t n)
{
    return a->tp == b->tp && a->start_s <= b->start_s &&
           grows_no_more(a->forward_s, b->forward_s, n) &&
           grows_no_more(a->backward_s, b->backward_s, n) &&
           grows_no_more(a->sync_s, b->sync_s, n);
}

/* The entry that another one of its group calls faster is the first that is no slower, or itself; none of entries
 * that come later, as programs are found.
 * Returns how many have one. */
static uint32_t check_faster(const JointProblem *p)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        const JointEntry *entry = p->group[g].entry;
        for (uint32_t e = 0; e < p->group[g].n_entries; e++) {
            uint32_t first = 0;
            while (first < e && !is_no_slower(&entry[first], &entry[e], p->n_layers))
                first++;
            const bool added = entry[e].promised || entry[e].inside;
            assert_int_equal(entry[e].faster, added ? UINT32_MAX : first);
            n += first < e && !added;
        }
    }
    return n;
}

/* The share of an entry is the most samples that one machine has: its replicas fill the machines of
 * each kind one after the other. Returns how many entries have machines with unlike parts. */
static uint32_t check_shares(const JointMenu *menu, const JointProblem *p)
{
    uint32_t uneven = 0;
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t e = 0; e < p->group[g].n_entries; e++) {
            const JointEntry *entry = &p->group[g].entry[e];
            if (entry->inside || entry->promised)
                continue;
            uint32_t machine[64] = {0}, at = 0, r = 0, most = 0, least = UINT32_MAX,
                     all = 0;
            for (uint32_t k = 0; k < menu->kind->len; k++) {
                const JointKind *kind = &g_array_index(menu->kind, JointKind, k);
                const uint32_t gpus = p->group[g].use[k] * kind->unit;
                for (uint32_t i = 0; i < gpus; i += entry->tp)
                    machine[at + i / kind->gpus] += entry->samples[r++];
                at += (gpus + kind->gpus - 1) / kind->gpus;
                assert_true(at < G_N_ELEMENTS(machine));
            }
            assert_int_equal(r, entry->dp);
            for (uint32_t m = 0; m < at; m++) {
                most = MAX(most, machine[m]);
                least = machine[m] ? MIN(least, machine[m]) : least;
                all += machine[m];
            }
            assert_close(entry->share, (double)most / all, 1e-12);
            uneven += least < most;
        }
    return uneven;
}

/* The least time of every schedule, not by the recurrence: each stage begins after a forward of the
 * stages before it, where no group has several runs, and has all microbatches to do, those of its
 * backward behind those of the stages after it. */
static double relaxed_s(const JointProblem *p, const JointPipeline *made)
{
    const double m = p->n_microbatches, before = made->chunks == 1;
    double f[8], t[8], all[8], end_s = 0;
    for (uint32_t k = 0; k < made->n_stages; k++) {
        const JointStage *stage = &made->stage[k];
        const JointEntry *e = &p->group[stage->group].entry[stage->entry];
        const uint32_t from = stage->first,
                       to = k + 1 < made->n_stages ? stage[1].first : p->n_layers;
        f[k] = e->forward_s[to] - e->forward_s[from];
        all[k] = f[k] + e->backward_s[to] - e->backward_s[from];
        t[k] = all[k] - (e->weights_s[to] - e->weights_s[from]);
    }
    double filled = 0; /* forwards of the stages before k */
    for (uint32_t k = 0; k < made->n_stages; filled += before * f[k++]) {
        double own = m * all[k], ahead = 0; /* of the stages from k up to j */
        for (uint32_t j = k; j < made->n_stages; ahead += before * t[j++]) {
            double behind = 0;
            for (uint32_t i = j; i < made->n_stages; i++)
                behind += t[i];
            own = fmax(own, fmax(m * t[j], behind) + ahead);
        }
        end_s = fmax(end_s, filled + own);
    }
    return end_s;
}

/* No random pipeline, with any number of microbatches and schedule, is below the bounds; the walk
 * equals the fidelity (test_walk). */
static void test_bounds(void **state)
{
    (void)state;
    static const char *const model[] = {
        "gpt2:layers=6,hidden=512,heads=8,ffn=2048,seq=256,vocab=4096,global_batch=32",
        "llama:layers=6,hidden=512,heads=8,kv_heads=4,ffn=1024,seq=256,vocab=4096,"
        "global_batch=32",
        "bert-moe:layers=4,hidden=256,heads=4,ffn=1024,vocab=4096,seq=128,global_batch="
        "32",
    };
    enum { PIPELINES = 100000, PROBLEMS = 18 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(4242);
    uint32_t walked = 0, in_runs = 0, inside = 0, programs = 0, faster = 0, uneven = 0;
    double nearest = INFINITY, nearest_plain = INFINITY;
    for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++)
        for (uint32_t micro = 1; micro <= 32; micro *= 2) {
            g_autoptr(Cluster) cluster = uneven_lab(2000, micro < 4 ? 2000 : 200);
            g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
            g_autoptr(Graph) graph =
                model_build(model[m], cluster_gpus(cluster), NULL, NULL);
            g_auto(SpmdFinder) finder = spmd_finder(rand, graph, cluster);
            g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, false, NULL);
            menu->promises = true;
            g_autoptr(JointProblem) p = synth_joint_problem(menu, micro, 1, true);
            assert_non_null(p);
            spmd_settle_all(&finder, menu, p);
            check_promises(p);
            faster += check_faster(p);
            uneven += check_shares(menu, p);
            programs += finder.found;
            g_auto(JointResult) relaxed = {0}, one = {0}, plain = {0};
            const JointOptions how = {
                .way = {.relaxed = true}, .n_best = 1, .upper_s = INFINITY};
            synth_joint_solve(p, &how, &relaxed);
            assert_true(relaxed.exact && relaxed.best->len == 1);
            const double bound_s = g_array_index(relaxed.best, JointPipeline, 0).cost_s;
            const JointOptions how_one = {
                .way = {.chunks = 1, .relaxed = true}, .n_best = 1, .upper_s = INFINITY};
            synth_joint_solve(p, &how_one, &one);
            const double one_s = g_array_index(one.best, JointPipeline, 0).cost_s;
            const JointOptions how_plain = {
                .way = {.schedule = SCHEDULE_1F1B, .chunks = 1, .free = true},
                .n_best = 1,
                .upper_s = INFINITY};
            synth_joint_solve(p, &how_plain, &plain);
            const double plain_s = g_array_index(plain.best, JointPipeline, 0).cost_s;
            assert_at_most(one_s, plain_s * (1 + 1e-9));
            assert_at_most(synth_joint_density_s(p), bound_s * (1 + 1e-9));
            const double compute_s = sim_compute_bound_s(graph, view);
            for (uint32_t i = 0; i < PIPELINES / PROBLEMS; i++) {
                JointPipeline made = random_pipeline(rand, p);
                if (!made.stage)
                    continue;
                const double walk_s = synth_joint_walk_s(menu, p, &made);
                assert_close(synth_joint_cost(p, &made, true), relaxed_s(p, &made), 1e-9);
                assert_at_most(fmax(bound_s, compute_s), walk_s * (1 + 1e-9));
                if (made.chunks == 1)
                    assert_at_most(one_s, walk_s * (1 + 1e-9));
                if (made.schedule == SCHEDULE_1F1B) {
                    assert_at_most(plain_s, walk_s * (1 + 1e-9));
                    nearest_plain = fmin(nearest_plain, walk_s / plain_s);
                }
                in_runs += made.chunks > 1;
                inside += has_inside(p, &made);
                nearest = fmin(nearest, walk_s / bound_s);
                walked++;
                synth_joint_pipeline_clear(&made);
            }
        }
    print_message(
        "%u pipelines, %u of several runs of layers per group, %u with %u SPMD "
        "programs, the nearest at %.3f of its bound, under 1f1b at %.3f of that "
        "for 1f1b; %u entries slower than others, %u with unlike machines\n",
        walked, in_runs, inside, programs, nearest, nearest_plain, faster, uneven);
    assert_true(walked > PIPELINES / 2 && in_runs > 1000 && inside > 1000 &&
                programs > 100 && faster > 10 && uneven > 10 && nearest < 2 &&
                nearest_plain < 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
