#include "data/models/model.h"

#include "data/base/error.h"
#include "data/base/names.h"
#include "data/models/models.h"

#include <math.h>
#include <string.h>

typedef struct {
    ModelInfo info;
    TensorId (*build)(Graph *graph, const ModelParams *params);
    const char *(*check)(const ModelParams *params); /* may be NULL */
    ModelParam param[MODEL_MAX_PARAMS];              /* ends with key NULL */
    void (*finish)(Graph *graph,
                   const ModelParams *params); /* before sealing; may be NULL */
    uint32_t gpu_experts; /* a GPU, where experts follow the cluster */
} ModelEntry;

#define SIZE(key, value)                  \
    {                                     \
        key, value, 1, 1e9, true, NULL, 0 \
    }
/* 0: no, 1: yes. */
#define FLAG(key)                   \
    {                               \
        key, 0, 0, 1, true, NULL, 0 \
    }
#define DURATION(key, value)                          \
    {                                                 \
        key, value, 0, 1e6, false, "s", QUANTITY_TIME \
    }
/* global_batch and experts: 0 means "follow the cluster"; resolved before building. */
#define BATCH(value)                             \
    SIZE("batch", value),                        \
    {                                            \
        "global_batch", 0, 0, 1e9, true, NULL, 0 \
    }
#define DROPOUT(value)                            \
    {                                             \
        "dropout", value, 0, 0.99, false, NULL, 0 \
    }
#define ENCODER                                                                   \
    SIZE("layers", 8), SIZE("hidden", 768), SIZE("heads", 12), SIZE("ffn", 3072), \
        DROPOUT(0.1)
#define EXPERTS                                                                     \
    {"experts", 0, 0, 1e6, true, NULL, 0},                                          \
        {"capacity_factor", 1.25, 0.01, 100, false, NULL, 0}, SIZE("moe_every", 2), \
        SIZE("moe_group", 1)
#define IMAGE SIZE("image", 32), SIZE("patch", 4), SIZE("classes", 10)
#define TEXT  SIZE("seq", 128), SIZE("vocab", 33280)

static const ModelEntry entry[] = {
    {{"vgg19", "Simonyan and Zisserman 2015; HAP Table 1 (CIFAR-10)"},
     model_vgg19,
     model_vgg19_check,
     {BATCH(64), SIZE("image", 32), SIZE("width", 64), SIZE("pool", 7), SIZE("fc", 4096),
      SIZE("classes", 10), DROPOUT(0.5)},
     NULL,
     0},
    {{"vit", "Dosovitskiy et al. 2020; HAP Table 1 (CIFAR-10)"},
     model_vit,
     model_vit_check,
     {BATCH(64), ENCODER, IMAGE},
     NULL,
     0},
    {{"bert-base", "Devlin et al. 2018; HAP Table 1 (WikiText-2)"},
     model_bert_base,
     model_transformer_check,
     {BATCH(64), ENCODER, TEXT},
     NULL,
     0},
    {{"bert-moe", "Lepikhin et al. 2020 (GShard); HAP Table 1 (WikiText-2)"},
     model_bert_sgmoe,
     model_bert_moe_check,
     {BATCH(32), ENCODER, TEXT, EXPERTS},
     NULL,
     2},
    {{"bert-sgmoe", "Shazeer et al. 2017 (top-2 gating); HiDup Table 1 (WikiText-103)"},
     model_bert_sgmoe,
     model_bert_moe_check,
     {BATCH(32), ENCODER, TEXT, EXPERTS},
     NULL,
     1},
    {{"bert-switch", "Fedus et al. 2021 (top-1 gating); HiDup Table 1 (WikiText-103)"},
     model_bert_switch,
     model_bert_moe_check,
     {BATCH(32), ENCODER, TEXT, EXPERTS},
     NULL,
     1},
    {{"vit-sgmoe", "Shazeer et al. 2017 (top-2 gating); HiDup Table 1 (CIFAR-10)"},
     model_vit_sgmoe,
     model_vit_moe_check,
     {BATCH(32), ENCODER, IMAGE, EXPERTS},
     NULL,
     2},
    {{"vit-switch", "Fedus et al. 2021 (top-1 gating); HiDup Table 1 (CIFAR-10)"},
     model_vit_switch,
     model_vit_moe_check,
     {BATCH(32), ENCODER, IMAGE, EXPERTS},
     NULL,
     2},
    {{"gpt2", "Radford et al. 2019; AMP Sec. 4.3 (24 layers of 1024)"},
     model_gpt2,
     model_transformer_check,
     {BATCH(2), SIZE("layers", 24), SIZE("hidden", 1024), SIZE("heads", 16),
      SIZE("ffn", 4096), DROPOUT(0.1), SIZE("seq", 1024), SIZE("vocab", 52256)},
     NULL,
     0},
    {{"transgan",
      "generator, Jiang et al. 2021; AMP Sec. 4.3 (12 layers of 1024, 12 of 16)"},
     model_transgan,
     model_transgan_check,
     {BATCH(4), SIZE("layers", 12), SIZE("channels", 16), SIZE("heads", 4),
      SIZE("windows", 4), SIZE("group", 16), SIZE("upsample", 16), SIZE("bottom", 9),
      SIZE("latent", 512), FLAG("whole_heads"), DROPOUT(0)},
     NULL,
     0},
    {{"synthetic", "durations written down; for given plans such as dp-ev's"},
     model_synthetic,
     model_synthetic_check,
     {BATCH(1),
      SIZE("layers", 12),
      DURATION("forward", 0.01),
      DURATION("backward", 0.02),
      {"gradient", 28e6, 4, 4e9, true, "B", QUANTITY_BYTES}},
     model_synthetic_times,
     0},
};

uint32_t model_count(void)
{
    return G_N_ELEMENTS(entry);
}

const ModelInfo *model_info(uint32_t index)
{
    return &entry[index].info;
}

char *model_parameters_text(uint32_t index)
{
    g_autoptr(GString) text = g_string_new("");
    for (const ModelParam *param = entry[index].param; param->key; param++)
        g_string_append_printf(text, "%s=%.10g%s ", param->key, param->value,
                               param->unit ? param->unit : "");
    return g_strdup_printf("%soptimizer=adam precision=%s", text->str,
                           precision_name(PRECISION_SINGLE));
}

double model_param(const ModelParams *params, const char *key)
{
    for (uint32_t i = 0; i < params->n; i++)
        if (strcmp(params->param[i].key, key) == 0)
            return params->param[i].value;
    g_assert_not_reached();
}

uint32_t model_size(const ModelParams *params, const char *key)
{
    return (uint32_t)model_param(params, key);
}

/* --- pieces that builders share --- */

TensorId model_unary(Graph *graph, OpKind kind, const char *name, TensorId x)
{
    return graph_op(graph, kind, name, (OpAttr){0}, 1, &x, NULL);
}

TensorId model_dropout(Graph *graph, const char *name, TensorId x, double rate)
{
    if (rate == 0)
        return x;
    OpAttr attr = {.rate = rate, .seed = graph_n_ops(graph)};
    return graph_op(graph, OP_DROPOUT, name, attr, 1, &x, NULL);
}

TensorId model_linear(Graph *graph, const char *name, TensorId x, uint32_t n, bool bias)
{
    const Tensor in = *graph_tensor(graph, x);
    g_autofree char *weight_name = g_strdup_printf("%s.weight", name);
    g_autofree char *bias_name = g_strdup_printf("%s.bias", name);
    TensorId operand[3] = {
        x, graph_parameter(graph, weight_name, 2, (uint32_t[]){n, in.dim[in.rank - 1]})};
    if (bias)
        operand[2] = graph_parameter(graph, bias_name, 1, &n);
    return graph_op(graph, OP_LINEAR, name, (OpAttr){0}, bias ? 3 : 2, operand, NULL);
}

TensorId model_loss(Graph *graph, TensorId logits, TensorId labels)
{
    TensorId log_p = model_unary(graph, OP_LOG_SOFTMAX, "log_softmax", logits);
    return graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2,
                    (TensorId[]){log_p, labels}, NULL);
}

TensorId model_sharded_loss(Graph *graph, TensorId logits, TensorId labels)
{
    const OpAttr none = {0};
    TensorId t = graph_op(graph, OP_LABEL_LOGIT, "label_logit", none, 2,
                          (TensorId[]){logits, labels}, NULL);
    TensorId s =
        graph_op(graph, OP_SUM_EXP, "sum_exp", none, 2, (TensorId[]){logits, t}, NULL);
    TensorId z =
        graph_op(graph, OP_LOG_SUM_EXP, "log_sum_exp", none, 2, (TensorId[]){s, t}, NULL);
    return graph_op(graph, OP_CROSS_ENTROPY, "loss", none, 3,
                    (TensorId[]){logits, labels, z}, NULL);
}

/* --- specs --- */

static bool set_optimizer(const char *spec, const char *value, ModelParams *params,
                          GError **error)
{
    if (strcmp(value, "adam") != 0 && strcmp(value, "sgd") != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "model '%s': optimizer: expected adam or sgd, got '%s'", spec,
                           value);
    params->optimizer = strcmp(value, "sgd") == 0 ? OPTIMIZER_SGD : OPTIMIZER_ADAM;
    return true;
}

static bool set_precision(const char *spec, const char *value, ModelParams *params,
                          GError **error)
{
    params->precision = precision_from_name(value);
    if (params->precision < PRECISIONS)
        return true;
    g_autoptr(GString) known = g_string_new("");
    for (Precision p = 0; p < PRECISIONS; p++)
        g_string_append_printf(known, "%s%s", p ? ", " : "", precision_name(p));
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "model '%s': precision: expected one of %s, got '%s'", spec,
                       known->str, value);
}

/* A number or quantity in the parameter's range. */
static bool read_value(const char *spec, const char *value, const ModelParam *param,
                       double *number, GError **error)
{
    if (param->unit) {
        if (!units_parse(value, param->quantity, number, error)) {
            g_prefix_error(error, "model '%s': %s: ", spec, param->key);
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
    const char *known[MODEL_MAX_PARAMS + 3] = {NULL};
    uint32_t index, n = params->n;
    for (uint32_t i = 0; i < n; i++)
        known[i] = params->param[i].key;
    known[n] = "optimizer";
    known[n + 1] = "precision";
    if (!names_find("parameter", key, known, &index, error)) {
        g_prefix_error(error, "model '%s': ", spec);
        return false;
    }
    if (index == n)
        return set_optimizer(spec, value, params, error);
    if (index > n)
        return set_precision(spec, value, params, error);
    ModelParam *param = &params->param[index];
    return read_value(spec, value, param, &param->value, error);
}

static const ModelEntry *find_entry(const char *name, GError **error)
{
    g_autofree const char **known = NAMES_OF(entry, info.name);
    uint32_t index;
    return names_find("model", name, known, &index, error) ? &entry[index] : NULL;
}

static bool set_params(const char *text, const Spec *spec, ModelParams *params,
                       GError **error)
{
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

/* Weak scaling: what is 0 follows the number of GPUs (HAP Sec. 7.1). */
static bool follow_cluster(const char *spec, ModelParams *params, uint32_t gpu_experts,
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

static char *canonical_spec(const char *name, const ModelParams *params)
{
    g_autoptr(GString) text = g_string_new(name);
    for (uint32_t i = 0; i < params->n; i++)
        g_string_append_printf(text, "%c%s=%.10g%s", i ? ',' : ':', params->param[i].key,
                               params->param[i].value,
                               params->param[i].unit ? params->param[i].unit : "");
    return g_strdup_printf("%s,optimizer=%s,precision=%s", text->str,
                           params->optimizer == OPTIMIZER_SGD ? "sgd" : "adam",
                           precision_name(params->precision));
}

Graph *model_build(const char *spec, uint32_t gpus, char **canonical, GError **error)
{
    g_autoptr(Spec) parts = spec_read(spec);
    const ModelEntry *model = find_entry(parts->word, error);
    if (!model)
        return NULL;
    ModelParams params = {.optimizer = OPTIMIZER_ADAM};
    while (model->param[params.n].key) {
        params.param[params.n] = model->param[params.n];
        params.n++;
    }
    if (!set_params(spec, parts, &params, error) ||
        !follow_cluster(spec, &params, model->gpu_experts, gpus, error))
        return NULL;
    const char *wrong = model->check ? model->check(&params) : NULL;
    if (wrong) {
        kilter_fail(error, KILTER_ERROR_INPUT, "model '%s': %s", spec, wrong);
        return NULL;
    }
    Graph *graph = graph_new(parts->word);
    graph_set_precision(graph, params.precision);
    graph_differentiate(graph, model->build(graph, &params), params.optimizer);
    if (model->finish)
        model->finish(graph, &params);
    graph_seal(graph);
    if (canonical)
        *canonical = canonical_spec(parts->word, &params);
    return graph;
}
