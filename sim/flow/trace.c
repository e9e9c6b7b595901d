/* The timeline as Chrome trace JSON: complete events ("X") in microseconds, with one process per
 * device and one thread per stream; a collective appears on every device. Arrows (flow events "s"
 * and "f", in pairs of one id) lead from what made an operand to what reads it in another stream,
 * and from the sender of a transfer to its receiver. The same events become Perfetto's packets,
 * where arrows are members of their spans (data/formats/trace/perfetto.h). Categories: forward,
 * backward, update, communication, `inside` for communication among a machine's GPUs, and `launch`
 * for the work of a device's host, in a thread of its own after the streams. Some microbatches may
 * be folded: what a stream does for one in a row is then a single span, without arrows. */
#include <jansson.h>
#include <stdlib.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "data/formats/trace/perfetto.h"
#include "data/program/batch.h"
#include "sim/flow/timeline.h"

/* Of a trace with more microbatches than that many spans, those in the middle are folded. */
enum { MANY_SPANS = 60000 };

/* The spans of a folded microbatch in a row on a thread of a device. */
typedef struct {
    uint32_t n; /* spans; 0: none */
    const Instr *first;
    const char *category;
    double start_s, end_s, bytes;
} Run;

/* From the middle of one span to the middle of another, or of the same one on another device. */
typedef struct {
    uint32_t span[2], device[2];
} Arrow;

/* One end of an arrow, in the order of spans by their starts, then of devices; what leads out
 * first. */
typedef struct {
    double start_s;
    uint32_t span, device, in;
    uint64_t id;
} ArrowEnd;

typedef struct {
    GString *text;      /* of JSON, or NULL */
    Perfetto *perfetto; /* or NULL */
    GArray *arrow, *end;
    guint next; /* of end */
    const SimTimeline *timeline;
    const Program *program;
    const Graph *graph;
    const BatchForms *batch; /* NULL: the batch is not cut in time */
    bool *shown;             /* [device] */
    const bool *whole;       /* [microbatch]: it is not folded; NULL: none is */
    Run *run;                /* [device * (n_streams + 1) + thread] */
    /* [lane]: the first device of the trace that does its work, n_devices: none; and how many do */
    uint32_t *first, *alike;
    uint32_t *n_shown; /* [lane]: devices of the trace */
    /* [lane]: what key_of names -> span + 1 that made it last */
    GPtrArray *maker;
} Trace;

/* Appends one event and takes ownership of it. */
static void add(const Trace *trace, json_t *event)
{
    GString *text = trace->text;
    if (trace->perfetto) {
        perfetto_add(trace->perfetto, event, NULL, 0, 0);
    } else {
        char *line = json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(15));
        g_string_append_printf(text, "%s\n%s", text->str[text->len - 1] == '[' ? "" : ",",
                               line);
        free(line);
    }
    json_decref(event);
}

static void add_name(const Trace *trace, const char *what, uint32_t device, int thread,
                     const char *name)
{
    add(trace, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", what, "ph", "M", "pid",
                         (int)device, "tid", thread, "args", "name", name));
}

static void add_device(const Trace *trace, uint32_t device, const Device *d)
{
    const SimTimeline *timeline = trace->timeline;
    KILTER_ASSERT(device < timeline->n_devices);
    const uint32_t lane = timeline->lane[device], n = trace->alike[lane];
    g_autofree char *others = g_strdup_printf(", %u alike", n);
    g_autofree char *name =
        g_strdup_printf("%s (%s)%s", d->name, d->type_name, n > 1 ? others : "");
    add_name(trace, "process_name", device, 0, name);
    add_name(trace, "thread_name", device, 0, "computation");
    for (uint32_t s = 1; s < timeline->n_streams; s++) {
        g_autofree char *stream = g_strdup_printf("communication %u", s);
        add_name(trace, "thread_name", device, (int)s,
                 timeline->n_streams == 2 ? "communication" : stream);
    }
    if (timeline->has_launches)
        add_name(trace, "thread_name", device, (int)timeline->n_streams, "host");
}

const char *sim_span_category(const SimSpan *span, const Program *program,
                              const Graph *graph)
{
    static const char *const pass[] = {[PASS_FORWARD] = "forward",
                                       [PASS_BACKWARD] = "backward",
                                       [PASS_UPDATE] = "update"};
    const Instr *instr = &program->instr[span->instr];
    if (span->launch)
        return "launch";
    if (span->lane == SIM_TEAM || span->copies)
        return "communication";
    return instr->kind == INSTR_COMPUTE ? pass[graph_get_op(graph, instr->op)->pass]
                                        : "inside";
}

static bool is_part(const Trace *trace, const Instr *instr)
{
    return trace->batch && instr->microbatch != PROGRAM_WHOLE;
}

/* Whether an instruction's spans are folded. */
static bool is_folded(const Trace *trace, uint32_t index)
{
    if (index >= trace->timeline->n_instrs)
        return false;
    const Instr *instr = &trace->program->instr[index];
    return trace->whole && is_part(trace, instr) && !trace->whole[instr->microbatch];
}

/* Bytes of the tensor that an instruction moves or makes, of its microbatch where it is cut. */
static json_int_t bytes_of(const Trace *trace, const Instr *instr)
{
    const TensorId tensor = instr->kind == INSTR_COMPUTE
                                ? graph_get_op(trace->graph, instr->op)->out[0]
                                : instr->tensor;
    const bool has_parts =
        is_part(trace, instr) && form_is_gather(trace->batch->form[tensor]);
    return (json_int_t)(tensor_bytes(graph_tensor(trace->graph, tensor)) /
                        (has_parts ? trace->program->n_microbatches : 1));
}

/* The members of an event's `args` about its instruction: its number in the plan's program, what it
 * does, its group, its microbatch (absent: all of them), and its bytes. */
static json_t *args_of(const Trace *trace, uint32_t index)
{
    const Instr *instr = &trace->program->instr[index];
    const char *what = instr->kind == INSTR_COMPUTE
                           ? op_kind_name(graph_get_op(trace->graph, instr->op)->kind)
                       : instr->kind == INSTR_COLLECTIVE
                           ? collective_name(instr->collective)
                       : instr->kind == INSTR_TRANSFER ? "transfer"
                                                       : "load";
    json_t *args = json_pack("{s:i, s:s, s:i, s:I}", "index", (int)index, "op", what,
                             "group", (int)instr->group, "bytes", bytes_of(trace, instr));
    if (is_part(trace, instr))
        json_object_set_new(args, "microbatch", json_integer(instr->microbatch));
    return args;
}

static json_t *slice(const char *name, const char *category, uint32_t device,
                     uint32_t thread, double start_s, double end_s, json_t *args)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "name", name, "cat",
                     category, "ph", "X", "pid", (int)device, "tid", (int)thread, "ts",
                     1e6 * start_s, "dur", 1e6 * (end_s - start_s), "args", args);
}

/* Ends the run of a thread, if there is one. */
static void end_run(const Trace *trace, uint32_t device, uint32_t thread)
{
    Run *run = &trace->run[device * (trace->timeline->n_streams + 1) + thread];
    if (run->n == 0)
        return;
    const int microbatch = run->first->microbatch;
    g_autofree char *name =
        g_strdup_printf("%s of microbatch %d", run->category, microbatch);
    json_t *args = json_pack("{s:s, s:i, s:i, s:I, s:i}", "op", run->category, "n",
                             (int)run->n, "group", (int)run->first->group, "bytes",
                             (json_int_t)run->bytes, "microbatch", microbatch);
    add(trace,
        slice(name, run->category, device, thread, run->start_s, run->end_s, args));
    *run = (Run){0};
}

/* Whether a span continues a run: forward ops within a backward pass compute again. */
static bool continues(const Run *run, const Instr *instr, const char *category)
{
    return run->first->microbatch == instr->microbatch &&
           run->first->group == instr->group &&
           (run->category == category ||
            (strcmp(run->category, "backward") == 0 && strcmp(category, "forward") == 0));
}

/* Adds a folded span to the run of its thread. */
static void extend_run(const Trace *trace, const SimSpan *span, uint32_t device,
                       uint32_t thread, const char *category)
{
    Run *run = &trace->run[device * (trace->timeline->n_streams + 1) + thread];
    const Instr *instr = &trace->program->instr[span->instr];
    if (run->n && !continues(run, instr, category))
        end_run(trace, device, thread);
    if (run->n++ == 0) {
        run->first = instr;
        run->category = category;
        run->start_s = span->start_s;
    }
    run->end_s = MAX(run->end_s, span->end_s);
    run->bytes += (double)bytes_of(trace, instr);
}

static void add_span(Trace *trace, uint32_t span, uint32_t device, const char *name)
{
    const SimTimeline *timeline = trace->timeline;
    KILTER_ASSERT(span < timeline->n_spans && device < timeline->n_devices);
    const SimSpan *s = &timeline->span[span];
    const uint32_t thread = s->launch ? timeline->n_streams : s->stream;
    const char *category = sim_span_category(s, trace->program, trace->graph);
    if (is_folded(trace, s->instr)) {
        extend_run(trace, s, device, thread, category);
        return;
    }
    end_run(trace, device, thread);
    json_t *event = slice(name, category, device, thread, s->start_s, s->end_s,
                          args_of(trace, s->instr));
    if (!trace->perfetto) {
        add(trace, event);
        return;
    }
    g_autoptr(GArray) flow = g_array_new(false, false, sizeof(uint64_t));
    uint32_t n[2] = {0, 0};
    for (; trace->next < trace->end->len; trace->next++) {
        const ArrowEnd *end = &g_array_index(trace->end, ArrowEnd, trace->next);
        if (end->span != span || end->device != device)
            break;
        g_array_append_val(flow, end->id);
        n[end->in]++;
    }
    perfetto_add(trace->perfetto, event, (const uint64_t *)flow->data, n[0], n[1]);
    json_decref(event);
}

static bool is_same_run(const Trace *trace, const SimMemoryStep *a,
                        const SimMemoryStep *b)
{
    const Instr *instr = trace->program->instr;
    return is_folded(trace, a->instr) && is_folded(trace, b->instr) &&
           instr[a->instr].microbatch == instr[b->instr].microbatch;
}

/* Adds counter events: the bytes in memory from each step on. Of steps at the same time, and of
 * those of a folded microbatch in a row, a largest one stands for all. */
static void add_memory(const Trace *trace, uint32_t device)
{
    const SimTimeline *timeline = trace->timeline;
    KILTER_ASSERT(device < timeline->n_devices);
    const GArray *steps = timeline->memory[timeline->lane[device]];
    const SimMemoryStep *most = NULL;
    array_at (const SimMemoryStep, step, i, steps) {
        if (!most || step->bytes >= most->bytes)
            most = step;
        if (i + 1 < steps->len &&
            ((step[1].time_s == step->time_s && step[1].bytes >= step->bytes) ||
             is_same_run(trace, step, step + 1)))
            continue;
        add(trace, json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name", "memory", "ph", "C",
                             "pid", (int)device, "ts", 1e6 * most->time_s, "args",
                             "bytes", most->bytes));
        most = NULL;
    }
}

/* --- arrows --- */

static void note_arrow(const Trace *trace, uint32_t from, uint32_t from_device,
                       uint32_t to, uint32_t to_device)
{
    const SimSpan *spans = trace->timeline->span;
    if (is_folded(trace, spans[from].instr) || is_folded(trace, spans[to].instr))
        return;
    const Arrow arrow = {{from, to}, {from_device, to_device}};
    const uint64_t id = trace->arrow->len + 1;
    g_array_append_val(trace->arrow, arrow);
    for (uint32_t i = 0; trace->perfetto && i < 2; i++) {
        const double start_s = trace->timeline->span[arrow.span[i]].start_s;
        const ArrowEnd end = {start_s, arrow.span[i], arrow.device[i], i, id};
        g_array_append_val(trace->end, end);
    }
}

static ORDER_DEFINE(compare_ends, ArrowEnd, ASCENDING(start_s), ASCENDING(span),
                    ASCENDING(device), ASCENDING(in), ASCENDING(id));

/* Writes the arrows of JSON. */
static void add_arrows(const Trace *trace)
{
    for (guint i = 0; !trace->perfetto && i < trace->arrow->len; i++) {
        const Arrow *arrow = &g_array_index(trace->arrow, Arrow, i);
        for (int k = 0; k < 2; k++) {
            const SimSpan *end = &trace->timeline->span[arrow->span[k]];
            json_t *event =
                json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "name", "operand", "cat",
                          "flow", "ph", k ? "f" : "s", "id", (int)i + 1, "pid",
                          (int)arrow->device[k], "tid", (int)end->stream, "ts",
                          1e6 * (end->start_s + 0.5 * (end->end_s - end->start_s)));
            if (k)
                json_object_set_new(event, "bp", json_string("e"));
            add(trace, event);
        }
    }
}

/* Times an odd number and turned, which keeps keys apart and mixes the low bits, GLib's hash. */
static gint64 trace_key_of(TensorId tensor, uint16_t group, uint16_t microbatch)
{
    const uint64_t key = (uint64_t)tensor << 32 | (uint32_t)group << 16 | microbatch,
                   mixed = key * UINT64_C(0x9e3779b97f4a7c15);
    return (gint64)(mixed >> 32 | mixed << 32);
}

static void note_maker(GHashTable *maker, gint64 key, uint32_t span)
{
    g_hash_table_replace(maker, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(span + 1));
}

/* Arrows to a span's reads on all devices of a lane, and what it makes there. */
static void visit_lane(const Trace *trace, uint32_t span, uint32_t lane)
{
    const SimTimeline *timeline = trace->timeline;
    const Graph *graph = trace->graph;
    const SimSpan *s = &timeline->span[span];
    const Instr *instr = &trace->program->instr[s->instr];
    GHashTable *maker = g_ptr_array_index(trace->maker, lane);
    Operand use[OP_MAX_IN], make[OP_MAX_OUT];
    const uint32_t n_uses = instr_uses(instr, graph, use),
                   n_makes = instr_makes(instr, graph, make);
    for (uint32_t i = 0; i < n_uses; i++) {
        const gint64 key = trace_key_of(use[i].tensor, instr->group, instr->microbatch);
        const uint32_t made = GPOINTER_TO_UINT(g_hash_table_lookup(maker, &key));
        const SimSpan *from = made ? &timeline->span[made - 1] : NULL;
        if (!from || from->stream == s->stream || from->start_s == from->end_s ||
            from->end_s > s->start_s)
            continue;
        for (uint32_t j = trace->first[lane]; j < timeline->n_devices; j++)
            if (timeline->lane[j] == lane && trace->shown[j])
                note_arrow(trace, made - 1, j, span, j);
    }
    const bool transfer = instr->kind == INSTR_TRANSFER;
    for (uint32_t i = 0; i < n_makes; i++)
        note_maker(maker,
                   trace_key_of(make[i].tensor, transfer ? instr->to_group : instr->group,
                                instr->microbatch),
                   span);
    if (instr->across)
        note_maker(maker, trace_key_of(instr->tensor, instr->group, instr->microbatch),
                   span);
}

/* The first device of a group that has one of the span's lanes, and is in the trace; n_devices if
 * none is. */
static uint32_t device_in(const Trace *trace, const SimSpan *span,
                          const DeviceGroup *group)
{
    const SimTimeline *timeline = trace->timeline;
    uint32_t n;
    const uint32_t *lane = sim_span_lanes(timeline, span, &n);
    for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
        for (uint32_t k = 0; k < n; k++)
            if (timeline->lane[group->device[i]] == lane[k] &&
                trace->first[lane[k]] < timeline->n_devices)
                return trace->shown[group->device[i]] ? group->device[i]
                                                      : trace->first[lane[k]];
    return timeline->n_devices;
}

/* Of a transfer, from a device that sends to one that receives. */
static void trace_add_message(const Trace *trace, uint32_t span)
{
    const Program *program = trace->program;
    const SimSpan *s = &trace->timeline->span[span];
    const Instr *instr = &program->instr[s->instr];
    if (MAX(instr->group, instr->to_group) >= program->n_groups)
        return;
    const uint32_t from = device_in(trace, s, &program->group[instr->group]),
                   to = device_in(trace, s, &program->group[instr->to_group]);
    if (from != to && MAX(from, to) < trace->timeline->n_devices)
        note_arrow(trace, span, from, span, to);
}

static void find_arrows(Trace *trace)
{
    trace->maker = g_ptr_array_new_with_free_func((GDestroyNotify)g_hash_table_unref);
    for (uint32_t i = 0; i < trace->timeline->n_lanes; i++)
        g_ptr_array_add(trace->maker,
                        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL));
    items_at (const SimSpan, span, i, trace->timeline->span, trace->timeline->n_spans) {
        if (span->launch || span->start_s == span->end_s)
            continue;
        uint32_t n;
        const uint32_t *lane = sim_span_lanes(trace->timeline, span, &n);
        for (uint32_t k = 0; k < n; k++)
            visit_lane(trace, i, lane[k]);
        if (trace->program->instr[span->instr].kind == INSTR_TRANSFER)
            trace_add_message(trace, i);
    }
    g_ptr_array_unref(trace->maker);
    g_array_sort(trace->end, compare_ends);
}

/* --- the whole --- */

/* Whether the trace has devices, and the first one of each lane. */
static void choose_devices(Trace *trace, const bool *shown)
{
    const SimTimeline *timeline = trace->timeline;
    trace->shown = g_new0(bool, timeline->n_devices);
    trace->first = g_new(uint32_t, timeline->n_lanes);
    trace->alike = g_new0(uint32_t, timeline->n_lanes);
    trace->n_shown = g_new0(uint32_t, timeline->n_lanes);
    for (uint32_t i = 0; i < timeline->n_lanes; i++)
        trace->first[i] = timeline->n_devices;
    values_at (const uint32_t, lane, j, timeline->lane, timeline->n_devices) {
        const bool is_first = trace->first[lane] == timeline->n_devices;
        trace->shown[j] = shown ? shown[j] : is_first;
        if (trace->shown[j] && is_first)
            trace->first[lane] = j;
        trace->alike[lane] = shown ? 1 : trace->alike[lane] + 1;
        trace->n_shown[lane] += trace->shown[j];
    }
}

static void add_span_everywhere(Trace *trace, uint32_t span, bool *on)
{
    const SimTimeline *timeline = trace->timeline;
    uint32_t n;
    const uint32_t *lane = sim_span_lanes(timeline, &timeline->span[span], &n);
    g_autofree char *name = sim_span_text(timeline, span, trace->program, trace->graph);
    for (uint32_t k = 0; k < n; k++)
        on[lane[k]] = true;
    for (uint32_t j = 0; j < timeline->n_devices; j++)
        if (trace->shown[j] && on[timeline->lane[j]])
            add_span(trace, span, j, name);
    for (uint32_t k = 0; k < n; k++)
        on[lane[k]] = false;
}

/* In the order of their starts: each is an end without an arrow. */
static void add_spans(Trace *trace)
{
    const SimTimeline *timeline = trace->timeline;
    g_autofree bool *on = g_new0(bool, timeline->n_lanes);
    g_autoptr(GArray) order = g_array_new(false, true, sizeof(ArrowEnd));
    for (uint32_t i = 0; i < timeline->n_spans; i++) {
        const ArrowEnd start = {.start_s = timeline->span[i].start_s, .span = i};
        if (timeline->span[i].start_s != timeline->span[i].end_s)
            g_array_append_val(order, start);
    }
    g_array_sort(order, compare_ends);
    for (guint i = 0; i < order->len; i++)
        add_span_everywhere(trace, g_array_index(order, ArrowEnd, i).span, on);
    for (uint32_t j = 0; j < timeline->n_devices; j++)
        for (uint32_t thread = 0; thread <= timeline->n_streams; thread++)
            end_run(trace, j, thread);
}

/* The microbatches that a trace has op by op: all, or as many of the first and last ones as make
 * MANY_SPANS, two at least. Caller frees. */
static bool *choose_microbatches(const Trace *trace)
{
    const SimTimeline *timeline = trace->timeline;
    const uint32_t n = trace->program->n_microbatches;
    uint64_t spans = 0;
    for (uint32_t i = 0; i < timeline->n_spans; i++) {
        uint32_t n_lanes;
        const uint32_t *lane = sim_span_lanes(timeline, &timeline->span[i], &n_lanes);
        for (uint32_t k = 0; k < n_lanes; k++)
            spans += trace->n_shown[lane[k]];
    }
    const uint64_t most = MAX(2, (uint64_t)MANY_SPANS * n / MAX(spans, 1));
    bool *whole = g_new0(bool, n);
    for (uint32_t i = 0; i < n; i++)
        whole[i] = i < (most + 1) / 2 || n - i <= most / 2;
    return whole;
}

GByteArray *sim_timeline_trace(const SimTimeline *timeline, const Program *program,
                               const Graph *graph, const ClusterView *view,
                               const bool *shown, const bool *whole, bool packets)
{
    static const char HEAD[] = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    g_autoptr(BatchForms) batch =
        program->n_microbatches > 1 ? batch_forms_of_microbatches(graph, NULL) : NULL;
    Trace trace = {.text = packets ? NULL : g_string_new(HEAD),
                   .perfetto = packets ? perfetto_new() : NULL,
                   .arrow = g_array_new(false, false, sizeof(Arrow)),
                   .end = g_array_new(false, false, sizeof(ArrowEnd)),
                   .timeline = timeline,
                   .program = program,
                   .graph = graph,
                   .batch = batch};
    choose_devices(&trace, shown);
    g_autofree bool *chosen = whole ? NULL : choose_microbatches(&trace);
    trace.whole = whole ? whole : chosen;
    trace.run = g_new0(Run, (size_t)timeline->n_devices * (timeline->n_streams + 1));
    find_arrows(&trace);
    for (uint32_t j = 0; j < timeline->n_devices; j++)
        if (trace.shown[j])
            add_device(&trace, j, &view->device[j]);
    for (uint32_t j = 0; timeline->memory && j < timeline->n_devices; j++)
        if (trace.shown[j])
            add_memory(&trace, j);
    add_spans(&trace);
    add_arrows(&trace);
    free_each(trace.shown, trace.first, trace.alike, trace.n_shown, trace.run);
    unref_arrays(trace.arrow, trace.end);
    if (packets)
        return perfetto_end(trace.perfetto);
    const gsize length = g_string_append(trace.text, "\n]}\n")->len;
    return g_byte_array_new_take((guint8 *)g_string_free(trace.text, false), length);
}
