/* Members of a page of a plan beside its answer. Private to experiments/report. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/evaluation.h"

/* Adds to an answer (evaluation_json) the members of plots/plan.html that need no timeline: names,
 * the verdict, exports {to, ok, why}, memory of the fullest GPU, machines, what a better cluster
 * would change. `file`: of the plan. */
void plan_facts_add(json_t *answer, const Evaluation *evaluation, const char *file);
/* The same of the timeline of `drawn`, with memory over time: rows, memory_series, limits, links,
 * hops. */
void plan_drawn_add(json_t *answer, const Evaluation *evaluation, const SimReport *drawn);

/* [device]: its stage in the answer's pipeline, or UINT32_MAX; replica[device], unless NULL, gets
 * its replica of that stage. Caller frees. */
uint32_t *plan_facts_stages(const json_t *answer, uint32_t n_devices, uint32_t *replica);

/* Memory of a device from the foot: what is drawn how. */
extern const struct PlanLayer {
    MemoryCategory category;
    const char *name, *color;
} plan_layers[MEMORY_CATEGORIES];
