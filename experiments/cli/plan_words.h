/* What commands print of a plan beside its times: the strategy in words, throughput, memory by
 * category; and the same as JSON. */
#ifndef KILTER_EXPERIMENTS_CLI_PLAN_WORDS_H
#define KILTER_EXPERIMENTS_CLI_PLAN_WORDS_H

#include "experiments/cli/command.h"

/* samples_per_s, tokens_per_s, model_flops, model_flops_per_s_per_gpu, mfu, hfu; null where the model
 * has none. */
void plan_words_pace_json(const Evaluation *evaluation, json_t *object);
void plan_words_print_pace(const Evaluation *evaluation);

/* The strategy that made the plan, null where it has none. */
json_t *plan_words_strategy_json(const Plan *plan);
void plan_words_print_strategy(const Evaluation *evaluation);

/* A row for each type of devices (SimMemoryRow). */
GArray *plan_words_memory(const Evaluation *evaluation, GError **error);
json_t *plan_words_memory_json(const Evaluation *evaluation);
void plan_words_print_memory(const Evaluation *evaluation);

#endif
