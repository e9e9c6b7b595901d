/* Published models by their own config.json, including keys that Kilter does not need: their
 * numbers of parameters are the published ones. */
#include <glib/gstdio.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/test.h"

/* width, feed-forward width, layers, heads, key/value heads, vocabulary */
#define SIZES(h, i, l, n, k, v)                                               \
    "'hidden_size':" #h ",'intermediate_size':" #i ",'num_hidden_layers':" #l \
    ",'num_attention_heads':" #n ",'num_key_value_heads':" #k ",'vocab_size':" #v ","
#define LLAMA                                                                         \
    "'model_type':'llama','architectures':['LlamaForCausalLM'],'hidden_act':'silu',"  \
    "'attention_bias':false,'mlp_bias':false,'rope_scaling':null,'pretraining_tp':1," \
    "'torch_dtype':'bfloat16'"
#define UNTIED  ",'tie_word_embeddings':false"
#define TIED    ",'tie_word_embeddings':true"
#define MISTRAL "'model_type':'mistral','sliding_window':null,'head_dim':128" UNTIED
#define MIXTRAL                                                             \
    "'model_type':'mixtral','num_local_experts':8,'num_experts_per_tok':2," \
    "'sliding_window':null,'head_dim':null,'output_router_logits':false" UNTIED
#define QWEN2                                                                  \
    "'model_type':'qwen2','use_sliding_window':false,'sliding_window':131072," \
    "'max_window_layers':28"
#define QWEN3                                                                        \
    "'model_type':'qwen3','head_dim':128,'attention_bias':false,'layer_types':null," \
    "'use_sliding_window':false,'sliding_window':null,'max_window_layers':28"
#define PHI3                                                                         \
    "'model_type':'phi3','attention_bias':false,'embd_pdrop':0.0,'resid_pdrop':0.0," \
    "'original_max_position_embeddings':4096,"                                       \
    "'rope_scaling':{'type':'longrope','short_factor':[1.0],'long_factor':[1.0]}"
#define GEMMA "'model_type':'gemma','head_dim':256,'hidden_activation':null"
#define GEMMA3                                                        \
    "'model_type':'gemma3_text','head_dim':256,'sliding_window':512," \
    "'attn_logit_softcapping':null,'use_bidirectional_attention':false"
#define GPT2(h, l, n)                                                     \
    "'model_type':'gpt2','n_ctx':1024,'n_positions':1024,'n_inner':null," \
    "'vocab_size':50257,'n_embd':" #h ",'n_layer':" #l ",'n_head':" #n
#define PYTHIA(h, i, l, n, v)                                                 \
    "'model_type':'gpt_neox','rotary_pct':0.25,'use_parallel_residual':true," \
    "'hidden_size':" #h ",'intermediate_size':" #i ",'num_hidden_layers':" #l \
    ",'num_attention_heads':" #n ",'vocab_size':" #v UNTIED
#define OPT(h, i, l, n, width, before)                                                  \
    "'model_type':'opt','activation_function':'relu','_remove_final_layer_norm':false," \
    "'max_position_embeddings':2048,'vocab_size':50272,'hidden_size':" #h               \
    ",'ffn_dim':" #i ",'num_hidden_layers':" #l ",'num_attention_heads':" #n            \
    ",'word_embed_proj_dim':" #width ",'do_layer_norm_before':" #before
#define BLOOM(h, l, n)                                                            \
    "'model_type':'bloom','vocab_size':250880,'n_inner':null,'offset_alibi':100," \
    "'seq_length':2048,'n_embed':" #h ",'n_layer':" #l ",'n_head':" #n
#define FALCON                                                               \
    "'model_type':'falcon','alibi':false,'bias':false,'multi_query':true,"   \
    "'parallel_attn':true,'apply_residual_connection_post_layernorm':false," \
    "'vocab_size':65024,"
#define PHI                                                            \
    "'model_type':'phi','hidden_act':'gelu_new','qk_layernorm':false," \
    "'resid_pdrop':0.0,'rope_scaling':null" UNTIED
#define BERT(type, h, i, l, n, v, positions, types)                                     \
    "'model_type':'" type "','position_embedding_type':'absolute','hidden_act':'gelu'," \
    "'gradient_checkpointing':false,'pooler_type':'first_token_transform',"             \
    "'hidden_size':" #h ",'intermediate_size':" #i ",'num_hidden_layers':" #l           \
    ",'num_attention_heads':" #n ",'vocab_size':" #v                                    \
    ",'max_position_embeddings':" #positions ",'type_vocab_size':" #types
#define VIT(h, i, l, n, image, edge)                                                \
    "'model_type':'vit','qkv_bias':true,'num_channels':3,'encoder_stride':16,"      \
    "'num_labels':1000,'hidden_size':" #h ",'intermediate_size':" #i                \
    ",'num_hidden_layers':" #l ",'num_attention_heads':" #n ",'image_size':" #image \
    ",'patch_size':" #edge
#define GPT_OSS                                                                        \
    "'model_type':'gpt_oss','head_dim':64,'attention_bias':true,'sliding_window':128," \
    "'num_experts_per_tok':4,'experts_per_token':4,'swiglu_limit':7.0,"                \
    "'rope_scaling':{'rope_type':'yarn','factor':32.0,'truncate':false}" UNTIED
#define DEEPSEEK                                                                    \
    SIZES(7168, 18432, 61, 128, 128, 129280)                                        \
    "'model_type':'deepseek_v3','moe_intermediate_size':2048,'n_shared_experts':1," \
    "'n_routed_experts':256,'routed_scaling_factor':2.5,'kv_lora_rank':512,"        \
    "'q_lora_rank':1536,'qk_rope_head_dim':64,'v_head_dim':128,"                    \
    "'qk_nope_head_dim':128,'topk_method':'noaux_tc','n_group':8,'topk_group':4,"   \
    "'num_experts_per_tok':8,'moe_layer_freq':1,'first_k_dense_replace':3,"         \
    "'norm_topk_prob':true,'scoring_func':'sigmoid','num_nextn_predict_layers':1,"  \
    "'quantization_config':{'quant_method':'fp8','weight_block_size':[128,128]}"

/* Encoders are counted without their poolers of H^2 + H, and multimodal models by their text. */
enum { POOLER_BASE = 590592, POOLER_LARGE = 1049600, POOLER_TINY = 16512 };

static const struct {
    uint64_t parameters;
    const char *json;
} PUBLISHED[] = {
    {6738415616, SIZES(4096, 11008, 32, 32, null, 32000) LLAMA UNTIED},
    {32528943616, SIZES(6656, 17920, 60, 52, null, 32000) LLAMA UNTIED},
    {65285660672,
     SIZES(8192, 22016, 80, 64, 64, 32000) LLAMA ",'max_sequence_length':2048,"
                                                 "'pad_token_id':-1" UNTIED},
    {68976648192, SIZES(8192, 28672, 80, 64, 8, 32000) LLAMA UNTIED},
    {70553706496, SIZES(8192, 28672, 80, 64, 8, 128256) LLAMA UNTIED},
    {3212749824, SIZES(3072, 8192, 28, 24, 8, 128256) LLAMA ",'head_dim':128" TIED},
    {1100048384, SIZES(2048, 5632, 22, 32, 4, 32000) LLAMA UNTIED},
    {134515008, SIZES(576, 1536, 30, 9, 3, 49152) LLAMA TIED},
    {34388917248, SIZES(7168, 20480, 60, 56, 8, 64000) LLAMA UNTIED},
    {7241732096, SIZES(4096, 14336, 32, 32, 8, 32000) "'model_type':'mistral',"
                                                      "'sliding_window':4096" UNTIED},
    {12247782400, SIZES(5120, 14336, 40, 32, 8, 131072) MISTRAL},
    {23572403200, SIZES(5120, 32768, 40, 32, 8, 131072) MISTRAL},
    {122610069504, SIZES(12288, 28672, 88, 96, 8, 32768) MISTRAL},
    /* text part of a multimodal model, which names its own family */
    {23572403200, "'model_type':'mistral3','vision_config':{'hidden_size':1024},"
                  "'text_config':{" SIZES(5120, 32768, 40, 32, 8, 131072) MISTRAL "}"},
    {46702792704, SIZES(4096, 14336, 32, 32, 8, 32000) MIXTRAL},
    {140630071296, SIZES(6144, 16384, 56, 48, 8, 32768) MIXTRAL},
    {494032768, SIZES(896, 4864, 24, 14, 2, 151936) QWEN2 TIED},
    {1543714304, SIZES(1536, 8960, 28, 12, 2, 151936) QWEN2 TIED},
    {3085938688, SIZES(2048, 11008, 36, 16, 2, 151936) QWEN2 TIED},
    {7615616512, SIZES(3584, 18944, 28, 28, 4, 152064) QWEN2 UNTIED},
    {14770033664, SIZES(5120, 13824, 48, 40, 8, 152064) QWEN2 UNTIED},
    {32763876352, SIZES(5120, 27648, 64, 40, 8, 152064) QWEN2 UNTIED},
    {72706203648, SIZES(8192, 29568, 80, 64, 8, 152064) QWEN2 UNTIED},
    {1720574976, SIZES(2048, 6144, 28, 16, 8, 151936) QWEN3 TIED},
    {4022468096, SIZES(2560, 9728, 36, 32, 8, 151936) QWEN3 TIED},
    {8190735360, SIZES(4096, 12288, 36, 32, 8, 151936) QWEN3 UNTIED},
    {14768307200, SIZES(5120, 17408, 40, 40, 8, 151936) QWEN3 UNTIED},
    {30532122624,
     SIZES(2048, 6144, 48, 32, 4,
           151936) "'model_type':'qwen3_moe',"
                   "'head_dim':128,'num_experts':128,'num_experts_per_tok':8,"
                   "'moe_intermediate_size':768,'norm_topk_prob':true,"
                   "'decoder_sparse_step':1,'mlp_only_layers':[]" UNTIED},
    {3821079552,
     SIZES(3072, 8192, 32, 32, 32, 32064) PHI3 ",'sliding_window':2047" UNTIED},
    {13960238080, SIZES(5120, 17920, 40, 40, 10, 32064) PHI3 UNTIED},
    {14659507200,
     SIZES(5120, 17920, 40, 40, 10, 100352) PHI3 ",'sliding_window':null" UNTIED},
    {3836021760,
     SIZES(3072, 8192, 32, 24, 8, 200064) PHI3 ",'partial_rotary_factor':0.75" TIED},
    {2506172416, SIZES(2048, 16384, 18, 8, 1, 256000) GEMMA},
    {8537680896, SIZES(3072, 24576, 28, 16, 16, 256000) GEMMA},
    {999885952, SIZES(1152, 6912, 26, 4, 1, 262144) GEMMA3 ",'sliding_window_pattern':6"},
    {268098176, SIZES(640, 2048, 18, 4, 1, 262144) GEMMA3 ",'_sliding_window_pattern':6"},
    /* 4,300,079,472 less a tower of 416,866,032 and a projector of 2,950,272 */
    {3880263168, "'model_type':'gemma3','text_config':{'hidden_size':2560,"
                 "'intermediate_size':10240,'model_type':'gemma3_text',"
                 "'num_hidden_layers':34,'sliding_window':1024,"
                 "'rope_scaling':{'factor':8.0,'rope_type':'linear'}}"},
    {124439808, GPT2(768, 12, 12)},
    {354823168, GPT2(1024, 24, 16)},
    {774030080, GPT2(1280, 36, 20)},
    {1557611200, GPT2(1600, 48, 25)},
    {81912576, GPT2(768, 6, 12)},
    {70426624, PYTHIA(512, 2048, 6, 8, 50304)},
    {162322944, PYTHIA(768, 3072, 12, 12, 50304)},
    {405334016, PYTHIA(1024, 4096, 24, 16, 50304)},
    {1011781632, PYTHIA(2048, 8192, 16, 8, 50304)},
    {1414647808, PYTHIA(2048, 8192, 24, 16, 50304)},
    {2775208960, PYTHIA(2560, 10240, 32, 32, 50304)},
    {6857302016, PYTHIA(4096, 16384, 32, 32, 50432)},
    {11846072320, PYTHIA(5120, 20480, 36, 40, 50688)},
    {125239296, OPT(768, 3072, 12, 12, 768, true)},
    {331196416, OPT(1024, 4096, 24, 16, 512, false)},
    {1315758080, OPT(2048, 8192, 24, 32, 2048, true)},
    {2651596800, OPT(2560, 10240, 32, 32, 2560, true)},
    {12853473280, OPT(5120, 20480, 40, 40, 5120, true)},
    {559214592, BLOOM(1024, 24, 16)},
    {1065314304, BLOOM(1536, 24, 16)},
    {1722408960, BLOOM(2048, 24, 16)},
    {3002557440, BLOOM(2560, 30, 32)},
    {7069016064, BLOOM(4096, 30, 32)},
    {6921720704, FALCON "'hidden_size':4544,'num_attention_heads':71,'num_kv_heads':71,"
                        "'num_hidden_layers':32,'new_decoder_architecture':false"},
    {41303293952, FALCON "'hidden_size':8192,'num_attention_heads':128,'num_kv_heads':8,"
                         "'num_hidden_layers':60,'new_decoder_architecture':true"},
    {178557088768, FALCON "'hidden_size':14848,'num_attention_heads':232,"
                          "'num_kv_heads':8,'num_hidden_layers':80,"
                          "'new_decoder_architecture':true"},
    {1418270720,
     SIZES(2048, 8192, 24, 32, null, 51200) PHI ",'partial_rotary_factor':0.5"},
    {2779683840,
     SIZES(2560, 10240, 32, 32, 32, 51200) PHI ",'partial_rotary_factor':0.4"},
    {109482240 - POOLER_BASE, BERT("bert", 768, 3072, 12, 12, 30522, 512, 2)},
    {335141888 - POOLER_LARGE, BERT("bert", 1024, 4096, 24, 16, 30522, 512, 2)},
    {108310272 - POOLER_BASE, BERT("bert", 768, 3072, 12, 12, 28996, 512, 2)},
    {4385920 - POOLER_TINY, BERT("bert", 128, 512, 2, 2, 30522, 512, 2)},
    {177853440 - POOLER_BASE, BERT("bert", 768, 3072, 12, 12, 119547, 512, 2)},
    {124645632 - POOLER_BASE, BERT("roberta", 768, 3072, 12, 12, 50265, 514, 1)},
    {355359744 - POOLER_LARGE, BERT("roberta", 1024, 4096, 24, 16, 50265, 514, 1)},
    {86567656, VIT(768, 3072, 12, 12, 224, 16)},
    {304326632, VIT(1024, 4096, 24, 16, 224, 16)},
    {86859496, VIT(768, 3072, 12, 12, 384, 16)},
    {88297192, VIT(768, 3072, 12, 12, 384, 32)},
    {22050664, VIT(384, 1536, 12, 6, 224, 16)},
    {5717416, VIT(192, 768, 12, 3, 224, 16)},
    {671026419200, DEEPSEEK},
    {33743970304, SIZES(8192, 22016, 48, 64, 8, 32000) LLAMA UNTIED},
    {361821120, SIZES(960, 2560, 32, 15, 5, 49152) LLAMA TIED},
    {8829407232, SIZES(4096, 11008, 48, 32, 4, 64000) LLAMA UNTIED},
    {6910365696, SIZES(4096, 11008, 30, 32, 32, 102400) LLAMA UNTIED},
    {33342991360, SIZES(7168, 19200, 62, 56, 8, 32256) LLAMA UNTIED},
    {22247282688, SIZES(6144, 16384, 56, 48, 8, 32768) "'model_type':'mistral',"
                                                       "'sliding_window':null"},
    {8019808256, SIZES(4096, 12288, 36, 32, 8, 131072) MISTRAL},
    {463987712, SIZES(1024, 2816, 24, 16, 16, 151936) QWEN2 TIED},
    {7721324544, SIZES(4096, 11008, 32, 32, 32, 151936) QWEN2 UNTIED},
    {595776512, SIZES(1024, 3072, 28, 16, 8, 151669) QWEN3 TIED},
    {302863104, SIZES(768, 1152, 24, 3, 1, 262144) GEMMA3},
    {111050496, "'model_type':'gpt2','activation_function':'gelu','n_inner':3072,"
                "'n_embd':768,'n_head':12,'n_layer':10,'n_positions':2048"},
    {2775864320, PYTHIA(2560, 10240, 32, 32, 50432)},
    {29974540288, OPT(7168, 28672, 48, 56, 7168, true)},
    {632045800, VIT(1280, 5120, 32, 16, 224, 14)},
    {20914757184, SIZES(2880, 2880, 24, 64, 8, 201088) GPT_OSS ",'num_local_experts':32"},
    {116829156672,
     SIZES(2880, 2880, 36, 64, 8, 201088) GPT_OSS ",'num_local_experts':128"},
};

/* The graph of `{body}` with ' for ", or NULL. */
static Graph *graph_of(const char *body, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-published-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autofree char *text = g_strdup_printf("{%s}", body);
    g_strdelimit(text, "'", '"');
    assert_true(g_file_set_contents(path, text, -1, NULL));
    Graph *graph = model_build(path, 1, NULL, error);
    g_unlink(path);
    return graph;
}

static void test_parameters(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PUBLISHED); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = graph_of(PUBLISHED[i].json, &error);
        assert_no_error(error);
        const uint64_t got = graph_parameter_count(graph);
        if (got != PUBLISHED[i].parameters)
            fail_msg("%s: %" G_GUINT64_FORMAT " parameters, expected %" G_GUINT64_FORMAT,
                     PUBLISHED[i].json, got, PUBLISHED[i].parameters);
    }
}

/* The window of each layer's attention: newer and older files mean the same. */
static void assert_windows(const char *body, const uint32_t *expected, uint32_t n)
{
    g_autofree char *json = g_strconcat(SIZES(64, 64, 4, 4, 2, 99), body, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = graph_of(json, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("layers.%u.attention", i);
        const TensorId y = graph_find(graph, name);
        assert_int_equal(graph_get_op(graph, graph_tensor(graph, y)->producer)->attr.span,
                         expected[i]);
    }
}

static void test_windows(void **state)
{
    (void)state;
    assert_windows("'model_type':'qwen3','use_sliding_window':true,'sliding_window':7,"
                   "'max_window_layers':3",
                   (uint32_t[]){0, 0, 0, 7}, 4);
    assert_windows("'model_type':'qwen2','use_sliding_window':true,'sliding_window':7,"
                   "'layer_types':['sliding_attention','full_attention','full_attention',"
                   "'sliding_attention']",
                   (uint32_t[]){7, 0, 0, 7}, 4);
    assert_windows("'model_type':'mistral','sliding_window':null", (uint32_t[]){0, 0}, 2);
    assert_windows("'model_type':'gpt_oss','sliding_window':7", (uint32_t[]){7, 0, 7, 0},
                   4);
}

/* A layer of an unknown kind is refused; null heads are as many as those of queries */
static void test_words(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        graph_of(SIZES(64, 64, 2, 4, 2, 99) "'model_type':'qwen3',"
                                            "'layer_types':['full_attention','linear']",
                 &error);
    assert_null(graph);
    assert_non_null(strstr(error->message, "layer_types"));
    g_autoptr(Graph) each =
        graph_of(SIZES(64, 64, 1, 4, null, 99) "'model_type':'mistral'", NULL);
    assert_int_equal(
        graph_tensor(each, graph_find(each, "layers.0.attention.kv.weight"))->dim[0], 4);
    g_autoptr(Graph) turned = graph_of(
        SIZES(64, 64, 1, 4, 4, 99) "'model_type':'phi',"
                                   "'rope_parameters':{'partial_rotary_factor':0.25}",
        NULL);
    const TensorId q = graph_find(turned, "layers.0.attention.q.rotary");
    assert_int_equal(graph_get_op(turned, graph_tensor(turned, q)->producer)->attr.span,
                     4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
