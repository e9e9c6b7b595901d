/* Putting fitted costs into a cluster. */
#include "experiments/calibration/calibrate_work.h"

#include <math.h>
#include <string.h>

enum { KEPT_DIGITS = 6 };

static const double FASTEST = 1e18; /* data/cluster/read.c: LARGEST */

double calibrate_rounded(double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
    g_snprintf(format, sizeof format, "%%.%dg", KEPT_DIGITS);
    g_ascii_formatd(text, sizeof text, format, value);
    return g_ascii_strtod(text, NULL);
}

/* Units per second, from seconds per unit. */
static double per_second(double seconds)
{
    return seconds > 1 / FASTEST ? calibrate_rounded(1 / seconds) : INFINITY;
}

static LinkCost link_of(const CalibrationLine *line)
{
    return (LinkCost){calibrate_rounded(line->x[0]),
                      fmin(per_second(line->x[1]), FASTEST)};
}

static void put_op(DeviceType *type, const CalibrationFit *fit)
{
    const double *x = fit->line.x;
    type->op = type->op ? type->op : g_new0(OpCost, OP_KINDS);
    type->op[fit->op] = (OpCost){.overhead_s = calibrate_rounded(x[0]),
                                 .rate = per_second(x[1]),
                                 .bandwidth = per_second(x[2]),
                                 .smallest = fit->smallest,
                                 .largest = fit->largest};
}

/* The collective's line; its curve takes the place of pieces of the base. */
static void put_collective(Cluster *cluster, const CalibrationFit *fit)
{
    CollectivePieces *pieces = &cluster->pieces[fit->collective];
    g_free(pieces->piece);
    *pieces = (CollectivePieces){.smallest = fit->smallest, .largest = fit->largest};
    cluster->collective[fit->collective] = link_of(&fit->line);
}

static void put_inner(Cluster *cluster, const CalibrationFit *fit, const char *source)
{
    items_each (Machine, machine, cluster->machine, cluster->n_machines) {
        if (machine->gpus == 1 || (fit->type != UINT32_MAX && fit->type != machine->type))
            continue;
        machine->inner = link_of(&fit->line);
        put_block(machine->source, g_strdup(source));
    }
}

/* The type of that name, or whose data sheet is of the product of that name, as traces call it;
 * NULL: there is none. */
static DeviceType *find_type(const Work *work, const char *name)
{
    const DeviceSheet *sheet = sheets_device(work->sheets, name, NULL);
    DeviceType *type = work->cluster->type;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < work->cluster->n_types; i++)
            if (strcmp(type[i].name, name) == 0 ||
                (pass > 0 && sheet && device_sheet_is_called(sheet, type[i].name)))
                return &type[i];
    return NULL;
}

/* The mean FLOP/s over all measured ops of a device with some, which planners use as its speed. */
static double mean_rate(const Work *work, const char *device)
{
    double flops = 0, seconds = 0;
    for (uint32_t i = 0; i < work->measurements->len; i++) {
        const Measurement *m = calibrate_row(work, i);
        if (m->op == OP_KINDS || strcmp(m->device, device) != 0)
            continue;
        flops += m->flops;
        seconds += m->median_s;
    }
    return fmax(calibrate_rounded(flops / seconds), 1);
}

/* The name of the only device type whose ops were measured. */
static const char *only_device(const Work *work, GError **error)
{
    const char *device = NULL;
    for (uint32_t i = 0; i < work->measurements->len; i++) {
        const Measurement *m = calibrate_row(work, i);
        if (m->op == OP_KINDS)
            continue;
        if (device && strcmp(device, m->device) != 0)
            return refused(
                error,
                "ops of %s and of %s were measured: give the cluster that they are in "
                "with --base",
                device, m->device);
        device = m->device;
    }
    if (!device)
        refuse(error, "no op was measured, so nothing says how fast the devices are: "
                      "give a cluster with --base");
    return device;
}

bool calibrate_make_cluster(Work *work, GError **error)
{
    const char *device = only_device(work, error);
    const CalibrateOptions *options = work->options;
    if (!device)
        return false;
    for (uint32_t i = 0; !options->ranks && i < work->measurements->len; i++)
        work->ranks = MAX(work->ranks, calibrate_row(work, i)->ranks);
    work->ranks = options->ranks ? options->ranks : work->ranks;
    Cluster *cluster = work->cluster = g_new0(Cluster, 1);
    cluster->description = g_strdup("");
    cluster->n_types = 1;
    cluster->type = g_new0(DeviceType, 1);
    cluster->type[0] = (DeviceType){.name = g_strdup(device),
                                    .rate = mean_rate(work, device),
                                    .memory_bytes = options->memory_bytes,
                                    .slowdown = 1};
    cluster->n_machines = work->ranks;
    cluster->machine = g_new0(Machine, work->ranks);
    for (uint32_t i = 0; i < work->ranks; i++)
        cluster->machine[i] = (Machine){.name = g_strdup_printf("rank-%u", i),
                                        .gpus = 1,
                                        .inner = {0, INFINITY},
                                        .source = g_strdup(options->source)};
    return true;
}

bool calibrate_take_base(Work *work, GArray *rows, GError **error)
{
    const Cluster *base = work->options->base;
    if (base->network)
        return refuse(
            error, "--base: cluster %s has a topology, which calibration does not keep",
            base->name);
    g_autofree char *text = cluster_write(base);
    work->cluster = cluster_parse("--base", text, strlen(text), error);
    if (!work->cluster)
        return false;
    work->ranks = base->n_machines;
    for (uint32_t i = 0; i < work->measurements->len; i++) {
        const Measurement *m = calibrate_row(work, i);
        const DeviceType *type = m->op < OP_KINDS ? find_type(work, m->device) : NULL;
        if (type)
            g_array_index(rows, Measurement, i).device = type->name;
        else if (m->op < OP_KINDS)
            return refuse(error,
                          "--base: cluster %s has no device type %s, which was measured",
                          base->name, m->device);
    }
    return true;
}

bool calibrate_put_fits(Work *work, GError **error)
{
    Cluster *cluster = work->cluster;
    bool fitted[COLLECTIVES_PRICED] = {false}, any = false;
    put_block(cluster->name, g_strdup(work->options->name));
    array_each (const CalibrationFit, fit, work->fits) {
        if (fit->device) {
            DeviceType *type = find_type(work, fit->device);
            put_op(type, fit);
            put_block(type->source, g_strdup(work->options->source));
        } else if (fit->place == PLACE_INNER && !fit->curve) {
            put_inner(cluster, fit, work->options->source);
        } else if (fit->place == PLACE_SEND) {
            cluster->transfer = link_of(&fit->line);
            any = true;
        } else if (fit->place == PLACE_BETWEEN && fit->nearest) {
            put_collective(cluster, fit);
            fitted[fit->collective] = any = true;
        }
    }
    for (uint32_t kind = 0; cluster->n_machines > 1 && kind < COLLECTIVES_PRICED; kind++)
        if (!fitted[kind] && !work->options->base)
            return refuse(error,
                          "no %s among %u ranks was measured: measure it, or give a "
                          "cluster with --base",
                          collective_name((Collective)kind), work->ranks);
    if (any || !cluster->collective_source)
        put_block(cluster->collective_source, g_strdup(work->options->source));
    return true;
}
