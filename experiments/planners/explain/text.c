/* An explanation as text. */
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "experiments/planners/explain/explain.h"

enum { NAMES_SHOWN = 4, STAGES_SHOWN = 5 };

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* "a, b, c and 4 more" */
static char *some_names(const json_t *list)
{
    GString *text = g_string_new(NULL);
    size_t n = json_array_size(list), shown = n <= NAMES_SHOWN + 1 ? n : NAMES_SHOWN;
    for (size_t i = 0; i < shown; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "",
                               json_string_value(json_array_get(list, i)));
    if (shown < n)
        g_string_append_printf(text, " and %zu more", n - shown);
    return g_string_free(text, FALSE);
}

/* Length of the name up to its number at the end, and the number; false if it has none. */
static bool numbered(const char *name, size_t *stem, unsigned long *number)
{
    size_t n = strlen(name);
    *stem = n;
    while (*stem > 0 && g_ascii_isdigit(name[*stem - 1]))
        --*stem;
    *number = strtoul(name + *stem, NULL, 10);
    return *stem < n;
}

/* Whether b is a with the next number. */
static bool follows(const char *a, const char *b)
{
    size_t stem, other;
    unsigned long number, next;
    return numbered(a, &stem, &number) && numbered(b, &other, &next) && stem == other &&
           strncmp(a, b, stem) == 0 && next == number + 1;
}

/* "layers.1-7, layers.9": the names from the second on. */
static char *ranges(const json_t *names)
{
    GString *text = g_string_new(NULL);
    size_t n = json_array_size(names);
    for (size_t i = 1; i < n;) {
        size_t last = i;
        const char *end = json_string_value(json_array_get(names, i));
        g_string_append_printf(text, "%s%s", i > 1 ? ", " : "", end);
        while (last + 1 < n &&
               follows(end, json_string_value(json_array_get(names, last + 1))))
            end = json_string_value(json_array_get(names, ++last));
        size_t stem;
        unsigned long number;
        if (last > i && numbered(end, &stem, &number))
            g_string_append_printf(text, "-%lu", number);
        i = last + 1;
    }
    return g_string_free(text, FALSE);
}

/* "identity: all 12", or a line a form. */
static void say_forms(GString *text, const char *label, const json_t *forms)
{
    size_t i;
    const json_t *entry;
    json_array_foreach (forms, i, entry) {
        const json_t *tensors = json_object_get(entry, "tensors");
        g_autofree char *names = some_names(tensors);
        g_autofree char *all = g_strdup_printf("all %zu", json_array_size(tensors));
        bool only = json_array_size(forms) == 1 && json_array_size(tensors) > 1;
        g_string_append_printf(text, "  %-12s %s: %s\n", i ? "" : label,
                               text_of(entry, "form"), only ? all : names);
    }
}

static void say_collectives(GString *text, const json_t *collectives)
{
    size_t i;
    const json_t *entry;
    json_array_foreach (collectives, i, entry) {
        g_autofree char *names = some_names(json_object_get(entry, "tensors"));
        g_autofree char *bytes = units_format(number_of(entry, "bytes"), QUANTITY_BYTES);
        g_autofree char *time = units_format(number_of(entry, "seconds"), QUANTITY_TIME);
        g_string_append_printf(text, "  %-12s %9s %9s  %s: %s\n", i ? "" : "collectives",
                               time, bytes, text_of(entry, "collective"), names);
    }
}

static void say_layer(GString *text, const json_t *layer)
{
    const json_t *names = json_object_get(layer, "names"),
                 *patterns = json_object_get(layer, "patterns");
    const char *first = json_string_value(json_array_get(names, 0));
    g_string_append_printf(text, "%s", first);
    size_t i;
    const json_t *entry;
    json_array_foreach (json_object_get(layer, "stages"), i, entry) {
        g_string_append_printf(text, "%s%" JSON_INTEGER_FORMAT, i ? ", " : " (stage ",
                               json_integer_value(entry));
    }
    g_string_append(text, json_array_size(json_object_get(layer, "stages")) ? ")" : "");
    json_array_foreach (patterns, i, entry) {
        g_autofree char *ops = some_names(json_object_get(entry, "tensors"));
        bool only = json_array_size(patterns) == 1;
        g_string_append_printf(text, "%s%s%s%s", i ? "; " : ": ",
                               text_of(entry, "pattern"), only ? "" : " ",
                               only ? "" : ops);
    }
    g_string_append_c(text, '\n');
    say_forms(text, "parameters", json_object_get(layer, "parameters"));
    say_forms(text, "activations", json_object_get(layer, "activations"));
    say_collectives(text, json_object_get(layer, "collectives"));
    if (json_array_size(names) > 1) {
        g_autofree char *others = ranges(names);
        g_string_append_printf(text, "%s as %s\n", others, first);
    }
}

/* --- stages --- */

/* "p100-0", "p100-0 and 5 alike", "" */
static char *alike(const json_t *devices)
{
    size_t n = json_array_size(devices);
    const char *first = n ? json_string_value(json_array_get(devices, 0)) : "";
    return n > 1 ? g_strdup_printf("%s and %zu alike", first, n - 1) : g_strdup(first);
}

static double seconds_of(const json_t *stage)
{
    return number_of(stage, "communication_s") + number_of(stage, "computation_s");
}

static int longer(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    if (seconds_of(x) != seconds_of(y))
        return seconds_of(x) > seconds_of(y) ? -1 : 1;
    return number_of(x, "stage") < number_of(y, "stage") ? -1 : 1;
}

static void say_stage(GString *text, const json_t *stage, double total_s)
{
    g_autofree char *comm =
        units_format(number_of(stage, "communication_s"), QUANTITY_TIME);
    g_autofree char *comp =
        units_format(number_of(stage, "computation_s"), QUANTITY_TIME);
    g_autofree char *devices = alike(json_object_get(stage, "limited_by"));
    g_string_append_printf(text, "  stage %.0f, %.1f %%: communication %s",
                           number_of(stage, "stage"),
                           total_s > 0 ? 100 * seconds_of(stage) / total_s : 0, comm);
    const json_t *collectives = json_object_get(stage, "collectives"), *entry;
    size_t i;
    json_array_foreach (collectives, i, entry) {
        const json_t *tensors = json_object_get(entry, "tensors");
        g_autofree char *more =
            json_array_size(tensors) > 1
                ? g_strdup_printf(" and %zu more", json_array_size(tensors) - 1)
                : g_strdup("");
        g_string_append_printf(text, "%s%s of %s%s", i ? ", " : " (",
                               text_of(entry, "collective"),
                               json_string_value(json_array_get(tensors, 0)), more);
    }
    g_string_append_printf(text, "%s; computation %s%s%s\n",
                           json_array_size(collectives) ? ")" : "", comp,
                           *devices ? ", limited by " : "", devices);
}

static void say_stages(GString *text, const json_t *stages)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    double total_s = 0;
    size_t i;
    json_t *stage;
    json_array_foreach (stages, i, stage) {
        g_ptr_array_add(sorted, stage);
        total_s += seconds_of(stage);
    }
    g_ptr_array_sort(sorted, longer);
    if (sorted->len > STAGES_SHOWN)
        g_string_append_printf(text, "The %d longest of %u stages:\n", STAGES_SHOWN,
                               sorted->len);
    else
        g_string_append(text, "Stages, longest first:\n");
    for (guint s = 0; s < MIN(sorted->len, STAGES_SHOWN); s++)
        say_stage(text, sorted->pdata[s], total_s);
}

/* The device that most of the computation waits for. */
static void say_slowest(GString *text, const json_t *stages)
{
    json_t *waits = json_object(), *slowest = json_array();
    double total_s = 0, most_s = 0;
    size_t i, d;
    json_t *stage, *device, *waited;
    const char *name;
    json_array_foreach (stages, i, stage) {
        double seconds = number_of(stage, "computation_s");
        total_s += seconds;
        json_array_foreach (json_object_get(stage, "limited_by"), d, device) {
            name = json_string_value(device);
            json_object_set_new(waits, name, json_real(number_of(waits, name) + seconds));
            most_s = MAX(most_s, number_of(waits, name));
        }
    }
    json_object_foreach (waits, name, waited)
        if (json_number_value(waited) >= most_s * (1 - 1e-9))
            json_array_append_new(slowest, json_string(name));
    g_autofree char *devices = alike(slowest);
    if (total_s > 0)
        g_string_append_printf(text, "%.0f %% of the computation waits for %s.\n",
                               100 * most_s / total_s, devices);
    json_decref(slowest);
    json_decref(waits);
}

char *explain_text(const json_t *explanation, const char *words)
{
    GString *text = g_string_new(NULL);
    size_t i;
    const json_t *layer;
    json_array_foreach (json_object_get(explanation, "layers"), i, layer)
        say_layer(text, layer);
    if (words) {
        g_string_append(text, words);
        return g_string_free(text, FALSE);
    }
    say_stages(text, json_object_get(explanation, "stages"));
    say_slowest(text, json_object_get(explanation, "stages"));
    return g_string_free(text, FALSE);
}
