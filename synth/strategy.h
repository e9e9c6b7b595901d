/* Programs of strategies (data/strategy/strategy.h): pipeline stages are device groups, replicas
 * theirs, tensor parallelism is Megatron-LM's over the devices of each. */
#ifndef KILTER_SYNTH_STRATEGY_H
#define KILTER_SYNTH_STRATEGY_H

#include "synth/pipeline.h"

/* KILTER_ERROR_INPUT: the first reason why the strategy cannot be; a schedule that does not do these
 * numbers, a batch or a tensor that cannot be cut so. */
Program *synth_strategy_program(const Graph *graph, const ClusterView *view,
                                const StrategyLayout *layout, GError **error);

/* Each device's ratio: its replica's share, equally over stages and the devices that share layers.
 * Caller frees. */
double *synth_strategy_ratios(const StrategyLayout *layout);

#endif
