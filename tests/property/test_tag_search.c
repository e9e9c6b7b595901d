/* TAG's searches on random small cases: branch and bound finds the optimum of brute force, `best`
 * is close to the optimum and no worse than the tree search, and no strategy is faster than the
 * bound. */
#include "synth/synth.h"
#include "synth/tag/rows.h"
#include "tests/test.h"

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    BatchForms *batch;
    TagSpace *space;
    SimQuick *quick;
    uint16_t *group;
    double *time_s;
    TagWork work;
} Case;

static void case_clear(Case *c)
{
    sim_quick_free(c->quick);
    synth_tag_space_free(c->space);
    batch_forms_free(c->batch);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
    g_free(c->group);
    g_free(c->time_s);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

static uint32_t draw(GRand *rand, uint32_t low, uint32_t high)
{
    return (uint32_t)g_rand_int_range(rand, (gint32)low, (gint32)high + 1);
}

/* A chain of linear layers of random widths, some with a branch. */
static Graph *random_graph(GRand *rand, uint32_t n_layers)
{
    Graph *graph = graph_new("random");
    const uint32_t batch = 24;
    uint32_t width = 16 * draw(rand, 1, 40);
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){batch, width});
    const TensorId labels =
        graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){batch});
    for (uint32_t i = 0; i < n_layers; i++) {
        g_autofree char *layer = g_strdup_printf("fc%u", i);
        g_autofree char *name = g_strdup_printf("w%u", i);
        g_autofree char *relu = g_strdup_printf("relu%u", i);
        const uint32_t next = 16 * draw(rand, 1, 40);
        graph_layer(graph, layer);
        const TensorId w = graph_parameter(graph, name, 2, (uint32_t[]){next, width});
        x = graph_op(graph, OP_LINEAR, layer, (OpAttr){0}, 2, (TensorId[]){x, w}, NULL);
        x = graph_op(graph, OP_RELU, relu, (OpAttr){0}, 1, &x, NULL);
        width = next;
    }
    x = graph_op(graph, OP_LOG_SOFTMAX, "log_p", (OpAttr){0}, 1, &x, NULL);
    x = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){x, labels},
                 NULL);
    graph_differentiate(graph, x, OPTIMIZER_SGD);
    graph_seal(graph);
    return graph;
}

/* Machines with GPUs of a few speeds, and little or much memory. */
static Cluster *random_cluster_of(GRand *rand, uint32_t n_machines, double memory_kib)
{
    g_autoptr(GString) text = g_string_new("name: random\ndevice_types:\n");
    for (uint32_t t = 0; t < 3; t++)
        g_string_append_printf(text,
                               "  - {name: t%u, rate: %u MFLOP/s, memory: %.0f KiB, "
                               "source: drawn}\n",
                               t, draw(rand, 20, 400), memory_kib);
    g_string_append(text, "machines:\n");
    for (uint32_t m = 0; m < n_machines; m++)
        g_string_append_printf(
            text,
            "  - {name: m%u, type: t%u, gpus: %u, inner: {latency: 5 us, bandwidth: %u "
            "MB/s}, source: drawn}\n",
            m, draw(rand, 0, 2), draw(rand, 1, 2), draw(rand, 50, 500));
    g_string_append(text, "collectives:\n");
    static const char *const kind[] = {"all_reduce",
                                       "all_gather",
                                       "grouped_all_gather",
                                       "reduce_scatter",
                                       "grouped_reduce_scatter",
                                       "all_to_all"};
    const uint32_t speed = draw(rand, 5, 300), latency = draw(rand, 1, 400);
    for (uint32_t k = 0; k < G_N_ELEMENTS(kind); k++)
        g_string_append_printf(text, "  %s: {latency: %u us, bandwidth: %u MB/s}\n",
                               kind[k], k == 0 ? latency : 12, speed);
    g_string_append(text, "  source: drawn\n");
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("random", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

/* Takes the graph and the cluster over. */
static Case case_of(Graph *graph, Cluster *cluster)
{
    Case c = {.graph = graph, .cluster = cluster};
    g_autoptr(GError) error = NULL;
    c.view = cluster_view(c.cluster, GRANULARITY_GPU);
    c.batch = batch_forms_new(c.graph, &error);
    assert_no_error(error);
    c.space = synth_tag_space(c.view, false, &error);
    assert_no_error(error);
    g_autofree double *ratio = g_new(double, c.view->n_devices);
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        ratio[j] = 1.0 / c.view->n_devices;
    c.quick =
        sim_quick_new(c.graph, c.view, ratio, c.space->n_groups, c.space->group, &error);
    assert_no_error(error);
    c.group = g_new0(uint16_t, graph_n_ops(c.graph));
    c.time_s = g_new0(double, graph_n_ops(c.graph));
    for (OpId id = 0; id < graph_n_ops(c.graph); id++)
        c.time_s[id] = 1e-12 + sim_quick_place_s(c.quick, c.space->single[0], id, 0);
    c.work = (TagWork){.graph = c.graph,
                       .batch = c.batch,
                       .n_groups = 1,
                       .group = c.group,
                       .time_s = c.time_s};
    return c;
}

/* Some of the actions, data parallelism first. */
static void keep_actions(TagSpace *space, GRand *rand, uint32_t n_actions)
{
    for (uint32_t s = 1; s < space->n_actions; s++) {
        const uint32_t other = draw(rand, 1, space->n_actions - 1);
        const TagAction kept = space->action[s];
        space->action[s] = space->action[other];
        space->action[other] = kept;
    }
    space->n_actions = MIN(space->n_actions, n_actions);
}

/* Random groups of ops, and some of the actions, data parallelism first. */
static Case case_new(GRand *rand, uint32_t n_groups, uint32_t n_machines,
                     uint32_t n_actions)
{
    Graph *graph = random_graph(rand, draw(rand, 2, 4));
    Case c = case_of(
        graph, random_cluster_of(rand, n_machines, draw(rand, 0, 1) ? 16384 : 1 << 20));
    keep_actions(c.space, rand, n_actions);
    for (OpId id = 0; id < graph_n_ops(c.graph); id++)
        c.group[id] = (uint16_t)(id < n_groups ? id : draw(rand, 0, n_groups - 1));
    c.work.n_groups = n_groups;
    return c;
}

/* The best time over all strategies; infinite if none fits. */
static double brute_force(const Case *c, TagObjective objective)
{
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(c->space, &c->work, c->quick, objective);
    g_autofree uint16_t *action = g_new0(uint16_t, c->work.n_groups);
    double best = INFINITY;
    for (;;) {
        const TagScore score = tag_evaluate(evaluator, action, best);
        if (score.lacks <= 0 && score.time_s < best)
            best = score.time_s;
        uint32_t i = 0;
        while (i < c->work.n_groups && ++action[i] == c->space->n_actions)
            action[i++] = 0;
        if (i == c->work.n_groups)
            return best;
    }
}

static TagResult run_search(const Case *c, TagMethod method, TagObjective objective,
                            uint32_t evaluations, uint64_t seed)
{
    const TagSearch search = {.method = method,
                              .objective = objective,
                              .evaluations = evaluations,
                              .leave = true,
                              .seed = seed};
    TagResult result = {0};
    synth_tag_search(c->space, &c->work, c->quick, &search, NULL, 0, &result);
    return result;
}

/* Branching improves the bound, never above the optimum. */
static void check_branching(const Case *c, TagObjective objective, double best)
{
    g_autoptr(TagBound) bound = tag_bound_new(c->space, &c->work, c->quick, objective);
    uint16_t open[8];
    memset(open, 0xff, sizeof open);
    const double root = tag_bound(bound, open);
    const double few = tag_bound_branch(bound, 2 * best, 12);
    assert_at_most(root, few * (1 + 1e-9));
    assert_at_most(few, best);
    assert_at_most(tag_bound_branch(bound, best, 12), best);
}

static void test_exact(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(19);
    uint32_t fit = 0;
    for (uint32_t k = 0; k < 200; k++) {
        const uint32_t n_groups = draw(rand, 2, 4);
        g_auto(Case) c =
            case_new(rand, n_groups, draw(rand, 2, 3), n_groups == 4 ? 4 : 6);
        const TagObjective objective = k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE;
        const double best = brute_force(&c, objective);
        g_auto(TagResult) result = run_search(&c, TAG_EXACT, objective, 0, 1);
        assert_int_equal(result.fits, isfinite(best));
        if (!result.fits)
            continue;
        fit++;
        assert_true(result.optimal);
        assert_close(result.time_s, best, 1e-12);
        check_branching(&c, objective, best);
    }
    assert_true(fit > 100);
}

/* The bound of everything, and of partial strategies, against random ones. */
static void test_bound(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(20);
    uint32_t n = 0;
    while (n < 10000) {
        g_auto(Case) c = case_new(rand, 8, 3, 21);
        g_autoptr(TagBound) flow = tag_bound_new(c.space, &c.work, c.quick, TAG_BY_FLOW);
        g_autoptr(TagBound) stage =
            tag_bound_new(c.space, &c.work, c.quick, TAG_BY_STAGE);
        g_autoptr(TagEvaluator) evaluator =
            tag_evaluator_new(c.space, &c.work, c.quick, TAG_BY_FLOW);
        for (uint32_t k = 0; k < 200; k++, n++) {
            uint16_t action[8], partial[8];
            for (uint32_t i = 0; i < 8; i++) {
                action[i] = (uint16_t)draw(rand, 0, c.space->n_actions - 1);
                partial[i] = draw(rand, 0, 2) ? TAG_UNDECIDED : action[i];
            }
            const SimQuickTimes times = tag_times(evaluator, action);
            assert_at_most(tag_bound(flow, partial),
                           tag_bound(flow, action) * (1 + 1e-9));
            assert_at_most(tag_bound(stage, partial),
                           tag_bound(stage, action) * (1 + 1e-9));
            assert_at_most(tag_bound(flow, action), times.flow_s);
            assert_at_most(tag_bound(stage, action), times.stage_s);
        }
    }
}

/* The longest path where each op takes as long as on the slowest of its replicas. */
static double longest_of_slowest(const Case *c, const uint16_t *action)
{
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(c->graph);
    g_autofree double *until = g_new0(double, graph_n_ops(c->graph));
    double longest = 0;
    synth_tag_place(c->space, &c->work, action, placement);
    for (OpId id = 0; id < graph_n_ops(c->graph); id++) {
        const Op *op = graph_get_op(c->graph, id);
        const uint16_t group = placement->group[id];
        double most = 0, start = 0;
        for (uint32_t r = 0; r < c->space->group[group].n_replicas; r++)
            most = fmax(most, sim_quick_place_s(c->quick, group, id, r));
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(c->graph, op->in[i])->producer;
            start = fmax(start, by == GRAPH_NONE ? 0 : until[by]);
        }
        until[id] = start + most;
        longest = fmax(longest, until[id]);
    }
    return longest;
}

static Case case_of_model(const char *model, bool uneven, GRand *rand)
{
    g_autoptr(GError) error = NULL;
    Graph *graph = model_build(model, 1, NULL, &error);
    assert_no_error(error);
    Cluster *cluster = cluster_load("tag-testbed", &error);
    assert_no_error(error);
    Case c = case_of(graph, cluster);
    g_autofree double *ratio = g_new(double, c.view->n_devices);
    double sum = 0;
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        sum += ratio[j] = uneven ? 1 + j % 3 : 1;
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        ratio[j] /= sum;
    sim_quick_free(c.quick);
    c.quick =
        sim_quick_new(c.graph, c.view, ratio, c.space->n_groups, c.space->group, &error);
    assert_no_error(error);
    keep_actions(c.space, rand, 30);
    c.work.n_groups = 12;
    for (OpId id = 0; id < graph_n_ops(c.graph); id++)
        c.group[id] = (uint16_t)(draw(rand, 0, 9) ? graph_get_op(c.graph, id)->layer % 12
                                                  : draw(rand, 0, 11));
    return c;
}

/* No row is above the time of a strategy, whatever the weights; nor are the rows for cheaper sums
 * of gradients. */
static void check_rows(const Case *c, GRand *rand, uint32_t n)
{
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(c->space, &c->work, c->quick, TAG_BY_FLOW);
    for (uint32_t k = 0; k < 4; k++) {
        const TagObjective objective = k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE;
        g_autoptr(TagBound) bound =
            tag_bound_new_for(c->space, &c->work, c->quick, objective,
                              k < 2 ? SIM_SUMS_EACH : SIM_SUMS_FUSED);
        g_autofree double *row = g_new(double, bound->n_rows);
        g_autofree uint16_t *action = g_new0(uint16_t, c->work.n_groups);
        for (uint32_t t = 0; t < n; t++) {
            /* A few actions, so that neighbours share devices. */
            const uint16_t few[] = {(uint16_t)draw(rand, 0, c->space->n_actions - 1),
                                    (uint16_t)draw(rand, 0, c->space->n_actions - 1)};
            for (uint32_t i = 0; i < c->work.n_groups; i++)
                action[i] = few[draw(rand, 0, 1)];
            const SimQuickTimes times = tag_times(evaluator, action);
            const double time_s = objective == TAG_BY_FLOW ? times.flow_s : times.stage_s;
            tag_rows_of(bound, action, row);
            for (uint32_t r = 0; r < bound->n_rows; r++)
                assert_at_most(row[r], time_s * (1 + 1e-9));
        }
    }
}

static void test_rows(void **state)
{
    (void)state;
    static const char *const models[] = {
        "tag-inceptionv3:global_batch=96", "tag-bert-small:global_batch=96",
        "resnet50:edge=32,width=16,global_batch=96,classes=10",
        "vgg19:image=32,global_batch=96,classes=10"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(23);
    for (uint32_t k = 0; k < 60; k++) {
        g_auto(Case) c = case_new(rand, draw(rand, 2, 8), draw(rand, 2, 3), 21);
        check_rows(&c, rand, 20);
    }
    for (uint32_t k = 0; k < 2 * G_N_ELEMENTS(models); k++) {
        g_auto(Case) c = case_of_model(models[k / 2], k % 2, rand);
        check_rows(&c, rand, 10);
    }
}

/* Layers on a slow and a fast device, and on that and another slow one: each sample passes one slow
 * device, while the slowest replicas of both layers are slow. Means over the replicas bound the
 * time, longest times do not. */
static void test_subsets_that_differ(void **state)
{
    (void)state;
    static const char text[] =
        "name: three\ndevice_types:\n"
        "  - {name: slow, rate: 20 MFLOP/s, memory: 1 GiB, source: made up}\n"
        "  - {name: fast, rate: 20 GFLOP/s, memory: 1 GiB, source: made up}\n"
        "machines:\n"
        "  - {name: a, type: slow, gpus: 1, inner: {latency: 0 us, bandwidth: 9 TB/s}, "
        "source: made up}\n"
        "  - {name: b, type: fast, gpus: 1, inner: {latency: 0 us, bandwidth: 9 TB/s}, "
        "source: made up}\n"
        "  - {name: c, type: slow, gpus: 1, inner: {latency: 0 us, bandwidth: 9 TB/s}, "
        "source: made up}\n"
        "collectives:\n"
        "  all_reduce: {latency: 0 us, bandwidth: 9 TB/s}\n"
        "  all_gather: {latency: 0 us, bandwidth: 9 TB/s}\n"
        "  grouped_all_gather: {latency: 0 us, bandwidth: 9 TB/s}\n"
        "  reduce_scatter: {latency: 0 us, bandwidth: 9 TB/s}\n"
        "  grouped_reduce_scatter: {latency: 0 us, bandwidth: 9 TB/s}\n"
        "  all_to_all: {latency: 0 us, bandwidth: 9 TB/s}\n"
        "  source: made up\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(21);
    Cluster *cluster = cluster_parse("three", text, strlen(text), &error);
    assert_no_error(error);
    g_auto(Case) c = case_of(random_graph(rand, 2), cluster);
    uint16_t action[2] = {0};
    for (OpId id = 0; id < graph_n_ops(c.graph); id++)
        c.group[id] = graph_get_op(c.graph, id)->layer > 0;
    c.work.n_groups = 2;
    for (uint32_t s = 0; s < c.space->n_actions; s++)
        for (uint32_t i = 0; i < 2; i++)
            if (c.space->action[s].option == TAG_AR &&
                c.space->action[s].subset == (i ? 6 : 3))
                action[i] = (uint16_t)s;
    g_autoptr(TagBound) bound = tag_bound_new(c.space, &c.work, c.quick, TAG_BY_FLOW);
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(c.space, &c.work, c.quick, TAG_BY_FLOW);
    const double time_s = tag_times(evaluator, action).flow_s;
    assert_at_most(tag_bound(bound, action), time_s);
    assert_true(longest_of_slowest(&c, action) > 1.05 * time_s);
}

/* 40 cases of 8 groups and 21 actions: the distance of 400 evaluations from the best known
 * strategy. */
static void test_best(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(22);
    double regret = 0, tree = 0, rounds = 0;
    for (uint32_t k = 0; k < 40; k++) {
        g_auto(Case) c = case_new(rand, 8, 3, 21);
        g_auto(TagResult) best = run_search(&c, TAG_BEST, TAG_BY_FLOW, 400, 1);
        g_auto(TagResult) mcts = run_search(&c, TAG_MCTS, TAG_BY_FLOW, 400, 1);
        double known = fmin(best.time_s, mcts.time_s);
        for (uint64_t seed = 2; seed < 4; seed++) {
            g_auto(TagResult) longer = run_search(&c, TAG_BEST, TAG_BY_FLOW, 4000, seed);
            if (longer.fits)
                known = fmin(known, longer.time_s);
        }
        assert_true(best.fits || !mcts.fits);
        if (best.fits && mcts.fits)
            assert_at_most(best.time_s, mcts.time_s * (1 + 1e-9));
        TagSearch search = {.method = TAG_MCTS,
                            .objective = TAG_BY_FLOW,
                            .evaluations = 400,
                            .leave = true,
                            .leaves = 16,
                            .threads = 1,
                            .seed = 1};
        g_auto(TagResult) round = {0};
        synth_tag_search(c.space, &c.work, c.quick, &search, NULL, 0, &round);
        rounds += round.fits ? round.time_s / known - 1 : 0;
        regret += best.fits ? best.time_s / known - 1 : 0;
        tree += mcts.fits ? mcts.time_s / known - 1 : 0;
    }
    print_message("mean regret: best %.2f %%, mcts %.2f %%, in rounds of 16 %.2f %%\n",
                  100 * regret / 40, 100 * tree / 40, 100 * rounds / 40);
    assert_at_most(regret / 40, 0.02);
}

static SimQuickTimes tag_times_alone(const Case *c, const uint16_t *action)
{
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(c->space, &c->work, c->quick, TAG_BY_FLOW);
    return tag_times(evaluator, action);
}

static bool same_results(const Case *c, const TagResult *a, const TagResult *b)
{
    return a->time_s == b->time_s && a->iterations == b->iterations &&
           a->evaluations == b->evaluations && a->to_beat_dp == b->to_beat_dp &&
           a->fits == b->fits &&
           memcmp(a->action, b->action, c->work.n_groups * sizeof *a->action) == 0;
}

/* The tree search in rounds of leaves finds the same with any number of threads, and its number of
 * tries is right. */
static void test_threads(void **state)
{
    (void)state;
    static const uint32_t threads[] = {1, 2, 8};
    g_autoptr(GRand) rand = g_rand_new_with_seed(24);
    for (uint32_t k = 0; k < 12; k++) {
        g_auto(Case) c = case_new(rand, 8, 3, 21);
        TagSearch search = {.method = TAG_MCTS,
                            .objective = k % 2 ? TAG_BY_STAGE : TAG_BY_FLOW,
                            .evaluations = 150,
                            .leave = k % 3 > 0,
                            .leaves = 16,
                            .seed = k};
        TagResult result[G_N_ELEMENTS(threads)] = {0};
        for (uint32_t t = 0; t < G_N_ELEMENTS(threads); t++) {
            search.threads = threads[t];
            synth_tag_search(c.space, &c.work, c.quick, &search, NULL, 0, &result[t]);
            assert_true(same_results(&c, &result[0], &result[t]));
        }
        assert_int_equal(result[0].iterations, 150);
        const SimQuickTimes times = tag_times_alone(&c, result[0].action);
        assert_true((k % 2 ? times.stage_s : times.flow_s) == result[0].time_s);
        for (uint32_t t = 0; t < G_N_ELEMENTS(threads); t++)
            tag_result_clear(&result[t]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_rows),  cmocka_unit_test(test_subsets_that_differ),
        cmocka_unit_test(test_best),  cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
