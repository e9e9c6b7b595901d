/* AMP's experiments that take seconds; the others take minutes (test_bundled_long.c). */
#include "tests/conformance/bundled_cases.h"

static void test_amp_tables(void **state)
{
    (void)state;
    assert_true(assert_all_plannable("amp-tab") > 90);
}

static void test_amp_assignments(void **state)
{
    (void)state;
    assert_true(assert_all_plannable("amp-fig3") > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amp_tables),
        cmocka_unit_test(test_amp_assignments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
