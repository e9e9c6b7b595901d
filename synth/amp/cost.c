/* The rows of a strategy's costs, and the time that follows from them. */
#include <math.h>

#include "synth/amp/costing.h"

/* How many microbatches a stage of the p-th group keeps until their backward (synth/pipeline/pipeline.h);
 * with chunks the average over the group's stages. */
static uint32_t kept_microbatches(const AmpCosting *c, uint32_t p)
{
    KILTER_ASSERT(p < c->s->pp);
    const uint32_t pp = c->s->pp, chunks = c->s->chunks;
    if (c->options->schedule == SCHEDULE_GPIPE)
        return c->gas;
    const uint32_t ahead =
        chunks == 1 ? pp - p : 2 * (pp - 1 - p) + (chunks - 1) * pp + 1;
    return MIN(c->gas, (ahead + chunks - 1) / chunks);
}

/* Bytes of a layer at rest: replicas divide the states first, then gradients, then parameters. */
static double amp_held_bytes(const AmpCosting *c, uint32_t l)
{
    const AmpModel *model = c->model;
    const uint32_t zero = c->options->zero,
                   ranks = c->options->zero_ranks ? c->options->zero_ranks : c->s->dp;
    const double held = amp_of_layer(c, model->held, l),
                 states = amp_of_layer(c, model->states, l),
                 gradient = amp_of_layer(c, model->gradient, l),
                 divided = zero > 2   ? held
                           : zero > 1 ? states + gradient
                           : zero > 0 ? states
                                      : 0;
    return held - divided + divided / MIN(ranks, c->s->dp);
}

/* Bytes of a layer that a microbatch's sample keeps until its backward. */
static double amp_kept_bytes(const AmpCosting *c, uint32_t l, Recompute mode)
{
    const AmpModel *model = c->model;
    const double all = amp_of_layer(c, model->activation, l);
    switch (mode) {
    case RECOMPUTE_FULL:
        return l > 0 && model->steps ? fmin(all, model->steps->sent[l - 1])
               : model->steps        ? 0
                                     : all;
    case RECOMPUTE_SELECTIVE:
        return all - amp_of_layer(c, model->inner, l);
    default:
        return all;
    }
}

/* A layer that is computed again has all of its activations for one microbatch. */
static void fill_memory(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    const AmpModel *model = c->model;
    const uint32_t kept = kept_microbatches(c, stage % c->s->pp);
    const Recompute mode = amp_recompute(c->options);
    double again = 0;
    rows->capacity[stage] = INFINITY;
    for (uint32_t i = 0; i < c->s->dp * c->s->tmp; i++)
        rows->capacity[stage] =
            fmin(rows->capacity[stage], c->cluster->memory[amp_group_at(c, stage, 0)[i]]);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const double bytes = amp_kept_bytes(c, l, mode);
        again = fmax(again, amp_of_layer(c, model->activation, l) - bytes);
        rows->memory[(size_t)stage * model->n_layers + l] =
            amp_held_bytes(c, l) + (double)kept * c->s->mbs * bytes;
    }
    rows->capacity[stage] = fmax(0, rows->capacity[stage] - c->s->mbs * again);
}

/* The part of a link's forward and backward traffic that keeps one direction busy. */
static const double ONE_WAY = 0.5;

static AmpRows *rows_new(const AmpCosting *c)
{
    g_assert(c->model->n_layers > 0);
    const AmpStrategy *s = c->s;
    const uint32_t n_stages = s->pp * s->chunks, n_layers = c->model->n_layers;
    const size_t n = (size_t)n_stages * n_layers;
    AmpRows *rows = g_new(AmpRows, 1);
    *rows = (AmpRows){.time = g_new0(double, n),
                      .transfer = g_new0(double, n),
                      .sync = g_new0(double, n),
                      .memory = g_new0(double, n),
                      .capacity = g_new0(double, n_stages),
                      .chunks = s->chunks,
                      .dp = s->dp,
                      .n_microbatches = c->gas,
                      .options = c->options,
                      .steps = c->model->steps};
    rows->problem = (AmpAssignment){.n_layers = n_layers,
                                    .n_stages = n_stages,
                                    .repeats = (double)(c->gas - 1) * s->chunks,
                                    .link = c->options->faithful ? 0 : ONE_WAY,
                                    .time = rows->time,
                                    .transfer = rows->transfer,
                                    .sync = c->options->faithful ? NULL : rows->sync,
                                    .memory = rows->memory,
                                    .capacity = rows->capacity};
    if (c->options->faithful)
        return rows;
    rows->delay = g_new0(const AmpDelay *, s->pp * s->dp);
    rows->last = g_new0(const AmpDelay *, s->pp * s->dp);
    rows->meet = g_new0(bool, s->pp * s->pp);
    rows->launch_s = g_new0(double, s->pp * s->dp);
    rows->send_s = g_new0(double, n * s->dp);
    rows->return_s = g_new0(double, n * s->dp);
    return rows;
}

AmpRows *amp_rows_new(const AmpModel *model, const AmpCluster *cluster,
                      const AmpOptions *options, AmpLayers *layers,
                      const AmpStrategy *strategy)
{
    g_autofree uint32_t *member = g_new0(uint32_t, cluster->n_machines);
    g_autofree double *part = g_new0(double, model->n_types);
    const AmpCosting c = {.model = model,
                          .cluster = cluster,
                          .options = options,
                          .layers = layers,
                          .s = strategy,
                          .degree = amp_degree(model, strategy->tmp),
                          .gas = model->global_batch / strategy->dp / strategy->mbs,
                          .member = member,
                          .part = part};
    for (uint32_t d = 0; d < cluster->n_devices; d++)
        part[cluster->type[d]] += 1.0 / cluster->n_devices;
    AmpRows *rows = rows_new(&c);
    for (uint32_t stage = 0; stage < strategy->pp * strategy->chunks; stage++) {
        (options->faithful ? amp_fill_faithful : amp_fill_detailed)(&c, rows, stage);
        fill_memory(&c, rows, stage);
    }
    if (!options->faithful)
        amp_find_meetings(&c, rows);
    return rows;
}

void amp_rows_free(AmpRows *rows)
{
    if (!rows)
        return;
    double *row[] = {rows->time,     rows->transfer, rows->sync,     rows->memory,
                     rows->capacity, rows->send_s,   rows->return_s, rows->launch_s};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++)
        g_free(row[i]);
    g_free(rows->delay);
    g_free(rows->last);
    g_free(rows->meet);
    g_free(rows);
}

/* Sums over all stages of one device group. */
typedef struct {
    double time, sync, memory;
} GroupSum;

static GroupSum group_sum(const AmpRows *rows, const uint32_t *first, uint32_t p)
{
    g_assert(first[p] <= first[p + 1]);
    const uint32_t n_layers = rows->problem.n_layers;
    GroupSum sum = {0};
    for (uint32_t stage = p; stage < rows->problem.n_stages;
         stage += rows->problem.n_stages / rows->chunks)
        for (uint32_t l = first[stage]; l < first[stage + 1]; l++) {
            const size_t at = (size_t)stage * n_layers + l;
            sum.time += rows->time[at];
            sum.sync += rows->sync[at];
            sum.memory += rows->memory[at];
        }
    return sum;
}

AmpCost amp_rows_cost(const AmpRows *rows, const uint32_t *first)
{
    const AmpAssignment *p = &rows->problem;
    const uint32_t groups = p->n_stages / rows->chunks;
    AmpCost cost = {.fits = true};
    double slowest = 0, all = 0;
    for (uint32_t g = 0; g < groups; g++) {
        const GroupSum sum = group_sum(rows, first, g);
        slowest = fmax(slowest, sum.time);
        all += sum.time;
        cost.sync_s = fmax(cost.sync_s, sum.sync);
        cost.fits &= sum.memory <= rows->capacity[g];
    }
    double most = slowest;
    for (uint32_t stage = 0; stage + 1 < p->n_stages; stage++) {
        const double transfer =
            rows->transfer[(size_t)stage * p->n_layers + first[stage + 1] - 1];
        cost.transfers_s += transfer;
        most = fmax(most, p->link * transfer);
    }
    /* gas max t + (sum t - max t) / V */
    cost.bubble_s = p->repeats / rows->chunks * most;
    cost.stages_s = rows->chunks == 1 ? all : slowest + (all - slowest) / rows->chunks;
    cost.total_s = rows->options->faithful
                       ? cost.bubble_s + cost.stages_s + cost.transfers_s + cost.sync_s
                       : amp_rows_walk(rows, first);
    return cost;
}

AmpCost synth_amp_cost(const AmpModel *model, const AmpCluster *cluster,
                       const AmpOptions *options, const AmpStrategy *strategy)
{
    g_autoptr(AmpLayers) layers =
        options->faithful ? NULL : amp_layers_new(model, cluster);
    g_autoptr(AmpRows) rows = amp_rows_new(model, cluster, options, layers, strategy);
    return amp_rows_cost(rows, strategy->first);
}
