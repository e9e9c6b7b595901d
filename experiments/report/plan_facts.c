/* Facts of a plan for its page: names, the verdict, exports, memory, machines, sensitivity. */
#include "experiments/report/plan_facts.h"

#include <math.h>
#include <string.h>

#include "data/base/json.h"
#include "data/formats/export/export.h"
#include "data/graph/facts.h"
#include "data/models/model.h"
#include "experiments/answers/sensitivity.h"
#include "experiments/render.h"

/* Larger programs are neither exported nor simulated again for a page. */
enum { FEW_INSTRS = 200000, MOST_MACHINES = 12, MOST_KNOBS = 6, SCRIPT_BYTES = 20000 };

const struct PlanLayer plan_layers[MEMORY_CATEGORIES] = {
    {MEMORY_RUNTIME, "framework", "c5"},   {MEMORY_WEIGHTS, "weights", "m1"},
    {MEMORY_GRADIENTS, "gradients", "m2"}, {MEMORY_OPTIMIZER, "optimizer", "m3"},
    {MEMORY_BUFFERS, "buffers", "c4"},     {MEMORY_ACTIVATIONS, "activations", "c2"}};

uint32_t *plan_facts_stages(const json_t *answer, uint32_t n_devices, uint32_t *replica)
{
    uint32_t *stage = g_new(uint32_t, n_devices);
    const json_t *pipeline = json_object_get(answer, "pipeline");
    memset(stage, 0xff, n_devices * sizeof *stage);
    for (size_t s = 0; s < json_array_size(pipeline); s++) {
        const json_t *of = json_array_get(pipeline, s),
                     *ids = json_object_get(of, "device_ids");
        const json_int_t each =
            json_integer_value(json_object_get(of, "tensor_parallel"));
        for (size_t i = 0; i < json_array_size(ids); i++) {
            const json_int_t j = json_integer_value(json_array_get(ids, i));
            stage[j] = (uint32_t)s;
            if (replica)
                replica[j] = (uint32_t)((json_int_t)i / MAX(each, 1));
        }
    }
    return stage;
}

static void plan_set(json_t *answer, const char *key, json_t *value)
{
    json_object_set_new(answer, key, value);
}

/* --- names and the workload --- */

/* "mix" of "clusters/mix.yaml". Caller frees. */
static char *stem_of(const char *file)
{
    char *name = g_path_get_basename(file);
    char *dot = strrchr(name, '.');
    if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".json") == 0))
        *dot = '\0';
    return name;
}

static void add_names(json_t *answer, const Evaluation *evaluation)
{
    const GraphFacts facts = graph_facts(evaluation->graph);
    const char *named = evaluation->view->cluster->name;
    g_autofree char *cluster =
        stem_of(named && *named ? named : evaluation->plan->cluster);
    plan_set(answer, "model_name", json_text(graph_name(evaluation->graph)));
    plan_set(answer, "parameters", json_integer((json_int_t)facts.parameters));
    plan_set(answer, "cluster_name", json_text(cluster));
    g_autofree char *heading =
        render("{model_name} {parameters:si} on {cluster_name}", answer);
    plan_set(answer, "heading", json_text(heading));
}

/* A run of 10^12 tokens, and what an iteration takes in. */
static void add_work(json_t *answer, const Evaluation *evaluation)
{
    const double RUN = 1e12, DAY_S = 86400, PER_HOUR = 3600;
    const SimWorkload work =
        sim_workload(evaluation->plan, evaluation->graph, evaluation->view);
    const double per_s = work.tokens / evaluation->report->iteration_time_s;
    plan_set(answer, "samples_per_iteration",
             json_integer((json_int_t)llround(work.samples)));
    plan_set(answer, "tokens_per_sample",
             json_integer((json_int_t)llround(work.tokens / work.samples)));
    if (work.tokens > 0) {
        plan_set(answer, "tokens_per_s_per_gpu", json_number(per_s / work.gpus));
        plan_set(answer, "run_days", json_number(RUN / per_s / DAY_S));
        if (work.price > 0)
            plan_set(answer, "run_dollars",
                     json_number(RUN / per_s / PER_HOUR * work.price));
    }
}

/* --- the verdict --- */

/* "85–89 %", or one number where both are the same. */
static json_t *range_json(double low, double high)
{
    const int least = (int)lround(100 * low), most = (int)lround(100 * high);
    return least == most ? json_sprintf("%d\u00a0%%", most)
                         : json_sprintf("%d\u2013%d\u00a0%%", least, most);
}

/* The least and the largest part of the iteration over all devices. */
static json_t *part_json(const SimReport *report, const double *seconds)
{
    double low = INFINITY, high = 0;
    for (uint32_t j = 0; j < report->n_devices; j++) {
        low = fmin(low, fmax(seconds[j], 0));
        high = fmax(high, seconds[j]);
    }
    const double whole = report->iteration_time_s > 0 ? report->iteration_time_s : 1;
    return range_json(fmin(low, high) / whole, high / whole);
}

static void add_verdict(json_t *answer, const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    g_autofree char *misfit = report->feasible ? NULL : evaluation_misfit(evaluation);
    plan_set(answer, "computes", part_json(report, report->busy_s));
    plan_set(answer, "communicates", part_json(report, report->comm_busy_s));
    plan_set(answer, "idles", part_json(report, report->idle_s));
    if (misfit)
        plan_set(answer, "misfit", json_text(misfit));
    plan_set(answer, "uneven", json_boolean(!plan_splits_evenly(evaluation->plan)));
    plan_set(answer, "recomputes",
             json_boolean(json_number_value(json_object_get(answer, "hfu")) >
                          1.001 * json_number_value(json_object_get(answer, "mfu"))));
    if (!(evaluation->plan->lower_bound_s > 0)) {
        const Planner *planner = planner_find(evaluation->plan->planner, NULL);
        const uint32_t can = PLANNER_CERTIFIES | PLANNER_BOUNDS;
        plan_set(
            answer, "no_bound",
            json_sprintf(planner && (planner->ability & can)
                             ? "no bound was asked of %s, or none holds for this plan"
                             : "%s searches its own space of plans and proves nothing "
                               "about faster ones",
                         evaluation->plan->planner));
    }
}

/* Bytes of the fullest GPU: the one with the largest part of its memory in use. */
static void add_fullest(json_t *answer)
{
    const json_t *rows = json_object_get(answer, "memory"), *fullest = NULL;
    double most = -1;
    elements_each (row, rows) {
        const double part = json_number_value(json_object_get(row, "total")) /
                            json_number_value(json_object_get(row, "capacity"));
        fullest = part > most ? row : fullest;
        most = fmax(most, part);
    }
    if (!fullest)
        return;
    json_t *parts = json_array();
    items_each (const struct PlanLayer, layer, plan_layers, MEMORY_CATEGORIES) {
        json_t *bytes = json_object_get(fullest, memory_category(layer->category));
        if (json_integer_value(bytes) > 0)
            json_array_append_new(parts,
                                  json_pack("{s:s, s:s, s:O}", "name", layer->name,
                                            "color", layer->color, "bytes", bytes));
    }
    json_t *row = json_deep_copy(fullest);
    plan_set(row, "parts", parts);
    plan_set(answer, "fullest", row);
}

/* --- exports --- */

static json_t *target_json(const Evaluation *evaluation, const char *target,
                           json_t *answer)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(GArray) files = plan_export(evaluation->plan, evaluation->graph,
                                          evaluation->view, target, "train.sh", &why);
    if (files && !json_object_get(answer, "export_to") && strcmp(target, "json") != 0) {
        const char *text = g_array_index(files, ExportFile, 0).text;
        plan_set(answer, "export_to", json_string(target));
        if (strlen(text) < SCRIPT_BYTES)
            plan_set(answer, "script", json_text(text));
    }
    g_autofree char *reason = why ? export_reason(why) : NULL;
    return json_pack("{s:s, s:b, s:s?}", "to", target, "ok", files != NULL, "why",
                     reason);
}

/* Whether each framework runs the plan, and the reason if not. */
static void add_exports(json_t *answer, const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    json_t *list = json_array();
    g_auto(GStrv) known = g_strsplit(plan->exports ? plan->exports : "", " ", -1);
    const bool few = plan->program->n <= FEW_INSTRS;
    for (uint32_t i = 0; i < export_target_count(); i++) {
        const char *target = export_target(i)->name;
        if (few)
            json_array_append_new(list, target_json(evaluation, target, answer));
        else if (g_strv_contains((const char *const *)known, target))
            json_array_append_new(list, json_pack("{s:s, s:b}", "to", target, "ok", 1));
    }
    if (!few && known[0] && *known[0])
        plan_set(answer, "export_to", json_string(known[0]));
    plan_set(answer, "exports", list);
}

/* --- machines --- */

static uint32_t machine_end(const ClusterView *view, uint32_t first)
{
    uint32_t end = first;
    while (end < view->n_devices &&
           view->device[end].machine == view->device[first].machine)
        end++;
    return end;
}

/* A machine: its frames of neighbours that are one replica of a stage, with their GPUs. */
static json_t *facts_machine_json(const Evaluation *evaluation, const uint32_t *stage,
                                  const uint32_t *replica, uint32_t first, uint32_t end)
{
    const ClusterView *view = evaluation->view;
    const Machine *machine = &view->cluster->machine[view->device[first].machine];
    g_autofree char *types = machine_types(view->cluster, machine);
    json_t *frames = json_array(), *stages = json_array(), *gpus = NULL;
    uint32_t number = 0;
    for (uint32_t j = first; j < end; j++) {
        const bool staged = stage[j] != UINT32_MAX,
                   moves = j == first || stage[j] != stage[j - 1];
        if (moves || replica[j] != replica[j - 1]) {
            gpus = json_array();
            json_t *frame = json_pack("{s:o, s:i}", "gpus", gpus, "shade",
                                      staged ? (int)(stage[j] % 3) : 0);
            if (staged)
                plan_set(frame, "replica", json_integer(replica[j]));
            json_array_append_new(frames, frame);
        }
        if (staged && moves)
            json_array_append_new(stages, json_integer(stage[j]));
        for (uint32_t i = 0; i < view->device[j].gpus; i++)
            json_array_append_new(gpus, json_integer(number++));
    }
    json_t *object = json_pack("{s:s, s:o, s:o, s:i}", "types", types, "frames", frames,
                               "stages", stages, "gpus", (int)number);
    if (machine->inner.bandwidth > 0 && number > 1)
        plan_set(object, "inner", json_number(machine->inner.bandwidth));
    if (machine->port.bandwidth > 0 && view->cluster->n_machines > 1)
        plan_set(object, "port", json_number(machine->port.bandwidth));
    return object;
}

/* Machines that hold the same are one. */
static void add_machines(json_t *answer, const Evaluation *evaluation)
{
    const ClusterView *view = evaluation->view;
    g_autofree uint32_t *replica = g_new0(uint32_t, view->n_devices);
    g_autofree uint32_t *stage = plan_facts_stages(answer, view->n_devices, replica);
    json_t *list = json_array(), *last = NULL, *before = NULL;
    uint32_t n = 0, kinds = 0;
    for (uint32_t first = 0, end; first < view->n_devices; first = end, n++) {
        end = machine_end(view, first);
        const char *name = view->cluster->machine[view->device[first].machine].name;
        json_t *one = facts_machine_json(evaluation, stage, replica, first, end);
        const bool same = before && json_equal(one, before);
        if (same) {
            json_t *alike = json_object_get(last, "alike");
            plan_set(last, "to", json_text(name));
            json_integer_set(alike, json_integer_value(alike) + 1);
        } else if (kinds++ < MOST_MACHINES) {
            last = json_deep_copy(one);
            json_object_update_new(last,
                                   json_pack("{s:s, s:i}", "name", name, "alike", 1));
            json_array_append_new(list, last);
        }
        json_decref(before);
        before = one;
    }
    json_decref(before);
    plan_set(answer, "machines", list);
    plan_set(answer, "n_machines", json_integer(n));
}

/* --- sensitivity --- */

/* Numbers that shorten the iteration if it were twice as good, with the same plan. */
static void add_knobs(json_t *answer, const Evaluation *evaluation)
{
    if (evaluation->plan->program->n > FEW_INSTRS || !evaluation->report->feasible)
        return;
    json_auto_t *survey = sensitivity_json(evaluation, NULL, NULL);
    const json_t *knobs = json_object_get(survey, "knobs");
    const double time_s = evaluation->report->iteration_time_s;
    json_t *list = json_array();
    double most = 0;
    elements_each (knob, knobs) {
        const double saved =
            1 - json_number_value(json_object_get(knob, "kept_s")) / time_s;
        if (!json_is_number(json_object_get(knob, "kept_s")) || saved < 5e-5 ||
            json_array_size(list) >= MOST_KNOBS)
            continue;
        most = fmax(most, saved);
        json_array_append_new(list, json_pack("{s:O, s:O, s:O, s:o, s:o}", "what",
                                              json_object_get(knob, "what"), "factor",
                                              json_object_get(knob, "factor"), "kept_s",
                                              json_object_get(knob, "kept_s"), "saved",
                                              json_number(saved), "width",
                                              json_number(100 * saved / most)));
    }
    plan_set(answer, "knobs", list);
}

/* --- provenance --- */

/* The command that made the plan, as far as its file says. */
static void add_origin(json_t *answer, const Evaluation *evaluation, const char *file)
{
    const Plan *plan = evaluation->plan;
    g_autoptr(GString) line = g_string_new("kilter plan ");
    g_autofree char *text = plan_write(plan, evaluation->graph);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    g_auto(GStrv) pairs = g_strsplit(plan->options ? plan->options : "", " ", -1);
    g_autofree char *model = model_brief(plan->model);
    g_string_append_printf(line, "%s %s --planner %s --granularity %s", model,
                           plan->cluster, plan->planner,
                           granularity_name(plan->granularity));
    for (char **pair = pairs; *pair; pair++)
        if (**pair && !g_str_has_prefix(*pair, "for="))
            g_string_append_printf(line, " --set %s", *pair);
    if (plan->target)
        g_string_append_printf(line, " --for %s", plan->target);
    plan_set(answer, "command", json_text(line->str));
    plan_set(answer, "file", json_text(file));
    plan_set(answer, "hash", json_sprintf("%.16s", hash));
    plan_set(answer, "made_version", json_text(plan->version ? plan->version : ""));
    plan_set(answer, "revision", json_text(plan->revision ? plan->revision : ""));
}

void plan_facts_add(json_t *answer, const Evaluation *evaluation, const char *file)
{
    add_names(answer, evaluation);
    add_work(answer, evaluation);
    add_verdict(answer, evaluation);
    add_fullest(answer);
    add_exports(answer, evaluation);
    add_machines(answer, evaluation);
    add_knobs(answer, evaluation);
    add_origin(answer, evaluation, file);
}
