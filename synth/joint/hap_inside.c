/* HAP's planner on the devices of a stage (synth/joint/hap_inside.h).
 *
 * The planner hap finds a program and ratios for the whole model on these devices alone, once for
 * each set of devices: with the whole batch, an iteration computes as much and sums as many
 * gradients as with microbatches. Where rounding to the pieces of a microbatch changes the shares
 * of the batch, HAP's search finds the best program for the rounded shares. */
#include "synth/joint/hap_inside.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/cluster/change.h"
#include "synth/answer/ratios.h"
#include "synth/answer/rounding.h"
#include "synth/hap/alternation.h"

enum { BEAM_ROUNDED = 4 };

struct JointHap {
    const Question *question;
    const Answer *answer;
    char *cluster;     /* its file */
    uint32_t pieces;   /* of the batch */
    SynthSpace *space; /* NULL until the first search */
    GHashTable *plans; /* "machine gpus ..." -> Base */
};

/* The planner's answer for some devices; `plan` is NULL if there is none. */
typedef struct {
    ClusterView *view;
    Plan *plan;
} Base;

static FREE_DEFINE(base_free, Base, base, cluster_view_free(base->view),
                   plan_free(base->plan));

JointHap *joint_hap_new(const Question *question, const Answer *answer)
{
    g_autoptr(BatchForms) batch = batch_forms_of_microbatches(question->graph, NULL);
    JointHap *hap = g_new0(JointHap, 1);
    hap->question = question;
    hap->answer = answer;
    hap->cluster = cluster_write(question->view->cluster);
    hap->pieces = batch ? batch->units : 1;
    hap->plans = text_table((GDestroyNotify)base_free);
    return hap;
}

uint32_t joint_hap_pieces(const JointHap *hap)
{
    return hap->pieces;
}

FREE_DEFINE(joint_hap_free, JointHap, hap, g_hash_table_unref(hap->plans),
            synth_space_free(hap->space), g_free(hap->cluster));

/* The view of these devices alone, with the prices that the question's have; NULL if no network can
 * be built of their machines. */
static ClusterView *view_of(const JointHap *hap, const JointDevices *devices)
{
    const Cluster *whole = hap->question->view->cluster;
    g_autoptr(Cluster) part =
        cluster_parse(whole->name, hap->cluster, strlen(hap->cluster), NULL);
    g_autofree bool *keep = g_new0(bool, whole->n_machines);
    g_assert(part && part->n_machines == whole->n_machines);
    for (uint32_t i = 0; i < devices->n; i++) {
        keep[devices->machine[i]] = true;
        part->machine[devices->machine[i]].gpus = devices->gpus[i];
    }
    if (!cluster_keep(part, keep, NULL))
        return NULL;
    g_autoptr(ClusterView) plain = cluster_view(part, GRANULARITY_GPU);
    ClusterView *view =
        sim_options_view(&hap->question->options->sim, hap->question->runtime, plain);
    view = view ? view : g_steal_pointer(&plain);
    cluster_view_own(view, g_steal_pointer(&part));
    return view;
}

/* Hands over the best plan of one search at ratios by speed and of the best ratios for its program,
 * without regard to memory, which stages are given by recomputation and fewer layers. work: the
 * option, in millions of labels. */
static Plan *alternate(const Question *own, uint32_t work, Answer *answer)
{
    static const uint64_t unit = 1000000;
    Alternation a = alternation_new(own, answer);
    g_autofree double *ratio = ratios_proportional(own->view);
    g_autoptr(Plan) times = plan_new();
    bool feasible;
    a.rough = true;
    a.effort = work * unit;
    Plan *best = alternation_round(&a, ratio, NULL, &feasible, NULL)
                     ? g_steal_pointer(&a.best)
                     : NULL;
    alternation_end(&a, times);
    return best;
}

/* Runs HAP's search on a view. */
static Plan *plan_on(JointHap *hap, const ClusterView *view)
{
    const Question *question = hap->question;
    PlannerOptions options;
    planner_options_init(&options);
    options.beam = question->options->beam;
    options.sim.costs = SIM_COSTS_SHARES; /* the view has its prices */
    g_autoptr(Question) own = question_open_on(planner_find("hap", NULL), question->model,
                                               question->graph, view, &options, NULL);
    if (!own)
        return NULL;
    if (!hap->space)
        hap->space = synth_space_new(question->graph, NULL);
    Answer answer = {.space = hap->space,
                     .deadline_us = hap->answer->deadline_us,
                     .upper_s = INFINITY,
                     .roomy = true,
                     .unbounded = true};
    Plan *plan = alternate(own, question->options->work, &answer);
    answer_clear(&answer);
    return plan;
}

static const Base *base_of(JointHap *hap, const JointDevices *devices)
{
    g_autoptr(GString) key = g_string_new("");
    for (uint32_t i = 0; i < devices->n; i++)
        g_string_append_printf(key, "%u %u ", devices->machine[i], devices->gpus[i]);
    Base *base = g_hash_table_lookup(hap->plans, key->str);
    if (base)
        return base;
    base = g_new0(Base, 1);
    base->view = view_of(hap, devices);
    base->plan = base->view ? plan_on(hap, base->view) : NULL;
    g_hash_table_insert(hap->plans, g_strdup(key->str), base);
    return base;
}

/* Seconds of a program with these shares. */
static double rounded_s(const JointHap *hap, const Base *base, const Program *program,
                        const RoundedShares *rounded)
{
    const uint32_t n = base->plan->n_devices;
    g_autoptr(SimLinear) linear =
        sim_linear(program, hap->question->graph, base->view, NULL, 0);
    g_autofree double *share = g_new(double, (gsize)linear->n_splits *n + 1);
    for (uint32_t s = 0; s < linear->n_splits; s++) {
        uint32_t u = 0;
        while (rounded->units[u] < linear->split[s].units)
            u++;
        memcpy(&share[(size_t)s * n], &rounded->share[(size_t)u * n], n * sizeof *share);
    }
    return sim_linear_time(linear, base->view, share, NULL, NULL);
}

/* A program that cuts weights, not the batch; NULL: the graph has none. */
static Program *search_uncut(const JointHap *hap, const Base *base)
{
    SynthResult result;
    return synth_baseline(hap->question->graph, base->view, base->plan->ratio,
                          BASELINE_MEGATRON, &result, NULL)
               ? result.program
               : NULL;
}

/* The best program for shares that are rounded to the pieces of a microbatch, if it is faster than
 * the other two; NULL: it is not. */
static Program *search_rounded(JointHap *hap, const Base *base, uint32_t pieces)
{
    const uint32_t n = base->plan->n_devices;
    g_auto(RoundedShares) rounded = {0};
    g_autofree uint32_t *count = g_new(uint32_t, n);
    rounded_shares_init(&rounded, base->plan, hap->question->graph);
    split_round(base->plan->ratio, n, pieces, count);
    for (uint32_t u = 0; u < rounded.shares.n; u++)
        for (uint32_t d = 0; rounded.units[u] == hap->pieces && d < n; d++)
            rounded.share[(size_t)u * n + d] = (double)count[d] / pieces;
    g_autoptr(Program) uncut = search_uncut(hap, base);
    double upper_s = rounded_s(hap, base, base->plan->program, &rounded);
    if (uncut)
        upper_s = fmin(upper_s, rounded_s(hap, base, uncut, &rounded));
    const SynthOptions options = {.beam = BEAM_ROUNDED,
                                  .deadline_us = hap->answer->deadline_us,
                                  .shares = &rounded.shares,
                                  .upper_s = upper_s};
    SynthResult result;
    return synth_search(hap->space, base->view, base->plan->ratio, &options, &result,
                        NULL)
               ? result.program
               : NULL;
}

/* The ratios in the order of `devices`; machines of the view are in the order of the cluster. */
static double *in_order(const Base *base, const JointDevices *devices)
{
    double *ratio = g_new(double, base->plan->n_devices);
    uint32_t n = 0;
    for (uint32_t i = 0; i < devices->n; i++) {
        const uint32_t first =
            sum_over(uint32_t, k, devices->n,
                     devices->machine[k] < devices->machine[i] ? devices->gpus[k] : 0);
        for (uint32_t d = 0; d < devices->gpus[i]; d++)
            ratio[n++] = base->plan->ratio[first + d];
    }
    g_assert(n == base->plan->n_devices);
    return ratio;
}

/* Adds the entries of a program by HAP for the devices of a group. */
static void add_hap_program(JointMenu *menu, JointProblem *p, JointGroup *group,
                            const Base *base, const JointDevices *devices,
                            Program *program)
{
    if (!program)
        return;
    const JointInside inside = {
        program, in_order(base, devices), base->view,
        g_memdup2(base->plan->ratio, base->plan->n_devices * sizeof *base->plan->ratio)};
    synth_joint_add_inside(menu, p, group, &inside);
}

void joint_hap_settle(JointHap *hap, JointMenu *menu, JointProblem *p, uint32_t g)
{
    JointGroup *group = &p->group[g];
    g_auto(JointDevices) devices = synth_joint_devices(menu, group);
    const Base *base = base_of(hap, &devices);
    group->settled = true;
    if (!base->plan)
        return;
    add_hap_program(menu, p, group, base, &devices, program_copy(base->plan->program));
    add_hap_program(menu, p, group, base, &devices, search_uncut(hap, base));
}

uint32_t joint_hap_polish(JointHap *hap, JointMenu *menu, JointProblem *p, uint32_t g)
{
    JointGroup *group = &p->group[g];
    g_assert(group->settled);
    if (group->polished == 0) {
        g_auto(JointDevices) devices = synth_joint_devices(menu, group);
        const Base *base = base_of(hap, &devices);
        group->polished = group->n_entries;
        if (base->plan)
            add_hap_program(menu, p, group, base, &devices,
                            search_rounded(hap, base, hap->pieces / p->n_microbatches));
    }
    return group->polished;
}
