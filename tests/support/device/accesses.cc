/* The functions that the compiler calls at each access to memory of kernels that are counted, in a sanitizer's place. */
#include <cstddef>

#include "tests/support/device/traffic.h"

#define ACCESS(n)                                               \
    extern "C" void __tsan_read##n(const void *data)            \
    {                                                           \
        traffic_touch(data, n, false);                          \
    }                                                           \
    extern "C" void __tsan_write##n(const void *data)           \
    {                                                           \
        traffic_touch(data, n, true);                           \
    }                                                           \
    extern "C" void __tsan_unaligned_read##n(const void *data)  \
    {                                                           \
        traffic_touch(data, n, false);                          \
    }                                                           \
    extern "C" void __tsan_unaligned_write##n(const void *data) \
    {                                                           \
        traffic_touch(data, n, true);                           \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

extern "C" void __tsan_read_range(const void *data, size_t bytes)
{
    traffic_touch(data, bytes, false);
}

extern "C" void __tsan_write_range(const void *data, size_t bytes)
{
    traffic_touch(data, bytes, true);
}

extern "C" void __tsan_func_entry(void *)
{
}

extern "C" void __tsan_func_exit(void)
{
}

extern "C" void __tsan_init(void)
{
}

extern "C" void __tsan_vptr_update(void **, void *)
{
}

extern "C" int __tsan_atomic32_fetch_add(volatile int *data, int value, int)
{
    return __atomic_fetch_add(data, value, __ATOMIC_SEQ_CST);
}
