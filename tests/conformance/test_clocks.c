/* Every clock (clocks.h) on random programs of its domain, under every cost alone and several
 * together: its time is as far from the fidelity's as its row says. */
#include "sim/flow/execution.h"
#include "tests/conformance/clocks.h"

#include <math.h>

#include "synth/synth.h"
#include "tests/support/amp_setup.h"
#include "tests/support/plan_of.h"
#include "tests/support/random_case.h"
#include "tests/support/uneven_lab.h"

enum { CASES = 8 * N_CLOCK_COSTS };

typedef struct {
    const char *name;
    ClockDomain domain;
    ClockRelation relation;
    Fidelity fidelity;
    double part;
    unsigned without;
} ClockRow;

#define ROW(id, domain, relation, fidelity, part, without, where) \
    {#id, CLOCK_##domain, CLOCK_##relation, FIDELITY_##fidelity, part, without},
static const ClockRow ROWS[] = {CLOCK_TABLE(ROW)};

/* How often each clock was looked at, how often from both sides, and the least and most of its part
 * of the time. */
typedef struct {
    uint32_t n[N_CLOCKS], both_sides[N_CLOCKS];
    double least[N_CLOCKS], most[N_CLOCKS];
    double off[N_CLOCKS]; /* sum, of those from both sides */
} Tally;

/* A plan under some costs, and what fidelities say of it once they were asked. */
typedef struct {
    uint32_t seed;
    unsigned costs;
    const Graph *graph;
    const ClusterView *view;
    const Plan *plan;
    const char *network; /* the option, or NULL */
    double time_s[FIDELITIES];
    Tally *tally;
} Timed;

/* --- costs --- */

static void add_cost(Cluster *cluster, ClockCost cost, GRand *rand)
{
    for (uint32_t i = 0; i < cluster->n_types; i++) {
        DeviceType *type = &cluster->type[i];
        switch (cost) {
        case CLOCK_COST_LAUNCH:
            type->launch_s = g_rand_double_range(rand, 1e-6, 3e-5);
            break;
        case CLOCK_COST_HANDOVER:
            type->handover_s = g_rand_double_range(rand, 1e-5, 1e-4);
            break;
        case CLOCK_COST_CROWDING:
            type->launch_s = 1e-5;
            type->crowding = g_rand_double_range(rand, 0.1, 0.5);
            break;
        case CLOCK_COST_SLOWDOWN:
            type->slowdown = g_rand_double_range(rand, 1.1, 1.5);
            break;
        case CLOCK_COST_INTERFERENCE:
            type->interference = g_rand_double_range(rand, 1.1, 1.5);
            break;
        case CLOCK_COST_STRETCH:
            cluster->machine[0].stretch = g_rand_double_range(rand, 1.2, 3);
            break;
        case CLOCK_COST_FITTED:
        case N_CLOCK_COSTS:
            break;
        }
    }
    if (cost == CLOCK_COST_FITTED)
        random_fit(rand, cluster);
}

/* None, each cost alone, and some of them. */
static unsigned add_costs(Cluster *cluster, uint32_t seed, GRand *rand)
{
    unsigned costs = seed % (N_CLOCK_COSTS + 2);
    costs = costs <= N_CLOCK_COSTS ? 1U << costs >> 1 : g_rand_int(rand);
    costs &= (1U << N_CLOCK_COSTS) - 1;
    for (ClockCost cost = 0; cost < N_CLOCK_COSTS; cost++)
        if (costs >> cost & 1)
            add_cost(cluster, cost, rand);
    return costs;
}

/* --- relations --- */

static double fidelity_s(Timed *c, Fidelity fidelity)
{
    if (c->time_s[fidelity] > 0)
        return c->time_s[fidelity];
    SimOptions options;
    g_autoptr(GError) error = NULL;
    sim_options_init(&options);
    options.time_only = true;
    assert_true(!c->network || sim_options_set(&options, "network", c->network, &error));
    g_autoptr(SimReport) report = sim_evaluate_with(
        c->plan, c->graph, c->view, fidelity_name(fidelity), &options, &error);
    assert_no_error(error);
    return c->time_s[fidelity] = report->iteration_time_s;
}

static void check_clock(Timed *c, Clock clock, double seconds)
{
    const ClockRow *row = &ROWS[clock];
    const double other = fidelity_s(c, row->fidelity), part = seconds / other;
    const bool below_alone = row->relation == CLOCK_BELOW || (c->costs & row->without);
    const double most = row->relation == CLOCK_NEAR ? CLOCK_WORST * row->part : row->part;
    if (!(part <= 1 + most) || !(below_alone || part >= 1 - most))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s, seed %u, costs %x: %g s, by %s %g s",
                     row->name, c->seed, c->costs, seconds, fidelity_name(row->fidelity),
                     other);
    c->tally->n[clock]++;
    c->tally->both_sides[clock] += !below_alone;
    c->tally->off[clock] += below_alone ? 0 : fabs(part - 1);
    c->tally->least[clock] = fmin(c->tally->least[clock], part);
    c->tally->most[clock] = fmax(c->tally->most[clock], part);
}

/* Leaves the shares as they are, not rounded. */
static void drop_splits(Plan *plan)
{
    for (uint32_t i = 0; i < plan->n_splits; i++)
        g_free(plan->split[i].count);
    plan->n_splits = 0;
}

/* --- programs of one group --- */

/* Chakra has only one kind of all-gather and of reduce-scatter. */
static Program *without_grouped(const Program *program)
{
    Program *plain = program_copy(program);
    for (uint32_t i = 0; i < plain->n; i++) {
        Instr *instr = &plain->instr[i];
        if (instr->kind != INSTR_COLLECTIVE)
            continue;
        if (instr->collective == COLLECTIVE_GROUPED_ALL_GATHER)
            instr->collective = COLLECTIVE_ALL_GATHER;
        else if (instr->collective == COLLECTIVE_GROUPED_REDUCE_SCATTER)
            instr->collective = COLLECTIVE_REDUCE_SCATTER;
    }
    return plain;
}

static double linear_s(const Timed *c)
{
    g_autoptr(SimLinear) linear = sim_linear(c->plan->program, c->graph, c->view,
                                             c->plan->segment, c->plan->bucket_bytes);
    g_autofree double *share = sim_plan_shares(c->plan, linear);
    return sim_linear_time(linear, c->view, share, NULL, NULL);
}

static double traces_s(const Timed *c)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    sim_options_init(&options);
    g_autoptr(SimExecution) execution =
        sim_execution_new(c->plan, c->graph, c->view, &options, &error);
    g_autoptr(GPtrArray) traces = sim_execution_traces(execution, false, NULL, &error);
    assert_no_error(error);
    g_autoptr(SimExecutionReport) report =
        sim_execution_run(traces, NULL, c->view, &options, &error);
    assert_no_error(error);
    return report->time_s;
}

static void check_spmd(uint32_t seed, Tally *tally)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(Graph) graph = random_graph(rand, 3);
    g_autoptr(Cluster) cluster = random_cluster(rand, 5);
    Timed c = {.seed = seed, .graph = graph, .tally = tally};
    c.costs = add_costs(cluster, seed, rand);
    g_autoptr(ClusterView) view = cluster_view(
        cluster, g_rand_boolean(rand) ? GRANULARITY_MACHINE : GRANULARITY_GPU);
    g_autoptr(Plan) plan = random_plan(rand, graph, view, random_program(rand, graph));
    c.view = view;
    c.plan = plan;
    g_autoptr(SimReport) report =
        sim_evaluate(plan, graph, view, fidelity_name(FIDELITY_ANALYTIC), NULL);
    check_clock(&c, CLOCK_ANALYTIC, report->iteration_time_s);
    check_clock(&c, CLOCK_LINEAR, linear_s(&c));
    check_clock(&c, CLOCK_COMPUTE, sim_compute_bound_s(graph, view));
    Program *doubled = synth_duplex(plan->program, graph, 2, NULL);
    g_autoptr(Plan) plain =
        plan_of(graph, view->n_devices, false, without_grouped(plan->program));
    Timed traced = {seed, c.costs, graph, view, plain, NULL, {0}, tally};
    check_clock(&traced, CLOCK_TRACES, traces_s(&traced));
    if (!doubled)
        return;
    g_autoptr(Plan) twice = plan_of(graph, view->n_devices, seed % 2, doubled);
    drop_splits(twice);
    Timed turns = {seed, c.costs, graph, view, twice, NULL, {0}, tally};
    check_clock(&turns, CLOCK_TURNS, linear_s(&turns));
}

/* --- op groups --- */

static void check_groups(uint32_t seed, Tally *tally)
{
    static const char *const model[] = {
        "vit:layers=2,hidden=8,heads=2,ffn=12,image=8,global_batch=24",
        "bert-moe:layers=2,hidden=4,heads=2,ffn=6,seq=4,vocab=10,global_batch=24,"
        "experts=4"};
    enum { GROUPS = 6 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(model[seed % 2], 1, NULL, &error);
    g_autoptr(Cluster) cluster =
        cluster_load("star:hosts=4,bandwidth=1Gb/s,latency=5us", &error);
    assert_no_error(error);
    Timed c = {.seed = seed, .graph = graph, .network = "crossbar", .tally = tally};
    c.costs = add_costs(cluster, seed, rand);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(BatchForms) batch = batch_forms_new(graph, &error);
    g_autoptr(TagSpace) space = synth_tag_space(view, false, &error);
    assert_no_error(error);
    const uint32_t n_ops = graph_n_ops(graph);
    g_autofree uint16_t *group = g_new(uint16_t, n_ops);
    g_autofree double *time_s = g_new(double, n_ops);
    uint16_t action[GROUPS];
    for (OpId id = 0; id < n_ops; id++) {
        group[id] = (uint16_t)(id * GROUPS / n_ops);
        time_s[id] = g_rand_double(rand);
    }
    for (uint32_t i = 0; i < GROUPS; i++)
        action[i] = (uint16_t)g_rand_int_range(rand, 0, (gint32)space->n_actions);
    const TagWork work = {.graph = graph,
                          .batch = batch,
                          .n_groups = GROUPS,
                          .group = group,
                          .time_s = time_s};
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(graph);
    synth_tag_place(space, &work, action, placement);
    g_autoptr(Plan) plan = plan_of(graph, view->n_devices, false,
                                   synth_tag_program(space, &work, placement, true));
    drop_splits(plan);
    g_autoptr(SimQuick) quick =
        sim_quick_new(graph, view, plan->ratio, space->n_groups, space->group, &error);
    assert_no_error(error);
    c.view = view;
    c.plan = plan;
    const SimQuickTimes times = sim_quick_times(quick, plan->program);
    check_clock(&c, CLOCK_QUICK_STAGE, times.stage_s);
    check_clock(&c, CLOCK_QUICK_FLOW, times.flow_s);
    g_autoptr(TagBound) bound =
        tag_bound_new(space, &work, quick, TAG_BY_STAGE, SIM_SUMS_EACH);
    const double bound_s = tag_bound(bound, action);
    if (isfinite(bound_s)) /* it fits */
        check_clock(&c, CLOCK_TAG_BOUND, bound_s);
}

/* --- pipelines --- */

static void check_pipeline(uint32_t seed, Tally *tally)
{
    static const char *const name[] = {
        "star:hosts=4,gpus=2,inner_bandwidth=20GB/s,bandwidth=40Gb/s",
        "star:hosts=2,gpus=4,inner_bandwidth=50GB/s,bandwidth=10Gb/s",
        "star:hosts=8,bandwidth=100Gb/s"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_load(name[seed % 3], &error);
    assert_no_error(error);
    Timed c = {.seed = seed, .tally = tally};
    c.costs = add_costs(cluster, seed, rand);
    g_auto(AmpSetup) s = amp_setup_on(
        cluster, "gpt2:layers=4,hidden=256,heads=8,ffn=1024,seq=128,vocab=1024,"
                 "global_batch=16");
    const AmpOptions options = {
        .schedule = (SynthSchedule)(seed % 3), .chunks = 2, .seed = seed, .draws = 3};
    g_autoptr(GArray) found =
        synth_amp_search(s.model, s.devices, &options, AMP_RANDOM, NULL, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < found->len; i++) {
        const AmpCandidate *k = &g_array_index(found, AmpCandidate, i);
        g_autoptr(Plan) plan = amp_setup_plan(&s, &options, &k->strategy);
        Timed each = {seed, c.costs, s.graph, s.view, plan, NULL, {0}, tally};
        check_clock(&each, CLOCK_AMP_WALK, k->cost.total_s);
        check_clock(&each, CLOCK_AMP_LEAST, k->least_s);
    }
}

/* --- unlike stages --- */

/* Groups as long as there are units, with random cuts and entries; NULL stages: none fits. */
static JointPipeline draw_pipeline(GRand *rand, const JointProblem *p)
{
    enum { STAGES = 4, TRIES = 20 };
    g_autofree uint32_t *left = g_memdup2(p->units, p->n_kinds * sizeof *left);
    JointPipeline made = {
        .stage = g_new0(JointStage, STAGES),
        .schedule = (SynthSchedule)g_rand_int_range(rand, 0, SCHEDULE_ZB_H2 + 1),
        .chunks = 1};
    uint32_t from = 0;
    for (uint32_t t = 0; t < TRIES && made.n_stages < STAGES && from < p->n_layers; t++) {
        const uint32_t g = (uint32_t)g_rand_int_range(rand, 0, (gint32)p->n_groups);
        bool enough = p->group[g].n_entries > 0;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            enough &= p->group[g].use[k] <= left[k];
        if (!enough)
            continue;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            left[k] -= p->group[g].use[k];
        made.stage[made.n_stages++] = (JointStage){
            from, g, (uint32_t)g_rand_int_range(rand, 0, (gint32)p->group[g].n_entries)};
        from += (uint32_t)g_rand_int_range(rand, 1, (gint32)(p->n_layers - from) + 1);
    }
    if (made.n_stages == 0 || !synth_joint_fits(p, &made))
        g_clear_pointer(&made.stage, g_free);
    return made;
}

static void check_stages(uint32_t seed, Tally *tally)
{
    /* on a slow network one whose activations are larger than its weights */
    static const char *const model[] = {
        "gpt2:layers=6,hidden=128,heads=4,ffn=512,seq=512,vocab=256,global_batch=32",
        "gpt2:layers=6,hidden=512,heads=8,ffn=2048,seq=256,vocab=4096,global_batch=32"};
    enum { DRAWS = 6 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(Cluster) cluster = uneven_lab(2000, seed % 2 ? 2000 : 20);
    const unsigned costs = add_costs(cluster, seed, rand);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build(model[seed % 2], cluster_gpus(cluster), NULL, &error);
    g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, false, &error);
    assert_no_error(error);
    g_autoptr(JointProblem) p = synth_joint_problem(menu, 1U << (seed % 5), 1, true);
    for (uint32_t i = 0; i < DRAWS; i++) {
        JointPipeline made = draw_pipeline(rand, p);
        if (!made.stage)
            continue;
        g_auto(JointProgram) program = {0};
        assert_true(synth_joint_program(menu, p, &made, &program, &error));
        assert_int_equal(program.program->successive,
                         made.n_stages > 1 && made.schedule == SCHEDULE_ZB_H2);
        g_autoptr(Plan) plan =
            plan_of(graph, view->n_devices, false, g_steal_pointer(&program.program));
        memcpy(plan->ratio, program.ratio, view->n_devices * sizeof *program.ratio);
        assert_true(plan_round(plan, graph, &error));
        Timed c = {seed, costs, graph, view, plan, NULL, {0}, tally};
        check_clock(&c, CLOCK_JOINT_WALK, synth_joint_walk_s(menu, p, &made));
        check_clock(&c, CLOCK_JOINT_DENSITY, synth_joint_density_s(p));
        if (made.schedule == SCHEDULE_1F1B)
            check_clock(&c, CLOCK_JOINT_FORMULA, synth_joint_cost(p, &made, false));
        synth_joint_pipeline_clear(&made);
    }
}

static void test_clocks(void **state)
{
    (void)state;
    Tally tally = {0};
    for (Clock clock = 0; clock < N_CLOCKS; clock++)
        tally.least[clock] = INFINITY;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        check_spmd(seed, &tally);
        check_groups(seed, &tally);
        check_pipeline(seed, &tally);
        check_stages(seed, &tally);
    }
    for (Clock clock = 0; clock < N_CLOCKS; clock++) {
        const ClockRow *row = &ROWS[clock];
        const double off = tally.off[clock] / MAX(tally.both_sides[clock], 1);
        print_message("%-14s %4u times, %.3f to %.3f of the time; %u from both sides, "
                      "%.1f %% off\n",
                      row->name, tally.n[clock], tally.least[clock], tally.most[clock],
                      tally.both_sides[clock], 100 * off);
        assert_true(tally.n[clock] >= CASES / 5);
        assert_true(row->relation == CLOCK_BELOW || tally.both_sides[clock] > CASES / 5);
        assert_at_most(off, row->part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
