/* Techniques that planners leave to the user, searched by auto and advise (private to synth). */
#pragma once

#include "synth/auto/portfolio.h"

/* When a set of techniques is tried: where the planner's own plan on these machines is not far
 * from the best plan or does not fit, and before that plan where a first one is wanted soon, only
 * where it is not far or does not fit, only where it does not fit, or only where the framework that
 * is asked for refuses it. There all are tried. */
typedef enum {
    TECHNIQUE_EARLY,
    TECHNIQUE_NEAR,
    TECHNIQUE_MISFIT,
    TECHNIQUE_REFUSED
} TechniqueWhen;

/* Whether there is what some techniques need: attention in the graph, such that keeps scores or
 * such that keeps none; experts; hosts whose memory and links are known in all machines. */
typedef struct {
    bool attention, scores, fused, experts, hosts;
} TechniqueNeeds;

/* The next set of techniques for a planner beside what the options ask for, as words for --set;
 * *row, 0 at first, is where to go on; NULL: there is none. */
const char *technique_next(const Planner *planner, TechniqueNeeds has,
                           const PlannerOptions *options, uint32_t *row);
/* Those of the graph. */
TechniqueNeeds technique_needs(const Graph *graph);
/* Whether all machines say what their hosts have. */
bool technique_has_hosts(const Cluster *cluster);
TechniqueWhen technique_when(const char *set);

/* Changes options by a set. */
void technique_apply(const char *set, PlannerOptions *options);

/* A sentence on what each technique of the best plan brings; NULL if it has none. Caller frees. */
char *technique_words(const PortfolioChoice *choice);
