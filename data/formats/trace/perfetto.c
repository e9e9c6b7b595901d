/* Writing Perfetto's traces: packets of protocol buffers, by the field numbers of
 * protos/perfetto/trace. */
#include "data/formats/trace/perfetto.h"

#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/each.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/varint.h"

/* Fields by message; texts that many packets name stand once, and are numbered from 1. */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT,
    PACKET_TEXTS,
    PACKET_FLAGS,
    PACKET_TRACK = 60
};
enum { TEXT_NUMBER = 1, TEXT };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { TRACK_ORDER = 11, TRACK_RANK };
enum { PROCESS_ID = 1, PROCESS_NAME = 6, COUNTER_UNIT = 3 };
enum { EVENT_CATEGORY = 3, EVENT_ARGUMENT, EVENT_TYPE = 9, EVENT_NAME, EVENT_TRACK };
enum { EVENT_VALUE = 44, EVENT_FLOW = 47, EVENT_LAST_OF_FLOW };
enum { ARGUMENT_NAME = 1, ARGUMENT_INTEGER = 4, ARGUMENT_TEXT = 17 };
/* Values. */
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_COUNTER = 4 };
enum { FLAG_CLEARED = 1, FLAG_NEEDS, UNIT_BYTES = 3, ORDER_EXPLICIT = 3 };

/* Kinds of texts, as fields of a packet's texts. */
enum { CATEGORIES = 1, NAMES, ARGUMENTS, ARGUMENT_TEXTS = 29, KINDS };

struct Perfetto {
    GByteArray *to, *packet, *message, *part;
    GHashTable *number[KINDS]; /* text -> its number */
    GHashTable *end;  /* track -> ns at which its last slice ends; counters: the track */
    GHashTable *name; /* track of a thread -> its name */
};

bool perfetto_is_name(const char *file)
{
    static const char *const END[] = {".pftrace", ".pftrace.gz", ".perfetto-trace",
                                      ".perfetto-trace.gz"};
    return any_of(i, G_N_ELEMENTS(END), g_str_has_suffix(file, END[i]));
}

Perfetto *perfetto_new(void)
{
    static const uint32_t KIND[] = {CATEGORIES, NAMES, ARGUMENTS, ARGUMENT_TEXTS};
    Perfetto *perfetto = g_new0(Perfetto, 1);
    GByteArray **const part[] = {&perfetto->to, &perfetto->packet, &perfetto->message,
                                 &perfetto->part};
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++)
        *part[i] = g_byte_array_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(KIND); i++)
        perfetto->number[KIND[i]] = text_table(NULL);
    perfetto->end = g_hash_table_new(NULL, NULL);
    perfetto->name = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return perfetto;
}

/* --- fields --- */

enum { WIRE_VARINT, WIRE_FIXED, WIRE_BYTES };

static void perfetto_put_number(GByteArray *to, uint32_t field, uint64_t value)
{
    varint_put(to, field << 3 | WIRE_VARINT);
    varint_put(to, value);
}

static void put_fixed(GByteArray *to, uint32_t field, uint64_t bits)
{
    const uint64_t little = GUINT64_TO_LE(bits);
    varint_put(to, field << 3 | WIRE_FIXED);
    g_byte_array_append(to, (const guint8 *)&little, sizeof little);
}

static void put_bytes(GByteArray *to, uint32_t field, const void *bytes, size_t length)
{
    varint_put(to, field << 3 | WIRE_BYTES);
    varint_put(to, length);
    g_byte_array_append(to, bytes, (guint)length);
}

/* Moves a message into another. */
static void put_message(GByteArray *to, uint32_t field, GByteArray *message)
{
    put_bytes(to, field, message->data, message->len);
    g_byte_array_set_size(message, 0);
}

/* Ends the packet. */
static void put_packet(Perfetto *perfetto)
{
    perfetto_put_number(perfetto->packet, PACKET_SEQUENCE, 1);
    perfetto_put_number(perfetto->packet, PACKET_FLAGS,
                        perfetto->to->len ? FLAG_NEEDS : FLAG_CLEARED);
    put_message(perfetto->to, TRACE_PACKET, perfetto->packet);
}

/* The number of a text, which a packet of its own defines when it is new. */
static uint64_t number_of(Perfetto *perfetto, uint32_t kind, const json_t *event,
                          const char *text)
{
    text = event ? json_string_value(json_object_get(event, text)) : text;
    GHashTable *numbers = perfetto->number[kind];
    uint32_t number = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, text));
    if (number)
        return number;
    number = g_hash_table_size(numbers) + 1;
    g_autoptr(GByteArray) one = g_byte_array_new(), texts = g_byte_array_new();
    perfetto_put_number(one, TEXT_NUMBER, number);
    put_bytes(one, TEXT, text, strlen(text));
    put_message(texts, kind, one);
    put_message(perfetto->packet, PACKET_TEXTS, texts);
    put_packet(perfetto);
    g_hash_table_insert(numbers, g_strdup(text), GUINT_TO_POINTER(number));
    return number;
}

/* --- tracks: of the process, then of its threads, then those that take what overlaps in a thread;
 * the last is its counter's --- */

enum { THREADS = 64, TRACKS = 1 << 12, COUNTER_TRACK = TRACKS - 1 };

static uint64_t process_of(const json_t *event)
{
    return (uint64_t)(json_integer_value(json_object_get(event, "pid")) + 1) * TRACKS;
}

static uint64_t thread_of(const json_t *event)
{
    const json_int_t thread = json_integer_value(json_object_get(event, "tid"));
    g_assert(thread >= 0 && thread < THREADS);
    return process_of(event) + 1 + (uint64_t)thread;
}

static void put_track(Perfetto *perfetto, const char *name, uint64_t track)
{
    const uint64_t process = track / TRACKS * TRACKS;
    GByteArray *to = perfetto->message, *part = perfetto->part;
    perfetto_put_number(to, TRACK_ID, track);
    if (track == process) {
        perfetto_put_number(part, PROCESS_ID, process / TRACKS); /* 0 is the kernel */
        put_bytes(part, PROCESS_NAME, name, strlen(name));
        put_message(to, TRACK_PROCESS, part);
        perfetto_put_number(to, TRACK_ORDER, ORDER_EXPLICIT);
    } else {
        put_bytes(to, TRACK_NAME, name, strlen(name));
        perfetto_put_number(to, TRACK_PARENT, process);
        perfetto_put_number(to, TRACK_RANK, track - process);
    }
    if (track == process + COUNTER_TRACK) {
        perfetto_put_number(part, COUNTER_UNIT, UNIT_BYTES);
        put_message(to, TRACK_COUNTER, part);
    }
    put_message(perfetto->packet, PACKET_TRACK, to);
    put_packet(perfetto);
}

/* --- events --- */

static uint64_t ns_of(double us)
{
    return (uint64_t)llround(1e3 * MAX(us, 0));
}

/* Ends an event. */
static void put_event(Perfetto *perfetto, uint64_t ns, uint64_t track, uint32_t type)
{
    perfetto_put_number(perfetto->message, EVENT_TYPE, type);
    perfetto_put_number(perfetto->message, EVENT_TRACK, track);
    perfetto_put_number(perfetto->packet, PACKET_TIMESTAMP, ns);
    put_message(perfetto->packet, PACKET_EVENT, perfetto->message);
    put_packet(perfetto);
}

static void put_counter(Perfetto *perfetto, const json_t *event, double us)
{
    const uint64_t track = process_of(event) + COUNTER_TRACK;
    const double value =
        json_number_value(json_object_get(json_object_get(event, "args"), "bytes"));
    uint64_t bits;
    if (g_hash_table_add(perfetto->end, GSIZE_TO_POINTER(track)))
        put_track(perfetto, json_string_value(json_object_get(event, "name")), track);
    memcpy(&bits, &value, sizeof bits);
    put_fixed(perfetto->message, EVENT_VALUE, bits);
    put_event(perfetto, ns_of(us), track, TYPE_COUNTER);
}

static void put_argument(Perfetto *perfetto, const char *key, const json_t *value)
{
    perfetto_put_number(perfetto->part, ARGUMENT_NAME,
                        number_of(perfetto, ARGUMENTS, NULL, key));
    if (json_is_string(value))
        perfetto_put_number(
            perfetto->part, ARGUMENT_TEXT,
            number_of(perfetto, ARGUMENT_TEXTS, NULL, json_string_value(value)));
    else
        perfetto_put_number(perfetto->part, ARGUMENT_INTEGER,
                            (uint64_t)json_integer_value(value));
    put_message(perfetto->message, EVENT_ARGUMENT, perfetto->part);
}

/* The first track of a thread on which a slice can start, by a rounding later; slices of a track
 * follow one another. Tracks of one name are drawn as one. */
static uint64_t free_track(Perfetto *perfetto, const json_t *event, uint64_t *start)
{
    const uint64_t thread = thread_of(event), own = *start;
    for (uint64_t track = thread; track < thread / TRACKS * TRACKS + COUNTER_TRACK;
         track += THREADS) {
        gpointer end = NULL;
        const bool known = g_hash_table_lookup_extended(
            perfetto->end, GSIZE_TO_POINTER(track), NULL, &end);
        if (!known && track != thread)
            put_track(perfetto,
                      g_hash_table_lookup(perfetto->name, GSIZE_TO_POINTER(thread)),
                      track);
        *start = MAX(own, GPOINTER_TO_SIZE(end));
        if (*start <= own + 1)
            return track;
    }
    return thread;
}

static void put_slice(Perfetto *perfetto, const json_t *event, double us,
                      const uint64_t *flow, uint32_t n_out, uint32_t n_in)
{
    const double duration_us = json_number_value(json_object_get(event, "dur"));
    uint64_t start = ns_of(us);
    const uint64_t track = free_track(perfetto, event, &start),
                   end = MAX(ns_of(us + duration_us), start);
    members_each (name, value, json_object_get(event, "args"))
        put_argument(perfetto, name, value);
    perfetto_put_number(perfetto->message, EVENT_CATEGORY,
                        number_of(perfetto, CATEGORIES, event, "cat"));
    perfetto_put_number(perfetto->message, EVENT_NAME,
                        number_of(perfetto, NAMES, event, "name"));
    for (uint32_t i = 0; i < n_out; i++)
        put_fixed(perfetto->message, EVENT_FLOW, flow[i]);
    put_event(perfetto, start, track, TYPE_BEGIN);
    /* only there, so that a message comes after its sending, which begins with its receiving */
    for (uint32_t i = n_out; i < n_out + n_in; i++)
        put_fixed(perfetto->message, EVENT_LAST_OF_FLOW, flow[i]);
    put_event(perfetto, end, track, TYPE_END);
    g_hash_table_insert(perfetto->end, GSIZE_TO_POINTER(track), GSIZE_TO_POINTER(end));
}

void perfetto_add(Perfetto *perfetto, const json_t *event, const uint64_t *flow,
                  uint32_t n_out, uint32_t n_in)
{
    const char *kind = json_string_value(json_object_get(event, "ph")),
               *what = json_string_value(json_object_get(event, "name"));
    const double us = json_number_value(json_object_get(event, "ts"));
    KILTER_ASSERT(kind && what && strchr("MXC", *kind));
    if (*kind == 'X') {
        put_slice(perfetto, event, us, flow, n_out, n_in);
    } else if (*kind == 'C') {
        put_counter(perfetto, event, us);
    } else {
        const bool process = strcmp(what, "process_name") == 0;
        const uint64_t track = process ? process_of(event) : thread_of(event);
        const char *name =
            json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        put_track(perfetto, name, track);
        g_hash_table_insert(perfetto->name, GSIZE_TO_POINTER(track), g_strdup(name));
    }
}

GByteArray *perfetto_end(Perfetto *perfetto)
{
    for (uint32_t i = 0; i < KINDS; i++)
        g_clear_pointer(&perfetto->number[i], g_hash_table_unref);
    g_hash_table_unref(perfetto->end);
    g_hash_table_unref(perfetto->name);
    g_byte_array_unref(perfetto->packet);
    g_byte_array_unref(perfetto->message);
    g_byte_array_unref(perfetto->part);
    GByteArray *to = perfetto->to;
    g_free(perfetto);
    return to;
}
