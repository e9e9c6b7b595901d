/* The times of strategies in the rows of the bound. */
#include "synth/tag/rows.h"

#include "data/base/free.h"

#include <math.h>
#include <string.h>

enum { SERIAL = 15 };

/* --- sums over replicas that strategies cannot avoid --- */

/* Whether replicas sum the tensor as soon as the op has made it: the gradient of a parameter. */
static bool rows_is_summed(const TagBound *b, OpId op, TensorId out)
{
    return b->work->batch->loop[op] >= 0 && b->work->batch->form[out] == FORM_REDUCE &&
           tag_is_final_sum(b->work->graph, out);
}

/* The tensors that ops on the batch read and that ops on the batch make as sums over it, as the
 * means of batch norm are; gradients of parameters are summed anyhow. [tensor], allocated. */
static bool *find_waited(const TagBound *b)
{
    const Graph *graph = b->work->graph;
    const BatchForms *batch = b->work->batch;
    bool *waited = g_new0(bool, graph_n_tensors(graph) + 1);
    ops_each (op, id, graph) {
        for (uint32_t i = 0; batch->loop[id] >= 0 && i < op->n_in; i++) {
            const OpId by = graph_tensor(graph, op->in[i])->producer;
            waited[op->in[i]] |= by != GRAPH_NONE && batch->loop[by] >= 0 &&
                                 batch->form[op->in[i]] == FORM_REDUCE &&
                                 !rows_is_summed(b, by, op->in[i]);
        }
    }
    return waited;
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

/* Adds the time to sum an op's gradients to the rows of devices that count collectives. */
static double add_sums(TagBound *b, SimQuick *quick, OpId id, uint16_t group, bool served,
                       double *rows, double *sums)
{
    const DeviceGroup *of = &b->space->group[group];
    const Op *op = graph_get_op(b->work->graph, id);
    double sum = 0;
    for (uint32_t o = 0; of->n_replicas > 1 && o < op->n_out; o++)
        if (rows_is_summed(b, id, op->out[o]))
            sum += tag_rows_sum_s(quick, group, served, op->out[o]);
    for (uint32_t r = 0; r < of->n_replicas; r++)
        rows[of->device[r]] += sum;
    *sums += sum;
    return sum;
}

/* Adds the sums that readers wait for to the rows of devices that count collectives. */
static void add_waits(const TagBound *b, OpId id, uint16_t group, uint32_t action,
                      double *rows)
{
    const DeviceGroup *of = &b->space->group[group];
    const Op *op = graph_get_op(b->work->graph, id);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const double s = tag_rows_wait(b, op->out[o], group, action);
        for (uint32_t r = 0; r < of->n_replicas; r++)
            rows[of->device[r]] += s;
    }
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
            double *load = tag_rows_load(b, b->work->group[id], s);
            const uint16_t group = placement->group[id];
            const size_t at = (size_t)b->work->group[id] * b->space->n_actions + s;
            TagPart *part = tag_rows_part(b, id, s);
            part->group = group;
            part->mean_s = add_op(b, quick, id, group, load, &b->slow[at]);
            part->sum_s =
                add_sums(b, quick, id, group, served, &load[comm], &b->sums[at]);
            add_waits(b, id, group, s, &load[comm]);
        }
    }
    for (OpId id = 0; id < graph_n_ops(b->work->graph); id++) {
        b->least[id] = INFINITY;
        for (uint32_t s = 0; s < b->space->n_actions; s++)
            b->least[id] = fmin(b->least[id], tag_rows_on_path(b, id, s));
    }
}

void tag_rows_weigh(TagBound *b)
{
    const uint32_t n_actions = b->space->n_actions;
    const size_t n_pairs = (size_t)b->tree->n * n_actions * n_actions;
    for (uint32_t i = 0; i < b->tree->n; i++)
        for (uint32_t s = 0; s < n_actions; s++) {
            const double *load = tag_rows_load(b, i, s);
            const double sum =
                sum_over(double, r, b->n_devices + b->n_paths, b->weight[r] * load[r]);
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

void tag_rows_of(const TagBound *b, const uint16_t *action, double *row)
{
    const uint32_t n_actions = b->space->n_actions;
    memset(row, 0, b->n_rows * sizeof *row);
    for (uint32_t i = 0; i < b->tree->n; i++) {
        const double *load = tag_rows_load(b, i, action[i]);
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

double tag_rows_decided(TagBound *b, const uint16_t *action)
{
    double most = 0;
    memset(b->scratch, 0, b->n_rows * sizeof *b->scratch);
    for (uint32_t i = 0; i < b->work->n_groups; i++) {
        const double *load =
            action[i] == TAG_UNDECIDED ? NULL : tag_rows_load(b, i, action[i]);
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
    b->part = g_new0(TagPart, n_ops * n_actions + 1);
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
                       TagObjective objective, bool in_turn)
{
    TagBound *b = g_new0(TagBound, 1);
    b->space = space;
    b->work = work;
    b->quick = quick;
    b->in_turn = in_turn;
    b->n_devices = space->view->n_devices * (objective == TAG_BY_FLOW ? 2 : 1);
    b->tree = tag_tree_new(work, space->n_actions, space->n_actions <= MOST_PAIRS);
    make_room(b);
    b->waited = sim_quick_sums(quick) == SIM_SUMS_FREE ? NULL : find_waited(b);
    fill(b, objective);
    b->room = tag_room_new(b);
    for (uint32_t r = 0; r < b->n_devices; r++)
        b->weight[r] = 1.0 / b->n_devices;
    memset(b->now, 0xff, work->n_groups * sizeof *b->now);
    tag_rows_add_path(b, b->now);
    for (uint32_t i = 0; i < work->n_groups; i++)
        b->now[i] = (uint16_t)tag_data_parallel(space);
    tag_rows_add_path(b, b->now);
    return b;
}

FREE_DEFINE(tag_bound_free, TagBound, b, tag_tree_free(b->tree), tag_room_free(b->room),
            free_each(b->load, b->part, b->least, b->waited, b->slow, b->sums),
            free_items(b->pair, MOST_PATHS),
            free_each(b->weight, b->scratch, b->until, b->before, b->now, b->switched),
            g_array_unref(b->seen));
