/* An evaluation as JSON and as text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/cli/command.h"
#include "experiments/cli/plan_words.h"
#include "experiments/json_values.h"
#include "experiments/planners/explain/shards.h"

/* A bound that was proved; 0 says that none was. */
static json_t *bound_json(double bound)
{
    return bound > 0.0 ? json_number(bound) : json_null();
}

/* The plan before rounding and after, and what its bound is over. */
static void add_rounding(json_t *object, const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    const bool known = plan->fractional_time_s > 0;
    json_object_set_new(object, "fractional_time_s",
                        known ? json_number(plan->fractional_time_s) : json_null());
    json_object_set_new(object, "rounding_loss",
                        known ? json_number(plan_rounding_loss(plan)) : json_null());
    json_object_set_new(object, "bound_over",
                        plan->bound_over ? json_string(plan->bound_over) : json_null());
    json_object_set_new(object, "certificate_time_s",
                        json_number(plan->certificate_time_s));
    json_object_set_new(object, "shards", explain_shards(plan, evaluation->graph));
}

json_t *command_evaluation_json(const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    json_t *memory = json_array();
    for (uint32_t j = 0; j < report->n_devices; j++)
        json_array_append_new(memory, json_integer((json_int_t)report->memory_bytes[j]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:o, s:o, "
        "s:i, s:o, s:o, s:b, s:I, s:s}",
        "model", plan->model, "cluster", plan->cluster, "planner", plan->planner,
        "granularity", granularity_name(plan->granularity), "fidelity", report->fidelity,
        "gpus", (int)cluster_gpus(evaluation->view->cluster), "iteration_time_s",
        json_number(report->iteration_time_s), "communication_s",
        json_number(report->comm_s), "computation_s", json_number(report->comp_s),
        "lower_bound_s", bound_json(plan->lower_bound_s), "gap",
        json_number(plan_gap(plan)), "optimal", (int)plan->optimal, "certificate",
        certificate_name(plan->certificate), "search_time_s",
        json_number(plan->search_time_s), "balance_time_s",
        json_number(plan->balance_time_s), "stages", (int)report->n_stages, "ratios",
        json_ratios(plan), "memory_bytes", memory, "feasible", (int)report->feasible,
        "seed", (json_int_t)plan->seed, "version", plan->version);
    add_rounding(object, evaluation);
    if (evaluation->graph) { /* the library's clients have given it back */
        plan_words_pace_json(evaluation, object);
        json_object_set_new(object, "memory", plan_words_memory_json(evaluation));
    }
    json_object_set_new(object, "strategy", plan_words_strategy_json(plan));
    return object;
}

static json_t *devices_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    json_t *devices = json_array();
    for (uint32_t j = 0; j < report->n_devices; j++) {
        const Device *device = &evaluation->view->device[j];
        json_array_append_new(
            devices,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", device->name, "type",
                      device->type_name, "computation_s", json_number(report->busy_s[j]),
                      "exposed_communication_s", json_number(report->comm_busy_s[j]),
                      "hidden_communication_s", json_number(report->hidden_s[j]),
                      "idle_s", json_number(report->idle_s[j])));
    }
    return devices;
}

static json_t *path_json(const Evaluation *evaluation)
{
    const SimTimeline *timeline = evaluation->report->timeline;
    uint32_t n;
    g_autofree uint32_t *path = sim_timeline_critical_path(timeline, &n);
    json_t *spans = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const SimSpan *span = &timeline->span[path[i]];
        uint32_t device = 0;
        while (span->lane != SIM_TEAM && timeline->lane[device] != span->lane)
            device++;
        g_autofree char *what = sim_span_text(
            timeline, path[i], evaluation->plan->program, evaluation->graph);
        json_array_append_new(
            spans, json_pack("{s:s, s:i, s:o, s:o, s:o}", "what", what, "stage",
                             (int)span->stage, "device",
                             span->lane == SIM_TEAM
                                 ? json_null()
                                 : json_string(evaluation->view->device[device].name),
                             "start_s", json_number(span->start_s), "end_s",
                             json_number(span->end_s)));
    }
    return spans;
}

static json_t *links_json(const SimTimeline *timeline)
{
    const double end_s = sim_timeline_end_s(timeline);
    json_t *links = json_array();
    for (uint32_t i = 0; i < timeline->n_links; i++) {
        const SimLinkUse *link = &timeline->link[i];
        const double most = link->bandwidth * end_s;
        json_array_append_new(links,
                              json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", link->name,
                                        "bandwidth", json_number(link->bandwidth),
                                        "bytes", json_number(link->bytes), "busy_s",
                                        json_number(link->busy_s), "utilization",
                                        json_number(most > 0 ? link->bytes / most : 0)));
    }
    return links;
}

json_t *command_simulation_json(const Evaluation *evaluation, bool path)
{
    json_t *object = command_evaluation_json(evaluation);
    json_object_set_new(object, "devices", devices_json(evaluation));
    if (evaluation->report->timeline && evaluation->report->timeline->lost_s > 0)
        json_object_set_new(object, "lost_s",
                            json_number(evaluation->report->timeline->lost_s));
    if (path && evaluation->report->timeline->n_links > 0)
        json_object_set_new(object, "links", links_json(evaluation->report->timeline));
    if (path)
        json_object_set_new(object, "critical_path", path_json(evaluation));
    return object;
}

/* What is printed of a device, but its name. Caller frees. */
static char *device_text(const Evaluation *evaluation, uint32_t j)
{
    const SimReport *report = evaluation->report;
    const Device *device = &evaluation->view->device[j];
    g_autofree char *busy = units_format(report->busy_s[j], QUANTITY_TIME);
    /* A difference of sums: below a part in 1e12 it is rounding. */
    bool idles = report->idle_s[j] > 1e-12 * report->iteration_time_s;
    g_autofree char *idle = units_format(idles ? report->idle_s[j] : 0.0, QUANTITY_TIME);
    g_autofree char *used = units_format((double)report->memory_bytes[j], QUANTITY_BYTES);
    g_autofree char *has = units_format((double)device->memory_bytes, QUANTITY_BYTES);
    return g_strdup_printf("%5u %9.4f %9s %9s   %s of %s", device->gpus,
                           evaluation->plan->ratio[j], busy, idle, used, has);
}

/* Devices of one type of which all that is printed is equal are one line. */
static void print_devices(const Evaluation *evaluation)
{
    const uint32_t n = evaluation->report->n_devices;
    const Device *device = evaluation->view->device;
    g_autofree char **text = g_new0(char *, n + 1);
    g_autofree bool *done = g_new0(bool, n);
    printf("  %-18s %5s %9s %9s %9s   %s\n", "devices", "gpus", "ratio", "busy", "idle",
           "memory of a GPU");
    for (uint32_t j = 0; j < n; j++)
        text[j] = device_text(evaluation, j);
    for (uint32_t j = 0; j < n; j++) {
        uint32_t alike = 0;
        for (uint32_t k = j; k < n && !done[j]; k++)
            if (device[k].type == device[j].type && strcmp(text[k], text[j]) == 0) {
                done[k] |= k > j;
                alike++;
            }
        g_autofree char *name =
            alike > 1 ? g_strdup_printf("%u x %s", alike, device[j].type_name)
                      : g_strdup_printf("%s (%s)", device[j].name, device[j].type_name);
        if (!done[j])
            printf("  %-18s %s\n", name, text[j]);
    }
    for (uint32_t j = 0; j < n; j++)
        g_free(text[j]);
}

static void print_stages(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    printf("  %5s %13s %13s %13s   %s\n", "stage", "communication", "computation",
           "instructions", "first");
    for (uint32_t i = 0; i < report->n_stages; i++) {
        const SimStageReport *stage = &report->stage[i];
        g_autofree char *comm = units_format(stage->comm_s, QUANTITY_TIME);
        g_autofree char *comp = units_format(stage->comp_s, QUANTITY_TIME);
        g_autofree char *first =
            stage->n ? instr_text(&evaluation->plan->program->instr[stage->first],
                                  evaluation->graph)
                     : g_strdup("-");
        printf("  %5u %13s %13s %13u   %s\n", i, comm, comp, stage->n, first);
    }
}

/* The time before rounding, which is what was searched and proved. */
static void print_rounding(const Plan *plan)
{
    if (!(plan->fractional_time_s > 0) || !program_is_spmd(plan->program))
        return;
    g_autofree char *before = units_format(plan->fractional_time_s, QUANTITY_TIME);
    printf("  unrounded    %s%s; rounding the shards costs %.2f %%\n", before,
           plan->optimal ? ", no program is faster at these ratios" : "",
           100.0 * plan_rounding_loss(plan));
}

static void print_bound(const Plan *plan)
{
    if (plan->lower_bound_s > 0.0 && isfinite(plan_gap(plan))) {
        g_autofree char *bound = units_format(plan->lower_bound_s, QUANTITY_TIME);
        printf("  lower bound  %s, gap %.2f %%\n", bound, 100.0 * plan_gap(plan));
        if (plan->bound_over)
            printf("               of %s\n", plan->bound_over);
    }
    if (plan->certificate != CERTIFICATE_NONE)
        printf("  certificate  %s\n", certificate_text(plan->certificate));
}

static void print_planning(const Plan *plan)
{
    g_autofree char *search = units_format(plan->search_time_s, QUANTITY_TIME);
    g_autofree char *balance = units_format(plan->balance_time_s, QUANTITY_TIME);
    g_autofree char *certificate = units_format(plan->certificate_time_s, QUANTITY_TIME);
    printf("  planning     search %s, balance %s%s%s\n", search, balance,
           plan->certificate_time_s > 0 ? ", bound " : "",
           plan->certificate_time_s > 0 ? certificate : "");
}

/* How dims of few units are cut, where that is not what the ratios say. */
static void print_shards(const Evaluation *evaluation)
{
    json_t *shards = explain_shards(evaluation->plan, evaluation->graph);
    g_autofree char *text = explain_shards_text(shards);
    printf("%s", text);
    json_decref(shards);
}

void command_print_evaluation(const Evaluation *evaluation, bool verbose)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    g_autofree char *time = units_format(report->iteration_time_s, QUANTITY_TIME);
    g_autofree char *comm = units_format(report->comm_s, QUANTITY_TIME);
    g_autofree char *comp = units_format(report->comp_s, QUANTITY_TIME);
    printf("%s on %s with %s, %s fidelity\n", plan->model, plan->cluster, plan->planner,
           report->fidelity);
    printf("  iteration    %s = communication %s + computation %s, %u stages\n", time,
           comm, comp, report->n_stages);
    print_rounding(plan);
    print_bound(plan);
    print_planning(plan);
    plan_words_print_pace(evaluation);
    plan_words_print_strategy(evaluation);
    print_shards(evaluation);
    print_devices(evaluation);
    plan_words_print_memory(evaluation);
    if (verbose)
        print_stages(evaluation);
}
