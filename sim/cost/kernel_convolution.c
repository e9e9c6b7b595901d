/* Convolutions, by the three ways that libraries know, of which the time is a soft minimum
 * (exponent `choice`):
 *
 *     implicit product    the batched product m = samples x out image, n = out channels, k = in channels x filter, / implicit
 *     F(2,3)              Winograd, fused: 16 products of 4-element tiles, / small, + the filters' transform
 *     F(4,3)              Winograd, not fused: 36 products of 16-element tiles, / large, + the transforms' traffic
 *
 * (Lavin and Gray 2016); Winograd for filters of 3 x 3 and stride 1. Gradients of the input and of
 * the weights are the products with the same FLOPs and other extents. */
#include <math.h>

#include "sim/cost/kernel_law.h"

typedef struct {
    double samples, in, out, area, filter, stride; /* area: of the output's image */
    bool weights; /* the gradient of the weights: the sum runs over samples and image */
} Convolution;

/* The extents of one group as they lie in the product. */
static Convolution convolution_of(const Kernel *kernel)
{
    const double groups = kernel->convolution.groups > 0 ? kernel->convolution.groups : 1;
    Convolution c = {.samples = kernel->convolution.batch,
                     .in = kernel->convolution.in / groups,
                     .out = kernel->convolution.out / groups,
                     .area = kernel->convolution.height * kernel->convolution.width,
                     .filter = kernel->convolution.rows * kernel->convolution.columns,
                     .stride = fmax(kernel->convolution.stride, 1),
                     .weights = kernel->convolution.pass == KERNEL_WEIGHT_GRADIENT};
    return c;
}

static double convolution_product_s(const KernelDevice *device, const Kernel *kernel,
                                    double batch, double m, double n, double k,
                                    KernelReport *report)
{
    const double size = kernel_format_bytes(kernel->format);
    const LawProduct product = {.batch = batch,
                                .m = m,
                                .n = n,
                                .k = k,
                                .in_bytes = size,
                                .out_bytes = size,
                                .format = kernel->format,
                                .batched = true,
                                .alone = kernel->alone};
    return law_product_s(device, &product, report);
}

static double convolution_soft(const ConvolutionLaw *law, double implicit, double small,
                               double large)
{
    return pow(pow(implicit, -law->choice) + pow(small, -law->choice) +
                   pow(large, -law->choice),
               -1 / law->choice);
}

double law_convolution_s(const KernelDevice *device, const Kernel *kernel,
                         KernelReport *report)
{
    const ConvolutionLaw *law = &device->constants.convolution;
    const Convolution c = convolution_of(kernel);
    const double groups = fmax(kernel->convolution.groups, 1),
                 positions = c.samples * c.area,
                 size = kernel_format_bytes(kernel->format),
                 streams = device->chip.bandwidth * device->chip.memory_share;
    const bool dx = kernel->convolution.pass == KERNEL_INPUT_GRADIENT;
    const double n = dx ? c.in : c.out, k = (dx ? c.out : c.in) * c.filter;
    double t =
        c.weights
            ? convolution_product_s(device, kernel, groups, k, n, positions, report)
            : convolution_product_s(device, kernel, groups, positions, n, k, report);
    t /= law->implicit;
    KernelReport of_two = {0}, of_four = {0};
    double least = report ? report->least_s / law->implicit : 0;
    if (c.filter == 9 && c.stride == 1 && kernel->convolution.rows == 3 && groups == 1) {
        const double weights = c.in * c.out * size,
                     maps = positions * (c.in + c.out) * size;
        const double two = c.samples * ceil(kernel->convolution.height / 2) *
                           ceil(kernel->convolution.width / 2),
                     four = c.samples * ceil(kernel->convolution.height / 4) *
                            ceil(kernel->convolution.width / 4);
        const double small =
            convolution_product_s(device, kernel, 16, c.weights ? c.in : two, n,
                                  c.weights ? two : k / 9, report ? &of_two : NULL) /
                law->small +
            law->filter * 16 * weights / streams;
        const double large =
            convolution_product_s(device, kernel, 36, c.weights ? c.in : four, n,
                                  c.weights ? four : k / 9, report ? &of_four : NULL) /
                law->large +
            (law->traffic * maps * 36 / 16 + law->filter * 36 * weights) / streams;
        t = convolution_soft(law, t, small, large);
        if (report)
            least = convolution_soft(law, least, of_two.least_s / law->small,
                                     of_four.least_s / law->large);
    }
    if (report) {
        report->start_s += law->start * 1e-6;
        report->least_s = least;
        report->flops = 2 * positions * c.in * c.out * groups * c.filter;
        report->bytes =
            size * groups *
            (positions * (c.in * c.stride * c.stride + c.out) + c.in * c.out * c.filter);
    }
    return t + law->start * 1e-6;
}
