/* Numbers of two bytes on emulated devices: rounded as exec/half.h does. */
#ifndef KILTER_TESTS_DEVICE_CUDA_FP16_H
#define KILTER_TESTS_DEVICE_CUDA_FP16_H

#include <glib.h>

extern "C" {
#include "exec/half.h"
}

struct __half {
    uint16_t bits;
};
static inline float __half2float(__half x)
{
    return exec_half_value(x.bits, EXEC_FP16);
}
static inline __half __float2half_rn(float x)
{
    return {exec_half_bits(x, EXEC_FP16)};
}
#endif
