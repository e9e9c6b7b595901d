/* Device classes: the seconds of a unit of work on a device at its share, and the devices whose
 * times can be a maximum. */
#include "synth/spmd/price_parts.h"

#include <string.h>

Coefficients coefficients_of(const Device *device, double share)
{
    g_assert(share >= 0 && device->fitted <= CLUSTER_MAX_FITTED);
    static const SimWork unit[COEFFICIENTS] = {{.flops = 1},
                                               {.flops_sharded = 1},
                                               {.inner_bytes = 1},
                                               {.inner_bytes_sharded = 1},
                                               {.inner_messages = 1}};
    static const SimFitted fitted_unit[COEFFICIENTS] = {
        {.flops = 1}, {.flops_sharded = 1}, [COEFFICIENTS - 1] = {.overhead_s = 1}};
    Coefficients k = {.fitted = device->fitted};
    values_at (SimWork, work, i, unit, COEFFICIENTS) {
        if (device->fitted)
            work.fitted[device->fitted - 1] = fitted_unit[i];
        k.c[i] = sim_work_s(&work, device, share);
    }
    return k;
}

bool coefficients_cover(const Coefficients *a, const Coefficients *b)
{
    return !any_of(i, COEFFICIENTS, a->c[i] < b->c[i]) && a->fitted == b->fitted;
}

void pricer_add_class(Pricer *pricer, Coefficients class)
{
    g_assert(pricer->n_classes <= PRICE_MAX_CLASSES);
    uint32_t n = 0;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        if (coefficients_cover(&pricer->class[h], &class))
            return;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        if (!coefficients_cover(&class, &pricer->class[h]))
            pricer->class[n++] = pricer->class[h];
    if (n == PRICE_MAX_CLASSES) {
        pricer->exact = false;
        n--;
    }
    pricer->class[n++] = class;
    pricer->n_classes = n;
}

/* The index of these units in Pricer.units, or n_units. */
static uint32_t classes_find_units(const Pricer *pricer, uint32_t units)
{
    uint32_t low = 0, high = pricer->n_units;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (pricer->units[middle] < units)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pricer->n_units && pricer->units[low] == units ? low : pricer->n_units;
}

double price_max_share(const Pricer *pricer, uint32_t units, uint32_t segment)
{
    if (pricer->segments.n > 0)
        return pricer->segments.largest[segment];
    const uint32_t u = classes_find_units(pricer, units);
    return u < pricer->n_units ? pricer->unit_max[u] : pricer->max_share;
}

/* The shares by class that take the place of those in the classes; NULL: none. */
static const double *classes_shares_of(const Pricer *pricer, uint32_t units,
                                       uint32_t segment)
{
    const uint32_t u = classes_find_units(pricer, units);
    if (pricer->segments.n > 0)
        return pricer->segments.share + (size_t)segment * PRICE_MAX_CLASSES;
    return u < pricer->n_units ? pricer->unit_share + (size_t)u * PRICE_MAX_CLASSES
                               : NULL;
}

Times price_work(const Pricer *pricer, const SimWork *work, uint32_t units,
                 uint32_t segment)
{
    KILTER_ASSERT(pricer->n_classes > 0 && work->flops >= 0 && work->inner_bytes >= 0);
    Times times = {{0}};
    const double *share = classes_shares_of(pricer, units, segment);
    for (uint32_t h = 0; h < pricer->n_classes; h++) {
        double c[COEFFICIENTS];
        memcpy(c, pricer->class[h].c, sizeof c);
        if (share) {
            c[1] *= share[h];
            c[3] *= share[h];
        }
        const SimFitted plain = {0, work->flops, work->flops_sharded};
        const SimFitted *own =
            pricer->class[h].fitted ? &work->fitted[pricer->class[h].fitted - 1] : &plain;
        times.s[h] = work->seconds + own->flops * c[0] + own->flops_sharded * c[1] +
                     work->inner_bytes * c[2] + work->inner_bytes_sharded * c[3] +
                     work->inner_messages * c[4] + own->overhead_s * c[5];
    }
    return times;
}

Times price_rule(const Pricer *pricer, OpId op, const Rule *rule)
{
    KILTER_ASSERT(op < graph_n_ops(pricer->graph));
    SimWork work = {0};
    sim_work_op(pricer->memo, pricer->graph, pricer->view, op, rule, &work);
    return price_work(pricer, &work, rule->loop >= 0 ? rule->units : 0,
                      pricer->segments.n > 0 ? pricer->segments.of[op] : 0);
}
