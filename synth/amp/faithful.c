/* The faithful reading of the cost. */
#include <math.h>

#include "synth/amp/costing.h"

/* The least bandwidth between two devices of a group. */
static double group_bandwidth(const AmpCluster *cluster, const uint32_t *device,
                              uint32_t n, uint32_t stride, uint32_t *member)
{
    double least = INFINITY;
    amp_find_machines(cluster, device, n, stride, member);
    for (uint32_t a = 0; a < cluster->n_machines; a++)
        for (uint32_t b = a; b < cluster->n_machines; b++)
            if (member[a] >= (a == b ? 2u : 1u) && member[b])
                least =
                    fmin(least, cluster->bandwidth[(size_t)a * cluster->n_machines + b]);
    return least;
}

/* A layer's time, averaged over all devices of the cluster and in proportion to the samples. */
static double average_time(const AmpCosting *c, uint32_t l)
{
    const double sum =
        sum_over(double, type, c->model->n_types,
                 c->part[type] > 0
                     ? c->part[type] * synth_amp_times(c->model, type, c->degree, 0)[l]
                     : 0);
    return sum * c->s->mbs / c->model->size[0];
}

/* The seconds that the slowest replica's links take per byte shared in a layer, and per byte of its
 * output. */
static void faithful_paths(const AmpCosting *c, uint32_t stage, double *exchange,
                           double *transfer)
{
    const bool last = stage + 1 == c->s->pp * c->s->chunks;
    *exchange = *transfer = 0;
    for (uint32_t r = 0; r < c->s->dp; r++) {
        const uint32_t *device = amp_group_at(c, stage, r);
        const double inside =
            group_bandwidth(c->cluster, device, c->s->tmp, 1, c->member);
        *exchange = fmax(*exchange, 1 / inside);
        for (uint32_t t = 0; !last && t < c->s->tmp; t++) {
            const uint32_t pair[2] = {device[t], amp_group_at(c, stage + 1, r)[t]};
            *transfer =
                fmax(*transfer, 1 / group_bandwidth(c->cluster, pair, 2, 1, c->member));
        }
    }
}

/* Seconds per byte of the all-reduce among the replicas of a stage. */
static double faithful_sync(const AmpCosting *c, uint32_t stage)
{
    const double n = c->s->dp;
    double least = INFINITY;
    for (uint32_t t = 0; n > 1 && t < c->s->tmp; t++)
        least = fmin(least, group_bandwidth(c->cluster, amp_group_at(c, stage, 0) + t,
                                            c->s->dp, c->s->tmp, c->member));
    return 2 * (n - 1) / n / least;
}

void amp_fill_faithful(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    const size_t at = (size_t)stage * c->model->n_layers;
    double exchange, transfer;
    faithful_paths(c, stage, &exchange, &transfer);
    const double sync = faithful_sync(c, stage);
    for (uint32_t l = 0; l < c->model->n_layers; l++) {
        rows->time[at + l] =
            average_time(c, l) +
            c->s->mbs * exchange * amp_of_layer(c, c->model->exchange, l);
        rows->transfer[at + l] =
            c->s->mbs * transfer * amp_of_layer(c, c->model->output, l);
        rows->sync[at + l] = sync * amp_of_layer(c, c->model->gradient, l);
    }
}
