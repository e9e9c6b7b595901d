/* A trial: an iteration that somebody measured, or would like to.
 *
 * It is a model on a cluster by a planner with its options; the strategies of frameworks are the
 * options of `manual` (data/strategy/strategy.h). The trial does not state what devices and links
 * cost: these costs are fitted to many trials (experiments/calibration/trial_fit.h), starting from
 * the cluster's numbers. */
#pragma once

#include "experiments/calibration/costs.h"

/* The use of a trial: to fit costs to, to compare cost models during development, or only for a
 * last judgement. */
typedef enum { SPLIT_FIT, SPLIT_DEVELOPMENT, SPLIT_SEALED, SPLITS } TrialSplit;
const char *trial_split_name(TrialSplit split);

typedef struct {
    char *name;    /* its name in messages */
    char *group;   /* trials of a group are alike: they are held out together */
    char *contest; /* the trials of one contest are alternatives for the same work */
    char *model, *planner; /* names of kilter models and kilter planners */
    char *options;         /* of the planner: "tp=2,pp=4" */
    /* the fidelity that predicts it, not owned; NULL: trial_fidelity chooses */
    const char *fidelity;
    Cluster *cluster;
    TypeStart *start; /* [cluster->n_types]; NULL: costs are the cluster's, not fitted */
    TrialSplit split;
    /* hosts wait for what they receive, as those of Megatron-LM and DeepSpeed do */
    bool waits;
    bool steady; /* the time of many microbatches may be extrapolated from fewer */
    bool failed; /* it ran out of memory */
    double measured_s, measured_bytes, measured_comm_s,
        measured_hidden_s; /* NAN: not measured */
    /* used where measured_s is NAN; NAN: not measured */
    double tokens_per_s, samples_per_s;
} Trial;

void trial_clear(Trial *trial);

/* A copy of the trial with other options, not measured. */
Trial trial_copy(const Trial *trial, const char *options);

/* Whether its time was measured, or a throughput from which the time follows. */
bool trial_is_measured(const Trial *trial);

/* Takes the cluster; costs start by data sheets (type_start). False if it is NULL. */
bool trial_set_cluster(Trial *trial, Cluster *cluster, const Sheets *sheets);

/* Slots of costs: [type * COSTS + cost]. */
uint32_t trial_slots(const Trial *trial);
/* The key of a slot's fitted cost: the name of the device type, or of the cluster for costs of the
 * network. Borrowed. */
const char *trial_slot_key(const Trial *trial, uint32_t slot);

/* The cluster's number of GPUs; the smallest memory of one of them, without the runtime's part. */
uint32_t trial_gpus(const Trial *trial);
double trial_memory_bytes(const Trial *trial);

/* Whether trials fit their devices' memory, predicted and measured. */
typedef struct {
    uint32_t fit, failed;  /* in the measurements */
    uint32_t hits;         /* failures that were predicted */
    uint32_t false_alarms; /* trials that fit although failure was predicted */
} MemoryVerdict;

/* Counts a trial whose predicted peak is that large. */
void trial_judge_memory(const Trial *trial, double peak_bytes, MemoryVerdict *verdict);
