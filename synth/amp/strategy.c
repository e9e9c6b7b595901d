/* Strategies: what they hold, whether degrees fit a model and a cluster, and their programs. */
#include "synth/pipeline/strategy.h"
#include "data/base/free.h"
#include "synth/amp/cost.h"

AmpStrategy amp_strategy_new(const AmpDegrees *d, uint32_t chunks)
{
    g_assert(d->pp > 0 && d->dp > 0 && d->tmp > 0 && chunks > 0);
    return (AmpStrategy){.pp = d->pp,
                         .dp = d->dp,
                         .tmp = d->tmp,
                         .mbs = d->mbs,
                         .chunks = chunks,
                         .first = g_new0(uint32_t, d->pp * chunks + 1),
                         .device = g_new0(uint32_t, (size_t)d->pp * d->dp * d->tmp)};
}

CLEAR_DEFINE(amp_strategy_clear, AmpStrategy, strategy,
             free_each(strategy->first, strategy->device));

uint32_t amp_chunks(const AmpOptions *options)
{
    return options->schedule == SCHEDULE_INTERLEAVED ? MAX(options->chunks, 1) : 1;
}

/* n_degrees if the model does not have the degree. */
static uint32_t find_degree(const AmpModel *model, uint32_t tmp)
{
    uint32_t g = 0;
    while (g < model->n_degrees && model->degree[g] != tmp)
        g++;
    return g;
}

uint32_t amp_degree(const AmpModel *model, uint32_t tmp)
{
    const uint32_t g = find_degree(model, tmp);
    g_assert(g < model->n_degrees);
    return g;
}

bool synth_amp_check(const AmpModel *model, const AmpCluster *cluster,
                     const AmpOptions *options, const AmpDegrees *degrees, GError **error)
{
    const uint32_t pp = degrees->pp, dp = degrees->dp, tmp = degrees->tmp,
                   mbs = degrees->mbs;
    const uint32_t stages = pp * amp_chunks(options);
    if ((uint64_t)pp * dp * tmp != cluster->n_devices)
        return refuse(error,
                      "degrees pp=%u, dp=%u, tmp=%u: expected a product of %u, the "
                      "cluster's GPUs",
                      pp, dp, tmp, cluster->n_devices);
    if (stages > model->n_layers)
        return refuse(error,
                      "pp=%u, %u stages: expected at most as many as the model has "
                      "layers, %u",
                      pp, stages, model->n_layers);
    if (options->schedule == SCHEDULE_INTERLEAVED && pp == 1)
        return refuse(error, "pp=1: expected at least 2 for an interleaved schedule");
    if (find_degree(model, tmp) == model->n_degrees)
        return refuse(error, "tmp=%u: expected a degree that the profile has times for",
                      tmp);
    if (model->global_batch % dp != 0)
        return refuse(error, "dp=%u: expected a divisor of the global batch, %u", dp,
                      model->global_batch);
    if (mbs == 0 || model->global_batch / dp % mbs != 0)
        return refuse(error, "mbs=%u: expected a divisor of a replica's batch, %u", mbs,
                      model->global_batch / dp);
    const uint32_t gas = model->global_batch / dp / mbs;
    if (options->schedule == SCHEDULE_INTERLEAVED && gas % pp != 0)
        return refuse(error,
                      "mbs=%u: expected a multiple of %u micro-batches for an "
                      "interleaved schedule, got %u",
                      mbs, pp, gas);
    return true;
}

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
