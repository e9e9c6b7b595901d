/* Export to torchtitan: a recipe, which is a function that returns its configuration, and the
 * program's schedule. */
#include <string.h>

#include "data/formats/export/case.h"

/* Modules of torchtitan's models: tok_embeddings, layers.0, ..., norm, lm_head. */
static char *modules_text(const ExportCase *c)
{
    const uint32_t last = graph_n_layers(c->graph) - 1;
    GString *text = g_string_new("[");
    for (uint32_t s = 0; s < c->layout.n_stages; s++) {
        g_string_append(text, s ? ", [" : "[");
        const uint32_t first = c->layout.first[s];
        for (uint32_t l = first; l < c->layout.first[s + 1]; l++)
            if (l < last)
                g_string_append_printf(text, "%s'%s'", l > first ? ", " : "",
                                       l > 0 ? graph_layer_name(c->graph, l)
                                             : "tok_embeddings");
        if (s + 1 == c->layout.n_stages)
            g_string_append_printf(text, "%s'norm', 'lm_head'", first < last ? ", " : "");
        g_string_append_c(text, ']');
    }
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

/* FSDP shards parameters, or only gradients if parameters are kept after the forward; without it
 * replicas are whole. */
static void put_titan(const ExportCase *c, char **value)
{
    const StrategyLayout *l = &c->layout;
    const uint32_t ranks = l->zero >= 2 ? l->zero_ranks : 1;
    static const LaunchWord OTHER[] = {WORD_MICRO_BATCH, WORD_GLOBAL_BATCH, WORD_VIRTUAL};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OTHER); i++)
        g_clear_pointer(&value[OTHER[i]], g_free);
    if (l->cp_comm == CP_COMM_ALLGATHER) /* PyTorch's default; its newest has no other */
        g_clear_pointer(&value[WORD_CP_COMM], g_free);
    value[WORD_SHARD] = g_strdup_printf("%u", ranks / l->cp);
    value[WORD_REPLICATE] = g_strdup_printf("%u", l->dp / (ranks / l->cp));
    value[WORD_TOKENS_MICRO] =
        g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)c->micro_batch * c->seq);
    value[WORD_TOKENS_STEP] =
        g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)c->batch * c->seq);
    if (!value[WORD_RECOMPUTE])
        value[WORD_RECOMPUTE] = g_strdup("none");
    if (l->pp == 1) { /* microbatches are steps of gradient accumulation */
        g_clear_pointer(&value[WORD_MICROBATCHES], g_free);
        return;
    }
    /* A file of steps runs with stage s on rank s % pp. Where stages go there and back, torchtitan
     * has the steps itself (PyTorch's ScheduleZBVZeroBubble and ScheduleDualPipeV). */
    const bool back = schedule_row(l->schedule)->v,
               named = l->schedule == SCHEDULE_GPIPE ||
                       l->schedule == SCHEDULE_BREADTH_FIRST || back;
    value[WORD_SCHEDULE] = g_strdup(named                 ? schedule_name(l->schedule)
                                    : l->n_stages > l->pp ? "interleaved"
                                                          : "1f1b");
    if (!back)
        value[WORD_STEPS_FILE] = g_strconcat(c->base, ".csv", NULL);
    value[WORD_MODULES] = modules_text(c);
}

/* Adds `config.SECTION.KEY = VALUE` with the value as Python writes it. */
static void add_assignment(void *data, const char *name, const char *text)
{
    const bool plain = !text || strspn(text, "0123456789.") == strlen(text) ||
                       *text == '[' || strcmp(text, "True") == 0 ||
                       strcmp(text, "False") == 0 ||
                       strcmp(name, "activation_checkpoint") == 0;
    const char *quote = plain ? "" : "'";
    g_string_append_printf(data, "    config.%s = %s%s%s\n", name, quote,
                           text ? text : "True", quote);
}

bool export_torchtitan(const ExportCase *c, GArray *files, GError **error)
{
    if (!export_need_even(c, error) || !export_need_strategy(c, error))
        return false;
    char **value = export_words(c);
    put_titan(c, value);
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out,
                           "# %s on %s: %.6g s per iteration, predicted by kilter %s\n"
                           "# A recipe of torchtitan: --module MODULE_OF_THIS_FILE "
                           "--config plan\n# Ranks:\n",
                           c->plan->model, c->plan->cluster, c->plan->iteration_time_s,
                           c->plan->version);
    export_add_ranks(c, "# ", out);
    export_add_torchrun(c, "# ", "-m torchtitan.train", out);
    if (value[WORD_STEPS_FILE])
        g_string_append_printf(out, LAUNCH_STEPS "%s\n",
                               schedule_name(c->layout.schedule));
    if (strcmp(value[WORD_RECOMPUTE], "none") != 0)
        g_string_append(out, "from torchtitan.distributed.activation_checkpoint import "
                             "FullAC, SelectiveAC\n");
    g_string_append(out, "from torchtitan.models.llama3.config_registry import llama3_8b "
                         "as base  # the recipe of your model\n"
                         "\n\ndef plan():\n    config = base()\n");
    launch_write(c->names, "torchtitan", value, add_assignment, out);
    const bool steps = value[WORD_STEPS_FILE] != NULL;
    export_words_free(value);
    g_string_append(out, "    return config\n");
    export_add_file(files, "", g_steal_pointer(&out));
    if (steps)
        export_add_file(files, ".csv", export_steps_csv(c));
    return true;
}
