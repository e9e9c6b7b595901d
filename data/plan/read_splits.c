/* Ratios, segments and splits of a plan file. */
#include "data/base/json.h"
#include "data/plan/json.h"
#include "data/plan/reader.h"

#include <math.h>
#include <string.h>

/* The tolerance of the sum 1 of a row of ratios. */
static const double TOLERANCE = 1e-9;

static bool read_ratio_row(const Reader *r, size_t k, const json_t *row)
{
    g_assert(k < r->plan->n_segments);
    Plan *plan = r->plan;
    if (json_array_size(row) != plan->n_devices)
        return reader_fail(r, "ratios", k, "expected %u numbers, one per device, got %zu",
                           plan->n_devices, json_array_size(row));
    double sum = 0;
    for (uint32_t j = 0; j < plan->n_devices; j++) {
        const json_t *value = json_array_get(row, j);
        double ratio = json_number_value(value);
        if (!json_is_number(value) || !(ratio >= 0 && ratio <= 1 + TOLERANCE))
            return reader_expected(r, "ratios", k, "ratios from 0 to 1", value);
        plan->ratio[k * plan->n_devices + j] = ratio;
        sum += ratio;
    }
    if (!(fabs(sum - 1) <= TOLERANCE))
        return reader_fail(r, "ratios", k, "expected a row that sums to 1, got %.12g",
                           sum);
    return true;
}

bool reader_ratios(const Reader *r)
{
    Plan *plan = r->plan;
    json_t *rows;
    if (!reader_array(r, "ratios", &rows))
        return false;
    size_t n_segments = json_array_size(rows),
           n_devices = json_array_size(json_array_get(rows, 0));
    if (n_segments == 0 || n_segments > UINT16_MAX || n_devices == 0)
        return reader_expected(r, "ratios", READER_WHOLE,
                               "a row per segment and in it a number per device", rows);
    plan->n_segments = (uint32_t)n_segments;
    plan->n_devices = (uint32_t)n_devices;
    plan->ratio = g_new0(double, n_segments *n_devices);
    for (size_t k = 0; k < n_segments; k++)
        if (!read_ratio_row(r, k, json_array_get(rows, k)))
            return false;
    return true;
}

/* Reads the segments as runs of ops: ["first op", segment]. */
bool reader_segments(const Reader *r)
{
    Plan *plan = r->plan;
    json_t *runs;
    if (!reader_array(r, "segments", &runs))
        return false;
    plan->n_ops = graph_n_ops(r->graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
    OpId next = 0; /* the earliest op at which the run may begin */
    elements_at (run, i, runs) {
        const char *name = json_string_value(json_array_get(run, 0));
        uint64_t segment;
        if (json_array_size(run) != 2 || !name ||
            !reader_integer_value(json_array_get(run, 1), plan->n_segments - 1, &segment))
            return reader_expected(r, "segments", i, "[\"first op\", row of ratios]",
                                   run);
        OpId op = graph_find_op(r->graph, name);
        if (op == GRAPH_NONE)
            return reader_fail(r, "segments", i, "unknown op '%s'", name);
        if (op < next || (i == 0 && op != 0))
            return reader_fail(r, "segments", i,
                               "expected runs of ops in order from %s on, got '%s'",
                               graph_get_op(r->graph, 0)->name, name);
        next = op + 1;
        for (; op < plan->n_ops; op++)
            plan->segment[op] = (uint16_t)segment;
    }
    return next > 0 || reader_expected(r, "segments", READER_WHOLE, "a run of ops", runs);
}

/* The number of devices over which the counts must add up to the units; for a split over replicas,
 * that of a set of shards. */
static uint32_t summed_devices(const Reader *r, const Split *split)
{
    const Program *program = r->plan->program;
    if (split->kind == SPLIT_BATCH || program->n_groups == 0)
        return plan_split_devices(r->plan, split);
    const DeviceGroup *group = &program->group[split->group];
    return group->n_devices * (split->kind == SPLIT_POSITIONS ? 1 : group_shards(group));
}

/* Checks that the counts of the sets' first devices add up to the units, and that the devices of a
 * set have equal counts. */
static bool check_sets(const Reader *r, size_t i, const Split *split, uint32_t set)
{
    const uint32_t n = plan_split_devices(r->plan, split);
    uint64_t sum = 0;
    bool alike = true;
    for (uint32_t j = 0; j < n; j++) {
        sum += j % set == 0 ? split->count[j] : 0;
        alike &= split->count[j] == split->count[j - j % set];
    }
    return (alike && sum == split->units) ||
           reader_fail(r, "splits", i,
                       "expected counts that are alike in every set of shards and sum to "
                       "%u units over them",
                       split->units);
}

/* Checks that the counts add up to the units, in all or in every replica. */
static bool check_sums(const Reader *r, size_t i, const Split *split)
{
    const uint32_t n = plan_split_devices(r->plan, split);
    const uint32_t each = summed_devices(r, split);
    if (split->kind == SPLIT_REPLICAS)
        return check_sets(r, i, split, each);
    for (uint32_t first = 0; first < n; first += each) {
        uint64_t sum = 0;
        for (uint32_t j = first; j < first + each; j++)
            sum += split->count[j];
        if (sum != split->units)
            return reader_fail(
                r, "splits", i,
                "expected counts that sum to %u units, got %" G_GUINT64_FORMAT,
                split->units, sum);
        if (memcmp(&split->count[first], split->count, each * sizeof *split->count) != 0)
            return reader_fail(r, "splits", i,
                               "expected the same counts in every replica");
    }
    return true;
}

static bool read_counts(const Reader *r, size_t i, const json_t *counts, Split *split)
{
    const uint32_t n = plan_split_devices(r->plan, split);
    if (json_array_size(counts) != n)
        return reader_fail(r, "splits", i, "expected %u counts, one per device, got %zu",
                           n, json_array_size(counts));
    split->count = g_new0(uint32_t, n);
    for (uint32_t j = 0; j < n; j++) {
        uint64_t count;
        if (!reader_integer_value(json_array_get(counts, j), split->units, &count))
            return reader_expected(r, "splits", i, "counts up to units",
                                   json_array_get(counts, j));
        split->count[j] = (uint32_t)count;
    }
    return check_sums(r, i, split);
}

static bool read_split_key(const Reader *r, const json_t *object, Split *split)
{
    const json_t *group = json_object_get(object, "group"), *kind = NULL;
    const uint32_t n_groups = MAX(1, r->plan->program->n_groups);
    uint64_t segment, units, g = 0;
    SplitKind of = SPLIT_POSITIONS;
    for (SplitKind k = SPLIT_BATCH; !kind && k < SPLIT_KINDS; k++)
        if ((kind = json_object_get(object, PLAN_SPLIT_KEY[k])))
            of = k;
    if (json_object_size(object) != 3 + (size_t)(group != NULL) + (kind != NULL) ||
        !reader_integer_value(json_object_get(object, "segment"), r->plan->n_segments - 1,
                              &segment) ||
        !reader_integer_value(json_object_get(object, "units"), UINT32_MAX, &units) ||
        (group && !reader_integer_value(group, n_groups - 1, &g)) ||
        (kind && !json_is_true(kind)))
        return false;
    *split = (Split){.segment = (uint32_t)segment,
                     .units = (uint32_t)units,
                     .group = (uint16_t)g,
                     .kind = of};
    return true;
}

bool reader_splits(const Reader *r)
{
    Plan *plan = r->plan;
    json_t *splits;
    if (!json_object_get(r->root, "splits"))
        return true; /* checked later, once the program is known */
    if (!reader_array(r, "splits", &splits))
        return false;
    plan->split = g_new0(Split, json_array_size(splits));
    elements_at (object, i, splits) {
        Split *split = &plan->split[plan->n_splits++];
        if (!read_split_key(r, object, split))
            return reader_expected(r, "splits", i, "{\"segment\", \"units\", \"count\"}",
                                   object);
        if (i > 0 && plan_compare_splits(&split[-1], split) >= 0)
            return reader_fail(r, "splits", i, "expected rising (segment, units)");
        if (!read_counts(r, i, json_object_get(object, "count"), split))
            return false;
    }
    return true;
}
