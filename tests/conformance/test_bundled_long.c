/* All bundled experiments. */
#include "tests/conformance/bundled_cases.h"

static void test_all(void **state)
{
    (void)state;
    assert_true(assert_all_plannable("") > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
