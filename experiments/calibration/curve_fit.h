/* Curves of collectives from measurements. */
#pragma once

#include "data/cluster/sheet.h"

/* The points of a curve through n > 0 rows of sizes and seconds: of rows whose sizes differ by less
 * than half an octave that of median time, and where times fall with size their weighted geometric
 * mean, which is the nearest curve that does not fall (isotonic regression). The caller frees
 * them. */
CurvePoint *curve_fit_points(const double *bytes, const double *seconds, uint32_t n,
                             uint32_t *n_points);

/* predicted_s[i]: the time of row i by the curve without the points near its size. */
void curve_fit_predict(const CollectiveCurve *curve, const double *bytes, uint32_t n,
                       double *predicted_s);

/* Gives each curve the latency of a further step (data/cluster/curve.h). Curves of a kind and place
 * with several numbers of ranks determine it; else it has the same part of the curve's latency as a
 * hop of the link on its sheet. */
void curve_fit_steps(CollectiveCurves *curves, const Sheets *sheets);
