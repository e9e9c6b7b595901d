/* Trials. */
#include "experiments/calibration/trial.h"

#include <math.h>

const char *trial_split_name(TrialSplit split)
{
    static const char *const name[SPLITS] = {"fit", "development", "sealed"};
    g_assert(split < SPLITS);
    return name[split];
}

void trial_clear(Trial *trial)
{
    g_free(trial->name);
    g_free(trial->group);
    g_free(trial->contest);
    g_free(trial->model);
    g_free(trial->planner);
    g_free(trial->options);
    cluster_free(trial->cluster);
    g_free(trial->start);
    *trial = (Trial){0};
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
    double least = INFINITY;
    for (uint32_t t = 0; t < trial->cluster->n_types; t++)
        least = fmin(least, (double)trial->cluster->type[t].memory_bytes);
    return least;
}
