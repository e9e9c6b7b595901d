#include "synth/amp/cost.h"

#include "sim/sim.h"

#include <math.h>
#include <string.h>

/* --- strategies --- */

AmpStrategy amp_strategy_new(uint32_t pp, uint32_t dp, uint32_t tmp, uint32_t mbs,
                             uint32_t chunks)
{
    return (AmpStrategy){.pp = pp,
                         .dp = dp,
                         .tmp = tmp,
                         .mbs = mbs,
                         .chunks = chunks,
                         .first = g_new0(uint32_t, pp * chunks + 1),
                         .device = g_new0(uint32_t, (size_t)pp * dp * tmp)};
}

void amp_strategy_clear(AmpStrategy *strategy)
{
    g_free(strategy->first);
    g_free(strategy->device);
}

uint32_t amp_chunks(const AmpOptions *options)
{
    return options->schedule == SCHEDULE_INTERLEAVED ? MAX(options->chunks, 1) : 1;
}

uint32_t amp_degree(const AmpModel *model, uint32_t tmp)
{
    for (uint32_t g = 0; g < model->n_degrees; g++)
        if (model->degree[g] == tmp)
            return g;
    g_assert_not_reached();
}

static bool has_degree(const AmpModel *model, uint32_t tmp)
{
    for (uint32_t g = 0; g < model->n_degrees; g++)
        if (model->degree[g] == tmp)
            return true;
    return false;
}

bool synth_amp_check(const AmpModel *model, const AmpCluster *cluster,
                     const AmpOptions *options, uint32_t pp, uint32_t dp, uint32_t tmp,
                     uint32_t mbs, GError **error)
{
    const uint32_t stages = pp * amp_chunks(options);
    if ((uint64_t)pp * dp * tmp != cluster->n_devices)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "degrees pp=%u, dp=%u, tmp=%u: expected a product of %u, the "
                           "cluster's GPUs",
                           pp, dp, tmp, cluster->n_devices);
    if (stages > model->n_layers)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "pp=%u, %u stages: expected at most as many as the model has "
                           "layers, %u",
                           pp, stages, model->n_layers);
    if (!has_degree(model, tmp))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "tmp=%u: expected a degree that the profile has times for",
                           tmp);
    if (model->global_batch % dp != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "dp=%u: expected a divisor of the global batch, %u", dp,
                           model->global_batch);
    if (mbs == 0 || model->global_batch / dp % mbs != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "mbs=%u: expected a divisor of a replica's batch, %u", mbs,
                           model->global_batch / dp);
    const uint32_t gas = model->global_batch / dp / mbs;
    if (options->schedule == SCHEDULE_INTERLEAVED && gas % pp != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "mbs=%u: expected a multiple of %u micro-batches for an "
                           "interleaved schedule, got %u",
                           mbs, pp, gas);
    return true;
}

/* --- bandwidths --- */

/* Which machines a group is on. member[machine]: how many of its devices. */
static uint32_t find_machines(const AmpCluster *cluster, const uint32_t *device,
                              uint32_t n, uint32_t stride, uint32_t *member)
{
    uint32_t machines = 0;
    memset(member, 0, cluster->n_machines * sizeof *member);
    for (uint32_t i = 0; i < n; i++)
        machines += member[cluster->machine[device[(size_t)i * stride]]]++ == 0;
    return machines;
}

/* The least bandwidth between two devices of a group. */
static double group_bandwidth(const AmpCluster *cluster, const uint32_t *device,
                              uint32_t n, uint32_t stride, uint32_t *member)
{
    double least = INFINITY;
    find_machines(cluster, device, n, stride, member);
    for (uint32_t a = 0; a < cluster->n_machines; a++)
        for (uint32_t b = a; b < cluster->n_machines; b++)
            if (member[a] >= (a == b ? 2u : 1u) && member[b])
                least =
                    fmin(least, cluster->bandwidth[(size_t)a * cluster->n_machines + b]);
    return least;
}

/* --- all of a strategy --- */

typedef struct {
    const AmpModel *model;
    const AmpCluster *cluster;
    const AmpOptions *options;
    AmpLayers *layers;
    const AmpStrategy *s;
    uint32_t degree; /* index */
    uint32_t gas;
    uint32_t *member; /* scratch [machine] */
    double *part;     /* [type] of the cluster */
} Costing;

static const uint32_t *group_at(const Costing *c, uint32_t stage, uint32_t replica)
{
    return c->s->device + ((size_t)(stage % c->s->pp) * c->s->dp + replica) * c->s->tmp;
}

static double of_layer(const Costing *c, const double *row, uint32_t l)
{
    return row[(size_t)c->degree * c->model->n_layers + l];
}

/* --- the faithful reading --- */

/* The average over all devices of the cluster, in proportion to the samples. */
static double average_time(const Costing *c, uint32_t l)
{
    double sum = 0;
    for (uint32_t type = 0; type < c->model->n_types; type++)
        if (c->part[type] > 0)
            sum += c->part[type] * synth_amp_times(c->model, type, c->degree, 0)[l];
    return sum * c->s->mbs / c->model->size[0];
}

/* The slowest replica's links: seconds a byte that is shared in a layer, and a byte of its output. */
static void faithful_paths(const Costing *c, uint32_t stage, double *exchange,
                           double *transfer)
{
    const bool last = stage + 1 == c->s->pp * c->s->chunks;
    *exchange = *transfer = 0;
    for (uint32_t r = 0; r < c->s->dp; r++) {
        const uint32_t *device = group_at(c, stage, r);
        const double inside =
            group_bandwidth(c->cluster, device, c->s->tmp, 1, c->member);
        *exchange = fmax(*exchange, 1 / inside);
        for (uint32_t t = 0; !last && t < c->s->tmp; t++) {
            const uint32_t pair[2] = {device[t], group_at(c, stage + 1, r)[t]};
            *transfer =
                fmax(*transfer, 1 / group_bandwidth(c->cluster, pair, 2, 1, c->member));
        }
    }
}

/* Seconds a byte of the all-reduce among the replicas of a stage. */
static double faithful_sync(const Costing *c, uint32_t stage)
{
    const double n = c->s->dp;
    double least = INFINITY;
    for (uint32_t t = 0; n > 1 && t < c->s->tmp; t++)
        least = fmin(least, group_bandwidth(c->cluster, group_at(c, stage, 0) + t,
                                            c->s->dp, c->s->tmp, c->member));
    return 2 * (n - 1) / n / least;
}

static void fill_faithful(const Costing *c, AmpRows *rows, uint32_t stage)
{
    const size_t at = (size_t)stage * c->model->n_layers;
    double exchange, transfer;
    faithful_paths(c, stage, &exchange, &transfer);
    const double sync = faithful_sync(c, stage);
    for (uint32_t l = 0; l < c->model->n_layers; l++) {
        rows->time[at + l] = average_time(c, l) +
                             c->s->mbs * exchange * of_layer(c, c->model->exchange, l);
        rows->transfer[at + l] = c->s->mbs * transfer * of_layer(c, c->model->output, l);
        rows->sync[at + l] = sync * of_layer(c, c->model->gradient, l);
    }
}

/* --- the default reading --- */

/* Groups of n devices each that may do the same at the same time, from the `at`-th on: all of them
 * where they share ports of machines, otherwise that one. */
static uint32_t together(const Costing *c, const uint32_t *device, uint32_t n,
                         uint32_t n_groups, uint32_t at)
{
    return n > 1 &&
                   find_machines(c->cluster, device + (size_t)at * n, n, 1, c->member) > 1
               ? n_groups
               : 1;
}

/* [kind]: seconds of a gradient's all-reduce; NULL if there is one replica. Caller frees. */
static double *price_gradients(const Costing *c, uint32_t group)
{
    const GArray *kind = c->model->steps->gradient_kind;
    const uint32_t tmp = c->s->tmp, dp = c->s->dp;
    if (dp == 1)
        return NULL;
    double *price_s = g_new(double, MAX(kind->len, 1));
    g_autofree uint32_t *device = g_new(uint32_t, (size_t)dp * tmp);
    for (uint32_t i = 0; i < dp * tmp; i++)
        device[i] = group_at(c, group, i % dp)[i / dp];
    for (uint32_t k = 0; k < kind->len; k++) {
        const AmpGradientKind *g = &g_array_index(kind, AmpGradientKind, k);
        price_s[k] = sim_alone_collective_s(c->cluster->alone, COLLECTIVE_ALL_REDUCE,
                                            g->whole + g->cut / tmp, dp, tmp, device);
    }
    return price_s;
}

static void fill_group(const Costing *c, AmpRows *rows, uint32_t group)
{
    const uint32_t dp = c->s->dp, tmp = c->s->tmp;
    g_autofree double *gradient_s = price_gradients(c, group);
    for (uint32_t r = 0; r < dp; r++) {
        const uint32_t *all = group_at(c, group, 0), *own = group_at(c, group, r);
        const uint32_t n_groups = together(c, all, tmp, dp, r), at = group * dp + r;
        const uint32_t *device = n_groups > 1 ? all : own;
        rows->delay[at] = amp_layers_delays(c->layers, c->degree, c->s->mbs, tmp,
                                            n_groups, device, NULL);
        rows->last[at] = gradient_s ? amp_layers_delays(c->layers, c->degree, c->s->mbs,
                                                        tmp, n_groups, device, gradient_s)
                                    : rows->delay[at];
        for (uint32_t t = 0; t < tmp; t++)
            rows->launch_s[at] =
                fmax(rows->launch_s[at],
                     c->model->steps->collective_launch_s[c->cluster->type[own[t]]]);
    }
    for (uint32_t k = 0; gradient_s && k < c->model->steps->gradient->len; k++) {
        const AmpGradient *g = &g_array_index(c->model->steps->gradient, AmpGradient, k);
        rows->sync[(size_t)group * c->model->n_layers +
                   g_array_index(c->model->steps->step, AmpStep, g->step).layer] +=
            gradient_s[g->kind];
    }
}

static void fill_times(const Costing *c, AmpRows *rows, uint32_t stage)
{
    const uint32_t n_layers = c->model->n_layers;
    const double forward = c->options->recompute ? 2 : 1;
    for (uint32_t r = 0; r < c->s->dp; r++) {
        const AmpDelay *delay = rows->delay[stage % c->s->pp * c->s->dp + r];
        for (uint32_t l = 0; l < n_layers; l++) {
            double *time = &rows->time[(size_t)stage * n_layers + l];
            *time = fmax(*time, forward * amp_delay_pace(&delay[l]) +
                                    amp_delay_pace(&delay[n_layers + l]));
        }
    }
}

static double send_s(const Costing *c, double bytes, uint32_t from, uint32_t to,
                     uint32_t replica)
{
    const uint32_t tmp = c->s->tmp, n = c->s->dp * tmp;
    g_autofree uint32_t *pair = g_new(uint32_t, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        pair[2 * i] = group_at(c, from, 0)[i];
        pair[2 * i + 1] = group_at(c, to, 0)[i];
    }
    const uint32_t first = replica * tmp;
    return bytes == 0 || from % c->s->pp == to % c->s->pp ? 0
           : together(c, pair, 2, 2, first) > 1
               ? sim_alone_send_s(c->cluster->alone, bytes, n, pair)
               : sim_alone_send_s(c->cluster->alone, bytes, tmp, pair + 2 * first);
}

static void fill_transfers(const Costing *c, AmpRows *rows, uint32_t stage)
{
    const AmpSteps *steps = c->model->steps;
    const uint32_t n_layers = c->model->n_layers;
    for (uint32_t r = 0; r < c->s->dp; r++) {
        double *there = rows->send_s + ((size_t)stage * c->s->dp + r) * n_layers;
        double *back = rows->return_s + ((size_t)stage * c->s->dp + r) * n_layers;
        for (uint32_t l = 0; l < n_layers; l++) {
            const bool same = l > 0 && steps->sent[l] == steps->sent[l - 1] &&
                              steps->returned[l] == steps->returned[l - 1];
            there[l] = same ? there[l - 1]
                            : send_s(c, c->s->mbs * steps->sent[l], stage, stage + 1, r);
            back[l] =
                same ? back[l - 1]
                     : send_s(c, c->s->mbs * steps->returned[l], stage + 1, stage, r);
            double *both = &rows->transfer[(size_t)stage * n_layers + l];
            *both = fmax(*both, there[l] + back[l]);
        }
    }
}

/* Which groups' all-reduces leave machines that they share. */
static void find_meetings(const Costing *c, AmpRows *rows)
{
    const uint32_t pp = c->s->pp, n = c->s->dp * c->s->tmp;
    const uint32_t n_machines = c->cluster->n_machines;
    g_autofree bool *passes = g_new0(bool, (size_t)pp *n_machines);
    for (uint32_t g = 0; g < pp; g++) {
        bool leaves = false;
        for (uint32_t t = 0; t < c->s->tmp; t++)
            leaves |= find_machines(c->cluster, group_at(c, g, 0) + t, c->s->dp,
                                    c->s->tmp, c->member) > 1;
        for (uint32_t i = 0; leaves && i < n; i++)
            passes[g * n_machines + c->cluster->machine[group_at(c, g, 0)[i]]] = true;
    }
    for (uint32_t g = 0; g < pp; g++)
        for (uint32_t h = 0; h < pp; h++)
            for (uint32_t m = 0; m < n_machines; m++)
                rows->meet[g * pp + h] |=
                    passes[g * n_machines + m] && passes[h * n_machines + m];
}

static void fill_detailed(const Costing *c, AmpRows *rows, uint32_t stage)
{
    const size_t n_layers = c->model->n_layers;
    if (stage < c->s->pp)
        fill_group(c, rows, stage);
    else
        memcpy(rows->sync + stage * n_layers, rows->sync + (stage - c->s->pp) * n_layers,
               n_layers * sizeof *rows->sync);
    fill_times(c, rows, stage);
    if (stage + 1 < c->s->pp * c->s->chunks)
        fill_transfers(c, rows, stage);
}

/* --- both --- */

/* How many micro-batches a stage of the p-th group keeps until their backward (synth/pipeline.h);
 * with chunks an average of the group's. */
static uint32_t kept_microbatches(const Costing *c, uint32_t p)
{
    const uint32_t pp = c->s->pp, chunks = c->s->chunks;
    if (c->options->schedule == SCHEDULE_GPIPE)
        return c->gas;
    const uint32_t ahead =
        chunks == 1 ? pp - p : 2 * (pp - 1 - p) + (chunks - 1) * pp + 1;
    return MIN(c->gas, (ahead + chunks - 1) / chunks);
}

static void fill_memory(const Costing *c, AmpRows *rows, uint32_t stage)
{
    const AmpModel *model = c->model;
    const uint32_t kept = kept_microbatches(c, stage % c->s->pp);
    rows->capacity[stage] = INFINITY;
    for (uint32_t i = 0; i < c->s->dp * c->s->tmp; i++)
        rows->capacity[stage] =
            fmin(rows->capacity[stage], c->cluster->memory[group_at(c, stage, 0)[i]]);
    for (uint32_t l = 0; l < model->n_layers; l++)
        rows->memory[(size_t)stage * model->n_layers + l] =
            of_layer(c, model->held, l) +
            (double)kept * c->s->mbs * of_layer(c, model->activation, l);
}

/* Of what passes a link forward and backward, the part that keeps one direction of it busy. */
static const double ONE_WAY = 0.5;

static AmpRows *rows_new(const Costing *c)
{
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
    const Costing c = {.model = model,
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
        (options->faithful ? fill_faithful : fill_detailed)(&c, rows, stage);
        fill_memory(&c, rows, stage);
    }
    if (!options->faithful)
        find_meetings(&c, rows);
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

/* Of one device group, all of its stages. */
typedef struct {
    double time, sync, memory;
} GroupSum;

static GroupSum group_sum(const AmpRows *rows, const uint32_t *first, uint32_t p)
{
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
