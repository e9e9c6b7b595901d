/* TAG's branch and bound on random small cases, and what it is made of: it finds the optimum of
 * brute force, as its trees and its serial strategies do. KILTER_ALL=1: up to 6 groups and 9
 * actions. */
#include <time.h>

#include "synth/tag/rows.h"
#include "tests/support/tag_learning.h"
#include "tests/support/tag_random.h"

/* Twice what a search should take, since CPU time varies with the load of the machine. */
static const double MOST_S = 2;

/* The best times over all strategies: of those that fit, infinite if none does, and of all. */
typedef struct {
    double fits_s, any_s;
} Brute;

static Brute brute_force(const Case *c, TagObjective objective)
{
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(c->space, &c->work, c->quick, objective);
    g_autofree uint16_t *action = g_new0(uint16_t, c->work.n_groups);
    Brute best = {INFINITY, INFINITY};
    for (;;) {
        const TagScore score = tag_evaluate(evaluator, action, best.fits_s);
        best.any_s = fmin(best.any_s, score.time_s);
        if (score.lacks <= 0)
            best.fits_s = fmin(best.fits_s, score.time_s);
        uint32_t i = 0;
        while (i < c->work.n_groups && ++action[i] == c->space->n_actions)
            action[i++] = 0;
        if (i == c->work.n_groups)
            return best;
    }
}

/* Branching improves the bound, never above the optimum. */
static void check_branching(const Case *c, TagObjective objective, double best)
{
    g_autoptr(TagBound) bound =
        tag_bound_new(c->space, &c->work, c->quick, objective, SIM_SUMS_EACH);
    uint16_t open[8];
    memset(open, 0xff, sizeof open);
    const double root = tag_bound(bound, open);
    const double few = tag_bound_branch(bound, 2 * best, 12);
    assert_at_most(root, few * (1 + 1e-9));
    assert_at_most(few, best);
    assert_at_most(tag_bound_branch(bound, best, 12), best);
}

/* CPU seconds of this thread. */
static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_exact(void **state)
{
    (void)state;
    const bool all = g_getenv("KILTER_ALL") != NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(19);
    uint32_t fit = 0, tight = 0, evaluations = 0;
    double longest_s = 0;
    for (uint32_t k = 0; k < 200; k++) {
        const uint32_t n_groups = draw(rand, 2, all ? 6 : 4);
        const uint32_t n_actions = all ? draw(rand, 4, 9) : n_groups == 4 ? 4 : 6;
        /* A third of the cases have room for everything, the others for some strategies at most. */
        const double memory_kib = k % 3 ? draw(rand, 800, 4000) : 0;
        g_auto(Case) c =
            case_within(rand, n_groups, draw(rand, 2, 3), n_actions, memory_kib);
        const TagObjective objective = k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE;
        const Brute best = brute_force(&c, objective);
        const double begin = cpu_s();
        g_auto(TagResult) result = run_search(&c, TAG_EXACT, objective, 0, 1);
        longest_s = fmax(longest_s, cpu_s() - begin);
        evaluations += result.evaluations;
        assert_int_equal(result.fits, isfinite(best.fits_s));
        if (!result.fits)
            continue;
        fit++;
        tight += best.any_s < best.fits_s;
        assert_true(result.optimal);
        assert_close(result.time_s, best.fits_s, 1e-12);
        check_branching(&c, objective, best.fits_s);
    }
    print_message(
        "in %u cases a strategy fits, in %u of them not the fastest; at most %.3f "
        "CPU s a search, %.0f evaluations on average\n",
        fit, tight, longest_s, evaluations / 200.0);
    assert_true(fit > 100 && fit < 200 && tight > 10);
    assert_at_most(longest_s, MOST_S);
}

/* --- what the searches say of data parallelism --- */

/* A search says in how many tries it beat data parallelism if its strategy does, and only then. */
static void test_beaten(void **state)
{
    (void)state;
    static const TagMethod methods[] = {TAG_BEST, TAG_MCTS, TAG_EXACT, TAG_OWN};
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    uint32_t beaten = 0, n = 0;
    for (uint32_t k = 0; k < 40; k++) {
        const TagObjective objective = k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE;
        g_auto(Case) c = case_new(rand, draw(rand, 2, 4), 2, 4);
        g_autofree uint16_t *parallel = g_new(uint16_t, c.work.n_groups);
        for (uint32_t i = 0; i < c.work.n_groups; i++)
            parallel[i] = (uint16_t)tag_data_parallel(c.space);
        g_autoptr(TagEvaluator) evaluator =
            tag_evaluator_new(c.space, &c.work, c.quick, objective);
        const SimQuickTimes times = tag_times(evaluator, parallel);
        const double dp_s = objective == TAG_BY_FLOW ? times.flow_s : times.stage_s;
        for (uint32_t m = 0; m < G_N_ELEMENTS(methods); m++, n++) {
            const TagSearch search = {.method = methods[m],
                                      .objective = objective,
                                      .evaluations = 100,
                                      .leave = true,
                                      .own = tag_search_ahead,
                                      .seed = 1};
            g_auto(TagResult) r = {0};
            synth_tag_search(c.space, &c.work, c.quick, &search, NULL, 0, &r);
            assert_int_equal(r.to_beat_dp > 0, r.fits && r.time_s < dp_s);
            assert_true(r.to_beat_dp <= MAX(r.evaluations, r.iterations));
            beaten += r.to_beat_dp > 0;
        }
    }
    assert_true(beaten > n / 4 && beaten < n);
}

/* A network whose outputs are all equal leaves the tree search as it is without one. */
static void test_equal_priors(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(32);
    g_autoptr(TagNet) net = tag_net_empty(NET_SHAPE);
    for (uint32_t k = 0; k < 10; k++) {
        g_auto(Case) c = case_new(rand, 6, 3, 15);
        TagSearch search = {.method = TAG_MCTS,
                            .objective = TAG_BY_FLOW,
                            .evaluations = 60,
                            .leave = true,
                            .seed = k};
        g_auto(TagResult) without = {0}, with = {0};
        synth_tag_search(c.space, &c.work, c.quick, &search, NULL, 0, &without);
        search.net = net;
        synth_tag_search(c.space, &c.work, c.quick, &search, NULL, 0, &with);
        assert_true(with.time_s == without.time_s);
        assert_int_equal(with.evaluations, without.evaluations);
        assert_memory_equal(with.action, without.action,
                            c.work.n_groups * sizeof *with.action);
    }
}

/* --- the tree --- */

/* [group * groups + group], both ways: bytes that ops of one group read of the other one's, and
 * one for each such tensor. */
static double *bytes_between(const TagWork *work)
{
    const uint32_t n = work->n_groups;
    double *bytes = g_new0(double, n *n);
    for (OpId id = 0; id < graph_n_ops(work->graph); id++) {
        const Op *op = graph_get_op(work->graph, id);
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Tensor *t = graph_tensor(work->graph, op->in[i]);
            if (t->producer == GRAPH_NONE)
                continue;
            const uint32_t a = work->group[t->producer], b = work->group[id];
            bytes[a * n + b] += 1 + (double)tensor_bytes(t);
            if (a != b)
                bytes[b * n + a] += 1 + (double)tensor_bytes(t);
        }
    }
    return bytes;
}

static uint32_t depth_of(const TagTree *tree, uint32_t i)
{
    uint32_t depth = 0;
    for (; tree->parent[i] != GRAPH_NONE; i = tree->parent[i])
        depth++;
    return depth;
}

/* The fewest bytes on an edge between two groups of the forest; -1: they are in different trees. */
static double least_on_path(const TagTree *tree, const double *bytes, uint32_t a,
                            uint32_t b)
{
    double least = INFINITY;
    while (a != b) {
        const bool up_a = depth_of(tree, a) >= depth_of(tree, b);
        uint32_t *low = up_a ? &a : &b;
        if (tree->parent[*low] == GRAPH_NONE)
            return -1;
        least = fmin(least, bytes[*low * tree->n + tree->parent[*low]]);
        *low = tree->parent[*low];
    }
    return least;
}

/* The forest links all groups that exchange tensors, by the edges with the most bytes: no edge that
 * it lacks has more than the least on the way between its ends. Parents come before their
 * children. */
static void test_forest(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(33);
    for (uint32_t k = 0; k < 60; k++) {
        g_auto(Case) c = case_new(rand, draw(rand, 2, 8), 2, 3);
        g_autoptr(TagTree) tree = tag_tree_new(&c.work, c.space->n_actions, false);
        const uint32_t n = tree->n;
        g_autofree double *bytes = bytes_between(&c.work);
        g_autofree bool *seen = g_new0(bool, n);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t group = tree->order[i], parent = tree->parent[group];
            assert_true(!seen[group] && (parent == GRAPH_NONE || seen[parent]));
            assert_true(parent == GRAPH_NONE || bytes[group * n + parent] > 0);
            seen[group] = true;
            for (uint32_t j = 0; j < n; j++)
                if (j != i && bytes[i * n + j] > 0)
                    assert_at_most(bytes[i * n + j], least_on_path(tree, bytes, i, j));
        }
    }
}

/* Costs of a strategy in the tree. */
static double cost_in(const TagTree *tree, const uint16_t *action)
{
    double sum = 0;
    for (uint32_t i = 0; i < tree->n; i++) {
        const size_t n = tree->n_actions, at = i * n;
        sum += tree->alone[at + action[i]];
        if (tree->pair && tree->parent[i] != GRAPH_NONE)
            sum += tree->pair[(at + action[tree->parent[i]]) * n + action[i]];
    }
    return sum;
}

/* The least cost of the strategies with these actions where they are decided, by brute force. */
static double least_under(const TagTree *tree, const uint16_t *decided)
{
    g_autofree uint16_t *action = g_new0(uint16_t, tree->n);
    double least = INFINITY;
    for (uint32_t i = 0; i < tree->n;) {
        bool fits = true;
        for (uint32_t k = 0; k < tree->n && decided; k++)
            fits &= decided[k] == TAG_UNDECIDED || decided[k] == action[k];
        if (fits)
            least = fmin(least, cost_in(tree, action));
        for (i = 0; i < tree->n && ++action[i] == tree->n_actions;)
            action[i++] = 0;
    }
    return least;
}

static void test_least(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(34);
    for (uint32_t k = 0; k < 100; k++) {
        g_auto(Case) c = case_new(rand, draw(rand, 2, 5), 2, draw(rand, 2, 4));
        g_autoptr(TagTree) tree = tag_tree_new(&c.work, c.space->n_actions, k % 4 > 0);
        const size_t n = tree->n_actions, all = tree->n * n;
        uint16_t decided[8], best[8];
        for (size_t i = 0; i < all; i++)
            tree->alone[i] = g_rand_double(rand);
        for (size_t i = 0; tree->pair && i < all * n; i++)
            tree->pair[i] = g_rand_double(rand);
        for (uint32_t i = 0; i < tree->n; i++)
            decided[i] = draw(rand, 0, 1) ? TAG_UNDECIDED
                                          : (uint16_t)draw(rand, 0, (uint32_t)n - 1);
        const uint16_t *given = k % 3 ? decided : NULL;
        const double least = tag_tree_least(tree, given, best);
        assert_close(least, least_under(tree, given), 1e-12);
        assert_close(least, cost_in(tree, best), 1e-12);
        for (uint32_t i = 0; given && i < tree->n; i++)
            assert_true(decided[i] == TAG_UNDECIDED || decided[i] == best[i]);
    }
}

/* The strategies that are kept for the search before any weights are found: for each part of the
 * all-reduces' time, from none to all of it, the best if everything else runs serially. */
static void test_serial(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(35);
    for (uint32_t k = 0; k < 30; k++) {
        g_auto(Case) c = case_new(rand, draw(rand, 2, 4), 2, 4);
        g_autoptr(TagBound) bound = tag_rows_new(
            c.space, &c.work, c.quick, k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE, false);
        TagTree *tree = bound->tree;
        const size_t all = (size_t)tree->n * tree->n_actions;
        const double *pair = bound->pair[bound->n_paths - 1];
        tag_rows_serial(bound);
        const uint16_t *seen;
        const uint32_t n = tag_bound_seen(bound, &seen);
        assert_true(n > 1);
        memset(tree->pair, 0, all * tree->n_actions * sizeof *pair);
        for (size_t i = 0; pair && i < all * tree->n_actions; i++)
            tree->pair[i] = pair[i];
        for (uint32_t part = 0; part < n; part++) {
            for (size_t i = 0; i < all; i++)
                tree->alone[i] = bound->slow[i] + bound->sums[i] * part / (n - 1);
            assert_close(cost_in(tree, &seen[part * tree->n]), least_under(tree, NULL),
                         1e-12);
        }
    }
}

/* --- paths and branches --- */

/* The longest path if transfers took no time. */
static double longest_of_ops(const TagBound *b, const uint16_t *action)
{
    const Graph *graph = b->work->graph;
    g_autofree double *until = g_new0(double, graph_n_ops(graph));
    double longest = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            until[id] = fmax(until[id], by == GRAPH_NONE ? 0 : until[by]);
        }
        until[id] += tag_rows_on_path(b, id, action[b->work->group[id]]);
        longest = fmax(longest, until[id]);
    }
    return longest;
}

/* The longest path of a strategy is that of its ops where all of them are on the same devices, else
 * at least that; and grows with the groups that are decided. */
static void test_longest(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(36);
    uint32_t equal = 0, longer = 0;
    for (uint32_t k = 0; k < 200; k++) {
        g_auto(Case) c = case_new(rand, draw(rand, 2, 6), 3, 12);
        g_autoptr(TagBound) bound =
            tag_rows_new(c.space, &c.work, c.quick, TAG_BY_FLOW, false);
        uint16_t action[8], partial[8];
        const uint16_t all = (uint16_t)draw(rand, 0, c.space->n_actions - 1);
        for (uint32_t i = 0; i < c.work.n_groups; i++) {
            action[i] = k % 2 ? all : (uint16_t)draw(rand, 0, c.space->n_actions - 1);
            partial[i] = draw(rand, 0, 1) ? TAG_UNDECIDED : action[i];
        }
        const double longest = tag_rows_longest(bound, action),
                     ops = longest_of_ops(bound, action);
        assert_at_most(ops, longest);
        assert_at_most(tag_rows_longest(bound, partial), longest);
        if (k % 2 && c.space->action[all].option != TAG_MP) {
            assert_true(longest == ops);
            equal++;
        }
        longer += longest > ops;
    }
    assert_true(equal > 50 && longer > 50);
}

/* Twelve branches lift the bound by at least 1.2 % of the best known time on average (1.6 % when
 * this was written; half of that if the groups to branch on are those whose actions change
 * least). */
static void test_branches_pay(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(77);
    double lifted = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < 60; k++) {
        const TagObjective objective = k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE;
        g_auto(Case) c = case_new(rand, draw(rand, 4, 8), 3, 12);
        g_auto(TagResult) best = run_search(&c, TAG_BEST, objective, 400, 1);
        if (!best.fits)
            continue;
        g_autoptr(TagBound) bound =
            tag_bound_new(c.space, &c.work, c.quick, objective, SIM_SUMS_EACH);
        uint16_t open[8];
        memset(open, 0xff, sizeof open);
        const double root = tag_bound(bound, open),
                     branched = tag_bound_branch(bound, best.time_s, 12);
        lifted += (branched - root) / best.time_s;
        n++;
    }
    print_message("12 branches lift the bound by %.2f %%\n", 100 * lifted / n);
    assert_true(n > 50 && lifted > 0.012 * n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),        cmocka_unit_test(test_beaten),
        cmocka_unit_test(test_equal_priors), cmocka_unit_test(test_forest),
        cmocka_unit_test(test_longest),      cmocka_unit_test(test_branches_pay),
        cmocka_unit_test(test_least),        cmocka_unit_test(test_serial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
