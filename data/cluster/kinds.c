/* Devices that planning cannot tell apart. */
#include "data/cluster/cluster.h"

#include "data/base/assert.h"

bool device_kinds(const ClusterView *view, uint32_t most, DeviceKinds *kinds)
{
    const uint32_t n = view->n_devices;
    *kinds =
        (DeviceKinds){0, g_new(uint32_t, n), g_new(uint32_t, n), g_new0(uint32_t, n)};
    for (uint32_t j = 0; j < n; j++) {
        const Device *device = &view->device[j];
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
    uint32_t sum = 0;
    for (uint32_t k = 0; k < kinds->n; k++)
        sum += kinds->count[k];
    g_assert(sum == n);
    KILTER_ASSERT(n == 0 || (kinds->n > 0 && kinds->first[0] == 0));
    return true;
}

void device_kinds_clear(DeviceKinds *kinds)
{
    g_clear_pointer(&kinds->of, g_free);
    g_clear_pointer(&kinds->first, g_free);
    g_clear_pointer(&kinds->count, g_free);
}
