#include "experiments/planners/explain/explain.h"

#include <math.h>
#include <string.h>

#include "experiments/json_values.h"
#include "experiments/planners/explain/pattern.h"

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
    const PatternForms *forms;
    uint32_t *layer;           /* of each tensor */
    uint16_t *segment;         /* of each tensor */
    uint32_t shown;            /* the layer being described, */
    json_t *parameters, *made; /* its tensors by form, */
    json_t *collectives, *patterns;
} Explain;

/* --- layers of tensors --- */

static uint32_t *tensor_layers(const Graph *graph)
{
    uint32_t n = graph_n_tensors(graph);
    uint32_t *layer = g_new(uint32_t, n);
    for (TensorId t = 0; t < n; t++)
        layer[t] = GRAPH_NONE;
    for (OpId o = 0; o < graph_n_ops(graph); o++) {
        const Op *op = graph_get_op(graph, o);
        for (uint32_t i = 0; i < op->n_in + op->n_out && op->pass != PASS_UPDATE; i++) {
            TensorId t = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
            if (layer[t] == GRAPH_NONE)
                layer[t] = op->layer;
        }
    }
    /* States and next values belong where their parameter is used. */
    for (TensorId t = 0; t < n; t++) {
        TensorId of = t;
        while (layer[of] == GRAPH_NONE && graph_tensor(graph, of)->of != GRAPH_NONE)
            of = graph_tensor(graph, of)->of;
        layer[t] = layer[of];
    }
    return layer;
}

/* The name without its layer's; what is called like the layer is its output. */
static const char *short_name(const Explain *e, const char *name)
{
    const char *layer = graph_layer_name(e->graph, e->shown);
    size_t length = strlen(layer);
    if (strcmp(name, layer) == 0)
        return "output";
    return g_str_has_prefix(name, layer) && name[length] == '.' ? name + length + 1
                                                                : name;
}

/* --- one layer --- */

/* The entry of `list` whose `key` is `value`, made if need be. */
static json_t *entry_of(json_t *list, const char *key, const char *value)
{
    size_t i;
    json_t *entry;
    json_array_foreach (list, i, entry)
        if (strcmp(json_string_value(json_object_get(entry, key)), value) == 0)
            return entry;
    entry = json_pack("{s:s, s:[]}", key, value, "tensors");
    json_array_append_new(list, entry);
    return entry;
}

static void add_tensor(const Explain *e, json_t *entry, const char *name)
{
    json_array_append_new(json_object_get(entry, "tensors"),
                          json_string(short_name(e, name)));
}

/* "gather(0), used as identity, moments gather(1)" */
static char *parameter_form(const Explain *e, TensorId id)
{
    char text[FORM_TEXT];
    Form rest = e->forms->rest[id], moment = e->forms->moment[id];
    GString *form = g_string_new(form_text(rest, text));
    const char *separator = ", used as ";
    for (Form f = 0; f < FORM_MAX; f++)
        if (f != rest && (e->forms->used[id] >> f & 1u)) {
            g_string_append_printf(form, "%s%s", separator, form_text(f, text));
            separator = " and ";
        }
    const Op *update = NULL;
    TensorId next = graph_updated(e->graph, id);
    if (next != GRAPH_NONE)
        update = graph_get_op(e->graph, graph_tensor(e->graph, next)->producer);
    if (update && update->n_out > 1 && moment != rest)
        g_string_append_printf(form, ", moments %s", form_text(moment, text));
    return g_string_free(form, FALSE);
}

static void add_tensors(Explain *e)
{
    char text[FORM_TEXT];
    for (TensorId t = 0; t < graph_n_tensors(e->graph); t++) {
        const Tensor *tensor = graph_tensor(e->graph, t);
        if (e->layer[t] != e->shown)
            continue;
        if (tensor->role == ROLE_PARAMETER) {
            g_autofree char *form = parameter_form(e, t);
            add_tensor(e, entry_of(e->parameters, "form", form), tensor->name);
        } else if (tensor->role == ROLE_ACTIVATION || tensor->role == ROLE_LOSS)
            add_tensor(e, entry_of(e->made, "form", form_text(e->forms->made[t], text)),
                       tensor->name);
    }
}

static void add_patterns(Explain *e)
{
    for (OpId o = 0; o < graph_n_ops(e->graph); o++) {
        const Op *op = graph_get_op(e->graph, o);
        uint32_t weight;
        if (op->pass != PASS_FORWARD || op->layer != e->shown || !e->forms->compute[o] ||
            !pattern_weight(e->graph, o, &weight))
            continue;
        g_autofree char *name = pattern_name(e->forms, o, weight);
        add_tensor(e, entry_of(e->patterns, "pattern", name), op->name);
    }
}

/* Largest share of a device on the dim that a form shards. */
static double largest_share(const Explain *e, TensorId id, Form form)
{
    if (!form_is_gather(form))
        return 1;
    uint32_t segment = e->segment[(size_t)id * FORM_MAX + form],
             units = graph_tensor(e->graph, id)->units[form_dim(form)];
    const Split *split =
        plan_find_split(e->plan, &(Split){.segment = segment, .units = units});
    double largest = 0;
    for (uint32_t j = 0; j < e->plan->n_devices; j++)
        largest = fmax(largest, split ? (double)split->count[j] / units
                                      : e->plan->ratio[segment * e->plan->n_devices + j]);
    return largest;
}

static void add_number(json_t *object, const char *key, double value)
{
    json_object_set_new(
        object, key, json_real(json_number_value(json_object_get(object, key)) + value));
}

/* Of the tensor: all of it, or a microbatch's part. */
static double collective_bytes(const Explain *e, const Instr *instr)
{
    const double bytes = (double)tensor_bytes(graph_tensor(e->graph, instr->tensor));
    const uint32_t n = e->plan->program->n_microbatches;
    return instr->microbatch == PROGRAM_WHOLE || n < 2 ? bytes : bytes / n;
}

static void add_collectives(Explain *e)
{
    const Program *program = e->plan->program;
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind != INSTR_COLLECTIVE || e->layer[instr->tensor] != e->shown ||
            (int)instr->collective >= COLLECTIVES_PRICED)
            continue;
        char from[FORM_TEXT], to[FORM_TEXT];
        const double bytes = collective_bytes(e, instr);
        g_autofree char *what =
            g_strdup_printf("%s %s -> %s", collective_name(instr->collective),
                            form_text(instr->from, from), form_text(instr->to, to));
        json_t *entry = entry_of(e->collectives, "collective", what);
        add_tensor(e, entry, graph_tensor(e->graph, instr->tensor)->name);
        add_number(entry, "bytes", bytes);
        add_number(entry, "seconds",
                   sim_collective_s(e->view, instr->collective, bytes,
                                    largest_share(e, instr->tensor, instr->from),
                                    largest_share(e, instr->tensor, instr->to)));
    }
}

/* The layer but for its name. */
static json_t *describe_layer(Explain *e, uint32_t layer)
{
    e->shown = layer;
    e->patterns = json_array();
    e->parameters = json_array();
    e->made = json_array();
    e->collectives = json_array();
    add_patterns(e);
    add_tensors(e);
    add_collectives(e);
    size_t n = json_array_size(e->patterns);
    const char *only = n == 1 ? json_string_value(json_object_get(
                                    json_array_get(e->patterns, 0), "pattern"))
                              : NULL;
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "pattern",
                     only    ? json_string(only)
                     : n > 1 ? json_string("mixed")
                             : json_null(),
                     "patterns", e->patterns, "parameters", e->parameters, "activations",
                     e->made, "collectives", e->collectives);
}

/* --- all layers, folded --- */

static json_t *describe_layers(Explain *e)
{
    json_t *list = json_array();
    for (uint32_t l = 0; l < graph_n_layers(e->graph); l++) {
        json_t *fresh = describe_layer(e, l), *same = NULL, *entry;
        size_t i;
        json_array_foreach (list, i, entry) {
            json_t *names = json_object_get(entry, "names");
            json_incref(names);
            json_object_del(entry, "names");
            if (json_equal(entry, fresh))
                same = entry;
            json_object_set_new(entry, "names", names);
        }
        json_t *name = json_string(graph_layer_name(e->graph, l));
        if (same) {
            json_array_append_new(json_object_get(same, "names"), name);
            json_decref(fresh);
        } else {
            json_object_set_new(fresh, "names", json_pack("[o]", name));
            json_array_append_new(list, fresh);
        }
    }
    return list;
}

/* --- stages --- */

/* What stage `i` takes on each device. Caller frees. */
static double *stage_times(const Explain *e, const SimLinear *linear, const double *share,
                           uint32_t i)
{
    uint32_t n = e->view->n_devices;
    double *seconds = g_new(double, n);
    for (uint32_t j = 0; j < n; j++) {
        const Device *device = &e->view->device[j];
        SimWork work = linear->stage[i].fixed;
        double *flops = sim_work_flops(&work, device);
        for (uint32_t k = 0; k < linear->n_splits; k++) {
            size_t cell = (size_t)i * linear->n_splits + k;
            *flops += sim_linear_flops(linear, cell, device) * share[k * n + j];
            work.inner_bytes += linear->inner_bytes[cell] * share[k * n + j];
        }
        seconds[j] = sim_work_s(&work, device, 0);
    }
    return seconds;
}

static json_t *stage_tensors(const Explain *e, const SimStageReport *stage)
{
    json_t *list = json_array();
    for (uint32_t i = stage->first; i < stage->first + stage->n; i++) {
        const Instr *instr = &e->plan->program->instr[i];
        if (instr->kind != INSTR_COLLECTIVE ||
            (int)instr->collective >= COLLECTIVES_PRICED)
            continue;
        json_t *entry = entry_of(list, "collective", collective_name(instr->collective));
        json_array_append_new(json_object_get(entry, "tensors"),
                              json_string(graph_tensor(e->graph, instr->tensor)->name));
    }
    return list;
}

static json_t *describe_stages(const Explain *e, const SimReport *report)
{
    json_t *list = json_array();
    g_autoptr(SimLinear) linear = sim_linear(e->plan->program, e->graph, e->view,
                                             e->plan->segment, e->plan->bucket_bytes);
    g_autofree double *share = sim_plan_shares(e->plan, linear);
    for (uint32_t i = 0; i < report->n_stages && i < linear->n_stages; i++) {
        g_autofree double *seconds = stage_times(e, linear, share, i);
        double slowest = 0;
        for (uint32_t j = 0; j < e->view->n_devices; j++)
            slowest = fmax(slowest, seconds[j]);
        json_t *devices = json_array();
        for (uint32_t j = 0; j < e->view->n_devices; j++)
            if (slowest > 0 && seconds[j] >= slowest * (1 - 1e-9))
                json_array_append_new(devices, json_string(e->view->device[j].name));
        json_array_append_new(
            list,
            json_pack("{s:i, s:o, s:o, s:o, s:o}", "stage", (int)i, "communication_s",
                      json_number(report->stage[i].comm_s), "computation_s",
                      json_number(report->stage[i].comp_s), "limited_by", devices,
                      "collectives", stage_tensors(e, &report->stage[i])));
    }
    return list;
}

json_t *explain_plan(const Plan *plan, const Graph *graph, const ClusterView *view,
                     const SimReport *report)
{
    g_autoptr(PatternForms) forms = pattern_forms_new(plan->program, graph);
    g_autofree uint32_t *layer = tensor_layers(graph);
    g_autofree uint16_t *segment = plan_segments(plan->program, graph, plan->segment);
    Explain e = {.plan = plan,
                 .graph = graph,
                 .view = view,
                 .forms = forms,
                 .layer = layer,
                 .segment = segment};
    json_t *layers = describe_layers(&e);
    return json_pack("{s:o, s:o}", "layers", layers, "stages",
                     describe_stages(&e, report));
}
