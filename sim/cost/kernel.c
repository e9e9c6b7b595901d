/* A kernel's time by the law of its kind, and what it is made of. */
#include "sim/cost/kernel.h"

#include <math.h>

#include "data/base/names.h"
#include "sim/cost/kernel_law.h"

static const char *const LIMIT_NAME[KERNEL_LIMITS] = {[KERNEL_BY_COMPUTE] = "compute",
                                                      [KERNEL_BY_POWER] = "power",
                                                      [KERNEL_BY_MEMORY] = "memory",
                                                      [KERNEL_BY_CACHE] = "L2",
                                                      [KERNEL_BY_START] = "start"};

NAMES_FUNCTION(kernel_limit_name, KernelLimit, KERNEL_LIMITS, LIMIT_NAME[of])

static double kernel_product_s(const KernelDevice *device, const Kernel *kernel,
                               KernelReport *report)
{
    const double in = kernel_format_bytes(kernel->format),
                 out = kernel->product.out_bytes > 0 ? kernel->product.out_bytes
                                                     : fmax(in, 2);
    const LawProduct product = {
        .batch = kernel->kind == KERNEL_BATCHED ? kernel->product.batch : 1,
        .m = kernel->product.m,
        .n = kernel->product.n,
        .k = kernel->product.k,
        .in_bytes = in,
        .out_bytes = out * (kernel->product.accumulates ? 2 : 1),
        .format = kernel->format,
        .batched = kernel->kind == KERNEL_BATCHED,
        .alone = kernel->alone};
    const double t = law_product_s(device, &product, report);
    if (!kernel->product.converts || in >= 2)
        return t;
    /* the pass over X: not vectorised, as those of activations */
    const Kernel pass = {
        .kind = KERNEL_ELEMENTWISE,
        .format = kernel->format,
        .elementwise = {.elements = product.batch * product.m * product.k,
                        .read = 2,
                        .written = in,
                        .scalar = true}};
    const double more =
        law_elementwise_s(device, &pass, NULL) + device->constants.memory.convert * 1e-6;
    if (report)
        report->start_s += more;
    return t + more;
}

static double kernel_price_s(const KernelDevice *device, const Kernel *kernel,
                             KernelReport *report)
{
    KILTER_ASSERT(kernel->kind < KERNELS && kernel->format < KERNEL_FORMATS);
    switch (kernel->kind) {
    case KERNEL_PRODUCT:
    case KERNEL_BATCHED:
        return kernel_product_s(device, kernel, report);
    case KERNEL_GROUPED:
        return law_grouped_s(device, kernel, report);
    case KERNEL_EXPERTS:
        return law_experts_s(device, kernel, report);
    case KERNEL_ELEMENTWISE:
        return law_elementwise_s(device, kernel, report);
    case KERNEL_NORM:
    case KERNEL_SOFTMAX:
        return law_rows_s(device, kernel, report);
    case KERNEL_ATTENTION:
        return law_attention_s(device, kernel, report);
    case KERNEL_CONVOLUTION:
        return law_convolution_s(device, kernel, report);
    case KERNELS:
        break;
    }
    g_assert_not_reached();
}

double kernel_time_s(const KernelDevice *device, const Kernel *kernel)
{
    return kernel_price_s(device, kernel, NULL);
}

/* The largest part. */
static KernelLimit kernel_limit_of(const KernelReport *report)
{
    const double part[KERNEL_LIMITS] = {[KERNEL_BY_COMPUTE] = report->compute_s,
                                        [KERNEL_BY_POWER] = report->power_s,
                                        [KERNEL_BY_MEMORY] = report->memory_s,
                                        [KERNEL_BY_CACHE] = report->cache_s,
                                        [KERNEL_BY_START] = report->start_s};
    KernelLimit most = KERNEL_BY_COMPUTE;
    for (KernelLimit limit = 0; limit < KERNEL_LIMITS; limit++)
        if (part[limit] > part[most])
            most = limit;
    return most;
}

KernelReport kernel_report(const KernelDevice *device, const Kernel *kernel)
{
    KernelReport report = {0};
    report.time_s = kernel_price_s(device, kernel, &report);
    report.peak = device->peak[kernel->format];
    report.bandwidth = device->chip.bandwidth;
    report.limit = kernel_limit_of(&report);
    return report;
}
