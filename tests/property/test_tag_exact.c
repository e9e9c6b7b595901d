/* TAG's branch and bound on random small cases: it finds the optimum of brute force. KILTER_ALL=1: up to
 * 6 groups and 9 actions. */
#include <time.h>

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
    g_autoptr(TagBound) bound = tag_bound_new(c->space, &c->work, c->quick, objective);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
