/* The state of a calibration (private to experiments). */
#pragma once

#include "data/measured/measurement.h"
#include "experiments/calibration/calibrate.h"
#include "sim/sim.h"

typedef struct {
    const GArray *measurements;
    const CalibrateOptions *options;
    Cluster *cluster;
    uint32_t ranks;
    GArray *fits;
    double *predicted_s;
    Placing *placing;
    const Sheets *sheets;
} Work;

static inline const Measurement *calibrate_row(const Work *work, uint32_t i)
{
    return &g_array_index(work->measurements, Measurement, i);
}

/* The number of machines of a collective's ranks in its place. */
static inline uint32_t calibrate_hosts(const Measurement *m, const Placing *placing)
{
    return placing->place == PLACE_INNER ? 1 : m->ranks / MAX(placing->a_host, 1);
}

/* Rounds a fitted number to a few digits, as it is written to files. */
double calibrate_rounded(double value);

/* The cluster that is fitted: a new one of the measured devices, or a copy of the base, after whose
 * types the devices of the rows are then named. */
bool calibrate_make_cluster(Work *work, GError **error);
bool calibrate_take_base(Work *work, GArray *rows, GError **error);
/* Puts all fits into the cluster. */
bool calibrate_put_fits(Work *work, GError **error);
