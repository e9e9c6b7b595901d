/* Least costs over a tree of op groups. */
#include "synth/tag/tree.h"

#include "data/base/free.h"
#include "data/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double bytes;
    uint32_t a, b;
} Flow;

static ORDER_DEFINE(compare_flows, Flow, DESCENDING(bytes), ASCENDING(a), ASCENDING(b));

/* Bytes between groups, counted once per tensor and reading op, largest first; *n gets the number
 * of pairs. */
static Flow *find_flows(const TagWork *work, uint32_t *n)
{
    const uint32_t n_groups = work->n_groups;
    g_autofree double *bytes = g_new0(double, (gsize)n_groups *n_groups + 1);
    GArray *flow = g_array_new(FALSE, FALSE, sizeof(Flow));
    ops_each (op, id, work->graph) {
        for (uint32_t i = 0; i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(work->graph, op->in[i]);
            if (tensor->producer == GRAPH_NONE)
                continue;
            const uint32_t a = work->group[tensor->producer], b = work->group[id];
            bytes[(size_t)MIN(a, b) * n_groups + MAX(a, b)] +=
                1 + (double)tensor_bytes(tensor);
        }
    }
    for (uint32_t a = 0; a < n_groups; a++)
        for (uint32_t b = a + 1; b < n_groups; b++) {
            const Flow between = {bytes[(size_t)a * n_groups + b], a, b};
            if (between.bytes > 0)
                g_array_append_val(flow, between);
        }
    *n = flow->len;
    if (flow->len > 0)
        qsort(flow->data, flow->len, sizeof(Flow), compare_flows);
    return (Flow *)g_array_free(flow, FALSE);
}

static uint32_t root_of(const uint32_t *of, uint32_t group)
{
    while (of[group] != group)
        group = of[group];
    return group;
}

/* Roots each tree of the forest at its lowest number, and orders parents before children. */
static void set_parents(TagTree *tree, const bool *joined)
{
    const uint32_t n = tree->n;
    g_autofree bool *seen = g_new0(bool, n + 1);
    uint32_t n_order = 0;
    for (uint32_t root = 0; root < n; root++) {
        if (seen[root])
            continue;
        seen[root] = true;
        tree->parent[root] = GRAPH_NONE;
        uint32_t at = n_order;
        tree->order[n_order++] = root;
        for (; at < n_order; at++)
            for (uint32_t b = 0, a = tree->order[at]; b < n; b++)
                if (joined[(size_t)MIN(a, b) * n + MAX(a, b)] && !seen[b]) {
                    seen[b] = true;
                    tree->parent[b] = a;
                    tree->order[n_order++] = b;
                }
    }
    g_assert(n_order == n);
}

TagTree *tag_tree_new(const TagWork *work, uint32_t n_actions, bool pairs)
{
    const uint32_t n = work->n_groups;
    TagTree *tree = g_new0(TagTree, 1);
    uint32_t n_flows;
    g_autofree Flow *flow = find_flows(work, &n_flows);
    g_autofree uint32_t *of = g_new(uint32_t, n + 1);
    g_autofree bool *joined = g_new0(bool, (gsize)n *n + 1);
    tree->n = n;
    tree->n_actions = n_actions;
    tree->parent = g_new(uint32_t, n + 1);
    tree->order = g_new(uint32_t, n + 1);
    tree->alone = g_new0(double, (gsize)n *n_actions + 1);
    tree->cost = g_new0(double, (gsize)n *n_actions + 1);
    tree->choice = g_new0(uint16_t, (gsize)n * n_actions + 1);
    if (pairs)
        tree->pair = g_new0(double, (gsize)n *n_actions *n_actions + 1);
    for (uint32_t i = 0; i < n; i++)
        of[i] = i;
    for (uint32_t f = 0; f < n_flows; f++) {
        const uint32_t a = root_of(of, flow[f].a), b = root_of(of, flow[f].b);
        if (a != b) {
            of[a] = b;
            joined[(size_t)flow[f].a * n + flow[f].b] = true;
        }
    }
    set_parents(tree, joined);
    return tree;
}

FREE_DEFINE(tag_tree_free, TagTree, tree,
            free_each(tree->parent, tree->order, tree->alone, tree->pair, tree->cost,
                      tree->choice));

uint32_t tag_tree_child(const TagTree *tree, uint32_t a, uint32_t b)
{
    return tree->parent[a] == b ? a : tree->parent[b] == a ? b : GRAPH_NONE;
}

/* The least cost of a group given its parent's action, and the action that has it. */
static double tree_least_of(const TagTree *tree, uint32_t i, uint32_t above,
                            uint32_t first, uint32_t end, uint16_t *choice)
{
    KILTER_ASSERT(first < end);
    const double *cost = &tree->cost[(size_t)i * tree->n_actions];
    const double *pair =
        tree->pair && tree->parent[i] != GRAPH_NONE
            ? &tree->pair[((size_t)i * tree->n_actions + above) * tree->n_actions]
            : NULL;
    double least = INFINITY;
    *choice = (uint16_t)first;
    for (uint32_t s = first; s < end; s++) {
        const double sum = pair ? cost[s] + pair[s] : cost[s];
        if (sum < least) {
            least = sum;
            *choice = (uint16_t)s;
        }
    }
    return least;
}

/* The actions open to the group: [*first, *end). */
static void open_actions(const TagTree *tree, const uint16_t *action, uint32_t i,
                         uint32_t *first, uint32_t *end)
{
    const bool decided = action && action[i] != TAG_UNDECIDED;
    *first = decided ? action[i] : 0;
    *end = decided ? action[i] + 1u : tree->n_actions;
}

double tag_tree_least(TagTree *tree, const uint16_t *action, uint16_t *best)
{
    const uint32_t n_actions = tree->n_actions;
    double sum = 0;
    memcpy(tree->cost, tree->alone, (size_t)tree->n * n_actions * sizeof *tree->cost);
    for (uint32_t k = tree->n; k-- > 0;) {
        const uint32_t i = tree->order[k], parent = tree->parent[i];
        uint32_t first, end;
        open_actions(tree, action, i, &first, &end);
        if (parent == GRAPH_NONE) {
            sum += tree_least_of(tree, i, 0, first, end,
                                 &tree->choice[(size_t)i * n_actions]);
            continue;
        }
        uint32_t above, last;
        open_actions(tree, action, parent, &above, &last);
        for (; above < last; above++)
            tree->cost[(size_t)parent * n_actions + above] += tree_least_of(
                tree, i, above, first, end, &tree->choice[(size_t)i * n_actions + above]);
    }
    for (uint32_t k = 0; best && k < tree->n; k++) {
        const uint32_t i = tree->order[k], parent = tree->parent[i];
        best[i] = tree->choice[(size_t)i * n_actions +
                               (parent == GRAPH_NONE ? 0 : best[parent])];
    }
    return sum;
}
