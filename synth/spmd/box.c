/* Bounds over a box of ratios: the classes of single devices at their least share, and unions of
 * devices, which together get at least the work that the others cannot take. */
#include "synth/spmd/price_parts.h"

#include <math.h>
#include <string.h>

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
    g_assert(members > 0 && (uint64_t)members >> n == 0); /* n may be 32 */
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

/* --- which classes to keep --- */

/* The class that takes longest for one kind of work and, of equal ones, for sharded FLOPs. */
static const Coefficients *slowest_at(const GArray *all, uint32_t work)
{
    g_assert(all->len > 0 && work < COEFFICIENTS);
    const Coefficients *slowest = &g_array_index(all, Coefficients, 0);
    for (uint32_t i = 1; i < all->len; i++) {
        const Coefficients *one = &g_array_index(all, Coefficients, i);
        if (one->c[work] > slowest->c[work] ||
            (one->c[work] == slowest->c[work] && one->c[1] > slowest->c[1]))
            slowest = one;
    }
    return slowest;
}

/* The class that becomes the slowest in the place of `now` where more and more FLOPs are
 * replicated; NULL: none. */
static const Coefficients *slowest_after(const GArray *all, const Coefficients *now)
{
    const Coefficients *next = NULL;
    double soonest = INFINITY;
    array_each (const Coefficients, one, all) {
        if (one->c[0] <= now->c[0])
            continue;
        const double at = (now->c[1] - one->c[1]) / (one->c[0] - now->c[0]);
        if (at < soonest || (at == soonest && one->c[0] > next->c[0])) {
            soonest = at;
            next = one;
        }
    }
    return next;
}

/* Adds the classes that can be the slowest, those for little replicated work first, up to a number,
 * and for each other kind of work the slowest class. A class that is left out only makes the bound
 * looser, and each one takes time. */
static void add_slowest(Pricer *pricer, const GArray *all)
{
    enum { MOST = 5 };
    const Coefficients *one = slowest_at(all, 1);
    for (uint32_t i = 0; i < MOST && one; i++) {
        pricer_add_class(pricer, *one);
        one = slowest_after(all, one);
    }
    for (uint32_t work = 0; work < COEFFICIENTS; work++)
        if (work != 1 && slowest_at(all, work)->c[work] > 0)
            pricer_add_class(pricer, *slowest_at(all, work));
}

/* Adds the unions of devices that can have to take most: of few kinds all, else those of the kinds
 * with the largest bounds for their speed, in which the shares are that the others cannot take. */
static void add_unions(GArray *all, const Kind *kind, uint32_t n)
{
    enum { FEW = 4 };
    for (uint32_t members = 1; n <= FEW && members < 1u << n; members++)
        if (counts_alike(kind, n, members)) {
            const Coefficients class = union_class(kind, n, members);
            g_array_append_val(all, class);
        }
    for (uint32_t members = 0;
         n > FEW && n <= 32 && members != G_MAXUINT32 >> (32 - n);) {
        uint32_t next = n;
        for (uint32_t k = 0; k < n; k++)
            if (!(members >> k & 1u) &&
                (next == n || kind[k].hi * kind[next].device->rate >
                                  kind[next].hi * kind[k].device->rate))
                next = k;
        members |= 1u << next;
        if (counts_alike(kind, n, members)) {
            const Coefficients class = union_class(kind, n, members);
            g_array_append_val(all, class);
        }
    }
}

void pricer_init_box(Pricer *pricer, const Graph *graph, const ClusterView *view,
                     const double *lo, const double *hi, double largest,
                     const double *memory_s)
{
    for (uint32_t j = 0; j < view->n_devices; j++)
        g_assert(lo[j] >= 0 && lo[j] <= hi[j]);
    g_autofree Kind *kind = g_new(Kind, view->n_devices);
    const uint32_t n = find_kinds(view, lo, hi, kind);
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Coefficients));
    pricer_init(pricer, graph, view, lo, NULL);
    pricer_charge(pricer, lo, hi, memory_s);
    pricer->max_share = fmax(pricer->max_share, fmax(largest, 1.0 / view->n_devices));
    for (uint32_t k = 0; k < n; k++) {
        const Coefficients class = coefficients_of(kind[k].device, kind[k].lo);
        g_array_append_val(all, class);
    }
    if (memcmp(lo, hi, view->n_devices * sizeof *lo) == 0)
        return; /* the devices themselves are all classes */
    add_unions(all, kind, n);
    pricer->n_classes = 0;
    add_slowest(pricer, all);
}
