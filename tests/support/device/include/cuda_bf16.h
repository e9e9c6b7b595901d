/* Numbers of two bytes on emulated devices: rounded as exec/half.h does. */
#ifndef KILTER_TESTS_DEVICE_CUDA_BF16_H
#define KILTER_TESTS_DEVICE_CUDA_BF16_H

#include <cuda_fp16.h>

struct __nv_bfloat16 {
    uint16_t bits;
};
static inline float __bfloat162float(__nv_bfloat16 x)
{
    return exec_half_value(x.bits, EXEC_BF16);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return {exec_half_bits(x, EXEC_BF16)};
}
#endif
