/* The facts about a plan beside its times, as JSON. */
#include "experiments/answers/plan_words.h"

#include <math.h>

#include "data/base/json.h"
#include "experiments/answers/plan_stages.h"

/* --- throughput --- */

typedef struct {
    SimWorkload work;
    double time_s, toll;
} Pace;

static json_t *plan_words_per_second(double amount, double time_s)
{
    return amount > 0 && time_s > 0 ? json_number(amount / time_s) : json_null();
}

static double part_of_peak(const Pace *pace, double flops)
{
    const double most = pace->work.peak * pace->time_s;
    return most > 0 ? flops / most : 0;
}

enum { SECONDS_AN_HOUR = 3600, MILLION = 1000000 };
static const double JOULES_A_KWH = 3.6e6;

static json_t *plan_words_positive_or_null(double value)
{
    return value > 0 && isfinite(value) ? json_number(value) : json_null();
}

/* Dollars of a million tokens that take so many seconds, with those for traffic; null: no price is
 * known. */
static json_t *dollars_json(const Pace *pace, double an_hour, double seconds)
{
    const double iterations = pace->time_s > 0 ? seconds / pace->time_s : 0;
    return an_hour > 0 ? plan_words_positive_or_null(an_hour / SECONDS_AN_HOUR * seconds +
                                                     pace->toll * iterations)
                       : json_null();
}

/* The costs of a million tokens, or samples if the model has no tokens; null where no price, or no
 * power, is known. */
static json_t *million_costs_json(const Pace *pace)
{
    const SimWorkload *work = &pace->work;
    const double amount = work->tokens > 0 ? work->tokens : work->samples;
    const double seconds = amount > 0 ? pace->time_s / amount * MILLION : 0;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "million_of",
                     work->tokens > 0 ? "tokens" : "samples", "dollars_per_hour",
                     plan_words_positive_or_null(work->price), "dollars_per_million",
                     dollars_json(pace, work->price, seconds), "preemptible_per_million",
                     dollars_json(pace, work->preemptible, seconds), "traffic_dollars",
                     plan_words_positive_or_null(pace->toll), "power_w",
                     plan_words_positive_or_null(work->power_w), "energy_j",
                     plan_words_positive_or_null(work->power_w * pace->time_s),
                     "kwh_per_million",
                     plan_words_positive_or_null(work->power_w * seconds / JOULES_A_KWH),
                     "mfu_of", work->of_peaks ? "peaks" : "rates");
}

void plan_words_pace_json(const Evaluation *evaluation, json_t *object)
{
    const Pace pace = {
        sim_workload(evaluation->plan, evaluation->graph, evaluation->view),
        evaluation->report->iteration_time_s, evaluation->report->toll};
    const SimWorkload *work = &pace.work;
    const bool timed =
        graph_is_timed(evaluation->graph) || graph_has_times(evaluation->graph);
    json_object_update_new(
        object,
        json_pack("{s:o, s:o, s:o}", "samples_per_s",
                  plan_words_per_second(work->samples, pace.time_s), "tokens_per_s",
                  plan_words_per_second(work->tokens, pace.time_s), "model_flops",
                  json_number(timed ? NAN : work->model_flops)));
    json_object_update_new(object, million_costs_json(&pace));
    const double flops = timed ? NAN : work->model_flops;
    json_object_update_new(
        object,
        json_pack("{s:o, s:o, s:o}", "model_flops_per_s_per_gpu",
                  plan_words_per_second(flops / work->gpus, pace.time_s), "mfu",
                  json_number(timed ? NAN : part_of_peak(&pace, flops)), "hfu",
                  json_number(timed ? NAN : part_of_peak(&pace, work->run_flops))));
}

/* --- strategy --- */

json_t *plan_words_strategy_json(const Plan *plan)
{
    return strategy_is_default(&plan->strategy) ? json_null()
                                                : strategy_json(&plan->strategy);
}

static json_t *layers_json(const StrategyLayout *layout, const Graph *graph)
{
    if (layout->n_stages == 1)
        return json_null();
    g_autofree uint32_t *count = g_new(uint32_t, layout->n_stages);
    for (uint32_t s = 0; s < layout->n_stages; s++)
        count[s] = layout->first[s + 1] - layout->first[s];
    g_autofree char *runs = plan_stages_runs(count, layout->n_stages);
    return json_pack("{s:s, s:i, s:s, s:s}", "of_stages", runs, "count",
                     (int)graph_n_layers(graph), "first", graph_layer_name(graph, 0),
                     "last", graph_layer_name(graph, graph_n_layers(graph) - 1));
}

json_t *plan_words_layout_json(const Evaluation *evaluation)
{
    const Graph *graph = evaluation->graph;
    const Strategy *strategy = &evaluation->plan->strategy;
    g_auto(StrategyLayout) layout = {0};
    if (evaluation->plan->program->n_groups == 0 || !strategy_lays_out(strategy) ||
        strategy->microbatches > 1 ||
        !strategy_lay_out(strategy, graph, evaluation->plan->n_devices, &layout, NULL) ||
        layout.stage)
        return json_null();
    const double samples =
        sim_workload(evaluation->plan, graph, evaluation->view).samples;
    return json_pack("{s:i, s:i, s:i, s:i, s:o, s:i, s:o, s:s?}", "stages",
                     (int)layout.n_stages, "context_parallel", (int)layout.cp, "replicas",
                     (int)layout.dp, "tensor_parallel", (int)layout.tp, "layers",
                     layers_json(&layout, graph), "microbatches",
                     (int)layout.n_microbatches, "samples",
                     json_number(samples / layout.dp / layout.n_microbatches), "schedule",
                     layout.n_stages > 1 ? schedule_name(layout.schedule) : NULL);
}

json_t *plan_words_schedule_json(const Plan *plan)
{
    const Strategy *s = &plan->strategy;
    return plan->program->n_groups < 2 || !strategy_lays_out(s)
               ? json_null()
               : json_pack("{s:s, s:i, s:i}", "name",
                           schedule_name((Schedule)s->schedule), "chunks",
                           (int)MAX(s->virtual_stages, 1), "context_parallel",
                           (int)MAX(s->cp, 1));
}

json_t *plan_words_experts_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    uint32_t n = 0, whole = 0, experts = 0;
    uint32_t sharers =
        program->n_groups ? program->group[0].n_devices : evaluation->plan->n_devices;
    items_each (const Instr, instr, program->instr, program->n) {
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(evaluation->graph, instr->op);
        if (op->kind != OP_EXPERT && op->kind != OP_EXPERT_PAIR)
            continue;
        n++;
        whole += instr->form[1] != form_gather(0) &&
                 form_shards(instr->form[1]) != form_gather(0);
        if (form_shards(instr->form[1]) == form_gather(0))
            sharers = group_shards(&program->group[instr->group]);
        experts = graph_tensor(evaluation->graph, op->in[1])->dim[0];
    }
    if (evaluation->plan->strategy.etp) /* whole ones on each GPU of tensor parallelism */
        sharers = evaluation->plan->strategy.ep;
    return n == 0 ? json_null()
                  : json_pack("{s:i, s:i, s:i, s:i}", "of_a_layer", (int)experts,
                              "devices", whole == n ? 0 : (int)sharers, "layers", (int)n,
                              "whole_layers", (int)whole);
}

/* --- memory --- */

/* The instruction at a peak. Caller frees. */
static char *peak_text(const Evaluation *evaluation, const SimMemoryRow *row)
{
    return evaluation->plan->program->n > 0
               ? instr_text(&evaluation->plan->program->instr[row->instr],
                            evaluation->graph)
               : g_strdup("");
}

/* The peak of a device by streams; NULL: the report has no timeline of its memory. */
static const SimMemoryStep *streams_peak(const Evaluation *evaluation, uint32_t device)
{
    const SimTimeline *timeline = evaluation->report->timeline;
    return timeline && timeline->memory
               ? sim_timeline_memory_peak(timeline, timeline->lane[device])
               : NULL;
}

/* The rows of the table of memory, by streams where these decide. */
static GArray *memory_rows(const Evaluation *evaluation, bool by_stage)
{
    const SimReport *report = evaluation->report;
    GArray *rows =
        sim_memory_table(evaluation->plan, evaluation->graph, evaluation->view,
                         report->runtime, by_stage, report->memory_bytes, NULL);
    for (uint32_t k = 0; rows && k < rows->len; k++) {
        SimMemoryRow *row = &g_array_index(rows, SimMemoryRow, k);
        const SimMemoryStep *step = streams_peak(evaluation, row->device);
        if (!step)
            continue;
        row->instr = step->instr;
        row->total_bytes = row->bytes[MEMORY_RUNTIME] =
            report->memory_bytes[row->device] +
            evaluation->view->device[row->device].runtime_bytes;
        for (MemoryCategory c = 0; c < MEMORY_RUNTIME; c++) {
            row->bytes[c] = (uint64_t)step->category[c];
            row->bytes[MEMORY_RUNTIME] -= row->bytes[c];
        }
    }
    return rows;
}

json_t *plan_words_memory_json(const Evaluation *evaluation)
{
    g_autoptr(GArray) rows = memory_rows(evaluation, false);
    json_t *array = json_array();
    for (uint32_t k = 0; rows && k < rows->len; k++) {
        const SimMemoryRow *row = &g_array_index(rows, SimMemoryRow, k);
        const Device *device = &evaluation->view->device[row->device];
        json_t *object = json_pack("{s:s, s:s, s:i}", "type", device->type_name, "device",
                                   device->name, "devices", (int)row->n_alike);
        for (MemoryCategory c = 0; c < MEMORY_CATEGORIES; c++)
            json_object_set_new(object, memory_category(c),
                                json_integer((json_int_t)row->bytes[c]));
        const json_int_t total = (json_int_t)row->total_bytes,
                         capacity = (json_int_t)row->capacity_bytes;
        g_autofree char *at = peak_text(evaluation, row);
        json_object_update_new(
            object,
            json_pack("{s:I, s:I, s:o, s:s}", "total", total, "capacity", capacity,
                      "left",
                      total > capacity ? json_null() : json_integer(capacity - total),
                      "peak_at", at));
        json_array_append_new(array, object);
    }
    return array;
}

/* The pass that a peak is in. */
static const char *peak_pass(const Evaluation *evaluation, const SimMemoryRow *row)
{
    const Program *program = evaluation->plan->program;
    for (uint32_t i = row->instr; i < program->n; i++)
        if (program->instr[i].kind == INSTR_COMPUTE &&
            program->instr[i].group == program->instr[row->instr].group) {
            const Pass pass = graph_get_op(evaluation->graph, program->instr[i].op)->pass;
            return pass == PASS_FORWARD    ? "forward"
                   : pass == PASS_BACKWARD ? "backward"
                                           : "update";
        }
    return "update";
}

json_t *plan_words_peaks_json(const Evaluation *evaluation)
{
    const Program *program = evaluation->plan->program;
    g_autoptr(GArray) rows = memory_rows(evaluation, true);
    json_t *array = json_array();
    for (uint32_t k = 0; rows && program->n > 0 && k < rows->len; k++) {
        const SimMemoryRow *row = &g_array_index(rows, SimMemoryRow, k);
        const Device *device = &evaluation->view->device[row->device];
        const SimMemoryStep *step = streams_peak(evaluation, row->device);
        const uint32_t microbatch = program->instr[row->instr].microbatch;
        MemoryCategory most = MEMORY_WEIGHTS;
        for (MemoryCategory c = 0; c < MEMORY_CATEGORIES; c++)
            most = row->bytes[c] > row->bytes[most] ? c : most;
        g_autofree char *at = peak_text(evaluation, row);
        json_array_append_new(
            array,
            json_pack(
                "{s:i, s:i, s:s, s:s, s:i, s:I, s:I, s:s, s:s, s:o, s:o, s:s}", "stage",
                (int)row->group, "rank", (int)row->device, "device", device->name, "type",
                device->type_name, "devices", (int)row->n_alike, "total",
                (json_int_t)row->total_bytes, "capacity", (json_int_t)row->capacity_bytes,
                "most", memory_category(most), "pass", peak_pass(evaluation, row),
                "microbatch",
                microbatch == PROGRAM_WHOLE ? json_null()
                                            : json_integer((json_int_t)microbatch),
                "time_s", step ? json_number(step->time_s) : json_null(), "peak_at", at));
    }
    return array;
}

void plan_words_room_json(const SimReport *report, const ClusterView *view,
                          json_t *object)
{
    uint64_t most = 0, left = UINT64_MAX;
    items_at (const Device, device, j, view->device, report->n_devices) {
        const uint64_t has = device->capacity_bytes, used = report->memory_bytes[j];
        most = MAX(most, used);
        left = MIN(left, has - MIN(has, used));
    }
    json_object_update_new(object,
                           json_pack("{s:I, s:I}", "memory_bytes", (json_int_t)most,
                                     "memory_left", (json_int_t)left));
}

json_t *plan_words_host_json(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    const Machine *machine = &evaluation->view->cluster->machine[report->host];
    return report->host_bytes == 0
               ? NULL
               : json_pack("{s:s, s:I, s:I}", "machine", machine->name, "bytes",
                           (json_int_t)report->host_bytes, "capacity",
                           (json_int_t)machine->host_memory_bytes);
}
