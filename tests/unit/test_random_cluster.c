/* Random topologies: within the published ranges, equal for equal seeds, and different for
 * different seeds. */
#include "data/data.h"
#include "tests/test.h"

static void test_ranges(void **state)
{
    (void)state;
    g_autoptr(GHashTable) machines = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) types = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t seed = 0; seed < 200; seed++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = g_strdup_printf("random:seed=%u", seed);
        g_autoptr(Cluster) cluster = cluster_load(name, &error);
        assert_no_error(error);
        assert_string_equal(cluster->name, name);
        assert_true(cluster->n_machines >= 1 && cluster->n_machines <= 6);
        g_hash_table_add(machines, GUINT_TO_POINTER(cluster->n_machines));
        for (uint32_t m = 0; m < cluster->n_machines; m++) {
            const Machine *machine = &cluster->machine[m];
            assert_true(machine->gpus >= 1 && machine->gpus <= 8);
            assert_true(machine->inner.bandwidth >= 8e9 - 1e6 &&
                        machine->inner.bandwidth <= 20e9);
            g_hash_table_add(
                types, (gpointer)g_intern_string(cluster->type[machine->type].name));
        }
        const double all_reduce = cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth;
        assert_true(all_reduce > 2.3e9 && all_reduce <= 5.81e9);
    }
    assert_int_equal(g_hash_table_size(machines), 6);
    assert_int_equal(g_hash_table_size(types), 3);
}

static void test_seeds(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) a = cluster_load("random:seed=7", &error);
    g_autoptr(Cluster) b = cluster_load("random:seed=7", &error);
    g_autoptr(Cluster) c = cluster_load("random:seed=8", &error);
    assert_no_error(error);
    g_autofree char *of_a = cluster_canonical(a);
    g_autofree char *of_b = cluster_canonical(b);
    g_autofree char *of_c = cluster_canonical(c);
    assert_string_equal(of_a, of_b);
    assert_string_not_equal(of_a, of_c);
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "random:",        "random:seed=",        "random:seed=x",
        "random:seed=-1", "random:seed=1e3",     "random:seed=4294967296",
        "random:hosts=3", "random:seed=1,gpus=2"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(cluster_load(bad[i], &error));
        assert_true(g_error_matches(error, KILTER_ERROR, KILTER_ERROR_INPUT));
        assert_non_null(strstr(error->message, "random:seed=N"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
