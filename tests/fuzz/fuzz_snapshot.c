/* Fuzz target: any bytes as a memory snapshot of PyTorch are either refused with one line, or
 * devices whose peaks are sums of bytes. */
#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) peaks = snapshot_parse("any.json", data, size, &error);
    fuzz_check(!peaks == !!error, "either peaks or an error");
    if (!peaks) {
        fuzz_check_refused(error, "any.json");
        return false;
    }
    fuzz_check(peaks->len > 0, "a device");
    for (guint d = 0; d < peaks->len; d++) {
        const SnapshotPeak *peak = &g_array_index(peaks, SnapshotPeak, d);
        fuzz_check(peak->allocated_bytes <= UINT64_C(1) << 62 &&
                       peak->reserved_bytes <= UINT64_C(1) << 62,
                   "bytes");
        fuzz_check(peak->event <= peak->n_events, "an event");
        fuzz_note("%u %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %u %u", peak->device,
                  peak->allocated_bytes, peak->reserved_bytes, peak->event,
                  peak->n_events);
        fuzz_check(d == 0 || peak[-1].device < peak->device, "devices in order");
    }
    return true;
}
