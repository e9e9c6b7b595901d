/* The questions of calculators: how large a batch, a sequence or another number of a model may be,
 * or how few GPUs are enough. */
#pragma once

#include "experiments/cli/command.h"

/* Finds the largest `key` with which MODEL fits CLUSTER by the same planner, by doubling and
 * halving: a parameter of the model that is a count (batch, global_batch, layers, ...), seq in
 * steps of 128, or micro_batch, with which the batch grows so that the number of microbatches
 * stays. "gpus": the fewest GPUs, from one of the first machine up to all machines. *evaluation: of
 * that plan; *found: {"key", "value", "beyond", "missing_bytes"}: the next value that was tried and
 * does not fit (null: none). KILTER_ERROR_INPUT names the key; KILTER_ERROR_INFEASIBLE if no value
 * fits. */
bool memory_most(const CommandPlanning *how, char **argv, const char *key,
                 const CommandOptions *options, Evaluation *evaluation, json_t **found,
                 GError **error);
