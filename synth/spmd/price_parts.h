/* Shared by the files that implement synth/spmd/price.h, and private to them: device classes and
 * charges. */
#pragma once

#include "synth/spmd/price.h"

/* --- classes.c --- */

/* Seconds that a device with `share` of sharded work takes for one unit of each kind of work. */
Coefficients coefficients_of(const Device *device, double share);
/* Whether no coefficient of `a` is below that of `b`, and both count FLOPs alike. */
bool coefficients_cover(const Coefficients *a, const Coefficients *b);
/* Keeps a class unless another class is never faster, and drops classes that are never slower than
 * the new one. */
void pricer_add_class(Pricer *pricer, Coefficients class);

/* --- charge.c --- */

/* Charges for memory within the box lo <= ratio <= hi; memory_s: as in SynthOptions. */
void pricer_charge(Pricer *pricer, const double *lo, const double *hi,
                   const double *memory_s);
