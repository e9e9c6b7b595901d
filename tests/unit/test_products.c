/* Packed products, and products of their own, of which every second one is kept as in
 * torchtitan. */
#include <string.h>

#include "data/models/model.h"
#include "tests/support/made_plan.h"
#include "tests/support/shrunk.h"

static double fullest(const char *products, const char *recompute)
{
    g_autofree char *model = g_strdup_printf(
        "llama-3.1-8b:seq=8192,global_batch=8,precision=mixed%s", products);
    g_autofree char *set =
        g_strdup_printf("zero=3 micro_batch=1 runtime=pytorch recompute=%s", recompute);
    g_auto(Made) made = made_plan("manual", model, "dgx-h100", set);
    double most = 0;
    for (uint32_t j = 0; j < made.plan->n_devices; j++)
        most = MAX(most, (double)made.plan->memory_bytes[j]);
    check_shrunk(made.plan, made.graph);
    return most / (1 << 30);
}

static void test_alternate(void **state)
{
    (void)state;
    const double packed = fullest("", "alternate"),
                 own = fullest(",products=own", "alternate");
    /* torchtitan#808: 47.7 GiB */
    assert_true(packed < 36 && own > 45 && own < 50);
    /* layers that run again whole keep the same */
    assert_float_equal(fullest(",products=own", "full"), fullest("", "full"), 0.5);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model, *message;
    } OF[] = {
        {"llama-3.1-8b:products=two", "products: expected packed or own, got 'two'"},
        {"mamba2-2.7b:products=own", "products: expected attention"},
        {"vgg19:products=own", "products"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OF); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(model_build(OF[i].model, 8, NULL, &error));
        if (!strstr(error->message, OF[i].message))
            fail_msg("%s", error->message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alternate),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
