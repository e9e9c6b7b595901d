/* The models that Kilter knows by name: sources, parameters with defaults and ranges, builders. */
#include "data/models/models.h"

/* clang-format off */
#define SIZE(key, value) {key, value, 1, 1e9, true, NULL, 0}
/* Sizes of which others are multiples, bounded so that no product of them exceeds 32 bits. */
#define SMALL(key, value) {key, value, 1, 1 << 16, true, NULL, 0}
#define LAYERS(value) {"layers", value, 1, MODEL_MOST_LAYERS, true, NULL, 0}
/* 0: no, 1: yes. */
#define FLAG(key) {key, 0, 0, 1, true, NULL, 0}
#define DURATION(key, value) {key, value, 0, 1e6, false, "s", QUANTITY_TIME}
/* global_batch and experts: 0 means "follow the cluster"; resolved before building. */
#define BATCH(value) SIZE("batch", value), {"global_batch", 0, 0, 1e9, true, NULL, 0}
#define DROPOUT(value) {"dropout", value, 0, 0.99, false, NULL, 0}
#define CAPACITY(value, least) {"capacity_factor", value, least, 100, false, NULL, 0}
#define ENCODER LAYERS(8), SIZE("hidden", 768), SIZE("heads", 12), SIZE("ffn", 3072), DROPOUT(0.1)
#define EXPERTS \
    {"experts", 0, 0, 1e6, true, NULL, 0}, CAPACITY(1.25, 0.01), SIZE("moe_every", 2), \
    SIZE("moe_group", 1)
#define IMAGE  SMALL("image", 32), SIZE("patch", 4), SIZE("classes", 10)
#define IMAGES SMALL("edge", 224), SMALL("width", 64), SIZE("classes", 1000)
#define INCEPTION(edge) \
    SMALL("edge", edge), SMALL("width", 64), SIZE("classes", 1000), DROPOUT(0.2)
#define TEXT SIZE("seq", 128), SIZE("vocab", 33280)

const ModelEntry MODEL_TABLE[] = {
    {{"vgg19", "Simonyan and Zisserman 2015; HAP Table 1 (CIFAR-10)"},
     model_vgg19, model_vgg19_check,
     {BATCH(64), SMALL("image", 32), SMALL("width", 64), SIZE("pool", 7), SIZE("fc", 4096),
      SIZE("classes", 10), DROPOUT(0.5)},
     .gpu_experts = 0},
    {{"vit", "Dosovitskiy et al. 2020; HAP Table 1 (CIFAR-10)"}, model_vit, model_vit_check,
     {BATCH(64), ENCODER, IMAGE},
     .gpu_experts = 0},
    {{"bert-base", "Devlin et al. 2018; HAP Table 1 (WikiText-2)"},
     model_bert_base, model_transformer_check,
     {BATCH(64), ENCODER, TEXT},
     .gpu_experts = 0},
    {{"bert-moe", "Lepikhin et al. 2020 (GShard); HAP Table 1 (WikiText-2)"},
     model_bert_sgmoe, model_bert_moe_check,
     {BATCH(32), ENCODER, TEXT, EXPERTS},
     .gpu_experts = 2},
    {{"bert-sgmoe", "Shazeer et al. 2017 (top-2 gating); HiDup Table 1 (WikiText-103)"},
     model_bert_sgmoe, model_bert_moe_check,
     {BATCH(32), ENCODER, TEXT, EXPERTS},
     .gpu_experts = 1},
    {{"bert-switch", "Fedus et al. 2021 (top-1 gating); HiDup Table 1 (WikiText-103)"},
     model_bert_switch, model_bert_moe_check,
     {BATCH(32), ENCODER, TEXT, EXPERTS},
     .gpu_experts = 1},
    {{"vit-sgmoe", "Shazeer et al. 2017 (top-2 gating); HiDup Table 1 (CIFAR-10)"},
     model_vit_sgmoe, model_vit_moe_check,
     {BATCH(32), ENCODER, IMAGE, EXPERTS},
     .gpu_experts = 2},
    {{"vit-switch", "Fedus et al. 2021 (top-1 gating); HiDup Table 1 (CIFAR-10)"},
     model_vit_switch, model_vit_moe_check,
     {BATCH(32), ENCODER, IMAGE, EXPERTS},
     .gpu_experts = 2},
    {{"gpt2", "Radford et al. 2019; AMP Sec. 4.3 (24 layers of 1024)"},
     model_gpt2, model_transformer_check,
     {BATCH(2), LAYERS(24), SIZE("hidden", 1024), SIZE("heads", 16), SIZE("ffn", 4096),
      DROPOUT(0.1), SIZE("seq", 1024), SIZE("vocab", 52256)},
     .attention = true},
    {{"transgan", "generator, Jiang et al. 2021; AMP Sec. 4.3 (12 layers of 1024, 12 of 16)"},
     model_transgan, model_transgan_check,
     {BATCH(4), LAYERS(12), SIZE("channels", 16), SIZE("heads", 4), SIZE("windows", 4),
      SIZE("group", 16), SIZE("upsample", 16), SIZE("bottom", 9), SIZE("latent", 512),
      FLAG("whole_heads"), DROPOUT(0)},
     .gpu_experts = 0},
    {{"synthetic", "durations written down; for given plans such as dp-ev's"},
     model_synthetic, model_synthetic_check,
     {BATCH(1), LAYERS(12), DURATION("forward", 0.01), DURATION("backward", 0.02),
      {"gradient", 28e6, 4, 4e9, true, "B", QUANTITY_BYTES}},
     .finish = model_synthetic_times},
    {{"vit-l", "Dosovitskiy et al. 2020, ViT-L/16 (ImageNet-1k)"}, model_vit_paper, model_vit_check,
     {BATCH(64), LAYERS(24), SIZE("hidden", 1024), SIZE("heads", 16), SIZE("ffn", 4096),
      DROPOUT(0.1), SMALL("image", 224), SIZE("patch", 16), SIZE("classes", 1000)},
     .attention = true},
    {{"llama", "Llama 3.1 8B, Grattafiori et al. 2024"}, model_llama, model_llama_check,
     {BATCH(1), LAYERS(32), SIZE("hidden", 4096), SIZE("heads", 32), SIZE("kv_heads", 8),
      SIZE("ffn", 14336), SIZE("seq", 4096), SIZE("vocab", 128256)},
     .attention = true},
    {{"mixtral", "Mixtral 8x7B, Jiang et al. 2024"}, model_mixtral, model_mixtral_check,
     {BATCH(1), LAYERS(32), SIZE("hidden", 4096), SIZE("heads", 32), SIZE("kv_heads", 8),
      SIZE("ffn", 14336), SIZE("seq", 4096), SIZE("vocab", 32000), SMALL("experts", 8),
      SMALL("top", 2), CAPACITY(1, 0)},
     .attention = true},
    {{"resnet50", "He et al. 2015, as torchvision has it (ImageNet-1k)"},
     model_resnet50, model_resnet_check,
     .param = {BATCH(64), IMAGES, FLAG("own_moments")}},
    {{"resnet101", "He et al. 2015, as torchvision has it (ImageNet-1k)"},
     model_resnet101, model_resnet_check,
     .param = {BATCH(64), IMAGES, FLAG("own_moments")}},
    {{"inceptionv3", "Szegedy et al. 2016, as torchvision has it (ImageNet-1k)"},
     model_inceptionv3, model_inception_check,
     .param = {BATCH(64), INCEPTION(299), FLAG("own_moments")}},
    {{"tag-resnet101", "TAG Table 3: TF-Slim's second version, norms without scales"},
     model_tag_resnet101, model_resnet_check,
     .param = {BATCH(96), IMAGES, FLAG("own_moments")}},
    {{"tag-inceptionv3", "TAG Table 3: TF-Slim's without batch norm"},
     model_tag_inceptionv3, model_inception_check,
     .param = {BATCH(96), INCEPTION(224)}},
    {{"tag-transformer", "Vaswani et al. 2017; TAG Table 3"},
     model_tag_transformer, model_transformer_check,
     .param = {BATCH(480), LAYERS(6), SIZE("hidden", 512), SIZE("heads", 8), SIZE("ffn", 2048),
      DROPOUT(0.1), SIZE("seq", 10), SIZE("vocab", 41059), SIZE("vocab_out", 45359)}},
    {{"tag-bert-small", "Devlin et al. 2018 on SQuAD; TAG Table 3"},
     model_tag_bert, model_transformer_check,
     .param = {BATCH(96), LAYERS(4), SIZE("hidden", 1024), SIZE("heads", 16), SIZE("ffn", 1024),
      DROPOUT(0.1), SIZE("seq", 128), SIZE("positions", 512), SIZE("vocab", 305220),
      FLAG("host_words")}},
    {{"tag-bert-large", "Devlin et al. 2018 on SQuAD; TAG Table 3"},
     model_tag_bert, model_transformer_check,
     .param = {BATCH(16), LAYERS(24), SIZE("hidden", 2048), SIZE("heads", 16), SIZE("ffn", 2048),
      DROPOUT(0.1), SIZE("seq", 128), SIZE("positions", 1024), SIZE("vocab", 305220),
      FLAG("host_words")}},
};

const uint32_t MODEL_TABLE_SIZE = G_N_ELEMENTS(MODEL_TABLE);

/* --- models in files: their keys --- */

const ModelEntry MODEL_OF_TEXT = {{"config.json", "a file of Hugging Face"},
                                  NULL,
                                  NULL,
                                  {BATCH(1),
                                   {"seq", 0, 0, 1e9, true, NULL, 0},
                                   CAPACITY(0, 0),
                                   {"mtp", 0, 0, 64, true, NULL, 0},
                                   {"patches", 0, 0, 1e6, true, NULL, 0},
                                   {"small", 0, 0, 1e6, true, NULL, 0}},
                                  .attention = true,
                                  .like = true};

const ModelEntry MODEL_OF_IMAGES = {{"config.json", "a file of Hugging Face"},
                                    NULL,
                                    NULL,
                                    {BATCH(1), {"small", 0, 0, 1e6, true, NULL, 0}},
                                    .attention = true,
                                    .like = true};

const ModelEntry MODEL_OF_PROFILE = {{"profile", "measured ops"},
                                     NULL,
                                     NULL,
                                     {BATCH(0), {"small", 0, 0, 1e6, true, NULL, 0}},
                                     .gpu_experts = 0};

/* --- what parameters are in small models --- */

/* Different keys get different sizes where they can, so that dims that are mixed up do not fit. */
const ModelSmall MODEL_SMALL_TABLE[] = {
    {"batch", SMALL_SIZE, 1, 0, 1},
    {"global_batch", SMALL_BATCH, 1, 2, 11},
    {"mtp", SMALL_STAYS, 0, 0, 0},
    {"patches", SMALL_STAYS, 0, 0, 0},
    {"width", SMALL_SIZE, 2, 0, 2},
    {"pool", SMALL_SIZE, 2, 0, 2},
    {"fc", SMALL_SIZE, 1, 3, 17},
    {"classes", SMALL_SIZE, 3, 2, 11},
    {"seq", SMALL_SIZE, 3, 6, 9},
    {"documents", SMALL_SIZE, 3, 0, 3},
    {"ffn", SMALL_SIZE, 2, 3, 19},
    {"vocab", SMALL_SIZE, 3, 4, 23},
    {"vocab_out", SMALL_SIZE, 4, 4, 29},
    {"heads", SMALL_HEADS, 1, 1, 5},
    {"kv_heads", SMALL_KEYS, 0, 0, 0},
    {"hidden", SMALL_BY_HEADS, 0, 0, 0},
    {"channels", SMALL_BY_HEADS, 0, 0, 0},
    {"experts", SMALL_EXPERTS, 0, 2, 8},
    {"patch", SMALL_PATCH, 2, 0, 2},
    {"image", SMALL_IMAGE, 0, 0, 0},
    {"edge", SMALL_SIZE, 107, 0, 107},
    {"bottom", SMALL_SIZE, 2, 0, 2},
    {"upsample", SMALL_SIZE, 2, 0, 2},
    {"latent", SMALL_SIZE, 3, 0, 3},
    {"positions", SMALL_SIZE, 16, 0, 16},
    {"windows", SMALL_FACTOR, 2, 0, 2},
    {"group", SMALL_FACTOR, 2, 0, 2},
    {"moe_group", SMALL_FACTOR, 2, 0, 2},
    {"gradient", SMALL_BYTES, 0, 0, 0},
    {"small", SMALL_DEVICES, 0, 0, 0},
    {"layers", SMALL_STAYS, 0, 0, 0},
    {"moe_every", SMALL_STAYS, 0, 0, 0},
    {"top", SMALL_STAYS, 0, 0, 0},
    {"whole_heads", SMALL_STAYS, 0, 0, 0},
    {"host_words", SMALL_STAYS, 0, 0, 0},
    {"own_moments", SMALL_STAYS, 0, 0, 0},
    {"dropout", SMALL_STAYS, 0, 0, 0},
    {"capacity_factor", SMALL_ROOM, 100, 0, 100},
    {"forward", SMALL_STAYS, 0, 0, 0},
    {"backward", SMALL_STAYS, 0, 0, 0},
};

const uint32_t MODEL_SMALL_TABLE_SIZE = G_N_ELEMENTS(MODEL_SMALL_TABLE);

/* batch 0 and seq 0: as the file has them. */
const ModelEntry MODEL_OF_ONNX = {{"onnx", "a file of ONNX"},
                                  NULL,
                                  NULL,
                                  {{"batch", 0, 0, 1e9, true, NULL, 0},
                                   {"global_batch", 0, 0, 1e9, true, NULL, 0},
                                   {"seq", 0, 0, 1e6, true, NULL, 0}},
                                  .attention = true};
/* clang-format on */
