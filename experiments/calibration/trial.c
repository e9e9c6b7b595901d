/* Trials. */
#include "experiments/calibration/trial.h"

#include <math.h>

#include "data/base/free.h"
#include "data/base/names.h"
#include "data/cluster/change.h"

NAMES_LIST(trial_split_name, TrialSplit, SPLITS, "fit", "development", "sealed")

CLEAR_DEFINE(trial_clear, Trial, trial,
             free_each(trial->name, trial->group, trial->contest, trial->model,
                       trial->planner, trial->options),
             cluster_free(trial->cluster), g_free(trial->start), *trial = (Trial){0});

Trial trial_copy(const Trial *trial, const char *options)
{
    Trial copy = {
        .name = g_strdup(trial->name),
        .group = g_strdup(trial->group),
        .contest = g_strdup(trial->contest),
        .model = g_strdup(trial->model),
        .planner = g_strdup(trial->planner),
        .options = g_strdup(options),
        .fidelity = trial->fidelity,
        .cluster = cluster_copy(trial->cluster, NULL),
        .start = g_memdup2(trial->start, trial->cluster->n_types * sizeof *trial->start),
        .waits = trial->waits,
        .measured_s = NAN,
        .measured_bytes = NAN,
        .measured_comm_s = NAN,
        .measured_hidden_s = NAN,
        .tokens_per_s = NAN,
        .samples_per_s = NAN};
    g_assert(copy.cluster);
    return copy;
}

bool trial_is_measured(const Trial *trial)
{
    return isfinite(trial->measured_s) || isfinite(trial->tokens_per_s) ||
           isfinite(trial->samples_per_s);
}

bool trial_set_cluster(Trial *trial, Cluster *cluster, const Sheets *sheets)
{
    if (!cluster)
        return false;
    trial->cluster = cluster;
    trial->start = g_new(TypeStart, cluster->n_types);
    for (uint32_t t = 0; t < cluster->n_types; t++)
        trial->start[t] = type_start(sheets, &cluster->type[t]);
    return true;
}

uint32_t trial_slots(const Trial *trial)
{
    return trial->cluster->n_types * COSTS;
}

const char *trial_slot_key(const Trial *trial, uint32_t slot)
{
    return cost_is_of_network((Cost)(slot % COSTS))
               ? trial->cluster->name
               : trial->cluster->type[slot / COSTS].name;
}

uint32_t trial_gpus(const Trial *trial)
{
    return cluster_gpus(trial->cluster);
}

double trial_memory_bytes(const Trial *trial)
{
    return least_over(double, t, trial->cluster->n_types, INFINITY,
                      (double)trial->cluster->type[t].memory_bytes);
}

void trial_judge_memory(const Trial *trial, double peak_bytes, MemoryVerdict *verdict)
{
    const bool alarm = peak_bytes > trial_memory_bytes(trial);
    verdict->failed += trial->failed;
    verdict->fit += !trial->failed;
    verdict->hits += trial->failed && alarm;
    verdict->false_alarms += !trial->failed && alarm;
}
