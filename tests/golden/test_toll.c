/* The cost of tokens with prices between regions, and of machines that may be taken away. */
#include "tests/support/program_json.h"

static void write_cluster(const Sandbox *box, const char *regions, const char *price)
{
    g_autofree char *text =
        g_strdup_printf("name: geo\n"
                        "machines:\n"
                        "  - {name: e, device: h100-sxm, gpus: 1, nic: ib-ndr, region: "
                        "east, price: 6 USD/h%s}\n"
                        "  - {name: w, device: h100-sxm, gpus: 1, nic: ib-ndr, region: "
                        "west, price: 3 USD/h}\n"
                        "regions: [%s]\n",
                        price, regions);
    sandbox_write(box, "geo.yaml", text);
}

static json_t *plan(const Sandbox *box)
{
    return program_json(box, "simulate vgg19 geo.yaml --planner dp-ev --json");
}

#define LINK(from, to, price) \
    "{from: " from ", to: " to ", latency: 20 ms, bandwidth: 10 Gb/s" price "}"

/* Among two ranks each sends as many bytes as the tensors of an all-reduce have: the gradients of
 * all parameters. */
static void test_traffic(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *models = program_json(box, "models vgg19 --json");
    const double bytes = 2 * 4 * number(models, "parameters");
    static const struct {
        const char *regions;
        double toll; /* US dollars a byte */
    } CASE[] = {
        {LINK("east", "west", ", price: 0.02 USD/GB"), 0.02e-9},
        {LINK("east", "west", ", price: 20 USD/TB"), 0.02e-9},
        {LINK("east", "mid", ", price: 0.01 USD/GB") ", " LINK("mid", "west", ""),
         0.01e-9},
        {LINK("east", "mid", ", price: 0.01 USD/GB") ", " LINK("west", "mid",
                                                               ", price: 0.05 USD/GB"),
         0.06e-9},
        /* two links share the traffic */
        {LINK("east", "west", ", price: 0.02 USD/GB") ", " LINK("east", "west", ""),
         0.01e-9},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        write_cluster(box, CASE[i].regions, "");
        json_t *answer = plan(box);
        const double dollars = number(answer, "traffic_dollars");
        assert_float_equal(dollars / (bytes * CASE[i].toll), 1, 1e-6);
        const double seconds = number(answer, "iteration_time_s"),
                     samples = number(answer, "samples_per_s") * seconds;
        assert_float_equal(number(answer, "dollars_per_million") /
                               ((9 / 3600.0 * seconds + dollars) / samples * 1e6),
                           1, 1e-6);
        json_decref(answer);
    }
    json_decref(models);
}

static void test_preemptible(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_cluster(box, LINK("east", "west", ""), "");
    json_t *none = plan(box);
    assert_true(json_is_null(json_object_get(none, "traffic_dollars")));
    assert_true(json_is_null(json_object_get(none, "preemptible_per_million")));
    write_cluster(box, LINK("east", "west", ""), ", preemptible: 2 USD/h");
    json_t *some = plan(box);
    assert_float_equal(number(some, "dollars_per_million") /
                           number(none, "dollars_per_million"),
                       1, 1e-9);
    assert_float_equal(number(some, "preemptible_per_million") /
                           number(none, "dollars_per_million"),
                       (2 + 3) / 9.0, 1e-9);
    json_decref(none);
    json_decref(some);
}

static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_cluster(box, LINK("east", "west", ", price: 2 USD/h"), "");
    program_refuses(box, "plan vgg19 geo.yaml", 2,
                    "a price of traffic such as 0.02 USD/GB");
    write_cluster(box, LINK("east", "west", ""), ", preemptible: 7 USD/h");
    program_refuses(box, "plan vgg19 geo.yaml", 2, "preemptible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_preemptible),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
