/* The stages of a plan and the devices that they wait for. */
#include "experiments/explain/stages.h"

#include <math.h>
#include <string.h>

#include "data/base/json.h"

#define ANY UINT32_MAX /* every group, every lane */

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ClusterView *view;
} Stages;

json_t *explain_entry(json_t *list, const char *key, const char *value)
{
    size_t i;
    json_t *entry;
    json_array_foreach (list, i, entry) {
        if (strcmp(json_string_value(json_object_get(entry, key)), value) == 0)
            return entry;
    }
    entry = json_pack("{s:s, s:[]}", key, value, "tensors");
    json_array_append_new(list, entry);
    return entry;
}

/* The time of stage `i` on each device, in seconds. Caller frees. */
static double *stage_times(const Stages *e, const SimLinear *linear, const double *share,
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

static bool has_device(const DeviceGroup *group, uint32_t device)
{
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
        if (group->device[i] == device)
            return true;
    return false;
}

/* The group's devices, those of one lane only where `lane` names one. */
static json_t *devices_of(const Stages *e, const SimTimeline *timeline, uint32_t group,
                          uint32_t lane)
{
    json_t *list = json_array();
    for (uint32_t j = 0; j < e->view->n_devices; j++)
        if (has_device(&e->plan->program->group[group], j) &&
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
    json_t *list = json_array();
    for (uint32_t g = 0; g < n_groups; g++)
        json_array_append_new(
            list, describe_group(e, timeline, g,
                                 &seconds[(size_t)g * (timeline->n_lanes + 1)]));
    return list;
}

json_t *explain_stages(const Plan *plan, const Graph *graph, const ClusterView *view,
                       const SimReport *report)
{
    const Stages e = {.plan = plan, .graph = graph, .view = view};
    return plan->program->n_groups > 0 && report->timeline
               ? describe_groups(&e, report->timeline)
               : describe_steps(&e, report);
}
