/* Counts of what kernels read and write. */
#include "tests/support/device/traffic.h"

#include <deque>
#include <string>
#include <vector>

static struct {
    bool on, counts; /* counts: a launch is running */
    const char *memory;
    uint64_t bytes;
    std::vector<DeviceLaunch> launch;
    std::deque<std::string> name;
    /* [byte] the last launch that read it, that wrote it: 1 + its number */
    std::vector<uint32_t> read, written;
} traffic;

void device_trace(bool on)
{
    traffic.on = on;
    if (!on)
        return;
    traffic.launch.clear();
    traffic.name.clear();
    traffic.read.clear();
    traffic.written.clear();
}

const DeviceLaunch *device_traced(uint32_t *n)
{
    *n = (uint32_t)traffic.launch.size();
    return traffic.launch.data();
}

void traffic_begin(const char *name, unsigned blocks, unsigned threads,
                   const char *memory, uint64_t bytes)
{
    if (!traffic.on)
        return;
    traffic.name.push_back(name);
    traffic.launch.push_back(
        {traffic.name.back().c_str(), blocks, (uint64_t)blocks * threads, 0, 0, 0, 0});
    traffic.memory = memory;
    traffic.bytes = bytes;
    traffic.read.resize(bytes);
    traffic.written.resize(bytes);
    traffic.counts = true;
}

void traffic_end(void)
{
    traffic.counts = false;
}

void traffic_touch(const void *data, uint64_t bytes, bool written)
{
    const uint64_t at = (uint64_t)((const char *)data - traffic.memory);
    if (!traffic.counts || at >= traffic.bytes) /* or of the host */
        return;
    DeviceLaunch &launch = traffic.launch.back();
    const uint32_t now = (uint32_t)traffic.launch.size();
    (written ? launch.stores : launch.loads) += bytes;
    /* words of numbers count as wholes */
    const uint32_t step = (at | bytes) % sizeof(float) == 0 ? sizeof(float) : 1;
    for (uint64_t i = at; i < at + bytes && i < traffic.bytes; i += step)
        if (written) {
            launch.written += traffic.written[i] != now ? step : 0;
            traffic.written[i] = now;
        } else if (traffic.written[i] != now && traffic.read[i] != now) {
            launch.read += step;
            traffic.read[i] = now;
        }
}
