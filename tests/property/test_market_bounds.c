/* The bounds of joint on random clusters of the market, with topologies, regions and unlike cards,
 * are below every plan of their spaces by `stage`: pipelines drawn from the menu, with every number
 * of microbatches, schedule, cut and recomputation, and strategies drawn for `manual`.
 *
 *     KILTER_ALL=1      thousands (the test market_bounds_long)
 *     KILTER_SEED=N     others */
#include <math.h>
#include <string.h>

#include "data/cluster/runtime.h"
#include "synth/joint/menu.h"
#include "tests/support/made_plan.h"
#include "tests/support/plan_of.h"
#include "tests/support/random_market.h"
#include "tests/support/random_strategy.h"
#include "tests/support/rounds.h"

static const char *const MODEL[] = {
    "gpt2:layers=4,hidden=768,heads=12,ffn=3072,seq=512,global_batch=24,precision=bf16",
    "llama:layers=6,hidden=2048,heads=16,kv_heads=4,ffn=5632,seq=1024,global_batch=24,"
    "precision=bf16",
    "mixtral:layers=4,hidden=512,heads=8,kv_heads=4,ffn=1024,seq=256,global_batch=24,"
    "precision=bf16",
    "bert-base:layers=4,global_batch=24",
};
enum { BATCH = 24 };

/* Bounds in seconds, over every number of microbatches. */
typedef struct {
    double any_s;   /* whatever SPMD programs stages run */
    double plain_s; /* with replicas and tensor parallelism alone */
    double dense_s; /* and in unlike replicas: by computation per device */
} Bounds;

typedef struct {
    uint32_t clusters, plans, in_chunks, strategies;
    double nearest; /* a plan's time over the bound */
} Seen;

static double least_s(const JointProblem *p, bool plain)
{
    g_auto(JointResult) result = {0};
    const JointOptions how = {
        .way = {.relaxed = true}, .n_best = 1, .plain = plain, .upper_s = INFINITY};
    synth_joint_solve(p, &how, &result);
    assert_true(result.exact);
    return result.best->len > 0 ? g_array_index(result.best, JointPipeline, 0).cost_s
                                : INFINITY;
}

/* Makes the problems of all numbers of microbatches, [number]; NULL: none. */
static Bounds find_bounds(JointMenu *menu, GPtrArray *problems)
{
    Bounds least = {INFINITY, INFINITY, INFINITY};
    for (uint32_t m = 1; m <= BATCH; m++) {
        JointProblem *p = BATCH % m == 0 ? synth_joint_problem(menu, m, 1, true) : NULL;
        if (!p)
            continue;
        g_ptr_array_add(problems, p);
        least.any_s = fmin(least.any_s, least_s(p, false));
        least.plain_s = fmin(least.plain_s, least_s(p, true));
        least.dense_s = fmin(least.dense_s, synth_joint_density_s(p));
    }
    return least;
}

/* A pipeline drawn from the problem; stages are NULL if none fits. */
static JointPipeline draw(GRand *rand, const JointProblem *p)
{
    g_autofree uint32_t *left = g_memdup2(p->units, p->n_kinds * sizeof *left);
    const uint32_t most = 1 + pick(rand, 6);
    JointPipeline made = {.stage = g_new0(JointStage, most),
                          .schedule = (SynthSchedule)pick(rand, SCHEDULE_ZB_H2 + 1),
                          .chunks = 1};
    uint32_t from = 0, runs = p->n_layers;
    for (uint32_t i = 0; i < 30 && made.n_stages < most && from < p->n_layers; i++) {
        const uint32_t g = pick(rand, p->n_groups);
        const JointGroup *group = &p->group[g];
        bool good = group->n_entries > 0;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            good &= group->use[k] <= left[k];
        const uint32_t e = good ? pick(rand, group->n_entries) : 0;
        if (!good || group->entry[e].promised)
            continue;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            left[k] -= group->use[k];
        made.stage[made.n_stages++] = (JointStage){from, g, e};
        const uint32_t last = made.n_stages == most,
                       n = last ? p->n_layers - from : 1 + pick(rand, p->n_layers - from);
        runs = MIN(runs, n);
        from += n;
    }
    if (made.schedule == SCHEDULE_INTERLEAVED && made.n_stages > 0 &&
        p->n_microbatches % made.n_stages == 0)
        made.chunks = 1 + pick(rand, runs);
    if (made.n_stages == 0 || from < p->n_layers || !synth_joint_fits(p, &made))
        g_clear_pointer(&made.stage, g_free);
    return made;
}

static void check_at_least(double time_s, double bound_s, const char *cluster,
                           const char *what, Seen *seen)
{
    if (time_s < bound_s * (1 - 1e-9))
        print_message("%s on\n%s: %g s, bound %g s\n", what, cluster, time_s, bound_s);
    assert_true(time_s >= bound_s * (1 - 1e-9));
    seen->nearest = fmin(seen->nearest, time_s / bound_s);
}

/* Prices the program of a drawn pipeline, if there is one. */
static void check_pipeline(JointMenu *menu, const JointProblem *p,
                           const JointPipeline *made, const Bounds *bounds,
                           const char *cluster, Seen *seen)
{
    g_auto(JointProgram) program = {0};
    g_autoptr(GError) error = NULL;
    if (!synth_joint_program(menu, p, made, &program, NULL))
        return;
    g_autoptr(Plan) plan = plan_of(menu->graph, menu->view->n_devices, false,
                                   g_steal_pointer(&program.program));
    memcpy(plan->ratio, program.ratio, menu->view->n_devices * sizeof *program.ratio);
    assert_true(plan_round(plan, menu->graph, &error));
    g_autoptr(SimReport) report =
        sim_evaluate(plan, menu->graph, menu->view, "stage", &error);
    assert_no_error(error);
    const double s = report->iteration_time_s;
    check_at_least(s, fmax(bounds->plain_s, bounds->any_s), cluster, "a pipeline", seen);
    check_at_least(s, bounds->dense_s, cluster, "a pipeline, dense", seen);
    seen->plans++;
    seen->in_chunks += made->chunks > 1;
}

/* Prices the programs of the fastest pipelines by the formula for 1f1b. */
static void check_best(JointMenu *menu, const JointProblem *p, const Bounds *bounds,
                       const char *cluster, Seen *seen)
{
    g_auto(JointResult) result = {0};
    const JointOptions how = {.way = {.schedule = SCHEDULE_1F1B, .chunks = 1},
                              .n_best = 4,
                              .beam = 1,
                              .plain = true,
                              .upper_s = INFINITY};
    synth_joint_solve(p, &how, &result);
    array_each (const JointPipeline, made, result.best)
        check_pipeline(menu, p, made, bounds, cluster, seen);
}

/* Keys of a strategy on all GPUs without sequence parallelism, whose tensor parallelism stays in
 * machines. */
static char *draw_keys(GRand *rand, const Cluster *cluster)
{
    static const char *const schedule[] = {"gpipe", "1f1b",          "zb-h1",
                                           "zb-h2", "breadth-first", "zb-v"};
    const uint32_t n = cluster_gpus(cluster);
    uint32_t inside = n;
    for (uint32_t m = 0; m < cluster->n_machines; m++)
        while (inside > 1 && cluster->machine[m].gpus % inside != 0)
            inside--;
    const uint32_t tp = random_divisor(rand, inside), pp = random_divisor(rand, n / tp);
    return g_strdup_printf("pp=%u tp=%u dp=%u recompute=%s zero=%u micro_batch=%u%s%s",
                           pp, tp, n / tp / pp, pick(rand, 3) ? "none" : "full",
                           n / tp / pp > 1 ? pick(rand, 3) : 0, 1 + pick(rand, 3),
                           pp > 1 ? " schedule=" : "",
                           pp > 1 ? schedule[pick(rand, pp == 2 ? 6 : 4)] : "");
}

static void check_strategy(const char *model, const ClusterView *view, const char *set,
                           const Bounds *bounds, const char *text, Seen *seen)
{
    PlannerOptions options;
    g_autoptr(GError) error = NULL;
    assert_true(set_options(&options, set, &error));
    g_autoptr(Plan) plan = planner_plan(planner_find("manual", NULL), model, "lab", view,
                                        &options, NULL, NULL);
    if (!plan) /* these degrees do not suit each other */
        return;
    check_at_least(plan->iteration_time_s, fmax(bounds->plain_s, bounds->any_s), text,
                   set, seen);
    seen->strategies++;
}

static void check_cluster(GRand *rand, uint32_t draws, Seen *seen)
{
    const char *model = MODEL[pick(rand, G_N_ELEMENTS(MODEL))];
    g_autoptr(GError) error = NULL;
    g_autofree char *text = random_market(rand);
    g_autoptr(Cluster) cluster = cluster_parse("lab", text, strlen(text), &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    const char *runtime = planner_runtime(planner_find("joint", NULL), &options, cluster);
    g_autoptr(ClusterView) priced =
        planner_view(&options, runtime, cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build(model, cluster_gpus(cluster), NULL, &error);
    g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, priced, false, &error);
    assert_no_error(error);
    menu->promises = true;
    g_autoptr(GPtrArray) problems =
        g_ptr_array_new_with_free_func((GDestroyNotify)synth_joint_problem_free);
    const Bounds bounds = find_bounds(menu, problems);
    for (uint32_t i = 0; i < draws && problems->len > 0; i++) {
        const JointProblem *p = problems->pdata[pick(rand, problems->len)];
        JointPipeline made = draw(rand, p);
        if (made.stage)
            check_pipeline(menu, p, &made, &bounds, text, seen);
        synth_joint_pipeline_clear(&made);
        g_autofree char *set = draw_keys(rand, cluster);
        if (i % 4 == 0)
            check_strategy(model, view, set, &bounds, text, seen);
    }
    for (uint32_t i = 0; i < problems->len; i++)
        check_best(menu, problems->pdata[i], &bounds, text, seen);
    seen->clusters++;
}

static void test_market_bounds(void **state)
{
    (void)state;
    const char *seed = g_getenv("KILTER_SEED");
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed ? (guint32)atoi(seed) : 350);
    Seen seen = {.nearest = INFINITY};
    const uint32_t n = test_rounds(20, 300);
    for (uint32_t i = 0; i < n; i++)
        check_cluster(rand, 40, &seen);
    print_message("%u clusters, %u pipelines (%u with several runs of layers per device) "
                  "and %u strategies, the nearest at %.3f of its bound\n",
                  seen.clusters, seen.plans, seen.in_chunks, seen.strategies,
                  seen.nearest);
    assert_true(seen.plans > 10 * n && seen.strategies > n && seen.in_chunks > 0);
    assert_true(seen.nearest < 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_market_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
