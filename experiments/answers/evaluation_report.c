/* An evaluation as JSON and as text. */
#include "experiments/answers/evaluation_report.h"

#include <math.h>

#include "data/base/json.h"
#include "data/plan/fidelity.h"
#include "experiments/answers/plan_stages.h"
#include "experiments/answers/plan_words.h"
#include "experiments/calibration/prediction.h"
#include "experiments/calibration/residuals.h"
#include "experiments/explain/shards.h"

/* Bounds over other spaces, with the gap of the plan to each; null if the plan is faster, and so
 * not in that space. */
static json_t *bounds_json(const Plan *plan)
{
    json_t *bounds = json_array();
    for (uint32_t i = 0; plan->bounds && i < plan->bounds->len; i++) {
        const PlanBound *bound = &g_array_index(plan->bounds, PlanBound, i);
        const double gap = plan->iteration_time_s / bound->s - 1, rounding = 1e-9;
        json_array_append_new(
            bounds, json_pack("{s:o, s:o, s:s}", "bound_s", json_number(bound->s), "gap",
                              gap < -rounding ? json_null() : json_number(fmax(gap, 0)),
                              "over", bound->over));
    }
    return bounds;
}

/* The words for the space of the bound. The bound is on times of the stage-synchronized cost model,
 * and flow can be faster. Caller frees. */
static char *bound_words(const Evaluation *evaluation)
{
    const char *over = evaluation->plan->bound_over;
    return over && fidelity_can(evaluation->report->fidelity, FIDELITY_STREAMS)
               ? g_strconcat(
                     over,
                     "; by the formula, in which steps do not overlap: flow can be "
                     "faster",
                     NULL)
               : g_strdup(over);
}

/* The time before rounding, the change by rounding, and the space of the bound. */
static json_t *rounding_json(const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    const bool known = plan->fractional_time_s > 0;
    g_autofree char *over = bound_words(evaluation);
    return json_pack("{s:o, s:o, s:b, s:s?, s:o, s:o, s:o}", "fractional_time_s",
                     json_number(known ? plan->fractional_time_s : NAN), "rounding_loss",
                     json_number(known ? plan_rounding_loss(plan) : NAN), "spmd",
                     (int)program_is_spmd(plan->program), "bound_over", over, "bounds",
                     bounds_json(plan), "certificate_time_s",
                     json_number(plan->certificate_time_s), "shards",
                     explain_shards(plan, evaluation->graph));
}

static json_t *evaluation_report_devices_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    json_t *devices = json_array();
    items_at (const Device, device, j, evaluation->view->device, report->n_devices) {
        /* The idle time is a difference of sums: below 1e-12 of the iteration it is rounding. */
        const bool idles = report->idle_s[j] > 1e-12 * report->iteration_time_s;
        json_array_append_new(
            devices,
            json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "name",
                      device->name, "type", device->type_name, "gpus", (int)device->gpus,
                      "ratio", json_number(evaluation->plan->ratio[j]), "computation_s",
                      json_number(report->busy_s[j]), "exposed_communication_s",
                      json_number(report->comm_busy_s[j]), "hidden_communication_s",
                      json_number(report->hidden_s[j]), "idle_s",
                      json_number(idles ? report->idle_s[j] : 0), "memory_bytes",
                      (json_int_t)report->memory_bytes[j], "capacity_bytes",
                      (json_int_t)device->memory_bytes));
    }
    return devices;
}

static json_t *evaluation_report_stages_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    json_t *stages = json_array();
    items_each (const SimStageReport, stage, report->stage, report->n_stages) {
        g_autofree char *first =
            stage->n ? instr_text(&evaluation->plan->program->instr[stage->first],
                                  evaluation->graph)
                     : NULL;
        json_array_append_new(stages,
                              json_pack("{s:o, s:o, s:i, s:s?}", "communication_s",
                                        json_number(stage->comm_s), "computation_s",
                                        json_number(stage->comp_s), "instructions",
                                        (int)stage->n, "first", first));
    }
    return stages;
}

/* Warns of what data sheets lack, and of rates that equal a peak, for types with their own numbers;
 * rates from data sheets are below the peaks. */
static json_t *warnings_json(const Cluster *cluster)
{
    const bool own = any_of(i, cluster->n_types, !(cluster->type[i].power_w > 0));
    g_autoptr(GPtrArray) warnings = own ? sheets_warnings(cluster, NULL) : NULL;
    if (!warnings)
        warnings = g_ptr_array_new_with_free_func(g_free);
    sheets_gaps(cluster, warnings);
    return json_texts(warnings);
}

void evaluation_add_range(const Evaluation *of, json_t *object)
{
    prediction_add(object, of->plan, of->graph, of->view, of->report);
    if (of->view->cluster->fitted || !cluster_view_has_kernels(of->view))
        return;
    const ResidualKind kind =
        residual_kind(of->plan, of->graph, of->view, of->report->kernels);
    residuals_add(object, &kind, of->report->iteration_time_s);
}

json_t *evaluation_json(const Evaluation *evaluation, bool verbose)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    json_t *memory = json_list(places_before(j, report->n_devices),
                               json_integer((json_int_t)report->memory_bytes[j]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:o, s:o, "
        "s:i, s:o, s:o, s:b, s:I, s:s}",
        "model", plan->model, "cluster", plan->cluster, "planner", plan->planner,
        "granularity", granularity_name(plan->granularity), "fidelity", report->fidelity,
        "gpus", (int)cluster_gpus(evaluation->view->cluster), "iteration_time_s",
        json_number(report->iteration_time_s), "communication_s",
        json_number(report->comm_s), "computation_s", json_number(report->comp_s),
        "lower_bound_s",
        json_number(plan->lower_bound_s > 0.0 ? plan->lower_bound_s : NAN), "gap",
        json_number(plan_gap(plan)), "optimal", (int)plan->optimal, "certificate",
        certificate_name(plan->certificate), "search_time_s",
        json_number(plan->search_time_s), "balance_time_s",
        json_number(plan->balance_time_s), "stages", (int)report->n_stages, "ratios",
        plan_ratios_json(plan), "memory_bytes", memory, "feasible", (int)report->feasible,
        "seed", (json_int_t)plan->seed, "version", plan->version);
    json_t *costs = NULL;
    if (plan->target)
        costs = json_pack(
            "{s:s, s:s*, s:o, s:o}", "target", plan->target, "why", plan->any_why,
            "any_time_s",
            plan->any_time_s > 0 ? json_number(plan->any_time_s) : json_null(), "costs",
            plan->any_time_s > 0
                ? json_number(plan->iteration_time_s / plan->any_time_s - 1)
                : json_null());
    const bool runs = report->runtime && *report->runtime;
    json_object_update_new(object, json_pack("{s:s*, s:o*, s:s*, s:s*}", "made_by",
                                             plan->maker, "for", costs, "runtime",
                                             runs ? report->runtime : NULL, "exports",
                                             plan->exports));
    json_object_update_new(object, rounding_json(evaluation));
    evaluation_add_range(evaluation, object);
    plan_words_pace_json(evaluation, object);
    json_t *pipeline = plan_stages_json(evaluation);
    if (json_is_array(pipeline)) /* other groups are views of the same devices */
        json_object_set_new(object, "stages",
                            json_integer((json_int_t)json_array_size(pipeline)));
    const char *certified = certificate_text(plan->certificate);
    json_object_update_new(
        object,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s*, s:o*, s:o*, s:o*, s:o}",
                  "devices", evaluation_report_devices_json(evaluation), "memory",
                  plan_words_memory_json(evaluation), "strategy",
                  plan_words_strategy_json(plan), "layout",
                  plan_words_layout_json(evaluation), "schedule",
                  plan_words_schedule_json(plan), "pipeline", pipeline, "experts",
                  plan_words_experts_json(evaluation), "certified",
                  *certified ? certified : NULL, "stopped",
                  evaluation->stopped ? json_true() : NULL, "notes",
                  evaluation->notes ? json_texts(evaluation->notes) : NULL, "stage_list",
                  verbose ? evaluation_report_stages_json(evaluation) : NULL, "warnings",
                  warnings_json(evaluation->view->cluster)));
    return object;
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
            spans, json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "what", what, "stage",
                             (int)span->stage, "device",
                             span->lane == SIM_TEAM
                                 ? json_null()
                                 : json_string(evaluation->view->device[device].name),
                             "start_s", json_number(span->start_s), "end_s",
                             json_number(span->end_s), "time_s",
                             json_number(span->end_s - span->start_s)));
    }
    return spans;
}

static json_t *evaluation_report_links_json(const SimTimeline *timeline)
{
    const double end_s = sim_timeline_end_s(timeline);
    json_t *links = json_array();
    items_each (const SimLinkUse, link, timeline->link, timeline->n_links) {
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

json_t *evaluation_simulation_json(const Evaluation *evaluation, bool verbose, bool path)
{
    const SimTimeline *timeline = evaluation->report->timeline;
    json_t *object = evaluation_json(evaluation, verbose);
    if (timeline && timeline->lost_s > 0)
        json_object_set_new(object, "lost_s", json_number(timeline->lost_s));
    if (path && timeline->n_links > 0)
        json_object_set_new(object, "links", evaluation_report_links_json(timeline));
    if (path) {
        json_object_set_new(object, "critical_path", path_json(evaluation));
        json_object_set_new(object, "end_s", json_number(sim_timeline_end_s(timeline)));
    }
    return object;
}

char *evaluation_waits_text(const Evaluation *evaluation)
{
    return sim_timeline_explain(evaluation->report->timeline, evaluation->plan->program,
                                evaluation->graph, evaluation->view);
}

bool evaluation_check_fits(const Evaluation *evaluation, GError **error)
{
    if (evaluation->report->feasible)
        return true;
    const Plan *plan = evaluation->plan;
    g_autofree char *misfit = evaluation_misfit(evaluation);
    g_autofree char *ways = evaluation_ways_to_fit(evaluation);
    if (plan->misfit)
        return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                           "it is proved that no plan of '%s' fits with these settings: "
                           "%s; the best one found: %s; others that may fit: %s",
                           plan->planner, plan->misfit, misfit, ways);
    if (evaluation->searched)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "'%s' found no plan that fits, without a proof that there is "
                           "none; the best plan: %s; others that may fit: %s",
                           plan->planner, misfit, ways);
    return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                       "the plan does not fit: %s; others that may fit: %s", misfit,
                       ways);
}
