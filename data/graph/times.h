/* How long an op takes by what was measured: on devices of a type, for so many samples.
 *
 * Between two measured numbers of samples the time is on the line through both. Above the largest
 * it goes on along the last line, but never falls. Below the smallest it goes down to what no
 * sample takes: what the line through the first two points says, but not below 0 nor above the
 * first point's time. One point alone is proportional to the samples. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double samples, seconds; /* above 0; at least 0 */
} TimePoint;

/* Points of one type, by rising samples. */
typedef struct {
    const char *type; /* borrowed from the graph */
    uint32_t n;       /* at least 1 */
    TimePoint *point;
} TimeCurve;

/* Of one op, by name of type. */
typedef struct {
    uint32_t n;
    TimeCurve *curve;
} OpTimes;

/* NULL: the type was not measured. */
const TimeCurve *op_times_of(const OpTimes *times, const char *type);

double time_curve_at(const TimeCurve *curve, double samples);

/* The line seconds = fixed + slope samples that lies nowhere above the curve from 0 to `most`
 * samples, and there is the highest such at `at` whose `fixed` is not below 0. */
typedef struct {
    double fixed, slope;
} TimeLine;
TimeLine time_curve_line(const TimeCurve *curve, double most, double at);
