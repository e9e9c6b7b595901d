/* TAG's network gets the features of a strategy from a run of `flow`; each equals that run's
 * number, and none is always zero (as three of the artifact's were). */
#include <math.h>

#include "synth/tag/features.h"
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

/* --- what the network sees --- */

/* Where a part of a whole is on the network's scale: 1 for all of it, 0 for e^-8 of it and less. */
static double scaled(double part)
{
    return part <= exp(-8) ? 0 : 1 + log(part) / 8;
}

static void check_groups(const Setup *s, const NetView *v, const uint16_t *action,
                         const bool *decided, const TagFeedback *feedback)
{
    g_autofree double *time_s = g_new0(double, v->n_groups);
    g_autofree double *parameters = g_new0(double, v->n_groups);
    double all_s = 0, all = 0;
    for (OpId id = 0; id < graph_n_ops(s->graph); id++) {
        const Op *op = graph_get_op(s->graph, id);
        time_s[s->group[id]] += s->time_s[id];
        all_s += s->time_s[id];
        for (uint32_t i = 0; op->pass == PASS_UPDATE && i < op->n_in; i++) {
            const Tensor *t = graph_tensor(s->graph, op->in[i]);
            if (t->role != ROLE_PARAMETER)
                continue;
            parameters[s->group[id]] += (double)tensor_bytes(t);
            all += (double)tensor_bytes(t);
        }
    }
    for (uint32_t i = 0; i < v->n_groups; i++) {
        const double *x = &v->group[i * NET_GROUP];
        const TagAction *a = &s->space->action[action[i]];
        assert_true(fabs(x[0] - scaled(time_s[i] / all_s)) < 1e-9);
        assert_true(fabs(x[1] - scaled(parameters[i] / all)) < 1e-9);
        assert_true(x[3] == decided[i] && x[4] == (i == v->next));
        assert_true(x[5] == (a->option == TAG_AR) && x[6] == (a->option == TAG_PS));
        assert_true(x[5] + x[6] + x[7] == 1);
        assert_true(x[8] == feedback->makespan[i] && x[9] == feedback->wait[i]);
        for (uint32_t k = 0; k < v->n_sets; k++)
            assert_true(v->placed[(i * v->n_sets + k) * NET_PLACED] ==
                        (a->subset >> k & 1u));
    }
}

static void check_sets(const Setup *s, const NetView *v, const TagFeedback *feedback)
{
    double fastest = 0, largest = 0;
    for (uint32_t k = 0; k < v->n_sets; k++) {
        const double *x = &v->set[k * NET_SET];
        uint32_t n = 0;
        double outer = 0;
        for (uint32_t j = 0; j < s->view->n_devices; j++)
            n += s->space->set[j] == k;
        for (uint32_t l = 0; l < v->n_sets; l++) {
            const double *link = &v->link[(k * v->n_sets + l) * NET_LINK];
            assert_true(link[0] >= 0 && link[0] <= 1);
            assert_true(link[1] == feedback->link[k * v->n_sets + l]);
            outer = fmax(outer, link[0]);
        }
        assert_true(x[0] == n / 8.0 && x[4] == outer && x[5] == 1);
        assert_true(x[3] == v->link[(k * v->n_sets + k) * NET_LINK]);
        assert_true(x[6] == feedback->busy[k] && x[7] == feedback->memory[k]);
        fastest = fmax(fastest, x[1]);
        largest = fmax(largest, x[2]);
    }
    assert_true(fastest == 1 && largest == 1);
}

static void check_actions(const Setup *s, const NetView *v)
{
    double flow = 0;
    for (uint32_t a = 0; a < v->n_actions; a++) {
        const TagAction *action = &s->space->action[a];
        const double *x = &v->action[a * NET_ACTION];
        double member = 0;
        uint32_t n = 0;
        for (uint32_t k = 0; k < v->n_sets; k++) {
            member += v->member[a * v->n_sets + k];
            assert_int_equal(v->member[a * v->n_sets + k] > 0, action->subset >> k & 1u);
        }
        for (uint32_t j = 0; j < s->view->n_devices; j++)
            n += action->subset >> s->space->set[j] & 1u;
        for (uint32_t option = 0; option < 4; option++)
            assert_true(x[option] == (option == action->option));
        assert_close(member, 1, 1e-12);
        assert_close(x[4], (double)n / s->view->n_devices, 1e-12);
        assert_true(x[5] >= 0 && x[6] >= 0);
    }
    for (uint32_t f = 0; f < v->n_flows; f++) {
        assert_true(v->from[f] != v->to[f]);
        flow += v->flow[f];
    }
    assert_close(flow, 1, 1e-12);
}

/* Each feature has its place, and is what it is said to be (synth/tag/net.h). */
static void test_view(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(43);
    for (uint32_t round = 0; round < 12; round++) {
        enum { GROUPS = 6 };
        g_auto(Setup) s = setup_new(MODEL, MIXED, GROUPS, rand);
        g_autoptr(GError) error = NULL;
        double ratio[5];
        uint16_t action[GROUPS];
        bool decided[GROUPS];
        for (uint32_t j = 0; j < s.view->n_devices; j++)
            ratio[j] = 1.0 / s.view->n_devices;
        for (uint32_t i = 0; i < GROUPS; i++) {
            action[i] = (uint16_t)g_rand_int_range(rand, 0, (gint32)s.space->n_actions);
            decided[i] = g_rand_boolean(rand);
        }
        g_autoptr(SimQuick) quick = sim_quick_new(
            s.graph, s.view, ratio, s.space->n_groups, s.space->group, &error);
        assert_no_error(error);
        g_autoptr(TagEvaluator) evaluator =
            tag_evaluator_new(s.space, &s.work, quick, TAG_BY_FLOW);
        g_autoptr(NetCase) net = net_case_new(s.space, &s.work, quick, TAG_BY_FLOW, 1);
        g_autoptr(NetView) v =
            net_case_view(net, evaluator, action, decided, round % GROUPS);
        g_autoptr(Program) program = tag_program(evaluator, action);
        g_autoptr(TagFeedback) feedback =
            tag_feedback_new(s.space, &s.work, quick, program);
        assert_int_equal(v->n_groups, GROUPS);
        check_groups(&s, v, action, decided, feedback);
        check_sets(&s, v, feedback);
        check_actions(&s, v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_feedback),
                                       cmocka_unit_test(test_view)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
