/* Reading and writing PyTorch's memory snapshots. */
#include "data/formats/measured/memory_snapshot.h"

#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/order.h"
#include "data/base/text.h"
#include "data/formats/measured/pickle.h"

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
    elements_at (segment, k, segments) {
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
    Sums *s = &r->sums[device];
    elements_at (event, k, trace) {
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
    if (json_array_size(traces) > MOST_DEVICES)
        return refuse(r->error, "%s: device_traces: expected at most %d devices", r->file,
                      MOST_DEVICES);
    elements_at (trace, d, traces) {
        if (!json_is_array(trace))
            return refuse(r->error, "%s: device_traces[%zu]: expected a list of events",
                          r->file, d);
        if (!snapshot_trace(r, (uint32_t)d, trace))
            return false;
    }
    return true;
}

GArray *snapshot_parse(const char *file, const char *text, gsize length, GError **error)
{
    static const char *const KEY[] = {
        "segments",      "device", "total_size", "allocated_size",
        "device_traces", "action", "size",       NULL};
    json_error_t wrong;
    const bool pickle = length > 0 && *text == '\x80';
    json_t *root = pickle ? pickle_parse(file, text, length, KEY, error)
                          : json_loadb(text, length, JSON_REJECT_DUPLICATES, &wrong);
    g_autofree Sums *sums = g_new0(Sums, MOST_DEVICES);
    SnapshotReader r = {file, sums, error};
    g_autoptr(GArray) peaks = g_array_new(false, false, sizeof(SnapshotPeak));
    const json_t *segments = json_object_get(root, "segments");
    bool good = root && json_is_array(segments);
    if (!root && !pickle)
        refuse(error, "%s:%d: expected a memory snapshot: %s", file, wrong.line,
               wrong.text);
    else if (root && !good)
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
    enum { MOST_BYTES = 1 << 30 };
    gsize length;
    g_autofree char *text = file_read(file, MOST_BYTES, &length, error);
    return text ? snapshot_parse(file, text, length, error) : NULL;
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

/* Where a block was made, for want of a stack: its tensor, category and step. */
static json_t *snapshot_frames(const SnapshotBlock *of)
{
    return json_pack("[{s:s, s:s, s:I}]", "name", of->name, "filename", of->category,
                     "line", (json_int_t)of->first);
}

static json_t *snapshot_block(uint64_t bytes, const char *state, json_t *frames)
{
    return json_pack("{s:I, s:I, s:s, s:o}", "size", (json_int_t)bytes, "requested_size",
                     (json_int_t)bytes, "state", state, "frames", frames);
}

/* The segments [device] with what lies there in the end, one behind the other, and the rest; at:
 * [block] where it begins, those that end somewhere in the rest. */
static json_t *snapshot_segments_json(const GArray *block, const uint64_t *end,
                                      const uint64_t *peak, uint32_t n_devices,
                                      uint64_t *at)
{
    json_t *segments = json_array();
    g_autofree uint64_t *behind = g_new0(uint64_t, n_devices + 1);
    for (uint32_t d = 0; d < n_devices; d++)
        json_array_append_new(
            segments, json_pack("{s:I, s:i, s:I, s:I, s:i, s:s, s:[]}", "device",
                                (json_int_t)d, "address", 0, "total_size",
                                (json_int_t)peak[d], "allocated_size", (json_int_t)end[d],
                                "stream", 0, "segment_type", "large", "blocks"));
    array_at (const SnapshotBlock, of, b, block) {
        const uint32_t d = of->device;
        at[b] =
            of->last == UINT32_MAX ? behind[d] : end[d] + b % MAX(peak[d] - end[d], 1);
        if (of->last != UINT32_MAX)
            continue;
        behind[d] += of->bytes;
        json_array_append_new(
            json_object_get(json_array_get(segments, d), "blocks"),
            snapshot_block(of->bytes, "active_allocated", snapshot_frames(of)));
    }
    for (uint32_t d = 0; d < n_devices; d++)
        json_array_append_new(json_object_get(json_array_get(segments, d), "blocks"),
                              snapshot_block(peak[d] - end[d], "inactive", json_array()));
    return segments;
}

json_t *snapshot_write(GArray *block, uint32_t n_devices)
{
    g_autoptr(GArray) events = events_of(block);
    g_autofree uint64_t *end = g_new0(uint64_t, n_devices + 1),
                        *peak = g_new0(uint64_t, n_devices + 1),
                        *at = g_new(uint64_t, block->len + 1);
    array_each (const SnapshotEvent, e, events) {
        const uint64_t bytes = g_array_index(block, SnapshotBlock, e->block).bytes;
        end[e->device] += e->ends ? -bytes : bytes;
        peak[e->device] = MAX(peak[e->device], end[e->device]);
    }
    json_t *segments = snapshot_segments_json(block, end, peak, n_devices, at),
           *traces = json_array();
    for (uint32_t d = 0; d < n_devices; d++)
        json_array_append_new(traces, json_array());
    array_each (const SnapshotEvent, e, events) {
        const SnapshotBlock *of = &g_array_index(block, SnapshotBlock, e->block);
        json_array_append_new(
            json_array_get(traces, e->device),
            json_pack("{s:s, s:I, s:I, s:i, s:I, s:o}", "action",
                      e->ends ? "free_completed" : "alloc", "addr",
                      (json_int_t)at[e->block], "size", (json_int_t)of->bytes, "stream",
                      0, "time_us", (json_int_t)e->step, "frames", snapshot_frames(of)));
    }
    return json_pack("{s:o, s:o}", "segments", segments, "device_traces", traces);
}

/* --- as a pickle of protocol 2 --- */

/* A number of so many bytes, the least first. */
static void snapshot_pickle_number(GString *out, uint64_t number, uint32_t n)
{
    for (uint32_t b = 0; b < 8 * n; b += 8)
        g_string_append_c(out, (gchar)(number >> b & 0xff));
}

static void snapshot_pickle_text(GString *out, const char *text)
{
    g_string_append_c(out, 'X');
    snapshot_pickle_number(out, strlen(text), 4);
    g_string_append(out, text);
}

static void snapshot_pickle_value(GString *out, const json_t *value)
{
    enum { BATCH = 1000 }; /* as Python's: readers push a batch by one call */
    if (json_is_object(value)) {
        g_string_append(out, "}(");
        members_each (key, of, value) {
            snapshot_pickle_text(out, key);
            snapshot_pickle_value(out, of);
        }
        g_string_append_c(out, 'u');
    } else if (json_is_array(value)) {
        g_string_append(out, "](");
        elements_at (of, i, value) {
            g_string_append(out, i > 0 && i % BATCH == 0 ? "e(" : "");
            snapshot_pickle_value(out, of);
        }
        g_string_append_c(out, 'e');
    } else if (json_is_string(value)) {
        snapshot_pickle_text(out, json_string_value(value));
    } else {
        g_string_append(out, "\x8a\x08");
        snapshot_pickle_number(out, (uint64_t)json_integer_value(value), 8);
    }
}

char *snapshot_pickle(const json_t *snapshot, gsize *length)
{
    GString *out = g_string_new("\x80\x02");
    snapshot_pickle_value(out, snapshot);
    g_string_append_c(out, '.');
    *length = out->len;
    return g_string_free(out, FALSE);
}
