/* Every family of configuration files, at sizes that run, under random strategies and with the
 * techniques on hap's programs; each is proved by running it. */
#include <glib/gstdio.h>

#include "tests/support/proved.h"
#include "tests/support/random_strategy.h"

#ifndef COMBINATIONS
#define COMBINATIONS 1
#endif

#define CLUSTER "star:hosts=8,bandwidth=1Gb/s,latency=5us"
#define LLAMA                                                            \
    "llama:layers=2,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=24," \
    "global_batch=8,"
#define SIZES                                                                        \
    "'hidden_size':16,'intermediate_size':24,'num_hidden_layers':4,'vocab_size':24," \
    "'num_attention_heads':4,"
#define EXPERTS "'num_experts_per_tok':2,'moe_intermediate_size':8,"

static const char *const FAMILY[] = {
    SIZES "'num_key_value_heads':2,'model_type':'llama'",
    SIZES
    "'num_key_value_heads':2,'head_dim':8,'sliding_window':3,'model_type':'mistral'",
    SIZES "'num_key_value_heads':2,'num_local_experts':4,'model_type':'mixtral'",
    SIZES "'num_key_value_heads':2,'tie_word_embeddings':true,'model_type':'qwen2'",
    SIZES "'num_key_value_heads':2,'head_dim':8,'model_type':'qwen3'",
    SIZES EXPERTS "'num_key_value_heads':2,'head_dim':8,'num_experts':4,"
                  "'mlp_only_layers':[0],'model_type':'qwen3_moe'",
    SIZES "'num_key_value_heads':4,'partial_rotary_factor':0.5,'model_type':'phi3'",
    SIZES "'num_key_value_heads':1,'head_dim':8,'model_type':'gemma'",
    SIZES "'num_key_value_heads':2,'head_dim':8,'sliding_window':3,"
          "'model_type':'gemma3_text'",
    SIZES "'model_type':'gpt2'",
    SIZES "'model_type':'gpt_neox'",
    SIZES "'ffn_dim':24,'model_type':'opt'",
    SIZES "'ffn_dim':24,'word_embed_proj_dim':8,'do_layer_norm_before':false,"
          "'model_type':'opt'",
    SIZES "'model_type':'bloom'",
    SIZES "'new_decoder_architecture':true,'num_kv_heads':2,'model_type':'falcon'",
    SIZES "'alibi':true,'parallel_attn':false,'multi_query':false,'bias':true,"
          "'model_type':'falcon'",
    SIZES "'model_type':'phi'",
    SIZES "'model_type':'bert'",
    SIZES "'model_type':'roberta'",
    SIZES "'image_size':8,'patch_size':4,'num_labels':6,'model_type':'vit'",
    SIZES EXPERTS "'num_key_value_heads':4,'q_lora_rank':8,'kv_lora_rank':8,"
                  "'qk_nope_head_dim':4,'qk_rope_head_dim':2,'v_head_dim':4,"
                  "'n_routed_experts':4,'first_k_dense_replace':1,"
                  "'model_type':'deepseek_v3'",
    SIZES EXPERTS "'num_key_value_heads':2,'head_dim':4,'num_local_experts':4,"
                  "'sliding_window':3,'model_type':'gpt_oss'",
    SIZES EXPERTS "'num_key_value_heads':2,'head_dim':8,'linear_num_key_heads':2,"
                  "'linear_num_value_heads':4,'linear_key_head_dim':4,"
                  "'linear_value_head_dim':4,'num_experts':4,"
                  "'shared_expert_intermediate_size':8,'full_attention_interval':2,"
                  "'model_type':'qwen3_next'",
    SIZES EXPERTS "'num_key_value_heads':2,'head_dim':8,'layers_block_type':"
                  "['mamba','moe','attention','mlp'],'mamba_num_heads':4,'n_groups':2,"
                  "'ssm_state_size':4,'mamba_head_dim':4,'n_routed_experts':4,"
                  "'n_shared_experts':1,'moe_shared_expert_intermediate_size':8,"
                  "'moe_latent_size':8,'model_type':'nemotron_h'",
    SIZES EXPERTS "'num_key_value_heads':4,'q_lora_rank':8,'kv_lora_rank':8,"
                  "'qk_nope_head_dim':4,'qk_rope_head_dim':2,'v_head_dim':4,"
                  "'n_routed_experts':4,'first_k_dense_replace':1,'index_topk':3,"
                  "'index_n_heads':2,'index_head_dim':4,'indexer_types':"
                  "['full','shared','full','shared'],'model_type':'glm_moe_dsa'",
    SIZES EXPERTS "'num_key_value_heads':4,'kv_lora_rank':8,'qk_nope_head_dim':4,"
                  "'qk_rope_head_dim':2,'v_head_dim':4,'num_experts':4,"
                  "'num_experts_per_token':2,'num_shared_experts':1,"
                  "'linear_attn_config':{'kda_layers':[1,2,3],'num_heads':4,"
                  "'head_dim':4},'model_type':'kimi_linear'",
    SIZES "'num_key_value_heads':2,'head_dim':4,'attn_type_list':[0,1,0,0],"
          "'num_local_experts':4,'model_type':'minimax'",
    SIZES "'num_key_value_heads':2,'head_dim':4,'num_local_experts':4,"
          "'model_type':'minimax_m2'",
    SIZES "'num_key_value_heads':2,'layer_types':['conv','full_attention','conv','conv'],"
          "'block_auto_adjust_ff_dim':false,'model_type':'lfm2'",
    SIZES EXPERTS "'num_key_value_heads':2,'head_dim':4,'num_experts':4,"
                  "'share_expert_dim':8,'first_k_dense_replace':1,'model_type':'step3p7'",
    SIZES EXPERTS "'num_key_value_heads':2,'head_dim':4,'global_head_dim':8,"
                  "'num_global_key_value_heads':1,'attention_k_eq_v':true,"
                  "'enable_moe_block':true,'num_experts':4,'top_k_experts':2,"
                  "'layer_types':['sliding_attention','full_attention',"
                  "'sliding_attention','full_attention'],'sliding_window':3,"
                  "'model_type':'gemma4'",
    SIZES "'num_key_value_heads':2,'model_type':'olmo3'",
    SIZES "'num_key_value_heads':2,'qk_layernorm':true,'model_type':'stablelm'",
    SIZES "'num_key_value_heads':2,'model_type':'bitnet'",
    SIZES EXPERTS
    "'num_attention_groups':2,'head_dim':8,'share_q_dim':6,'moe_num_experts':4,"
    "'moe_top_k':2,'share_expert_dim':8,'moe_layers_enum':'1,3','model_type':'step3_"
    "text'",
    SIZES "'num_key_value_heads':2,'sliding_window':3,'sliding_window_pattern':2,"
          "'use_qk_norm':true,'model_type':'cohere2'",
    SIZES
    "'num_key_value_heads':2,'head_dim':4,'mamba_d_ssm':16,'mamba_n_heads':4,"
    "'mamba_d_head':4,'mamba_n_groups':2,'mamba_d_state':4,'model_type':'falcon_h1'",
    "'d_model':16,'d_kv':4,'d_ff':24,'num_layers':2,'num_heads':4,'vocab_size':24,"
    "'feed_forward_proj':'gated-gelu','is_encoder_decoder':true,'model_type':'t5'",
    "'d_model':16,'encoder_layers':1,'decoder_layers':2,'encoder_ffn_dim':24,"
    "'decoder_ffn_dim':24,'encoder_attention_heads':4,'decoder_attention_heads':4,"
    "'vocab_size':24,'is_encoder_decoder':true,'model_type':'bart'",
    "'d_model':16,'encoder_layers':2,'decoder_layers':2,'encoder_ffn_dim':24,"
    "'decoder_ffn_dim':24,'encoder_attention_heads':4,'decoder_attention_heads':4,"
    "'vocab_size':24,'num_mel_bins':4,'max_source_positions':6,'model_type':'whisper'",
    SIZES "'num_key_value_heads':2,'vision_config':{'depth':2,'hidden_size':8,"
          "'num_heads':2,'intermediate_size':12,'patch_size':2},"
          "'model_type':'qwen2_5_vl'",
    SIZES "'num_key_value_heads':2,'head_dim':4,'sliding_window':3,"
          "'mm_tokens_per_image':4,'vision_config':{'num_hidden_layers':1,"
          "'hidden_size':8,'num_attention_heads':2,'intermediate_size':12,"
          "'patch_size':2,'image_size':8},'model_type':'gemma3'",
    SIZES "'state_size':4,'time_step_rank':3,'model_type':'mamba'",
    SIZES "'num_key_value_heads':2,'mamba_d_state':4,'mamba_dt_rank':3,"
          "'attn_layer_period':2,'attn_layer_offset':1,'num_experts':4,"
          "'model_type':'jamba'",
    SIZES "'mamba_d_state':4,'mamba_dt_rank':3,'layers_block_type':"
          "['mamba','hybrid','mamba','hybrid'],'model_type':'zamba'",
    "'_class_name':'DiTTransformer2DModel','attention_head_dim':4,"
    "'num_attention_heads':4,'num_layers':4,'in_channels':2,'out_channels':3,"
    "'num_embeds_ada_norm':5",
    "'_class_name':'FluxTransformer2DModel','attention_head_dim':4,"
    "'guidance_embeds':true,'in_channels':6,'joint_attention_dim':10,"
    "'num_attention_heads':4,'num_layers':2,'num_single_layers':2,"
    "'pooled_projection_dim':7",
    "'_class_name':'SD3Transformer2DModel','attention_head_dim':4,'in_channels':3,"
    "'joint_attention_dim':10,'num_attention_heads':4,'num_layers':4,"
    "'dual_attention_layers':[0,2],'out_channels':3,'pooled_projection_dim':7",
    "'_class_name':'WanTransformer3DModel','attention_head_dim':4,"
    "'num_attention_heads':4,'num_layers':4,'ffn_dim':24,'cross_attn_norm':true,"
    "'in_channels':2,'out_channels':2,'patch_size':[1,2,2],"
    "'qk_norm':'rms_norm_across_heads','text_dim':12",
    "'hidden_size':16,'num_hidden_layers':4,'vocab_size':24,'head_size':4,"
    "'gate_low_rank_dim':3,'proj_low_rank_dim':2,'model_type':'rwkv6'",
    "'hidden_size':16,'num_hidden_layers':4,'vocab_size':24,'head_dim':4,"
    "'decay_low_rank_dim':3,'gate_low_rank_dim':5,'a_low_rank_dim':2,"
    "'v_low_rank_dim':4,'model_type':'rwkv7'",
    SIZES "'embedding_size':8,'num_hidden_groups':2,'model_type':'albert'",
    SIZES "'relative_attention':true,'pos_att_type':['c2p','p2c'],"
          "'max_relative_positions':4,'model_type':'deberta'",
    SIZES "'relative_attention':true,'pos_att_type':'p2c|c2p','position_buckets':4,"
          "'position_biased_input':false,'share_att_key':true,"
          "'norm_rel_ebd':'layer_norm','type_vocab_size':0,'model_type':'deberta-v2'",
};

/* The path of the family's file in `folder`. Caller frees. */
static char *write_family(const char *folder, uint32_t family)
{
    g_autofree char *body = g_strdelimit(g_strdup(FAMILY[family]), "'", '"');
    g_autofree char *text = g_strdup_printf("{%s}", body);
    char *path = g_strdup_printf("%s/family-%u.json", folder, family);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void test_families(void **state)
{
    (void)state;
    static const char *const technique[] = {
        "recompute=full", "recompute=selective microbatches=2", "recompute=auto"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL);
    for (uint32_t f = 0; f < G_N_ELEMENTS(FAMILY); f++) {
        g_autofree char *path = write_family(folder, f);
        const bool tower = strstr(FAMILY[f], "vision_config") != NULL;
        const bool image = strstr(FAMILY[f], "'vit'") != NULL;
        /* hundreds of tokens of text beside those of images */
        const bool text = strstr(FAMILY[f], "pooled_projection") != NULL;
        g_autofree char *model =
            g_strdup_printf("%s:global_batch=24%s%s%s", path, image ? "" : ",seq=8",
                            tower ? ",patches=16" : "", text ? ",small=1" : "");
        const char *planner = strstr(FAMILY[f], "zamba") ? "hidup"
                              : f % 4 == 3               ? "joint"
                                                         : "hap";
        /* the default test proves each family in one of both ways, the long one in both */
        if (COMBINATIONS > 1 || f % 2)
            check_proved(
                planner, model, CLUSTER,
                strcmp(planner, "hap") != 0 ? "" : technique[f % G_N_ELEMENTS(technique)],
                FAMILY[f]);
        for (uint32_t i = COMBINATIONS > 1 ? 0 : f % 2; i < COMBINATIONS; i++) {
            g_autofree char *set = random_strategy(rand, false, false);
            check_proved("manual", model, CLUSTER, set, FAMILY[f]);
        }
        g_unlink(path);
    }
    g_rmdir(folder);
}

/* Where data repeat a token, keys have equal scores that roundings tell apart: every device must
 * still choose the same keys. */
static void test_equal_keys(void **state)
{
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL);
    for (uint32_t f = 0; f < G_N_ELEMENTS(FAMILY); f++)
        if (strstr(FAMILY[f], "index_topk")) {
            g_autofree char *path = write_family(folder, f);
            g_autofree char *model = g_strdup_printf("%s:global_batch=24,seq=8", path);
            for (uint64_t seed = 4; seed <= 8; seed += 4)
                check_proved_on(seed, "manual", model, CLUSTER,
                                "pp=4 tp=2 microbatches=4 zero=0", FAMILY[f]);
            g_unlink(path);
        }
    g_rmdir(folder);
}

/* Frozen parameters have neither gradients nor updates: every planner places them, too. */
static void test_adapters(void **state)
{
    (void)state;
    static const struct {
        const char *planner, *set;
    } row[] = {{"hap", ""},         {"hidup", ""},
               {"joint", ""},       {"amp", ""},
               {"manual", "dp=8"},  {"manual", "tp=2 dp=4"},
               {"tag", ""},         {"manual", "pp=2 tp=2 dp=2 microbatches=2"},
               {"manual", "zero=3"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        check_proved(row[i].planner,
                     LLAMA "train=lora:2,target=attention.k.+ffn.gate+!head", CLUSTER,
                     row[i].set, "adapters");
        check_proved(row[i].planner, LLAMA "train=layers:2", CLUSTER, row[i].set,
                     "a layer");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_equal_keys),
        cmocka_unit_test(test_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
