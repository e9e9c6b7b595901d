/* Workloads given by durations, whose times under the `flow` fidelity can be worked out by hand. */
#include "tests/support/synthetic_case.h"

#define WORKLOAD "synthetic:layers=12,forward=10ms,backward=20ms,gradient=28MB"

/* 12 forwards and the first backward, then 12 rings of 28 MB one after another, since
 * each takes longer than a backward. */
static void test_data_parallel_iteration(void **state)
{
    static const struct {
        uint32_t hosts;
        double seconds;
    } row[] = {{8, 0.61208}, {64, 0.68432}, {256, 0.7367}, {1024, 0.922595}};

    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autofree char *cluster =
            g_strdup_printf("star:hosts=%u,bandwidth=10Gb/s,latency=5us", row[i].hosts);
        Case c = new_case(WORKLOAD, cluster);
        g_autoptr(SimReport) report = evaluate(&c);
        assert_close(report->iteration_time_s, row[i].seconds, 1e-6);
        assert_close(report->busy_s[0], 0.36, 1e-12);
        /* 12 rings and 140 ms before them; hidden are those under 11 backwards */
        assert_close(report->hidden_s[0], 0.22, 1e-9);
        assert_close(report->comm_busy_s[0], row[i].seconds - 0.36, 1e-5);
        free_case(&c);
    }
}

/* Two streams for gradients: two rings at a time share the links, so that they end as if one after
 * the other, apart from latencies that overlap. */
static void test_two_rings_at_a_time(void **state)
{
    (void)state;
    Case c = new_case("synthetic:layers=2,forward=1ms,backward=0s,gradient=28MB",
                      "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    g_autoptr(SimReport) one = evaluate(&c);
    set(&c, "streams", "3");
    g_autoptr(SimReport) two = evaluate(&c);
    assert_int_equal(two->timeline->n_streams, 4);
    assert_close(one->iteration_time_s, 0.002 + 2 * (0.0392 + 14 * 10e-6), 1e-9);
    assert_close(two->iteration_time_s, 0.002 + 2 * 0.0392 + 14 * 10e-6, 1e-9);
    free_case(&c);
}

/* Bytes through the links are those that the rings send: for each ring 2 (n-1)/n V per host, over
 * two links. */
static void test_conservation(void **state)
{
    (void)state;
    Case c = new_case(WORKLOAD, "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    g_autoptr(SimReport) report = evaluate(&c);
    double bytes = 0;
    for (uint32_t i = 0; i < report->timeline->n_links; i++)
        bytes += report->timeline->link[i].bytes;
    assert_close(bytes, 12 * 8 * 2 * (2 * 7.0 / 8 * 28e6), 1e-9);
    free_case(&c);
}

/* Without overlap the rings follow the last backward. */
static void test_no_overlap(void **state)
{
    (void)state;
    Case c = new_case(WORKLOAD, "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    set(&c, "overlap", "off");
    g_autoptr(SimReport) report = evaluate(&c);
    assert_close(report->iteration_time_s, 0.36 + 12 * (0.0392 + 14 * 10e-6), 1e-9);
    assert_close(report->hidden_s[0], 0, 1e-9);
    free_case(&c);
}

static double collective_s(const Case *c, Collective kind, double bytes)
{
    const double share = 1.0 / c->view->n_devices;
    return sim_collective_s(c->view, kind, bytes, share, share);
}

/* Gradients of 1 MB in buckets: the first closes at 1 MB, the others at 4 MB or at the end.
 * Reduce-scatters fill buckets like all-reduces; the all-gathers after them go one by one. */
static void check_buckets(bool scattered)
{
    Case c = new_case("synthetic:layers=12,forward=1ms,backward=1ms,gradient=1MB",
                      "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    const Collective kind = scattered ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
    program_free(c.plan->program);
    c.plan->program =
        data_parallel(c.graph, kind, scattered ? COLLECTIVE_ALL_GATHER : COLLECTIVES);
    c.plan->bucket_bytes = 4000000;
    set(&c, "first_bucket", "1MB");
    set(&c, "network", "crossbar");
    g_autoptr(SimReport) report = evaluate(&c);
    uint32_t fused[16] = {0}, n = 0;
    for (uint32_t i = 0; i < report->timeline->n_spans; i++)
        if (report->timeline->span[i].lane == SIM_TEAM)
            fused[n++] = report->timeline->span[i].n_fused;
    assert_int_equal(n, scattered ? 16 : 4);
    assert_int_equal(fused[0], 1);
    assert_int_equal(fused[1], 4);
    assert_int_equal(fused[2], 4);
    assert_int_equal(fused[3], 3);
    /* bucket of 1 after backward 1 (13 ms), of 4 after 5 (17 ms) and 9 (21 ms), the
     * last after 12 (24 ms) or when the third ends */
    const double one_s = collective_s(&c, kind, 1e6);
    const double three_s = collective_s(&c, kind, 3e6);
    const double four_s = collective_s(&c, kind, 4e6);
    const double gathers_s =
        scattered ? 12 * collective_s(&c, COLLECTIVE_ALL_GATHER, 1e6) : 0;
    const double second_s = fmax(0.017, 0.013 + one_s) + four_s;
    const double third_s = fmax(0.021, second_s) + four_s;
    assert_close(report->iteration_time_s, fmax(0.024, third_s) + three_s + gathers_s,
                 1e-9);
    free_case(&c);
}

static void test_buckets(void **state)
{
    (void)state;
    check_buckets(false);
    check_buckets(true);
}

/* A backward pass takes 1.25 times as long while the rings of later layers run. */
static void test_slowdown(void **state)
{
    (void)state;
    Case c = new_case("synthetic:layers=2,forward=10ms,backward=20ms,gradient=28MB",
                      "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        c.view->device[j].slowdown = 1.25;
    g_autoptr(SimReport) slow = evaluate(&c);
    /* the second backward lies under the first ring, which takes 39.34 ms */
    assert_close(slow->busy_s[0], 0.02 + 0.02 + 0.025, 1e-9);
    assert_close(slow->iteration_time_s, 0.04 + 2 * 0.03934, 1e-9);
    /* a short ring: 20 ms of work are 4.55 ms under it (3.64 done) and the rest */
    free_case(&c);
    c = new_case("synthetic:layers=2,forward=10ms,backward=20ms,gradient=3.15MB",
                 "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        c.view->device[j].slowdown = 1.25;
    g_autoptr(SimReport) part = evaluate(&c);
    assert_close(part->busy_s[0], 0.04 + 0.00455 + (0.02 - 0.00455 / 1.25), 1e-9);
    free_case(&c);
}

/* Computation slows a ring, by crossbar and over links. Both slow one another: the second backward
 * takes 25 ms, in which the ring makes 20 ms of progress. */
static void test_interference(void **state)
{
    (void)state;
    static const char *const networks[] = {"crossbar", "topology"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(networks); i++) {
        Case c = new_case("synthetic:layers=2,forward=10ms,backward=20ms,gradient=28MB",
                          "star:hosts=8,bandwidth=10Gb/s,latency=5us");
        set(&c, "network", networks[i]);
        for (uint32_t j = 0; j < c.view->n_devices; j++)
            c.view->device[j].interference = 1.25;
        g_autoptr(SimReport) slow = evaluate(&c);
        /* 20 ms of the first ring of 39.34 ms are 16 ms of progress */
        assert_close(slow->busy_s[0], 0.06, 1e-9);
        assert_close(slow->iteration_time_s, 0.04 + 2 * 0.03934 + 0.004, 1e-8);
        for (uint32_t j = 0; j < c.view->n_devices; j++)
            c.view->device[j].slowdown = 1.25;
        g_autoptr(SimReport) both = evaluate(&c);
        assert_close(both->busy_s[0], 0.065, 1e-9);
        assert_close(both->iteration_time_s, 0.04 + 2 * 0.03934 + 0.005, 1e-8);
        free_case(&c);
    }
}

static void test_straggler(void **state)
{
    (void)state;
    Case c = new_case(WORKLOAD, "star:hosts=8,bandwidth=10Gb/s,latency=5us");
    set(&c, "straggler", "host-3*2");
    g_autoptr(SimReport) report = evaluate(&c);
    /* its first gradient comes at 280 ms; rings of 39.34 ms wait for its backwards of
     * 40 ms */
    assert_close(report->iteration_time_s, 0.28 + 11 * 0.04 + 0.03934, 1e-9);
    assert_close(report->busy_s[3], 0.72, 1e-9);
    assert_close(report->busy_s[2], 0.36, 1e-9);
    free_case(&c);
}

static void test_bad_straggler(void **state)
{
    static const char *const bad[] = {"host-9*2", "host-3", "host-3*0", "host-3*-1",
                                      "host-3*2x"};

    (void)state;
    Case c = new_case("synthetic", "star:hosts=4,bandwidth=10Gb/s,latency=5us");
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        set(&c, "straggler", bad[i]);
        assert_null(
            sim_evaluate_with(c.plan, c.graph, c.view, "flow", &c.options, &error));
        assert_error(error, KILTER_ERROR_INPUT, "straggler");
    }
    free_case(&c);
}

/* --- faults --- */

#define RING "star:hosts=8,bandwidth=10Gb/s,latency=5us"

static void test_slow_link(void **state)
{
    (void)state;
    Case c =
        new_case("synthetic:layers=1,forward=10ms,backward=20ms,gradient=28MB", RING);
    /* 30 ms later the ring starts: 14 steps of 3.5 MB and 10 us; from 50 ms on one of its
     * links has half the bandwidth */
    set(&c, "slow_link", "host-0>switch-0*2@50ms");
    set(&c, "network", "topology");
    g_autoptr(SimReport) report = evaluate(&c);
    const double moved = (0.05 - 0.03 - 14 * 10e-6) * 1.25e9; /* latency first */
    assert_close(report->iteration_time_s, 0.05 + (14 * 3.5e6 - moved) / 0.625e9, 1e-9);
    free_case(&c);
}

static void test_failures(void **state)
{
    static const struct {
        const char *fail, *says;
    } row[] = {{"host-2@100ms", "device host-2 fails at 100 ms"},
               {"host-2>switch-0@200ms+host-1@400ms", "link host-2>switch-0"}};

    (void)state;
    Case c = new_case(WORKLOAD, RING);
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(GError) error = NULL;
        set(&c, "fail", row[i].fail);
        assert_null(
            sim_evaluate_with(c.plan, c.graph, c.view, "flow", &c.options, &error));
        assert_error(error, KILTER_ERROR_FAILED, row[i].says);
    }
    /* again after 1 s, from the failure at 200 ms on */
    set(&c, "restart", "1s");
    g_autoptr(SimReport) again = evaluate(&c);
    assert_close(again->iteration_time_s, 1.2 + 0.61208, 1e-9);
    /* nothing fails after the end */
    set(&c, "fail", "host-2@1s");
    g_autoptr(SimReport) late = evaluate(&c);
    assert_close(late->iteration_time_s, 0.61208, 1e-9);
    free_case(&c);
}

static void test_bad_faults(void **state)
{
    static const struct {
        const char *key, *value;
    } row[] = {{"fail", "host-9@1s"},
               {"fail", "host-1"},
               {"fail", "host-1@x"},
               {"slow_link", "host-1*2@1s"},
               {"slow_link", "host-1>switch-0@1s"},
               {"slow_link", "host-1>switch-0*0.5@1s"}};

    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(GError) error = NULL;
        Case c = new_case("synthetic", "star:hosts=4,bandwidth=10Gb/s,latency=5us");
        set(&c, row[i].key, row[i].value);
        assert_null(
            sim_evaluate_with(c.plan, c.graph, c.view, "flow", &c.options, &error));
        assert_error(error, KILTER_ERROR_INPUT, row[i].key);
        free_case(&c);
    }
}

/* --- samples --- */

static SimSamples *samples_of(const Case *c, uint32_t n, uint32_t jobs)
{
    g_autoptr(GError) error = NULL;
    SimSamples *samples =
        sim_samples(c->plan, c->graph, c->view, &c->options, n, jobs, &error);

    assert_no_error(error);
    return samples;
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    Case c = new_case(WORKLOAD, "star:hosts=6,bandwidth=10Gb/s,latency=5us");
    set(&c, "jitter", "0.1");
    set(&c, "straggler", "any*1.2");
    g_autoptr(SimSamples) one = samples_of(&c, 40, 1);
    g_autoptr(SimSamples) eight = samples_of(&c, 40, 8);
    g_autoptr(SimSamples) fewer = samples_of(&c, 10, 2);
    assert_memory_equal(one->time_s, eight->time_s, 40 * sizeof(double));
    assert_memory_equal(one->time_s, fewer->time_s, 10 * sizeof(double));
    assert_true(one->mean_s == eight->mean_s);
    assert_true(one->low_s < one->mean_s && one->mean_s < one->high_s);
    assert_true(one->p95_s > one->median_s);
    c.options.seed = 2;
    g_autoptr(SimSamples) other = samples_of(&c, 40, 1);
    assert_true(other->time_s[0] != one->time_s[0]);
    free_case(&c);
}

/* One device alone: 24 durations in a row with mean 1 and the given deviation. */
static void test_jitter_has_its_moments(void **state)
{
    static const char *const distribution[] = {"normal", "lognormal", "gamma"};
    enum { SAMPLES = 4000, OPS = 24 };
    const double jitter = 0.2, op_s = 0.01;

    (void)state;
    Case c = new_case("synthetic:batch=2,forward=10ms,backward=10ms",
                      "star:hosts=1,bandwidth=10Gb/s,latency=5us");
    set(&c, "jitter", "0.2");
    for (uint32_t i = 0; i < G_N_ELEMENTS(distribution); i++) {
        set(&c, "distribution", distribution[i]);
        g_autoptr(SimSamples) samples = samples_of(&c, SAMPLES, 2);
        /* 4 standard errors; that of a deviation is about s / sqrt(2 n) */
        const double s = jitter * op_s * sqrt(OPS);
        assert_at_most(fabs(samples->mean_s - OPS * op_s), 4 * s / sqrt(SAMPLES));
        assert_at_most(fabs(samples->deviation_s - s), 4 * s / sqrt(2 * SAMPLES));
    }
    free_case(&c);
}

/* The draws of a device do not depend on the other devices. */
static void test_streams_are_independent(void **state)
{
    (void)state;
    Case few = new_case(WORKLOAD, "star:hosts=3,bandwidth=10Gb/s,latency=5us");
    Case many = new_case(WORKLOAD, "star:hosts=4,bandwidth=10Gb/s,latency=5us");
    set(&few, "jitter", "0.1");
    set(&many, "jitter", "0.1");
    g_autoptr(SimReport) a = evaluate(&few);
    g_autoptr(SimReport) b = evaluate(&many);
    for (uint32_t j = 0; j < 3; j++)
        assert_close(a->busy_s[j], b->busy_s[j], 1e-12);
    assert_true(b->busy_s[3] != b->busy_s[0]);
    free_case(&few);
    free_case(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_parallel_iteration),
        cmocka_unit_test(test_two_rings_at_a_time),
        cmocka_unit_test(test_conservation),
        cmocka_unit_test(test_no_overlap),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_slowdown),
        cmocka_unit_test(test_interference),
        cmocka_unit_test(test_straggler),
        cmocka_unit_test(test_bad_straggler),
        cmocka_unit_test(test_slow_link),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_bad_faults),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_jitter_has_its_moments),
        cmocka_unit_test(test_streams_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
