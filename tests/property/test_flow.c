/* Random plans under the `flow` fidelity: with the cost model's collective times, an ideal
 * crossbar, and over the network that a cluster without a topology gets. */
#include "sim/sim.h"
#include "tests/support/random_case.h"

#ifndef CASES /* the long run (tests/CMakeLists.txt) has more */
#define CASES 100
#endif

static SimOptions options_on(const char *network, const char *overlap)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;

    sim_options_init(&options);
    sim_options_set(&options, "network", network, &error);
    assert_no_error(error);
    sim_options_set(&options, "overlap", overlap, &error);
    assert_no_error(error);
    return options;
}

static SimOptions options_of(const char *overlap)
{
    return options_on("crossbar", overlap);
}

/* On a crossbar the only latencies are those of the cost model, so times are equal. */
static void test_no_overlap_is_analytic(void **state)
{
    const SimOptions options = options_of("off");

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(seed);
        g_autoptr(SimReport) a = random_case_evaluate(&c, "analytic", &options);
        g_autoptr(SimReport) f = random_case_evaluate(&c, "flow", &options);
        const double t = a->iteration_time_s;
        assert_close(f->iteration_time_s, t, 1e-9);
        assert_at_most(fabs(f->comm_s - a->comm_s), 1e-9 * t);
        assert_at_most(fabs(f->comp_s - a->comp_s), 1e-9 * t);
        for (uint32_t j = 0; j < a->n_devices; j++) {
            assert_at_most(fabs(f->busy_s[j] - a->busy_s[j]), 1e-9 * t);
            assert_at_most(fabs(f->comm_busy_s[j] - a->comm_busy_s[j]), 1e-9 * t);
            assert_at_most(f->hidden_s[j], 1e-9 * t);
        }
        random_case_free(&c);
    }
}

/* The path starts at 0, has no gap, ends with the iteration, and its spans are known. */
static void check_path(const SimReport *report)
{
    const SimTimeline *timeline = report->timeline;
    uint32_t n;
    g_autofree uint32_t *path = sim_timeline_critical_path(timeline, &n);
    double sum_s = 0;

    assert_true(n > 0);
    assert_true(timeline->span[path[0]].start_s == 0);
    for (uint32_t i = 0; i < n; i++) {
        const SimSpan *span = &timeline->span[path[i]];
        sum_s += span->end_s - span->start_s;
        if (i + 1 < n)
            assert_true(span->end_s == timeline->span[path[i + 1]].start_s);
    }
    assert_true(timeline->span[path[n - 1]].end_s == report->iteration_time_s);
    assert_close(sum_s, report->iteration_time_s, 1e-12);
    assert_close(report->comm_s + report->comp_s, report->iteration_time_s, 1e-12);
}

static void test_critical_path(void **state)
{
    static const char *const overlap[] = {"off", "on"};

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(seed);
        for (uint32_t i = 0; i < 2; i++) {
            const SimOptions options = options_of(overlap[i]);
            const SimOptions shared = options_on("topology", overlap[i]);
            g_autoptr(SimReport) flow = random_case_evaluate(&c, "flow", &options);
            g_autoptr(SimReport) links = random_case_evaluate(&c, "flow", &shared);
            g_autoptr(SimReport) stage = random_case_evaluate(&c, "stage", &options);
            check_path(flow);
            check_path(links);
            check_path(stage);
        }
        random_case_free(&c);
    }
}

typedef struct {
    double start_s, end_s;
} Interval;

static int compare(const void *a, const void *b)
{
    const Interval *x = a, *y = b;

    if (x->start_s != y->start_s)
        return x->start_s < y->start_s ? -1 : 1;
    return (x->end_s > y->end_s) - (x->end_s < y->end_s);
}

/* Spans of one lane and stream do not overlap. */
static void check_stream(const SimTimeline *timeline, uint32_t lane, uint32_t stream)
{
    g_autoptr(GArray) list = g_array_new(false, false, sizeof(Interval));

    for (uint32_t i = 0; i < timeline->n_spans; i++) {
        const SimSpan *span = &timeline->span[i];
        const Interval interval = {span->start_s, span->end_s};
        assert_at_most(span->start_s, span->end_s);
        if (span->stream == stream && (span->lane == lane || span->lane == SIM_TEAM))
            g_array_append_val(list, interval);
    }
    g_array_sort(list, compare);
    for (uint32_t i = 1; i < list->len; i++)
        assert_at_most(g_array_index(list, Interval, i - 1).end_s,
                       g_array_index(list, Interval, i).start_s);
}

/* No less than the latencies of the collectives of a program's forward. */
static double latencies_s(const RandomCase *c)
{
    double sum_s = 0;
    for (uint32_t i = 0; i < c->plan->program->n; i++) {
        const Instr *instr = &c->plan->program->instr[i];
        if (instr->kind == INSTR_COMPUTE &&
            graph_get_op(c->graph, instr->op)->pass == PASS_BACKWARD)
            break;
        if (instr->kind != INSTR_COLLECTIVE ||
            (uint32_t)instr->collective >= COLLECTIVES_PRICED)
            continue;
        double most_s = c->view->collective[instr->collective].latency_s;
        for (uint32_t p = 0; p < c->view->pieces[instr->collective].n; p++)
            most_s =
                fmax(most_s, c->view->pieces[instr->collective].piece[p].line.latency_s);
        sum_s += most_s;
    }
    return sum_s;
}

/* Work is conserved: a device's computation does not depend on overlap, nor does its communication
 * without buckets, and parts add up to the whole. */
static void test_streams(void **state)
{
    double saved_s = 0, forward_s = 0;

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(500 + seed);
        c.plan->bucket_bytes = 0;
        const SimOptions forward = options_of("forward");
        g_autoptr(SimReport) half = random_case_evaluate(&c, "flow", &forward);
        const SimOptions off = options_of("off");
        SimOptions on = options_of("on");
        on.streams = 1 + seed % 3;
        g_autoptr(SimReport) a = random_case_evaluate(&c, "flow", &off);
        g_autoptr(SimReport) b = random_case_evaluate(&c, "flow", &on);
        const double t = a->iteration_time_s;
        for (uint32_t l = 0; l < b->timeline->n_lanes; l++)
            for (uint32_t s = 0; s < b->timeline->n_streams; s++)
                check_stream(b->timeline, l, s);
        for (uint32_t j = 0; j < a->n_devices; j++) {
            assert_at_most(fabs(a->busy_s[j] - b->busy_s[j]), 1e-9 * t);
            if (on.streams == 1)
                assert_at_most(
                    fabs(a->comm_busy_s[j] - b->comm_busy_s[j] - b->hidden_s[j]),
                    1e-9 * t);
            assert_close(b->busy_s[j] + b->comm_busy_s[j] + b->idle_s[j],
                         b->iteration_time_s, 1e-12);
            assert_at_most(-1e-9 * t, b->idle_s[j]);
        }
        saved_s += (t - b->iteration_time_s) / t;
        /* Overlap in the forward pass only: the same work, and not longer than without overlap but
         * for the latencies that collectives of one stage of the forward then pay apart. */
        assert_at_most(half->iteration_time_s, t * (1 + 1e-9) + latencies_s(&c));
        assert_at_most(fabs(a->busy_s[0] - half->busy_s[0]), 1e-9 * t);
        forward_s += (t - half->iteration_time_s) / t;
        random_case_free(&c);
    }
    assert_true(saved_s > 1); /* over 100 iterations overlap saves time */
    assert_true(forward_s > 0.01 && forward_s < saved_s);
}

static void swap(void *a, void *b, size_t size)
{
    g_autofree char *other = g_memdup2(a, size);

    memcpy(a, b, size);
    memcpy(b, other, size);
}

static void test_order_of_devices(void **state)
{
    const SimOptions options = options_of("on");

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(1000 + seed);
        const uint32_t n = c.view->n_devices, last = n - 1;
        g_autoptr(SimReport) before = random_case_evaluate(&c, "flow", &options);
        swap(&c.view->device[0], &c.view->device[last], sizeof(Device));
        for (uint32_t k = 0; k < c.plan->n_segments; k++)
            swap(&c.plan->ratio[k * n], &c.plan->ratio[k * n + last], sizeof(double));
        for (uint32_t i = 0; i < c.plan->n_splits; i++)
            swap(&c.plan->split[i].count[0], &c.plan->split[i].count[last],
                 sizeof(uint32_t));
        g_autoptr(SimReport) after = random_case_evaluate(&c, "flow", &options);
        assert_close(after->iteration_time_s, before->iteration_time_s, 1e-12);
        assert_close(after->busy_s[0], before->busy_s[last], 1e-12);
        assert_int_equal(after->memory_bytes[0], before->memory_bytes[last]);
        random_case_free(&c);
    }
}

/* Names have no effect, on a crossbar or a network. */
static void test_names_of_devices(void **state)
{
    static const char *const network[] = {"crossbar", "topology"};

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(1500 + seed);
        const SimOptions options = options_on(network[seed % 2], "on");
        const uint32_t last = c.view->n_devices - 1, machine = c.cluster->n_machines - 1;
        g_autoptr(SimReport) before = random_case_evaluate(&c, "flow", &options);
        swap(&c.view->device[0].name, &c.view->device[last].name, sizeof(char *));
        swap(&c.cluster->machine[0].name, &c.cluster->machine[machine].name,
             sizeof(char *));
        g_autoptr(SimReport) after = random_case_evaluate(&c, "flow", &options);
        assert_true(after->iteration_time_s == before->iteration_time_s);
        assert_memory_equal(after->busy_s, before->busy_s, (last + 1) * sizeof(double));
        random_case_free(&c);
    }
}

static void speed_up(LinkCost *link, double factor)
{
    link->latency_s = 0;
    link->bandwidth *= factor;
}

static void check_twice_as_fast(const SimOptions options, uint32_t n_cases)
{
    for (uint32_t seed = 0; seed < n_cases; seed++) {
        RandomCase c = random_case_new(2000 + seed);
        double time_s[2];
        for (uint32_t i = 0; i < 2; i++) {
            for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
                speed_up(&c.view->collective[kind], i + 1);
                speed_up(&c.cluster->collective[kind], i + 1);
                for (uint32_t p = 0; p < c.view->pieces[kind].n; p++)
                    speed_up(&c.view->pieces[kind].piece[p].line, i + 1);
            }
            for (uint32_t k = 0; k < c.cluster->n_machines; k++)
                speed_up(&c.cluster->machine[k].inner, i + 1);
            for (uint32_t j = 0; j < c.view->n_devices; j++) {
                c.view->device[j].stretch /= i + 1;
                speed_up(&c.view->device[j].inner, i + 1);
                c.view->device[j].rate *= i + 1;
            }
            g_autoptr(SimReport) report = random_case_evaluate(&c, "flow", &options);
            time_s[i] = report->iteration_time_s;
        }
        assert_close(2 * time_s[1], time_s[0], 1e-9);
        random_case_free(&c);
    }
}

static void test_twice_as_fast(void **state)
{
    (void)state;
    check_twice_as_fast(options_of("on"), CASES);
    check_twice_as_fast(options_on("topology", "on"), CASES / 4);
    check_twice_as_fast(options_on("topology", "off"), CASES / 4);
}

/* In program order the timeline's peak is the program's, if no machine communicates inside; at the
 * end only the kept memory is left. */
static void test_memory_in_program_order(void **state)
{
    const SimOptions options = options_of("off");
    uint32_t equal = 0;

    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case_new(seed);
        g_autoptr(SimReport) a = random_case_evaluate(&c, "analytic", &options);
        g_autoptr(SimReport) f = random_case_evaluate(&c, "flow", &options);
        for (uint32_t j = 0; j < a->n_devices; j++) {
            const GArray *steps = f->timeline->memory[f->timeline->lane[j]];
            assert_true(steps->len > 0);
            assert_at_most(g_array_index(steps, SimMemoryStep, steps->len - 1).time_s,
                           f->iteration_time_s);
            if (c.view->granularity == GRANULARITY_MACHINE)
                continue;
            assert_at_most(fabs((double)f->memory_bytes[j] - (double)a->memory_bytes[j]),
                           1);
            equal++;
        }
        random_case_free(&c);
    }
    assert_true(equal > CASES);
}

static void test_same_bytes(void **state)
{
    const SimOptions options = options_of("on");

    (void)state;
    RandomCase c = random_case_new(3000);
    g_autoptr(SimReport) a = random_case_evaluate(&c, "flow", &options);
    g_autoptr(SimReport) b = random_case_evaluate(&c, "flow", &options);
    for (int packets = 0; packets < 2; packets++) {
        g_autoptr(GByteArray) x = sim_timeline_trace(
            a->timeline, c.plan->program, c.graph, c.view, NULL, NULL, packets);
        g_autoptr(GByteArray) y = sim_timeline_trace(
            b->timeline, c.plan->program, c.graph, c.view, NULL, NULL, packets);
        assert_int_equal(x->len, y->len);
        assert_memory_equal(x->data, y->data, x->len);
    }
    random_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_overlap_is_analytic),
        cmocka_unit_test(test_critical_path),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_order_of_devices),
        cmocka_unit_test(test_names_of_devices),
        cmocka_unit_test(test_twice_as_fast),
        cmocka_unit_test(test_memory_in_program_order),
        cmocka_unit_test(test_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
