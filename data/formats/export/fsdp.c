/* Export to PyTorch's FSDP through accelerate: its configuration (YAML), and the batches as
 * Hugging Face's TrainingArguments (JSON), which the configuration has no keys for. */
#include <jansson.h>
#include <string.h>

#include "data/formats/export/case.h"

/* Adds a key; the first one of a section begins it. */
static void fsdp_add_key(void *data, const char *name, const char *text)
{
    GString *out = data;
    g_auto(GStrv) part = g_strsplit(name, ".", 2);
    if (!part[1]) {
        if (!strchr(name, '_') || g_str_has_prefix(name, "mixed"))
            g_string_append_printf(out, "%s: '%s'\n", name, text ? text : "true");
        return;
    }
    g_autofree char *section = g_strconcat("\n", part[0], ":\n", NULL);
    if (!strstr(out->str,
                section)) /* truth values for resharding are those of version 2 */
        g_string_append_printf(out, "%s:\n%s", part[0],
                               g_str_equal(part[0], "fsdp_config") ? "  fsdp_version: 2\n"
                                                                   : "");
    g_string_append_printf(out, "  %s: %s\n", part[1], text ? text : "true");
}

static void fsdp_add_config(const ExportCase *c, GString *out)
{
    const StrategyLayout *l = &c->layout;
    char **value = export_words(c);
    static const LaunchWord OTHER[] = {WORD_TP,          WORD_PP,           WORD_SEQUENCE,
                                       WORD_MICRO_BATCH, WORD_MICROBATCHES, WORD_SEQ};
    for (uint32_t i = 0; i < G_N_ELEMENTS(OTHER); i++)
        g_clear_pointer(&value[OTHER[i]], g_free);
    if (!value[WORD_RECOMPUTE])
        value[WORD_RECOMPUTE] = g_strdup("none");
    if (value[WORD_ZERO_RANKS])
        value[WORD_REPLICATE] = g_strdup_printf("%u", l->dp / l->zero_ranks);
    g_string_append(out, "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n");
    launch_write(c->names, "accelerate", value, fsdp_add_key, out);
    export_words_free(value);
    g_string_append_printf(out,
                           "num_machines: %u\nnum_processes: %u\n"
                           "machine_rank: 0  # on each machine its own\n"
                           "main_training_function: main\nrdzv_backend: static\n",
                           c->view->cluster->n_machines, c->plan->n_devices);
}

bool export_fsdp(const ExportCase *c, GArray *files, GError **error)
{
    if (!export_need_strategy(c, error) || !export_need_even(c, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out, "# %s on %s, by kilter %s\n# Ranks:\n", c->plan->model,
                           c->plan->cluster, c->plan->version);
    export_add_ranks(c, "# ", out);
    fsdp_add_config(c, out);
    export_add_file(files, "", g_steal_pointer(&out));
    export_add_json(files, LAUNCH_ARGUMENTS,
                    json_pack("{s:i, s:i}", "per_device_train_batch_size",
                              (int)c->micro_batch, "gradient_accumulation_steps",
                              (int)c->layout.n_microbatches));
    return true;
}
