/* Explanations of a plan, as JSON. */
#include "experiments/explain/explain.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/base/json.h"
#include "experiments/explain/pattern.h"
#include "sim/sim.h"

/* --- stages and the devices that they wait for --- */

#define ANY UINT32_MAX /* every group, every lane */

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
} Stages;

/* The entry of `list` whose `key` is `value`, with an array "tensors"; added if absent. */
static json_t *explain_entry(json_t *list, const char *key, const char *value)
{
    elements_each (there, list)
        if (strcmp(json_string_value(json_object_get(there, key)), value) == 0)
            return there;
    json_t *entry = json_pack("{s:s, s:[]}", key, value, "tensors");
    json_array_append_new(list, entry);
    return entry;
}

/* The time of stage `i` on each device, in seconds. Caller frees. */
static double *stage_times(const Stages *e, const SimLinear *linear, const double *share,
                           uint32_t i)
{
    uint32_t n = e->view->n_devices;
    double *seconds = g_new(double, n);
    items_at (const Device, device, j, e->view->device, n) {
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

/* The collectives and transfers of the stage; only those of one group if `group` names one. */
static json_t *tensors_of(const Stages *e, uint32_t first, uint32_t n, uint32_t group)
{
    json_t *list = json_array();
    for (uint32_t i = first; i < first + n; i++) {
        const Instr *instr = &e->plan->program->instr[i];
        const bool again =
            instr->microbatch != 0 && instr->microbatch != PROGRAM_WHOLE && group != ANY;
        if ((group != ANY && instr->group != group) || again ||
            (instr->kind != INSTR_TRANSFER &&
             (instr->kind != INSTR_COLLECTIVE ||
              (int)instr->collective >= COLLECTIVES_PRICED)))
            continue;
        const char *kind = instr->kind == INSTR_TRANSFER
                               ? "transfer"
                               : collective_name(instr->collective);
        json_t *entry = explain_entry(list, "collective", kind);
        json_array_append_new(json_object_get(entry, "tensors"),
                              json_string(graph_tensor(e->graph, instr->tensor)->name));
    }
    return list;
}

/* The stages of a program with one group, by the formula. */
static json_t *describe_steps(const Stages *e, const SimReport *report)
{
    json_t *list = json_array();
    g_autoptr(SimLinear) linear = sim_linear(e->plan->program, e->graph, e->view,
                                             e->plan->segment, e->plan->bucket_bytes);
    g_autofree double *share = sim_plan_shares(e->plan, linear);
    for (uint32_t i = 0; i < report->n_stages && i < linear->n_stages; i++) {
        g_autofree double *seconds = stage_times(e, linear, share, i);
        const double slowest = most_over(double, j, e->view->n_devices, 0, seconds[j]);
        json_t *devices = json_array();
        for (uint32_t j = 0; j < e->view->n_devices; j++)
            if (slowest > 0 && seconds[j] >= slowest * (1 - 1e-9))
                json_array_append_new(devices, json_string(e->view->device[j].name));
        json_array_append_new(
            list,
            json_pack("{s:i, s:o, s:o, s:o, s:o}", "stage", (int)i, "communication_s",
                      json_number(report->stage[i].comm_s), "computation_s",
                      json_number(report->stage[i].comp_s), "limited_by", devices,
                      "collectives",
                      tensors_of(e, report->stage[i].first, report->stage[i].n, ANY)));
    }
    return list;
}

/* --- groups --- */

/* Seconds of the critical path, by group and lane; the column after the lanes: communication.
 * Caller frees. */
static double *path_seconds(const SimTimeline *timeline, uint32_t n_groups)
{
    const uint32_t columns = timeline->n_lanes + 1;
    double *seconds = g_new0(double, (size_t)n_groups *columns);
    uint32_t n_path;
    g_autofree uint32_t *path = sim_timeline_critical_path(timeline, &n_path);
    for (uint32_t i = 0; i < n_path; i++) {
        const SimSpan *span = &timeline->span[path[i]];
        const uint32_t column = span->lane == SIM_TEAM ? timeline->n_lanes : span->lane;
        seconds[(size_t)span->stage * columns + column] += span->end_s - span->start_s;
    }
    return seconds;
}

/* The group's devices, those of one lane only where `lane` names one. */
static json_t *devices_of(const Stages *e, const SimTimeline *timeline, uint32_t group,
                          uint32_t lane)
{
    json_t *list = json_array();
    for (uint32_t j = 0; j < e->view->n_devices; j++)
        if (group_has(&e->plan->program->group[group], j) &&
            (lane == ANY || timeline->lane[j] == lane))
            json_array_append_new(list, json_string(e->view->device[j].name));
    return list;
}

static json_t *describe_group(const Stages *e, const SimTimeline *timeline,
                              uint32_t group, const double *seconds)
{
    const uint32_t n = timeline->n_lanes;
    double computation_s = 0;
    uint32_t slowest = 0;
    for (uint32_t l = 0; l < n; l++) {
        computation_s += seconds[l];
        slowest = seconds[l] > seconds[slowest] ? l : slowest;
    }
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o}", "stage", (int)group, "devices",
        devices_of(e, timeline, group, ANY), "communication_s", json_number(seconds[n]),
        "computation_s", json_number(computation_s), "limited_by",
        computation_s > 0 ? devices_of(e, timeline, group, slowest) : json_array(),
        "collectives", tensors_of(e, 0, e->plan->program->n, group));
}

static json_t *describe_groups(const Stages *e, const SimTimeline *timeline)
{
    const uint32_t n_groups = e->plan->program->n_groups;
    g_autofree double *seconds = path_seconds(timeline, n_groups);
    return json_list(
        places_before(g, n_groups),
        describe_group(e, timeline, g, &seconds[(size_t)g * (timeline->n_lanes + 1)]));
}

/* [{"stage", "communication_s", "computation_s", "limited_by", "collectives"}]; the times add up to
 * the iteration. In a program with groups a stage is a group, with its "devices"; its times are
 * those of the timeline's critical path, and it is limited by the devices that compute longest on
 * that path. */
static json_t *explain_stages(const Plan *plan, const Graph *graph,
                              const ClusterView *view, const SimReport *report)
{
    const Stages e = {.plan = plan, .graph = graph, .view = view};
    return plan->program->n_groups > 0 && report->timeline
               ? describe_groups(&e, report->timeline)
               : describe_steps(&e, report);
}

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
    const PatternForms *forms;
    uint32_t *layer;   /* of each tensor */
    uint16_t *segment; /* of each tensor */
    /* of each instruction that communicates, for programs with groups; else NULL */
    double *seconds;
    uint32_t shown;            /* the layer being described */
    json_t *parameters, *made; /* its tensors by form */
    json_t *collectives, *patterns;
} Explain;

/* --- one layer --- */

/* The name without its layer's prefix; a tensor with the layer's name is its output. */
static const char *short_name(const Explain *e, const char *name)
{
    const char *layer = graph_layer_name(e->graph, e->shown);
    size_t length = strlen(layer);
    if (strcmp(name, layer) == 0)
        return "output";
    return g_str_has_prefix(name, layer) && name[length] == '.' ? name + length + 1
                                                                : name;
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
    tensors_each (tensor, t, e->graph) {
        if (e->layer[t] != e->shown)
            continue;
        if (tensor->role == ROLE_PARAMETER) {
            g_autofree char *form = parameter_form(e, t);
            add_tensor(e, explain_entry(e->parameters, "form", form), tensor->name);
        } else if (tensor->role == ROLE_ACTIVATION || tensor->role == ROLE_LOSS)
            add_tensor(e,
                       explain_entry(e->made, "form", form_text(e->forms->made[t], text)),
                       tensor->name);
    }
}

/* The pattern, extended by the role of the replicas in the op's group: they share the batch. Caller
 * frees. */
static char *pattern_in_group(const Explain *e, const Instr *instr, const char *inside)
{
    const Program *program = e->plan->program;
    if (program->n_groups == 0)
        return g_strdup(inside);
    const DeviceGroup *group = &program->group[instr->group];
    const bool alone = g_str_has_prefix(inside, PATTERN_REPLICATED);
    const char *rest = alone ? inside + strlen(PATTERN_REPLICATED) : "";
    if (alone && (group->n_replicas > 1 || group->n_devices == 1))
        return g_strdup_printf("%s%s",
                               group->n_replicas > 1 ? PATTERN_DATA : "one device", rest);
    return group->n_replicas > 1
               ? g_strdup_printf("%s in each of %u replicas", inside, group->n_replicas)
               : g_strdup(inside);
}

static void add_patterns(Explain *e)
{
    ops_each (op, o, e->graph) {
        uint32_t weight;
        if (op->pass != PASS_FORWARD || op->layer != e->shown || !e->forms->compute[o] ||
            !pattern_weight(e->graph, o, &weight))
            continue;
        g_autofree char *inside = pattern_name(e->forms, o, weight);
        g_autofree char *name = pattern_in_group(e, e->forms->compute[o], inside);
        add_tensor(e, explain_entry(e->patterns, "pattern", name), op->name);
    }
}

/* The largest share of any device in the dimension that a form shards. */
static double largest_share(const Explain *e, TensorId id, Form form)
{
    if (!form_is_gather(form))
        return 1;
    uint32_t segment = e->segment[(size_t)id * FORM_MAX + form_inside(form)],
             units = graph_tensor(e->graph, id)->units[form_dim(form)];
    const Split *split =
        plan_find_split(e->plan, &(Split){.segment = segment, .units = units});
    return most_over(double, j, e->plan->n_devices, 0,
                     split ? (double)split->count[j] / units
                           : e->plan->ratio[segment * e->plan->n_devices + j]);
}

static void explain_add_number(json_t *object, const char *key, double value)
{
    json_object_set_new(
        object, key, json_real(json_number_value(json_object_get(object, key)) + value));
}

/* Bytes of the collective's tensor: all of it, or one microbatch's part. */
static double collective_bytes(const Explain *e, const Instr *instr)
{
    const double bytes = (double)tensor_bytes(graph_tensor(e->graph, instr->tensor));
    const uint32_t n = e->plan->program->n_microbatches;
    return instr->microbatch == PROGRAM_WHOLE || n < 2 ? bytes : bytes / n;
}

/* "all_reduce reduce -> identity", "transfer to stage 2"; NULL if the instruction does not
 * communicate. Caller frees. */
static char *communication_text(const Instr *instr)
{
    char from[FORM_TEXT], to[FORM_TEXT];
    if (instr->kind == INSTR_TRANSFER)
        return g_strdup_printf("transfer to stage %u", instr->to_group);
    if (instr->kind != INSTR_COLLECTIVE || (int)instr->collective >= COLLECTIVES_PRICED)
        return NULL;
    return g_strdup_printf("%s %s -> %s", collective_name(instr->collective),
                           form_text(instr->from, from), form_text(instr->to, to));
}

static void add_collectives(Explain *e)
{
    const Program *program = e->plan->program;
    items_at (const Instr, instr, i, program->instr, program->n) {
        g_autofree char *what = communication_text(instr);
        if (!what || e->layer[instr->tensor] != e->shown)
            continue;
        const double bytes = collective_bytes(e, instr);
        json_t *entry = explain_entry(e->collectives, "collective", what);
        if (instr->microbatch == 0 || instr->microbatch == PROGRAM_WHOLE)
            add_tensor(e, entry, graph_tensor(e->graph, instr->tensor)->name);
        explain_add_number(entry, "bytes", bytes);
        explain_add_number(
            entry, "seconds",
            e->seconds ? e->seconds[i]
                       : sim_collective_s(e->view, instr->collective, bytes,
                                          largest_share(e, instr->tensor, instr->from),
                                          largest_share(e, instr->tensor, instr->to)));
    }
}

/* The pipeline stages that compute the shown layer's forward pass. */
static json_t *layer_stages(const Explain *e)
{
    const Program *program = e->plan->program;
    json_t *stages = json_array();
    for (uint32_t g = 0; g < program->n_groups; g++)
        items_each (const Instr, instr, program->instr, program->n) {
            const Op *op =
                instr->kind == INSTR_COMPUTE ? graph_get_op(e->graph, instr->op) : NULL;
            if (!op || instr->group != g || op->layer != e->shown ||
                op->pass != PASS_FORWARD)
                continue;
            json_array_append_new(stages, json_integer(g));
            break;
        }
    return stages;
}

/* Describes the layer, without its name. */
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
    json_t *object = json_pack("{s:o, s:o, s:o, s:o, s:o}", "pattern",
                               only    ? json_string(only)
                               : n > 1 ? json_string("mixed")
                                       : json_null(),
                               "patterns", e->patterns, "parameters", e->parameters,
                               "activations", e->made, "collectives", e->collectives);
    if (e->plan->program->n_groups > 0)
        json_object_set_new(object, "stages", layer_stages(e));
    return object;
}

/* --- all layers, folded --- */

static json_t *describe_layers(Explain *e)
{
    json_t *list = json_array();
    for (uint32_t l = 0; l < graph_n_layers(e->graph); l++) {
        json_t *fresh = describe_layer(e, l), *same = NULL;
        elements_each (entry, list) {
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

/* --- all of it --- */

/* For each instruction, the longest of its spans. Caller frees. */
static double *span_seconds(const Program *program, const SimTimeline *timeline)
{
    double *seconds = g_new0(double, program->n);
    items_each (const SimSpan, span, timeline->span, timeline->n_spans)
        if (span->lane == SIM_TEAM)
            seconds[span->instr] =
                fmax(seconds[span->instr], span->end_s - span->start_s);
    return seconds;
}

json_t *explain_plan(const Plan *plan, const Graph *graph, const ClusterView *view,
                     const SimReport *report)
{
    g_autoptr(PatternForms) forms = pattern_forms_new(plan->program, graph);
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_autofree uint16_t *segment = plan_segments(plan->program, graph, plan->segment);
    g_autofree double *seconds = plan->program->n_groups > 0 && report->timeline
                                     ? span_seconds(plan->program, report->timeline)
                                     : NULL;
    Explain e = {.plan = plan,
                 .graph = graph,
                 .view = view,
                 .forms = forms,
                 .layer = layer,
                 .segment = segment,
                 .seconds = seconds};
    json_t *layers = describe_layers(&e);
    return json_pack("{s:o, s:o}", "layers", layers, "stages",
                     explain_stages(plan, graph, view, report));
}
