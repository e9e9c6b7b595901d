/* Grouped products: one launch multiplies the rows of each expert with its weights. With a experts
 * in use, of m rows each on average,
 *
 *     t = max(2 a 64 ceil(m/64) n k (1 + narrow/min(n, k)) / (peak reach rate),
 *             2 a m n k / the rate that the board's power sustains in products,
 *             bytes of weights and rows/(bandwidth share)): the second not of a call alone      (1)
 *
 * and of weights' gradients, with their own bytes b, which are accessed beside that,
 *
 *     sqrt(t^2 + (b/(bandwidth share))^2), share that of other products             (3)
 *
 * and a layer of experts is two or three of them and `passes` over its rows, which sort, activate,
 * weight and add them:
 *
 *     t = start + sum of (1) + passes 2 pairs (2 hidden + matrices inner) / bandwidth                                   (2)
 *
 * tokens that are routed to at least one of E experts by `top_k` use a = min(E, pairs) of them. */
#include <math.h>

#include "sim/cost/kernel_law.h"

enum { GROUP_ROWS = 64 };

/* Equation (1), of `products` such products at once. */
static double grouped_s(const KernelDevice *device, const ExpertLaw *law, double products,
                        double a, double m, double n, double k, const Kernel *kernel,
                        KernelReport *report)
{
    const KernelFormat format = kernel->format;
    const double size = kernel_format_bytes(format), flops = products * 2 * a * m * n * k,
                 rows = GROUP_ROWS * ceil(m / GROUP_ROWS);
    const double compute = products * 2 * a * rows * n * k *
                           (1 + law->narrow / fmin(n, k)) /
                           (device->peak[format] * device->chip.reach * law->rate),
                 bytes = products * a * size * n * k,
                 memory = bytes / (device->chip.bandwidth * law->bandwidth),
                 power = kernel->alone ? 0 : flops / law_power_rate(device, format);
    if (report) {
        report->compute_s = compute;
        report->power_s = power;
        report->memory_s = memory;
        report->flops = flops;
        report->least_s = fmax(fmax(compute * m / rows, power), memory);
        report->bytes = bytes + products * a * m * size * (n + k);
        report->tile_m = GROUP_ROWS;
        report->tiles = products * a * ceil(m / GROUP_ROWS);
    }
    return fmax(fmax(compute, power), memory);
}

double law_grouped_s(const KernelDevice *device, const Kernel *kernel,
                     KernelReport *report)
{
    const ExpertLaw *law = &device->constants.experts[kernel->product.library];
    const double seconds =
        grouped_s(device, law, 1, kernel->product.batch, kernel->product.m,
                  kernel->product.n, kernel->product.k, kernel, report);
    if (kernel->product.layout != KERNEL_NT)
        return seconds;
    const double bytes = kernel->product.batch * kernel->product.m * kernel->product.n *
                         kernel->product.out_bytes *
                         (kernel->product.accumulates ? 2 : 1);
    return hypot(seconds,
                 bytes / (device->chip.bandwidth * device->constants.tensor.bandwidth));
}

double law_experts_s(const KernelDevice *device, const Kernel *kernel,
                     KernelReport *report)
{
    const ExpertLaw *law = &device->constants.experts[kernel->experts.library];
    const double pairs = kernel->experts.tokens * kernel->experts.top_k,
                 a = fmin(kernel->experts.experts, pairs), g = kernel->experts.matrices;
    const double products = grouped_s(device, law, g, a, pairs / a, kernel->experts.inner,
                                      kernel->experts.hidden, kernel, report),
                 start = law->start * 1e-6,
                 passes = law->passes * 2 * pairs *
                          (2 * kernel->experts.hidden + g * kernel->experts.inner) /
                          device->chip.bandwidth;
    if (report) {
        report->start_s = start;
        report->memory_s += passes;
    }
    return start + products + passes;
}
