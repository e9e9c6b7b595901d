/* Fitting a cluster's costs to measurements. */
#include "data/base/free.h"
#include "experiments/calibration/calibrate_work.h"

#include <math.h>
#include <string.h>

#include "experiments/calibration/curve_fit.h"
#include "sim/sim.h"

enum { BOOTSTRAP_ROUNDS = 200, LEAST_ROWS = 3 };
/* The line of the largest tensors is fitted to rows of up to this part of the largest. */
static const double LARGE = 1.0 / 16;

/* --- rows of one fit --- */

typedef struct {
    uint32_t n, k;
    uint32_t *index; /* indices of the measurements */
    double *a, *y, *bytes;
} Rows;

static CLEAR_DEFINE(rows_clear, Rows, rows,
                    free_each(rows->index, rows->a, rows->y, rows->bytes));

static bool calibrate_belongs(const Work *work, uint32_t i, const CalibrationFit *fit)
{
    const Measurement *m = calibrate_row(work, i);
    const Placing *placing = &work->placing[i];
    if (placing->place != fit->place)
        return false;
    switch (fit->place) {
    case PLACE_OP:
        return m->op == fit->op && strcmp(m->device, fit->device) == 0;
    case PLACE_INNER:
    case PLACE_BETWEEN:
        if (fit->collective == COLLECTIVES) /* the inner link's own line */
            return placing->nearest && placing->type == fit->type;
        return !m->send && m->collective == fit->collective && m->ranks == fit->ranks &&
               calibrate_hosts(m, placing) == fit->hosts && placing->type == fit->type;
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

/* The bytes of a row: those of equal parts that take as long where the largest part decides. */
static double row_bytes(const Measurement *m)
{
    const bool parts = m->collective == COLLECTIVE_ALL_GATHER ||
                       m->collective == COLLECTIVE_REDUCE_SCATTER ||
                       m->collective == COLLECTIVE_ALL_TO_ALL;
    return parts && m->share > 0 ? m->bytes * m->share * m->ranks : m->bytes;
}

static gint by_bytes(gconstpointer a, gconstpointer b, gpointer measurements)
{
    const Measurement *list = (const Measurement *)measurements;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const double x = row_bytes(&list[i]), y = row_bytes(&list[j]);
    return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

/* The rows of a fit by their bytes, the smallest first. */
static Rows calibrate_rows_of(const Work *work, const CalibrationFit *fit)
{
    const uint32_t most = work->measurements->len;
    Rows rows = {.k = fit->device ? 3 : 2};
    rows.index = g_new(uint32_t, most + 1);
    for (uint32_t i = 0; i < most; i++)
        if (calibrate_belongs(work, i, fit))
            rows.index[rows.n++] = i;
    g_qsort_with_data(rows.index, (gint)rows.n, sizeof *rows.index, by_bytes,
                      work->measurements->data);
    rows.a = g_new(double, (size_t)rows.n *rows.k + 1);
    rows.y = g_new(double, rows.n + 1);
    rows.bytes = g_new(double, rows.n + 1);
    for (uint32_t r = 0; r < rows.n; r++) {
        const Measurement *m = calibrate_row(work, rows.index[r]);
        double *a = rows.a + (size_t)r * rows.k;
        if (fit->device) {
            a[0] = 1;
            a[1] = m->flops;
            a[2] = m->bytes;
        } else {
            exchange_terms(m, work->placing[rows.index[r]].a_host, a);
        }
        rows.bytes[r] = row_bytes(m);
        rows.y[r] = m->median_s;
    }
    return rows;
}

/* --- fits --- */

/* Fits one line to the rows from `first` on. */
static void fit_line(const Work *work, const Rows *rows, uint32_t first,
                     CalibrationLine *line)
{
    const FitData data = {rows->n - first, rows->k, rows->a + (size_t)first * rows->k,
                          rows->y + first};
    fit_robust(&data, line->x);
    fit_bootstrap(&data, BOOTSTRAP_ROUNDS, work->options->seed, line->low, line->high);
}

/* The link inside machines of the device type, on its sheet; NULL: not known. */
static const LinkSheet *inner_link(const Work *work, const CalibrationFit *fit)
{
    const DeviceSheet *device =
        fit->place == PLACE_INNER && fit->type != UINT32_MAX
            ? sheets_device(work->sheets, work->cluster->type[fit->type].name, NULL)
            : NULL;
    return device && device->n_links > 0
               ? sheets_link(work->sheets, device->link[0].name, NULL)
               : NULL;
}

/* Adds a curve through the rows to the cluster. */
static void fit_curve(Work *work, Rows *rows, CalibrationFit *fit, double *predicted)
{
    CollectiveCurves *curves = &work->cluster->curves;
    const bool inner = fit->place == PLACE_INNER && fit->type != UINT32_MAX;
    const LinkSheet *link = inner_link(work, fit);
    uint32_t large = rows->n - 1;
    CollectiveCurve curve = {
        .kind = fit->collective,
        .device = inner ? g_strdup(work->cluster->type[fit->type].name) : NULL,
        .ranks = fit->ranks,
        .hosts = fit->hosts,
        .sums = link ? link->sums : 0,
        .own = link ? link->own : 0,
        .source = g_strdup(work->options->source)};
    curve.point = curve_fit_points(rows->bytes, rows->y, rows->n, &curve.n);
    for (uint32_t p = 0; p < curve.n; p++)
        curve.point[p].seconds = calibrate_rounded(curve.point[p].seconds);
    curve_fit_predict(&curve, rows->bytes, rows->n, predicted);
    while (large > 0 && (rows->bytes[large - 1] >= rows->bytes[rows->n - 1] * LARGE ||
                         rows->n - large < LEAST_ROWS))
        large--;
    fit_line(work, rows, large, &fit->line);
    curves->curve = g_renew(CollectiveCurve, curves->curve, curves->n + 1);
    curves->curve[curves->n++] = curve;
    fit->curve = curves->n;
}

/* Fits the op, collective or link that `fit` names, if there are measurements of it. */
static void add_fit(Work *work, CalibrationFit fit)
{
    Rows rows = calibrate_rows_of(work, &fit);
    if (rows.n > 0) {
        g_autofree double *predicted = g_new(double, rows.n);
        const bool curve = fit.collective != COLLECTIVES;
        fit.smallest = INFINITY;
        if (!fit.device)
            fit.ranks = calibrate_row(work, rows.index[0])->ranks;
        for (uint32_t i = 0; i < rows.n; i++) {
            fit.smallest = fmin(fit.smallest, rows.bytes[i]);
            fit.largest = fmax(fit.largest, rows.bytes[i]);
            fit.nearest |= work->placing[rows.index[i]].nearest;
        }
        fit.largest = fmax(fit.largest, 1);
        if (curve)
            fit_curve(work, &rows, &fit, predicted);
        else
            fit_line(work, &rows, 0, &fit.line);
        for (uint32_t i = 0; i < rows.n; i++) {
            if (!curve)
                predicted[i] = fit_at(rows.a + (size_t)i * rows.k, fit.line.x, rows.k);
            double *of_row = &work->predicted_s[rows.index[i]];
            *of_row = curve || isnan(*of_row) ? predicted[i] : *of_row;
        }
        fit.agreement = statistics_agreement(predicted, rows.y, rows.n);
        g_array_append_val(work->fits, fit);
    }
    rows_clear(&rows);
}

/* Adds a curve for each number of ranks and machines that a collective was measured among in that
 * place, few ranks first. */
static void add_curves(Work *work, CalibrationFit fit)
{
    for (fit.ranks = 0;;) {
        uint32_t ranks = UINT32_MAX, hosts = UINT32_MAX;
        for (uint32_t i = 0; i < work->measurements->len; i++) {
            const Measurement *m = calibrate_row(work, i);
            const Placing *placing = &work->placing[i];
            const uint32_t own = calibrate_hosts(m, placing);
            if (placing->place != fit.place || m->send || placing->type != fit.type ||
                m->collective != fit.collective || m->ranks < fit.ranks ||
                (m->ranks == fit.ranks && own <= fit.hosts))
                continue;
            if (m->ranks < ranks || (m->ranks == ranks && own < hosts)) {
                ranks = m->ranks;
                hosts = own;
            }
        }
        if (ranks == UINT32_MAX)
            return;
        fit.ranks = ranks;
        fit.hosts = hosts;
        add_fit(work, fit);
    }
}

static Agreement agreement_of_all(const Work *work)
{
    g_auto(Pairs) pairs = {0};
    for (uint32_t i = 0; i < work->measurements->len; i++)
        pairs_add(&pairs, work->predicted_s[i], calibrate_row(work, i)->median_s);
    return statistics_of_pairs(&pairs);
}

/* The bandwidth inside the machines that a curve is about, if it is PCIe; 0: it is not. */
static double pcie_of(const Work *work, const CollectiveCurve *curve)
{
    const Cluster *cluster = work->cluster;
    for (uint32_t i = 0; curve->device && i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i];
        const CalibrationFit fit = {.place = PLACE_INNER, .type = machine->type};
        const LinkSheet *link = inner_link(work, &fit);
        if (link && g_str_has_prefix(link->name, "pcie") && !machine->peers &&
            strcmp(cluster->type[machine->type].name, curve->device) == 0)
            return machine->inner.bandwidth;
    }
    return 0;
}

/* Two ranks on PCIe have a path that further ranks share. Where two were not measured, they take no
 * longer than the cluster's link lets them: a curve for them, from which others follow between. */
static void add_two(Work *work, const CollectiveCurve few, double bandwidth)
{
    CollectiveCurves *curves = &work->cluster->curves;
    const double wire = curve_wire(few.kind, (CurvePlace){few.device, 2, 1}, 0, 0);
    CollectiveCurve two = few;
    LinkCost line;
    two.ranks = 2;
    two.point = g_memdup2(few.point, few.n * sizeof *few.point);
    for (CurvePoint *point = two.point; point < two.point + two.n; point++) {
        double at_s[2];
        for (uint32_t k = 0; k < 2; k++) {
            const double bytes = k * point->bytes;
            curves_line(curves, few.kind, (CurvePlace){few.device, 2, 1}, bytes, &line);
            at_s[k] = sim_collective_over(line, 2, few.kind, bytes, 0.5, 0.5);
        }
        point->seconds =
            calibrate_rounded(fmin(at_s[1], at_s[0] + point->bytes * wire / bandwidth));
    }
    two.device = g_strdup(few.device);
    two.source =
        g_strdup_printf("not measured: others, to the link's rate; %s", few.source);
    curves->curve = g_renew(CollectiveCurve, curves->curve, curves->n + 1);
    curves->curve[curves->n++] = two;
}

/* The curves of a kind and place follow one another, those of few ranks first. */
static void add_twos(Work *work)
{
    const CollectiveCurves *curves = &work->cluster->curves;
    for (uint32_t c = 0, n = curves->n; c < n; c++) {
        const CollectiveCurve *few = &curves->curve[c], *last = c > 0 ? few - 1 : NULL;
        const bool first = !last || last->kind != few->kind || last->hosts != 1 ||
                           g_strcmp0(last->device, few->device) != 0;
        const double bandwidth = pcie_of(work, few);
        if (first && few->hosts == 1 && few->ranks > 2 && bandwidth > 0)
            add_two(work, *few, bandwidth);
    }
}

/* Fits ops, by device type in the cluster's order and by kind, then collectives between machines
 * and inside them. */
static void calibrate_fit_all(Work *work)
{
    const uint32_t n_types = work->cluster->n_types;
    CollectiveCurves *curves = &work->cluster->curves;
    for (uint32_t t = 0; t < n_types; t++)
        for (uint32_t kind = 0; kind < OP_KINDS; kind++)
            add_fit(work, (CalibrationFit){.place = PLACE_OP,
                                           .device = work->cluster->type[t].name,
                                           .op = (OpKind)kind,
                                           .collective = COLLECTIVES});
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        add_curves(work, (CalibrationFit){.place = PLACE_BETWEEN,
                                          .op = OP_KINDS,
                                          .collective = (Collective)kind});
    add_fit(work, (CalibrationFit){
                      .place = PLACE_SEND, .op = OP_KINDS, .collective = COLLECTIVES});
    for (uint32_t t = 0; t <= n_types; t++) {
        CalibrationFit inner = {.place = PLACE_INNER,
                                .type = t < n_types ? t : UINT32_MAX,
                                .op = OP_KINDS,
                                .collective = COLLECTIVES};
        add_fit(work, inner);
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
            inner.collective = (Collective)kind;
            add_curves(work, inner);
        }
    }
    curve_fit_steps(curves, work->sheets);
    for (uint32_t c = 0; c < curves->n; c++)
        curves->curve[c].step_s = calibrate_rounded(curves->curve[c].step_s);
    add_twos(work);
}

/* Fails if no cost of the cluster was fitted. */
static bool check_used(const Work *work, GError **error)
{
    const char *reason = NULL;
    for (uint32_t i = 0; !reason && i < work->measurements->len; i++)
        reason = work->placing[i].reason;
    return work->fits->len > 0 ||
           refuse(error, "none of the %u measurements can be used on cluster %s: %s",
                  work->measurements->len,
                  work->options->base ? work->options->base->name : work->options->name,
                  reason ? reason : "they are of other devices");
}

Calibration *calibrate(const GArray *measurements, const CalibrateOptions *options,
                       GError **error)
{
    g_autoptr(Calibration) calibration = g_new0(Calibration, 1);
    Work work = {.options = options,
                 .ranks = 1,
                 .fits = g_array_new(FALSE, FALSE, sizeof(CalibrationFit))};
    calibration->predicted_s = work.predicted_s = g_new(double, measurements->len + 1);
    for (uint32_t i = 0; i < measurements->len; i++)
        work.predicted_s[i] = NAN;
    g_autoptr(Sheets) sheets = sheets_load(error);
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Measurement));
    g_array_append_vals(rows, measurements->data, measurements->len);
    work.measurements = rows;
    work.sheets = sheets;
    bool good = sheets && (options->base ? calibrate_take_base(&work, rows, error)
                                         : calibrate_make_cluster(&work, error));
    if (good) {
        calibration->placing = work.placing =
            place_measurements(rows, work.cluster, sheets);
        calibrate_fit_all(&work);
        good = check_used(&work, error) && calibrate_put_fits(&work, error);
        calibration->agreement = agreement_of_all(&work);
    }
    calibration->cluster = work.cluster;
    calibration->n_fits = work.fits->len;
    calibration->fit = (CalibrationFit *)(void *)g_array_free(work.fits, FALSE);
    return good ? g_steal_pointer(&calibration) : NULL;
}

FREE_DEFINE(calibration_free, Calibration, calibration,
            cluster_free(calibration->cluster),
            free_each(calibration->fit, calibration->predicted_s, calibration->placing));
