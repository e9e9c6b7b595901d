/* A cluster by the trials on it: `kilter fit`. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_TRIAL_CLUSTER_H
#define KILTER_EXPERIMENTS_CALIBRATION_TRIAL_CLUSTER_H

#include "experiments/calibration/trial_fit.h"

/* What the runtime holds of a device type beside plans. */
typedef struct {
    const char *type; /* borrowed from the cluster */
    uint32_t n;       /* trials that tell it; 0: none */
    double bytes;     /* the median of what they have more than their plans */
} RuntimeMemory;

/* Peaks of trials, predicted and in fact. */
typedef struct {
    uint32_t fit, failed, hits,
        false_alarms; /* failed: in fact; hits: found; false_alarms: fit */
    Agreement peaks;
} TrialMemory;

typedef struct {
    Cluster *cluster;    /* fitted */
    const Cluster *base; /* borrowed */
    TypeStart *start; /* [base->n_types], of a copy of the base whose rates are `from` */
    Cluster *from;    /* the base at where costs start */
    TrialFit fit;     /* of the measured trials, in the file's order */
    GArray *measured; /* uint32_t: which ones these are */
    RuntimeMemory *runtime; /* [base->n_types] */
    TrialMemory memory;
} TrialCluster;

/* Fits the base's costs to the trials (of type Trial). Sets their measured_s. KILTER_ERROR_INPUT: a trial that cannot be
 * made, or none that was measured. */
bool trial_cluster_fit(const Cluster *base, GArray *list, uint32_t threads,
                       TrialCluster *fitted, GError **error);
void trial_cluster_clear(TrialCluster *fitted);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TrialCluster, trial_cluster_clear)

/* The cost's value on the cluster: of a device type, or of the network. NAN where the cluster has no such one. */
double trial_cluster_value(const TrialCluster *fitted, Cost cost, const char *key,
                           double log);

#endif
