/* Microbatches that take turns, on uneven devices: the time as a function of the ratios is that of
 * the simulation, and the ratios of the linear program are the best ones. */
#include <math.h>

#include "balance/balance.h"
#include "synth/synth.h"
#include "tests/support/random_case.h"
#include "tests/support/rounds.h"

static uint32_t cases(void)
{
    return test_rounds(50, 150);
}

enum { DRAWS = 20, STEPS = 45 };

static void draw_ratios(GRand *random, uint32_t n_segments, uint32_t n, double *ratio)
{
    for (uint32_t k = 0; k < n_segments; k++) {
        double sum = 0;
        for (uint32_t j = 0; j < n; j++)
            sum += ratio[k * n + j] = pow(g_rand_double(random), 3) + 1e-3;
        for (uint32_t j = 0; j < n; j++)
            ratio[k * n + j] /= sum;
    }
}

/* A random case with a duplex program and unrounded ratios. False if the batch cannot be cut. */
static bool open_case(uint32_t seed, RandomCase *c)
{
    *c = random_case_new(seed);
    Program *doubled = synth_duplex(c->plan->program, c->graph, 2 + seed % 3, NULL);
    if (!doubled) {
        random_case_free(c);
        return false;
    }
    program_free(c->plan->program);
    c->plan->program = doubled;
    for (uint32_t i = 0; i < c->plan->n_splits; i++)
        g_free(c->plan->split[i].count);
    c->plan->n_splits = 0;
    return true;
}

static SimLinear *linear_of(const RandomCase *c)
{
    return sim_linear(c->plan->program, c->graph, c->view, c->plan->segment,
                      c->plan->bucket_bytes);
}

static double time_at(const RandomCase *c, const SimLinear *linear, const double *ratio)
{
    g_autofree double *share = sim_shares(linear, c->view, ratio);
    return sim_linear_time(linear, c->view, share, NULL, NULL);
}

static double simulate(const RandomCase *c, const double *ratio)
{
    SimOptions options;
    sim_options_init(&options);
    const gsize n = (gsize)c->plan->n_segments * c->plan->n_devices;
    memcpy(c->plan->ratio, ratio, n * sizeof *ratio);
    g_autoptr(SimReport) report = random_case_evaluate(c, "stage", &options);
    return report->iteration_time_s;
}

static void test_linear_is_stage(void **state)
{
    (void)state;
    uint32_t doubled = 0, overlapped = 0;
    for (uint32_t seed = 0; seed < cases(); seed++) {
        RandomCase c;
        if (!open_case(seed, &c))
            continue;
        doubled++;
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        g_autoptr(SimLinear) linear = linear_of(&c);
        g_autoptr(SimMemory) memory =
            sim_memory(c.plan->program, c.graph, linear, c.plan->segment, NULL);
        const uint32_t n = c.view->n_devices;
        g_autofree double *ratio = g_new(double, (gsize)c.plan->n_segments *n);
        for (uint32_t i = 1; i < linear->n_stages; i++)
            overlapped += linear->stage[i].joins;
        for (uint32_t d = 0; d < 3; d++) {
            SimOptions options;
            sim_options_init(&options);
            draw_ratios(random, c.plan->n_segments, n, ratio);
            assert_close(time_at(&c, linear, ratio), simulate(&c, ratio), 1e-9);
            g_autoptr(SimReport) report = random_case_evaluate(&c, "stage", &options);
            g_autofree double *share = sim_shares(linear, c.view, ratio);
            for (uint32_t j = 0; j < n; j++)
                assert_at_most(fabs(sim_memory_peak(memory, c.view, share, j, NULL) -
                                    (double)report->memory_bytes[j]),
                               1 + 1e-9 * (double)report->memory_bytes[j]);
        }
        random_case_free(&c);
    }
    assert_true(doubled > cases() / 3);
    assert_true(overlapped > 10 * doubled);
}

/* The linear program's ratios, without memory; their time is that of the simulation, and no random
 * ratios are faster. */
static void test_no_ratios_are_faster(void **state)
{
    (void)state;
    uint32_t uneven = 0;
    for (uint32_t seed = 0; seed < cases(); seed++) {
        RandomCase c;
        if (!open_case(seed, &c))
            continue;
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        g_autoptr(GError) error = NULL;
        g_autoptr(SimLinear) linear = linear_of(&c);
        const uint32_t n = c.view->n_devices, n_segments = c.plan->n_segments;
        g_autofree double *ratio = g_new(double, (gsize)n_segments *n);
        g_autofree double *drawn = g_new(double, (gsize)n_segments *n);
        BalanceReport report;
        balance_ratios(linear, NULL, c.view, n_segments, ratio, &report, &error);
        assert_no_error(error);
        uneven += ratio[0] != ratio[n - 1];
        assert_close(report.time_s, simulate(&c, ratio), 1e-9);
        assert_at_most(report.dual_s, report.time_s);
        for (uint32_t d = 0; d < DRAWS; d++) {
            draw_ratios(random, n_segments, n, drawn);
            assert_at_most(report.dual_s, simulate(&c, drawn) * (1 + 1e-9));
        }
        random_case_free(&c);
    }
    assert_true(uneven > cases() / 5);
}

/* The least time with the first ratio given, then over all first ratios: the time is convex, so a
 * ternary search finds it. */
static double least_of_two(const RandomCase *c, const SimLinear *linear, double first)
{
    double low = 0, high = 1 - first;
    double ratio[3] = {first, 0, 0};
    for (uint32_t i = 0; i < STEPS; i++) {
        double at[2];
        for (uint32_t k = 0; k < 2; k++) {
            ratio[1] = low + (high - low) * (k + 1) / 3;
            ratio[2] = 1 - first - ratio[1];
            at[k] = time_at(c, linear, ratio);
        }
        *(at[0] < at[1] ? &high : &low) =
            low + (high - low) * (at[0] < at[1] ? 2 : 1) / 3;
    }
    return time_at(c, linear, ratio);
}

static double least_at(const RandomCase *c, const SimLinear *linear, double first)
{
    return c->view->n_devices == 2 ? time_at(c, linear, (double[]){first, 1 - first})
                                   : least_of_two(c, linear, first);
}

static double least(const RandomCase *c, const SimLinear *linear)
{
    double low = 0, high = 1, time_s = INFINITY;
    for (uint32_t i = 0; i < STEPS; i++) {
        const double at[2] = {low + (high - low) / 3, low + (high - low) * 2 / 3};
        const double s[2] = {least_at(c, linear, at[0]), least_at(c, linear, at[1])};
        time_s = fmin(time_s, fmin(s[0], s[1]));
        *(s[0] < s[1] ? &high : &low) = at[s[0] < s[1]];
    }
    return time_s;
}

static void test_equals_convex_search(void **state)
{
    (void)state;
    uint32_t compared = 0;
    for (uint32_t seed = 0; seed < 16 * cases() && compared < 40; seed++) {
        RandomCase c;
        if (!open_case(seed, &c))
            continue;
        const uint32_t n = c.view->n_devices;
        if (n >= 2 && n <= 3 && c.plan->n_segments == 1) {
            g_autoptr(GError) error = NULL;
            g_autoptr(SimLinear) linear = linear_of(&c);
            double ratio[3];
            BalanceReport report;
            balance_ratios(linear, NULL, c.view, 1, ratio, &report, &error);
            assert_no_error(error);
            assert_close(report.time_s, least(&c, linear), 1e-7);
            compared++;
        }
        random_case_free(&c);
    }
    assert_int_equal(compared, 40);
}

/* With too little memory for the fastest ratios: the resulting ratios fit, and no random ratios
 * that fit are faster. */
static void test_memory(void **state)
{
    (void)state;
    uint32_t bound = 0;
    for (uint32_t seed = 0; seed < cases(); seed++) {
        RandomCase c;
        if (!open_case(seed, &c))
            continue;
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        g_autoptr(SimLinear) linear = linear_of(&c);
        g_autoptr(SimMemory) memory =
            sim_memory(c.plan->program, c.graph, linear, c.plan->segment, NULL);
        const uint32_t n = c.view->n_devices, n_segments = c.plan->n_segments;
        g_autofree double *ratio = g_new(double, (gsize)n_segments *n);
        BalanceReport report;
        assert_true(
            balance_ratios(linear, NULL, c.view, n_segments, ratio, &report, NULL));
        const double free_s = report.time_s;
        g_autofree double *share = sim_shares(linear, c.view, ratio);
        for (uint32_t j = 0; j < n; j++)
            c.view->device[j].memory_bytes =
                (uint64_t)(sim_memory_peak(memory, c.view, share, j, NULL) *
                           (j ? 1.05 : 0.9));
        if (balance_ratios(linear, memory, c.view, n_segments, ratio, &report, NULL)) {
            bound += report.time_s > free_s * (1 + 1e-9);
            assert_close(report.time_s, simulate(&c, ratio), 1e-9);
            for (uint32_t d = 0; d < DRAWS; d++) {
                draw_ratios(random, n_segments, n, ratio);
                g_autofree double *drawn = sim_shares(linear, c.view, ratio);
                bool fits = true;
                for (uint32_t j = 0; j < n; j++)
                    fits &= sim_memory_peak(memory, c.view, drawn, j, NULL) <=
                            (double)c.view->device[j].memory_bytes;
                if (fits)
                    assert_at_most(report.dual_s, simulate(&c, ratio) * (1 + 1e-9));
            }
        }
        random_case_free(&c);
    }
    assert_true(bound > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear_is_stage),
                                       cmocka_unit_test(test_no_ratios_are_faster),
                                       cmocka_unit_test(test_equals_convex_search),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
