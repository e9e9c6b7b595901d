/* The model that a config.json describes: its family, by model_type or the class that it names. */
#include "data/models/config.h"

/* "LlamaForCausalLM" is of the family "llama": the model_type of a class name's family, or NULL. */
static const char *type_of_class(const char *name)
{
    static const struct {
        const char *begin, *model_type;
    } known[] = {
        {"Llama", "llama"},     {"Mistral", "mistral"},
        {"Mixtral", "mixtral"}, {"Qwen2", "qwen2"},
        {"Qwen3", "qwen3"},     {"Qwen3Moe", "qwen3_moe"},
        {"Phi3", "phi3"},       {"Phi", "phi"},
        {"Gemma", "gemma"},     {"Gemma3", "gemma3_text"},
        {"GPT2", "gpt2"},       {"GPTNeoX", "gpt_neox"},
        {"OPT", "opt"},         {"Bloom", "bloom"},
        {"Falcon", "falcon"},   {"RW", "falcon"},
        {"Bert", "bert"},       {"Roberta", "roberta"},
        {"ViT", "vit"},         {"DeepseekV3", "deepseek_v3"},
        {"GptOss", "gpt_oss"},
    };
    static const char *const end[] = {"For", "Model", "LMHead", "DoubleHeads"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        const bool begins = g_str_has_prefix(name, known[i].begin);
        const char *rest = name + (begins ? strlen(known[i].begin) : 0);
        for (uint32_t k = 0; begins && k < G_N_ELEMENTS(end); k++)
            if (g_str_has_prefix(rest, end[k]))
                return known[i].model_type;
    }
    return NULL;
}

/* The name of the file's family, or, where it has none, of the class that it names. */
static const char *type_of(Config *config)
{
    const char *type = config_text(config, "model_type");
    if (type || config->failed)
        return type;
    const json_t *classes = config_value(config, "architectures");
    const char *name = json_string_value(json_array_get(classes, 0));
    type = name ? type_of_class(name) : NULL;
    if (!type)
        config_wrong(config, "model_type",
                     "expected the name of a family, got nothing%s%s",
                     name ? ", and architectures names " : "", name ? name : "");
    return type;
}

/* Sizes that do not go together, by the key of one of them. */
static void check_sizes(Config *config, const Architecture *a)
{
    if (a->experts && a->top > a->experts)
        config_wrong(config, "num_experts_per_tok",
                     "expected at most the %u experts, got %u", a->experts, a->top);
    if (a->kv_rank && a->kv_heads != a->heads)
        config_wrong(config, "num_key_value_heads",
                     "expected as many as the %u heads, got %u", a->heads, a->kv_heads);
    if (a->patch && a->image % a->patch)
        config_wrong(config, "patch_size", "expected a divisor of the image's %u, got %u",
                     a->image, a->patch);
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
    const json_t *text = type ? config_value(&config, "text_config") : NULL;
    if (text && !json_is_object(text))
        config_wrong(&config, "text_config", "expected an object");
    else if (text) {
        enter_text(&config);
        const char *part = config_text(&config, "model_type");
        if (part && config_knows_family(part))
            type = part;
    }
    const bool known = type && config_family(&config, type, a);
    if (known && config_flag(&config, "is_encoder_decoder", false))
        config_wrong(&config, "is_encoder_decoder", "expected false");
    if (known)
        check_sizes(&config, a);
    if (known && config_good(&config))
        return a;
    architecture_clear(a);
    g_free(a);
    return NULL;
}
