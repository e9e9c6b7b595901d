/* The exact layer assignment, compared with all possible cuts. */
#include "synth/synth.h"
#include "tests/test.h"

enum { INSTANCES = 2000, MAX_LAYERS = 10, MAX_STAGES = 6 };

typedef struct {
    AmpAssignment problem;
    double time[MAX_STAGES * MAX_LAYERS], transfer[MAX_STAGES * MAX_LAYERS],
        sync[MAX_STAGES * MAX_LAYERS], memory[MAX_STAGES * MAX_LAYERS],
        capacity[MAX_STAGES];
} Instance;

/* Sometimes small integers, so that there are ties. */
static double number(GRand *random, bool coarse)
{
    return coarse ? g_rand_int_range(random, 0, 4) : g_rand_double(random);
}

static void make(Instance *it, GRand *random)
{
    const uint32_t n = (uint32_t)g_rand_int_range(random, 1, MAX_LAYERS + 1);
    const uint32_t k = (uint32_t)g_rand_int_range(random, 1, (int)MIN(n, MAX_STAGES) + 1);
    const bool coarse = g_rand_boolean(random), alike = g_rand_boolean(random),
               tight = g_rand_int_range(random, 0, 3) == 0;
    for (uint32_t i = 0; i < k * n; i++) {
        const bool repeat = alike && i >= n; /* stages on equal devices */
        it->time[i] = repeat ? it->time[i - n] : number(random, coarse);
        it->transfer[i] = repeat ? it->transfer[i - n] : 0.3 * number(random, coarse);
        it->sync[i] = 2 * number(random, coarse);
        it->memory[i] = g_rand_double(random);
    }
    for (uint32_t j = 0; j < k; j++)
        it->capacity[j] = g_rand_double_range(random, 0.5, 3) * n / k;
    it->problem = (AmpAssignment){
        .n_layers = n,
        .n_stages = k,
        .repeats = g_rand_int_range(random, 0, 16),
        .link = g_rand_boolean(random) ? g_rand_double_range(random, 0, 4) : 0,
        .time = it->time,
        .transfer = it->transfer,
        .sync = g_rand_boolean(random) ? it->sync : NULL,
        .memory = tight ? it->memory : NULL,
        .capacity = tight ? it->capacity : NULL,
    };
}

/* The cost of given cuts; infinite if a stage lacks the memory. */
static double cost_of(const AmpAssignment *p, const uint32_t *first)
{
    double most = 0, sum = 0, sync = 0;
    for (uint32_t j = 0; j < p->n_stages; j++) {
        double time = 0, all_reduce = 0, memory = 0;
        for (uint32_t l = first[j]; l < first[j + 1]; l++) {
            time += p->time[j * p->n_layers + l];
            all_reduce += p->sync ? p->sync[j * p->n_layers + l] : 0;
            memory += p->memory ? p->memory[j * p->n_layers + l] : 0;
        }
        if (p->memory && memory > p->capacity[j])
            return INFINITY;
        most = fmax(most, time);
        sync = fmax(sync, all_reduce);
        sum += time;
        if (j + 1 < p->n_stages) {
            const double transfer = p->transfer[j * p->n_layers + first[j + 1] - 1];
            sum += transfer;
            most = fmax(most, p->link * transfer);
        }
    }
    return p->repeats * most + sum + sync;
}

/* The least cost over all cuts from `stage` on. */
static double least(const AmpAssignment *p, uint32_t *first, uint32_t stage)
{
    if (stage == p->n_stages) {
        first[stage] = p->n_layers;
        return cost_of(p, first);
    }
    double best = INFINITY;
    const uint32_t last = p->n_layers - (p->n_stages - stage);
    for (uint32_t a = first[stage - 1] + 1; a <= last; a++) {
        first[stage] = a;
        best = fmin(best, least(p, first, stage + 1));
    }
    return best;
}

static void test_equals_all_cuts(void **state)
{
    (void)state;
    GRand *random = g_rand_new_with_seed(6);
    uint32_t infeasible = 0;
    for (uint32_t i = 0; i < INSTANCES; i++) {
        Instance it;
        make(&it, random);
        uint32_t first[MAX_STAGES + 1] = {0}, cuts[MAX_STAGES + 1];
        const double want = least(&it.problem, first, 1);
        double cost;
        if (!synth_amp_assign(&it.problem, cuts, &cost)) {
            assert_true(isinf(want));
            infeasible++;
            continue;
        }
        assert_close(cost, want, 1e-9);
        assert_int_equal(cuts[0], 0);
        assert_close(cost_of(&it.problem, cuts), want, 1e-9);
    }
    assert_in_range(infeasible, 20, INSTANCES / 4);
    g_rand_free(random);
}

/* More stages than layers, and the example of Fig. 1: a cut by layers, one by time. */
static void test_small_cases(void **state)
{
    (void)state;
    const double time[] = {5, 1, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1}, none[12] = {0};
    AmpAssignment p = {
        .n_layers = 6, .n_stages = 2, .repeats = 7, .time = time, .transfer = none};
    uint32_t first[8];
    double cost;
    assert_true(synth_amp_assign(&p, first, &cost));
    assert_int_equal(first[1], 1);
    assert_close(cost, 7 * 5 + 10, 1e-12);
    uint64_t work = 0, again = 0;
    p.work = &work;
    assert_true(synth_amp_assign(&p, first, &cost));
    p.work = &again;
    assert_true(synth_amp_assign(&p, first, &cost));
    assert_true(work > 0 && work % (2 * 7) == 0); /* tables of 2 stages and 7 places */
    assert_int_equal(work, again);
    p.work = NULL;
    p.n_layers = 1;
    assert_false(synth_amp_assign(&p, first, &cost));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_all_cuts),
        cmocka_unit_test(test_small_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
