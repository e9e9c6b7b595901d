/* Quantities with units: parsing and printing. */
#include "data/base/units.h"

#include "data/base/error.h"
#include "data/base/number_gap.h"
#include "data/base/order.h"

#include <math.h>
#include <string.h>

/* value in base units = number * times / per: exact factors, so that "65 us" is the
 * double nearest to 65e-6. */
typedef struct {
    Quantity quantity;
    const char *name;
    double times, per;
} Unit;

/* A yobibyte, far above any tensor or memory: sums and products of sizes stay finite. */
static const double MOST_BYTES = 0x1p80;

#define DECIMAL(quantity, unit, per)                                    \
    {quantity, unit, 1, per}, {quantity, "k" unit, 1e3, per},           \
        {quantity, "M" unit, 1e6, per}, {quantity, "G" unit, 1e9, per}, \
    {                                                                   \
        quantity, "T" unit, 1e12, per                                   \
    }
#define BINARY(quantity, unit)                                          \
    {quantity, "Ki" unit, 0x1p10, 1}, {quantity, "Mi" unit, 0x1p20, 1}, \
        {quantity, "Gi" unit, 0x1p30, 1},                               \
    {                                                                   \
        quantity, "Ti" unit, 0x1p40, 1                                  \
    }
static const Unit UNIT[] = {
    DECIMAL(QUANTITY_BYTES, "B", 1),       BINARY(QUANTITY_BYTES, "B"),
    DECIMAL(QUANTITY_BANDWIDTH, "B/s", 1), BINARY(QUANTITY_BANDWIDTH, "B/s"),
    DECIMAL(QUANTITY_BANDWIDTH, "b/s", 8), DECIMAL(QUANTITY_RATE, "FLOP/s", 1),
    {QUANTITY_RATE, "PFLOP/s", 1e15, 1},   {QUANTITY_TIME, "s", 1, 1},
    {QUANTITY_TIME, "ms", 1, 1e3},         {QUANTITY_TIME, "us", 1, 1e6},
    {QUANTITY_TIME, "ns", 1, 1e9},         {QUANTITY_TIME, "min", 60, 1},
    {QUANTITY_TIME, "h", 3600, 1},         {QUANTITY_TIME, "d", 86400, 1},
    {QUANTITY_POWER, "W", 1, 1},           {QUANTITY_POWER, "kW", 1e3, 1},
    {QUANTITY_PRICE, "USD/h", 1, 1},       {QUANTITY_TOLL, "USD/GB", 1, 1e9},
    {QUANTITY_TOLL, "USD/TB", 1, 1e12},    {QUANTITY_TOLL, "USD/GiB", 1, 0x1p30},
    {QUANTITY_FREQUENCY, "Hz", 1, 1},      {QUANTITY_FREQUENCY, "kHz", 1e3, 1},
    {QUANTITY_FREQUENCY, "MHz", 1e6, 1},   {QUANTITY_FREQUENCY, "GHz", 1e9, 1},
};

static const char *const EXPECTED[] = {
    [QUANTITY_BYTES] = "an amount of bytes such as 16 GiB",
    [QUANTITY_BANDWIDTH] = "a bandwidth such as 10.4 Gb/s",
    [QUANTITY_RATE] = "a rate such as 15.7 TFLOP/s",
    [QUANTITY_TIME] = "a time such as 100 us or 30 d",
    [QUANTITY_POWER] = "a power such as 700 W",
    [QUANTITY_PRICE] = "a price such as 32.8 USD/h",
    [QUANTITY_TOLL] = "a price of traffic such as 0.02 USD/GB",
    [QUANTITY_FREQUENCY] = "a frequency such as 1.41 GHz",
};

bool number_is(const char *text, double *value)
{
    char *end = NULL;
    const double number = text ? g_ascii_strtod(text, &end) : 0;
    if (!text || end == text || *end)
        return false;
    if (value)
        *value = number;
    return true;
}

ORDER_VALUES(number_compare, double);

bool number_read(const char *text, double least, double most, double *value)
{
    double number;
    if (!number_is(text, &number) || !number_in(number, least, most))
        return false;
    *value = number;
    return true;
}

const char *number_gap(const char *text)
{
    const double size = fabs(g_ascii_strtod(text, NULL));
    return size > 0 && size < NUMBER_LEAST
               ? ", 0 or at least " G_STRINGIFY(NUMBER_LEAST) " in size"
               : "";
}

/* Plain decimals with an optional exponent: without the signs, hex digits and names that strtod
 * accepts too. */
static bool parse_number(const char **text, double *number)
{
    const char *start = *text;
    if (!g_ascii_isdigit(*start) && *start != '.')
        return false;
    if (start[0] == '0' && (start[1] == 'x' || start[1] == 'X'))
        return false;
    char *end;
    *number = g_ascii_strtod(start, &end);
    *text = end;
    return end != start && isfinite(*number);
}

static const Unit *find_unit(const char *name, Quantity quantity)
{
    for (size_t i = 0; i < G_N_ELEMENTS(UNIT); i++)
        if (UNIT[i].quantity == quantity && strcmp(UNIT[i].name, name) == 0)
            return &UNIT[i];
    return NULL;
}

bool units_parse(const char *text, Quantity quantity, double *value, GError **error)
{
    g_assert(quantity <= QUANTITY_FREQUENCY);
    g_autofree char *copy = g_strstrip(g_strdup(text));
    const char *rest = copy;
    double number = 0;
    const Unit *unit = NULL;
    if (parse_number(&rest, &number)) {
        while (*rest == ' ')
            rest++;
        unit = find_unit(rest, quantity);
    }
    double result = unit ? number * unit->times / unit->per : INFINITY;
    if (!isfinite(result) || !number_in(result, 0, result) ||
        (quantity == QUANTITY_BYTES && result > MOST_BYTES))
        return refuse(error, "expected %s, got '%.60s'", EXPECTED[quantity], text);
    *value = result;
    return true;
}

bool units_read(const char *text, Quantity quantity, double least, double most,
                double *value, GError **error)
{
    g_assert(least <= most);
    if (!units_parse(text, quantity, value, error))
        return false;
    if (*value >= least && *value <= most)
        return true;
    g_autofree char *from = units_format(least, quantity),
                    *to = units_format(most, quantity);
    return refuse(error, "expected %s to %s, got '%.60s'", from, to, text);
}

bool count_read(const char *text, uint32_t least, uint32_t most, uint32_t *value,
                GError **error)
{
    guint64 number;
    g_assert(least <= most);
    if (!g_ascii_string_to_unsigned(text, 10, least, most, &number, NULL))
        return refuse(error, "expected a whole number from %u to %u, got '%.60s'", least,
                      most, text);
    *value = (uint32_t)number;
    return true;
}

/* The units that units_format uses, from small to large: bytes by powers of 1024, the rest by
 * powers of 1000. */
static const char *const SHOWN[][8] = {
    [QUANTITY_BYTES] = {"B", "KiB", "MiB", "GiB", "TiB"},
    [QUANTITY_BANDWIDTH] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"},
    [QUANTITY_RATE] = {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"},
    [QUANTITY_TIME] = {"ns", "us", "ms", "s", "min", "h", "d"},
    [QUANTITY_POWER] = {"W", "kW"},
    [QUANTITY_PRICE] = {"USD/h"},
    [QUANTITY_TOLL] = {"USD/TB", "USD/GB"},
    [QUANTITY_FREQUENCY] = {"Hz", "kHz", "MHz", "GHz"},
};
static const char *const PLAIN[] = {
    [QUANTITY_BYTES] = "B",     [QUANTITY_BANDWIDTH] = "B/s", [QUANTITY_RATE] = "FLOP/s",
    [QUANTITY_TIME] = "s",      [QUANTITY_POWER] = "W",       [QUANTITY_PRICE] = "USD/h",
    [QUANTITY_TOLL] = "USD/GB", [QUANTITY_FREQUENCY] = "Hz",
};

char *units_format(double value, Quantity quantity)
{
    g_assert(quantity <= QUANTITY_FREQUENCY);
    g_assert(!isnan(value));
    if (value == 0 || !isfinite(value))
        return g_strdup_printf("%g %s", value == 0 ? 0 : value, PLAIN[quantity]);
    /* The first prefix that leaves fewer than four digits: 999.5 would be written as 1000. */
    const char *const *name = SHOWN[quantity];
    double shown = 0;
    for (;; name++) {
        const Unit *unit = find_unit(*name, quantity);
        shown = value / unit->times * unit->per;
        if (fabs(shown) < 999.5 || !name[1])
            break;
    }
    double size = fabs(shown);
    if (name == SHOWN[quantity] && shown == floor(shown))
        return g_strdup_printf("%.0f %s", shown, *name);
    if (size < 0.0995 || size >= 999.5)
        return g_strdup_printf("%.3g %s", shown, *name);
    /* Digits after the point that leave three significant ones, after rounding: 9.996 is 10.0. */
    int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    return g_strdup_printf("%.*f %s", digits, shown, *name);
}

/* Writes the number with so many digits; whether they say it exactly. */
static bool write_digits(double value, int digits, char text[G_ASCII_DTOSTR_BUF_SIZE])
{
    char format[8];
    g_snprintf(format, sizeof format, "%%.%dg", digits);
    g_ascii_formatd(text, G_ASCII_DTOSTR_BUF_SIZE, format, value);
    return g_ascii_strtod(text, NULL) == value;
}

char *number_exact(double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    /* Where 15 digits are not enough, fewer are not, either: most measured or simulated numbers. */
    int digits = write_digits(value, 15, text) ? 6 : 16;
    while (!write_digits(value, digits, text) && digits < 17)
        digits++;
    return g_strdup(text);
}

/* The text in one unit, as short as its value allows; NULL if no number of 17 digits is exact, or
 * only such as make it `most` characters or longer. */
static char *exact_in(double value, const Unit *unit, Quantity quantity, size_t most)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE], format[8];
    const size_t besides = strlen(" ") + strlen(unit->name);
    /* Fewer digits would give 1e+01 for 10. What 6 digits do not say takes as many as are tried. */
    for (int digits = 6; digits <= 17 && (digits == 6 || (size_t)digits + besides < most);
         digits++) {
        double again;
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(number, sizeof number, format, value / unit->times * unit->per);
        g_autofree char *text = g_strdup_printf("%s %s", number, unit->name);
        if (units_parse(text, quantity, &again, NULL) && again == value)
            return g_steal_pointer(&text);
    }
    return NULL;
}

char *units_exact(double value, Quantity quantity)
{
    g_assert(isfinite(value) && value >= 0);
    char *best = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(UNIT); i++) {
        const bool in_bits = quantity == QUANTITY_BANDWIDTH && UNIT[i].per != 1;
        if (UNIT[i].quantity != quantity || in_bits)
            continue;
        g_autofree char *text =
            exact_in(value, &UNIT[i], quantity, best ? strlen(best) : G_MAXSIZE);
        if (text && (!best || strlen(text) < strlen(best))) {
            g_free(best);
            best = g_steal_pointer(&text);
        }
    }
    return best;
}

char *number_rounded(double value, const char *format)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof text, format, value);
    const bool minus_zero = *text == '-' && g_ascii_strtod(text, NULL) == 0;
    return g_strdup(text + minus_zero);
}
