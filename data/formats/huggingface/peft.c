/* adapter_config.json of PEFT: the adapters of low rank that it trains (LoRA: Hu et al. 2022). */
#include "data/base/error.h"
#include "data/formats/huggingface/config.h"
#include "data/models/model_file.h"

#include <string.h>

static const char PEFT_FILE[] = "adapter_config.json";

/* Modules by the names that families give them, and words of the names of their weights here. */
static const struct {
    const char *module, *words;
} MODULES[] = {
    {"q_proj query q_lin wq q", "attention.q."},
    {"k_proj key k_lin wk k", "attention.k."},
    {"v_proj value v_lin wv v", "attention.values"},
    {"c_fc", "ffn.up"},
    {"c_proj", "attention.out+ffn.down"},
    {"o_proj out_proj output_proj out_lin wo o dense", "attention.out"},
    {"qkv_proj query_key_value c_attn Wqkv qkv", "attention.q.+attention.kv."},
    {"gate_proj w1 wi_0", "ffn.gate"},
    {"up_proj w3 wi_1", "ffn.wide"},
    {"down_proj w2 fc2 fc_out dense_4h_to_h lin2", "ffn.down"},
    {"gate_up_proj fc1 fc_in dense_h_to_4h lin1", "ffn.up"},
    {"in_proj x_proj dt_proj", "scan"},
    {"lm_head", "head.weight"},
    {"embed_tokens wte", "embedding.weight"},
};

bool peft_is(const char *path)
{
    return g_str_has_suffix(path, ".json") || g_file_test(path, G_FILE_TEST_IS_DIR);
}

static bool peft_wrong(const char *path, const char *key, const char *what,
                       GError **error)
{
    return refuse(error, "%s: %s: %s", path, key, what);
}

/* Appends the words of the module named; `trained`: as of weights that are trained themselves. */
static bool peft_add(const char *path, const char *key, const json_t *name, bool trained,
                     GString *target, GError **error)
{
    const char *module = json_string_value(name);
    if (g_strcmp0(module, "all-linear") == 0) {
        /* each module by itself: values apart from keys, gates from what they multiply */
        g_string_append(target, "all+scan+attention.values+ffn.gate");
        return true;
    }
    const char *last = module ? strrchr(module, '.') : NULL;
    last = last ? last + 1 : module;
    for (uint32_t i = 0; last && i < G_N_ELEMENTS(MODULES); i++) {
        g_auto(GStrv) known = g_strsplit(MODULES[i].module, " ", -1);
        if (!g_strv_contains((const char *const *)known, last))
            continue;
        g_string_append_printf(target, "%s%s%s", target->len ? "+" : "",
                               trained ? "!" : "", MODULES[i].words);
        return true;
    }
    g_autofree char *what =
        g_strdup_printf("expected modules of attention and of networks, got %.60s",
                        module ? module : "no text");
    return peft_wrong(path, key, what, error);
}

static bool peft_add_all(const char *path, const json_t *root, const char *key,
                         bool trained, GString *target, GError **error)
{
    const json_t *list = json_object_get(root, key);
    if (json_is_string(list))
        return peft_add(path, key, list, trained, target, error);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!peft_add(path, key, json_array_get(list, i), trained, target, error))
            return false;
    return true;
}

char *peft_target(const char *modules, GError **error)
{
    g_auto(GStrv) name = g_strsplit_set(modules, " ,", -1);
    g_autoptr(GString) words = g_string_new("");
    bool good = true;
    for (uint32_t i = 0; name[i] && good; i++) {
        json_t *one = json_string(name[i]);
        good = !*name[i] || peft_add("modules", name[i], one, false, words, error);
        json_decref(one);
    }
    return good && words->len ? g_strdup(words->str) : NULL;
}

bool peft_read(const char *path, uint32_t *rank, char **target, GError **error)
{
    static const char *const refused[] = {
        "use_dora",          "rank_pattern",    "layers_to_transform",
        "layer_replication", "megatron_config", "target_parameters"};
    g_autofree char *file = g_file_test(path, G_FILE_TEST_IS_DIR)
                                ? g_build_filename(path, PEFT_FILE, NULL)
                                : g_strdup(path);
    json_t *root = model_file_load(file, error);
    if (!root)
        return false;
    g_autoptr(GString) words = g_string_new("");
    const char *type = json_string_value(json_object_get(root, "peft_type")),
               *bias = json_string_value(json_object_get(root, "bias"));
    const json_int_t r = json_integer_value(json_object_get(root, "r"));
    bool good = (type && g_ascii_strcasecmp(type, "LORA") == 0) ||
                peft_wrong(file, "peft_type", "expected LORA, no op for others", error);
    good = good && ((!bias || strcmp(bias, "none") == 0) ||
                    peft_wrong(file, "bias", "expected none", error));
    for (uint32_t i = 0; good && i < G_N_ELEMENTS(refused); i++) {
        const json_t *value = json_object_get(root, refused[i]);
        good = !value || json_is_null(value) || json_is_false(value) ||
               ((json_is_array(value) || json_is_object(value)) &&
                json_array_size(value) + json_object_size(value) == 0) ||
               peft_wrong(file, refused[i], "no op for it", error);
    }
    good = good && ((r >= 1 && r <= UINT16_MAX) ||
                    peft_wrong(file, "r", "expected a rank from 1 to 65535", error));
    good = good && peft_add_all(file, root, "target_modules", false, words, error) &&
           (words->len > 0 ||
            peft_wrong(file, "target_modules", "expected names of modules", error)) &&
           peft_add_all(file, root, "modules_to_save", true, words, error);
    json_decref(root);
    *rank = (uint32_t)r;
    *target = g_strdup(words->str);
    return good;
}
