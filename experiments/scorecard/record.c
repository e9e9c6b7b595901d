/* Trials as rows of the store. */
#include "experiments/scorecard/record.h"

#include <math.h>

#include "experiments/json_values.h"

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

static char *config_of(const TrialSet *set, const Trial *trial, const Score *score)
{
    return json_canonical(json_pack("{s:s, s:o, s:o, s:s, s:s}", "data_set", set->name,
                                    "trial", trial_json(trial), "costs",
                                    costs_json(score), "fidelity", trial_fidelity(trial),
                                    "version", KILTER_VERSION));
}

static char *detail_of(const Trial *t)
{
    return json_canonical(json_pack(
        "{s:s, s:s, s:o, s:o, s:b}", "split", t->calibration ? "calibration" : "test",
        "contest", t->contest, "measured_s", json_number(t->measured_s), "measured_bytes",
        json_number(t->measured_bytes), "failed", (int)t->failed));
}

static bool record_one(const TrialSet *set, const Score *score, uint32_t i, Store *store,
                       GError **error)
{
    const Trial *t = &g_array_index(set->trial, Trial, i);
    const bool fits = score->detail[i].peak_bytes <= t->memory_bytes;
    g_autofree char *config = config_of(set, t, score), *detail = detail_of(t);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, config, -1);
    g_autofree char *experiment = g_strdup_printf("scorecard:%s", set->name);
    g_autofree char *cluster =
        g_strdup_printf("%u x %u %s", t->machines, t->gpus, t->device);
    const StoreResult row = {
        .hash = hash,
        .experiment = experiment,
        .config = config,
        .model = t->model,
        .cluster = cluster,
        .planner = *t->planner ? t->planner : "amp",
        .fidelity = trial_fidelity(t),
        .granularity = granularity_name(GRANULARITY_GPU),
        .gpus = t->machines * t->gpus,
        .status = fits ? "ok" : "oom",
        .message = fits ? NULL : "more memory than the devices have",
        .iteration_time_s = score->predicted_s[i],
        .fractional_time_s = NAN,
        .lower_bound_s = NAN,
        .gap = NAN,
        .stages = t->pp * t->chunks,
        .peak_memory_bytes = (uint64_t)score->detail[i].peak_bytes,
        .communication_s = NAN,
        .computation_s = NAN,
        .search_time_s = NAN,
        .balance_time_s = NAN,
        .detail = detail,
    };
    return store_put(store, &row, error);
}

bool score_record(const TrialSet *set, const Score *score, Store *store, GError **error)
{
    bool good = true;
    for (uint32_t i = 0; good && i < set->trial->len; i++)
        if (isfinite(score->predicted_s[i]))
            good = record_one(set, score, i, store, error);
    return good;
}
