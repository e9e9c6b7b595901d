/* TAG's tree search. A vertex of depth i has decided the first i groups in the order of cost. */
#include <math.h>
#include <string.h>

#include "synth/tag/search_state.h"

typedef struct {
    /* 0: a leaf; else one child per action from here on, shuffled */
    uint32_t first_child;
    uint32_t visits;
    double sum; /* sum of rewards */
    double prior;
    uint16_t action;
    bool finished; /* everything below it has been visited */
} Vertex;

typedef struct {
    TagState *t;
    GArray *vertex;
    double dp_s; /* seconds of data parallelism */
    double c;
    double unknown; /* reward of a visit until it is evaluated */
    NetCase *net;   /* NULL: there is no network */
} Tree;

static Vertex *mcts_at(const Tree *tree, uint32_t i)
{
    return &g_array_index(tree->vertex, Vertex, i);
}

/* Adds children in random order, as the first of equal children is taken. */
static void expand(Tree *tree, uint32_t i, const uint16_t *decided, uint32_t depth)
{
    TagState *t = tree->t;
    const uint32_t n = t->space->n_actions, first = tree->vertex->len;
    g_autofree double *prior = g_new(double, n);
    for (uint32_t s = 0; s < n; s++)
        prior[s] = 1.0 / n;
    if (t->search->net) {
        g_autoptr(NetView) view = tag_state_view(t, tree->net, decided, depth);
        tag_net_priors(t->search->net, view, prior);
    }
    for (uint32_t s = 0; s < n; s++) {
        const Vertex child = {.action = (uint16_t)s, .prior = prior[s]};
        g_array_append_val(tree->vertex, child);
    }
    for (uint32_t s = n; s > 1; s--) {
        const uint32_t other = (uint32_t)g_rand_int_range(t->rand, 0, (gint32)s);
        const Vertex last = *mcts_at(tree, first + s - 1);
        *mcts_at(tree, first + s - 1) = *mcts_at(tree, first + other);
        *mcts_at(tree, first + other) = last;
    }
    mcts_at(tree, i)->first_child = first;
}

/* The child with the largest Q + c G sqrt(sum N) / (1 + N). */
static uint32_t select_child(const Tree *tree, uint32_t i)
{
    const Vertex *parent = mcts_at(tree, i);
    uint32_t best = UINT32_MAX;
    double most = -INFINITY;
    for (uint32_t s = 0; s < tree->t->space->n_actions; s++) {
        const Vertex *child = mcts_at(tree, parent->first_child + s);
        const double q = child->visits ? child->sum / child->visits : 0;
        const double u =
            q + tree->c * child->prior * sqrt(parent->visits) / (1 + child->visits);
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

static void finish(Tree *tree, const uint32_t *path, uint32_t depth)
{
    mcts_at(tree, path[depth])->finished |= depth == tree->t->n;
    while (depth-- > 0 && tree->t->search->leave) {
        Vertex *vertex = mcts_at(tree, path[depth]);
        bool all = true;
        for (uint32_t s = 0; all && s < tree->t->space->n_actions; s++)
            all = mcts_at(tree, vertex->first_child + s)->finished;
        if (!all)
            return;
        vertex->finished = true;
    }
}

/* Vertices from the root to the one that is visited, and its strategy. */
typedef struct {
    uint32_t *vertex; /* [depth + 1] */
    uint32_t depth;
    uint16_t *action; /* [op group] */
} Visit;

/* Descends to a leaf, expands it, and chooses one of its children. */
static void mcts_descend(Tree *tree, Visit *visit)
{
    TagState *t = tree->t;
    uint32_t *path = visit->vertex, depth = 0;
    uint16_t *action = visit->action;
    path[0] = 0;
    while (depth < t->n) {
        const bool leaf = mcts_at(tree, path[depth])->first_child == 0;
        if (leaf)
            expand(tree, path[depth], action, depth);
        path[depth + 1] = select_child(tree, path[depth]);
        action[t->by_cost[depth]] = mcts_at(tree, path[depth + 1])->action;
        depth++;
        if (leaf)
            break;
    }
    tag_state_complete(t, action, depth);
    visit->depth = depth;
    for (uint32_t k = 0; k <= depth; k++) {
        mcts_at(tree, path[k])->visits++;
        mcts_at(tree, path[k])->sum += tree->unknown;
    }
    finish(tree, path, depth);
}

static void back_up(Tree *tree, const Visit *visit)
{
    TagState *t = tree->t;
    const TagScore score = tag_state_try(t, visit->action, INFINITY);
    const double r = reward(tree, score);
    for (uint32_t k = 0; k <= visit->depth; k++)
        mcts_at(tree, visit->vertex[k])->sum += r - tree->unknown;
    t->result->iterations++;
    if (t->result->to_beat_dp == 0 && score.lacks <= 0 && score.time_s < tree->dp_s)
        t->result->to_beat_dp = t->result->iterations;
}

/* Chooses the leaves of a round, evaluates them, and backs them up in the order of choice. */
static void run_round(Tree *tree, Visit *visit, uint16_t *action, uint32_t most)
{
    TagState *t = tree->t;
    uint32_t n = 0;
    for (; n < most && !mcts_at(tree, 0)->finished; n++) {
        visit[n].action = &action[(gsize)n * t->n];
        if (n > 0) /* groups that no vertex decides get actions below */
            memcpy(visit[n].action, visit[n - 1].action, t->n * sizeof *action);
        mcts_descend(tree, &visit[n]);
    }
    if (n > 1)
        tag_evaluate_ahead(t->evaluator, action, n, t->search->threads);
    for (uint32_t k = 0; k < n; k++)
        back_up(tree, &visit[k]);
}

/* Keeps the lessons of a vertex that was visited often, and of the vertices below it. */
static void keep_lessons(const Tree *tree, uint32_t i, uint16_t *action, uint32_t depth)
{
    const TagState *t = tree->t;
    const Vertex *vertex = mcts_at(tree, i);
    if (depth == t->n || vertex->first_child == 0 ||
        vertex->visits < t->search->lesson_visits)
        return;
    NetLesson *lesson = g_new0(NetLesson, 1);
    double sum = 0;
    lesson->view = tag_state_view(t, tree->net, action, depth);
    lesson->target = g_new0(double, t->space->n_actions);
    for (uint32_t s = 0; s < t->space->n_actions; s++)
        sum += mcts_at(tree, vertex->first_child + s)->visits;
    for (uint32_t s = 0; s < t->space->n_actions; s++) {
        const Vertex *child = mcts_at(tree, vertex->first_child + s);
        lesson->target[child->action] = child->visits / sum;
    }
    g_ptr_array_add(t->search->lessons, lesson);
    for (uint32_t s = 0; s < t->space->n_actions; s++) {
        action[t->by_cost[depth]] = mcts_at(tree, vertex->first_child + s)->action;
        keep_lessons(tree, vertex->first_child + s, action, depth + 1);
    }
}

void tag_search_tree(TagState *t)
{
    g_autoptr(GArray) vertex = g_array_new(FALSE, FALSE, sizeof(Vertex));
    const uint32_t leaves = MAX(t->search->leaves, 1);
    g_autofree uint16_t *action = g_new(uint16_t, (gsize)leaves * t->n + 1);
    g_autofree uint32_t *path = g_new(uint32_t, (gsize)leaves * (t->n + 1));
    g_autofree Visit *visit = g_new0(Visit, leaves);
    const Vertex root = {0};
    g_array_append_val(vertex, root);
    for (uint32_t i = 0; i < t->n; i++)
        action[i] = (uint16_t)tag_data_parallel(t->space);
    Tree tree = {.t = t,
                 .vertex = vertex,
                 .dp_s = tag_state_try(t, action, INFINITY).time_s,
                 .c = sqrt(t->space->n_actions / 10.0),
                 .unknown = leaves > 1 ? -1 : 0};
    if (t->search->net || t->search->lessons)
        tree.net =
            net_case_new(t->space, t->work, t->quick, t->search->objective, tree.dp_s);
    for (uint32_t k = 0; k < leaves; k++)
        visit[k].vertex = &path[(gsize)k * (t->n + 1)];
    const uint32_t most = t->search->evaluations;
    /* As in the paper, iterations are counted: many of them visit known strategies. */
    while (t->result->iterations < most && !mcts_at(&tree, 0)->finished &&
           !(t->search->until_beaten && t->result->to_beat_dp > 0) &&
           !tag_state_is_late(t))
        run_round(&tree, visit, action, MIN(leaves, most - t->result->iterations));
    if (t->search->lessons)
        keep_lessons(&tree, 0, action, 0);
    net_case_free(tree.net);
}
