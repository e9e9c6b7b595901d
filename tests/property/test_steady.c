/* Long pipelines are evaluated by a part of their microbatches with the same result: random
 * schedules, cuts, techniques and unlike stages against the simulation of all of them; and the
 * repeated middle of their programs is found, left out, and put back. */
#include <math.h>
#include <string.h>

#include "data/plan/fidelity.h"
#include "data/program/period.h"
#include "synth/pipeline/strategy.h"
#include "tests/support/made_plan.h"

#define MODEL                                                                            \
    "gpt2:layers=10,hidden=16,heads=4,ffn=24,seq=8,vocab=24,global_batch=192,optimizer=" \
    "adam"

static const char *const CLUSTER[] = {"star:hosts=8,bandwidth=1Gb/s,latency=5us", "hap-8",
                                      "amp-het-cluster"};
static const char *const BASE[] = {
    "pp=4 microbatches=192",
    "pp=8 microbatches=192",
    "pp=4 tp=2 microbatches=192 sequence_parallel=on",
    "pp=4 dp=2 microbatches=96 zero=1",
    "pp=2 dp=2 tp=2 microbatches=96 recompute=full",
    "stage_tp=2,1,1 stage_dp=1,4,2 microbatches=48",
    "dp=2 tp=4 microbatches=96",
    "dp=8 zero=3 microbatches=24",
    "pipeline_layers=12;6,6 pipeline_shares=1,2 microbatches=192",
    "pipeline_layers=12;6,6 pipeline_shares=2,1 microbatches=192",
};
static const char *const SCHEDULE[] = {"1f1b",   "zb-h1", "zb-h2", "interleaved",  "zb-v",
                                       "v-half", "v-min", "gpipe", "breadth-first"};

/* `of`: what rounding is small beside. */
static void assert_near(const char *set, const char *what, double got, double wanted,
                        double of)
{
    if (fabs(got - wanted) > 1e-9 * of)
        fail_msg("%s: %s: expected %.17g, got %.17g", set, what, wanted, got);
}

static void assert_equal(const char *set, const SimReport *a, const SimReport *b)
{
    assert_near(set, "time", a->iteration_time_s, b->iteration_time_s,
                b->iteration_time_s);
    assert_near(set, "communication", a->comm_s, b->comm_s, b->iteration_time_s);
    assert_near(set, "computation", a->comp_s, b->comp_s, b->iteration_time_s);
    assert_int_equal(a->feasible, b->feasible);
    for (uint32_t j = 0; j < b->n_devices; j++) {
        assert_near(set, "busy", a->busy_s[j], b->busy_s[j], b->iteration_time_s);
        assert_near(set, "exposed", a->comm_busy_s[j], b->comm_busy_s[j],
                    b->iteration_time_s);
        assert_near(set, "hidden", a->hidden_s[j], b->hidden_s[j], b->iteration_time_s);
        if (fabs((double)a->memory_bytes[j] - (double)b->memory_bytes[j]) > 200)
            fail_msg("%s: memory: expected %" G_GUINT64_FORMAT ", got %" G_GUINT64_FORMAT,
                     set, b->memory_bytes[j], a->memory_bytes[j]);
    }
    for (uint32_t i = 0; i < b->n_stages; i++) {
        assert_near(set, "start", a->stage[i].start_s, b->stage[i].start_s,
                    b->iteration_time_s);
        assert_near(set, "stage", a->stage[i].comp_s, b->stage[i].comp_s,
                    b->iteration_time_s);
    }
}

/* Memory by category is found by a part of the program, and by all of it where the peaks that are
 * given are others. */
static void check_rows(const char *set, const Made *made, const SimReport *report)
{
    g_autofree uint64_t *other = g_new(uint64_t, report->n_devices);
    for (uint32_t j = 0; j < report->n_devices; j++)
        other[j] = 2 * report->memory_bytes[j];
    g_autoptr(GArray) part =
        sim_memory_table(made->plan, made->graph, made->view, report->runtime, true,
                         report->memory_bytes, NULL),
                      all = sim_memory_table(made->plan, made->graph, made->view,
                                             report->runtime, true, other, NULL);
    assert_int_equal(part->len, all->len);
    for (uint32_t k = 0; k < all->len; k++) {
        const SimMemoryRow *a = &g_array_index(part, SimMemoryRow, k),
                           *b = &g_array_index(all, SimMemoryRow, k);
        assert_int_equal(a->device, b->device);
        for (uint32_t c = 0; c < MEMORY_CATEGORIES; c++)
            assert_near(set, memory_category(c), (double)a->bytes[c], (double)b->bytes[c],
                        (double)b->total_bytes);
    }
}

/* Plans whose time alone was found by a part of their program. */
static uint32_t alone;
/* and those of which memory was, too: schedules of iterations in a row are none of them */
static uint32_t briefly;

/* Returns whether the plan was evaluated by a part of its program. */
static bool check_plan(const char *set, const Made *made)
{
    SimOptions options;
    sim_options_init(&options);
    const char *stage = fidelity_name(FIDELITY_STAGE);
    g_autoptr(SimReport) all =
        sim_evaluate_with(made->plan, made->graph, made->view, stage, &options, NULL);
    g_autoptr(SimReport) part =
        sim_evaluate_shortly(made->plan, made->graph, made->view, stage, &options, NULL);
    assert_equal(set, part, all);
    check_rows(set, made, part);
    options.time_only = true;
    g_autoptr(SimReport) time =
        sim_evaluate_shortly(made->plan, made->graph, made->view, stage, &options, NULL);
    assert_near(set, "time alone", time->iteration_time_s, all->iteration_time_s,
                all->iteration_time_s);
    alone += !time->timeline;
    options.time_only = false;
    options.brief = true;
    g_autoptr(SimReport) brief =
        sim_evaluate_shortly(made->plan, made->graph, made->view, stage, &options, NULL);
    assert_near(set, "brief", brief->iteration_time_s, all->iteration_time_s,
                all->iteration_time_s);
    assert_int_equal(brief->feasible, all->feasible);
    for (uint32_t j = 0; j < all->n_devices; j++)
        assert_near(set, "brief memory", (double)brief->memory_bytes[j],
                    (double)all->memory_bytes[j], 2e11);
    briefly += brief->brief;
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
static bool check_brief(const Made *made)
{
    const Strategy *strategy = &made->plan->strategy;
    g_auto(StrategyLayout) layout = {0};
    if (strategy->pipeline_layers ||
        !strategy_lay_out(strategy, made->graph, made->view->n_devices, &layout, NULL))
        return false;
    Program *brief = synth_strategy_briefly(made->graph, made->view, &layout, NULL);
    const Program *program = made->plan->program;
    const bool fewer = brief->left_out > 0;
    assert_int_equal(program_parts(brief), program->n_microbatches);
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
    uint32_t n = 0, n_repeat = 0, n_shortly = 0, n_brief = 0;
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLUSTER); c++)
        for (uint32_t b = 0; b < G_N_ELEMENTS(BASE); b++)
            for (uint32_t s = 0; s < G_N_ELEMENTS(SCHEDULE); s++) {
                g_autofree char *set =
                    g_strdup_printf("%s schedule=%s", BASE[b], SCHEDULE[s]);
                if (c != (b + s) % G_N_ELEMENTS(CLUSTER))
                    continue;
                g_auto(Made) made = make("manual", MODEL, CLUSTER[c], set, NULL);
                if (!made.plan && c < 2 && strstr(SCHEDULE[s], "gpipe") &&
                    !strstr(set, "zero=3"))
                    fail_msg("%s: expected a plan", set);
                if (!made.plan)
                    continue;
                n++;
                n_repeat += check_period(made.plan->program);
                n_brief += check_brief(&made);
                const bool shortly = check_plan(set, &made);
                n_shortly += shortly;
                if (g_getenv("KILTER_TEST_VERBOSE"))
                    print_message("%s %s: %d\n", CLUSTER[c], set, shortly);
            }
    print_message("%u plans, %u repeat a middle, %u by a part, %u their time alone, %u "
                  "made with less\n",
                  n, n_repeat, n_shortly, alone, n_brief);
    assert_true(n_shortly * 4 >= n);
    assert_true(alone > n_shortly);
    assert_true(briefly >= 13);
    assert_true(n_brief * 8 >= n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
