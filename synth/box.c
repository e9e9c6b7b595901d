/* Bounds over a box of ratios: the classes of single devices at their least share, and unions of
 * devices, which together get at least the work that the others cannot take. */
#include "synth/price_parts.h"

#include <math.h>

/* Devices of one kind, which have the same bounds. */
typedef struct {
    const Device *device;
    double lo, hi;
    uint32_t n;
} Kind;

static uint32_t find_kinds(const ClusterView *view, const double *lo, const double *hi,
                           Kind *kind)
{
    g_assert(view->n_devices > 0);
    uint32_t n = 0, latest = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        if (j > 0 && lo[j] == lo[j - 1] && hi[j] == hi[j - 1] &&
            device_compare(&view->device[j], &view->device[j - 1]) == 0) {
            kind[latest].n++;
            continue;
        }
        Coefficients a = coefficients_of(&view->device[j], 1);
        uint32_t k = 0;
        for (; k < n; k++) {
            Coefficients b = coefficients_of(kind[k].device, 1);
            if (coefficients_cover(&a, &b) && coefficients_cover(&b, &a) &&
                kind[k].lo == lo[j] && kind[k].hi == hi[j])
                break;
        }
        if (k == n)
            kind[n++] = (Kind){&view->device[j], lo[j], hi[j], 0};
        kind[k].n++;
        latest = k;
    }
    return n;
}

/* Whether the union's devices count FLOPs alike, which a class needs. */
static bool counts_alike(const Kind *kind, uint32_t n, uint32_t members)
{
    const Device *first = NULL;
    for (uint32_t k = 0; k < n; k++) {
        if (!(members >> k & 1u))
            continue;
        first = first ? first : kind[k].device;
        if (kind[k].device->fitted != first->fitted)
            return false;
    }
    return true;
}

/* The mean over the union's devices, weighted by speed, of the seconds of one of them; never more
 * than the slowest device's seconds. */
static Coefficients union_class(const Kind *kind, uint32_t n, uint32_t members)
{
    g_assert(members > 0 && members >> n == 0);
    Coefficients sum = {0};
    double rate = 0, share = 1;
    for (uint32_t k = 0; k < n; k++) {
        if (!(members >> k & 1u)) {
            share -= kind[k].n * kind[k].hi;
            continue;
        }
        double weight = kind[k].n * kind[k].device->rate;
        if (weight == 0)
            continue;
        Coefficients one = coefficients_of(kind[k].device, kind[k].lo);
        rate += weight;
        sum.fitted = one.fitted;
        for (uint32_t i = 0; i < COEFFICIENTS; i++)
            sum.c[i] += weight * one.c[i];
    }
    for (uint32_t i = 0; i < COEFFICIENTS; i++)
        sum.c[i] /= rate;
    sum.c[1] = fmax(sum.c[1], fmax(share, 0) / rate);
    return sum;
}

void pricer_init_box(Pricer *pricer, const Graph *graph, const ClusterView *view,
                     const double *lo, const double *hi, const double *memory_s)
{
    for (uint32_t j = 0; j < view->n_devices; j++)
        g_assert(lo[j] >= 0 && lo[j] <= hi[j]);
    /* unions of more kinds are left out, which only makes the bound looser */
    enum { MAX_KINDS = 5 };
    g_autofree Kind *kind = g_new(Kind, view->n_devices);
    uint32_t n = find_kinds(view, lo, hi, kind);
    pricer_init(pricer, graph, view, lo, NULL);
    pricer_charge(pricer, lo, hi, memory_s);
    pricer->max_share = fmax(pricer->max_share, 1.0 / view->n_devices);
    uint32_t all = n <= MAX_KINDS ? 1u << n : 2;
    for (uint32_t members = 1; members < all; members++)
        if (counts_alike(kind, n, members))
            pricer_add_class(pricer, union_class(kind, n, members));
}
