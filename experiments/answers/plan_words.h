/* The facts about a plan beside its times, as JSON and as text: throughput, strategy, memory by
 * category. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/evaluation.h"

/* samples_per_s, tokens_per_s, model_flops, model_flops_per_s_per_gpu, mfu, hfu, and mfu_of,
 * "peaks" of data sheets or the cluster's "rates"; dollars_per_hour, dollars_per_million, power_w,
 * energy_j (of an iteration), kwh_per_million, and million_of, "tokens" or "samples"; null where
 * the model or the cluster has none. */
void plan_words_pace_json(const Evaluation *evaluation, json_t *object);

/* The strategy that made the plan; null if there is none. */
json_t *plan_words_strategy_json(const Plan *plan);
/* {stages, replicas, tensor_parallel, layers: {of_stages: "3 x 6, 7", count, first, last},
 * microbatches, samples of each, schedule} of a pipeline made by a strategy, else null. */
json_t *plan_words_layout_json(const Evaluation *evaluation);
/* {name, chunks: stages per device, context_parallel} of a pipeline's strategy; null if there is
 * none. */
json_t *plan_words_schedule_json(const Plan *plan);
/* {of_a_layer, devices: sharing them, 0 if all layers are whole, layers, whole_layers: with all
 * experts on every device}; null without experts. */
json_t *plan_words_experts_json(const Evaluation *evaluation);
/* One row per device type (SimMemoryRow). */
json_t *plan_words_memory_json(const Evaluation *evaluation);
/* Sets memory_bytes, the most of a GPU, and memory_left, the least that one has left. */
void plan_words_room_json(const SimReport *report, const ClusterView *view,
                          json_t *object);
/* The host's memory of the machine that has the least left: {machine, bytes, capacity}; NULL:
 * nothing is offloaded. */
json_t *plan_words_host_json(const Evaluation *evaluation);
/* The peak of the fullest rank of each pipeline stage and device type: {stage, rank, device, type,
 * devices: how many alike, total, capacity, most: the largest category, pass, microbatch, time_s:
 * by flow, peak_at}. */
json_t *plan_words_peaks_json(const Evaluation *evaluation);
