/* Events of a trace: kernels, ops with shapes, and collectives. */
#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/formats/measured/kineto_reader.h"

static bool stop(Reader *reader, const char *message)
{
    if (!reader->failure)
        refuse(&reader->failure, "%s: %s", reader->file, message);
    return false;
}

/* --- ops and kernels --- */

static bool is_matmul(const char *name)
{
    static const char *const NAMES[] = {"aten::mm", "aten::addmm", "aten::bmm",
                                        "aten::baddbmm", NULL};
    return g_strv_contains(NAMES, name);
}

/* Adds a matrix product: aten::mm [m, k] [k, n], or aten::addmm, whose first operand is a bias. */
static void add_matmul(Reader *reader, const Event *event)
{
    const uint32_t first = strcmp(event->name, "aten::addmm") == 0;
    const ProfileOperands *of = &event->operands;
    const bool plain = first || strcmp(event->name, "aten::mm") == 0;
    if (!plain || of->n < first + 2 || of->n_dims[first] != 2 ||
        of->n_dims[first + 1] != 2 || event->id < 0)
        return;
    ProfileBin *bin =
        profile_product(reader->profile, of->dim[first], of->dim[first + 1], event->type);
    if (!bin)
        return;
    g_hash_table_insert(reader->op, g_memdup2(&event->id, sizeof event->id), bin);
    reader->kept++;
}

/* Adds an op on each element of its first operand. */
static void kineto_add_elementwise(Reader *reader, const Event *event)
{
    ProfileBin *bin = event->id < 0 ? NULL
                                    : profile_elementwise(reader->profile, event->name,
                                                          &event->operands, event->type);
    if (!bin)
        return;
    reader->n_shaped++;
    g_hash_table_insert(reader->op, g_memdup2(&event->id, sizeof event->id), bin);
    reader->kept++;
}

/* A kernel of a collective, left out unless it says which one, how large and among how many. */
static void kineto_add_collective(Reader *reader, const Event *event)
{
    KinetoFacts *facts = reader->facts;
    ProfileBin *bin =
        event->us > 0 ? profile_collective(reader->profile, event->collective, event->in,
                                           event->out, event->group, event->dtype)
                      : NULL;
    if (bin) {
        profile_add(bin, event->us * 1e-6);
        facts->used_kernels++;
        reader->kept++;
    } else if (!*event->collective || !(event->group > 0)) {
        facts->unsized_kernels++;
    } else {
        facts->other_collectives++;
    }
}

static void kineto_add_kernel(Reader *reader, const Event *event)
{
    KinetoFacts *facts = reader->facts;
    g_autofree char *lower = g_ascii_strdown(event->name, -1);
    const bool nccl = strstr(lower, "nccl") != NULL;
    facts->kernels++;
    facts->kernel_us += event->us;
    facts->nccl_kernels += nccl;
    facts->collective_kernels += *event->collective != '\0';
    g_hash_table_add(reader->stream, g_memdup2(&event->stream, sizeof event->stream));
    if (*event->collective || nccl) {
        kineto_add_collective(reader, event);
    } else if (event->id >= 0) {
        KernelSum *sum = g_hash_table_lookup(reader->kernel, &event->id);
        if (!sum) {
            sum = g_new0(KernelSum, 1);
            g_hash_table_insert(reader->kernel, g_memdup2(&event->id, sizeof event->id),
                                sum);
            reader->kept++;
        }
        sum->us += event->us;
        sum->n++;
    }
}

static void end_event(Reader *reader)
{
    const Event *event = &reader->event;
    reader->facts->events++;
    if (g_ascii_strcasecmp(event->category, "kernel") == 0) {
        kineto_add_kernel(reader, event);
    } else if (event->has_dims && is_matmul(event->name)) {
        reader->facts->matmul_ops++;
        add_matmul(reader, event);
    } else if (event->has_dims) {
        kineto_add_elementwise(reader, event);
    }
}

/* --- JSON --- */

static const char *key_at(const Reader *reader, uint32_t depth)
{
    return reader->key[depth];
}

/* Versions of the profiler write the keys of an event's args in different cases. */
static bool has_key(const Reader *reader, uint32_t depth, const char *name)
{
    return g_ascii_strcasecmp(reader->key[depth], name) == 0;
}

/* Depths: 1 the file, 2 its lists, 3 an event, 4 its args, 5 lists of operands, 6 of their dims. */
static bool in_event(const Reader *reader)
{
    return reader->depth >= 3 && strcmp(key_at(reader, 1), "traceEvents") == 0;
}

static bool kineto_begin(void *data, bool array)
{
    Reader *reader = data;
    if (reader->depth == 0 && array) { /* the events alone */
        reader->depth = 1;
        g_strlcpy(reader->key[1], "traceEvents", sizeof reader->key[1]);
    }
    if (reader->depth + 1 >= MAX_DEPTH)
        return stop(reader, "nested too deeply");
    reader->depth++;
    *reader->key[reader->depth] = '\0';
    if (reader->depth == 2 && strcmp(key_at(reader, 1), "traceEvents") == 0)
        reader->has_events = array;
    if (reader->depth == 2 && strcmp(key_at(reader, 1), "nodes") == 0)
        reader->has_nodes = array;
    if (reader->depth == 3 && in_event(reader))
        reader->event = (Event){.id = -1};
    if (reader->depth == 3 && strcmp(key_at(reader, 1), "deviceProperties") == 0)
        reader->facts->devices_listed++;
    if (reader->depth >= 5 && in_event(reader) && has_key(reader, 4, "Input Dims")) {
        reader->event.has_dims = true;
        if (reader->depth == 6 && reader->event.operands.n < PROFILE_OPERANDS)
            reader->event.operands.n++;
    }
    return reader->kept < MAX_ROWS || stop(reader, "expected fewer kernels");
}

static void kineto_end(void *data)
{
    Reader *reader = data;
    if (reader->depth == 3 && in_event(reader))
        end_event(reader);
    reader->depth--;
}

/* Of a damaged event nothing counts. */
static void lost(void *data, uint32_t depth)
{
    Reader *reader = data;
    KILTER_ASSERT(depth <= 2);
    reader->depth = 2;
}

static void take_key(void *data, const char *text, size_t length)
{
    Reader *reader = data;
    char *key = reader->key[reader->depth];
    const size_t n = MIN(length, sizeof reader->key[0] - 1);
    memcpy(key, text, n);
    key[n] = '\0';
}

static void kineto_copy(char *to, const char *text, size_t length)
{
    const size_t n = MIN(length, NAME_BYTES - 1);
    memcpy(to, text, n);
    to[n] = '\0';
}

static void event_number(Reader *reader, double value);

/* A number in quotation marks, as old versions write them in args. */
static void quoted_number(Reader *reader, const char *text, size_t length)
{
    char number[32], *end;
    if (length == 0 || length >= sizeof number || !g_ascii_isdigit(*text))
        return;
    memcpy(number, text, length);
    number[length] = '\0';
    const double value = g_ascii_strtod(number, &end);
    if (*end == '\0')
        event_number(reader, value);
}

static void event_text(Reader *reader, const char *text, size_t length)
{
    Event *event = &reader->event;
    const char *key = key_at(reader, reader->depth);
    if (reader->depth == 3 && strcmp(key, "name") == 0)
        kineto_copy(event->name, text, length);
    else if (reader->depth == 3 && strcmp(key, "cat") == 0)
        kineto_copy(event->category, text, length);
    else if (reader->depth == 4 && has_key(reader, 4, "Collective name"))
        kineto_copy(event->collective, text, length);
    else if (reader->depth == 4 && has_key(reader, 4, "dtype"))
        kineto_copy(event->dtype, text, length);
    else if (reader->depth == 5 && has_key(reader, 4, "Input type") &&
             event->n_types++ == 0)
        kineto_copy(event->type, text, length);
    else if (reader->depth == 4)
        quoted_number(reader, text, length);
}

static void take_text(void *data, const char *text, size_t length)
{
    Reader *reader = data;
    KinetoFacts *facts = reader->facts;
    if (in_event(reader))
        event_text(reader, text, length);
    else if (reader->depth == 3 && !*facts->device &&
             strcmp(key_at(reader, 1), "deviceProperties") == 0 &&
             strcmp(key_at(reader, 3), "name") == 0) {
        put_block(facts->device, g_utf8_make_valid(text, (gssize)length));
        g_strdelimit(facts->device, ",#\"\r\n", ' ');
    }
}

static void event_number(Reader *reader, double value)
{
    Event *event = &reader->event;
    const char *key = key_at(reader, reader->depth);
    /* the largest integer accepted; a double represents it exactly */
    const double largest = 9e15;
    const double whole = isfinite(value) && fabs(value) < largest ? value : -1;
    if (reader->depth == 3 && strcmp(key, "dur") == 0)
        event->us = isfinite(value) && value > 0 && value < 1e12 ? value : 0;
    else if (reader->depth == 6 && has_key(reader, 4, "Input Dims")) {
        ProfileOperands *of = &event->operands;
        const uint32_t last = of->n - 1;
        if (of->n > 0 && of->n_dims[last]++ < PROFILE_MAX_DIMS)
            of->dim[last][of->n_dims[last] - 1] = whole > 0 && whole < 1e9 ? whole : 0;
    } else if (reader->depth != 4)
        return;
    else if (has_key(reader, 4, "External id"))
        event->id = (int64_t)whole;
    else if (has_key(reader, 4, "stream"))
        event->stream = (int64_t)whole;
    else if (has_key(reader, 4, "In msg nelems"))
        event->in = fmin(fmax(whole, 0), 1e14);
    else if (has_key(reader, 4, "Out msg nelems"))
        event->out = fmin(fmax(whole, 0), 1e14);
    else if (has_key(reader, 4, "Group size"))
        event->group = floor(fmax(whole, 0));
}

static void take_number(void *data, double value)
{
    Reader *reader = data;
    if (in_event(reader))
        event_number(reader, value);
    else if (reader->depth == 2 && strcmp(key_at(reader, 1), "distributedInfo") == 0) {
        if (strcmp(key_at(reader, 2), "rank") == 0)
            reader->facts->rank = value >= 0 && value < 1e9 ? (int64_t)value : -1;
        else if (strcmp(key_at(reader, 2), "world_size") == 0)
            reader->facts->world_size = value >= 0 && value < 1e9 ? (uint32_t)value : 0;
    }
}

const JsonEvents KINETO_EVENTS = {kineto_begin, kineto_end,  take_key,
                                  take_text,    take_number, lost};
