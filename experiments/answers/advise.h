/* Advice: every planner on every choice of a cluster's machines, and what each gains and costs. */
#pragma once

#include <jansson.h>

#include "experiments/answers/advise_cost.h"

/* The limits and prices of a question, and the words of its command, from which come the commands
 * that make the plans. All are borrowed. */
typedef struct {
    const AdvisePrices *prices;
    double target_s; /* of the training, or without tokens an iteration; INFINITY: none */
    double tokens_per_s; /* at least; 0: none */
    double tokens;       /* of a whole training; 0: not asked */
    bool all;            /* every planner's time */
    uint32_t top;     /* the fastest choices alone, with what runs their plans; 0: all */
    const char *plot; /* the folder of the figure; NULL: none */
    const char *cluster;        /* as it was named */
    char *const *const *change; /* [CHANGES] texts of changes; NULL: none */
    char *const *set;           /* KEY=VALUE texts; NULL: none */
    const char *seed;           /* NULL: not given */
    const char *effort;         /* NULL: `set` has the key `work` */
    /* Called before each try, from any thread but never by two at once; may be NULL. */
    void (*progress)(void *context, uint32_t done, uint32_t total, const char *what);
    void *context;
} AdviseAsked;

/* The answer, with the members of data/schemas/advise.json, and the figure. The cluster is changed
 * already. Fails with KILTER_ERROR_INFEASIBLE if no choice keeps the limits, and as portfolio_new
 * does. */
json_t *advise(const char *model, const Cluster *cluster, const PlannerOptions *options,
               const AdviseAsked *asked, GError **error);
