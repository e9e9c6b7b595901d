/* The shared inside of the emulator: devices, streams and the work on them (private to
 * tests/support/device). */
#ifndef KILTER_TESTS_DEVICE_INSIDE_H
#define KILTER_TESTS_DEVICE_INSIDE_H

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "tests/support/device/device.h"

struct DeviceRecord { /* a point in a stream */
    DeviceStream *stream;
    bool done;
};

struct Launch; /* one rank's part in a group of NCCL calls */

struct DeviceWork {
    std::string name;
    unsigned blocks = 0, threads = 0;     /* of a kernel; 0: other work */
    std::function<void()> run;            /* if any */
    std::shared_ptr<DeviceRecord> record; /* is done once this ran */
    std::shared_ptr<DeviceRecord> wait;   /* must be done before this runs */
    std::shared_ptr<Launch> launch;
};

struct DeviceStream {
    Gpu *device;
    uint32_t number;
    bool lazy;
    std::deque<DeviceWork> work;
};

struct DeviceEvent {
    Gpu *device;
    std::shared_ptr<DeviceRecord> last;
};

/* Ends the program with a message. */
[[noreturn]] void device_violation(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
uint32_t device_random(uint32_t below);
int device_number(const Gpu *device);
Gpu *device_current(void);
DeviceCounts *device_counted(void);
/* Appends work to a stream, and lets the scheduler run some. */
void device_append(DeviceStream *stream, DeviceWork work);
/* Makes a device's memory accessible to this thread, until the next call; NULL: none. Work of name
 * `what` runs on it. */
void device_enter(Gpu *device, const char *what);
/* All devices' memory, for NCCL, which has checked the accesses itself. */
void device_enter_all(const char *what);
/* Whether the bytes lie in one allocation that is in use: its device, or NULL. */
Gpu *device_of(const void *data, uint64_t bytes);
bool device_has_access(const Gpu *user, const Gpu *owner);
bool device_reaches(const Gpu *user, const Gpu *owner);

/* --- NCCL (nccl.cc) --- */

/* Whether all ranks of the group have arrived; the streams of those that have not, if any, go to
 * `missing`. */
bool launch_is_ready(const Launch &launch, std::vector<DeviceStream *> *missing);
/* Runs the part of one rank. */
void launch_run(Launch &launch);

#endif
