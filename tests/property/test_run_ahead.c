/* How far streams run ahead: with the same plan `flow` holds at least the memory that program order
 * holds and, beside it, at most what its exchanges have made before it is used: at any time the
 * gathered parameters of two layers, and the messages of two exchanges; where activations wait on
 * hosts also those of a layer that are on their way there, and of one on their way back. */
#include <glib/gstdio.h>
#include <math.h>

#include "sim/sim.h"
#include "tests/support/made_plan.h"
#include "tests/support/random_strategy.h"

#define MODEL \
    "llama:layers=4,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,global_batch=24"
#define STAR "star:hosts=8,bandwidth=10Gb/s,latency=5us"
#define FAST "star:hosts=8,bandwidth=4000Gb/s,latency=5us"

/* The bytes of the parameters of the two largest layers, of the largest tensor that is exchanged,
 * and of the activations of two layers if these are copied. */
static double most_ahead(const Graph *graph, bool copies)
{
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_autofree double *bytes = g_new0(double, graph_n_layers(graph) + 1),
                      *kept = g_new0(double, graph_n_layers(graph) + 1);
    double most = 0, second = 0, message = 0, stash = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        if (tensor->role == ROLE_PARAMETER)
            bytes[layer[t]] += (double)tensor_bytes(tensor);
        else if (copies && tensor->role == ROLE_ACTIVATION)
            kept[layer[t]] += (double)tensor_bytes(tensor);
        message = MAX(message, (double)tensor_bytes(tensor));
    }
    for (uint32_t l = 0; l < graph_n_layers(graph); l++) {
        second = MAX(second, MIN(most, bytes[l]));
        most = MAX(most, bytes[l]);
        stash = MAX(stash, kept[l]);
    }
    return most + second + 2 * message + 2 * stash;
}

static SimReport *report_of(const Made *made, const char *fidelity)
{
    g_autoptr(GError) error = NULL;
    SimReport *report =
        sim_evaluate(made->plan, made->graph, made->view, fidelity, &error);
    assert_no_error(error);
    return report;
}

/* Least and most of what was seen, and the devices on which streams hold more. */
typedef struct {
    double least, most;
    uint32_t above;
} Seen;

static void compare(const Made *made, const char *set, Seen *seen)
{
    g_autoptr(SimReport) stage = report_of(made, "stage"), flow = report_of(made, "flow");
    const double ahead = most_ahead(made->graph, made->plan->strategy.offload),
                 rounding = 1e-9;
    for (uint32_t d = 0; d < made->plan->n_devices; d++) {
        const double in_order = (double)stage->memory_bytes[d],
                     streams = (double)flow->memory_bytes[d];
        seen->least = fmin(seen->least, streams / in_order);
        seen->most = fmax(seen->most, (streams - in_order) / ahead);
        seen->above += streams > in_order;
        if (streams < in_order * (1 - rounding) || streams - in_order > ahead)
            fail_msg("%s: device %u holds %g bytes in order, %g by streams, and may "
                     "run ahead %g",
                     set, d, in_order, streams, ahead);
    }
}

static void print_seen(const Seen *seen)
{
    print_message(
        "flow / stage at least %.4f, ahead at most %.2f of the bound, %u devices above\n",
        seen->least, seen->most, seen->above);
}

static void test_random_strategies(void **state)
{
    (void)state;
    static const char *const runtime[] = {"none", "fsdp", "megatron", "deepspeed"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    Seen seen = {.least = 1};
    for (uint32_t n = 0; n < 120;) {
        const uint32_t kind = pick(rand, 4);
        g_autofree char *set = kind < 2    ? random_strategy(rand, true, false)
                               : kind == 2 ? random_pipelines(rand)
                                           : random_stages(rand);
        g_autofree char *all =
            g_strdup_printf("%s runtime=%s", set, runtime[pick(rand, 4)]);
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", MODEL, STAR, all, &error);
        if (!made.plan)
            continue;
        compare(&made, all, &seen);
        n++;
    }
    print_seen(&seen);
    assert_true(seen.above > 0);
}

/* Many layers, so that all parameters are far more than those of two layers, and few activations:
 * parameters that shards of a stage divide are gathered in another group than the stage's. */
static void test_many_layers(void **state)
{
    (void)state;
    static const char model[] =
        "llama:layers=24,hidden=64,heads=4,kv_heads=2,ffn=256,seq=8,"
        "vocab=16,global_batch=8,optimizer=sgd";
    static const char *const set[] = {"zero=3",
                                      "zero=3 recompute=full",
                                      "zero=3 tp=2 recompute=full",
                                      "zero=3 pp=2 microbatches=2 recompute=full",
                                      "zero=3 zero_ranks=4 recompute=full",
                                      "zero=3 cp=2 recompute=full",
                                      "zero=3 cp=2 cp_comm=a2a microbatches=2",
                                      "zero=3 pp=2 virtual_stages=2 schedule=interleaved "
                                      "microbatches=2 recompute=full",
                                      "zero=2 recompute=full",
                                      "zero=2 recompute=full bucket=40kB",
                                      "zero=2 microbatches=4 recompute=full",
                                      "zero=2 microbatches=4 bucket=40kB",
                                      "zero=2 pp=2 microbatches=2 recompute=full"};
    Seen seen = {.least = 1};
    for (uint32_t k = 0; k < 2 * G_N_ELEMENTS(set); k++) {
        g_autofree char *all = g_strconcat(set[k / 2], " runtime=none", NULL);
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", model, k % 2 ? STAR : FAST, all, &error);
        assert_no_error(error);
        compare(&made, all, &seen);
    }
    print_seen(&seen);
}

/* Strategies whose activations wait on hosts. */
static void test_offloaded(void **state)
{
    (void)state;
    static const char text[] =
        "name: c\ndevice_types: [{name: D, rate: 1e12 FLOP/s, memory: 1 GiB}]\n"
        "machines: [{type: D, gpus: 8, inner: {latency: 5 us, bandwidth: 1e9 B/s}, "
        "host_memory: 1 TB, host_link: 1e8 B/s, host_bandwidth: 4e8 B/s}]\n";
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    Seen seen = {.least = 1};
    for (uint32_t n = 0; n < 80;) {
        g_autofree char *set = pick(rand, 3) ? random_strategy(rand, true, false)
                                             : random_pipelines(rand),
                        *all = g_strconcat(set, " offload=activations", NULL);
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = {.cluster = cluster_parse("c", text, strlen(text), &error)};
        PlannerOptions options;
        made.view = cluster_view(made.cluster, GRANULARITY_GPU);
        made.plan = set_options(&options, all, &error)
                        ? planner_plan(planner_find("manual", NULL), MODEL, "c",
                                       made.view, &options, &made.graph, &error)
                        : NULL;
        if (!made.plan)
            continue;
        compare(&made, all, &seen);
        n++;
    }
    print_seen(&seen);
    assert_true(seen.above > 0);
}

/* Layers whose states go from token to token, beside attention. */
static void test_recurrences(void **state)
{
    (void)state;
    static const char *const like[] = {"qwen3_next", "nemotron_h"}, *const mixer[] = {
                                                                        "delta", "mamba"};
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL),
                    *file = g_build_filename(folder, "model.json", NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(13);
    Seen seen = {.least = 1};
    for (uint32_t n = 0; n < 40;) {
        g_autofree char *text = g_strdup_printf(
            "{\"like\": \"%s\", \"layers\": 4, \"hidden\": 32, \"vocab\": 64, \"heads\": "
            "4, "
            "\"kv_heads\": 2, \"ffn\": 48, \"network\": \"dense\", \"limit\": 64, "
            "\"scan_groups\": 2, \"scan_heads\": 4, \"scan_keys\": 4, \"scan_values\": "
            "8, "
            "\"mixer\": \"if $layer %% 2 == 1 then 'attention' else '%s'\"}",
            like[n % 2], mixer[n % 2]);
        g_autofree char *model = g_strconcat(file, ":seq=16,global_batch=24", NULL);
        assert_true(g_file_set_contents(file, text, -1, NULL));
        g_autofree char *set = pick(rand, 2) ? random_strategy(rand, true, false)
                                             : random_pipelines(rand),
                        *all = g_strconcat(set, " runtime=none", NULL);
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make("manual", model, STAR, all, &error);
        if (!made.plan)
            continue;
        compare(&made, all, &seen);
        n++;
    }
    print_seen(&seen);
    assert_true(seen.above > 0);
    g_remove(file);
    g_rmdir(folder);
}

/* Programs that searches make, and copies of microbatches beside one another. */
static void test_searched_plans(void **state)
{
    (void)state;
    static const char *const planner[] = {"hap",      "hidup",     "dp-ev", "deepspeed",
                                          "joint",    "amp",       "tag",   "gshard",
                                          "flexflow", "dp-nccl-p", "m-etf"};
    Seen seen = {.least = 1};
    for (uint32_t p = 0; p < G_N_ELEMENTS(planner); p++) {
        g_autoptr(GError) error = NULL;
        g_auto(Made) made = make(planner[p], MODEL, STAR, "runtime=none", &error);
        assert_no_error(error);
        compare(&made, planner[p], &seen);
    }
    print_seen(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_strategies), cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_offloaded), cmocka_unit_test(test_recurrences),
        cmocka_unit_test(test_searched_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
