/* An explanation as text. */

#include "data/base/json.h"
#include "data/base/order.h"
#include "experiments/answers.h"
#include "experiments/explain/explain.h"
#include "experiments/render.h"

enum { STAGES_SHOWN = 5 };

static double text_number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* --- stages --- */

/* "p100-0", "p100-0 and 5 like it", "" */
static char *explain_alike(const json_t *devices)
{
    size_t n = json_array_size(devices);
    const char *first = n ? json_string_value(json_array_get(devices, 0)) : "";
    return n > 1 ? g_strdup_printf("%s and %zu like it", first, n - 1) : g_strdup(first);
}

static double seconds_of(const json_t *stage)
{
    return text_number_of(stage, "communication_s") +
           text_number_of(stage, "computation_s");
}

static ORDER_POINTERS(longer, json_t,
                      (seconds_of(x) < seconds_of(y)) - (seconds_of(x) > seconds_of(y)),
                      text_number_of(x, "stage") < text_number_of(y, "stage") ? -1 : 1);

static void say_stage(GString *text, const json_t *stage, double total_s)
{
    json_auto_t *answer = json_copy((json_t *)stage);
    json_object_set_new(answer, "share",
                        json_real(total_s > 0 ? seconds_of(stage) / total_s : 0));
    g_autofree char *line = render(ANSWER_EXPLAIN_STAGE, answer);
    g_string_append(text, line);
}

static void say_stages(GString *text, const json_t *stages)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    double total_s = 0;
    elements_each (stage, stages) {
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
    json_auto_t *waits = json_object();
    json_t *slowest = json_array();
    double total_s = 0, most_s = 0;
    elements_each (stage, stages) {
        double seconds = text_number_of(stage, "computation_s");
        total_s += seconds;
        elements_each (device, json_object_get(stage, "limited_by")) {
            const char *name = json_string_value(device);
            json_object_set_new(waits, name,
                                json_real(text_number_of(waits, name) + seconds));
            most_s = MAX(most_s, text_number_of(waits, name));
        }
    }
    members_each (name, waited, waits)
        if (json_number_value(waited) >= most_s * (1 - 1e-9))
            json_array_append_new(slowest, json_string(name));
    g_autofree char *devices = explain_alike(slowest);
    if (total_s > 0)
        g_string_append_printf(text, "%.0f %% of the computation waits for %s.\n",
                               100 * most_s / total_s, devices);
    json_decref(slowest);
}

char *explain_text(const json_t *explanation, const char *words)
{
    g_autofree char *layers = render(ANSWER_EXPLAIN_LAYERS, explanation);
    GString *text = g_string_new(layers);
    if (words) {
        g_string_append(text, words);
        return g_string_free(text, FALSE);
    }
    say_stages(text, json_object_get(explanation, "stages"));
    say_slowest(text, json_object_get(explanation, "stages"));
    return g_string_free(text, FALSE);
}
