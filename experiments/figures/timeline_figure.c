/* The figure of a timeline. */
#include "experiments/figures/timeline_figure.h"

#include <jansson.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/json.h"
#include "experiments/figures/figure.h"

/* More devices than can be told apart are left out, and the figure says so. */
enum { DEVICES_DRAWN = 16 };

static const char *const category[] = {"forward", "backward", "update", "inside",
                                       "communication"};

typedef struct {
    const json_t *events;
    json_int_t n_devices;
    json_int_t fullest; /* device with the highest peak of memory; -1: none */
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

/* Finds the devices, and the one with the fullest memory. */
static void look(Table *table)
{
    double most = -1;
    table->fullest = -1;
    for (size_t i = 0; i < json_array_size(table->events); i++) {
        const json_t *event = json_array_get(table->events, i);
        table->n_devices = MAX(table->n_devices, integer(event, "pid") + 1);
        if (is(event, "ph", "C") && counted(event) > most) {
            most = counted(event);
            table->fullest = integer(event, "pid");
        }
    }
}

/* Adds the rows of one index of the data file, and the line that ends it. Index 0: device and its
 * name. */
static void add_names(Table *table)
{
    g_string_append_printf(table->text, "# device\tname\n");
    for (size_t i = 0; i < json_array_size(table->events); i++) {
        const json_t *event = json_array_get(table->events, i);
        const json_int_t device = integer(event, "pid");
        const char *name =
            json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        if (!is(event, "name", "process_name") || device >= DEVICES_DRAWN || !name)
            continue;
        const bool last = device == MIN(table->n_devices, DEVICES_DRAWN) - 1;
        g_autofree char *label =
            last && table->n_devices > DEVICES_DRAWN
                ? g_strdup_printf("%s, first of %d more", name,
                                  (int)table->n_devices - DEVICES_DRAWN + 1)
                : g_strdup(name);
        g_string_append_printf(table->text, "%d\t%s\n", (int)device,
                               g_strdelimit(label, "\t\n", ' '));
    }
    g_string_append(table->text, "\n\n");
}

/* Index 1: device, stream, start and end in ms, category. */
static void add_spans(Table *table)
{
    g_string_append_printf(table->text, "# device\tstream\tstart\tend\tcategory\n");
    for (size_t i = 0; i < json_array_size(table->events); i++) {
        const json_t *event = json_array_get(table->events, i);
        if (!is(event, "ph", "X") || integer(event, "pid") >= DEVICES_DRAWN)
            continue;
        const double start = number(event, "ts"), us = number(event, "dur");
        g_string_append_printf(table->text, "%d\t%d\t%.9g\t%.9g\t%u\n",
                               (int)integer(event, "pid"), (int)integer(event, "tid"),
                               start / 1e3, (start + us) / 1e3, category_of(event));
    }
    g_string_append(table->text, "\n\n");
}

/* Index 2: time in ms and GiB of the fullest device. */
static void add_memory(Table *table)
{
    g_string_append_printf(table->text, "# time\tmemory\n");
    for (size_t i = 0; i < json_array_size(table->events); i++) {
        const json_t *event = json_array_get(table->events, i);
        if (is(event, "ph", "C") && integer(event, "pid") == table->fullest)
            g_string_append_printf(table->text, "%.9g\t%.9g\n", number(event, "ts") / 1e3,
                                   counted(event) / (1024.0 * 1024 * 1024));
    }
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
    enum { MOST_DEVICES = 1 << 24, MOST_STREAMS = 1 << 24 };
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
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
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s: traceEvents[%zu]: expected %s", trace, i, wrong);
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
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: expected a Chrome trace with events in 'traceEvents'", trace);
    } else if ((good = check(table.events, trace, error))) {
        look(&table);
        add_names(&table);
        add_spans(&table);
        add_memory(&table);
        good = figure_draw_text("timeline", table.text->str, folder, error);
    }
    g_string_free(table.text, TRUE);
    json_decref(root);
    return good;
}
