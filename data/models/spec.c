/* Specs of models: the part after the colon, key=value,..., read and written. */
#include "data/base/error.h"
#include "data/base/names.h"
#include "data/models/models.h"

#include <math.h>
#include <string.h>

static bool set_optimizer(const char *spec, const char *value, ModelParams *params,
                          GError **error)
{
    params->optimizer = optimizer_from_name(value);
    return params->optimizer < OPTIMIZERS ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "model '%s': optimizer: expected " OPTIMIZER_NAMES ", got '%s'",
                       spec, value);
}

static bool set_precision(const char *spec, const char *value, ModelParams *params,
                          GError **error)
{
    params->precision = precision_from_name(value);
    params->has_precision = true;
    return params->precision < PRECISIONS ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "model '%s': precision: expected " PRECISION_NAMES ", got '%s'",
                       spec, value);
}

/* Reads attention=...: as in the model's paper, or as it is run today. */
static bool set_attention(const char *spec, const char *value, ModelParams *params,
                          GError **error)
{
    const bool fused = strcmp(value, "fused") == 0;
    if (!fused && strcmp(value, "materialized") != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "model '%s': attention: expected fused or materialized, got "
                           "'%s'",
                           spec, value);
    params->attention = fused ? ATTENTION_FUSED : ATTENTION_MATERIALIZED;
    return true;
}

static bool set_like(const char *spec, const char *value, ModelParams *params,
                     GError **error)
{
    return g_strlcpy(params->like, value, sizeof params->like) < sizeof params->like ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "model '%s': like: expected a family, got '%s'", spec, value);
}

/* Reads a number or quantity in the parameter's range. */
static bool read_value(const char *spec, const char *value, const ModelParam *param,
                       double *number, GError **error)
{
    if (param->unit) {
        if (!units_parse(value, param->quantity, number, error)) {
            kilter_prefix(error, "model '%s': %s: ", spec, param->key);
            return false;
        }
    } else {
        char *end;
        *number = g_ascii_strtod(value, &end);
        if (end == value || *end)
            *number = NAN;
    }
    if (*number >= param->min && *number <= param->max &&
        (!param->integer || *number == floor(*number)))
        return true;
    const char *unit = param->unit ? param->unit : "";
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "model '%s': %s: expected %s from %.10g%s to %.10g%s, got '%s'",
                       spec, param->key, param->integer ? "an integer" : "a number",
                       param->min, unit, param->max, unit, value);
}

static bool set_param(const char *spec, const char *key, const char *value,
                      ModelParams *params, GError **error)
{
    const char *known[MODEL_MAX_PARAMS + 5] = {NULL};
    uint32_t index, n = params->n;
    for (uint32_t i = 0; i < n; i++)
        known[i] = params->param[i].key;
    known[n] = "optimizer";
    known[n + 1] = "precision";
    known[n + 2] = params->has_attention ? "attention" : NULL;
    known[n + 3] = params->has_like ? "like" : NULL;
    if (!names_find("parameter", key, known, &index, error)) {
        kilter_prefix(error, "model '%s': ", spec);
        return false;
    }
    if (index == n)
        return set_optimizer(spec, value, params, error);
    if (index == n + 1)
        return set_precision(spec, value, params, error);
    if (index == n + 3)
        return set_like(spec, value, params, error);
    if (index > n)
        return set_attention(spec, value, params, error);
    ModelParam *param = &params->param[index];
    return read_value(spec, value, param, &param->value, error);
}

bool model_params_parse(const char *text, const char *list, ModelParams *params,
                        GError **error)
{
    g_autoptr(Spec) spec = spec_read_pairs(list);
    if (!spec_check_once(spec, NULL, error)) {
        kilter_prefix(error, "model '%s': ", text);
        return false;
    }
    for (uint32_t i = 0; i < spec->n; i++) {
        if (!spec->value[i])
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "model '%s': expected key=value, got '%s'", text,
                               spec->key[i]);
        if (!set_param(text, spec->key[i], spec->value[i], params, error))
            return false;
    }
    return true;
}

bool model_params_follow(const char *spec, ModelParams *params, uint32_t gpu_experts,
                         uint32_t gpus, GError **error)
{
    double batch = model_param(params, "batch") * gpus;
    for (uint32_t i = 0; i < params->n; i++) {
        ModelParam *param = &params->param[i];
        if (param->value == 0 && strcmp(param->key, "global_batch") == 0)
            param->value = batch;
        if (param->value == 0 && strcmp(param->key, "experts") == 0)
            param->value = (double)gpu_experts * gpus;
    }
    if (model_param(params, "global_batch") > UINT32_MAX)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "model '%s': batch %.0f x %u GPUs is too large", spec,
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
    if (*params->like)
        g_string_append_printf(text, ",like=%s", params->like);
    return g_strdup_printf("%s,optimizer=%s,precision=%s", text->str,
                           optimizer_name(params->optimizer),
                           precision_name(params->precision));
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
    for (uint32_t i = 0; i < params->n; i++)
        if (strcmp(params->param[i].key, key) == 0)
            return &params->param[i];
    return NULL;
}
