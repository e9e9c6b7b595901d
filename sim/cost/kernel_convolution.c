/* Convolutions, by the three ways that libraries know, of which the time is a soft minimum
 * (exponent `choice`: they measure, and keep the fastest):
 *
 *     implicit  m = samples x out image, n = out channels, k = in channels x filter, / implicit
 *     F(2,3)    Winograd in one kernel: blocks of 32 channels and 8 x 16 pixels do 16 products
 *               of 32 x 32, as a tile of 128 x 128 does, / fused; fp32, not of weights
 *     F(4,3)    Winograd: 36 products of 16-element tiles, / large
 *
 * and the traffic of their transforms (Lavin and Gray 2016; blocks by names and grids of cuDNN
 * 8.9's kernels in NeuSight's conv/p2.1.0); Winograd for filters of 3 x 3 and stride 1. Windows
 * overlap: an implicit product reads its image once, although a pixel is in filter/stride^2 of
 * them. Gradients of the input and of the weights are the products with the same FLOPs and other
 * extents; only the latter split their sum, over samples and image. */
#include <math.h>

#include "sim/cost/kernel_law.h"

/* A way: products, the rate that it reaches of them, and the bytes that its transforms move. */
typedef struct {
    LawProduct product;
    double rate, bytes;
    double filled; /* the part of n that is not there to fill blocks */
} ConvolutionWay;

/* The ways, the implicit product first, and their number. *bytes: of maps and filter, once. */
static uint32_t convolution_ways(const ConvolutionLaw *law, const Kernel *kernel,
                                 ConvolutionWay way[3], double *bytes)
{
    const double groups = fmax(kernel->convolution.groups, 1),
                 samples = kernel->convolution.batch, high = kernel->convolution.height,
                 wide = kernel->convolution.width, positions = samples * high * wide,
                 filter = kernel->convolution.rows * kernel->convolution.columns,
                 stride = fmax(kernel->convolution.stride, 1), step = stride * stride,
                 in = kernel->convolution.in / groups,
                 out = kernel->convolution.out / groups,
                 size = kernel_format_bytes(kernel->format),
                 squares = samples * ceil(high / 4) * ceil(wide / 4),
                 blocks = samples * ceil(high / 8) * ceil(wide / 16);
    /* the sum of the weights' gradient runs over samples and image */
    const bool weights = kernel->convolution.pass == KERNEL_WEIGHT_GRADIENT,
               dx = kernel->convolution.pass == KERNEL_INPUT_GRADIENT;
    const double n = dx ? in : out, k = dx ? out : in, full = ceil(n / 32) * 32,
                 transformed = (positions + 36 * squares) * (n + k);
    /* clang-format off */
    way[0] = (ConvolutionWay){{.batch = groups, .m = weights ? k * filter : positions, .n = n,
                               .k = weights ? positions : k * filter}, law->implicit, 0, 1};
    way[1] = (ConvolutionWay){{.batch = 36, .m = weights ? k : squares, .n = n,
                               .k = weights ? squares : k}, law->large,
                              size * (law->traffic * transformed + law->filter * 45 * n * k), 1};
    way[2] = (ConvolutionWay){{.batch = 1, .m = 128 * blocks, .n = 4 * full,
                               .k = k + law->fused_start}, law->fused,
                              size * law->fused_filter * 25 * n * k, n / full};
    /* clang-format on */
    for (uint32_t i = 0; i < 3; i++) {
        LawProduct *product = &way[i].product;
        product->in_bytes = product->out_bytes = size;
        product->format = kernel->format;
        product->batched = true;
        product->alone = kernel->alone;
        product->overlap = i > 0 ? 1 : fmax(filter / step, 1);
        product->whole = !weights;
    }
    *bytes = size * groups * (positions * (in * step + out) + in * out * filter);
    return filter != 9 || kernel->convolution.rows != 3 || step != 1 || groups != 1 ? 1
           : weights || kernel->format != KERNEL_FP32                               ? 2
                                                                                    : 3;
}

static double convolution_soft(const ConvolutionLaw *law, double one, double other)
{
    return pow(pow(one, -law->choice) + pow(other, -law->choice), -1 / law->choice);
}

double law_convolution_s(const KernelDevice *device, const Kernel *kernel,
                         KernelReport *report)
{
    const ConvolutionLaw *law = &device->constants.convolution;
    const double bandwidth = device->chip.bandwidth * device->chip.memory_share;
    ConvolutionWay way[3];
    double t = 0, least = 0, bytes;
    const uint32_t n_ways = convolution_ways(law, kernel, way, &bytes);
    for (uint32_t i = 0; i < n_ways; i++) {
        const ConvolutionWay *w = &way[i];
        KernelReport other = {0}, *of = report && i > 0 ? &other : report;
        const double s =
            law_product_s(device, &w->product, of) / w->rate + w->bytes / bandwidth;
        t = i > 0 ? convolution_soft(law, t, s) : s;
        if (report) {
            const double part = of->least_s * w->filled / w->rate;
            least = i > 0 ? convolution_soft(law, least, part) : part;
        }
    }
    if (report) {
        report->start_s += law->start * 1e-6;
        report->least_s = least;
        report->bytes = bytes;
    }
    return t + law->start * 1e-6;
}
