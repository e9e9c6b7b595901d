/* Exports to Megatron-LM, FlagScale and DeepSpeed: degrees as flags. */
#include <jansson.h>
#include <string.h>

#include "data/formats/export/case.h"

/* The first computation of a layer, recomputed or not. */
static uint32_t first_of_layer(const ExportCase *c, uint32_t layer)
{
    for (uint32_t i = 0; i < c->plan->program->n; i++) {
        const Instr *instr = &c->plan->program->instr[i];
        if (instr->kind == INSTR_COMPUTE &&
            graph_get_op(c->graph, instr->op)->layer == layer)
            return i;
    }
    return 0;
}

/* How keys are written: as flags of a command line, or as a section of YAML. */
typedef enum { STYLE_FLAGS, STYLE_YAML } Style;

/* Adds a key with its value, or a switch that is on if there is none. */
static void add_text(GString *out, Style style, const char *key, const char *value)
{
    if (style == STYLE_YAML) {
        g_string_append_printf(out, "  %s: %s\n", key, value ? value : "true");
        return;
    }
    g_autofree char *flag = g_strdelimit(g_strdup(key), "_", '-');
    g_string_append_printf(out, "    --%s%s%s \\\n", flag, value ? " " : "",
                           value ? value : "");
}

static void add_number(GString *out, Style style, const char *key, uint32_t value)
{
    g_autofree char *text = g_strdup_printf("%u", value);
    add_text(out, style, key, text);
}

static bool need_megatron(const ExportCase *c, GError **error)
{
    return export_need_even(c, true, error) && export_need_strategy(c, error) &&
           export_need_layers(c, error) && export_need_1f1b(c, error);
}

/* --- recomputation --- */

/* The number of layers, from the stage's first layer on, that are computed again, if the others are
 * not. */
static bool block_of(const ExportCase *c, uint32_t stage, uint32_t *n, GError **error)
{
    const uint32_t last = graph_n_layers(c->graph) - 1;
    const uint32_t first = MAX(c->layout.first[stage], 1u);
    const uint32_t end = MIN(c->layout.first[stage + 1], last);
    *n = 0;
    for (uint32_t l = first; l < end; l++) {
        const Recompute mode = c->layout.recompute[l];
        if (mode != RECOMPUTE_NONE && mode != RECOMPUTE_FULL)
            return export_refuse(c, first_of_layer(c, l), error,
                                 "selective recomputation of some layers");
        if (mode == RECOMPUTE_FULL && l != first + *n)
            return export_refuse(c, first_of_layer(c, l), error,
                                 "recomputation that is not of a stage's first layers");
        *n += mode == RECOMPUTE_FULL;
    }
    return true;
}

/* Adds the modules that Megatron-LM knows, if all layers compute the same ones again. */
static bool add_modules(const ExportCase *c, Style style, GString *out, GError **error)
{
    const Recompute mode = c->layout.recompute[1];
    g_autofree char *words = recompute_words(mode);
    add_text(out, style, "recompute_granularity", "selective");
    if (mode & RECOMPUTE_ALTERNATE)
        return export_refuse(c, first_of_layer(c, 1), error,
                             "recomputation of every second product");
    if (mode == RECOMPUTE_SELECTIVE)
        return true;
    g_auto(GStrv) word = g_strsplit(words, "+", -1);
    g_autofree char *list = g_strjoinv(style == STYLE_YAML ? ", " : " ", word);
    g_autofree char *modules =
        style == STYLE_YAML ? g_strdup_printf("[%s]", list) : g_strdup(list);
    add_text(out, style, "recompute_modules", modules);
    return true;
}

/* Adds the keys of recomputation: for all layers, or for the first N of every stage. */
static bool add_recompute(const ExportCase *c, Style style, GString *out, GError **error)
{
    const uint32_t last = graph_n_layers(c->graph) - 1;
    uint32_t full = 0, selective = 0, most = 0;
    for (uint32_t l = 1; l < last; l++) {
        full += c->layout.recompute[l] == RECOMPUTE_FULL;
        selective += c->layout.recompute[l] != RECOMPUTE_NONE &&
                     c->layout.recompute[l] != RECOMPUTE_FULL &&
                     c->layout.recompute[l] == c->layout.recompute[1];
    }
    if (full == 0 && selective == 0)
        return true;
    if (selective == last - 1)
        return add_modules(c, style, out, error);
    add_text(out, style, "recompute_granularity", "full");
    for (uint32_t s = 0, n; s < c->layout.n_stages; s++) {
        if (!block_of(c, s, &n, error))
            return false;
        most = MAX(most, n);
    }
    /* A stage with fewer layers than that computes all of them again. */
    for (uint32_t s = 0, n; full < last - 1 && s < c->layout.n_stages; s++)
        if (block_of(c, s, &n, error) && n != MIN(most, export_inner_layers(c, s)))
            return export_refuse(c, first_of_layer(c, c->layout.first[s]), error,
                                 "stage %u computes %u layers again, another one %u", s,
                                 n, most);
    add_text(out, style, "recompute_method", full == last - 1 ? "uniform" : "block");
    add_number(out, style, "recompute_num_layers", full == last - 1 ? 1 : most);
    return true;
}

/* Whether sequence parallelism is on in all layers; refuses if it is on in some only. */
static bool all_sequence(const ExportCase *c, bool *on, GError **error)
{
    *on = c->layout.sequence[0];
    for (uint32_t l = 1; l < graph_n_layers(c->graph); l++)
        if (c->layout.sequence[l] != *on)
            return export_refuse(c, first_of_layer(c, l), error,
                                 "sequence parallelism in some stages only");
    return true;
}

/* --- Megatron-LM --- */

char *export_layers_text(const ExportCase *c)
{
    const uint32_t n = c->layout.n_stages;
    GString *text = g_string_new(NULL);
    for (uint32_t s = 0; s < n; s++) {
        const uint32_t layers = export_inner_layers(c, s);
        g_string_append(text, s == 0 ? "E" : "|");
        if (layers > 3)
            g_string_append_printf(text, "t*%u", layers);
        else
            g_string_append_len(text, "ttt", layers);
    }
    g_string_append_c(text, 'L');
    return g_string_free(text, FALSE);
}

static void add_precision(const ExportCase *c, Style style, GString *out)
{
    const Precision precision = graph_precision(c->graph);
    const Numbers numbers = precision_numbers(precision);
    if (numbers == NUMBERS_BF16)
        add_text(out, style, "bf16", NULL);
    if (numbers == NUMBERS_F16)
        add_text(out, style, "fp16", NULL);
    if (precision_least_numbers(precision) == NUMBERS_F8)
        add_text(out, style, "fp8_format", "hybrid");
}

static bool add_states(const ExportCase *c, Style style, GString *out, GError **error)
{
    const StrategyLayout *l = &c->layout;
    const uint32_t instances = l->dp * l->cp / l->zero_ranks;
    if (l->zero == 0)
        return true;
    if (l->zero > 1)
        return export_refuse(c, first_of_layer(c, 1), error,
                             "zero=%u; its distributed optimizer is zero=1", l->zero);
    add_text(out, style, "use_distributed_optimizer", NULL);
    if (instances > 1 && style == STYLE_YAML)
        return export_refuse(c, first_of_layer(c, 1), error,
                             "zero=1 among %u of %u ranks; its meshes know all only",
                             l->zero_ranks, l->dp * l->cp);
    if (instances > 1)
        add_number(out, style, "num_distributed_optimizer_instances", instances);
    return true;
}

/* Adds what both frameworks call alike: degrees, numbers, recomputation, divided states. */
static bool add_common(const ExportCase *c, Style style, GString *out, GError **error)
{
    const StrategyLayout *l = &c->layout;
    bool sequence;
    add_number(out, style, "tensor_model_parallel_size", l->tp);
    add_number(out, style, "pipeline_model_parallel_size", l->pp);
    if (l->cp > 1) {
        add_number(out, style, "context_parallel_size", l->cp);
        add_text(out, style, "cp_comm_type", l->all_to_all ? "a2a" : "all_gather");
    }
    if (l->ep > 1)
        add_number(out, style, "expert_model_parallel_size", l->ep);
    add_precision(c, style, out);
    if (!all_sequence(c, &sequence, error))
        return false;
    if (sequence)
        add_text(out, style, "sequence_parallel", NULL);
    return add_recompute(c, style, out, error) && add_states(c, style, out, error);
}

static void add_sizes(const ExportCase *c, Style style, GString *out)
{
    add_number(out, style, "num_layers", graph_n_layers(c->graph) - 2);
    if (c->seq > 0)
        add_number(out, style, "seq_length", c->seq);
    add_number(out, style, "micro_batch_size", c->micro_batch);
    add_number(out, style, "global_batch_size", c->batch);
}

static bool add_flags(const ExportCase *c, GString *out, GError **error)
{
    g_autofree char *stages = export_layers_text(c);
    g_autofree char *quoted = g_strdup_printf("'%s'", stages);
    if (!add_common(c, STYLE_FLAGS, out, error))
        return false;
    if (c->layout.pp > 1)
        add_text(out, STYLE_FLAGS, "pipeline_model_parallel_layout", quoted);
    add_sizes(c, STYLE_FLAGS, out);
    return true;
}

bool export_megatron(const ExportCase *c, GArray *files, GError **error)
{
    g_autoptr(GString) out = g_string_new("#!/bin/sh\n");
    if (!need_megatron(c, error))
        return false;
    g_string_append_printf(
        out, "# %s on %s: %.6g s per iteration, predicted by kilter %s\n", c->plan->model,
        c->plan->cluster, c->plan->iteration_time_s, c->plan->version);
    g_string_append(out, "# Ranks:\n");
    export_add_ranks(c, "# ", out);
    g_string_append(out, "set -- \\\n");
    if (!add_flags(c, out, error))
        return false;
    g_string_append(out, "    \"$@\"  # sizes of the model, data, optimizer\n");
    export_add_torchrun(c, "", "pretrain_gpt.py \"$@\"", out);
    export_add_file(files, "", g_steal_pointer(&out));
    return true;
}

/* --- FlagScale --- */

/* The device type of a stage's group; refuses a mixed one. */
static bool type_of_stage(const ExportCase *c, uint32_t p, const char **type,
                          GError **error)
{
    const uint32_t n = export_stage_ranks(c);
    const uint32_t *device = c->layout.device + (size_t)p * n;
    *type = c->view->device[device[0]].type_name;
    for (uint32_t k = 1; k < n; k++)
        if (strcmp(c->view->device[device[k]].type_name, *type) != 0)
            return export_refuse(c, first_of_layer(c, c->layout.first[p]), error,
                                 "stage %u is on %s and %s; a mesh has one type", p,
                                 *type, c->view->device[device[k]].type_name);
    return true;
}

/* Adds the meshes, which are runs of stages on one device type: [tp, cp, ep, dp, pp] each. */
static bool add_meshes(const ExportCase *c, GString *out, GError **error)
{
    const StrategyLayout *l = &c->layout;
    g_autoptr(GString) meshes = g_string_new(NULL);
    g_autoptr(GString) types = g_string_new(NULL);
    const char *before = NULL, *type;
    for (uint32_t p = 0, n = 0; p <= l->pp; p++, n++) {
        type = NULL;
        if (p < l->pp && !type_of_stage(c, p, &type, error))
            return false;
        if (before && g_strcmp0(before, type) != 0) {
            g_string_append_printf(meshes, "%s%u, %u, %u, %u, %u",
                                   meshes->len ? ", " : "", l->tp, l->cp, l->ep, l->dp,
                                   n);
            g_string_append_printf(types, "%s\"%s\"", types->len ? ", " : "", before);
            n = 0;
        }
        before = type;
    }
    g_string_append_printf(out, "    hetero_process_meshes: [%s]\n", meshes->str);
    g_string_append_printf(out, "    hetero_device_types: [%s]\n", types->str);
    g_string_append_printf(
        out,
        "    hetero_current_device_type: \"%s\"  # on each machine its "
        "own\n",
        c->view->device[l->device[0]].type_name);
    return true;
}

bool export_flagscale(const ExportCase *c, GArray *files, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (!need_megatron(c, error))
        return false;
    if (c->layout.schedule == SCHEDULE_INTERLEAVED)
        return export_refuse(c, first_of_layer(c, c->layout.first[c->layout.pp]), error,
                             "virtual stages; its meshes have one stage per rank");
    g_string_append_printf(out, "# %s on %s, by kilter %s\nsystem:\n", c->plan->model,
                           c->plan->cluster, c->plan->version);
    if (!add_common(c, STYLE_YAML, out, error))
        return false;
    g_string_append(out, "  hetero:\n    enable_hetero: true\n");
    if (!add_meshes(c, out, error))
        return false;
    g_string_append(out, "    hetero_pipeline_layer_split: [");
    for (uint32_t s = 0; s < c->layout.n_stages; s++)
        g_string_append_printf(out, "%s%u", s ? ", " : "", export_inner_layers(c, s));
    g_string_append(out, "]\nmodel:\n");
    add_sizes(c, STYLE_YAML, out);
    g_string_append(out, "# Ranks:\n");
    export_add_ranks(c, "# ", out);
    export_add_file(files, "", g_steal_pointer(&out));
    return true;
}

/* --- DeepSpeed --- */

/* Refuses the first instruction by which devices share more than gradients. */
static bool need_replicas(const ExportCase *c, GError **error)
{
    if (c->layout.cp > 1 || c->layout.ep > 1)
        return export_refuse(c, first_of_layer(c, 1), error, "%s",
                             c->layout.cp > 1 ? "context parallelism"
                                              : "expert parallelism");
    for (uint32_t i = 0; i < c->plan->program->n; i++) {
        const Instr *instr = &c->plan->program->instr[i];
        if (instr->kind == INSTR_TRANSFER && !instr_regroups(c->plan->program, instr))
            return export_refuse(c, i, error, "pipelines");
        if (instr->kind == INSTR_COLLECTIVE && !instr->across && c->layout.tp > 1)
            return export_refuse(c, i, error, "tensor parallelism");
    }
    return true;
}

bool export_deepspeed(const ExportCase *c, GArray *files, GError **error)
{
    if (!export_need_strategy(c, error) || !need_replicas(c, error) ||
        !export_need_even(c, true, error))
        return false;
    const Numbers numbers = precision_numbers(graph_precision(c->graph));
    uint32_t full = 0, none = 0, n = 0;
    for (uint32_t l = 1; l + 1 < graph_n_layers(c->graph); l++, n++) {
        full += c->layout.recompute[l] == RECOMPUTE_FULL;
        none += c->layout.recompute[l] == RECOMPUTE_NONE;
    }
    if (none > 0 ? none < n : full < n)
        return export_refuse(
            c, first_of_layer(c, 1), error,
            "recomputation of some ops or layers; the model's code decides that");
    if (precision_least_numbers(graph_precision(c->graph)) == NUMBERS_F8)
        return export_refuse(c, first_of_layer(c, 1), error, "products in fp8");
    json_t *root =
        json_pack("{s:i, s:i, s:i, s:{s:i}}", "train_batch_size", (int)c->batch,
                  "train_micro_batch_size_per_gpu", (int)c->micro_batch,
                  "gradient_accumulation_steps", (int)c->layout.n_microbatches,
                  "zero_optimization", "stage", (int)c->layout.zero);
    if (c->layout.zero == 3 && c->layout.zero_ranks < c->layout.dp)
        json_object_set_new(json_object_get(root, "zero_optimization"), "mics_shard_size",
                            json_integer(c->layout.zero_ranks));
    if (numbers != NUMBERS_F32)
        json_object_set_new(root, numbers == NUMBERS_BF16 ? "bf16" : "fp16",
                            json_pack("{s:b}", "enabled", 1));
    if (full > 0)
        json_object_set_new(root, "activation_checkpointing", json_object());
    export_add_json(files, root);
    return (c->layout.zero_ranks == c->layout.dp || c->layout.zero == 3 ||
            c->layout.zero == 0) ||
           export_refuse(c, first_of_layer(c, 1), error,
                         "zero=%u among %u of %u replicas", c->layout.zero,
                         c->layout.zero_ranks, c->layout.dp);
}
