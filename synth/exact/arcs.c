/* Arcs: the least relaxed cost from each state of an op's inputs to each state after it.
 *
 * The relaxed cost of a transition is a sum of parts that each depend on few choices, so the rest
 * are minimised away one by one: first the forms in which the backward reads dy, then what depends
 * on the second input, then the form of the first one's contribution, then what it is asked for. */
#include "synth/exact/transition.h"

#include <math.h>
#include <string.h>

/* Reads and saved forms of an input that occur together, priced from each form that it is held in. */
typedef struct {
    Times s[FORM_MAX];          /* [form's number]; INFINITY if it cannot be */
    uint8_t after[FORM_MAX][2]; /* see choices_after */
} Ask;

/* Prices for one input: asks, and contributions from the form made to that of the sum. */
typedef struct {
    Index keys; /* reads and saved forms -> */
    Ask *ask;
    Times contribution[FORM_MAX][FORM_MAX]; /* [made][gradient's number] */
} Input;

/* What is left of a group without its forms of dy: key, and the least cost by arrival. */
typedef struct {
    uint32_t ask[TRANSITION_IN];
    Form makes[TRANSITION_IN];
    Form out[TRANSITION_OUT];
    FormSet shared
        [TRANSITION_OUT]; /* forms of dy that the backward reads, where contributions are dy itself */
} Part;

/* What a group is without its forms of dy, and those. */
typedef struct {
    uint32_t part, wanted;
} Member;

/* Which parts there are does not depend on prices; costs are filled in for one device class, `h`,
 * after the other. */
typedef struct Table {
    const Choices *c;
    uint32_t h;
    uint32_t n_dy; /* arrivals of all outputs' gradients, the last one innermost */
    Input input[TRANSITION_IN];
    Index wanted;   /* forms of dy that the backward reads -> */
    Index shared;   /* those sets where contributions are dy itself -> */
    Member *member; /* [group] */
    Index parts;
    GArray *part;       /* Part */
    Index firsts;       /* parts without the second input */
    GArray *first;      /* Part: one of them */
    uint32_t *first_of; /* [part] */
    Index lasts;        /* firsts without what they contribute to the first input */
    GArray *last;       /* Part: one of them */
    uint32_t *last_of;  /* [first] */
    uint32_t *last_to;  /* [last * n_dy + dy]: the outputs' part of `to` */
    /* While arcs are priced: */
    double *wanted_s; /* [(class * wanted + wanted) * n_dy + dy] */
    double *alias_s;  /* see price_aliases */
    double *part_s;   /* [part * n_dy + dy] */
    /* [((first * states + state) * afters + after) * n_dy + dy], of the second input. */
    double *first_s;
    /* [(((gradient * states + state) * lasts + last) * afters + after) * n_dy + dy], of the first
     * input's gradient and the second input. */
    double *last_s;
    double *zeros; /* [n_dy] */
    double *row;   /* [to] */
} Table;

static const Times impossible = {
    {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}};

/* Adds all that a step takes. */
static void add_step(const Pricer *pricer, Times *sum, const Step *step)
{
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        sum->s[h] += step->comm_s + step->inner.s[h];
}

static Ask price_ask(const Table *t, uint32_t i, Form reads, FormSet saved)
{
    const Choices *c = t->c;
    Ask ask = {0};
    for (uint32_t f = 0; f < c->in[i].n_forms && f < FORM_MAX; f++) {
        FormSet held = form_bit(c->in[i].form[f]);
        Step before = {0}, later = {0};
        bool can =
            i >= c->view.n_in ||
            (price_reach(c->pricer, c->view.tensor[i], &held, form_bit(reads), &before,
                         NULL, NULL) &&
             price_reach(c->pricer, c->view.tensor[i], &held, saved, &later, NULL, NULL));
        add_step(c->pricer, &ask.s[f], &before);
        add_step(c->pricer, &ask.s[f], &later);
        if (!can)
            ask.s[f] = impossible;
        choices_after(&c->in[i], c->in[i].form[f], reads, &before, ask.after[f]);
    }
    return ask;
}

static void price_asks(Table *t, uint32_t i)
{
    Input *input = &t->input[i];
    for (uint32_t a = 0; a < input->keys.n; a++)
        input->ask[a] =
            price_ask(t, i, (Form)(input->keys.key[a] >> 8), (FormSet)input->keys.key[a]);
}

static void price_contributions(Table *t, uint32_t i)
{
    const Choices *c = t->c;
    const OpView *view = &c->view;
    for (Form made = 0; made < FORM_MAX; made++)
        for (uint32_t g = 0; g < c->in[i].n_gradients; g++) {
            Form sum = c->in[i].gradient[g];
            Times *s = &t->input[i].contribution[made][g];
            *s = (Times){{0}};
            if (i >= view->n_in || view->contribution[i] == GRAPH_NONE)
                continue;
            FormSet held = form_bit(made);
            Step step = {0};
            if (!(view->accumulates[i] >> sum & 1u) ||
                (view->alias[i] < 0 &&
                 !price_reach(c->pricer, view->contribution[i], &held, form_bit(sum),
                              &step, NULL, NULL)))
                *s = impossible;
            else
                *s = view->accumulation_work[i][sum];
            add_step(c->pricer, s, &step);
        }
}

/* Number of output `o`'s arrival in arrivals of all. */
static uint32_t arrival(const Table *t, uint32_t dy, uint32_t o)
{
    uint32_t inner = t->c->out[1].n_gradients;
    return o == 0 ? dy / inner : dy % inner;
}

static Times price_one_dy(const Table *t, const FormSet *wanted, uint32_t dy)
{
    const Choices *c = t->c;
    Times s = {{0}};
    for (uint32_t o = 0; o < c->op->n_out; o++) {
        FormSet held = form_bit(c->out[o].gradient[arrival(t, dy, o)]);
        Step step = {0};
        if (wanted[o] &&
            !price_reach(c->pricer, graph_gradient(c->pricer->graph, c->op->out[o]),
                         &held, wanted[o], &step, NULL, NULL))
            return impossible;
        add_step(c->pricer, &s, &step);
    }
    return s;
}

/* Prices by arrival, that the backward reads dy in the forms wanted or shared, are kept class by
 * class. */
static void keep_times(const Table *t, double *to, size_t n, size_t at,
                       const Times *times)
{
    for (uint32_t h = 0; h < t->c->pricer->n_classes; h++)
        to[h * n + at] = times->s[h];
}

static uint64_t pack_dy(const FormSet *forms)
{
    return forms[0] | (uint64_t)forms[1] << 8;
}

/* What it costs, by arrival, that the backward reads dy in the forms wanted; INFINITY where it
 * cannot. */
static void price_dy(Table *t)
{
    size_t n = (size_t)t->wanted.n * t->n_dy, at = 0;
    t->wanted_s = g_new(double, t->c->pricer->n_classes *n);
    for (uint32_t k = 0; k < t->wanted.n; k++) {
        const FormSet wanted[] = {(FormSet)t->wanted.key[k],
                                  (FormSet)(t->wanted.key[k] >> 8)};
        for (uint32_t dy = 0; dy < t->n_dy; dy++) {
            Times s = price_one_dy(t, wanted, dy);
            keep_times(t, t->wanted_s, n, at++, &s);
        }
    }
}

/* Conversions of dy to the sums of inputs that get dy itself, once the backward had it in the forms
 * `shared`. */
static Times price_alias(const Table *t, const FormSet *shared, uint32_t dy,
                         const uint32_t *g)
{
    const Choices *c = t->c;
    const OpView *view = &c->view;
    FormSet held[TRANSITION_OUT];
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        held[o] = shared[o] | form_bit(c->out[o].gradient[arrival(t, dy, o)]);
    Times s = {{0}};
    for (uint32_t i = 0; i < view->n_in; i++) {
        Step step = {0};
        if (view->contribution[i] == GRAPH_NONE || view->alias[i] < 0)
            continue;
        if (!price_reach(c->pricer, view->contribution[i], &held[view->alias[i]],
                         form_bit(c->in[i].gradient[g[i]]), &step, NULL, NULL))
            return impossible;
        add_step(c->pricer, &s, &step);
    }
    return s;
}

/* [(((class * shared + shared) * n_gradients0 + g0) * n_gradients1 + g1) * n_dy + dy]; NULL if no
 * input gets dy itself. */
static void price_aliases(Table *t)
{
    const Choices *c = t->c;
    if (!choices_alias(c, 0) && !choices_alias(c, 1))
        return;
    uint32_t n0 = c->in[0].n_gradients, n1 = c->in[1].n_gradients;
    size_t n = (size_t)t->shared.n * n0 * n1 * t->n_dy, at = 0;
    t->alias_s = g_new(double, c->pricer->n_classes *n);
    for (uint32_t k = 0; k < t->shared.n; k++) {
        const FormSet shared[] = {(FormSet)t->shared.key[k],
                                  (FormSet)(t->shared.key[k] >> 8)};
        for (uint32_t g0 = 0; g0 < n0; g0++)
            for (uint32_t g1 = 0; g1 < n1; g1++)
                for (uint32_t dy = 0; dy < t->n_dy; dy++) {
                    Times s = price_alias(t, shared, dy, (uint32_t[]){g0, g1});
                    keep_times(t, t->alias_s, n, at++, &s);
                }
    }
}

/* With 12 bits an ask, 3 bits a form and 7 bits a set. */
static uint64_t input_key(const Part *part, uint32_t i)
{
    return (uint64_t)part->ask[i] << 3 | part->makes[i];
}

static uint64_t output_key(const Part *part, uint64_t key)
{
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        key = (key << 3 | part->out[o]) << 7 | part->shared[o];
    return key;
}

static uint64_t first_key(const Part *part)
{
    return output_key(part, input_key(part, 0));
}

/* Finds the parts of `all` that are alike but for some of their key, which `key` leaves out; sets
 * which one each is. */
static uint32_t *merge(const GArray *all, uint64_t (*key)(const Part *), Index *keys,
                       GArray *merged)
{
    uint32_t *of = g_new(uint32_t, all->len);
    for (uint32_t p = 0; p < all->len; p++) {
        const Part *part = &g_array_index(all, Part, p);
        of[p] = index_add(keys, key(part));
        if (of[p] == merged->len)
            g_array_append_vals(merged, part, 1);
    }
    return of;
}

static uint64_t last_key(const Part *part)
{
    return output_key(part, part->ask[0]);
}

/* Finds what parts groups are made of. */
static void find_parts(Table *t)
{
    const Choices *c = t->c;
    t->member = g_new(Member, c->groups->len);
    for (uint32_t g = 0; g < c->groups->len; g++) {
        const Needs *needs = &g_array_index(c->groups, Group, g).needs;
        Part part = {0};
        for (uint32_t i = 0; i < TRANSITION_IN; i++) {
            part.ask[i] = index_add(&t->input[i].keys,
                                    (uint64_t)needs->reads[i] << 8 | needs->saved[i]);
            part.makes[i] = needs->makes[i];
        }
        for (uint32_t o = 0; o < TRANSITION_OUT; o++) {
            part.out[o] = needs->out[o];
            part.shared[o] = choices_alias(c, o) ? needs->wanted_dy[o] : 0;
        }
        index_add(&t->shared, pack_dy(part.shared));
        uint32_t at = index_add(&t->parts, first_key(&part) << 15 | input_key(&part, 1));
        if (at == t->part->len)
            g_array_append_val(t->part, part);
        t->member[g] = (Member){at, index_add(&t->wanted, pack_dy(needs->wanted_dy))};
    }
    t->first_of = merge(t->part, first_key, &t->firsts, t->first);
    t->last_of = merge(t->first, last_key, &t->lasts, t->last);
}

/* Groups to parts. */
static void drop_dy(Table *t)
{
    const Choices *c = t->c;
    for (size_t i = 0; i < (size_t)t->part->len * t->n_dy; i++)
        t->part_s[i] = INFINITY;
    for (uint32_t g = 0; g < c->groups->len; g++) {
        double least = g_array_index(c->groups, Group, g).least.s[t->h];
        const Member *member = &t->member[g];
        const double *dy_s =
            t->wanted_s + ((size_t)t->h * t->wanted.n + member->wanted) * t->n_dy;
        double *s = t->part_s + (size_t)member->part * t->n_dy;
        for (uint32_t dy = 0; dy < t->n_dy; dy++)
            s[dy] = least + dy_s[dy] < s[dy] ? least + dy_s[dy] : s[dy];
    }
}

/* Forms that the second input can be in afterwards, as far as that matters. */
static uint32_t n_afters(const Choices *c)
{
    return c->survives[1] ? c->in[1].n_forms : 1;
}

/* In how many forms input `i` can be after an ask from its form `f`, as far as that matters. */
static uint32_t n_choices(const Choices *c, uint32_t i, const Ask *ask, uint32_t f)
{
    return c->survives[i] && ask->after[f][0] != ask->after[f][1] ? 2 : 1;
}

static double *first_at(const Table *t, uint32_t first, uint32_t state, uint32_t after)
{
    const Choices *c = t->c;
    return t->first_s +
           ((size_t)(first * c->in[1].n + state) * n_afters(c) + after) * t->n_dy;
}

/* Parts to firsts: the second input's states take the place of what it is asked for. */
static void drop_second(Table *t)
{
    const Choices *c = t->c;
    size_t n = (size_t)t->first->len * c->in[1].n * n_afters(c) * t->n_dy;
    for (size_t i = 0; i < n; i++)
        t->first_s[i] = INFINITY;
    for (uint32_t p = 0; p < t->part->len; p++) {
        const Part *part = &g_array_index(t->part, Part, p);
        const double *from = t->part_s + (size_t)p * t->n_dy;
        const Ask *ask = &t->input[1].ask[part->ask[1]];
        for (uint32_t state = 0; state < c->in[1].n; state++) {
            uint32_t f = state / c->in[1].n_gradients, g = state % c->in[1].n_gradients;
            double s =
                ask->s[f].s[t->h] + t->input[1].contribution[part->makes[1]][g].s[t->h];
            if (!isfinite(s))
                continue;
            for (uint32_t k = 0; k < n_choices(c, 1, ask, f); k++) {
                double *to = first_at(t, t->first_of[p], state,
                                      c->survives[1] ? ask->after[f][k] : 0);
                for (uint32_t dy = 0; dy < t->n_dy; dy++)
                    to[dy] = from[dy] + s < to[dy] ? from[dy] + s : to[dy];
            }
        }
    }
}

static double *last_at(const Table *t, uint32_t g0, uint32_t state, uint32_t last)
{
    const Choices *c = t->c;
    return t->last_s + ((size_t)(g0 * c->in[1].n + state) * t->last->len + last) *
                           n_afters(c) * t->n_dy;
}

/* Firsts to lasts: the first input's gradient takes the place of what is contributed to it. */
static void drop_contribution(Table *t)
{
    const Choices *c = t->c;
    const uint32_t n = n_afters(c) * t->n_dy, rows = c->in[0].n_gradients * c->in[1].n;
    for (size_t i = 0; i < (size_t)rows * t->last->len * n; i++)
        t->last_s[i] = INFINITY;
    for (uint32_t k = 0; k < t->first->len; k++) {
        const Form made = g_array_index(t->first, Part, k).makes[0];
        for (uint32_t row = 0; row < rows; row++) {
            uint32_t g0 = row / c->in[1].n, state = row % c->in[1].n;
            double s = t->input[0].contribution[made][g0].s[t->h];
            const double *from = first_at(t, k, state, 0);
            double *restrict to = last_at(t, g0, state, t->last_of[k]);
            for (uint32_t i = 0; i < n && isfinite(s); i++)
                to[i] = from[i] + s < to[i] ? from[i] + s : to[i];
        }
    }
}

/* The part of `to` that outputs take, by arrival; see Choices. */
static uint32_t output_to(const Table *t, const Part *part, uint32_t dy)
{
    const Choices *c = t->c;
    uint32_t to = 0;
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        if (c->lives[o])
            to = to * c->out[o].n +
                 c->out[o].form_at[part->out[o]] * c->out[o].n_gradients +
                 arrival(t, dy, o);
    return to;
}

/* Conversions of dy by arrival, see price_aliases; zeros if no input gets dy itself. */
static const double *alias_at(Table *t, const Part *part, const uint32_t *g)
{
    const Choices *c = t->c;
    if (!t->alias_s)
        return t->zeros;
    size_t shared =
        (size_t)t->h * t->shared.n + index_add(&t->shared, pack_dy(part->shared));
    size_t row = (shared * c->in[0].n_gradients + g[0]) * c->in[1].n_gradients + g[1];
    return t->alias_s + row * t->n_dy;
}

/* Mostly arrivals are neighbours in `to` as well. */
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

/* The least cost from states of both inputs to all states after. */
static void fill_row(Table *t, uint32_t state0, uint32_t state1)
{
    const Choices *c = t->c;
    const uint32_t f0 = state0 / c->in[0].n_gradients;
    const uint32_t g[] = {state0 % c->in[0].n_gradients, state1 % c->in[1].n_gradients};
    for (uint32_t to = 0; to < c->n_to; to++)
        t->row[to] = INFINITY;
    uint32_t n_out = (c->lives[0] ? c->out[0].n : 1) * (c->lives[1] ? c->out[1].n : 1);
    for (uint32_t k = 0; k < t->last->len; k++) {
        const Part *part = &g_array_index(t->last, Part, k);
        const Ask *ask = &t->input[0].ask[part->ask[0]];
        double s = ask->s[f0].s[t->h];
        if (!isfinite(s))
            continue;
        const double *alias_s = alias_at(t, part, g);
        const double *from = last_at(t, g[0], state1, k);
        for (uint32_t a = 0; a < n_choices(c, 0, ask, f0) * n_afters(c); a++) {
            uint32_t after = a % n_afters(c), both = 0;
            if (c->survives[0])
                both = ask->after[f0][a / n_afters(c)] * c->in[0].n_gradients + g[0];
            if (c->survives[1])
                both = both * c->in[1].n + after * c->in[1].n_gradients + g[1];
            least_of(t->row + both * n_out, t->last_to + k * t->n_dy,
                     from + after * t->n_dy, alias_s, s, t->n_dy);
        }
    }
}

/* Arcs are the finite entries: the same ones in every class. */
static void keep_row(Table *t, Choices *choices, uint32_t in)
{
    if (t->h == 0) {
        uint32_t n = choices->arcs->len;
        g_array_set_size(choices->arcs, n + choices->n_to);
        Arc *arc = &g_array_index(choices->arcs, Arc, 0);
        for (uint32_t to = 0; to < choices->n_to; to++)
            if (isfinite(t->row[to])) {
                arc[n].to = to;
                arc[n++].least.s[0] = t->row[to];
            }
        g_array_set_size(choices->arcs, n);
        choices->first_arc[in + 1] = n;
        return;
    }
    for (uint32_t e = choices->first_arc[in]; e < choices->first_arc[in + 1]; e++) {
        Arc *arc = &g_array_index(choices->arcs, Arc, e);
        arc->least.s[t->h] = t->row[arc->to];
    }
}

struct Table *table_new(const Choices *c)
{
    Table *t = g_new0(Table, 1);
    t->c = c;
    t->n_dy = c->out[0].n_gradients * c->out[1].n_gradients;
    t->part = g_array_new(FALSE, FALSE, sizeof(Part));
    t->first = g_array_new(FALSE, FALSE, sizeof(Part));
    t->last = g_array_new(FALSE, FALSE, sizeof(Part));
    find_parts(t);
    t->last_to = g_new(uint32_t, t->last->len * t->n_dy);
    for (uint32_t k = 0; k < t->last->len; k++)
        for (uint32_t dy = 0; dy < t->n_dy; dy++)
            t->last_to[k * t->n_dy + dy] =
                output_to(t, &g_array_index(t->last, Part, k), dy);
    for (uint32_t i = 0; i < TRANSITION_IN; i++)
        t->input[i].ask = g_new(Ask, t->input[i].keys.n);
    return t;
}

void table_free(struct Table *t)
{
    for (uint32_t i = 0; i < TRANSITION_IN; i++) {
        index_clear(&t->input[i].keys);
        g_free(t->input[i].ask);
    }
    index_clear(&t->wanted);
    index_clear(&t->shared);
    index_clear(&t->parts);
    index_clear(&t->firsts);
    g_free(t->member);
    g_array_unref(t->part);
    g_array_unref(t->first);
    g_free(t->first_of);
    index_clear(&t->lasts);
    g_array_unref(t->last);
    g_free(t->last_of);
    g_free(t->last_to);
    g_free(t);
}

/* Prices that every class has, and room for those of one. */
static void price_table(Table *t)
{
    const Choices *c = t->c;
    for (uint32_t i = 0; i < TRANSITION_IN; i++) {
        price_asks(t, i);
        price_contributions(t, i);
    }
    price_dy(t);
    price_aliases(t);
    t->part_s = g_new(double, (size_t)t->part->len * t->n_dy);
    t->first_s =
        g_new(double, (size_t)t->first->len * c->in[1].n * n_afters(c) * t->n_dy);
    t->last_s = g_new(double, (size_t)c->in[0].n_gradients * c->in[1].n * t->last->len *
                                  n_afters(c) * t->n_dy);
    t->zeros = g_new0(double, t->n_dy);
    t->row = g_new(double, c->n_to);
}

static void forget_prices(Table *t)
{
    g_clear_pointer(&t->wanted_s, g_free);
    g_clear_pointer(&t->alias_s, g_free);
    g_clear_pointer(&t->part_s, g_free);
    g_clear_pointer(&t->first_s, g_free);
    g_clear_pointer(&t->last_s, g_free);
    g_clear_pointer(&t->zeros, g_free);
    g_clear_pointer(&t->row, g_free);
}

void choices_price_arcs(Choices *c)
{
    Table *t = c->table;
    g_array_set_size(c->arcs, 0);
    price_table(t);
    for (t->h = 0; t->h < c->pricer->n_classes; t->h++) {
        drop_dy(t);
        drop_second(t);
        drop_contribution(t);
        for (uint32_t in = 0; in < c->n_in; in++) {
            fill_row(t, c->same ? in : in / c->in[1].n, c->same ? in : in % c->in[1].n);
            keep_row(t, c, in);
        }
    }
    forget_prices(t);
}
