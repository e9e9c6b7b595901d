/* Trees, and recursive halving and doubling. */
#include "sim/network/lower/lower.h"

/* --- binary trees ---
 *
 * NCCL's in-order tree over positions 0..n-1 with root 0: the lowest set bit of a position is its
 * height, so that leaves are the odd positions and a subtree is a range. The second tree is the
 * first one mirrored (n even) or shifted by one (n odd): an inner position of one tree is a leaf of
 * the other. */

static uint32_t parent_of(uint32_t n, uint32_t i)
{
    KILTER_ASSERT(i < n);
    const uint32_t bit = i & -i;
    const uint32_t up = (i ^ bit) | bit << 1;
    return up < n ? up : i ^ bit;
}

static uint32_t depth_of(uint32_t n)
{
    KILTER_ASSERT(n > 0);
    uint32_t deepest = 0;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t depth = 0;
        for (uint32_t k = i; k != 0; k = parent_of(n, k))
            depth++;
        deepest = MAX(deepest, depth);
    }
    return deepest;
}

typedef enum { TREE_FIRST, TREE_MIRRORED, TREE_SHIFTED } TreeKind;

static uint32_t tree_place(uint32_t n, uint32_t i, TreeKind kind)
{
    return kind == TREE_FIRST ? i : kind == TREE_MIRRORED ? n - 1 - i : (i + 1) % n;
}

/* Adds the messages of a tree; the first kind's root is rank `root`, if that is a rank. */
static void tree_hops(Lower *lower, uint32_t root, TreeKind kind, bool up, bool down)
{
    const uint32_t n = lower->n;
    for (uint32_t g = 0; g < lower->n_groups; g++) {
        const uint32_t turn = root < n ? lower->position[(size_t)g * n + root] : 0;
        for (uint32_t i = 1; i < n; i++) {
            const uint32_t child = (tree_place(n, i, kind) + turn) % n;
            const uint32_t parent = (tree_place(n, parent_of(n, i), kind) + turn) % n;
            if (up)
                lower_hop(lower, g, child, parent, 1);
            if (down)
                lower_hop(lower, g, parent, child, 1);
        }
    }
}

static void tree_rounds(Lower *lower, double bytes, uint32_t levels)
{
    lower_rounds(lower, levels, bytes,
                 (levels - 1) * bytes / lower_pieces(lower, bytes, levels));
}

bool lower_tree(Lower *lower, GError **error)
{
    const SimCollective *collective = lower->collective;
    const bool both = collective->traffic == TRAFFIC_ALL_REDUCE;
    const uint32_t depth = depth_of(lower->n);
    (void)error;
    tree_hops(lower, both ? lower->n : collective->root, TREE_FIRST,
              collective->traffic != TRAFFIC_BROADCAST,
              collective->traffic != TRAFFIC_REDUCE);
    tree_rounds(lower, collective->bytes, both ? 2 * depth : depth);
    return true;
}

bool lower_double_tree(Lower *lower, GError **error)
{
    (void)error;
    tree_hops(lower, lower->n, TREE_FIRST, true, true);
    tree_hops(lower, lower->n, lower->n % 2 ? TREE_SHIFTED : TREE_MIRRORED, true, true);
    tree_rounds(lower, lower->collective->bytes / 2, 2 * depth_of(lower->n));
    return true;
}

/* --- trees between machines --- */

/* The first position of each machine with ranks of group g; *most gets the most ranks of one. */
static GArray *find_heads(const Lower *lower, uint32_t g, uint32_t *most)
{
    const Topology *topology = sim_network_topology(lower->network);
    const uint32_t n = lower->n, *device = &lower->collective->device[(size_t)g * n],
                   *ring = &lower->ring[(size_t)g * n];
    GArray *head = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0, before = 0; i < n; i++) {
        const uint32_t machine = topology->machine[device[ring[i]]];
        if (i == 0 || machine != before)
            g_array_append_val(head, i);
        before = machine;
        *most = MAX(*most, i + 1 - g_array_index(head, uint32_t, head->len - 1));
    }
    return head;
}

/* Sums up along chains inside machines, and in two trees between the first ranks of the machines,
 * half of the tensor in each; the same way back. Two machines pass their ports once up and once
 * down. */
bool lower_machine_tree(Lower *lower, GError **error)
{
    const double half = 0.5;
    uint32_t most = 1, depth = 0;
    (void)error;
    for (uint32_t g = 0; g < lower->n_groups; g++) {
        g_autoptr(GArray) heads = find_heads(lower, g, &most);
        const uint32_t *head = (const uint32_t *)(const void *)heads->data,
                       h = heads->len;
        for (uint32_t m = 0; m < h; m++)
            for (uint32_t i = head[m] + 1; i < (m + 1 < h ? head[m + 1] : lower->n);
                 i++) {
                lower_hop(lower, g, i, i - 1, 1);
                lower_hop(lower, g, i - 1, i, 1);
            }
        for (uint32_t i = 1; i < h; i++)
            for (TreeKind kind = TREE_FIRST; kind <= TREE_SHIFTED; kind++) {
                if (kind == (h % 2 ? TREE_MIRRORED : TREE_SHIFTED))
                    continue;
                const uint32_t child = head[tree_place(h, i, kind)],
                               parent = head[tree_place(h, parent_of(h, i), kind)];
                lower_hop(lower, g, child, parent, half);
                lower_hop(lower, g, parent, child, half);
            }
        depth = MAX(depth, depth_of(h));
    }
    tree_rounds(lower, lower->collective->bytes, 2 * (depth + most - 1));
    return true;
}

/* --- recursive halving and doubling --- */

/* One round: every position of `member` exchanges with the position at that distance. */
static void exchange(Lower *lower, const uint32_t *member, uint32_t n, uint32_t distance,
                     double bytes)
{
    KILTER_ASSERT(distance > 0 && distance < n);
    for (uint32_t g = 0; g < lower->n_groups; g++)
        for (uint32_t i = 0; i < n; i++)
            lower_hop(lower, g, member[i], member[i ^ distance], 1);
    lower_rounds(lower, 1, bytes, 0);
}

/* Positions 2k + 1 send to positions 2k, or receive from them. */
static void fold(Lower *lower, uint32_t extra, bool back)
{
    for (uint32_t g = 0; g < lower->n_groups; g++)
        for (uint32_t k = 0; k < extra; k++)
            lower_hop(lower, g, 2 * k + !back, 2 * k + back, 1);
    if (extra)
        lower_rounds(lower, 1, lower->collective->bytes, 0);
}

bool lower_halving(Lower *lower, GError **error)
{
    const double bytes = lower->collective->bytes;
    uint32_t core = 1;
    (void)error;
    while (2 * core <= lower->n)
        core *= 2;
    const uint32_t extra = lower->n - core;
    g_autofree uint32_t *member = g_new(uint32_t, core);
    for (uint32_t i = 0; i < core; i++)
        member[i] = i < extra ? 2 * i : i + extra;
    fold(lower, extra, false);
    for (uint32_t d = 1; d < core; d *= 2)
        exchange(lower, member, core, d, bytes / (2 * d));
    for (uint32_t d = core / 2; d >= 1; d /= 2)
        exchange(lower, member, core, d, bytes / (2 * d));
    fold(lower, extra, true);
    return true;
}

/* Reduce-scatter is the first half of the all-reduce, all-gather the second half. */
bool lower_halving_parts(Lower *lower, GError **error)
{
    const uint32_t n = lower->n;
    const double bytes = n * lower_part_bytes(lower);
    if ((n & (n - 1)) != 0)
        return refuse(error, "halving: %s needs a power of two of ranks, got %u",
                      traffic_name(lower->collective->traffic), n);
    g_autofree uint32_t *member = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        member[i] = i;
    if (lower->collective->traffic == TRAFFIC_REDUCE_SCATTER)
        for (uint32_t d = 1; d < n; d *= 2)
            exchange(lower, member, n, d, bytes / (2 * d));
    else
        for (uint32_t d = n / 2; d >= 1; d /= 2)
            exchange(lower, member, n, d, bytes / (2 * d));
    return true;
}
