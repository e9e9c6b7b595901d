/* TAG's strategies as programs: random ones, with overlapping subsets, parameter servers,
 * duplicates and cut groups, pass the checker, are proved by running, and are simulated; wrong
 * ones are caught. */
#include "exec/exec.h"
#include "sim/tasks/task_lower.h"
#include "synth/synth.h"
#include "tests/support/plan_of.h"
#include "tests/support/tag_setup.h"
#include "tests/support/transfers.h"
#include "tests/test.h"

static const char MIXED[] = "star:hosts=5,bandwidth=1Gb/s,latency=5us";
static const char *const MODELS[] = {
    "vit:layers=2,hidden=8,heads=2,ffn=12,image=8,global_batch=24",
    "bert-moe:layers=2,hidden=4,heads=2,ffn=6,seq=4,vocab=10,global_batch=24,experts=4",
    "resnet50:edge=32,width=1,global_batch=24,classes=4", /* its batch norms read sums over the batch */
};

static bool is_right(const Setup *s, const Plan *plan, GError **error)
{
    g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    return exec_verify(backend, plan, s->graph, 3, EXEC_TOLERANCE, &verdict, error) &&
           verdict.right;
}

static void test_random_strategies(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(15);
    uint32_t taken = 0;
    for (uint32_t round = 0; round < 24; round++) {
        g_auto(Setup) s = setup_new(MODELS[round % 3], MIXED, 6, rand);
        Program *program = random_strategy(&s, rand, false);
        g_autoptr(GError) error = NULL;
        program_check(program, s.graph, &error);
        assert_no_error(error);
        g_autoptr(Plan) plan =
            plan_of(s.graph, s.view->n_devices, round % 4 == 0, program);
        const bool right = is_right(&s, plan, &error);
        assert_no_error(error);
        assert_true(right);
        g_autoptr(SimReport) flow = sim_evaluate(plan, s.graph, s.view, "flow", &error);
        assert_no_error(error);
        assert_true(flow->iteration_time_s > 0);
        taken += check_known_transfers(plan, s.graph, s.view);
    }
    assert_true(taken > 500);
}

/* The quick evaluator agrees with the fidelities in time and memory. */
static void test_quick(void **state)
{
    (void)state;
    static const char *const clusters[] = {MIXED, "tag-testbed", "hap-8"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(17);
    for (uint32_t round = 0; round < 12; round++) {
        g_auto(Setup) s = setup_new(MODELS[round % 2], clusters[round % 3], 8, rand);
        g_autoptr(GError) error = NULL;
        g_autoptr(SimQuick) quick = NULL;
        g_autofree uint64_t *peak = g_new(uint64_t, s.view->n_devices);
        for (uint32_t k = 0; k < 20; k++) {
            g_autoptr(Plan) plan = plan_of(s.graph, s.view->n_devices, round % 2,
                                           random_strategy(&s, rand, true));
            for (uint32_t i = 0; i < plan->n_splits; i++)
                g_free(plan->split[i].count);
            plan->n_splits = 0; /* fractional shares */
            if (!quick)
                quick = sim_quick_new(s.graph, s.view, plan->ratio, s.space->n_groups,
                                      s.space->group, &error);
            assert_no_error(error);
            const SimQuickTimes times = sim_quick_times(quick, plan->program);
            assert_close(times.flow_s, simulated_s(&s, plan, "flow"), 1e-9);
            assert_close(times.stage_s, simulated_s(&s, plan, "stage"), 1e-9);
            g_autoptr(SimReport) report =
                sim_evaluate(plan, s.graph, s.view, "stage", &error);
            assert_no_error(error);
            assert_int_equal(sim_quick_memory(quick, plan->program, peak),
                             report->feasible);
            for (uint32_t j = 0; j < s.view->n_devices; j++)
                assert_int_equal(peak[j], report->memory_bytes[j]);
        }
    }
}

/* Replicas have whole weights, so that nothing is sent where a group of the same devices reads
 * them; parts of the batch are sent, and weights to devices that are not replicas. */
static void test_own_weights_are_not_sent(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(19);
    g_auto(Setup) s = setup_new(MODELS[0], MIXED, 6, rand);
    g_autoptr(GError) error = NULL;
    g_autofree double *even = g_new(double, s.view->n_devices);
    uint32_t n = 0;
    for (uint32_t j = 0; j < s.view->n_devices; j++)
        even[j] = 1.0 / s.view->n_devices;
    g_autoptr(SimQuick) quick =
        sim_quick_new(s.graph, s.view, even, s.space->n_groups, s.space->group, &error);
    assert_no_error(error);
    for (uint32_t subset = 1; subset < 1u << s.space->n_sets; subset++)
        for (TensorId t = 0; t < graph_n_tensors(s.graph); t++) {
            const uint16_t from = s.space->replicas[subset], to = s.space->whole[subset];
            const bool weight = graph_tensor(s.graph, t)->role == ROLE_PARAMETER,
                       part = form_is_gather(s.batch->form[t]);
            if (from == to || !(weight || part))
                continue;
            n++;
            assert_int_equal(sim_quick_transfer_s(quick, from, to, t) > 0, part);
        }
    assert_true(n > 100);
    const uint32_t all = (1u << s.space->n_sets) - 1;
    for (TensorId t = 0; t < graph_n_tensors(s.graph); t++)
        if (graph_tensor(s.graph, t)->role == ROLE_PARAMETER)
            assert_true(sim_quick_transfer_s(quick, s.space->replicas[1],
                                             s.space->whole[all], t) > 0);
}

/* The sum of the devices' peaks, once it is seen that the quick evaluator says what the
 * fidelities say. */
static double peaks_of(const Setup *s, Program *program)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = plan_of(s->graph, s->view->n_devices, false, program);
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    plan->n_splits = 0; /* fractional shares */
    g_autoptr(SimQuick) quick = sim_quick_new(
        s->graph, s->view, plan->ratio, s->space->n_groups, s->space->group, &error);
    assert_no_error(error);
    const SimQuickTimes times = sim_quick_times(quick, program);
    assert_close(times.flow_s, simulated_s(s, plan, "flow"), 1e-9);
    assert_close(times.stage_s, simulated_s(s, plan, "stage"), 1e-9);
    g_autofree uint64_t *peak = g_new(uint64_t, s->view->n_devices);
    g_autoptr(SimReport) report = sim_evaluate(plan, s->graph, s->view, "stage", &error);
    assert_no_error(error);
    sim_quick_memory(quick, program, peak);
    double sum = 0;
    for (uint32_t j = 0; j < s->view->n_devices; j++) {
        assert_int_equal(peak[j], report->memory_bytes[j]);
        sum += (double)peak[j];
    }
    return sum;
}

/* Layers that are computed again on their groups: proved, simulated, and with less in memory where
 * forward and backward share devices. */
static void test_recomputation(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(18);
    uint32_t longer = 0, smaller = 0;
    for (uint32_t round = 0; round < 24; round++) {
        g_auto(Setup) s = setup_new(MODELS[round % 2], MIXED, 6, rand);
        g_autoptr(GError) error = NULL;
        for (OpId id = 0; round % 4 > 1 && id < graph_n_ops(s.graph); id++)
            s.group[id] = (uint16_t)(graph_get_op(s.graph, id)->layer % 6);
        g_autofree uint16_t *action = g_new(uint16_t, s.work.n_groups);
        g_autoptr(TagPlacement) placement = synth_tag_placement_new(s.graph);
        g_autofree Recompute *modes = g_new(Recompute, graph_n_layers(s.graph) + 1);
        for (uint32_t i = 0; i < s.work.n_groups; i++)
            action[i] = (uint16_t)g_rand_int_range(rand, 0, (gint32)s.space->n_actions);
        for (uint32_t l = 0; l < graph_n_layers(s.graph); l++)
            modes[l] =
                round < 12 ? RECOMPUTE_FULL : (Recompute)g_rand_int_range(rand, 0, 3);
        synth_tag_place(s.space, &s.work, action, placement);
        Program *kept = synth_tag_program(s.space, &s.work, placement, true);
        s.work.recompute = modes;
        Program *again = synth_tag_program(s.space, &s.work, placement, true);
        program_check(again, s.graph, &error);
        assert_no_error(error);
        longer += again->n > kept->n;
        const double before = peaks_of(&s, kept),
                     after = peaks_of(&s, program_copy(again));
        smaller += after < before;
        g_autoptr(Plan) plan = plan_of(s.graph, s.view->n_devices, round % 3 == 0, again);
        assert_true(is_right(&s, plan, &error));
    }
    print_message("of 24 programs %u run ops again, %u need less memory\n", longer,
                  smaller);
    assert_true(longer > 18 && smaller > 8);
}

/* Op groups on subsets run several microbatches, some with layers computed again: proved and
 * simulated by each fidelity that knows device groups. */
static void test_microbatches(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(25);
    for (uint32_t round = 0; round < 24; round++) {
        g_auto(Setup) s = setup_new(MODELS[0], MIXED, 6, rand);
        g_autoptr(GError) error = NULL;
        g_autofree Recompute *modes = g_new(Recompute, graph_n_layers(s.graph) + 1);
        batch_forms_free(s.batch);
        s.work.batch = s.batch = batch_forms_of_microbatches(s.graph, &error);
        assert_no_error(error);
        for (uint32_t l = 0; l < graph_n_layers(s.graph); l++)
            modes[l] = (Recompute)g_rand_int_range(rand, 0, 3);
        s.work.recompute = round % 3 == 0 ? modes : NULL;
        s.work.n_microbatches = 2 + round % 2;
        Program *program = random_strategy(&s, rand, round % 2);
        assert_int_equal(program->n_microbatches, s.work.n_microbatches);
        program_check(program, s.graph, &error);
        assert_no_error(error);
        g_autoptr(Plan) plan =
            plan_of(s.graph, s.view->n_devices, round % 4 == 0, program);
        const bool right = is_right(&s, plan, &error);
        assert_no_error(error);
        assert_true(right);
        assert_true(simulated_s(&s, plan, "flow") > 0);
        assert_true(simulated_s(&s, plan, "stage") > 0);
    }
}

/* The rank of a set that serves the others gets a message from each of them, or sends one to
 * each, in every set at once. */
static void test_server_lines(void **state)
{
    enum { SETS = 2, RANKS = 3 };
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster =
        cluster_load("rail:hosts=3,gpus=2,rails=2,inner_bandwidth=3GB/s", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    uint32_t device[SETS * RANKS] = {0, 2, 4, 3, 1, 5};
    const SimTeam team = {.n_sets = SETS, .n = RANKS, .device = device};
    for (uint32_t server = 0; server < RANKS; server++)
        for (uint32_t back = 0; back < 2; back++) {
            g_autoptr(GArray) pieces = g_array_new(false, false, sizeof(SimPiece));
            for (uint32_t i = 0; i < SETS * RANKS; i++) {
                const uint32_t root = i < RANKS ? server : RANKS + server;
                const SimPiece piece = {back ? device[root] : device[i],
                                        back ? device[i] : device[root], 0, 1};
                if (i != root)
                    g_array_append_val(pieces, piece);
            }
            double want[2], got[2];
            sim_pieces_time(view, pieces, &want[0], &want[1]);
            task_server_line(view, &team, server, back, &got[0], &got[1]);
            assert_true(got[0] == want[0] && got[1] == want[1] && got[1] > 0);
        }
}

/* Applies a mutation to an instruction; false if it does not apply. */
static bool mutate(Program *program, uint32_t i, GRand *rand)
{
    Instr *instr = &program->instr[i];
    const uint16_t other = (uint16_t)((instr->group + 1) % program->n_groups);
    switch (g_rand_int_range(rand, 0, 4)) {
    case 0: /* dropped */
        memmove(instr, instr + 1, (program->n - i - 1) * sizeof *instr);
        program->n--;
        return true;
    case 1: /* a server that does not exist */
        instr->server = (uint16_t)(1 + program->group[instr->group].n_replicas +
                                   (uint32_t)g_rand_int_range(rand, 0, 3));
        return instr->kind == INSTR_COLLECTIVE;
    case 2: /* to or on another subset */
        if (instr->kind == INSTR_TRANSFER)
            instr->to_group = (uint16_t)((instr->to_group + 1) % program->n_groups);
        else
            instr->group = other;
        return program->n_groups > 1 && instr->kind != INSTR_COMPUTE;
    default: /* a subset that lacks a device and has another one twice */
        program->group[other].device[0] =
            program->group[other].device[1 % program->group[other].n_replicas];
        return program->group[other].n_replicas > 1;
    }
}

/* An instruction left out, a wrong server, a wrong subset: each is refused, or gives wrong
 * results. */
static void test_mutants(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(16);
    uint32_t n = 0;
    while (n < 1000) {
        g_auto(Setup) s = setup_new(MODELS[0], MIXED, 6, rand);
        g_autoptr(Program) program = random_strategy(&s, rand, false);
        for (uint32_t k = 0; k < 40; k++) {
            g_autoptr(Program) mutant = program_copy(program);
            const uint32_t i = (uint32_t)g_rand_int_range(rand, 0, (gint32)program->n);
            if (!mutate(mutant, i, rand))
                continue;
            n++;
            if (!program_check(mutant, s.graph, NULL))
                continue;
            g_autoptr(Plan) plan =
                plan_of(s.graph, s.view->n_devices, true, g_steal_pointer(&mutant));
            if (is_right(&s, plan, NULL)) {
                g_autofree char *text = instr_text(&program->instr[i], s.graph);
                fail_msg("a mutant of instruction %u (%s) is right", i, text);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_strategies),
        cmocka_unit_test(test_quick),
        cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_microbatches),
        cmocka_unit_test(test_server_lines),
        cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_own_weights_are_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
