/* What the stages of a strategy cost, layer by layer (private to synth). */
#ifndef KILTER_SYNTH_AMP_COST_H
#define KILTER_SYNTH_AMP_COST_H

#include "synth/amp/amp.h"

/* Rows [stage * n_layers + layer] of the assignment problem of given degrees, micro-batches and
 * devices, the worst of the replicas; `first` of the strategy is not read. */
typedef struct {
    AmpAssignment problem; /* points to the rows below */
    double *time, *transfer, *sync, *memory, *capacity;
    double fixed_s; /* latencies, which no cut changes */
    uint32_t chunks;
} AmpRows;

AmpRows *amp_rows_new(const AmpModel *model, const AmpCluster *cluster,
                      const AmpOptions *options, const AmpStrategy *strategy);
void amp_rows_free(AmpRows *rows);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AmpRows, amp_rows_free)

/* Of cuts [n_stages + 1]. */
AmpCost amp_rows_cost(const AmpRows *rows, const uint32_t *first);

/* Stages of each device. */
uint32_t amp_chunks(const AmpOptions *options);

/* Index of a degree that the model has. */
uint32_t amp_degree(const AmpModel *model, uint32_t tmp);

AmpStrategy amp_strategy_new(uint32_t pp, uint32_t dp, uint32_t tmp, uint32_t mbs,
                             uint32_t chunks);
AmpStrategy amp_strategy_copy(const AmpStrategy *strategy);
void amp_strategy_clear(AmpStrategy *strategy);

#endif
