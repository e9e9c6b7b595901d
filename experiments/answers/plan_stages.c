/* The stages of a pipeline, read from its program. */
#include "experiments/answers/plan_stages.h"

#include <string.h>

#include "data/base/json.h"

char *plan_stages_runs(const uint32_t *number, uint32_t n)
{
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && number[end] == number[i];)
            end++;
        g_string_append_printf(text, i ? ", " : "");
        if (end - i > 1)
            g_string_append_printf(text, "%u x ", end - i);
        g_string_append_printf(text, "%u", number[i]);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* The properties of a group that are printed. */
typedef struct {
    uint32_t first, last;                 /* layers */
    uint32_t n_layers, n_blocks, n_again; /* blocks: see stage_is_block */
    /* the first of the microbatches that it runs, and their number */
    uint32_t microbatch, n_microbatches;
    bool any;
} Stage;

/* Finds the microbatches of each group; it begins with the first of them, and a new one has a
 * higher number. */
static void count_microbatch(Stage *s, uint32_t microbatch)
{
    if (!s->any)
        s->microbatch = microbatch;
    if (!s->any || microbatch >= s->microbatch + s->n_microbatches)
        s->n_microbatches++;
}

/* Layers with a number, such as "layers.5", are the model's blocks. */
static bool stage_is_block(const char *layer)
{
    const char *number = strrchr(layer, '.');
    return number && g_ascii_isdigit(number[1]);
}

/* Finds the layers that each group computes, and the number of those that it recomputes, from the
 * forward ops on its first microbatch. seen: [groups x layers], not 0 where the group computes the
 * layer. */
static Stage *find_stages(const Program *program, const Graph *graph, uint8_t *seen)
{
    const uint32_t n_layers = graph_n_layers(graph);
    Stage *stage = g_new0(Stage, program->n_groups);
    g_autofree uint8_t *ops =
        g_new0(uint8_t, (size_t)program->n_groups * graph_n_ops(graph));
    items_each (const Instr, instr, program->instr, program->n) {
        const Op *op =
            instr->kind == INSTR_COMPUTE ? graph_get_op(graph, instr->op) : NULL;
        if (!op || op->pass != PASS_FORWARD || instr->microbatch == PROGRAM_WHOLE)
            continue;
        Stage *s = &stage[instr->group];
        count_microbatch(s, instr->microbatch);
        if (instr->microbatch != s->microbatch)
            continue;
        uint8_t *of_layer = &seen[(size_t)instr->group * n_layers + op->layer];
        uint8_t *of_op = &ops[(size_t)instr->group * graph_n_ops(graph) + instr->op];
        s->first = s->any ? MIN(s->first, op->layer) : op->layer;
        s->last = s->any ? MAX(s->last, op->layer) : op->layer;
        s->any = true;
        if (!(*of_layer & 1)) {
            s->n_layers++;
            s->n_blocks += stage_is_block(graph_layer_name(graph, op->layer));
        }
        *of_layer |= 1;
        if (*of_op > 0 && !(*of_layer & 2)) {
            s->n_again++;
            *of_layer |= 2;
        }
        *of_op = 1;
    }
    return stage;
}

/* Whether the groups with layers are stages: each has its own devices, and the other groups are
 * views of them. */
static bool are_stages(const Evaluation *evaluation, const Stage *stage)
{
    const Program *program = evaluation->plan->program;
    g_autofree bool *used = g_new0(bool, evaluation->plan->n_devices);
    g_autofree bool *view = g_new0(bool, program->n_groups);
    for (uint32_t i = 0; i < program->n; i++)
        if (instr_regroups(program, &program->instr[i]))
            view[program->instr[i].group] = view[program->instr[i].to_group] = true;
    items_at (const DeviceGroup, group, g, program->group, program->n_groups) {
        if (!stage[g].any && !view[g])
            return false;
        for (uint32_t i = 0; stage[g].any && i < group->n_replicas * group->n_devices;
             i++) {
            if (used[group->device[i]])
                return false;
            used[group->device[i]] = true;
        }
    }
    return true;
}

static char *devices_text(const Evaluation *evaluation, const DeviceGroup *group)
{
    const ClusterView *view = evaluation->view;
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t t = 0; t < view->cluster->n_types; t++) {
        const uint32_t n = sum_over(uint32_t, i, group->n_replicas * group->n_devices,
                                    view->device[group->device[i]].type == t
                                        ? view->device[group->device[i]].gpus
                                        : 0);
        if (n > 0)
            g_string_append_printf(text, "%s%u %s", text->len ? " and " : "", n,
                                   view->cluster->type[t].name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* The group's GPUs by machine, in the order of its ranks: "dgx-0, dgx-1:0-3", at most a few.
 * Caller frees. */
static char *places_text(const Evaluation *evaluation, const DeviceGroup *group)
{
    enum { MOST = 6 };
    const ClusterView *view = evaluation->view;
    const uint32_t n = group->n_replicas * group->n_devices;
    g_autoptr(GString) text = g_string_new("");
    uint32_t runs = 0;
    for (uint32_t i = 0, end; i < n && runs < MOST; i = end, runs++) {
        const uint32_t first = group->device[i], machine = view->device[first].machine;
        uint32_t start = first;
        while (start > 0 && view->device[start - 1].machine == machine)
            start--;
        for (end = i + 1; end < n && group->device[end] == first + end - i &&
                          view->device[group->device[end]].machine == machine;)
            end++;
        const Machine *of = &view->cluster->machine[machine];
        g_string_append_printf(text, "%s%s", runs ? ", " : "", of->name);
        if (view->granularity == GRANULARITY_GPU && end - i < of->gpus)
            g_string_append_printf(text, end - i > 1 ? ":%u-%u" : ":%u", first - start,
                                   first - start + end - i - 1);
        if (end < n && runs + 1 == MOST)
            g_string_append(text, ", ...");
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Samples of a microbatch by replica; NULL: the batch is not cut over replicas. Caller frees. */
static char *samples_text(const Evaluation *evaluation, uint32_t g)
{
    const Plan *plan = evaluation->plan;
    const DeviceGroup *group = &plan->program->group[g];
    const uint32_t samples =
        graph_batch(evaluation->graph) / plan->program->n_microbatches;
    g_autofree uint32_t *count = g_new0(uint32_t, group->n_replicas);
    items_each (const Split, split, plan->split, plan->n_splits) {
        if (split->group != g || split->kind != SPLIT_BATCH || split->units != samples)
            continue;
        for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
            count[i / group->n_devices] += split->count[i];
        return plan_stages_runs(count, group->n_replicas);
    }
    return NULL;
}

/* Whether devices of a replica share microbatches, too, as in one SPMD program for all of them. */
static bool is_one_program(const Evaluation *evaluation, uint32_t g)
{
    const Program *program = evaluation->plan->program;
    g_autoptr(BatchForms) batch = batch_forms_new(evaluation->graph, NULL);
    bool cuts = false;
    for (uint32_t i = 0; batch && i < program->n && !cuts; i++) {
        const Instr *instr = &program->instr[i];
        cuts = instr->kind == INSTR_COLLECTIVE && instr->group == g &&
               form_is_gather(instr->from) &&
               form_inside(instr->from) == batch->form[instr->tensor];
    }
    return cuts && program->group[g].n_devices > 1;
}

/* Adds the group's devices, in the order of its ranks, and the machines that they are of. */
static void add_members(const Evaluation *evaluation, const DeviceGroup *group,
                        json_t *row)
{
    json_t *ids = json_array(), *machines = json_array();
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++) {
        const Device *device = &evaluation->view->device[group->device[i]];
        json_array_append_new(ids, json_integer(group->device[i]));
        if (device->machine != last)
            json_array_append_new(
                machines,
                json_string(evaluation->view->cluster->machine[device->machine].name));
        last = device->machine;
    }
    json_object_update_new(
        row, json_pack("{s:o, s:o}", "device_ids", ids, "machines", machines));
}

/* The layers that a stage computes, in runs: "embedding to layers.4, layers.9". An interleaved
 * stage has several. Caller frees. */
static char *layers_text(const Graph *graph, const uint8_t *seen)
{
    const uint32_t n = graph_n_layers(graph);
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && seen[end];)
            end++;
        if (end == i)
            continue;
        g_string_append_printf(text, "%s%s", text->len ? ", " : "",
                               graph_layer_name(graph, i));
        if (end > i + 1)
            g_string_append_printf(text, " to %s", graph_layer_name(graph, end - 1));
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static json_t *stage_json(const Evaluation *evaluation, uint32_t g, const Stage *stage,
                          const uint8_t *seen)
{
    const Graph *graph = evaluation->graph;
    const DeviceGroup *group = &evaluation->plan->program->group[g];
    g_autofree char *devices = devices_text(evaluation, group);
    g_autofree char *samples = samples_text(evaluation, g);
    g_autofree char *places = places_text(evaluation, group);
    g_autofree char *range = layers_text(graph, &seen[(size_t)g * graph_n_layers(graph)]);
    double busy_s = 0;
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
        busy_s = MAX(busy_s, evaluation->report->busy_s[group->device[i]]);
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:i, s:i, s:i, s:b, s:s?, s:i, s:o}",
        "first", graph_layer_name(graph, stage->first), "last",
        graph_layer_name(graph, stage->last), "range", range, "layers",
        (int)stage->n_layers, "blocks", (int)stage->n_blocks, "devices", devices, "gpus",
        places, "replicas", (int)(group->n_replicas / group_shards(group)),
        "context_parallel", (int)group_shards(group), "tensor_parallel",
        (int)group->n_devices, "one_program", is_one_program(evaluation, g), "samples",
        samples, "recompute", (int)stage->n_again, "busy_s", json_number(busy_s));
    add_members(evaluation, group, row);
    return row;
}

json_t *plan_stages_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    g_autofree uint8_t *seen =
        g_new0(uint8_t, (size_t)program->n_groups * graph_n_layers(evaluation->graph));
    g_autofree Stage *stage =
        program->n_groups > 1 ? find_stages(program, evaluation->graph, seen) : NULL;
    if (!stage || !are_stages(evaluation, stage))
        return json_null();
    json_t *list = json_array();
    g_autofree bool *done = g_new0(bool, program->n_groups);
    uint32_t n_stages = 0, n_pipelines = 0, last = UINT32_MAX;
    bool several = false;
    for (uint32_t g = 0; g < program->n_groups; g++) {
        n_stages += stage[g].any;
        several |= stage[g].any && stage[g].microbatch > 0;
    }
    for (uint32_t i = 0; i < n_stages; i++) {
        uint32_t next = program->n_groups;
        for (uint32_t g = 0; g < program->n_groups; g++)
            if (stage[g].any && !done[g] &&
                (next == program->n_groups ||
                 (stage[g].microbatch != stage[next].microbatch
                      ? stage[g].microbatch < stage[next].microbatch
                      : stage[g].first < stage[next].first)))
                next = g;
        done[next] = true;
        n_pipelines += stage[next].microbatch != last;
        last = stage[next].microbatch;
        json_t *row = stage_json(evaluation, next, &stage[next], seen);
        if (several)
            json_object_update_new(row, json_pack("{s:i, s:i}", "pipeline",
                                                  (int)n_pipelines - 1, "microbatches",
                                                  (int)stage[next].n_microbatches));
        json_array_append_new(list, row);
    }
    return list;
}
