/* The ratio LP at the edges of its input, and the LP interface when GLPK objects. */
#include <math.h>

#include "balance/balance.h"
#include "balance/lp.h"
#include "tests/support/random_linear.h"
#include "tests/test.h"

enum { DEVICES = 4 };

typedef struct {
    ClusterView *view;
    SimLinear *linear;
    double ratio[2 * DEVICES];
    BalanceReport report;
    GError *error;
} Fixture;

static int setup(void **state)
{
    const RandomShape shape = {DEVICES, 2, 6, 1, 0, true};
    g_autoptr(GRand) random = g_rand_new_with_seed(3);
    Fixture *f = g_new0(Fixture, 1);
    f->view = random_view(random, &shape);
    f->linear = random_linear(random, &shape);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    Fixture *f = *state;
    random_view_free(f->view);
    sim_linear_free(f->linear);
    g_clear_error(&f->error);
    g_free(f);
    return 0;
}

static bool balance(Fixture *f)
{
    g_clear_error(&f->error);
    return balance_ratios(f->linear, NULL, f->view, 1, f->ratio, &f->report, &f->error);
}

static void test_one_device(void **state)
{
    Fixture *f = *state;
    f->view->n_devices = 1;
    balance(f);
    assert_no_error(f->error);
    assert_close(f->ratio[0], 1, 1e-12);
    assert_close(f->report.dual_s, f->report.time_s, 1e-9);
}

static void test_zero_work_keeps_proportions(void **state)
{
    Fixture *f = *state;
    double rates = 0, comm = 0;
    for (uint32_t i = 0; i < f->linear->n_stages; i++) {
        f->linear->flops[i] = f->linear->inner_bytes[i] = 0;
        f->linear->stage[i].fixed = (SimWork){0};
        comm += f->linear->stage[i].comm_s;
    }
    f->linear->n_terms = 0;
    for (uint32_t j = 0; j < DEVICES; j++)
        rates += f->view->device[j].rate;
    balance(f);
    assert_no_error(f->error);
    for (uint32_t j = 0; j < DEVICES; j++)
        assert_close(f->ratio[j], f->view->device[j].rate / rates, 1e-12);
    assert_close(f->report.time_s, comm, 1e-12);
    f->linear->n_stages = 0;
    balance(f);
    assert_no_error(f->error);
    assert_true(f->report.time_s == 0);
}

static void test_segment_without_work_keeps_proportions(void **state)
{
    Fixture *f = *state;
    double rates = 0;
    for (uint32_t j = 0; j < DEVICES; j++)
        rates += f->view->device[j].rate;
    assert_true(
        balance_ratios(f->linear, NULL, f->view, 2, f->ratio, &f->report, &f->error));
    for (uint32_t j = 0; j < DEVICES; j++)
        assert_close(f->ratio[DEVICES + j], f->view->device[j].rate / rates, 1e-12);
}

static void test_slow_device_is_left_out(void **state)
{
    Fixture *f = *state;
    balance(f);
    assert_no_error(f->error);
    double before = f->report.time_s;
    f->view->device[1].rate *= 1e-9;
    balance(f);
    assert_no_error(f->error);
    assert_true(f->ratio[1] < 1e-6);
    assert_at_most(before, f->report.time_s * (1 + 1e-9));
}

/* The time is that of the same cluster without the device. */
static void test_zero_rate_device_gets_nothing(void **state)
{
    Fixture *f = *state;
    f->view->device[DEVICES - 1].rate = 0;
    f->view->device[DEVICES - 1].gpus = 1;
    balance(f);
    assert_no_error(f->error);
    assert_true(f->ratio[DEVICES - 1] == 0);
    double time = f->report.time_s;
    f->view->n_devices = DEVICES - 1;
    balance(f);
    assert_no_error(f->error);
    assert_close(f->report.time_s, time, 1e-9);
}

static void test_zero_rate_machine_passes_messages(void **state)
{
    Fixture *f = *state;
    Device *last = &f->view->device[DEVICES - 1];
    last->rate = 0;
    last->gpus = 8;
    last->inner = (LinkCost){0.5, 1e9};
    balance(f);
    assert_no_error(f->error);
    double least = 0;
    for (uint32_t i = 0; i < f->linear->n_stages; i++)
        least += 0.5 * f->linear->stage[i].fixed.inner_messages;
    assert_true(f->ratio[DEVICES - 1] == 0);
    assert_at_most(least, f->report.time_s);
}

static void test_zero_rate_device_cannot_replicate(void **state)
{
    Fixture *f = *state;
    f->view->device[2].rate = 0;
    f->linear->stage[4].fixed.flops = 1;
    assert_false(balance(f));
    assert_error(f->error, KILTER_ERROR_INPUT,
                 "device d2 has rate 0, but stage 4 has replicated computation");
}

static void test_no_rate_at_all(void **state)
{
    Fixture *f = *state;
    for (uint32_t j = 0; j < DEVICES; j++)
        f->view->device[j].rate = 0;
    assert_false(balance(f));
    assert_error(f->error, KILTER_ERROR_INPUT, "no device has a rate above 0");
}

static void test_bad_numbers_are_refused(void **state)
{
    Fixture *f = *state;
    static const double bad[] = {NAN, INFINITY, -1};
    struct {
        double *at;
        const char *part;
    } place[] = {
        {&f->view->device[1].rate, "rate of device d1"},
        {&f->view->device[1].inner.latency_s, "inner link of device d1"},
        {&f->linear->stage[2].comm_s, "stage 2"},
        {&f->linear->stage[3].fixed.flops, "stage 3"},
        {&f->linear->stage[3].fixed.inner_bytes, "stage 3"},
        {&f->linear->flops[5], "FLOPs at stage x split 5"},
        {&f->linear->inner_bytes[0], "inner bytes at stage x split 0"},
        {&f->linear->term[0].seconds, "seconds of a term"},
    };
    assert_true(f->linear->n_terms > 0);
    f->view->device[1].gpus = 2;
    for (uint32_t i = 0; i < G_N_ELEMENTS(place); i++) {
        double good = *place[i].at;
        for (uint32_t b = 0; b < G_N_ELEMENTS(bad); b++) {
            *place[i].at = bad[b];
            assert_false(balance(f));
            assert_error(f->error, KILTER_ERROR_INPUT, place[i].part);
            assert_null(strchr(f->error->message, '\n'));
        }
        *place[i].at = good;
    }
    balance(f);
    assert_no_error(f->error);
}

static void test_bad_memory_is_refused(void **state)
{
    Fixture *f = *state;
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    g_autoptr(SimMemory) memory = random_memory(random, f->linear, f->view, 2, 0.5);
    memory->held_sharded[1] = NAN;
    assert_false(
        balance_ratios(f->linear, memory, f->view, 1, f->ratio, &f->report, &f->error));
    assert_error(f->error, KILTER_ERROR_INPUT, "bytes at point x split 1");
}

/* Nothing is sharded: the memory that is always held does not fit. */
static void test_held_bytes_do_not_fit(void **state)
{
    Fixture *f = *state;
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    g_autoptr(SimMemory) memory = random_memory(random, f->linear, f->view, 2, 0);
    for (uint32_t j = 0; j < DEVICES; j++)
        f->view->device[j].memory_bytes = 1000000;
    memory->held[0] = memory->divided[0] = memory->divided[1] = 0;
    memory->held[1] = 1500000;
    f->view->device[2].memory_bytes = 300000;
    assert_false(
        balance_ratios(f->linear, memory, f->view, 1, f->ratio, &f->report, &f->error));
    assert_error(f->error, KILTER_ERROR_INFEASIBLE, "device d2 (");
    assert_error(f->error, KILTER_ERROR_INFEASIBLE, "1 of this kind)");
    assert_error(f->error, KILTER_ERROR_INFEASIBLE,
                 "(1200000 bytes) per GPU at instruction 10");
}

static void test_foreign_segment_is_refused(void **state)
{
    Fixture *f = *state;
    f->linear->split[0].segment = 1;
    assert_false(balance(f));
    assert_error(f->error, KILTER_ERROR_INPUT, "split 0 is of segment 1, of 1 segments");
    f->linear->split[0].segment = 0;
    g_clear_error(&f->error);
    assert_false(
        balance_ratios(f->linear, NULL, f->view, 0, f->ratio, &f->report, &f->error));
}

/* A device so slow or so fast that no solver can put it beside the others: either ratios, or an
 * error that says what is proved. */
static void test_far_rates(void **state)
{
    Fixture *f = *state;
    static const double FACTOR[] = {1e-300, 1e-30, 1e-12, 1e12, 1e30, 1e290};
    const double good = f->view->device[1].rate;
    uint32_t failed = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(FACTOR); i++) {
        f->view->device[1].rate = good * FACTOR[i];
        if (balance(f)) {
            assert_no_error(f->error);
            continue;
        }
        assert_error(f->error, KILTER_ERROR_FAILED, "is proved");
        failed++;
    }
    assert_in_range(failed, 1, 4);
}

/* --- the LP interface --- */

/* min x + 2 y, x + y >= 3, x <= 2 */
static Lp *small_lp(void)
{
    Lp *lp = lp_new(NULL);
    lp_column(lp, 0, 2, 1);
    lp_column(lp, 0, INFINITY, 2);
    lp_row(lp, 3, INFINITY, 2, (uint32_t[]){0, 1}, (double[]){1, 1});
    return lp;
}

static void test_lp_statuses(void **state)
{
    (void)state;
    {
        g_autoptr(Lp) lp = small_lp();
        assert_int_equal(lp_solve(lp, NULL), LP_OPTIMAL);
        assert_close(lp_objective(lp), 4, 1e-12);
        assert_close(lp_value(lp, 0), 2, 1e-12);
        assert_close(lp_value(lp, 1), 1, 1e-12);
        assert_close(lp_price(lp, 0), 2, 1e-12);
        uint32_t row = lp_row(lp, -INFINITY, 2.5, 1, (uint32_t[]){1}, (double[]){1});
        assert_true(lp_price(lp, row) == 0);
        row = lp_row(lp, 4, 4, 2, (uint32_t[]){0, 1}, (double[]){1, 1});
        assert_int_equal(lp_solve(lp, NULL), LP_OPTIMAL);
        assert_close(lp_objective(lp), 6, 1e-12);
        assert_close(lp_price(lp, row), 2, 1e-12);
        lp_row(lp, -INFINITY, 1, 1, (uint32_t[]){1}, (double[]){1});
        assert_int_equal(lp_solve(lp, NULL), LP_INFEASIBLE);
    }
    g_autoptr(Lp) lp = lp_new(NULL);
    lp_column(lp, 0, INFINITY, -1);
    assert_int_equal(lp_solve(lp, NULL), LP_UNBOUNDED);
}

static void test_lp_is_one_a_thread(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Lp) lp = lp_new(&error);
    assert_no_error(error);
    assert_non_null(lp);
    assert_null(lp_new(&error));
    assert_error(error, KILTER_ERROR_FAILED, "this thread has one open already");
}

/* The solver's abort becomes an error, and the next LP works. */
static void test_lp_survives_the_solver(void **state)
{
    (void)state;
    {
        g_autoptr(Lp) lp = small_lp();
        g_autoptr(GError) error = NULL;
        lp_row(lp, 0, 1, 1, (uint32_t[]){7}, (double[]){1});
        assert_int_equal(lp_solve(lp, &error), LP_FAILED);
        assert_error(error, KILTER_ERROR_FAILED, "LP of 2 rows and 2 columns: ");
        assert_error(error, KILTER_ERROR_FAILED, "column index out of range");
        g_clear_error(&error);
        assert_int_equal(lp_solve(lp, &error), LP_FAILED);
        assert_error(error, KILTER_ERROR_FAILED, "an earlier solve failed");
    }
    g_autoptr(Lp) lp = small_lp();
    assert_int_equal(lp_solve(lp, NULL), LP_OPTIMAL);
}

static void test_lp_refuses_what_is_not_a_number(void **state)
{
    (void)state;
    g_autoptr(Lp) lp = small_lp();
    g_autoptr(GError) error = NULL;
    lp_row(lp, 0, 1, 1, (uint32_t[]){0}, (double[]){NAN});
    assert_int_equal(lp_solve(lp, &error), LP_FAILED);
    assert_error(error, KILTER_ERROR_FAILED, "not a number");
}

/* Wherever it is: in the coefficient or the cost of any column. */
static void test_lp_looks_at_all_numbers(void **state)
{
    enum { COLUMNS = 3 };
    static const double wrong[] = {INFINITY, -INFINITY, NAN};
    (void)state;
    for (uint32_t place = 0; place < 3 * 2 * COLUMNS; place++) {
        double number[2 * COLUMNS] = {1, 1, 1, 1, 1, 1};
        g_autoptr(Lp) lp = lp_new(NULL);
        g_autoptr(GError) error = NULL;
        number[place % (2 * COLUMNS)] = wrong[place / (2 * COLUMNS)];
        if (isnan(number[0]) || isnan(number[1]) || isnan(number[2]))
            continue; /* no cost: a mistake of the program, not of the numbers */
        for (uint32_t i = 0; i < COLUMNS; i++)
            lp_column(lp, 0, 5, number[i]);
        for (uint32_t i = 0; i < COLUMNS; i++)
            lp_row(lp, 0, INFINITY, 1, &i, &number[COLUMNS + i]);
        assert_int_equal(lp_solve(lp, &error), LP_FAILED);
        assert_error(error, KILTER_ERROR_FAILED, "not a number");
    }
}

static void *balance_in_thread(void *data)
{
    Fixture *f = data;
    for (uint32_t i = 0; i < 50; i++) {
        if (!balance(f))
            return NULL;
    }
    return f;
}

/* Each thread has a solver of its own. */
static void test_threads_do_not_meet(void **state)
{
    enum { THREADS = 4 };
    Fixture *f = *state;
    balance(f);
    assert_no_error(f->error);
    Fixture copy[THREADS];
    GThread *thread[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        copy[i] = (Fixture){.view = f->view, .linear = f->linear};
        thread[i] = g_thread_new("balance", balance_in_thread, &copy[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_non_null(g_thread_join(thread[i]));
    for (uint32_t i = 0; i < THREADS; i++)
        assert_memory_equal(copy[i].ratio, f->ratio, sizeof f->ratio);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_device),
        TEST(test_zero_work_keeps_proportions),
        TEST(test_segment_without_work_keeps_proportions),
        TEST(test_slow_device_is_left_out),
        TEST(test_zero_rate_device_gets_nothing),
        TEST(test_zero_rate_machine_passes_messages),
        TEST(test_zero_rate_device_cannot_replicate),
        TEST(test_no_rate_at_all),
        TEST(test_bad_numbers_are_refused),
        TEST(test_bad_memory_is_refused),
        TEST(test_held_bytes_do_not_fit),
        TEST(test_foreign_segment_is_refused),
        cmocka_unit_test_setup_teardown(test_far_rates, setup, teardown),
        cmocka_unit_test(test_lp_statuses),
        cmocka_unit_test(test_lp_is_one_a_thread),
        cmocka_unit_test(test_lp_survives_the_solver),
        cmocka_unit_test(test_lp_refuses_what_is_not_a_number),
        cmocka_unit_test(test_lp_looks_at_all_numbers),
        TEST(test_threads_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
