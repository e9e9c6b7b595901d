/* A configuration: everything that one result depends on, checked before any work is done.
 *
 * A configuration asks a StoreQuestion, whose SHA-256 identifies its result
 * (experiments/sweep/result.h): equal configurations are evaluated once, and an edited file makes a
 * new configuration. */
#pragma once

#include "data/base/names.h"
#include "data/store/question.h"
#include "experiments/sweep/evaluation.h"
#include "experiments/sweep/subject.h"
#include "sim/sim.h"
#include "synth/planners/planner.h"

typedef struct Store Store; /* data/store/store.h */

/* A collective alone: the first device has `share` of the sharded dimension, the others equal parts
 * of the rest. */
typedef struct {
    Collective kind;
    double bytes; /* of the whole tensor */
    double share;
} Exchange;

/* The entries of the grid for which a configuration of a column stands; borrowed. */
typedef struct {
    const char *model, *cluster, *planner;
} ConfigurationRole;

/* Texts and options of a configuration of no grid; those of a grid borrow them, as its points are
 * many. */
typedef struct {
    char *model, *canonical_model, *cluster_name;
    PlannerOptions options;
} ConfigurationOwn;

typedef struct Configuration Configuration;
struct Configuration {
    ConfigurationOwn *own;       /* NULL: of a grid */
    const char *model;           /* as asked for */
    const char *canonical_model; /* with every parameter */
    const char *cluster_name;    /* as asked for */
    const Cluster *cluster;      /* borrowed */
    Granularity granularity;
    const Planner *planner; /* NULL: the exchange is priced, no model is planned */
    Exchange exchange;
    /* NULL: the default of the plan's kind (plan_fidelity) */
    const char *fidelity;
    const PlannerOptions *options; /* all but the seed */
    uint64_t seed;
    /* borrowed: shares its graph; NULL: the graph is the configuration's own */
    Subject *subject;
    Question *opened;  /* by the check; NULL: each plan opens a new one */
    ClusterView *view; /* its view */
    /* why the configuration is impossible, borrowed; NULL: no reason is known */
    const char *impossible;
    const char *entry; /* the planner as asked for, borrowed; NULL: of no grid */
    char *axes;        /* the further axes as JSON, or NULL */
    uint32_t ordinal;  /* in its experiment's grid, from 1 */
    /* The next point of the grid that asks the same question, which is answered once. */
    const Configuration *twin;
    bool is_twin;           /* an earlier point asks the same */
    ConfigurationRole role; /* NULL members: of no grid */
    /* Set by result_identify(); the configuration owns the parts. */
    StoreQuestion question;
    char *hash; /* hex; NULL before result_identify() */
};

/* The question: everything that the result depends on. All of it is borrowed. */
typedef struct {
    const char *model, *cluster_name;
    const Cluster *cluster;
    Granularity granularity;
    const Planner *planner;
    const char *fidelity; /* NULL: the default of the plan's kind */
    const PlannerOptions *options;
} ConfigurationAsk;

/* KILTER_ERROR_INPUT on an unknown model, a parameter that does not fit, or an unknown fidelity. */
Configuration *configuration_new(const ConfigurationAsk *ask, GError **error);
/* A configuration of a sweep, which borrows its texts and options: before its turn nothing is
 * built, and only checks that need neither graph nor cluster are made. An error found later becomes
 * its result. */
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
/* The number of points of the grid that ask the question of this one, the first of them. */
uint32_t configuration_points(const Configuration *first);
/* Records an answer that the store has for the points of the grid that ask the same; in a
 * transaction of its own unless there is one. */
bool configuration_record_twins(const Configuration *first, Store *store,
                                const char *experiment, GError **error);
/* The question as the experiment asks it; borrowed. */
StoreAsked configuration_asked(const Configuration *configuration,
                               const char *experiment);
/* Its time by the cost model (sim_collective_s). */
double configuration_exchange_s(const Configuration *configuration);
AUTOPTR(configuration_free, Configuration)

/* machine or gpu, or KILTER_ERROR_INPUT. */
bool granularity_find(const char *name, Granularity *granularity, GError **error);

/* A seed: 0 to 2^63 - 1, what the store and JSON can hold; KILTER_ERROR_INPUT. */
bool seed_parse(const char *text, uint64_t *seed, GError **error);
/* Sets an option from "key=value". */
bool option_assign(PlannerOptions *options, const char *pair, GError **error);
/* Sets all options of a spec. */
bool options_assign(PlannerOptions *options, const Spec *spec, GError **error);

/* Plans and simulates. A plan that does not fit the memory is no error: see report->feasible.
 * KILTER_ERROR_INFEASIBLE when the planner found that none of its plans fits. Several threads may
 * call it for configurations of one subject. */
bool configuration_evaluate(const Configuration *configuration, Evaluation *evaluation,
                            GError **error);
