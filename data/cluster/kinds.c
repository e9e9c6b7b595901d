/* Devices that planning cannot tell apart. */
#include "data/cluster/cluster.h"

#include <string.h>

#include "data/base/free.h"

static int compare_double(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_parts(const Machine *a, const Machine *b)
{
    const uint32_t x = a ? a->n_parts : 0, y = b ? b->n_parts : 0;
    return x != y   ? compare_double(x, y)
           : x == 0 ? 0
                    : memcmp(a->part, b->part, x * sizeof *a->part);
}

/* The common case of device_compare, in few instructions, for thousands of equal devices. */
static bool surely_equal(const Device *a, const Device *b)
{
    return a->rate == b->rate && a->gpus == 1 && b->gpus == 1 &&
           a->memory_bytes == b->memory_bytes && a->fitted == b->fitted &&
           a->stretch == b->stretch && a->launch_s == b->launch_s &&
           a->handover_s == b->handover_s && a->crowd == b->crowd &&
           a->interference == b->interference;
}

int device_compare(const Device *a, const Device *b)
{
    if (surely_equal(a, b))
        return 0;
    int order = -compare_double(a->rate, b->rate);
    order = order ? order : compare_double(a->gpus, b->gpus);
    order =
        order ? order : -compare_double((double)a->memory_bytes, (double)b->memory_bytes);
    order = order ? order : compare_double(a->fitted, b->fitted);
    order = order ? order : compare_double(a->stretch, b->stretch);
    order = order ? order : compare_double(a->launch_s, b->launch_s);
    order = order ? order : compare_double(a->handover_s, b->handover_s);
    order = order ? order : compare_double(a->crowd, b->crowd);
    order = order ? order : compare_double(a->interference, b->interference);
    order = order ? order : compare_parts(a->mixed, b->mixed);
    if (order || a->gpus == 1)
        return order;
    order = compare_double(a->inner.latency_s, b->inner.latency_s);
    return order ? order : -compare_double(a->inner.bandwidth, b->inner.bandwidth);
}

bool device_kinds(const ClusterView *view, uint32_t most, DeviceKinds *kinds)
{
    const uint32_t n = view->n_devices;
    *kinds =
        (DeviceKinds){0, g_new(uint32_t, n), g_new(uint32_t, n), g_new0(uint32_t, n)};
    items_at (const Device, device, j, view->device, n) {
        /* most equal devices are neighbours */
        uint32_t k =
            j > 0 && device_compare(device, device - 1) == 0 ? kinds->of[j - 1] : 0;
        while (k < kinds->n &&
               device_compare(&view->device[kinds->first[k]], device) != 0)
            k++;
        if (k == most)
            return false;
        if (k == kinds->n)
            kinds->first[kinds->n++] = j;
        kinds->of[j] = k;
        kinds->count[k]++;
    }
    return true;
}

CLEAR_DEFINE(device_kinds_clear, DeviceKinds, kinds, let_go(kinds->of, g_free),
             let_go(kinds->first, g_free), let_go(kinds->count, g_free));
