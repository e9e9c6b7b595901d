/* Programs of one device group.
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
 * synth_baseline() makes the assignments of known strategies; the planners search for better
 * ones. */
#pragma once

#include "sim/sim.h"

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

AUTOCLEAR(synth_result_clear, SynthResult)

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

/* The program of a known strategy. KILTER_ERROR_INPUT if the strategy does not apply to the graph
 * (a batch that cannot be sharded). */
Program *synth_baseline_program(const Graph *graph, const ClusterView *view,
                                const double *ratio, Baseline baseline, GError **error);
/* The same with its time at these ratios. */
bool synth_baseline(const Graph *graph, const ClusterView *view, const double *ratio,
                    Baseline baseline, SynthResult *result, GError **error);

/* BASELINE_MEGATRON over `ways` devices, and in layers with sequence[layer] (NULL: none) the
 * activations that it leaves whole are cut along the sequence: partial sums are reduce-scattered to
 * it, and gathered before the next columns (Korthikanti et al. 2022, Sec. 4.2.2). With `experts`
 * each device has some experts whole, in the place of a part of every expert. */
Program *synth_megatron(const Graph *graph, const ClusterView *view, uint32_t ways,
                        const bool *sequence, bool experts, GError **error);

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
AUTOPTR(synth_pins_free, SynthPins)

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

/* Rounded shares of dims by their units, used in place of the ratios. */
typedef struct {
    uint32_t n;
    const uint32_t *units; /* [n], rising */
    const double *share;   /* [n * n_devices] */
} SynthShares;

/* The layers with from_other [graph_n_layers] as `other` does them, all others as `program` does;
 * both are programs of one group without microbatches or recomputation. KILTER_ERROR_FAILED if no
 * conversions join them. */
Program *synth_mix(const Graph *graph, const ClusterView *view, const double *ratio,
                   const Program *program, const Program *other, const bool *from_other,
                   GError **error);

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
