/* Reading keys of a configuration file, with errors that name the key. */
#include "data/models/config.h"

#include "data/base/error.h"

#include <string.h>

bool config_good(const Config *config)
{
    return !config->failed;
}

bool config_wrong(Config *config, const char *key, const char *format, ...)
{
    if (config->failed)
        return false;
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    config->failed = true;
    return kilter_fail(config->error, KILTER_ERROR_INPUT, "%s: %s%s%s: %s", config->file,
                       config->nested ? config->nested : "", config->nested ? "." : "",
                       key, reason);
}

/* Fails with the value of a key, and the value that was expected. */
static void unexpected(Config *config, const char *key, const char *what,
                       const json_t *value)
{
    enum { SHOWN = 60, DIGITS = 6 };
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS));
    config_wrong(config, key, "expected %s, got %.*s%s", what, SHOWN, dump ? dump : "?",
                 dump && strlen(dump) > SHOWN ? "..." : "");
    free(dump);
}

/* The first of "a|b|c" that has a value; *key gets its name, or the first one. Caller frees. */
static const json_t *find(const Config *config, const char *keys, char **key)
{
    g_auto(GStrv) spelling = g_strsplit(keys, "|", -1);
    for (uint32_t i = 0; spelling[i]; i++) {
        const json_t *value = json_object_get(config->root, spelling[i]);
        if (value && !json_is_null(value)) {
            *key = g_strdup(spelling[i]);
            return value;
        }
    }
    *key = g_strdup(spelling[0]);
    return NULL;
}

const json_t *config_value(const Config *config, const char *keys)
{
    g_autofree char *key = NULL;
    return find(config, keys, &key);
}

uint32_t config_size(Config *config, const char *keys, uint32_t least, uint32_t otherwise)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (!value || config->failed)
        return otherwise;
    const json_int_t size = json_is_integer(value) ? json_integer_value(value) : -1;
    if (size >= least && size <= CONFIG_MOST_SIZE)
        return (uint32_t)size;
    g_autofree char *what =
        g_strdup_printf("an integer from %u to %d", least, CONFIG_MOST_SIZE);
    unexpected(config, key, what, value);
    return otherwise;
}

double config_number(Config *config, const char *keys, double most, double otherwise)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (!value || config->failed)
        return otherwise;
    const double number = json_is_number(value) ? json_number_value(value) : -1;
    if (number >= 0 && number <= most)
        return number;
    g_autofree char *what = g_strdup_printf("a number from 0 to %g", most);
    unexpected(config, key, what, value);
    return otherwise;
}

bool config_flag(Config *config, const char *keys, bool otherwise)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (!value || config->failed)
        return otherwise;
    if (!json_is_boolean(value))
        unexpected(config, key, "true or false", value);
    return json_is_true(value);
}

const char *config_text(Config *config, const char *keys)
{
    g_autofree char *key = NULL;
    const json_t *value = find(config, keys, &key);
    if (value && !json_is_string(value))
        unexpected(config, key, "a string", value);
    return json_string_value(value);
}

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

Architecture *config_read(const char *path, json_t *root, GError **error)
{
    Config config = {.file = path, .root = root, .error = error};
    Architecture *a = g_new0(Architecture, 1);
    const char *type = type_of(&config);
    if (type && json_is_object(json_object_get(root, "text_config"))) {
        /* Of a multimodal model the text part is what is counted and trained. */
        config.root = json_object_get(root, "text_config");
        config.nested = "text_config";
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
