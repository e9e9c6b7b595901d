/* The costs of a strategy's stages, layer by layer (private to synth). */
#pragma once

#include "synth/amp/layers.h"

/* The rows that follow from a strategy's degrees, micro-batches and devices, whatever its cuts. The
 * faithful reading needs only the rows, the default reading all members. */
typedef struct {
    /* rows [stage * n_layers + layer] of the worst replica */
    AmpAssignment problem; /* points to the rows below */
    double *time, *transfer, *sync, *memory, *capacity;
    uint32_t chunks, dp, n_microbatches;
    const AmpOptions *options;
    const AmpSteps *steps;
    /* for each replica, [group * dp + replica]: */
    const AmpDelay **delay; /* [pass * n_layers + layer], borrowed */
    const AmpDelay **last;  /* likewise, with gradients all-reduced on the way */
    /* the modes of recomputation beside none, and for each of them what it runs again */
    uint32_t n_modes;
    const AmpAgain **mode;
    uint8_t *mode_at; /* [stage * n_layers + layer]: its mode, from 1; 0: none */
    /* [(mode * groups + group) * dp + replica]: [part * n_layers + layer], by AmpWhen */
    const AmpDelay **again;
    double *launch_s; /* launch time of a transfer */
    /* [stage * n_layers + layer]: seconds of updates on hosts and of copies, and bytes of all its
     * devices there; NULL: on devices. And the bytes that hosts have */
    double *offload_s, *host, host_bytes;
    /* [(stage * dp + replica) * n_layers + layer]: seconds of the layer's message to the next
     * stage, and of the message that comes back */
    double *send_s, *return_s;
    /* [group * n_groups + group]: whether their all-reduces share a machine's port */
    bool *meet;
} AmpRows;

/* Whether devices [n] can take the place of others: all costs are the same. */
bool amp_is_same(const AmpCluster *cluster, uint32_t n, const uint32_t *device,
                 const uint32_t *other);

/* `layers` (NULL in the faithful reading) must outlive the rows. fits: whether some cuts must keep
 * the memory of all stages, or the result is NULL. */
AmpRows *amp_rows_new(const AmpModel *model, const AmpCluster *cluster,
                      const AmpOptions *options, AmpLayers *layers,
                      const AmpStrategy *strategy, bool fits);
AUTOPTR(amp_rows_free, AmpRows)

/* The delay of a part of what a layer runs again on a stage's devices; NULL: nothing. */
static inline const AmpDelay *amp_again_of(const AmpRows *rows, uint32_t stage,
                                           uint32_t replica, uint32_t layer, AmpWhen part)
{
    const uint32_t groups = rows->problem.n_stages / rows->chunks,
                   mode = rows->mode_at[(size_t)stage * rows->problem.n_layers + layer];
    return mode ? &rows->again[((mode - 1) * groups + stage % groups) * rows->dp +
                               replica][part * rows->problem.n_layers + layer]
                : NULL;
}

/* Seconds of an iteration, by its schedule. */
double amp_rows_walk(const AmpRows *rows, const uint32_t *first);

/* The cost of a strategy with the cuts first [n_stages + 1]. */
AmpCost amp_rows_cost(const AmpRows *rows, const uint32_t *first);

/* The number of stages per device. */
uint32_t amp_chunks(const AmpOptions *options);

/* The index of a degree, which the model must have. */
uint32_t amp_degree(const AmpModel *model, uint32_t tmp);

AmpStrategy amp_strategy_new(const AmpDegrees *degrees, uint32_t chunks);
void amp_strategy_clear(AmpStrategy *strategy);
