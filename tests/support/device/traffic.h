/* Counts of what kernels on emulated devices read and write, for a build of the backend's kernels
 * (and of cuBLAS) in which the compiler calls a function at each access to memory
 * (-fsanitize=thread; accesses.cc has these functions in the sanitizer's place). */
#ifndef KILTER_TESTS_DEVICE_TRAFFIC_H
#define KILTER_TESTS_DEVICE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One launch. Bytes of the device's memory: each byte once, those that are read not if the kernel
 * itself wrote them before (what caches of any size cannot save), and as often as they are asked
 * for. */
typedef struct {
    const char *name;
    uint64_t blocks, threads; /* 0 threads: of a library, whose grid is its own */
    uint64_t read, written;
    uint64_t loads, stores;
} DeviceLaunch;

/* Begins a count, which forgets the last one, of the only device; or ends it. */
void device_trace(bool on);
/* Its launches, in the order in which they ran; *n gets their number. Valid until the next
 * device_trace. */
const DeviceLaunch *device_traced(uint32_t *n);

#ifdef __cplusplus
}

/* Called by the emulator: around work, and at each access. */
void traffic_begin(const char *name, unsigned blocks, unsigned threads,
                   const char *memory, uint64_t bytes);
void traffic_end(void);
void traffic_touch(const void *data, uint64_t bytes, bool written);
#endif
#endif
