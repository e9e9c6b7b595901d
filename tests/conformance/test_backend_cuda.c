/* The suite on the CUDA backend, where there are GPUs: one with virtual ranks, and all over
 * NCCL. */
#include "tests/conformance/backend_suite.h"
#include "tests/test.h"

static void run_suite(ExecCudaRanks ranks, uint32_t n_ranks)
{
    ExecCudaWorld world = {.ranks = ranks, .n_ranks = n_ranks, .n_processes = 1};
    const struct {
        size_t size;
        double tolerance;
        ExecNumbers half;
    } dtype[] = {{sizeof(double), 1e-12, EXEC_PLAIN},
                 {sizeof(float), 1e-4, EXEC_PLAIN},
                 {sizeof(float), 5e-3, EXEC_FP16},
                 {sizeof(float), 4e-2, EXEC_BF16}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(dtype); i++) {
        g_autoptr(GError) error = NULL;
        world.half = dtype[i].half;
        g_autoptr(ExecBackend) backend = exec_cuda_new(&world, dtype[i].size, &error);
        assert_no_error(error);
        backend_suite(backend, dtype[i].tolerance, BACKEND_SHAPES);
    }
}

static void need_gpus(uint32_t n)
{
    if (exec_cuda_gpus() >= n)
        return;
    print_message("skipped: needs %u GPUs, %u are there\n", n, exec_cuda_gpus());
    skip();
}

static void test_virtual_ranks(void **state)
{
    (void)state;
    need_gpus(1);
    for (uint32_t n_ranks = 1; n_ranks <= 4; n_ranks++)
        run_suite(EXEC_CUDA_VIRTUAL, n_ranks);
}

static void test_gpus(void **state)
{
    (void)state;
    need_gpus(1);
    run_suite(EXEC_CUDA_GPUS, 1);
    if (exec_cuda_gpus() > 1)
        run_suite(EXEC_CUDA_GPUS, MIN(exec_cuda_gpus(), 4));
}

static void test_too_few_gpus(void **state)
{
    (void)state;
    if (!exec_cuda_built())
        skip();
    const ExecCudaWorld world = {
        .ranks = EXEC_CUDA_GPUS, .n_ranks = exec_cuda_gpus() + 1, .n_processes = 1};
    g_autoptr(GError) error = NULL;
    assert_null(exec_cuda_new(&world, sizeof(float), &error));
    assert_non_null(error);
    assert_non_null(strstr(error->message, "GPUs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual_ranks),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_too_few_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
