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

static void count_group(const AmpCluster *cluster, const uint32_t *device, uint32_t n,
                        uint32_t stride, uint32_t *member, uint32_t *ports)
{
    if (find_machines(cluster, device, n, stride, member) > 1)
        for (uint32_t m = 0; m < cluster->n_machines; m++)
            ports[m] += member[m] > 0;
}

/* Between two machines, or inside one. */
static double bandwidth_between(const AmpCluster *cluster, uint32_t a, uint32_t b,
                                const uint32_t *ports)
{
    const double bandwidth = cluster->bandwidth[(size_t)a * cluster->n_machines + b];
    const uint32_t sharing = a == b || !ports ? 1 : MAX(ports[a], ports[b]);
    return bandwidth / MAX(sharing, 1);
}

typedef struct {
    double bandwidth, latency_s;
} Path;

/* The least bandwidth and the largest latency between two devices of a group. */
static Path group_path(const AmpCluster *cluster, const uint32_t *device, uint32_t n,
                       uint32_t stride, const uint32_t *ports, uint32_t *member)
{
    Path path = {INFINITY, 0};
    find_machines(cluster, device, n, stride, member);
    for (uint32_t a = 0; a < cluster->n_machines; a++)
        for (uint32_t b = a; b < cluster->n_machines; b++) {
            if (member[a] < (a == b ? 2u : 1u) || !member[b])
                continue;
            path.bandwidth =
                fmin(path.bandwidth, bandwidth_between(cluster, a, b, ports));
            path.latency_s = fmax(
                path.latency_s, cluster->latency_s[(size_t)a * cluster->n_machines + b]);
        }
    return path;
}

/* --- times --- */

/* Seconds of layer `l` for `samples`: between profiled sizes on the line between them, beyond the
 * last one on the last line, below the first one and with a single one in proportion. */
static double layer_time(const AmpModel *model, uint32_t type, uint32_t degree,
                         uint32_t l, double samples)
{
    uint32_t above = 0;
    while (above < model->n_sizes && model->size[above] < samples)
        above++;
    if (above == 0 || model->n_sizes == 1)
        return synth_amp_times(model, type, degree, 0)[l] * samples / model->size[0];
    above = MIN(above, model->n_sizes - 1);
    const double x0 = model->size[above - 1], x1 = model->size[above];
    const double y0 = synth_amp_times(model, type, degree, above - 1)[l],
                 y1 = synth_amp_times(model, type, degree, above)[l];
    return y0 + (y1 - y0) * (samples - x0) / (x1 - x0);
}

/* The faithful time: the average over all devices of the cluster, in proportion to the samples. */
static double average_time(const AmpModel *model, const double *part, uint32_t degree,
                           uint32_t l, double samples)
{
    double sum = 0;
    for (uint32_t type = 0; type < model->n_types; type++)
        if (part[type] > 0)
            sum += part[type] * synth_amp_times(model, type, degree, 0)[l];
    return sum * samples / model->size[0];
}

/* --- all of a strategy --- */

typedef struct {
    const AmpModel *model;
    const AmpCluster *cluster;
    const AmpOptions *options;
    const AmpStrategy *s;
    uint32_t degree; /* index */
    uint32_t gas;
    uint32_t *member;                                       /* scratch [machine] */
    uint32_t *exchange_ports, *sync_ports, *transfer_ports; /* NULL: not shared */
    double *part;                                           /* [type] of the cluster */
} Costing;

static const uint32_t *group_at(const Costing *c, uint32_t stage, uint32_t replica)
{
    return c->s->device + ((size_t)(stage % c->s->pp) * c->s->dp + replica) * c->s->tmp;
}

static void count_transfer(Costing *c, uint32_t stage, uint32_t replica)
{
    for (uint32_t t = 0; t < c->s->tmp; t++) {
        const uint32_t pair[2] = {group_at(c, stage, replica)[t],
                                  group_at(c, stage + 1, replica)[t]};
        count_group(c->cluster, pair, 2, 1, c->member, c->transfer_ports);
    }
}

static void share_ports(Costing *c)
{
    const AmpStrategy *s = c->s;
    c->exchange_ports = g_new0(uint32_t, c->cluster->n_machines);
    c->sync_ports = g_new0(uint32_t, c->cluster->n_machines);
    c->transfer_ports = g_new0(uint32_t, c->cluster->n_machines);
    const uint32_t n_stages = s->pp * s->chunks;
    for (uint32_t stage = 0; stage < s->pp; stage++) {
        for (uint32_t r = 0; r < s->dp; r++) {
            count_group(c->cluster, group_at(c, stage, r), s->tmp, 1, c->member,
                        c->exchange_ports);
            if (stage + 1 < n_stages)
                count_transfer(c, stage, r);
        }
        for (uint32_t t = 0; t < s->tmp; t++)
            count_group(c->cluster, group_at(c, stage, 0) + t, s->dp, s->tmp, c->member,
                        c->sync_ports);
    }
}

static Costing costing_new(const AmpModel *model, const AmpCluster *cluster,
                           const AmpOptions *options, const AmpStrategy *strategy)
{
    Costing c = {.model = model,
                 .cluster = cluster,
                 .options = options,
                 .s = strategy,
                 .degree = amp_degree(model, strategy->tmp),
                 .gas = model->global_batch / strategy->dp / strategy->mbs,
                 .member = g_new0(uint32_t, cluster->n_machines),
                 .part = g_new0(double, model->n_types)};
    for (uint32_t d = 0; d < cluster->n_devices; d++)
        c.part[cluster->type[d]] += 1.0 / cluster->n_devices;
    if (!options->faithful)
        share_ports(&c);
    return c;
}

static void costing_clear(Costing *c)
{
    g_free(c->member);
    g_free(c->part);
    g_free(c->exchange_ports);
    g_free(c->sync_ports);
    g_free(c->transfer_ports);
}

static double of_layer(const Costing *c, const double *row, uint32_t l)
{
    return row[(size_t)c->degree * c->model->n_layers + l];
}

/* Raises time[layer] to what one replica of a stage takes for a micro-batch. */
static void stage_times(const Costing *c, uint32_t stage, uint32_t replica, double *time)
{
    const uint32_t *device = group_at(c, stage, replica);
    const Path path =
        group_path(c->cluster, device, c->s->tmp, 1, c->exchange_ports, c->member);
    for (uint32_t l = 0; l < c->model->n_layers; l++) {
        double slowest = 0;
        if (c->options->faithful)
            slowest = average_time(c->model, c->part, c->degree, l, c->s->mbs);
        else
            for (uint32_t t = 0, last = UINT32_MAX; t < c->s->tmp; t++) {
                const uint32_t type = c->cluster->type[device[t]];
                if (type != last)
                    slowest = fmax(slowest,
                                   layer_time(c->model, type, c->degree, l, c->s->mbs));
                last = type;
            }
        const double bytes = c->s->mbs * of_layer(c, c->model->exchange, l);
        if (bytes > 0)
            slowest += bytes / path.bandwidth +
                       of_layer(c, c->model->messages, l) * path.latency_s;
        time[l] = fmax(time[l], slowest);
    }
}

/* Of what passes a link forward and backward, the part that keeps one direction of it busy. */
static const double ONE_WAY = 0.5;

/* From a replica's stage to its next one: seconds a byte of the output, and seconds of latency. */
static void transfer_path(const Costing *c, uint32_t stage, uint32_t replica,
                          double *s_per_byte, double *latency_s)
{
    const double ways = c->options->faithful ? 1 : 2; /* the gradient comes back */
    for (uint32_t t = 0; t < c->s->tmp; t++) {
        const uint32_t pair[2] = {group_at(c, stage, replica)[t],
                                  group_at(c, stage + 1, replica)[t]};
        const Path path =
            group_path(c->cluster, pair, 2, 1, c->transfer_ports, c->member);
        *s_per_byte = fmax(*s_per_byte, ways / path.bandwidth);
        *latency_s = fmax(*latency_s, c->options->faithful ? 0 : ways * path.latency_s);
    }
}

/* Of the all-reduce among the replicas of a stage. */
static void sync_path(const Costing *c, uint32_t stage, double *s_per_byte,
                      double *latency_s)
{
    const double n = c->s->dp;
    for (uint32_t t = 0; n > 1 && t < c->s->tmp; t++) {
        const Path path = group_path(c->cluster, group_at(c, stage, 0) + t, c->s->dp,
                                     c->s->tmp, c->sync_ports, c->member);
        *s_per_byte = fmax(*s_per_byte, 2 * (n - 1) / n / path.bandwidth);
        *latency_s =
            fmax(*latency_s, c->options->faithful ? 0 : 2 * (n - 1) * path.latency_s);
    }
}

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

static void fill_stage(const Costing *c, AmpRows *rows, uint32_t stage)
{
    const AmpModel *model = c->model;
    const size_t at = (size_t)stage * model->n_layers;
    const uint32_t kept = kept_microbatches(c, stage % c->s->pp);
    double transfer = 0, transfer_latency_s = 0, sync = 0, sync_latency_s = 0;
    rows->capacity[stage] = INFINITY;
    for (uint32_t r = 0; r < c->s->dp; r++) {
        stage_times(c, stage, r, rows->time + at);
        if (stage + 1 < c->s->pp * c->s->chunks)
            transfer_path(c, stage, r, &transfer, &transfer_latency_s);
        for (uint32_t t = 0; t < c->s->tmp; t++)
            rows->capacity[stage] =
                fmin(rows->capacity[stage], c->cluster->memory[group_at(c, stage, r)[t]]);
    }
    sync_path(c, stage, &sync, &sync_latency_s);
    rows->fixed_s += transfer_latency_s + sync_latency_s;
    for (uint32_t l = 0; l < model->n_layers; l++) {
        rows->transfer[at + l] = c->s->mbs * of_layer(c, model->output, l) * transfer;
        rows->sync[at + l] = of_layer(c, model->gradient, l) * sync;
        rows->memory[at + l] =
            of_layer(c, model->held, l) +
            (double)kept * c->s->mbs * of_layer(c, model->activation, l);
    }
}

AmpRows *amp_rows_new(const AmpModel *model, const AmpCluster *cluster,
                      const AmpOptions *options, const AmpStrategy *strategy)
{
    const uint32_t n_stages = strategy->pp * strategy->chunks;
    const size_t n = (size_t)n_stages * model->n_layers;
    AmpRows *rows = g_new(AmpRows, 1);
    *rows = (AmpRows){.time = g_new0(double, n),
                      .transfer = g_new0(double, n),
                      .sync = g_new0(double, n),
                      .memory = g_new0(double, n),
                      .capacity = g_new0(double, n_stages),
                      .chunks = strategy->chunks};
    Costing c = costing_new(model, cluster, options, strategy);
    for (uint32_t stage = 0; stage < n_stages; stage++)
        fill_stage(&c, rows, stage);
    rows->problem = (AmpAssignment){.n_layers = model->n_layers,
                                    .n_stages = n_stages,
                                    .repeats = (double)(c.gas - 1) * strategy->chunks,
                                    .link = options->faithful ? 0 : ONE_WAY,
                                    .time = rows->time,
                                    .transfer = rows->transfer,
                                    .sync = options->faithful ? NULL : rows->sync,
                                    .memory = rows->memory,
                                    .capacity = rows->capacity};
    costing_clear(&c);
    return rows;
}

void amp_rows_free(AmpRows *rows)
{
    if (!rows)
        return;
    g_free(rows->time);
    g_free(rows->transfer);
    g_free(rows->sync);
    g_free(rows->memory);
    g_free(rows->capacity);
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
    AmpCost cost = {.fits = true, .transfers_s = rows->fixed_s};
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
    cost.total_s = cost.bubble_s + cost.stages_s + cost.transfers_s + cost.sync_s;
    return cost;
}

AmpCost synth_amp_cost(const AmpModel *model, const AmpCluster *cluster,
                       const AmpOptions *options, const AmpStrategy *strategy)
{
    g_autoptr(AmpRows) rows = amp_rows_new(model, cluster, options, strategy);
    return amp_rows_cost(rows, strategy->first);
}
