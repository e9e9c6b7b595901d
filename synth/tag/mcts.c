/* TAG's tree search. A vertex of depth i has decided the first i groups in the order of cost. */
#include <math.h>
#include <string.h>

#include "synth/tag/search_state.h"

typedef struct {
    uint32_t
        first_child; /* 0: it is a leaf; the others follow, an action each, shuffled */
    uint32_t visits;
    double sum; /* of rewards */
    uint16_t action;
    bool finished; /* all below it has been visited */
} Vertex;

typedef struct {
    TagState *t;
    GArray *vertex;
    double dp_s; /* of data parallelism */
    double c;
} Tree;

static Vertex *at(const Tree *tree, uint32_t i)
{
    return &g_array_index(tree->vertex, Vertex, i);
}

/* Children in random order: of equal ones the first is taken. */
static void expand(Tree *tree, uint32_t i)
{
    TagState *t = tree->t;
    const uint32_t n = t->space->n_actions, first = tree->vertex->len;
    for (uint32_t s = 0; s < n; s++) {
        const Vertex child = {.action = (uint16_t)s};
        g_array_append_val(tree->vertex, child);
    }
    for (uint32_t s = n; s > 1; s--) {
        const uint32_t other = (uint32_t)g_rand_int_range(t->rand, 0, (gint32)s);
        const uint16_t action = at(tree, first + s - 1)->action;
        at(tree, first + s - 1)->action = at(tree, first + other)->action;
        at(tree, first + other)->action = action;
    }
    at(tree, i)->first_child = first;
}

static double prior(const Tree *tree)
{
    return 1.0 / tree->t->space->n_actions;
}

/* The child with the largest Q + c G sqrt(sum N) / (1 + N). */
static uint32_t select_child(const Tree *tree, uint32_t i)
{
    const Vertex *parent = at(tree, i);
    uint32_t best = UINT32_MAX;
    double most = -INFINITY;
    for (uint32_t s = 0; s < tree->t->space->n_actions; s++) {
        const Vertex *child = at(tree, parent->first_child + s);
        const double q = child->visits ? child->sum / child->visits : 0;
        const double u =
            q + tree->c * prior(tree) * sqrt(parent->visits) / (1 + child->visits);
        if (u <= most || (tree->t->search->leave && child->finished))
            continue;
        most = u;
        best = parent->first_child + s;
    }
    return best;
}

static double reward(const Tree *tree, TagScore score)
{
    const double r = tree->dp_s / score.time_s - 1;
    if (score.lacks > 0)
        return -1;
    return r > 1 ? pow(r, 0.25) : r;
}

/* Undecided groups do what the first one does. */
static void complete(const TagState *t, uint16_t *action, uint32_t depth)
{
    for (uint32_t i = MAX(depth, 1); i < t->n; i++)
        action[t->by_cost[i]] = action[t->by_cost[0]];
}

static void finish(Tree *tree, const uint32_t *path, uint32_t depth)
{
    at(tree, path[depth])->finished |= depth == tree->t->n;
    while (depth-- > 0 && tree->t->search->leave) {
        Vertex *vertex = at(tree, path[depth]);
        bool all = true;
        for (uint32_t s = 0; all && s < tree->t->space->n_actions; s++)
            all = at(tree, vertex->first_child + s)->finished;
        if (!all)
            return;
        vertex->finished = true;
    }
}

/* Down to a leaf, which gets children, and one of them a visit. */
static void iterate(Tree *tree, uint16_t *action, uint32_t *path)
{
    TagState *t = tree->t;
    uint32_t depth = 0;
    path[0] = 0;
    while (depth < t->n) {
        const bool leaf = at(tree, path[depth])->first_child == 0;
        if (leaf)
            expand(tree, path[depth]);
        path[depth + 1] = select_child(tree, path[depth]);
        action[t->by_cost[depth]] = at(tree, path[depth + 1])->action;
        depth++;
        if (leaf)
            break;
    }
    complete(t, action, depth);
    const TagScore score = tag_state_try(t, action, INFINITY);
    const double r = reward(tree, score);
    for (uint32_t k = 0; k <= depth; k++) {
        at(tree, path[k])->visits++;
        at(tree, path[k])->sum += r;
    }
    finish(tree, path, depth);
    t->result->iterations++;
    if (t->result->to_beat_dp == 0 && score.lacks <= 0 && score.time_s < tree->dp_s)
        t->result->to_beat_dp = t->result->iterations;
}

void tag_search_tree(TagState *t)
{
    g_autoptr(GArray) vertex = g_array_new(FALSE, FALSE, sizeof(Vertex));
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    g_autofree uint32_t *path = g_new(uint32_t, t->n + 1);
    const Vertex root = {0};
    g_array_append_val(vertex, root);
    for (uint32_t i = 0; i < t->n; i++)
        action[i] = (uint16_t)tag_data_parallel(t->space);
    Tree tree = {.t = t,
                 .vertex = vertex,
                 .dp_s = tag_state_try(t, action, INFINITY).time_s,
                 .c = sqrt(t->space->n_actions / 10.0)};
    const uint32_t most = t->search->evaluations;
    /* As in the paper, iterations are counted: many of them visit what is known. */
    while (
        t->result->iterations < most && !at(&tree, 0)->finished &&
        (t->search->deadline_us == 0 || g_get_monotonic_time() < t->search->deadline_us))
        iterate(&tree, action, path);
}
