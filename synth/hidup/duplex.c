/* The walk of the duplex search: nondominated prefixes of every state between nodes. */

#include <math.h>
#include <string.h>

#include "synth/hidup/duplex.h"

#include "data/base/free.h"
#include "data/base/order.h"

/* --- prefixes --- */

/* A prefix of the chain, with the times of its open stages, which may still grow. Forward stages
 * have communication c before computation F, backward stages computation B before communication d,
 * for microbatches 1 and 2. Stages in the order of the chain:
 *
 *     max(F_(i-1), c1_i) + max(F_i, c2_i)    counted when stage i opens, and when it closes
 *     max(B_i, d1_i) + max(B_(i-1), d2_i)    both when stage i closes
 *
 * At the end of the chain the forward and the backward of the last stages are one computation. */
typedef struct {
    double closed_s;
    double c2, d[2], back_before; /* B_(i-1): largest over classes */
    Times forward, back, update;  /* F_i, B_i so far; all updates */
    /* label of the cut before; next label of the same state */
    uint32_t parent, next;
    const DuplexChoice *choice;
} DuplexLabel;

static double duplex_largest(const DuplexProblem *p, const Times *a)
{
    double max = a->s[0];
    for (uint32_t h = 1; h < p->n_classes; h++)
        max = MAX(max, a->s[h]);
    return max;
}

static double largest_difference(const DuplexProblem *p, const Times *a, const Times *b)
{
    double max = a->s[0] - b->s[0];
    for (uint32_t h = 1; h < p->n_classes; h++)
        max = MAX(max, a->s[h] - b->s[h]);
    return max;
}

static void add(const DuplexProblem *p, Times *sum, const Times *a)
{
    for (uint32_t h = 0; h < p->n_classes; h++)
        sum->s[h] += a->s[h];
}

static void open_forward(const DuplexProblem *p, DuplexLabel *label, const double c[2])
{
    KILTER_ASSERT(c[0] >= 0 && c[1] >= 0);
    const double before = duplex_largest(p, &label->forward);
    label->closed_s += MAX(before, label->c2) + MAX(before, c[0]);
    label->c2 = c[1];
    label->forward = (Times){{0}};
}

static void close_back(const DuplexProblem *p, DuplexLabel *label)
{
    KILTER_ASSERT(label->d[0] >= 0 && label->d[1] >= 0);
    const double back = duplex_largest(p, &label->back);
    if (p->cost == DUPLEX_OVERLAPPED)
        label->closed_s += MAX(back, label->d[0]) + MAX(label->back_before, label->d[1]);
    else
        label->closed_s += 2 * back + label->d[0] + label->d[1];
    label->back_before = back;
    label->back = (Times){{0}};
    label->d[0] = label->d[1] = 0;
}

/* If an open forward stage takes longer than any communication beside it, its excess will count
 * twice in any case, so it is counted at once. Labels that differ in the excess only are then
 * compared by one number; otherwise each layer at which a stage can open would leave a label. */
static void duplex_count_excess(const DuplexProblem *p, double longest_s,
                                DuplexLabel *label)
{
    KILTER_ASSERT(longest_s >= 0);
    const double excess = duplex_largest(p, &label->forward) - longest_s;
    if (excess <= 0)
        return;
    for (uint32_t h = 0; h < p->n_classes; h++)
        label->forward.s[h] -= excess;
    label->closed_s += 2 * excess;
}

/* Appends a node under a choice, after the conversions of its inputs. */
static void duplex_append(const DuplexProblem *p, DuplexLabel *label,
                          const DuplexChoice *choice, const DuplexConversion *step)
{
    const double c[2] = {step->forward_s + choice->gather_s[0],
                         step->forward_s + choice->gather_s[1]};
    const double sync_s = choice->sync_s[0] + choice->sync_s[1];
    if (c[0] > 0 || c[1] > 0)
        open_forward(p, label, c);
    if (step->back_s > 0 || (sync_s > 0 && !choice->joins))
        close_back(p, label);
    for (uint32_t m = 0; m < 2; m++)
        label->d[m] += step->back_s + choice->sync_s[m];
    add(p, &label->forward, &choice->forward);
    add(p, &label->back, &choice->back);
    add(p, &label->update, &choice->update);
    label->choice = choice;
}

/* Time of the whole chain. */
static double duplex_total(const DuplexProblem *p, const DuplexLabel *label)
{
    const double updates = duplex_largest(p, &label->update);
    if (p->cost == DUPLEX_SERIAL_BACK) {
        DuplexLabel last = *label;
        const double forward = duplex_largest(p, &label->forward);
        close_back(p, &last);
        return last.closed_s + MAX(forward, label->c2) + forward + updates;
    }
    Times both = label->forward;
    add(p, &both, &label->back);
    const double turn = duplex_largest(p, &both);
    return label->closed_s + MAX(turn, label->c2) + MAX(turn, label->d[0]) +
           MAX(label->back_before, label->d[1]) + updates;
}

/* Whether every completion of `a` takes at most same_s longer than the same completion of `b`,
 * since max(a + x, b + y) - max(a' + x, b' + y) <= max(a - a', b - b') (HiDup's domination, with
 * stages still open). */
static bool duplex_dominates(const DuplexProblem *p, double same_s, const DuplexLabel *a,
                             const DuplexLabel *b)
{
    KILTER_ASSERT(same_s >= 0);
    const double forward = largest_difference(p, &a->forward, &b->forward);
    double slower = a->closed_s - b->closed_s + MAX(forward, a->c2 - b->c2) +
                    MAX(forward, 0) + largest_difference(p, &a->update, &b->update);
    const double back = largest_difference(p, &a->back, &b->back);
    if (p->cost == DUPLEX_OVERLAPPED)
        slower += MAX(back, a->d[0] - b->d[0]) + MAX(back, 0) +
                  MAX(a->back_before - b->back_before, a->d[1] - b->d[1]);
    else
        slower += 2 * back + a->d[0] - b->d[0] + a->d[1] - b->d[1];
    return slower <= same_s;
}

enum { NONE = UINT32_MAX };

typedef struct {
    uint64_t state; /* three bits per live tensor */
    uint32_t first; /* first of its labels */
} State;

typedef struct {
    uint32_t n_live;
    uint32_t *live; /* live tensors */
    GArray *states, *labels;
    GHashTable *index; /* state -> position + 1 */
} Cut;

typedef struct {
    const DuplexProblem *p;
    double longest_s; /* communication beside a forward stage never takes longer */
    double same_s;    /* times that differ by less are equal */
    Cut *cut;         /* [n_nodes + 1] */
    uint64_t states, labels, expansions;
    bool narrow;       /* a cut had too many labels, */
    uint64_t compared; /* or so many pairs were compared */
} Solve;

/* --- choices --- */

static bool nowhere_slower(uint32_t n_classes, const DuplexChoice *a,
                           const DuplexChoice *b)
{
    KILTER_ASSERT(n_classes > 0);
    bool all = a->joins == b->joins;
    for (uint32_t m = 0; m < 2; m++)
        all &= a->gather_s[m] <= b->gather_s[m] && a->sync_s[m] <= b->sync_s[m];
    for (uint32_t h = 0; h < n_classes; h++)
        all &= a->forward.s[h] <= b->forward.s[h] && a->back.s[h] <= b->back.s[h] &&
               a->update.s[h] <= b->update.s[h];
    return all;
}

static bool same_forms(const DuplexChoice *a, const DuplexChoice *b)
{
    return memcmp(a->in, b->in, sizeof a->in) == 0 &&
           memcmp(a->out, b->out, sizeof a->out) == 0;
}

void duplex_add_choice(DuplexNode *node, uint32_t n_classes, const DuplexChoice *choice)
{
    g_assert(n_classes > 0 && n_classes <= PRICE_MAX_CLASSES);
    for (uint32_t i = node->choices->len; i-- > 0;) {
        const DuplexChoice *other = &g_array_index(node->choices, DuplexChoice, i);
        if (!same_forms(other, choice))
            continue;
        if (nowhere_slower(n_classes, other, choice))
            return;
        if (nowhere_slower(n_classes, choice, other))
            g_array_remove_index(node->choices, i);
    }
    g_array_append_vals(node->choices, choice, 1);
}

/* --- cuts --- */

enum { FORM_BITS = 3, MAX_LIVE = 64 / FORM_BITS };

static Form form_at(uint64_t state, uint32_t position)
{
    KILTER_ASSERT(position < MAX_LIVE);
    return (Form)(state >> (FORM_BITS * position) & ((1u << FORM_BITS) - 1));
}

static uint64_t with_form(Form form, uint32_t position)
{
    G_STATIC_ASSERT(FORM_MAX <= 1u << FORM_BITS);
    KILTER_ASSERT(position < MAX_LIVE && form < FORM_MAX);
    return (uint64_t)form << (FORM_BITS * position);
}

/* Position of a tensor among those alive at a cut; NONE if it is not. */
static uint32_t position(const Cut *cut, uint32_t tensor)
{
    for (uint32_t i = 0; i < cut->n_live; i++)
        if (cut->live[i] == tensor)
            return i;
    return NONE;
}

/* Finds the live tensors: a tensor is alive at the cuts from its node up to its last reader, the
 * last node's output up to the end. */
static bool find_live(Solve *s)
{
    const DuplexProblem *p = s->p;
    g_autofree uint32_t *last = g_new0(uint32_t, p->n_tensors);
    for (uint32_t i = 0; i < p->n_nodes; i++)
        for (uint32_t k = 0; k < p->node[i].n_in; k++)
            last[p->node[i].in[k]] = i;
    const DuplexNode *end = &p->node[p->n_nodes - 1];
    for (uint32_t o = 0; o < end->n_out; o++)
        last[end->out[o]] = p->n_nodes;
    for (uint32_t i = 0; i <= p->n_nodes; i++) {
        Cut *cut = &s->cut[i];
        const DuplexNode *node = i ? &p->node[i - 1] : NULL;
        const uint32_t before = i ? s->cut[i - 1].n_live : 0;
        cut->live = g_new(uint32_t, before + DUPLEX_MAX_OUT);
        for (uint32_t k = 0; k < before; k++)
            if (last[s->cut[i - 1].live[k]] >= i)
                cut->live[cut->n_live++] = s->cut[i - 1].live[k];
        for (uint32_t o = 0; node && o < node->n_out; o++)
            if (last[node->out[o]] >= i)
                cut->live[cut->n_live++] = node->out[o];
        if (cut->n_live > MAX_LIVE)
            return false;
    }
    return true;
}

static State *state_at(Cut *cut, uint64_t state)
{
    KILTER_ASSERT(cut->n_live <= MAX_LIVE);
    uint32_t at = GPOINTER_TO_UINT(g_hash_table_lookup(cut->index, &state));
    if (at)
        return &g_array_index(cut->states, State, at - 1);
    const State fresh = {state, NONE};
    g_array_append_val(cut->states, fresh);
    g_hash_table_insert(cut->index, g_memdup2(&state, sizeof state),
                        GUINT_TO_POINTER(cut->states->len));
    return &g_array_index(cut->states, State, cut->states->len - 1);
}

static void cut_init(Cut *cut)
{
    cut->states = g_array_new(FALSE, FALSE, sizeof(State));
    cut->labels = g_array_new(FALSE, FALSE, sizeof(DuplexLabel));
    cut->index = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
}

static CLEAR_DEFINE(cut_clear, Cut, cut, g_free(cut->live),
                    unref_arrays(cut->states, cut->labels),
                    g_hash_table_destroy(cut->index));

/* Adds a label unless a label of its state dominates it; the first label that it dominates is
 * overwritten, others are removed. */
static void add_label(Solve *s, Cut *cut, State *state, const DuplexLabel *label)
{
    KILTER_ASSERT(isfinite(label->closed_s) && label->parent != NONE);
    uint32_t *link = &state->first, place = NONE;
    for (; *link != NONE; s->compared++) {
        DuplexLabel *other = &g_array_index(cut->labels, DuplexLabel, *link);
        if (place == NONE && duplex_dominates(s->p, s->same_s, other, label))
            return;
        if (duplex_dominates(s->p, 0, label, other)) {
            place = place == NONE ? *link : place;
            *link = other->next;
        } else {
            link = &other->next;
        }
    }
    if (place == NONE) {
        place = cut->labels->len;
        g_array_append_vals(cut->labels, label, 1);
        s->labels++;
    } else {
        g_array_index(cut->labels, DuplexLabel, place) = *label;
    }
    g_array_index(cut->labels, DuplexLabel, place).next = state->first;
    state->first = place;
}

/* --- the walk --- */

/* Finds the conversions of the node's inputs from their forms; false if there is none. An input
 * that is read twice is converted once. */
static bool duplex_convert(const DuplexProblem *p, const DuplexNode *node,
                           const Form *from, const DuplexChoice *choice,
                           DuplexConversion *step)
{
    *step = (DuplexConversion){.can = true};
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (from[k] == choice->in[k])
            continue;
        const DuplexConversion *one =
            &(*p->conversion[node->in[k]])[from[k]][choice->in[k]];
        const bool again =
            any_of(j, k, node->in[j] == node->in[k] && choice->in[j] == choice->in[k]);
        if (!one->can)
            return false;
        if (again)
            continue;
        step->opens |= one->opens;
        step->forward_s += one->forward_s;
        step->back_s += one->back_s;
    }
    return true;
}

/* The forms of tensors alive after the node: a communicated conversion replaces the form, a local
 * one keeps it. */
static uint64_t state_after(const DuplexProblem *p, const Cut *cut, uint64_t state,
                            const Cut *to, const DuplexNode *node,
                            const DuplexChoice *choice)
{
    uint64_t after = 0;
    for (uint32_t i = 0; i < to->n_live; i++) {
        const uint32_t tensor = to->live[i], at = position(cut, tensor);
        Form form = at == NONE ? 0 : form_at(state, at);
        for (uint32_t o = 0; at == NONE && o < node->n_out; o++)
            if (node->out[o] == tensor)
                form = choice->out[o];
        for (uint32_t k = 0; at != NONE && k < node->n_in; k++)
            if (node->in[k] == tensor && form != choice->in[k] &&
                (*p->conversion[tensor])[form][choice->in[k]].opens)
                form = choice->in[k];
        after |= with_form(form, i);
    }
    return after;
}

static void extend_state(Solve *s, uint32_t at, const State *state)
{
    KILTER_ASSERT(s->p->node[at].n_in <= DUPLEX_MAX_IN);
    const DuplexProblem *p = s->p;
    const DuplexNode *node = &p->node[at];
    Cut *from = &s->cut[at], *to = &s->cut[at + 1];
    Form in[DUPLEX_MAX_IN] = {0};
    if (state->first == NONE)
        return;
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = form_at(state->state, position(from, node->in[k]));
    array_each (const DuplexChoice, choice, node->choices) {
        DuplexConversion step;
        if (!duplex_convert(p, node, in, choice, &step) ||
            (at + 1 == p->n_nodes && choice->out[0] != p->goal))
            continue;
        State *next = state_at(to, state_after(p, from, state->state, to, node, choice));
        for (uint32_t i = state->first; i != NONE;) {
            DuplexLabel label = g_array_index(from->labels, DuplexLabel, i);
            const uint32_t following = label.next;
            duplex_append(p, &label, choice, &step);
            duplex_count_excess(p, s->longest_s, &label);
            label.parent = i;
            s->expansions++;
            add_label(s, to, next, &label);
            i = following;
        }
    }
}

/* The longest communication of both microbatches for a forward stage, and of the first microbatch
 * beside the last stage, backward. */
static double find_longest(const DuplexProblem *p)
{
    double forward_s = 0, back_s = 0, joined_s = 0;
    items_each (const DuplexNode, node, p->node, p->n_nodes) {
        double gather_s = 0, sync_s[2] = {0}, there_s = 0, again_s = 0; /* [joins] */
        array_each (const DuplexChoice, choice, node->choices) {
            gather_s = fmax(gather_s, fmax(choice->gather_s[0], choice->gather_s[1]));
            sync_s[choice->joins] = fmax(sync_s[choice->joins], choice->sync_s[0]);
        }
        for (uint32_t k = 0; k < node->n_in; k++) {
            double there = 0, again = 0;
            for (Form from = 0; from < FORM_MAX; from++)
                for (Form to = 0; to < FORM_MAX; to++) {
                    const DuplexConversion *one =
                        &(*p->conversion[node->in[k]])[from][to];
                    there = fmax(there, one->can ? one->forward_s : 0);
                    again = fmax(again, one->can ? one->back_s : 0);
                }
            there_s += there;
            again_s += again;
        }
        forward_s = fmax(forward_s, there_s + gather_s);
        back_s = fmax(back_s, again_s + sync_s[false]);
        joined_s += sync_s[true];
    }
    return fmax(forward_s, back_s + joined_s);
}

/* Sums of the same times in other orders differ by rounding. Where many choices take equally long,
 * as on a single device, labels that differ by this only would otherwise all be kept. A label is
 * not added if another one is at most this part of the work, which every completion takes, slower:
 * each node loses no more than that. */
static double find_same(const DuplexProblem *p)
{
    const double part = 1e-14;
    Times work = {{0}};
    double most_s = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        for (uint32_t h = 0; h < p->n_classes; h++) {
            const double least_s = least_in(
                double, array_each (const DuplexChoice, choice, p->node[i].choices),
                INFINITY, choice->forward.s[h] + choice->back.s[h]);
            work.s[h] += isfinite(least_s) ? least_s : 0;
            most_s = fmax(most_s, work.s[h]);
        }
    return part * most_s;
}

/* A label by the time at which it would end here. */
typedef struct {
    double time_s;
    uint32_t state, label;
} Ranked;

static ORDER_DEFINE(by_time, Ranked, ASCENDING(time_s), ASCENDING(label));

/* Where very many tensors are alive, as beside parameters that layers share, keeps the labels that
 * would end first; the search then is not exact. */
static void narrow(Solve *s, Cut *cut)
{
    /* pairs: about a tenth of a second */
    enum { MOST_LABELS = 1 << 17, KEPT_LABELS = 2048, PAIRS = 5000000, KEPT_THEN = 256 };
    const bool slow = s->compared > PAIRS;
    const uint32_t kept_labels = slow ? KEPT_THEN : KEPT_LABELS;
    if (cut->labels->len <= (s->narrow || slow ? kept_labels : MOST_LABELS))
        return;
    s->narrow = true;
    g_autoptr(GArray) ranked = g_array_new(FALSE, FALSE, sizeof(Ranked));
    for (uint32_t k = 0; k < cut->states->len; k++) {
        uint32_t *first = &g_array_index(cut->states, State, k).first;
        for (uint32_t i = *first; i != NONE;) {
            const DuplexLabel *label = &g_array_index(cut->labels, DuplexLabel, i);
            const Ranked one = {duplex_total(s->p, label), k, i};
            g_array_append_val(ranked, one);
            i = label->next;
        }
        *first = NONE;
    }
    g_array_sort(ranked, by_time);
    GArray *kept = g_array_new(FALSE, FALSE, sizeof(DuplexLabel));
    for (uint32_t r = 0; r < MIN(ranked->len, kept_labels); r++) {
        const Ranked *one = &g_array_index(ranked, Ranked, r);
        uint32_t *first = &g_array_index(cut->states, State, one->state).first;
        DuplexLabel label = g_array_index(cut->labels, DuplexLabel, one->label);
        label.next = *first;
        *first = kept->len;
        g_array_append_val(kept, label);
    }
    g_array_unref(cut->labels);
    cut->labels = kept;
}

static void walk(Solve *s)
{
    const DuplexLabel empty = {.parent = NONE, .next = NONE};
    g_array_append_val(s->cut[0].labels, empty);
    state_at(&s->cut[0], 0)->first = 0;
    for (uint32_t i = 0; i < s->p->n_nodes; i++) {
        for (uint32_t k = 0; k < s->cut[i].states->len; k++)
            extend_state(s, i, &g_array_index(s->cut[i].states, State, k));
        s->states += s->cut[i + 1].states->len;
        narrow(s, &s->cut[i + 1]);
    }
}

/* The forms of the inputs before each node, from the choices. */
static void find_forms(const DuplexProblem *p, DuplexSolution *solution)
{
    g_autofree Form *form = g_new0(Form, p->n_tensors);
    items_at (const DuplexNode, node, i, p->node, p->n_nodes) {
        const DuplexChoice *choice = solution->choice[i];
        for (uint32_t k = 0; k < node->n_in; k++)
            solution->in[i][k] = form[node->in[k]];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (form[node->in[k]] != choice->in[k] &&
                (*p->conversion[node->in[k]])[form[node->in[k]]][choice->in[k]].opens)
                form[node->in[k]] = choice->in[k];
        for (uint32_t o = 0; o < node->n_out; o++)
            form[node->out[o]] = choice->out[o];
    }
}

static bool duplex_take_best(Solve *s, DuplexSolution *solution)
{
    const DuplexProblem *p = s->p;
    const Cut *end = &s->cut[p->n_nodes];
    uint32_t best = NONE;
    solution->time_s = INFINITY;
    for (uint32_t k = 0; k < end->states->len; k++)
        for (uint32_t i = g_array_index(end->states, State, k).first; i != NONE;
             i = g_array_index(end->labels, DuplexLabel, i).next) {
            const double time_s =
                duplex_total(p, &g_array_index(end->labels, DuplexLabel, i));
            if (time_s < solution->time_s) {
                solution->time_s = time_s;
                best = i;
            }
        }
    if (best == NONE)
        return false;
    solution->choice = g_new0(const DuplexChoice *, p->n_nodes);
    solution->in = g_malloc0_n(p->n_nodes, sizeof *solution->in);
    for (uint32_t i = p->n_nodes; i-- > 0;) {
        const DuplexLabel *label =
            &g_array_index(s->cut[i + 1].labels, DuplexLabel, best);
        solution->choice[i] = label->choice;
        best = label->parent;
    }
    find_forms(p, solution);
    return true;
}

bool duplex_solve(const DuplexProblem *problem, DuplexSolution *solution)
{
    g_assert(problem->n_nodes > 0 && problem->goal < FORM_MAX);
    *solution = (DuplexSolution){0};
    Solve s = {.p = problem,
               .longest_s = find_longest(problem),
               .same_s = find_same(problem),
               .cut = g_new0(Cut, problem->n_nodes + 1)};
    for (uint32_t i = 0; i <= problem->n_nodes; i++)
        cut_init(&s.cut[i]);
    bool done = find_live(&s);
    if (done) {
        walk(&s);
        done = duplex_take_best(&s, solution);
    }
    solution->states = s.states;
    solution->labels = s.labels;
    solution->expansions = s.expansions;
    solution->narrow = s.narrow;
    for (uint32_t i = 0; i <= problem->n_nodes; i++)
        cut_clear(&s.cut[i]);
    g_free(s.cut);
    return done;
}

CLEAR_DEFINE(duplex_solution_clear, DuplexSolution, solution,
             free_each(solution->choice, solution->in), *solution = (DuplexSolution){0});
