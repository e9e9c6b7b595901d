/* Orders of steps: how long they take and how many microbatches they keep in flight, against closed
 * forms where steps are equal, and against the exact optimum where stages are not. Transfers take
 * no time. */
#include <math.h>
#include <string.h>

#include "synth/pipeline/pipeline.h"
#include "tests/test.h"

enum { FORWARD, BACKWARD, WEIGHTS, KINDS, MOST_GROUPS = 8, MOST_STEPS = 4096 };

typedef struct {
    uint32_t n_stages, n_groups, n_microbatches;
    SynthSchedule schedule;
    double s[2 * MOST_GROUPS][KINDS]; /* seconds of a stage's steps on one microbatch */
    double
        both_s; /* of a forward beside a backward, which begin and end together; 0: one by one */
} Shop;

typedef struct {
    double end_s, period_s, bubble_s; /* bubble_s: of the last group */
    uint32_t in_flight[MOST_GROUPS];  /* most forwards whose backward has not ended */
} Outcome;

static uint32_t kind_of(SynthStep step)
{
    return step.weights ? WEIGHTS : step.backward ? BACKWARD : FORWARD;
}

static double done_s[2 * MOST_GROUPS][KINDS][MOST_STEPS]; /* NAN: not done */

/* When what a step waits for is done. */
static double needs_s(const Shop *shop, SynthStep step)
{
    const uint32_t s = step.stage, m = step.microbatch, k = kind_of(step);
    return k == FORWARD             ? s > 0 ? done_s[s - 1][FORWARD][m] : 0
           : k == WEIGHTS           ? done_s[s][BACKWARD][m]
           : s + 1 < shop->n_stages ? done_s[s + 1][BACKWARD][m]
                                    : done_s[s][FORWARD][m];
}

/* How many steps run as one where pairs do: a forward and the backward after it, of another stage
 * (not the first ones of the last group); a backward whose gradients of weights come at once (not
 * before pairs begin, where a forward alone comes next). */
static uint32_t unit_of(const Shop *shop, const GArray *steps, uint32_t at)
{
    const SynthStep *step = &g_array_index(steps, SynthStep, at);
    const uint32_t left = steps->len - at, last = shop->n_groups;
    if (shop->both_s == 0 || left < 3 || step->weights)
        return 1;
    if (!step->backward)
        return step[1].backward && step[2].weights && step[1].stage != step->stage &&
                       !(step[1].stage == last && step[1].microbatch == 0)
                   ? 3
                   : 1;
    const bool at_once = step[1].weights && step[1].stage == step->stage &&
                         step[1].microbatch == step->microbatch;
    const bool alone = !step[2].backward && step[2].stage == step->stage &&
                       unit_of(shop, steps, at + 2) == 1;
    return at_once && !alone ? 2 : 1;
}

/* Runs steps as soon as their group and what they need allow. A backward that is not split takes
 * the time of both halves. Returns how many; 0: they wait. */
static uint32_t run_unit(const Shop *shop, const GArray *steps, uint32_t at,
                         double *free_s, double *busy_s)
{
    const bool splits = schedule_splits(shop->schedule);
    const SynthStep *step = &g_array_index(steps, SynthStep, at);
    const uint32_t n = unit_of(shop, steps, at);
    double start_s = *free_s, takes_s = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t s = step[i].stage, k = kind_of(step[i]);
        const bool whole =
            k == BACKWARD && !(splits && (schedule_row(shop->schedule)->v || s > 0));
        takes_s += shop->s[s][k] + (whole ? shop->s[s][WEIGHTS] : 0);
        if (i > 0 && k == WEIGHTS)
            continue;
        if (isnan(needs_s(shop, step[i])))
            return 0;
        start_s = fmax(start_s, needs_s(shop, step[i]));
    }
    takes_s = n == 3 ? shop->both_s : takes_s;
    *free_s = start_s + takes_s;
    *busy_s += takes_s;
    for (uint32_t i = 0; i < n; i++) {
        double *done = &done_s[step[i].stage][kind_of(step[i])][step[i].microbatch];
        assert_true(isnan(*done));
        *done = *free_s;
    }
    return n;
}

static Outcome run(const Shop *shop)
{
    const bool splits = schedule_splits(shop->schedule);
    Outcome out = {0};
    GArray *steps[MOST_GROUPS];
    uint32_t next[MOST_GROUPS] = {0}, flight[MOST_GROUPS] = {0}, left = 0;
    double free_s[MOST_GROUPS] = {0}, busy_s[MOST_GROUPS] = {0}, first_s[MOST_GROUPS];
    memset(done_s, 0xff, sizeof done_s);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) order =
        synth_schedule_order(shop->schedule, shop->n_stages, shop->n_groups,
                             shop->n_microbatches, NULL, &error);
    assert_no_error(error);
    left = order->len;
    for (uint32_t g = 0; g < shop->n_groups; g++) {
        steps[g] = g_array_new(FALSE, FALSE, sizeof(SynthStep));
        first_s[g] = NAN;
    }
    for (uint32_t i = 0; i < order->len; i++) {
        const SynthStep step = g_array_index(order, SynthStep, i);
        g_array_append_val(
            steps[schedule_group(shop->schedule, step.stage, shop->n_groups)], step);
    }
    for (bool any = true; any;) {
        any = false;
        for (uint32_t g = 0; g < shop->n_groups; g++) {
            if (next[g] == steps[g]->len)
                continue;
            const double before_s = busy_s[g];
            const uint32_t n = run_unit(shop, steps[g], next[g], &free_s[g], &busy_s[g]);
            if (n > 0 && isnan(first_s[g]))
                first_s[g] = free_s[g] - busy_s[g] + before_s;
            for (uint32_t i = next[g]; i < next[g] + n; i++) {
                const SynthStep step = g_array_index(steps[g], SynthStep, i);
                const uint32_t k = kind_of(step);
                const bool whole =
                    k == BACKWARD &&
                    !(splits && (schedule_row(shop->schedule)->v || step.stage > 0));
                flight[g] += k == FORWARD;
                out.in_flight[g] = MAX(out.in_flight[g], flight[g]);
                flight[g] -= k == WEIGHTS || whole;
            }
            out.end_s = fmax(out.end_s, free_s[g]);
            next[g] += n;
            left -= n;
            any |= n > 0;
        }
    }
    assert_int_equal(left, 0);
    for (uint32_t g = 0; g < shop->n_groups; g++) {
        out.period_s = fmax(out.period_s, free_s[g] - first_s[g]);
        out.bubble_s = out.end_s - busy_s[g];
        for (uint32_t s = 0; s < shop->n_stages; s++)
            for (uint32_t m = 0; m < shop->n_microbatches; m++)
                assert_false(isnan(done_s[s][BACKWARD][m]));
        g_array_unref(steps[g]);
    }
    return out;
}

static Shop equal_shop(SynthSchedule schedule, uint32_t p, uint32_t chunks, uint32_t m)
{
    Shop shop = {p * chunks, p, m, schedule, {{0}}, 0};
    for (uint32_t s = 0; s < p * chunks; s++)
        for (uint32_t k = 0; k < KINDS; k++)
            shop.s[s][k] = 1;
    return shop;
}

/* --- equal steps --- */

/* In units of a step: forward, backward and gradients of weights take one each. */
static void test_closed_forms(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= MOST_GROUPS; p++)
        for (uint32_t m = 2 * p - 1; m <= 6 * p; m += p - 1) {
            Shop shop = equal_shop(SCHEDULE_1F1B, p, 1, m);
            Outcome got = run(&shop);
            assert_close(got.end_s, 3.0 * (m + p - 1), 1e-12);
            assert_close(got.period_s, got.end_s, 1e-12); /* the first group waits */
            for (uint32_t g = 0; g < p; g++)
                assert_int_equal(got.in_flight[g], p - g);
            shop.schedule = SCHEDULE_ZB_H1;
            got = run(&shop);
            assert_close(got.end_s, 3.0 * m + p - 1, 1e-12);
            for (uint32_t g = 0; g < p; g++)
                assert_in_range(got.in_flight[g], p - g, p);
            shop.schedule = SCHEDULE_ZB_H2;
            got = run(&shop);
            assert_close(got.end_s, 3.0 * m + p - 1, 1e-12);
            assert_close(got.period_s, 3.0 * m, 1e-12);
            assert_int_equal(got.in_flight[0], 2 * p - 1);
        }
}

/* Two stages per group, there and back: the period of zb-v has no bubble. */
static void test_closed_forms_of_v(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= MOST_GROUPS; p++)
        for (uint32_t m = 2 * p; m <= 6 * p; m += p - 1) {
            Shop shop = equal_shop(SCHEDULE_ZB_V, p, 2, m);
            Outcome got = run(&shop);
            assert_close(got.period_s, 6.0 * m, 1e-12);
            for (uint32_t g = 0; g < p; g++)
                assert_int_equal(got.in_flight[g], 2 * p);
            shop.schedule = SCHEDULE_DUALPIPEV;
            got = run(&shop);
            assert_close(got.end_s, 6.0 * m + p - 1, 1e-12);
            for (uint32_t g = 0; g < p; g++)
                assert_int_equal(got.in_flight[g], 2 * p + 1);
            shop.schedule = SCHEDULE_V_MIN;
            got = run(&shop);
            assert_close(got.end_s, 6.0 * m + 4 * p - (p % 3 ? 5 : 3), 1e-12);
            uint32_t most = 0;
            for (uint32_t g = 0; g < p; g++)
                most = MAX(most, got.in_flight[g]);
            assert_int_equal(most, 2 * ((p + 1) / 3 + 1));
            shop.schedule = SCHEDULE_V_HALF;
            got = run(&shop);
            assert_true(got.end_s <= 6.0 * m + 3.5 * p);
            for (uint32_t g = most = 0; g < p; g++)
                most = MAX(most, got.in_flight[g]);
            assert_int_equal(most, p % 2 ? p + 1 : p + 3);
        }
}

/* DualPipe on P devices has the steps of DualPipeV on P / 2, a microbatch in each direction: a
 * device that is as far from its end has the same steps. */
static void test_both_ways(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= MOST_GROUPS; p += 2)
        for (uint32_t m = p; m <= 3 * p; m += p / 2) {
            g_autoptr(GArray) both =
                synth_schedule_order(SCHEDULE_DUALPIPE, p, p, m, NULL, NULL);
            g_autoptr(GArray) there =
                synth_schedule_order(SCHEDULE_DUALPIPEV, p, p / 2, m, NULL, NULL);
            assert_int_equal(both->len, there->len);
            for (uint32_t i = 0; i < both->len; i++) {
                const SynthStep *x = &g_array_index(both, SynthStep, i),
                                *y = &g_array_index(there, SynthStep, i);
                assert_true(x->stage == y->stage && x->microbatch == y->microbatch &&
                            x->backward == y->backward && x->weights == y->weights);
            }
        }
    g_autoptr(GError) error = NULL;
    assert_null(synth_schedule_order(SCHEDULE_DUALPIPE, 3, 3, 9, NULL, &error));
    assert_non_null(strstr(error->message, "an even pp, got 3"));
    g_clear_error(&error);
    assert_null(synth_schedule_order(SCHEDULE_DUALPIPE, 4, 4, 3, NULL, &error));
    assert_non_null(strstr(error->message, "at least 2 pp microbatches, got 6"));
}

/* The bubble that DeepSeek publishes for 2 p stages in pairs: (p - 1) (F&B + B - 3 W), W being a
 * part of B. It holds for the devices in the middle where F and both halves of B take equally
 * long. */
static void test_bubble_of_pairs(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= MOST_GROUPS; p++)
        for (uint32_t m = 2 * p; m <= 4 * p; m += p) {
            Shop shop = equal_shop(SCHEDULE_DUALPIPEV, p, 2, m);
            shop.both_s = 2 + 1.0 / m;
            assert_close(run(&shop).bubble_s, (p - 1) * (shop.both_s + 2 - 3), 1e-9);
        }
}

/* Any number of microbatches: M + (P - 1) / V equal steps of a device, if there are at least as
 * many microbatches as groups. */
static void test_rounds(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 5; p++)
        for (uint32_t v = 2; v <= 3 && p * v <= 2 * MOST_GROUPS; v++)
            for (uint32_t m = 1; m <= 4 * p + 1; m++) {
                Shop shop = equal_shop(SCHEDULE_INTERLEAVED, p, v, m);
                Outcome got = run(&shop);
                if (m >= p)
                    assert_close(got.end_s, 3.0 * (m * v + p - 1), 1e-12);
                shop.schedule = SCHEDULE_BREADTH_FIRST;
                got = run(&shop);
                if (m >= p)
                    assert_close(got.end_s, 3.0 * (m * v + p - 1), 1e-12);
                assert_int_equal(got.in_flight[0], m * v);
            }
}

/* --- the exact optimum --- */

/* Branch and bound over the next step of one of the groups. Microbatches are alike, so that each
 * kind of step of a stage runs them in order. */
typedef struct {
    const Shop *shop;
    double best_s;
    uint32_t done[MOST_GROUPS][KINDS];
    double end_s[MOST_GROUPS][KINDS][8], free_s[MOST_GROUPS];
    uint64_t visited;
} Exact;

static double bound_of(const Exact *e)
{
    const Shop *shop = e->shop;
    double bound_s = 0;
    for (uint32_t g = 0; g < shop->n_groups; g++) {
        double left_s = e->free_s[g], after_s = 0;
        for (uint32_t k = 0; k < KINDS; k++)
            left_s += (shop->n_microbatches - e->done[g][k]) * shop->s[g][k];
        /* the last backward goes on to the first group */
        if (e->done[g][BACKWARD] < shop->n_microbatches) {
            double tail_s = e->free_s[g] + shop->s[g][BACKWARD] * (shop->n_microbatches -
                                                                   e->done[g][BACKWARD]);
            for (uint32_t s = g; s-- > 0;)
                after_s += shop->s[s][BACKWARD];
            bound_s = fmax(bound_s, tail_s + after_s + shop->s[0][WEIGHTS]);
        }
        bound_s = fmax(bound_s, left_s);
    }
    return bound_s;
}

/* When the next step of a kind of a group could start; INFINITY: not yet. */
static double start_of(const Exact *e, uint32_t g, uint32_t k)
{
    const uint32_t m = e->done[g][k];
    double needs_s = 0;
    if (m == e->shop->n_microbatches)
        return INFINITY;
    if (k == FORWARD && g > 0)
        needs_s = m < e->done[g - 1][FORWARD] ? e->end_s[g - 1][FORWARD][m] : INFINITY;
    if (k == BACKWARD && m >= e->done[g][FORWARD])
        needs_s = INFINITY;
    else if (k == BACKWARD)
        needs_s = g + 1 == e->shop->n_groups     ? e->end_s[g][FORWARD][m]
                  : m < e->done[g + 1][BACKWARD] ? e->end_s[g + 1][BACKWARD][m]
                                                 : INFINITY;
    if (k == WEIGHTS)
        needs_s = m < e->done[g][BACKWARD] ? e->end_s[g][BACKWARD][m] : INFINITY;
    return fmax(needs_s, e->free_s[g]);
}

/* Active schedules: of the group of the step that could end first, any step that could start before
 * that. */
static void branch(Exact *e)
{
    double first_s = INFINITY;
    uint32_t group = 0;
    e->visited++;
    if (bound_of(e) >= e->best_s - 1e-9)
        return;
    for (uint32_t g = 0; g < e->shop->n_groups; g++)
        for (uint32_t k = 0; k < KINDS; k++)
            if (start_of(e, g, k) + e->shop->s[g][k] < first_s) {
                first_s = start_of(e, g, k) + e->shop->s[g][k];
                group = g;
            }
    if (isinf(first_s)) {
        double end_s = 0;
        for (uint32_t g = 0; g < e->shop->n_groups; g++)
            end_s = fmax(end_s, e->free_s[g]);
        e->best_s = fmin(e->best_s, end_s);
        return;
    }
    static const uint32_t order[] = {BACKWARD, FORWARD, WEIGHTS};
    for (uint32_t i = 0; i < KINDS; i++) {
        const uint32_t k = order[i];
        const double start_s = start_of(e, group, k), free_s = e->free_s[group];
        if (start_s >= first_s)
            continue;
        e->free_s[group] = e->end_s[group][k][e->done[group][k]++] =
            start_s + e->shop->s[group][k];
        branch(e);
        e->free_s[group] = free_s;
        e->done[group][k]--;
    }
}

/* No schedule is faster than the optimum, and on average of unlike pipelines the best of them is
 * near it. */
static void test_gap_to_the_optimum(void **state)
{
    (void)state;
    static const SynthSchedule tried[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_ZB_H1,
                                          SCHEDULE_ZB_H2};
    enum { CASES = 200 };
    double sum[G_N_ELEMENTS(tried)] = {0}, least = 0, visited = 0;
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    for (uint32_t i = 0; i < CASES; i++) {
        Shop shop = {.n_microbatches = (uint32_t)g_rand_int_range(rand, 2, 5),
                     .n_groups = (uint32_t)g_rand_int_range(rand, 2, 4)};
        shop.n_stages = shop.n_groups;
        for (uint32_t s = 0; s < shop.n_stages; s++)
            for (uint32_t k = 0; k < KINDS; k++)
                shop.s[s][k] = g_rand_double_range(rand, 0.5, 2);
        double got_s[G_N_ELEMENTS(tried)], best_s = INFINITY;
        for (uint32_t t = 0; t < G_N_ELEMENTS(tried); t++) {
            shop.schedule = tried[t];
            got_s[t] = run(&shop).end_s;
            best_s = fmin(best_s, got_s[t]);
        }
        Exact exact = {.shop = &shop, .best_s = best_s * (1 + 1e-6)};
        branch(&exact);
        visited = fmax(visited, (double)exact.visited);
        for (uint32_t t = 0; t < G_N_ELEMENTS(tried); t++) {
            assert_true(got_s[t] >= exact.best_s * (1 - 2e-6));
            sum[t] += got_s[t] / exact.best_s - 1;
        }
        least += best_s / exact.best_s - 1;
    }
    for (uint32_t t = 0; t < G_N_ELEMENTS(tried); t++)
        print_message("%s: %.1f %% above the optimum\n", schedule_name(tried[t]),
                      100 * sum[t] / CASES);
    print_message("the best of them: %.1f %%; at most %.0f nodes\n", 100 * least / CASES,
                  visited);
    assert_true(sum[2] < sum[1] && sum[1] <= sum[0]);
    assert_true(least / CASES < 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms), cmocka_unit_test(test_closed_forms_of_v),
        cmocka_unit_test(test_both_ways),    cmocka_unit_test(test_bubble_of_pairs),
        cmocka_unit_test(test_rounds),       cmocka_unit_test(test_gap_to_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
