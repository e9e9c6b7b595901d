/* Pricing conversions and computations at fixed ratios (private to synth).
 *
 * Under the stage cost a computation is not one number: the open stage's maximum over devices is
 * only known when it closes. So work is kept as a vector of seconds, one entry per device class:
 * devices of equal speed and share are one class, and a class that another class exceeds in every
 * coefficient can never be the maximum and is left out. */
#pragma once

#include "synth/spmd/forms.h"
#include "synth/spmd/spmd.h"

enum { PRICE_MAX_CLASSES = 8 };

typedef struct {
    double s[PRICE_MAX_CLASSES];
} Times;

/* A communication step before computations; a priced collective in it closes the stage before. */
typedef struct {
    bool closes; /* it holds at least one priced collective */
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

/* The cheapest conversion from one form of a tensor to another: one collective, or two, for example
 * when a shard is padded with zeros (free) and all-reduced, or partial sums are reduce-scattered
 * and gathered. */
typedef struct {
    bool can;
    /* the form between two collectives; FORM_MAX: there is one collective */
    Form via;
    Collective kind, then; /* `then`: the second collective */
    Step step;
    double total_s; /* communication and the largest inner time */
} Conversion;
typedef struct {
    uint64_t bytes; /* bytes of the tensor */
    uint32_t roles; /* its role, and the role of the tensor that it belongs to */
    FormSet forms;  /* forms in which it may be held */
    uint32_t units[TENSOR_MAX_RANK]; /* with rounded shares: units of its dims */
    uint16_t made, read;             /* with segments: as in PriceSegments */
} ConversionKey;
typedef struct {
    ConversionKey key; /* everything that prices depend on */
    Conversion from_to[FORM_MAX][FORM_MAX];
} Conversions;

/* Ratios that differ by segment. A tensor is cut by the segment that makes it or, once it was
 * converted, by the first other segment that reads it. */
typedef struct {
    uint32_t n;         /* segments; 0: all ops have the same ratios */
    const uint16_t *of; /* [op] */
    /* share of each class, and largest share: [n * PRICE_MAX_CLASSES], [n] */
    double *share, *largest;
    uint16_t *made, *read; /* [tensor] */
} PriceSegments;

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const struct SynthPins *pins;    /* NULL: none; set by the caller */
    const Conversions **conversions; /* [tensor], filled when asked for */
    /* Conversions, shared by tensors of equal bytes, roles and forms */
    GHashTable *alike;
    SimMemo *memo; /* times of kernels that were priced; NULL: no device has kernels */
    double max_share;
    /* for rounded shares (SynthShares): units, largest share, and share of each class; n_units is 0
     * without them */
    uint32_t n_units;
    uint32_t *units;
    double *unit_max, *unit_share; /* [n_units], [n_units * PRICE_MAX_CLASSES] */
    PriceSegments segments;
    /* the part of the batch for which activations and their gradients are priced; 1 unless there
     * are microbatches */
    double part;
    uint32_t n_classes;
    Coefficients class[PRICE_MAX_CLASSES];
    bool charges; /* memory is charged for */
    /* memory is limited: a label that is slower but charged less is not worse */
    bool rationed;
    /* a transition that costs at most so much more than another counts as dominated by it */
    double tolerance_s;
    SynthBytes charge[SYNTH_POINTS]; /* seconds per byte, summed over devices */
    /* [tensor]: the forward op that pays for keeping it for the backward, or GRAPH_NONE; NULL
     * without charges */
    OpId *saver;
    OpId fullest; /* the forward op at whose backward SYNTH_POINT_FORWARD lies */
    bool direct;  /* one collective per conversion, never two: HAP's own search */
    bool inner;   /* some device is a machine whose GPUs communicate inside */
    /* false if there were too many classes and only the largest were kept */
    bool exact;
} Pricer;

/* memory_s: as in SynthOptions. */
void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio, const double *memory_s);
/* Prices that hold for all ratios with lo[j] <= ratio[j] <= hi[j] that sum to 1, the largest of
 * which is at least `largest`: at most the time at any of them. Device j gets at least the part
 * lo_j of sharded work, and a union of devices, at the union's speed, at least the part that the
 * others cannot take; sharded bytes lie where they cost least. */
void pricer_init_box(Pricer *pricer, const Graph *graph, const ClusterView *view,
                     const double *lo, const double *hi, double largest,
                     const double *memory_s);
AUTOCLEAR(pricer_clear, Pricer)

/* Switches to prices for rounded shares; to be called before anything is priced. If there are more
 * kinds of devices than classes, the ratios stay in use. */
void pricer_round(Pricer *pricer, const SynthShares *shares);
/* After pricer_round: leaves only the class that takes longest for sharded work, so that no time is
 * above the time for all classes. False if there is only one class. */
bool pricer_keep_slowest(Pricer *pricer);

/* Switches to ratios [n * n_devices] by segment. segment: [op], which the caller keeps. To be
 * called before anything is priced, and not with rounded shares. Classes beyond the most are left
 * out. */
void pricer_set_segments(Pricer *pricer, const uint16_t *segment, uint32_t n,
                         const double *ratio);
/* Whether op `reader` is in another segment than the op that makes the tensor, so that it cannot
 * read a shard as it was made. */
bool price_is_foreign(const Pricer *pricer, TensorId tensor, OpId reader);
/* Appends the segments that prices of the tensor depend on. */
void price_describe_segments(const Pricer *pricer, TensorId tensor, GString *key);

/* The largest share of a dim of `units` units in a segment (0 if there are none). */
double price_max_share(const Pricer *pricer, uint32_t units, uint32_t segment);

/* Seconds of `work` in a segment by class. units: of the sharded dim; 0: no dim is sharded. */
Times price_work(const Pricer *pricer, const SimWork *work, uint32_t units,
                 uint32_t segment);
Times price_rule(const Pricer *pricer, OpId op, const Rule *rule);

/* The charge, in seconds, for holding the tensor in a form at a point. */
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

/* Converts until all forms of `wanted` are held, Identity first (from it the others are free), each
 * from the cheapest held form; the form between two collectives counts as held, too. Calls `each`,
 * if not NULL, for every conversion in order, and adds the price to `step`. False if some form
 * cannot be reached. */
typedef void (*PriceEach)(Collective kind, TensorId tensor, Form from, Form to,
                          void *data);
bool price_reach_by(const Pricer *pricer, TensorId tensor, FormSet *held, FormSet wanted,
                    Step *step, PriceEach each, void *data);
static inline bool price_reach(const Pricer *pricer, TensorId tensor, FormSet *held,
                               FormSet wanted, Step *step)
{
    return price_reach_by(pricer, tensor, held, wanted, step, NULL, NULL);
}
