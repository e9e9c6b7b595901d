/* The very code of the cuda backend on emulated devices (tests/support/device), with NCCL between
 * them: exchanges among all and some ranks, random plans and plans of every planner, in many orders
 * of the devices' work. KILTER_SEEDS: how many orders. */
#include "exec/cuda/module.h"
#include "tests/conformance/backend_suite.h"
#include "tests/conformance/verify_cases.h"
#include "tests/support/device/device.h"
#include "tests/test.h"

static const uint32_t N_DEVICES[] = {1, 2, 4, 7};

static uint32_t n_seeds(void)
{
    const char *text = g_getenv("KILTER_SEEDS");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 4;
}

static ExecBackend *emulated_new(uint32_t n, uint32_t seed, bool together)
{
    static const struct {
        size_t size;
        ExecNumbers half;
    } numbers[] = {{sizeof(double), EXEC_PLAIN},
                   {sizeof(float), EXEC_PLAIN},
                   {sizeof(float), EXEC_BF16},
                   {sizeof(float), EXEC_FP16}};
    const uint32_t which = seed / 7 % G_N_ELEMENTS(numbers);
    const ExecCudaWorld world = {.ranks = together ? EXEC_CUDA_VIRTUAL : EXEC_CUDA_GPUS,
                                 .n_ranks = n,
                                 .n_processes = 1,
                                 .half = numbers[which].half};
    g_autoptr(GError) error = NULL;
    device_reset(together ? 1 : n, seed);
    ExecBackend *backend = kilter_cuda_new(&world, numbers[which].size, &error);
    assert_no_error(error);
    return backend;
}

static double emulated_tolerance(const ExecBackend *backend)
{
    return backend->half == EXEC_FP16                ? 5e-3
           : backend->half == EXEC_BF16              ? 4e-2
           : backend->element_bytes == sizeof(float) ? 1e-4
                                                     : 1e-12;
}

/* Exchanges and random plans. */
static void test_traffic(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(N_DEVICES); i++)
        for (uint32_t seed = 0; seed < n_seeds(); seed++) {
            g_autoptr(ExecBackend) backend = emulated_new(N_DEVICES[i], seed, false);
            backend_traffic(backend, emulated_tolerance(backend), seed);
        }
}

/* Ranks that share a device. */
static void test_together(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < n_seeds(); seed++) {
        g_autoptr(ExecBackend) backend = emulated_new(4, seed, true);
        backend_traffic(backend, emulated_tolerance(backend), seed);
    }
}

/* Whether a wait of the computation holds back no more than it must: an exchange's data that
 * nobody reads does not stop computation on others. Counted by the waits of a chain of exchanges
 * whose results are read in reverse order. */
static void test_waits(void **state)
{
    (void)state;
    enum { N = 8, ELEMENTS = 16 };
    device_reset(2, 0);
    const ExecCudaWorld world = {.ranks = EXEC_CUDA_GPUS, .n_ranks = 2, .n_processes = 1};
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecBackend) backend = kilter_cuda_new(&world, sizeof(double), &error);
    assert_no_error(error);
    ExecShard from[N][2], to[N][2];
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t r = 0; r < 2; r++) {
            from[i][r] = to[i][r] = (ExecShard){.rank = 1, .dim = {ELEMENTS}};
            from[i][r].data = backend->ops->allocate(backend, r, ELEMENTS);
            to[i][r].data = exec_backend_reserve(backend, r, ELEMENTS);
        }
    const uint64_t before = device_counts().waits;
    for (uint32_t i = 0; i < N; i++) {
        const ExecExchange exchange = {
            .kind = COLLECTIVE_ALL_REDUCE, .from = from[i], .to = to[i]};
        assert_true(backend->ops->exchange(backend, &exchange, &error));
    }
    /* each exchange waits for the computation on each device; computation waits for none */
    assert_int_equal(device_counts().waits - before, 2 * N);
    for (uint32_t i = 0; i < N; i++) /* reading what is sent needs no wait */
        backend->ops->add(backend, 0, &from[i][0], &from[(i + 1) % N][0]);
    assert_in_range(device_counts().waits - before, 2 * N + 1, 3 * N);
    const uint64_t then = device_counts().waits;
    for (uint32_t i = N; i-- > 0;) /* the last one's end is that of all before it */
        backend->ops->copy(backend, 1, &to[i][1], &from[0][1]);
    assert_in_range(device_counts().waits - then, 1, 2);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t r = 0; r < 2; r++) {
            backend->ops->release(backend, r, from[i][r].data);
            backend->ops->release(backend, r, to[i][r].data);
        }
}

/* Every op and rule, exchanges and random plans, in all kinds of numbers. By default each kind has
 * a shape of its own of the ops; with KILTER_SEEDS each has all. */
static void test_suite(void **state)
{
    (void)state;
    enum { KINDS = BACKEND_SHAPES, SEEDS_OF_KIND = 7 };
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        /* the host is kept from devices' memory for the first kind alone (device_enter) */
        const uint32_t seed = kind * SEEDS_OF_KIND + (kind > 0 && !g_getenv("KILTER_SEEDS"));
        g_autoptr(ExecBackend) backend = emulated_new(2, seed, true);
        backend_suite(backend, emulated_tolerance(backend),
                      g_getenv("KILTER_SEEDS") ? BACKEND_SHAPES : kind);
    }
}

/* Wherever memory runs out, a plan ends by saying so, and touches nothing that it did not get. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    enum { CASE = 3, MOST = 2000 };
    RandomCase c = random_case(CASE);
    uint64_t step = 1, n = 0, failed = 0;
    for (bool ended = false; !ended && n < MOST; n += step) {
        const ExecCudaWorld world = {
            .ranks = EXEC_CUDA_GPUS, .n_ranks = c.plan->n_devices, .n_processes = 1};
        g_autoptr(GError) error = NULL;
        g_auto(ExecVerdict) verdict = {0};
        device_reset(c.plan->n_devices, n);
        g_autoptr(ExecBackend) backend = kilter_cuda_new(&world, sizeof(double), &error);
        assert_no_error(error);
        device_fail_allocation(n);
        ended =
            exec_verify(backend, c.plan, c.graph, 1, EXEC_TOLERANCE, &verdict, &error);
        failed += !ended;
        if (ended)
            assert_true(verdict.right);
        else if (!strstr(error->message, "memory"))
            fail_msg("allocation %u: %s", (unsigned)n, error->message);
        step = n < 40 ? 1 : 7;
    }
    assert_in_range(failed, 40, MOST);
    assert_true(n < MOST);
    random_case_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traffic),         cmocka_unit_test(test_together),
        cmocka_unit_test(test_waits),           cmocka_unit_test(test_suite),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
