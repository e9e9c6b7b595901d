#include "synth/states.h"

#include <math.h>
#include <string.h>

enum { HELD_BITS = 6, CLOCK_STATES = 64 /* expanded between looks at the clock */ };

static Held held_at(uint64_t state, uint32_t position)
{
    uint64_t bits = state >> (HELD_BITS * position);
    return (Held){.form = bits & 7, .gradient = bits >> 3 & 7};
}

static uint64_t pack(Held held, uint32_t position)
{
    return (uint64_t)(held.form | held.gradient << 3) << (HELD_BITS * position);
}

/* Position of a tensor among those alive at a cut, or -1. */
static int position_of(const Cut *cut, TensorId tensor)
{
    for (uint32_t i = 0; i < cut->n_live; i++)
        if (cut->live[i] == tensor)
            return (int)i;
    return -1;
}

void states_inputs(const States *states, OpId op, uint64_t state, Held in[TRANSITION_IN])
{
    memset(in, 0, TRANSITION_IN * sizeof *in);
    for (uint32_t i = 0; i < states->view[op]->n_in; i++)
        in[i] = held_at(
            state, (uint32_t)position_of(&states->cut[op], states->view[op]->tensor[i]));
}

bool states_late(States *s)
{
    s->late = s->late || (s->deadline_us > 0 && g_get_monotonic_time() >= s->deadline_us);
    return s->late;
}

/* --- preparation --- */

static bool prepare_live(States *s, GError **error)
{
    const Graph *graph = s->pricer->graph;
    g_autofree OpId *last = g_new0(OpId, graph_n_tensors(graph));
    for (OpId id = 0; id < s->n_ops; id++)
        for (uint32_t i = 0; i < graph_get_op(graph, id)->n_in; i++)
            last[graph_get_op(graph, id)->in[i]] = id;
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
                                   "more than %d tensors are alive after op '%s'",
                                   MAX_LIVE, graph_get_op(graph, id)->name);
            after->live[after->n_live++] = candidate[i];
        }
    }
    return true;
}

static bool prepare_choices(States *s, GError **error)
{
    for (OpId id = 0; id < s->n_ops; id++) {
        s->view[id] = op_view_new(s->pricer, id, error);
        if (!s->view[id])
            return false;
        char *key = op_view_describe(s->pricer, s->view[id]);
        s->choices[id] = g_hash_table_lookup(s->alike, key);
        if (s->choices[id]) {
            g_free(key);
            continue;
        }
        s->choices[id] = choices_new(s->pricer, s->view[id]);
        g_hash_table_insert(s->alike, key, s->choices[id]);
    }
    return true;
}

static void prepare_floor(States *s)
{
    for (OpId id = s->n_ops; id-- > 0;)
        for (uint32_t h = 0; h < s->pricer->n_classes; h++)
            s->cut[id].floor[h] =
                s->cut[id + 1].floor[h] + choices_least(s->choices[id], h);
}

States *states_new(Pricer *pricer, GError **error)
{
    States *s = g_new0(States, 1);
    s->pricer = pricer;
    s->n_ops = graph_tensor(pricer->graph, graph_loss(pricer->graph))->producer + 1;
    s->cut = g_new0(Cut, s->n_ops + 1);
    s->view = g_new0(OpView *, s->n_ops);
    s->choices = g_new0(Choices *, s->n_ops);
    s->alike = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                     (GDestroyNotify)choices_free);
    for (uint32_t c = 0; c <= s->n_ops; c++) {
        s->cut[c].states = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        s->cut[c].least = g_array_new(FALSE, FALSE, sizeof(double));
        s->cut[c].rest = g_array_new(FALSE, FALSE, sizeof(double));
        s->cut[c].edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    }
    if (!prepare_live(s, error) || !prepare_choices(s, error)) {
        states_free(s);
        return NULL;
    }
    prepare_floor(s);
    return s;
}

void states_free(States *s)
{
    if (!s)
        return;
    g_hash_table_destroy(s->alike);
    for (OpId id = 0; id < s->n_ops; id++)
        op_view_free(s->view[id]);
    for (uint32_t c = 0; c <= s->n_ops; c++) {
        g_array_free(s->cut[c].states, TRUE);
        g_array_free(s->cut[c].least, TRUE);
        g_array_free(s->cut[c].rest, TRUE);
        g_array_free(s->cut[c].edges, TRUE);
        g_free(s->cut[c].slot);
    }
    g_free(s->cut);
    g_free(s->view);
    g_free(s->choices);
    g_free(s);
}

/* --- the states of a cut --- */

static uint32_t slot_of(const Cut *cut, uint64_t state)
{
    uint64_t hash = (state ^ state >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(hash >> 32) & (cut->n_slots - 1);
    while (cut->slot[slot] &&
           g_array_index(cut->states, uint64_t, cut->slot[slot] - 1) != state)
        slot = (slot + 1) & (cut->n_slots - 1);
    return slot;
}

static void grow_slots(Cut *cut)
{
    g_free(cut->slot);
    cut->n_slots = cut->n_slots ? 2 * cut->n_slots : 64;
    cut->slot = g_new0(uint32_t, cut->n_slots);
    for (uint32_t i = 0; i < cut->states->len; i++)
        cut->slot[slot_of(cut, g_array_index(cut->states, uint64_t, i))] = i + 1;
}

/* Index of a state, which is new if it was not there. */
static uint32_t find_state(Cut *cut, uint64_t state, uint32_t n_classes)
{
    if (2 * (cut->states->len + 1) > cut->n_slots)
        grow_slots(cut);
    uint32_t slot = slot_of(cut, state);
    if (!cut->slot[slot]) {
        double infinite = INFINITY;
        g_array_append_val(cut->states, state);
        for (uint32_t h = 0; h < n_classes; h++)
            g_array_append_val(cut->least, infinite);
        cut->slot[slot] = cut->states->len;
    }
    return cut->slot[slot] - 1;
}

static void clear_cut(Cut *cut)
{
    g_array_set_size(cut->states, 0);
    g_array_set_size(cut->least, 0);
    g_array_set_size(cut->rest, 0);
    g_array_set_size(cut->edges, 0);
    g_clear_pointer(&cut->slot, g_free);
    cut->n_slots = 0;
}

/* --- the walk --- */

/* Where each tensor alive after an op comes from. */
typedef struct {
    enum { FROM_STATE, FROM_INPUT, FROM_OUTPUT } source;
    uint32_t index;  /* of the input or output */
    uint32_t before; /* position in the state before */
} Origin;

static void find_origins(const States *s, OpId id, Origin origin[MAX_LIVE])
{
    const Op *op = graph_get_op(s->pricer->graph, id);
    for (uint32_t p = 0; p < s->cut[id + 1].n_live; p++) {
        TensorId tensor = s->cut[id + 1].live[p];
        uint32_t before = (uint32_t)position_of(&s->cut[id], tensor);
        origin[p] = (Origin){FROM_STATE, 0, before};
        for (uint32_t i = 0; i < s->view[id]->n_in; i++)
            if (s->view[id]->tensor[i] == tensor)
                origin[p] = (Origin){FROM_INPUT, i, before};
        for (uint32_t o = 0; o < op->n_out; o++)
            if (op->out[o] == tensor)
                origin[p] = (Origin){FROM_OUTPUT, o, 0};
    }
}

static uint64_t next_state(uint32_t n, const Origin *origin, uint64_t state,
                           const Transition *t)
{
    uint64_t next = 0;
    for (uint32_t p = 0; p < n; p++) {
        Held held = origin[p].source == FROM_OUTPUT ? t->out[origin[p].index]
                                                    : held_at(state, origin[p].before);
        if (origin[p].source == FROM_INPUT)
            held.form = t->in_after[origin[p].index];
        next |= pack(held, p);
    }
    return next;
}

static void expand_state(States *s, OpId id, uint32_t from, const Origin *origin,
                         double upper_s)
{
    Cut *cut = &s->cut[id], *after = &s->cut[id + 1];
    uint32_t n = s->pricer->n_classes;
    uint64_t state = g_array_index(cut->states, uint64_t, from);
    const double *g = &g_array_index(cut->least, double, from *n);
    Held in[TRANSITION_IN];
    states_inputs(s, id, state, in);
    const GArray *all = choices_from(s->choices[id], in);
    for (uint32_t k = 0; k < all->len; k++) {
        const Transition *t = &g_array_index(all, Transition, k);
        double cost[PRICE_MAX_CLASSES];
        bool keep = true;
        for (uint32_t h = 0; h < n; h++) {
            cost[h] = g[h] + t->relaxed_s[h];
            keep &= cost[h] + after->floor[h] <= upper_s;
        }
        if (!keep && cost[0] + after->floor[0] > upper_s)
            break; /* they are sorted by the first class's cost */
        if (!keep)
            continue;
        Edge edge = {.from = from, .transition = t};
        edge.to = find_state(after, next_state(after->n_live, origin, state, t), n);
        double *least = &g_array_index(after->least, double, edge.to *n);
        for (uint32_t h = 0; h < n; h++)
            least[h] = cost[h] < least[h] ? cost[h] : least[h];
        g_array_append_val(cut->edges, edge);
    }
}

/* h of a cut from the next one's, and the edges that stay. */
static void relax_back(States *s, OpId id, double upper_s)
{
    Cut *cut = &s->cut[id];
    const Cut *after = &s->cut[id + 1];
    uint32_t n = s->pricer->n_classes, kept = 0;
    g_array_set_size(cut->rest, cut->states->len * n);
    for (uint32_t i = 0; i < cut->rest->len; i++)
        g_array_index(cut->rest, double, i) = INFINITY;
    for (uint32_t e = 0; e < cut->edges->len; e++) {
        Edge edge = g_array_index(cut->edges, Edge, e);
        const double *g = &g_array_index(cut->least, double, edge.from *n);
        const double *to = &g_array_index(after->rest, double, edge.to *n);
        double *rest = &g_array_index(cut->rest, double, edge.from *n);
        bool keep = true;
        for (uint32_t h = 0; h < n; h++) {
            double cost = edge.transition->relaxed_s[h] + to[h];
            rest[h] = cost < rest[h] ? cost : rest[h];
            keep &= g[h] + cost <= upper_s;
        }
        if (keep)
            g_array_index(cut->edges, Edge, kept++) = edge;
    }
    g_array_set_size(cut->edges, kept);
}

void states_relax(States *s, double upper_s)
{
    uint32_t n = s->pricer->n_classes;
    for (uint32_t c = 0; c <= s->n_ops; c++)
        clear_cut(&s->cut[c]);
    uint32_t start = find_state(&s->cut[0], 0, n);
    for (uint32_t h = 0; h < n; h++)
        g_array_index(s->cut[0].least, double, start *n + h) = 0;
    for (OpId id = 0; id < s->n_ops; id++) {
        Origin origin[MAX_LIVE];
        find_origins(s, id, origin);
        for (uint32_t i = 0; i < s->cut[id].states->len; i++) {
            if (i % CLOCK_STATES == 0 && states_late(s))
                return;
            expand_state(s, id, i, origin, upper_s);
        }
        s->n_states += s->cut[id].states->len;
        s->n_edges += s->cut[id].edges->len;
    }
    Cut *end = &s->cut[s->n_ops];
    g_array_set_size(end->rest, end->states->len * n);
    for (uint32_t i = 0; i < end->rest->len; i++)
        g_array_index(end->rest, double, i) = 0;
    states_prune(s, upper_s);
}

void states_prune(States *s, double upper_s)
{
    for (OpId id = s->n_ops; id-- > 0;)
        relax_back(s, id, upper_s);
}
