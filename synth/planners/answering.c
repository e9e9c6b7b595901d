/* The way from a question to its answer: the planner's plan, with the techniques asked for,
 * completed and bounded. */
#include <math.h>

#include "data/base/version.h"
#include "data/formats/export/export.h"
#include "data/models/model.h"
#include "synth/answer/complete.h"
#include "synth/hap/make.h"
#include "synth/train/train.h"

/* Whether the planner's program becomes a duplex program when it is made. */
static bool is_duplex(const Question *question)
{
    return question_takes_turns(question->planner, question->options) &&
           !planner_can(question->planner, PLANNER_TURNS);
}

/* Ratios that were best for one microbatch are found again for two. */
static bool duplex_and_balance(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    plan->optimal = false;
    return plan_duplex(plan, question, error) &&
           (!question_wants_best_ratios(question) ||
            (answer_complete(answer, plan, question, error) &&
             answer_balance(answer, plan, question, error)));
}

/* Whether there are too many programs to search, of which then nothing is proved. */
static bool is_beyond(const Answer *answer)
{
    return answer->space && synth_space_is_large(answer->space);
}

/* One box is cheap enough for every plan of the search; more boxes, and bounds for other planners'
 * plans, must be requested. */
static bool bound(const Question *question, Answer *answer, GError **error)
{
    const PlannerOptions *options = question->options;
    const gint64 start = g_get_monotonic_time();
    if (answer->misfit || is_beyond(answer))
        return true;
    if (options->certify == 0 &&
        (answer->unbounded || !planner_can(question->planner, PLANNER_BOUNDS) ||
         is_duplex(question) || options->strategy.microbatches > 1))
        return true;
    const bool done = options->certify > 0 ? hap_certify(question, answer, error)
                                           : hap_bound(question, answer, error);
    answer->plan->certificate_time_s =
        (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

static bool make_plan(const Question *question, Answer *answer, GError **error)
{
    const Planner *method = question->planner;
    const bool duplex = is_duplex(question), trained = question_is_trained(question);
    if (planner_can(method, PLANNER_CHOOSES))
        return method->make(question, answer, error);
    if (!(trained ? training_make(question, answer, error)
                  : method->make(question, answer, error)) ||
        (duplex && !duplex_and_balance(question, answer, error)) ||
        !answer_finish(answer, question, error) || !bound(question, answer, error))
        return false;
    const bool may_fit = answer->plan->feasible || is_beyond(answer) ||
                         isfinite(answer->upper_s) || /* another plan does */
                         !planner_can(method, PLANNER_SEARCHES) ||
                         answer_is_lost(answer, answer->plan->iteration_time_s);
    if (may_fit || duplex || trained)
        return true;
    const bool done = hap_disprove(question, answer, error);
    answer->plan->misfit = g_steal_pointer(&answer->misfit);
    return done;
}

/* Refuses a plan that the framework asked for does not run, as exporters do. */
static bool check_target(const Question *question, const Answer *answer, GError **error)
{
    const char *target = planner_options_target(question->options);
    if (!target || planner_can(question->planner, PLANNER_CHOOSES))
        return true; /* it chooses among plans that were checked */
    g_autoptr(GArray) files = plan_export(answer->plan, question->graph,
                                          question->cluster, target, "plan", error);
    if (!files)
        g_prefix_error(error, "for=%s: ", target);
    return files != NULL;
}

/* The time of the plan that any framework may run, beside which the plan is printed. */
static void compare_with_any(const Question *question, Answer *answer)
{
    PlannerOptions any = *question->options;
    const AnswerLimits unbounded = {.unbounded = true};
    if (!planner_can(question->planner, PLANNER_GPUS) &&
        !planner_can(question->planner,
                     PLANNER_CHOOSES)) { /* it did not look at the target */
        if (answer->plan->feasible)
            answer->plan->any_time_s = answer->plan->iteration_time_s;
        return;
    }
    any.target = TARGET_ANY;
    any.certify = 0;
    any.budget_s = answer_seconds_left(answer->deadline_us);
    g_autoptr(Question) other =
        question_open_on(question->planner, question->model, question->graph,
                         question->cluster, &any, NULL);
    g_autoptr(Answer) free =
        other ? question_answer(other, answer->plan->cluster, &unbounded, NULL) : NULL;
    if (!free || !free->plan->feasible)
        return;
    answer->plan->any_time_s =
        fmin(free->plan->iteration_time_s, answer->plan->iteration_time_s);
    g_autoptr(GError) why = NULL;
    g_autoptr(GArray) files = plan_export(free->plan, question->graph,
                                          free->view ? free->view : question->cluster,
                                          answer->plan->target, "plan", &why);
    if (!files && answer->plan->iteration_time_s > 1.0005 * answer->plan->any_time_s)
        answer->plan->any_why = export_reason(why);
}

/* A plan that only names its question. */
static Plan *blank_plan(const Question *question, const char *cluster)
{
    Plan *plan = plan_new();
    plan->model = g_strdup(question->model);
    model_content(question->model, &plan->content, NULL); /* it was read before */
    plan->cluster = g_strdup(cluster);
    plan->granularity = question->cluster->granularity;
    plan->planner = g_strdup(question->planner->name);
    plan->runtime = question->runtime ? g_strdup(question->runtime->name) : NULL;
    plan->seed = question->options->seed;
    plan->version = g_strdup(KILTER_VERSION);
    plan->bucket_bytes = question->options->bucket_bytes;
    plan->target = g_strdup(planner_options_target(question->options));
    if (plan->target && planner_can(question->planner, PLANNER_STRATEGY))
        plan->bucket_bytes = runtime_bucket_bytes(question->runtime, plan->bucket_bytes);
    return plan;
}

Answer *question_answer(const Question *question, const char *cluster,
                        const AnswerLimits *limits, GError **error)
{
    g_autoptr(Answer) answer = g_new0(Answer, 1);
    answer->space = synth_space_new(question->graph, question->pins);
    answer->deadline_us = question->options->budget_s > 0
                              ? g_get_monotonic_time() +
                                    (gint64)(question->options->budget_s * G_USEC_PER_SEC)
                              : 0;
    answer->upper_s = limits && limits->upper_s > 0 ? limits->upper_s : INFINITY;
    answer->unbounded = limits && limits->unbounded;
    answer->brief = limits && limits->brief;
    answer->enough_s = limits ? limits->enough_s : 0;
    answer->beaten = limits ? limits->beaten : NULL;
    answer->plan = blank_plan(question, cluster);
    if (!limits) /* no part of another search, which has said so */
        planner_say_size(question->planner, question->graph, question->cluster);
    if (!make_plan(question, answer, error) || !check_target(question, answer, error))
        return NULL;
    answer->stopped = answer_is_late(answer);
    if (answer->plan->target && !answer->unbounded)
        compare_with_any(question, answer);
    g_assert((answer->plan->lower_bound_s > 0) == (answer->plan->bound_over != NULL));
    return g_steal_pointer(&answer);
}

Plan *planner_plan(const Planner *method, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error)
{
    if (planner_can(method, PLANNER_CHOOSES))
        return refused(
            error,
            "%s chooses the machines: expected a planner that keeps the given ones",
            method->name);
    g_autoptr(Question) question = question_open(method, model, view, options, error);
    g_autoptr(Answer) answer =
        question ? question_answer(question, cluster_name, NULL, error) : NULL;
    if (answer && graph)
        *graph = question_graph(question);
    return answer ? answer_take_plan(answer) : NULL;
}
