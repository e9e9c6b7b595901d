/* Random plans: the `stage` simulation equals the `analytic` formula, and neither depends
 * on the order of devices or on the unit of time. */
#include "tests/support/random_case.h"

#ifndef CASES /* the long run (tests/CMakeLists.txt) has more */
#define CASES 100
#endif

static SimReport *evaluate(const RandomCase *c, const char *fidelity)
{
    SimOptions options;

    sim_options_init(&options);
    return random_case_evaluate(c, fidelity, &options);
}

/* Equal to 1e-9 of the iteration; parts may be much smaller than the numbers whose differences they
 * are. */
static void assert_same_s(double a, double b, double iteration_s)
{
    assert_at_most(fabs(a - b), 1e-9 * iteration_s);
}

static void test_stage_equals_analytic(void **state)
{
    uint32_t stages = 0;

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(seed);
        g_autoptr(SimReport) a = evaluate(&c, "analytic");
        g_autoptr(SimReport) s = evaluate(&c, "stage");
        const double t = a->iteration_time_s;
        assert_true(t > 0);
        assert_same_s(s->iteration_time_s, t, t);
        assert_same_s(s->comm_s, a->comm_s, t);
        assert_same_s(s->comp_s, a->comp_s, t);
        assert_int_equal(s->n_stages, a->n_stages);
        stages += a->n_stages;
        for (uint32_t i = 0; i < a->n_stages; i++) {
            assert_same_s(s->stage[i].start_s, a->stage[i].start_s, t);
            assert_same_s(s->stage[i].comm_s, a->stage[i].comm_s, t);
            assert_same_s(s->stage[i].comp_s, a->stage[i].comp_s, t);
            assert_int_equal(s->stage[i].first, a->stage[i].first);
            assert_int_equal(s->stage[i].n, a->stage[i].n);
        }
        for (uint32_t j = 0; j < a->n_devices; j++) {
            assert_same_s(s->busy_s[j], a->busy_s[j], t);
            assert_same_s(s->comm_busy_s[j], a->comm_busy_s[j], t);
            assert_same_s(a->busy_s[j] + a->comm_busy_s[j] + a->idle_s[j], t, t);
            assert_at_most(-1e-9 * t, a->idle_s[j]);
            assert_int_equal(s->memory_bytes[j], a->memory_bytes[j]);
        }
        random_case_free(&c);
    }
    assert_true(stages > 10 * CASES); /* the programs are not trivial */
}

static void swap(void *a, void *b, size_t size)
{
    g_autofree char *other = g_memdup2(a, size);

    memcpy(a, b, size);
    memcpy(b, other, size);
}

/* Exchanges two devices in the view and in the plan. */
static void exchange(RandomCase *c, uint32_t a, uint32_t b)
{
    const uint32_t n = c->view->n_devices;

    swap(&c->view->device[a], &c->view->device[b], sizeof(Device));
    for (uint32_t k = 0; k < c->plan->n_segments; k++)
        swap(&c->plan->ratio[k * n + a], &c->plan->ratio[k * n + b], sizeof(double));
    for (uint32_t i = 0; i < c->plan->n_splits; i++)
        swap(&c->plan->split[i].count[a], &c->plan->split[i].count[b], sizeof(uint32_t));
}

static void test_order_of_devices(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(1000 + seed);
        g_autoptr(SimReport) before = evaluate(&c, "stage");
        const uint32_t last = c.view->n_devices - 1;
        exchange(&c, 0, last);
        g_autoptr(SimReport) after = evaluate(&c, "stage");
        assert_close(after->iteration_time_s, before->iteration_time_s, 1e-12);
        assert_close(after->busy_s[0], before->busy_s[last], 1e-12);
        assert_int_equal(after->memory_bytes[0], before->memory_bytes[last]);
        assert_int_equal(after->memory_bytes[last], before->memory_bytes[0]);
        assert_int_equal(after->feasible, before->feasible);
        assert_int_equal(after->missing_bytes, before->missing_bytes);
        random_case_free(&c);
    }
}

static void speed_up(LinkCost *link, double factor)
{
    link->latency_s = 0;
    link->bandwidth *= factor;
}

static void speed_up_pieces(ClusterView *view, double factor)
{
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        for (uint32_t p = 0; p < view->pieces[kind].n; p++)
            speed_up(&view->pieces[kind].piece[p].line, factor);
}

static void test_twice_as_fast(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(2000 + seed);
        double time_s[2];
        for (uint32_t i = 0; i < 2; i++) {
            for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
                speed_up(&c.view->collective[kind], i + 1);
            speed_up_pieces(c.view, i + 1);
            for (uint32_t j = 0; j < c.view->n_devices; j++) {
                c.view->device[j].stretch /= i + 1;
                speed_up(&c.view->device[j].inner, i + 1);
                c.view->device[j].rate *= i + 1;
            }
            g_autoptr(SimReport) report = evaluate(&c, "stage");
            time_s[i] = report->iteration_time_s;
        }
        assert_close(2 * time_s[1], time_s[0], 1e-9);
        random_case_free(&c);
    }
}

static void test_same_twice(void **state)
{
    (void)state;
    RandomCase c = random_case_new(3000);
    g_autoptr(SimReport) a = evaluate(&c, "stage");
    g_autoptr(SimReport) b = evaluate(&c, "stage");
    assert_true(a->iteration_time_s == b->iteration_time_s);
    random_case_free(&c);
}

/* Shares are those of the rounded splits, and the ratios where the plan has none. */
static void test_plan_shares(void **state)
{
    (void)state;
    RandomCase c = random_case_new(3002);
    const uint32_t n = c.view->n_devices;
    g_autoptr(SimLinear) linear =
        sim_linear(c.plan->program, c.graph, c.view, c.plan->segment, 0);
    g_autofree double *rounded = sim_plan_shares(c.plan, linear);
    const uint32_t n_splits = c.plan->n_splits;
    c.plan->n_splits = 0;
    g_autofree double *ratios = sim_plan_shares(c.plan, linear);
    c.plan->n_splits = n_splits;

    assert_int_equal(linear->n_splits, n_splits);
    for (uint32_t k = 0; k < n_splits; k++)
        for (uint32_t j = 0; j < n; j++) {
            const Split *split = &c.plan->split[k];
            assert_close(rounded[k * n + j] * split->units, split->count[j], 1e-12);
            assert_true(ratios[k * n + j] == c.plan->ratio[split->segment * n + j]);
        }
    random_case_free(&c);
}

static void test_errors(void **state)
{
    g_autoptr(GError) error = NULL;

    (void)state;
    RandomCase c = random_case_new(3001);
    assert_null(sim_evaluate(c.plan, c.graph, c.view, "magic", &error));
    assert_error(error, KILTER_ERROR_INPUT, "analytic, stage");
    g_clear_error(&error);
    c.plan->n_devices++;
    assert_null(sim_evaluate(c.plan, c.graph, c.view, "stage", &error));
    assert_error(error, KILTER_ERROR_INPUT, "devices");
    c.plan->n_devices--;
    random_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stage_equals_analytic),
        cmocka_unit_test(test_order_of_devices),
        cmocka_unit_test(test_twice_as_fast),
        cmocka_unit_test(test_same_twice),
        cmocka_unit_test(test_plan_shares),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
