/* Plans side by side. */
#include "experiments/answers/compare.h"

#include <math.h>

#include "data/base/json.h"
#include "data/base/units.h"
#include "experiments/answers/plan_stages.h"
#include "experiments/answers/plan_words.h"
#include "experiments/calibration/prediction.h"

/* The mean of seconds over the GPUs. */
static double mean(const Evaluation *evaluation, const double *seconds)
{
    const ClusterView *view = evaluation->view;
    double sum = 0, gpus = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        sum += seconds[j] * view->device[j].gpus;
        gpus += view->device[j].gpus;
    }
    return sum / gpus;
}

static json_t *compare_plan_json(const char *file, const Evaluation *evaluation,
                                 const Evaluation *first)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    const Device *slowest = &evaluation->view->device[sim_busiest(report)];
    g_autofree char *machines = cluster_kinds_text(evaluation->view->cluster);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:s, "
        "s:o, s:b}",
        "file", file, "model", plan->model, "machines", machines, "planner",
        plan->planner, "made_by", plan->maker, "granularity",
        granularity_name(plan->granularity), "fidelity", report->fidelity, "gpus",
        (int)cluster_gpus(evaluation->view->cluster), "microbatches",
        (int)plan->program->n_microbatches, "iteration_time_s",
        json_number(report->iteration_time_s), "computation_s",
        json_number(mean(evaluation, report->busy_s)), "exposed_communication_s",
        json_number(mean(evaluation, report->comm_busy_s)), "hidden_communication_s",
        json_number(mean(evaluation, report->hidden_s)), "idle_s",
        json_number(fmax(mean(evaluation, report->idle_s), 0)), "busiest",
        slowest->type_name, "busiest_s", json_number(report->busy_s[sim_busiest(report)]),
        "feasible", (int)report->feasible);
    plan_words_room_json(report, evaluation->view, object);
    plan_words_pace_json(evaluation, object);
    json_object_set_new(object, "pipeline", plan_stages_json(evaluation));
    json_object_set_new(object, "faster_than_first",
                        evaluation == first
                            ? json_null()
                            : prediction_faster_json(
                                  evaluation->view, evaluation->report->iteration_time_s,
                                  first->view, first->report->iteration_time_s));
    return object;
}

/* The keys of the plans' settings (not their costs) that differ between plans. */
static json_t *differences(const json_t *plans)
{
    static const char *const key[] = {"model",       "machines",     "planner",
                                      "granularity", "microbatches", "pipeline"};
    json_t *list = json_array();
    for (uint32_t k = 0; k < G_N_ELEMENTS(key); k++) {
        bool same = true;
        for (size_t i = 1; i < json_array_size(plans); i++)
            same &= json_equal(json_object_get(json_array_get(plans, i), key[k]),
                               json_object_get(json_array_get(plans, 0), key[k]));
        if (!same)
            json_array_append_new(list, json_string(key[k]));
    }
    return list;
}

static double compare_time_at(const json_t *plans, size_t i)
{
    return json_number_value(
        json_object_get(json_array_get(plans, i), "iteration_time_s"));
}

/* Says how much faster the fastest plan is than the slowest, and where it gains. Caller frees. */
static char *compare_verdict(const json_t *plans)
{
    static const char *const part[] = {"computation_s", "exposed_communication_s",
                                       "idle_s"};
    static const char *const name[] = {"computation", "communication", "idle time"};
    size_t fast = 0, slow = 0;
    uint32_t most = 0;
    double gain[G_N_ELEMENTS(part)];
    for (size_t i = 1; i < json_array_size(plans); i++) {
        fast = compare_time_at(plans, i) < compare_time_at(plans, fast) ? i : fast;
        slow = compare_time_at(plans, i) > compare_time_at(plans, slow) ? i : slow;
    }
    const json_t *a = json_array_get(plans, fast), *b = json_array_get(plans, slow);
    if (compare_time_at(plans, fast) == compare_time_at(plans, slow))
        return g_strdup("All take the same time.");
    for (uint32_t k = 0; k < G_N_ELEMENTS(part); k++) {
        gain[k] = json_number_value(json_object_get(b, part[k])) -
                  json_number_value(json_object_get(a, part[k]));
        most = gain[k] > gain[most] ? k : most;
    }
    g_autofree char *saved = units_format(gain[most], QUANTITY_TIME);
    return g_strdup_printf(
        "%s is %.1f %% faster than %s; most of it, %s of an average GPU, is %s.",
        json_string_value(json_object_get(a, "file")),
        100 * (compare_time_at(plans, slow) / compare_time_at(plans, fast) - 1),
        json_string_value(json_object_get(b, "file")), saved, name[most]);
}

json_t *compare_json(char *const *file, const Evaluation *evaluation, uint32_t n)
{
    json_t *plans = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(plans,
                              compare_plan_json(file[i], &evaluation[i], &evaluation[0]));
    g_autofree char *words = compare_verdict(plans);
    return json_pack("{s:o, s:o, s:s}", "plans", plans, "differs", differences(plans),
                     "verdict", words);
}
