/* Brute force with pruning: of the programs that reach a state, only the fastest is kept. */
#include "tests/support/brute_force.h"

#include <math.h>
#include <string.h>

/* The one program that is kept per state. */
typedef struct {
    Stages stages;
    uint32_t rule[MAX_OPS];
    bool deferred[MAX_OPS];
    Form sum[MAX_TENSORS], held[MAX_TENSORS];
    Place place[MAX_TENSORS];
    bool keeps[MAX_OPS][MAX_IN];
} Prefix;

typedef struct {
    bool with_open;
    const Prefix *from;
    GHashTable *next; /* state -> Prefix */
    double best_s;    /* of whole programs */
} Step;

static void restore(Brute *b, const Prefix *prefix)
{
    memcpy(b->rule, prefix->rule, sizeof b->rule);
    memcpy(b->deferred, prefix->deferred, sizeof b->deferred);
    memcpy(b->sum, prefix->sum, sizeof b->sum);
    memcpy(b->held, prefix->held, sizeof b->held);
    memcpy(b->place, prefix->place, sizeof b->place);
    memcpy(b->keeps, prefix->keeps, sizeof b->keeps);
}

static void save(const Brute *b, const Stages *stages, Prefix *prefix)
{
    prefix->stages = *stages;
    memcpy(prefix->rule, b->rule, sizeof b->rule);
    memcpy(prefix->deferred, b->deferred, sizeof b->deferred);
    memcpy(prefix->sum, b->sum, sizeof b->sum);
    memcpy(prefix->held, b->held, sizeof b->held);
    memcpy(prefix->place, b->place, sizeof b->place);
    memcpy(prefix->keeps, b->keeps, sizeof b->keeps);
}

static double open_s(const Brute *b, const Stages *s)
{
    double longest_s = 0;
    for (uint32_t j = 0; j < b->m; j++)
        longest_s = fmax(longest_s, s->first_s[j] + s->forward_s[j] + s->backward_s[j] +
                                        s->last_s[j]);
    return longest_s;
}

static bool better(const Brute *b, const Stages *x, const Stages *y, bool with_open)
{
    double open_x = open_s(b, x), open_y = open_s(b, y);
    if (with_open)
        return x->s + open_x < y->s + open_y;
    return x->s < y->s || (x->s == y->s && open_x < open_y);
}

static void keep(Brute *b, OpId id, const Stages *stages, Step *step)
{
    if (id + 1 == b->n_ops) {
        /* what no op can shorten any more is priced in closed form */
        if (stages->s + open_s(b, stages) < step->best_s)
            step->best_s = fmin(step->best_s, brute_program_s(b));
        return;
    }
    uint64_t state = brute_state(b, id + 1);
    Prefix *kept = g_hash_table_lookup(step->next, &state);
    if (kept && !better(b, stages, &kept->stages, step->with_open))
        return;
    if (!kept)
        g_hash_table_insert(step->next, g_memdup2(&state, sizeof state),
                            kept = g_new(Prefix, 1));
    save(b, stages, kept);
}

static void each_place(Brute *b, OpId id, uint32_t p, const Stages *stages, Step *step)
{
    if (p == b->unit[id].n_parameters) {
        keep(b, id, stages, step);
        return;
    }
    const GArray *places = brute_places(b, id, p);
    for (uint32_t i = 0; i < places->len; i++) {
        const Place *place = &g_array_index(places, Place, i);
        Stages next = *stages;
        next.s += place->comm_s;
        brute_add_seconds(b, next.first_s, place->initial_s);
        brute_add_seconds(b, next.last_s, place->final_s);
        b->place[graph_get_op(b->graph, id)->in[b->unit[id].parameter[p]]] = *place;
        each_place(b, id, p + 1, &next, step);
    }
}

static void extend(Brute *b, OpId id, const Run *run, void *data)
{
    Step *step = data;
    Stages stages = brute_after(b, &step->from->stages, run);
    uint32_t rules[MAX_OPS];
    memcpy(rules, b->rule, sizeof rules);
    each_place(b, id, 0, &stages, step);
    memcpy(b->rule, rules, sizeof rules); /* places set the rules of updates */
}

double brute_pruned(Brute *b, bool with_open)
{
    g_autoptr(GHashTable) kept =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    uint64_t start = brute_state(b, 0);
    g_hash_table_insert(kept, g_memdup2(&start, sizeof start), g_new0(Prefix, 1));
    Step step = {.with_open = with_open, .best_s = INFINITY};
    brute_prepare(b);
    b->steps = 0;
    b->max_steps = UINT64_MAX;
    for (OpId id = 0; id < b->n_ops; id++) {
        GHashTableIter iter;
        gpointer prefix;
        step.next = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
        g_hash_table_iter_init(&iter, kept);
        while (g_hash_table_iter_next(&iter, NULL, &prefix)) {
            step.from = prefix;
            restore(b, prefix);
            brute_each_run(b, id, extend, &step);
        }
        g_hash_table_unref(kept);
        kept = step.next;
    }
    return step.best_s;
}
