/* synth: the searches for a distributed program.
 *
 * An *assignment* fixes a rule for every op, the form each activation's gradient is accumulated in, and the form each
 * parameter and optimizer state rests in. synth_emit() turns it into a program with the conversions in place:
 *
 *     loads | parameter conversions | forward, conversions before each op | backward, in reverse: conversions of dy and
 *     saved tensors, the op's gradients, conversions of its contributions, accumulation | gradient conversions |
 *     updates | conversions of updated values to the form at rest
 *
 * synth_baseline() makes the assignments of known strategies; synth_search() finds the best one for given ratios. */
#ifndef KILTER_SYNTH_SYNTH_H
#define KILTER_SYNTH_SYNTH_H

#include "sim/sim.h"

typedef struct {
    Program *program;
    double time_s;        /* of the program at the given (fractional) ratios, analytic */
    bool optimal;         /* proved best over the space */
    double lower_bound_s; /* on every program of the space at these ratios; 0: none */
    uint64_t states, labels, expansions;
    double search_s; /* wall clock */
} SynthResult;

void synth_result_clear(SynthResult *result);

typedef enum {
    BASELINE_DATA_PARALLEL, /* batch sharded, parameters replicated, gradients all-reduced */
    BASELINE_ZERO_EXPERT, /* the same with optimizer states sharded (ZeRO), and MoE layers sharded by expert */
} Baseline;

/* KILTER_ERROR_FAILED if the strategy does not apply to the graph (a batch that cannot be sharded). */
bool synth_baseline(const Graph *graph, const ClusterView *view, const double *ratio,
                    Baseline baseline, SynthResult *result, GError **error);

typedef struct {
    uint32_t beam; /* labels kept at a cut; 0: all of them (exact) */
    uint64_t bucket_bytes;
    double
        memory_s; /* seconds charged for every byte that a GPU keeps, summed over the view's devices: raise it until the
                        program fits. 0: memory is free. With a charge the program is not the fastest one. */
} SynthOptions;

/* The best program for ratios [n_devices] (one segment). */
bool synth_search(const Graph *graph, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error);

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

/* All triples of a graph (Triple), derived from the op table and the collectives: loads, computations in op order,
 * collectives by tensor. Dims that cannot be cut have none. Free with g_array_unref. */
GArray *synth_theory(const Graph *graph);

/* In the paper's notation: "Linear(x, w)", "{x|Gather(0), w|Identity}". Callers free. */
char *synth_triple_instruction(const Graph *graph, const Triple *triple);
char *synth_triple_condition(const Graph *graph, const Triple *triple, bool after);

#endif
