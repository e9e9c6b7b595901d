/* Days of training, compared with closed forms and with a simulation that goes iteration by
 * iteration. */
#include <math.h>

#include "sim/campaign/campaign.h"
#include "sim/sim.h"
#include "tests/test.h"

static SimCampaign base(void)
{
    return (SimCampaign){.iteration_s = 1,
                         .days_s = 10 * 86400.0,
                         .gpus = 8,
                         .mtbf_s = INFINITY,
                         .shape = 1,
                         .interval_s = 100,
                         .save_s = 7,
                         .restart_s = 50,
                         .repair_s = 1000,
                         .spares = 100000,
                         .runs = 1,
                         .seed = 1};
}

static SimCampaignRun run_of(const SimCampaign *of)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimCampaignReport) report = sim_campaign(of, &error);
    assert_no_error(error);
    const SimCampaignRun *run = &report->run[0];
    assert_close(run->work_s + run->slow_s + run->lost_s + run->save_s + run->restart_s +
                     run->wait_s,
                 of->days_s, 1e-9);
    return *run;
}

/* Without failures: whole cycles, and the rest of the last one. */
static void test_no_failure(void **state)
{
    (void)state;
    SimCampaign of = base();
    of.days_s = 107 * 50 + 30;
    const SimCampaignRun run = run_of(&of);
    assert_close(run.work_s, 50 * 100 + 30, 1e-12);
    assert_close(run.save_s, 50 * 7, 1e-12);
    assert_int_equal(run.checkpoints, 50);
}

/* One failure: during work, during a save, and during the writing of a checkpoint, which then
 * cannot be used. */
static void test_one_failure(void **state)
{
    (void)state;
    static const struct {
        double at_s, write_s, lost_s, save_s;
    } CASE[] = {{107 * 3 + 40, 0, 40, 21},
                {107 * 3 + 103, 0, 100, 24},
                {107 * 3 + 40, 60, 140, 21},
                {107 * 3 + 40, 40, 40, 21},
                {0, 0, 0, 0}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        SimCampaign of = base();
        of.days_s = CASE[i].at_s + 50; /* to the end of the restart */
        of.failure_s = &CASE[i].at_s;
        of.n_failures = 1;
        of.write_s = CASE[i].write_s;
        const SimCampaignRun run = run_of(&of);
        assert_close(run.lost_s, CASE[i].lost_s, 1e-9);
        assert_close(run.save_s, CASE[i].save_s, 1e-9);
        assert_close(run.restart_s, 50, 1e-9);
    }
}

/* --- iteration by iteration --- */

typedef struct {
    double work, lost, save, down;
} Slow;

/* Simulates the rules of a campaign in small steps of time, with enough spares. */
static Slow step_by_step(const SimCampaign *of, const double *failure_s, uint32_t n)
{
    Slow slow = {0};
    double now = 0, since = 0, kept = 0, pending = 0, usable = INFINITY;
    uint32_t next = 0;
    const double step = 0.25;
    while (now < of->days_s - 1e-9) {
        if (next < n && failure_s[next] <= now + 1e-9) {
            double up = failure_s[next] + of->restart_s;
            for (next++; next < n && failure_s[next] < up; next++)
                up = failure_s[next] + of->restart_s;
            slow.lost += slow.work - kept;
            slow.work = kept;
            since = 0;
            usable = INFINITY;
            slow.down += MIN(up, of->days_s) - now;
            now = up;
            continue;
        }
        if (since < of->interval_s - 1e-9) {
            slow.work += step;
            since += step;
        } else {
            slow.save += step;
            since += step;
            if (since >= of->interval_s + of->save_s - 1e-9) {
                since = 0;
                pending = slow.work;
                usable = now + step + of->write_s;
            }
        }
        now += step;
        if (usable <= now + 1e-9) {
            kept = pending;
            usable = INFINITY;
        }
    }
    return slow;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_step_by_step(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    for (uint32_t i = 0; i < 300; i++) {
        double failure_s[40];
        SimCampaign of = base();
        of.days_s = g_rand_int_range(rand, 100, 20000);
        of.n_failures = (uint32_t)g_rand_int_range(rand, 0, 40);
        for (uint32_t k = 0; k < of.n_failures; k++)
            failure_s[k] = 0.25 * g_rand_int_range(rand, 0, 4 * (int)of.days_s);
        qsort(failure_s, of.n_failures, sizeof *failure_s, by_value);
        of.failure_s = failure_s;
        of.interval_s = g_rand_int_range(rand, 1, 400);
        of.save_s = 0.25 * g_rand_int_range(rand, 1, 80);
        of.restart_s = 0.25 * g_rand_int_range(rand, 0, 400);
        of.write_s =
            g_rand_boolean(rand) ? g_rand_int_range(rand, 0, (int)of.interval_s) : 0;
        const SimCampaignRun run = run_of(&of);
        const Slow slow = step_by_step(&of, failure_s, of.n_failures);
        assert_close(run.work_s, slow.work, 1e-9);
        assert_close(run.lost_s, slow.lost, 1e-9);
        assert_close(run.save_s, slow.save, 1e-9);
        assert_close(run.restart_s, slow.down, 1e-9);
    }
}

/* --- closed forms --- */

/* The goodput with exponential failures of the whole cluster (Daly 2006, Eq. 20). */
static double kept(double interval_s, double mtbf_s, const SimCampaign *of)
{
    return interval_s /
           ((mtbf_s + of->restart_s) * expm1((interval_s + of->save_s) / mtbf_s));
}

static void test_best_interval(void **state)
{
    (void)state;
    SimCampaign of = base();
    for (double mtbf_s = 1e3; mtbf_s < 1e7; mtbf_s *= 7)
        for (of.save_s = 0.01 * mtbf_s; of.save_s > 1e-6 * mtbf_s; of.save_s /= 5) {
            const double best_s = sim_campaign_best_interval_s(mtbf_s, of.save_s);
            const double most = kept(best_s, mtbf_s, &of);
            for (double t = 0.5; t < 2; t *= 1.01)
                assert_true(kept(t * best_s, mtbf_s, &of) <= most * (1 + 1e-12));
            /* Young's and Daly's approximation agrees to 1 %. */
            const double young_s = sqrt(2 * of.save_s * mtbf_s);
            assert_true(kept(young_s, mtbf_s, &of) >= 0.99 * most);
            if (of.save_s < 1e-4 * mtbf_s)
                assert_close(best_s, young_s, 0.01);
        }
    assert_true(isinf(sim_campaign_best_interval_s(INFINITY, 1)));
    assert_true(sim_campaign_best_interval_s(1000, 0) == 0);
}

/* Drawn runs have that mean, and equal seeds give equal runs. */
static void test_mean(void **state)
{
    (void)state;
    SimCampaign of = base();
    of.gpus = 100;
    of.mtbf_s = 100 * 4000.0;
    of.interval_s = 0;
    of.days_s = 20 * 86400.0;
    of.runs = 400;
    g_autoptr(SimCampaignReport) report = sim_campaign(&of, NULL);
    g_autoptr(SimCampaignReport) again = sim_campaign(&of, NULL);
    assert_close(report->system_mtbf_s, 4000, 1e-12);
    assert_close(report->failures, of.days_s / 4000, 0.02);
    assert_close(report->goodput, kept(report->interval_s, 4000, &of), 0.01);
    assert_memory_equal(report->run, again->run, of.runs * sizeof *report->run);
    assert_true(report->low < report->median && report->median < report->high);
    /* No other interval is better by more than the noise of the draws. */
    for (double t = 0.25; t <= 4; t *= 2) {
        of.interval_s = t * report->interval_s;
        g_autoptr(SimCampaignReport) other = sim_campaign(&of, NULL);
        assert_true(other->goodput <= report->goodput * 1.002);
    }
    of.interval_s = 0;
    of.shape = 0.7;
    g_autoptr(SimCampaignReport) weibull = sim_campaign(&of, NULL);
    assert_true(weibull->failures > report->failures); /* young GPUs fail more often */
}

/* The search finds Daly's interval where failures are exponential, within 1 %, and says how sure
 * it is. */
static void test_searched_interval(void **state)
{
    (void)state;
    SimCampaign of = base();
    of.gpus = 100;
    of.mtbf_s = 100 * 4000.0;
    of.interval_s = 0;
    of.iteration_s = 1e-3;
    of.days_s = 20 * 86400.0;
    const double best_s = sim_campaign_best_interval_s(4000, of.save_s);
    of.write_s = 1e-9; /* no closed form */
    uint32_t covered = 0;
    for (of.seed = 1; of.seed <= 5; of.seed++) {
        g_autoptr(SimCampaignReport) searched = sim_campaign(&of, NULL);
        assert_close(searched->interval_s, best_s, 0.01);
        covered +=
            searched->interval_low_s < best_s && best_s < searched->interval_high_s;
        assert_true(searched->interval_high_s < 1.03 * searched->interval_low_s);
    }
    assert_true(covered >= 4);
    of.write_s = 0;
    g_autoptr(SimCampaignReport) exact = sim_campaign(&of, NULL);
    assert_close(exact->interval_s, best_s, 1e-4);
    assert_true(exact->interval_low_s == 0);
    /* A log of such failures says the same, as far as it goes. */
    enum { LOG = 4000 };
    g_autofree double *log_s = g_new(double, LOG);
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    double at_s = 0;
    for (uint32_t i = 0; i < LOG; i++)
        log_s[i] = at_s -= 4000 * log(1 - g_rand_double(rand));
    of.failure_s = log_s;
    of.n_failures = LOG;
    g_autoptr(SimCampaignReport) logged = sim_campaign(&of, NULL);
    assert_close(logged->interval_s, best_s, 0.05);
    assert_true(logged->interval_low_s > 0);
}

/* Bursts of failures want another interval than equal rates: no other one has more goodput by
 * more than the noise. */
static void test_weibull_interval(void **state)
{
    (void)state;
    SimCampaign of = base();
    of.gpus = 100;
    of.mtbf_s = 100 * 86400.0;
    of.shape = 0.5;
    of.interval_s = 0;
    of.days_s = 5 * 86400.0;
    of.save_s = 60;
    of.runs = 400;
    g_autoptr(SimCampaignReport) best = sim_campaign(&of, NULL);
    assert_true(best->interval_low_s < best->interval_s &&
                best->interval_s < best->interval_high_s);
    for (double t = 0.25; t <= 4; t *= sqrt(2)) {
        of.interval_s = t * best->interval_s;
        g_autoptr(SimCampaignReport) other = sim_campaign(&of, NULL);
        assert_true(other->goodput <= best->goodput * 1.001);
    }
    /* Twice as many failures at first as on average: shorter than in the closed form. */
    assert_true(best->interval_high_s <
                sim_campaign_best_interval_s(best->system_mtbf_s, of.save_s));
}

/* Any number of threads gives the same bytes. */
static void test_threads(void **state)
{
    (void)state;
    static const uint32_t THREADS[] = {1, 2, 3, 8};
    g_autofree SimCampaignRun *first = NULL;
    double interval_s = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(THREADS); i++) {
        SimCampaign of = base();
        of.mtbf_s = 8 * 5000.0;
        of.shape = 0.8;
        of.spares = 2;
        of.interval_s = 0;
        of.straggler_every_s = 1e5;
        of.straggler_stays_s = 60;
        of.straggler_factor = 1.5;
        of.runs = 50;
        of.threads = THREADS[i];
        g_autoptr(SimCampaignReport) report = sim_campaign(&of, NULL);
        if (!first) {
            first = g_memdup2(report->run, of.runs * sizeof *first);
            interval_s = report->interval_s;
        }
        assert_memory_equal(first, report->run, of.runs * sizeof *first);
        assert_true(report->interval_s == interval_s);
    }
}

/* Without a spare the run waits for the repair, or goes on more slowly. */
static void test_spares(void **state)
{
    (void)state;
    const double at_s = 107 * 3, slower = 1.5;
    SimCampaign of = base();
    of.failure_s = &at_s;
    of.n_failures = 1;
    of.spares = 0;
    of.days_s = at_s + of.repair_s + of.restart_s + 107;
    const SimCampaignRun waits = run_of(&of);
    assert_close(waits.wait_s, of.repair_s, 1e-9);
    assert_close(waits.work_s, 400, 1e-9);
    of.fewer = &slower;
    of.n_fewer = 1;
    const SimCampaignRun goes_on = run_of(&of);
    assert_true(goes_on.wait_s == 0);
    assert_close(goes_on.restart_s, 2 * of.restart_s, 1e-9);
    assert_true(goes_on.work_s > waits.work_s && goes_on.slow_s > 0);
}

/* A switch takes several machines out: spares first, then fewer machines, then all wait for
 * those that come back. */
static void test_parts(void **state)
{
    (void)state;
    const double at_s[] = {107 * 3, 107 * 3 + 5000}, slower = 1.5;
    const uint32_t machines[] = {4, 0};
    SimCampaign of = base();
    of.failure_s = at_s;
    of.failure_machines = machines;
    of.n_failures = 1;
    of.days_s = at_s[0] + of.repair_s + of.restart_s + 107;
    of.spares = 4;
    assert_true(run_of(&of).wait_s == 0);
    of.spares = 3;
    assert_close(run_of(&of).wait_s, of.repair_s, 1e-9);
    of.fewer = &slower;
    of.n_fewer = 1;
    assert_true(run_of(&of).wait_s == 0 && run_of(&of).slow_s > 0);
    of.spares = 2;
    assert_close(run_of(&of).wait_s, of.repair_s, 1e-9);
    /* The second failure only restarts. */
    of.spares = 4;
    of.n_fewer = 0;
    of.n_failures = 2;
    of.days_s += 10000;
    const SimCampaignRun restarts = run_of(&of);
    assert_true(restarts.wait_s == 0);
    assert_close(restarts.restart_s, 2 * of.restart_s, 1e-9);
}

/* Parts and GPUs together fail as one whole with the sum of their rates. */
static void test_rates_of_parts(void **state)
{
    (void)state;
    const SimCampaignPart part[] = {{16, 16 * 16000.0, 1}, {4, 4 * 16000.0, 3}};
    SimCampaign of = base();
    of.gpus = 100;
    of.mtbf_s = 100 * 8000.0;
    of.part = part;
    of.n_parts = G_N_ELEMENTS(part);
    of.interval_s = 0;
    of.days_s = 20 * 86400.0;
    of.runs = 400;
    g_autoptr(SimCampaignReport) report = sim_campaign(&of, NULL);
    assert_close(report->system_mtbf_s, 4000, 1e-12);
    assert_close(report->failures, of.days_s / 4000, 0.02);
    assert_close(report->goodput, kept(report->interval_s, 4000, &of), 0.01);
}

/* A million iterations on 16,384 GPUs, a hundred times, take no longer than a test may. */
static void test_large(void **state)
{
    (void)state;
    SimCampaign of = base();
    of.gpus = 16384;
    of.mtbf_s = 50680 * 3600.0;
    of.iteration_s = 5;
    of.days_s = 5e6;
    of.interval_s = 0;
    of.runs = 100;
    g_autoptr(SimCampaignReport) report = sim_campaign(&of, NULL);
    assert_true(report->goodput > 0.95 && report->goodput < 1);
    of.straggler_every_s = 1e6;
    of.straggler_stays_s = 60;
    of.straggler_factor = 1.5;
    g_autoptr(SimCampaignReport) slowed = sim_campaign(&of, NULL);
    assert_true(slowed->goodput < report->goodput);
    of.straggler_every_s = 1e-3;
    g_autoptr(GError) error = NULL;
    assert_null(sim_campaign(&of, &error));
    assert_error(error, KILTER_ERROR_INPUT, "expected at most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_failure),
        cmocka_unit_test(test_one_failure),
        cmocka_unit_test(test_step_by_step),
        cmocka_unit_test(test_best_interval),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_spares),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_rates_of_parts),
        cmocka_unit_test(test_searched_interval),
        cmocka_unit_test(test_weibull_interval),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
