/* Plans of the planner joint with stages that run SPMD programs: they are right, simulated by flow,
 * and not below their bounds; random programs of such stages are right, and cost as the walk says.
 *
 *     KILTER_ROUNDS=N    random pipelines per model in place of 2, and one more model (joint_inside_long: 30) */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "exec/exec.h"
#include "synth/joint/menu.h"
#include "synth/planners/planner.h"
#include "synth/synth.h"
#include "tests/support/plan_of.h"
#include "tests/support/shrunk.h"
#include "tests/support/spmd_finder.h"
#include "tests/support/uneven_lab.h"

/* Whether a group cuts a microbatch over the devices of a replica, as only SPMD programs do. */
static bool is_inside(const Plan *plan, const Graph *graph, uint32_t group)
{
    g_autoptr(BatchForms) batch = batch_forms_new(graph, NULL);
    bool cuts = false;
    for (uint32_t i = 0; i < plan->program->n; i++) {
        const Instr *instr = &plan->program->instr[i];
        cuts |= instr->kind == INSTR_COLLECTIVE && instr->group == group &&
                form_is_gather(instr->from) &&
                form_inside(instr->from) == batch->form[instr->tensor];
    }
    return cuts && plan->program->group[group].n_devices > 1;
}

/* --- random programs in stages --- */

static const char *const MODEL[] = {
    "gpt2:layers=4,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=16",
    "bert-moe:layers=4,hidden=64,heads=4,ffn=128,vocab=128,seq=16,global_batch=16",
    "llama:layers=4,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,global_batch=24",
    "vgg19:width=8,fc=64,global_batch=16",
};

/* A random pipeline with an SPMD program in its first stage at least; NULL stages if the draw
 * fails. */
static JointPipeline draw(GRand *rand, const JointProblem *p)
{
    JointPipeline made = {
        .stage = g_new0(JointStage, 4),
        .schedule = (SynthSchedule)g_rand_int_range(rand, 0, SCHEDULE_ZB_H2 + 1),
        .chunks = 1};
    g_autofree uint32_t *left = g_memdup2(p->units, p->n_kinds * sizeof *left);
    uint32_t from = 0;
    for (uint32_t tries = 0; tries < 60 && made.n_stages < 4 && from < p->n_layers;
         tries++) {
        const uint32_t g = (uint32_t)g_rand_int_range(rand, 0, (gint32)p->n_groups);
        const JointGroup *group = &p->group[g];
        bool enough = group->n_entries > 0;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            enough &= group->use[k] <= left[k];
        if (!enough)
            continue;
        const uint32_t e = (uint32_t)g_rand_int_range(rand, 0, (gint32)group->n_entries);
        if (group->entry[e].promised || (made.n_stages == 0 && !group->entry[e].inside))
            continue;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            left[k] -= group->use[k];
        made.stage[made.n_stages++] = (JointStage){from, g, e};
        from += (uint32_t)g_rand_int_range(rand, 1, (gint32)(p->n_layers - from) + 1);
    }
    if (made.n_stages == 0 || !synth_joint_fits(p, &made))
        g_clear_pointer(&made.stage, g_free);
    return made;
}

/* The error of the walk for a random pipeline; its program is right. NAN: forms that no transfer
 * joins. */
static double check_program(JointMenu *menu, const JointProblem *p, const Graph *graph,
                            const ClusterView *view, const JointPipeline *made)
{
    g_auto(JointProgram) program = {0};
    g_autoptr(GError) error = NULL;
    if (!synth_joint_program(menu, p, made, &program, &error))
        return NAN;
    g_autoptr(Plan) plan =
        plan_of(graph, view->n_devices, false, g_steal_pointer(&program.program));
    memcpy(plan->ratio, program.ratio, view->n_devices * sizeof *program.ratio);
    assert_true(plan_round(plan, graph, &error));
    g_autoptr(SimReport) report = sim_evaluate(plan, graph, view, "stage", &error);
    assert_no_error(error);
    g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    exec_verify(backend, plan, graph, 1, EXEC_TOLERANCE, &verdict, &error);
    assert_no_error(error);
    assert_true(verdict.right);
    return synth_joint_walk_s(menu, p, made) / report->iteration_time_s - 1;
}

/* Sums over the layers never fall, and begin at 0: a layer takes no time and memory away. */
static void check_sums(const JointProblem *p)
{
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t i = 0; i < p->group[g].n_entries; i++) {
            const JointEntry *e = &p->group[g].entry[i];
            const double *const row[] = {e->forward_s, e->backward_s, e->weights_s,
                                         e->held,      e->kept,       e->late};
            for (uint32_t r = 0; e->inside && r < G_N_ELEMENTS(row); r++) {
                assert_true(row[r][0] == 0);
                for (uint32_t l = 0; l < p->n_layers; l++)
                    assert_at_most(row[r][l] * (1 - 1e-12), row[r][l + 1]);
            }
            assert_true(!e->inside ||
                        (e->forward_s[p->n_layers] > 0 && e->held[p->n_layers] > 0));
        }
}

/* Random SPMD programs with random ratios, beside Megatron's, under every schedule. */
static void test_random(void **state)
{
    (void)state;
    const char *rounds = g_getenv("KILTER_ROUNDS");
    const uint32_t draws = rounds ? (uint32_t)g_ascii_strtoull(rounds, NULL, 10) : 2;
    g_autoptr(GRand) rand = g_rand_new_with_seed(171);
    uint32_t n = 0, unmade = 0;
    double sum = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODEL) - (rounds ? 0 : 1); m++) {
        g_autoptr(Cluster) cluster = uneven_lab(1024, 20);
        /* Of every second model launches take longer than the work. */
        for (uint32_t t = 0; m % 2 == 1 && t < cluster->n_types; t++)
            cluster->type[t].launch_s = 2e-3;
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        g_autoptr(Graph) graph = model_build(MODEL[m], cluster_gpus(cluster), NULL, NULL);
        g_auto(SpmdFinder) finder = spmd_finder(rand, graph, cluster);
        g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, false, NULL);
        menu->promises = true;
        g_autoptr(JointProblem) p = synth_joint_problem(menu, 2, 1, true);
        spmd_settle_all(&finder, menu, p);
        check_sums(p);
        for (uint32_t i = 0; i < draws; i++) {
            JointPipeline made = draw(rand, p);
            if (!made.stage)
                continue;
            const double off = check_program(menu, p, graph, view, &made);
            /* The walk counts them, and keeps them apart by phases, where devices need not. */
            if (cluster->type[0].launch_s > 0 && !rounds)
                assert_at_most(-0.05, off);
            unmade += isnan(off);
            sum += isnan(off) || cluster->type[0].launch_s > 0 ? 0 : fabs(off);
            n++;
            synth_joint_pipeline_clear(&made);
        }
    }
    print_message("%u pipelines with SPMD programs, %u without a program, %.1f %% off\n",
                  n, unmade, 100 * sum / (n - unmade));
    assert_true(n > 2 * draws && 4 * unmade < n && sum < 0.15 * (n - unmade));
}

/* --- what an entry says --- */

/* A model's menu on a lab, and the group of two GPUs of its last kind, which divide all evenly. */
typedef struct {
    Cluster *cluster;
    ClusterView *view, *part;
    Graph *graph;
    JointMenu *menu;
    JointProblem *problem;
    JointGroup *group;
} Two;

static Two two_new(const char *model)
{
    Two two = {.cluster = uneven_lab(1024, 20)};
    two.view = cluster_view(two.cluster, GRANULARITY_GPU);
    two.graph = model_build(model, cluster_gpus(two.cluster), NULL, NULL);
    two.menu = synth_joint_menu_new(two.graph, two.view, false, NULL);
    two.problem = synth_joint_problem(two.menu, 2, 1, true);
    for (uint32_t g = 0; g < two.problem->n_groups; g++)
        if (two.problem->group[g].kinds == 2 && two.problem->group[g].n_devices == 2)
            two.group = &two.problem->group[g];
    assert_non_null(two.group);
    g_auto(JointDevices) devices = synth_joint_devices(two.menu, two.group);
    two.part = spmd_view(two.cluster, &devices);
    return two;
}

static void two_clear(Two *two)
{
    synth_joint_problem_free(two->problem);
    synth_joint_menu_free(two->menu);
    graph_free(two->graph);
    cluster_view_free(two->part);
    cluster_view_free(two->view);
    cluster_free(two->cluster);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Two, two_clear)

/* The entry of a program with ratios, without recomputation. */
static const JointEntry *two_enter_with(Two *two, Program *program, const double *ratio)
{
    const uint32_t first = two->group->n_entries;
    synth_joint_add_inside(two->menu, two->problem, two->group,
                           &(JointInside){program, g_memdup2(ratio, 2 * sizeof *ratio),
                                          two->part,
                                          g_memdup2(ratio, 2 * sizeof *ratio)});
    assert_true(two->group->n_entries > first);
    return &two->group->entry[first];
}

static const JointEntry *two_enter(Two *two, Program *program)
{
    static const double half[] = {0.5, 0.5};
    return two_enter_with(two, program, half);
}

/* The program that a search finds under pins, with even ratios. */
static Program *two_search(const Two *two, const char *text)
{
    static const double half[] = {0.5, 0.5};
    g_autoptr(GError) error = NULL;
    g_autoptr(SynthPins) pins = synth_pins_new(two->graph, text, &error);
    assert_no_error(error);
    g_autoptr(SynthSpace) space = synth_space_new(two->graph, pins);
    const SynthOptions options = {0};
    SynthResult result;
    synth_search(space, two->part, half, &options, &result, &error);
    assert_no_error(error);
    return result.program;
}

/* Each device needs all that crosses a border, unless it is cut in front of the border or right
 * behind it. */
static void test_copies(void **state)
{
    (void)state;
    static const struct {
        const char *forward, *backward;
        double copies;
    } CASE[] = {
        {"identity", "identity", 2},
        {"gather(0)", "gather(0)", 1},
        {"identity->gather(0)", "gather(0)->identity", 1},
        {"identity->gather(0)", "identity", 2},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_auto(Two) two = two_new("gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=16,"
                                  "vocab=64,global_batch=16");
        g_autofree char *pins =
            g_strdup_printf("layers.0.ffn.residual=%s; layers.0.ffn.residual.grad_sum=%s",
                            CASE[i].forward, CASE[i].backward);
        const JointEntry *e = two_enter(&two, two_search(&two, pins));
        const TensorId border = graph_find(two.graph, "layers.0.ffn.residual");
        const OpId by = graph_tensor(two.graph, border)->producer;
        assert_close(e->copies[graph_get_op(two.graph, by)->layer + 1], CASE[i].copies,
                     1e-12);
    }
}

/* Masks of dropout take a byte for each element, and the dropped scores of attention their own
 * bytes, too, of a microbatch on the device that has the largest part of it. */
static void test_masks(void **state)
{
    (void)state;
    static const double RATIO[][2] = {{0.5, 0.5}, {0.7, 0.3}};
    for (uint32_t at = 0; at < G_N_ELEMENTS(RATIO); at++) {
        double kept[2], masks = 0;
        for (uint32_t i = 0; i < 2; i++) {
            g_autofree char *model =
                g_strdup_printf("gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=64,"
                                "global_batch=16,dropout=%g",
                                0.1 * i);
            g_auto(Two) two = two_new(model);
            const JointEntry *e =
                two_enter_with(&two,
                               synth_baseline_program(two.graph, two.part, RATIO[at],
                                                      BASELINE_DATA_PARALLEL, NULL),
                               RATIO[at]);
            const double part = (double)MAX(e->samples[0], e->samples[1]) /
                                (e->samples[0] + e->samples[1]);
            assert_close(part, round(8 * RATIO[at][0]) / 8, 1e-12);
            kept[i] = e->kept[two.problem->n_layers];
            ops_each (op, id, two.graph) {
                const Tensor *out = graph_tensor(two.graph, op->out[op->n_out - 1]);
                if (op->pass == PASS_FORWARD && op->attr.rate > 0)
                    masks += (double)tensor_elements(out) *
                             (op->kind == OP_DROPOUT ? 1 : 1 + dtype_bytes(out->dtype)) *
                             part / two.problem->n_microbatches;
            }
        }
        assert_true(masks > 0);
        assert_close(kept[1] - kept[0], masks, 1e-9);
    }
}

/* --- plans --- */

static Plan *plan_by_joint(const char *model, const ClusterView *view, Graph **graph)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    Plan *plan = planner_plan(planner_find("joint", NULL), model, "lab", view, &options,
                              graph, &error);
    assert_no_error(error);
    return plan;
}

/* A mixture of experts on two machines with a slow network: stages divide samples and experts over
 * the same devices. */
static void test_plan(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hidup-2x4-10", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan =
        plan_by_joint("bert-sgmoe:layers=2,global_batch=32", view, &graph);
    uint32_t inside = 0;
    for (uint32_t g = 0; g < plan->program->n_groups; g++)
        inside += is_inside(plan, graph, g);
    assert_true(inside > 0 && plan->feasible);
    assert_at_most(plan->lower_bound_s, plan->iteration_time_s * (1 + 1e-9));
    check_shrunk(plan, graph);
    g_autoptr(SimReport) flow = sim_evaluate(plan, graph, view, "flow", &error);
    assert_no_error(error);
    assert_true(flow->iteration_time_s > 0);
    g_autofree char *text = plan_write(plan, graph);
    g_autofree char *file = NULL;
    g_autoptr(Graph) again = NULL;
    const int handle = g_file_open_tmp("kilter-XXXXXX.json", &file, &error);
    assert_no_error(error);
    assert_true(g_close(handle, NULL) && g_file_set_contents(file, text, -1, NULL));
    g_autoptr(Plan) read = plan_read(file, &again, &error);
    g_unlink(file);
    assert_no_error(error);
    g_autofree char *same = plan_write(read, again);
    assert_string_equal(text, same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
