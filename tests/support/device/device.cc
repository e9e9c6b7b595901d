/* Devices, memory, streams and events of the emulator. */
#include "tests/support/device/inside.h"
#include "tests/support/device/traffic.h"

#include <glib.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ARENA = 1 << 28,
    HUGE_PAGE = 1 << 21,
    ALIGN = 64,
    GUARD = 64,
    NOBODY = 0xa5,
    POISON = 0xff,
    HOST_SEEDS = 7 /* every 7th seed takes memory away from the host, which costs time */
};

struct Block {
    Gpu *device;
    uint64_t bytes, room;
    bool live;
    DeviceStream *freed_on;
    std::shared_ptr<DeviceRecord> freed;
};

struct Gpu {
    int number;
    char *arena, *mapped;
    uint64_t top, used, high;
    std::multimap<uint64_t, uintptr_t> unused; /* freed blocks, by their room */
    std::set<const Gpu *> users;               /* other devices with access */
    bool open;                                 /* accessible to this thread now */
};

enum Mode { LATE, EARLY, MIXED, RANDOM, MODES };

struct Devices {
    std::vector<Gpu *> device;
    std::vector<DeviceStream *> stream;
    std::map<uintptr_t, Block> block;
    int current;
    uint64_t state, seed;
    uint32_t n_streams;
    Mode mode;
    char doing[512];
    const Gpu *doing_on; /* NULL: the host */
    bool doing_all;
    DeviceCounts counts;
    uint64_t failing; /* the number of the allocation that fails */
    cudaError_t last;
};
/* Lives as long as the process, so that no pool is lost before its end. */
static Devices &g = *new Devices();

thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

void device_violation(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "emulated devices, seed %llu: ", (unsigned long long)g.seed);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    signal(SIGABRT, SIG_DFL);
    abort();
}

uint32_t device_random(uint32_t below)
{
    g.state = g.state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g.state >> 33) % below;
}

int device_number(const Gpu *device)
{
    return device->number;
}

Gpu *device_current(void)
{
    return g.device[(size_t)g.current];
}

DeviceCounts *device_counted(void)
{
    return &g.counts;
}

DeviceCounts device_counts(void)
{
    for (Gpu *device : g.device)
        if (device->high > g.counts.peak_bytes)
            g.counts.peak_bytes = device->high;
    return g.counts;
}

void device_fail_allocation(uint64_t n)
{
    g.failing = g.counts.allocations + n;
}

/* --- who may touch what --- */

static void arena_open(Gpu *device, bool open)
{
    if (device->open == open)
        return;
    device->open = open;
    if (mprotect(device->arena, ARENA, open ? PROT_READ | PROT_WRITE : PROT_NONE))
        device_violation("mprotect failed");
}

bool device_reaches(const Gpu *user, const Gpu *owner)
{
    return g.seed % 5 != 4 || (user->number + owner->number) % 2 == 0;
}

bool device_has_access(const Gpu *user, const Gpu *owner)
{
    return user == owner || owner->users.count(user) > 0;
}

/* Others' memory that the work may touch is opened where it does (device_caught). */
void device_enter(Gpu *device, const char *what)
{
    g_strlcpy(g.doing, what, sizeof g.doing);
    g.doing_on = device;
    g.doing_all = false;
    if (!device && g.seed % HOST_SEEDS != 0)
        return;
    for (Gpu *owner : g.device)
        if (!device || !device_has_access(device, owner))
            arena_open(owner, false);
    if (device)
        arena_open(device, true);
}

void device_enter_all(const char *what)
{
    g_strlcpy(g.doing, what, sizeof g.doing);
    g.doing_all = true;
}

static void device_caught(int signal_number, siginfo_t *info, void *)
{
    const char *at = (const char *)info->si_addr;
    for (Gpu *owner : g.device) {
        if (at < owner->arena || at >= owner->arena + ARENA)
            continue;
        if (!owner->open &&
            (g.doing_all || (g.doing_on && device_has_access(g.doing_on, owner)))) {
            arena_open(owner, true);
            return;
        }
        auto block = g.block.upper_bound((uintptr_t)at);
        const bool known = block != g.block.begin() && (--block, true);
        char user[32] = "the host";
        if (g.doing_on)
            snprintf(user, sizeof user, "device %d", g.doing_on->number);
        device_violation(
            "%s on %s touches memory of device %d without access (%llu bytes "
            "allocated there)",
            g.doing_on ? g.doing : "a call", user, owner->number,
            known ? (unsigned long long)block->second.bytes : 0);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

Gpu *device_of(const void *data, uint64_t bytes)
{
    auto at = g.block.upper_bound((uintptr_t)data);
    if (at == g.block.begin())
        return NULL;
    --at;
    const Block &block = at->second;
    return block.live && (uintptr_t)data + bytes <= at->first + block.bytes ? block.device
                                                                            : NULL;
}

void device_reset(uint32_t n, uint64_t seed)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = device_caught;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    for (DeviceStream *stream : g.stream)
        device_violation("a stream of device %d was not destroyed",
                         stream->device->number);
    for (auto &block : g.block)
        if (block.second.live)
            device_violation("%llu bytes of device %d were not freed",
                             (unsigned long long)block.second.bytes,
                             block.second.device->number);
    for (Gpu *device : g.device) {
        munmap(device->mapped, ARENA + HUGE_PAGE);
        delete device;
    }
    g.block.clear();
    g.device.clear();
    g.current = 0;
    g.seed = seed;
    g.state = seed * 0x9e3779b97f4a7c15u + 12345;
    g.mode = (Mode)(seed % MODES);
    g.counts = DeviceCounts();
    g.failing = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        Gpu *device = new Gpu();
        device->number = (int)i;
        device->mapped = (char *)mmap(NULL, ARENA + HUGE_PAGE, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        /* on huge pages access is given and taken a hundred times faster */
        device->arena = (char *)(((uintptr_t)device->mapped + HUGE_PAGE - 1) &
                                 ~(uintptr_t)(HUGE_PAGE - 1));
        madvise(device->arena, ARENA, MADV_HUGEPAGE);
        g.device.push_back(device);
    }
    device_enter(NULL, "");
}

/* Devices of a program that loads the backend, its emulator included, as a module. */
__attribute__((unused)) static const bool from_environment = [] {
    const char *n = getenv("KILTER_EMULATED_GPUS");
    if (n)
        device_reset((uint32_t)strtoul(n, NULL, 10), 1);
    return n != NULL;
}();

/* --- the scheduler --- */

static bool stream_runs(DeviceStream *stream)
{
    if (stream->work.empty())
        return false;
    const DeviceWork &head = stream->work.front();
    return (!head.wait || head.wait->done) &&
           (!head.launch || launch_is_ready(*head.launch, NULL));
}

static void stream_run(DeviceStream *stream)
{
    const DeviceWork work = std::move(stream->work.front());
    stream->work.pop_front();
    if (work.launch)
        launch_run(*work.launch);
    if (work.run) {
        device_enter(stream->device, work.name.c_str());
        if (work.blocks)
            traffic_begin(work.name.c_str(), work.blocks, work.threads,
                          stream->device->arena, stream->device->top);
        work.run();
        if (work.blocks)
            traffic_end();
    }
    device_enter(NULL, "");
    if (work.record)
        work.record->done = true;
}

[[noreturn]] static void stream_deadlock(void)
{
    std::string text;
    for (DeviceStream *stream : g.stream)
        if (!stream->work.empty())
            text += "\n  stream " + std::to_string(stream->number) + " of device " +
                    std::to_string(stream->device->number) + " waits in " +
                    stream->work.front().name;
    device_violation("nothing can go on:%s", text.c_str());
}

/* Runs only what `stream` needs to come one step further. */
static void stream_step(DeviceStream *stream, std::set<DeviceStream *> &waiting)
{
    if (stream->work.empty() || !waiting.insert(stream).second)
        stream_deadlock();
    const DeviceWork &head = stream->work.front();
    std::vector<DeviceStream *> missing;
    if (head.wait && !head.wait->done)
        stream_step(head.wait->stream, waiting);
    else if (head.launch && !launch_is_ready(*head.launch, &missing))
        stream_step(missing[device_random((uint32_t)missing.size())], waiting);
    else
        stream_run(stream);
    waiting.erase(stream);
}

/* Runs one of the streams that can go on; `eager`: only of these. */
static bool streams_run_one(bool eager)
{
    const uint32_t n = (uint32_t)g.stream.size(), first = n ? device_random(n) : 0;
    for (uint32_t i = 0; i < n; i++) {
        DeviceStream *stream = g.stream[(first + i) % n];
        if ((!eager || !stream->lazy) && stream_runs(stream)) {
            stream_run(stream);
            return true;
        }
    }
    return false;
}

static void streams_go_on(void)
{
    if (g.mode == MIXED && !g.stream.empty() && device_random(40) == 0) {
        DeviceStream *stream = g.stream[device_random((uint32_t)g.stream.size())];
        stream->lazy = !stream->lazy;
    }
    if (g.mode == EARLY || g.mode == MIXED)
        while (streams_run_one(g.mode == MIXED)) {
        }
    for (uint32_t i = g.mode == RANDOM ? device_random(4) : 0; i > 0; i--)
        streams_run_one(false);
}

static void stream_drain(DeviceStream *stream)
{
    while (!stream->work.empty())
        if (g.mode == LATE || g.mode == MIXED) {
            std::set<DeviceStream *> waiting;
            stream_step(stream, waiting);
        } else if (!streams_run_one(false)) {
            stream_deadlock();
        }
}

void device_append(DeviceStream *stream, DeviceWork work)
{
    stream->work.push_back(std::move(work));
    streams_go_on();
}

/* --- the runtime's entry points --- */

static cudaError_t fail(cudaError_t error)
{
    g.last = error;
    return error;
}

extern "C" const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation        ? "out of memory"
           : error == cudaErrorInvalidDevice         ? "invalid device ordinal"
           : error == cudaErrorInvalidResourceHandle ? "invalid resource handle"
           : error == cudaSuccess                    ? "no error"
                                                     : "invalid argument";
}

extern "C" cudaError_t cudaGetLastError(void)
{
    const cudaError_t last = g.last;
    g.last = cudaSuccess;
    return last;
}

extern "C" cudaError_t cudaGetDeviceCount(int *n)
{
    *n = (int)g.device.size();
    return cudaSuccess;
}

extern "C" cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || (size_t)device >= g.device.size())
        return fail(cudaErrorInvalidDevice);
    g.current = device;
    return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer &&
           device_reaches(g.device[(size_t)device], g.device[(size_t)peer]);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream =
        new DeviceStream{device_current(), g.n_streams++, device_random(2) == 0, {}};
    g.stream.push_back(*stream);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    stream_drain(stream);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    stream_drain(stream);
    for (auto &block : g.block)
        if (block.second.freed_on == stream)
            block.second.freed_on = NULL;
    for (size_t i = 0; i < g.stream.size(); i++)
        if (g.stream[i] == stream)
            g.stream.erase(g.stream.begin() + (long)i);
    delete stream;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new DeviceEvent{device_current(), nullptr};
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (event->device != stream->device)
        return fail(cudaErrorInvalidResourceHandle);
    event->last = std::make_shared<DeviceRecord>(DeviceRecord{stream, false});
    DeviceWork work;
    work.name = "an event";
    work.record = event->last;
    device_append(stream, std::move(work));
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                           unsigned)
{
    if (!event->last)
        return cudaSuccess;
    g.counts.waits++;
    DeviceWork work;
    work.name = "a wait for stream " + std::to_string(event->last->stream->number);
    work.wait = event->last;
    device_append(stream, std::move(work));
    return cudaSuccess;
}

/* --- memory --- */

static void block_check(uintptr_t at, const Block &block)
{
    for (uint32_t i = 0; i < GUARD; i++)
        if (((const unsigned char *)at)[block.room + i] != NOBODY)
            device_violation("the memory behind %llu bytes of device %d was written",
                             (unsigned long long)block.bytes, block.device->number);
}

/* A freed block that the stream may use now: freed on it, or wholly. */
static uintptr_t block_again(const DeviceStream *stream, uint64_t bytes)
{
    auto &unused = stream->device->unused;
    for (auto at = unused.lower_bound(bytes);
         at != unused.end() && at->first <= 2 * bytes + 4 * ALIGN; ++at) {
        const Block &block = g.block[at->second];
        if (block.freed_on == stream || block.freed->done) {
            const uintptr_t found = at->second;
            unused.erase(at);
            return found;
        }
    }
    return 0;
}

extern "C" cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t stream)
{
    Gpu *device = stream->device;
    if (g.counts.allocations++ == g.failing)
        return fail(cudaErrorMemoryAllocation);
    const uint64_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    uintptr_t at = block_again(stream, room);
    g.counts.reused += at != 0;
    const bool fresh = !at;
    if (fresh) {
        if (device->top + room + GUARD > ARENA)
            return fail(cudaErrorMemoryAllocation);
        at = (uintptr_t)device->arena + device->top;
        device->top += room + GUARD;
        g.block[at].room = room;
    }
    Block &block = g.block[at];
    block.device = device;
    block.bytes = bytes;
    block.live = true;
    device->used += block.room;
    device->high = device->used > device->high ? device->used : device->high;
    DeviceWork work;
    work.name = "an allocation";
    const uint64_t whole = block.room;
    work.run = [=]() {
        memset((void *)at, POISON, whole);
        if (fresh)
            memset((char *)at + whole, NOBODY, GUARD);
    };
    device_append(stream, std::move(work));
    *data = (void *)at;
    return cudaSuccess;
}

extern "C" cudaError_t cudaFreeAsync(void *data, cudaStream_t stream)
{
    auto found = g.block.find((uintptr_t)data);
    if (found == g.block.end() || !found->second.live)
        device_violation("memory is freed that is not allocated, on device %d",
                         stream->device->number);
    Block &block = found->second;
    if (block.device != stream->device)
        device_violation("memory of device %d is freed on a stream of device %d",
                         block.device->number, stream->device->number);
    block.live = false;
    block.device->used -= block.room;
    block.device->unused.emplace(block.room, (uintptr_t)data);
    block.freed_on = stream;
    block.freed = std::make_shared<DeviceRecord>(DeviceRecord{stream, false});
    DeviceWork work;
    work.name = "a release";
    work.record = block.freed;
    const uint64_t whole = block.room;
    const Block copy = block;
    work.run = [=]() {
        block_check((uintptr_t)data, copy);
        memset(data, POISON, whole);
    };
    device_append(stream, std::move(work));
    return cudaSuccess;
}

static void memory_use(DeviceStream *stream, const void *data, uint64_t bytes,
                       const char *call)
{
    if (bytes > 0 && device_of(data, bytes) != stream->device)
        device_violation("%s: %llu bytes are not in one allocation of device %d", call,
                         (unsigned long long)bytes, stream->device->number);
}

extern "C" cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes,
                                       cudaStream_t stream)
{
    memory_use(stream, data, bytes, "cudaMemsetAsync");
    DeviceWork work;
    work.name = "cudaMemsetAsync";
    work.blocks = 1;
    work.run = [=]() {
        memset(data, value, bytes);
        traffic_touch(data, bytes, true);
    };
    device_append(stream, std::move(work));
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                       enum cudaMemcpyKind kind, cudaStream_t stream)
{
    memory_use(stream, kind == cudaMemcpyHostToDevice ? to : from, bytes,
               "cudaMemcpyAsync");
    DeviceWork work;
    work.name = "cudaMemcpyAsync";
    work.run = [=]() { memcpy(to, from, bytes); };
    device_append(stream, std::move(work));
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    *total = ARENA;
    *unused = ARENA - device_current()->top;
    return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    *pool = g.device[(size_t)device];
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
                                               enum cudaMemPoolAttr attribute, void *)
{
    if (attribute == cudaMemPoolAttrUsedMemHigh)
        pool->high = pool->used;
    return cudaSuccess;
}

extern "C" cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    if (attribute != cudaMemPoolAttrUsedMemHigh)
        return fail(cudaErrorInvalidValue);
    *(uint64_t *)value = pool->high;
    return cudaSuccess;
}

extern "C" cudaError_t
cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const Gpu *user = g.device[(size_t)access[i].location.id];
        if (!device_reaches(user, pool))
            return fail(cudaErrorInvalidDevice);
        pool->users.insert(user);
    }
    return cudaSuccess;
}

/* --- kernels --- */

void device_launch(const char *kernel, unsigned blocks, unsigned threads,
                   cudaStream_t stream, std::function<void()> thread)
{
    if (stream->device != device_current() || blocks == 0 || threads > 1024) {
        fail(stream->device != device_current() ? cudaErrorInvalidResourceHandle
                                                : cudaErrorInvalidValue);
        return;
    }
    g.counts.kernels++;
    g.counts.threads += (uint64_t)blocks * threads;
    DeviceWork work;
    work.name = kernel;
    work.blocks = blocks;
    work.threads = threads;
    work.run = [=]() {
        gridDim = {blocks, 1, 1};
        blockDim = {threads, 1, 1};
        for (unsigned b = 0; b < blocks; b++)
            for (unsigned t = 0; t < threads; t++) {
                blockIdx = {b, 0, 0};
                threadIdx = {t, 0, 0};
                thread();
            }
    };
    device_append(stream, std::move(work));
}
