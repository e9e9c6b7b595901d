/* Times of random kernels never fall with more work, nor rise with a better device, and no kernel
 * is faster than its FLOPs at the peak. */
#include "sim/cost/kernel.h"
#include "tests/support/kernel_device.h"

#include <math.h>
#include <stddef.h>

static const char *const DEVICE[] = {
    "p100-pcie-16g", "v100-32g", "t4", "a100-80g", "l4", "h100-sxm", "b200", "mi300x"};
enum { EACH = 1500 };

static double monotone_size(GRand *rand, double least, double most)
{
    return floor(least * pow(most / least, g_rand_double(rand)));
}

/* A kernel of some kind; *work: where it has the extent that samples divide. */
static Kernel monotone_kernel(GRand *rand, const KernelDevice *device, size_t *work)
{
    static const double FILTER[] = {3, 3, 1, 7};
    static const KernelFormat FORMAT[] = {KERNEL_FP32, KERNEL_BF16, KERNEL_FP8};
    Kernel kernel = {.kind = (KernelKind)g_rand_int_range(rand, 0, KERNELS),
                     .format = FORMAT[g_rand_int_range(rand, 0, G_N_ELEMENTS(FORMAT))],
                     .backward = g_rand_boolean(rand)};
    if (!(device->peak[kernel.format] > 0))
        kernel.format = KERNEL_FP32;
    switch (kernel.kind) {
    case KERNEL_PRODUCT:
    case KERNEL_BATCHED:
    case KERNEL_GROUPED:
        kernel.product.batch =
            kernel.kind == KERNEL_PRODUCT ? 1 : monotone_size(rand, 1, 128);
        kernel.product.m = monotone_size(rand, 1, 8192);
        kernel.product.n = 8 * monotone_size(rand, 1, 2048);
        kernel.product.k = 8 * monotone_size(rand, 1, 2048);
        kernel.product.library = KERNEL_EXPERTS_TRAINING;
        *work = offsetof(Kernel, product.m);
        break;
    case KERNEL_EXPERTS:
        kernel.experts.experts = monotone_size(rand, 1, 64);
        kernel.experts.tokens = monotone_size(rand, 64, 65536);
        kernel.experts.top_k = 2;
        kernel.experts.hidden = 64 * monotone_size(rand, 4, 128);
        kernel.experts.inner = 64 * monotone_size(rand, 4, 128);
        kernel.experts.matrices = 3;
        *work = offsetof(Kernel, experts.tokens);
        break;
    case KERNEL_ELEMENTWISE:
        kernel.elementwise.elements = monotone_size(rand, 1, 1e9);
        kernel.elementwise.read = kernel.elementwise.written = 4;
        kernel.elementwise.scalar = g_rand_boolean(rand);
        *work = offsetof(Kernel, elementwise.elements);
        break;
    case KERNEL_NORM:
    case KERNEL_SOFTMAX:
        kernel.rows.rows = monotone_size(rand, 1, 1e6);
        kernel.rows.width = monotone_size(rand, 4, 16384);
        *work = offsetof(Kernel, rows.rows);
        break;
    case KERNEL_ATTENTION:
        kernel.attention.batch = monotone_size(rand, 1, 64);
        kernel.attention.queries = kernel.attention.keys = monotone_size(rand, 64, 16384);
        kernel.attention.heads = kernel.attention.kv_heads = monotone_size(rand, 1, 64);
        kernel.attention.head_qk = kernel.attention.head_v = 128;
        kernel.attention.causal = g_rand_boolean(rand);
        kernel.attention.library = KERNEL_ATTENTION_AUTO;
        *work = offsetof(Kernel, attention.batch);
        break;
    default:
        kernel.convolution.batch = monotone_size(rand, 1, 256);
        kernel.convolution.in = 4 * monotone_size(rand, 1, 256);
        kernel.convolution.out = 4 * monotone_size(rand, 1, 256);
        kernel.convolution.height = kernel.convolution.width =
            monotone_size(rand, 4, 128);
        kernel.convolution.rows = FILTER[g_rand_int_range(rand, 0, 4)];
        kernel.convolution.columns = FILTER[g_rand_int_range(rand, 0, 4)];
        kernel.convolution.stride = 1;
        *work = offsetof(Kernel, convolution.batch);
    }
    return kernel;
}

/* A device with one number 20 % better; what follows from it rises, too. */
static void monotone_better(KernelDevice *device, uint32_t which)
{
    static const double MORE = 1.2;
    Chip *chip = &device->chip;
    if (which == 0)
        chip->bandwidth *= MORE;
    if (which == 1)
        chip->clock_hz *= MORE;
    if (which == 2)
        chip->processors = (uint32_t)(chip->processors * 5 / 4);
    if (which == 3)
        chip->l2_bytes *= MORE;
    if (which == 4)
        device->power_w *= MORE;
    for (uint32_t f = 0; f < KERNEL_FORMATS && (which == 1 || which == 2); f++)
        device->peak[f] *= which == 1 ? MORE : 5.0 / 4;
}

static void test_monotone(void **state)
{
    static const char *const NUMBER[] = {"bandwidth", "clock", "processors", "L2",
                                         "power"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    uint32_t seen[KERNELS] = {0};
    (void)state;
    for (uint32_t d = 0; d < G_N_ELEMENTS(DEVICE); d++) {
        g_autoptr(KernelDevice) device = kernel_device_of(DEVICE[d]);
        for (uint32_t i = 0; i < EACH; i++) {
            size_t work;
            const Kernel kernel = monotone_kernel(rand, device, &work);
            const KernelReport report = kernel_report(device, &kernel);
            const double t = report.time_s;
            seen[kernel.kind]++;
            assert_true(isfinite(t) && t > 0);
            const double conv = 2 * kernel.convolution.batch * kernel.convolution.in *
                                kernel.convolution.out * kernel.convolution.height *
                                kernel.convolution.width * kernel.convolution.rows *
                                kernel.convolution.columns;
            if (kernel.kind == KERNEL_CONVOLUTION)
                assert_close(report.flops, conv, 1e-9);
            if (kernel.kind != KERNEL_CONVOLUTION) /* Winograd's needs fewer */
                assert_true(t >= report.flops / report.peak * 0.999);
            Kernel larger = kernel;
            double *extent = (double *)(void *)((char *)&larger + work);
            *extent += monotone_size(rand, 1, 1 + *extent);
            if (kernel_time_s(device, &larger) < t * (1 - 1e-9))
                fail_msg("kind %u, %s of %s: %g s, with more samples %g s", kernel.kind,
                         kernel_format_name(kernel.format), DEVICE[d], t,
                         kernel_time_s(device, &larger));
            for (uint32_t n = 0; n < G_N_ELEMENTS(NUMBER); n++) {
                /* more rows at work at a time find less of L2 */
                const bool rows =
                    kernel.kind == KERNEL_NORM || kernel.kind == KERNEL_SOFTMAX;
                if (n == 2 && rows)
                    continue;
                KernelDevice better = *device;
                monotone_better(&better, n);
                const double faster = kernel_time_s(&better, &kernel);
                if (faster > t * (1 + 1e-9))
                    fail_msg("kind %u, %s of %s: %g s, with more %s %g s", kernel.kind,
                             kernel_format_name(kernel.format), DEVICE[d], t, NUMBER[n],
                             faster);
            }
        }
    }
    for (uint32_t k = 0; k < KERNELS; k++)
        assert_true(seen[k] > EACH / 4);
}

/* A part of the kernel, and of how many it is one. */
static Kernel monotone_part(GRand *rand, const Kernel *whole, double *parts)
{
    Kernel part = *whole;
    double *extent[4] = {0};
    switch (whole->kind) {
    case KERNEL_PRODUCT:
    case KERNEL_BATCHED:
    case KERNEL_GROUPED:
        extent[0] = &part.product.m;
        extent[1] = &part.product.n;
        extent[2] = &part.product.k;
        extent[3] = &part.product.batch;
        break;
    case KERNEL_ATTENTION:
        extent[0] = &part.attention.batch;
        extent[1] = &part.attention.heads;
        break;
    case KERNEL_CONVOLUTION:
        extent[0] = &part.convolution.batch;
        extent[1] = &part.convolution.in;
        extent[2] = &part.convolution.out;
        break;
    default:
        break;
    }
    *parts = 1;
    for (uint32_t i = 0; i < G_N_ELEMENTS(extent); i++)
        if (extent[i] && *extent[i] > 1 && g_rand_boolean(rand)) {
            const double of = g_rand_boolean(rand)
                                  ? g_rand_double_range(rand, 1, *extent[i])
                                  : floor(g_rand_double_range(rand, 1, 9));
            *extent[i] /= of;
            *parts *= of;
        }
    if (whole->kind == KERNEL_ATTENTION)
        part.attention.kv_heads = part.attention.heads;
    if (whole->kind == KERNEL_BATCHED && part.product.batch <= 1)
        part.kind = KERNEL_PRODUCT; /* as op_kernels makes them */
    return part;
}

/* However a kernel is cut, its parts take at least `least_s` in all. */
static void test_least(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    uint32_t known = 0, near = 0, least_3x3 = 0;
    double share_3x3 = 0;
    for (uint32_t d = 0; d < G_N_ELEMENTS(DEVICE); d++) {
        g_autoptr(KernelDevice) device = kernel_device_of(DEVICE[d]);
        for (uint32_t i = 0; i < 3 * EACH; i++) {
            size_t work;
            double parts;
            const Kernel whole = monotone_kernel(rand, device, &work);
            const KernelReport report = kernel_report(device, &whole);
            const Kernel part = monotone_part(rand, &whole, &parts);
            const double s = parts * kernel_time_s(device, &part);
            known += report.least_s > 0;
            near += report.least_s > 0.7 * report.time_s;
            if (whole.kind == KERNEL_CONVOLUTION &&
                whole.convolution.rows + whole.convolution.columns == 6 &&
                report.least_s > 0) {
                least_3x3++;
                share_3x3 += report.least_s / report.time_s;
            }
            if (s < report.least_s * (1 - 1e-9))
                fail_msg("kind %u, %s of %s: %g parts take %g s, but least is %g s",
                         whole.kind, kernel_format_name(whole.format), DEVICE[d], parts,
                         s, report.least_s);
        }
    }
    print_message("%u of %u known ones are within 30 %%\n", near, known);
    print_message("on average %.3f of %u of 3 x 3\n", share_3x3 / least_3x3, least_3x3);
    assert_true(near > known / 8 && share_3x3 > least_3x3 / 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_monotone),
                                       cmocka_unit_test(test_least)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
