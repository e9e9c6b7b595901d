/* Programs of strategies (data/strategy/strategy.h): pipeline stages are device groups, which have
 * replicas; tensor parallelism is Megatron-LM's over the devices of each replica. */
#pragma once

#include "synth/pipeline/pipeline.h"

/* The program of a strategy, as synth_pipelines_briefly has it. KILTER_ERROR_INPUT names the first
 * reason why there is none: a schedule that does not suit the numbers, or a batch or a tensor that
 * cannot be cut in this way. */
Program *synth_strategy_briefly(const Graph *graph, const ClusterView *view,
                                const StrategyPipelines *pipelines, GError **error);

/* The same, whole. */
Program *synth_strategy_pipelines(const Graph *graph, const ClusterView *view,
                                  const StrategyPipelines *pipelines, GError **error);

/* [n_devices]: the ratio of each device, which is its replica's share of its pipeline's part of the
 * microbatches, divided equally over stages and the devices that share layers. The caller frees
 * them. */
double *synth_strategy_pipeline_ratios(const StrategyPipelines *pipelines,
                                       uint32_t n_devices);

/* Numbers with spaces between them, interned; NULL: none. */
const char *synth_strategy_list(const uint32_t *number, uint32_t n);
