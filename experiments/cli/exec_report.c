/* The report of kilter exec. */
#include "experiments/cli/exec_report.h"

#include "data/base/json.h"
#include "data/base/version.h"
#include "data/plan/fidelity.h"
#include "experiments/calibration/calibrated.h"
#include "experiments/cli/command.h"
#include "experiments/sweep/configuration.h"
#include "experiments/sweep/result.h"

/* --- prediction --- */

void exec_report_predict(ExecReport *report)
{
    const Plan *plan = report->plan;
    g_autoptr(Cluster) cluster = evaluation_cluster(plan, "the plan", NULL);
    for (char **text = report->slowdown; cluster && text && *text; text++)
        cluster_stretch(cluster, plan->granularity, *text, NULL);
    if (!cluster)
        return;
    g_autoptr(ClusterView) view = cluster_view(cluster, plan->granularity);
    report->predicted =
        sim_evaluate(plan, report->graph, view, fidelity_name(FIDELITY_ANALYTIC), NULL);
    if (report->predicted)
        report->unmeasured = calibrated_outside(plan, report->graph, view);
}

void exec_report_clear(ExecReport *report)
{
    g_clear_pointer(&report->predicted, sim_report_free);
}

/* The prediction's stage that begins with the same instructions, or NULL. */
static const SimStageReport *stage_of(const ExecReport *report, uint32_t k)
{
    const SimReport *p = report->predicted;
    return p && p->n_stages == report->measured->n_stages ? &p->stage[k] : NULL;
}

static json_t *spread_json(const ExecSpread *spread)
{
    return json_pack("{s:f, s:f, s:f}", "median_s", spread->median_s, "low_s",
                     spread->low_s, "high_s", spread->high_s);
}

static void append_kind(json_t *list, const char *name, const ExecKind *kind)
{
    if (kind->n > 0)
        json_array_append_new(list, json_pack("{s:s, s:i, s:f}", "kind", name, "calls",
                                              (int)kind->n, "median_s", kind->median_s));
}

static json_t *exec_report_stages_json(const ExecReport *report)
{
    const ExecMeasurement *m = report->measured;
    json_t *stages = json_array();
    for (uint32_t k = 0; k < m->n_stages; k++) {
        const SimStageReport *predicted = stage_of(report, k);
        g_autofree char *first =
            instr_text(&report->plan->program->instr[m->stage[k].first], report->graph);
        json_t *stage = json_pack("{s:s, s:o, s:o}", "first", first, "communication",
                                  spread_json(&m->stage[k].comm), "computation",
                                  spread_json(&m->stage[k].comp));
        if (predicted)
            json_object_set_new(stage, "predicted",
                                json_pack("{s:f, s:f}", "communication_s",
                                          predicted->comm_s, "computation_s",
                                          predicted->comp_s));
        json_array_append_new(stages, stage);
    }
    return stages;
}

static json_t *slowdown_json(const ExecReport *report)
{
    json_t *list = json_array();
    for (char **text = report->slowdown; text && *text; text++)
        json_array_append_new(list, json_string(*text));
    return list;
}

static void total(const ExecMeasurement *m, double *comm_s, double *comp_s)
{
    *comm_s = *comp_s = 0;
    for (uint32_t k = 0; k < m->n_stages; k++) {
        *comm_s += m->stage[k].comm.median_s;
        *comp_s += m->stage[k].comp.median_s;
    }
}

/* A number of bytes, or null if it is not known. */
static json_t *bytes_json(uint64_t bytes)
{
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

/* The peak of the device that needs most, by the prediction. */
static uint64_t predicted_bytes(const SimReport *predicted)
{
    uint64_t most = 0;
    for (uint32_t j = 0; predicted && j < predicted->n_devices; j++)
        most = MAX(most, predicted->memory_bytes[j]);
    return most;
}

json_t *exec_report_json(const ExecReport *report)
{
    const Plan *plan = report->plan;
    const ExecMeasurement *m = report->measured;
    const SimReport *p = report->predicted;
    json_t *kinds = json_array();
    double comm_s, comp_s;
    total(m, &comm_s, &comp_s);
    for (uint32_t k = 0; k < OP_KINDS; k++)
        append_kind(kinds, op_kind_name((OpKind)k), &m->op[k]);
    for (uint32_t k = 0; k < COLLECTIVES; k++)
        append_kind(kinds, collective_name((Collective)k), &m->collective[k]);
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:o, s:f, s:o, s:i, "
        "s:f, s:f, s:o, "
        "s:o, s:o, s:I, s:I, s:s}",
        "model", plan->model, "cluster", plan->cluster, "planner", plan->planner,
        "fidelity", "exec", "backend", report->backend, "dtype", report->dtype, "ranks",
        (int)plan->n_devices, "repeats", (int)m->repeats, "iteration_time_s",
        m->iteration.median_s, "iteration", spread_json(&m->iteration), "planned_time_s",
        plan->iteration_time_s, "predicted_time_s",
        p ? json_number(p->iteration_time_s) : json_null(), "unmeasured",
        (int)report->unmeasured, "communication_s", comm_s, "computation_s", comp_s,
        "stages", exec_report_stages_json(report), "kinds", kinds, "slowdown",
        slowdown_json(report), "bytes", (json_int_t)m->bytes, "seed",
        (json_int_t)report->seed, "version", KILTER_VERSION);
    json_object_set_new(root, "predicted_bytes", bytes_json(predicted_bytes(p)));
    json_object_set_new(root, "allocated_bytes", bytes_json(m->memory.peak_bytes));
    json_object_set_new(root, "device_bytes", bytes_json(m->memory.device_bytes));
    return root;
}

/* clang-format off */
const char EXEC_REPORT_TEXT[] =
    "{model} on {ranks} ranks, {backend} backend, {dtype}, {repeats} repeats\n"
    "  iteration    {iteration.median_s:time}, quartiles {iteration.low_s:time} and {iteration.high_s:time}\n"
    "[  predicted    {predicted_time_s:time} by the plan's cluster\n"
    "[{?unmeasured}               {unmeasured} instructions have sizes outside of those calibrated on\n]]"
    "  memory       {bytes:bytes} on the rank that holds most[, {predicted_bytes:bytes} predicted at the peak]\n"
    "[               {allocated_bytes:bytes} allocated at most at once, {device_bytes:bytes} of the device in use\n]"
    "  op or collective          calls     together\n"
    "[*kinds:  {kind:-24} {calls:6} {median_s:12time}\n]"
    "[{?verbose}  stage          communication            computation   first\n"
    "[*stages:  {#:5} [=22:{communication.median_s:time}[ ({predicted.communication_s:time})]] "
    "[=22:{computation.median_s:time}[ ({predicted.computation_s:time})]]   {first}\n]]"
    "[  {database} [{?kept}has the measurement|keeps an earlier measurement of the same configuration]\n]";
/* clang-format on */

/* --- the store --- */

/* SHA-256 of the program and shards that the ranks run. Caller frees. */
static char *program_hash(const ExecReport *report)
{
    static const char *const keys[] = {"program", "ratios", "segments", "splits"};
    g_autofree char *text = plan_write(report->plan, report->graph);
    json_t *plan = json_loads(text, 0, NULL), *kept = json_object();
    for (uint32_t i = 0; i < G_N_ELEMENTS(keys); i++)
        json_object_set(kept, keys[i], json_object_get(plan, keys[i]));
    json_decref(plan);
    g_autofree char *canonical = json_canonical(kept);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, canonical, -1);
}

static json_t *method_json(const ExecReport *report)
{
    const Plan *plan = report->plan;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "planner",
                     plan->planner, "fidelity", "exec", "granularity",
                     granularity_name(plan->granularity), "backend", report->backend,
                     "dtype", report->dtype, "host", g_get_host_name(), "repeats",
                     (int)report->measured->repeats, "warm_up", (int)report->warm_up,
                     "slowdown", slowdown_json(report));
}

bool exec_report_store(const ExecReport *report, const char *file, const char *command,
                       bool *kept, GError **error)
{
    const Plan *plan = report->plan;
    const ExecMeasurement *m = report->measured;
    g_autofree char *program = program_hash(report);
    g_auto(StoreQuestion)
        question = {.subject = question_part(json_pack("{s:s, s:s}", "model", plan->model,
                                                       "program", program)),
                    .cluster = question_part(json_pack("{s:s}", "name", plan->cluster)),
                    .method = question_method(method_json(report)),
                    .seed = report->seed};
    g_autofree char *hash = store_question_hash(&question);
    const StoreAsked asked = {.experiment = "exec",
                              .hash = hash,
                              .model = plan->model,
                              .cluster = plan->cluster,
                              .entry = plan->planner};
    g_auto(Result) result = {.row = result_blank(&asked, &question)};
    StoreResult *row = &result.row;
    result_take_plan(&result, plan);
    result_take_detail(&result, exec_report_json(report));
    row->planner = plan->planner;
    row->fidelity = "exec";
    row->granularity = granularity_name(plan->granularity);
    row->gpus = plan->n_devices;
    row->status = "ok";
    row->iteration_time_s = m->iteration.median_s;
    row->stages = m->n_stages;
    row->peak_memory_bytes = m->bytes;
    row->search_time_s = plan->search_time_s;
    row->balance_time_s = plan->balance_time_s;
    total(m, &row->communication_s, &row->computation_s);
    g_autoptr(Store) store = store_open(file, error);
    bool has = false;
    if (!store || !store_begin_run(store, command, command_revision(), error) ||
        !store_find(store, &asked, 1, &has, error) || !store_put(store, row, error))
        return false;
    *kept = !has;
    return true;
}
