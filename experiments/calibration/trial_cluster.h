/* A cluster fitted to trials on it: `kilter fit`. */
#pragma once

#include "experiments/calibration/trial_fit.h"

/* The memory that the runtime of a device type holds beside a plan. */
typedef struct {
    const char *type; /* borrowed from the cluster */
    uint32_t n;       /* number of trials that it is known from */
    double bytes;     /* the median of the trials' memory beyond their plans */
} RuntimeMemory;

typedef struct {
    Cluster *cluster;    /* fitted */
    const Cluster *base; /* borrowed */
    /* [base->n_types], for a copy of the base with the rates of `from` */
    TypeStart *start;
    Cluster *from;          /* the base with all costs at their starting values */
    TrialFit fit;           /* of the measured trials, in the file's order */
    GArray *measured;       /* uint32_t: indices of the measured trials */
    RuntimeMemory *runtime; /* [base->n_types] */
    MemoryVerdict memory;
    Agreement peaks; /* of memory, predicted and measured */
} TrialCluster;

/* For each trial the first one that is predicted alike, as repeated measurements are: first[list].
 * Returns the number of different ones, for which a fit takes its time. */
uint32_t trial_list_alike(const GArray *list, uint32_t *first);

/* Fits the base's costs to the trials (of type Trial). Sets measured_s of each trial.
 * KILTER_ERROR_INPUT: a trial that cannot be made, or no measured trial. */
bool trial_cluster_fit(const Cluster *base, GArray *list, uint32_t threads,
                       TrialCluster *fitted, GError **error);
AUTOCLEAR(trial_cluster_clear, TrialCluster)

/* The cost's value on the cluster: `key` names a device type, or the network. NAN where the cluster
 * has no such cost. */
double trial_cluster_value(const TrialCluster *fitted, Cost cost, const char *key,
                           double log);
