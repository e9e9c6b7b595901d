/* Measured times of layers in the simulation: a plan takes what the profile says, whatever the
 * rates are. */
#include "tests/support/program.h"

/* Two layers of GPT-2 on two GPUs without latencies; an update takes no FLOPs that count here. */
#define MODEL "gpt2:layers=2,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=8"
static const char CLUSTER[] =
    "name: pair\n"
    "device_types:\n"
    "  - {name: t4, rate: %s TFLOP/s, memory: 16 GiB, source: made up}\n"
    "machines:\n"
    "  - {name: m, type: t4, gpus: 2, inner: {latency: 0 us, bandwidth: %s GB/s}, "
    "source: made up}\n";

/* Seconds of the forward pass of a sample: 1 ms of each layer, 2 ms before and 3 ms after them,
 * times `factor`. */
static void write_profile(const Sandbox *box, const char *name, double factor)
{
    g_autoptr(GString) text =
        g_string_new("gpu,model,tmp,layer_index,layer_kind,fwd_time_s_per_sample\n");
    static const double MS[] = {2, 1, 1, 3};
    for (uint32_t tmp = 1; tmp <= 2; tmp++)
        for (uint32_t l = 0; l < G_N_ELEMENTS(MS); l++)
            g_string_append_printf(text, "T4 (made up),gpt2,%u,%u,%s,%g\n", tmp, l,
                                   l == 0   ? "embed"
                                   : l == 3 ? "head"
                                            : "transformer",
                                   factor * 1e-3 * MS[l]);
    sandbox_write(box, name, text->str);
}

static void write_cluster(const Sandbox *box, const char *name, const char *rate,
                          const char *bandwidth)
{
    g_autofree char *text = g_strdup_printf(CLUSTER, rate, bandwidth);
    sandbox_write(box, name, text);
}

/* Seconds of an iteration of a strategy on a cluster. */
static double seconds(const Sandbox *box, const char *cluster, const char *strategy,
                      const char *profile)
{
    g_autofree char *line = g_strdup_printf(
        "plan " MODEL " %s --planner manual --granularity gpu %s -q -o plan.json",
        cluster, strategy);
    program_runs(box, line);
    g_autofree char *again = g_strdup_printf(
        "simulate plan.json -f stage --json --set layer_times=%s", profile);
    g_auto(Ran) ran = program_run_good(box, again);
    const char *at = strstr(ran.out, "\"iteration_time_s\": ");
    assert_non_null(at);
    return g_ascii_strtod(at + strlen("\"iteration_time_s\": "), NULL);
}

static void prepare(const Sandbox *box)
{
    write_profile(box, "once.csv", 1);
    write_profile(box, "twice.csv", 2);
    write_cluster(box, "a.yaml", "1", "100");
    write_cluster(box, "fast.yaml", "2", "100");
    write_cluster(box, "far.yaml", "1", "10");
}

/* Twice the times add once what the profile says: 3 times the forward pass of each sample of a
 * device. */
static void test_times_of_profile(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    prepare(box);
    const double forward_s = 7e-3;
    const double replicas = seconds(box, "a.yaml", "--set dp=2", "once.csv");
    assert_close(seconds(box, "a.yaml", "--set dp=2", "twice.csv") - replicas,
                 3 * 4 * forward_s, 1e-9);
    const double cut = seconds(box, "a.yaml", "--set tp=2", "once.csv");
    assert_close(seconds(box, "a.yaml", "--set tp=2", "twice.csv") - cut,
                 3 * 8 * forward_s, 1e-9);
    /* stages: the second one has a layer and the head, 4 ms, and waits for the first one's 3 ms */
    const double stages = seconds(
        box, "a.yaml", "--set pp=2 --set micro_batch=8 --set layers=1,1", "once.csv");
    assert_close(seconds(box, "a.yaml", "--set pp=2 --set micro_batch=8 --set layers=1,1",
                         "twice.csv") -
                     stages,
                 3 * 8 * forward_s, 1e-9);
}

/* Neither rates nor, with tensor parallelism, messages of activations change the passes: what
 * differs is the update and the sums of gradients, which no profile has. */
static void test_independent(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    prepare(box);
    const double cut = seconds(box, "a.yaml", "--set tp=2", "once.csv");
    const double passes = 3 * 8 * 7e-3;
    assert_true(cut >= passes && cut < 1.01 * passes);
    assert_close(seconds(box, "fast.yaml", "--set tp=2", "once.csv"), cut, 1e-4);
    assert_close(seconds(box, "far.yaml", "--set tp=2", "once.csv"), cut, 1e-3);
}

static void test_refused(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    prepare(box);
    sandbox_write(box, "bare.csv",
                  "gpu,model,tmp,layer_index,layer_kind,fwd_time_s_per_sample\n"
                  "V100,gpt2,1,0,transformer,0.001\n");
    program_runs(box,
                 "plan " MODEL " a.yaml --planner manual --granularity gpu --set dp=2 -q "
                 "-o plan.json");
    program_refuses(box, "simulate plan.json -f stage --set layer_times=bare.csv", 2,
                    "expected rows of gpu t4, model gpt2, tmp 1, mbs 1");
    program_refuses(box, "simulate plan.json -f stage --set layer_times=none.csv", 2,
                    "none.csv: no such file");
    program_runs(box, "plan --planner hap " MODEL
                      " a.yaml --planner dp-ev --granularity gpu -q -o spmd.json");
    program_refuses(box, "simulate spmd.json -f analytic --set layer_times=once.csv", 2,
                    "expected fidelity stage or flow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_of_profile),
        cmocka_unit_test(test_independent),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
