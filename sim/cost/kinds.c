/* Kinds of equal devices with equal shares. */
#include "data/base/free.h"
#include "sim/evaluate.h"

static bool alike(const ClusterView *view, uint32_t n_splits, const double *share,
                  uint32_t a, uint32_t b)
{
    KILTER_ASSERT(a < view->n_devices && b < view->n_devices);
    return all_of(k, n_splits,
                  share[(size_t)k * view->n_devices + a] ==
                      share[(size_t)k * view->n_devices + b]) &&
           device_compare(&view->device[a], &view->device[b]) == 0;
}

SimKinds sim_kinds(const ClusterView *view, uint32_t n_splits, const double *share)
{
    enum { LATEST = 4 }; /* equal devices are mostly neighbours */
    SimKinds kinds = {0, g_new(uint32_t, view->n_devices),
                      g_new(uint32_t, view->n_devices)};
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const uint32_t oldest = kinds.n > LATEST ? kinds.n - LATEST : 0;
        uint32_t k = kinds.n;
        while (k > oldest && !alike(view, n_splits, share, kinds.first[k - 1], j))
            k--;
        if (k == oldest) {
            kinds.first[kinds.n++] = j;
            k = kinds.n;
        }
        kinds.of[j] = k - 1;
    }
    return kinds;
}

CLEAR_DEFINE(sim_kinds_clear, SimKinds, kinds, free_each(kinds->first, kinds->of));
