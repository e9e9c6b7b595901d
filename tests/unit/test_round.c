/* Rounding of ratios to units (HAP Sec. 5.1): cases by hand, and properties on random
 * ratios; and ops whose loops are cut into units. */
#include "data/data.h"
#include "data/graph/op_class.h"
#include "tests/test.h"

static void expect(const double *ratio, uint32_t n, uint32_t units, const uint32_t *want)
{
    uint32_t count[8];
    split_round(ratio, n, units, count);
    for (uint32_t j = 0; j < n; j++)
        assert_int_equal(count[j], want[j]);
}

static void test_nearest_integers_when_they_sum(void **state)
{
    (void)state;
    expect((double[]){0.61, 0.39}, 2, 10, (uint32_t[]){6, 4});
    expect((double[]){0.25, 0.25, 0.5}, 3, 64, (uint32_t[]){16, 16, 32});
    expect((double[]){1}, 1, 7, (uint32_t[]){7});
}

static void test_moves_where_the_error_grows_least(void **state)
{
    (void)state;
    /* 3.6 + 3.6 + 2.8: 4 + 4 + 3 is one too many; a unit less costs 0.2, 0.2 or 0.6. */
    expect((double[]){0.36, 0.36, 0.28}, 3, 10, (uint32_t[]){3, 4, 3});
    /* 5.4 + 2.3 + 2.3: one is missing; a unit more costs 0.2, 0.4, 0.4. */
    expect((double[]){0.54, 0.23, 0.23}, 3, 10, (uint32_t[]){6, 2, 2});
}

static void test_ties_go_to_the_lower_index(void **state)
{
    (void)state;
    const double even = 0.125;
    expect((double[]){even, even, even, even, even, even, even, even}, 8, 3,
           (uint32_t[]){1, 1, 1, 0, 0, 0, 0, 0});
    expect((double[]){0.35, 0.65}, 2, 10, (uint32_t[]){3, 7});
    /* Shares a rounding error away from these halves get the same counts. */
    expect((double[]){0.35 + 1e-13, 0.65 - 1e-13}, 2, 10, (uint32_t[]){3, 7});
    expect((double[]){0.35 - 1e-13, 0.65 + 1e-13}, 2, 10, (uint32_t[]){3, 7});
}

static void test_one_unit_goes_to_the_largest(void **state)
{
    (void)state;
    expect((double[]){0.2, 0.3, 0.4, 0.1}, 4, 1, (uint32_t[]){0, 0, 1, 0});
    expect((double[]){0.2, 0.2, 0.6, 0}, 4, 1, (uint32_t[]){0, 0, 1, 0});
    expect((double[]){0.5, 0.5}, 2, 0, (uint32_t[]){0, 0});
}

/* Random ratios, some of them 0, that sum to 1. */
static void random_ratios(GRand *random, uint32_t n, double *ratio)
{
    double sum = 0;
    for (uint32_t j = 0; j < n; j++) {
        ratio[j] = g_rand_double(random) < 0.2 ? 0 : g_rand_double(random);
        sum += ratio[j];
    }
    if (sum == 0)
        sum = ratio[0] = 1;
    for (uint32_t j = 0; j < n; j++)
        ratio[j] /= sum;
}

static void test_properties(void **state)
{
    (void)state;
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (uint32_t trial = 0; trial < 20000; trial++) {
        uint32_t n = (uint32_t)g_rand_int_range(random, 1, 17);
        uint32_t units = (uint32_t)g_rand_int_range(random, 0, 200), sum = 0;
        double ratio[16];
        uint32_t count[16];
        random_ratios(random, n, ratio);
        split_round(ratio, n, units, count);
        for (uint32_t j = 0; j < n; j++) {
            sum += count[j];
            assert_true(fabs(count[j] - ratio[j] * units) < 1 + 1e-9);
            if (ratio[j] == 0)
                assert_int_equal(count[j], 0);
        }
        assert_int_equal(sum, units);
    }
}

/* No other integers that sum to units are nearer in total. */
static void test_total_error_is_least(void **state)
{
    (void)state;
    g_autoptr(GRand) random = g_rand_new_with_seed(8);
    for (uint32_t trial = 0; trial < 2000; trial++) {
        uint32_t units = (uint32_t)g_rand_int_range(random, 1, 30), count[3];
        double ratio[3], got = 0, best = INFINITY;
        random_ratios(random, 3, ratio);
        split_round(ratio, 3, units, count);
        for (uint32_t j = 0; j < 3; j++)
            got += fabs(count[j] - ratio[j] * units);
        for (uint32_t a = 0; a <= units; a++) {
            for (uint32_t b = 0; a + b <= units; b++)
                best =
                    fmin(best, fabs(a - ratio[0] * units) + fabs(b - ratio[1] * units) +
                                   fabs((double)(units - a - b) - ratio[2] * units));
        }
        assert_true(got <= best + 1e-9);
    }
}

/* Without ties, devices in another order get the same counts in that order. */
static void test_permuting_devices_permutes_counts(void **state)
{
    (void)state;
    g_autoptr(GRand) random = g_rand_new_with_seed(9);
    for (uint32_t trial = 0; trial < 5000; trial++) {
        uint32_t n = (uint32_t)g_rand_int_range(random, 2, 12);
        uint32_t units = (uint32_t)g_rand_int_range(random, 1, 100);
        uint32_t order[12], count[12], permuted_count[12];
        double ratio[12], permuted[12], sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            ratio[j] = g_rand_double_range(random, 0.01, 1);
            sum += ratio[j];
            order[j] = j;
        }
        for (uint32_t j = n; j-- > 1;) {
            uint32_t other = (uint32_t)g_rand_int_range(random, 0, (int)j + 1);
            uint32_t swap = order[j];
            order[j] = order[other];
            order[other] = swap;
        }
        for (uint32_t j = 0; j < n; j++)
            ratio[j] /= sum;
        for (uint32_t j = 0; j < n; j++)
            permuted[j] = ratio[order[j]];
        split_round(ratio, n, units, count);
        split_round(permuted, n, units, permuted_count);
        for (uint32_t j = 0; j < n; j++)
            assert_int_equal(permuted_count[j], count[order[j]]);
    }
}

/* A class is cut in the loops that its ops have, and in nothing else; equal cuts are one class. */
static void test_cut_classes(void **state)
{
    (void)state;
    OpClasses *classes = op_classes_new();
    const Shape in[] = {{.rank = 2, .dim = {8, 12}}, {.rank = 2, .dim = {16, 12}}};
    const OpAttr none = {0};
    const OpClass *plain = op_classes_bind(classes, OP_LINEAR, &none, 2, in, NULL);
    const uint32_t n = plain->space.n_loops;
    assert_true(n > 1 && n < OP_MAX_LOOPS);
    for (uint32_t l = 0; l < n; l++)
        assert_int_equal(plain->space.loop[l].units, 1);
    uint32_t units[OP_MAX_LOOPS];
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++)
        units[l] = 4;
    const OpClass *cut = op_classes_cut(classes, plain, units);
    for (uint32_t l = 0; l < OP_MAX_LOOPS; l++) {
        Loop want = plain->space.loop[l];
        want.units = l < n ? units[l] : want.units;
        assert_memory_equal(&cut->space.loop[l], &want, sizeof want);
    }
    assert_ptr_not_equal(cut, plain);
    assert_true(cut->n_rules > 0);
    assert_ptr_equal(op_classes_cut(classes, plain, units), cut);
    units[n] = 2; /* of no loop */
    assert_ptr_equal(op_classes_cut(classes, plain, units), cut);
    units[n - 1] = 2;
    assert_ptr_not_equal(op_classes_cut(classes, plain, units), cut);
    op_classes_free(classes);
}

/* Unlike replicas: each has its own part of the batch and divides it by its own ratios, but cuts
 * weights as all do, by the sums over the replicas. */
static void test_group_shares(void **state)
{
    (void)state;
    double ratio[] = {0, 0, 0, 0, 0.1, 0.2, 0.4, 0.3}, replica[2]; /* two segments */
    uint32_t device[] = {0, 2, 1, 3};
    const Plan plan = {.n_devices = 4, .ratio = ratio};
    const DeviceGroup group = {.n_replicas = 2, .n_devices = 2, .device = device};
    const Split batch = {.segment = 1, .kind = SPLIT_BATCH},
                weights = {.segment = 1, .kind = SPLIT_POSITIONS};
    g_autofree double *of_batch = plan_group_shares(&plan, &group, &batch, replica);
    const double own[] = {0.2, 0.8, 0.4, 0.6}, all[] = {0.3, 0.7, 0.3, 0.7};
    for (uint32_t i = 0; i < 4; i++)
        assert_close(of_batch[i], own[i], 1e-12);
    assert_close(replica[0], 0.5, 1e-12);
    g_autofree double *of_weights = plan_group_shares(&plan, &group, &weights, replica);
    for (uint32_t i = 0; i < 4; i++)
        assert_close(of_weights[i], all[i], 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest_integers_when_they_sum),
        cmocka_unit_test(test_moves_where_the_error_grows_least),
        cmocka_unit_test(test_ties_go_to_the_lower_index),
        cmocka_unit_test(test_one_unit_goes_to_the_largest),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_total_error_is_least),
        cmocka_unit_test(test_permuting_devices_permutes_counts),
        cmocka_unit_test(test_cut_classes),
        cmocka_unit_test(test_group_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
