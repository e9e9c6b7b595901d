/* synth_bound() under memory: for every program of the space, every ratios in the box and all
 * multipliers,
 *
 *     bound  <=  t + sum over points and devices of  lambda (peak - memory)                                     (1)
 *
 * so that no plan that fits is faster than the bound; and, with limited memory, bound <= t wherever
 * that sum is at most 0, so that multipliers leave no gap. Programs come from the search with many
 * charges for memory, and from known strategies; ratios from a grid. */
#include "tests/test.h"

#include "synth/synth.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_plan.h"

typedef struct {
    const Graph *graph;
    SynthSpace *space;
    ClusterView view;
    Device device[64];
    double lo[64], hi[64];
    double charge[2 * 64];
    double bound_s, rationed_s; /* the latter with a tolerance */
    uint32_t checked, fitting, tight, closed;
} Case;

/* Ratios in the box: from lo, the rest in random order, as much as hi allows. */
static void random_in_box(const Case *c, GRand *rand, double *ratio)
{
    double rest = 1;
    for (uint32_t j = 0; j < c->view.n_devices; j++)
        rest -= ratio[j] = c->lo[j];
    uint32_t first = (uint32_t)g_rand_int_range(rand, 0, (gint32)c->view.n_devices);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < c->view.n_devices; i++) {
            uint32_t j = (first + i) % c->view.n_devices;
            double room = MIN(rest, c->hi[j] - ratio[j]);
            double more = pass == 0 ? room * g_rand_double(rand) : room;
            ratio[j] += more;
            rest -= more;
        }
}

/* Inequality (1) for one program. */
static void check_program(Case *c, const Program *program, const double *ratio)
{
    g_autoptr(SimLinear) linear = sim_linear(program, c->graph, &c->view, NULL, 0);
    g_autoptr(SimMemory) memory = sim_memory(program, c->graph, linear, NULL, NULL);
    g_autofree double *share = sim_shares(linear, &c->view, ratio);
    double time_s = sim_linear_time(linear, &c->view, share, NULL, NULL),
           charged = time_s;
    bool fits = true;
    for (uint32_t j = 0; j < c->view.n_devices; j++) {
        double over = sim_memory_peak(memory, &c->view, share, j, NULL) -
                      (double)c->view.device[j].memory_bytes;
        charged += (c->charge[j] + c->charge[c->view.n_devices + j]) * over;
        fits &= over <= 0;
    }
    assert_true(c->bound_s <= charged + 1e-9 * (fabs(charged) + time_s));
    if (fits)
        assert_true(c->bound_s <= time_s * (1 + 1e-9));
    if (charged <= time_s)
        assert_true(c->rationed_s <= time_s * (1 + 1e-9));
    c->checked++;
    c->fitting += fits;
    c->tight += c->bound_s > charged - 0.1 * time_s;
    c->closed += charged <= time_s && c->rationed_s > c->bound_s + 0.01 * time_s;
}

static void check_searched(Case *c, const double *ratio, double charge_s)
{
    double charge[2 * 64];
    for (uint32_t i = 0; i < SYNTH_POINTS * c->view.n_devices; i++)
        charge[i] = charge_s;
    SynthOptions options = {.beam = 200, .memory_s = charge_s > 0 ? charge : NULL};
    SynthResult result;
    g_autoptr(GError) error = NULL;
    bool done = synth_search(c->space, &c->view, ratio, &options, &result, &error);
    assert_no_error(error);
    assert_true(done);
    check_program(c, result.program, ratio);
    synth_result_clear(&result);
}

static void check_ratios(Case *c, const double *ratio, double scale_s)
{
    for (Baseline baseline = BASELINE_DATA_PARALLEL; baseline <= BASELINE_ZERO_EXPERT;
         baseline++) {
        SynthResult known;
        if (!synth_baseline(c->graph, &c->view, ratio, baseline, &known, NULL))
            continue;
        check_program(c, known.program, ratio);
        synth_result_clear(&known);
    }
    check_searched(c, ratio, 0);
    for (double charge_s = 0.03 * scale_s; charge_s < 100 * scale_s; charge_s *= 30)
        check_searched(c, ratio, charge_s);
}

/* A memory that is some part of the need of data parallelism; *time_s: its time. False if there is
 * no such plan. */
static bool set_memory(Case *c, GRand *rand, double *time_s, double *bytes)
{
    double even[64];
    for (uint32_t j = 0; j < c->view.n_devices; j++)
        even[j] = 1.0 / c->view.n_devices;
    SynthResult known;
    if (!synth_baseline(c->graph, &c->view, even, BASELINE_DATA_PARALLEL, &known, NULL))
        return false;
    g_autoptr(SimLinear) linear = sim_linear(known.program, c->graph, &c->view, NULL, 0);
    g_autoptr(SimMemory) memory = sim_memory(known.program, c->graph, linear, NULL, NULL);
    g_autofree double *share = sim_shares(linear, &c->view, even);
    *time_s = known.time_s;
    *bytes = 0;
    double part = g_rand_double_range(rand, 0.6, 1.5);
    for (uint32_t j = 0; j < c->view.n_devices; j++) {
        double peak = sim_memory_peak(memory, &c->view, share, j, NULL);
        c->device[j].memory_bytes = (uint64_t)(part * peak);
        *bytes += peak;
    }
    synth_result_clear(&known);
    return true;
}

/* A box of all ratios, of some, or of the even ones only. */
static void random_box(Case *c, GRand *rand)
{
    enum { ALL, PART, POINT } how = (uint32_t)g_rand_int_range(rand, 0, 3);
    for (uint32_t j = 0; j < c->view.n_devices; j++) {
        double even = 1.0 / c->view.n_devices;
        double down = how == PART ? g_rand_double_range(rand, 0.2, 1) : 1;
        double up = how == PART ? g_rand_double_range(rand, 1, 2) : 1;
        c->lo[j] = how == ALL ? 0 : even * down;
        c->hi[j] = how == ALL ? 1 : MIN(1, even * up);
    }
}

/* False for graphs outside the space. */
static bool check_case(Case *c, GRand *rand)
{
    enum { RATIOS = 2 };
    double time_s, bytes, ratio[RATIOS][64], largest = 1;
    if (!set_memory(c, rand, &time_s, &bytes))
        return false;
    random_box(c, rand);
    for (uint32_t i = 0; i < RATIOS; i++) {
        double own = 0;
        random_in_box(c, rand, ratio[i]);
        for (uint32_t j = 0; j < c->view.n_devices; j++)
            own = MAX(own, ratio[i][j]);
        largest = MIN(largest, own);
    }
    for (uint32_t i = 0; i < SYNTH_POINTS * c->view.n_devices; i++)
        c->charge[i] =
            g_rand_boolean(rand) ? g_rand_double_range(rand, 0, 0.3) * time_s / bytes : 0;
    SynthBox box = {.lo = c->lo,
                    .hi = c->hi,
                    .largest = g_rand_boolean(rand) ? largest : 0,
                    .upper_s = 1e3 * time_s,
                    .memory_s = c->charge};
    SynthBox rationed = box;
    rationed.rationed = true;
    rationed.labels = g_rand_boolean(rand) ? 2000 : 3; /* many of these are lost */
    rationed.tolerance = g_rand_boolean(rand) ? 1e-3 : 1e-9;
    box.tolerance = g_rand_boolean(rand) ? 1e-2 : 0;
    rationed.n_programs = 8;
    g_autoptr(GError) error = NULL;
    g_auto(SynthBound) bound = {0}, more = {0};
    if (!synth_bound(c->space, &c->view, &box, &bound, &error)) {
        assert_error(error, KILTER_ERROR_FAILED, "");
        return false;
    }
    assert_true(synth_bound(c->space, &c->view, &rationed, &more, &error));
    c->bound_s = bound.bound_s;
    c->rationed_s = more.bound_s;
    for (uint32_t i = 0; i < RATIOS; i++) {
        for (uint32_t k = 0; k < more.programs->len; k++)
            check_program(c, more.programs->pdata[k], ratio[i]);
        check_ratios(c, ratio[i], time_s / bytes);
    }
    return true;
}

/* Where memory costs nothing, programs within rationed memory are those of the search without
 * it: the fastest one comes first, and is alone. */
static void test_memory_for_nothing(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = random_graph(rand, 1);
        g_autoptr(Cluster) cluster = random_cluster(rand, 3);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        g_autoptr(SynthSpace) space = synth_space_new(graph, NULL);
        g_autofree double *even = g_new(double, view->n_devices);
        g_autofree double *nothing = g_new0(double, SYNTH_POINTS * view->n_devices);
        for (uint32_t j = 0; j < view->n_devices; j++)
            even[j] = 1.0 / view->n_devices;
        const SynthOptions options = {.memory_s = nothing};
        SynthResult result;
        if (!synth_search(space, view, even, &options, &result, &error))
            continue; /* outside the space */
        const SynthBox box = {.lo = even,
                              .hi = even,
                              .upper_s = INFINITY,
                              .memory_s = nothing,
                              .rationed = true,
                              .labels = 2000,
                              .tolerance = 1e-9,
                              .n_programs = 8};
        g_auto(SynthBound) bound = {0};
        assert_true(synth_bound(space, view, &box, &bound, &error));
        assert_int_equal(bound.programs->len, 1);
        g_autoptr(SimLinear) linear =
            sim_linear(bound.programs->pdata[0], graph, view, NULL, 0);
        g_autofree double *share = sim_shares(linear, view, even);
        assert_close(sim_linear_time(linear, view, share, NULL, NULL), result.time_s,
                     1e-6);
        synth_result_clear(&result);
    }
}

static void test_nothing_beats_the_bound(void **state)
{
    (void)state;
    const char *rounds = g_getenv("KILTER_ROUNDS");
    uint32_t n = rounds ? (uint32_t)strtoul(rounds, NULL, 10) : 16, cases = 0;
    uint32_t checked = 0, fitting = 0, tight = 0, closed = 0;
    for (uint32_t seed = 1; seed <= n; seed++) {
        GRand *rand = g_rand_new_with_seed(seed);
        g_autoptr(Graph) graph = random_graph(rand, 1 + seed % 2);
        g_autoptr(Cluster) cluster = random_cluster(rand, seed % 4 == 3 ? 7 : 3);
        g_autoptr(ClusterView) view =
            cluster_view(cluster, seed % 2 ? GRANULARITY_GPU : GRANULARITY_MACHINE);
        g_autoptr(SynthSpace) space = synth_space_new(graph, NULL);
        Case c = {.graph = graph, .space = space, .view = *view};
        memcpy(c.device, view->device, view->n_devices * sizeof *view->device);
        c.view.device = c.device;
        cases += check_case(&c, rand);
        checked += c.checked;
        fitting += c.fitting;
        tight += c.tight;
        closed += c.closed;
        g_rand_free(rand);
    }
    print_message(
        "%u cases, %u programs, %u of them fit, %u are within a tenth of their "
        "time of the bound, of %u that keep the weighted constraint rationing tells "
        "more\n",
        cases, checked, fitting, tight, closed);
    assert_true(2 * cases > n && 8 * fitting > checked &&
                10 * tight > checked); /* otherwise nothing was tested */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_beats_the_bound),
                                       cmocka_unit_test(test_memory_for_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
