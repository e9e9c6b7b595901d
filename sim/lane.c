/* Lanes: devices that do the same at the same time. Two devices share a lane when they
 * have the same speed, the same inner link and the same share of every split. */
#include <string.h>

#include "sim/task.h"

static void append(GByteArray *key, const void *data, size_t size)
{
    g_byte_array_append(key, data, (guint)size);
}

static GBytes *key_of(const SimCase *sim, uint32_t device)
{
    const Device *d = &sim->view->device[device];
    GByteArray *key = g_byte_array_new();

    append(key, &d->rate, sizeof d->rate);
    append(key, &d->gpus, sizeof d->gpus);
    append(key, &d->slowdown, sizeof d->slowdown);
    append(key, &d->fitted, sizeof d->fitted);
    append(key, &d->stretch, sizeof d->stretch);
    if (d->gpus > 1) {
        append(key, &d->inner.latency_s, sizeof d->inner.latency_s);
        append(key, &d->inner.bandwidth, sizeof d->inner.bandwidth);
    }
    for (uint32_t k = 0; k < sim->linear->n_splits; k++)
        append(key, &sim->share[(size_t)k * sim->view->n_devices + device],
               sizeof sim->share[0]);
    return g_byte_array_free_to_bytes(key);
}

uint32_t *sim_lanes(const SimCase *sim, bool separate, uint32_t *n_lanes)
{
    const uint32_t n = sim->view->n_devices;
    uint32_t *lane = g_new(uint32_t, n);

    if (separate) {
        for (uint32_t j = 0; j < n; j++)
            lane[j] = j;
        *n_lanes = n;
        return lane;
    }
    g_autoptr(GHashTable) known = g_hash_table_new_full(
        g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    *n_lanes = 0;
    for (uint32_t j = 0; j < n; j++) {
        GBytes *key = key_of(sim, j);
        const gpointer found = g_hash_table_lookup(known, key);
        if (found) {
            lane[j] = GPOINTER_TO_UINT(found) - 1;
            g_bytes_unref(key);
            continue;
        }
        lane[j] = (*n_lanes)++;
        g_hash_table_insert(known, key, GUINT_TO_POINTER(lane[j] + 1));
    }
    return lane;
}
