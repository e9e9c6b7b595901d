/* Trials as rows of the store. */
#include "experiments/scorecard/record.h"

#include <math.h>

#include "experiments/json_values.h"
#include "experiments/sweep/result.h"

static json_t *trial_json(const Trial *t)
{
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:s}",
                  "model", t->model, "device", t->device, "memory_bytes",
                  json_number(t->memory_bytes), "processors", (int)t->processors, "gpus",
                  (int)t->gpus, "machines", (int)t->machines, "pp", (int)t->pp, "dp",
                  (int)t->dp, "tmp", (int)t->tmp, "mbs", (int)t->mbs, "chunks",
                  (int)t->chunks, "recompute", (int)t->recompute, "cuts", t->cuts);
    if (*t->planner)
        json_object_update_new(json, json_pack("{s:s, s:s, s:o}", "planner", t->planner,
                                               "options", t->options, "slowdown",
                                               json_number(t->slowdown)));
    return json;
}

static json_t *costs_json(const Score *score)
{
    json_t *costs = json_object();
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        json_object_set_new(costs, score_parameter((ScoreParameter)p)->text,
                            json_number(score->parameter[p]));
    return costs;
}

static json_t *detail_json(const Trial *t)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:b}", "split",
                     t->calibration ? "calibration" : "test", "contest", t->contest,
                     "measured_s", json_number(t->measured_s), "measured_bytes",
                     json_number(t->measured_bytes), "failed", (int)t->failed);
}

/* The trial with what was measured; on what the costs make it; how. */
static void ask(const TrialSet *set, const Trial *t, const Score *score,
                StoreQuestion *question)
{
    question->subject = question_part(
        json_pack("{s:s, s:s, s:o, s:o}", "model", t->model, "data_set", set->name,
                  "trial", trial_json(t), "measured", detail_json(t)));
    question->cluster = question_part(json_pack("{s:o}", "costs", costs_json(score)));
    question->method =
        question_method(json_pack("{s:s, s:s}", "fidelity", trial_fidelity(t), "planner",
                                  *t->planner ? t->planner : "amp"));
}

static bool record_one(const TrialSet *set, const Score *score, uint32_t i, Store *store,
                       GError **error)
{
    const Trial *t = &g_array_index(set->trial, Trial, i);
    const bool fits = score->detail[i].peak_bytes <= t->memory_bytes;
    g_autofree char *experiment = g_strdup_printf("scorecard:%s", set->name);
    g_autofree char *cluster =
        g_strdup_printf("%u x %u %s", t->machines, t->gpus, t->device);
    g_auto(StoreQuestion) question = {0};
    ask(set, t, score, &question);
    g_autofree char *hash = store_question_hash(&question);
    const char *planner = *t->planner ? t->planner : "amp";
    const StoreAsked asked = {.experiment = experiment,
                              .hash = hash,
                              .model = t->model,
                              .cluster = cluster,
                              .entry = planner,
                              .ordinal = i};
    g_auto(Result) result = {.row = result_blank(&asked, &question)};
    StoreResult *row = &result.row;
    result_take_detail(&result, detail_json(t));
    row->planner = planner;
    row->fidelity = trial_fidelity(t);
    row->granularity = granularity_name(GRANULARITY_GPU);
    row->gpus = t->machines * t->gpus;
    row->status = fits ? "ok" : "oom";
    row->message = fits ? NULL : "more memory than the devices have";
    row->iteration_time_s = score->predicted_s[i];
    row->stages = t->pp * t->chunks;
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
