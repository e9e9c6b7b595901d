/* Times of kernels: values worked out elsewhere from the same equations and constants, and what
 * data sheets do not say. */
#include "sim/cost/kernel.h"
#include "tests/support/kernel_device.h"

#define LINEAR(m_, n_, k_)                                          \
    {                                                               \
        .kind = KERNEL_PRODUCT, .format = KERNEL_FP32, .product = { \
            .batch = 1,                                             \
            .m = m_,                                                \
            .n = n_,                                                \
            .k = k_                                                 \
        }                                                           \
    }
#define BATCHED(b_, m_, n_, k_)                                     \
    {                                                               \
        .kind = KERNEL_BATCHED, .format = KERNEL_FP32, .product = { \
            .batch = b_,                                            \
            .m = m_,                                                \
            .n = n_,                                                \
            .k = k_                                                 \
        }                                                           \
    }
#define PASS(elements_, read_)                                              \
    {                                                                       \
        .kind = KERNEL_ELEMENTWISE, .format = KERNEL_FP32, .elementwise = { \
            .elements = elements_,                                          \
            .read = read_,                                                  \
            .written = 4                                                    \
        }                                                                   \
    }
#define ROWS(kind_, rows_, width_)                                                      \
    {                                                                                   \
        .kind = kind_, .format = KERNEL_FP32, .rows = {.rows = rows_, .width = width_ } \
    }
#define CAUSAL(library_, b, s, h, kv, d, causal_)                       \
    {                                                                   \
        .kind = KERNEL_ATTENTION, .format = KERNEL_BF16, .attention = { \
            .batch = b,                                                 \
            .queries = s,                                               \
            .keys = s,                                                  \
            .heads = h,                                                 \
            .kv_heads = kv,                                             \
            .head_qk = d,                                               \
            .head_v = d,                                                \
            .causal = causal_,                                          \
            .cached = causal_,                                          \
            .library = library_                                         \
        }                                                               \
    }

/* The values' constants are those of data/kernels.yaml, but for what L2 keeps and gains, which
 * has been fitted anew since. */
static void test_golden(void **state)
{
    static const double GAIN = 4.30464, KEEP = 0.808937;
    static const struct {
        const char *device;
        double ms;
        Kernel kernel;
    } CASE[] = {
        {"v100-pcie-32g", 2.70092, LINEAR(4096, 4096, 1024)},
        {"v100-pcie-32g", 0.43211, BATCHED(128, 512, 512, 64)},
        {"a100-pcie-40g", 3.03068, LINEAR(4096, 1280, 5120)},
        {"a100-pcie-40g", 1.19285, BATCHED(80, 1024, 64, 1024)},
        {"a100-pcie-40g", 0.0738793, LINEAR(64, 512, 8192)},
        {"t4", 6.35705, LINEAR(4096, 3072, 1024)},
        {"p100-pcie-16g", 3.36152, LINEAR(1000, 1001, 8192)},
        {"v100-pcie-32g", 0.24889, PASS(4096. * 4096, 8)},
        {"a100-pcie-40g", 0.00968234, PASS(1024. * 4096, 4)},
        {"t4", 0.161636, ROWS(KERNEL_NORM, 4096, 1024)},
        {"v100-pcie-32g", 0.331741, ROWS(KERNEL_SOFTMAX, 65536, 512)},
        {"l4", 4.69897, ROWS(KERNEL_SOFTMAX, 65536, 2048)},
    };
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(KernelDevice) device = kernel_device_of(CASE[i].device);
        device->constants.memory.cache_gain = GAIN;
        device->constants.memory.cache_keep = KEEP;
        print_message("%u %s: %.6g, expected %.6g\n", i, CASE[i].device,
                      kernel_time_s(device, &CASE[i].kernel) * 1e3, CASE[i].ms);
        assert_close(kernel_time_s(device, &CASE[i].kernel) * 1e3, CASE[i].ms, 1e-4);
    }
}

/* With the measured reach, clock and L2 that the values were worked out with. */
static void test_golden_attention(void **state)
{
    static const struct {
        const char *device;
        double reach, clock, l2_mb, peak, ms;
        Kernel kernel;
    } CASE[] = {
        {"a100-80g", .956, 1.41, 40, 312e12, 0.855762,
         CAUSAL(KERNEL_ATTENTION_FA2, 1, 4096, 32, 8, 128, true)},
        {"h200", .911, 1.83, 50, 989e12, 1.98633,
         CAUSAL(KERNEL_ATTENTION_FA3, 2, 8192, 32, 8, 128, true)},
        {"h200", .911, 1.83, 50, 989e12, 0.0401971,
         CAUSAL(KERNEL_ATTENTION_FA3, 8, 512, 16, 16, 64, false)},
        {"l40s", .788, 2.49, 96, 362e12, 1.28838,
         CAUSAL(KERNEL_ATTENTION_PLAIN, 4, 2048, 32, 8, 128, true)},
    };
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(KernelDevice) device = kernel_device_of(CASE[i].device);
        device->chip.reach = CASE[i].reach;
        device->chip.clock_hz = CASE[i].clock * 1e9;
        device->chip.l2_bytes = CASE[i].l2_mb * 1e6;
        device->peak[KERNEL_BF16] = CASE[i].peak;
        print_message("%u %s: %.6g, expected %.6g\n", i, CASE[i].device,
                      kernel_time_s(device, &CASE[i].kernel) * 1e3, CASE[i].ms);
        assert_close(kernel_time_s(device, &CASE[i].kernel) * 1e3, CASE[i].ms, 1e-4);
    }
}

/* FlashAttention 2 keeps an H100 at 35 % of its peak, FlashAttention 3 at up to 75 % (Shah et al.
 * 2024, abstract). On sm 100 nobody takes the second. */
static void test_generations(void **state)
{
    static const struct {
        const char *device;
        double two, three; /* of the peak, within 15 % */
    } CASE[] = {{"h100-sxm", .35, .65}, {"b200", 0, 0}};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(KernelDevice) device = kernel_device_of(CASE[i].device);
        const Kernel two = CAUSAL(KERNEL_ATTENTION_FA2, 1, 16384, 16, 16, 128, false),
                     three = CAUSAL(KERNEL_ATTENTION_AUTO, 1, 16384, 16, 16, 128, false);
        const double two_s = kernel_time_s(device, &two),
                     three_s = kernel_time_s(device, &three),
                     least_s = 4. * 16384 * 16384 * 128 * 16 / device->peak[KERNEL_BF16];
        print_message("%s: %.3f and %.3f of the peak\n", CASE[i].device, least_s / two_s,
                      least_s / three_s);
        if (CASE[i].two == 0) {
            assert_close(two_s, three_s, 1e-12);
            continue;
        }
        assert_close(least_s / two_s, CASE[i].two, .15);
        assert_close(least_s / three_s, CASE[i].three, .15);
    }
}

/* Narrow numbers take less energy: power does not make products in fp8 as slow as in bf16. */
static void test_narrow_numbers(void **state)
{
    static const char *const DEVICE[] = {"h100-sxm", "h200", "b200", "gb300"};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(DEVICE); i++) {
        g_autoptr(KernelDevice) device = kernel_device_of(DEVICE[i]);
        Kernel kernel = LINEAR(16384, 16384, 16384);
        kernel.format = KERNEL_BF16;
        const double bf16 = kernel_time_s(device, &kernel);
        kernel.format = KERNEL_FP8;
        assert_true(bf16 > 1.4 * kernel_time_s(device, &kernel));
    }
}

/* The operand in 16 bits is turned by a pass of its own, which products in 16 bits have not. */
static void test_conversion(void **state)
{
    g_autoptr(KernelDevice) device = kernel_device_of("h200");
    (void)state;
    for (KernelFormat format = KERNEL_BF16; format <= KERNEL_NVFP4; format++) {
        Kernel kernel = LINEAR(8192, 4096, 4096);
        kernel.format = format;
        if (!(device->peak[format] > 0))
            continue;
        const double without = kernel_time_s(device, &kernel);
        kernel.product.converts = true;
        const double with = kernel_time_s(device, &kernel);
        if (kernel_format_bytes(format) >= 2)
            assert_close(with, without, 1e-12);
        else /* 32 Mi elements of 16 bits are read at least at the bandwidth */
            assert_true(with > without + 2 * 8192 * 4096. / device->chip.bandwidth);
    }
}

/* Heads of 150 elements are no multiple of 16 bytes: no matrix unit takes their batches, which are
 * then no faster than lanes; one large product has kernels that do. */
static void test_odd_heads(void **state)
{
    g_autoptr(KernelDevice) device = kernel_device_of("a100-80g");
    (void)state;
    Kernel scores = BATCHED(48, 2048, 2048, 144);
    scores.format = KERNEL_BF16;
    const double even = kernel_time_s(device, &scores);
    scores.product.k = 150;
    const double odd = kernel_time_s(device, &scores);
    assert_true(odd > 4 * even);
    assert_true(odd > 2 * 48 * 2048. * 2048 * 150 / device->peak[KERNEL_FP32]);
    scores.product.k = 152;
    assert_true(kernel_time_s(device, &scores) < 1.2 * even);
    Kernel one = LINEAR(4096, 4096, 4098);
    one.format = KERNEL_BF16;
    assert_true(kernel_time_s(device, &one) <
                4 * 4096. * 4096 * 4098 / device->peak[KERNEL_BF16]);
}

/* Bytes and FLOPs of a report are those of the operands, once each, without padding. */
static void test_reports(void **state)
{
    g_autoptr(KernelDevice) device = kernel_device_of("h100-sxm");
    (void)state;
    static const double experts = 8, m = 100, n = 384, k = 640;
    Kernel kernel = {.kind = KERNEL_GROUPED,
                     .format = KERNEL_BF16,
                     .product = {.batch = experts, .m = m, .n = n, .k = k}};
    const KernelReport grouped = kernel_report(device, &kernel);
    assert_close(grouped.flops, 2 * experts * m * n * k, 1e-12);
    assert_close(grouped.bytes, 2 * experts * (m * n + m * k + n * k), 1e-12);
    const Kernel block = {.kind = KERNEL_EXPERTS,
                          .format = KERNEL_BF16,
                          .experts = {.tokens = m * experts / 2,
                                      .top_k = 2,
                                      .experts = experts,
                                      .hidden = k,
                                      .inner = n,
                                      .matrices = 3}};
    const KernelReport report = kernel_report(device, &block);
    assert_close(report.flops, 3 * grouped.flops, 1e-12);
    assert_at_most(3 * grouped.bytes * (1 - 1e-12), report.bytes);
}

/* A running iteration's experts have no other clock than its products: they are at most 15 % faster
 * than one product of all their rows. A call on an idle board ends before power limits it. */
static void test_power_of_experts(void **state)
{
    static const char *const DEVICE[] = {"h100-sxm", "h200", "b200", "gb300", "mi300x"};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(DEVICE); i++) {
        g_autoptr(KernelDevice) device = kernel_device_of(DEVICE[i]);
        for (KernelFormat format = KERNEL_BF16; format <= KERNEL_FP8; format++) {
            Kernel one = LINEAR(65536, 8192, 5120);
            one.format = format;
            Kernel kernel = {.kind = KERNEL_GROUPED,
                             .format = format,
                             .product = {.batch = 8, .m = 8192, .n = 8192, .k = 5120}};
            const double s = kernel_time_s(device, &kernel);
            assert_at_most(kernel_time_s(device, &one) / 1.15, s);
            kernel.alone = true;
            assert_at_most(kernel_time_s(device, &kernel), s);
        }
    }
}

/* A window bounds the keys that a tile of 128 queries sees: at most three of 32 tiles, not 16.5 in
 * the mean. */
static void test_windows(void **state)
{
    (void)state;
    g_autoptr(KernelDevice) device = kernel_device_of("a100-80g");
    const Kernel causal = CAUSAL(KERNEL_ATTENTION_FA2, 4, 4096, 32, 32, 128, true);
    Kernel wide = causal, narrow = causal;
    wide.attention.window = 4096;
    narrow.attention.window = 256;
    const double all_s = kernel_time_s(device, &causal);
    assert_close(kernel_time_s(device, &wide), all_s, 1e-12);
    const double part = kernel_time_s(device, &narrow) / all_s;
    assert_true(part > 3 / 16.5 && part < 0.3); /* with what each tile begins with */
}

/* A chip of another maker, such as an Ascend, is no Pascal. */
static void test_other_chips(void **state)
{
    (void)state;
    const Kernel kernel = LINEAR(1000, 1001, 8192);
    g_autoptr(KernelDevice) device = kernel_device_of("a100-pcie-40g");
    static const uint32_t SM[] = {70, 60, 0};
    double s[3];
    for (uint32_t i = 0; i < G_N_ELEMENTS(SM); i++) {
        device->chip.sm = SM[i];
        s[i] = kernel_time_s(device, &kernel);
    }
    assert_true(s[1] != s[0] && s[2] == s[0]);
}

/* Units that AMD's library leaves idle draw no power, and attention gets no more of them: long
 * products reach at least 0.75 of the best that was found (ml-engineering's maximum achievable
 * matmul FLOPS), and attention no more than these. */
static void test_amd(void **state)
{
    static const struct {
        const char *device;
        double best;
        Kernel kernel;
    } CASE[] = {{"mi325x", 784.9e12, LINEAR(13312, 10240, 8192)},
                {"mi355x", 1565e12, LINEAR(12288, 8192, 8192)}};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(KernelDevice) device = kernel_device_of(CASE[i].device);
        Kernel product = CASE[i].kernel;
        product.format = KERNEL_BF16;
        const Kernel pairs = CAUSAL(KERNEL_ATTENTION_AUTO, 1, 16384, 64, 64, 128, false);
        const KernelReport one = kernel_report(device, &product),
                           two = kernel_report(device, &pairs);
        print_message("%s: %.3g and %.3g FLOP/s\n", CASE[i].device,
                      one.flops / one.time_s, two.flops / two.time_s);
        assert_at_most(0.75 * CASE[i].best, one.flops / one.time_s);
        assert_at_most(two.flops / two.time_s, CASE[i].best);
    }
}

/* A layer norm's rows are work for a processor, an RMS norm's are not: narrow ones take longer.
 * No pass over rows is faster than memory. */
static void test_rows(void **state)
{
    g_autoptr(KernelDevice) device = kernel_device_of("a100-40g");
    Kernel kernel = ROWS(KERNEL_NORM, 65536, 128);
    const double moments = kernel_time_s(device, &kernel);
    (void)state;
    kernel.rows.squares = true;
    const double squares = kernel_time_s(device, &kernel);
    assert_at_most(2 * squares, moments);
    kernel.rows.rows = 1024;
    kernel.rows.width = 2048;
    assert_at_most(2 * 4 * 1024. * 2048 / device->chip.bandwidth,
                   kernel_time_s(device, &kernel));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amd),         cmocka_unit_test(test_rows),
        cmocka_unit_test(test_golden),      cmocka_unit_test(test_golden_attention),
        cmocka_unit_test(test_generations), cmocka_unit_test(test_narrow_numbers),
        cmocka_unit_test(test_conversion),  cmocka_unit_test(test_odd_heads),
        cmocka_unit_test(test_reports),     cmocka_unit_test(test_power_of_experts),
        cmocka_unit_test(test_windows),     cmocka_unit_test(test_other_chips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
