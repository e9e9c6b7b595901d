/* A user's question from `nvidia-smi` to flags: four machines of one kind and two of another one, a
 * model's config.json, a number of tokens; how, how long, what does it cost, and which flags. */
#include "tests/support/program_json.h"

static const char TOPOLOGY[] =
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
    "        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity\n"
    "GPU0     X      NV18    PXB     0-31            0\n"
    "GPU1    NV18     X      PXB     0-31            0\n"
    "NIC0    PXB     PXB      X\n";

static const char CONFIG[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 2048, \"intermediate_size\": 5632,\n"
    " \"num_hidden_layers\": 8, \"num_attention_heads\": 16, \"num_key_value_heads\": "
    "8,\n"
    " \"vocab_size\": 32001, \"rms_norm_eps\": 1e-05, \"rope_theta\": 500000.0,\n"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}\n";

/* A word of the script behind a flag. */
static char *flag_of(const char *script, const char *flag)
{
    const char *found = g_strstr_len(script, -1, flag);
    assert_non_null(found);
    const char *at = found + strlen(flag);
    return g_strndup(at, strcspn(at, " \\\n"));
}

static void test_from_smi_to_flags(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "topo.txt", TOPOLOGY);
    sandbox_write(box, "config.json", CONFIG);
    g_auto(Ran) imported = program_run_good(
        box, "cluster import topo.txt --nodes 4 --nic ib-ndr -o cluster.yaml");
#define ASK                                                                             \
    "config.json:seq=4096,global_batch=64 cluster.yaml --add 'h20 x 2' --add 'h20 x 2'" \
    " --for megatron "
    /* which machines, how long, what does it cost */
    json_t *advice = program_json(
        box,
        "advise " ASK "--tokens 1T --top 3 --price h100-sxm=2.5 --price h20=1.2 --json");
    const json_t *choices = json_object_get(advice, "choices"),
                 *first = json_array_get(choices, 0);
    assert_int_equal(json_array_size(choices), 3);
    double before_s = 0;
    g_autofree char *text = json_dumps(advice, 0);
    const bool by_flow = strstr(text, "ranks change by flow") != NULL;
    for (uint32_t i = 0; i < 3; i++) {
        const json_t *choice = json_array_get(choices, i),
                     *training = json_object_get(choice, "training");
        const double time_s = number(choice, "iteration_time_s");
        const json_t *range = json_object_get(choice, "interval_90_s");
        assert_at_most(json_number_value(json_array_get(range, 0)),
                       json_number_value(json_array_get(range, 1)));
        assert_int_equal(json_array_size(range), 2);
        if (!by_flow)
            assert_at_most(before_s, time_s);
        before_s = time_s;
        const double hours = 24 * number(training, "days");
        assert_at_most(1e12 / number(choice, "tokens_per_s") / 3600, hours);
        assert_close(number(training, "dollars"),
                     hours * number(choice, "dollars_per_hour"), 1e-6);
        assert_true(number(choice, "memory_left") > 0);
        assert_non_null(
            strstr(json_string_value(json_object_get(choice, "exports")), "megatron"));
        assert_non_null(json_object_get(json_object_get(choice, "binds"), "what"));
    }
    assert_true(number(json_object_get(advice, "for"), "costs") >= 0);
    /* its own command makes that plan; its flags say what the plan says, and are read as it */
    g_autofree char *command =
        g_strdup_printf("%s -o plan.json --json",
                        json_string_value(json_object_get(first, "command")) + 7);
    json_t *plan = program_json(box, command);
    assert_close(number(plan, "iteration_time_s"), number(first, "iteration_time_s"),
                 1e-9);
    g_auto(Ran) exported =
        program_run_good(box, "export plan.json --to megatron -o run.sh");
    g_autofree char *script = sandbox_read(box, "run.sh"),
                    *layers = flag_of(script, "--num-layers "),
                    *batch = flag_of(script, "--global-batch-size "),
                    *vocabulary = flag_of(script, "--vocab-size ");
    assert_string_equal(layers, "8");
    assert_string_equal(batch, "64");
    assert_string_equal(vocabulary, "32001");
    assert_non_null(strstr(script, "--bf16"));
    assert_non_null(strstr(script, "torchrun --nnodes="));
    const char *only = json_string_value(json_object_get(first, "only"));
    g_autofree char *back = g_strdup_printf(
        "plan config.json cluster.yaml --add 'h20 x 2' --add 'h20 x 2' --like run.sh "
        "--json %s%s",
        only ? "--only " : "", only ? only : "");
    json_t *like = program_json(box, back);
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(like, "like"), "unknown")), 0);
    assert_at_most(number(plan, "iteration_time_s"),
                   1.2 * number(like, "iteration_time_s"));
    json_decref(like);
    json_decref(plan);
    json_decref(advice);
}

/* A large model in float32 is noted. */
static void test_float32_is_noted(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const struct {
        const char *model;
        bool noted;
    } row[] = {{"llama:layers=4,global_batch=8", true},
               {"llama:layers=4,global_batch=8,precision=bf16", false},
               {"gpt2:layers=2,global_batch=8", false}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autofree char *command =
            g_strdup_printf("plan %s 8xh100-sxm --effort quick", row[i].model);
        g_auto(Ran) ran = program_run_good(box, command);
        assert_int_equal(strstr(ran.out, "trained in float32") != NULL, row[i].noted);
    }
}

/* A question without an answer is refused by its own reason, on all machines. */
static void test_refusals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const CASE[][2] = {
        {"advise vgg19 hap-8 --for megatron", "megatron cannot run layer features.0.1"},
        {"plan vgg19 hap-8 --for megatron", "megatron cannot run layer features.0.1"},
        {"advise vgg19 hap-8 --top -3", "--top"},
        {"advise vgg19 hap-8 --tokens 1T", "--tokens: the model's samples"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_auto(Ran) ran = program_run(box, CASE[i][0]);
        assert_int_equal(ran.status, 2);
        if (!strstr(ran.err, CASE[i][1]))
            fail_msg("%s: %s", CASE[i][0], ran.err);
    }
}

/* Machines behind a slow link are left idle by the fastest plan on all, and the row says so. */
static void test_unused_gpus_are_counted(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "geo.yaml",
        "machines:\n"
        "  - {device: h100-sxm, gpus: 2, nic: ib-ndr, region: east}\n"
        "  - {device: a100-80g, gpus: 1, nic: ib-hdr, region: west}\n"
        "regions: [{from: east, to: west, latency: 30 ms, bandwidth: 1 Gb/s}]\n");
    g_auto(Ran) ran = program_run_good(
        box, "advise gpt2:layers=4,global_batch=16,precision=bf16 geo.yaml");
    const char *whole = strstr(ran.out, "2 h100-sxm, 1 a100-80g");
    assert_non_null(whole);
    g_autofree char *row = g_strndup(whole, strcspn(whole, "\n"));
    assert_non_null(strstr(row, "GPUs not used: 1"));
    assert_non_null(strstr(ran.out, "\n90 % range: "));
    assert_non_null(strstr(ran.out, " published runs on hopper in 16 bits"));
    assert_null(strstr(row, "90 %"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_smi_to_flags),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unused_gpus_are_counted),
        cmocka_unit_test(test_float32_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
