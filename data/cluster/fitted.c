/* Intervals of predictions. */
#include "data/cluster/fitted.h"
#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FITTED_RANGE_KEY(id, key, text) [FITTED_##id] = key,
static const char *const KEY[] = {FITTED_RANGE_TABLE(FITTED_RANGE_KEY)};
#define FITTED_RANGE_TEXT(id, key, text) [FITTED_##id] = text,
static const char *const TEXT[] = {FITTED_RANGE_TABLE(FITTED_RANGE_TEXT)};

NAMES_FUNCTION(fitted_range_key, FittedRange, FITTED_RANGES, KEY[of])

FREE_DEFINE(fitted_free, Fitted, fitted,
            free_column(fitted->error, fitted->n_errors, types),
            free_each(fitted->error, fitted->fidelity, fitted->planner,
                      fitted->software));

/* --- outside --- */

bool fitted_names_have(const char *joined, const char *name)
{
    g_auto(GStrv) names = g_strsplit(joined ? joined : "", "+", -1);
    return g_strv_contains((const char *const *)names, name);
}

static bool fitted_has_type(const Fitted *fitted, const char *type)
{
    for (uint32_t i = 0; i < fitted->n_errors; i++)
        if (fitted_names_have(fitted->error[i].types, type))
            return true;
    return false;
}

GPtrArray *fitted_outside(const Fitted *fitted, const FittedPoint *point)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) types = g_strsplit(point->types, "+", -1);
    for (char **type = types; *type; type++)
        if (!fitted_has_type(fitted, *type))
            g_ptr_array_add(list, g_strdup_printf("device type %s", *type));
    if (strcmp(point->fidelity, fitted->fidelity) != 0)
        g_ptr_array_add(list, g_strdup_printf("fidelity %s (%s was fitted)",
                                              point->fidelity, fitted->fidelity));
    if (strcmp(point->planner, fitted->planner) != 0)
        g_ptr_array_add(list, g_strdup_printf("planner %s (%s was fitted)",
                                              point->planner, fitted->planner));
    if (fitted->software && point->software &&
        !fitted_names_have(fitted->software, point->software))
        g_ptr_array_add(list, g_strdup_printf("software %s (%s was fitted)",
                                              point->software, fitted->software));
    for (FittedRange r = 0; r < FITTED_RANGES; r++)
        if (point->at[r] > 0 &&
            (point->at[r] < fitted->least[r] || point->at[r] > fitted->most[r]))
            g_ptr_array_add(list,
                            g_strdup_printf("%u %s (%u to %u)", point->at[r], TEXT[r],
                                            fitted->least[r], fitted->most[r]));
    return list;
}

/* --- intervals --- */

/* The smallest of n errors that the next error does not exceed with probability `coverage`: the
 * ceil((n + 1) coverage)-th. */
static bool quantile(double *size, uint32_t n, double coverage, double *factor)
{
    KILTER_ASSERT(coverage >= 0 && coverage <= 1);
    const double rank = ceil((n + 1) * coverage);
    if (rank > n)
        return false;
    qsort(size, n, sizeof *size, number_compare);
    *factor = exp(size[(uint32_t)rank - 1]);
    return true;
}

bool fitted_interval(const Fitted *fitted, const char *types, double coverage,
                     double *factor)
{
    /* This many errors of one kind suffice for a 95 % interval. */
    enum { ENOUGH = 19 };
    g_autofree double *size = g_new(double, fitted->n_errors + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < fitted->n_errors; i++)
        if (strcmp(fitted->error[i].types, types) == 0)
            size[n++] = fabs(fitted->error[i].error);
    if (n < ENOUGH)
        for (n = 0; n < fitted->n_errors; n++)
            size[n] = fabs(fitted->error[n].error);
    return quantile(size, n, coverage, factor);
}
