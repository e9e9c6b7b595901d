/* The suite on real ranks: run by mpirun (see tests/CMakeLists.txt). A rank whose test fails ends
 * the world. */
#include <unistd.h>

#include "tests/conformance/backend_suite.h"
#include "tests/test.h"

/* What a failing network must not turn into a hang. */
enum { TIME_LIMIT_S = 100 };

static void test_float64(void **state)
{
    (void)state;
    g_autoptr(ExecBackend) backend = exec_mpi_new(sizeof(double));
    backend_suite(backend, 1e-12);
}

static void test_float32(void **state)
{
    (void)state;
    g_autoptr(ExecBackend) backend = exec_mpi_new(sizeof(float));
    backend_suite(backend, 1e-4);
}

int main(void)
{
    alarm(TIME_LIMIT_S);
    uint32_t n_ranks, rank;
    g_autoptr(GError) error = NULL;
    if (!exec_mpi_start(&n_ranks, &rank, &error)) {
        print_error("%s\n", error->message);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float64),
        cmocka_unit_test(test_float32),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    if (failures == 0)
        exec_mpi_stop();
    return failures;
}
