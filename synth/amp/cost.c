/* The rows of a strategy's costs, and the time that follows from them. */
#include <math.h>

#include "data/base/free.h"
#include "synth/amp/costing.h"

/* How many microbatches a stage of the p-th group keeps until their backward
 * (synth/pipeline/pipeline.h); with chunks the average over the group's stages. */
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

/* The replicas among which a level of ZeRO divides something. */
static double amp_ranks_of(const AmpCosting *c, uint32_t level)
{
    const AmpOptions *o = c->options;
    return o->zero < level ? 1 : MIN(o->zero_ranks ? o->zero_ranks : c->s->dp, c->s->dp);
}

/* Bytes of a layer's parameters at rest on a device, if they lie on one. */
static double amp_weights_bytes(const AmpCosting *c, uint32_t l)
{
    enum { PARAMETERS = 3 };
    return (amp_of_layer(c, c->model->held, l) - amp_of_layer(c, c->model->states, l) -
            amp_of_layer(c, c->model->gradient, l)) /
           amp_ranks_of(c, PARAMETERS);
}

/* Bytes of a layer at rest: replicas divide the states first, then gradients, then parameters.
 * Offloaded states lie on the host, and gradients that are divided do, too. */
static double amp_held_bytes(const AmpCosting *c, uint32_t l)
{
    enum { STATES = 1, GRADIENTS };
    const AmpOptions *o = c->options;
    const bool states = strategy_offloads(&o->hosts, OFFLOAD_OPTIMIZER);
    return (states ? 0 : amp_of_layer(c, c->model->states, l) / amp_ranks_of(c, STATES)) +
           (states && o->zero >= GRADIENTS
                ? 0
                : amp_of_layer(c, c->model->gradient, l) / amp_ranks_of(c, GRADIENTS)) +
           (strategy_offloads(&o->hosts, OFFLOAD_PARAMETERS) ? 0
                                                             : amp_weights_bytes(c, l));
}

/* Bytes that a layer keeps for the backward of a microbatch. */
static double amp_kept_bytes(const AmpCosting *c, const AmpRows *rows, size_t at)
{
    const uint32_t l = (uint32_t)(at % c->model->n_layers);
    const AmpAgain *mode = rows->mode_at[at] ? rows->mode[rows->mode_at[at] - 1] : NULL;
    return c->s->mbs * (amp_of_layer(c, c->model->activation, l) -
                        (mode ? amp_of_layer(c, mode->less, l) : 0));
}

/* Updates on hosts: each device sends gradients and gets parameters back, and the host's memory,
 * which its devices share, passes by gradients once and by states twice (sim/tasks/offload.c).
 * Gradients of level 2 go there with each microbatch; with each, parameters come for both passes,
 * and activations go and come. */
static void fill_offload(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    enum { GRADIENTS = 2, PARAMETERS };
    const Strategy *hosts = &c->options->hosts;
    const bool adds = c->options->zero >= GRADIENTS;
    const double ranks = amp_ranks_of(c, 1), n = c->s->dp * c->s->tmp;
    double link = INFINITY, memory = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t device = amp_group_at(c, stage, 0)[i];
        memory = fmin(memory, c->cluster->host_memory[device]);
        link = fmin(link, fmin(memory, c->cluster->host_link[device]));
    }
    for (uint32_t l = 0; l < c->model->n_layers; l++) {
        const size_t at = (size_t)stage * c->model->n_layers + l;
        const double states = amp_of_layer(c, c->model->states, l) / ranks,
                     gradient = amp_of_layer(c, c->model->gradient, l) / ranks,
                     sent = (adds ? c->gas : 1) * gradient,
                     weights = amp_weights_bytes(c, l),
                     back = weights * amp_ranks_of(c, PARAMETERS) / ranks,
                     kept = amp_kept_bytes(c, rows, at);
        double *s = &rows->offload_s[at], *there = &rows->host[at];
        if (strategy_offloads(hosts, OFFLOAD_OPTIMIZER)) {
            *s += (back + sent) / link + (sent + 2 * states) / memory;
            *there += n * (states + (adds ? gradient : 0));
        }
        if (strategy_offloads(hosts, OFFLOAD_PARAMETERS)) {
            *s += 2.0 * c->gas * weights / link;
            *there += n * weights;
        }
        if (strategy_offloads(hosts, OFFLOAD_ACTIVATIONS)) {
            *s += 2.0 * c->gas * kept / link;
            *there += n * kept_microbatches(c, stage % c->s->pp) * kept;
        }
    }
}

/* A layer that is computed again has all of its activations for one microbatch; by then those of
 * the model's last layer are gone. What comes from hosts is there for a layer and the next. */
static void amp_fill_memory(const AmpCosting *c, AmpRows *rows, uint32_t stage)
{
    const AmpModel *model = c->model;
    const Strategy *hosts = &c->options->hosts;
    const bool weights = strategy_offloads(hosts, OFFLOAD_PARAMETERS),
               stash = strategy_offloads(hosts, OFFLOAD_ACTIVATIONS);
    const uint32_t kept = kept_microbatches(c, stage % c->s->pp);
    double again = 0, last = 0, fetched = 0;
    rows->capacity[stage] = INFINITY;
    for (uint32_t i = 0; i < c->s->dp * c->s->tmp; i++)
        rows->capacity[stage] =
            fmin(rows->capacity[stage], c->cluster->memory[amp_group_at(c, stage, 0)[i]]);
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const size_t at = (size_t)stage * model->n_layers + l;
        last = amp_kept_bytes(c, rows, at);
        again = fmax(again, c->s->mbs * amp_of_layer(c, model->activation, l) - last);
        fetched = fmax(
            fetched, 2 * ((weights ? amp_weights_bytes(c, l) : 0) + (stash ? last : 0)));
        rows->memory[at] = amp_held_bytes(c, l) + (stash ? 0 : kept * last);
    }
    if (stage + 1 == c->s->pp * c->s->chunks)
        again = fmax(0, again - last);
    rows->capacity[stage] = fmax(0, rows->capacity[stage] - again - fetched);
}

/* The number of a mode, from 1; 0: none. */
static uint8_t number_of(const AmpCosting *c, AmpRows *rows, Recompute mode)
{
    uint32_t m = 0;
    if (mode == RECOMPUTE_NONE)
        return 0;
    while (m < rows->n_modes && rows->mode[m]->mode != mode)
        m++;
    if (m == rows->n_modes)
        rows->mode[rows->n_modes++] = amp_again(c->model, mode);
    return (uint8_t)(m + 1);
}

/* Finds the modes of layers. Where the option names stages, each stage's rows have its mode, since
 * the cuts are still open. A text that suits no strategy sets none: programs refuse it. */
static void amp_find_modes(const AmpCosting *c, AmpRows *rows)
{
    const uint32_t n_stages = rows->problem.n_stages, n_layers = c->model->n_layers,
                   all[] = {0, n_layers};
    const char *text = c->options->recompute;
    if (!text || !c->model->graph || !c->model->steps)
        return;
    g_auto(GStrv) word = g_strsplit(text, " ", -1);
    const bool by_stage = !strchr(text, '@') && g_strv_length(word) == n_stages;
    rows->mode = g_new0(const AmpAgain *, (size_t)n_stages *n_layers);
    for (uint32_t s = 0; s < n_stages; s++) {
        const Strategy strategy = {.recompute = by_stage ? word[s] : text};
        g_autofree Recompute *modes = NULL;
        if (!strategy_layer_modes(&strategy, c->model->graph, 1, all, &modes, NULL))
            return;
        for (uint32_t l = 0; l < n_layers; l++)
            rows->mode_at[s * n_layers + l] = number_of(c, rows, modes[l]);
    }
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
                      .mode_at = g_new0(uint8_t, n),
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
    amp_find_modes(c, rows);
    if (c->options->faithful)
        return rows;
    rows->delay = g_new0(const AmpDelay *, s->pp * s->dp);
    rows->last = g_new0(const AmpDelay *, s->pp * s->dp);
    if (c->options->hosts.offload) {
        rows->offload_s = g_new0(double, n);
        rows->host = g_new0(double, n);
        rows->host_bytes = c->cluster->host_bytes;
    }
    rows->again = g_new0(const AmpDelay *, (size_t)rows->n_modes * s->pp * s->dp);
    rows->meet = g_new0(bool, s->pp * s->pp);
    rows->launch_s = g_new0(double, s->pp * s->dp);
    rows->send_s = g_new0(double, n * s->dp);
    rows->return_s = g_new0(double, n * s->dp);
    return rows;
}

/* Whether some cuts keep the memory of all stages, of which each takes as many layers as it can. */
static bool amp_rows_fit(const AmpAssignment *p)
{
    uint32_t end = 0;
    for (uint32_t stage = 0; stage < p->n_stages; stage++) {
        double held = 0;
        while (end < p->n_layers) {
            held += p->memory[(size_t)stage * p->n_layers + end];
            if (held > p->capacity[stage] * (1 + 1e-9))
                break;
            end++;
        }
    }
    return end == p->n_layers;
}

AmpRows *amp_rows_new(const AmpModel *model, const AmpCluster *cluster,
                      const AmpOptions *options, AmpLayers *layers,
                      const AmpStrategy *strategy, bool fits)
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
    for (uint32_t stage = 0; stage < strategy->pp * strategy->chunks; stage++)
        amp_fill_memory(&c, rows, stage);
    if (fits && !amp_rows_fit(&rows->problem)) {
        amp_rows_free(rows);
        return NULL;
    }
    for (uint32_t stage = 0; stage < strategy->pp * strategy->chunks; stage++) {
        (options->faithful ? amp_fill_faithful : amp_fill_detailed)(&c, rows, stage);
        if (rows->offload_s)
            fill_offload(&c, rows, stage);
    }
    if (!options->faithful)
        amp_find_meetings(&c, rows);
    return rows;
}

FREE_DEFINE(amp_rows_free, AmpRows, rows,
            free_each(rows->time, rows->transfer, rows->sync, rows->memory,
                      rows->capacity, rows->send_s, rows->return_s, rows->launch_s,
                      rows->offload_s, rows->host, rows->mode, rows->mode_at, rows->again,
                      rows->delay, rows->last, rows->meet));

/* Sums over all stages of one device group. */
typedef struct {
    double time, sync, memory, host;
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
            sum.host += rows->host ? rows->host[at] : 0;
        }
    return sum;
}

AmpCost amp_rows_cost(const AmpRows *rows, const uint32_t *first)
{
    const AmpAssignment *p = &rows->problem;
    const uint32_t groups = p->n_stages / rows->chunks;
    AmpCost cost = {.fits = true};
    double slowest = 0, all = 0, there = 0;
    for (uint32_t g = 0; g < groups; g++) {
        const GroupSum sum = group_sum(rows, first, g);
        slowest = fmax(slowest, sum.time);
        all += sum.time;
        cost.sync_s = fmax(cost.sync_s, sum.sync);
        cost.fits &= sum.memory <= rows->capacity[g];
        there += sum.host;
    }
    cost.fits &= there <= rows->host_bytes;
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
    g_autoptr(AmpRows) rows =
        amp_rows_new(model, cluster, options, layers, strategy, false);
    return amp_rows_cost(rows, strategy->first);
}
