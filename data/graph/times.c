/* Curves of measured times, lines below them, and which op has which. */
#include "data/graph/times.h"

#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/order.h"
#include "data/graph/build.h"

#include <math.h>
#include <string.h>

static FREE_DEFINE(op_times_free, OpTimes, times,
                   free_column(times->curve, times->n, point), g_free(times->curve));

static ORDER_DEFINE(by_samples, TimePoint, ASCENDING(samples));

/* Copies the points, of other samples each, in any order. */
static void add_curve(OpTimes *times, const char *type, uint32_t n,
                      const TimePoint *point)
{
    g_assert(n > 0 && !op_times_of(times, type));
    uint32_t at = 0;
    while (at < times->n && strcmp(times->curve[at].type, type) < 0)
        at++;
    times->curve = g_renew(TimeCurve, times->curve, times->n + 1);
    memmove(times->curve + at + 1, times->curve + at,
            (times->n - at) * sizeof *times->curve);
    times->n++;
    TimeCurve *curve = &times->curve[at];
    *curve = (TimeCurve){type, n, g_memdup2(point, n * sizeof *point)};
    qsort(curve->point, n, sizeof *curve->point, by_samples);
}

const TimeCurve *op_times_of(const OpTimes *times, const char *type)
{
    return NAME_ROW(times->curve, times->n, type, type);
}

static double on_line(const TimePoint *a, const TimePoint *b, double samples)
{
    KILTER_ASSERT(a->samples < b->samples);
    return a->seconds +
           (b->seconds - a->seconds) * (samples - a->samples) / (b->samples - a->samples);
}

/* The time of a batch without samples. */
static double at_none(const TimeCurve *curve)
{
    return curve->n == 1 ? 0
                         : fmax(0, fmin(on_line(&curve->point[0], &curve->point[1], 0),
                                        curve->point[0].seconds));
}

double time_curve_at(const TimeCurve *curve, double samples)
{
    KILTER_ASSERT(samples >= 0);
    const TimePoint *last = &curve->point[curve->n - 1];
    TimePoint before = {0, at_none(curve)};
    for (uint32_t i = 0; i < curve->n; i++) {
        if (samples <= curve->point[i].samples)
            return on_line(&before, &curve->point[i], samples);
        if (i + 1 < curve->n)
            before = curve->point[i];
    }
    return fmax(last->seconds, on_line(&before, last, samples));
}

TimeLine time_curve_line(const TimeCurve *curve, double most, double at)
{
    g_assert(most >= 0 && at >= 0 && at <= most);
    const TimePoint first = {0, at_none(curve)};
    g_autofree TimePoint *knot = g_new(TimePoint, curve->n + 2);
    uint32_t n = 0;
    knot[n++] = first;
    for (uint32_t i = 0; i < curve->n && curve->point[i].samples < most; i++)
        knot[n++] = curve->point[i];
    if (most > 0)
        knot[n++] = (TimePoint){most, time_curve_at(curve, most)};
    /* The edge of the lower hull that lies over `at`: from the last of its corners not beyond, the
     * flattest line. */
    uint32_t corner = 0, next = 0;
    do {
        corner = next;
        for (uint32_t i = next = corner + 1; i < n; i++)
            if ((knot[i].seconds - knot[corner].seconds) *
                    (knot[next].samples - knot[corner].samples) <=
                (knot[next].seconds - knot[corner].seconds) *
                    (knot[i].samples - knot[corner].samples))
                next = i;
    } while (next < n && knot[next].samples < at);
    TimeLine line = {first.seconds, 0};
    if (next < n) {
        line.slope = (knot[next].seconds - knot[corner].seconds) /
                     (knot[next].samples - knot[corner].samples);
        line.fixed = knot[corner].seconds - line.slope * knot[corner].samples;
    }
    if (line.fixed < 0) { /* the steepest line from nothing that is below all of them */
        line = (TimeLine){0, INFINITY};
        for (uint32_t i = 1; i < n; i++)
            line.slope = fmin(line.slope, knot[i].seconds / knot[i].samples);
    }
    if (line.slope < 0) /* the level of the lowest */
        for (line = (TimeLine){INFINITY, 0}, next = 0; next < n; next++)
            line.fixed = fmin(line.fixed, knot[next].seconds);
    return line;
}

/* --- of a graph --- */

void graph_set_times(Graph *graph, OpId id, const char *type, uint32_t n,
                     const TimePoint *point)
{
    g_assert(!graph->sealed && op_kind_is_opaque(graph_get_op(graph, id)->kind));
    if (!graph->times)
        graph->times =
            g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)op_times_free);
    OpTimes *times = g_hash_table_lookup(graph->times, GUINT_TO_POINTER(id));
    if (!times) {
        times = g_new0(OpTimes, 1);
        g_hash_table_insert(graph->times, GUINT_TO_POINTER(id), times);
    }
    add_curve(times, g_string_chunk_insert_const(graph->names, type), n, point);
}

const OpTimes *graph_op_times(const Graph *graph, OpId id)
{
    return graph->times ? g_hash_table_lookup(graph->times, GUINT_TO_POINTER(id)) : NULL;
}

bool graph_has_times(const Graph *graph)
{
    return graph->times != NULL;
}

uint32_t graph_op_samples(const Graph *graph, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    KILTER_ASSERT(op_kind_is_opaque(op->kind));
    /* The gradient of weights is of all samples: those of the gradient that it is made of. */
    const bool sums = graph_tensor(graph, op->out[0])->rank == 1;
    return graph_tensor(graph, sums ? op->in[0] : op->out[0])->dim[0];
}
