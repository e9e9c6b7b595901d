/* The figure of a timeline. */
#include "experiments/figures/timeline_figure.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/json.h"
#include "experiments/figures/figure.h"

/* More rows than can be told apart are left out, and the figure says so. */
enum { DEVICES_DRAWN = 16 };

static const char *const category[] = {"forward", "backward", "update", "inside",
                                       "communication"};

/* A device, and those that do the same at the same times. */
typedef struct {
    const char *name;
    GChecksum *work; /* its spans */
    char *sum;
    double busy, most; /* computation; bytes */
    bool seen;
    int row;   /* -1: not drawn; that of the first one like it */
    int alike; /* of the first one: devices like it */
} TimelineDevice;

typedef struct {
    const json_t *events;
    json_int_t n_devices;
    TimelineDevice *device;
    int n_rows, n_lanes, slowest, fullest; /* fullest: -1: none */
    GString *text;
} Table;

static json_int_t integer(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

static double number(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static bool is(const json_t *event, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text && strcmp(text, value) == 0;
}

static double counted(const json_t *event)
{
    return number(json_object_get(event, "args"), "bytes");
}

static uint32_t category_of(const json_t *event)
{
    uint32_t i = 0;
    while (i + 1 < G_N_ELEMENTS(category) && !is(event, "cat", category[i]))
        i++;
    return i;
}

/* The device of an event; NULL: it is of none. */
static TimelineDevice *of_event(const Table *table, const json_t *event)
{
    const json_int_t pid = integer(event, "pid");
    return pid < table->n_devices ? &table->device[pid] : NULL;
}

/* Finds the devices, what they do, and the one with the fullest memory. */
static void look(Table *table)
{
    const size_t n = json_array_size(table->events);
    for (size_t i = 0; i < n; i++)
        table->n_devices =
            MAX(table->n_devices, integer(json_array_get(table->events, i), "pid") + 1);
    table->device = g_new0(TimelineDevice, table->n_devices);
    table->fullest = -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *event = json_array_get(table->events, i);
        TimelineDevice *device = of_event(table, event);
        if (is(event, "name", "process_name"))
            device->name = json_string_value(
                json_object_get(json_object_get(event, "args"), "name"));
        if (is(event, "ph", "C"))
            device->most = MAX(device->most, counted(event));
        if (!is(event, "ph", "X"))
            continue;
        g_autofree char *words = g_strdup_printf(
            "%d %.9g %.9g %u\n", (int)integer(event, "tid"), number(event, "ts"),
            number(event, "dur"), category_of(event));
        device->work = device->work ? device->work : g_checksum_new(G_CHECKSUM_SHA1);
        g_checksum_update(device->work, (const guchar *)words, -1);
        device->busy += integer(event, "tid") == 0 ? number(event, "dur") : 0;
        device->seen = true;
    }
    for (int j = 0; j < (int)table->n_devices; j++) {
        const TimelineDevice *device = &table->device[j];
        if (device->busy > table->device[table->slowest].busy)
            table->slowest = j;
        if (device->most > (table->fullest < 0 ? 0 : table->device[table->fullest].most))
            table->fullest = j;
    }
}

/* Gives rows to the first of each kind of devices; the slowest one takes the last row if it had
 * none. */
static void choose_rows(Table *table)
{
    g_autoptr(GHashTable) first = g_hash_table_new(g_str_hash, g_str_equal);
    for (int j = 0; j < (int)table->n_devices; j++) {
        TimelineDevice *device = &table->device[j], *same;
        device->row = -1;
        if (!device->seen)
            continue;
        device->sum = g_strdup(g_checksum_get_string(device->work));
        same = g_hash_table_lookup(first, device->sum);
        if (!same) {
            device->row = table->n_lanes++ < DEVICES_DRAWN ? table->n_rows++ : -1;
            g_hash_table_insert(first, device->sum, same = device);
        }
        same->alike++;
    }
    TimelineDevice *slow = g_hash_table_lookup(
        first,
        table->device[table->slowest].sum ? table->device[table->slowest].sum : "");
    for (int j = 0; slow && slow->row < 0 && j < (int)table->n_devices; j++)
        if (table->device[j].row == DEVICES_DRAWN - 1) {
            table->device[j].row = -1;
            slow->row = DEVICES_DRAWN - 1;
        }
    if (slow)
        table->slowest = (int)(slow - table->device);
}

/* Adds the rows of one index of the data file, and the line that ends it. Index 0: row, name, and a
 * remark on it. */
static void timeline_figure_add_names(Table *table)
{
    g_string_append_printf(table->text, "# row\tname\tremark\n");
    for (int row = 0; row < table->n_rows; row++)
        for (int j = 0; j < (int)table->n_devices; j++) {
            const TimelineDevice *device = &table->device[j];
            if (device->row != row)
                continue;
            g_autofree char *name = g_strdup(device->name ? device->name : "");
            const bool slow = j == table->slowest && table->n_rows > 1;
            g_string_append_printf(table->text, "%d\t%.160s\t", row,
                                   g_strdelimit(name, "\t\n", ' '));
            if (device->alike > 1)
                g_string_append_printf(table->text, "%d alike%s", device->alike,
                                       slow ? ", " : "");
            g_string_append(table->text, slow ? "slowest" : device->alike > 1 ? "" : " ");
            if (row == table->n_rows - 1 && table->n_lanes > table->n_rows)
                g_string_append_printf(table->text, "; %d rows left out",
                                       table->n_lanes - table->n_rows);
            g_string_append_c(table->text, '\n');
        }
    g_string_append(table->text, "\n\n");
}

typedef struct {
    int row, stream;
    uint32_t category;
    double start, end; /* ms */
} TimelineSpan;

static int compare_spans(const void *a, const void *b)
{
    const TimelineSpan *x = a, *y = b;
    return x->row != y->row         ? x->row - y->row
           : x->stream != y->stream ? x->stream - y->stream
           : x->start != y->start   ? (x->start > y->start ? 1 : -1)
                                    : (x->end > y->end) - (x->end < y->end);
}

/* Whether the second span of a row goes on where the first one ends, in its colour. */
static bool goes_on(const TimelineSpan *first, const TimelineSpan *then)
{
    return first->row == then->row && first->stream == then->stream &&
           first->category == then->category &&
           fabs(then->start - first->end) <= 1e-9 * first->end;
}

/* Index 1: row, stream, start and end in ms, category; spans that follow one another are one. */
static void add_spans(Table *table)
{
    g_autoptr(GArray) spans = g_array_new(false, false, sizeof(TimelineSpan));
    elements_each (event, table->events) {
        const TimelineDevice *device = of_event(table, event);
        if (!is(event, "ph", "X") || device->row < 0)
            continue;
        const double start = number(event, "ts"), us = number(event, "dur");
        const TimelineSpan span = {device->row, (int)integer(event, "tid"),
                                   category_of(event), start / 1e3, (start + us) / 1e3};
        g_array_append_val(spans, span);
    }
    g_array_sort(spans, compare_spans);
    g_string_append_printf(table->text, "# row\tstream\tstart\tend\tcategory\n");
    for (uint32_t i = 0; i < spans->len;) {
        TimelineSpan one = g_array_index(spans, TimelineSpan, i++);
        for (; i < spans->len && goes_on(&one, &g_array_index(spans, TimelineSpan, i));
             i++)
            one.end = fmax(one.end, g_array_index(spans, TimelineSpan, i).end);
        g_string_append_printf(table->text, "%d\t%d\t%.9g\t%.9g\t%u\n", one.row,
                               one.stream, one.start, one.end, one.category);
    }
    g_string_append(table->text, "\n\n");
}

/* Index 2: time in ms and GiB of the fullest device; index 3: its name. */
static void add_memory(Table *table)
{
    g_string_append_printf(table->text, "# time\tmemory\n");
    elements_each (event, table->events) {
        if (is(event, "ph", "C") && integer(event, "pid") == table->fullest)
            g_string_append_printf(table->text, "%.9g\t%.9g\n", number(event, "ts") / 1e3,
                                   counted(event) / (1024.0 * 1024 * 1024));
    }
    const char *name = table->fullest >= 0 ? table->device[table->fullest].name : NULL;
    g_autofree char *plain = g_strdup(name ? name : "-");
    g_string_append_printf(table->text, "\n\n%.160s\n", g_strdelimit(plain, "\t\n", ' '));
}

static void table_clear(Table *table)
{
    for (int j = 0; table->device && j < (int)table->n_devices; j++) {
        g_clear_pointer(&table->device[j].work, g_checksum_free);
        g_free(table->device[j].sum);
    }
    g_free(table->device);
    g_string_free(table->text, TRUE);
}

/* Whether the member is a number >= 0, or absent if `optional`. */
static bool has_number(const json_t *event, const char *key, bool optional, double most)
{
    const json_t *value = json_object_get(event, key);
    const double v = json_number_value(value);
    return value ? json_is_number(value) && v >= 0 && v <= most : optional;
}

/* Checks that events can be drawn: device and stream are small integers, and there is a start and a
 * length. */
static bool check(const json_t *events, const char *trace, GError **error)
{
    enum { MOST_DEVICES = 1 << 17, MOST_STREAMS = 1 << 24 };
    elements_at (event, i, events) {
        const bool span = is(event, "ph", "X"), count = is(event, "ph", "C");
        const char *wrong =
            !json_is_object(event) ? "an object"
            : !has_number(event, "pid", !span && !count, MOST_DEVICES)
                ? "a number of a device in 'pid'"
            : !has_number(event, "tid", !span, MOST_STREAMS)
                ? "a number of a stream in 'tid'"
            : !has_number(event, "ts", !span && !count, G_MAXDOUBLE) ? "a time in 'ts'"
            : !has_number(event, "dur", !span, G_MAXDOUBLE)          ? "a time in 'dur'"
                                                                     : NULL;
        if (wrong)
            return refuse(error, "%s: traceEvents[%zu]: expected %s", trace, i, wrong);
    }
    return true;
}

bool timeline_figure_draw(const char *trace, const char *folder, GError **error)
{
    json_t *root = json_read_file(trace, "trace", error);
    if (!root)
        return false;
    Table table = {.events = json_object_get(root, "traceEvents"),
                   .text = g_string_new(NULL)};
    bool good = json_is_array(table.events) && json_array_size(table.events) > 0;
    if (!good) {
        refuse(error, "%s: expected a Chrome trace with events in 'traceEvents'", trace);
    } else if ((good = check(table.events, trace, error))) {
        look(&table);
        choose_rows(&table);
        timeline_figure_add_names(&table);
        add_spans(&table);
        add_memory(&table);
        good = figure_draw_text("timeline", table.text->str, folder, error);
    }
    table_clear(&table);
    json_decref(root);
    return good;
}
