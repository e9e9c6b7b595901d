/* Reading and writing PyTorch's memory snapshots. */
#include "data/formats/measured/memory_snapshot.h"

#include <jansson.h>
#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/order.h"
#include "data/base/text.h"

/* The sums of a device: in the end by its segments, and changes by the events so far. */
typedef struct {
    int64_t final_allocated, final_reserved, allocated, reserved;
    int64_t most_allocated, least_allocated, most_reserved, least_reserved;
    uint32_t event, n_events;
    bool any;
} Sums;

enum { MOST_DEVICES = 4096 };
static const int64_t MOST_SUM = INT64_C(1) << 60;

typedef struct {
    const char *file;
    Sums *sums; /* [MOST_DEVICES] */
    GError **error;
} SnapshotReader;

/* A number of bytes or a device; false if it is none. */
static bool snapshot_number(const json_t *value, int64_t most, int64_t *number)
{
    *number = json_is_integer(value) ? json_integer_value(value) : -1;
    return *number >= 0 && *number <= most;
}

static bool snapshot_segments(SnapshotReader *r, const json_t *segments)
{
    size_t k;
    const json_t *segment;
    json_array_foreach (segments, k, segment) {
        int64_t device = 0, total, allocated;
        const json_t *of = json_object_get(segment, "device");
        if ((of && !snapshot_number(of, MOST_DEVICES - 1, &device)) ||
            !snapshot_number(json_object_get(segment, "total_size"), MOST_SUM, &total) ||
            !snapshot_number(json_object_get(segment, "allocated_size"), total,
                             &allocated))
            return refuse(r->error,
                          "%s: segments[%zu]: expected device, total_size and "
                          "allocated_size, which is not larger",
                          r->file, k);
        Sums *s = &r->sums[device];
        s->any = true;
        s->final_reserved += total;
        s->final_allocated += allocated;
        if (s->final_reserved > MOST_SUM)
            return refuse(r->error, "%s: segments[%zu]: expected less memory", r->file,
                          k);
    }
    return true;
}

/* Adds the effect of an action: the allocator's statistics count a block until it can be given out
 * again. */
static void snapshot_apply(Sums *s, const char *action, int64_t size)
{
    static const struct {
        const char *action;
        int allocated, reserved;
    } EFFECT[] = {{"alloc", 1, 0},         {"free_completed", -1, 0},
                  {"segment_alloc", 0, 1}, {"segment_map", 0, 1},
                  {"segment_free", 0, -1}, {"segment_unmap", 0, -1}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(EFFECT); i++)
        if (strcmp(EFFECT[i].action, action) == 0) {
            s->allocated += EFFECT[i].allocated * size;
            s->reserved += EFFECT[i].reserved * size;
        }
    if (s->allocated > s->most_allocated) {
        s->most_allocated = s->allocated;
        s->event = s->n_events;
    }
    s->least_allocated = MIN(s->least_allocated, s->allocated);
    s->most_reserved = MAX(s->most_reserved, s->reserved);
    s->least_reserved = MIN(s->least_reserved, s->reserved);
}

static bool snapshot_trace(SnapshotReader *r, uint32_t device, const json_t *trace)
{
    size_t k;
    const json_t *event;
    Sums *s = &r->sums[device];
    json_array_foreach (trace, k, event) {
        const char *action = json_string_value(json_object_get(event, "action"));
        const json_t *size = json_object_get(event, "size");
        int64_t bytes = 0;
        if (!action || (size && !snapshot_number(size, MOST_SUM, &bytes)))
            return refuse(
                r->error,
                "%s: device_traces[%u][%zu]: expected an action and a size in bytes",
                r->file, device, k);
        s->any = true;
        s->n_events++;
        snapshot_apply(s, action, bytes);
        if (MAX(labs(s->allocated), labs(s->reserved)) > MOST_SUM)
            return refuse(r->error, "%s: device_traces[%u][%zu]: expected less memory",
                          r->file, device, k);
    }
    /* what it had before the first event, which is not less than nothing */
    const int64_t before = s->final_allocated - s->allocated;
    if (before + s->least_allocated < 0)
        return refuse(r->error, "%s: device_traces[%u]: more is freed than was allocated",
                      r->file, device);
    return true;
}

static bool snapshot_traces(SnapshotReader *r, const json_t *traces)
{
    size_t d;
    const json_t *trace;
    if (json_array_size(traces) > MOST_DEVICES)
        return refuse(r->error, "%s: device_traces: expected at most %d devices", r->file,
                      MOST_DEVICES);
    json_array_foreach (traces, d, trace)
        if (!snapshot_trace(r, (uint32_t)d, trace))
            return false;
    return true;
}

GArray *snapshot_parse(const char *file, const char *text, gsize length, GError **error)
{
    json_error_t wrong;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
    g_autofree Sums *sums = g_new0(Sums, MOST_DEVICES);
    SnapshotReader r = {file, sums, error};
    g_autoptr(GArray) peaks = g_array_new(false, false, sizeof(SnapshotPeak));
    const json_t *segments = json_object_get(root, "segments");
    bool good = root && json_is_array(segments);
    if (!root)
        refuse(error, "%s:%d: expected a memory snapshot: %s", file, wrong.line,
               wrong.text);
    else if (!good)
        refuse(error, "%s: expected a memory snapshot, an object with the list segments",
               file);
    good = good && snapshot_segments(&r, segments) &&
           snapshot_traces(&r, json_object_get(root, "device_traces"));
    json_decref(root);
    for (uint32_t d = 0; good && d < MOST_DEVICES; d++) {
        const Sums *s = &sums[d];
        const SnapshotPeak peak = {
            .device = d,
            .n_events = s->n_events,
            .allocated_bytes =
                (uint64_t)(s->final_allocated - s->allocated + s->most_allocated),
            .event = s->event,
            .reserved_bytes =
                (uint64_t)(MAX(s->final_reserved - s->reserved, -s->least_reserved) +
                           s->most_reserved)};
        if (s->any)
            g_array_append_val(peaks, peak);
    }
    if (good && peaks->len == 0)
        good = refuse(error,
                      "%s: expected a memory snapshot with segments or events, got none",
                      file);
    return good ? g_steal_pointer(&peaks) : NULL;
}

GArray *snapshot_read(const char *file, GError **error)
{
    g_autofree char *text = text_read(file, error);
    return text ? snapshot_parse(file, text, strlen(text), error) : NULL;
}

/* --- writing --- */

/* An event: a block begins, or ends before the step. */
typedef struct {
    uint32_t device, step, block;
    bool ends;
} SnapshotEvent;

static ORDER_DEFINE(compare_events, SnapshotEvent, ASCENDING(device), ASCENDING(step),
                    DESCENDING(ends), ASCENDING(block));

static GArray *events_of(const GArray *block)
{
    GArray *events = g_array_new(false, false, sizeof(SnapshotEvent));
    array_at (const SnapshotBlock, of, b, block) {
        const SnapshotEvent made = {of->device, of->first, b, false},
                            freed = {of->device, of->last + 1, b, true};
        g_array_append_val(events, made);
        if (of->last != UINT32_MAX)
            g_array_append_val(events, freed);
    }
    g_array_sort(events, compare_events);
    return events;
}

static void append_trace(GString *text, const GArray *block, const GArray *events,
                         guint *next, uint32_t device)
{
    const char *comma = "";
    g_string_append(text, "[");
    for (; *next < events->len &&
           g_array_index(events, SnapshotEvent, *next).device == device;
         ++*next) {
        const SnapshotEvent *e = &g_array_index(events, SnapshotEvent, *next);
        const SnapshotBlock *of = &g_array_index(block, SnapshotBlock, e->block);
        g_autofree char *name = json_canonical(json_text(of->name));
        g_string_append_printf(
            text,
            "%s\n{\"action\": \"%s\", \"addr\": %u, \"size\": %" G_GUINT64_FORMAT
            ", \"stream\": 0, \"time_us\": %u, \"frames\": [{\"name\": %s, \"filename\": "
            "\"%s\", \"line\": %u}]}",
            comma, e->ends ? "free_completed" : "alloc", e->block, of->bytes, e->step,
            name, of->category, of->first);
        comma = ",";
    }
    g_string_append(text, "]");
}

char *snapshot_write(GArray *block, uint32_t n_devices)
{
    g_autoptr(GArray) events = events_of(block);
    g_autofree uint64_t *end = g_new0(uint64_t, n_devices + 1),
                        *peak = g_new0(uint64_t, n_devices + 1);
    array_each (const SnapshotEvent, e, events) {
        const uint64_t bytes = g_array_index(block, SnapshotBlock, e->block).bytes;
        end[e->device] += e->ends ? -bytes : bytes;
        peak[e->device] = MAX(peak[e->device], end[e->device]);
    }
    GString *text = g_string_new("{\"segments\": [");
    for (uint32_t d = 0; d < n_devices; d++)
        g_string_append_printf(
            text,
            "%s\n{\"device\": %u, \"address\": 0, \"total_size\": %" G_GUINT64_FORMAT
            ", \"allocated_size\": %" G_GUINT64_FORMAT
            ", \"stream\": 0, \"segment_type\": \"large\", \"blocks\": []}",
            d ? "," : "", d, peak[d], end[d]);
    g_string_append(text, "],\n\"device_traces\": [");
    guint next = 0;
    for (uint32_t d = 0; d < n_devices; d++) {
        g_string_append(text, d ? ",\n" : "");
        append_trace(text, block, events, &next, d);
    }
    g_string_append(text, "]}\n");
    return g_string_free(text, FALSE);
}
