/* Prices at given ratios: the device classes, and the charges for bytes held. */
#include "data/base/free.h"
#include "synth/spmd/price_parts.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"

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
           x->made == y->made && x->read == y->read &&
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
        .memo = cluster_view_has_kernels(view) ? sim_memo_new() : NULL,
        .part = 1,
        .exact = true};
    pricer_charge(pricer, ratio, ratio, memory_s);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        pricer->max_share = fmax(pricer->max_share, ratio[j]);
        pricer->inner |= view->device[j].gpus > 1;
        if (j > 0 && ratio[j] == ratio[j - 1] &&
            device_compare(&view->device[j], &view->device[j - 1]) == 0)
            continue; /* most equal devices are neighbours */
        pricer_add_class(pricer, coefficients_of(&view->device[j], ratio[j]));
    }
}

/* From here on sharded coefficients are for all of the work, to be multiplied by shares by units;
 * dims missing in the table count as whole. */
void pricer_round(Pricer *pricer, const SynthShares *shares)
{
    const ClusterView *view = pricer->view;
    const uint32_t n = view->n_devices;
    g_auto(DeviceKinds) kinds = {0};
    if (!device_kinds(view, PRICE_MAX_CLASSES, &kinds))
        return;
    pricer->n_classes = kinds.n;
    for (uint32_t h = 0; h < kinds.n; h++)
        pricer->class[h] = coefficients_of(&view->device[kinds.first[h]], 1);
    pricer->exact = false;
    pricer->n_units = shares->n;
    pricer->units = g_memdup2(shares->units, shares->n * sizeof *shares->units);
    pricer->unit_max = g_new0(double, shares->n);
    pricer->unit_share = g_new0(double, (gsize)shares->n *PRICE_MAX_CLASSES);
    for (uint32_t i = 0; i < shares->n * n; i++) {
        const uint32_t u = i / n, h = kinds.of[i % n];
        double *largest = &pricer->unit_share[u * PRICE_MAX_CLASSES + h];
        *largest = fmax(*largest, shares->share[i]);
        pricer->unit_max[u] = fmax(pricer->unit_max[u], shares->share[i]);
    }
}

bool pricer_keep_slowest(Pricer *pricer)
{
    enum { SHARDED_FLOP = 1 }; /* in Coefficients */
    uint32_t slowest = 0;
    double longest_s = 0;
    if (pricer->n_units == 0 || pricer->n_classes == 1)
        return false;
    for (uint32_t h = 0; h < pricer->n_classes; h++) {
        const double s = sum_over(double, u, pricer->n_units,
                                  pricer->unit_share[u * PRICE_MAX_CLASSES + h] *
                                      pricer->class[h].c[SHARDED_FLOP]);
        if (s > longest_s) {
            longest_s = s;
            slowest = h;
        }
    }
    pricer->n_classes = 1;
    pricer->class[0] = pricer->class[slowest];
    for (uint32_t u = 0; u < pricer->n_units; u++)
        pricer->unit_share[u * PRICE_MAX_CLASSES] =
            pricer->unit_share[u * PRICE_MAX_CLASSES + slowest];
    return true;
}

CLEAR_DEFINE(pricer_clear, Pricer, pricer,
             free_each(pricer->units, pricer->unit_max, pricer->unit_share,
                       pricer->segments.share, pricer->segments.largest,
                       pricer->segments.made, pricer->segments.read, pricer->conversions,
                       pricer->saver),
             sim_memo_free(pricer->memo), g_hash_table_destroy(pricer->alike));
