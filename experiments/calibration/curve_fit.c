/* Curves of collectives from measurements. */
#include "experiments/calibration/curve_fit.h"

#include <math.h>

#include "data/base/order.h"

static const double SAME_SIZE = 1.40; /* just below half an octave */

/* --- points --- */

static ORDER_DEFINE(by_bytes, CurvePoint, ASCENDING(bytes), ASCENDING(seconds));

static ORDER_DEFINE(by_seconds, CurvePoint, ASCENDING(seconds), ASCENDING(bytes));

/* Sorted rows become one point per size, in place; weight[point]: its number of rows. */
static uint32_t take_medians(CurvePoint *row, uint32_t n, double *weight)
{
    uint32_t kept = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && row[end].bytes <= row[i].bytes * SAME_SIZE;)
            end++;
        qsort(&row[i], end - i, sizeof *row, by_seconds);
        weight[kept] = end - i;
        row[kept++] = row[i + (end - i - 1) / 2];
    }
    return kept;
}

/* Pools neighbours that fall: block b has the mean logarithm of its points. */
static void pool(CurvePoint *point, const double *weight, uint32_t n)
{
    g_autofree double *mean = g_new(double, n), *sum = g_new(double, n);
    g_autofree uint32_t *size = g_new(uint32_t, n);
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean[blocks] = log(point[i].seconds);
        sum[blocks] = weight[i];
        size[blocks++] = 1;
        for (; blocks > 1 && mean[blocks - 2] > mean[blocks - 1]; blocks--) {
            const double all = sum[blocks - 2] + sum[blocks - 1];
            mean[blocks - 2] = (mean[blocks - 2] * sum[blocks - 2] +
                                mean[blocks - 1] * sum[blocks - 1]) /
                               all;
            sum[blocks - 2] = all;
            size[blocks - 2] += size[blocks - 1];
        }
    }
    for (uint32_t b = 0, i = 0; b < blocks; i += size[b++])
        for (uint32_t k = 0; size[b] > 1 && k < size[b]; k++)
            point[i + k].seconds = exp(mean[b]);
}

CurvePoint *curve_fit_points(const double *bytes, const double *seconds, uint32_t n,
                             uint32_t *n_points)
{
    g_assert(n > 0);
    CurvePoint *point = g_new(CurvePoint, n);
    g_autofree double *weight = g_new(double, n);
    for (uint32_t i = 0; i < n; i++)
        point[i] = (CurvePoint){bytes[i], seconds[i]};
    qsort(point, n, sizeof *point, by_bytes);
    *n_points = take_medians(point, n, weight);
    qsort(point, *n_points, sizeof *point, by_bytes);
    pool(point, weight, *n_points);
    return point;
}

void curve_fit_predict(const CollectiveCurve *curve, const double *bytes, uint32_t n,
                       double *predicted_s)
{
    g_autofree CurvePoint *rest = g_new(CurvePoint, curve->n);
    CollectiveCurve without = *curve;
    without.point = rest;
    for (uint32_t i = 0; i < n; i++) {
        without.n = 0;
        for (uint32_t p = 0; p < curve->n; p++)
            if (fabs(log(curve->point[p].bytes / bytes[i])) > log(SAME_SIZE))
                rest[without.n++] = curve->point[p];
        predicted_s[i] = curve_at(without.n > 0 ? &without : curve, bytes[i]);
    }
}

/* --- latency per step --- */

static CurvePlace curve_place_of(const CollectiveCurve *curve)
{
    return (CurvePlace){curve->device, curve->ranks, curve->hosts};
}

/* The slope of latency over steps by least squares, at least 0, and at most such that no curve's
 * latency is used up by its own steps; NAN for curves with equal numbers of steps. */
static double slope_of(const CollectiveCurves *curves, const CollectiveCurve *like)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, most = INFINITY;
    items_each (const CollectiveCurve, curve, curves->curve, curves->n) {
        if (!(curve->kind == like->kind && (curve->hosts == 1) == (like->hosts == 1) &&
              g_strcmp0(curve->device, like->device) == 0))
            continue;
        const double steps = curve_steps(curve->kind, curve_place_of(curve));
        const double latency_s = curve_at(curve, 0);
        n++;
        x += steps;
        y += latency_s;
        xx += steps * steps;
        xy += steps * latency_s;
        most = fmin(most, latency_s / steps);
    }
    const double spread = n * xx - x * x;
    return spread > 1e-9 * n * xx ? fmin(fmax((n * xy - x * y) / spread, 0), most) : NAN;
}

/* The part of a latency of that many steps that one step has, by the sheet of the device's fastest
 * link, or of links of other kinds. */
static double sheet_part(const Sheets *sheets, const CollectiveCurve *curve)
{
    const DeviceSheet *device =
        curve->device ? sheets_device(sheets, curve->device, NULL) : NULL;
    const LinkSheet *link = device && device->n_links > 0
                                ? sheets_link(sheets, device->link[0].name, NULL)
                                : NULL;
    const double base_s = link ? link->base_s : sheets->base_s;
    const double hop_s = link ? link->hop_s : sheets->hop_s;
    const double all_s = base_s + hop_s * curve_steps(curve->kind, curve_place_of(curve));
    return all_s > 0 ? hop_s / all_s : 0;
}

void curve_fit_steps(CollectiveCurves *curves, const Sheets *sheets)
{
    items_each (CollectiveCurve, curve, curves->curve, curves->n) {
        const double slope = slope_of(curves, curve);
        if (isnan(slope))
            curve->step_s = sheet_part(sheets, curve) * curve_at(curve, 0);
        else
            curve->step_s = slope;
    }
}
