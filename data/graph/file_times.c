/* Measured times in graph files and profiles. */
#include "data/graph/file_times.h"
#include "data/base/json.h"
#include "data/base/units.h"

enum { MOST_TYPES = 64 };

json_t *graph_times_json(const Graph *graph)
{
    json_t *all = json_object();
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpTimes *times = graph_op_times(graph, id);
        json_t *of = times ? json_object() : NULL;
        for (uint32_t i = 0; times && i < times->n; i++) {
            json_t *points =
                json_list(places_before(p, times->curve[i].n),
                          json_pack("[f, f]", times->curve[i].point[p].samples,
                                    times->curve[i].point[p].seconds));
            json_object_set_new(of, times->curve[i].type, points);
        }
        if (of)
            json_object_set_new(all, graph_get_op(graph, id)->name, of);
    }
    return all;
}

static bool in_range(const json_t *value, double least, double most)
{
    const double number = json_number_value(value);
    return json_is_number(value) && number_in(number, least, most);
}

static bool has_samples(const GArray *points, double samples)
{
    return any_of(i, points->len, g_array_index(points, TimePoint, i).samples == samples);
}

/* [[samples, seconds], ...], or, where `samples` is not 0, a number: the seconds of so many. */
static const char *read_points(const json_t *value, double samples, GArray *points)
{
    static const char *const expected =
        "expected seconds, or [[samples, seconds], ...] of up to 4096 batches";
    enum { MOST_POINTS = 4096 };
    const double most_s = 1e6, most_samples = 1e9, least_samples = 1;
    g_array_set_size(points, 0);
    if (samples > 0 && in_range(value, 0, most_s)) {
        const TimePoint point = {samples, json_number_value(value)};
        g_array_append_val(points, point);
        return NULL;
    }
    const size_t n = json_array_size(value);
    if (!json_is_array(value) || n == 0 || n > MOST_POINTS)
        return expected;
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(value, i);
        const json_t *of = json_array_get(pair, 0), *seconds = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !in_range(of, least_samples, most_samples) ||
            !in_range(seconds, 0, most_s))
            return expected;
        const TimePoint point = {json_number_value(of), json_number_value(seconds)};
        if (has_samples(points, point.samples))
            return "expected each number of samples once";
        g_array_append_val(points, point);
    }
    return NULL;
}

char *op_times_read(Graph *graph, OpId id, const json_t *value, double samples,
                    double part)
{
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(TimePoint));
    if (!json_is_object(value) || json_object_size(value) == 0 ||
        json_object_size(value) > MOST_TYPES)
        return g_strdup_printf("expected an object of 1 to %d device types", MOST_TYPES);
    members_each (type, curve, value) {
        const char *wrong = read_points(curve, samples, points);
        if (wrong || !*type)
            return g_strdup_printf("%s: %s", type,
                                   wrong ? wrong : "expected a device type's name");
        for (guint i = 0; i < points->len; i++)
            g_array_index(points, TimePoint, i).seconds *= part;
        graph_set_times(graph, id, type, points->len, (const TimePoint *)points->data);
    }
    return NULL;
}

char *graph_times_read(Graph *graph, const json_t *times)
{
    if (times && !json_is_object(times))
        return g_strdup("expected an object");
    members_each (name, of, times) {
        const OpId id = graph_find_op(graph, name);
        if (id == GRAPH_NONE || !op_kind_is_opaque(graph_get_op(graph, id)->kind))
            return g_strdup_printf("there is no opaque op '%s'", name);
        g_autofree char *wrong = op_times_read(graph, id, of, 0, 1);
        if (wrong)
            return g_strdup_printf("%s: %s", name, wrong);
    }
    ops_each (op, id, graph) {
        if (op_kind_is_opaque(op->kind) && !graph_op_times(graph, id))
            return g_strdup_printf("expected times of op '%s', which is opaque",
                                   op->name);
    }
    return NULL;
}
