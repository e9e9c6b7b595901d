/* Measured collectives as lines for any number of ranks. */
#include "data/cluster/curve.h"

#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/order.h"

/* A tensor above the largest measured one goes on with the mean slope over this factor of sizes. */
static const double LAST_SIZES = 8;
static const double FASTEST = 1e18; /* data/cluster/members.h: LARGEST */

/* --- what depends on the number of ranks --- */

double curve_steps(Collective kind, CurvePlace place)
{
    const uint32_t members = place.hosts > 1 ? place.hosts : place.ranks;
    if (kind != COLLECTIVE_ALL_REDUCE)
        return members - 1.0;
    return place.hosts > 1 ? 2 * ceil(log2(MAX(members, 2))) : 2 * (members - 1.0);
}

double curve_wire(Collective kind, CurvePlace place, double sums, double own)
{
    KILTER_ASSERT(place.ranks > 1 && place.hosts > 0 && (int)kind < COLLECTIVES_PRICED);
    const double n = place.ranks, a = place.hosts > 1 ? n / place.hosts : 1,
                 part = place.hosts > 1 ? 0 : own / n;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        return fmin(2 * (n - 1) / n + part,
                    sums > 0 && place.hosts == 1 ? sums * (n + 1) / n : INFINITY);
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
        return (n - 1) / n + part;
    case COLLECTIVE_ALL_TO_ALL:
        return a * (n - a) / (n * n) + part / n;
    default:
        return 1;
    }
}

/* The factors of latency and of bytes / bandwidth in the formula of sim/sim.h among n ranks with
 * equal parts. */
static void formula(Collective kind, double n, double *latencies, double *bytes)
{
    *latencies = 1;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        *bytes = 2 * (n - 1) / n;
        return;
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
        *bytes = (n - 1) / n;
        return;
    case COLLECTIVE_ALL_TO_ALL:
        *bytes = (n - 1) / (n * n);
        return;
    default:
        *latencies = n;
        *bytes = 1;
    }
}

/* --- lines through points --- */

typedef struct {
    double start_s, byte_s;
} Segment;

/* The line up to point i, or above all points if i is n. Times that grow faster than sizes have no
 * line with a latency: there the rate of the upper end counts. */
static Segment segment(const CurvePoint *point, uint32_t n, uint32_t i)
{
    KILTER_ASSERT(n > 0 && i <= n);
    uint32_t low = i > 0 ? i - 1 : 0, high = MIN(low + 1, n - 1);
    const CurvePoint *end = &point[MIN(i, n - 1)];
    if (i == n) {
        for (low = high = n - 1;
             low > 0 && point[low].bytes * LAST_SIZES > point[high].bytes;)
            low--;
    }
    const double bytes = point[high].bytes - point[low].bytes;
    const double slope =
        bytes > 0 ? (point[high].seconds - point[low].seconds) / bytes : INFINITY;
    const double start_s = end->seconds - slope * end->bytes;
    return start_s >= 0 ? (Segment){start_s, slope}
                        : (Segment){0, end->seconds / end->bytes};
}

/* The first point that is not below `bytes`; n: there is none. */
static uint32_t find_point(const CurvePoint *point, uint32_t n, double bytes)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (point[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double curve_at(const CollectiveCurve *curve, double bytes)
{
    const Segment line =
        segment(curve->point, curve->n, find_point(curve->point, curve->n, bytes));
    return line.start_s + line.byte_s * bytes;
}

/* --- rings --- */

void curves_add_rings(CollectiveCurves *curves, const char *device, const Peers *peers)
{
    if (NAME_ROW(curves->rings, curves->n_rings, device, device))
        return;
    curves->rings = g_renew(CurveRings, curves->rings, curves->n_rings + 1);
    CurveRings *rings = &curves->rings[curves->n_rings++];
    *rings = (CurveRings){.device = g_strdup(device), .gpus = peers->n};
    for (uint32_t n = 2; n <= peers->n; n++)
        rings->rings[n] = peers_rings(peers, n);
}

/* The number of rings among n ranks of a machine; 0: not known. */
static uint32_t rings_at(const CollectiveCurves *curves, const char *device, uint32_t n)
{
    const CurveRings *rings =
        device ? NAME_ROW(curves->rings, curves->n_rings, device, device) : NULL;
    return rings && n <= rings->gpus ? rings->rings[n] : 0;
}

/* The part of the bandwidth among `gpus` ranks of a machine that the place's ranks have by their
 * rings; 1 where rings are not known or do not matter. */
static double curves_ring_part(const CollectiveCurves *curves, Collective kind,
                               CurvePlace place, uint32_t gpus)
{
    if (place.hosts > 1 || kind == COLLECTIVE_ALL_TO_ALL)
        return 1;
    const double rings = rings_at(curves, place.device, place.ranks),
                 all = rings_at(curves, place.device, gpus);
    return rings > 0 && all > 0 ? rings / all : 1;
}

/* --- another number of ranks --- */

static CurvePlace own_place(const CollectiveCurve *curve)
{
    return (CurvePlace){curve->device, curve->ranks, curve->hosts};
}

/* The bandwidth that the ranks of a place have of the ports of their machines. */
static double port_at(const CollectiveCurves *curves, CurvePlace place)
{
    if (place.hosts == 1 || !(curves->port.bandwidth > 0))
        return 1;
    const uint32_t gpus = curves->port_gpus,
                   most = (place.ranks + place.hosts - 1) / place.hosts;
    return port_capacity(&curves->port, gpus, MIN(most, gpus));
}

/* Bytes among the measured ranks that put as many on the wire as one byte does in the place. */
static double scale_of(const CollectiveCurves *curves, const CollectiveCurve *curve,
                       CurvePlace place)
{
    return curve_wire(curve->kind, place, curve->sums, curve->own) /
           curve_wire(curve->kind, own_place(curve), curve->sums, curve->own) /
           curves_ring_part(curves, curve->kind, place, curve->ranks) *
           port_at(curves, own_place(curve)) / port_at(curves, place);
}

static double seconds_in(const CollectiveCurves *curves, const CollectiveCurve *curve,
                         CurvePlace place, double bytes)
{
    const double measured_s = curve_at(curve, bytes * scale_of(curves, curve, place));
    const double more_s = curve->step_s * (curve_steps(curve->kind, place) -
                                           curve_steps(curve->kind, own_place(curve)));
    return measured_s + fmax(more_s, -curve_at(curve, 0));
}

/* How unlike the place is; infinite where the curve says nothing about it. */
static double distance(const CollectiveCurve *curve, Collective kind, CurvePlace place)
{
    const double no_device = 1e3;
    if (curve->kind != kind || (curve->hosts == 1) != (place.hosts == 1))
        return INFINITY;
    if (place.hosts > 1)
        return fabs(log((double)curve->ranks / curve->hosts) -
                    log((double)place.ranks / place.hosts));
    return !curve->device                                             ? no_device
           : place.device && strcmp(curve->device, place.device) == 0 ? 0
                                                                      : INFINITY;
}

/* Curves of the nearest numbers of ranks, not above the place's and not below; the same one twice
 * if there is only one. */
typedef struct {
    const CollectiveCurve *few, *many;
    double weight; /* of `many` */
    /* where the place, on one machine, lies beyond all: the curve nearest to that one; else NULL */
    const CollectiveCurve *next;
} Pair;

static bool find_pair(const CollectiveCurves *curves, Collective kind, CurvePlace place,
                      Pair *pair)
{
    const double alike = 1e-9;
    double nearest = INFINITY;
    *pair = (Pair){0};
    for (uint32_t i = 0; i < curves->n; i++)
        nearest = fmin(nearest, distance(&curves->curve[i], kind, place));
    for (uint32_t i = 0; isfinite(nearest) && i < curves->n; i++) {
        const CollectiveCurve *curve = &curves->curve[i];
        if (!(distance(curve, kind, place) <= nearest + alike))
            continue;
        if (curve->ranks <= place.ranks &&
            (!pair->few || curve->ranks > pair->few->ranks))
            pair->few = curve;
        if (curve->ranks >= place.ranks &&
            (!pair->many || curve->ranks < pair->many->ranks))
            pair->many = curve;
    }
    pair->few = pair->few ? pair->few : pair->many;
    pair->many = pair->many ? pair->many : pair->few;
    if (!pair->few)
        return false;
    const int64_t far = pair->few->ranks;
    const bool outside =
        pair->few == pair->many && place.ranks != far && place.hosts <= 1;
    for (uint32_t i = 0; outside && i < curves->n; i++) {
        const CollectiveCurve *curve = &curves->curve[i];
        if (distance(curve, kind, place) <= nearest + alike && curve->ranks != far &&
            (!pair->next || llabs(curve->ranks - far) < llabs(pair->next->ranks - far)))
            pair->next = curve;
    }
    if (pair->few->ranks < pair->many->ranks)
        pair->weight = (log(place.ranks) - log(pair->few->ranks)) /
                       (log(pair->many->ranks) - log(pair->few->ranks));
    return true;
}

/* Ranks that share one path, as GPUs without peer access share the host's memory, lose more than
 * half of their bandwidth where they are twice as many. If the two nearest numbers of ranks show
 * that, it goes on beyond them: the factor of the times there. */
static double beyond(const CollectiveCurves *curves, const Pair *pair, CurvePlace place,
                     double bytes)
{
    const CollectiveCurve *own = pair->few, *next = pair->next;
    if (!next)
        return 1;
    const double at = bytes * scale_of(curves, own, place),
                 power = log(curve_at(own, at) /
                             seconds_in(curves, next, own_place(own), at)) /
                         log((double)own->ranks / next->ranks),
                 shared = CLAMP(2 * power - 1, 0, 1); /* no jump where it begins */
    return pow((double)place.ranks / own->ranks, shared * power);
}

static double pair_seconds(const CollectiveCurves *curves, const Pair *pair,
                           CurvePlace place, double bytes)
{
    const double few_s = seconds_in(curves, pair->few, place, bytes);
    return pair->few == pair->many
               ? few_s * beyond(curves, pair, place, bytes)
               : exp((1 - pair->weight) * log(few_s) +
                     pair->weight * log(seconds_in(curves, pair->many, place, bytes)));
}

static ORDER_DEFINE(by_bytes, CurvePoint, ASCENDING(bytes));

/* The points of both curves, at their sizes in the place; *n gets their number. Caller frees. */
static CurvePoint *points_in(const CollectiveCurves *curves, const Pair *pair,
                             CurvePlace place, uint32_t *n)
{
    const CollectiveCurve *of[] = {pair->few, pair->many};
    const uint32_t n_curves = pair->few == pair->many ? 1 : 2;
    CurvePoint *point = g_new(CurvePoint, pair->few->n + pair->many->n);
    const double apart = 1 + 1e-9;
    *n = 0;
    for (uint32_t c = 0; c < n_curves; c++)
        for (uint32_t i = 0; i < of[c]->n; i++)
            point[(*n)++].bytes = of[c]->point[i].bytes / scale_of(curves, of[c], place);
    qsort(point, *n, sizeof *point, by_bytes);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (kept == 0 || point[i].bytes > point[kept - 1].bytes * apart)
            point[kept++].bytes = point[i].bytes;
    for (uint32_t i = 0; i < kept; i++) {
        const double seconds = pair_seconds(curves, pair, place, point[i].bytes);
        point[i].seconds = i > 0 ? fmax(point[i - 1].seconds, seconds) : seconds;
    }
    *n = kept;
    g_assert(*n > 0);
    return point;
}

static LinkCost line_in(Segment line, Collective kind, CurvePlace place)
{
    double latencies, bytes;
    formula(kind, place.ranks, &latencies, &bytes);
    return (LinkCost){line.start_s / latencies,
                      line.byte_s > bytes / FASTEST ? bytes / line.byte_s : FASTEST};
}

bool curves_pieces(const CollectiveCurves *curves, Collective kind, CurvePlace place,
                   CollectivePieces *pieces, LinkCost *line)
{
    Pair pair;
    uint32_t n;
    if (place.ranks < 2 || (int)kind >= COLLECTIVES_PRICED ||
        !find_pair(curves, kind, place, &pair))
        return false;
    g_autofree CurvePoint *point = points_in(curves, &pair, place, &n);
    *pieces = (CollectivePieces){.n = n,
                                 .piece = g_new(CollectivePiece, n),
                                 .smallest = point[0].bytes,
                                 .largest = point[n - 1].bytes};
    for (uint32_t i = 0; i < n; i++)
        pieces->piece[i] =
            (CollectivePiece){point[i].bytes, line_in(segment(point, n, i), kind, place)};
    *line = line_in(segment(point, n, n), kind, place);
    return true;
}

const CollectivePiece *pieces_find(const CollectivePieces *pieces, double bytes)
{
    uint32_t low = 0, high = pieces->n;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (pieces->piece[middle].up_to < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pieces->n ? &pieces->piece[low] : NULL;
}

bool curves_line(const CollectiveCurves *curves, Collective kind, CurvePlace place,
                 double bytes, LinkCost *line)
{
    CollectivePieces pieces;
    if (curves->n == 0 || !curves_pieces(curves, kind, place, &pieces, line))
        return false;
    const CollectivePiece *piece = pieces_find(&pieces, bytes);
    if (piece)
        *line = piece->line;
    g_free(pieces.piece);
    return true;
}

void curve_scale(const CollectiveCurve *from, double bandwidth, double latency,
                 CollectiveCurve *to)
{
    g_assert(from->n == to->n);
    const double start_s = curve_at(from, 0);
    to->step_s = from->step_s * latency;
    for (uint32_t i = 0; i < from->n; i++)
        to->point[i].seconds =
            start_s * latency + (from->point[i].seconds - start_s) / bandwidth;
}

void curves_clear(CollectiveCurves *curves)
{
    free_column(curves->curve, curves->n, device);
    free_column(curves->curve, curves->n, source);
    free_column(curves->curve, curves->n, point);
    free_column(curves->rings, curves->n_rings, device);
    g_clear_pointer(&curves->rings, g_free);
    g_clear_pointer(&curves->curve, g_free);
    curves->n_rings = 0;
    curves->n = 0;
}
