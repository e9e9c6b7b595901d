/* synth: the searches for a distributed program.
 *
 * An *assignment* fixes a rule for every op, which gradients of parameters are deferred, the form
 * each activation's gradient is accumulated in, and the form each parameter and optimizer state
 * rests in. synth_emit() turns it into a program with the conversions in place:
 *
 *     loads | parameter conversions | forward, conversions before each op | backward, in reverse:
 *     conversions of dy and saved tensors, the op's gradients, conversions of its contributions,
 *     deferred gradients of its parameters, accumulation | gradient conversions | updates |
 *     conversions of updated values to the form at rest
 *
 * synth_baseline() makes the assignments of known strategies; synth_search() finds the best one for
 * given ratios. */
#ifndef KILTER_SYNTH_SYNTH_H
#define KILTER_SYNTH_SYNTH_H

#include "sim/sim.h"
#include "synth/amp/amp.h"
#include "synth/joint/joint.h"
#include "synth/pipeline.h"
#include "synth/strategy.h"
#include "synth/tag/net.h"
#include "synth/tag/search.h"
#include "synth/tag/sfb.h"
#include "synth/tag/sfb_graph.h"
#include "synth/tag/tag.h"

typedef struct {
    Program *program;
    double time_s; /* of the program at the given ratios (not rounded), by `analytic` */
    /* no program of the space is faster at these ratios; 0: none proved */
    double bound_s;
    bool optimal; /* proved best over the space */
    /* the deadline came first; the program is the best one so far, or NULL */
    bool late;
    uint64_t states, labels, expansions;
    double search_s; /* wall clock */
} SynthResult;

void synth_result_clear(SynthResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SynthResult, synth_result_clear)

typedef enum {
    BASELINE_DATA_PARALLEL, /* batch sharded, parameters replicated, gradients all-reduced */
    /* data parallel with optimizer states (ZeRO) and MoE layers (by expert) sharded */
    BASELINE_ZERO_EXPERT,
    BASELINE_GSHARD, /* data parallel, MoE layers sharded by expert, tokens exchanged */
    /* Weights cut, all devices in one group (Megatron-LM): pairs of layers, the first cut by
     * columns (features, heads, channels), the second by rows, whose partial sums are all-reduced.
     * A layer without a partner stays whole, except the output layer, whose result is gathered at
     * once unless the loss reads its logits cut. */
    BASELINE_MEGATRON,
    BASELINES
} Baseline;

/* The program of a known strategy. KILTER_ERROR_INPUT if the strategy does not apply to the graph (a
 * batch that cannot be sharded). */
Program *synth_baseline_program(const Graph *graph, const ClusterView *view,
                                const double *ratio, Baseline baseline, GError **error);
/* The same with its time at these ratios. */
bool synth_baseline(const Graph *graph, const ClusterView *view, const double *ratio,
                    Baseline baseline, SynthResult *result, GError **error);

/* BASELINE_MEGATRON over `ways` devices, and in layers with sequence[layer] (NULL: none) the
 * activations that it leaves whole are cut along the sequence: partial sums are reduce-scattered to
 * it, and gathered before the next columns (Korthikanti et al. 2022, Sec. 4.2.2). */
Program *synth_megatron(const Graph *graph, const ClusterView *view, uint32_t ways,
                        const bool *sequence, GError **error);

/* The same with each layer over ways[layer] devices, 1 or more; tensors that pass between layers of
 * different ways are whole. */
Program *synth_megatron_ways(const Graph *graph, const ClusterView *view,
                             const uint32_t *ways, GError **error);

/* --- pins: forms that a user asks for --- */

/* A pin is TENSOR=FORM or TENSOR=MADE->READ, with a tensor's name or a pattern (* any text, ? any
 * letter), and forms identity, reduce, gather(DIM), or * for any. TENSOR=FORM is short for
 * FORM->FORM. A program keeps it if
 *
 *     MADE   is the form in which the op that makes the tensor leaves it, or, for a parameter, an
 *            optimizer state or an input, the form it is loaded in: where it rests between
 *            iterations
 *     READ   is the form in which every op takes it, forward and backward; a parameter's update
 *            takes it where it runs
 *
 * whatever conversions lie in between. For example, `w=gather(0)` shards a weight, computation and
 * all; `w=gather(0)->identity` gathers it before use (ZeRO-3); `y=reduce->identity` all-reduces an
 * activation. The update runs where the optimizer states rest. Inputs are loaded in the form in
 * which they are read. Of several pins on a tensor the last counts. */
typedef struct SynthPins SynthPins;

/* Reads pins separated by `;` or newlines; # starts a comment. KILTER_ERROR_INPUT names the pin: it
 * matches no tensor, or has a form that the tensor cannot have. */
SynthPins *synth_pins_new(const Graph *graph, const char *text, GError **error);
void synth_pins_free(SynthPins *pins);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SynthPins, synth_pins_free)

/* The same pins without comments, separated by "; "; NULL (KILTER_ERROR_INPUT) if a pin is not
 * written as above. */
char *synth_pins_text(const char *text, GError **error);

/* Whether a program keeps the pins; without pins (NULL) every program does. */
bool synth_pins_hold(const SynthPins *pins, const Graph *graph, const Program *program);

/* Points of an iteration at which memory is charged for. The bytes counted at a point are alive at
 * the same time, so they never exceed the program's peak (sim/sim.h, "Memory").
 *
 *     FORWARD    the backward begins, or is at the op where activations weigh most: parameters and
 *                optimizer states at rest, the other forms of parameters that the backward still
 *                reads, activations saved for it and what ops keep beside them
 *                (graph_op_kept_bytes), what the op reads and makes, parameters' gradients made
 *                before it
 *     BACKWARD   all gradients are there: parameters and optimizer states at rest, parameters'
 *                gradients as they are made */
typedef enum { SYNTH_POINT_FORWARD, SYNTH_POINT_BACKWARD, SYNTH_POINTS } SynthPoint;

/* Bytes of tensors that every GPU of a machine holds, and of tensors that its GPUs divide, each
 * whole and for the sharded part (as in SimMemory); or weights of these four. */
typedef struct {
    double held, held_sharded, divided, divided_sharded;
} SynthBytes;

/* The programs of a graph that keep pins (NULL: none), and everything that searches over them
 * find independently of ratios, cluster and multipliers: make it once for all searches of a
 * plan. Graph and pins stay the caller's. It is cheap until the first search, and serves one
 * search at a time. */
typedef struct SynthSpace SynthSpace;
SynthSpace *synth_space_new(const Graph *graph, const SynthPins *pins);
/* The same for synth_search at ratios [segment * n_devices + device]: op `id` has those of
 * segment[id] < n_segments, an array that stays the caller's. A tensor is cut anew only by a
 * conversion, so no op of the space reads or adds to a shard as another segment made it. Nothing is
 * proved of these programs, options->shares is not taken, and there may be none: then no program is
 * returned. */
SynthSpace *synth_space_of_segments(const Graph *graph, const SynthPins *pins,
                                    const uint16_t *segment, uint32_t n_segments);
void synth_space_free(SynthSpace *space);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SynthSpace, synth_space_free)

/* Rounded shares of dims by their units, used in place of the ratios. */
typedef struct {
    uint32_t n;
    const uint32_t *units; /* [n], rising */
    const double *share;   /* [n * n_devices] */
} SynthShares;

typedef struct {
    uint32_t beam; /* labels kept per cut; 0: all of them (exact) */
    uint64_t bucket_bytes;
    /* [SYNTH_POINTS * n_devices], or NULL: seconds charged for every byte that a GPU of the device
     * keeps at that point. Raise it until the program fits. With a charge the program need not be
     * the fastest. */
    const double *memory_s;
    /* when to stop with the best so far, by g_get_monotonic_time(); 0: never */
    gint64 deadline_us;
    /* NULL, or the shares to price with: the search then finds the best program after rounding.
     * Equal devices count with the largest of their shares; nothing is `optimal`. */
    const SynthShares *shares;
    /* slower programs are not wanted, so there may be no result; 0: no limit. With shares, no program
     * as slow as this one is wanted either. */
    double upper_s;
} SynthOptions;

/* The best program for ratios [n_devices] (one segment).
 *
 * The space: every assignment, priced in the order above. Conversions are single collectives, or
 * two in one step where that is cheaper (a shard padded with zeros and all-reduced). In the forward
 * a reader of a tensor starts from one form: the form in which the tensor was made, or a form that
 * a priced collective before an earlier reader made. So a tensor with two readers may be used in
 * two forms, each conversion paid once; if a third reader wants a form that existed two steps
 * earlier, the conversion is priced anew. An op's backward starts from the forms in its own forward
 * step, for its outputs from the form in which they were made, and for their gradients from the
 * form in which these are accumulated. Parameters have one consumer; updates run where the
 * parameter rests, or sharded on a replica. (Gradients of parameters before the conversions of dy
 * are left out: in 1,173 random graphs none paid.)
 *
 * The emitted program starts a conversion from any available form, so it can be cheaper than
 * priced: where an op's saved output is pinned to be made in one form and read in another, or where
 * a tensor has more than two readers; without pins this happened in none of 675 random graphs.
 * Brute force over this space (tests/property/test_exact.c) found nothing faster; `optimal` is set
 * when nothing in the space is faster.
 *
 * With pins the space is the programs that keep them; KILTER_ERROR_INPUT names pins that no rule of
 * an op allows, KILTER_ERROR_FAILED says that no program keeps all of them.
 *
 * The method: a forward op is decided together with its backward ops. A prefix is a state, the
 * forms of the live tensors and of their gradients, and a label, the closed cost and the open
 * stages (synth/exact/label.h); labels of a state are compared exactly. The relaxation that counts
 * a single device class gives every state an exact cost-to-go (synth/exact/states.h), which
 * together with the best known program leaves few labels. */
bool synth_search(SynthSpace *space, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error);

/* The layers with from_other [graph_n_layers] as `other` does them, all others as `program` does;
 * both are programs of one group without microbatches or recomputation. KILTER_ERROR_FAILED if no
 * conversions join them. */
Program *synth_mix(const Graph *graph, const ClusterView *view, const double *ratio,
                   const Program *program, const Program *other, const bool *from_other,
                   GError **error);

/* HAP's own search, Fig. 10, as published: the yardstick, and an oracle on small graphs.
 *
 * A* over explicit forward triples, each charged with its adjoint backward: a tensor in form
 * Identity has its gradient in Reduce and vice versa, Gather(d) is its own adjoint, a collective is
 * undone on the gradient in the cheapest way, and a parameter that is loaded whole pays an
 * all-reduce of its gradient. The goal is loss | Reduce. ecost is the least computation left.
 * Programs are compared by one number, the time to the last synchronization point, which can prune
 * the best program. The paper's three optimizations (Sec. 4.5) are in: loads are fused into their
 * consumers; a tensor is communicated at most once, inputs and parameters never; redundant
 * properties are dropped. Conversions are those of Fig. 9, padded or grouped (Sec. 2.5.1), not the
 * free local ones. As in the published artifact each op is computed once; programs that were
 * expanded prune like programs that still wait. A conversion is charged with its adjoint even if
 * none of its readers adds to the gradient.
 *
 * time_s is the emitted program's time. `states` counts the sets of computed ops that were met,
 * `labels` the programs kept. KILTER_ERROR_FAILED if a parameter has several consumers or no
 * program reaches the goal. */
bool synth_reference(const Graph *graph, const ClusterView *view, const double *ratio,
                     SynthResult *result, GError **error);

/* HiDup's search (Sec. 4): the best program for two microbatches that take turns (HiDup Eq. 4, 5),
 * for ratios [n_devices].
 *
 * The space: the forward ops in graph order, each under a rule whose backward is its adjoint
 * (Identity <-> Reduce, Gather(d) <-> Gather(d)), in stages of any length; before an op any of its
 * inputs can be converted by collectives and local conversions; a communicated conversion replaces
 * the form; parameters as in synth/hidup/search.c; the goal is loss | Reduce. A stage overlaps the
 * other microbatch's stage in the backward as in the forward. `optimal`: nothing in the space is
 * faster.
 *
 * The method: a prefix is a state, the forms of live tensors, and a label: psi and -phi of Eq. 4
 * and 5 with the stage that is still open, forward and backward; dominated labels are dropped
 * (Theorem 1). The time is linear in the number of layers.
 *
 * The options change the costs that the search believes, not the true costs: time_s is then the
 * believed time, and nothing is `optimal`.
 *
 * The program is for one microbatch; time_s is for both, at ratios that are not rounded: for BERT
 * exact up to rounding, for ViT and VGG up to 0.2 % more than the duplex program takes.
 * KILTER_ERROR_FAILED if a parameter has several consumers or nothing reaches the goal. */
typedef struct {
    double
        /* seconds charged per byte of parameters, gradients and optimizer states that a GPU keeps,
         * summed over devices; 0: memory is free */
        memory_s;
    double
        /* the times of each op and each kind of collective and the devices' speeds are off by up to
         * this part, at random by `seed` */
        noise;
    /* communication takes longer by this part of its time, -1 or more */
    double communication;
    bool serial_back; /* the backward does not overlap, as HiDup's artifact believes */
    uint64_t seed;
} SynthHidupOptions;

/* options: NULL for all 0. */
bool synth_hidup(const Graph *graph, const ClusterView *view, const double *ratio,
                 const SynthHidupOptions *options, SynthResult *result, GError **error);

/* The duplex program of a program of one group: its batch is cut in two microbatches that take
 * turns (synth/hidup/turns.c). KILTER_ERROR_INPUT if the batch cannot be cut. */
Program *synth_duplex(const Program *program, const Graph *graph, GError **error);

/* --- the theory (HAP Sec. 4.2) --- */

typedef enum { TRIPLE_LOAD, TRIPLE_COMPUTE, TRIPLE_COLLECTIVE } TripleKind;

/* {precondition} instruction {postcondition}: the properties that a program has before and after
 * it. */
typedef struct {
    TripleKind kind;
    Collective collective; /* COLLECTIVE */
    TensorId tensor;       /* LOAD, COLLECTIVE */
    Form from, to;         /* COLLECTIVE; LOAD: to */
    OpId op;               /* COMPUTE: the op under the rule */
    Rule rule;
} Triple;

/* All triples of a graph (Triple), derived from the op table and the collectives: loads,
 * computations in op order, collectives by tensor. Dims that cannot be cut have no triples. Free
 * with g_array_unref. */
GArray *synth_theory(const Graph *graph);

/* In the paper's notation: "Linear(x, w)", "{x|Gather(0), w|Identity}". Callers free. */
char *synth_triple_instruction(const Graph *graph, const Triple *triple);
char *synth_triple_condition(const Graph *graph, const Triple *triple, bool after);

/* A box of ratios, [n_devices] each, and the options of its bound. */
typedef struct {
    const double *lo, *hi;
    double largest; /* some ratio is at least this; 0: nothing is known */
    double upper_s; /* time of a known plan */
    /* as in SynthOptions: any multipliers >= 0 of the memory constraint (Lagrange). The bound then
     * holds for programs that fit */
    const double *memory_s;
    /* with multipliers: bound the programs that keep the constraint on bytes weighted by the
     * multipliers. This bound is better, by the gap that multipliers leave, but takes longer and
     * needs a tolerance */
    bool rationed;
    /* if rationed: labels kept per cut; with more, the earlier proof has to suffice */
    uint32_t labels;
    uint32_t n_programs; /* if rationed: how many programs to return */
    /* about how many labels may be made before fewer are kept at the remaining cuts, so that large
     * models take no longer than others; 0: no limit */
    uint64_t effort;
    /* programs that differ by less than about this part of their time or memory count as one, with
     * the better of each; 0: all are distinct */
    double tolerance;
    gint64 deadline_us; /* as in SynthOptions */
} SynthBox;

typedef struct {
    double bound_s;
    /* with multipliers: bytes of the program that attains the bound, or nearly */
    SynthBytes bytes[SYNTH_POINTS];
    /* Programs that keep the weighted constraint, fastest first, each with less memory than the one
     * before */
    GPtrArray *programs;
} SynthBound;

void synth_bound_clear(SynthBound *bound);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SynthBound, synth_bound_clear)

/* A lower bound on the time of every program of the space at all ratios with lo[j] <= ratio[j] <=
 * hi[j] that sum to 1 (one segment, no buckets); upper_s if it is at least that. The bound becomes
 * exact as the box shrinks, up to the gap that the multipliers leave. */
bool synth_bound(SynthSpace *space, const ClusterView *view, const SynthBox *box,
                 SynthBound *bound, GError **error);

#endif
