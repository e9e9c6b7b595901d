/* Specs of models: the part after the colon, key=value,..., read and written. */
#include "data/base/error.h"
#include "data/base/names.h"
#include "data/formats/huggingface/config.h"
#include "data/graph/documents.h"
#include "data/models/models.h"

#include <math.h>
#include <string.h>

static bool set_optimizer(const char *value, ModelParams *params, GError **error)
{
    params->optimizer = optimizer_from_name(value);
    return params->optimizer < OPTIMIZERS ||
           refuse(error, "expected " OPTIMIZER_NAMES ", got '%s'", value);
}

static bool set_precision(const char *value, ModelParams *params, GError **error)
{
    params->precision = precision_from_name(value);
    params->has_precision = true;
    return params->precision < PRECISIONS ||
           refuse(error, "expected " PRECISION_NAMES ", got '%s'", value);
}

/* Reads attention=...: as in the model's paper, or as it is run today. */
static bool set_attention(const char *value, ModelParams *params, GError **error)
{
    const bool fused = strcmp(value, "fused") == 0;
    if (!fused && strcmp(value, "materialized") != 0)
        return refuse(error, "expected fused or materialized, got '%s'", value);
    params->attention = fused ? ATTENTION_FUSED : ATTENTION_MATERIALIZED;
    return true;
}

/* Reads a number or quantity in the parameter's range. */
static bool read_value(const char *value, const ModelParam *param, double *number,
                       GError **error)
{
    if (param->unit) {
        if (!units_parse(value, param->quantity, number, error))
            return false;
    } else if (!number_read(value, param->min, param->max, number)) {
        *number = NAN;
    }
    if (*number >= param->min && *number <= param->max &&
        (!param->integer || *number == floor(*number)))
        return true;
    const char *unit = param->unit ? param->unit : "";
    return refuse(error, "expected %s from %.10g%s to %.10g%s, got '%s'",
                  param->integer ? "an integer" : "a number", param->min, unit,
                  param->max, unit, value);
}

/* --- what is trained --- */

/* The parts that a file of adapters trains. */
static bool set_adapters(const char *path, ModelParams *params, GError **error)
{
    uint32_t rank;
    g_autofree char *target = NULL;
    if (!peft_read(path, &rank, &target, error))
        return false;
    params->target = g_intern_string(target);
    g_autofree char *train = g_strdup_printf("lora:%u", rank);
    params->train = g_intern_string(train);
    return true;
}

static bool set_train(const char *value, ModelParams *params, GError **error)
{
    TrainedParts training;
    params->train = g_intern_string(value);
    return model_training(params, &training) ||
           refuse(error,
                  "expected all, lora:RANK, layers:FIRST-LAST or an adapter_config.json "
                  "(QLoRA is train=lora:16,weights=nf4), got '%s'",
                  value);
}

bool model_training(const ModelParams *params, TrainedParts *training)
{
    enum { MOST_RANK = 65536 };
    static const struct {
        const char *word, *names;
    } TARGET[] = {{"mlp", "ffn+mlp+moe"}, {"all", "attention+attn+ffn+mlp+moe"}};
    const char *train = params->train ? params->train : "all";
    const char *target = params->target ? params->target : "attention";
    char *end = NULL;
    g_auto(GStrv) word = g_strsplit(target, "+", -1);
    for (uint32_t w = 0; word[w]; w++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(TARGET); i++)
            if (strcmp(TARGET[i].word, word[w]) == 0) {
                put_block(word[w], g_strdup(TARGET[i].names));
                break;
            }
    g_autofree char *names = g_strjoinv("+", word);
    *training =
        (TrainedParts){.target = g_intern_string(names), .documents = params->documents};
    if (strcmp(train, "all") == 0)
        return true;
    const char *number = strchr(train, ':');
    if (!number || !g_ascii_isdigit(number[1]))
        return false;
    const guint64 first = g_ascii_strtoull(number + 1, &end, 10);
    if (g_str_has_prefix(train, "lora:")) {
        training->kind = TRAIN_LORA;
        training->rank = (uint32_t)first;
        return !*end && first >= 1 && first <= MOST_RANK;
    }
    const guint64 last = *end == '-' && g_ascii_isdigit(end[1])
                             ? g_ascii_strtoull(end + 1, &end, 10)
                             : first;
    training->kind = TRAIN_LAYERS;
    training->first = (uint32_t)first;
    training->last = (uint32_t)last;
    return g_str_has_prefix(train, "layers:") && !*end && first <= last &&
           last <= UINT16_MAX;
}

/* --- states --- */

static bool set_format(uint32_t key, const char *value, ModelParams *params,
                       GError **error)
{
    StateFormats states = precision_states(params->precision);
    params->format[key] = g_intern_string(value);
    return state_formats_set(&states, STATE_KEYS[key], value) ||
           refuse(error,
                  "expected " STATE_FORMAT_NAMES " (one that it can have), got '%s'",
                  value);
}

static StateFormats states_of(const ModelParams *params)
{
    StateFormats states = precision_states(params->precision);
    for (uint32_t k = 0; STATE_KEYS[k]; k++)
        if (params->format[k])
            state_formats_set(&states, STATE_KEYS[k], params->format[k]);
    return states;
}

static bool check_states(const char *spec, const ModelParams *params, GError **error)
{
    const StateFormats states = states_of(params);
    const bool none = states.of[STATE_WEIGHTS] == DTYPE_NONE;
    TrainedParts training;
    model_training(params, &training);
    if (none && states.of[STATE_MASTER] == DTYPE_NONE)
        return refuse(
            error,
            "model '%s': weights=none: expected a master copy, from which they are made",
            spec);
    if (states.of[STATE_WEIGHTS] == DTYPE_NF4 && training.kind != TRAIN_LORA)
        return refuse(error,
                      "model '%s': weights=nf4: expected train=lora:RANK, as weights of "
                      "four bits are not trained",
                      spec);
    return !params->target || training.kind == TRAIN_LORA ||
           refuse(error, "model '%s': target: expected train=lora:RANK with it", spec);
}

void model_prepare(Graph *graph, const ModelParams *params)
{
    const StateFormats states = states_of(params);
    TrainedParts training;
    model_training(params, &training);
    graph_set_precision(graph, params->precision);
    graph_set_states(graph, &states);
    graph_set_training(graph, &training);
}

/* The keys that every model has beside its own: optimizer, precision, those of states, train,
 * target and, where there is any, attention and documents. */
enum {
    KEY_OPTIMIZER,
    KEY_PRECISION,
    KEY_STATES,
    KEY_TRAIN = KEY_STATES + 4,
    KEY_TARGET,
    KEY_ATTENTION,
    KEY_DOCUMENTS,
    KEY_LIKE,
    KEY_PRODUCTS,
    COMMON_KEYS
};

static bool set_shared(uint32_t key, const char *value, ModelParams *params,
                       GError **error)
{
    switch (key) {
    case KEY_OPTIMIZER:
        return set_optimizer(value, params, error);
    case KEY_PRECISION:
        return set_precision(value, params, error);
    case KEY_PRODUCTS:
        params->own_products = strcmp(value, "own") == 0;
        return params->own_products || strcmp(value, "packed") == 0 ||
               refuse(error, "expected packed or own, got '%s'", value);
    case KEY_LIKE:
        return g_strlcpy(params->like, value, sizeof params->like) <
                   sizeof params->like ||
               refuse(error, "expected a family, got '%s'", value);
    case KEY_TRAIN:
        return set_train(value, params, error);
    case KEY_TARGET:
        params->target = g_intern_string(value);
        return true;
    case KEY_DOCUMENTS:
        params->documents = g_intern_string(value);
        return documents_are(value) ||
               refuse(error, "expected lengths as 9000+500, got '%s'", value);
    case KEY_ATTENTION:
        return set_attention(value, params, error);
    default:
        return set_format(key - KEY_STATES, value, params, error);
    }
}

static bool set_param(const char *spec, const char *key, const char *value,
                      ModelParams *params, GError **error)
{
    const char *known[MODEL_MAX_PARAMS + COMMON_KEYS + 1] = {NULL};
    uint32_t index, n = params->n;
    for (uint32_t i = 0; i < n; i++)
        known[i] = params->param[i].key;
    known[n + KEY_OPTIMIZER] = "optimizer";
    known[n + KEY_PRECISION] = "precision";
    for (uint32_t k = 0; STATE_KEYS[k]; k++)
        known[n + KEY_STATES + k] = STATE_KEYS[k];
    known[n + KEY_TRAIN] = "train";
    known[n + KEY_TARGET] = "target";
    known[n + KEY_ATTENTION] = params->has_attention ? "attention" : NULL;
    known[n + KEY_DOCUMENTS] = params->has_attention ? "documents" : NULL;
    known[n + KEY_LIKE] = params->has_like ? "like" : NULL;
    known[n + KEY_PRODUCTS] = params->has_like ? "products" : NULL;
    if (!names_find("parameter", key, known, &index, error))
        return kilter_prefix(error, "model '%s': ", spec);
    if (index - n == KEY_TRAIN && peft_is(value))
        return set_adapters(value, params, error);
    return (index < n ? read_value(value, &params->param[index],
                                   &params->param[index].value, error)
                      : set_shared(index - n, value, params, error)) ||
           kilter_prefix(error, "model '%s': %s: ", spec, known[index]);
}

bool model_params_parse(const char *text, const char *list, ModelParams *params,
                        GError **error)
{
    g_autoptr(Spec) spec = spec_read_pairs(list);
    if (!spec_check_once(spec, NULL, error))
        return kilter_prefix(error, "model '%s': ", text);
    for (uint32_t i = 0; i < spec->n; i++) {
        if (!spec->value[i])
            return refuse(error, "model '%s': expected key=value, got '%s'", text,
                          spec->key[i]);
        if (!set_param(text, spec->key[i], spec->value[i], params, error))
            return false;
    }
    return check_states(text, params, error);
}

bool model_params_follow(const char *spec, ModelParams *params, uint32_t gpu_experts,
                         uint32_t gpus, GError **error)
{
    double batch = model_param(params, "batch") * gpus;
    items_each (ModelParam, param, params->param, params->n) {
        if (param->value == 0 && strcmp(param->key, "global_batch") == 0)
            param->value = batch;
        if (param->value == 0 && strcmp(param->key, "experts") == 0)
            param->value = (double)gpu_experts * gpus;
    }
    if (model_param(params, "global_batch") > UINT32_MAX)
        return refuse(error, "model '%s': batch %.0f x %u GPUs is too large", spec,
                      model_param(params, "batch"), gpus);
    return true;
}

char *model_params_spec(const char *name, const ModelParams *params)
{
    g_autoptr(GString) text = g_string_new(name);
    for (uint32_t i = 0; i < params->n; i++)
        g_string_append_printf(text, "%c%s=%.10g%s", i ? ',' : ':', params->param[i].key,
                               params->param[i].value,
                               params->param[i].unit ? params->param[i].unit : "");
    if (params->attention != ATTENTION_OF_MODEL)
        g_string_append_printf(text, ",attention=%s",
                               params->attention == ATTENTION_FUSED ? "fused"
                                                                    : "materialized");
    if (params->documents)
        g_string_append_printf(text, ",documents=%s", params->documents);
    if (params->own_products)
        g_string_append(text, ",products=own");
    if (*params->like)
        g_string_append_printf(text, ",like=%s", params->like);
    g_string_append_printf(text, ",optimizer=%s,precision=%s",
                           optimizer_name(params->optimizer),
                           precision_name(params->precision));
    for (uint32_t k = 0; STATE_KEYS[k]; k++)
        if (params->format[k])
            g_string_append_printf(text, ",%s=%s", STATE_KEYS[k], params->format[k]);
    if (params->train && strcmp(params->train, "all") != 0)
        g_string_append_printf(text, ",train=%s", params->train);
    if (params->target)
        g_string_append_printf(text, ",target=%s", params->target);
    return g_strdup(text->str);
}

ModelParams model_params_new(const ModelEntry *entry)
{
    ModelParams params = {.optimizer = OPTIMIZER_ADAM,
                          .has_attention = entry->attention,
                          .has_like = entry->like};
    for (const ModelParam *param = entry->param; param->key; param++)
        params.param[params.n++] = *param;
    return params;
}

ModelParam *model_params_find(ModelParams *params, const char *key)
{
    return NAME_ROW(params->param, params->n, key, key);
}
