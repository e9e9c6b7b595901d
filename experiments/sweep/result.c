/* The identity of a question, and the row of its answer. */
#include "experiments/sweep/result.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/path.h"
#include "data/models/model.h"
#include "experiments/calibration/prediction.h"
#include "experiments/sweep/configuration.h"

#include <jansson.h>
#include <math.h>

/* --- the placement of op groups --- */

typedef struct {
    const Evaluation *evaluation;
    uint32_t n_groups, n_devices;
    DeviceGroup *group;
    double *on_type; /* [device type]: number of devices of each op, summed over ops */
    double n_ops;
    json_int_t n_served, n_reduced; /* parameters' gradients */
    json_t *duplicated;             /* {kind of op: number} */
} Placement;

static void add_compute(Placement *p, const Instr *instr)
{
    const Op *op = graph_get_op(p->evaluation->graph, instr->op);
    const DeviceGroup *group = &p->group[instr->group];
    const uint32_t n = group->n_replicas * group->n_devices;
    if (instr->microbatch != 0 && instr->microbatch != PROGRAM_WHOLE)
        return;
    for (uint32_t k = 0; k < n; k++)
        p->on_type[p->evaluation->view->device[group->device[k]].type]++;
    p->n_ops++;
    if (op->pass == PASS_UPDATE || group->n_devices == 1 ||
        program_is_spmd(p->evaluation->plan->program))
        return;
    const char *kind = op_kind_name(op->kind);
    json_object_set_new(
        p->duplicated, kind,
        json_integer(json_integer_value(json_object_get(p->duplicated, kind)) + 1));
}

static void add(Placement *p, const Instr *instr)
{
    if (instr->kind == INSTR_COMPUTE)
        add_compute(p, instr);
    else if (instr->kind == INSTR_COLLECTIVE &&
             instr->collective == COLLECTIVE_ALL_REDUCE &&
             graph_is_parameter_gradient(p->evaluation->graph, instr->tensor))
        instr->server ? p->n_served++ : p->n_reduced++;
}

/* {"devices_an_op": {device type: mean over ops}, "served": gradients of parameters with a server,
 * "all_reduced": gradients of the others, "duplicated": {kind of op: number of ops that run whole
 * on several devices}}. */
static json_t *placement_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    const Cluster *cluster = evaluation->view->cluster;
    g_autofree double *on_type = g_new0(double, cluster->n_types);
    Placement p = {.evaluation = evaluation,
                   .on_type = on_type,
                   .n_devices = evaluation->view->n_devices,
                   .duplicated = json_object()};
    p.group = program_groups(program, p.n_devices, &p.n_groups);
    for (uint32_t i = 0; i < program->n; i++)
        add(&p, &program->instr[i]);
    json_t *types = json_object();
    for (uint32_t t = 0; t < cluster->n_types; t++)
        json_object_set_new(types, cluster->type[t].name,
                            json_number(p.n_ops > 0 ? on_type[t] / p.n_ops : 0));
    program_groups_free(p.group, p.n_groups);
    return json_pack("{s:o, s:I, s:I, s:o}", "devices_an_op", types, "served", p.n_served,
                     "all_reduced", p.n_reduced, "duplicated", p.duplicated);
}

/* --- questions --- */

static json_t *options_json(const PlannerOptions *options, GError **error)
{
    g_auto(GStrv) list = planner_options_list(options, error);
    json_t *object = list ? json_object() : NULL;
    for (char **pair = list; pair && pair[0]; pair += 2)
        json_object_set_new(object, pair[0], json_string(pair[1]));
    return object;
}

/* Adds a file of the search path with the SHA-256 of its contents; whoever reads it says if it is
 * missing. */
static void add_file(json_t *files, const char *relative)
{
    g_autofree char *path = path_find(relative), *content = NULL;
    gsize length;
    if (!path || !g_file_get_contents(path, &content, &length, NULL))
        return;
    g_autofree char *sum =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)content, length);
    json_object_set_new(files, relative, json_string(sum));
}

/* The files that values of options stand for: a framework's memory, networks that TAG was trained
 * to, constants of kernels where ops take their times. */
static json_t *files_json(const Configuration *c)
{
    json_t *files = json_object();
    g_auto(GStrv) list = planner_options_files(c->options);
    for (char **file = list; *file; file++)
        add_file(files, *file);
    const bool priced =
        any_of(t, c->cluster->n_types, c->cluster->type[t].kernels != NULL);
    if (priced && c->options->sim.costs == SIM_COSTS_KERNELS)
        add_file(files, "kernels.yaml");
    g_auto(GStrv) held = planner_runtime_files(c->planner, c->options, c->cluster);
    for (char **file = held; *file; file++)
        add_file(files, *file);
    return files;
}

static StorePart *subject_of(const Configuration *c, GError **error)
{
    g_autofree char *content = NULL;
    if (c->planner)
        return model_content(c->canonical_model, &content, error)
                   ? question_model(c->canonical_model, content)
                   : NULL;
    return question_part(json_pack("{s:{s:s, s:o, s:o}}", "exchange", "collective",
                                   collective_name(c->exchange.kind), "bytes",
                                   json_number(c->exchange.bytes), "share",
                                   json_number(c->exchange.share)));
}

StorePart *question_of_method(const Configuration *c, GError **error)
{
    json_t *options = c->planner ? options_json(c->options, error) : NULL;
    if (c->planner && !options)
        return NULL;
    json_t *method =
        json_pack("{s:s, s:s, s:s}", "planner", c->planner ? c->planner->name : "none",
                  "fidelity", c->fidelity ? c->fidelity : "planned", "granularity",
                  granularity_name(c->granularity));
    if (options) {
        json_auto_t *files = files_json(c);
        json_object_set_new(method, "options", options);
        if (json_object_size(files) > 0)
            json_object_set(method, "files", files);
    }
    return question_method(method);
}

void result_identify_by(Configuration *c, StorePart *subject, StorePart *cluster,
                        StorePart *method)
{
    g_assert(!c->hash);
    c->question = (StoreQuestion){.subject = store_part_ref(subject),
                                  .cluster = store_part_ref(cluster),
                                  .method = store_part_ref(method),
                                  .seed = c->seed};
    c->hash = store_question_hash(&c->question);
}

bool result_identify(Configuration *c, StorePart *cluster, GError **error)
{
    g_autoptr(StorePart) subject = subject_of(c, error);
    g_autoptr(StorePart) method = subject ? question_of_method(c, error) : NULL;
    if (!method)
        return false;
    result_identify_by(c, subject, cluster, method);
    return true;
}

/* --- what the plan is --- */

/* Whether some devices get more than others. */
static bool is_uneven(const uint32_t *count, uint32_t n)
{
    bool uneven = false;
    for (uint32_t i = 1; i < n; i++)
        uneven |= count[i] != count[0];
    return uneven;
}

/* [units, count, ...] of every dimension that was not cut evenly. */
static json_t *counts_json(const Plan *plan)
{
    json_t *list = json_array();
    items_each (const Split, split, plan->split, plan->n_splits) {
        const uint32_t n = plan_split_devices(plan, split);
        if (!is_uneven(split->count, n))
            continue;
        json_t *cut = json_integers(split->count, n);
        json_array_insert_new(cut, 0, json_integer(split->units));
        json_array_append_new(list, cut);
    }
    return list;
}

/* {"dp": replicas, "tmp": devices of each, "devices": [...]} of every stage of a pipeline. */
static json_t *stages_json(const Program *program)
{
    json_t *list = json_array();
    items_each (const DeviceGroup, group, program->group, program->n_groups)
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:o}", "dp", (int)group->n_replicas, "tmp",
                            (int)group->n_devices, "devices",
                            json_integers(group->device,
                                          group->n_replicas * group->n_devices)));
    return list;
}

void result_take_plan(Result *result, const Plan *plan)
{
    const Program *program = plan->program;
    const uint32_t microbatches = program->n_microbatches;
    json_t *object = json_pack(
        "{s:o, s:o, s:o*, s:o*, s:o*}", "ratios", plan_ratios_json(plan), "counts",
        counts_json(plan), "stages", program->n_groups > 0 ? stages_json(program) : NULL,
        "microbatches", microbatches > 1 ? json_integer(microbatches) : NULL,
        "bucket_bytes",
        plan->bucket_bytes > 0 ? json_integer((json_int_t)plan->bucket_bytes) : NULL);
    g_free(result->plan);
    result->row.plan = result->plan = json_canonical(object);
}

/* --- what is reported of it --- */

/* The numbers of parameter tensors that rest whole and that rest cut, and of the model's
 * parameters. */
static json_t *parameters_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    json_int_t n[2] = {0};
    items_each (const Instr, instr, program->instr, program->n)
        if (instr->kind == INSTR_LOAD &&
            graph_tensor(evaluation->graph, instr->tensor)->role == ROLE_PARAMETER)
            n[form_is_gather(instr->to)]++;
    return json_pack("{s:I, s:I, s:I}", "whole", n[0], "cut", n[1], "elements",
                     (json_int_t)graph_parameter_count(evaluation->graph));
}

/* The keys of the model's spec, numbers as numbers. */
static json_t *arguments_json(const Evaluation *evaluation)
{
    json_t *all = json_object();
    g_auto(GStrv) pair = g_strsplit(model_spec_list(evaluation->plan->model), ",", -1);
    for (char **p = pair; *p; p++) {
        char *value = strchr(*p, '='), *end = NULL;
        if (!value)
            continue;
        *value++ = '\0';
        const double number = g_ascii_strtod(value, &end);
        json_object_set_new(all, *p,
                            end == value || *end ? json_string(value)
                            : fabs(number) < 1e15 && number == floor(number)
                                ? json_integer((json_int_t)number)
                                : json_number(number));
    }
    return all;
}

/* The numbers of MoE gates that are computed on parts of the tokens, and on all tokens on every
 * device. */
static json_t *gates_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    json_int_t n[2] = {0};
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind != INSTR_COMPUTE ||
            (instr->microbatch != 0 && instr->microbatch != PROGRAM_WHOLE))
            continue;
        const Op *op = graph_get_op(evaluation->graph, instr->op);
        if (op->kind == OP_GATE_TOP1 || op->kind == OP_GATE_TOP2)
            n[form_is_gather(instr->form[0])]++;
    }
    return json_pack("{s:I, s:I}", "whole", n[0], "cut", n[1]);
}

/* Runs of devices with equal reports, each as {"n": devices, busy and idle seconds, peak bytes}. */
static json_t *devices_json(const SimReport *report)
{
    json_t *list = json_array(), *last = NULL;
    json_int_t n = 0;
    for (uint32_t j = 0; j < report->n_devices; j++) {
        json_t *device = json_pack(
            "{s:o, s:o, s:o, s:o, s:I}", "busy_s", json_number(report->busy_s[j]),
            "communication_s", json_number(report->comm_busy_s[j]), "hidden_s",
            json_number(report->hidden_s[j]), "idle_s", json_number(report->idle_s[j]),
            "memory_bytes", (json_int_t)report->memory_bytes[j]);
        json_object_set_new(device, "n", json_integer(last ? n : 1));
        if (last && json_equal(last, device)) {
            json_object_set_new(last, "n", json_integer(++n));
            json_decref(device);
            continue;
        }
        json_object_set_new(device, "n", json_integer(n = 1));
        json_array_append_new(list, device);
        last = device;
    }
    return list;
}

/* The pace and the price of the plan, as far as the model and the cluster tell, and the memory left
 * on the fullest GPU. */
static json_t *pace_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    const SimWorkload work =
        sim_workload(evaluation->plan, evaluation->graph, evaluation->view);
    const double time_s = report->iteration_time_s, PER_HOUR = 3600, MILLION = 1e6;
    const double units = work.tokens > 0 ? work.tokens : work.samples;
    const uint64_t left = least_in(
        uint64_t,
        items_at (const Device, device, j, evaluation->view->device, report->n_devices),
        UINT64_MAX,
        device->capacity_bytes - MIN(device->capacity_bytes, report->memory_bytes[j]));
    return json_pack(
        "{s:I, s:o, s:o*, s:o*, s:o*}", "memory_left_bytes", (json_int_t)left,
        "samples_per_s", json_number(work.samples / time_s), "tokens_per_s",
        work.tokens > 0 ? json_number(work.tokens / time_s) : NULL, "mfu",
        work.peak > 0 ? json_number(work.model_flops / (time_s * work.peak)) : NULL,
        "dollars_per_million",
        work.price > 0 ? json_number(work.price * time_s / PER_HOUR / units * MILLION)
                       : NULL);
}

/* Devices; the model's keys; parameters; gates; pace; the strategy, if the plan has one; the work
 * of the search; if it does not fit, what the iteration would take. */
static json_t *report_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    const Plan *plan = evaluation->plan;
    const bool fits = report->feasible;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o*}", "devices",
        devices_json(report), "model", arguments_json(evaluation), "parameters",
        parameters_json(evaluation), "gates", gates_json(evaluation), "placement",
        placement_json(evaluation), "pace", pace_json(evaluation), "search",
        plan->tries > 0
            ? json_pack("{s:I, s:I}", "tries", (json_int_t)plan->tries,
                        "tries_to_beat_dp", (json_int_t)plan->tries_to_beat_dp)
            : NULL,
        "search_labels",
        plan->search_labels > 0 ? json_integer((json_int_t)plan->search_labels) : NULL,
        "strategy",
        strategy_is_default(&plan->strategy) ? NULL : strategy_json(&plan->strategy),
        "missing_bytes", fits ? NULL : json_integer((json_int_t)report->missing_bytes),
        "time_if_it_fit_s", fits ? NULL : json_number(report->iteration_time_s));
}

void result_take_detail(Result *result, json_t *detail)
{
    static const char *const COMMON[] = {"gates", "model", "parameters", "placement"};
    json_t *common = json_object();
    for (uint32_t i = 0; i < G_N_ELEMENTS(COMMON); i++) {
        json_t *member = json_object_get(detail, COMMON[i]);
        if (member)
            json_object_set(common, COMMON[i], member);
        json_object_del(detail, COMMON[i]);
    }
    g_clear_pointer(&result->detail, g_free);
    g_clear_pointer(&result->common, store_part_unref);
    if (json_object_size(common) > 0)
        result->common = question_part(common);
    else
        json_decref(common);
    if (json_object_size(detail) > 0)
        result->detail = json_canonical(detail);
    else
        json_decref(detail);
    result->row.detail = result->detail;
    result->row.common = result->common;
}

/* --- rows --- */

StoreResult result_blank(const StoreAsked *asked, const StoreQuestion *question)
{
    return (StoreResult){.asked = *asked,
                         .question = *question,
                         .status = "oom",
#define BLANK(name, kind, use, rule) BLANK_##kind(name)
#define BLANK_REAL(name)             .name = NAN,
#define BLANK_TEXT(name)
#define BLANK_COUNT(name)
#define BLANK_BYTES(name)
#define BLANK_FLAG(name)
                         ANSWER_NUMBERS(BLANK)};
}

CLEAR_DEFINE(result_clear, Result, result, let_go(result->message, g_free),
             let_go(result->plan, g_free), let_go(result->detail, g_free),
             let_go(result->common, store_part_unref));

static void take_evaluation(Result *result, const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    const SimReport *report = evaluation->report;
    StoreResult *row = &result->row;
    result_take_plan(result, plan);
    json_t *detail = report_json(evaluation);
    prediction_add(detail, plan, evaluation->graph, evaluation->view, report);
    result_take_detail(result, detail);
    row->stages = report->n_stages;
    row->search_time_s = plan->search_time_s;
    row->balance_time_s = plan->balance_time_s;
    for (uint32_t j = 0; j < report->n_devices; j++)
        row->peak_memory_bytes = MAX(row->peak_memory_bytes, report->memory_bytes[j]);
    row->lower_bound_s = plan->lower_bound_s > 0.0 && isfinite(plan->lower_bound_s)
                             ? plan->lower_bound_s
                             : NAN;
    if (!report->feasible) {
        row->message = result->message = evaluation_misfit(evaluation);
        return;
    }
    row->status = "ok";
    row->iteration_time_s = report->iteration_time_s;
    row->fractional_time_s = plan->fractional_time_s;
    row->communication_s = report->comm_s;
    row->computation_s = report->comp_s;
    double gap = plan_gap(plan);
    row->gap = isfinite(gap) ? gap : NAN;
    row->optimal = plan->optimal;
}

static void take_exchange(Result *result, const Configuration *c)
{
    StoreResult *row = &result->row;
    row->status = "ok";
    row->iteration_time_s = row->communication_s = configuration_exchange_s(c);
    row->computation_s = 0;
    row->search_time_s = row->balance_time_s = 0;
}

bool result_evaluate(const Configuration *c, const char *experiment, Result *result,
                     GError **error)
{
    const StoreAsked asked = configuration_asked(c, experiment);
    g_auto(Evaluation) evaluation = {0};
    GError *cause = NULL;
    *result = (Result){.row = result_blank(&asked, &c->question)};
    result->row.planner = c->planner ? c->planner->name : "none";
    result->row.fidelity = c->fidelity;
    result->row.granularity = granularity_name(c->granularity);
    result->row.gpus = cluster_gpus(c->cluster);
    if (!c->planner) {
        take_exchange(result, c);
    } else if (configuration_evaluate(c, &evaluation, &cause)) {
        take_evaluation(result, &evaluation);
    } else if (g_error_matches(cause, KILTER_ERROR, KILTER_ERROR_INFEASIBLE) ||
               g_error_matches(cause, KILTER_ERROR, KILTER_ERROR_INPUT)) {
        if (cause->code == KILTER_ERROR_INPUT)
            result->row.status = "impossible";
        result->row.message = result->message = g_strdup(cause->message);
        g_clear_error(&cause);
    } else {
        g_propagate_error(error, cause);
        return false;
    }
    return true;
}
