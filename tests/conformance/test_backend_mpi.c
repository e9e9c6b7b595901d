/* The suite on real ranks: run by mpirun (see tests/CMakeLists.txt). A rank whose test fails ends
 * the world. */
#include "tests/conformance/backend_suite.h"
#include "tests/support/ranks.h"

/* The limit that keeps a failing network from hanging the test. */
enum { TIME_LIMIT_S = 100 };

static void test_float64(void **state)
{
    (void)state;
    g_autoptr(ExecBackend) backend = exec_mpi(NULL)->backend_new(sizeof(double));
    backend_suite(backend, 1e-12, BACKEND_SHAPES);
}

static void test_float32(void **state)
{
    (void)state;
    g_autoptr(ExecBackend) backend = exec_mpi(NULL)->backend_new(sizeof(float));
    backend_suite(backend, 1e-4, BACKEND_SHAPES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float64),
        cmocka_unit_test(test_float32),
    };
    RUN_ON_RANKS(tests, TIME_LIMIT_S);
}
