/* A configuration: everything that one result depends on, checked before any work is done.
 *
 * What it asks is a StoreQuestion, whose SHA-256 is the identity of its result (experiments/sweep/result.h):
 * equal configurations are evaluated once, and a file that was edited makes another configuration. */
#ifndef KILTER_EXPERIMENTS_SWEEP_CONFIGURATION_H
#define KILTER_EXPERIMENTS_SWEEP_CONFIGURATION_H

#include "experiments/planners/planner.h"
#include "experiments/sweep/evaluation.h"
#include "experiments/sweep/subject.h"
#include "sim/sim.h"

/* A collective alone: the first device has `share` of the sharded dim, the others share the rest
 * alike. */
typedef struct {
    Collective kind;
    double bytes; /* of the whole tensor */
    double share;
} Exchange;

typedef struct {
    char *model;            /* as asked for */
    char *canonical_model;  /* with every parameter */
    char *cluster_name;     /* as asked for */
    const Cluster *cluster; /* borrowed */
    Granularity granularity;
    const Planner *planner; /* NULL: no plan of a model but the exchange, priced */
    Exchange exchange;
    /* NULL: the one that plans of its kind are made by (plan_fidelity) */
    const char *fidelity;
    PlannerOptions options;
    Subject *subject; /* borrowed: whose graph its plan is of; NULL: one of its own */
    /* opened by the check, for one plan; NULL: each plan opens it again */
    Planning *planning;
    ClusterView *view; /* the planning's */
    const char
        *impossible; /* why it cannot be, borrowed; NULL: nothing is known against it */
    char *entry, *axes; /* the planner as asked for; further axes, JSON, or NULL */
    uint32_t ordinal;   /* in its experiment's grid, from 1 */
    /* Set by result_identify(), the parts its own. */
    StoreQuestion question;
    char *hash; /* hex; NULL before */
} Configuration;

/* The question: everything that the result depends on. All of it is borrowed. */
typedef struct {
    const char *model, *cluster_name;
    const Cluster *cluster;
    Granularity granularity;
    const Planner *planner;
    const char *fidelity; /* NULL: the one that plans of its kind are made by */
    const PlannerOptions *options;
} ConfigurationAsk;

/* KILTER_ERROR_INPUT on an unknown model, a parameter that does not fit, or an unknown fidelity. */
Configuration *configuration_new(const ConfigurationAsk *ask, GError **error);
/* One of many: nothing is built, and nothing checked that takes a graph or the cluster, before its turn. What is wrong then
 * is the answer. */
Configuration *configuration_of_subject(const char *model, Subject *subject,
                                        const char *cluster_name, const Cluster *cluster,
                                        Granularity granularity, const Planner *planner,
                                        const PlannerOptions *options);
/* "all_gather" of "4 MB", the first device with "0.4" of it. The configuration's model is
 * "all_gather:bytes=4000000,share=0.4". */
Configuration *configuration_of_exchange(const char *kind, const char *bytes,
                                         const char *share, const char *cluster_name,
                                         const Cluster *cluster, Granularity granularity,
                                         GError **error);
/* As an experiment asks it; borrowed. */
StoreAsked configuration_asked(const Configuration *configuration,
                               const char *experiment);
/* Its time by the cost model (sim_collective_s). */
double configuration_exchange_s(const Configuration *configuration);
void configuration_free(Configuration *configuration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Configuration, configuration_free)

/* The fidelity's own name, or NULL with KILTER_ERROR_INPUT that lists the known ones. */
const char *fidelity_find(const char *name, GError **error);
/* machine or gpu, or KILTER_ERROR_INPUT. */
bool granularity_find(const char *name, Granularity *granularity, GError **error);

/* A seed: 0 to 2^63 - 1, what the store and JSON can hold; KILTER_ERROR_INPUT. */
bool seed_parse(const char *text, uint64_t *seed, GError **error);
/* Sets an option from "key=value". */
bool option_assign(PlannerOptions *options, const char *pair, GError **error);
/* Sets all options of a spec. */
bool options_assign(PlannerOptions *options, const Spec *spec, GError **error);

/* Plans and simulates. A plan that does not fit is no error: see report->feasible.
 * KILTER_ERROR_INFEASIBLE when the planner found that none of its plans fits. Safe to call from
 * several threads of a configuration of a subject. */
bool configuration_evaluate(const Configuration *configuration, Evaluation *evaluation,
                            GError **error);

#endif
