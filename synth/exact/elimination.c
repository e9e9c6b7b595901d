/* Arcs: the least relaxed cost from each state of an op's inputs to each state after it, by
 * min-plus elimination. Choices are eliminated in this order: the forms in which the backward reads
 * dy; the second input's ask and contribution; the form of the first input's contribution; the
 * first input's ask. */
#include "synth/exact/factors.h"

#include <math.h>

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

static uint64_t key_no_dy(const Row *row)
{
    return pack(pack(key_no_second(row), ASK_BITS, row->ask[1]), FORM_BITS,
                row->makes[1]);
}

/* Makes the factor's rows from the rows of the factor before it. */
static void merge_rows(Factor *factor, const Factor *before, uint64_t (*key)(const Row *))
{
    factor->merged = g_new(uint32_t, before->row->len);
    for (uint32_t r = 0; r < before->row->len; r++) {
        const Row *row = &g_array_index(before->row, Row, r);
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
    for (uint32_t g = 0; g < c->groups->len; g++) {
        const Needs *needs = &g_array_index(c->groups, Group, g).needs;
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
        uint32_t at = index_add(&e->no_dy.keys, key_no_dy(&row));
        if (at == e->no_dy.row->len)
            g_array_append_val(e->no_dy.row, row);
        e->member[g] = (Member){at, index_add(&e->wanted, pack_dy(needs->wanted_dy))};
    }
    merge_rows(&e->no_second, &e->no_dy, key_no_second);
    merge_rows(&e->no_contribution, &e->no_second, key_no_contribution);
}

/* --- elimination, choice by choice --- */

/* The number of forms that the second input can be in afterwards, as far as they matter. */
static uint32_t n_afters(const Choices *c)
{
    return c->survives[1] ? c->in[1].n_forms : 1;
}

static size_t n_no_dy(const Elimination *e)
{
    return (size_t)e->no_dy.row->len * e->n_dy;
}

static size_t n_no_second(const Elimination *e)
{
    return (size_t)e->no_second.row->len * e->c->in[1].n * n_afters(e->c) * e->n_dy;
}

static size_t n_no_contribution(const Elimination *e)
{
    return (size_t)e->c->in[0].n_gradients * e->c->in[1].n * e->no_contribution.row->len *
           n_afters(e->c) * e->n_dy;
}

static void set_infinite(Factor *factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        factor->s[i] = INFINITY;
}

/* Eliminates the forms in which the backward reads dy, from the groups. */
static void eliminate_dy(Elimination *e)
{
    const Choices *c = e->c;
    set_infinite(&e->no_dy, n_no_dy(e));
    for (uint32_t g = 0; g < c->groups->len; g++) {
        double least = g_array_index(c->groups, Group, g).least.s[e->h];
        const Member *member = &e->member[g];
        const double *dy_s =
            e->wanted_s + ((size_t)e->h * e->wanted.n + member->wanted) * e->n_dy;
        double *s = e->no_dy.s + (size_t)member->row * e->n_dy;
        for (uint32_t dy = 0; dy < e->n_dy; dy++)
            s[dy] = least + dy_s[dy] < s[dy] ? least + dy_s[dy] : s[dy];
    }
}

/* The number of forms that input `i` can be in after an ask from its form `f`, as far as they
 * matter. */
static uint32_t n_choices(const Choices *c, uint32_t i, const Ask *ask, uint32_t f)
{
    KILTER_ASSERT(i < TRANSITION_IN);
    return c->survives[i] && ask->after[f][0] != ask->after[f][1] ? 2 : 1;
}

static double *no_second_at(const Elimination *e, uint32_t row, uint32_t state,
                            uint32_t after)
{
    KILTER_ASSERT(row < e->no_second.row->len && state < e->c->in[1].n &&
                  after < n_afters(e->c));
    const Choices *c = e->c;
    return e->no_second.s +
           ((size_t)(row * c->in[1].n + state) * n_afters(c) + after) * e->n_dy;
}

/* Eliminates from no_dy the second input's ask and the form of its contribution, given its states
 * before and after. */
static void eliminate_second_input(Elimination *e)
{
    const Choices *c = e->c;
    set_infinite(&e->no_second, n_no_second(e));
    for (uint32_t p = 0; p < e->no_dy.row->len; p++) {
        const Row *row = &g_array_index(e->no_dy.row, Row, p);
        const double *from = e->no_dy.s + (size_t)p * e->n_dy;
        const Ask *ask = &e->input[1].ask[row->ask[1]];
        for (uint32_t state = 0; state < c->in[1].n; state++) {
            uint32_t f = state / c->in[1].n_gradients, g = state % c->in[1].n_gradients;
            double s =
                ask->s[f].s[e->h] + e->input[1].contribution[row->makes[1]][g].s[e->h];
            if (!isfinite(s))
                continue;
            for (uint32_t k = 0; k < n_choices(c, 1, ask, f); k++) {
                double *to = no_second_at(e, e->no_second.merged[p], state,
                                          c->survives[1] ? ask->after[f][k] : 0);
                for (uint32_t dy = 0; dy < e->n_dy; dy++)
                    to[dy] = from[dy] + s < to[dy] ? from[dy] + s : to[dy];
            }
        }
    }
}

static double *no_contribution_at(const Elimination *e, uint32_t g0, uint32_t state,
                                  uint32_t row)
{
    KILTER_ASSERT(row < e->no_contribution.row->len && g0 < e->c->in[0].n_gradients &&
                  state < e->c->in[1].n);
    const Choices *c = e->c;
    return e->no_contribution.s +
           ((size_t)(g0 * c->in[1].n + state) * e->no_contribution.row->len + row) *
               n_afters(c) * e->n_dy;
}

/* Eliminates from no_second the form of the contribution to the first input, given the form of its
 * gradient. */
static void eliminate_contribution(Elimination *e)
{
    const Choices *c = e->c;
    const uint32_t n = n_afters(c) * e->n_dy,
                   n_states = c->in[0].n_gradients * c->in[1].n;
    set_infinite(&e->no_contribution, n_no_contribution(e));
    for (uint32_t r = 0; r < e->no_second.row->len; r++) {
        const Form made = g_array_index(e->no_second.row, Row, r).makes[0];
        for (uint32_t i = 0; i < n_states; i++) {
            uint32_t g0 = i / c->in[1].n, state = i % c->in[1].n;
            double s = e->input[0].contribution[made][g0].s[e->h];
            const double *from = no_second_at(e, r, state, 0);
            double *restrict to =
                no_contribution_at(e, g0, state, e->no_contribution.merged[r]);
            for (uint32_t k = 0; k < n && isfinite(s); k++)
                to[k] = from[k] + s < to[k] ? from[k] + s : to[k];
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

/* Conversions of dy itself to the sums of inputs, by arrival; zeros if no input gets dy itself. */
static const double *alias_at(Elimination *e, const Row *row, const uint32_t *g)
{
    const Choices *c = e->c;
    if (!e->alias_s)
        return e->zeros;
    size_t shared =
        (size_t)e->h * e->shared.n + index_add(&e->shared, pack_dy(row->shared));
    size_t at = (shared * c->in[0].n_gradients + g[0]) * c->in[1].n_gradients + g[1];
    return e->alias_s + at * e->n_dy;
}

/* Takes minima over all arrivals, which mostly are neighbours in `to` as well. */
static void least_of(double *restrict to, const uint32_t *at, const double *from,
                     const double *alias_s, double s, uint32_t n)
{
    if (at[n - 1] - at[0] == n - 1) {
        to += at[0];
        for (uint32_t i = 0; i < n; i++) {
            double sum = from[i] + alias_s[i] + s;
            to[i] = sum < to[i] ? sum : to[i];
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        double sum = from[i] + alias_s[i] + s;
        if (sum < to[at[i]])
            to[at[i]] = sum;
    }
}

/* Eliminates the first input's ask from no_contribution, which leaves the least cost from states of
 * both inputs to all states after. */
static void eliminate_first_input(Elimination *e, uint32_t state0, uint32_t state1)
{
    KILTER_ASSERT(state0 < e->c->in[0].n && state1 < e->c->in[1].n);
    const Choices *c = e->c;
    const uint32_t f0 = state0 / c->in[0].n_gradients;
    const uint32_t g[] = {state0 % c->in[0].n_gradients, state1 % c->in[1].n_gradients};
    for (uint32_t to = 0; to < c->n_to; to++)
        e->arc_s[to] = INFINITY;
    uint32_t n_out = (c->lives[0] ? c->out[0].n : 1) * (c->lives[1] ? c->out[1].n : 1);
    for (uint32_t k = 0; k < e->no_contribution.row->len; k++) {
        const Row *row = &g_array_index(e->no_contribution.row, Row, k);
        const Ask *ask = &e->input[0].ask[row->ask[0]];
        double s = ask->s[f0].s[e->h];
        if (!isfinite(s))
            continue;
        const double *alias_s = alias_at(e, row, g);
        const double *from = no_contribution_at(e, g[0], state1, k);
        for (uint32_t a = 0; a < n_choices(c, 0, ask, f0) * n_afters(c); a++) {
            uint32_t after = a % n_afters(c), both = 0;
            if (c->survives[0])
                both = ask->after[f0][a / n_afters(c)] * c->in[0].n_gradients + g[0];
            if (c->survives[1])
                both = both * c->in[1].n + after * c->in[1].n_gradients + g[1];
            least_of(e->arc_s + both * n_out, e->outputs_to + k * e->n_dy,
                     from + after * e->n_dy, alias_s, s, e->n_dy);
        }
    }
}

/* Keeps the finite costs as arcs. All classes have the same arcs. */
static void keep_arcs(Elimination *e, Choices *choices, uint32_t in)
{
    if (e->h == 0) {
        uint32_t n = choices->arcs->len;
        g_array_set_size(choices->arcs, n + choices->n_to);
        Arc *arc = &g_array_index(choices->arcs, Arc, 0);
        for (uint32_t to = 0; to < choices->n_to; to++)
            if (isfinite(e->arc_s[to])) {
                arc[n].to = to;
                arc[n++].least.s[0] = e->arc_s[to];
            }
        g_array_set_size(choices->arcs, n);
        choices->first_arc[in + 1] = n;
        return;
    }
    for (uint32_t a = choices->first_arc[in]; a < choices->first_arc[in + 1]; a++) {
        Arc *arc = &g_array_index(choices->arcs, Arc, a);
        arc->least.s[e->h] = e->arc_s[arc->to];
    }
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
    for (uint32_t k = 0; k < e->no_contribution.row->len; k++)
        for (uint32_t dy = 0; dy < e->n_dy; dy++)
            e->outputs_to[k * e->n_dy + dy] =
                output_to(e, &g_array_index(e->no_contribution.row, Row, k), dy);
    for (uint32_t i = 0; i < TRANSITION_IN; i++)
        e->input[i].ask = g_new(Ask, e->input[i].keys.n);
    return e;
}

static void factor_clear(Factor *factor)
{
    index_clear(&factor->keys);
    g_array_unref(factor->row);
    g_free(factor->merged);
}

void elimination_free(struct Elimination *e)
{
    for (uint32_t i = 0; i < TRANSITION_IN; i++) {
        index_clear(&e->input[i].keys);
        g_free(e->input[i].ask);
    }
    index_clear(&e->wanted);
    index_clear(&e->shared);
    g_free(e->member);
    factor_clear(&e->no_dy);
    factor_clear(&e->no_second);
    factor_clear(&e->no_contribution);
    g_free(e->outputs_to);
    g_free(e);
}

static void prices_new(Elimination *e)
{
    price_factors(e);
    e->no_dy.s = g_new(double, n_no_dy(e));
    e->no_second.s = g_new(double, n_no_second(e));
    e->no_contribution.s = g_new(double, n_no_contribution(e));
    e->zeros = g_new0(double, e->n_dy);
    e->arc_s = g_new(double, e->c->n_to);
}

static void prices_free(Elimination *e)
{
    g_clear_pointer(&e->wanted_s, g_free);
    g_clear_pointer(&e->alias_s, g_free);
    g_clear_pointer(&e->no_dy.s, g_free);
    g_clear_pointer(&e->no_second.s, g_free);
    g_clear_pointer(&e->no_contribution.s, g_free);
    g_clear_pointer(&e->zeros, g_free);
    g_clear_pointer(&e->arc_s, g_free);
}

void choices_price_arcs(Choices *c)
{
    g_assert(c->elimination->c == c && c->groups->len > 0);
    Elimination *e = c->elimination;
    g_array_set_size(c->arcs, 0);
    prices_new(e);
    for (e->h = 0; e->h < c->pricer->n_classes; e->h++) {
        eliminate_dy(e);
        eliminate_second_input(e);
        eliminate_contribution(e);
        for (uint32_t in = 0; in < c->n_in; in++) {
            eliminate_first_input(e, c->same ? in : in / c->in[1].n,
                                  c->same ? in : in % c->in[1].n);
            keep_arcs(e, c, in);
        }
    }
    prices_free(e);
}
