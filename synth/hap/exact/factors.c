/* Pricing the factors of the relaxed cost. */
#include "synth/hap/exact/factors.h"

#include <math.h>
#include <string.h>

static const Times impossible = {
    {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}};

/* Adds all times of a step. */
static void factors_add_step(const Pricer *pricer, Times *sum, const Step *step)
{
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        sum->s[h] += step->comm_s + step->inner.s[h];
}

static Ask price_ask(const Elimination *e, uint32_t i, Form reads, FormSet saved)
{
    KILTER_ASSERT(i < TRANSITION_IN && reads < FORM_MAX);
    const Choices *c = e->c;
    Ask ask = {0};
    for (uint32_t f = 0; f < c->in[i].n_forms && f < FORM_MAX; f++) {
        FormSet held = form_bit(c->in[i].form[f]);
        Step before = {0}, later = {0};
        bool can =
            i >= c->view.n_in ||
            (choices_can_read(c, i, c->in[i].form[f], form_bit(reads) | saved) &&
             price_reach(c->pricer, c->view.tensor[i], &held, form_bit(reads), &before) &&
             price_reach(c->pricer, c->view.tensor[i], &held, saved, &later));
        factors_add_step(c->pricer, &ask.s[f], &before);
        factors_add_step(c->pricer, &ask.s[f], &later);
        if (!can)
            ask.s[f] = impossible;
        choices_after(&c->in[i], c->in[i].form[f], reads, &before, ask.after[f]);
    }
    return ask;
}

static void price_asks(Elimination *e, uint32_t i)
{
    Input *input = &e->input[i];
    for (uint32_t a = 0; a < input->keys.n; a++)
        input->ask[a] =
            price_ask(e, i, (Form)(input->keys.key[a] >> 8), (FormSet)input->keys.key[a]);
}

static void price_contributions(Elimination *e, uint32_t i)
{
    const Choices *c = e->c;
    const OpView *view = &c->view;
    for (Form made = 0; made < FORM_MAX; made++)
        for (uint32_t g = 0; g < c->in[i].n_gradients; g++) {
            Form sum = c->in[i].gradient[g];
            Times *s = &e->input[i].contribution[made][g];
            *s = (Times){{0}};
            if (i >= view->n_in || view->contribution[i] == GRAPH_NONE)
                continue;
            FormSet held = form_bit(made);
            Step step = {0};
            if (!(view->accumulates[i] >> sum & 1u) ||
                !choices_can_give(c, i, form_bit(made), sum) ||
                (view->alias[i] < 0 && !price_reach(c->pricer, view->contribution[i],
                                                    &held, form_bit(sum), &step)))
                *s = impossible;
            else
                *s = view->accumulation_work[i][sum];
            factors_add_step(c->pricer, s, &step);
        }
}

static Times price_one_dy(const Elimination *e, const FormSet *wanted, uint32_t dy)
{
    const Choices *c = e->c;
    Times s = {{0}};
    for (uint32_t o = 0; o < c->op->n_out; o++) {
        FormSet held = form_bit(c->out[o].gradient[arrival(e, dy, o)]);
        Step step = {0};
        if (wanted[o] &&
            !price_reach(c->pricer, graph_gradient(c->pricer->graph, c->op->out[o]),
                         &held, wanted[o], &step))
            return impossible;
        factors_add_step(c->pricer, &s, &step);
    }
    return s;
}

/* Room for `n` prices of all classes, in bundles. */
static double *bundles_new(const Elimination *e, size_t n)
{
    const uint32_t bundles = (e->c->pricer->n_classes + e->lanes - 1) / e->lanes;
    return g_new(double, bundles * e->lanes * n);
}

/* Stores a price in all bundles, `n` prices apart. */
static void keep_times(const Elimination *e, double *to, size_t n, size_t at,
                       const Times *times)
{
    KILTER_ASSERT(at < n && PRICE_MAX_CLASSES % e->lanes == 0);
    for (uint32_t h = 0; h < e->c->pricer->n_classes; h += e->lanes)
        memcpy(to + n * h + at * e->lanes, times->s + h, e->lanes * sizeof *to);
}

/* Conversions of dy, by its arrival, to the forms that the backward reads; INFINITY where there is
 * no conversion. */
static void price_dy(Elimination *e)
{
    size_t n = (size_t)e->wanted.n * e->n_dy, at = 0;
    e->wanted_s = bundles_new(e, n);
    for (uint32_t k = 0; k < e->wanted.n; k++) {
        const FormSet wanted[] = {(FormSet)e->wanted.key[k],
                                  (FormSet)(e->wanted.key[k] >> 8)};
        for (uint32_t dy = 0; dy < e->n_dy; dy++) {
            Times s = price_one_dy(e, wanted, dy);
            keep_times(e, e->wanted_s, n, at++, &s);
        }
    }
}

/* Conversions of dy to the sums of inputs that get dy itself, after the backward has read dy in the
 * forms `shared`. */
static Times price_alias(const Elimination *e, const FormSet *shared, uint32_t dy,
                         const uint32_t *g)
{
    const Choices *c = e->c;
    const OpView *view = &c->view;
    FormSet held[TRANSITION_OUT];
    for (uint32_t o = 0; o < TRANSITION_OUT; o++)
        held[o] = shared[o] | form_bit(c->out[o].gradient[arrival(e, dy, o)]);
    Times s = {{0}};
    for (uint32_t i = 0; i < view->n_in; i++) {
        Step step = {0};
        if (view->contribution[i] == GRAPH_NONE || view->alias[i] < 0)
            continue;
        if (!choices_can_give(c, i, held[view->alias[i]], c->in[i].gradient[g[i]]) ||
            !price_reach(c->pricer, view->contribution[i], &held[view->alias[i]],
                         form_bit(c->in[i].gradient[g[i]]), &step))
            return impossible;
        factors_add_step(c->pricer, &s, &step);
    }
    return s;
}

static void price_aliases(Elimination *e)
{
    const Choices *c = e->c;
    if (!op_view_is_alias(&c->view, 0) && !op_view_is_alias(&c->view, 1))
        return;
    uint32_t n0 = c->in[0].n_gradients, n1 = c->in[1].n_gradients;
    size_t n = (size_t)e->shared.n * n0 * n1 * e->n_dy, at = 0;
    e->alias_s = bundles_new(e, n);
    for (uint32_t k = 0; k < e->shared.n; k++) {
        const FormSet shared[] = {(FormSet)e->shared.key[k],
                                  (FormSet)(e->shared.key[k] >> 8)};
        for (uint32_t g0 = 0; g0 < n0; g0++)
            for (uint32_t g1 = 0; g1 < n1; g1++)
                for (uint32_t dy = 0; dy < e->n_dy; dy++) {
                    Times s = price_alias(e, shared, dy, (uint32_t[]){g0, g1});
                    keep_times(e, e->alias_s, n, at++, &s);
                }
    }
}

void price_factors(Elimination *e)
{
    for (uint32_t i = 0; i < TRANSITION_IN; i++) {
        price_asks(e, i);
        price_contributions(e, i);
    }
    price_dy(e);
    price_aliases(e);
}
