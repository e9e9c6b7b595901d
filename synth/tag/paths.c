/* Paths through the graph as rows of the bound.
 *
 * A path is ops that need one another, in blocks: runs of ops of the same op group. All ops of an
 * op group are on the same devices under an action (but for MP), and a device does them in the
 * order of the graph. So from the begin of a block to its end a device does all that the op group
 * has between the two, whether it is on the path or not; where collectives stand in place of
 * computation (`stage`), their all-reduces, too. What the op group has after its block's last op,
 * and before the next block's first one, comes in between if both are on the same devices; its
 * all-reduces, if the next block's device is one of those that they stand on. These are costs of
 * pairs of actions, counted where the op groups are neighbours in the tree. */
#include <math.h>

#include "synth/tag/rows.h"

static OpId producer(const TagBound *b, TensorId tensor)
{
    return graph_tensor(b->work->graph, tensor)->producer;
}

/* --- transfers --- */

/* The seconds of a tensor from the op that makes it to one that reads it, under their groups'
 * actions: the sum that the reader waits for, and the transfer. */
static double transfer_s(const TagBound *b, TensorId tensor, OpId reader, uint32_t from,
                         uint32_t to)
{
    const uint16_t a = tag_rows_part(b, producer(b, tensor), from)->group,
                   z = tag_rows_part(b, reader, to)->group;
    return tag_rows_wait(b, tensor, a, from) +
           (a == z ? 0 : sim_quick_transfer_s(b->quick, a, z, tensor));
}

/* Whether what is between two ops counts: inside a group, or between neighbours in the tree. */
static bool counts(const TagBound *b, OpId by, OpId reader)
{
    const uint32_t i = b->work->group[by], j = b->work->group[reader];
    return i == j || (b->tree->pair && tag_tree_child(b->tree, i, j) != GRAPH_NONE);
}

/* The tensor that an op reads of another one. */
static TensorId tensor_between(const TagBound *b, OpId by, OpId reader)
{
    const Op *op = graph_get_op(b->work->graph, reader);
    for (uint32_t i = 0; i < op->n_in; i++)
        if (producer(b, op->in[i]) == by)
            return op->in[i];
    g_assert_not_reached();
}

/* --- the longest path --- */

/* The last op of the longest path of a strategy, in which undecided groups take the least; *length
 * gets its time, before (if not NULL) [op] what it comes from. */
static OpId longest_path(TagBound *b, const uint16_t *action, OpId *before,
                         double *length)
{
    const Graph *graph = b->work->graph;
    OpId last = 0;
    *length = 0;
    ops_each (op, id, graph) {
        const uint32_t to = action[b->work->group[id]];
        double start = 0;
        if (before)
            before[id] = GRAPH_NONE;
        for (uint32_t i = 0; i < op->n_in; i++) {
            const OpId by = producer(b, op->in[i]);
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
        b->until[id] =
            start + (to == TAG_UNDECIDED ? b->least[id] : tag_rows_on_path(b, id, to));
        if (b->until[id] > *length) {
            *length = b->until[id];
            last = id;
        }
    }
    return last;
}

double tag_rows_longest(TagBound *b, const uint16_t *action)
{
    double length;
    longest_path(b, action, NULL, &length);
    return length;
}

/* --- blocks --- */

/* Whether all that the op group has from one to another of its ops is on one device group. */
static bool is_together(const TagBound *b, OpId first, OpId last, uint32_t action)
{
    const uint16_t group = tag_rows_part(b, first, action)->group;
    for (OpId id = first; id <= last; id++)
        if (b->work->group[id] == b->work->group[first] &&
            tag_rows_part(b, id, action)->group != group)
            return false;
    return true;
}

/* The seconds of a device for the ops of a group from `first` to before `end`; *sums gets the
 * all-reduces among it. */
static double in_order_s(const TagBound *b, uint32_t group, OpId first, OpId end,
                         uint32_t action, double *sums)
{
    double s = 0;
    *sums = 0;
    for (OpId id = first; id < end; id++) {
        if (b->work->group[id] != group)
            continue;
        s += tag_rows_part(b, id, action)->mean_s;
        *sums += b->in_turn ? tag_rows_part(b, id, action)->sum_s : 0;
    }
    return s + *sums;
}

/* A block from op `first` to `last`, with ops between that are linked by `before`. */
static double block_s(const TagBound *b, OpId first, OpId last, uint32_t action)
{
    const uint32_t group = b->work->group[last];
    double path = tag_rows_on_path(b, last, action), sums;
    for (OpId id = last; id != first; id = b->before[id]) {
        const OpId by = b->before[id];
        path += tag_rows_on_path(b, by, action) +
                transfer_s(b, tensor_between(b, by, id), id, action, action);
    }
    if (!is_together(b, first, last, action))
        return path;
    return fmax(path, in_order_s(b, group, first, last, action, &sums) +
                          tag_rows_on_path(b, last, action));
}

/* --- between blocks --- */

/* The part of the samples whose devices in one device group are in another one, too; of an op that
 * all devices do in full whether all of them are. */
static double overlap(const TagBound *b, OpId op, uint16_t group, uint16_t other)
{
    const DeviceGroup *of = &b->space->group[group], *in = &b->space->group[other];
    const uint32_t n = of->n_replicas * of->n_devices, m = in->n_replicas * in->n_devices;
    const bool cut = b->work->batch->loop[op] >= 0 && of->n_replicas > 1;
    double part = 0;
    bool all = true;
    for (uint32_t r = 0; r < n; r++) {
        const bool there = any_of(k, m, in->device[k] == of->device[r]);
        part += there ? sim_quick_share(b->quick, group, r) : 0;
        all = all && there;
    }
    return cut ? part : all;
}

/* From the last op of a block to the first of the next one, under their groups' actions. */
static double between_s(const TagBound *b, OpId last, OpId next, uint32_t from,
                        uint32_t to)
{
    const uint16_t a = tag_rows_part(b, last, from)->group,
                   z = tag_rows_part(b, next, to)->group;
    const double transfer = transfer_s(b, tensor_between(b, last, next), next, from, to);
    if (!is_together(b, last, next - 1, from))
        return transfer;
    double sums;
    const double rest = in_order_s(b, b->work->group[last], last + 1, next, from, &sums);
    if (a == z &&
        !b->in_turn) /* a device goes on computing while gradients of the last op are summed */
        return fmax(transfer, rest - (tag_rows_on_path(b, last, from) -
                                      tag_rows_part(b, last, from)->mean_s));
    if (a == z)
        return fmax(transfer, rest);
    const double both = overlap(b, next, z, a);
    return (1 - both) * transfer + both * fmax(transfer, sums);
}

static void add_between(TagBound *b, uint32_t path, OpId last, OpId next)
{
    const uint32_t n_actions = b->space->n_actions;
    const uint32_t from = b->work->group[last], to = b->work->group[next];
    if (!counts(b, last, next))
        return;
    const uint32_t child = tag_tree_child(b->tree, from, to);
    if (!b->pair[path])
        b->pair[path] = g_new0(double, (gsize)b->tree->n *n_actions *n_actions);
    double *pair = &b->pair[path][(size_t)child * n_actions * n_actions];
    for (uint32_t above = 0; above < n_actions; above++)
        for (uint32_t s = 0; s < n_actions; s++)
            pair[above * n_actions + s] += child == to
                                               ? between_s(b, last, next, above, s)
                                               : between_s(b, last, next, s, above);
}

/* With as much weight as any. */
static void weigh_row(TagBound *b, uint32_t row)
{
    double most = 0, total = 0;
    for (uint32_t r = 0; r < row; r++)
        most = fmax(most, b->weight[r]);
    b->weight[row] = most;
    for (uint32_t r = 0; r <= row; r++)
        total += b->weight[r];
    for (uint32_t r = 0; r <= row; r++)
        b->weight[r] /= total;
}

void tag_rows_add_path(TagBound *b, const uint16_t *action)
{
    double length;
    const uint32_t row = b->n_devices + b->n_paths;
    OpId last = longest_path(b, action, b->before, &length);
    while (last != GRAPH_NONE) {
        const uint32_t group = b->work->group[last];
        OpId first = last;
        while (b->before[first] != GRAPH_NONE &&
               b->work->group[b->before[first]] == group)
            first = b->before[first];
        for (uint32_t s = 0; s < b->space->n_actions; s++)
            tag_rows_load(b, group, s)[row] += block_s(b, first, last, s);
        if (b->before[first] != GRAPH_NONE)
            add_between(b, b->n_paths, b->before[first], first);
        last = b->before[first];
    }
    b->n_paths++;
    weigh_row(b, row);
}
