/* Prices at given ratios: which device classes there are, and what holding bytes is charged. */
#include "synth/price_parts.h"

#include <math.h>

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
    return x->bytes == y->bytes && x->roles == y->roles && x->forms == y->forms;
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

void pricer_clear(Pricer *pricer)
{
    g_free(pricer->conversions);
    g_free(pricer->saver);
    g_hash_table_destroy(pricer->alike);
}
