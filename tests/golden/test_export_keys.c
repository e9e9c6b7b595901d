/* Keys of frameworks: they are the frameworks' own, and none that a plan needs is left out. */
#include <string.h>

#include <glib/gstdio.h>

#include "tests/support/exported.h"

static void refuses_of(const char *model, const char *cluster, const char *set,
                       const char *target, const char *expected)
{
    g_auto(Made) made = made_plan("manual", model, cluster, set);
    refuses(&made, target, expected);
}

/* A plan is refused if a target has no key for a part of it. */
static void test_nothing_is_left_out(void **state)
{
    (void)state;
    static const char FOUR[] = "star:hosts=4,bandwidth=10Gb/s";
    static const char PLAIN[] = GPT("4", "global_batch=16");
    static const char FP8[] = GPT("4", "global_batch=16,precision=fp8");
    static const char MOE[] = "bert-moe:global_batch=16,layers=2,hidden=8,heads=4,ffn=16,"
                              "seq=8,vocab=16,experts=4";
    refuses_of(PLAIN, FOUR, "dp=4 recompute=selective", "deepspeed", "recomputation of");
    refuses_of(PLAIN, FOUR, "dp=2 cp=2", "deepspeed", "context parallelism");
    refuses_of(PLAIN, FOUR, "dp=2 cp=2", "flagscale", "context parallelism");
    refuses_of(MOE, FOUR, "dp=4 ep=4", "deepspeed", "expert parallelism");
    refuses_of(FP8, "dgx-h100", "dp=8", "deepspeed", "products in fp8");
    refuses_of(FP8, "dgx-h100", "dp=8", "torchtitan", "products in fp8");
    refuses_of(PLAIN, FOUR, "dp=2 cp=2", "torchtitan", "cp=2 with zero=0");
    refuses_of(PLAIN, FOUR, "dp=2 cp=2 zero=3 cp_comm=a2a", "torchtitan", "cp_comm=a2a");
    refuses_of(MOE, FOUR, "dp=4 ep=4", "torchtitan", "ep=4; expected ranks that divide");
    refuses_of("vit:layers=4,hidden=8,heads=4,ffn=16,global_batch=8", FOUR,
               "pp=4 micro_batch=1", "torchtitan", "samples without tokens");
    refuses_of(PLAIN, FOUR, "dp=4 zero=1 zero_ranks=2", "flagscale",
               "zero=1 among some of");
    refuses_of(PLAIN, FOUR, "pp=2 micro_batch=8 schedule=zb-h1", "megatron",
               "a schedule that computes gradients of weights apart");
}

/* --- keys --- */

static void has(const GArray *files, const char *const *expected)
{
    for (uint32_t i = 0; expected[i]; i++)
        if (!strstr(file_text(files, 0), expected[i]))
            fail_msg("no '%s' in\n%s", expected[i], file_text(files, 0));
}

static void test_flags_of_megatron(void **state)
{
    (void)state;
    static const char *const FLAG[] = {"--context-parallel-size 2 ",
                                       "--cp-comm-type a2a ",
                                       "--use-distributed-optimizer ",
                                       "--num-distributed-optimizer-instances 2 ",
                                       "--bf16 ",
                                       "--fp8-format hybrid ",
                                       "--recompute-method block ",
                                       "--recompute-num-layers 2 ",
                                       NULL};
    static const char *const KEY[] = {"\n  bf16: true\n",
                                      "\n  fp8_format: hybrid\n",
                                      "\n  recompute_granularity: full\n",
                                      "\n  recompute_method: uniform\n",
                                      "\n  use_distributed_optimizer: true\n",
                                      "\n  hetero:\n    enable_hetero: true\n    "
                                      "hetero_process_meshes: [1, 1, 1, 4, 2]\n",
                                      "\n    hetero_current_device_type: \"h100-sxm\"",
                                      NULL};
    static const char MODEL[] = GPT("4", "global_batch=8,precision=fp8");
    /* The last stage has one layer, which is computed again. */
    g_auto(Made) some =
        made_plan("manual", MODEL, "dgx-h100",
                  "pp=2 dp=2 cp=2 cp_comm=a2a micro_batch=1 zero=1 zero_ranks=2 "
                  "layers=4,2 recompute=full@1-2,full@4");
    g_auto(Made) all = made_plan("manual", MODEL, "dgx-h100",
                                 "pp=2 dp=4 micro_batch=1 zero=1 recompute=full");
    g_autoptr(GArray) megatron = export(&some, "megatron");
    g_autoptr(GArray) flagscale = export(&all, "flagscale");
    has(megatron, FLAG);
    has(flagscale, KEY);
}

/* The value of `config.NAME = VALUE` in a recipe; NULL: there is none. Caller frees. */
static char *assigned(const char *recipe, const char *name)
{
    g_autofree char *start = g_strdup_printf("\n    config.%s = ", name);
    const char *at = strstr(recipe, start);
    return at ? g_strndup(at + strlen(start), strcspn(at + strlen(start), "\n")) : NULL;
}

/* Members are those of torchtitan's configuration, which counts batches in tokens. */
static void test_keys_of_torchtitan(void **state)
{
    (void)state;
    static const char *const KNOWN[] = {"parallelism.pipeline_parallel_degree",
                                        "parallelism.context_parallel_degree",
                                        "parallelism.expert_parallel_degree",
                                        "parallelism.tensor_parallel_degree",
                                        "parallelism.enable_sequence_parallel",
                                        "parallelism.data_parallel_shard_degree",
                                        "parallelism.data_parallel_replicate_degree",
                                        "parallelism.fsdp_reshard_after_forward",
                                        "parallelism.pipeline_parallel_schedule",
                                        "parallelism.pipeline_parallel_schedule_csv",
                                        "parallelism.num_pp_microbatches",
                                        "parallelism.module_fqns_per_model_part",
                                        "training.num_tokens_per_microbatch_per_dp_rank",
                                        "training.num_tokens_per_train_step",
                                        "training.max_context_length",
                                        "training.mixed_precision_param",
                                        "activation_checkpoint",
                                        NULL};
    static const char *const VALUE[][2] = {
        {"training.num_tokens_per_microbatch_per_dp_rank", "16"},
        {"training.num_tokens_per_train_step", "128"},
        {"parallelism.num_pp_microbatches", "4"},
        {"parallelism.enable_sequence_parallel", "False"},
        {"parallelism.fsdp_reshard_after_forward", "'always'"},
        {"parallelism.pipeline_parallel_schedule", "'1F1B'"},
        {"activation_checkpoint", "FullAC.Config()"}};
    g_auto(Made) made = made_plan("manual", GPT("4", "global_batch=16"), "dgx-a100",
                                  "pp=2 dp=2 tp=2 zero=3 micro_batch=2 recompute=full");
    g_autoptr(GArray) files = export(&made, "torchtitan");
    const char *recipe = file_text(files, 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(VALUE); i++) {
        g_autofree char *value = assigned(recipe, VALUE[i][0]);
        assert_non_null(value);
        assert_string_equal(value, VALUE[i][1]);
    }
    g_autofree char *parts = assigned(recipe, "parallelism.module_fqns_per_model_part");
    assert_true(g_str_has_suffix(parts, "'norm', 'lm_head']]"));
    for (const char *at = recipe; (at = strstr(at, "    config."));) {
        at += strlen("    config.");
        g_autofree char *name = g_strndup(at, strcspn(at, " "));
        if (!g_strv_contains(KNOWN, name))
            fail_msg("%s is not known", name);
    }
    assert_non_null(strstr(recipe, "\ndef plan():\n"));
}

/* Settings that change the model, not its costs: the rotary base, the epsilon of norms. */
static void test_settings_of_named_models(void **state)
{
    (void)state;
    static const char *const LLAMA[] = {"--rotary-base 500000 ", "--use-rope-scaling ",
                                        "--rope-scaling-factor 32 ",
                                        "--norm-epsilon 1e-05 ", NULL};
    g_auto(Made) made =
        made_plan("manual", "llama-3.2-1b:seq=64,global_batch=8", "dgx-h100", "dp=8");
    g_autoptr(GArray) files = export(&made, "megatron");
    has(files, LLAMA);
    /* A config.json leaves to the framework all that it does not say. */
    g_autofree char *file = NULL;
    static const char CONFIG[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
        "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 256, "
        "\"max_position_embeddings\": 64}";
    const int handle = g_file_open_tmp("kilter-XXXXXX.json", &file, NULL);
    assert_true(g_close(handle, NULL) && g_file_set_contents(file, CONFIG, -1, NULL));
    g_autofree char *model = g_strconcat(file, ":seq=64,global_batch=8", NULL);
    {
        g_auto(Made) plain = made_plan("manual", model, "dgx-h100", "dp=8");
        g_autoptr(GArray) other = export(&plain, "megatron");
        assert_non_null(strstr(file_text(other, 0), "--hidden-size 64 "));
        assert_null(strstr(file_text(other, 0), "--norm-epsilon"));
        assert_null(strstr(file_text(other, 0), "--rope-scaling-factor"));
    }
    g_unlink(file);
}

/* A model is described whole, or not at all: flags of a part would train another model. */
static void test_models_are_whole(void **state)
{
    (void)state;
    static const char NODES[] = "star:hosts=8,bandwidth=10Gb/s";
    static const char *const LATENT[] = {
        "--multi-latent-attention ", "--q-lora-rank 1536 ",      "--kv-lora-rank 512 ",
        "--qk-head-dim 128 ",        "--qk-pos-emb-head-dim 64", "--v-head-dim 128 ",
        "'([0]*3+[1]*58)'",          "pretrain_gpt.py",          NULL};
    static const char *const LEFT[] = {
        "# The model is left to you: GPTModel has no flags", "\"${PROGRAM:?",
        "# sizes of the model", NULL};
    static const char *const OTHERS[] = {"nemotron-h-56b", "gemma-2-9b", "gpt-oss-20b"};
    g_auto(Made) latent = made_plan(
        "manual", "deepseek-v3:seq=64,global_batch=8,precision=single", NODES, "dp=8");
    g_autoptr(GArray) files = export(&latent, "megatron");
    has(files, LATENT);
    assert_null(strstr(file_text(files, 0), "--kv-channels"));
    for (uint32_t i = 0; i < G_N_ELEMENTS(OTHERS); i++) {
        g_autofree char *model =
            g_strdup_printf("%s:seq=64,global_batch=8,precision=single", OTHERS[i]);
        g_auto(Made) made = made_plan("manual", model, NODES, "dp=8");
        g_autoptr(GArray) other = export(&made, "megatron");
        has(other, LEFT);
        assert_null(strstr(file_text(other, 0), "--hidden-size"));
    }
}

/* A stranger reads the reason, and which command makes a plan, before the place in the program. */
static void test_refusals_say_the_reason_first(void **state)
{
    (void)state;
    refuses_of(GPT("4", "global_batch=8"), "star:hosts=4,bandwidth=10Gb/s",
               "pp=2 micro_batch=2", "deepspeed",
               "deepspeed cannot run this plan: pipelines (from instruction ");
    refuses_of(GPT("4", "global_batch=8"), "star:hosts=4,bandwidth=10Gb/s",
               "pp=2 micro_batch=2", "deepspeed",
               "; kilter plan --for deepspeed makes one that it runs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_left_out),
        cmocka_unit_test(test_flags_of_megatron),
        cmocka_unit_test(test_keys_of_torchtitan),
        cmocka_unit_test(test_settings_of_named_models),
        cmocka_unit_test(test_models_are_whole),
        cmocka_unit_test(test_refusals_say_the_reason_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
