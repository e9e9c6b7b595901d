/* What commands say about a plan besides its times, as JSON and as text: throughput, the strategy,
 * memory by category. */
#ifndef KILTER_EXPERIMENTS_CLI_PLAN_WORDS_H
#define KILTER_EXPERIMENTS_CLI_PLAN_WORDS_H

#include "experiments/cli/command.h"

/* samples_per_s, tokens_per_s, model_flops, model_flops_per_s_per_gpu, mfu, hfu, and mfu_of, "peaks" of data sheets or
 * the cluster's "rates"; dollars_per_hour, dollars_per_million, power_w, energy_j (of an iteration), kwh_per_million, and
 * million_of, "tokens" or "samples"; null where the model or the cluster has none. */
void plan_words_pace_json(const Evaluation *evaluation, json_t *object);

/* The strategy that made the plan, null where it has none. */
json_t *plan_words_strategy_json(const Plan *plan);
/* {stages, replicas, tensor_parallel, layers: {of_stages: "3 x 6, 7", count, first, last}, microbatches, samples of
 * one, schedule} of a pipeline that a strategy made, else null. */
json_t *plan_words_layout_json(const Evaluation *evaluation);
/* {of_a_layer, devices that share them, layers, whole_layers with all experts on every device}; null without experts.
 * devices is 0 where all layers are whole. */
json_t *plan_words_experts_json(const Evaluation *evaluation);
/* A row for each type of devices (SimMemoryRow). */
json_t *plan_words_memory_json(const Evaluation *evaluation);

/* Of --help: the words of PLAN_TEXT_PACE. */
#define PLAN_HELP_PACE                                                                             \
    "  MFU     the model's FLOPs, forward and backward once, over what the devices could do in that time\n" \
    "          by the peaks of their data sheets in the model's precision, without sparsity\n"     \
    "  HFU     the same with what is computed again, and what several devices compute alike\n"    \
    "  cost    where all machines of the cluster's file have a price\n"                           \
    "  energy  at most: the boards at full power, without hosts and cooling"

/* clang-format off */
#define PLAN_TEXT_PACE                                                                             \
    "[  throughput   {samples_per_s} samples/s[, {tokens_per_s} tokens/s]"                         \
    "[, {model_flops_per_s_per_gpu:rate} a GPU, MFU {mfu:%}, HFU {hfu:%}"                           \
    "[{?mfu_of=rates} of the cluster's rates]]\n]"                                                 \
    "[  cost         ${dollars_per_million:.3} per million {million_of} (${dollars_per_hour:.4} an hour)\n]" \
    "[  energy       at most {kwh_per_million:.3} kWh per million {million_of} (boards of {power_w:power})\n]"
#define PLAN_TEXT_STRATEGY                                                                         \
    "[  strategy     {layout.stages} pipeline stage{layout.stages:s}, "                            \
    "{layout.replicas} replica{layout.replicas:s}, "                                               \
    "{layout.tensor_parallel}-way tensor parallelism\n"                                            \
    "[  layers       {layout.layers.of_stages} of a stage ({layout.layers.count} from "            \
    "{layout.layers.first} to {layout.layers.last})\n]"                                            \
    "  microbatches {layout.microbatches} of {layout.samples:.6g} sample{layout.samples:s} "       \
    "a replica[, {layout.schedule}]\n"                                                             \
    "|  microbatches {strategy.microbatches}\n]"                                                   \
    "[  recompute    {strategy.recompute}\n]"                                                      \
    "[{?experts}  experts      [{?experts.devices}{experts.of_a_layer} of a layer over "          \
    "{experts.devices} devices[{?experts.whole_layers} in some layers, on every device in the "    \
    "others]|all {experts.of_a_layer} of a layer on every device]\n]"
#define PLAN_TEXT_MEMORY                                                                           \
    "  memory of a GPU            weights   gradients   optimizer activations     buffers     "    \
    "runtime       total\n"                                                                        \
    "[*memory:  [=-22:{type} ({device})] {weights:11bytes} {gradients:11bytes} "                   \
    "{optimizer:11bytes} {activations:11bytes} {buffers:11bytes} {runtime:11bytes} "               \
    "{total:11bytes} of {capacity:bytes}\n]"
/* clang-format on */

#endif
