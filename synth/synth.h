/* synth: the searches for a distributed program.
 *
 * An *assignment* fixes a rule for every op, which gradients of parameters are deferred, the form
 * each activation's gradient is accumulated in, and the form each parameter and optimizer state
 * rests in. synth_emit() turns it into a program with the conversions in place:
 *
 *     loads | parameter conversions | forward, conversions before each op | backward, in reverse: conversions of dy and
 *     saved tensors, the op's gradients, conversions of its contributions, deferred gradients of its parameters,
 *     accumulation | gradient conversions | updates | conversions of updated values to the form at rest
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
#include "synth/tag/sfb.h"
#include "synth/tag/sfb_graph.h"
#include "synth/tag/net.h"
#include "synth/tag/search.h"
#include "synth/tag/tag.h"

typedef struct {
    Program *program;
    double time_s; /* of the program at the given (fractional) ratios, analytic */
    /* no program of the space is faster at these ratios; 0: none proved */
    double bound_s;
    bool optimal; /* proved best over the space */
    /* the deadline came first; the program is the best one so far, NULL without any */
    bool late;
    uint64_t states, labels, expansions;
    double search_s; /* wall clock */
} SynthResult;

void synth_result_clear(SynthResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SynthResult, synth_result_clear)

typedef enum {
    BASELINE_DATA_PARALLEL, /* batch sharded, parameters replicated, gradients all-reduced */
    BASELINE_ZERO_EXPERT, /* the same with optimizer states sharded (ZeRO), and MoE layers sharded by expert */
    BASELINE_GSHARD, /* data parallel, MoE layers sharded by expert: tokens are exchanged (GShard) */
    /* Weights cut, all devices in one group (Megatron-LM): pairs of layers, the first cut by
     * columns (features, heads, channels), the second by rows, whose partial sums are all-reduced.
     * What has no second stays whole, but for the output layer, which is gathered at once unless
     * the loss takes its logits cut. */
    BASELINE_MEGATRON,
    BASELINES
} Baseline;

/* KILTER_ERROR_INPUT if the strategy does not apply to the graph (a batch that cannot be
 * sharded). */
bool synth_baseline(const Graph *graph, const ClusterView *view, const double *ratio,
                    Baseline baseline, SynthResult *result, GError **error);

/* BASELINE_MEGATRON over `ways` devices, and where sequence[layer] (NULL: nowhere) what it leaves whole is cut along the
 * sequence: partial sums are reduce-scattered to it, and gathered before the next columns
 * (Korthikanti et al. 2022, Sec. 4.2.2). */
Program *synth_megatron(const Graph *graph, const ClusterView *view, uint32_t ways,
                        const bool *sequence, GError **error);

/* The same over ways[layer] devices, 1 or more; what passes between layers of unlike ways is whole. */
Program *synth_megatron_ways(const Graph *graph, const ClusterView *view,
                             const uint32_t *ways, GError **error);

/* --- pins: forms that a user asks for --- */

/* A pin is TENSOR=FORM or TENSOR=MADE->READ, with a tensor's name or a pattern (* any text, ? any
 * letter), and forms identity, reduce, gather(DIM), or * for any. TENSOR=FORM is short for
 * FORM->FORM. It holds in a program in which
 *
 *     MADE   is the form in which the op that makes the tensor leaves it, or, of a parameter, an optimizer state or an input,
 *            the form it is loaded in: where it rests between iterations
 *     READ   is the form in which every op takes it, forward and backward; a parameter's update takes it where it runs
 *
 * whatever conversions are in between. So `w=gather(0)` shards a weight, computation and all;
 * `w=gather(0)->identity` gathers it before use (ZeRO-3); `y=reduce->identity` all-reduces an
 * activation. The update runs where the optimizer states rest. Inputs are loaded as they are read.
 * Of several pins on a tensor the last one counts. */
typedef struct SynthPins SynthPins;

/* Pins separated by `;` or newlines; # starts a comment. KILTER_ERROR_INPUT names the pin: no such
 * tensor, or a form that the tensor cannot have. */
SynthPins *synth_pins_new(const Graph *graph, const char *text, GError **error);
void synth_pins_free(SynthPins *pins);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SynthPins, synth_pins_free)

/* The same pins without comments, separated by "; "; NULL (KILTER_ERROR_INPUT) if one is not
 * written as above. */
char *synth_pins_text(const char *text, GError **error);

/* Whether a program keeps them; without pins (NULL) every program does. */
bool synth_pins_hold(const SynthPins *pins, const Graph *graph, const Program *program);

/* Points of an iteration at which memory is charged for. What is counted of a program is alive at
 * once: never more than its peak (sim/sim.h, "Memory").
 *
 *     FORWARD    the backward begins, or is at the op where activations weigh most: parameters and optimizer states at rest,
 *                the other forms of parameters that the backward still reads, activations saved for it and what ops keep
 *                beside them (graph_op_kept_bytes), what the op reads and makes, parameters' gradients made before it
 *     BACKWARD   all gradients are there: parameters and optimizer states at rest, parameters' gradients as they are made */
typedef enum { SYNTH_POINT_FORWARD, SYNTH_POINT_BACKWARD, SYNTH_POINTS } SynthPoint;

/* Bytes of tensors that every GPU of a machine holds and of those that its GPUs divide, whole and
 * for the sharded part (as in SimMemory); or a weight of each. */
typedef struct {
    double held, held_sharded, divided, divided_sharded;
} SynthBytes;

/* The programs of a graph that keep pins (NULL: none), and what searches over them know that no
 * ratios, cluster or multipliers change: make it once for all searches of a plan. Takes neither
 * over; cheap until the first search. One search at a time. */
typedef struct SynthSpace SynthSpace;
SynthSpace *synth_space_new(const Graph *graph, const SynthPins *pins);
void synth_space_free(SynthSpace *space);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SynthSpace, synth_space_free)

/* Shares of dims of so many units, where they are not the ratios: rounded ones. */
typedef struct {
    uint32_t n;
    const uint32_t *units; /* [n], rising */
    const double *share;   /* [n * n_devices] */
} SynthShares;

typedef struct {
    uint32_t beam; /* labels kept at a cut; 0: all of them (exact) */
    uint64_t bucket_bytes;
    /* [SYNTH_POINTS * n_devices], or NULL: seconds charged for every byte that a GPU of the device
     * keeps at that point. Raise it until the program fits. With a charge the program is not the
     * fastest one. */
    const double *memory_s;
    gint64
        deadline_us; /* when to stop with what there is, by g_get_monotonic_time(); 0: never */
    /* NULL, or the shares to price with: the best program as rounded. Equal devices count with the
     * largest of their shares; nothing is `optimal`. */
    const SynthShares *shares;
    double upper_s; /* slower programs are not wanted: there may be none; 0: all are */
} SynthOptions;

/* The best program for ratios [n_devices] (one segment).
 *
 * The space: every assignment, priced in the order above. Conversions are single collectives, or
 * two in one step where that is cheaper (a shard padded with zeros and all-reduced). In the forward
 * a reader of a tensor starts from one form: that in which it was made, or one that a priced
 * collective before an earlier reader made. So a tensor with two readers may be used in two forms,
 * each conversion paid once; where a third one wants a form that two steps before had, it is priced
 * anew. An op's backward starts from the forms that its own forward step had, for its outputs from
 * the form they were made in, for their gradients from the form these are accumulated in.
 * Parameters have one consumer; updates run where the parameter rests, or sharded on a replica.
 * (Gradients of parameters before the conversions of dy are left out: in 1,173 random graphs none
 * paid.)
 *
 * The emitted program starts a conversion from any form that is there, so it can be cheaper than
 * priced: where an op's saved output is pinned to be made in one form and read in another, or where
 * a tensor has more than two readers; without pins in none of 675 random graphs. Against brute
 * force over this space (tests/property/test_exact.c) nothing was faster, and `optimal` is set when
 * nothing in it is.
 *
 * With pins the space is what keeps them; KILTER_ERROR_INPUT names pins that no rule of an op
 * allows, KILTER_ERROR_FAILED says that no program keeps all of them.
 *
 * The method: a forward op is decided together with its backward ops. A prefix is a state, the
 * forms of the live tensors and of their gradients, and a label, the closed cost and the open
 * stages (synth/exact/label.h); labels of a state are compared exactly. The relaxation that counts
 * one device class only gives every state an exact cost-to-go (synth/exact/states.h), which with
 * the best program known so far leaves few labels. */
bool synth_search(SynthSpace *space, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error);

/* HAP's own search, Fig. 10, as it is published: the yardstick, and an oracle on small graphs.
 *
 * A* over explicit forward triples, each charged with its adjoint backward: what the forward holds
 * in Identity form has its gradient in Reduce and the reverse, Gather(d) is its own adjoint, a
 * collective is undone on the gradient the cheapest way, and a parameter that is loaded whole pays
 * an all-reduce of its gradient. The goal is loss | Reduce. ecost is the least computation left.
 * Programs are compared by one number, the time to the last synchronization point, which can prune
 * the best one. The paper's three optimizations (Sec. 4.5) are in: loads are fused into their
 * consumers; a tensor is communicated at most once, inputs and parameters never; redundant
 * properties go. Conversions are those of Fig. 9, padded or grouped (Sec. 2.5.1), not the free
 * local ones. As in the published artifact each op is computed once; programs that were expanded
 * prune like those that wait. A conversion is charged with its adjoint even if none of its readers
 * adds to the gradient.
 *
 * time_s is that of the emitted program. `states` are the sets of computed ops that were met,
 * `labels` the programs kept. KILTER_ERROR_FAILED if a parameter has several consumers or no
 * program reaches the goal. */
bool synth_reference(const Graph *graph, const ClusterView *view, const double *ratio,
                     SynthResult *result, GError **error);

/* HiDup's search (Sec. 4): the best program for two microbatches that take turns (sim_duplex_time),
 * for ratios [n_devices].
 *
 * The space: the forward ops in graph order, each under a rule whose backward is its adjoint
 * (Identity <-> Reduce, Gather(d) <-> Gather(d)), in stages of any length; before an op any of its
 * inputs can be converted, by collectives and local conversions, which replaces a form that was
 * communicated; parameters as in synth/hidup/search.c; the goal is loss | Reduce. A stage is
 * overlapped with the other microbatch's in the backward as in the forward. `optimal`: nothing in
 * the space is faster.
 *
 * The method: a prefix is a state, the forms of live tensors, and a label: psi and -phi of Eq. 4
 * and 5 with the stage that is still open, forward and backward; labels that another one dominates
 * go (Theorem 1). Linear in layers.
 *
 * The options change what the search believes, not what a program costs: then time_s is what it
 * believes, and nothing is `optimal`.
 *
 * The program is that of one microbatch; time_s that of both, at fractional ratios: for BERT to
 * rounding, for ViT and VGG up to 0.2 % more than the doubled program takes. KILTER_ERROR_FAILED if
 * a parameter has several consumers or nothing reaches the goal. */
typedef struct {
    double
        memory_s; /* seconds charged for every byte that a GPU keeps of parameters, gradients and optimizer states, summed
                        over devices; 0: memory is free */
    double
        noise; /* each op's time, each kind of collective's and the devices' speed are off by up to this part, at random by `seed` */
    double
        communication; /* all communication takes this part of its time more, -1 to any number */
    bool serial_back; /* the backward does not overlap, as HiDup's artifact believes */
    uint64_t seed;
} SynthHidupOptions;

/* options: NULL for all 0. */
bool synth_hidup(const Graph *graph, const ClusterView *view, const double *ratio,
                 const SynthHidupOptions *options, SynthResult *result, GError **error);

/* The program of one group with its batch cut in two microbatches that take turns
 * (synth/hidup/turns.c); KILTER_ERROR_INPUT if the batch cannot be. */
Program *synth_duplex(const Program *program, const Graph *graph, GError **error);

/* --- the theory (HAP Sec. 4.2) --- */

typedef enum { TRIPLE_LOAD, TRIPLE_COMPUTE, TRIPLE_COLLECTIVE } TripleKind;

/* {precondition} instruction {postcondition}: what a program holds before and after it. */
typedef struct {
    TripleKind kind;
    Collective collective; /* COLLECTIVE */
    TensorId tensor;       /* LOAD, COLLECTIVE */
    Form from, to;         /* COLLECTIVE; LOAD: to */
    OpId op;               /* COMPUTE: the op under the rule */
    Rule rule;
} Triple;

/* All triples of a graph (Triple), derived from the op table and the collectives: loads,
 * computations in op order, collectives by tensor. Dims that cannot be cut have none. Free with
 * g_array_unref. */
GArray *synth_theory(const Graph *graph);

/* In the paper's notation: "Linear(x, w)", "{x|Gather(0), w|Identity}". Callers free. */
char *synth_triple_instruction(const Graph *graph, const Triple *triple);
char *synth_triple_condition(const Graph *graph, const Triple *triple, bool after);

/* A box of ratios, [n_devices] each, and what is known. */
typedef struct {
    const double *lo, *hi;
    double upper_s; /* time of a plan */
    /* As in SynthOptions: any multipliers >= 0 of the memory constraint (Lagrange). The bound is
     * then one on what fits. */
    const double *memory_s;
    /* With multipliers: the bound is one on what keeps the constraint that they make of all, bytes
     * weighted by them. It is the better one, by what multipliers leave open, takes longer, and
     * needs a tolerance. */
    bool rationed;
    /* if it is: kept at a cut; with more, what was proved before has to do; */
    uint32_t labels;
    uint32_t n_programs; /* and how many programs to return */
    /* About how many labels may be made before fewer are kept at the cuts that are left, so that
     * large models take no longer than others; 0: any number. */
    uint64_t effort;
    /* Programs that differ by less than about this part of their time or memory count as one, by
     * the better of each; 0: none do. */
    double tolerance;
    gint64 deadline_us; /* as in SynthOptions */
} SynthBox;

typedef struct {
    double bound_s;
    /* with multipliers: of the program that attains the bound, or nearly */
    SynthBytes bytes[SYNTH_POINTS];
    /* Program that keep the weighted constraint, those of least time first, each with less memory
     * than the one before */
    GPtrArray *programs;
} SynthBound;

void synth_bound_clear(SynthBound *bound);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SynthBound, synth_bound_clear)

/* A lower bound on the time of every program of the space at every ratios with lo[j] <= ratio[j] <=
 * hi[j] that sum to 1 (one segment, no buckets); upper_s if it is at least that. The bound becomes
 * exact as the box shrinks, but for what the multipliers leave open. */
bool synth_bound(SynthSpace *space, const ClusterView *view, const SynthBox *box,
                 SynthBound *bound, GError **error);

#endif
