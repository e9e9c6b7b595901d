/* Random combinations of all keys of strategies, for families of models: each is refused with one
 * line, or proved by running it, and simulated; without overlap `flow` takes the time of
 * `stage`. */
#include <glib/gstdio.h>
#include <math.h>

#include "tests/support/proved.h"
#include "tests/support/random_strategy.h"

#ifndef COMBINATIONS
#define COMBINATIONS 24
#endif

#define MOST_S 10 /* no small model takes so long */
#define SIZES                                                                        \
    "'hidden_size':16,'intermediate_size':24,'num_hidden_layers':4,'vocab_size':24," \
    "'num_attention_heads':4,"
#define EXPERTS "'num_experts_per_tok':2,'moe_intermediate_size':8,"
#define LATENT                                                  \
    "'num_key_value_heads':4,'q_lora_rank':8,'kv_lora_rank':8," \
    "'qk_nope_head_dim':4,'qk_rope_head_dim':2,'v_head_dim':4," \
    "'n_routed_experts':4,'n_shared_experts':1,'first_k_dense_replace':1,"

/* Files of models. */
static const struct {
    const char *family, *file[3];
} FAMILY[] = {
    {"dense",
     {SIZES "'num_key_value_heads':2,'model_type':'llama'", SIZES "'model_type':'gpt2'",
      SIZES "'num_key_value_heads':2,'head_dim':8,'sliding_window':3,"
            "'model_type':'gemma3_text'"}},
    {"experts",
     {SIZES "'num_key_value_heads':2,'num_local_experts':4,'model_type':'mixtral'",
      SIZES EXPERTS "'num_key_value_heads':2,'head_dim':8,'num_experts':4,"
                    "'mlp_only_layers':[0],'model_type':'qwen3_moe'",
      SIZES EXPERTS "'num_key_value_heads':2,'head_dim':4,'num_local_experts':4,"
                    "'sliding_window':3,'model_type':'gpt_oss'"}},
    {"latent attention",
     {SIZES EXPERTS LATENT "'model_type':'deepseek_v3'",
      SIZES EXPERTS LATENT "'index_topk':3,'index_n_heads':2,'index_head_dim':4,"
                           "'indexer_types':['full','shared','full','shared'],"
                           "'model_type':'glm_moe_dsa'",
      SIZES EXPERTS LATENT "'model_type':'deepseek_v3'"}},
    {"hybrid",
     {SIZES EXPERTS "'num_key_value_heads':2,'head_dim':8,'layers_block_type':"
                    "['mamba','moe','attention','mlp'],'mamba_num_heads':4,'n_groups':2,"
                    "'ssm_state_size':4,'mamba_head_dim':4,'n_routed_experts':4,"
                    "'n_shared_experts':1,'moe_shared_expert_intermediate_size':8,"
                    "'moe_latent_size':8,'model_type':'nemotron_h'",
      SIZES "'state_size':4,'time_step_rank':3,'model_type':'mamba'",
      SIZES EXPERTS "'num_key_value_heads':2,'head_dim':8,'linear_num_key_heads':2,"
                    "'linear_num_value_heads':4,'linear_key_head_dim':4,"
                    "'linear_value_head_dim':4,'num_experts':4,"
                    "'shared_expert_intermediate_size':8,'full_attention_interval':2,"
                    "'model_type':'qwen3_next'"}},
    {"vision",
     {SIZES "'image_size':8,'patch_size':4,'num_labels':6,'model_type':'vit'",
      SIZES "'num_key_value_heads':2,'vision_config':{'depth':2,'hidden_size':8,"
            "'num_heads':2,'intermediate_size':12,'patch_size':2},"
            "'model_type':'qwen2_5_vl'",
      SIZES "'num_key_value_heads':2,'head_dim':4,'sliding_window':3,"
            "'mm_tokens_per_image':4,'vision_config':{'num_hidden_layers':1,"
            "'hidden_size':8,'num_attention_heads':2,'intermediate_size':12,"
            "'patch_size':2,'image_size':8},'model_type':'gemma3'"}},
    {"diffusion",
     {"'_class_name':'DiTTransformer2DModel','attention_head_dim':4,"
      "'num_attention_heads':4,'num_layers':4,'in_channels':2,'out_channels':3,"
      "'num_embeds_ada_norm':5",
      "'_class_name':'FluxTransformer2DModel','attention_head_dim':4,"
      "'guidance_embeds':true,'in_channels':6,'joint_attention_dim':10,"
      "'num_attention_heads':4,'num_layers':2,'num_single_layers':2,"
      "'pooled_projection_dim':7",
      "'_class_name':'WanTransformer3DModel','attention_head_dim':4,"
      "'num_attention_heads':4,'num_layers':4,'ffn_dim':24,'cross_attn_norm':true,"
      "'in_channels':2,'out_channels':2,'patch_size':[1,2,2],"
      "'qk_norm':'rms_norm_across_heads','text_dim':12"}},
};

/* Keys with values to draw from, separated by '|', and what they need beside them. */
static const struct {
    const char *needs, *key, *values;
} KEY[] = {
    {"pp=2", "schedule",
     "gpipe|1f1b|interleaved|zb-h1|zb-h2|breadth-first|zb-v|v-half|v-min|dualpipev|"
     "dualpipe"},
    {"pp=2", "layers", "2,2|1,3"},
    {"pp=2", "recompute", "full,none|alternate,full@3-4"},
    {"pp=2", "stage_zero", "3,1|0,1"},
    {"pp=2", "stage_ep", "1,2|2,1"},
    {"pp=2", "ranks", "4,5,6,7;0,1,2,3"},
    {"pp=4", "schedule", "gpipe|1f1b|zb-h1|zb-h2|dualpipe"},
    {"pp=4", "ranks", "6,7;4,5;2,3;0,1"},
    {"pp=2", "cuts", "2|3"},
    {"interleaved", "virtual_stages", "2|3"},
    {"tp=2", "sequence_parallel", "on|on|off"},
    {"tp=4", "sequence_parallel", "on|on|off"},
    {"tp=2 cp=1 ep=2", "etp", "1"},
    {"tp=2 cp=1 ep=4", "etp", "1"},
    {"tp=1 cp=2 ep=2", "zero", "1|3"},
    {"cp=2", "cp_comm", "a2a|p2p"},
    {"cp=4", "cp_comm", "a2a|p2p|a2a+p2p a2a_ranks=2"},
    {"pp", "zero", "1|2|3"},
    {"pp", "zero", "1|2|3"},
    {"zero", "zero_ranks", "2|4"},
    {"pp", "recompute",
     "full|selective|full@1-2|mlp|core_attn+layernorm|moe_act|moe|shared_experts|"
     "mla_up_proj|alternate"},
    {"pp=2 tp=2 cp=1 m", "shares", "1,2"},
    {"pp=1 tp=2 cp=1 m", "shares", "1,2,3,2"},
    {"ep=2", "imbalance", "1.5"},
    {"ep=4", "expert_tokens", "1,2,3,4"},
    {"zero", "offload", "optimizer|optimizer+parameters|optimizer+activations"},
    {"pp", "offload", "activations"},
    {"pp", "sync_every", "4"},
    {"pp", "bucket", "0|1KiB"},
    {"pp", "pieces", "2|3"},
};

static const char *one_of(GRand *rand, const char *values)
{
    g_auto(GStrv) value = g_strsplit(values, "|", -1);
    return g_intern_string(value[pick(rand, g_strv_length(value))]);
}

/* Degrees of one of the kinds of layouts, and up to five further keys. */
static char *random_combination(GRand *rand)
{
    static const uint32_t degree[] = {1, 1, 2, 2, 4};
    const uint32_t kind = pick(rand, 8);
    if (kind == 0)
        return random_pipelines(rand);
    if (kind == 1)
        return random_stages(rand);
    const uint32_t pp = degree[pick(rand, 5)], tp = pp == 4 ? 2 : degree[pick(rand, 5)],
                   cp = pp * tp < 8 && pick(rand, 2) ? 8 / pp / tp / (1 + pick(rand, 2))
                                                     : 1;
    GString *set = g_string_new("");
    g_string_printf(set, "pp=%u tp=%u cp=%u", pp, tp, cp);
    if (pick(rand, 3) == 0)
        g_string_append_printf(set, " ep=%u", degree[pick(rand, 5)]);
    g_string_append_printf(set, " microbatches=%u",
                           pick(rand, 3) ? 4 << (pick(rand, 4) == 0) : 1 + pick(rand, 3));
    for (uint32_t n = 4 * pick(rand, 7); n; n--) {
        const uint32_t k = pick(rand, G_N_ELEMENTS(KEY));
        g_autofree char *named = g_strdup_printf(" %s=", KEY[k].key);
        if (strstr(set->str, KEY[k].needs) && !strstr(set->str, named))
            g_string_append_printf(set, "%s%s", named, one_of(rand, KEY[k].values));
    }
    return g_string_free(set, FALSE);
}

typedef struct {
    uint32_t proved, refused, alike, wrong;
} Seen;

/* Iteration time; with `apart` nothing overlaps. */
static double time_of(const Made *made, const char *fidelity, bool apart, GError **error)
{
    SimOptions options;
    sim_options_init(&options);
    if (apart && (!sim_options_set(&options, "overlap", "off", error) ||
                  !sim_options_set(&options, "network", "crossbar", error)))
        return NAN;
    g_autoptr(SimReport) report =
        sim_evaluate_with(made->plan, made->graph, made->view, fidelity, &options, error);
    for (uint32_t d = 0; report && d < report->n_devices; d++)
        assert_in_range(report->memory_bytes[d], 1, UINT64_C(1) << 34);
    return report ? report->iteration_time_s : NAN;
}

/* NULL, or what is wrong with a plan. */
static const char *fault_of(const Made *made, const char *set, Seen *seen, GError **error)
{
    g_autoptr(ExecBackend) backend = exec_reference_new(made->plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    if (!exec_verify(backend, made->plan, made->graph, 3, EXEC_TOLERANCE, &verdict,
                     error) ||
        !verdict.right)
        return "not proved";
    const double stage = time_of(made, "stage", false, error),
                 flow = *error ? 0 : time_of(made, "flow", false, error),
                 apart = *error ? 0 : time_of(made, "flow", true, error);
    seen->proved++;
    if (*error || !(stage > 0 && stage < MOST_S && flow > 0 && flow < MOST_S))
        return "no time";
    /* one group, without copies to hosts, rings beside attention and pieces in turn */
    if (!strstr(set, "pp=1 ") || strstr(set, "offload") || strstr(set, "p2p") ||
        strstr(set, "pieces"))
        return NULL;
    seen->alike++;
    return fabs(apart / stage - 1) < 1e-9 ? NULL : "unlike times";
}

static void check(const char *model, const char *set, const char *what, Seen *seen)
{
    g_autoptr(GError) error = NULL;
    g_auto(Made) made = make("manual", model, "dgx-h100", set, &error);
    const char *fault = made.plan ? fault_of(&made, set, seen, &error) : NULL;
    if (!made.plan) {
        seen->refused++;
        if (error->code != KILTER_ERROR_INPUT || strchr(error->message, '\n') ||
            g_str_has_prefix(error->message, "instruction "))
            fault = "no reason";
    }
    if (fault) {
        print_message("%s, %s %s: %s%s%s\n", what, strchr(model, ':'), set, fault,
                      error ? ": " : "", error ? error->message : "");
        seen->wrong++;
    }
}

static void write_model(const char *file, const char *path)
{
    g_autofree char *body = g_strdelimit(g_strdup(file), "'", '"');
    g_autofree char *text = g_strdup_printf("{%s}", body);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* A random model of a family, written to `path`. */
static char *random_model(GRand *rand, uint32_t family, const char *path)
{
    static const char *const precision[] = {"single", "mixed", "bf16-fp32-grads",
                                            "bf16-fsdp", "fp8"};
    static const char *const optimizer[] = {"adam", "adamw", "sgd", "adafactor", "muon"};
    const char *file = FAMILY[family].file[pick(rand, 3)];
    write_model(file, path);
    const bool experts = strstr(file, "experts") && pick(rand, 2);
    return g_strdup_printf("%s:global_batch=%u%s%s%s%s,precision=%s,optimizer=%s%s", path,
                           pick(rand, 4) ? 24 : 8, strstr(file, "'vit'") ? "" : ",seq=8",
                           strstr(file, "vision_config") ? ",patches=16" : "",
                           strstr(file, "pooled_projection") ? ",small=1" : "",
                           experts ? ",capacity_factor=0" : "", precision[pick(rand, 5)],
                           optimizer[pick(rand, 5)],
                           pick(rand, 6) ? "" : ",train=lora:2");
}

static void test_combinations(void **state)
{
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL),
                    *path = g_strdup_printf("%s/model.json", folder);
    const char *seed = g_getenv("KILTER_SEED");
    uint32_t wrong = 0;
    for (uint32_t f = 0; f < G_N_ELEMENTS(FAMILY); f++) {
        g_autoptr(GRand) rand =
            g_rand_new_with_seed(f + (seed ? (uint32_t)atoi(seed) : 1));
        Seen seen = {0};
        for (uint32_t i = 0; i < COMBINATIONS; i++) {
            g_autofree char *model = random_model(rand, f, path),
                            *set = random_combination(rand);
            check(model, set, FAMILY[f].family, &seen);
        }
        print_message("%s: %u proved, %u refused, %u as long by flow as by stage\n",
                      FAMILY[f].family, seen.proved, seen.refused, seen.alike);
        wrong += seen.wrong;
        assert_in_range(seen.proved, COMBINATIONS / 4, COMBINATIONS);
    }
    g_unlink(path);
    g_rmdir(folder);
    assert_int_equal(wrong, 0);
}

/* Combinations that once ended in a program that was none, or in times without bound. */
static void test_past(void **state)
{
    (void)state;
    static const struct {
        uint32_t family, file;
        const char *keys, *set;
    } PAST[] = {
        /* tied embeddings whose uses have other replicas or shards */
        {0, 2, ",seq=8", "pp=1 cp=2 microbatches=2"},
        {0, 2, ",seq=8", "pp=2 cp=2 microbatches=2 zero=1"},
        {0, 2, ",seq=8", "stage_tp=2,2,1 stage_dp=1,2,2 microbatches=3 schedule=zb-h1"},
        {0, 2, ",seq=8", "stage_tp=1,2,4 stage_dp=2,1,1 microbatches=2 zero=2"},
        {0, 2, ",seq=8", "stage_cp=2,1 stage_tp=1,2 stage_dp=2,2 microbatches=2"},
        {4, 1, ",seq=8,patches=16", "stage_cp=4,2 tp=1 microbatches=6 zero=1"},
        /* experts that one stage divides, and states that the other does */
        {2, 0, ",seq=8",
         "pp=2 tp=2 cp=2 microbatches=4 stage_zero=0,1 stage_ep=2,1 "
         "sequence_parallel=on"},
        /* an optimizer of whole matrices, experts with biases */
        {1, 2, ",seq=8,optimizer=adafactor", "dp=4 tp=2 ep=2"},
        /* towers of tokens in a number of their own */
        {4, 1, ",seq=8,patches=16", "pp=2 tp=2 cp=2 sequence_parallel=on"},
        /* an indexer whose gradient nothing reads */
        {2, 1, ",seq=8,train=lora:2", "pp=1 tp=2 sequence_parallel=on"},
        /* adapters, which left attention whole on all devices that tp joins */
        {4, 0, ",train=lora:2", "pp=1 tp=2 cp=4 microbatches=4 cp_comm=a2a"},
        /* fewer experts than devices that share sequences */
        {1, 0, ",seq=8,capacity_factor=0", "pp=1 cp=8 ep=2 imbalance=1.5"},
    };
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL),
                    *path = g_strdup_printf("%s/model.json", folder);
    Seen seen = {0};
    for (uint32_t i = 0; i < G_N_ELEMENTS(PAST); i++) {
        write_model(FAMILY[PAST[i].family].file[PAST[i].file], path);
        g_autofree char *model =
            g_strdup_printf("%s:global_batch=24%s", path, PAST[i].keys);
        check(model, PAST[i].set, FAMILY[PAST[i].family].family, &seen);
    }
    g_unlink(path);
    g_rmdir(folder);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.refused, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_past),
                                       cmocka_unit_test(test_combinations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
