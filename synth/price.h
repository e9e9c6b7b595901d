/* Pricing conversions and computations at fixed ratios (private to synth).
 *
 * Under the stage cost a computation is not one number: the open stage's maximum over devices is only known when it
 * closes. So work is kept as a vector of seconds, one entry a device class: devices of equal speed and share are one
 * class, and a class that another one exceeds in every coefficient can never be the maximum and is left out. */
#ifndef KILTER_SYNTH_PRICE_H
#define KILTER_SYNTH_PRICE_H

#include "sim/sim.h"

enum { PRICE_MAX_CLASSES = 8 };

typedef struct {
    double s[PRICE_MAX_CLASSES];
} Times;

/* A communication step before some computations: a priced collective closes the stage before it. */
typedef struct {
    bool closes; /* holds at least one priced collective */
    double comm_s;
    Times
        inner; /* inner communication of virtual devices, part of the stage that the step opens */
} Step;

typedef uint8_t FormSet; /* bit f: form f */

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    double max_share;
    uint32_t n_classes;
    const Device *device[PRICE_MAX_CLASSES]; /* representatives */
    double share[PRICE_MAX_CLASSES];
    bool exact; /* false if there were more classes than fit: the largest were kept */
} Pricer;

void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio);

Times price_work(const Pricer *pricer, const SimWork *work);
Times price_rule(const Pricer *pricer, OpId op, const Rule *rule);
double times_max(const Pricer *pricer, const Times *a);
/* max over classes of a - b. */
double times_max_difference(const Pricer *pricer, const Times *a, const Times *b);
void times_add(const Pricer *pricer, Times *sum, const Times *a);

/* Whether a tensor may be held in a form: sharded dims need units > 1. */
bool price_can_hold(const Graph *graph, TensorId tensor, Form form);
/* All forms that it may be held in. */
FormSet price_forms(const Graph *graph, TensorId tensor);

/* Cheapest conversion of `tensor` from one of the `held` forms to `to`, added to `step`. False if there is none. */
bool price_convert(const Pricer *pricer, TensorId tensor, FormSet held, Form to,
                   Collective *kind, Form *from, Step *step);

/* Conversions until all of `wanted` are held, Identity first (from it the others are free): calls `each`, if not NULL, for
 * every conversion in order; adds their price to `step`. False if some form cannot be reached. */
typedef void (*PriceEach)(Collective kind, TensorId tensor, Form from, Form to,
                          void *data);
bool price_reach(const Pricer *pricer, TensorId tensor, FormSet *held, FormSet wanted,
                 Step *step, PriceEach each, void *data);

#endif
