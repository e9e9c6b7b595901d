/* The reference backend against the suite for backends, on 1 to 5 ranks. */
#include "tests/conformance/backend_suite.h"
#include "tests/test.h"

static void test_suite(void **state)
{
    (void)state;
    for (uint32_t n_ranks = 1; n_ranks <= 5; n_ranks++) {
        g_autoptr(ExecBackend) backend = exec_reference_new(n_ranks);
        backend_suite(backend, 1e-12, BACKEND_SHAPES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
