/* HAP's Fig. 10. Line numbers in comments are the figure's. */
#include "data/base/free.h"
#include "data/base/heap.h"
#include "synth/hap/reference/reference.h"

#include <math.h>
#include <string.h>

/* A program: its last triple, the program before it, its properties (in Search.sets). */
typedef struct {
    uint32_t parent; /* index, or NONE */
    const Fused *last;
    bool worse;        /* removed from S (line 13), or not to be expanded again */
    bool fresh;        /* nothing was computed since the last synchronization point */
    uint64_t computed; /* hash of the set of computed ops */
    double closed_s;   /* time to the last synchronization point: cost(Q) while partial */
    double score_s;
    /* the open stages: after the last synchronization point, and its mirror image in the
     * backward */
    Times forward, back;
    /* the backward stage before, which a collective of the same step still extends */
    Times before;
    /* the final stage; the least time of ops not yet computed */
    Times update, rest;
} Node;

enum { NONE = UINT32_MAX };

typedef struct {
    const Pricer *pricer;
    ReferenceTheory *theory;
    ReferencePruning pruning;
    uint32_t n_words;
    GArray *nodes;           /* Node */
    GArray *sets;            /* uint64_t [node * n_words] */
    GArray *queue;           /* S: uint32_t, a binary heap by score */
    GHashTable *by_computed; /* computed -> GArray of nodes */
    uint32_t best;           /* Q*: the node before its last triple */
    const Fused *last;       /* the last triple of Q* */
    double best_s;
    uint64_t expansions;
} Search;

static Node *node_at(const Search *s, uint32_t i)
{
    KILTER_ASSERT(i < s->nodes->len);
    return &g_array_index(s->nodes, Node, i);
}

static uint64_t *set_of(const Search *s, uint32_t node)
{
    KILTER_ASSERT((size_t)(node + 1) * s->n_words <= s->sets->len);
    return &g_array_index(s->sets, uint64_t, (size_t)node * s->n_words);
}

/* --- sets of properties --- */

static bool has(const uint64_t *set, uint32_t property)
{
    return set[property / 64] >> (property % 64) & 1u;
}
static void insert(uint64_t *set, uint32_t property)
{
    set[property / 64] |= (uint64_t)1 << (property % 64);
}
static void erase(uint64_t *set, uint32_t property)
{
    set[property / 64] &= ~((uint64_t)1 << (property % 64));
}

static bool includes(const Search *s, const uint64_t *larger, const uint64_t *smaller)
{
    return !any_of(w, s->n_words, smaller[w] & ~larger[w]);
}

/* Line 7: the precondition holds, with the token, and the postcondition says something new. */
static bool applies(const Fused *fused, const uint64_t *set)
{
    if (!has(set, fused->token))
        return false;
    for (uint32_t i = 0; i < fused->n_before; i++)
        if (!has(set, fused->before[i]))
            return false;
    return any_of(i, fused->n_after, !has(set, fused->after[i]));
}

/* Whether an op that is not computed yet reads the property. */
static bool is_read(const Search *s, const uint64_t *set, uint32_t property)
{
    array_each (const uint32_t, u, s->theory->users[property]) {
        const Fused *user = &g_array_index(s->theory->fused, Fused, *u);
        if (user->triple.kind == TRIPLE_COMPUTE && has(set, user->token))
            return true;
    }
    return property == s->theory->goal;
}

/* Whether such an op reads the property, or a property that a collective makes of it. */
static bool is_needed(const Search *s, const uint64_t *set, uint32_t property)
{
    array_each (const uint32_t, u, s->theory->users[property]) {
        const Fused *user = &g_array_index(s->theory->fused, Fused, *u);
        if (user->triple.kind == TRIPLE_COLLECTIVE && has(set, user->token) &&
            !has(set, user->after[0]) && is_read(s, set, user->after[0]))
            return true;
    }
    return is_read(s, set, property);
}

/* Sec. 4.5: a property is redundant when no instruction that could still be appended needs it. The
 * token is dropped with the tensor's last property. */
static void drop_redundant(const Search *s, uint64_t *set, uint32_t tensor)
{
    bool any = false;
    for (Form form = 0; form < FORM_MAX; form++) {
        uint32_t property = tensor * FORM_MAX + form;
        if (!has(set, property))
            continue;
        if (is_needed(s, set, property))
            any = true;
        else
            erase(set, property);
    }
    if (!any)
        erase(set, reference_uncommunicated(s->theory, tensor));
}

/* P(Q'), line 8. */
static void append_properties(const Search *s, const Fused *fused, uint64_t *set)
{
    erase(set, fused->token);
    for (uint32_t i = 0; i < fused->n_after; i++) {
        insert(set, fused->after[i]);
        if (fused->triple.kind == TRIPLE_COMPUTE)
            insert(set, reference_uncommunicated(s->theory, fused->after[i] / FORM_MAX));
    }
    for (uint32_t i = 0; i < fused->n_before; i++)
        drop_redundant(s, set, fused->before[i] / FORM_MAX);
    for (uint32_t i = 0; i < fused->n_after; i++)
        drop_redundant(s, set, fused->after[i] / FORM_MAX);
}

/* --- costs --- */

/* A collective ends the open stages. Its own inner communication belongs to the stages that it
 * opens: forward to the next stage, backward to the stage before. Collectives of one step end them
 * together. */
static void synchronize(const Search *s, const Fused *fused, Node *node)
{
    if (!node->fresh) {
        node->closed_s += times_max(s->pricer, &node->forward);
        node->before = node->back;
        node->forward = node->back = (Times){{0}};
    } else {
        node->closed_s -= times_max(s->pricer, &node->before);
    }
    times_add(s->pricer, &node->before, &fused->back);
    node->closed_s += times_max(s->pricer, &node->before);
    times_add(s->pricer, &node->forward, &fused->forward);
    node->fresh = true;
}

static void append_costs(const Search *s, const Fused *fused, Node *node)
{
    node->closed_s += fused->comm_s;
    if (fused->triple.kind == TRIPLE_COLLECTIVE) {
        synchronize(s, fused, node);
    } else {
        times_add(s->pricer, &node->forward, &fused->forward);
        times_add(s->pricer, &node->back, &fused->back);
        times_add(s->pricer, &node->update, &fused->update);
        for (uint32_t h = 0; h < s->pricer->n_classes; h++)
            node->rest.s[h] -=
                s->theory->least[fused->triple.op * s->pricer->n_classes + h];
        node->fresh = false;
    }
}

/* cost(Q) + ecost(Q): ecost is the least remaining computation, the open stages included, at
 * infinite bandwidth. */
static double score(const Search *s, const Node *node)
{
    const double most = most_over(double, h, s->pricer->n_classes, 0,
                                  node->forward.s[h] + node->back.s[h] +
                                      node->update.s[h] + node->rest.s[h]);
    return node->closed_s + most;
}

/* cost(Q) of a complete program. At the loss the open stages merge; updates are the final stage,
 * even without communication before them. */
static double total(const Search *s, const Node *node)
{
    Times open = node->forward;
    times_add(s->pricer, &open, &node->back);
    return node->closed_s + times_max(s->pricer, &open) +
           times_max(s->pricer, &node->update);
}

/* Whether `a` costs at most what `b` does, in the sense of ReferencePruning. */
static bool not_dearer(const Search *s, const Node *a, const Node *b)
{
    const Pricer *p = s->pricer;
    if (s->pruning == REFERENCE_SCALAR)
        return a->closed_s <= b->closed_s;
    return a->fresh == b->fresh &&
           a->closed_s + times_max_difference(p, &a->forward, &b->forward) +
                   times_max_difference(p, &a->back, &b->back) +
                   times_max_difference(p, &a->update, &b->update) +
                   times_excess(p, &a->before, &b->before) <=
               b->closed_s;
}

/* --- S --- */

static inline bool sooner(const Search *s, const uint32_t *a, const uint32_t *b)
{
    const double x = node_at(s, *a)->score_s, y = node_at(s, *b)->score_s;
    /* of equal scores the later, longer program first */
    return x < y || (x == y && *a > *b);
}

HEAP_DEFINE(open, const Search, uint32_t, 2, sooner, heap_unplaced)

static void reference_push(Search *s, uint32_t node)
{
    KILTER_ASSERT(node < s->nodes->len);
    g_array_append_val(s->queue, node);
    uint32_t *heap = (uint32_t *)(void *)s->queue->data;
    open_rise(s, heap, s->queue->len - 1, node);
    if (kilter_walk_due(s->queue->len))
        KILTER_WALK(open_walk(s, heap, s->queue->len));
}

static uint32_t pop(Search *s)
{
    g_assert(s->queue->len > 0);
    uint32_t *heap = (uint32_t *)(void *)s->queue->data;
    const uint32_t first = heap[0], n = s->queue->len - 1;
    open_sink(s, heap, n, 0, heap[n]);
    g_array_set_size(s->queue, n);
    return first;
}

/* Lines 9 to 14; returns whether the program is kept. Only programs that have computed the same ops
 * can include one another, since the tokens of ops not yet computed are properties too. */
static bool reference_keep(Search *s, const Node *node, const uint64_t *set)
{
    GArray *alike = g_hash_table_lookup(s->by_computed, &node->computed);
    for (uint32_t i = 0; alike && i < alike->len; i++) {
        uint32_t other = g_array_index(alike, uint32_t, i);
        if (not_dearer(s, node_at(s, other), node) && includes(s, set_of(s, other), set))
            return false;
    }
    for (uint32_t i = alike ? alike->len : 0; i-- > 0;) {
        uint32_t other = g_array_index(alike, uint32_t, i);
        if (not_dearer(s, node, node_at(s, other)) &&
            includes(s, set, set_of(s, other))) {
            node_at(s, other)->worse = true;
            g_array_remove_index_fast(alike, i);
        }
    }
    return true;
}

static void reference_add(Search *s, const Node *node, const uint64_t *set)
{
    g_assert(s->sets->len == (size_t)s->nodes->len * s->n_words);
    uint32_t index = s->nodes->len;
    g_array_append_vals(s->nodes, node, 1);
    g_array_append_vals(s->sets, set, s->n_words);
    GArray *alike = g_hash_table_lookup(s->by_computed, &node->computed);
    if (!alike) {
        alike = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_hash_table_insert(s->by_computed,
                            g_memdup2(&node->computed, sizeof node->computed), alike);
    }
    g_array_append_val(alike, index);
    reference_push(s, index);
}

/* --- the loop --- */

/* A pseudorandom word for an op; the hash of a set of ops is the sum of its words. */
static uint64_t hash_op(OpId op)
{
    uint64_t x = (op + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 27;
}

static void append(Search *s, uint32_t parent, const Fused *fused, uint64_t *set)
{
    Node node = *node_at(s, parent);
    memcpy(set, set_of(s, parent), s->n_words * sizeof *set);
    node.parent = parent;
    node.last = fused;
    node.worse = false;
    append_properties(s, fused, set);
    append_costs(s, fused, &node);
    if (fused->triple.kind == TRIPLE_COMPUTE)
        node.computed += hash_op(fused->triple.op);
    node.score_s = score(s, &node);
    if (!reference_keep(s, &node, set))
        return;
    if (has(set, s->theory->goal)) { /* lines 15 to 19 */
        double cost_s = total(s, &node);
        if (cost_s < s->best_s) {
            s->best_s = cost_s;
            s->best = parent;
            s->last = fused;
        }
    } else {
        reference_add(s, &node, set);
    }
}

static void add_empty_program(Search *s)
{
    const ReferenceTheory *theory = s->theory;
    g_autofree uint64_t *set = g_new0(uint64_t, s->n_words);
    Node node = {.parent = NONE, .fresh = true};
    for (OpId id = 0; id < theory->n_ops; id++) {
        insert(set, reference_uncomputed(theory, id));
        for (uint32_t h = 0; h < s->pricer->n_classes; h++)
            node.rest.s[h] += theory->least[id * s->pricer->n_classes + h];
    }
    node.score_s = score(s, &node);
    reference_add(s, &node, set);
}

static void reference_walk(Search *s)
{
    g_autofree uint64_t *set = g_new(uint64_t, s->n_words);
    add_empty_program(s);
    while (s->queue->len > 0) {
        uint32_t node = pop(s);
        if (node_at(s, node)->worse)
            continue;
        if (!(node_at(s, node)->score_s < s->best_s)) /* line 5 */
            break;
        s->expansions++;
        array_each (const Fused, fused, s->theory->fused)
            if (applies(fused, set_of(s, node)))
                append(s, node, fused, set);
    }
}

static Program *best_program(const Search *s, GError **error)
{
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    g_ptr_array_add(chosen, (gpointer)s->last);
    for (uint32_t i = s->best; node_at(s, i)->last; i = node_at(s, i)->parent)
        g_ptr_array_insert(chosen, 0, (gpointer)node_at(s, i)->last);
    return reference_emit(s->theory, chosen->len, (const Fused *const *)chosen->pdata,
                          NULL, error);
}

static bool reference_run(Search *s, SynthResult *result, GError **error)
{
    s->theory = reference_theory_new(s->pricer, error);
    if (!s->theory)
        return false;
    s->n_words = (reference_properties(s->theory) + 63) / 64;
    reference_walk(s);
    result->states = g_hash_table_size(s->by_computed);
    result->labels = s->nodes->len;
    result->expansions = s->expansions;
    if (!s->last)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "model '%s': the reference search found no program",
                           graph_name(s->pricer->graph));
    result->program = best_program(s, error);
    return result->program != NULL;
}

bool reference_search(const Graph *graph, const ClusterView *view, const double *ratio,
                      ReferencePruning pruning, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    gint64 start = g_get_monotonic_time();
    g_auto(Pricer) pricer = {0};
    pricer_init(&pricer, graph, view, ratio, NULL);
    pricer.direct = true;
    Search s = {.pricer = &pricer,
                .pruning = pruning,
                .nodes = g_array_new(FALSE, FALSE, sizeof(Node)),
                .sets = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
                .queue = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                .by_computed = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                                     (GDestroyNotify)g_array_unref),
                .best_s = INFINITY};
    bool done = reference_run(&s, result, error);
    if (done)
        result->time_s = synth_time(&pricer, result->program, ratio, 0);
    reference_theory_free(s.theory);
    g_hash_table_destroy(s.by_computed);
    unref_arrays(s.queue, s.sets, s.nodes);
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

bool synth_reference(const Graph *graph, const ClusterView *view, const double *ratio,
                     SynthResult *result, GError **error)
{
    return reference_search(graph, view, ratio, REFERENCE_SCALAR, result, error);
}
