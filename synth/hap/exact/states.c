/* Building the state graph, and its relaxation. */
#include "synth/hap/exact/states.h"

#include "data/base/free.h"

#include <math.h>
#include <string.h>

/* HAP's programs are found over the forms of all tensors that are alive together, whose
 * number is the product over them: models in which many are are not searched. */
#define OTHERS                                                                       \
    ", and hap tries all their forms together; joint, hidup and manual search such " \
    "models"

bool states_late(States *s)
{
    s->late = s->late || (s->deadline_us > 0 && g_get_monotonic_time() >= s->deadline_us);
    return s->late;
}

/* --- preparation --- */

/* Position of a tensor among those alive at a cut, or -1. */
static int position_of(const Cut *cut, TensorId tensor)
{
    KILTER_ASSERT(cut->n_live <= MAX_LIVE);
    for (uint32_t i = 0; i < cut->n_live; i++)
        if (cut->live[i] == tensor)
            return (int)i;
    return -1;
}

/* The last forward op that reads each tensor. Caller frees. */
static OpId *last_readers(const States *s)
{
    const Graph *graph = s->pricer->graph;
    OpId *last = g_new0(OpId, graph_n_tensors(graph));
    for (OpId id = 0; id < s->n_ops; id++)
        for (uint32_t i = 0; i < graph_get_op(graph, id)->n_in; i++)
            last[graph_get_op(graph, id)->in[i]] = id;
    return last;
}

static bool prepare_live(States *s, const OpId *last, GError **error)
{
    const Graph *graph = s->pricer->graph;
    for (OpId id = 0; id < s->n_ops; id++) {
        const Cut *cut = &s->cut[id];
        Cut *after = &s->cut[id + 1];
        TensorId candidate[MAX_LIVE + OP_MAX_OUT];
        uint32_t n = cut->n_live;
        memcpy(candidate, cut->live, n * sizeof *candidate);
        for (uint32_t o = 0; o < graph_get_op(graph, id)->n_out; o++)
            candidate[n++] = graph_get_op(graph, id)->out[o];
        for (uint32_t i = 0; i < n; i++) {
            if (last[candidate[i]] <= id)
                continue;
            if (after->n_live == MAX_LIVE)
                return kilter_fail(error, KILTER_ERROR_FAILED,
                                   "more than %d tensors are alive after op '%s'" OTHERS,
                                   MAX_LIVE, graph_get_op(graph, id)->name);
            after->live[after->n_live++] = candidate[i];
        }
    }
    return true;
}

static bool is_input(const OpView *view, TensorId tensor)
{
    const bool input = any_of(i, view->n_in, view->tensor[i] == tensor);
    return input;
}

/* Numbers the states of a cut, with inputs of the next op as outermost digits, in their order. */
static bool number_states(States *s, OpId id, const OpView *view, GError **error)
{
    /* bounds a cut's memory; graphs that need more are refused */
    enum { MAX_STATES = 1 << 24 };
    Cut *cut = &s->cut[id];
    uint32_t order[MAX_LIVE], n = 0;
    for (uint32_t i = 0; i < view->n_in; i++)
        if (i == 0 || view->tensor[i] != view->tensor[0])
            order[n++] = (uint32_t)position_of(cut, view->tensor[i]);
    for (uint32_t p = 0; p < cut->n_live; p++)
        if (!is_input(view, cut->live[p]))
            order[n++] = p;
    uint64_t states = 1;
    for (uint32_t k = n; k-- > 0;) {
        cut->stride[order[k]] = (uint32_t)states;
        states *= range_of(s->pricer->graph, cut->live[order[k]]).n;
        if (states > MAX_STATES)
            return kilter_fail(
                error, KILTER_ERROR_FAILED,
                "op '%s': the tensors alive before it have too many states" OTHERS,
                graph_get_op(s->pricer->graph, id)->name);
    }
    cut->n_states = (uint32_t)states;
    return true;
}

static gpointer exact_find(GHashTable *table, const GString *key)
{
    g_autoptr(GBytes) bytes = g_bytes_new_static(key->str, key->len);
    return g_hash_table_lookup(table, bytes);
}

static void exact_keep(GHashTable *table, const GString *key, gpointer value)
{
    g_hash_table_insert(table, g_bytes_new(key->str, key->len), value);
}

static Choices *choices_of(States *s, const OpView *view, const OpId *last, GString *key,
                           GError **error)
{
    const Op *op = graph_get_op(s->pricer->graph, view->op);
    bool survives[TRANSITION_IN] = {0}, lives[TRANSITION_OUT] = {0};
    for (uint32_t i = 0; i < view->n_in; i++)
        survives[i] = last[view->tensor[i]] > view->op;
    for (uint32_t o = 0; o < op->n_out && o < TRANSITION_OUT; o++)
        lives[o] = last[op->out[o]] > view->op;
    g_string_set_size(key, 0);
    g_string_append_len(key, (const char *)survives, sizeof survives);
    g_string_append_len(key, (const char *)lives, sizeof lives);
    op_view_describe(s->pricer, view, key);
    Choices *choices = exact_find(s->choices, key);
    if (choices)
        return choices;
    choices = choices_new(s->pricer, view, survives, lives, error);
    if (choices)
        exact_keep(s->choices, key, choices);
    return choices;
}

/* A tensor's numbers, and the amounts that they add to a state of the next cut. */
typedef struct {
    uint32_t n, stride;
} Digit;

static Digit digit_of(const States *s, OpId id, TensorId tensor)
{
    const Cut *next = &s->cut[id + 1];
    g_assert(position_of(next, tensor) >= 0);
    return (Digit){range_of(s->pricer->graph, tensor).n,
                   next->stride[position_of(next, tensor)]};
}

/* Sums of all digits' parts, the last digit innermost. */
static uint32_t *sums_of(uint32_t n, const Digit *digit, uint32_t *n_sums)
{
    *n_sums = 1;
    for (uint32_t d = 0; d < n; d++)
        *n_sums *= digit[d].n;
    uint32_t *sum = g_new(uint32_t, *n_sums);
    for (uint32_t i = 0; i < *n_sums; i++) {
        uint32_t rest = i;
        sum[i] = 0;
        for (uint32_t d = n; d-- > 0;) {
            sum[i] += rest % digit[d].n * digit[d].stride;
            rest /= digit[d].n;
        }
    }
    return sum;
}

static const Move *move_of(States *s, const OpView *view, Choices *choices, GString *key)
{
    const Op *op = graph_get_op(s->pricer->graph, view->op);
    const Cut *cut = &s->cut[view->op];
    Digit moved[TRANSITION_IN + TRANSITION_OUT], other[MAX_LIVE];
    uint32_t n_moved = 0, n_other = 0;
    for (uint32_t i = 0; i < view->n_in; i++)
        if (choices->survives[i])
            moved[n_moved++] = digit_of(s, view->op, view->tensor[i]);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (choices->lives[o])
            moved[n_moved++] = digit_of(s, view->op, op->out[o]);
    for (uint32_t p = 0; p < cut->n_live; p++)
        if (!is_input(view, cut->live[p]))
            other[n_other++] = digit_of(s, view->op, cut->live[p]);
    g_string_set_size(key, 0);
    g_string_append_len(key, (const char *)&choices, sizeof choices);
    g_string_append_len(key, (const char *)moved, (gssize)(n_moved * sizeof *moved));
    g_string_append_len(key, (const char *)other, (gssize)(n_other * sizeof *other));
    Move *move = exact_find(s->moves, key);
    if (move)
        return move;
    move = g_new0(Move, 1);
    uint32_t n_after;
    move->choices = choices;
    move->after = sums_of(n_moved, moved, &n_after);
    move->other_after = sums_of(n_other, other, &move->n_others);
    move->in_order = true;
    for (uint32_t o = 0; o < move->n_others; o++)
        move->in_order &= move->other_after[o] == o;
    g_assert(n_after == choices->n_to);
    exact_keep(s->moves, key, move);
    return move;
}

static FREE_DEFINE(move_free, Move, move, free_each(move->after, move->other_after));

static FREE_DEFINE(costs_free, Costs, costs, g_free(costs->s));

static bool exact_prepare(States *s, GError **error)
{
    g_autofree OpId *last = last_readers(s);
    g_autofree OpView *view = g_new(OpView, s->n_ops);
    g_autoptr(GString) key = g_string_new("");
    if (!prepare_live(s, last, error))
        return false;
    s->cut[s->n_ops].n_states = 1;
    for (OpId id = 0; id < s->n_ops; id++)
        if (!op_view_read(s->pricer->graph, id, &view[id], error) ||
            !number_states(s, id, &view[id], error))
            return false;
    for (OpId id = 0; id < s->n_ops; id++) {
        Choices *choices = choices_of(s, &view[id], last, key, error);
        if (!choices)
            return false;
        s->cut[id].move = move_of(s, &view[id], choices, key);
    }
    return true;
}

States *states_new(const Pricer *pricer, GError **error)
{
    States *s = g_new0(States, 1);
    s->pricer = pricer;
    s->n_ops = graph_tensor(pricer->graph, graph_loss(pricer->graph))->producer + 1;
    s->cut = g_new0(Cut, s->n_ops + 1);
    s->choices =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref,
                              (GDestroyNotify)choices_free);
    s->moves =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref,
                              (GDestroyNotify)move_free);
    s->known = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                     (GDestroyNotify)g_bytes_unref, g_free);
    s->costs = g_ptr_array_new_with_free_func((GDestroyNotify)costs_free);
    if (!exact_prepare(s, error)) {
        states_free(s);
        return NULL;
    }
    return s;
}

void states_price(States *s, const Pricer *pricer)
{
    s->pricer = pricer;
    s->late = false;
    s->n_states = 0;
    g_hash_table_remove_all(s->known);
    g_ptr_array_set_size(s->costs, 0);
    table_each (key, choices, s->choices)
        choices_price(choices, pricer);
}

FREE_DEFINE(states_free, States, s, g_hash_table_destroy(s->known),
            g_hash_table_destroy(s->moves), g_hash_table_destroy(s->choices),
            g_ptr_array_unref(s->costs), g_free(s->cut));

/* --- costs to the end --- */

/* Costs that equal other costs up to a constant. */
typedef struct {
    const Costs *costs;
    Times offset;
} Shifted;

static Costs *costs_new(States *s, uint32_t n, const Move *move)
{
    g_assert(n > 0 && s->pricer->n_classes > 0);
    Costs *costs = g_new(Costs, 1);
    *costs = (Costs){n, g_new(double, (size_t)s->pricer->n_classes *n), move};
    g_ptr_array_add(s->costs, costs);
    s->n_states += n;
    return costs;
}

/* Whether `a` equals `b` plus a constant per class, which goes to *offset. */
static bool shift_of(const States *s, const Costs *a, const Costs *b, Times *offset)
{
    if (a->n != b->n)
        return false;
    for (uint32_t h = 0; h < s->pricer->n_classes; h++) {
        const double *x = a->s + h * a->n, *y = b->s + h * a->n;
        double low = INFINITY, high = -INFINITY, largest = 0;
        for (uint32_t i = 0; i < a->n; i++) {
            if (isfinite(x[i]) != isfinite(y[i]))
                return false;
            if (!isfinite(x[i]))
                continue;
            low = MIN(low, x[i] - y[i]);
            high = MAX(high, x[i] - y[i]);
            largest = MAX(largest, x[i]);
            if (high - low > SEARCH_ROUNDING * largest)
                return false;
        }
        offset->s[h] = isfinite(low) ? low : 0;
    }
    return true;
}

/* Costs before a move from those after it. */
static Shifted relax_move(States *s, const Move *move, uint32_t n_states,
                          const Costs *after)
{
    g_assert(move->choices->first_arc[move->choices->n_in] ==
             move->choices->arcs.to->len);
    g_assert(n_states == move->choices->n_in * move->n_others);
    Costs *before = costs_new(s, n_states, move);
    move_take_arcs(move, after->s, after->n, before->s);
    for (uint32_t i = 0; i + 1 < s->costs->len; i++) {
        const Costs *known = s->costs->pdata[i];
        Shifted shifted = {.costs = known};
        if (known->move == move && shift_of(s, before, known, &shifted.offset)) {
            g_ptr_array_remove_index(s->costs, s->costs->len - 1);
            return shifted;
        }
    }
    return (Shifted){.costs = before};
}

static const Shifted *costs_before(States *s, const Move *move, uint32_t n_states,
                                   const Costs *after, GString *key)
{
    g_string_set_size(key, 0);
    g_string_append_len(key, (const char *)&move, sizeof move);
    g_string_append_len(key, (const char *)&after, sizeof after);
    Shifted *shifted = exact_find(s->known, key);
    if (!shifted) {
        Shifted found = relax_move(s, move, n_states, after);
        exact_keep(s->known, key, shifted = g_memdup2(&found, sizeof found));
    }
    return shifted;
}

bool states_relax(States *s, GError **error)
{
    enum { MOST = 1 << 27 }; /* numbers: 1 GiB */
    g_autoptr(GString) key = g_string_new("");
    Cut *end = &s->cut[s->n_ops];
    Costs *none = costs_new(s, 1, NULL);
    for (uint32_t h = 0; h < s->pricer->n_classes; h++)
        none->s[h] = 0;
    end->costs = none;
    for (OpId id = s->n_ops; id-- > 0 && !states_late(s);) {
        Cut *cut = &s->cut[id];
        const Cut *after = &s->cut[id + 1];
        if ((s->n_states + (uint64_t)cut->n_states) * s->pricer->n_classes > MOST)
            return kilter_fail(
                error, KILTER_ERROR_FAILED,
                "op '%s': it and those behind it have too many states" OTHERS,
                graph_get_op(s->pricer->graph, id)->name);
        const Shifted *shifted =
            costs_before(s, cut->move, cut->n_states, after->costs, key);
        g_assert(shifted->costs->n == cut->n_states);
        cut->costs = shifted->costs;
        cut->offset = after->offset;
        times_add(s->pricer, &cut->offset, &shifted->offset);
    }
    return true;
}
