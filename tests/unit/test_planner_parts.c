/* Parts of planners by themselves: shares and times from which TAG's searches start, its groups and
 * pipelines, the rounds of hap's alternation, the ranks of AMP's strategies, and nested splits. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "experiments/sweep/evaluation.h"
#include "synth/answer/ratios.h"
#include "synth/hap/alternation.h"
#include "synth/hap/make.h"
#include "synth/tag/case.h"
#include "synth/tag/pipeline.h"
#include "synth/tag/shares.h"
#include "tests/support/made_plan.h"

static const char MODEL[] = "vit:layers=1,global_batch=64";

/* Two fast devices and two slow ones, each in a machine of its own. */
static ClusterView *unlike(Cluster **cluster)
{
    static const char TEXT[] =
        "name: unlike\ndevice_types:\n"
        "  - {name: fast, rate: 3 TFLOP/s, memory: 16 GiB, source: made up}\n"
        "  - {name: slow, rate: 2 TFLOP/s, memory: 16 GiB, source: made up}\n"
        "machines:\n"
        "  - {type: slow, gpus: 1, count: 2, source: made up}\n"
        "  - {type: fast, gpus: 1, count: 2, source: made up}\n"
        "collectives:\n"
        "  all_reduce: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  all_gather: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  grouped_all_gather: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  reduce_scatter: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  grouped_reduce_scatter: {latency: 30 us, bandwidth: 8 GB/s}\n"
        "  all_to_all: {latency: 30 us, bandwidth: 8 GB/s}\n";
    g_autoptr(GError) error = NULL;
    *cluster = cluster_parse("unlike", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    return cluster_view(*cluster, GRANULARITY_GPU);
}

static Question *ask(const char *planner, const ClusterView *view,
                     const PlannerOptions *options)
{
    g_autoptr(GError) error = NULL;
    Question *question =
        question_open(planner_find(planner, NULL), MODEL, view, options, &error);
    assert_no_error(error);
    return question;
}

/* As question_answer makes it, with an empty plan. */
static Answer *begin(const Question *question)
{
    Answer *answer = g_new0(Answer, 1);
    answer->plan = plan_new();
    answer->space = synth_space_new(question->graph, NULL);
    answer->upper_s = INFINITY;
    return answer;
}

/* --- shares --- */

static bool has(const GPtrArray *shares, const double *ratio, uint32_t n)
{
    for (uint32_t i = 0; i < shares->len; i++)
        if (ratios_same(shares->pdata[i], ratio, n))
            return true;
    return false;
}

static void check_shares(const ClusterView *view, uint32_t choice, bool by_speed,
                         bool wants_even, bool wants_speed)
{
    static const char *const WORD[] = {"own", "even", "proportional", "best"};
    PlannerOptions options;
    planner_options_init(&options);
    options.ratios = g_intern_static_string(WORD[choice]);
    g_autoptr(Question) question = ask("tag", view, &options);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) shares = tag_shares(question, by_speed, &error);
    assert_no_error(error);
    const uint32_t n = view->n_devices;
    g_autofree double *even = ratios_even(view), *speed = ratios_proportional(view);
    const bool alike = ratios_same(even, speed, n);
    assert_int_equal(has(shares, even, n), wants_even || (alike && wants_speed));
    assert_int_equal(has(shares, speed, n), wants_speed || (alike && wants_even));
    const uint32_t known = alike ? 1 : (uint32_t)wants_even + wants_speed;
    if (choice != RATIOS_BEST)
        assert_int_equal(shares->len, known);
    assert_true(shares->len >= known);
    for (uint32_t i = 0; i < shares->len; i++) {
        const double *share = shares->pdata[i];
        double sum = 0;
        for (uint32_t j = 0; j < n; j++)
            sum += share[j];
        assert_close(sum, 1, 1e-9);
        for (uint32_t k = 0; k < i; k++)
            assert_false(ratios_same(share, shares->pdata[k], n));
    }
}

/* Each choice of ratios starts from the shares that it says, each of them once. */
static void test_shares(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    g_autoptr(Cluster) alike = cluster_load("hap-a100-4", NULL);
    g_autoptr(ClusterView) same = cluster_view(alike, GRANULARITY_GPU);
    const ClusterView *const on[] = {view, same};
    for (uint32_t c = 0; c < 2; c++)
        for (int by_speed = 0; by_speed < 2; by_speed++) {
            check_shares(on[c], RATIOS_OWN, by_speed, true, by_speed);
            check_shares(on[c], RATIOS_EVEN, by_speed, true, false);
            check_shares(on[c], RATIOS_PROPORTIONAL, by_speed, false, true);
            check_shares(on[c], RATIOS_BEST, by_speed, true, true);
        }
}

/* --- times --- */

/* The mean over the devices is added to what is there, and is between the fastest and the
 * slowest device's time. */
static void test_mean_times(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(MODEL, view->n_devices, NULL, &error);
    assert_no_error(error);
    g_autofree double *even = ratios_even(view);
    g_auto(TagCase) c = {0};
    assert_true(tag_case_open(&c, graph, view, even, &error));
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        c.time_s[id] = id;
    tag_mean_times(graph, c.space, c.quick, c.time_s);
    bool differ = false;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        double sum = 0, least = INFINITY, most = 0;
        for (uint32_t j = 0; j < view->n_devices; j++) {
            const double s = sim_quick_place_s(c.quick, c.space->single[j], id, 0);
            sum += s;
            least = fmin(least, s);
            most = fmax(most, s);
        }
        assert_true(fabs(c.time_s[id] - id - sum / view->n_devices) <= 1e-12 * (1 + id));
        differ |= most > 1.2 * least;
    }
    assert_true(differ);
}

/* --- pipelines --- */

enum { OPS = 10 };

/* The pipelines that were tried: by the rates alone, a run takes its ops by its devices' rates,
 * and the pipeline its slowest run. */
typedef struct {
    const TagSpace *space;
    uint32_t tries, even; /* even: all runs took equally long, before any that did not */
    bool moved;
} Tried;

static double rate_of(const TagSpace *space, uint16_t action)
{
    const TagAction *a = &space->action[action];
    double rate = 0;
    for (uint32_t j = 0; j < space->view->n_devices; j++)
        if (a->option == TAG_ONE ? a->subset == j : a->subset >> space->set[j] & 1)
            rate += space->view->device[j].rate;
    return rate;
}

static bool try_runs(void *context, const uint16_t *action, double *time_s,
                     GError **error)
{
    Tried *tried = context;
    double all = 0;
    (void)error;
    *time_s = 0;
    for (uint32_t i = 0, end; i < OPS; i = end) {
        for (end = i; end < OPS && action[end] == action[i]; end++)
            ;
        *time_s = fmax(*time_s, (end - i) / rate_of(tried->space, action[i]));
        all += rate_of(tried->space, action[i]);
    }
    tried->tries++;
    if (fabs(*time_s - OPS / all) > 1e-9 * *time_s)
        tried->moved = true;
    else if (!tried->moved)
        tried->even++;
    return true;
}

/* Ten equal ops on devices of rates 3, 3, 2 and 2: runs of as many ops for both orders of the two
 * kinds, and for both orders of the devices by speed. Moved cuts, which come after these, gain
 * nothing. */
static void test_pipelines(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    g_autoptr(GError) error = NULL;
    g_autoptr(TagSpace) space = synth_tag_space(view, true, &error);
    assert_no_error(error);
    assert_int_equal(space->n_sets, 2);
    synth_tag_add_ones(space);
    g_autoptr(Graph) graph = graph_new("chain");
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){4, 4});
    uint16_t group[OPS];
    double time_s[OPS];
    for (uint16_t i = 0; i < OPS; i++) {
        g_autofree char *name = g_strdup_printf("op%u", i);
        x = graph_op(graph, OP_GELU, name, (OpAttr){0}, 1, &x, NULL);
        group[i] = i;
        time_s[i] = 1;
    }
    const TagWork work = {
        .graph = graph, .n_groups = OPS, .group = group, .time_s = time_s};
    Tried tried = {.space = space};
    assert_true(tag_try_pipelines(space, &work, try_runs, &tried, &error));
    assert_int_equal(tried.even, 4);
    assert_true(tried.tries > tried.even);
}

/* The time of TAG's plan of VGG19 in five op groups that are found in this way. */
static double grouped_s(const ClusterView *view, const char *search, const char *grouping)
{
    const char *const set[][2] = {{"search", search},
                                  {"grouping", grouping},
                                  {"groups", "5"},
                                  {"evaluations", "60"}};
    PlannerOptions options;
    planner_options_init(&options);
    for (uint32_t i = 0; i < G_N_ELEMENTS(set); i++)
        assert_true(planner_options_set(&options, set[i][0], set[i][1], NULL));
    g_autoptr(Plan) plan = planner_plan(planner_find("tag", NULL), "vgg19", "hap-8", view,
                                        &options, NULL, NULL);
    assert_non_null(plan);
    return plan->iteration_time_s;
}

/* The planner's own groups are runs of layers, but those of TAG's tree search METIS's. */
static void test_grouping(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    static const char *const search[] = {"own", "mcts"}, *const own[] = {"layers",
                                                                         "metis"};
    for (uint32_t s = 0; s < 2; s++) {
        const double time_s = grouped_s(view, search[s], "own");
        assert_true(time_s == grouped_s(view, search[s], own[s]));
        assert_true(time_s != grouped_s(view, search[s], own[1 - s]));
    }
}

/* --- alternation --- */

/* Rounds end where ratios repeat, at most after max_rounds of them, and do not begin at ratios
 * that were searched. */
static void test_rounds(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    g_autoptr(GError) error = NULL;
    g_autofree double *even = ratios_even(view);
    for (uint32_t most = 1; most <= 9; most *= 3) {
        PlannerOptions options;
        planner_options_init(&options);
        options.max_rounds = most;
        g_autoptr(Question) question = ask("hap", view, &options);
        g_autoptr(Answer) answer = begin(question);
        g_autoptr(GPtrArray) history = g_ptr_array_new_with_free_func(g_free);
        Alternation a = alternation_new(question, answer);
        assert_true(alternation_run(&a, even, NULL, history, &error));
        const uint32_t rounds = history->len;
        assert_true(rounds >= 1 && rounds <= most);
        assert_true(ratios_same(history->pdata[0], even, view->n_devices));
        for (uint32_t i = 0; i < rounds; i++)
            for (uint32_t k = 0; k < i; k++)
                assert_false(
                    ratios_same(history->pdata[i], history->pdata[k], view->n_devices));
        assert_true(a.best && a.best->feasible);
        assert_true(alternation_run(&a, even, NULL, history, &error));
        assert_int_equal(history->len, rounds);
        alternation_end(&a, answer->plan);
    }
}

/* A plan that is worse than hap's is replaced, if its ratios and its search are hap's own; and
 * no other one. */
static void test_improving(void **state)
{
    (void)state;
    static const struct {
        const char *planner, *key, *value;
        bool improves;
    } CASE[] = {
        {"hap", "ratios", "own", true},        {"hap", "ratios", "best", true},
        {"hap", "ratios", "even", false},      {"hap", "ratios", "proportional", false},
        {"hap", "search", "reference", false}, {"dp-ev", "ratios", "own", false},
        {"hap", "search", "exact", true}};
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    g_autoptr(GError) error = NULL;
    g_autofree double *even = ratios_even(view);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        PlannerOptions options;
        planner_options_init(&options);
        planner_options_set(&options, CASE[i].key, CASE[i].value, &error);
        assert_no_error(error);
        g_autoptr(Question) question = ask(CASE[i].planner, view, &options);
        g_autoptr(Answer) answer = begin(question);
        Plan *plan = answer->plan;
        plan->iteration_time_s = INFINITY;
        assert_true(hap_improve(question, answer, even, NULL, &error));
        assert_no_error(error);
        assert_int_equal(plan->program != NULL, CASE[i].improves);
        if (!CASE[i].improves)
            continue;
        assert_true(plan->feasible && plan->iteration_time_s > 0);
        const double time_s = plan->iteration_time_s;
        assert_true(isfinite(time_s));
        plan->iteration_time_s = time_s / 2; /* a better one is kept */
        assert_true(hap_improve(question, answer, even, NULL, &error));
        assert_true(plan->iteration_time_s == time_s / 2);
    }
}

/* --- ranks --- */

/* AMP's plan under an option; NULL where it is refused. */
static Plan *amp_plan(const ClusterView *view, const char *key, uint32_t value)
{
    static const char GPT[] = "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=64,"
                              "global_batch=16";
    g_autofree char *text = g_strdup_printf("%u", value);
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, key, text, NULL));
    return planner_plan(planner_find("amp", NULL), GPT, "unlike", view, &options, NULL,
                        NULL);
}

/* The strategies are numbered from the best one by AMP's own formula, with which a single trial
 * begins; as many trials find the fastest of them all, or a faster one with the cuts of another. */
static void test_ranks(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    g_autoptr(Plan) first = amp_plan(view, "trials", 1);
    g_autoptr(Plan) by_rank = amp_plan(view, "rank", 1);
    assert_true(by_rank->iteration_time_s == first->iteration_time_s);
    assert_int_equal(by_rank->program->n, first->program->n);
    assert_int_equal(by_rank->program->n_groups, first->program->n_groups);
    double best_s = INFINITY;
    uint32_t n = 0;
    for (Plan *plan; (plan = amp_plan(view, "rank", n + 1)); n++) {
        best_s = fmin(best_s, plan->iteration_time_s);
        plan_free(plan);
    }
    assert_true(n > 3);
    g_autoptr(Plan) best = amp_plan(view, "trials", n);
    assert_true(best->iteration_time_s <= best_s);
}

/* --- splits --- */

/* A dim that is cut over the devices of a replica and over its shards: every set of shards has all
 * units, and a device's units are divided as evenly as can be. */
static void test_nested_splits(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = NULL;
    g_autoptr(ClusterView) view = unlike(&cluster);
    PlannerOptions options;
    planner_options_init(&options);
    assert_true(planner_options_set(&options, "tp", "2", NULL));
    assert_true(planner_options_set(&options, "cp", "2", NULL));
    g_autoptr(Plan) plan =
        planner_plan(planner_find("manual", NULL),
                     /* one position: shards cut what the devices cut already */
                     "gpt2:layers=1,hidden=24,heads=4,ffn=128,seq=1,vocab=60,"
                     "global_batch=16",
                     "unlike", view, &options, NULL, NULL);
    assert_non_null(plan);
    uint32_t n_nested = 0;
    for (uint32_t i = 0; i < plan->n_splits; i++) {
        const Split *split = &plan->split[i];
        if (split->kind != SPLIT_NESTED)
            continue;
        const DeviceGroup *group = &plan->program->group[split->group];
        const uint32_t n = group->n_devices, n_shards = group_shards(group);
        n_nested++;
        assert_int_equal(n_shards, 2);
        for (uint32_t first = 0; first < group->n_replicas; first += n_shards) {
            uint64_t sum = 0;
            for (uint32_t p = 0; p < n; p++) {
                uint32_t least = UINT32_MAX, most = 0;
                for (uint32_t r = first; r < first + n_shards; r++) {
                    const uint32_t count = split->count[r * n + p];
                    sum += count;
                    least = MIN(least, count);
                    most = MAX(most, count);
                }
                assert_true(most - least <= 1);
            }
            assert_int_equal(sum, split->units);
        }
    }
    assert_true(n_nested > 0);
}

enum { MOST_DEVICES = 16 };

/* The counts of a split by the definitions of data/plan/plan.h: [replica * n_devices + position]. */
static void count_by_definition(const Plan *plan, const Split *split, uint32_t *count)
{
    const DeviceGroup *group = &plan->program->group[split->group];
    const uint32_t n = group->n_devices, n_shards = group_shards(group),
                   n_parts = group_parts(group), units = split->units;
    const double *ratio = &plan->ratio[split->segment * plan->n_devices];
    double whole = 0, own[MOST_DEVICES] = {0}, even[MOST_DEVICES],
           part[MOST_DEVICES] = {0}, of_set[MOST_DEVICES];
    uint32_t of_part[MOST_DEVICES], of_shard[MOST_DEVICES], of_position[MOST_DEVICES];
    for (uint32_t r = 0; r < group->n_replicas; r++)
        for (uint32_t p = 0; p < n; p++) {
            whole += ratio[group->device[r * n + p]];
            own[p] += ratio[group->device[r * n + p]];
            part[r / n_shards] += ratio[group->device[r * n + p]];
        }
    for (uint32_t p = 0; p < n; p++)
        own[p] /= whole;
    for (uint32_t k = 0; k < n_parts; k++)
        part[k] = split->kind == SPLIT_BATCH ? part[k] / whole : 1.0 / n_parts;
    for (uint32_t s = 0; s < n_shards; s++)
        even[s] = 1.0 / n_shards;
    split_round(part, n_parts, units, of_part);
    split_round(own, n, units, of_position);
    for (uint32_t r = 0; r < group->n_replicas; r++) {
        const uint32_t k = r / n_shards, s = r % n_shards;
        double of_replica = 0, of_all = 0, inner[MOST_DEVICES];
        for (uint32_t t = 0; t < n_shards; t++) {
            of_set[t] = 0;
            for (uint32_t p = 0; p < n; p++)
                of_set[t] += ratio[group->device[(k * n_shards + t) * n + p]];
            of_all += of_set[t];
        }
        of_replica = of_set[s];
        for (uint32_t t = 0; t < n_shards; t++)
            of_set[t] /= of_all;
        for (uint32_t p = 0; p < n; p++)
            inner[p] = ratio[group->device[r * n + p]] / of_replica;
        const bool batch = split->kind == SPLIT_BATCH;
        split_round(batch ? of_set : even, n_shards, batch ? of_part[k] : units,
                    of_shard);
        split_round(batch ? inner : own, n,
                    split->kind == SPLIT_POSITIONS ? units : of_shard[s], &count[r * n]);
        for (uint32_t p = 0; p < n; p++) {
            if (split->kind == SPLIT_REPLICAS)
                count[r * n + p] = of_part[k];
            if (split->kind != SPLIT_NESTED)
                continue;
            split_round(even, n_shards, of_position[p], of_shard);
            count[r * n + p] = of_shard[s];
        }
    }
}

/* Every kind of split, at unlike ratios, of groups with several replicas, sets of shards and
 * positions by their definitions. */
static void test_splits(void **state)
{
    (void)state;
    static const struct {
        const char *model, *set;
    } CASE[] = {
        {"gpt2", "dp=2 cp=2 tp=2"}, {"gpt2", "dp=4 tp=2 zero=3"},
        {"gpt2", "cp=4 tp=2"},      {"gpt2", "pp=2 dp=2 tp=2"},
        {"gpt2", "dp=4 cp=2"},      {"mixtral", "dp=4 tp=2 ep=4"},
        {"mixtral", "cp=4 tp=2"},   {"mixtral", "dp=8 ep=2 zero=1"},
    };
    uint32_t of_kind[SPLIT_KINDS] = {0};
    for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(CASE); i++) {
        g_autofree char *model = g_strdup_printf(
            "%s:layers=2,hidden=48,heads=16,ffn=52,seq=%u,vocab=60,global_batch=24",
            CASE[i / 2].model, i % 2 ? 32 : 1);
        g_auto(Made) made = made_plan("manual", model, "hap-8", CASE[i / 2].set);
        Plan *plan = made.plan;
        double sum = 0;
        for (uint32_t j = 0; j < plan->n_devices; j++)
            sum += plan->ratio[j] = 1 + j % 3;
        for (uint32_t j = 0; j < plan->n_devices; j++)
            plan->ratio[j] /= sum;
        assert_true(plan_round(plan, made.graph, NULL));
        for (uint32_t s = 0; s < plan->n_splits; s++) {
            uint32_t want[MOST_DEVICES];
            const Split *split = &plan->split[s];
            of_kind[split->kind]++;
            count_by_definition(plan, split, want);
            for (uint32_t k = 0; k < plan_split_devices(plan, split); k++)
                assert_int_equal(split->count[k], want[k]);
        }
    }
    for (uint32_t kind = 0; kind < SPLIT_KINDS; kind++)
        assert_true(of_kind[kind] > 0);
}

/* A plan is even if all ratios are equal, in all segments, and all devices have the same of each
 * split. */
static void test_even_plans(void **state)
{
    (void)state;
    g_auto(Made) made = made_plan(
        "manual", "gpt2:layers=1,hidden=16,heads=8,ffn=16,seq=4,vocab=16,global_batch=16",
        "hap-8", "dp=2 tp=4");
    Plan *plan = made.plan;
    const uint32_t n = plan->n_devices;
    assert_true(plan->n_splits > 0 && plan_splits_evenly(plan));
    plan->n_segments = 2;
    plan->ratio = g_renew(double, plan->ratio, 2 * n);
    memcpy(&plan->ratio[n], plan->ratio, n * sizeof *plan->ratio);
    assert_true(plan_splits_evenly(plan));
    for (uint32_t j = 1; j < 2 * n; j++) {
        const double kept = plan->ratio[j];
        plan->ratio[j] = nextafter(kept, 1);
        assert_false(plan_splits_evenly(plan));
        plan->ratio[j] = kept;
    }
    for (uint32_t s = 0; s < plan->n_splits; s++)
        for (uint32_t k = 0; k < plan_split_devices(plan, &plan->split[s]); k++) {
            plan->split[s].count[k]++;
            assert_false(plan_splits_evenly(plan));
            plan->split[s].count[k]--;
        }
    assert_true(plan_splits_evenly(plan));
}

/* --- proofs --- */

/* A plan that was made on hap-8 is read where GPUs have `part` of their rate: its time is another
 * one, so that a proof about it no longer holds. */
static void check_proofs(double part, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    Made made = made_plan("hap", MODEL, "hap-8", "");
    const double bound_s = made.plan->lower_bound_s;
    assert_true(bound_s > 0 && made.plan->bound_over);
    const bool optimal = made.plan->optimal;
    for (uint32_t t = 0; t < cluster->n_types; t++)
        cluster->type[t].rate *= part;
    SimOptions options;
    sim_options_init(&options);
    g_auto(Evaluation) evaluation = {0};
    assert_true(evaluation_of_plan(g_steal_pointer(&made.plan),
                                   g_steal_pointer(&made.graph), cluster, fidelity,
                                   &options, &evaluation, &error));
    made_clear(&made);
    const Plan *plan = evaluation.plan;
    assert_true(plan->lower_bound_s == (part == 1 ? bound_s : 0));
    assert_true((plan->bound_over != NULL) == (part == 1));
    assert_true(plan->optimal == (part == 1 && optimal));
    assert_true((plan->fractional_time_s > 0) == (part == 1));
}

static void test_proofs(void **state)
{
    (void)state;
    static const char *const FIDELITY[] = {NULL, "analytic", "stage", "flow"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(FIDELITY); i++) {
        check_proofs(1, FIDELITY[i]);
        check_proofs(0.5, FIDELITY[i]);
        check_proofs(1.5, FIDELITY[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),    cmocka_unit_test(test_mean_times),
        cmocka_unit_test(test_pipelines), cmocka_unit_test(test_grouping),
        cmocka_unit_test(test_rounds),    cmocka_unit_test(test_improving),
        cmocka_unit_test(test_ranks),     cmocka_unit_test(test_nested_splits),
        cmocka_unit_test(test_splits),    cmocka_unit_test(test_even_plans),
        cmocka_unit_test(test_proofs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
