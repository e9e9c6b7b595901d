/* The numbers that times of kernels depend on (sim/cost/kernel.h): the constants that all devices
 * share, and one device's numbers, prepared once per device type. */
#pragma once

#include "data/cluster/cluster.h"
#include "data/cluster/kernel_constants.h"

/* The formats that kernels compute in: id, name, bytes of an element, scales included. */
#define KERNEL_FORMAT_TABLE(X) \
    X(FP32, "fp32", 4)         \
    X(TF32, "tf32", 4)         \
    X(FP16, "fp16", 2)         \
    X(BF16, "bf16", 2)         \
    X(FP8, "fp8", 1)           \
    X(MXFP8, "mxfp8", 1.03125) \
    X(NVFP4, "nvfp4", 0.5625)

#define KERNEL_FORMAT_ID(id, name, bytes) KERNEL_##id,
typedef enum { KERNEL_FORMAT_TABLE(KERNEL_FORMAT_ID) KERNEL_FORMATS } KernelFormat;

const char *kernel_format_name(KernelFormat format);
/* KILTER_ERROR_INPUT lists the names. */
bool kernel_format_find(const char *name, KernelFormat *format, GError **error);
double kernel_format_bytes(KernelFormat format);
/* In what a model computes whose numbers are these; tf32: its fp32 products may take TF32. */
KernelFormat kernel_format_of(Numbers numbers, bool tf32);

typedef struct KernelDevice {
    char *name;
    KernelConstants constants;
    Chip chip; /* complete but for sm, gcn and `sustained` */
    /* FLOP/s; 0: none. TF32 is that of fp32 where it has none of its own */
    double peak[KERNEL_FORMATS];
    double power_w; /* infinite: not known, and so without effect */
    double threads; /* of a processor */
    /* Numbers that the type did not say, and what is taken instead: "clock: 1.41 GHz from ..."; "":
     * nothing */
    char *missing;
} KernelDevice;

/* From the numbers of a device type whose chip is known (chip_is_known); NULL where it is not,
 * which is no error: such a type takes FLOPs / rate. KILTER_ERROR_INPUT if data/kernels.yaml cannot
 * be read. */
KernelDevice *kernel_device_new(const DeviceType *type, GError **error);
/* The same with these constants. */
KernelDevice *kernel_device_with(const DeviceType *type,
                                 const KernelConstants *constants);
AUTOPTR(kernel_device_free, KernelDevice)
