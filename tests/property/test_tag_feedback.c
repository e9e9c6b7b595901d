/* TAG's network gets the features of a strategy from a run of `flow`; each equals that run's number, and none is always zero (as
 * three of the artifact's were). */
#include <math.h>

#include "synth/tag/feedback.h"
#include "tests/support/plan_of.h"
#include "tests/support/tag_setup.h"
#include "tests/test.h"

static const char MIXED[] = "star:hosts=5,bandwidth=1Gb/s,latency=5us";
static const char MODEL[] =
    "vit:layers=2,hidden=8,heads=2,ffn=12,image=8,global_batch=24";

static SimReport *report_of(const Setup *s, const Plan *plan, const char *fidelity)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    sim_options_init(&options);
    sim_options_set(&options, "network", "crossbar", &error);
    SimReport *report =
        sim_evaluate_with(plan, s->graph, s->view, fidelity, &options, &error);
    assert_no_error(error);
    return report;
}

/* From the first op of each group to its last one, by the spans of flow. */
static void check_makespans(const Setup *s, const Plan *plan, const SimReport *report,
                            const TagFeedback *feedback)
{
    g_autofree double *first = g_new(double, s->work.n_groups);
    g_autofree double *last = g_new0(double, s->work.n_groups);
    for (uint32_t i = 0; i < s->work.n_groups; i++)
        first[i] = INFINITY;
    for (uint32_t k = 0; k < report->timeline->n_spans; k++) {
        const SimSpan *span = &report->timeline->span[k];
        const Instr *instr = &plan->program->instr[span->instr];
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const uint32_t group = s->work.group[instr->op];
        first[group] = fmin(first[group], span->start_s);
        last[group] = fmax(last[group], span->end_s);
    }
    for (uint32_t i = 0; i < s->work.n_groups; i++)
        if (last[i] > 0)
            assert_close(feedback->makespan[i],
                         (last[i] - first[i]) / report->iteration_time_s, 1e-9);
}

/* Memory is that of the program's order, by which strategies fit or do not. */
static void check_devices(const Setup *s, const SimReport *report, const SimReport *stage,
                          const TagFeedback *feedback)
{
    for (uint32_t set = 0; set < s->space->n_sets; set++) {
        double busy = 0, memory = 0;
        uint32_t n = 0;
        for (uint32_t j = 0; j < s->view->n_devices; j++) {
            if (s->space->set[j] != set)
                continue;
            n++;
            busy += report->busy_s[j] / report->iteration_time_s;
            memory = fmax(memory, (double)stage->memory_bytes[j] /
                                      (double)s->view->device[j].memory_bytes);
        }
        assert_close(feedback->busy[set], busy / n, 1e-9);
        assert_close(feedback->memory[set], memory, 1e-12);
    }
}

/* Sums, and links where transfers go, from the spans of flow. */
static double check_links(const Setup *s, const Plan *plan, const SimReport *report,
                          const TagFeedback *feedback)
{
    const uint32_t n = s->space->n_sets;
    g_autofree double *link = g_new0(double, n *n);
    double most = 0;
    for (uint32_t i = 0; i < plan->program->n; i++) {
        const Instr *instr = &plan->program->instr[i];
        double start = INFINITY, end = 0;
        for (uint32_t k = 0; k < report->timeline->n_spans; k++) {
            const SimSpan *span = &report->timeline->span[k];
            if (span->instr != i || span->lane != SIM_TEAM)
                continue;
            start = fmin(start, span->start_s);
            end = fmax(end, span->end_s);
        }
        if (end <= 0)
            continue;
        const DeviceGroup *a = &s->space->group[instr->group],
                          *b = instr->kind == INSTR_TRANSFER
                                   ? &s->space->group[instr->to_group]
                                   : a;
        for (uint32_t e = 0; e < n * n; e++) {
            bool from = false, to = false;
            for (uint32_t d = 0; d < a->n_replicas * a->n_devices; d++)
                from = from || s->space->set[a->device[d]] == e / n;
            for (uint32_t d = 0; d < b->n_replicas * b->n_devices; d++)
                to = to || s->space->set[b->device[d]] == e % n;
            link[e] += from && to ? end - start : 0;
        }
    }
    for (uint32_t e = 0; e < n * n; e++) {
        const double part = fmin(1, link[e] / report->iteration_time_s);
        if (fabs(part - feedback->link[e]) > 1e-9)
            fail_msg("sets %u and %u: %g, but flow says %g", e / n, e % n,
                     feedback->link[e], part);
        most = fmax(most, part);
    }
    return most;
}

static void test_feedback(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);
    uint32_t waits = 0, links = 0;
    for (uint32_t round = 0; round < 16; round++) {
        g_auto(Setup) s = setup_new(MODEL, MIXED, 8, rand);
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) plan = plan_of(s.graph, s.view->n_devices, round % 2,
                                       random_strategy(&s, rand, true));
        for (uint32_t i = 0; i < plan->n_splits; i++)
            g_free(plan->split[i].count);
        plan->n_splits = 0; /* fractional shares */
        g_autoptr(SimQuick) quick = sim_quick_new(
            s.graph, s.view, plan->ratio, s.space->n_groups, s.space->group, &error);
        assert_no_error(error);
        g_autoptr(TagFeedback) feedback =
            tag_feedback_new(s.space, &s.work, quick, plan->program);
        g_autoptr(SimReport) report = report_of(&s, plan, "flow");
        g_autoptr(SimReport) stage = report_of(&s, plan, "stage");
        check_makespans(&s, plan, report, feedback);
        check_devices(&s, report, stage, feedback);
        links += check_links(&s, plan, report, feedback) > 0;
        for (uint32_t i = 0; i < s.work.n_groups; i++) {
            assert_true(feedback->wait[i] >= 0 && feedback->wait[i] < 1);
            waits += feedback->wait[i] > 0;
        }
    }
    assert_true(waits > 20 && links > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_feedback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
