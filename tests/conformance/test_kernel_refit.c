/* Fits of the laws' constants. On made kernels, whose constants are known, a fit finds them; with
 * the kernels of one device left out of a fit to the measured ones, that device's are predicted
 * (KILTER_ALL=1: from all rows). */
#include "tests/support/kernel_refit.h"

/* Constants of products on lanes and of the memory's passes. They start at round numbers that the
 * hardware suggests, not at what was fitted to all devices. */
static const KernelFree LANES[] =
    {KERNEL_FREE(simt, share, 1.05, 0.05),    KERNEL_FREE(simt, tile_half, 9, 0.3),
     KERNEL_FREE(simt, k_start, 16, 0.7),     KERNEL_FREE(simt, warps_half, 2, 0.7),
     KERNEL_FREE(simt, tail, 0.8, 0.3),       KERNEL_FREE(simt, bandwidth, 0.8, 0.1),
     KERNEL_FREE(simt, cache, 64, 0.3),       KERNEL_FREE(simt, cache_keep, 0.5, 0.3),
     KERNEL_FREE(simt, energy_tile, 30, 0.3), KERNEL_FREE(simt, flops_w, 110, 0.15),
     KERNEL_FREE(simt, unaligned, 0.95, 0.1), KERNEL_FREE(simt, batched, 1.05, 0.05),
     KERNEL_FREE(lane, pascal_tile, 16, 0.3), KERNEL_FREE(lane, pascal_row, 30000, 0.3),
     KERNEL_FREE(lane, pascal_odd, 0.8, 0.3)},
                        MEMORY[] = {KERNEL_FREE(memory, share_hbm, 0.85, 0.1),
                                    KERNEL_FREE(memory, share_gddr, 0.8, 0.1),
                                    KERNEL_FREE(memory, start, 0.5, 0.5),
                                    KERNEL_FREE(memory, cache_gain, 4, 0.5),
                                    KERNEL_FREE(memory, cache_keep, 0.6, 0.3),
                                    KERNEL_FREE(memory, miss_from, 0.1, 0.5),
                                    KERNEL_FREE(memory, miss_to, 1, 0.3),
                                    KERNEL_FREE(memory, row, 250, 0.5),
                                    KERNEL_FREE(memory, moments, 1000, 0.5),
                                    KERNEL_FREE(memory, odd_row, 0.9, 0.1)},
                        CONVOLUTION[] = {KERNEL_FREE(convolution, implicit, 0.8, 0.2),
                                         KERNEL_FREE(convolution, fused, 0.8, 0.2),
                                         KERNEL_FREE(convolution, fused_start, 16, 0.5),
                                         KERNEL_FREE(convolution, fused_filter, 2, 0.5),
                                         KERNEL_FREE(convolution, large, 0.8, 0.2),
                                         KERNEL_FREE(convolution, traffic, 1, 0.4),
                                         KERNEL_FREE(convolution, filter, 4, 0.5),
                                         KERNEL_FREE(convolution, choice, 8, 0.5)};

static KernelRows *refit_rows(const char *file)
{
    KernelRows *rows = kernel_rows_new();
    kernel_rows_read(rows, file, kernel_rows_fp32);
    kernel_rows_hosts(rows);
    return rows;
}

/* Measured times are replaced by those of drawn constants, 5 % of noise, no host. Each constant
 * is found within the tolerance. */
static void refit_made(const char *file, const KernelFree *fitted, uint32_t n,
                       uint32_t each, double tolerance)
{
    static const double NOISE = 0.05;
    g_autoptr(KernelRows) rows = refit_rows(file);
    if (rows->row->len == 0)
        return;
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    g_autoptr(GError) error = NULL;
    KernelConstants start, truth, found;
    assert_true(kernel_constants_load(&start, &error));
    KernelRefit refit = kernel_refit_of(rows, each);
    refit.prior = 1e-5;
    g_autofree double *shift = g_new0(double, n);
    for (uint32_t c = 0; c < n; c++)
        shift[c] = fitted[c].sd * (g_rand_double(rand) - 0.5);
    for (uint32_t c = 0; c < n; c++)
        *kernel_refit_at(&start, &fitted[c]) = fitted[c].start;
    kernel_refit_set(&refit, &start, shift, fitted, n, &truth);
    for (guint i = 0; i < rows->row->len; i++) {
        KernelRow *row = &g_array_index(rows->row, KernelRow, i);
        row->host_s = row->after_s = 0;
        row->s = kernel_rows_predict_s(rows->device->pdata[row->index], row) *
                 exp(NOISE * (g_rand_double(rand) - 0.5) * sqrt(12));
    }
    found = start;
    kernel_refit(&refit, fitted, n, &found);
    for (uint32_t c = 0; c < n; c++) {
        const double off = log(*kernel_refit_at(&found, &fitted[c]) /
                               *kernel_refit_at(&truth, &fitted[c]));
        print_message("  %s %-12s truth %.4g, start %.4g, found %.4g\n", fitted[c].law,
                      fitted[c].name, *kernel_refit_at(&truth, &fitted[c]),
                      *kernel_refit_at(&start, &fitted[c]),
                      *kernel_refit_at(&found, &fitted[c]));
        if (fabs(off) > tolerance)
            fail_msg("%s of %s: %.3g found for %.3g", fitted[c].name, fitted[c].law,
                     *kernel_refit_at(&found, &fitted[c]),
                     *kernel_refit_at(&truth, &fitted[c]));
    }
    kernel_refit_clear(&refit);
}

static void test_made(void **state)
{
    (void)state;
    refit_made("gemm_fp32.csv", LANES, G_N_ELEMENTS(LANES), 5, 0.05);
    refit_made("elementwise_fp32.csv", MEMORY, G_N_ELEMENTS(MEMORY), 2, 0.05);
    refit_made("conv_fp32.csv", CONVOLUTION, G_N_ELEMENTS(CONVOLUTION), 2, 0.05);
}

/* The errors of a device whose rows no constant was fitted to. */
static void refit_without(const char *file, const KernelFree *fitted, uint32_t n,
                          uint32_t each, const char *const *what, const double *percent)
{
    static const char *const DEVICE[] = {"p100-16g-pcie", "t4", "v100-32g-pcie",
                                         "a100-40g-pcie"};
    g_autoptr(KernelRows) rows = refit_rows(file);
    double sum[8] = {0};
    uint32_t n_devices[8] = {0};
    for (uint32_t d = 0; d < G_N_ELEMENTS(DEVICE) && rows->row->len > 0; d++) {
        g_autoptr(GError) error = NULL;
        KernelConstants constants;
        assert_true(kernel_constants_load(&constants, &error));
        KernelRefit refit = kernel_refit_of(rows, each);
        refit.without = DEVICE[d];
        kernel_refit(&refit, fitted, n, &constants);
        for (uint32_t w = 0; what[w]; w++) {
            const KernelErrors e = kernel_rows_errors(rows, DEVICE[d], what[w]);
            if (e.n == 0)
                continue;
            sum[w] += 100 * e.mape;
            n_devices[w]++;
            print_message("  %-12s of %-14s left out: %.1f %%, bias %+.3f\n", what[w],
                          DEVICE[d], 100 * e.mape, e.bias);
        }
        kernel_refit_clear(&refit);
    }
    for (uint32_t w = 0; what[w]; w++) {
        sum[w] /= MAX(n_devices[w], 1);
        print_message("  %-12s left out, mean: %.1f %%\n", what[w], sum[w]);
        assert_at_most(sum[w], percent[w]);
    }
}

static void test_left_out(void **state)
{
    static const char *const PRODUCT[] = {"bmm", "linear", NULL};
    static const char *const PASS[] = {"elementwise", "ln", "softmax", NULL};
    static const char *const CONV[] = {"conv", NULL};
    static const double PRODUCT_PERCENT[] = {14, 16}, PASS_PERCENT[] = {6.1, 11.4, 9.8},
                        CONV_PERCENT[] = {10.9};
    const uint32_t each = g_getenv("KILTER_ALL") ? 1 : 12;
    (void)state;
    refit_without("elementwise_fp32.csv", MEMORY, G_N_ELEMENTS(MEMORY), MIN(each, 6),
                  PASS, PASS_PERCENT);
    refit_without("conv_fp32.csv", CONVOLUTION, G_N_ELEMENTS(CONVOLUTION), MIN(each, 6),
                  CONV, CONV_PERCENT);
    refit_without("gemm_fp32.csv", LANES, G_N_ELEMENTS(LANES), each, PRODUCT,
                  PRODUCT_PERCENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
