/* Fitting a cluster's costs to measurements. */
#include "experiments/calibration/calibrate_work.h"

#include <math.h>
#include <string.h>

#include "sim/sim.h"

enum { BOOTSTRAP_ROUNDS = 200 };

/* --- rows of one fit --- */

typedef struct {
    uint32_t n, k;
    uint32_t *index; /* indices of the measurements */
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
    const Measurement *m = calibrate_row(work, i);
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

/* The coefficients of a collective: the number of latencies, and the bytes that its formula divides
 * by the bandwidth. Where `a_host` ranks share a machine's port, each rank of an all-to-all has the
 * part of the port that cluster_view gives it. */
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
        const Measurement *m = calibrate_row(work, i);
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

/* Fits one line. */
static void fit_line(const Work *work, const Rows *rows, CalibrationFit *fit)
{
    const FitData data = {rows->n, rows->k, rows->a, rows->y};
    fit->n_lines = 1;
    fit->line[0].up_to = INFINITY;
    fit_robust(&data, fit->line[0].x);
    bootstrap(work, &data, &fit->line[0]);
}

/* Fits a collective in pieces. Intervals hold for fixed breakpoints, which are not resampled. */
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

/* Fits the op or collective that `fit` names, if there are measurements of it. */
static void add_fit(Work *work, CalibrationFit fit)
{
    Rows rows = rows_of(work, &fit);
    if (rows.n > 0) {
        g_autofree double *predicted = g_new(double, rows.n);
        fit.smallest = INFINITY;
        fit.ranks = fit.device ? 0 : calibrate_row(work, rows.index[0])->ranks;
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

static Agreement agreement_of_all(const Work *work)
{
    g_autoptr(GArray) predicted = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) measured = g_array_new(FALSE, FALSE, sizeof(double));
    for (uint32_t i = 0; i < work->measurements->len; i++)
        if (!isnan(work->predicted_s[i])) {
            g_array_append_val(predicted, work->predicted_s[i]);
            g_array_append_val(measured, calibrate_row(work, i)->median_s);
        }
    return statistics_agreement((const double *)(const void *)predicted->data,
                                (const double *)(const void *)measured->data,
                                predicted->len);
}

/* Fits ops, by device type in the cluster's order and by kind, then collectives between
 * machines. */
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

/* Fails if no cost of the cluster was fitted. */
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
    bool good = options->base ? calibrate_take_base(&work, error)
                              : calibrate_make_cluster(&work, error);
    g_autoptr(Sheets) sheets = good ? sheets_load(error) : NULL;
    if (sheets) {
        calibration->placing = work.placing =
            place_measurements(measurements, work.cluster, sheets);
        fit_all(&work);
        good = check_used(&work, error) && calibrate_put_fits(&work, error);
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
