/* The common parts of exporters: steps, ranks, files. Their checks are in
 * data/formats/export/check.c. */
#include "data/formats/export/case.h"

#include <stdlib.h>
#include <string.h>

void export_add_file(GArray *files, const char *suffix, GString *text)
{
    const ExportFile file = {suffix, g_string_free(text, FALSE)};
    g_array_append_val(files, file);
}

void export_add_json(GArray *files, const char *suffix, json_t *root)
{
    char *dump = json_dumps(root, JSON_INDENT(2));
    export_add_file(files, suffix, g_string_append_c(g_string_new(dump), '\n'));
    free(dump);
    json_decref(root);
}

/* Whether the program's groups are those of the strategy: other planners keep keys of it, such as
 * microbatches, for programs of their own. */
static bool is_laid_out(const ExportCase *c)
{
    const Program *program = c->plan->program;
    const uint32_t *device = c->layout.device;
    for (uint32_t p = 0; p < c->layout.pp; p++) {
        const DeviceGroup *group = p < program->n_groups ? &program->group[p] : NULL;
        const StageDegrees of = layout_degrees(&c->layout, p);
        const uint32_t n = layout_devices(&c->layout, p);
        if (!group || group->n_replicas != of.dp * of.cp || group->n_devices != of.tp ||
            memcmp(group->device, device, n * sizeof *device) != 0)
            return false;
        device += n;
    }
    return true;
}

void export_case_of(ExportCase *c)
{
    c->batch = graph_batch(c->graph);
    c->ends = graph_n_layers(c->graph) > 2;
    c->inner = graph_n_layers(c->graph) - 2 * c->ends;
    for (TensorId t = 0; t < graph_n_tensors(c->graph) && c->seq == 0; t++) {
        const Tensor *input = graph_tensor(c->graph, t);
        if (input->role == ROLE_INPUT && input->dtype == DTYPE_I64 && input->rank == 2)
            c->seq = input->dim[1];
    }
    for (OpId id = 0; id < graph_n_ops(c->graph) && c->vocab == 0; id++) {
        const Op *op = graph_get_op(c->graph, id);
        if (op->kind == OP_EMBEDDING)
            c->vocab = graph_tensor(c->graph, op->in[1])->dim[0];
    }
}

uint32_t export_padded(const ExportCase *c)
{
    const uint32_t tp = c->layout.tp;
    return tp > 1 && c->vocab % tp != 0 ? c->vocab + tp - c->vocab % tp : 0;
}

bool export_case_init(ExportCase *c, GError **error)
{
    export_case_of(c);
    c->strategy = &c->plan->strategy;
    c->has_strategy =
        strategy_lays_out(c->strategy) &&
        strategy_lay_out(c->strategy, c->graph, c->plan->n_devices, &c->layout, NULL) &&
        is_laid_out(c);
    c->micro_batch =
        c->has_strategy ? c->batch / c->layout.dp / c->layout.n_microbatches : 0;
    c->names = launch_names_read(error);
    return c->names && plan_layout_init(&c->cuts, c->plan, c->graph, error);
}

void export_case_clear(ExportCase *c)
{
    strategy_layout_clear(&c->layout);
    plan_layout_clear(&c->cuts);
    g_clear_pointer(&c->names, g_array_unref);
}

uint32_t export_stage_ranks(const ExportCase *c)
{
    return c->layout.dp * c->layout.cp * c->layout.tp;
}

uint32_t export_inner_layers(const ExportCase *c, uint32_t stage)
{
    const uint32_t last = graph_n_layers(c->graph) - 1;
    const uint32_t first = c->layout.first[stage], end = c->layout.first[stage + 1];
    return end - first - (first == 0) - (end == last + 1);
}

static uint32_t case_stage_of(const ExportCase *c, const Instr *instr)
{
    const Op *op = graph_get_op(c->graph, instr->op);
    const uint32_t layer = graph_get_op(c->graph, op->of)->layer;
    uint32_t stage = 0;
    while (c->layout.first[stage + 1] <= layer)
        stage++;
    return stage;
}

/* A backward that goes on after other steps is split: its first part is for the stage before, the
 * rest for weights. */
static void add_rest(GArray *steps, uint32_t first, ExportStep rest)
{
    ExportStep *begun = &g_array_index(steps, ExportStep, first);
    if (begun->letter == 'I' || first + 1 == steps->len)
        return;
    begun->letter = 'I';
    rest.letter = 'W';
    g_array_append_val(steps, rest);
}

GPtrArray *export_steps(const ExportCase *c)
{
    GPtrArray *groups = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    const uint32_t n = c->layout.n_microbatches;
    const bool splits = schedule_splits(c->layout.schedule);
    /* 1 + place of the first step with this stage, microbatch and direction */
    g_autofree uint32_t *seen = g_new0(uint32_t, (size_t)c->layout.n_stages * n * 2);
    for (uint32_t p = 0; p < c->layout.pp; p++)
        g_ptr_array_add(groups, g_array_new(FALSE, FALSE, sizeof(ExportStep)));
    items_at (const Instr, instr, i, c->plan->program->instr, c->plan->program->n) {
        if (instr->kind != INSTR_COMPUTE || instr->group >= c->layout.pp ||
            (instr->microbatch == PROGRAM_WHOLE && n > 1))
            continue;
        const Pass pass = graph_get_op(c->graph, instr->op)->pass;
        if (pass == PASS_UPDATE)
            continue;
        GArray *steps = g_ptr_array_index(groups, instr->group);
        const ExportStep step = {.stage = case_stage_of(c, instr),
                                 .microbatch =
                                     n > 1 ? instr->microbatch / c->layout.pieces : 0,
                                 .backward = pass == PASS_BACKWARD,
                                 .letter = pass == PASS_BACKWARD ? 'B' : 'F',
                                 .instr = i};
        uint32_t *known =
            &seen[((size_t)step.stage * n + step.microbatch) * 2 + step.backward];
        if (!*known)
            g_array_append_val(steps, step);
        else if (splits && step.backward)
            add_rest(steps, *known - 1, step);
        *known = *known ? *known : steps->len;
    }
    return groups;
}

GString *export_steps_csv(const ExportCase *c)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GPtrArray) groups = export_steps(c);
    for (uint32_t p = 0; p < c->layout.pp; p++) {
        const GArray *steps = g_ptr_array_index(groups, p);
        array_at (const ExportStep, step, k, steps) {
            g_string_append_printf(out, "%s%u%c%u", k ? "," : "", step->stage,
                                   step->letter, step->microbatch);
        }
        g_string_append_c(out, '\n');
    }
    return out;
}

uint32_t export_rank(const ExportCase *c, uint32_t rank)
{
    return c->has_strategy ? c->layout.device[rank] : rank;
}

/* The index of a device among the devices of its machine. */
static uint32_t local_of(const ExportCase *c, uint32_t device)
{
    uint32_t first = device;
    while (first > 0 &&
           c->view->device[first - 1].machine == c->view->device[device].machine)
        first--;
    return device - first;
}

void export_add_ranks(const ExportCase *c, const char *prefix, GString *out)
{
    g_string_append_printf(out, "%srank,machine,gpu,type\n", prefix);
    for (uint32_t r = 0, rank = 0; r < c->plan->n_devices; r++) {
        const uint32_t device = export_rank(c, r);
        const Device *d = &c->view->device[device];
        for (uint32_t g = 0; g < d->gpus; g++)
            g_string_append_printf(out, "%s%u,%s,%u,%s\n", prefix, rank++,
                                   c->view->cluster->machine[d->machine].name,
                                   local_of(c, device) + g, d->type_name);
    }
}

/* A run of neighbouring ranks on one machine: what one torchrun starts. */
typedef struct {
    uint32_t machine, first, n; /* first rank, ranks */
    bool whole;                 /* all GPUs of the machine, in their order */
} Run;

static GArray *list_runs(const ExportCase *c)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(Run));
    for (uint32_t r = 0; r < c->plan->n_devices; r++) {
        const uint32_t device = export_rank(c, r),
                       machine = c->view->device[device].machine;
        Run *last = runs->len ? &g_array_index(runs, Run, runs->len - 1) : NULL;
        if (!last || last->machine != machine) {
            const Run run = {machine, r, 0, true};
            g_array_append_val(runs, run);
            last = &g_array_index(runs, Run, runs->len - 1);
        }
        last->whole &= local_of(c, device) == last->n;
        last->n += c->view->device[device].gpus;
    }
    array_each (Run, run, runs)
        run->whole &= run->n == c->view->cluster->machine[run->machine].gpus;
    return runs;
}

/* The number of runs from `i` on of neighbouring whole machines with as many GPUs. */
static uint32_t alike_from(const GArray *runs, uint32_t i)
{
    const Run *run = &g_array_index(runs, Run, i);
    uint32_t n = 1;
    while (i + n < runs->len && run[n].whole && run->whole && run[n].n == run->n &&
           run[n].machine == run->machine + n)
        n++;
    return n;
}

static void add_visible(const ExportCase *c, const Run *run, GString *out)
{
    for (uint32_t k = 0; k < run->n; k++)
        g_string_append_printf(out, "%s%u", k ? "," : "CUDA_VISIBLE_DEVICES=",
                               local_of(c, export_rank(c, run->first + k)));
    g_string_append_c(out, ' ');
}

void export_add_torchrun(const ExportCase *c, const char *prefix, const char *script,
                         GString *out)
{
    const Machine *machine = c->view->cluster->machine;
    g_autoptr(GArray) runs = list_runs(c);
    for (uint32_t i = 0, n; i < runs->len; i += n) {
        const Run *run = &g_array_index(runs, Run, i);
        n = alike_from(runs, i);
        if (n == 1)
            g_string_append_printf(out, "# on %s\n", machine[run->machine].name);
        else
            g_string_append_printf(out, "# on %s to %s, NODE_RANK from %u to %u\n",
                                   machine[run->machine].name,
                                   machine[run->machine + n - 1].name, i, i + n - 1);
        g_string_append(out, prefix);
        if (!run->whole)
            add_visible(c, run, out);
        g_string_append_printf(out, "torchrun --nnodes=%u --nproc_per_node=%u ",
                               runs->len, run->n);
        if (n == 1)
            g_string_append_printf(out, "--node_rank=%u ", i);
        else
            g_string_append(out, "--node_rank=$NODE_RANK ");
        g_string_append_printf(out, "--master_addr=$MASTER_ADDR --master_port=29500 %s\n",
                               script);
    }
}
