/* Two pipelines that are replicas of each other, with unlike stages (synth/joint/search.h).
 *
 * Each pair is found by the formula for 1f1b; then each of its pipelines gets the schedule under
 * which its walk is shortest. */
#include <math.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "synth/answer/complete.h"
#include "synth/joint/search.h"

enum {
    COUNTS = 4, /* numbers of microbatches that are tried, */
    TRIALS = 2, /* and programs that are evaluated */
    BEAM = 4,
};

typedef struct {
    JointPair pair;
    JointProblem *shared; /* whose entries the pair's are */
    uint32_t problem;
    double walk_s;
} Found;

static CLEAR_DEFINE(found_clear, Found, found, synth_joint_pair_clear(&found->pair),
                    synth_joint_shared_free(found->shared));

static ORDER_DEFINE(by_walk, Found, ASCENDING(walk_s));

/* Gives a half the schedule under which it takes least, and returns its seconds. */
static double choose_schedule(const JointMenu *menu, const Found *found, uint32_t half,
                              JointPipeline *pipeline)
{
    static const SynthSchedule all[] = {SCHEDULE_1F1B, SCHEDULE_GPIPE,
                                        SCHEDULE_INTERLEAVED, SCHEDULE_ZB_H1,
                                        SCHEDULE_ZB_H2};
    const JointProblem p = synth_joint_half(found->shared, &found->pair, half);
    SynthSchedule best = SCHEDULE_1F1B;
    double least_s = INFINITY;
    for (uint32_t k = 0; k < (pipeline->n_stages > 1 ? G_N_ELEMENTS(all) : 1); k++) {
        pipeline->schedule = all[k];
        const double walk_s = synth_joint_fits(&p, pipeline)
                                  ? synth_joint_walk_s(menu, &p, pipeline)
                                  : INFINITY;
        if (walk_s < least_s) {
            least_s = walk_s;
            best = all[k];
        }
    }
    pipeline->schedule = best;
    return least_s;
}

/* Adds the best pair for a number of microbatches and a degree of tensor parallelism, if it may be
 * faster than upper_s. */
static void pair_search(JointSearch *j, uint32_t problem, uint32_t tp,
                        const uint32_t *step, double *upper_s, GArray *pairs)
{
    /* other schedules take so much less than 1f1b */
    static const double far = 1.25;
    JointMenu *menu = j->menus->pdata[problem];
    const JointOptions options = {.way = {.schedule = SCHEDULE_1F1B, .chunks = 1},
                                  .n_best = 1,
                                  .beam = BEAM,
                                  .plain = true,
                                  .upper_s = far * *upper_s,
                                  .most_labels = JOINT_LABELS,
                                  .left = joint_left(j),
                                  .deadline_us = j->answer->deadline_us};
    Found found = {.problem = problem};
    found.shared = synth_joint_shared(menu, j->problems->pdata[problem], tp);
    if (!synth_joint_solve_pair(found.shared, step, &options, &found.pair)) {
        found_clear(&found);
        return;
    }
    for (uint32_t h = 0; h < 2; h++)
        found.walk_s =
            fmax(found.walk_s, choose_schedule(menu, &found, h, &found.pair.pipeline[h]));
    *upper_s = fmin(*upper_s, found.walk_s);
    g_array_append_val(pairs, found);
}

/* The degrees of tensor parallelism that a problem's entries have, as a set of bits. */
static uint64_t degrees_of(const JointProblem *p)
{
    uint64_t degrees = 0;
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t e = 0; e < p->group[g].n_entries; e++)
            if (!p->group[g].entry[e].inside && p->group[g].entry[e].tp < 64)
                degrees |= UINT64_C(1) << p->group[g].entry[e].tp;
    return degrees;
}

/* The numbers of microbatches of the best pipelines come first. */
static void search_all(JointSearch *j, GArray *pairs)
{
    g_autofree bool *seen = g_new0(bool, j->problems->len + 1);
    double upper_s = fmin(j->plan->iteration_time_s, j->answer->upper_s);
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->found->len + j->problems->len && n < COUNTS; i++) {
        const uint32_t at = i < j->found->len
                                ? g_array_index(j->found, JointFound, i).problem
                                : i - j->found->len;
        const JointProblem *p = j->problems->pdata[at];
        g_autofree uint32_t *step = synth_joint_machine_units(j->menus->pdata[at]);
        if (seen[at] || p->n_microbatches < 2 || !step || joint_is_spent(j) ||
            synth_joint_density_s(p) >= upper_s)
            continue;
        seen[at] = true;
        n++;
        const uint64_t degrees = degrees_of(p);
        for (uint32_t tp = 1; tp < 64; tp++)
            if (degrees >> tp & 1u)
                pair_search(j, at, tp, step, &upper_s, pairs);
    }
    g_array_sort(pairs, by_walk);
}

/* Leaves the program of a pair in the plan if it is faster than the present one. */
static bool try_pair(JointSearch *j, const Found *found, GError **error)
{
    Plan *plan = j->plan;
    const Question *question = j->question;
    g_auto(JointProgram) made = {0};
    g_autoptr(GError) unmade = NULL;
    if (!synth_joint_pair_program(j->menus->pdata[found->problem], found->shared,
                                  &found->pair, &made, &unmade))
        return true; /* forms that cannot be exchanged */
    const double before_s = plan->iteration_time_s;
    g_auto(AnswerAside) before = {0};
    answer_set_aside(j->answer, plan, question, &before);
    plan_set(plan, question->graph, question->view, g_steal_pointer(&made.program),
             made.ratio);
    strategy_init(&plan->strategy); /* unlike pipelines are none of its */
    plan->strategy.offload = question->options->strategy.offload;
    if (!answer_complete(j->answer, plan, question, error))
        return false;
    j->answer->enough_s = 0;
    if (plan->feasible && plan->iteration_time_s < before_s)
        j->is_pair = true;
    else
        answer_put_back(j->answer, plan, question, &before);
    return true;
}

bool joint_try_pairs(JointSearch *j, GError **error)
{
    g_autoptr(GArray) pairs = array_owning(Found, found_clear);
    if (j->coarse || j->target || j->question->view->cluster->n_machines < 2 ||
        !j->plan->feasible)
        return true;
    search_all(j, pairs);
    for (uint32_t i = 0; i < pairs->len && i < TRIALS; i++) {
        const Found *found = &g_array_index(pairs, Found, i);
        if (found->walk_s < j->plan->iteration_time_s && !try_pair(j, found, error))
            return false;
    }
    return true;
}
