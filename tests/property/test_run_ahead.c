/* How far streams run ahead: with the same plan `flow` holds at most the memory that program order
 * holds and, beside it, what its exchanges have made before it is used: at any time the gathered
 * parameters of two layers, and the messages of two exchanges. Nor does program order hold more than
 * that beyond `flow`, whose streams free some buffers earlier. */
#include <math.h>

#include "sim/sim.h"
#include "tests/support/made_plan.h"
#include "tests/support/random_strategy.h"

#define MODEL \
    "llama:layers=6,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,global_batch=24"
#define STAR "star:hosts=8,bandwidth=10Gb/s,latency=5us"

/* The bytes of the parameters of each layer, and of the largest tensor that is exchanged. */
static double most_ahead(const Graph *graph)
{
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_autofree double *bytes = g_new0(double, graph_n_layers(graph) + 1);
    double most = 0, second = 0, message = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        if (tensor->role == ROLE_PARAMETER)
            bytes[layer[t]] += (double)tensor_bytes(tensor);
        message = MAX(message, (double)tensor_bytes(tensor));
    }
    for (uint32_t l = 0; l < graph_n_layers(graph); l++) {
        second = MAX(second, MIN(most, bytes[l]));
        most = MAX(most, bytes[l]);
    }
    return most + second + 2 * message;
}

static SimReport *report_of(const Made *made, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    SimReport *report =
        sim_evaluate(made->plan, made->graph, made->view, fidelity, &error);
    assert_no_error(error);
    return report;
}

static void test_random_strategies(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    uint32_t n = 0, above = 0;
    double least = 1, most = 0;
    while (n < 60) {
        g_autofree char *set = random_strategy(rand, true, false);
        g_autofree char *all = g_strdup_printf("%s runtime=none", set);
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", MODEL, STAR, all, &error);
        if (!made.plan)
            continue;
        g_autoptr(SimReport) stage = report_of(&made, "stage"),
                             flow = report_of(&made, "flow");
        const double ahead = most_ahead(made.graph);
        for (uint32_t d = 0; d < made.plan->n_devices; d++) {
            const double in_order = (double)stage->memory_bytes[d],
                         streams = (double)flow->memory_bytes[d];
            least = MIN(least, streams / in_order);
            most = MAX(most, (streams - in_order) / ahead);
            above += streams > in_order;
            if (fabs(streams - in_order) > ahead)
                fail_msg("%s: device %u holds %g bytes in order, %g by streams, and may "
                         "run ahead %g",
                         set, d, in_order, streams, ahead);
        }
        n++;
    }
    print_message(
        "flow / stage at least %.4f, ahead at most %.2f of the bound, %u devices above\n",
        least, most, above);
    assert_true(above > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_strategies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
