/* Long pipelines are evaluated by a part of their microbatches with the same result: random
 * schedules, cuts, techniques and unlike stages against the simulation of all of them; and the
 * repeated middle of their programs is found, left out, and put back. */
#include <math.h>
#include <string.h>

#include "data/formats/measured/memory_snapshot.h"
#include "data/plan/fidelity.h"
#include "data/program/period.h"
#include "synth/pipeline/strategy.h"
#include "tests/support/made_plan.h"

#define MODEL                                                                            \
    "gpt2:layers=10,hidden=16,heads=4,ffn=24,seq=8,vocab=24,global_batch=192,optimizer=" \
    "adam"
/* Experts are other groups of the same devices, to which what is computed again goes once more. */
#define EXPERTS                                                                      \
    "mixtral:layers=6,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=24,experts=4," \
    "global_batch=96"

static const char *const CLUSTER[] = {"star:hosts=8,bandwidth=1Gb/s,latency=5us", "hap-8",
                                      "amp-het-cluster"};
static const char *const BASE[] = {
    "pp=4 microbatches=96",
    "pp=8 microbatches=96",
    "pp=4 tp=2 microbatches=96 sequence_parallel=on",
    "pp=4 dp=2 microbatches=48 zero=1",
    "pp=2 dp=2 tp=2 microbatches=48 recompute=full",
    "stage_tp=2,1,1 stage_dp=1,4,2 microbatches=48",
    "dp=2 tp=4 microbatches=48",
    "dp=8 zero=3 microbatches=24",
    "pp=4 dp=2 zero=3 microbatches=48",
    "pp=2 dp=4 zero=2 microbatches=48",
    "pipeline_layers=12;6,6 pipeline_shares=1,2 microbatches=96",
    "pipeline_layers=12;6,6 pipeline_shares=2,1 microbatches=96",
    "pp=2 tp=2 ep=4 etp=1 recompute=full microbatches=24",
    "pp=4 ep=2 recompute=selective microbatches=48",
};
static const char *const SCHEDULE[] = {
    "1f1b",  "zb-h1", "zb-h2",         "interleaved", "zb-v",    "v-half",
    "v-min", "gpipe", "breadth-first", "dualpipev",   "dualpipe"};

/* `of`: what rounding is small beside. */
static void assert_near(const char *set, const char *what, double got, double wanted,
                        double of)
{
    if (fabs(got - wanted) > 1e-9 * of)
        fail_msg("%s: %s: expected %.17g, got %.17g", set, what, wanted, got);
}

/* Times of devices and stages. */
static void check_times(const char *set, const SimReport *part, const SimReport *all)
{
    const double of = all->iteration_time_s;
    assert_near(set, "time", part->iteration_time_s, of, of);
    assert_near(set, "communication", part->comm_s, all->comm_s, of);
    assert_near(set, "computation", part->comp_s, all->comp_s, of);
    assert_near(set, "launches", part->launch_s, all->launch_s, of);
    for (uint32_t j = 0; j < all->n_devices; j++) {
        assert_near(set, "busy", part->busy_s[j], all->busy_s[j], of);
        assert_near(set, "exposed", part->comm_busy_s[j], all->comm_busy_s[j], of);
        assert_near(set, "hidden", part->hidden_s[j], all->hidden_s[j], of);
        assert_near(set, "idle", part->idle_s[j], all->idle_s[j], of);
    }
    assert_int_equal(part->n_stages, all->n_stages);
    items_at (const SimStageReport, stage, i, part->stage, part->n_stages) {
        assert_near(set, "start", stage->start_s, all->stage[i].start_s, of);
        assert_near(set, "stage's comm", stage->comm_s, all->stage[i].comm_s, of);
        assert_near(set, "stage's comp", stage->comp_s, all->stage[i].comp_s, of);
        assert_int_equal(stage->n, all->stage[i].n);
    }
}

/* The table of memory by a part is that of the buffers of the whole program, added up. */
static void check_table(const char *set, const Made *made, const SimReport *all)
{
    g_autoptr(GArray) rows = sim_memory_table(made->plan, made->graph, made->view, "",
                                              true, all->memory_bytes, NULL);
    array_each (const SimMemoryRow, row, rows) {
        g_autoptr(GArray) block = g_array_new(FALSE, FALSE, sizeof(SnapshotBlock));
        double bytes[MEMORY_CATEGORIES] = {0}, sum = 0;
        assert_true(sim_memory_blocks(made->plan, made->graph, made->view, "",
                                      row->device, block, NULL));
        array_each (const SnapshotBlock, b, block)
            for (MemoryCategory c = 0; c < MEMORY_RUNTIME; c++)
                if (strcmp(b->category, memory_category(c)) == 0 &&
                    b->first <= row->instr && b->last >= row->instr)
                    bytes[c] += (double)b->bytes;
        for (MemoryCategory c = 0; c < MEMORY_RUNTIME; c++) {
            assert_near(set, memory_category(c), (double)row->bytes[c], bytes[c], 1e11);
            sum += bytes[c];
        }
        assert_near(set, "peak", (double)all->memory_bytes[row->device], sum, 1e11);
    }
}

/* Its time by flow follows from the pace of its middle. Returns whether that told it. */
static bool check_flow(const char *set, const Made *made)
{
    static const double near = 1e-3;
    SimOptions options;
    sim_options_init(&options);
    options.time_only = true;
    const double got_s =
        sim_flow_estimate_s(made->plan, made->graph, made->view, &options, UINT32_MAX);
    if (isinf(got_s))
        return false;
    g_autoptr(SimReport) all =
        sim_evaluate_with(made->plan, made->graph, made->view,
                          fidelity_name(FIDELITY_FLOW), &options, NULL);
    if (fabs(got_s / all->iteration_time_s - 1) > near)
        fail_msg("%s: by flow: expected %g s, got %g s", set, all->iteration_time_s,
                 got_s);
    return true;
}

/* A plan's report by a part of its microbatches is that of the whole program. Returns whether a
 * part was enough. */
static bool check_part(const char *set, const Made *made, const Plan *plan,
                       const SimReport *all, bool time_only)
{
    SimOptions options;
    sim_options_init(&options);
    options.time_only = time_only;
    g_autoptr(SimReport) part = sim_evaluate_shortly(
        plan, made->graph, made->view, fidelity_name(FIDELITY_STAGE), &options, NULL);
    assert_near(set, "time", part->iteration_time_s, all->iteration_time_s,
                all->iteration_time_s);
    if (time_only)
        return !part->timeline;
    check_times(set, part, all);
    assert_int_equal(part->feasible, all->feasible);
    for (uint32_t j = 0; j < all->n_devices; j++)
        assert_near(set, "memory", (double)part->memory_bytes[j],
                    (double)all->memory_bytes[j], 1e9);
    return !part->timeline;
}

/* Returns whether the program has a repeated middle. */
static bool check_period(const Program *program)
{
    ProgramPeriod period, again;
    if (!program_find_period(program, &period))
        return false;
    g_autoptr(Program) part = program_repeat(program, &period, period.repeats / 2 + 4);
    assert_int_equal(program_parts(part), program->n_microbatches);
    assert_true(program_find_period(part, &again));
    g_autoptr(Program) whole =
        program_repeat(part, &again, program_all_repeats(part, &again));
    assert_int_equal(whole->n, program->n);
    assert_int_equal(whole->n_microbatches, program->n_microbatches);
    assert_memory_equal(whole->instr, program->instr, whole->n * sizeof *whole->instr);
    return true;
}

/* A program that is made with fewer microbatches stands for the whole one. Returns whether it has
 * fewer. */
static bool check_brief(const char *set, const Made *made, const SimReport *all)
{
    const Strategy *strategy = &made->plan->strategy;
    g_auto(StrategyPipelines) pipelines = {0};
    if (!strategy_lay_out_pipelines(strategy, made->graph, made->view->n_devices,
                                    &pipelines, NULL))
        return false;
    Program *brief = synth_strategy_briefly(made->graph, made->view, &pipelines, NULL);
    const Program *program = made->plan->program;
    const bool fewer = brief->left_out > 0;
    assert_int_equal(program_parts(brief), program->n_microbatches);
    Plan plan = *made->plan;
    plan.program = brief;
    if (fewer && !check_part(set, made, &plan, all, false))
        fail_msg("%s: its part was not enough", set);
    g_autoptr(SimReport) same =
        sim_evaluate(&plan, made->graph, made->view, fidelity_name(FIDELITY_STAGE), NULL);
    assert_true(same->iteration_time_s == all->iteration_time_s);
    if (fewer)
        program_whole(&brief);
    assert_int_equal(brief->n, program->n);
    assert_int_equal(brief->left_out, 0);
    assert_memory_equal(brief->instr, program->instr, brief->n * sizeof *brief->instr);
    program_free(brief);
    return fewer;
}

static void test_parts_are_as_the_whole(void **state)
{
    (void)state;
    uint32_t n = 0, n_repeat = 0, n_times = 0, n_parts = 0, n_brief = 0, n_flows = 0;
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLUSTER); c++)
        for (uint32_t b = 0; b < G_N_ELEMENTS(BASE); b++)
            for (uint32_t s = 0; s < G_N_ELEMENTS(SCHEDULE); s++) {
                g_autofree char *set =
                    g_strdup_printf("%s schedule=%s", BASE[b], SCHEDULE[s]);
                if (c != (b + s) % G_N_ELEMENTS(CLUSTER))
                    continue;
                g_auto(Made) made = make("manual", strstr(set, "ep=") ? EXPERTS : MODEL,
                                         CLUSTER[c], set, NULL);
                if (!made.plan && c < 2 && strstr(SCHEDULE[s], "gpipe") &&
                    !strstr(set, "zero=3"))
                    fail_msg("%s: expected a plan", set);
                if (!made.plan)
                    continue;
                n++;
                n_repeat += check_period(made.plan->program);
                g_autoptr(SimReport) all =
                    sim_evaluate(made.plan, made.graph, made.view,
                                 fidelity_name(FIDELITY_STAGE), NULL);
                n_brief += check_brief(set, &made, all);
                n_times += check_part(set, &made, made.plan, all, true);
                const bool flow = check_flow(set, &made);
                n_flows += flow;
                const bool part = check_part(set, &made, made.plan, all, false);
                n_parts += part;
                assert_true(part || !strstr(set, "ep="));
                check_table(set, &made, all);
                if (g_getenv("KILTER_TEST_VERBOSE"))
                    print_message("%s %s: %d, by flow %d\n", CLUSTER[c], set, part, flow);
            }
    print_message(
        "%u plans, %u repeat a middle, %u times, %u times by flow and %u peaks by a "
        "part, %u made with less\n",
        n, n_repeat, n_times, n_flows, n_parts, n_brief);
    assert_true(2 * n_times >= n);
    assert_true(2 * n_parts >= n);
    assert_true(n_brief * 8 >= n);
    assert_true(n_flows * 5 >= n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
