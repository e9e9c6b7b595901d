/* The timeline as Chrome trace JSON: complete events ("X") in microseconds, with one process per
 * device and one thread per stream; a collective appears on every device. Categories: forward,
 * backward, update, communication, `inside` for communication among a machine's GPUs, and `launch`
 * for the work of a device's host, in a thread of its own after the streams. */
#include <jansson.h>
#include <stdlib.h>

#include "sim/flow/timeline.h"

/* Appends one event and takes ownership of it. */
static void add(GString *text, json_t *event)
{
    char *line = json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(15));

    g_string_append_printf(text, "%s\n%s", text->str[text->len - 1] == '[' ? "" : ",",
                           line);
    free(line);
    json_decref(event);
}

static void add_name(GString *text, const char *what, uint32_t device, int thread,
                     const char *name)
{
    add(text, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", what, "ph", "M", "pid",
                        (int)device, "tid", thread, "args", "name", name));
}

static void add_device(GString *text, const SimTimeline *timeline, uint32_t device,
                       const Device *d)
{
    KILTER_ASSERT(device < timeline->n_devices);
    g_autofree char *name = g_strdup_printf("%s (%s)", d->name, d->type_name);

    add_name(text, "process_name", device, 0, name);
    add_name(text, "thread_name", device, 0, "computation");
    for (uint32_t s = 1; s < timeline->n_streams; s++) {
        g_autofree char *stream = g_strdup_printf("communication %u", s);
        add_name(text, "thread_name", device, (int)s,
                 timeline->n_streams == 2 ? "communication" : stream);
    }
    if (timeline->has_launches)
        add_name(text, "thread_name", device, (int)timeline->n_streams, "host");
}

static const char *category_of(const SimSpan *span, const Program *program,
                               const Graph *graph)
{
    static const char *const pass[] = {[PASS_FORWARD] = "forward",
                                       [PASS_BACKWARD] = "backward",
                                       [PASS_UPDATE] = "update"};
    const Instr *instr = &program->instr[span->instr];

    if (span->launch)
        return "launch";
    if (span->lane == SIM_TEAM)
        return "communication";
    return instr->kind == INSTR_COMPUTE ? pass[graph_get_op(graph, instr->op)->pass]
                                        : "inside";
}

static void add_span(GString *text, const SimTimeline *timeline, uint32_t span,
                     uint32_t device, const char *category, const char *name,
                     const char *detail)
{
    KILTER_ASSERT(span < timeline->n_spans && device < timeline->n_devices);
    const SimSpan *s = &timeline->span[span];

    add(text, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:s, s:i}}", "name", name,
                        "cat", category, "ph", "X", "pid", (int)device, "tid",
                        (int)(s->launch ? timeline->n_streams : s->stream), "ts",
                        1e6 * s->start_s, "dur", 1e6 * (s->end_s - s->start_s), "args",
                        "instruction", detail, "index", (int)s->instr));
}

/* Adds counter events: the bytes in memory from each step on. */
static void add_memory(GString *text, const SimTimeline *timeline, uint32_t device)
{
    KILTER_ASSERT(device < timeline->n_devices);
    const GArray *steps = timeline->memory[timeline->lane[device]];

    for (uint32_t i = 0; i < steps->len; i++) {
        const SimMemoryStep *step = &g_array_index(steps, SimMemoryStep, i);
        if (i + 1 < steps->len && step[1].time_s == step->time_s &&
            step[1].bytes >= step->bytes)
            continue; /* a larger step at the same time follows */
        add(text, json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "name", "memory", "ph", "C",
                            "pid", (int)device, "ts", 1e6 * step->time_s, "args", "bytes",
                            step->bytes));
    }
}

char *sim_timeline_trace(const SimTimeline *timeline, const Program *program,
                         const Graph *graph, const ClusterView *view)
{
    GString *text = g_string_new("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");

    for (uint32_t j = 0; j < timeline->n_devices; j++)
        add_device(text, timeline, j, &view->device[j]);
    for (uint32_t j = 0; timeline->memory && j < timeline->n_devices; j++)
        add_memory(text, timeline, j);
    for (uint32_t i = 0; i < timeline->n_spans; i++) {
        const SimSpan *span = &timeline->span[i];
        if (span->start_s == span->end_s)
            continue;
        g_autofree char *name = sim_span_text(timeline, i, program, graph);
        g_autofree char *detail = instr_text(&program->instr[span->instr], graph);
        g_autofree bool *on = g_new0(bool, timeline->n_lanes);
        uint32_t n;
        const uint32_t *lane = sim_span_lanes(timeline, span, &n);
        for (uint32_t k = 0; k < n; k++)
            on[lane[k]] = true;
        for (uint32_t j = 0; j < timeline->n_devices; j++)
            if (on[timeline->lane[j]])
                add_span(text, timeline, i, j, category_of(span, program, graph), name,
                         detail);
    }
    g_string_append(text, "\n]}\n");
    return g_string_free(text, false);
}
