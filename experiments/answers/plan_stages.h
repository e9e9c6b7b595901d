/* The stages of a pipeline as its program has them, whichever planner made it. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/evaluation.h"

/* A list of {first, last: names of layers, layers, blocks: those with a number, device_ids: in the
 * order of ranks, machines, devices: "8 h100", gpus: "dgx-0, dgx-1:0-3",
 * replicas, context_parallel, tensor_parallel, one_program: whether the devices of a replica run
 * an SPMD program that cuts batches, too, samples: of a microbatch by replica, "4 x 2, 1",
 * recompute: number of its layers that are recomputed, busy_s: computation of its busiest
 * device, pipeline, microbatches: where replicas are pipelines with unlike stages, its number
 * and how many it runs}, in the order of layers, pipeline by pipeline; null unless groups have
 * no device in common. */
json_t *plan_stages_json(const Evaluation *evaluation);

/* Runs of equal numbers: "3 x 6, 7". Caller frees. */
char *plan_stages_runs(const uint32_t *number, uint32_t n);
