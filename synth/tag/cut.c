/* Dinic's algorithm: in each phase a breadth-first search from the source gives levels, and a
 * depth-first one, with an explicit stack, saturates all shortest paths. */
#include "synth/tag/cut.h"

#include <string.h>

#include "data/base/assert.h"

#define NO_ARC UINT32_MAX

enum { SOURCE, SINK };

typedef struct {
    uint32_t to, next; /* next: next arc of the same node */
    int64_t left;
} Arc;

struct Cut {
    uint32_t n_nodes;
    GArray *arc;     /* Arc; arc ^ 1 is its reverse */
    uint32_t *first; /* [node] */
    uint32_t *at;    /* [node]: its current arc in this phase */
    uint32_t *level; /* [node] */
    uint32_t *queue; /* nodes */
    uint32_t *path;  /* arcs */
};

Cut *cut_new(uint32_t n_nodes)
{
    Cut *cut = g_new0(Cut, 1);
    cut->n_nodes = n_nodes;
    cut->arc = g_array_new(FALSE, FALSE, sizeof(Arc));
    cut->first = g_new(uint32_t, n_nodes);
    cut->at = g_new(uint32_t, n_nodes);
    cut->level = g_new(uint32_t, n_nodes);
    cut->queue = g_new(uint32_t, n_nodes);
    cut->path = g_new(uint32_t, n_nodes);
    for (uint32_t i = 0; i < n_nodes; i++)
        cut->first[i] = NO_ARC;
    return cut;
}

void cut_free(Cut *cut)
{
    if (!cut)
        return;
    g_array_unref(cut->arc);
    g_free(cut->first);
    g_free(cut->at);
    g_free(cut->level);
    g_free(cut->queue);
    g_free(cut->path);
    g_free(cut);
}

static Arc *arc_at(const Cut *cut, uint32_t i)
{
    KILTER_ASSERT(i < cut->arc->len);
    return &g_array_index(cut->arc, Arc, i);
}

static void add_half(Cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    KILTER_ASSERT(capacity >= 0 && from < cut->n_nodes && to < cut->n_nodes);
    const Arc arc = {to, cut->first[from], capacity};
    cut->first[from] = cut->arc->len;
    g_array_append_val(cut->arc, arc);
}

void cut_arc(Cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    g_assert(from < cut->n_nodes && to < cut->n_nodes && capacity >= 0);
    add_half(cut, from, to, capacity);
    add_half(cut, to, from, 0);
}

/* Finds the levels of all nodes reachable from the source; returns whether the sink is. */
static bool find_levels(Cut *cut)
{
    uint32_t head = 0, tail = 0;
    memset(cut->level, 0xff, cut->n_nodes * sizeof *cut->level);
    cut->level[SOURCE] = 0;
    cut->queue[tail++] = SOURCE;
    while (head < tail) {
        const uint32_t node = cut->queue[head++];
        for (uint32_t i = cut->first[node]; i != NO_ARC; i = arc_at(cut, i)->next) {
            const Arc *arc = arc_at(cut, i);
            if (arc->left == 0 || cut->level[arc->to] != UINT32_MAX)
                continue;
            cut->level[arc->to] = cut->level[node] + 1;
            cut->queue[tail++] = arc->to;
        }
    }
    return cut->level[SINK] != UINT32_MAX;
}

/* The next arc of a node that leads one level down and has room, or NO_ARC. */
static uint32_t next_arc(Cut *cut, uint32_t node)
{
    uint32_t i = cut->at[node];
    while (i != NO_ARC && (arc_at(cut, i)->left == 0 ||
                           cut->level[arc_at(cut, i)->to] != cut->level[node] + 1))
        i = arc_at(cut, i)->next;
    return cut->at[node] = i;
}

/* Pushes flow along the path to the sink; returns the length of the path before its first full
 * arc. */
static uint32_t push(Cut *cut, uint32_t n, int64_t *flow)
{
    int64_t least = INT64_MAX;
    uint32_t left = n;
    for (uint32_t k = 0; k < n; k++)
        least = MIN(least, arc_at(cut, cut->path[k])->left);
    for (uint32_t k = n; k-- > 0;) {
        arc_at(cut, cut->path[k])->left -= least;
        arc_at(cut, cut->path[k] ^ 1u)->left += least;
        if (arc_at(cut, cut->path[k])->left == 0)
            left = k;
    }
    *flow += least;
    return left;
}

static int64_t run_phase(Cut *cut)
{
    int64_t flow = 0;
    uint32_t n = 0, node = SOURCE;
    memcpy(cut->at, cut->first, cut->n_nodes * sizeof *cut->at);
    for (;;) {
        if (node == SINK) {
            n = push(cut, n, &flow);
            node = n ? arc_at(cut, cut->path[n - 1])->to : SOURCE;
            continue;
        }
        const uint32_t i = next_arc(cut, node);
        if (i != NO_ARC) {
            cut->path[n++] = i;
            node = arc_at(cut, i)->to;
        } else if (n > 0) {
            cut->level[node] = UINT32_MAX; /* a dead end */
            n--;
            node = n ? arc_at(cut, cut->path[n - 1])->to : SOURCE;
        } else {
            return flow;
        }
    }
}

int64_t cut_solve(Cut *cut, bool *on_source_side)
{
    int64_t flow = 0;
    while (find_levels(cut))
        flow += run_phase(cut);
    for (uint32_t i = 0; i < cut->n_nodes; i++)
        on_source_side[i] = cut->level[i] != UINT32_MAX;
    return flow;
}
