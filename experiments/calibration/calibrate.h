/* Calibration: from measurements to a cluster that is priced by them.
 *
 * Per device type and op kind: time = overhead + FLOPs / rate + bytes / bandwidth
 * (data/cluster/cluster.h: OpCost), by robust non-negative least squares
 * (experiments/calibration/fit.h). Per collective: the formula of sim/sim.h with latency and
 * bandwidth fitted in pieces by the tensor's bytes, breakpoints by cross-validation. Measurements among the
 * ranks of one machine are fitted to its inner link, messages between machines to what transfers of pipelines
 * take (experiments/calibration/place.h). */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_CALIBRATE_H
#define KILTER_EXPERIMENTS_CALIBRATION_CALIBRATE_H

#include "data/data.h"
#include "experiments/calibration/fit.h"
#include "experiments/calibration/place.h"
#include "experiments/calibration/statistics.h"

/* x[0] is in seconds (overhead, latency), x[1] and x[2] in seconds per FLOP and byte (op) or x[1]
 * per byte (collective). */
typedef struct {
    double x[FIT_MAX_COLUMNS];
    double low[FIT_MAX_COLUMNS], high[FIT_MAX_COLUMNS]; /* 95 % intervals */
    double up_to; /* bytes; infinite for the last line */
} CalibrationLine;

typedef struct {
    Place place;
    uint32_t type;            /* PLACE_INNER: of the machines; UINT32_MAX: all */
    uint32_t ranks;           /* of the measurements; of an op 0 */
    const char *device;       /* borrowed from the cluster; NULL for a collective */
    OpKind op;                /* OP_KINDS if it is a collective */
    Collective collective;    /* COLLECTIVES if it is an op */
    double smallest, largest; /* bytes that were measured */
    uint32_t n_lines;         /* 1 for an op */
    CalibrationLine line[FIT_MAX_PIECES];
    Agreement agreement; /* of the fit with what it was fitted to */
} CalibrationFit;

typedef struct {
    Cluster *cluster;
    uint32_t n_fits;
    CalibrationFit *fit;
    double *predicted_s; /* [measurement]; NaN where it was not used */
    Placing *placing;    /* [measurement] */
    Agreement agreement; /* over all that were used */
} Calibration;

typedef struct {
    /* fitted costs are put in a copy of it; NULL: one machine per rank, with one device each */
    Cluster *base;
    uint32_t ranks; /* without base: machines; 0: the most that were measured together */
    const char *name;      /* of the cluster */
    const char *source;    /* where the measurements are from */
    uint64_t memory_bytes; /* of a device, without base */
    uint64_t seed;         /* of the bootstrap */
} CalibrateOptions;

/* KILTER_ERROR_INPUT if the measurements do not make a cluster: an op of a device type that the
 * base lacks, collectives that are missing, a base with a topology. */
Calibration *calibrate(const GArray *measurements, const CalibrateOptions *options,
                       GError **error);
void calibration_free(Calibration *calibration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Calibration, calibration_free)

#endif
