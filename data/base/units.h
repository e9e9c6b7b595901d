/* Quantities with units, as people write them: "10.4 Gb/s", "16 GiB", "15.7 TFLOP/s", "100 us". */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    QUANTITY_BYTES,     /* B, kB, MB, GB, TB, KiB, MiB, GiB, TiB -> bytes */
    QUANTITY_BANDWIDTH, /* B/s ..., GiB/s, and bits: b/s, kb/s, Mb/s, Gb/s, Tb/s -> bytes/s */
    QUANTITY_RATE,      /* FLOP/s with k, M, G, T, P -> FLOP/s */
    QUANTITY_TIME,      /* s, ms, us, ns -> s */
    QUANTITY_POWER,     /* W, kW -> W */
    QUANTITY_PRICE,     /* USD/h -> US dollars an hour */
    QUANTITY_TOLL,      /* USD/GB, USD/TB, USD/GiB -> US dollars a byte */
    QUANTITY_FREQUENCY, /* Hz, kHz, MHz, GHz -> Hz */
} Quantity;

/* No number of a physical quantity that is not 0 is smaller, so that products and quotients of
 * several stay normal numbers. */
#define NUMBER_LEAST 1e-30

/* Whether a number that was read is usable: from `least` to `most`, and 0 or at least NUMBER_LEAST
 * in size; NaN is not. */
static inline bool number_in(double value, double least, double most)
{
    return value >= least && value <= most &&
           (value == 0 || value >= NUMBER_LEAST || value <= -NUMBER_LEAST);
}

/* Whether all of `text` (may be NULL) is a number; *value (may be NULL) gets it. */
bool number_is(const char *text, double *value);

/* Doubles in ascending order, for qsort and g_array_sort. */
int number_compare(const void *a, const void *b);

/* Reads all of `text` as a number for which number_in holds; else *value is not set. */
bool number_read(const char *text, double least, double most, double *value);

/* Parses all of `text`; the unit is required, the number finite, and 0 or at least NUMBER_LEAST. On
 * failure the message says what was expected ("expected a bandwidth such as 10.4 Gb/s, got '10.4
 * GiB'"). */
bool units_parse(const char *text, Quantity quantity, double *value, GError **error);
/* The same of a quantity from `least` to `most`, which a message names, too. */
bool units_read(const char *text, Quantity quantity, double least, double most,
                double *value, GError **error);
/* Reads all of `text` as a whole number in a range. */
bool count_read(const char *text, uint32_t least, uint32_t most, uint32_t *value,
                GError **error);

/* Three significant digits with a prefix: "1.30 GB/s", "16.0 GiB", "12.3 ms". Caller frees. */
char *units_format(double value, Quantity quantity);

/* The shortest text that units_parse reads as exactly this value, which must be finite and not
 * negative. The caller frees it. */
char *units_exact(double value, Quantity quantity);

/* The number without a unit, such that g_ascii_strtod reads the same double. Caller frees. */
char *number_exact(double value);

/* The number by a printf format of one double, in the C locale, without a minus where it rounds to
 * zero. The caller frees it. */
char *number_rounded(double value, const char *format);
