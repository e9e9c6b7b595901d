/* The range of a prediction on data sheets, and the published run that is most like it. */
#include <string.h>

#include "experiments/calibration/residuals.h"
#include "tests/test.h"

static double end_of(const json_t *object, const char *key, uint32_t i)
{
    const json_t *end = json_array_get(json_object_get(object, key), i);
    assert_true(json_is_number(end));
    return json_number_value(end);
}

/* Half of the runs lie within nine of ten; words say which runs. */
static void test_range(void **state)
{
    static const char *const GENERATION[] = {"volta", "ampere", "hopper", "blackwell",
                                             "other"};
    static const char *const FAMILY[] = {"experts", "sharded", "dense"};
    (void)state;
    for (uint32_t g = 0; g < G_N_ELEMENTS(GENERATION); g++)
        for (uint32_t f = 0; f < G_N_ELEMENTS(FAMILY); f++)
            for (uint32_t bits = 8; bits <= 32; bits *= 2) {
                const ResidualKind kind = {.costs = bits == 16 ? "kernels" : "shares",
                                           .generation = GENERATION[g],
                                           .device = "none",
                                           .bits = bits,
                                           .gpus = 8,
                                           .tp = 1,
                                           .pp = 1,
                                           .cp = 1,
                                           .ep = 1,
                                           .family = FAMILY[f]};
                json_t *object = json_object();
                residuals_add(object, &kind, 2);
                const double low = end_of(object, "interval_90_s", 0),
                             high = end_of(object, "interval_90_s", 1);
                assert_true(low > 0.5 && high < 12);
                assert_true(low <= end_of(object, "interval_50_s", 0));
                assert_true(end_of(object, "interval_50_s", 0) <
                            end_of(object, "interval_50_s", 1));
                assert_true(high >= end_of(object, "interval_50_s", 1));
                assert_non_null(
                    strstr(json_string_value(json_object_get(object, "interval_of")),
                           "published runs"));
                assert_null(json_object_get(object, "nearest")); /* no tokens */
                json_decref(object);
            }
}

static void test_nearest(void **state)
{
    ResidualKind kind = {.costs = "kernels",
                         .generation = "hopper",
                         .device = "h100-sxm",
                         .bits = 8,
                         .gpus = 64,
                         .tp = 4,
                         .pp = 4,
                         .cp = 2,
                         .ep = 1,
                         .family = "dense",
                         .flops = 4.4e11};
    (void)state;
    json_t *object = json_object();
    residuals_add(object, &kind, 15);
    const char *words = json_string_value(json_object_get(object, "nearest"));
    assert_non_null(words);
    assert_non_null(strstr(words, "LLAMA3-70B, 64 h100-sxm"));
    assert_non_null(strstr(words, "published"));
    json_decref(object);
    object = json_object();
    kind.flops = 1; /* no published model is that small */
    residuals_add(object, &kind, 15);
    assert_null(json_object_get(object, "nearest"));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_range),
                                       cmocka_unit_test(test_nearest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
