/* Building a model from its spec: a row of the table, or a file. */
#include "data/models/model.h"

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/path.h"
#include "data/formats/format.h"
#include "data/formats/huggingface/config.h"
#include "data/formats/onnx/model.h"
#include "data/graph/file.h"
#include "data/models/model_file.h"
#include "data/models/models.h"
#include "data/models/profile.h"

#include <math.h>
#include <string.h>

uint32_t model_count(void)
{
    return MODEL_TABLE_SIZE;
}

const ModelInfo *model_info(uint32_t index)
{
    return &MODEL_TABLE[index].info;
}

char *model_parameters_text(uint32_t index)
{
    g_autoptr(GString) text = g_string_new("");
    for (const ModelParam *param = MODEL_TABLE[index].param; param->key; param++)
        g_string_append_printf(text, "%s=%.10g%s ", param->key, param->value,
                               param->unit ? param->unit : "");
    return g_strdup_printf("%soptimizer=adam precision=%s", text->str,
                           precision_name(PRECISION_SINGLE));
}

bool model_has_key(const char *key)
{
    g_autofree char *pair = g_strdup_printf(" %s=", key);
    for (uint32_t i = 0; i < MODEL_TABLE_SIZE; i++) {
        g_autofree char *text = model_parameters_text(i),
                        *words = g_strconcat(" ", text, NULL);
        if (strstr(words, pair))
            return true;
    }
    return false;
}

static void fail_unknown(const char *name, GError **error)
{
    g_auto(GStrv) file = model_configs();
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    uint32_t index;
    for (uint32_t i = 0; i < MODEL_TABLE_SIZE; i++)
        g_ptr_array_add(known, (char *)MODEL_TABLE[i].info.name);
    for (char **at = file; *at; at++)
        g_ptr_array_add(known, *at);
    g_ptr_array_add(known, NULL);
    if (names_find("model", name, (const char *const *)known->pdata, &index, error))
        g_assert_not_reached(); /* reached only for unknown names */
    if (error && strchr(name, '/')) {
        g_autoptr(GError) plain = g_steal_pointer(error);
        refuse(error, "%s; hf:%s is its config.json in the hub's cache", plain->message,
               name);
    }
}

static bool has_parameter(const Graph *graph, const char *part)
{
    return any_of(t, graph_n_tensors(graph),
                  graph_tensor(graph, t)->role == ROLE_PARAMETER &&
                      strstr(graph_tensor(graph, t)->name, part));
}

/* Whether each word of the target is part of the name of a parameter; some of `all` are not. */
static bool target_names_parameters(const char *spec, const Graph *graph,
                                    const char *target, GError **error)
{
    g_auto(GStrv) word = g_strsplit(target ? target : "all", "+", 0);
    for (uint32_t i = 0; word[i] && !g_strv_contains((const char *const *)word, "all");
         i++)
        if (strcmp(word[i], "mlp") != 0 &&
            !has_parameter(graph, word[i] + (*word[i] == '!')))
            return refuse(error,
                          "model '%s': target: '%s' is not part of any parameter's "
                          "name",
                          spec, word[i]);
    return true;
}

/* Appends backward and updates to a forward graph, and takes ownership of it. NULL if it is too
 * large. */
static Graph *finish(const char *spec, Graph *graph, TensorId loss,
                     const ModelParams *params, const ModelEntry *entry, GError **error)
{
    if (!model_sizes_fit(spec, graph, params->documents, error) ||
        !target_names_parameters(spec, graph, params->target, error)) {
        graph_free(graph);
        return NULL;
    }
    graph_differentiate(graph, loss, params->optimizer);
    if (entry->finish)
        entry->finish(graph, params);
    graph_seal(graph);
    return graph;
}

/* Sets *params from the list, and the defaults that depend on the number of GPUs. */
static bool resolve_entry(const char *spec, const ModelEntry *entry, const char *list,
                          uint32_t gpus, ModelParams *params, GError **error)
{
    *params = model_params_new(entry);
    if (!model_params_parse(spec, list, params, error) ||
        !model_params_follow(spec, params, entry->gpu_experts, gpus, error))
        return false;
    const char *wrong = entry->check ? entry->check(params) : NULL;
    return !wrong || refuse(error, "model '%s': %s", spec, wrong);
}

/* A model of the table, as ModelOfFile says it of files. */
static bool build_entry(const char *spec, const ModelEntry *entry, const char *list,
                        uint32_t gpus, Graph **graph, char **canonical, GError **error)
{
    ModelParams params = model_params_new(entry);
    if (gpus == 0)
        return model_params_parse(spec, list, &params, error);
    if (!resolve_entry(spec, entry, list, gpus, &params, error))
        return false;
    if (graph) {
        Graph *forward = graph_new(entry->info.name);
        model_prepare(forward, &params);
        const TensorId loss = entry->build(forward, &params);
        if (!(*graph = finish(spec, forward, loss, &params, entry, error)))
            return false;
    }
    if (canonical)
        *canonical = model_params_spec(entry->info.name, &params);
    return true;
}

/* --- files --- */

enum { DEFAULT_SEQ = 4096, SMALL_SEQ = 9, LEAST_SEQ = 3 };

/* May stand before the name of a file; what the file is, its content says. */
#define PROFILE_PREFIX "profile:"

/* Sets seq if the spec leaves it to the file; returns NULL or a text saying what does not fit. */
static const char *resolve_seq(const Architecture *a, ModelParams *params)
{
    ModelParam *seq = model_params_find(params, "seq"),
               *mtp = model_params_find(params, "mtp"),
               *patches = model_params_find(params, "patches");
    if (seq && seq->value == 0)
        seq->value = a->limit ? MIN(a->limit, DEFAULT_SEQ) : DEFAULT_SEQ;
    if (mtp && mtp->value > a->mtp)
        return "mtp: more modules for further tokens than the file has";
    if (patches && patches->value > 0) {
        enum { SMALL_TOKENS = 4 };
        const Architecture *tower = a->encoder;
        if (!tower || !tower->patch_numbers)
            return "patches: expected a model of images and text, whose encoder is known";
        if (model_param(params, "small") > 0)
            patches->value = MIN(patches->value, SMALL_TOKENS * tower->merge);
        if (fmod(patches->value, tower->merge) != 0 ||
            patches->value / tower->merge >= seq->value)
            return "patches: expected a multiple of those that are one token, and tokens "
                   "of "
                   "text behind them in seq";
        const double edge = sqrt(patches->value), mean = sqrt(tower->merge);
        if (tower->merge_mean &&
            (edge != floor(edge) || mean != floor(mean) || fmod(edge, mean) != 0))
            return "patches: expected those of a square image, which squares of them "
                   "divide";
    }
    bool packed = !params->own_products;
    for (uint32_t l = 0; l < a->layers; l++)
        packed |= a->layer[l].mixer == MIXER_ATTENTION ||
                  (a->gated && a->layer[l].network != NETWORK_NONE);
    return packed ? architecture_check(a, seq ? (uint32_t)seq->value : 0, NULL)
                  : "products: expected attention or a gated network";
}

static const ModelEntry *entry_of(const Architecture *a)
{
    return a->patch ? &MODEL_OF_IMAGES : &MODEL_OF_TEXT;
}

/* Sets *params as resolve_entry does, and the architecture's attention by them. */
static bool resolve_architecture(const char *spec, Architecture *a, const char *list,
                                 uint32_t gpus, ModelParams *params, GError **error)
{
    *params = model_params_new(entry_of(a));
    if (!model_params_parse(spec, list, params, error) ||
        !model_params_follow(spec, params, 0, gpus, error))
        return false;
    if (params->attention != ATTENTION_OF_MODEL)
        a->fused = params->attention == ATTENTION_FUSED;
    if (!params->has_precision)
        params->precision = a->precision;
    const char *wrong = resolve_seq(a, params);
    return !wrong || refuse(error, "model '%s': %s", spec, wrong);
}

static Graph *build_architecture(const ModelOfFile *of, Architecture *a,
                                 const ModelParams *params, GError **error)
{
    const uint32_t small = model_size(params, "small"),
                   seq = a->patch ? 0 : model_size(params, "seq");
    if (small > 0)
        architecture_shrink(a, small, seq);
    ArchitectureSizes sizes = {.batch = model_size(params, "global_batch"),
                               .seq = small == 0                    ? seq
                                      : small % 1000 == SMALL_LEAST ? MIN(seq, LEAST_SEQ)
                                                                    : MIN(seq, SMALL_SEQ),
                               .mtp = a->patch ? 0 : model_size(params, "mtp"),
                               .patches = a->patch ? 0 : model_size(params, "patches"),
                               .capacity_factor =
                                   a->patch ? 1 : model_param(params, "capacity_factor")};
    architecture_separate(&sizes, params->target, params->own_products);
    g_autofree char *name = model_file_name(of->file);
    Graph *graph = graph_new(name);
    model_prepare(graph, params);
    const TensorId loss = architecture_build(graph, a, &sizes);
    return finish(of->spec, graph, loss, params, entry_of(a), error);
}

/* The value of like= in a list, or NULL. Caller frees. */
static char *like_of(const char *list)
{
    g_auto(GStrv) pair = g_strsplit(list, ",", -1);
    for (uint32_t i = 0; pair[i]; i++)
        if (g_str_has_prefix(pair[i], "like="))
            return g_strdup(pair[i] + strlen("like="));
    return NULL;
}

static Architecture *read_config(const char *path, json_t *root, const char *list,
                                 GError **error)
{
    g_autofree char *like = like_of(list);
    return config_read(path, root, like, error);
}

static bool build_config(const ModelOfFile *of, GError **error)
{
    Architecture *a = read_config(of->file, of->root, of->list, error);
    if (!a)
        return false;
    ModelParams params = model_params_new(entry_of(a));
    bool good = of->gpus == 0 ? model_params_parse(of->spec, of->list, &params, error)
                              : resolve_architecture(of->spec, a, of->list, of->gpus,
                                                     &params, error);
    if (good && of->graph)
        good = (*of->graph = build_architecture(of, a, &params, error)) != NULL;
    if (good && of->canonical && of->gpus > 0)
        *of->canonical = model_params_spec(of->file, &params);
    architecture_clear(a);
    g_free(a);
    return good;
}

/* Builds a graph's file, which takes no parameters: its batch is in the file. */
static bool build_graph(const ModelOfFile *of, GError **error)
{
    if (*of->list)
        return refuse(error, "model '%s': a graph's file takes no parameters, got '%s'",
                      of->spec, of->list);
    g_autoptr(Graph) graph = graph_from_json(of->file, of->root, error);
    if (!graph || !model_sizes_fit(of->spec, graph, NULL, error))
        return false;
    if (of->canonical)
        *of->canonical = g_strdup(of->file);
    if (of->graph)
        *of->graph = g_steal_pointer(&graph);
    return true;
}

/* A model that was called by a name keeps it in place of the file's path. */
static void keep_name(const char *name, const char *file, char **canonical)
{
    g_autofree char *named = canonical && *canonical ? model_file_named(name) : NULL;
    if (!named || strcmp(named, file) != 0)
        return;
    g_autofree char *stem = model_file_name(file);
    g_autofree char *whole = g_steal_pointer(canonical);
    *canonical = g_strconcat(stem, whole + strlen(file), NULL);
}

/* `given` is the file's content, or NULL to read the file; *content (NULL: not wanted) gets it in
 * canonical form. */
static bool build_file(ModelOfFile of, const char *name, const char *given,
                       char **content, GError **error)
{
    g_autofree char *file = model_file_path(name);
    json_auto_t *root = given ? json_loads(given, JSON_REJECT_DUPLICATES, NULL)
                              : model_file_load(file, error);
    if (!root)
        return false;
    of.file = file;
    of.root = root;
    const FileFormat format = format_of_model(root);
    if (!(format == FORMAT_GRAPH     ? build_graph(&of, error)
          : format == FORMAT_PROFILE ? profile_model(&of, error)
          : format == FORMAT_ONNX    ? onnx_graph(&of, error)
                                     : build_config(&of, error)))
        return false;
    keep_name(name, file, of.canonical);
    if (content)
        *content = json_canonical(json_incref(root));
    return true;
}

const char *model_spec_list(const char *spec)
{
    const char *colon = strchr(spec, ':'), *last = strrchr(spec, ':');
    for (; colon; colon = strchr(colon + 1, ':')) {
        const size_t key = strcspn(colon + 1, "=:/,");
        if (key > 0 && colon[1 + key] == '=')
            return colon + 1;
    }
    return last && strchr(last, '=') ? last + 1 : "";
}

/* Splits a spec: returns its entry if it begins with a model's name, else NULL, with the name or
 * path in *name and the part after the colon in *list. The caller frees *name. */
static const ModelEntry *split_spec(const char *spec, char **name, const char **list)
{
    if (g_str_has_prefix(spec, PROFILE_PREFIX))
        spec += strlen(PROFILE_PREFIX);
    const char *colon = strchr(spec, ':');
    *name = colon ? g_strndup(spec, (gsize)(colon - spec)) : g_strdup(spec);
    *list = colon ? spec_after_colon(colon) : "";
    const ModelEntry *entry = NAME_ROW(MODEL_TABLE, MODEL_TABLE_SIZE, info.name, *name);
    if (entry)
        return entry;
    *list = model_spec_list(spec);
    put_block(*name,
              **list ? g_strndup(spec, (gsize)(*list - 1 - spec)) : g_strdup(spec));
    return NULL;
}

char *model_brief(const char *canonical)
{
    g_autofree char *name = NULL;
    const char *list;
    const ModelEntry *entry = split_spec(canonical, &name, &list);
    const ModelParams params = model_params_new(entry ? entry : &MODEL_OF_TEXT);
    if (!entry && !strstr(list, "capacity_factor=")) /* a profile, or ONNX */
        return g_strdup(canonical);
    g_autofree char *defaults = model_params_spec("", &params);
    g_auto(GStrv) usual = g_strsplit(defaults + 1, ",", -1),
                  pair = g_strsplit(list, ",", -1);
    g_autoptr(GString) brief = g_string_new(name);
    char mark = ':';
    for (char **at = pair; *at; at++)
        if (!g_strv_contains((const char *const *)usual, *at) ||
            g_str_has_prefix(*at, "precision=")) {
            g_string_append_printf(brief, "%c%s", mark, *at);
            mark = ',';
        }
    return g_strdup(brief->str);
}

/* Whether a file is meant that may not be there. */
static bool is_file(const char *spec, const char *name)
{
    g_autofree char *named = model_file_named(name);
    return named || (*name && (g_file_test(name, G_FILE_TEST_EXISTS) ||
                               g_str_has_suffix(name, ".json") || path_is_yaml(name) ||
                               hub_is_id(name) || onnx_is(name) ||
                               g_str_has_prefix(spec, PROFILE_PREFIX)));
}

/* A model of the table or of a file; the file's content is given or got. */
static bool model_of(ModelOfFile of, const char *given, char **content, GError **error)
{
    g_autofree char *name = NULL;
    const ModelEntry *entry = split_spec(of.spec, &name, &of.list);
    if (entry)
        return build_entry(of.spec, entry, of.list, of.gpus, of.graph, of.canonical,
                           error);
    if (given || is_file(of.spec, name))
        return build_file(of, name, given, content, error);
    fail_unknown(name, error);
    return false;
}

Graph *model_build(const char *spec, uint32_t gpus, char **canonical, GError **error)
{
    return model_build_from(spec, NULL, gpus, canonical, error);
}

Graph *model_build_from(const char *spec, const char *content, uint32_t gpus,
                        char **canonical, GError **error)
{
    Graph *graph = NULL;
    const ModelOfFile of = {
        .spec = spec, .gpus = gpus, .graph = &graph, .canonical = canonical};
    model_of(of, content, NULL, error);
    return graph;
}

char *model_resolve(const char *spec, uint32_t gpus, char **content, GError **error)
{
    char *canonical = NULL;
    const ModelOfFile of = {.spec = spec, .gpus = gpus, .canonical = &canonical};
    g_assert(gpus > 0);
    *content = NULL;
    model_of(of, NULL, content, error);
    return canonical;
}

bool model_check(const char *spec, GError **error)
{
    return model_of((ModelOfFile){.spec = spec}, NULL, NULL, error);
}

bool model_is_one(const char *spec)
{
    g_autofree char *name = NULL;
    const char *list;
    if (split_spec(spec, &name, &list) || *list)
        return true;
    g_autofree char *file = model_file_path(name);
    json_auto_t *root =
        g_file_test(file, G_FILE_TEST_IS_REGULAR) ? model_file_load(file, NULL) : NULL;
    return root &&
           (json_object_get(root, "model_type") ||
            json_object_get(root, "architectures") || json_object_get(root, "like") ||
            format_of_model(root) != FORMAT_HUGGINGFACE);
}

/* The object of the file that a spec names, whose path and keys *file and *list get, for the caller
 * to free. NULL: an error, or, where *file is NULL, a model of the table. */
static json_t *load_spec(const char *spec, char **file, const char **list, GError **error)
{
    g_autofree char *name = NULL;
    *file = split_spec(spec, &name, list) ? NULL : model_file_path(name);
    return *file ? model_file_load(*file, error) : NULL;
}

bool model_content(const char *spec, char **content, GError **error)
{
    g_autofree char *file = NULL;
    const char *list;
    json_t *root = load_spec(spec, &file, &list, error);
    *content = root ? json_canonical(root) : NULL;
    return root || !file;
}

char *model_write(const char *spec, uint32_t gpus, GError **error)
{
    g_autoptr(Graph) graph = model_build(spec, gpus, NULL, error);
    if (!graph)
        return NULL;
    json_auto_t *root = graph_to_json(graph);
    char *dump = json_dumps(root, JSON_INDENT(1));
    char *text = g_strconcat(dump, "\n", NULL);
    free(dump);
    return text;
}

/* The text of an object of facts, which is released; NULL: there is none. */
static char *facts_text(json_t *facts)
{
    return facts ? json_canonical(facts) : NULL;
}

char *model_architecture(const char *spec, GError **error)
{
    g_autofree char *name = NULL, *file = NULL;
    const char *list;
    if (split_spec(spec, &name, &list) || !is_file(spec, name) || onnx_is(name))
        return NULL;
    json_auto_t *root = load_spec(spec, &file, &list, error);
    const bool other = !root || format_of_model(root) != FORMAT_HUGGINGFACE;
    g_autofree Architecture *a = other ? NULL : read_config(file, root, list, error);
    if (a && a->encoder && a->encoder->patch_numbers && !strstr(list, "patches=")) {
        char *all = g_strdup_printf("%s%svision_config (patches=N adds its tower)",
                                    a->unread ? a->unread : "", a->unread ? ", " : "");
        put_block(a->unread, all);
    }
    char *text = facts_text(a ? config_facts(a, file) : NULL);
    if (a)
        architecture_clear(a);
    return text;
}

char *model_file_facts(const char *spec, GError **error)
{
    g_autofree char *name = NULL, *file = NULL;
    const char *list;
    if (split_spec(spec, &name, &list) || !onnx_is(name))
        return NULL;
    json_auto_t *root = load_spec(spec, &file, &list, error);
    return facts_text(root ? onnx_file_facts(spec, file, root, list, error) : NULL);
}
