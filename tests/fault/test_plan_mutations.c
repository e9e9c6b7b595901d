/* The property of tests/fuzz/fuzz_plan.c on random plans with random damage (fixed seeds): it
 * aborts where the property is broken. */
#include "data/data.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_program.h"
#include "tests/test.h"

enum { PLANS = 6, MUTANTS = 200, DAMAGES = 3 };

static char *random_plan_text(GRand *rand)
{
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build(
        "vit:layers=1,hidden=4,heads=2,ffn=4,image=4,batch=4", 1, &canonical, NULL);
    g_autoptr(Cluster) cluster = random_cluster(rand, 3);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Plan) plan = random_plan(rand, graph, view, random_program(rand, graph));
    plan->model = g_steal_pointer(&canonical);
    plan->cluster = g_strdup("hap-8");
    plan->planner = g_strdup("hap");
    plan->version = g_strdup("0");
    plan->iteration_time_s = 2;
    plan->lower_bound_s = 1;
    plan->memory_bytes = g_new0(uint64_t, plan->n_devices);
    return plan_write(plan, graph);
}

static void test_mutated_plans(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);
    for (uint32_t i = 0; i < PLANS; i++) {
        g_autofree char *text = random_plan_text(rand);
        for (uint32_t m = 0; m < MUTANTS; m++) {
            g_autoptr(GString) mutant = g_string_new(text);
            for (gint32 d = g_rand_int_range(rand, 1, DAMAGES + 1); d > 0; d--)
                fuzz_damage(mutant, NULL, rand);
            (void)fuzz_read(mutant->str, mutant->len);
        }
    }
}

/* Undamaged files are plans. */
static void test_plans(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(42);
    for (uint32_t i = 0; i < PLANS; i++) {
        g_autofree char *text = random_plan_text(rand);
        assert_true(fuzz_read(text, strlen(text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_mutated_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
