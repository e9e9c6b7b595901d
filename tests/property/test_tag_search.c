/* TAG's searches on random small cases: `best` is close to the optimum and no worse than the tree
 * search, and no strategy is faster than the bound. */
#include "data/data.h"
#include "synth/tag/rows.h"
#include "tests/support/rounds.h"
#include "tests/support/tag_random.h"

/* The bound of everything, and of partial strategies, against random ones. */
static void test_bound(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(20);
    uint32_t n = 0;
    while (n < test_rounds(2000, 10000)) {
        g_auto(Case) c = case_new(rand, 8, 3, 21);
        g_autoptr(TagBound) flow =
            tag_bound_new(c.space, &c.work, c.quick, TAG_BY_FLOW, SIM_SUMS_EACH);
        g_autoptr(TagBound) stage =
            tag_bound_new(c.space, &c.work, c.quick, TAG_BY_STAGE, SIM_SUMS_EACH);
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

/* The room that a strategy needs at rest is at most its peaks of memory, and grows with the groups
 * that are decided. */
static void check_room(const Case *c, const TagBound *bound, TagEvaluator *evaluator,
                       const uint16_t *action, GRand *rand)
{
    const uint32_t n = c->view->n_devices, n_groups = c->work.n_groups;
    g_autoptr(Program) program = tag_program(evaluator, action);
    g_autofree uint64_t *peak = g_new0(uint64_t, n);
    g_autofree uint16_t *partial = g_memdup2(action, n_groups * sizeof *action);
    sim_quick_memory(c->quick, program, peak);
    double peaks = 0;
    for (uint32_t j = 0; j < n; j++) {
        const double needs = tag_room_needs(bound->room, action, n_groups)[j];
        assert_at_most(needs, (double)peak[j]);
        peaks += (double)peak[j];
    }
    assert_true(bound->room->gradients > 0);
    assert_at_most(tag_room_needs(bound->room, action, n_groups)[n], peaks);
    for (uint32_t i = 0; i < n_groups; i++)
        if (draw(rand, 0, 1))
            partial[i] = TAG_UNDECIDED;
    g_autofree double *open =
        g_memdup2(tag_room_needs(bound->room, partial, n_groups), (n + 1) * sizeof *open);
    const double *decided = tag_room_needs(bound->room, action, n_groups);
    for (uint32_t j = 0; j <= n; j++)
        assert_at_most(open[j], decided[j] * (1 + 1e-12));
}

/* No row is above the time of a strategy, whatever the weights; nor are the rows for cheaper sums
 * of gradients, or for none, above the time that it takes with these. */
static void check_rows(const Case *c, GRand *rand, uint32_t n)
{
    static const SimQuickSums all[] = {SIM_SUMS_EACH, SIM_SUMS_FUSED, SIM_SUMS_FREE};
    for (uint32_t k = 0; k < 2 * G_N_ELEMENTS(all); k++) {
        const TagObjective objective = k % 2 ? TAG_BY_FLOW : TAG_BY_STAGE;
        const SimQuickSums sums = all[k / 2];
        g_autoptr(TagEvaluator) evaluator =
            tag_evaluator_new(c->space, &c->work, c->quick, TAG_BY_FLOW);
        g_autoptr(TagBound) bound =
            tag_bound_new(c->space, &c->work, c->quick, objective, sums);
        g_autofree double *row = g_new(double, bound->n_rows);
        g_autofree uint16_t *action = g_new0(uint16_t, c->work.n_groups);
        for (uint32_t t = 0; t < n; t++) {
            /* A few actions, so that neighbours share devices. */
            const uint16_t few[] = {(uint16_t)draw(rand, 0, c->space->n_actions - 1),
                                    (uint16_t)draw(rand, 0, c->space->n_actions - 1)};
            for (uint32_t i = 0; i < c->work.n_groups; i++)
                action[i] = few[draw(rand, 0, 1)];
            sim_quick_price_sums(c->quick, sums);
            const SimQuickTimes times = tag_times(evaluator, action);
            sim_quick_price_sums(c->quick, SIM_SUMS_EACH);
            const double time_s = objective == TAG_BY_FLOW ? times.flow_s : times.stage_s;
            if (k == 0)
                check_room(c, bound, evaluator, action, rand);
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
    for (uint32_t k = 0; k < test_rounds(20, 60); k++) {
        const uint32_t machines = draw(rand, 2, 3), layers = draw(rand, 2, 8);
        g_auto(Case) c = case_new(rand, layers, machines, 21);
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
    g_autoptr(TagBound) bound =
        tag_bound_new(c.space, &c.work, c.quick, TAG_BY_FLOW, SIM_SUMS_EACH);
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(c.space, &c.work, c.quick, TAG_BY_FLOW);
    const double time_s = tag_times(evaluator, action).flow_s;
    assert_at_most(tag_bound(bound, action), time_s);
    assert_true(longest_of_slowest(&c, action) > 1.05 * time_s);
}

/* Cases of 8 groups and 21 actions: the distance of 400 evaluations from the best known
 * strategy. */
static void test_best(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(22);
    double regret = 0, tree = 0, rounds = 0;
    const uint32_t n = test_rounds(12, 40);
    for (uint32_t k = 0; k < n; k++) {
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
                  100 * regret / n, 100 * tree / n, 100 * rounds / n);
    assert_at_most(regret / n, 0.02);
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
    for (uint32_t k = 0; k < test_rounds(6, 12); k++) {
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
    const struct CMUnitTest threads[] = {cmocka_unit_test(test_threads)};
#ifdef __SANITIZE_THREAD__ /* the others have no threads, and would take minutes */
    const bool all = false;
#else
    const bool all = true;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_subsets_that_differ),
        cmocka_unit_test(test_best),
    };
    const int failed = all ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
