/* Trials as rows of the store. */
#include "experiments/scorecard/record.h"

#include <math.h>

#include "data/base/json.h"
#include "experiments/sweep/result.h"

static json_t *trial_json(const Trial *t)
{
    g_autofree char *cluster = cluster_canonical(t->cluster);
    return json_pack("{s:s, s:s, s:s, s:o}", "model", t->model, "planner", t->planner,
                     "options", t->options, "cluster", json_loads(cluster, 0, NULL));
}

/* The fitted values of the trial's devices and links. */
static json_t *costs_json(const Trial *t, const Score *score)
{
    json_t *types = json_object();
    if (!t->start)
        return types;
    g_autofree double *log = fitted_costs_at(&score->costs, t);
    for (uint32_t type = 0; type < t->cluster->n_types; type++) {
        json_t *costs = json_object();
        for (Cost cost = 0; cost < COSTS; cost++)
            json_object_set_new(costs, cost_info(cost)->name,
                                json_number(cost_value(t->cluster, t->start, type, cost,
                                                       log[type * COSTS + cost])));
        json_object_set_new(types, t->cluster->type[type].name, costs);
    }
    return types;
}

static json_t *record_detail_json(const Trial *t)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:b}", "split", trial_split_name(t->split),
                     "contest", t->contest, "measured_s", json_number(t->measured_s),
                     "measured_bytes", json_number(t->measured_bytes), "failed",
                     (int)t->failed);
}

/* Sets the question of a trial: its subject with the measurements, its cluster with the costs, and
 * its method. */
static void ask(const TrialSet *set, const Trial *t, const Score *score,
                StoreQuestion *question)
{
    question->subject = question_part(
        json_pack("{s:s, s:s, s:o, s:o}", "model", t->model, "data_set", set->name,
                  "trial", trial_json(t), "measured", record_detail_json(t)));
    question->cluster = question_part(json_pack("{s:o}", "costs", costs_json(t, score)));
    question->method = question_method(
        json_pack("{s:s, s:s}", "fidelity", trial_fidelity(t), "planner", t->planner));
}

static bool record_one(const TrialSet *set, const Score *score, uint32_t i, Store *store,
                       GError **error)
{
    const Trial *t = &g_array_index(set->trial, Trial, i);
    const bool fits = score->detail[i].peak_bytes <= trial_memory_bytes(t);
    g_autofree char *experiment = g_strdup_printf("scorecard:%s", set->name);
    g_autofree char *cluster =
        g_strdup_printf("%u x %u %s", t->cluster->n_machines, t->cluster->machine[0].gpus,
                        t->cluster->type[0].name);
    g_auto(StoreQuestion) question = {0};
    ask(set, t, score, &question);
    g_autofree char *hash = store_question_hash(&question);
    const StoreAsked asked = {.experiment = experiment,
                              .hash = hash,
                              .model = t->model,
                              .cluster = cluster,
                              .entry = t->planner,
                              .ordinal = i};
    g_auto(Result) result = {.row = result_blank(&asked, &question)};
    StoreResult *row = &result.row;
    result_take_detail(&result, record_detail_json(t));
    row->planner = t->planner;
    row->fidelity = trial_fidelity(t);
    row->granularity = granularity_name(GRANULARITY_GPU);
    row->gpus = trial_gpus(t);
    row->status = fits ? "ok" : "oom";
    row->message = fits ? NULL : "more memory than the devices have";
    row->iteration_time_s = score->predicted_s[i];
    row->peak_memory_bytes = (uint64_t)score->detail[i].peak_bytes;
    return store_put(store, row, error);
}

bool score_record(const TrialSet *set, const Score *score, Store *store, GError **error)
{
    bool good = true;
    for (uint32_t i = 0; good && i < set->trial->len; i++)
        if (isfinite(score->predicted_s[i]))
            good = record_one(set, score, i, store, error);
    return good;
}
