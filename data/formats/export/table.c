/* Exports as tables: replicas with unequal parts of the batch for PyTorch's DDP, pipelines of them
 * for torch.distributed.pipelining, and everything as JSON. */
#include <jansson.h>

#include "data/base/json.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/formats/export/case.h"

/* --- DDP --- */

static bool is_kept_whole(const Tensor *tensor)
{
    return tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER;
}

/* Refuses unless parameters and states are whole on every device, activations are cut along the
 * batch only, and only gradients are communicated. */
static bool need_whole_parameters(const ExportCase *c, GError **error)
{
    items_at (const Instr, instr, i, c->plan->program->instr, c->plan->program->n)
        if (instr->kind == INSTR_TRANSFER && !instr_regroups(c->plan->program, instr))
            return export_refuse(c, i, error, "a pipeline");
    items_at (const Instr, instr, i, c->plan->program->instr, c->plan->program->n) {
        Operand use[OP_MAX_IN];
        const uint32_t n = instr_uses(instr, c->graph, use);
        if (instr->kind == INSTR_LOAD &&
            is_kept_whole(graph_tensor(c->graph, instr->tensor)) &&
            instr->to != FORM_IDENTITY)
            return export_refuse(c, i, error, "%s is cut over the devices",
                                 graph_tensor(c->graph, instr->tensor)->name);
        if (instr->kind == INSTR_COLLECTIVE &&
            graph_tensor(c->graph, instr->tensor)->role == ROLE_ACTIVATION)
            return export_refuse(c, i, error, "an activation is communicated");
        for (uint32_t k = 0; k < n; k++) {
            const Tensor *tensor = graph_tensor(c->graph, use[k].tensor);
            if (instr->kind == INSTR_COMPUTE && is_kept_whole(tensor) &&
                use[k].form != FORM_IDENTITY)
                return export_refuse(c, i, error, "%s is cut over the devices",
                                     tensor->name);
        }
    }
    return true;
}

static const char SCRIPT[] =
    "\n\ndef share(rank):\n"
    "    \"\"\"The samples of a rank: (first, number) of the global batch.\"\"\"\n"
    "    return OFFSET[rank], BATCH[rank]\n"
    "\n\ndef scale(loss, rank):\n"
    "    \"\"\"Of the mean loss of the rank's samples: DDP averages gradients over ranks "
    "as if all had as many.\"\"\"\n"
    "    return loss * WEIGHT[rank]\n";

static void add_list(GString *out, const char *name, const GArray *value)
{
    g_string_append_printf(out, "%s = [", name);
    for (guint i = 0; i < value->len; i++)
        g_string_append_printf(out, "%s%u", i ? ", " : "",
                               g_array_index(value, uint32_t, i));
    g_string_append(out, "]\n");
}

/* A script's first lines: the plan, its ranks and their start. */
static GString *begin_script(const ExportCase *c)
{
    GString *out = g_string_new(NULL);
    g_string_append_printf(
        out, "# %s on %s by %s: %.6g s per iteration, predicted by kilter %s\n",
        c->plan->model, c->plan->cluster, c->plan->planner, c->plan->iteration_time_s,
        c->plan->version);
    export_add_torchrun(c, "# ", "train.py", out);
    export_add_ranks(c, "# ", out);
    return out;
}

/* Adds samples and offsets of the ranks. */
static void add_samples(const ExportCase *c, const uint32_t *sample, GString *out)
{
    g_autoptr(GArray) batch = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) offset = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t sum = 0;
    for (uint32_t r = 0; r < c->plan->n_devices; r++)
        for (uint32_t g = 0; g < c->view->device[export_rank(c, r)].gpus; g++) {
            g_array_append_val(offset, sum);
            g_array_append_val(batch, sample[export_rank(c, r)]);
            sum += sample[export_rank(c, r)];
        }
    g_string_append_printf(out, "GLOBAL_BATCH = %u\nMICROBATCHES = %u\n", sum,
                           c->plan->program->n_microbatches);
    add_list(out, "BATCH", batch);
    add_list(out, "OFFSET", offset);
    g_string_append(out, "WEIGHT = [b * len(BATCH) / GLOBAL_BATCH for b in BATCH]\n");
}

bool export_ddp(const ExportCase *c, GArray *files, GError **error)
{
    g_autofree uint32_t *sample = g_new0(uint32_t, c->view->n_devices);
    if (!need_whole_parameters(c, error) || !export_samples(c, sample, error))
        return false;
    g_autoptr(GString) out = begin_script(c);
    add_samples(c, sample, out);
    g_string_append(out, SCRIPT);
    export_add_file(files, "", g_steal_pointer(&out));
    return true;
}

/* --- torch.distributed.pipelining --- */

bool export_pytorch(const ExportCase *c, GArray *files, GError **error)
{
    const StrategyLayout *l = &c->layout;
    g_autofree char *path = path_bundled("pipelining.py", error),
                    *code = path ? text_read(path, error) : NULL;
    g_autofree uint32_t *sample = g_new0(uint32_t, c->view->n_devices);
    if (!code || !export_need_strategy(c, error) || !export_samples(c, sample, error))
        return false;
    g_autoptr(GArray) batch = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) again = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) first = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t r = 0; r < l->dp; r++) {
        const uint32_t n = sample[l->device[r]] / l->n_microbatches;
        g_array_append_val(batch, n);
    }
    for (uint32_t k = 0; k < graph_n_layers(c->graph); k++)
        if (l->recompute[k] == RECOMPUTE_FULL)
            g_array_append_val(again, k);
    g_array_append_vals(first, l->first, l->n_stages + 1);
    g_autoptr(GString) out = begin_script(c);
    g_string_append_printf(out,
                           "PIPELINE = %u\nMICROBATCHES = %u\nZERO = %s\n"
                           "STEPS = \"%s.csv\"\n",
                           l->pp, l->n_microbatches, l->zero ? "True" : "False", c->base);
    add_list(out, "FIRST", first);
    add_list(out, "BATCH", batch);
    add_list(out, "AGAIN", again);
    g_string_append(out, code);
    export_add_file(files, "", g_steal_pointer(&out));
    export_add_file(files, ".csv", export_steps_csv(c));
    return true;
}

/* --- JSON --- */

static json_t *devices_json(const ExportCase *c)
{
    json_t *list = json_array();
    items_at (const Device, d, j, c->view->device, c->view->n_devices) {
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i, s:f}", "name",
                                              d->name, "machine",
                                              c->view->cluster->machine[d->machine].name,
                                              "type", d->type_name, "gpus", (int)d->gpus,
                                              "ratio", c->plan->ratio[j]));
    }
    return list;
}

static json_t *stage_json(const ExportCase *c, uint32_t s)
{
    json_t *layers = json_array(), *modes = json_array();
    for (uint32_t l = c->layout.first[s]; l < c->layout.first[s + 1]; l++) {
        json_array_append_new(layers, json_string(graph_layer_name(c->graph, l)));
        g_autofree char *words = recompute_words(c->layout.recompute[l]);
        json_array_append_new(modes, json_string(words));
    }
    return json_pack("{s:i, s:o, s:o}", "group", (int)(s % c->layout.pp), "layers",
                     layers, "recompute", modes);
}

static json_t *steps_json(const GArray *steps)
{
    json_t *list = json_array();
    array_each (const ExportStep, step, steps) {
        g_autofree char *text =
            g_strdup_printf("%u%c%u", step->stage, step->letter, step->microbatch);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

/* Adds stages, ranks and steps of a strategy. */
static void add_strategy(const ExportCase *c, json_t *root)
{
    json_t *stages = json_array(), *groups = json_array();
    g_autoptr(GPtrArray) all = export_steps(c);
    const uint32_t *device = c->layout.device; /* of the next group */
    for (uint32_t s = 0; s < c->layout.n_stages; s++)
        json_array_append_new(stages, stage_json(c, s));
    for (uint32_t p = 0; p < c->layout.pp; device += layout_devices(&c->layout, p++))
        json_array_append_new(
            groups, json_pack("{s:o, s:o}", "devices",
                              json_integers(device, layout_devices(&c->layout, p)),
                              "steps", steps_json(g_ptr_array_index(all, p))));
    json_object_set_new(root, "strategy", strategy_json(c->strategy));
    json_object_set_new(root, "stages", stages);
    json_object_set_new(root, "groups", groups);
    json_object_set_new(root, "microbatches", json_integer(c->layout.n_microbatches));
    json_object_set_new(root, "micro_batch", json_integer(c->micro_batch));
}

/* Whether the parts are those of torch.chunk: ceil(n / parts) each, the rest in the last ones. */
static bool is_chunk(const uint32_t *count, uint32_t n, uint32_t units)
{
    const uint32_t most = (units + n - 1) / n;
    for (uint32_t k = 0, left = units; k < n; left -= count[k++])
        if (count[k] != MIN(most, left))
            return false;
    return true;
}

/* The group where each parameter rests, and its cut over the devices of a replica. */
static json_t *parameters_json(const ExportCase *c)
{
    json_t *list = json_array();
    items_at (const Instr, instr, i, c->plan->program->instr, c->plan->program->n) {
        if (instr->kind != INSTR_LOAD ||
            graph_tensor(c->graph, instr->tensor)->role != ROLE_PARAMETER)
            continue;
        char form[FORM_TEXT];
        bool batch;
        const Split *split =
            export_cut(c, instr->group, instr->tensor, instr->to, &batch);
        const uint32_t n = c->cuts.group[instr->group].n_devices;
        json_t *object = json_pack("{s:s, s:i, s:s}", "name",
                                   graph_tensor(c->graph, instr->tensor)->name, "group",
                                   (int)instr->group, "form", form_text(instr->to, form));
        if (split) {
            json_object_set_new(object, "units", json_integer(split->units));
            json_object_set_new(object, "counts", json_integers(split->count, n));
            json_object_set_new(object, "torch_chunk",
                                json_boolean(is_chunk(split->count, n, split->units)));
        }
        json_array_append_new(list, object);
    }
    return list;
}

bool export_json(const ExportCase *c, GArray *files, GError **error)
{
    (void)error;
    json_t *root =
        json_pack("{s:{s:s, s:i}, s:s, s:s, s:s, s:s, s:f, s:i, s:o}", "format", "name",
                  "kilter export", "version", 1, "model", c->plan->model, "cluster",
                  c->plan->cluster, "planner", c->plan->planner, "version",
                  c->plan->version, "iteration_time_s", c->plan->iteration_time_s,
                  "global_batch", (int)c->batch, "devices", devices_json(c));
    if (c->has_strategy)
        add_strategy(c, root);
    json_object_set_new(root, "parameters", parameters_json(c));
    export_add_json(files, "", root);
    return true;
}
