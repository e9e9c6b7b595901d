/* AMP's search on graphs and clusters of the repository: the costs of layers, the result of each
 * method, and refusals. */
#include "synth/amp/costing.h"
#include "synth/amp/layers.h"
#include "synth/amp/steps.h"
#include "tests/support/amp_setup.h"

static GArray *search(const AmpSetup *s, const AmpOptions *options, AmpMethod method)
{
    GError *error = NULL;
    GArray *found = synth_amp_search(s->model, s->devices, options, method, NULL, &error);
    assert_no_error(error);
    for (guint i = 1; i < found->len && method != AMP_RANDOM; i++)
        assert_at_most(g_array_index(found, AmpCandidate, i - 1).cost.total_s,
                       g_array_index(found, AmpCandidate, i).cost.total_s);
    return found;
}

static double best_s(const AmpSetup *s, const AmpOptions *options, AmpMethod method)
{
    g_autoptr(GArray) found = search(s, options, method);
    return g_array_index(found, AmpCandidate, 0).cost.total_s;
}

/* A layer of GPT-2: 12 h^2 + 13 h parameters, of which tensor parallelism cuts the matrices and the
 * biases of the first of each pair; two all-reduces of [seq, h] forward, two backward; its output
 * [seq, h] goes to the next one. */
static void test_layers_of_gpt2(void **state)
{
    (void)state;
    g_auto(AmpSetup) s = amp_setup_new("gpt2:layers=3", "amp-homogeneous");
    assert_int_equal(s.model->n_layers, 5);
    assert_int_equal(s.model->global_batch, 32);
    const uint32_t layer = 2, n = s.model->n_layers;
    const double h = 1024, output = 1024 * h * 4;
    assert_close(s.model->parameters[layer], 12 * h * h + 13 * h, 1e-12);
    for (uint32_t g = 0; g < s.model->n_degrees; g++) {
        const double t = s.model->degree[g];
        const size_t at = g * n + layer;
        const double cut = 12 * h * h + 7 * h, whole = 6 * h;
        assert_close(s.model->gradient[at], 4 * (cut / t + whole), 1e-12);
        assert_close(s.model->held[at], 4 * s.model->gradient[at], 1e-12);
        assert_close(s.model->output[at], output, 1e-12);
        assert_close(s.model->exchange[at] + 1, 1 + 4 * 2 * (t - 1) / t * output, 1e-12);
    }
    /* 24 h^2 FLOPs per token forward for the matrices alone, three times with the backward. */
    const double flops = synth_amp_times(s.model, 0, 0, 0)[layer] * 7.38e12;
    assert_at_most(3 * 24 * h * h * 1024, flops);
    assert_at_most(flops, 1.35 * 3 * 24 * h * h * 1024);
}

/* Times of micro-batches between the measured sizes lie on a line, those above on the last line;
 * below the smallest size, and where there is only one, they are proportional to the samples. */
static void test_times_between_sizes(void **state)
{
    (void)state;
    AmpStep step = {0};
    GArray steps = {.data = (char *)&step, .len = 1};
    double size[] = {2, 4, 8}, time_s[] = {10, 14, 30};
    AmpSteps timed = {.step = &steps, .time_s = time_s};
    AmpModel model = {
        .n_types = 1, .n_degrees = 1, .n_sizes = 3, .size = size, .steps = &timed};
    static const struct {
        uint32_t samples;
        double s;
    } WANT[] = {{1, 5}, {2, 10}, {3, 12}, {4, 14}, {5, 18}, {8, 30}, {10, 38}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(WANT); i++)
        assert_close(amp_step_s(&model, 0, WANT[i].samples, 0, 0), WANT[i].s, 1e-12);
    model.n_sizes = 1;
    assert_close(amp_step_s(&model, 0, 6, 0, 0), 30, 1e-12);
}

/* Whether some all-reduce of a group goes from machine to machine. */
static bool leaves_machines(const AmpStrategy *s, const uint32_t *machine, uint32_t group)
{
    const uint32_t *device = s->device + group * s->dp * s->tmp;
    for (uint32_t r = 0; r < s->dp; r++)
        for (uint32_t t = 0; t < s->tmp; t++)
            if (machine[device[r * s->tmp + t]] != machine[device[t]])
                return true;
    return false;
}

/* Groups whose all-reduces use the same ports: both leave machines, and share one. */
static void test_meetings(void **state)
{
    enum { DEVICES = 16, MACHINES = 5 };
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(12);
    uint32_t met = 0, inside = 0;
    for (uint32_t k = 0; k < 200; k++) {
        uint32_t device[DEVICES], machine[DEVICES], member[MACHINES];
        const uint32_t tmp = 1u << g_rand_int_range(rand, 0, 2),
                       dp = 1u << g_rand_int_range(rand, 0, 3), pp = DEVICES / tmp / dp,
                       n = dp * tmp;
        bool meet[DEVICES * DEVICES] = {false};
        for (uint32_t i = 0; i < DEVICES; i++) {
            device[i] = i;
            machine[i] = k % 2 ? i / 4 : (uint32_t)g_rand_int_range(rand, 0, MACHINES);
        }
        const AmpStrategy s = {.pp = pp, .dp = dp, .tmp = tmp, .device = device};
        const AmpCluster cluster = {.n_machines = MACHINES, .machine = machine};
        const AmpCosting costing = {.cluster = &cluster, .s = &s, .member = member};
        AmpRows rows = {.meet = meet};
        amp_find_meetings(&costing, &rows);
        for (uint32_t g = 0; g < pp; g++)
            for (uint32_t h = 0; h < pp; h++) {
                bool share = false;
                for (uint32_t i = 0; i < n * n; i++)
                    share |= machine[g * n + i / n] == machine[h * n + i % n];
                const bool both =
                    leaves_machines(&s, machine, g) && leaves_machines(&s, machine, h);
                assert_int_equal(meet[g * pp + h], share && both);
                met += g != h && share && both;
                inside += share && !both;
            }
    }
    assert_true(met > 100 && inside > 100);
}

/* The peak on each of t devices that share all layers of a GPT in half precision. */
static double peak_of_layers(uint32_t layers, uint32_t t, const char *more)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *spec =
        g_strdup_printf("star:hosts=%u,bandwidth=100GB/s,latency=1us", t);
    g_autofree char *model = g_strdup_printf(
        "gpt2:layers=%u,hidden=64,ffn=256,heads=4,seq=96,vocab=64,global_batch=8,%s",
        layers, more);
    g_auto(AmpSetup) s = amp_setup_new(model, spec);
    uint32_t first[] = {0, layers + 2}, device[] = {0, 1, 2, 3};
    const AmpStrategy strategy = {.pp = 1,
                                  .dp = 1,
                                  .tmp = t,
                                  .mbs = 8,
                                  .chunks = 1,
                                  .first = first,
                                  .device = device};
    const AmpOptions options = {.schedule = SCHEDULE_1F1B, .chunks = 1};
    g_autoptr(Plan) plan = amp_setup_plan(&s, &options, &strategy);
    g_autoptr(SimReport) report = sim_evaluate(plan, s.graph, s.view, "stage", &error);
    assert_no_error(error);
    return (double)report->memory_bytes[0];
}

/* A layer on t devices takes s b h (10 + 24 / t + 5 a s / (h t)) bytes of activations (Korthikanti
 * et al. 2022, Eq. 2) and 18 bytes per parameter, of which the matrices, 12 h^2 + 7 h, are cut.
 * Without dropout there are no masks and no probabilities after them: s b h (8 + 24 / t + 2 a s /
 * (h t)). */
static void test_memory_of_megatron(void **state)
{
    (void)state;
    const double s = 96, b = 8, h = 64, a = 4;
    for (uint32_t t = 2; t <= 4; t *= 2) {
        const double parameters = 18 * ((12 * h * h + 7 * h) / t + 6 * h);
        const char *precision = "precision=mixed-fp32-grads";
        assert_true(peak_of_layers(4, t, precision) - peak_of_layers(3, t, precision) ==
                    s * b * h * (10 + 24.0 / t + 5 * a * s / h / t) + parameters);
        const char *sure = "precision=mixed-fp32-grads,dropout=0";
        assert_true(peak_of_layers(4, t, sure) - peak_of_layers(3, t, sure) ==
                    s * b * h * (8 + 24.0 / t + 2 * a * s / h / t) + parameters);
    }
}

/* No strategy of Megatron's heuristics, of annealing or at random is better; all fit, and have
 * every device and every layer once. */
static void test_methods(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cluster;
    } cases[] = {{"gpt2:layers=2", "amp-het-cluster"}, {"transgan", "amp-het-model"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(AmpSetup) s = amp_setup_new(cases[i].model, cases[i].cluster);
        for (uint64_t seed = 0; seed < 2; seed++) {
            const AmpOptions options = {.schedule = SCHEDULE_1F1B, .seed = seed};
            const double best = best_s(&s, &options, AMP_SEARCH);
            assert_at_most(best, best_s(&s, &options, AMP_MEGATRON_LAYERS));
            assert_at_most(best, best_s(&s, &options, AMP_MEGATRON_PARAMETERS));
            const double annealed = best_s(&s, &options, AMP_ANNEAL);
            assert_at_most(best, annealed);
            assert_close(annealed, best_s(&s, &options, AMP_ANNEAL), 0); /* same seed */
        }
        /* GPipe keeps all microbatches: those of TransGAN do not fit 16 GiB. */
        const AmpOptions options = {.schedule = i == 0 ? SCHEDULE_GPIPE : SCHEDULE_1F1B,
                                    .seed = 7};
        for (AmpMethod method = AMP_SEARCH; method <= AMP_RANDOM; method++) {
            g_autoptr(GArray) found = search(&s, &options, method);
            for (guint c = 0; c < found->len; c++) {
                const AmpCandidate *candidate = &g_array_index(found, AmpCandidate, c);
                const AmpStrategy *strategy = &candidate->strategy;
                uint32_t seen[64] = {0};
                for (uint32_t r = 0; r < s.devices->n_devices; r++)
                    assert_int_equal(seen[strategy->device[r]]++, 0);
                assert_int_equal(strategy->first[0], 0);
                assert_int_equal(strategy->first[strategy->pp], s.model->n_layers);
                for (uint32_t k = 0; k < strategy->pp; k++)
                    assert_true(strategy->first[k] < strategy->first[k + 1]);
                assert_true(candidate->cost.fits);
                const AmpCost again =
                    synth_amp_cost(s.model, s.devices, &options, strategy);
                assert_close(again.total_s, candidate->cost.total_s, 1e-12);
            }
        }
    }
}

/* With less memory fewer strategies fit, and those cost the same or more; in the end none fits. */
static void test_memory(void **state)
{
    (void)state;
    g_auto(AmpSetup) s = amp_setup_new("gpt2:layers=4", "amp-homogeneous");
    const AmpOptions options = {.schedule = SCHEDULE_1F1B};
    guint before = G_MAXUINT;
    double cost = 0;
    for (double gib = 16; gib >= 2; gib /= 2) {
        for (uint32_t d = 0; d < s.devices->n_devices; d++)
            s.devices->memory[d] = gib * (1 << 30);
        g_autoptr(GArray) found = search(&s, &options, AMP_SEARCH);
        assert_true(found->len <= before);
        assert_at_most(cost, g_array_index(found, AmpCandidate, 0).cost.total_s);
        before = found->len;
        cost = g_array_index(found, AmpCandidate, 0).cost.total_s;
    }
    for (uint32_t d = 0; d < s.devices->n_devices; d++)
        s.devices->memory[d] = 1e6;
    GError *error = NULL;
    assert_null(synth_amp_search(s.model, s.devices, &options, AMP_SEARCH, NULL, &error));
    assert_error(error, KILTER_ERROR_INFEASIBLE, "fits the memory");
    g_error_free(error);
}

/* A limit on tensor parallelism excludes exactly the strategies beyond it. */
static void test_most_tmp(void **state)
{
    (void)state;
    g_auto(AmpSetup) s = amp_setup_new("gpt2:layers=4", "amp-homogeneous");
    g_autoptr(GArray) all =
        search(&s, &(AmpOptions){.schedule = SCHEDULE_1F1B}, AMP_SEARCH);
    g_autoptr(GArray) few =
        search(&s, &(AmpOptions){.schedule = SCHEDULE_1F1B, .most_tmp = 2}, AMP_SEARCH);
    guint within = 0;
    for (guint i = 0; i < all->len; i++)
        within += g_array_index(all, AmpCandidate, i).strategy.tmp <= 2;
    assert_true(within < all->len);
    assert_int_equal(few->len, within);
    for (guint i = 0; i < few->len; i++)
        assert_true(g_array_index(few, AmpCandidate, i).strategy.tmp <= 2);
}

static void expect_refused(const AmpSetup *s, AmpOptions options, const char *message)
{
    g_autoptr(GError) error = NULL;
    assert_null(
        synth_amp_search(s->model, s->devices, &options, AMP_SEARCH, NULL, &error));
    assert_error(error, KILTER_ERROR_INPUT, message);
}

static void test_refusals(void **state)
{
    (void)state;
    g_auto(AmpSetup) s = amp_setup_new("gpt2:layers=4", "amp-homogeneous");
    expect_refused(&s, (AmpOptions){.pp = 3}, "expected a product of 16");
    expect_refused(&s, (AmpOptions){.pp = 4, .dp = 2, .tmp = 4},
                   "expected a product of 16");
    expect_refused(&s, (AmpOptions){.pp = 8}, "as many as the model has layers, 6");
    expect_refused(&s, (AmpOptions){.mbs = 3}, "expected a divisor of a replica's batch");
    expect_refused(&s, (AmpOptions){.dp = 16, .mbs = 4}, "a replica's batch, 2");
    expect_refused(&s, (AmpOptions){.tmp = 4, .most_tmp = 2},
                   "tmp=4: expected at most 2");
    g_autoptr(GError) error = NULL;
    ClusterView *machines = cluster_view(s.cluster, GRANULARITY_MACHINE);
    assert_null(synth_amp_cluster(machines, &error));
    assert_error(error, KILTER_ERROR_INPUT, "--granularity gpu");
    cluster_view_free(machines);
}

/* A board of 4 x 4 is covered by dominoes in 36 ways, all as likely: each is drawn, and each
 * stage's two devices are beside one another, in one machine or at one place of two. */
static void test_dominoes(void **state)
{
    (void)state;
    enum { SIDE = 4, WAYS = 36, DRAWS = 36 * 40 };
    g_auto(AmpSetup) s = amp_setup_new("gpt2:layers=8", "amp-het-cluster");
    const AmpOptions options = {
        .domino = true, .draws = DRAWS, .pp = 8, .dp = 2, .tmp = 1};
    g_autoptr(GArray) found = search(&s, &options, AMP_RANDOM);
    assert_int_equal(found->len, DRAWS);
    g_autoptr(GHashTable) ways =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint c = 0; c < found->len; c++) {
        const AmpStrategy *strategy = &g_array_index(found, AmpCandidate, c).strategy;
        GString *way = g_string_new(NULL);
        for (uint32_t stage = 0; stage < strategy->pp; stage++) {
            const uint32_t *d = strategy->device + 2 * stage;
            assert_true(d[1] == d[0] + SIDE || (d[1] == d[0] + 1 && d[1] % SIDE != 0));
            assert_int_equal(strategy->first[stage + 1] - strategy->first[stage],
                             (stage + 1) * 10 / 8 - stage * 10 / 8); /* 10 layers */
            g_string_append_printf(way, "%u ", d[0]);
        }
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(ways, way->str));
        g_hash_table_replace(ways, g_string_free(way, FALSE), GUINT_TO_POINTER(n + 1));
    }
    assert_int_equal(g_hash_table_size(ways), WAYS);
    GHashTableIter iter;
    gpointer n;
    g_hash_table_iter_init(&iter, ways);
    while (g_hash_table_iter_next(&iter, NULL, &n)) /* 40 each: 5 standard deviations */
        assert_true(GPOINTER_TO_UINT(n) > 8 && GPOINTER_TO_UINT(n) < 72);
}

/* Where tensors are cut along the sequence, sums of gradients that updates complete may take longer
 * than the whole walk; they begin with it, not before (an assertion of Debug builds). */
static void test_long_sums(void **state)
{
    (void)state;
    g_auto(AmpSetup) s = amp_setup_new(
        "gpt2:layers=2,hidden=64,heads=4,seq=32,vocab=128,global_batch=16", "hap-8");
    GError *error = NULL;
    synth_amp_model_free(s.model);
    s.model = synth_amp_model_along_sequence(s.graph, s.view, &error);
    assert_no_error(error);
    assert_true(best_s(&s, &(AmpOptions){.schedule = SCHEDULE_1F1B}, AMP_SEARCH) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dominoes),  cmocka_unit_test(test_layers_of_gpt2),
        cmocka_unit_test(test_meetings),  cmocka_unit_test(test_memory_of_megatron),
        cmocka_unit_test(test_methods),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_long_sums), cmocka_unit_test(test_most_tmp),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_times_between_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
