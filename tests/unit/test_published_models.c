/* Published models by their own config.json, including keys that Kilter does not need: their
 * numbers of parameters are the published ones. */
#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

#include "data/data.h"
#include "data/formats/huggingface/config.h"
#include "data/formats/huggingface/family.h"
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

typedef struct {
    uint64_t parameters;
    const char *json;
} Published;

/* of the layers of Stable Diffusion 3.5 medium: a product with its biases, a network */
#define SD_SQUARE  (1536LL * 1537)
#define SD_NETWORK (8 * 1536LL * 1536 + 5 * 1536)

static const Published PUBLISHED[] = {
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
    {8015581184,
     "'model_type':'llada','block_type':'llama','alibi':false,'d_model':4096,"
     "'embedding_size':126464,'include_bias':false,'include_qkv_bias':false,"
     "'max_sequence_length':4096,'mlp_hidden_size':12288,'n_heads':32,"
     "'n_kv_heads':32,'n_layers':32,'vocab_size':126464,'weight_tying':false"},
    {7615616512,
     SIZES(3584, 18944, 28, 28, 4, 152064) "'model_type':'Dream',"
                                           "'use_sliding_window':false" UNTIED},
    /* without the one bias of the gated network, 768 numbers a layer */
    {305368320 - 12 * 768,
     "'model_type':'new','hidden_size':768,'intermediate_size':3072,"
     "'num_hidden_layers':12,'num_attention_heads':12,'vocab_size':250048,"
     "'max_position_embeddings':8192,'type_vocab_size':1,'hidden_act':'gelu',"
     "'position_embedding_type':'rope','hidden_dropout_prob':0.1"},
    /* flat, with keys of the image that count nothing */
    {629649536, SIZES(896, 4864, 24, 14, 2, 151647) "'model_type':'llava_qwen',"
                                                    "'mm_hidden_size':1152" UNTIED},
    {111050496, "'model_type':'gpt2','activation_function':'gelu','n_inner':3072,"
                "'n_embd':768,'n_head':12,'n_layer':10,'n_positions':2048"},
    {2775864320, PYTHIA(2560, 10240, 32, 32, 50432)},
    {29974540288, OPT(7168, 28672, 48, 56, 7168, true)},
    {632045800, VIT(1280, 5120, 32, 16, 224, 14)},
    {20914757184, SIZES(2880, 2880, 24, 64, 8, 201088) GPT_OSS ",'num_local_experts':32"},
    {116829156672,
     SIZES(2880, 2880, 36, 64, 8, 201088) GPT_OSS ",'num_local_experts':128"},
    {34980831232,
     "'hidden_size':8192,'intermediate_size':22528,'num_hidden_layers':40,"
     "'num_attention_heads':64,'num_key_value_heads':64,'vocab_size':256000,"
     "'model_type':'cohere','layer_norm_eps':1e-05,'logit_scale':0.0625,"
     "'use_qk_norm':false,'attention_bias':false,'max_position_embeddings':131072,"
     "'hidden_act':'silu'"},
    {131596523520,
     "'model_type':'dbrx','d_model':6144,'n_heads':48,'n_layers':40,"
     "'max_seq_len':32768,'vocab_size':100352,'resid_pdrop':0.0,'emb_pdrop':0.0,"
     "'tie_word_embeddings':false,'attn_config':{'clip_qkv':8,'kv_n_heads':8,"
     "'model_type':'','rope_theta':500000},'ffn_config':{'ffn_hidden_size':10752,"
     "'moe_jitter_eps':0.01,'moe_loss_weight':0.05,'moe_num_experts':16,"
     "'moe_top_k':4,'model_type':''}"},
    {6243584000,
     "'model_type':'chatglm','add_bias_linear':false,'add_qkv_bias':true,"
     "'apply_query_key_layer_scaling':true,"
     "'apply_residual_connection_post_layernorm':false,'attention_dropout':0.0,"
     "'attention_softmax_in_fp32':true,'bias_dropout_fusion':true,"
     "'ffn_hidden_size':13696,'fp32_residual_connection':false,'hidden_dropout':0.0,"
     "'hidden_size':4096,'kv_channels':128,'layernorm_epsilon':1e-05,"
     "'multi_query_attention':true,'multi_query_group_num':2,"
     "'num_attention_heads':32,'num_layers':28,'original_rope':true,"
     "'padded_vocab_size':65024,'post_layer_norm':true,'rmsnorm':true,"
     "'seq_length':8192,'use_cache':true,'tie_word_embeddings':false"},
    {9399951360,
     "'model_type':'chatglm','add_bias_linear':false,'add_qkv_bias':true,"
     "'ffn_hidden_size':13696,'hidden_size':4096,'kv_channels':128,"
     "'multi_query_attention':true,'multi_query_group_num':2,"
     "'num_attention_heads':32,'num_layers':40,'padded_vocab_size':151552,"
     "'post_layer_norm':true,'rmsnorm':true,'seq_length':131072,'rope_ratio':500,"
     "'tie_word_embeddings':false"},
    {2651307520,
     "'model_type':'gpt_neo','hidden_size':2560,'num_layers':32,'num_heads':20,"
     "'vocab_size':50257,'max_position_embeddings':2048,'intermediate_size':null,"
     "'window_size':256,'attention_types':[[['global','local'],16]],"
     "'attention_layers':['global','local','global','local','global','local',"
     "'global','local','global','local','global','local','global','local','global',"
     "'local','global','local','global','local','global','local','global','local',"
     "'global','local','global','local','global','local','global','local'],"
     "'activation_function':'gelu_new','embed_dropout':0,'resid_dropout':0,"
     "'attention_dropout':0"},
    {356712448,
     "'model_type':'codegen','n_embd':1024,'n_layer':20,'n_head':16,"
     "'n_positions':2048,'n_ctx':2048,'rotary_dim':32,'vocab_size':51200,"
     "'n_inner':null,'activation_function':'gelu_new','embd_pdrop':0,'resid_pdrop':0,"
     "'attn_pdrop':0,'tie_word_embeddings':false"},
    {277453056,
     "'hidden_size':768,'intermediate_size':3072,'num_hidden_layers':12,"
     "'num_attention_heads':12,'num_key_value_heads':null,'vocab_size':250002,"
     "'model_type':'xlm-roberta','max_position_embeddings':514,'type_vocab_size':1,"
     "'pad_token_id':1,'hidden_act':'gelu'"},
    {66362880, "'model_type':'distilbert','dim':768,'hidden_dim':3072,'n_layers':6,"
               "'n_heads':12,'vocab_size':30522,'max_position_embeddings':512,"
               "'activation':'gelu','sinusoidal_pos_embds':false,'tie_weights_':true,"
               "'dropout':0.1,'attention_dropout':0.1,'qa_dropout':0.1,"
               "'seq_classif_dropout':0.2"},
    {2724880896,
     "'hidden_size':2304,'intermediate_size':5760,'num_hidden_layers':40,"
     "'num_attention_heads':36,'num_key_value_heads':36,'vocab_size':122753,"
     "'model_type':'minicpm','scale_emb':12,'dim_model_base':256,'scale_depth':1.4,"
     "'hidden_act':'silu','max_position_embeddings':4096,'tie_word_embeddings':true"},
    {21825437888,
     "'hidden_size':2560,'intermediate_size':12288,'num_hidden_layers':28,"
     "'num_attention_heads':20,'num_key_value_heads':4,'vocab_size':103424,"
     "'model_type':'ernie4_5_moe','moe_num_experts':64,'moe_k':6,"
     "'moe_intermediate_size':1536,'moe_layer_interval':1,'moe_layer_start_index':1,"
     "'moe_layer_end_index':-1,'moe_num_shared_experts':2,'moe_use_aux_free':true,"
     "'use_bias':false,'moe_gate':'topk','tie_word_embeddings':true"},
    {1038741120, "'hidden_size':1152,'intermediate_size':6912,'num_hidden_layers':26,"
                 "'num_attention_heads':4,'num_key_value_heads':4,'vocab_size':256000,"
                 "'model_type':'vaultgemma','head_dim':256,'sliding_window':512,"
                 "'layer_types':['full_attention','full_attention','full_attention',"
                 "'full_attention','full_attention','full_attention','full_attention',"
                 "'full_attention','full_attention','full_attention','full_attention',"
                 "'full_attention','full_attention','full_attention','full_attention',"
                 "'full_attention','full_attention','full_attention','full_attention',"
                 "'full_attention','full_attention','full_attention','full_attention',"
                 "'full_attention','full_attention','full_attention'],"
                 "'query_pre_attn_scalar':256"},
    {564463616,
     "'model_type':'xglm','d_model':1024,'ffn_dim':4096,'num_layers':24,"
     "'attention_heads':16,'vocab_size':256008,'max_position_embeddings':2048,"
     "'activation_function':'gelu','scale_embedding':true,'attention_dropout':0.1,"
     "'dropout':0.1"},
    {406291456,
     "'model_type':'bart','is_encoder_decoder':true,'d_model':1024,"
     "'encoder_layers':12,'decoder_layers':12,'encoder_ffn_dim':4096,"
     "'decoder_ffn_dim':4096,'encoder_attention_heads':16,"
     "'decoder_attention_heads':16,'vocab_size':50265,'max_position_embeddings':1024,"
     "'normalize_before':false,'normalize_embedding':true,"
     "'activation_function':'gelu','dropout':0.1,'attention_dropout':0.1,"
     "'activation_dropout':0.1,'scale_embedding':false,'num_hidden_layers':12"},
    {36151104512, "'hidden_size':5120,'intermediate_size':27648,'num_hidden_layers':64,"
                  "'num_attention_heads':80,'num_key_value_heads':8,'vocab_size':155136,"
                  "'model_type':'seed_oss','head_dim':128,'attention_bias':true,"
                  "'attention_out_bias':false,'mlp_bias':false,'residual_dropout':0.1,"
                  "'tie_word_embeddings':false"},
    {80393183232,
     "'hidden_size':4096,'intermediate_size':3072,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':8,'vocab_size':128167,"
     "'model_type':'hunyuan_v1_moe','num_experts':64,'moe_topk':[8,8,8,8,8,8,8,8,8,8,"
     "8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8],'moe_intermediate_size':[3072,"
     "3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,"
     "3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,3072,"
     "3072],'num_shared_expert':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,1],'use_qk_norm':true,'use_mixed_mlp_moe':true,"
     "'tie_word_embeddings':true,'attention_head_dim':128,'head_dim':128,"
     "'use_cla':false,'cla_share_factor':2,'use_rotary_pos_emb':true,"
     "'mlp_bias':false,'attention_bias':false"},
    {41873153344,
     "'hidden_size':4096,'intermediate_size':6400,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':8,'vocab_size':32064,"
     "'model_type':'phimoe','num_local_experts':16,'num_experts_per_tok':2,"
     "'attention_bias':true,'lm_head_bias':true,'input_jitter_noise':0.01,"
     "'router_jitter_noise':0.01,'sliding_window':131072,'tie_word_embeddings':false"},
    {3836021760,
     "'hidden_size':3072,'intermediate_size':8192,'num_hidden_layers':32,"
     "'num_attention_heads':24,'num_key_value_heads':8,'vocab_size':200064,"
     "'model_type':'phi3','partial_rotary_factor':0.75,'tie_word_embeddings':true,"
     "'full_attn_mod':1,'interpolate_factor':1,'lm_head_bias':false,'mlp_bias':false"},
    {1170340608,
     "'model_type':'lfm2','hidden_size':2048,'block_dim':2048,'block_ff_dim':12288,"
     "'block_auto_adjust_ff_dim':true,'block_ffn_dim_multiplier':1.0,"
     "'block_multiple_of':256,'conv_L_cache':3,'conv_bias':false,'conv_dim':2048,"
     "'conv_dim_out':2048,'conv_use_xavier_init':true,'block_mlp_init_scale':1,"
     "'block_norm_eps':1e-05,'block_out_init_scale':1,'block_use_swiglu':true,"
     "'block_use_xavier_init':true,'full_attn_idxs':[2,5,8,10,12,14],"
     "'num_attention_heads':32,'num_heads':32,'num_hidden_layers':16,"
     "'num_key_value_heads':8,'vocab_size':65536,'use_pos_enc':true,"
     "'max_position_embeddings':128000"},
    {6939037248,
     "'hidden_size':1536,'intermediate_size':512,'num_hidden_layers':40,"
     "'num_attention_heads':12,'num_key_value_heads':4,'vocab_size':100352,"
     "'model_type':'granitemoehybrid','shared_intermediate_size':1024,"
     "'num_local_experts':64,'num_experts_per_tok':6,'mamba_n_heads':48,"
     "'mamba_d_head':64,'mamba_d_state':128,'mamba_n_groups':1,'mamba_d_conv':4,"
     "'mamba_expand':2,'mamba_conv_bias':true,'mamba_proj_bias':false,"
     "'position_embedding_type':'nope','tie_word_embeddings':true,"
     "'attention_bias':false,'layer_types':['mamba','mamba','mamba','mamba','mamba',"
     "'attention','mamba','mamba','mamba','mamba','mamba','mamba','mamba','mamba',"
     "'mamba','attention','mamba','mamba','mamba','mamba','mamba','mamba','mamba',"
     "'mamba','mamba','attention','mamba','mamba','mamba','mamba','mamba','mamba',"
     "'mamba','mamba','mamba','attention','mamba','mamba','mamba','mamba']"},
    {8804241408, "'hidden_size':4096,'intermediate_size':10240,'num_hidden_layers':48,"
                 "'num_attention_heads':32,'num_key_value_heads':2,'vocab_size':128512,"
                 "'model_type':'internlm3','head_dim':128,'bias':false,'qkv_bias':false,"
                 "'tie_word_embeddings':false"},
    {7818448896,
     "'model_type':'exaone','hidden_size':4096,'intermediate_size':14336,"
     "'num_layers':32,'num_attention_heads':32,'num_key_value_heads':8,"
     "'vocab_size':102400,'activation_function':'silu','embed_dropout':0.0,"
     "'layer_norm_epsilon':1e-05,'head_dim':128,'max_position_embeddings':32768,"
     "'tie_word_embeddings':false"},
    {13896668160,
     "'hidden_size':5120,'intermediate_size':13696,'num_hidden_layers':40,"
     "'num_attention_heads':40,'num_key_value_heads':null,'vocab_size':125696,"
     "'model_type':'baichuan','model_max_length':4096,'tie_word_embeddings':false,"
     "'z_loss_weight':0"},
    {129135360,
     "'model_type':'mamba','conv_kernel':4,'d_inner':1536,'d_model':768,'expand':2,"
     "'hidden_act':'silu','hidden_size':768,'intermediate_size':1536,'n_layer':24,"
     "'num_hidden_layers':24,'state_size':16,'time_step_rank':48,'use_bias':false,"
     "'use_conv_bias':true,'vocab_size':50280,'residual_in_fp32':true,"
     "'rms_norm':true,'pad_vocab_size_multiple':8,'fused_add_norm':true,"
     "'time_step_init_scheme':'random','torch_dtype':'float32','ssm_cfg':{}"},
    {2768345600,
     "'model_type':'mamba','conv_kernel':4,'d_model':2560,'expand':2,"
     "'hidden_size':2560,'intermediate_size':5120,'n_layer':64,"
     "'num_hidden_layers':64,'state_size':16,'time_step_rank':160,'use_bias':false,"
     "'use_conv_bias':true,'vocab_size':50280"},
    {7272665088,
     "'model_type':'falcon_mamba','conv_kernel':4,'expand':16,'hidden_act':'silu',"
     "'hidden_size':4096,'intermediate_size':8192,'layer_norm_epsilon':1e-05,"
     "'num_hidden_layers':64,'state_size':16,'time_step_rank':256,"
     "'tie_word_embeddings':false,'use_bias':false,'use_conv_bias':true,"
     "'vocab_size':65024,'mixer_rms_eps':1e-06,'use_mambapy':false"},
    {51570323328,
     "'model_type':'jamba','attn_layer_offset':4,'attn_layer_period':8,"
     "'expert_layer_offset':1,'expert_layer_period':2,'hidden_act':'silu',"
     "'hidden_size':4096,'intermediate_size':14336,'mamba_conv_bias':true,"
     "'mamba_d_conv':4,'mamba_d_state':16,'mamba_dt_rank':256,'mamba_expand':2,"
     "'mamba_inner_layernorms':true,'mamba_proj_bias':false,"
     "'num_attention_heads':32,'num_experts':16,'num_experts_per_tok':2,"
     "'num_hidden_layers':32,'num_key_value_heads':8,'tie_word_embeddings':false,"
     "'vocab_size':65536,'use_mamba_kernels':true,'n_ctx':262144,"
     "'calc_logits_for_entire_prompt':false"},
    {7232490496,
     "'model_type':'zamba','attn_layer_offset':4,'attn_layer_period':6,"
     "'hidden_act':'gelu','hidden_mamba_act':'silu','hidden_size':3712,"
     "'intermediate_size':14848,'mamba_conv_bias':true,'mamba_d_conv':4,"
     "'mamba_d_state':16,'mamba_dt_rank':232,'mamba_expand':2,"
     "'mamba_proj_bias':false,'n_mamba_heads':2,'num_attention_heads':16,"
     "'num_hidden_layers':76,'num_key_value_heads':16,'tie_word_embeddings':true,"
     "'vocab_size':32000,'attention_head_dim':464,'attention_hidden_size':7424,"
     "'max_position_embeddings':4096"},
    {521411104,
     "'model_type':'falcon_h1','attention_bias':false,'head_dim':64,"
     "'hidden_act':'silu','hidden_size':1024,'intermediate_size':2048,"
     "'mamba_chunk_size':128,'mamba_conv_bias':true,'mamba_d_conv':4,"
     "'mamba_d_head':64,'mamba_d_ssm':1536,'mamba_d_state':128,'mamba_expand':2,"
     "'mamba_n_groups':1,'mamba_n_heads':24,'mamba_norm_before_gate':false,"
     "'mamba_proj_bias':false,'mamba_rms_norm':false,'mlp_bias':false,"
     "'num_attention_heads':8,'num_hidden_layers':36,'num_key_value_heads':2,"
     "'projectors_bias':false,'tie_word_embeddings':false,'vocab_size':32784"},
    {1554863488,
     "'attention_bias':false,'attention_in_multiplier':1.0,"
     "'attn_layer_indices':null,'head_dim':128,'hidden_act':'silu',"
     "'hidden_size':2048,'intermediate_size':4608,'mamba_chunk_size':256,"
     "'mamba_conv_bias':true,'mamba_d_conv':4,'mamba_d_head':64,'mamba_d_ssm':3072,"
     "'mamba_d_state':256,'mamba_expand':2,'mamba_n_groups':1,'mamba_n_heads':48,"
     "'mamba_norm_before_gate':false,'mamba_proj_bias':false,'mamba_rms_norm':true,"
     "'mamba_use_mlp':true,'max_position_embeddings':131072,'mlp_bias':false,"
     "'model_type':'falcon_h1','num_attention_heads':8,'num_hidden_layers':24,"
     "'num_key_value_heads':2,'projectors_bias':false,'rms_norm_eps':1e-05,"
     "'tie_word_embeddings':false,'vocab_size':65537"},
    {183831552,
     "'model_type':'deberta-v2','attention_probs_dropout_prob':0.1,"
     "'hidden_act':'gelu','hidden_dropout_prob':0.1,'hidden_size':768,"
     "'initializer_range':0.02,'intermediate_size':3072,"
     "'max_position_embeddings':512,'relative_attention':true,"
     "'position_buckets':256,'norm_rel_ebd':'layer_norm','share_att_key':true,"
     "'pos_att_type':'p2c|c2p','layer_norm_eps':1e-07,'max_relative_positions':-1,"
     "'position_biased_input':false,'num_attention_heads':12,'num_hidden_layers':12,"
     "'type_vocab_size':0,'vocab_size':128100"},
    {138601728,
     "'model_type':'deberta','attention_probs_dropout_prob':0.1,'hidden_act':'gelu',"
     "'hidden_dropout_prob':0.1,'hidden_size':768,'intermediate_size':3072,"
     "'max_position_embeddings':512,'relative_attention':true,"
     "'pos_att_type':'c2p|p2c','max_relative_positions':-1,'padding_idx':0,"
     "'position_biased_input':false,'num_attention_heads':12,'num_hidden_layers':12,"
     "'type_vocab_size':0,'vocab_size':50265"},
    /* 11,683,584 with its pooler, and without what brings states to the width of the table */
    {11191296,
     "'model_type':'albert','attention_probs_dropout_prob':0,'embedding_size':128,"
     "'hidden_act':'gelu_new','hidden_dropout_prob':0,'hidden_size':768,"
     "'inner_group_num':1,'intermediate_size':3072,'max_position_embeddings':512,"
     "'num_attention_heads':12,'num_hidden_groups':1,'num_hidden_layers':12,"
     "'type_vocab_size':2,'vocab_size':30000,'net_structure_type':0,'gap_size':0,"
     "'num_memory_blocks':0,'down_scale_factor':1"},
    {191034624,
     "'model_type':'rwkv7','a_low_rank_dim':64,'attn':null,'attn_mode':'chunk',"
     "'decay_low_rank_dim':64,'fuse_cross_entropy':true,'fuse_norm':false,"
     "'gate_low_rank_dim':128,'head_dim':64,'hidden_act':'sqrelu',"
     "'hidden_ratio':4.0,'hidden_size':768,'intermediate_size':3072,"
     "'norm_bias':true,'norm_first':true,'num_heads':12,'num_hidden_layers':12,"
     "'tie_word_embeddings':false,'v_low_rank_dim':32,'vocab_size':65536"},
    /* 675,129,632 with positions, which are not trained */
    {674834720,
     "'_class_name':'DiTTransformer2DModel','_diffusers_version':'0.12.0.dev0',"
     "'activation_fn':'gelu-approximate','attention_bias':true,"
     "'attention_head_dim':72,'dropout':0.0,'in_channels':4,"
     "'norm_elementwise_affine':false,'norm_num_groups':32,"
     "'norm_type':'ada_norm_zero','num_attention_heads':16,"
     "'num_embeds_ada_norm':1000,'num_layers':28,'out_channels':8,'patch_size':2,"
     "'sample_size':32,'upcast_attention':false"},
    {14288491584,
     "'_class_name':'WanTransformer3DModel','_diffusers_version':'0.33.0.dev0',"
     "'added_kv_proj_dim':null,'attention_head_dim':128,'cross_attn_norm':true,"
     "'eps':1e-06,'ffn_dim':13824,'freq_dim':256,'image_dim':null,'in_channels':16,"
     "'num_attention_heads':40,'num_layers':40,'out_channels':16,'patch_size':[1,2,"
     "2],'qk_norm':'rms_norm_across_heads','rope_max_seq_len':1024,'text_dim':4096"},
    {1418996800,
     "'_class_name':'WanTransformer3DModel','attention_head_dim':128,"
     "'cross_attn_norm':true,'eps':1e-06,'ffn_dim':8960,'freq_dim':256,"
     "'in_channels':16,'num_attention_heads':12,'num_layers':30,'out_channels':16,"
     "'patch_size':[1,2,2],'qk_norm':'rms_norm_across_heads',"
     "'rope_max_seq_len':1024,'text_dim':4096"},
    {610856096,
     "'_class_name':'PixArtTransformer2DModel','activation_fn':'gelu-approximate',"
     "'attention_bias':true,'attention_head_dim':72,'caption_channels':4096,"
     "'cross_attention_dim':1152,'in_channels':4,'norm_type':'ada_norm_single',"
     "'num_attention_heads':16,'num_embeds_ada_norm':1000,'num_layers':28,"
     "'out_channels':8,'patch_size':2,'sample_size':64"},
    {11901408320,
     "'_class_name':'FluxTransformer2DModel','_diffusers_version':'0.30.0.dev0',"
     "'attention_head_dim':128,'guidance_embeds':true,'in_channels':64,"
     "'joint_attention_dim':4096,'num_attention_heads':24,'num_layers':19,"
     "'num_single_layers':38,'patch_size':1,'pooled_projection_dim':768"},
    {11891178560,
     "'_class_name':'FluxTransformer2DModel','_diffusers_version':'0.30.0.dev0',"
     "'attention_head_dim':128,'guidance_embeds':false,'in_channels':64,"
     "'joint_attention_dim':4096,'num_attention_heads':24,'num_layers':19,"
     "'num_single_layers':38,'patch_size':1,'pooled_projection_dim':768"},
    {2028328000,
     "'_class_name':'SD3Transformer2DModel','attention_head_dim':64,"
     "'caption_projection_dim':1536,'in_channels':16,'joint_attention_dim':4096,"
     "'num_attention_heads':24,'num_layers':24,'out_channels':16,'patch_size':2,"
     "'pooled_projection_dim':2048,'pos_embed_max_size':192,'sample_size':128"},
    {346763264,
     "'hidden_size':1024,'intermediate_size':4096,'num_hidden_layers':24,'num_attent"
     "ion_heads':16,'vocab_size':42384,'model_type':'biogpt','max_position_embedding"
     "s':1024,'scale_embedding':true,'layerdrop':0.0,'activation_dropout':0.0"},
    {116534784,
     "'model_type':'openai-gpt','n_embd':768,'n_layer':12,'n_head':12,'n_positions':"
     "512,'n_ctx':512,'vocab_size':40478,'afn':'gelu'"},
    {1637964550,
     "'model_type':'ctrl','n_embd':1280,'dff':8192,'n_layer':48,'n_head':16,'n_posit"
     "ions':256,'n_ctx':512,'vocab_size':246534,'tie_word_embeddings':true"},
    {136731648,
     "'model_type':'nomic_bert','n_embd':768,'n_inner':3072,'n_layer':12,'n_head':12"
     ",'n_positions':8192,'vocab_size':30528,'type_vocab_size':2,'activation_functio"
     "n':'swiglu','qkv_proj_bias':false,'mlp_fc1_bias':false,'mlp_fc2_bias':false,'r"
     "otary_emb_fraction':1.0,'prenorm':false"},
    {364802560,
     "'model_type':'blenderbot','d_model':1280,'encoder_layers':2,'decoder_layers':1"
     "2,'encoder_ffn_dim':5120,'decoder_ffn_dim':5120,'encoder_attention_heads':32,'"
     "decoder_attention_heads':32,'vocab_size':8008,'max_position_embeddings':128,'i"
     "s_encoder_decoder':true"},
    {8170848256,
     "'hidden_size':4096,'intermediate_size':12800,'num_hidden_layers':40,'num_atten"
     "tion_heads':32,'vocab_size':49155,'model_type':'granite','tie_word_embeddings'"
     ":true,'attention_multiplier':0.0078125,'embedding_multiplier':12,'logits_scali"
     "ng':16,'residual_multiplier':0.22,'attention_bias':false,'mlp_bias':false,'hid"
     "den_act':'silu','num_key_value_heads':8"},
    {3402836480,
     "'hidden_size':2560,'intermediate_size':8192,'num_hidden_layers':40,'num_attent"
     "ion_heads':40,'vocab_size':100352,'model_type':'granitemoehybrid','shared_inte"
     "rmediate_size':8192,'num_local_experts':0,'num_experts_per_tok':0,'mamba_n_hea"
     "ds':128,'mamba_d_head':64,'position_embedding_type':'rope','tie_word_embedding"
     "s':true,'layer_types':['attention','attention','attention','attention','attent"
     "ion','attention','attention','attention','attention','attention','attention','"
     "attention','attention','attention','attention','attention','attention','attent"
     "ion','attention','attention','attention','attention','attention','attention','"
     "attention','attention','attention','attention','attention','attention','attent"
     "ion','attention','attention','attention','attention','attention','attention','"
     "attention','attention','attention'],'num_key_value_heads':8"},
    {8888227328,
     "'hidden_size':4480,'intermediate_size':15680,'num_hidden_layers':56,'num_atten"
     "tion_heads':40,'vocab_size':131072,'model_type':'nemotron_h','head_dim':128,'a"
     "ttention_head_dim':128,'hybrid_override_pattern':'M-M-M-MM-M-M-M*-M-M-M*-M-M-M"
     "-M*-M-M-M-M*-M-MM-M-M-M-M-M-','mamba_num_heads':128,'mamba_head_dim':80,'ssm_s"
     "tate_size':128,'n_groups':8,'conv_kernel':4,'use_bias':false,'mlp_hidden_act':"
     "'relu2','expand':2,'use_conv_bias':true,'num_key_value_heads':8"},
    {1170340608,
     "'model_type':'lfm2_vl','vision_config':{'model_type':'siglip_vision_model','hi"
     "dden_size':1152,'num_hidden_layers':27},'text_config':{'model_type':'lfm2','hi"
     "dden_size':2048,'block_dim':2048,'block_ff_dim':12288,'block_auto_adjust_ff_di"
     "m':true,'block_ffn_dim_multiplier':1.0,'block_multiple_of':256,'conv_L_cache':"
     "3,'conv_bias':false,'num_attention_heads':32,'num_hidden_layers':16,'num_key_v"
     "alue_heads':8,'vocab_size':65536,'layer_types':['conv','conv','full_attention'"
     ",'conv','conv','full_attention','conv','conv','full_attention','conv','full_at"
     "tention','conv','full_attention','conv','full_attention','conv']}"},
    {13716198400,
     "'hidden_size':5120,'intermediate_size':13824,'num_hidden_layers':40,'num_atten"
     "tion_heads':40,'vocab_size':100352,'model_type':'olmo2','tie_word_embeddings':"
     "false,'attention_bias':false,'mlp_bias':false,'hidden_act':'silu','num_key_val"
     "ue_heads':40"},
    {6919161856,
     "'hidden_size':2048,'intermediate_size':1024,'num_hidden_layers':16,'num_attent"
     "ion_heads':16,'vocab_size':50304,'model_type':'olmoe','num_experts':64,'num_ex"
     "perts_per_tok':8,'norm_topk_prob':false,'tie_word_embeddings':false,'num_key_v"
     "alue_heads':16"},
    {142774381696,
     "'hidden_size':4096,'intermediate_size':10944,'num_hidden_layers':62,'num_atten"
     "tion_heads':32,'vocab_size':152064,'model_type':'dots1','moe_intermediate_size"
     "':1408,'n_routed_experts':128,'num_experts_per_tok':6,'n_shared_experts':2,'fi"
     "rst_k_dense_replace':1,'norm_topk_prob':true,'routed_scaling_factor':2.5,'scor"
     "ing_func':'noaux_tc','n_group':1,'topk_group':1,'attention_bias':false,'tie_wo"
     "rd_embeddings':false,'num_key_value_heads':32"},
    {7615616512,
     "'model_type':'qwen2_5_omni','thinker_config':{'model_type':'qwen2_5_omni_think"
     "er','audio_config':{'x':1},'text_config':{'hidden_size':3584,'intermediate_siz"
     "e':18944,'num_hidden_layers':28,'num_attention_heads':28,'vocab_size':152064,'"
     "model_type':'qwen2_5_omni_text','use_sliding_window':false,'sliding_window':32"
     "768,'max_window_layers':28,'tie_word_embeddings':false,'num_key_value_heads':4"
     "}}"},
    {2795443200,
     "'hidden_size':2560,'intermediate_size':6912,'num_hidden_layers':32,'num_attent"
     "ion_heads':32,'vocab_size':50304,'model_type':'stablelm_epoch','rope_pct':0.25"
     ",'norm_eps':1e-05,'tie_word_embeddings':false,'num_key_value_heads':32"},
    {521411104,
     "'hidden_size':1024,'intermediate_size':2048,'num_hidden_layers':36,'num_attent"
     "ion_heads':8,'vocab_size':32784,'model_type':'falcon_h1','head_dim':64,'mamba_"
     "d_ssm':1536,'mamba_d_state':128,'mamba_n_heads':24,'mamba_d_head':64,'mamba_n_"
     "groups':1,'mamba_d_conv':4,'mamba_expand':2,'mamba_conv_bias':true,'mamba_proj"
     "_bias':false,'mamba_rms_norm':false,'tie_word_embeddings':false,'num_key_value"
     "_heads':2"},
    {32233522176,
     "'hidden_size':5120,'intermediate_size':27648,'num_hidden_layers':64,'num_atten"
     "tion_heads':40,'vocab_size':100278,'model_type':'olmo3','sliding_window':4096,"
     "'layer_types':['sliding_attention','sliding_attention','sliding_attention','fu"
     "ll_attention','sliding_attention','sliding_attention','sliding_attention','ful"
     "l_attention','sliding_attention','sliding_attention','sliding_attention','full"
     "_attention','sliding_attention','sliding_attention','sliding_attention','full_"
     "attention','sliding_attention','sliding_attention','sliding_attention','full_a"
     "ttention','sliding_attention','sliding_attention','sliding_attention','full_at"
     "tention','sliding_attention','sliding_attention','sliding_attention','full_att"
     "ention','sliding_attention','sliding_attention','sliding_attention','full_atte"
     "ntion','sliding_attention','sliding_attention','sliding_attention','full_atten"
     "tion','sliding_attention','sliding_attention','sliding_attention','full_attent"
     "ion','sliding_attention','sliding_attention','sliding_attention','full_attenti"
     "on','sliding_attention','sliding_attention','sliding_attention','full_attentio"
     "n','sliding_attention','sliding_attention','sliding_attention','full_attention"
     "','sliding_attention','sliding_attention','sliding_attention','full_attention'"
     ",'sliding_attention','sliding_attention','sliding_attention','full_attention',"
     "'sliding_attention','sliding_attention','sliding_attention','full_attention'],"
     "'tie_word_embeddings':false,'attention_bias':false,'num_key_value_heads':8"},
    /* by their shapes, of which only a rounded sum is published */
    {2 * 100352LL * 2048 + 2048 + 10 * 2048LL * (2 * 6144 + 2048 + 48) +
         30 * 2048LL * (2 * 8192 + 2048 + 64) + 40 * (256 + 4096) + 3 * 2048LL * 8192 +
         39 * (257 * 3 * 2048LL * 512 + 2049 * 256),
     "'hidden_size':2048,'intermediate_size':8192,'num_hidden_layers':40,'num_attent"
     "ion_heads':48,'vocab_size':100352,'model_type':'laguna','head_dim':128,'num_ex"
     "perts':256,'num_experts_per_tok':8,'moe_intermediate_size':512,'shared_expert_"
     "intermediate_size':512,'tie_word_embeddings':false,'gating':true,'sliding_wind"
     "ow':512,'layer_types':['full_attention','sliding_attention','sliding_attention"
     "','sliding_attention','full_attention','sliding_attention','sliding_attention'"
     ",'sliding_attention','full_attention','sliding_attention','sliding_attention',"
     "'sliding_attention','full_attention','sliding_attention','sliding_attention','"
     "sliding_attention','full_attention','sliding_attention','sliding_attention','s"
     "liding_attention','full_attention','sliding_attention','sliding_attention','sl"
     "iding_attention','full_attention','sliding_attention','sliding_attention','sli"
     "ding_attention','full_attention','sliding_attention','sliding_attention','slid"
     "ing_attention','full_attention','sliding_attention','sliding_attention','slidi"
     "ng_attention','full_attention','sliding_attention','sliding_attention','slidin"
     "g_attention'],'partial_rotary_factor':0.5,'mlp_layer_types':['dense','sparse',"
     "'sparse','sparse','sparse','sparse','sparse','sparse','sparse','sparse','spars"
     "e','sparse','sparse','sparse','sparse','sparse','sparse','sparse','sparse','sp"
     "arse','sparse','sparse','sparse','sparse','sparse','sparse','sparse','sparse',"
     "'sparse','sparse','sparse','sparse','sparse','sparse','sparse','sparse','spars"
     "e','sparse','sparse','sparse'],'moe_routed_scaling_factor':2.5,'num_attention_"
     "heads_per_layer':[48,64,64,64,48,64,64,64,48,64,64,64,48,64,64,64,48,64,64,64,"
     "48,64,64,64,48,64,64,64,48,64,64,64,48,64,64,64,48,64,64,64],'moe_apply_router"
     "_weight_on_input':false,'num_key_value_heads':8"},
    {23 * (12 * SD_SQUARE + 8 * SD_SQUARE + 2 * SD_NETWORK + 256) +
         13 * (7 * SD_SQUARE + 128) + 15 * SD_SQUARE + SD_NETWORK + 256 + 2 * SD_SQUARE +
         1536 * 64 + 64 + (64 + 256 + 2048 + 4096 + 4) * 1536LL + 2 * SD_SQUARE,
     "'_class_name':'SD3Transformer2DModel','_diffusers_version':'0.34.0','num_layer"
     "s':24,'num_attention_heads':24,'attention_head_dim':64,'in_channels':16,'out_c"
     "hannels':16,'patch_size':2,'joint_attention_dim':4096,'pooled_projection_dim':"
     "2048,'caption_projection_dim':1536,'pos_embed_max_size':384,'qk_norm':'rms_nor"
     "m','sample_size':128,'dual_attention_layers':[0,1,2,3,4,5,6,7,8,9,10,11,12]"},
};

/* Models some of whose numbers count otherwise here (data/families.yaml says which): at most one
 * in a thousand. */
static const Published NEAR[] = {
    {222903552,
     "'model_type':'t5','is_encoder_decoder':true,'d_model':768,'d_kv':64,"
     "'d_ff':3072,'num_layers':12,'num_heads':12,'vocab_size':32128,"
     "'relative_attention_num_buckets':32,'dropout_rate':0.1,'n_positions':512,"
     "'tie_word_embeddings':true"},
    {2849757184, "'model_type':'t5','is_encoder_decoder':true,'d_model':2048,'d_kv':64,"
                 "'d_ff':5120,'num_layers':24,'num_decoder_layers':24,'num_heads':32,"
                 "'vocab_size':32128,'relative_attention_num_buckets':32,"
                 "'relative_attention_max_distance':128,'feed_forward_proj':'gated-gelu',"
                 "'is_gated_act':true,'dense_act_fn':'gelu_new','dropout_rate':0.1,"
                 "'tie_word_embeddings':false"},
    {11307321344, "'model_type':'t5','is_encoder_decoder':true,'d_model':1024,'d_kv':128,"
                  "'d_ff':65536,'num_layers':24,'num_heads':128,'vocab_size':32128,"
                  "'relative_attention_num_buckets':32,'dropout_rate':0.1"},
    {1543490560,
     "'model_type':'whisper','is_encoder_decoder':true,'d_model':1280,"
     "'encoder_layers':32,'decoder_layers':32,'encoder_ffn_dim':5120,"
     "'decoder_ffn_dim':5120,'encoder_attention_heads':20,"
     "'decoder_attention_heads':20,'vocab_size':51866,'max_source_positions':1500,"
     "'max_target_positions':448,'num_mel_bins':128,'activation_function':'gelu',"
     "'num_hidden_layers':32"},
    {37760640,
     "'model_type':'whisper','is_encoder_decoder':true,'d_model':384,"
     "'encoder_layers':4,'decoder_layers':4,'encoder_ffn_dim':1536,"
     "'decoder_ffn_dim':1536,'encoder_attention_heads':6,'decoder_attention_heads':6,"
     "'vocab_size':51865,'max_source_positions':1500,'max_target_positions':448,"
     "'num_mel_bins':80,'activation_function':'gelu','num_hidden_layers':4"},
    {9775192064,
     "'model_type':'mllama','image_token_index':128256,"
     "'text_config':{'hidden_size':4096,'intermediate_size':14336,"
     "'num_hidden_layers':40,'num_attention_heads':32,'num_key_value_heads':8,"
     "'vocab_size':128256,'model_type':'mllama_text_model',"
     "'cross_attention_layers':[3,8,13,18,23,28,33,38],'hidden_act':'silu',"
     "'rope_theta':500000.0,'tie_word_embeddings':false},"
     "'vision_config':{'model_type':'mllama_vision_model','hidden_size':1280,"
     "'attention_heads':16,'num_hidden_layers':32,'num_global_layers':8,"
     "'image_size':560,'patch_size':14,'intermediate_size':5120,"
     "'intermediate_layers_indices':[3,7,15,23,30],'vision_output_dim':7680,"
     "'max_num_tiles':4,'supported_aspect_ratios':[[1,1]]}"},
    {6888095744,
     "'hidden_size':4096,'intermediate_size':11008,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':32,'vocab_size':50304,"
     "'model_type':'olmo','clip_qkv':null,'attention_bias':false,'hidden_act':'silu',"
     "'max_position_embeddings':2048,'tie_word_embeddings':false"},
    {149014272, "'model_type':'modernbert','hidden_size':768,'intermediate_size':1152,"
                "'num_hidden_layers':22,'num_attention_heads':12,'vocab_size':50368,"
                "'max_position_embeddings':8192,'global_attn_every_n_layers':3,"
                "'local_attention':128,'norm_bias':false,'attention_bias':false,"
                "'mlp_bias':false,'decoder_bias':true,'classifier_bias':false,"
                "'hidden_activation':'gelu','norm_eps':1e-05,'global_rope_theta':160000,"
                "'local_rope_theta':10000,'tie_word_embeddings':true"},
    {456089655296,
     "'hidden_size':6144,'intermediate_size':9216,'num_hidden_layers':80,"
     "'num_attention_heads':64,'num_key_value_heads':8,'vocab_size':200064,"
     "'model_type':'minimax_m1','head_dim':128,'attn_type_list':[0,0,0,0,0,0,0,1,0,0,"
     "0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,"
     "0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1],"
     "'num_local_experts':32,'num_experts_per_tok':2,'rotary_dim':64,'postnorm':true,"
     "'shared_intermediate_size':0,'shared_moe_mode':'sigmoid',"
     "'tie_word_embeddings':false"},
    {8053338176,
     "'hidden_size':4096,'intermediate_size':21504,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':8,'vocab_size':131072,"
     "'model_type':'apertus','hidden_act':'xielu','qk_norm':true,'post_norm':false,"
     "'attention_bias':false,'mlp_bias':false,'tie_word_embeddings':false,"
     "'max_position_embeddings':65536"},
    {103810674688,
     "'hidden_size':12288,'intermediate_size':33792,'num_hidden_layers':64,"
     "'num_attention_heads':96,'num_key_value_heads':8,'vocab_size':256000,"
     "'model_type':'cohere','layer_norm_eps':1e-05,'logit_scale':0.833,"
     "'use_qk_norm':true,'attention_bias':false,'max_position_embeddings':131072"},
    {9780236288,
     "'hidden_size':4096,'intermediate_size':14336,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':8,'vocab_size':128256,"
     "'model_type':'bamba','attn_layer_indices':[9,18,27],'attn_rotary_emb':64,"
     "'mamba_n_heads':128,'mamba_d_head':64,'mamba_n_groups':1,'mamba_d_state':128,"
     "'mamba_d_conv':4,'mamba_expand':2,'mamba_conv_bias':true,"
     "'mamba_proj_bias':false,'tie_word_embeddings':false,"
     "'partial_rotary_factor':0.5"},
    {4073935360,
     "'hidden_size':2560,'intermediate_size':6400,'num_hidden_layers':62,"
     "'num_attention_heads':40,'num_key_value_heads':40,'vocab_size':73448,"
     "'model_type':'minicpm3','q_lora_rank':768,'kv_lora_rank':256,"
     "'qk_nope_head_dim':64,'qk_rope_head_dim':32,'v_head_dim':64,'scale_emb':12,"
     "'dim_model_base':256,'scale_depth':1.4,'tie_word_embeddings':true"},
    {8027914240,
     "'hidden_size':4096,'intermediate_size':14336,'num_hidden_layers':32,"
     "'num_attention_heads':32,'num_key_value_heads':8,'vocab_size':256000,"
     "'model_type':'cohere2','layer_norm_eps':1e-05,'logit_scale':0.25,"
     "'sliding_window':4096,'sliding_window_pattern':4,'attention_bias':false,"
     "'hidden_act':'silu','rope_theta':50000,'layer_switch':4,"
     "'use_embedding_sharing':true,'use_gated_activation':true,"
     "'use_parallel_block':true,'use_parallel_embedding':false,"
     "'position_embedding_type':'rope_gptj','rotary_pct':1.0"},
    {2412820480,
     "'hidden_size':2560,'intermediate_size':6912,'num_hidden_layers':30,'num_attent"
     "ion_heads':20,'vocab_size':128256,'model_type':'bitnet','hidden_act':'relu2','"
     "tie_word_embeddings':true,'max_position_embeddings':4096,'quantization_config'"
     ":{},'num_key_value_heads':5"},
    {12143191040,
     "'hidden_size':5120,'intermediate_size':13824,'num_hidden_layers':40,'num_atten"
     "tion_heads':32,'vocab_size':100352,'model_type':'stablelm','partial_rotary_fac"
     "tor':0.25,'use_qkv_bias':false,'qk_layernorm':true,'use_parallel_residual':tru"
     "e,'tie_word_embeddings':false,'num_key_value_heads':8"},
    {20430401088,
     "'_class_name':'QwenImageTransformer2DModel','_diffusers_version':'0.34.0','att"
     "ention_head_dim':128,'axes_dims_rope':[16,56,56],'guidance_embeds':false,'in_c"
     "hannels':64,'joint_attention_dim':3584,'num_attention_heads':24,'num_layers':6"
     "0,'out_channels':16,'patch_size':2"},
    {8057000000,
     "'_class_name':'SD3Transformer2DModel','_diffusers_version':'0.34.0','num_layer"
     "s':38,'num_attention_heads':38,'attention_head_dim':64,'in_channels':16,'out_c"
     "hannels':16,'patch_size':2,'joint_attention_dim':4096,'pooled_projection_dim':"
     "2048,'caption_projection_dim':2432,'pos_embed_max_size':192,'qk_norm':'rms_nor"
     "m','sample_size':128,'dual_attention_layers':[]"},
    {86580480,
     "'hidden_size':768,'mlp_ratio':4,'num_hidden_layers':12,'num_attention_heads':1"
     "2,'model_type':'dinov2','image_size':518,'patch_size':14,'layerscale_value':1."
     "0,'use_swiglu_ffn':false,'qkv_bias':true"},
    {1136480768,
     "'hidden_size':1536,'mlp_ratio':4,'num_hidden_layers':40,'num_attention_heads':"
     "24,'model_type':'dinov2','image_size':518,'patch_size':14,'use_swiglu_ffn':tru"
     "e,'qkv_bias':true"},
    {6716035072,
     "'hidden_size':4096,'intermediate_size':8192,'num_hidden_layers':40,'num_attent"
     "ion_heads':32,'model_type':'dinov3_vit','image_size':224,'patch_size':16,'num_"
     "register_tokens':4,'query_bias':false,'key_bias':false,'value_bias':false,'use"
     "_gated_mlp':true,'hidden_act':'silu','mlp_bias':true,'proj_bias':true"},
    {316000000000,
     "'model_type':'step3_vl','vision_config':{},'text_config':{'hidden_size':7168,'"
     "intermediate_size':18432,'num_hidden_layers':61,'num_attention_heads':64,'voca"
     "b_size':128815,'model_type':'step3_text','head_dim':256,'share_q_dim':2048,'mo"
     "e_intermediate_size':5120,'moe_num_experts':48,'moe_top_k':3,'share_expert_dim"
     "':5120,'moe_layers_enum':'4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,2"
     "3,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,4"
     "9,50,51,52,53,54,55,56,57,58,59','norm_expert_weight':false,'max_seq_len':6553"
     "6,'num_key_value_heads':1}"},
    {560988160,
     "'hidden_size':1280,'intermediate_size':5120,'num_hidden_layers':20,'num_attent"
     "ion_heads':10,'vocab_size':65536,'model_type':'nanochat','tie_word_embeddings'"
     ":false,'hidden_act':'relu2','final_logit_softcapping':15.0,'num_key_value_head"
     "s':10"},
    {4618806784,
     "'hidden_size':2560,'intermediate_size':18432,'num_hidden_layers':36,'num_atten"
     "tion_heads':20,'vocab_size':128004,'model_type':'arcee','head_dim':128,'hidden"
     "_act':'relu2','tie_word_embeddings':false,'attention_bias':false,'mlp_bias':fa"
     "lse,'num_key_value_heads':4"},
    {108895872,
     "'hidden_size':768,'intermediate_size':3072,'num_hidden_layers':12,'num_attenti"
     "on_heads':12,'vocab_size':30527,'model_type':'mpnet','max_position_embeddings'"
     ":514,'relative_attention_num_buckets':32,'hidden_act':'gelu'"},
    {8492000000,
     "'model_type':'emu3','text_config':{'hidden_size':4096,'intermediate_size':1433"
     "6,'num_hidden_layers':32,'num_attention_heads':32,'vocab_size':184622,'model_t"
     "ype':'emu3_text_model','tie_word_embeddings':false,'num_key_value_heads':8}"},
    {72000000000,
     "'hidden_size':5120,'intermediate_size':1344,'num_hidden_layers':48,'num_attent"
     "ion_heads':40,'vocab_size':153376,'model_type':'PanguProMoE','num_experts':64,"
     "'num_experts_per_tok':8,'moe_intermediate_size':1344,'shared_expert_intermedia"
     "te_size':5376,'tie_word_embeddings':false,'num_key_value_heads':8"},
    {1960000000,
     "'hidden_size':2048,'intermediate_size':6144,'num_hidden_layers':32,'num_attent"
     "ion_heads':16,'vocab_size':128256,'model_type':'youtu','kv_lora_rank':512,'q_l"
     "ora_rank':1536,'qk_nope_head_dim':128,'qk_rope_head_dim':64,'v_head_dim':128,'"
     "tie_word_embeddings':true,'num_key_value_heads':16"},
    {673000000000,
     "'model_type':'mistral3','text_config':{'hidden_size':7168,'intermediate_size':"
     "16384,'num_hidden_layers':61,'num_attention_heads':128,'vocab_size':131072,'mo"
     "del_type':'mistral4','n_routed_experts':128,'num_experts_per_tok':4,'moe_inter"
     "mediate_size':4096,'n_shared_experts':1,'first_k_dense_replace':3,'kv_lora_ran"
     "k':512,'q_lora_rank':1536,'qk_nope_head_dim':128,'qk_rope_head_dim':64,'v_head"
     "_dim':128,'topk_method':'greedy','scoring_func':'softmax','norm_topk_prob':tru"
     "e,'routed_scaling_factor':1.0,'num_key_value_heads':128}"},
};

/* The graph of `{body}` with ' for ", and a list of keys, or NULL. */
static Graph *graph_with(const char *body, const char *list, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-published-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autofree char *text = g_strdup_printf("{%s}", body);
    g_strdelimit(text, "'", '"');
    assert_true(g_file_set_contents(path, text, -1, NULL));
    g_autofree char *spec = g_strconcat(path, list, NULL);
    Graph *graph = model_build(spec, 1, NULL, error);
    g_unlink(path);
    return graph;
}

static Graph *graph_of(const char *body, GError **error)
{
    return graph_with(body, "", error);
}

/* Files of other programs, which name neither a family nor a class. */
static void test_without_a_family(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint64_t parameters;
    } CASE[] = {
        {"'dim':4096,'n_layers':32,'n_heads':32,'n_kv_heads':8,'vocab_size':128256,"
         "'ffn_dim_multiplier':1.3,'multiple_of':1024,'norm_eps':1e-5,'rope_theta':5e5",
         8030261248},
        {"'dim':4096,'n_layers':32,'n_heads':32,'vocab_size':-1,'multiple_of':256,"
         "'norm_eps':1e-5",
         6738415616},
        {"'dim':4096,'n_layers':32,'head_dim':128,'hidden_dim':14336,'n_heads':32,"
         "'n_kv_heads':8,'norm_eps':1e-5,'vocab_size':32000,"
         "'moe':{'num_experts_per_tok':2,'num_experts':8}",
         46702792704},
        {"'d_model':2560,'n_layer':64,'vocab_size':50277,'ssm_cfg':{},'rms_norm':true,"
         "'residual_in_fp32':true,'fused_add_norm':true,'pad_vocab_size_multiple':8",
         2768345600},
        {"'d_model':2560,'d_intermediate':0,'n_layer':64,'vocab_size':50277,"
         "'ssm_cfg':{'layer':'Mamba2'},'attn_layer_idx':[],'attn_cfg':{},"
         "'pad_vocab_size_multiple':16,'tie_embeddings':true",
         2702599680}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = graph_of(CASE[i].body, &error);
        assert_no_error(error);
        assert_int_equal(graph_parameter_count(graph), CASE[i].parameters);
    }
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

static void test_near(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(NEAR); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = graph_of(NEAR[i].json, &error);
        assert_no_error(error);
        const double got = (double)graph_parameter_count(graph),
                     want = (double)NEAR[i].parameters;
        if (fabs(got / want - 1) > 1e-3)
            fail_msg("%s: %.0f parameters, expected %.0f", NEAR[i].json, got, want);
    }
}

/* Trained parameters by adapter_config.json, as PEFT counts them; NULL: refused, with `why`. */
static void test_adapters(void **state)
{
    (void)state;
#define ATTENTION_QV "'r':8,'target_modules':['q_proj','v_proj']"
#define ALL_SEVEN                                                                        \
    "'r':16,'target_modules':['q_proj','k_proj','v_proj','o_proj','gate_proj','up_proj'" \
    ","                                                                                  \
    "'down_proj']"
#define LLAMA_2 SIZES(4096, 11008, 32, 32, 32, 32000) LLAMA UNTIED
#define LLAMA_3 SIZES(4096, 14336, 32, 32, 8, 128256) LLAMA UNTIED
    static const struct {
        const char *model, *adapter, *why;
        uint64_t trained;
    } row[] = {
        {LLAMA_2, ATTENTION_QV ",'bias':'none','use_dora':false", NULL, 4194304},
        {LLAMA_2, ALL_SEVEN ",'rank_pattern':{},'lora_alpha':32", NULL, 39976960},
        {LLAMA_3, ATTENTION_QV, NULL, 3407872},
        {LLAMA_3, ALL_SEVEN, NULL, 41943040},
        {LLAMA_3, ATTENTION_QV ",'modules_to_save':['lm_head','embed_tokens']", NULL,
         3407872 + 2 * (uint64_t)128256 * 4096},
        {LLAMA_3, "'r':16,'target_modules':'all-linear','modules_to_save':['lm_head']",
         NULL, 41943040 + (uint64_t)128256 * 4096},
        {LLAMA_3, ATTENTION_QV ",'use_dora':true", "use_dora: no op", 0},
        {LLAMA_3, ATTENTION_QV ",'rank_pattern':{'q_proj':4}", "rank_pattern", 0},
        {LLAMA_3, "'r':0,'target_modules':['q_proj']", "r: expected a rank", 0},
        {LLAMA_3, "'r':8,'target_modules':['zz']", "target_modules: expected modules", 0},
        {LLAMA_3, "'r':8", "target_modules: expected names", 0},
    };
    g_autofree char *path =
        g_strdup_printf("%s/kilter-adapter-%d.json", g_get_tmp_dir(), (int)getpid());
    g_autofree char *list = g_strdup_printf(":train=%s", path);
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("{'peft_type':'LORA',%s}", row[i].adapter);
        g_strdelimit(text, "'", '"');
        assert_true(g_file_set_contents(path, text, -1, NULL));
        g_autoptr(Graph) graph = graph_with(row[i].model, list, &error);
        g_unlink(path);
        if (row[i].why) {
            assert_null(graph);
            assert_non_null(strstr(error->message, row[i].why));
            continue;
        }
        assert_no_error(error);
        uint64_t trained = 0;
        for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
            const Tensor *tensor = graph_tensor(graph, t);
            if (tensor->role == ROLE_PARAMETER && !tensor->frozen)
                trained += tensor_elements(tensor);
        }
        assert_int_equal(trained, row[i].trained);
    }
}

/* Towers of images beside the text, which `patches` of an image add. */
static void test_towers(void **state)
{
    (void)state;
#define QWEN_VL                                                                \
    SIZES(3584, 18944, 28, 28, 4, 152064)                                      \
    "'tie_word_embeddings':false,'use_sliding_window':false,'vision_config':{" \
    "'depth':32,'num_heads':16,'patch_size':14,'spatial_merge_size':2,"        \
    "'temporal_patch_size':2,'in_chans':3,"
    static const struct {
        uint64_t text, all, tolerance;
        uint32_t patches;
        const char *json;
    } towers[] = {
        {7615616512, 8292166656, 0, 1024,
         QWEN_VL "'hidden_size':1280,'intermediate_size':3420,'out_hidden_size':3584,"
                 "'hidden_act':'silu'},'model_type':'qwen2_5_vl'"},
        {7615616512, 8291375616, 0, 64,
         QWEN_VL "'embed_dim':1280,'hidden_size':3584,'mlp_ratio':4},"
                 "'model_type':'qwen2_vl'"},
        /* but for the token of the class */
        {6738939904, 7063427072, 1024, 576,
         "'model_type':'llava','text_config':{'model_type':'llama','vocab_size':32064},"
         "'vision_config':{'model_type':'clip_vision_model','hidden_size':1024,"
         "'image_size':336,'intermediate_size':4096,'num_attention_heads':16,"
         "'num_hidden_layers':24,'patch_size':14}"},
        /* but for a bias of the projector's norm */
        {3880263168, 4300079472, 1152, 4096,
         "'model_type':'gemma3','mm_tokens_per_image':256,'text_config':{"
         "'model_type':'gemma3_text','hidden_size':2560,'intermediate_size':10240,"
         "'num_hidden_layers':34,'sliding_window':1024},'vision_config':{"
         "'model_type':'siglip_vision_model','hidden_size':1152,'image_size':896,"
         "'intermediate_size':4304,'num_attention_heads':16,'num_hidden_layers':27,"
         "'patch_size':14}"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(towers); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *list =
            g_strdup_printf(":seq=4096,patches=%u", towers[i].patches);
        g_autoptr(Graph) text = graph_with(towers[i].json, "", &error);
        assert_no_error(error);
        g_autoptr(Graph) all = graph_with(towers[i].json, list, &error);
        assert_no_error(error);
        assert_int_equal(graph_parameter_count(text), towers[i].text);
        const uint64_t got = graph_parameter_count(all), want = towers[i].all;
        if (got + towers[i].tolerance < want || got > want + towers[i].tolerance)
            fail_msg("%s: %" G_GUINT64_FORMAT " parameters", towers[i].json, got);
        g_autoptr(Graph) none = graph_with(towers[i].json, ":seq=16,patches=256", &error);
        assert_null(none);
        assert_non_null(strstr(error->message, "patches"));
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) none =
        graph_with(SIZES(64, 64, 1, 4, 4, 99) LLAMA, ":patches=4", &error);
    assert_null(none);
    assert_non_null(strstr(error->message, "patches"));
}

/* A family without an op is refused by the op's name. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *type, *op;
    } refused[] = {
        {"rwkv", "time mixing"},
        {"sam", "masks"},
        {"UNet2DConditionModel", "U-Net"},
        {"csm", "several codes"},
        {"xlstm", "matrix memory"},
        {"zamba2", "adapters of each"},
        {"clip", "compares images"},
        {"gemma3n", "residual"},
        {"recurrent_gemma", "gated recurrence"},
        {"jetmoe", "experts of"},
        {"switch_transformers", "with experts"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *body =
            g_strdup_printf("'model_type':'%s','hidden_size':64,'num_hidden_layers':1,"
                            "'num_attention_heads':4",
                            refused[i].type);
        g_autoptr(Graph) graph = graph_of(body, &error);
        assert_null(graph);
        assert_non_null(strstr(error->message, "no op for it"));
        assert_non_null(strstr(error->message, refused[i].op));
    }
}

/* An encoder's tokens are what the decoder's second attention reads; without its own encoder a
 * model with such layers needs tokens from outside. */
static void test_encoders(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = graph_of(
        "'model_type':'whisper','d_model':8,'encoder_layers':1,'decoder_layers':1,"
        "'encoder_attention_heads':2,'decoder_attention_heads':2,'encoder_ffn_dim':8,"
        "'decoder_ffn_dim':8,'vocab_size':9,'num_mel_bins':3,'max_source_positions':5",
        &error);
    assert_no_error(error);
    const TensorId y = graph_find(graph, "layers.0.cross.attention");
    const Op *op = graph_get_op(graph, graph_tensor(graph, y)->producer);
    assert_int_equal(graph_tensor(graph, op->in[1])->dim[1], 5);
    assert_false(op->attr.causal);
    assert_int_equal(graph_tensor(graph, graph_find(graph, "sound"))->dim[3], 10);
    g_autoptr(Graph) none = graph_of(SIZES(8, 8, 1, 2, 2, 9) "'model_type':'llama',"
                                                             "'is_encoder_decoder':true",
                                     &error);
    assert_null(none);
    assert_non_null(strstr(error->message, "is_encoder_decoder"));
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

/* A tower of images is named as not read where no patches are asked for. */
static void test_towers_are_named(void **state)
{
    (void)state;
    static const char *const SPEC[] = {"gemma-3-12b", "gemma-3-12b:patches=1024",
                                       "llama-3.1-8b"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SPEC); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = model_architecture(SPEC[i], &error);
        assert_no_error(error);
        assert_non_null(text);
        assert_true(!strstr(text, "patches=N adds its tower") == (i > 0));
    }
}

/* Each row can be read on its own, and leads to the common one. */
/* A number of a configuration that names a size changes what is read from the file, is refused, or
 * is listed as not read. */
static void assert_no_silence(const char *body)
{
    static const char *const shape[] = {
        "size", "dim",    "heads", "layers", "experts", "width", "rank",
        "ffn",  "hidden", "vocab", "n_embd", "d_model", "topk",  "channels"};
    /* scales, parts of sums in time, and what counts only beside another flag */
    static const char *const other[] = {"dim_model_base",
                                        "mamba_chunk_size",
                                        "max_window_layers",
                                        "num_kv_heads",
                                        "pad_vocab_size_multiple",
                                        "topk_group",
                                        NULL};
    g_autofree char *text = g_strdelimit(g_strdup_printf("{%s}", body), "'", '"');
    json_t *root = json_loads(text, 0, NULL), *value;
    assert_non_null(root);
    json_t *part = json_object_get(root, "text_config");
    const char *key;
    void *next;
    json_object_foreach_safe (part ? part : root, next, key, value) {
        bool sizes = false;
        for (uint32_t i = 0; i < G_N_ELEMENTS(shape); i++)
            sizes |= strstr(key, shape[i]) != NULL;
        if (!sizes || g_strv_contains(other, key) || !json_is_integer(value) ||
            json_integer_value(value) < 1)
            continue;
        const json_int_t old = json_integer_value(value);
        char *facts[2] = {0};
        bool listed = false;
        for (uint32_t i = 0; i < 2; i++) {
            Architecture *a = config_read("config.json", root, NULL, NULL);
            if (a) {
                json_t *both = json_pack("[o, o*]", family_facts(a),
                                         a->encoder ? family_facts(a->encoder) : NULL);
                facts[i] = json_dumps(both, JSON_SORT_KEYS);
                g_auto(GStrv) unread = g_strsplit(a->unread ? a->unread : "", ", ", -1);
                listed |= g_strv_contains((const char *const *)unread, key);
                json_decref(both);
                architecture_clear(a);
                g_free(a);
            }
            json_integer_set(value, 2 * old + 2);
        }
        json_integer_set(value, old);
        if (facts[1] && !listed && strcmp(facts[0], facts[1]) == 0)
            fail_msg("%s: %s changes nothing in silence", body, key);
        free(facts[0]);
        free(facts[1]);
    }
    json_decref(root);
}

static void test_no_key_is_silent(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PUBLISHED); i++)
        assert_no_silence(PUBLISHED[i].json);
    for (uint32_t i = 0; i < G_N_ELEMENTS(NEAR); i++)
        assert_no_silence(NEAR[i].json);
}

/* All rows have facts only and end in that of decoder: a file without keys is refused for what it
 * lacks, and not for the rows. */
static void test_rows_are_whole(void **state)
{
    (void)state;
    g_autoptr(GError) damaged = NULL;
    g_autoptr(Families) families = families_read(&damaged);
    json_auto_t *rows = families_rows(families, &damaged), *empty = json_object();
    const char *name;
    json_t *row;
    assert_no_error(damaged);
    json_object_foreach (rows, name, row) {
        g_autoptr(GError) error = NULL;
        g_auto(Architecture) a = {0};
        Config config = {.file = name, .root = empty, .outer = empty, .error = &error};
        if (families_has(families, name) &&
            !family_read(families, &config, name, NULL, &a) &&
            (strstr(error->message, "no fact of a model") ||
             strstr(error->message, "expected rows of")))
            fail_msg("%s", error->message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_family),
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_no_key_is_silent),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_towers),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_towers_are_named),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
