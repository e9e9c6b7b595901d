/* The laws of kernels against measured kernels of P4, P100, T4, V100, A100 and newer devices. Rows
 * of further devices in the same files are printed with the others. All rows were looked at
 * while the laws were made: these bars guard changes and judge nothing. */
#include "tests/support/kernel_rows.h"

/* Mean over the devices, in percent, of what the laws had when they were written plus about a
 * point. */
static void expect(const KernelRows *rows, const char *device, const char *what,
                   double percent)
{
    const KernelErrors errors = kernel_rows_errors(rows, device, what);
    if (errors.n > 0)
        assert_at_most(100 * errors.mape, percent);
}

static void test_fp32(void **state)
{
    g_autoptr(KernelRows) rows = kernel_rows_new();
    (void)state;
    kernel_rows_read(rows, "gemm_fp32.csv", kernel_rows_fp32);
    kernel_rows_read(rows, "elementwise_fp32.csv", kernel_rows_fp32);
    kernel_rows_read(rows, "conv_fp32.csv", kernel_rows_fp32);
    kernel_rows_hosts(rows);
    kernel_rows_print(rows);
    expect(rows, NULL, "bmm", 11.9);
    expect(rows, NULL, "linear", 16.6);
    expect(rows, NULL, "elementwise", 4.6);
    expect(rows, NULL, "ln", 10.4);
    expect(rows, NULL, "softmax", 8.8);
    expect(rows, NULL, "conv", 10.2);
}

static void test_products(void **state)
{
    g_autoptr(KernelRows) rows = kernel_rows_new();
    (void)state;
    kernel_rows_read(rows, "gemm_16bit.csv", kernel_rows_product);
    kernel_rows_read(rows, "gemm_8bit_4bit.csv", kernel_rows_product);
    kernel_rows_read(rows, "gemm_train_16bit.csv", kernel_rows_product);
    kernel_rows_print(rows);
    expect(rows, "A100-SXM", "bf16", 11.2);
    expect(rows, "H200-SXM", "bf16", 13);
    expect(rows, "L40S", "bf16", 21.8);
    expect(rows, "RTX-PRO-6000-S", "bf16", 17.8);
    expect(rows, "A100-PCIe", NULL, 11.5);
    expect(rows, "H200-SXM", "fp8", 19.3);
    expect(rows, "RTX-PRO-6000-S", "fp8", 18.5);
    expect(rows, "RTX-PRO-6000-S", "nvfp4", 16.8);
    expect(rows, "L40S", "fp8", 30.5);
}

static void test_attention(void **state)
{
    g_autoptr(KernelRows) rows = kernel_rows_new();
    (void)state;
    kernel_rows_read(rows, "attention_fused.csv", kernel_rows_attention);
    kernel_rows_read(rows, "attention_train.csv", kernel_rows_attention);
    kernel_rows_print(rows);
    expect(rows, "A100-SXM", NULL, 11.5);
    expect(rows, "H200-SXM", "fa3", 15.6);
    expect(rows, "H200-SXM", "flash_attention_v3", 12.2);
    expect(rows, "RTX-PRO-6000-S", "vllm_flash_attn_fa2", 14);
    expect(rows, "A100-PCIe", "fwd", 7.4);
    expect(rows, "A100-PCIe", "bwd", 13.8);
}

static void test_experts(void **state)
{
    g_autoptr(KernelRows) rows = kernel_rows_new();
    (void)state;
    kernel_rows_read(rows, "moe_grouped.csv", kernel_rows_experts);
    kernel_rows_read(rows, "grouped_train.csv", kernel_rows_grouped);
    kernel_rows_print(rows);
    expect(rows, "A100-SXM", "trtllm", 10);
    expect(rows, "L40S", "trtllm", 14.1);
    expect(rows, "RTX-PRO-6000-S", "vllm", 17);
    expect(rows, "L40S", "vllm", 19.8);
    expect(rows, "A100-PCIe", NULL, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
