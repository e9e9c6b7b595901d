/* The times of strategies in the rows of the bound. */
#include "synth/tag/rows.h"

#include <math.h>
#include <string.h>

enum { SERIAL = 15 };

static double *load_of(const TagBound *b, uint32_t group, uint32_t action)
{
    return &b->load[((size_t)group * b->space->n_actions + action) * b->n_rows];
}

static double *mean_of(const TagBound *b, OpId op, uint32_t action)
{
    return &b->mean[(size_t)op * b->space->n_actions + action];
}

static uint16_t place_of(const TagBound *b, OpId op, uint32_t action)
{
    return b->place[(size_t)op * b->space->n_actions + action];
}

/* --- what actions take --- */

/* Adds an op's times on its group's devices to `load`; returns their mean. */
static double add_op(TagBound *b, SimQuick *quick, OpId id, uint16_t group, double *load,
                     double *slow)
{
    const DeviceGroup *of = &b->space->group[group];
    const bool cut = b->work->batch->loop[id] >= 0 && of->n_replicas > 1;
    double mean = 0, least = INFINITY, most = 0;
    for (uint32_t r = 0; r < of->n_replicas * of->n_devices; r++) {
        const double s = sim_quick_place_s(quick, group, id, r);
        load[of->device[r]] += s;
        mean += sim_quick_share(quick, group, r) * s;
        least = fmin(least, s);
        most = fmax(most, s);
    }
    *slow += most;
    return cut ? mean : least;
}

/* Whether replicas sum the tensor as soon as the op has made it: the gradient of a parameter. */
static bool is_summed(const TagBound *b, OpId op, TensorId out)
{
    const Graph *graph = b->work->graph;
    const Tensor *tensor = graph_tensor(graph, out);
    return b->work->batch->loop[op] >= 0 && b->work->batch->form[out] == FORM_REDUCE &&
           tensor->role == ROLE_GRADIENT && tensor->of != GRAPH_NONE &&
           graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER &&
           graph_gradient(graph, tensor->of) == out;
}

/* Adds the time to sum an op's gradients to the rows of devices that count collectives. */
static double add_sums(TagBound *b, SimQuick *quick, OpId id, uint16_t group, bool served,
                       double *rows, double *sums)
{
    const DeviceGroup *of = &b->space->group[group];
    const Op *op = graph_get_op(b->work->graph, id);
    double sum = 0;
    for (uint32_t o = 0; of->n_replicas > 1 && o < op->n_out; o++)
        if (is_summed(b, id, op->out[o]))
            sum += served ? sim_quick_served_s(quick, group, op->out[o])
                          : sim_quick_sum_s(quick, group, op->out[o]);
    for (uint32_t r = 0; r < of->n_replicas; r++)
        rows[of->device[r]] += sum;
    *sums += sum;
    return op->n_out == 1 ? sum : 0;
}

static void fill(TagBound *b, TagObjective objective)
{
    SimQuick *quick = b->quick;
    const uint32_t n = b->space->view->n_devices;
    const uint32_t comm = objective == TAG_BY_FLOW ? n : 0;
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(b->work->graph);
    g_autofree uint16_t *action = g_new(uint16_t, b->work->n_groups);
    for (uint32_t s = 0; s < b->space->n_actions; s++) {
        const bool served = b->space->action[s].option == TAG_PS;
        /* The place of a group's ops does not depend on other groups. */
        for (uint32_t i = 0; i < b->work->n_groups; i++)
            action[i] = (uint16_t)s;
        synth_tag_place(b->space, b->work, action, placement);
        for (OpId id = 0; id < graph_n_ops(b->work->graph); id++) {
            double *load = load_of(b, b->work->group[id], s);
            const uint16_t group = placement->group[id];
            b->place[(size_t)id * b->space->n_actions + s] = group;
            const size_t at = (size_t)b->work->group[id] * b->space->n_actions + s;
            *mean_of(b, id, s) =
                add_op(b, quick, id, group, load, &b->slow[at]) +
                add_sums(b, quick, id, group, served, &load[comm], &b->sums[at]);
        }
    }
    for (OpId id = 0; id < graph_n_ops(b->work->graph); id++) {
        b->least[id] = INFINITY;
        for (uint32_t s = 0; s < b->space->n_actions; s++)
            b->least[id] = fmin(b->least[id], *mean_of(b, id, s));
    }
}

/* --- paths as rows --- */

/* Seconds of a tensor's transfer from its maker to a reader, under their groups' actions. */
static double transfer_s(const TagBound *b, TensorId tensor, OpId reader, uint32_t from,
                         uint32_t to)
{
    const OpId by = graph_tensor(b->work->graph, tensor)->producer;
    const uint16_t a = place_of(b, by, from), z = place_of(b, reader, to);
    return a == z ? 0 : sim_quick_transfer_s(b->quick, a, z, tensor);
}

/* Whether the transfer between two ops counts: inside a group, or between neighbours in the
 * tree. */
static bool counts(const TagBound *b, OpId by, OpId reader)
{
    const uint32_t i = b->work->group[by], j = b->work->group[reader];
    return i == j || (b->tree->pair && tag_tree_child(b->tree, i, j) != GRAPH_NONE);
}

/* The last op of the longest path of a strategy, in which undecided groups take their least times.
 * *length gets the path's time, before [op] (if not NULL) each op's predecessor. */
static OpId longest_path(TagBound *b, const uint16_t *action, OpId *before,
                         double *length)
{
    const Graph *graph = b->work->graph;
    OpId last = 0;
    *length = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        const uint32_t to = action[b->work->group[id]];
        double start = 0;
        if (before)
            before[id] = GRAPH_NONE;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            if (by == GRAPH_NONE)
                continue;
            const uint32_t from = action[b->work->group[by]];
            double s = b->until[by];
            if (from != TAG_UNDECIDED && to != TAG_UNDECIDED && counts(b, by, id))
                s += transfer_s(b, op->in[i], id, from, to);
            if (s < start || (before && before[id] != GRAPH_NONE && s == start))
                continue;
            start = s;
            if (before)
                before[id] = by;
        }
        b->until[id] = start + (to == TAG_UNDECIDED ? b->least[id] : *mean_of(b, id, to));
        if (b->until[id] > *length) {
            *length = b->until[id];
            last = id;
        }
    }
    return last;
}

/* The tensor that op `reader` reads from op `by`. */
static TensorId tensor_between(const Graph *graph, OpId by, OpId reader)
{
    const Op *op = graph_get_op(graph, reader);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (graph_tensor(graph, op->in[i])->producer == by)
            return op->in[i];
    g_assert_not_reached();
}

/* Adds a step of a path to its row. */
static void add_step(TagBound *b, uint32_t path, OpId by, OpId id)
{
    const uint32_t n_actions = b->space->n_actions, row = b->n_devices + path;
    const uint32_t from = b->work->group[by], to = b->work->group[id];
    const TensorId tensor = tensor_between(b->work->graph, by, id);
    if (!counts(b, by, id))
        return;
    if (from == to) {
        for (uint32_t s = 0; s < n_actions; s++)
            load_of(b, to, s)[row] += transfer_s(b, tensor, id, s, s);
        return;
    }
    const uint32_t child = tag_tree_child(b->tree, from, to);
    if (!b->pair[path])
        b->pair[path] = g_new0(double, (gsize)b->tree->n *n_actions *n_actions);
    double *pair = &b->pair[path][(size_t)child * n_actions * n_actions];
    for (uint32_t above = 0; above < n_actions; above++)
        for (uint32_t s = 0; s < n_actions; s++)
            pair[above * n_actions + s] += child == to
                                               ? transfer_s(b, tensor, id, above, s)
                                               : transfer_s(b, tensor, id, s, above);
}

/* Makes a row of the longest path of a strategy. */
void tag_rows_add_path(TagBound *b, const uint16_t *action)
{
    double length;
    const uint32_t row = b->n_devices + b->n_paths;
    for (OpId id = longest_path(b, action, b->before, &length); id != GRAPH_NONE;
         id = b->before[id]) {
        for (uint32_t s = 0; s < b->space->n_actions; s++)
            load_of(b, b->work->group[id], s)[row] += *mean_of(b, id, s);
        if (b->before[id] != GRAPH_NONE)
            add_step(b, b->n_paths, b->before[id], id);
    }
    b->n_paths++;
    double most = 0, total = 0;
    for (uint32_t r = 0; r < row; r++)
        most = fmax(most, b->weight[r]);
    b->weight[row] = most;
    for (uint32_t r = 0; r <= row; r++)
        total += b->weight[r];
    for (uint32_t r = 0; r <= row; r++)
        b->weight[r] /= total;
}

/* Sets the tree's costs under the weights. */
void tag_rows_weigh(TagBound *b)
{
    const uint32_t n_actions = b->space->n_actions;
    const size_t n_pairs = (size_t)b->tree->n * n_actions * n_actions;
    for (uint32_t i = 0; i < b->tree->n; i++)
        for (uint32_t s = 0; s < n_actions; s++) {
            const double *load = load_of(b, i, s);
            double sum = 0;
            for (uint32_t r = 0; r < b->n_devices + b->n_paths; r++)
                sum += b->weight[r] * load[r];
            b->tree->alone[(size_t)i * n_actions + s] = sum;
        }
    if (!b->tree->pair)
        return;
    memset(b->tree->pair, 0, n_pairs * sizeof(double));
    for (uint32_t p = 0; p < b->n_paths; p++) {
        const double weight = b->weight[b->n_devices + p];
        for (size_t k = 0; b->pair[p] && k < n_pairs; k++)
            b->tree->pair[k] += weight * b->pair[p][k];
    }
}

/* The rows' times of a complete strategy. */
void tag_rows_of(const TagBound *b, const uint16_t *action, double *row)
{
    const uint32_t n_actions = b->space->n_actions;
    memset(row, 0, b->n_rows * sizeof *row);
    for (uint32_t i = 0; i < b->tree->n; i++) {
        const double *load = load_of(b, i, action[i]);
        const uint32_t parent = b->tree->parent[i];
        for (uint32_t r = 0; r < b->n_devices + b->n_paths; r++)
            row[r] += load[r];
        for (uint32_t p = 0; parent != GRAPH_NONE && p < b->n_paths; p++)
            if (b->pair[p])
                row[b->n_devices + p] +=
                    b->pair[p][((size_t)i * n_actions + action[parent]) * n_actions +
                               action[i]];
    }
}

/* Finds strategies for the search: the best if everything runs serially except for a part of the
 * all-reduces. */
void tag_rows_serial(TagBound *b)
{
    const size_t n = (size_t)b->tree->n * b->space->n_actions;
    const double *pair = b->pair[b->n_paths - 1];
    if (b->tree->pair && pair)
        memcpy(b->tree->pair, pair, n * b->space->n_actions * sizeof *pair);
    for (uint32_t k = 0; k <= SERIAL; k++) {
        for (size_t i = 0; i < n; i++)
            b->tree->alone[i] = b->slow[i] + b->sums[i] * k / SERIAL;
        tag_tree_least(b->tree, NULL, b->now);
        g_array_append_vals(b->seen, b->now, b->tree->n);
    }
}

/* The busiest device's load by the decided groups. */
double tag_rows_decided(TagBound *b, const uint16_t *action)
{
    double most = 0;
    memset(b->scratch, 0, b->n_rows * sizeof *b->scratch);
    for (uint32_t i = 0; i < b->work->n_groups; i++) {
        const double *load = action[i] == TAG_UNDECIDED ? NULL : load_of(b, i, action[i]);
        for (uint32_t r = 0; load && r < b->n_devices; r++)
            b->scratch[r] += load[r];
    }
    for (uint32_t r = 0; r < b->n_devices; r++)
        most = fmax(most, b->scratch[r]);
    return most;
}

static void make_room(TagBound *b)
{
    const size_t n_ops = graph_n_ops(b->work->graph), n_actions = b->space->n_actions;
    b->n_rows = b->n_devices + MOST_PATHS;
    b->load = g_new0(double, (gsize)b->work->n_groups *n_actions * b->n_rows + 1);
    b->mean = g_new0(double, n_ops *n_actions + 1);
    b->place = g_new0(uint16_t, n_ops * n_actions + 1);
    b->least = g_new0(double, n_ops + 1);
    b->slow = g_new0(double, (gsize)b->work->n_groups *n_actions + 1);
    b->sums = g_new0(double, (gsize)b->work->n_groups *n_actions + 1);
    b->weight = g_new0(double, b->n_rows);
    b->scratch = g_new0(double, b->n_rows);
    b->until = g_new0(double, n_ops + 1);
    b->before = g_new0(OpId, n_ops + 1);
    b->now = g_new0(uint16_t, b->work->n_groups + 1);
    b->switched = g_new0(uint32_t, b->work->n_groups + 1);
    b->seen = g_array_new(FALSE, FALSE, sizeof(uint16_t));
}

TagBound *tag_rows_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                       TagObjective objective)
{
    TagBound *b = g_new0(TagBound, 1);
    b->space = space;
    b->work = work;
    b->quick = quick;
    b->n_devices = space->view->n_devices * (objective == TAG_BY_FLOW ? 2 : 1);
    b->tree = tag_tree_new(work, space->n_actions, space->n_actions <= MOST_PAIRS);
    make_room(b);
    fill(b, objective);
    for (uint32_t r = 0; r < b->n_devices; r++)
        b->weight[r] = 1.0 / b->n_devices;
    memset(b->now, 0xff, work->n_groups * sizeof *b->now);
    tag_rows_add_path(b, b->now);
    for (uint32_t i = 0; i < work->n_groups; i++)
        b->now[i] = (uint16_t)tag_data_parallel(space);
    tag_rows_add_path(b, b->now);
    return b;
}

double tag_rows_longest(TagBound *b, const uint16_t *action)
{
    double length;
    longest_path(b, action, NULL, &length);
    return length;
}

void tag_bound_free(TagBound *b)
{
    if (!b)
        return;
    tag_tree_free(b->tree);
    g_free(b->load);
    g_free(b->mean);
    g_free(b->place);
    g_free(b->least);
    g_free(b->slow);
    g_free(b->sums);
    for (uint32_t p = 0; p < MOST_PATHS; p++)
        g_free(b->pair[p]);
    g_free(b->weight);
    g_free(b->scratch);
    g_free(b->until);
    g_free(b->before);
    g_free(b->now);
    g_free(b->switched);
    g_array_unref(b->seen);
    g_free(b);
}
