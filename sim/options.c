#include "sim/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

typedef enum {
    TYPE_CHOICE,
    TYPE_COUNT,
    TYPE_BYTES,
    TYPE_NUMBER,
    TYPE_TIME,
    TYPE_TEXT,
    TYPE_ALGORITHMS
} Type;

enum { COUNT_MAX = 8 };
static const double NUMBER_MAX = 10;

typedef struct {
    SimOptionInfo info;
    Type type;
    size_t offset;
} Option;

static const Option table[] = {
#define X(type, member, key, value, help) \
    {{key, value, help}, TYPE_##type, offsetof(SimOptions, member)},
    SIM_OPTION_TABLE(X)
#undef X
};

uint32_t sim_option_count(void)
{
    return G_N_ELEMENTS(table);
}

const SimOptionInfo *sim_option_info(uint32_t index)
{
    return &table[index].info;
}

static const Option *find(const char *key)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(table); i++)
        if (strcmp(table[i].info.key, key) == 0)
            return &table[i];
    return NULL;
}

bool sim_options_has(const char *key)
{
    return find(key) != NULL;
}

/* The words before the colon of a choice's help. Free with g_strfreev. */
static char **choices(const Option *option)
{
    g_autofree char *list = g_strdup(option->info.help);

    list[strcspn(list, ":")] = '\0';
    return g_strsplit(list, "|", -1);
}

static bool set_choice(const Option *option, const char *value, uint32_t *member,
                       GError **error)
{
    g_auto(GStrv) known = choices(option);

    for (uint32_t i = 0; known[i]; i++)
        if (strcmp(known[i], value) == 0) {
            *member = i;
            return true;
        }
    g_autofree char *list = g_strjoinv(", ", known);
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "option '%s': expected one of %s, got '%s'", option->info.key,
                       list, value);
}

static bool set_number(const Option *option, const char *value, double least, double most,
                       bool whole, double *number, GError **error)
{
    char *end;

    *number = g_ascii_strtod(value, &end);
    if (end != value && *end == '\0' && *number >= least && *number <= most &&
        (!whole || *number == floor(*number)))
        return true;
    return kilter_fail(
        error, KILTER_ERROR_INPUT, "option '%s': expected %s from %g to %g, got '%s'",
        option->info.key, whole ? "an integer" : "a number", least, most, value);
}

static bool set_quantity(const Option *option, const char *value, Quantity quantity,
                         double *number, GError **error)
{
    if (strcmp(value, "0") == 0) {
        *number = 0;
        return true;
    }
    if (units_parse(value, quantity, number, error))
        return true;
    g_prefix_error(error, "option '%s': ", option->info.key);
    return false;
}

bool sim_algorithms_parse(const char *text, Algorithm algorithm[TRAFFICS], GError **error)
{
    g_auto(GStrv) pairs = g_strsplit(text, "+", -1);

    for (uint32_t i = 0; i < TRAFFICS; i++)
        algorithm[i] = ALGORITHM_AUTO;
    for (char **pair = pairs; *pair; pair++) {
        char *colon = strchr(*pair, ':');
        Traffic traffic;
        Algorithm named;
        if (!colon)
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "expected KIND:NAME, got '%.60s'", *pair);
        *colon = '\0';
        if (!traffic_find(*pair, &traffic, error) ||
            !algorithm_find(colon + 1, &named, error) ||
            !algorithm_check(named, traffic, error))
            return false;
        algorithm[traffic] = named;
    }
    return true;
}

bool sim_options_set(SimOptions *options, const char *key, const char *value,
                     GError **error)
{
    const Option *option = find(key);
    double number = 0;

    g_assert(option);
    void *member = (char *)options + option->offset;
    switch (option->type) {
    case TYPE_CHOICE:
        return set_choice(option, value, member, error);
    case TYPE_COUNT:
        if (!set_number(option, value, 1, COUNT_MAX, true, &number, error))
            return false;
        *(uint32_t *)member = (uint32_t)number;
        return true;
    case TYPE_BYTES:
        if (!set_quantity(option, value, QUANTITY_BYTES, &number, error))
            return false;
        *(uint64_t *)member = (uint64_t)number;
        return true;
    case TYPE_NUMBER:
        return set_number(option, value, 0, NUMBER_MAX, false, member, error);
    case TYPE_TIME:
        return set_quantity(option, value, QUANTITY_TIME, member, error);
    case TYPE_ALGORITHMS:
        if (!sim_algorithms_parse(value, (Algorithm[TRAFFICS]){0}, error)) {
            g_prefix_error(error, "option '%s': ", key);
            return false;
        }
        *(const char **)member = g_intern_string(value);
        return true;
    case TYPE_TEXT:
        *(const char **)member = g_intern_string(value);
        return true;
    }
    g_assert_not_reached();
}

void sim_options_init(SimOptions *options)
{
    *options = (SimOptions){.seed = 1};
    for (uint32_t i = 0; i < G_N_ELEMENTS(table); i++) {
        const bool good =
            sim_options_set(options, table[i].info.key, table[i].info.value, NULL);
        g_assert(good);
    }
}

/* "0.25", with as many digits as it takes to read the same number. */
static char *number_text(double value, const char *unit)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    return g_strconcat(g_ascii_dtostr(text, sizeof text, value), unit, NULL);
}

char *sim_options_get(const SimOptions *options, const char *key)
{
    const Option *option = find(key);

    g_assert(option);
    const void *member = (const char *)options + option->offset;
    switch (option->type) {
    case TYPE_CHOICE: {
        g_auto(GStrv) known = choices(option);
        return g_strdup(known[*(const uint32_t *)member]);
    }
    case TYPE_COUNT:
        return g_strdup_printf("%u", *(const uint32_t *)member);
    case TYPE_BYTES:
        return g_strdup_printf("%" G_GUINT64_FORMAT "B", *(const uint64_t *)member);
    case TYPE_NUMBER:
        return number_text(*(const double *)member, "");
    case TYPE_TIME:
        return number_text(*(const double *)member, "s");
    case TYPE_TEXT:
    case TYPE_ALGORITHMS:
        return g_strdup(*(const char *const *)member);
    }
    g_assert_not_reached();
}
