/* The model that a config.json or a file in YAML describes: its family, by model_type, by the class
 * that it names, or by what it is said to be like. */
#include "data/formats/huggingface/config.h"

#include "data/base/json.h"
#include "data/base/text.h"
#include "data/formats/huggingface/family.h"

#include <string.h>

static const char *text_of(Config *config, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_null(value) && !json_is_string(value))
        config_wrong(config, key, "expected a string");
    return json_string_value(value);
}

/* The name of the file's family, or, where it has none, of the class that it names. */
static const char *type_of(const Families *families, Config *config)
{
    const char *type = text_of(config, config->root, "model_type");
    if (!type && !config->failed)
        type = text_of(config, config->root, "_class_name"); /* of diffusers */
    if (type || config->failed)
        return type;
    const json_t *classes = json_object_get(config->root, "architectures");
    const char *name = json_string_value(json_array_get(classes, 0));
    if (!name && json_object_get(config->root, "ssm_cfg"))
        return "mamba_ssm";
    if (!name && json_object_get(config->root, "dim"))
        return "params";
    type = name ? families_of_class(families, name) : NULL;
    if (!type)
        config_wrong(config, "model_type",
                     "expected the name of a family, got nothing%s%s",
                     name ? ", and architectures names " : "", name ? name : "");
    return type;
}

/* Takes the text part of a multimodal model, which is what is counted and trained. Whether its
 * embeddings are tied may be said of the whole model only. The thinker of a model that also speaks
 * has a text part of its own. */
static void enter_text(Config *config)
{
    static const char *const parts[] = {"thinker_config", "text_config",
                                        "language_config", "llm_config"};
    static const char TIED[] = "tie_word_embeddings";
    for (uint32_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        json_t *text = json_object_get(config->root, parts[i]);
        json_t *tied = json_object_get(config->root, TIED);
        if (!text || json_is_null(text))
            continue;
        if (!json_is_object(text)) {
            config_wrong(config, parts[i], "expected an object");
            return;
        }
        config->root = text;
        config->nested = parts[i];
        if (tied && !json_object_get(text, TIED))
            json_object_set(text, TIED, tied);
        if (i > 0)
            return;
    }
}

/* The precision that the file's weights have. */
static Precision precision_of(Config *config)
{
    const char *type = text_of(config, config->root, "torch_dtype");
    type = type ? type : text_of(config, config->root, "dtype");
    type = type ? type : text_of(config, config->outer, "torch_dtype");
    type = type ? type : text_of(config, config->outer, "dtype");
    return !type                           ? PRECISION_SINGLE
           : strcmp(type, "bfloat16") == 0 ? PRECISION_BF16
           : strcmp(type, "float16") == 0  ? PRECISION_MIXED
                                           : PRECISION_SINGLE;
}

/* A model in YAML: its facts are a row of its own, and its other keys those of a file. */
static json_t *facts_of(json_t *root)
{
    json_t *facts = json_object();
    members_each (key, value, root) {
        if (family_is_fact(key))
            json_object_set(facts, key, value);
    }
    return facts;
}

static bool read_own(const Families *families, Config *config, const char *like,
                     Architecture *a)
{
    json_auto_t *facts = facts_of(config->root);
    json_object_del(config->root, "like");
    keys_each (key, facts)
        json_object_del(config->root, key);
    const bool good = family_read(families, config, like, facts, a);
    if (good && a->unread)
        config_wrong(config, a->unread,
                     "neither a fact of a model nor a key of the "
                     "family");
    return good && !config->failed;
}

Architecture *config_read(const char *path, json_t *root, const char *like,
                          GError **error)
{
    g_autoptr(Families) families = families_read(error);
    if (!families)
        return NULL;
    const bool own = json_object_get(root, "like") != NULL;
    json_auto_t *copy = own ? json_copy(root) : json_incref(root);
    Config config = {.file = path, .root = copy, .outer = copy, .error = error};
    Architecture *a = g_new0(Architecture, 1);
    const char *type = like && *like ? like
                       : own         ? text_of(&config, root, "like")
                                     : type_of(families, &config);
    if (type && !own && !config.failed)
        enter_text(&config);
    const char *part = config.nested ? text_of(&config, config.root, "model_type") : NULL;
    if (part && !(like && *like) && families_has(families, part))
        type = part;
    const bool plain = type && !config.failed;
    if (plain && !families_has(families, type))
        config_wrong(&config, own ? "like" : "model_type",
                     "expected a family of data/families.yaml, got \"%.60s\"; like=llama "
                     "reads it as that one",
                     type);
    else if (plain) {
        a->precision = precision_of(&config);
        if (own)
            read_own(families, &config, type, a);
        else
            family_read(families, &config, type, NULL, a);
        if (!config.failed && !a->encoder &&
            json_is_true(json_object_get(config.root, "is_encoder_decoder")))
            config_wrong(&config, "is_encoder_decoder", "expected false");
    }
    if (type && !config.failed)
        return a;
    architecture_clear(a);
    g_free(a);
    return NULL;
}

/* Bytes of keys, values and states that a token adds to a cache. */
static uint64_t kv_bytes(const Architecture *a)
{
    uint64_t numbers = 0;
    items_each (const LayerFacts, l, a->layer, a->layers) {
        if (l->mixer == MIXER_ATTENTION || l->mixer == MIXER_ATTENTION_AND_MAMBA)
            numbers += (uint64_t)l->kv_heads * (l->head_size + l->value_size);
        if (l->mixer == MIXER_LATENT)
            numbers += a->kv_rank + a->shared_key;
        if (l->chosen_keys && l->indexer)
            numbers += a->index_size;
    }
    return numbers *
           (a->precision == PRECISION_SINGLE ? sizeof(float) : sizeof(uint16_t));
}

json_t *config_facts(const Architecture *a, const char *path)
{
    enum { MOST_BYTES = 1 << 26 };
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *index =
        g_build_filename(folder, "model.safetensors.index.json", NULL);
    g_autofree char *text = NULL;
    gsize length;
    json_t *checkpoint = json_null();
    if (g_file_test(index, G_FILE_TEST_EXISTS) &&
        (text = file_read(index, MOST_BYTES, &length, NULL))) {
        json_auto_t *root = json_loadb(text, length, 0, NULL);
        const json_t *size =
            json_object_get(json_object_get(root, "metadata"), "total_size");
        if (json_is_number(size))
            checkpoint = json_integer(
                (json_int_t)(json_number_value(size) / (a->precision == PRECISION_SINGLE
                                                            ? sizeof(float)
                                                            : sizeof(uint16_t))));
    }
    return json_pack("{s:o, s:s?, s:I, s:o}", "facts", family_facts(a), "unread",
                     a->unread, "kv_bytes_per_token", (json_int_t)kv_bytes(a),
                     "checkpoint_parameters", checkpoint);
}

/* --- the local cache of the hub --- */

#define HUB_PREFIX "hf:"
#define HUB_FOLDER "models--"

bool hub_is_id(const char *path)
{
    return g_str_has_prefix(path, HUB_PREFIX);
}

static char *hub_folder(void)
{
    const char *cache = g_getenv("HF_HUB_CACHE"), *home = g_getenv("HF_HOME");
    return cache && *cache ? g_strdup(cache)
           : home && *home
               ? g_build_filename(home, "hub", NULL)
               : g_build_filename(g_get_home_dir(), ".cache", "huggingface", "hub", NULL);
}

char *hub_path(const char *id)
{
    g_autofree char *hub = hub_folder();
    g_auto(GStrv) part = g_strsplit(id + strlen(HUB_PREFIX), "/", -1);
    g_autofree char *joined = g_strjoinv("--", part);
    g_autofree char *name = g_strconcat(HUB_FOLDER, joined, NULL);
    g_autofree char *ref = g_build_filename(hub, name, "refs", "main", NULL);
    g_autofree char *snapshots = g_build_filename(hub, name, "snapshots", NULL);
    g_autofree char *revision = NULL;
    if (g_file_get_contents(ref, &revision, NULL, NULL))
        g_strstrip(revision);
    else {
        GDir *dir = g_dir_open(snapshots, 0, NULL);
        revision = g_strdup(dir ? g_dir_read_name(dir) : NULL);
        if (dir)
            g_dir_close(dir);
    }
    return g_build_filename(snapshots, revision && *revision ? revision : "main",
                            "config.json", NULL);
}

bool hub_id_of(const char *path, char **id)
{
    const char *at = strstr(path, "/" HUB_FOLDER);
    const char *end = at ? strstr(at, "/snapshots/") : NULL;
    if (!end)
        return false;
    at += strlen("/" HUB_FOLDER);
    g_autofree char *name = g_strndup(at, (size_t)(end - at));
    g_auto(GStrv) part = g_strsplit(name, "--", -1);
    *id = g_strjoinv("/", part);
    return true;
}
