/* Pricing conversions and computations at fixed ratios (private to synth).
 *
 * Under the stage cost a computation is not one number: the open stage's maximum over devices is
 * only known when it closes. So work is kept as a vector of seconds, one entry per device class:
 * devices of equal speed and share are one class, and a class that another one exceeds in every
 * coefficient can never be the maximum and is left out. */
#ifndef KILTER_SYNTH_PRICE_H
#define KILTER_SYNTH_PRICE_H

#include "synth/forms.h"
#include "synth/synth.h"

enum { PRICE_MAX_CLASSES = 8 };

typedef struct {
    double s[PRICE_MAX_CLASSES];
} Times;

/* A communication step before some computations: a priced collective closes the stage before it. */
typedef struct {
    bool closes; /* holds at least one priced collective */
    double comm_s;
    Times inner; /* inner communication of virtual devices, part of the stage it opens */
} Step;

/* The coefficients of a class's time: seconds per FLOP, sharded FLOP, inner byte, sharded inner
 * byte, inner message, and second of fitted overhead; FLOPs as Device.fitted counts them. */
enum { COEFFICIENTS = 6 };
typedef struct {
    uint32_t fitted;
    double c[COEFFICIENTS];
} Coefficients;

/* Cheapest conversions between all forms of a tensor: one collective, or two, as where a shard is
 * padded with zeros (free) to be all-reduced, or partial sums are reduce-scattered and gathered. */
typedef struct {
    bool can;
    Form via;              /* between two collectives; FORM_MAX: there is one */
    Collective kind, then; /* `then`: the second one */
    Step step;
    double total_s; /* communication and the largest inner time */
} Conversion;
typedef struct {
    uint64_t bytes; /* of the tensor, */
    uint32_t roles; /* its role and that of the tensor that it belongs to, */
    FormSet forms;  /* forms that it may be held in, */
    uint32_t units[TENSOR_MAX_RANK]; /* and, with rounded shares, of its dims */
} ConversionKey;
typedef struct {
    ConversionKey key; /* what prices depend on */
    Conversion from_to[FORM_MAX][FORM_MAX];
} Conversions;

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const struct SynthPins *pins;    /* NULL: none; set by whoever has some */
    const Conversions **conversions; /* [tensor], filled as they are asked for; */
    GHashTable
        *alike; /* Conversions: tensors of equal bytes, roles and forms share them */
    double max_share;
    /* Of rounded shares (SynthShares): units, the largest share, and that of each class; n_units is 0
     * without. */
    uint32_t n_units;
    uint32_t *units;
    double *unit_max, *unit_share; /* [n_units], [n_units * PRICE_MAX_CLASSES] */
    /* Part of the batch that activations and their gradients are priced for; 1 unless the batch is
     * cut in time. */
    double part;
    uint32_t n_classes;
    Coefficients class[PRICE_MAX_CLASSES];
    bool charges;  /* memory is charged for */
    bool rationed; /* and limited: what takes longer but is charged less is not worse */
    SynthBytes charge[SYNTH_POINTS]; /* seconds per byte, summed over devices */
    /* [tensor] the forward op that pays for keeping it for the backward, or GRAPH_NONE; NULL
     * without charges */
    OpId *saver;
    OpId fullest; /* the forward op whose backward is SYNTH_POINT_FORWARD */
    bool direct;  /* one collective per conversion, never two: HAP's own search */
    bool inner;   /* some device is a machine of several GPUs, which communicate inside */
    bool exact;   /* false if there were more classes than fit: the largest were kept */
} Pricer;

/* memory_s: as in SynthOptions. */
void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio, const double *memory_s);
/* Prices that hold for all ratios with lo[j] <= ratio[j] <= hi[j] that sum to 1: at most the
 * time at any of them. Sharded work is at least lo_j of it on device j, and on a union of
 * devices, at the union's speed, at least what the others cannot take; sharded bytes lie where
 * they cost least. */
void pricer_init_box(Pricer *pricer, const Graph *graph, const ClusterView *view,
                     const double *lo, const double *hi, const double *memory_s);
void pricer_clear(Pricer *pricer);

/* The same prices for rounded shares; before anything is priced. More kinds of devices than classes
 * keep the ratios. */
void pricer_round(Pricer *pricer, const SynthShares *shares);

/* The largest share of a dim of so many units. */
double price_max_share(const Pricer *pricer, uint32_t units);

/* units: of the dim that is sharded; 0: none is. */
Times price_work(const Pricer *pricer, const SimWork *work, uint32_t units);
Times price_rule(const Pricer *pricer, OpId op, const Rule *rule);

/* Charge for holding the tensor in a form at a point, in seconds. */
double price_memory(const Pricer *pricer, SynthPoint point, TensorId tensor, Form form);

/* --- vectors over classes --- */

static inline double times_max(const Pricer *pricer, const Times *a)
{
    double max = a->s[0];
    for (uint32_t h = 1; h < pricer->n_classes; h++)
        max = a->s[h] > max ? a->s[h] : max;
    return max;
}

/* max(a - b). */
static inline double times_max_difference(const Pricer *pricer, const Times *a,
                                          const Times *b)
{
    double max = a->s[0] - b->s[0];
    for (uint32_t h = 1; h < pricer->n_classes; h++)
        max = a->s[h] - b->s[h] > max ? a->s[h] - b->s[h] : max;
    return max;
}

/* The same, at least 0. */
static inline double times_excess(const Pricer *pricer, const Times *a, const Times *b)
{
    double max = times_max_difference(pricer, a, b);
    return max > 0 ? max : 0;
}

static inline void times_add(const Pricer *pricer, Times *sum, const Times *a)
{
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        sum->s[h] += a->s[h];
}

/* Conversions until all of `wanted` are held, Identity first (from it the others are free), each
 * from the form it is cheapest from; what lies between two collectives is held too. Calls `each`,
 * if not NULL, for every conversion in order; adds their price to `step`. False if some form cannot
 * be reached. */
typedef void (*PriceEach)(Collective kind, TensorId tensor, Form from, Form to,
                          void *data);
bool price_reach(const Pricer *pricer, TensorId tensor, FormSet *held, FormSet wanted,
                 Step *step, PriceEach each, void *data);

#endif
