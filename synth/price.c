/* Prices at given ratios: which device classes there are, and what holding bytes is charged. */
#include "synth/price_parts.h"

#include <math.h>
#include <string.h>

static guint hash_conversions(gconstpointer data)
{
    const ConversionKey *key = data;
    return (guint)((key->bytes ^ (uint64_t)key->roles << 56) *
                       UINT64_C(0x9e3779b97f4a7c15) >>
                   32);
}

static gboolean same_conversions(gconstpointer a, gconstpointer b)
{
    const ConversionKey *x = a, *y = b;
    return x->bytes == y->bytes && x->roles == y->roles && x->forms == y->forms &&
           memcmp(x->units, y->units, sizeof x->units) == 0;
}

void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio, const double *memory_s)
{
    g_assert(view->n_devices > 0);
    *pricer = (Pricer){
        .graph = graph,
        .view = view,
        .conversions = g_new0(const Conversions *, graph_n_tensors(graph)),
        .alike = g_hash_table_new_full(hash_conversions, same_conversions, g_free, NULL),
        .part = 1,
        .exact = true};
    pricer_charge(pricer, ratio, ratio, memory_s);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        pricer->max_share = fmax(pricer->max_share, ratio[j]);
        pricer->inner |= view->device[j].gpus > 1;
        if (j > 0 && ratio[j] == ratio[j - 1] &&
            device_compare(&view->device[j], &view->device[j - 1]) == 0)
            continue; /* equal devices are mostly neighbours */
        pricer_add_class(pricer, coefficients_of(&view->device[j], ratio[j]));
    }
}

/* The class of each device, a kind each; false if there are more kinds than classes. */
static bool class_by_kind(const ClusterView *view, uint32_t *class, const Device **first,
                          uint32_t *n)
{
    *n = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        uint32_t k = 0;
        while (k < *n && device_compare(first[k], &view->device[j]) != 0)
            k++;
        if (k == PRICE_MAX_CLASSES)
            return false;
        if (k == *n)
            first[(*n)++] = &view->device[j];
        class[j] = k;
    }
    return true;
}

/* Sharded coefficients are those of all of the work from here on, times shares by units; dims that
 * the table lacks, if any, count whole. */
void pricer_round(Pricer *pricer, const SynthShares *shares)
{
    const ClusterView *view = pricer->view;
    const uint32_t n = view->n_devices;
    g_autofree uint32_t *class = g_new(uint32_t, n);
    const Device *first[PRICE_MAX_CLASSES];
    uint32_t n_classes;
    if (!class_by_kind(view, class, first, &n_classes))
        return;
    pricer->n_classes = n_classes;
    for (uint32_t h = 0; h < n_classes; h++)
        pricer->class[h] = coefficients_of(first[h], 1);
    pricer->exact = false;
    pricer->n_units = shares->n;
    pricer->units = g_memdup2(shares->units, shares->n * sizeof *shares->units);
    pricer->unit_max = g_new0(double, shares->n);
    pricer->unit_share = g_new0(double, (gsize)shares->n *PRICE_MAX_CLASSES);
    for (uint32_t i = 0; i < shares->n * n; i++) {
        const uint32_t u = i / n, h = class[i % n];
        double *largest = &pricer->unit_share[u * PRICE_MAX_CLASSES + h];
        *largest = fmax(*largest, shares->share[i]);
        pricer->unit_max[u] = fmax(pricer->unit_max[u], shares->share[i]);
    }
}

void pricer_clear(Pricer *pricer)
{
    g_free(pricer->units);
    g_free(pricer->unit_max);
    g_free(pricer->unit_share);
    g_free(pricer->conversions);
    g_free(pricer->saver);
    g_hash_table_destroy(pricer->alike);
}
