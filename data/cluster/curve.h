/* Measured collectives: times by size, for a kind, a number of ranks and a place. They price the
 * collectives that they are about, in front of the lines of machines and of `collectives`.
 *
 * Between two sizes the time is a straight line, below the smallest and above the largest the line
 * goes on. Another number of ranks takes as long as the measured ones for the same bytes on the
 * wire of each rank, and a step's latency more for each further step:
 *
 *                                       bytes on the wire of a rank, per byte        steps
 *     all-reduce                        2 (n-1)/n, or sums (n+1)/n if less           2 log2 m
 *     all-gather, reduce-scatter        (n-1)/n                                      m - 1
 *     the same, grouped                 1                                            m - 1
 *     all-to-all                        a (n-a)/n^2                                  m - 1
 *
 * with m machines of a ranks each, and m = n, a = 1 inside a machine, where an all-reduce has the
 * 2 (n-1) steps of a ring; between machines divided by what a ranks have of a machine's port
 * (port_capacity), where that is known. `sums` is how much longer a byte takes when switches sum up
 * (NVLS). Inside a machine with switches each rank also copies its own part, 1/n of the tensor (of
 * what it sends, in an all-to-all), of which a byte takes `own` of the time of one on the wire. In
 * a machine without a switch the bytes of all but an
 * all-to-all are divided among the rings that the ranks find (data/cluster/peers.h). Between two
 * numbers of ranks that were measured, the logarithms of times are interpolated by the logarithm
 * of n. */
#pragma once

#include "data/cluster/collective.h"
#include "data/cluster/peers.h"

typedef struct {
    double bytes; /* of the whole tensor, of which each rank has an equal part */
    double seconds;
} CurvePoint;

typedef struct {
    Collective kind;
    char *device;          /* inside machines of this device type; NULL: of any type */
    uint32_t ranks, hosts; /* hosts 1: inside a machine */
    double step_s;         /* further latency of a further step */
    double sums;           /* from 1 on; 0: switches do not sum up */
    double own;            /* 0 to 1 */
    uint32_t n;
    CurvePoint *point; /* [n]: bytes rise, seconds do not fall */
    char *source;
} CollectiveCurve;

/* Rings inside machines of a device type. */
typedef struct {
    char *device;
    uint32_t gpus;
    uint32_t rings[PEERS_MAX_GPUS + 1]; /* [n]: among n ranks; 0: not known */
} CurveRings;

typedef struct {
    uint32_t n;
    CollectiveCurve *curve;
    uint32_t n_rings;
    CurveRings *rings;
    /* the slowest port of the machines, and their GPUs; its bandwidth 0: not known */
    Port port;
    uint32_t port_gpus;
} CollectiveCurves;

/* Where a collective runs. */
typedef struct {
    const char *device;    /* type of the devices if hosts is 1 */
    uint32_t ranks, hosts; /* hosts 1: inside a machine */
} CurvePlace;

double curve_steps(Collective kind, CurvePlace place);
/* Bytes on the wire per byte of the tensor, without sums in switches if `sums` is 0, and those of a
 * rank's own part. */
double curve_wire(Collective kind, CurvePlace place, double sums, double own);
/* Finds the rings of machines of a device type, unless they are known. */
void curves_add_rings(CollectiveCurves *curves, const char *device, const Peers *peers);

/* Seconds at that many bytes among the measured ranks. */
double curve_at(const CollectiveCurve *curve, double bytes);

/* Lines that price the collective there: pieces for sizes up to that of their ends, and *line above
 * them all. False if it was not measured in such a place; then nothing is changed. The caller frees
 * pieces->piece. */
bool curves_pieces(const CollectiveCurves *curves, Collective kind, CurvePlace place,
                   CollectivePieces *pieces, LinkCost *line);
/* The line at one size. */
bool curves_line(const CollectiveCurves *curves, Collective kind, CurvePlace place,
                 double bytes, LinkCost *line);

/* The piece that prices a tensor of `bytes`; NULL: it is above all pieces. */
const CollectivePiece *pieces_find(const CollectivePieces *pieces, double bytes);

/* *to, a copy of *from or the same, gets its bandwidth and its latency times a factor. The time of
 * a tensor without bytes counts as latency. */
void curve_scale(const CollectiveCurve *from, double bandwidth, double latency,
                 CollectiveCurve *to);
void curves_clear(CollectiveCurves *curves);
