/* The model that a config.json describes: its family, by model_type or the class that it names. */
#include "data/models/config.h"

/* "LlamaForCausalLM" is of the family "llama" where the file names none. */
static const char *type_of(Config *config)
{
    static const struct {
        const char *class_name, *model_type;
    } known[] = {
        {"LlamaForCausalLM", "llama"},
        {"MistralForCausalLM", "mistral"},
        {"MixtralForCausalLM", "mixtral"},
        {"Qwen2ForCausalLM", "qwen2"},
        {"Qwen3ForCausalLM", "qwen3"},
        {"Qwen3MoeForCausalLM", "qwen3_moe"},
        {"Phi3ForCausalLM", "phi3"},
        {"GemmaForCausalLM", "gemma"},
        {"Gemma3ForCausalLM", "gemma3_text"},
        {"GPT2LMHeadModel", "gpt2"},
        {"GPTNeoXForCausalLM", "gpt_neox"},
        {"OPTForCausalLM", "opt"},
        {"BloomForCausalLM", "bloom"},
        {"BloomModel", "bloom"},
        {"FalconForCausalLM", "falcon"},
        {"PhiForCausalLM", "phi"},
        {"BertForMaskedLM", "bert"},
        {"BertModel", "bert"},
        {"RobertaForMaskedLM", "roberta"},
        {"RobertaModel", "roberta"},
        {"ViTForImageClassification", "vit"},
        {"ViTModel", "vit"},
        {"DeepseekV3ForCausalLM", "deepseek_v3"},
        {"GptOssForCausalLM", "gpt_oss"},
    };
    const char *type = config_text(config, "model_type");
    if (type || config->failed)
        return type;
    const json_t *classes = config_value(config, "architectures");
    const char *name = json_string_value(json_array_get(classes, 0));
    for (uint32_t i = 0; name && i < G_N_ELEMENTS(known); i++)
        if (strcmp(known[i].class_name, name) == 0)
            return known[i].model_type;
    config_wrong(config, "model_type", "expected the name of a family, got nothing%s%s",
                 name ? ", and architectures names " : "", name ? name : "");
    return NULL;
}

/* Takes the text part of a multimodal model, which is what is counted and trained. Whether its
 * embeddings are tied may be said of the whole model only. */
static void enter_text(Config *config)
{
    static const char TIED[] = "tie_word_embeddings";
    json_t *tied = json_object_get(config->root, TIED);
    config->root = json_object_get(config->root, "text_config");
    config->nested = "text_config";
    if (tied && !config_value(config, TIED))
        json_object_set(config->root, TIED, tied);
}

Architecture *config_read(const char *path, json_t *root, GError **error)
{
    Config config = {.file = path, .root = root, .error = error};
    Architecture *a = g_new0(Architecture, 1);
    const char *type = type_of(&config);
    if (type && json_is_object(json_object_get(root, "text_config"))) {
        enter_text(&config);
        const char *part = config_text(&config, "model_type");
        if (part && config_knows_family(part))
            type = part;
    }
    const bool known = type && config_family(&config, type, a);
    if (known && config_flag(&config, "is_encoder_decoder", false))
        config_wrong(&config, "is_encoder_decoder", "expected false");
    if (known && config_good(&config))
        return a;
    architecture_clear(a);
    g_free(a);
    return NULL;
}
