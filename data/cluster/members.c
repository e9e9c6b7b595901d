/* Reading and writing the numbers of a cluster's file by their rows. */
#include "data/cluster/members.h"

#include <math.h>

#include "data/base/error.h"

static const void *at(const void *object, size_t offset)
{
    return (const char *)object + offset;
}

static double members_value_of(const Member *member, const void *object)
{
    const void *value = at(object, member->value);
    switch (member->kind) {
    case MEMBER_QUANTITY:
    case MEMBER_FACTOR:
    case MEMBER_NUMBER:
        return *(const double *)value;
    case MEMBER_BYTES:
        return (double)*(const uint64_t *)value;
    case MEMBER_COUNT:
        return *(const uint32_t *)value;
    }
    g_assert_not_reached();
}

static void set_value(const Member *member, double number, void *object)
{
    void *value = (char *)object + member->value;
    switch (member->kind) {
    case MEMBER_QUANTITY:
    case MEMBER_FACTOR:
    case MEMBER_NUMBER:
        *(double *)value = number;
        return;
    case MEMBER_BYTES:
        *(uint64_t *)value = (uint64_t)number;
        return;
    case MEMBER_COUNT:
        *(uint32_t *)value = (uint32_t)number;
        return;
    }
    g_assert_not_reached();
}

static bool has_unit(const Member *member)
{
    return member->kind == MEMBER_QUANTITY || member->kind == MEMBER_BYTES;
}

bool member_parse(const Member *member, const char *text, void *value, GError **error)
{
    double low = member->low, high = member->high, number = 0;
    uint32_t count;
    if (member->bound == MEMBER_NOT_BELOW)
        low = fmax(low, members_value_of(&member[-1], value));
    if (member->bound == MEMBER_NOT_ABOVE && members_value_of(&member[-1], value) > 0)
        high = fmin(high, members_value_of(&member[-1], value));
    if (member->kind == MEMBER_COUNT) {
        if (!count_read(text, (uint32_t)low, (uint32_t)high, &count, error))
            return false;
        number = count;
    } else if (has_unit(member)) {
        if (!units_read(text, member->quantity, low, high, &number, error))
            return false;
    } else if (!number_read(text, member->low, member->high, &number))
        return refuse(error, "expected a %s from %g to %g, got '%.60s'",
                      member->kind == MEMBER_FACTOR ? "factor" : "number", member->low,
                      member->high, text);
    set_value(member, number, value);
    return true;
}

/* Reads the number of one row. */
static bool member_read(const Yaml *yaml, const char *parent, const Member *member,
                        const void *text, void *value)
{
    const char *own = *(char *const *)at(text, member->text);
    g_autofree char *key = yaml_key(parent, member->key);
    g_autoptr(GError) failure = NULL;
    if (!own)
        return !member->needed || yaml_wrong(yaml, key, "missing; expected this key");
    return member_parse(member, own, value, &failure) ||
           yaml_wrong(yaml, key, "%s", failure->message);
}

bool members_read(const Yaml *yaml, const char *parent, const Member *member, uint32_t n,
                  const void *text, void *value)
{
    bool good = true;
    for (uint32_t i = 0; i < n; i++)
        good &= member_read(yaml, parent, &member[i], text, value);
    return good;
}

/* Whether a value is one that members_json writes. */
static bool is_said(const Member *member, double number)
{
    return isfinite(number) && number != member->unsaid &&
           !(member->kind == MEMBER_FACTOR && number <= 1);
}

static char *member_text(const Member *member, double value)
{
    return has_unit(member) && value >= 0 && isfinite(value)
               ? units_format(value, member->quantity)
               : g_strdup_printf("%g", value);
}

bool members_check(const Member *member, uint32_t n, const void *value, const char *what,
                   GError **error)
{
    for (uint32_t i = 0; i < n; i++) {
        const double number = members_value_of(&member[i], value);
        double low = member[i].low, high = member[i].high;
        if (!member[i].needed && !is_said(&member[i], number))
            continue;
        if (member[i].bound == MEMBER_NOT_BELOW)
            low = fmax(low, members_value_of(&member[i - 1], value));
        if (member[i].bound == MEMBER_NOT_ABOVE &&
            members_value_of(&member[i - 1], value) > 0)
            high = fmin(high, members_value_of(&member[i - 1], value));
        if (number >= low && number <= high)
            continue;
        g_autofree char *least = member_text(&member[i], low),
                        *most = member_text(&member[i], high),
                        *got = member_text(&member[i], number);
        return refuse(error, "%s: %s: expected a value from %s to %s, got %s", what,
                      member[i].key, least, most, got);
    }
    return true;
}

char *member_exact(const Member *member, const void *object)
{
    const double value = members_value_of(member, object);
    return member->kind == MEMBER_COUNT ? g_strdup_printf("%.0f", value)
           : has_unit(member)           ? units_exact(value, member->quantity)
                                        : number_exact(value);
}

void members_json(const Member *member, uint32_t n, const void *value, json_t *object)
{
    for (uint32_t i = 0; i < n; i++) {
        const double number = members_value_of(&member[i], value);
        if (!is_said(&member[i], number))
            continue;
        g_autofree char *text = member_exact(&member[i], value);
        json_object_set_new(object, member[i].key,
                            member[i].kind == MEMBER_COUNT
                                ? json_integer((json_int_t)number)
                                : json_string(text));
    }
}
