/* Fitting a cluster's costs to measurements. */
#include "experiments/calibration/calibrate.h"

#include <math.h>
#include <string.h>

#include "sim/sim.h"

enum { BOOTSTRAP_ROUNDS = 200, KEPT_DIGITS = 6 };

typedef struct {
    const GArray *measurements;
    const CalibrateOptions *options;
    Cluster *cluster;
    uint32_t ranks;
    GArray *fits;
    double *predicted_s;
    Placing *placing;
} Work;

static const Measurement *row(const Work *work, uint32_t i)
{
    return &g_array_index(work->measurements, Measurement, i);
}

/* --- rows of one fit --- */

typedef struct {
    uint32_t n, k;
    uint32_t *index; /* of the measurement */
    double *a, *y, *bytes;
} Rows;

static void rows_clear(Rows *rows)
{
    g_free(rows->index);
    g_free(rows->a);
    g_free(rows->y);
    g_free(rows->bytes);
}

static bool belongs(const Work *work, uint32_t i, const CalibrationFit *fit)
{
    const Measurement *m = row(work, i);
    const Placing *placing = &work->placing[i];
    if (placing->place != fit->place)
        return false;
    switch (fit->place) {
    case PLACE_OP:
        return m->op == fit->op && strcmp(m->device, fit->device) == 0;
    case PLACE_BETWEEN:
        return m->collective == fit->collective;
    case PLACE_INNER:
        return placing->type == fit->type;
    default:
        return true;
    }
}

/* How often a collective pays its latency, and the bytes that its formula divides by the bandwidth. Where
 * `a_host` ranks share a machine's port, an all-to-all has the part of it that cluster_view gives each. */
static void exchange_terms(const Measurement *m, uint32_t a_host, double *a)
{
    ClusterView view = {.n_devices = m->ranks};
    if (m->send) {
        a[0] = 1;
        a[1] = m->bytes;
        return;
    }
    for (uint32_t part = 0; part < 2; part++) {
        view.collective[m->collective] =
            part == 0 ? (LinkCost){1, INFINITY} : (LinkCost){0, 1};
        a[part] = sim_collective_s(&view, m->collective, m->bytes, m->share, m->share);
    }
    const double n = m->ranks;
    if (m->collective == COLLECTIVE_ALL_TO_ALL && a_host > 1 && n > a_host)
        a[1] *= (n - a_host) * a_host / (n - 1);
}

static Rows rows_of(const Work *work, const CalibrationFit *fit)
{
    const uint32_t most = work->measurements->len;
    Rows rows = {.k = fit->device ? 3 : 2};
    rows.index = g_new(uint32_t, most + 1);
    rows.a = g_new(double, (size_t)most *rows.k + 1);
    rows.y = g_new(double, most + 1);
    rows.bytes = g_new(double, most + 1);
    for (uint32_t i = 0; i < most; i++) {
        const Measurement *m = row(work, i);
        if (!belongs(work, i, fit))
            continue;
        double *a = rows.a + (size_t)rows.n * rows.k;
        if (fit->device) {
            a[0] = 1;
            a[1] = m->flops;
            a[2] = m->bytes;
        } else {
            exchange_terms(m, work->placing[i].a_host, a);
        }
        rows.index[rows.n] = i;
        rows.bytes[rows.n] = m->bytes;
        rows.y[rows.n++] = m->median_s;
    }
    return rows;
}

/* --- fits --- */

static void bootstrap(const Work *work, const FitData *data, CalibrationLine *line)
{
    fit_bootstrap(data, BOOTSTRAP_ROUNDS, work->options->seed, line->low, line->high);
}

/* One line. */
static void fit_line(const Work *work, const Rows *rows, CalibrationFit *fit)
{
    const FitData data = {rows->n, rows->k, rows->a, rows->y};
    fit->n_lines = 1;
    fit->line[0].up_to = INFINITY;
    fit_robust(&data, fit->line[0].x);
    bootstrap(work, &data, &fit->line[0]);
}

/* The intervals of a piece are those at its breakpoints, which are not resampled. */
static void fit_collective(const Work *work, const Rows *rows, CalibrationFit *fit)
{
    const FitData data = {rows->n, rows->k, rows->a, rows->y};
    const FitPieces pieces = fit_pieces(&data, rows->bytes);
    g_autofree double *a = g_new(double, 2 * (size_t)rows->n);
    g_autofree double *y = g_new(double, rows->n);
    double above = -1;
    fit->n_lines = pieces.n;
    for (uint32_t p = 0; p < pieces.n; p++) {
        FitData own = {0, 2, a, y};
        CalibrationLine *line = &fit->line[p];
        line->up_to = pieces.piece[p].up_to;
        memcpy(line->x, pieces.piece[p].x, sizeof pieces.piece[p].x);
        for (uint32_t i = 0; i < rows->n; i++) {
            if (rows->bytes[i] <= above || rows->bytes[i] > line->up_to)
                continue;
            memcpy(a + 2 * (size_t)own.n, rows->a + 2 * (size_t)i, 2 * sizeof *a);
            y[own.n++] = rows->y[i];
        }
        bootstrap(work, &own, line);
        above = line->up_to;
    }
}

/* The digits of a fitted number that files keep, so that they can be read. */
static double rounded(double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
    g_snprintf(format, sizeof format, "%%.%dg", KEPT_DIGITS);
    g_ascii_formatd(text, sizeof text, format, value);
    return g_ascii_strtod(text, NULL);
}

static const double FASTEST = 1e18; /* data/cluster/read.c: LARGEST */

/* Units a second, of seconds a unit. */
static double per_second(double seconds)
{
    return seconds > 1 / FASTEST ? rounded(1 / seconds) : INFINITY;
}

static LinkCost link_of(const CalibrationLine *line)
{
    return (LinkCost){rounded(line->x[0]), fmin(per_second(line->x[1]), FASTEST)};
}

static double predict(const CalibrationFit *fit, const double *a, uint32_t k,
                      double bytes)
{
    uint32_t p = 0;
    while (bytes > fit->line[p].up_to)
        p++;
    double sum = 0;
    for (uint32_t j = 0; j < k; j++)
        sum += a[j] * fit->line[p].x[j];
    return sum;
}

/* Fits what `fit` names, if anything was measured of it. */
static void add_fit(Work *work, CalibrationFit fit)
{
    Rows rows = rows_of(work, &fit);
    if (rows.n > 0) {
        g_autofree double *predicted = g_new(double, rows.n);
        fit.smallest = INFINITY;
        fit.ranks = fit.device ? 0 : row(work, rows.index[0])->ranks;
        for (uint32_t i = 0; i < rows.n; i++) {
            fit.smallest = fmin(fit.smallest, rows.bytes[i]);
            fit.largest = fmax(fit.largest, rows.bytes[i]);
        }
        fit.largest = fmax(fit.largest, 1);
        (fit.place == PLACE_BETWEEN ? fit_collective : fit_line)(work, &rows, &fit);
        for (uint32_t i = 0; i < rows.n; i++)
            work->predicted_s[rows.index[i]] = predicted[i] =
                predict(&fit, rows.a + (size_t)i * rows.k, rows.k, rows.bytes[i]);
        fit.agreement = statistics_agreement(predicted, rows.y, rows.n);
        g_array_append_val(work->fits, fit);
    }
    rows_clear(&rows);
}

/* --- the cluster --- */

static void put_op(DeviceType *type, const CalibrationFit *fit)
{
    const double *x = fit->line[0].x;
    type->op = type->op ? type->op : g_new0(OpCost, OP_KINDS);
    type->op[fit->op] = (OpCost){.overhead_s = rounded(x[0]),
                                 .rate = per_second(x[1]),
                                 .bandwidth = per_second(x[2]),
                                 .smallest = fit->smallest,
                                 .largest = fit->largest};
}

static void put_collective(Cluster *cluster, const CalibrationFit *fit)
{
    CollectivePieces *pieces = &cluster->pieces[fit->collective];
    g_free(pieces->piece);
    *pieces = (CollectivePieces){.n = fit->n_lines - 1,
                                 .piece = g_new0(CollectivePiece, fit->n_lines),
                                 .smallest = fit->smallest,
                                 .largest = fit->largest};
    for (uint32_t p = 0; p + 1 < fit->n_lines; p++)
        pieces->piece[p] =
            (CollectivePiece){rounded(fit->line[p].up_to), link_of(&fit->line[p])};
    cluster->collective[fit->collective] = link_of(&fit->line[fit->n_lines - 1]);
}

static void put_inner(Cluster *cluster, const CalibrationFit *fit, const char *source)
{
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        Machine *machine = &cluster->machine[i];
        if (machine->gpus == 1 || (fit->type != UINT32_MAX && fit->type != machine->type))
            continue;
        machine->inner = link_of(&fit->line[0]);
        g_free(machine->source);
        machine->source = g_strdup(source);
    }
}

static DeviceType *find_type(Cluster *cluster, const char *name)
{
    for (uint32_t i = 0; i < cluster->n_types; i++)
        if (strcmp(cluster->type[i].name, name) == 0)
            return &cluster->type[i];
    return NULL;
}

/* FLOP/s over all ops that were measured: what planners call the device's speed. */
static double mean_rate(const Work *work, const char *device)
{
    double flops = 0, seconds = 0;
    for (uint32_t i = 0; i < work->measurements->len; i++) {
        const Measurement *m = row(work, i);
        if (m->op == OP_KINDS || strcmp(m->device, device) != 0)
            continue;
        flops += m->flops;
        seconds += m->median_s;
    }
    return seconds > 0 ? fmax(rounded(flops / seconds), 1) : 0;
}

/* Name of the one device type whose ops were measured. */
static const char *only_device(const Work *work, GError **error)
{
    const char *device = NULL;
    for (uint32_t i = 0; i < work->measurements->len; i++) {
        const Measurement *m = row(work, i);
        if (m->op == OP_KINDS)
            continue;
        if (device && strcmp(device, m->device) != 0) {
            kilter_fail(error, KILTER_ERROR_INPUT,
                        "ops of %s and of %s were measured: give the cluster that they "
                        "are in with --base",
                        device, m->device);
            return NULL;
        }
        device = m->device;
    }
    if (!device)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "no op was measured, so nothing says how fast the devices are: give "
                    "a cluster with --base");
    return device;
}

/* A machine of one device a rank. */
static bool make_cluster(Work *work, GError **error)
{
    const char *device = only_device(work, error);
    const CalibrateOptions *options = work->options;
    if (!device)
        return false;
    for (uint32_t i = 0; !options->ranks && i < work->measurements->len; i++)
        work->ranks = MAX(work->ranks, row(work, i)->ranks);
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

static bool take_base(Work *work, GError **error)
{
    const Cluster *base = work->options->base;
    if (base->network)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--base: cluster %s has a topology, which calibration does "
                           "not keep",
                           base->name);
    g_autofree char *text = cluster_write(base);
    work->cluster = cluster_parse("--base", text, strlen(text), error);
    if (!work->cluster)
        return false;
    work->ranks = base->n_machines;
    for (uint32_t i = 0; i < work->measurements->len; i++) {
        const Measurement *m = row(work, i);
        if (m->op < OP_KINDS && !find_type(work->cluster, m->device))
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "--base: cluster %s has no device type %s, which was "
                               "measured",
                               base->name, m->device);
    }
    return true;
}

static void set_text(char **text, const char *value)
{
    g_free(*text);
    *text = g_strdup(value);
}

/* Puts the fits into the cluster. */
static bool put_fits(Work *work, GError **error)
{
    Cluster *cluster = work->cluster;
    bool fitted[COLLECTIVES_PRICED] = {false}, any = false;
    set_text(&cluster->name, work->options->name);
    for (uint32_t i = 0; i < work->fits->len; i++) {
        const CalibrationFit *fit = &g_array_index(work->fits, CalibrationFit, i);
        if (fit->device) {
            DeviceType *type = find_type(cluster, fit->device);
            put_op(type, fit);
            set_text(&type->source, work->options->source);
        } else if (fit->place == PLACE_INNER) {
            put_inner(cluster, fit, work->options->source);
        } else if (fit->place == PLACE_SEND) {
            cluster->transfer = link_of(&fit->line[0]);
            any = true;
        } else {
            put_collective(cluster, fit);
            fitted[fit->collective] = any = true;
        }
    }
    for (uint32_t kind = 0; cluster->n_machines > 1 && kind < COLLECTIVES_PRICED; kind++)
        if (!fitted[kind] && !work->options->base)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "no %s among %u ranks was measured: measure it, or give a "
                               "cluster with --base",
                               collective_name((Collective)kind), work->ranks);
    if (any || !cluster->collective_source)
        set_text(&cluster->collective_source, work->options->source);
    return true;
}

static Agreement agreement_of_all(const Work *work)
{
    g_autoptr(GArray) predicted = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) measured = g_array_new(FALSE, FALSE, sizeof(double));
    for (uint32_t i = 0; i < work->measurements->len; i++)
        if (!isnan(work->predicted_s[i])) {
            g_array_append_val(predicted, work->predicted_s[i]);
            g_array_append_val(measured, row(work, i)->median_s);
        }
    return statistics_agreement((const double *)(const void *)predicted->data,
                                (const double *)(const void *)measured->data,
                                predicted->len);
}

/* Ops by device type in the cluster's order and by kind, then collectives between machines. */
static void fit_all(Work *work)
{
    for (uint32_t t = 0; t < work->cluster->n_types; t++)
        for (uint32_t kind = 0; kind < OP_KINDS; kind++)
            add_fit(work, (CalibrationFit){.place = PLACE_OP,
                                           .device = work->cluster->type[t].name,
                                           .op = (OpKind)kind,
                                           .collective = COLLECTIVES});
    for (uint32_t kind = 0; work->cluster->n_machines > 1 && kind < COLLECTIVES_PRICED;
         kind++)
        add_fit(work, (CalibrationFit){.place = PLACE_BETWEEN,
                                       .op = OP_KINDS,
                                       .collective = (Collective)kind});
    add_fit(work, (CalibrationFit){
                      .place = PLACE_SEND, .op = OP_KINDS, .collective = COLLECTIVES});
    for (uint32_t t = 0; t <= work->cluster->n_types; t++)
        add_fit(work,
                (CalibrationFit){.place = PLACE_INNER,
                                 .type = t < work->cluster->n_types ? t : UINT32_MAX,
                                 .op = OP_KINDS,
                                 .collective = COLLECTIVES});
}

/* A cluster that nothing was fitted to is no calibration. */
static bool check_used(const Work *work, GError **error)
{
    const char *reason = NULL;
    for (uint32_t i = 0; !reason && i < work->measurements->len; i++)
        reason = work->placing[i].reason;
    return work->fits->len > 0 ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "none of the %u measurements can be used on cluster %s: %s",
                       work->measurements->len,
                       work->options->base ? work->options->base->name
                                           : work->options->name,
                       reason ? reason : "they are of other devices");
}

Calibration *calibrate(const GArray *measurements, const CalibrateOptions *options,
                       GError **error)
{
    g_autoptr(Calibration) calibration = g_new0(Calibration, 1);
    Work work = {.measurements = measurements,
                 .options = options,
                 .ranks = 1,
                 .fits = g_array_new(FALSE, FALSE, sizeof(CalibrationFit))};
    calibration->predicted_s = work.predicted_s = g_new(double, measurements->len + 1);
    for (uint32_t i = 0; i < measurements->len; i++)
        work.predicted_s[i] = NAN;
    bool good = options->base ? take_base(&work, error) : make_cluster(&work, error);
    g_autoptr(Sheets) sheets = good ? sheets_load(error) : NULL;
    if (sheets) {
        calibration->placing = work.placing =
            place_measurements(measurements, work.cluster, sheets);
        fit_all(&work);
        good = check_used(&work, error) && put_fits(&work, error);
        calibration->agreement = agreement_of_all(&work);
    }
    calibration->cluster = work.cluster;
    calibration->n_fits = work.fits->len;
    calibration->fit = (CalibrationFit *)(void *)g_array_free(work.fits, FALSE);
    return good && sheets ? g_steal_pointer(&calibration) : NULL;
}

void calibration_free(Calibration *calibration)
{
    if (!calibration)
        return;
    cluster_free(calibration->cluster);
    g_free(calibration->fit);
    g_free(calibration->predicted_s);
    g_free(calibration->placing);
    g_free(calibration);
}
