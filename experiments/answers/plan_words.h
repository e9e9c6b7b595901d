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
/* {name, chunks: stages per device, context_parallel} of a pipeline's strategy; null if there is none. */
json_t *plan_words_schedule_json(const Plan *plan);
/* {of_a_layer, devices: sharing them, 0 if all layers are whole, layers, whole_layers: with all
 * experts on every device}; null without experts. */
json_t *plan_words_experts_json(const Evaluation *evaluation);
/* One row per device type (SimMemoryRow). */
json_t *plan_words_memory_json(const Evaluation *evaluation);
/* The host's memory of the machine that has the least left: {machine, bytes, capacity}; NULL:
 * nothing is offloaded. */
json_t *plan_words_host_json(const Evaluation *evaluation);
/* The peak of the fullest rank of each pipeline stage and device type: {stage, rank, device, type,
 * devices: how many alike, total, capacity, most: the largest category, pass, microbatch, time_s:
 * by flow, peak_at}. */
json_t *plan_words_peaks_json(const Evaluation *evaluation);

/* clang-format off */
#define PLAN_TEXT_PACE                                                                             \
    "[  throughput   {samples_per_s} samples/s[, {tokens_per_s:.0f} tokens/s]"                         \
    "[, {model_flops_per_s_per_gpu:rate} per GPU, MFU {mfu:%}, HFU {hfu:%}"                           \
    "[{?mfu_of=rates} of the cluster's rates]]\n]"                                                 \
    "[  cost         ${dollars_per_million:.3} per million {million_of} (${dollars_per_hour:.4} per hour" \
    "[, ${traffic_dollars:.3} per iteration for traffic between regions]" \
    "[; ${preemptible_per_million:.3} per million where machines may be taken away])\n]" \
    "[  energy       at most {kwh_per_million:.3} kWh per million {million_of} (boards of {power_w:power})\n]"
#define PLAN_TEXT_STRATEGY                                                                         \
    "[  strategy     {layout.stages} pipeline stage{layout.stages:s}, "                            \
    "{layout.replicas} replica{layout.replicas:s}, "                                               \
    "{layout.tensor_parallel}-way tensor parallelism"                                              \
    "[{?layout.context_parallel>1}, {layout.context_parallel}-way context parallelism]\n"           \
    "[  layers       {layout.layers.of_stages} per stage ({layout.layers.count} from "            \
    "{layout.layers.first} to {layout.layers.last})\n]"                                            \
    "  microbatches {layout.microbatches} of {layout.samples:.6g} sample{layout.samples:s} "       \
    "per replica[, {layout.schedule}]\n"                                                             \
    "|  microbatches {strategy.microbatches}[, {schedule.name}]\n]"                                                   \
    "[  recompute    {strategy.recompute}\n]"                                                      \
    "[{?experts}  experts      [{?experts.devices}{experts.of_a_layer} per layer over "          \
    "{experts.devices} devices[{?experts.whole_layers} in some layers, on every device in the "    \
    "others]|all {experts.of_a_layer} per layer on every device]\n]"
#define PLAN_TEXT_MEMORY                                                                           \
    "  memory per GPU             weights   gradients   optimizer activations     buffers     "    \
    "runtime       total\n"                                                                        \
    "[*memory:  [=-22:{type} ({device})] {weights:11bytes} {gradients:11bytes} "                   \
    "{optimizer:11bytes} {activations:11bytes} {buffers:11bytes} {runtime:11bytes} "               \
    "{total:11bytes} of {capacity:bytes}[, {left:bytes} left]\n]"
#define PLAN_TEXT_HOST                                                                             \
    "[{?host}  host memory  {host.bytes:bytes} of {host.capacity:bytes} on machine {host.machine}\n]"
#define PLAN_TEXT_PEAKS                                                                            \
    "[*peaks:  peak [=-20:of stage {stage}] rank {rank:4}: {total:11bytes} in the {pass}"          \
    "[ of microbatch {microbatch}][, at {time_s:time}], most of it {most}\n]"
/* clang-format on */
