/* Arcs: the least relaxed cost from each state of an op's inputs to each state after it, by
 * min-plus elimination. Choices are eliminated in this order: the forms in which the backward reads
 * dy; the second input's ask and contribution; the form of the first input's contribution; the
 * first input's ask. */
#include "data/base/free.h"
#include "synth/hap/exact/factors.h"

#include "synth/hap/exact/wide.h"

#include <math.h>
#include <string.h>

/* --- rows --- */

/* Keys of rows: an ask, a form and a set of forms each occupy bits of their own. */
enum { ASK_BITS = 12, FORM_BITS = 3, SET_BITS = FORM_MAX };
G_STATIC_ASSERT(FORM_MAX <= 1u << FORM_BITS);
G_STATIC_ASSERT(FORM_MAX << FORM_MAX <= 1u << ASK_BITS); /* a read form and a saved set */
G_STATIC_ASSERT(TRANSITION_IN *(ASK_BITS + FORM_BITS) +
                    TRANSITION_OUT * (FORM_BITS + SET_BITS) <=
                64);

static uint64_t pack(uint64_t key, uint32_t bits, uint64_t value)
{
    g_assert(value >> bits == 0 && key >> (64 - bits) == 0);
    return key << bits | value;
}

static uint64_t pack_outputs(const Row *row, uint64_t key)
{
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        key = pack(pack(key, FORM_BITS, row->out[o]), SET_BITS, row->shared[o]);
    return key;
}

static uint64_t key_no_contribution(const Row *row)
{
    return pack_outputs(row, pack(0, ASK_BITS, row->ask[0]));
}

static uint64_t key_no_second(const Row *row)
{
    return pack(key_no_contribution(row), FORM_BITS, row->makes[0]);
}

/* Makes the factor's rows from the rows of the factor before it. */
static void merge_rows(Factor *factor, const Factor *before, uint64_t (*key)(const Row *))
{
    factor->merged = g_new(uint32_t, before->row->len);
    array_at (const Row, row, r, before->row) {
        factor->merged[r] = index_add(&factor->keys, key(row));
        if (factor->merged[r] == factor->row->len)
            g_array_append_vals(factor->row, row, 1);
    }
}

/* Finds the rows of all factors. */
static void find_rows(Elimination *e)
{
    const Choices *c = e->c;
    e->member = g_new(Member, c->groups->len);
    array_at (const Group, group, g, c->groups) {
        const Needs *needs = &group->needs;
        Row row = {0};
        for (uint32_t i = 0; i < TRANSITION_IN; i++) {
            row.ask[i] = index_add(&e->input[i].keys,
                                   (uint64_t)needs->reads[i] << 8 | needs->saved[i]);
            row.makes[i] = needs->makes[i];
        }
        for (uint32_t o = 0; o < TRANSITION_OUT; o++) {
            row.out[o] = needs->out[o];
            row.shared[o] = op_view_is_alias(&c->view, o) ? needs->wanted_dy[o] : 0;
        }
        index_add(&e->shared, pack_dy(row.shared));
        uint32_t at = index_add(&e->no_dy.keys,
                                pack(pack(key_no_second(&row), ASK_BITS, row.ask[1]),
                                     FORM_BITS, row.makes[1]));
        if (at == e->no_dy.row->len)
            g_array_append_val(e->no_dy.row, row);
        e->member[g] = (Member){at, index_add(&e->wanted, pack_dy(needs->wanted_dy))};
    }
    merge_rows(&e->no_second, &e->no_dy, key_no_second);
    merge_rows(&e->no_contribution, &e->no_second, key_no_contribution);
}

/* --- elimination, choice by choice --- */

/* Numbers of costs in the factors, each for `lanes` classes. */
static size_t n_no_dy(const Elimination *e)
{
    return (size_t)e->no_dy.row->len * e->n_dy;
}

static size_t n_no_second(const Elimination *e)
{
    return (size_t)e->no_second.row->len * e->c->in[1].n * e->n_afters[1] * e->n_dy;
}

static size_t n_no_contribution(const Elimination *e)
{
    return (size_t)e->c->in[0].n_gradients * e->c->in[1].n * e->no_contribution.row->len *
           e->n_afters[1] * e->n_dy;
}

static void set_infinite(double *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s[i] = INFINITY;
}

/* Eliminates the forms in which the backward reads dy, from the groups. */
KILTER_INLINE void eliminate_dy(Elimination *e, uint32_t lanes)
{
    const Choices *c = e->c;
    const size_t n = (size_t)e->n_dy * lanes;
    const double *wanted_s = e->wanted_s + n * e->wanted.n * (e->h / lanes);
    set_infinite(e->no_dy.s, n_no_dy(e) * lanes);
    for (uint32_t g = 0; g < c->groups->len; g++) {
        const Times *least = &g_array_index(c->groups, Group, g).least;
        const Member *member = &e->member[g];
        least_of(e->no_dy.s + member->row * n, wanted_s + member->wanted * n,
                 least->s + e->h, e->n_dy, lanes);
    }
}

/* The number of forms that input `i` can be in after an ask from its form `f`, as far as they
 * matter. */
static inline uint32_t n_choices(const Choices *c, uint32_t i, const Ask *ask, uint32_t f)
{
    KILTER_ASSERT(i < TRANSITION_IN);
    return c->survives[i] && ask->after[f][0] != ask->after[f][1] ? 2 : 1;
}

/* Eliminates from no_dy the second input's ask and the form of its contribution, given its states
 * before and after. */
KILTER_INLINE void eliminate_second_input(Elimination *e, uint32_t lanes)
{
    const Choices *c = e->c;
    const size_t n = (size_t)e->n_dy * lanes;
    const uint32_t n_states = c->in[1].n, n_afters = e->n_afters[1];
    set_infinite(e->no_second.s, n_no_second(e) * lanes);
    array_at (const Row, row, p, e->no_dy.row) {
        const Ask *ask = &e->input[1].ask[row->ask[1]];
        double *rows = e->no_second.s + e->no_second.merged[p] * n_states * n_afters * n;
        for (uint32_t state = 0; state < n_states; state++) {
            uint32_t f = state / c->in[1].n_gradients, g = state % c->in[1].n_gradients;
            const Times *given = &e->input[1].contribution[row->makes[1]][g];
            double s[PRICE_MAX_CLASSES];
            for (uint32_t l = 0; l < lanes; l++)
                s[l] = ask->s[f].s[e->h + l] + given->s[e->h + l];
            if (!isfinite(s[0]))
                continue;
            for (uint32_t k = 0; k < n_choices(c, 1, ask, f); k++) {
                const uint32_t after = c->survives[1] ? ask->after[f][k] : 0;
                least_of(rows + (state * n_afters + after) * n, e->no_dy.s + p * n, s,
                         e->n_dy, lanes);
            }
        }
    }
}

/* Eliminates from no_second the form of the contribution to the first input, given the form of its
 * gradient. */
KILTER_INLINE void eliminate_contribution(Elimination *e, uint32_t lanes)
{
    const Choices *c = e->c;
    const uint32_t n_rows = e->no_contribution.row->len, n_states = c->in[1].n;
    const uint32_t n = e->n_afters[1] * e->n_dy;
    set_infinite(e->no_contribution.s, n_no_contribution(e) * lanes);
    for (uint32_t r = 0; r < e->no_second.row->len; r++) {
        const Form made = g_array_index(e->no_second.row, Row, r).makes[0];
        const size_t merged = e->no_contribution.merged[r];
        for (uint32_t g0 = 0; g0 < c->in[0].n_gradients; g0++) {
            const double *s = e->input[0].contribution[made][g0].s + e->h;
            for (uint32_t state = 0; state < n_states && isfinite(*s); state++)
                least_of(e->no_contribution.s +
                             (((size_t)g0 * n_states + state) * n_rows + merged) * n *
                                 lanes,
                         e->no_second.s + ((size_t)r * n_states + state) * n * lanes, s,
                         n, lanes);
        }
    }
}

/* The outputs' part of the state number `to`, by arrival; see Choices. */
static uint32_t output_to(const Elimination *e, const Row *row, uint32_t dy)
{
    const Choices *c = e->c;
    uint32_t to = 0;
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        if (c->lives[o])
            to = to * c->out[o].n +
                 c->out[o].form_at[row->out[o]] * c->out[o].n_gradients +
                 arrival(e, dy, o);
    return to;
}

/* Conversions of dy itself to the sums of inputs, by arrival; NULL if no input gets dy itself. */
KILTER_INLINE const double *alias_at(const Elimination *e, uint32_t row,
                                     const uint32_t *g, uint32_t lanes)
{
    const Choices *c = e->c;
    if (!e->alias_s)
        return NULL;
    size_t shared = (size_t)e->h / lanes * e->shared.n + e->row_shared[row];
    size_t at = (shared * c->in[0].n_gradients + g[0]) * c->in[1].n_gradients + g[1];
    return e->alias_s + at * e->n_dy * lanes;
}

/* Takes minima over all arrivals, which mostly are neighbours in `to` as well; `alias_s` may be
 * NULL. */
KILTER_INLINE void least_of_arrivals(double *restrict to, const uint32_t *at,
                                     const double *restrict from,
                                     const double *restrict alias_s,
                                     const double *restrict s, uint32_t n, uint32_t lanes)
{
    if (!alias_s && at[n - 1] - at[0] == n - 1) {
        least_of(to + at[0] * lanes, from, s, n, lanes);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t l = 0; l < lanes; l++) {
            const double given = alias_s ? alias_s[i * lanes + l] : 0;
            const double sum = from[i * lanes + l] + given + s[l];
            double *least = to + at[i] * lanes + l;
            *least = sum < *least ? sum : *least;
        }
}

/* Eliminates the first input's ask from no_contribution, which leaves the least cost from states of
 * both inputs to all forms after. */
KILTER_INLINE void eliminate_first_input(Elimination *e, uint32_t state0, uint32_t state1,
                                         uint32_t lanes)
{
    KILTER_ASSERT(state0 < e->c->in[0].n && state1 < e->c->in[1].n);
    const Choices *c = e->c;
    const uint32_t f0 = state0 / c->in[0].n_gradients, n_afters = e->n_afters[1];
    const uint32_t g[] = {state0 % c->in[0].n_gradients, state1 % c->in[1].n_gradients};
    const uint32_t n_rows = e->no_contribution.row->len;
    const size_t n = (size_t)e->n_dy * lanes, n_outs = (size_t)e->n_out * lanes;
    const double *from = e->no_contribution.s +
                         ((size_t)g[0] * c->in[1].n + state1) * n_rows * n_afters * n;
    set_infinite(e->arc_s, e->n_afters[0] * n_afters * n_outs);
    for (uint32_t k = 0; k < n_rows; k++, from += n_afters * n) {
        const Row *row = &g_array_index(e->no_contribution.row, Row, k);
        const Ask *ask = &e->input[0].ask[row->ask[0]];
        const double *s = ask->s[f0].s + e->h;
        if (!isfinite(*s))
            continue;
        const double *alias_s = alias_at(e, k, g, lanes);
        for (uint32_t a = 0; a < n_choices(c, 0, ask, f0); a++) {
            const uint32_t after = c->survives[0] ? ask->after[f0][a] : 0;
            for (uint32_t b = 0; b < n_afters; b++)
                least_of_arrivals(e->arc_s + (after * n_afters + b) * n_outs,
                                  e->outputs_to + k * e->n_dy, from + b * n, alias_s, s,
                                  e->n_dy, lanes);
        }
    }
}

/* The state after, for forms of the inputs afterwards. */
static uint32_t elimination_state_after(const Choices *c, const uint32_t *after,
                                        const uint32_t *g)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < TRANSITION_IN; i++)
        if (c->survives[i])
            to = to * c->in[i].n + after[i] * c->in[i].n_gradients + g[i];
    return to;
}

/* Keeps the finite costs as arcs, in the order of the states after. */
static void elimination_add_arcs(const Elimination *e, Choices *c, const uint32_t *g)
{
    const uint32_t n_classes = c->pricer->n_classes, n = MIN(e->lanes, n_classes);
    const double *s = e->arc_s;
    uint32_t len = c->arcs.to->len;
    const uint32_t most = len + e->n_afters[0] * e->n_afters[1] * e->n_out;
    g_array_set_size(c->arcs.to, most);
    g_array_set_size(c->arcs.least, most * n_classes);
    uint32_t *to = &g_array_index(c->arcs.to, uint32_t, 0);
    double *least = &g_array_index(c->arcs.least, double, 0);
    for (uint32_t a = 0; a < e->n_afters[0] * e->n_afters[1]; a++) {
        const uint32_t after[] = {a / e->n_afters[1], a % e->n_afters[1]};
        const uint32_t first = elimination_state_after(c, after, g) * e->n_out;
        for (uint32_t o = 0; o < e->n_out; o++, s += e->lanes)
            if (isfinite(*s)) {
                memcpy(least + (size_t)len * n_classes, s, n * sizeof *s);
                to[len++] = first + o;
            }
    }
    g_array_set_size(c->arcs.to, len);
    g_array_set_size(c->arcs.least, len * n_classes);
}

/* Adds the costs of further classes to the arcs, which are the same for all classes. */
static void add_costs(const Elimination *e, Choices *c, uint32_t in)
{
    const uint32_t n_classes = c->pricer->n_classes;
    const uint32_t n = MIN(e->lanes, n_classes - e->h);
    double *least = &g_array_index(c->arcs.least, double, 0) + e->h;
    uint32_t arc = c->first_arc[in];
    const uint32_t n_all = e->n_afters[0] * e->n_afters[1] * e->n_out;
    for (uint32_t a = 0; a < n_all; a++)
        if (isfinite(e->arc_s[a * e->lanes]))
            memcpy(least + (size_t)arc++ * n_classes, e->arc_s + a * e->lanes,
                   n * sizeof *least);
    g_assert(arc == c->first_arc[in + 1]);
}

KILTER_INLINE void eliminate(Elimination *e, Choices *c, uint32_t lanes)
{
    for (e->h = 0; e->h < c->pricer->n_classes; e->h += lanes) {
        eliminate_dy(e, lanes);
        eliminate_second_input(e, lanes);
        eliminate_contribution(e, lanes);
        for (uint32_t in = 0; in < c->n_in; in++) {
            const uint32_t state[] = {c->same ? in : in / c->in[1].n,
                                      c->same ? in : in % c->in[1].n};
            const uint32_t g[] = {state[0] % c->in[0].n_gradients,
                                  state[1] % c->in[1].n_gradients};
            eliminate_first_input(e, state[0], state[1], lanes);
            if (e->h > 0) {
                add_costs(e, c, in);
                continue;
            }
            elimination_add_arcs(e, c, g);
            c->first_arc[in + 1] = c->arcs.to->len;
        }
    }
}

KILTER_WIDE
static void eliminate_one(Elimination *e, Choices *c)
{
    eliminate(e, c, 1);
}

KILTER_WIDE
static void eliminate_two(Elimination *e, Choices *c)
{
    eliminate(e, c, 2);
}

KILTER_WIDE
static void eliminate_four(Elimination *e, Choices *c)
{
    eliminate(e, c, 4);
}

struct Elimination *elimination_new(const Choices *c)
{
    Elimination *e = g_new0(Elimination, 1);
    e->c = c;
    e->n_dy = c->out[0].n_gradients * c->out[1].n_gradients;
    e->no_dy.row = g_array_new(FALSE, FALSE, sizeof(Row));
    e->no_second.row = g_array_new(FALSE, FALSE, sizeof(Row));
    e->no_contribution.row = g_array_new(FALSE, FALSE, sizeof(Row));
    find_rows(e);
    e->outputs_to = g_new(uint32_t, e->no_contribution.row->len * e->n_dy);
    e->row_shared = g_new(uint32_t, e->no_contribution.row->len);
    array_at (const Row, row, k, e->no_contribution.row) {
        e->row_shared[k] = index_add(&e->shared, pack_dy(row->shared));
        for (uint32_t dy = 0; dy < e->n_dy; dy++)
            e->outputs_to[k * e->n_dy + dy] = output_to(e, row, dy);
    }
    for (uint32_t i = 0; i < TRANSITION_IN; i++) {
        e->n_afters[i] = c->survives[i] ? c->in[i].n_forms : 1;
        e->input[i].ask = g_new(Ask, e->input[i].keys.n);
    }
    e->n_out = (c->lives[0] ? c->out[0].n : 1) * (c->lives[1] ? c->out[1].n : 1);
    return e;
}

static CLEAR_DEFINE(factor_clear, Factor, factor, index_clear(&factor->keys),
                    g_array_unref(factor->row), g_free(factor->merged));

static CLEAR_DEFINE(input_clear, Input, input, index_clear(&input->keys),
                    g_free(input->ask));

FREE_DEFINE(elimination_free, Elimination, e,
            clear_items(e->input, TRANSITION_IN, input_clear), index_clear(&e->wanted),
            index_clear(&e->shared), factor_clear(&e->no_dy), factor_clear(&e->no_second),
            factor_clear(&e->no_contribution),
            free_each(e->member, e->outputs_to, e->row_shared));

static void prices_new(Elimination *e)
{
    const uint32_t n_classes = e->c->pricer->n_classes;
    e->lanes = MIN(n_classes, 2);
    if (n_classes > 2)
        e->lanes = 4;
    price_factors(e);
    e->no_dy.s = g_new(double, n_no_dy(e) * e->lanes);
    e->no_second.s = g_new(double, n_no_second(e) * e->lanes);
    e->no_contribution.s = g_new(double, n_no_contribution(e) * e->lanes);
    e->arc_s = g_new(double, e->n_afters[0] * e->n_afters[1] * e->n_out * e->lanes);
}

static CLEAR_DEFINE(prices_free, Elimination, e, let_go(e->wanted_s, g_free),
                    let_go(e->alias_s, g_free), let_go(e->no_dy.s, g_free),
                    let_go(e->no_second.s, g_free), let_go(e->no_contribution.s, g_free),
                    let_go(e->arc_s, g_free));

void choices_price_arcs(Choices *c)
{
    g_assert(c->elimination->c == c && c->groups->len > 0);
    Elimination *e = c->elimination;
    g_array_set_size(c->arcs.to, 0);
    g_array_set_size(c->arcs.least, 0);
    prices_new(e);
    if (e->lanes == 1)
        eliminate_one(e, c);
    else if (e->lanes == 2)
        eliminate_two(e, c);
    else
        eliminate_four(e, c);
    prices_free(e);
}
