/* Exports to Megatron-LM, FlagScale and DeepSpeed: degrees as flags. */
#include <jansson.h>
#include <string.h>

#include "data/formats/export/case.h"

static bool need_megatron(const ExportCase *c, GError **error)
{
    return export_need_even(c, error) && export_need_strategy(c, error) &&
           export_need_1f1b(c, error);
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

static void add_padding(const ExportCase *c, GString *out)
{
    if (export_padded(c))
        g_string_append_printf(
            out, "# vocabulary: %u rows, padded to %u (counted in the plan's memory)\n",
            c->vocab, export_padded(c));
}

/* Adds a flag of a command line with its value, or a switch. */
static void add_flag(void *data, const char *name, const char *text)
{
    const bool quoted = text && strpbrk(text, "|*()");
    const char *quote = quoted ? "'" : "";
    g_string_append_printf(data, "    --%s%s%s%s%s \\\n", name, text ? " " : "", quote,
                           text ? text : "", quote);
}

/* Adds a key of a section of YAML; several words are a list. */
static void add_key(void *data, const char *name, const char *text)
{
    g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
    g_auto(GStrv) word = g_strsplit(text ? text : "true", " ", -1);
    g_autofree char *list = g_strjoinv(", ", word);
    g_string_append_printf(data, word[1] ? "  %s: [%s]\n" : "  %s: %s\n", key, list);
}

/* The words of the strategy and the model, without numbers that are the framework's own by
 * default. A model that no flags describe is left to the user, and a comment says so. */
static char **megatron_words(const ExportCase *c, GString *out)
{
    char **value = export_words(c);
    g_autofree char *missing = export_model_words(c, value);
    if (missing)
        g_string_append_printf(
            out, "# The model is left to you: GPTModel has no flags for its '%s'.\n",
            missing);
    if (c->layout.pp > 1)
        value[WORD_LAYOUT] = export_layers_text(c);
    return value;
}

bool export_megatron(const ExportCase *c, GArray *files, GError **error)
{
    g_autoptr(GString) out = g_string_new("#!/bin/sh\n");
    if (!need_megatron(c, error))
        return false;
    g_string_append_printf(
        out, "# %s on %s: %.6g s per iteration, predicted by kilter %s\n", c->plan->model,
        c->plan->cluster, c->plan->iteration_time_s, c->plan->version);
    char **value = megatron_words(c, out);
    add_padding(c, out);
    g_string_append(out, "# Ranks:\n");
    export_add_ranks(c, "# ", out);
    g_string_append(out, "set -- \\\n");
    if (c->layout.zero > 1)
        g_string_append(out, "    --use-megatron-fsdp \\\n"
                             "    --use-distributed-optimizer \\\n"
                             "    --no-gradient-accumulation-fusion \\\n");
    launch_write(c->names, "megatron", value, add_flag, out);
    g_string_append_printf(out, "    \"$@\"  # %sdata, optimizer\n",
                           value[WORD_HIDDEN] ? "" : "sizes of the model, ");
    export_add_torchrun(c, "",
                        value[WORD_HIDDEN]
                            ? "pretrain_gpt.py \"$@\""
                            : "\"${PROGRAM:?the one that trains this model}\" \"$@\"",
                        out);
    export_words_free(value);
    export_add_file(files, "", g_steal_pointer(&out));
    return true;
}

/* --- FlagScale --- */

static const char *type_of_stage(const ExportCase *c, uint32_t p)
{
    return c->view->device[c->layout.device[(size_t)p * export_stage_ranks(c)]].type_name;
}

/* Adds the meshes, which are runs of stages on one device type: [tp, cp, ep, dp, pp] each.
 * FlagScale sorts ranks by the first place of their device's type in its list: where a type comes
 * back, all have one name, so that ranks stay in their order. */
static void add_meshes(const ExportCase *c, GString *out)
{
    const StrategyLayout *l = &c->layout;
    g_autoptr(GString) meshes = g_string_new(NULL), types = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    const bool once =
        all_of(p, l->pp,
               g_hash_table_add(seen, (gpointer)type_of_stage(c, p)) ||
                   strcmp(type_of_stage(c, p), type_of_stage(c, p - 1)) == 0);
    for (uint32_t p = 0, n; p < l->pp; p += n) {
        const char *type = type_of_stage(c, p);
        for (n = 1; p + n < l->pp && strcmp(type_of_stage(c, p + n), type) == 0;)
            n++;
        g_string_append_printf(meshes, "%s%u, %u, %u, %u, %u", p ? ", " : "", l->tp,
                               l->cp, l->ep, l->dp, n);
        g_string_append_printf(types, "%s\"%s\"", p ? ", " : "", once ? type : "any");
    }
    g_string_append_printf(out, "    hetero_process_meshes: [%s]\n", meshes->str);
    g_string_append_printf(out, "    hetero_device_types: [%s]\n", types->str);
    g_string_append_printf(out, "    hetero_current_device_type: \"%s\"%s\n",
                           once ? type_of_stage(c, 0) : "any",
                           once ? "  # on each machine its own" : "");
}

bool export_flagscale(const ExportCase *c, GArray *files, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (!need_megatron(c, error))
        return false;
    char **value = megatron_words(c, out), **model = g_new0(char *, WORDS + 1);
    g_clear_pointer(&value[WORD_LAYOUT], g_free); /* its own key has the layers */
    for (uint32_t word = WORD_LAYERS; word < WORDS; word++)
        model[word] = g_steal_pointer(&value[word]);
    model[WORD_SEQ] = g_steal_pointer(&value[WORD_SEQ]);
    model[WORD_MICRO_BATCH] = g_steal_pointer(&value[WORD_MICRO_BATCH]);
    model[WORD_GLOBAL_BATCH] = g_steal_pointer(&value[WORD_GLOBAL_BATCH]);
    g_string_append_printf(out, "# %s on %s, by kilter %s\nsystem:\n", c->plan->model,
                           c->plan->cluster, c->plan->version);
    launch_write(c->names, "megatron", value, add_key, out);
    g_string_append(out, "  hetero:\n    enable_hetero: true\n");
    add_meshes(c, out);
    g_string_append(out, "    hetero_pipeline_layer_split: [");
    for (uint32_t s = 0; s < c->layout.n_stages; s++)
        g_string_append_printf(out, "%s%u", s ? ", " : "", export_inner_layers(c, s));
    g_string_append(out, "]\nmodel:\n");
    launch_write(c->names, "megatron", model, add_key, out);
    add_padding(c, out);
    g_string_append(out, "# Ranks:\n");
    export_add_ranks(c, "# ", out);
    export_words_free(value);
    export_words_free(model);
    export_add_file(files, "", g_steal_pointer(&out));
    return true;
}

/* --- DeepSpeed --- */

/* Sets "a.b" of an object: a number, or a switch that is true. */
static void set_path(void *data, const char *name, const char *text)
{
    g_auto(GStrv) part = g_strsplit(name, ".", 2);
    json_t *at = data;
    char *end = NULL;
    if (part[1]) {
        at = json_object_get(data, part[0]);
        if (!at)
            json_object_set_new(data, part[0], at = json_object());
    }
    const json_int_t number = text ? (json_int_t)g_ascii_strtoll(text, &end, 10) : 0;
    json_object_set_new(at, part[1] ? part[1] : part[0],
                        end && end != text && !*end     ? json_integer(number)
                        : g_strcmp0(text, "false") == 0 ? json_false()
                                                        : json_true());
}

bool export_deepspeed(const ExportCase *c, GArray *files, GError **error)
{
    if (!export_need_strategy(c, error) || !export_need_even(c, error))
        return false;
    char **value = export_words(c);
    g_clear_pointer(&value[WORD_TP], g_free);
    if (!value[WORD_ZERO])
        value[WORD_ZERO] = g_strdup("0");
    json_t *root = json_object();
    if (value[WORD_RECOMPUTE])
        json_object_set_new(
            root, "_comment",
            json_string("DeepSpeed recomputes only layers that the model calls by "
                        "deepspeed.checkpointing.checkpoint, or, with transformers, by "
                        "gradient_checkpointing_enable"));
    launch_write(c->names, "deepspeed", value, set_path, root);
    export_words_free(value);
    export_add_json(files, "", root);
    return true;
}
