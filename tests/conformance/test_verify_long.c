/* 1,000 random plans of random graphs, verified. */
#include "tests/conformance/verify_cases.h"

static void test_random_plans(void **state)
{
    (void)state;
    check_random_cases(1000, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
