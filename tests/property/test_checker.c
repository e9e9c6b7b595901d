/* The program checker on plans of planners: it accepts them, and refuses each of them when an
 * instruction is left out (no planner emits an unnecessary one), when an operand is in another
 * form, and when an instruction is for another microbatch or group. $KILTER_ALL: every instruction;
 * else a few of each plan. */
#include "synth/planners/planner.h"
#include "tests/test.h"

typedef struct {
    const char *planner, *model, *cluster, *set; /* "key=value key=value" */
    Granularity granularity;
} Setup;

static Plan *make(const Setup *s, Graph **graph)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(s->cluster, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, s->granularity);
    PlannerOptions options;
    planner_options_init(&options);
    g_auto(GStrv) pair = g_strsplit(s->set, " ", -1);
    for (uint32_t i = 0; pair[i]; i++) {
        g_auto(GStrv) side = g_strsplit(pair[i], "=", 2);
        planner_options_set(&options, side[0], side[1], &error);
        assert_no_error(error);
    }
    Plan *plan = planner_plan(planner_find(s->planner, NULL), s->model, s->cluster, view,
                              &options, graph, &error);
    assert_no_error(error);
    program_check(plan->program, *graph, &error);
    assert_no_error(error);
    return plan;
}

/* --- changed programs --- */

typedef struct {
    const Setup *setup;
    const Graph *graph;
    Program *program;
    uint32_t at; /* index of the changed instruction */
    uint32_t n_changed;
} Mutation;

/* The current program, with something changed. */
static void expect_refused(Mutation *m, const Program *program, const char *what)
{
    const Setup *s = m->setup;
    m->n_changed++;
    if (!program_check(program, m->graph, NULL))
        return;
    g_autofree char *text = instr_text(&m->program->instr[m->at], m->graph);
    fail_msg("%s, %s on %s, %s: passes %s instruction %u, %s", s->planner, s->model,
             s->cluster, s->set, what, m->at, text);
}

static void change_form(Mutation *m, Form *form)
{
    const Form own = *form;
    /* Forms over shards and replicas only where there are some. */
    const bool outer =
        form_outer(own) || instr_regroups(m->program, &m->program->instr[m->at]);
    const uint32_t end = outer ? FORM_OUTERS * 8 : FORM_MAX + 1;
    for (uint32_t f = 0; f < end; f++) {
        *form = (Form)f;
        if (f != own && form_inside(*form) <= FORM_MAX)
            expect_refused(m, m->program, "with another form in");
    }
    *form = own;
}

/* Whether an instruction repeats an earlier one: gathering or computing again only saves memory. */
static bool is_repeated(const Program *program, uint32_t at)
{
    const Instr *instr = &program->instr[at];
    for (uint32_t i = 0; i < at; i++) {
        const Instr *other = &program->instr[i];
        if (other->kind == instr->kind && other->op == instr->op &&
            other->tensor == instr->tensor && other->group == instr->group &&
            other->microbatch == instr->microbatch && other->from == instr->from &&
            other->to == instr->to && !instr->moves)
            return true;
    }
    return false;
}

static void change_number(Mutation *m, uint16_t *number, uint32_t n)
{
    const uint16_t own = *number;
    for (uint32_t i = 0; i <= n; i++) {
        *number = (uint16_t)(i < n ? i : PROGRAM_WHOLE);
        if (*number != own)
            expect_refused(m, m->program, "with another microbatch or group in");
    }
    *number = own;
}

static void change(Mutation *m)
{
    const Program *program = m->program;
    Instr *instr = &program->instr[m->at];
    const Op *op =
        instr->kind == INSTR_COMPUTE ? graph_get_op(m->graph, instr->op) : NULL;
    for (uint32_t i = 0; op && i < op->n_in + op->n_out; i++)
        change_form(m, &instr->form[i]);
    if (!op && instr->kind != INSTR_LOAD)
        change_form(m, &instr->from);
    if (!op)
        change_form(m, &instr->to);
    /* Anything that can be made in the place of a repetition is right, too. */
    const bool needed = !is_repeated(program, m->at);
    if (needed && program->n_microbatches > 1)
        change_number(m, &instr->microbatch, program->n_microbatches);
    if (needed && program->n_groups > 1)
        change_number(m, &instr->group, program->n_groups);
    if (needed && instr->kind == INSTR_TRANSFER)
        change_number(m, &instr->to_group, program->n_groups);
}

/* Whether what an instruction moves could as well be moved by a later one: a sum goes on until
 * it is moved. */
static bool is_moved_later(const Program *program, uint32_t at)
{
    const Instr *instr = &program->instr[at];
    for (uint32_t i = at + 1; instr_moves(instr) && i < program->n; i++) {
        const Instr *other = &program->instr[i];
        if (other->kind == instr->kind && other->tensor == instr->tensor &&
            other->group == instr->group && other->to_group == instr->to_group &&
            other->from == instr->from && other->to == instr->to && instr_moves(other))
            return true;
    }
    return false;
}

static void leave_out(Mutation *m)
{
    if (is_repeated(m->program, m->at) || is_moved_later(m->program, m->at))
        return;
    g_autoptr(Program) less = program_copy(m->program);
    Instr *instr = &less->instr[m->at];
    memmove(instr, instr + 1, (--less->n - m->at) * sizeof *instr);
    expect_refused(m, less, "without");
}

/* --- all planners --- */

static void check_setup(const Setup *setup)
{
    enum { SAMPLES = 4 };
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = make(setup, &graph);
    g_autoptr(GRand) random = g_rand_new_with_seed(plan->program->n);
    Mutation m = {.setup = setup, .graph = graph, .program = plan->program};
    const bool all = g_getenv("KILTER_ALL") != NULL;
    const uint32_t n = plan->program->n;
    for (uint32_t i = 0; i < (all ? n : SAMPLES); i++) {
        m.at = all ? i : (uint32_t)g_rand_int_range(random, 0, (gint32)n);
        leave_out(&m);
        change(&m);
    }
    /* A regroup has rules of its own, and a program has few of them. */
    g_autoptr(GArray) regroups = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        if (instr_regroups(plan->program, &plan->program->instr[i]))
            g_array_append_val(regroups, i);
    for (uint32_t i = 0; i < MIN(SAMPLES, regroups->len) && !all; i++) {
        const uint32_t k =
            (uint32_t)g_rand_int_range(random, (gint32)i, (gint32)regroups->len);
        m.at = g_array_index(regroups, uint32_t, k);
        g_array_index(regroups, uint32_t, k) = g_array_index(regroups, uint32_t, i);
        leave_out(&m);
        change(&m);
    }
    print_message("%s, %s on %s, %s: %u instructions, %u changes\n", setup->planner,
                  setup->model, setup->cluster, setup->set, n, m.n_changed);
}

static void test_planners(void **state)
{
    (void)state;
    static const char *const models[] = {"vgg19",
                                         "vit:layers=1",
                                         "bert-base:layers=1",
                                         "bert-moe:layers=2",
                                         "bert-sgmoe:layers=2",
                                         "gpt2:layers=1"};
    static const char *const duplex[] = {"duplex=off", "duplex=on"};
    for (uint32_t p = 0; p < planner_count(); p++)
        for (uint32_t m = 0;
             !planner_can(planner_at(p), PLANNER_GROUPS) && m < G_N_ELEMENTS(models); m++)
            for (uint32_t d = 0; d < 2; d++)
                check_setup(&(Setup){planner_at(p)->name, models[m], "hap-8", duplex[d],
                                     GRANULARITY_MACHINE});
}

static void test_other_searches(void **state)
{
    (void)state;
    static const Setup setups[] = {
        {"hap", "vgg19", "hap-32", "ratios=best", GRANULARITY_MACHINE},
        {"hap", "vit:layers=1,batch=1", "hidup-2x4-10", "duplex=off", GRANULARITY_GPU},
        {"hap", "vit:layers=1", "hap-8", "search=reference", GRANULARITY_MACHINE},
        {"tag", "vgg19", "hap-8", "evaluations=200", GRANULARITY_MACHINE},
        {"tag", "bert-moe:layers=2", "hap-8", "search=mcts evaluations=200",
         GRANULARITY_GPU},
        {"flexflow", "vgg19", "hap-8", "evaluations=200", GRANULARITY_MACHINE},
        {"heterog", "vgg19", "hap-8", "evaluations=200", GRANULARITY_MACHINE},
        {"dp-nccl-sfb", "vgg19:batch=1", "hap-8", "", GRANULARITY_MACHINE},
        {"m-topo", "vgg19", "hap-8", "", GRANULARITY_MACHINE},
        {"m-sct", "vit:layers=1", "hap-8", "", GRANULARITY_GPU},
        {"hap", "bert-moe:layers=2", "hap-8", "search=reference", GRANULARITY_MACHINE},
        {"hap", "bert-moe:layers=2", "hap-8", "segments=ops", GRANULARITY_MACHINE},
        {"hap", "vit:layers=1", "hap-8", "pin=*.weight=gather(0)->identity",
         GRANULARITY_MACHINE},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(setups); i++)
        check_setup(&setups[i]);
}

static void test_pipelines(void **state)
{
    (void)state;
    static const char *const sets[] = {"pp=2 dp=2", "pp=2 tmp=2 schedule=gpipe", "pp=1",
                                       "pp=2 mbs=1 schedule=interleaved"};
    for (uint32_t p = 0; p < planner_count(); p++)
        for (uint32_t i = 0;
             planner_can(planner_at(p), PLANNER_STRATEGY) && i < G_N_ELEMENTS(sets); i++)
            if (strcmp(planner_at(p)->name, "manual") != 0 &&
                !planner_can(planner_at(p), PLANNER_CHOOSES))
                check_setup(&(Setup){planner_at(p)->name, "gpt2:layers=4,global_batch=8",
                                     "hidup-2x4-10", sets[i], GRANULARITY_GPU});
    static const char *const manual[] = {"pp=2 microbatches=2 recompute=full",
                                         "pp=2 tp=2 schedule=gpipe micro_batch=2",
                                         "dp=8",
                                         "tp=2 recompute=selective",
                                         "tp=2 zero=3 microbatches=2",
                                         "pp=2 zero=1 zero_ranks=2"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(manual); i++)
        check_setup(&(Setup){"manual", "gpt2:layers=4,global_batch=8", "hidup-2x4-10",
                             manual[i], GRANULARITY_GPU});
    static const char *const experts[] = {"ep=2", "ep=4 zero=1",
                                          "ep=2 tp=2 microbatches=2"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(experts); i++)
        check_setup(&(Setup){"manual", "bert-moe:layers=2,global_batch=8", "hidup-2x4-10",
                             experts[i], GRANULARITY_GPU});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planners),
        cmocka_unit_test(test_other_searches),
        cmocka_unit_test(test_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
