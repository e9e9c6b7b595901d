/* From a strategy of AMP's to its program. */
#include "synth/amp/amp.h"
#include "synth/pipeline/strategy.h"

Program *synth_amp_program(const Graph *graph, const ClusterView *view,
                           const AmpOptions *options, const AmpStrategy *strategy,
                           GError **error)
{
    g_auto(StrategyLayout) layout = {
        .pp = strategy->pp,
        .dp = strategy->dp,
        .cp = 1,
        .tp = strategy->tmp,
        .n_stages = strategy->pp * strategy->chunks,
        .n_microbatches = graph_batch(graph) / strategy->dp / strategy->mbs,
        .schedule = options->schedule,
        .first = g_memdup2(strategy->first, (strategy->pp * strategy->chunks + 1) *
                                                sizeof *strategy->first),
        .device =
            g_memdup2(strategy->device, (size_t)strategy->pp * strategy->dp *
                                            strategy->tmp * sizeof *strategy->device),
    };
    const Strategy techniques = {.recompute = options->recompute};
    return strategy_layer_modes(&techniques, graph, layout.n_stages, layout.first,
                                &layout.recompute, error)
               ? synth_strategy_briefly(graph, view, &(StrategyPipelines){1, &layout},
                                        error)
               : NULL;
}
