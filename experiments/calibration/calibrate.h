/* Calibration: from measurements to a cluster that is priced by them.
 *
 * For each device type and op kind: time = overhead + FLOPs / rate + bytes / bandwidth
 * (data/cluster/cluster.h: OpCost), by robust non-negative least squares
 * (experiments/calibration/fit.h). For each collective, number of ranks and place: a curve of time
 * by size (data/cluster/curve.h), and the line of the largest tensors by the formula of sim/sim.h,
 * of which the nearest to the cluster's ranks is the line between machines. All sizes among the
 * ranks of one machine are fitted to its inner link, messages between machines to the cost of a
 * pipeline's transfers (experiments/calibration/place.h). */
#pragma once

#include "experiments/calibration/fit.h"
#include "experiments/calibration/place.h"
#include "experiments/calibration/statistics.h"

/* Of an op, x[0] is the overhead in seconds, x[1] in seconds per FLOP and x[2] in seconds per byte;
 * of a collective, x[0] is the latency in seconds and x[1] in seconds per byte. */
typedef struct {
    double x[FIT_MAX_COLUMNS];
    double low[FIT_MAX_COLUMNS], high[FIT_MAX_COLUMNS]; /* 95 % intervals */
} CalibrationLine;

typedef struct {
    Place place;
    uint32_t type; /* PLACE_INNER: device type of the machines; UINT32_MAX: all types */
    uint32_t ranks, hosts;    /* of the measurements; 0 for an op */
    bool nearest;             /* a collective whose line is the cluster's */
    const char *device;       /* borrowed from the cluster; NULL for a collective */
    OpKind op;                /* OP_KINDS if it is a collective */
    Collective collective;    /* COLLECTIVES if it is an op */
    double smallest, largest; /* sizes that were measured, in bytes */
    CalibrationLine line;     /* of a curve: of its largest tensors */
    /* between the fit and its measurements; of a curve: each size predicted by the others */
    Agreement agreement;
    uint32_t curve; /* 1 + index in Cluster.curves; 0: it is a line */
} CalibrationFit;

typedef struct {
    Cluster *cluster;
    uint32_t n_fits;
    CalibrationFit *fit;
    double *predicted_s; /* [measurement]; NaN where it was not used */
    Placing *placing;    /* [measurement] */
    Agreement agreement; /* over all measurements that were used */
} Calibration;

typedef struct {
    /* a copy of it gets the fitted costs; NULL: the cluster has one machine per rank, with one
     * device each */
    Cluster *base;
    /* number of machines without a base; 0: the most ranks measured together */
    uint32_t ranks;
    const char *name;      /* of the cluster */
    const char *source;    /* of the measurements, in words */
    uint64_t memory_bytes; /* of a device, without base */
    uint64_t seed;         /* of the bootstrap */
} CalibrateOptions;

/* KILTER_ERROR_INPUT if the measurements do not make a cluster: an op of a device type that the
 * base lacks, collectives that are missing, a base with a topology. */
Calibration *calibrate(const GArray *measurements, const CalibrateOptions *options,
                       GError **error);
AUTOPTR(calibration_free, Calibration)
