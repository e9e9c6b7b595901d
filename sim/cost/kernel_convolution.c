/* Convolutions, by the two ways that libraries know, of which the time is a soft minimum (exponent
 * `choice`: they choose by rules, not by measuring):
 *
 *     implicit product    m = samples x out image, n = out channels, k = in channels x filter, / implicit
 *     F(4,3)              Winograd: 36 products of 16-element tiles, / large, + transforms' traffic
 *
 * (Lavin and Gray 2016); Winograd for filters of 3 x 3 and stride 1. Windows overlap: an implicit
 * product reads its image once, although a pixel is in filter/stride^2 of them. Gradients of the
 * input and of the weights are the products with the same FLOPs and other extents; only the latter
 * split their sum, over samples and image. */
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

/* overlap: as in LawProduct. */
static double convolution_product_s(const KernelDevice *device, const Kernel *kernel,
                                    double batch, const double mnk[3], double overlap,
                                    KernelReport *report)
{
    const double size = kernel_format_bytes(kernel->format);
    const LawProduct product = {.batch = batch,
                                .m = mnk[0],
                                .n = mnk[1],
                                .k = mnk[2],
                                .in_bytes = size,
                                .out_bytes = size,
                                .format = kernel->format,
                                .batched = true,
                                .alone = kernel->alone,
                                .overlap = overlap,
                                .whole =
                                    kernel->convolution.pass != KERNEL_WEIGHT_GRADIENT};
    return law_product_s(device, &product, report);
}

static double convolution_soft(const ConvolutionLaw *law, double implicit, double large)
{
    return pow(pow(implicit, -law->choice) + pow(large, -law->choice), -1 / law->choice);
}

/* F(4,3), with the traffic of its transforms. n, k: of the implicit product. */
static double convolution_large_s(const KernelDevice *device, const Kernel *kernel,
                                  const Convolution *c, double n, double k,
                                  KernelReport *report)
{
    const ConvolutionLaw *law = &device->constants.convolution;
    const double size = kernel_format_bytes(kernel->format),
                 weights = c->in * c->out * size,
                 maps = c->samples * c->area * (c->in + c->out) * size,
                 tiles = c->samples * ceil(kernel->convolution.height / 4) *
                         ceil(kernel->convolution.width / 4);
    const double mnk[] = {c->weights ? c->in : tiles, n, c->weights ? tiles : k / 9};
    return convolution_product_s(device, kernel, 36, mnk, 1, report) / law->large +
           (law->traffic * maps * 36 / 16 + law->filter * 36 * weights) /
               (device->chip.bandwidth * device->chip.memory_share);
}

double law_convolution_s(const KernelDevice *device, const Kernel *kernel,
                         KernelReport *report)
{
    const ConvolutionLaw *law = &device->constants.convolution;
    const Convolution c = convolution_of(kernel);
    const double groups = fmax(kernel->convolution.groups, 1),
                 positions = c.samples * c.area,
                 size = kernel_format_bytes(kernel->format),
                 overlap = fmax(c.filter / (c.stride * c.stride), 1);
    const bool dx = kernel->convolution.pass == KERNEL_INPUT_GRADIENT;
    const double n = dx ? c.in : c.out, k = (dx ? c.out : c.in) * c.filter,
                 mnk[] = {c.weights ? k : positions, n, c.weights ? positions : k};
    double t = convolution_product_s(device, kernel, groups, mnk, overlap, report) /
               law->implicit;
    double least = report ? report->least_s / law->implicit : 0;
    if (c.filter == 9 && c.stride == 1 && kernel->convolution.rows == 3 && groups == 1) {
        KernelReport of = {0};
        t = convolution_soft(
            law, t, convolution_large_s(device, kernel, &c, n, k, report ? &of : NULL));
        if (report)
            least = convolution_soft(law, least, of.least_s / law->large);
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
