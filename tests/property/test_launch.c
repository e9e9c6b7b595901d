/* Launches: hosts that launch one op after the other while their devices work. */
#include "tests/support/pipeline_case.h"
#include "tests/support/random_case.h"

static const char *const FIDELITY[] = {"stage", "flow"};

/* Every launch takes that long; views are not launched. */
static void set_launch(Cluster *cluster, ClusterView **view, double launch_s)
{
    const Granularity granularity = (*view)->granularity;
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        DeviceType *type = &cluster->type[t];
        type->launch_s = launch_s;
        for (uint32_t kind = 0; type->op && kind < OP_KINDS; kind++)
            type->op[kind].launch_s = launch_s;
    }
    cluster_view_free(*view);
    *view = cluster_view(cluster, granularity);
}

static SimReport *evaluate_as(const Case *c, const char *fidelity, const char *overlap,
                              const char *host)
{
    g_autoptr(GError) error = NULL;
    SimOptions options;
    sim_options_init(&options);
    sim_options_set(&options, "host", host, &error);
    assert_no_error(error);
    sim_options_set(&options, "network", "crossbar", &error);
    assert_no_error(error);
    sim_options_set(&options, "overlap", overlap, &error);
    assert_no_error(error);
    SimReport *report =
        sim_evaluate_with(c->plan, c->graph, c->view, fidelity, &options, &error);
    assert_no_error(error);
    return report;
}

static SimReport *evaluate(const Case *c, const char *fidelity, const char *overlap)
{
    return evaluate_as(c, fidelity, overlap, "ahead");
}

static uint32_t count_launches(const SimReport *report, uint32_t lane)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < report->timeline->n_spans; i++)
        n += report->timeline->span[i].launch && report->timeline->span[i].lane == lane;
    return n;
}

/* A negligibly short launch changes nothing, bit for bit: in SPMD programs and pipelines, with and
 * without buckets and overlap. */
static void compare_tiny(Case *c)
{
    static const char *const overlap[] = {"off", "on"};
    for (uint32_t k = 0; k < 4; k++) {
        set_launch(c->cluster, &c->view, 0);
        g_autoptr(SimReport) before = evaluate(c, FIDELITY[k / 2], overlap[k % 2]);
        set_launch(c->cluster, &c->view, 1e-100);
        g_autoptr(SimReport) after = evaluate(c, FIDELITY[k / 2], overlap[k % 2]);
        assert_int_equal(count_launches(before, 0), 0);
        assert_true(count_launches(after, 0) > 0);
        assert_true(before->iteration_time_s == after->iteration_time_s);
        for (uint32_t j = 0; j < before->n_devices; j++) {
            assert_true(before->busy_s[j] == after->busy_s[j]);
            assert_true(before->comm_busy_s[j] == after->comm_busy_s[j]);
            assert_true(before->memory_bytes[j] == after->memory_bytes[j]);
        }
        for (uint32_t i = 0; i < before->n_stages; i++)
            assert_at_most(fabs(before->stage[i].comm_s - after->stage[i].comm_s), 1e-90);
    }
}

static void test_tiny(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 60; seed++) {
        RandomCase r = random_case_new(seed);
        Case c = {r.graph, r.cluster, r.view, r.plan};
        compare_tiny(&c);
        case_clear(&c);
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        g_auto(Case) c = case_new(&SETTINGS[i]);
        compare_tiny(&c);
    }
}

/* The path has no gap and its parts sum to the time; no host launches two at a time. */
static void check_timeline(const SimReport *report)
{
    const SimTimeline *timeline = report->timeline;
    g_autofree double *host_s = g_new0(double, timeline->n_lanes);
    double launch_s = 0;
    uint32_t n;
    g_autofree uint32_t *path = sim_timeline_critical_path(timeline, &n);
    assert_true(timeline->span[path[0]].start_s == 0);
    for (uint32_t i = 0; i < n; i++) {
        const SimSpan *span = &timeline->span[path[i]];
        launch_s += span->launch ? span->end_s - span->start_s : 0;
        if (i + 1 < n)
            assert_true(span->end_s == timeline->span[path[i + 1]].start_s);
    }
    assert_close(report->comm_s + report->comp_s, report->iteration_time_s, 1e-12);
    assert_at_most(fabs(report->launch_s - launch_s), 1e-12 * report->iteration_time_s);
    for (uint32_t i = 0; i < timeline->n_spans; i++) {
        const SimSpan *span = &timeline->span[i];
        if (!span->launch)
            continue;
        if (strcmp(report->fidelity, "stage") == 0)
            assert_at_most(host_s[span->lane], span->start_s);
        host_s[span->lane] = MAX(host_s[span->lane], span->end_s);
    }
    for (uint32_t l = 0; l < timeline->n_lanes; l++)
        assert_at_most(host_s[l], report->iteration_time_s * (1 + 1e-12));
}

/* Longer launches never make an iteration shorter, it takes as long as each host launches, and at
 * least the time without. */
static void check_growth(Case *c)
{
    for (uint32_t k = 0; k < 2; k++) {
        set_launch(c->cluster, &c->view, 0);
        g_autoptr(SimReport) none = evaluate(c, FIDELITY[k], "off");
        double before_s = none->iteration_time_s;
        for (double launch_s = none->iteration_time_s / 1000;
             launch_s < none->iteration_time_s; launch_s *= 10) {
            set_launch(c->cluster, &c->view, launch_s);
            g_autoptr(SimReport) report = evaluate(c, FIDELITY[k], "off");
            assert_at_most(before_s, report->iteration_time_s * (1 + 1e-12));
            before_s = report->iteration_time_s;
            check_timeline(report);
            for (uint32_t l = 0; l < report->timeline->n_lanes; l++)
                assert_at_most(count_launches(report, l) * launch_s,
                               report->iteration_time_s * (1 + 1e-9));
        }
    }
}

static void test_growth(void **state)
{
    (void)state;
    for (uint32_t seed = 100; seed < 140; seed++) {
        RandomCase r = random_case_new(seed);
        Case c = {r.graph, r.cluster, r.view, r.plan};
        check_growth(&c);
        case_clear(&c);
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        g_auto(Case) c = case_new(&SETTINGS[i]);
        check_growth(&c);
    }
}

/* --- one device, by the recurrence --- */

static Case one_device(void)
{
    g_autoptr(GError) error = NULL;
    Case c = {.graph = chain(8, false)};
    c.cluster = cluster_load("star:hosts=1,bandwidth=1Gb/s,latency=1us", &error);
    assert_no_error(error);
    c.view = cluster_view(c.cluster, GRANULARITY_GPU);
    c.plan = plan_of(c.graph, 1, false,
                     inner_program(c.graph, c.view, BASELINE_DATA_PARALLEL));
    return c;
}

/* e_i = max(h_i, e_(i-1)) + t_i over the ops; *n: their number. */
static double recurrence(const Case *c, double launch_s, uint32_t *n)
{
    double host_s = 0, end_s = 0;
    *n = 0;
    for (uint32_t i = 0; i < c->plan->program->n; i++) {
        const Instr *instr = &c->plan->program->instr[i];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(c->graph, instr->op);
        const bool view = op_kind_is_view(op->kind);
        host_s += view ? 0 : launch_s;
        end_s = MAX(end_s, host_s) + op->seconds;
        *n += !view;
    }
    return end_s;
}

/* 8 forwards of 10 ms and 8 backwards of 20 ms: launches of 1 ms hide, but for the first one;
 * launches of 50 ms hide the ops, but for the last one with work; between them the recurrence
 * says. */
static void test_one_device(void **state)
{
    (void)state;
    g_auto(Case) c = one_device();
    uint32_t n;
    for (uint32_t k = 0; k < 2; k++)
        for (double launch_s = 1e-3; launch_s < 0.1; launch_s *= 1.5) {
            set_launch(c.cluster, &c.view, launch_s);
            g_autoptr(SimReport) report = evaluate(&c, FIDELITY[k], "on");
            assert_close(report->iteration_time_s, recurrence(&c, launch_s, &n), 1e-12);
            assert_close(report->busy_s[0], 0.240, 1e-12);
        }
    set_launch(c.cluster, &c.view, 1e-3);
    g_autoptr(SimReport) hidden = evaluate(&c, "stage", "on");
    assert_close(hidden->iteration_time_s, 0.241, 1e-12);
    assert_close(hidden->launch_s, 0.001, 1e-12);
    set_launch(c.cluster, &c.view, 50e-3);
    g_autoptr(SimReport) bound = evaluate(&c, "stage", "on");
    assert_close(bound->iteration_time_s, n * 50e-3, 1e-12);
    set_launch(c.cluster, &c.view, 0);
    g_autoptr(SimReport) none = evaluate(&c, "stage", "on");
    g_autoptr(SimReport) analytic = evaluate(&c, "analytic", "on");
    assert_true(none->iteration_time_s == analytic->iteration_time_s);
}

/* --- two devices, by hand --- */

/* One layer on two hosts: forward 1 ms, backward 2 ms, an all-reduce of 1 ms (1.25 MB over 10 Gb/s:
 * 2 (n-1)/n V / w), loss, its gradient and an update of no time: six launches. With launches of 1.2
 * ms the forward runs from 1.2, the backward from 4.8 to 6.8; the all-reduce was launched at 6.0
 * and the update at 7.2, which waits for it until 7.8. With launches of 3 ms all wait for the
 * host. */
static void test_two_devices(void **state)
{
    (void)state;
    static const struct {
        double launch_s, seconds;
    } row[] = {{0, 4e-3}, {0.1e-3, 4.1e-3}, {1.2e-3, 7.8e-3}, {3e-3, 18e-3}};
    g_autoptr(GError) error = NULL;
    g_auto(Case) c = {0};
    c.cluster = cluster_load("star:hosts=2,bandwidth=10Gb/s,latency=0s", &error);
    assert_no_error(error);
    c.view = cluster_view(c.cluster, GRANULARITY_GPU);
    c.graph = model_build("synthetic:layers=1,forward=1ms,backward=2ms,gradient=1.25MB",
                          2, NULL, &error);
    assert_no_error(error);
    c.plan = plan_of(c.graph, 2, false,
                     inner_program(c.graph, c.view, BASELINE_DATA_PARALLEL));
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++)
        for (uint32_t k = 0; k < 2; k++) {
            set_launch(c.cluster, &c.view, row[i].launch_s);
            g_autoptr(SimReport) report = evaluate(&c, FIDELITY[k], "on");
            assert_close(report->iteration_time_s, row[i].seconds, 1e-9);
        }
}

/* --- hand-overs --- */

/* Sets the time of a hand-over, of launches that take none. */
static void set_handover(Case *c, double handover_s)
{
    for (uint32_t t = 0; t < c->cluster->n_types; t++)
        c->cluster->type[t].handover_s = handover_s;
    set_launch(c->cluster, &c->view, 0);
}

/* Only transfers take the hosts a hand-over: a host is busy with as many as it sends and receives,
 * the iteration is never shorter for longer ones, and it is as long as any host takes for its own.
 * Where nothing is sent, they change nothing. */
static void test_handover(void **state)
{
    (void)state;
    uint32_t felt = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        g_auto(Case) c = case_new(&SETTINGS[i]);
        for (uint32_t k = 0; k < 2; k++) {
            set_handover(&c, 0);
            g_autoptr(SimReport) none = evaluate_as(&c, FIDELITY[k], "off", "waits");
            double before_s = none->iteration_time_s;
            assert_int_equal(count_launches(none, 0), 0);
            for (double s = before_s / 100; s < 20 * none->iteration_time_s; s *= 10) {
                set_handover(&c, s);
                g_autoptr(SimReport) report =
                    evaluate_as(&c, FIDELITY[k], "off", "waits");
                uint32_t n = 0;
                for (uint32_t l = 0; l < report->timeline->n_lanes; l++)
                    n = MAX(n, count_launches(report, l));
                assert_at_most(before_s, report->iteration_time_s * (1 + 1e-12));
                assert_at_most(n * s, report->iteration_time_s * (1 + 1e-9));
                if (n == 0)
                    assert_true(report->iteration_time_s == none->iteration_time_s);
                felt += n > 0;
                before_s = report->iteration_time_s;
            }
        }
    }
    assert_true(felt > 0);
}

/* --- hosts that wait for a transfer --- */

/* Waiting hosts change nothing if launching takes no time or nothing is sent; otherwise the
 * iteration only takes longer. */
static void test_waits(void **state)
{
    (void)state;
    double most = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        g_auto(Case) c = case_new(&SETTINGS[i]);
        for (uint32_t k = 0; k < 4; k++) {
            const char *overlap = k % 2 ? "on" : "off";
            set_launch(c.cluster, &c.view, 0);
            g_autoptr(SimReport) none = evaluate(&c, FIDELITY[k / 2], overlap);
            g_autoptr(SimReport) same =
                evaluate_as(&c, FIDELITY[k / 2], overlap, "waits");
            assert_true(none->iteration_time_s == same->iteration_time_s);
            set_launch(c.cluster, &c.view, none->iteration_time_s / 100);
            g_autoptr(SimReport) ahead = evaluate(&c, FIDELITY[k / 2], overlap);
            g_autoptr(SimReport) waits =
                evaluate_as(&c, FIDELITY[k / 2], overlap, "waits");
            check_timeline(waits);
            assert_at_most(ahead->iteration_time_s,
                           waits->iteration_time_s * (1 + 1e-12));
            if (SETTINGS[i].n_groups == 1)
                assert_true(ahead->iteration_time_s == waits->iteration_time_s);
            most = MAX(most, waits->iteration_time_s / ahead->iteration_time_s);
        }
    }
    assert_at_most(1.2, most);
}

/* --- the cluster's file --- */

static void test_file(void **state)
{
    (void)state;
    static const char text[] =
        "name: one\n"
        "device_types:\n"
        "  - name: gpu\n"
        "    rate: 10 TFLOP/s\n"
        "    memory: 1 GiB\n"
        "    launch: 6 us\n"
        "    ops:\n"
        "      - {kind: linear, overhead: 1 us, smallest: 1 B, largest: 1 GB}\n"
        "      - {kind: gelu, overhead: 1 us, smallest: 1 B, largest: 1 GB, "
        "launch: 9 us}\n"
        "    source: s\n"
        "machines:\n"
        "  - {name: m, type: gpu, gpus: 1, source: s}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("one", text, strlen(text), &error);
    assert_no_error(error);
    g_autofree char *written = cluster_write(cluster);
    g_autoptr(Cluster) again = cluster_parse("two", written, strlen(written), &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < 2; i++) {
        g_autoptr(ClusterView) view = cluster_view(i ? again : cluster, GRANULARITY_GPU);
        const Device *device = &view->device[0];
        assert_close(device->launch_s, 6e-6, 1e-15);
        assert_close(cluster_view_launch_s(view, device, OP_LINEAR), 6e-6, 1e-15);
        assert_close(cluster_view_launch_s(view, device, OP_GELU), 9e-6, 1e-15);
        assert_close(cluster_view_launch_s(view, device, OP_RELU), 6e-6, 1e-15);
        assert_true(cluster_view_launch_s(view, device, OP_SPLIT) == 0);
    }
    g_autofree char *bad = g_strdup(text);
    memcpy(strstr(bad, "6 us"), "6 kB", 4);
    g_autoptr(Cluster) none = cluster_parse("bad", bad, strlen(bad), &error);
    assert_null(none);
    assert_error(error, KILTER_ERROR_INPUT, "device_types[0].launch: expected");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny),       cmocka_unit_test(test_growth),
        cmocka_unit_test(test_one_device), cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_handover),   cmocka_unit_test(test_waits),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
