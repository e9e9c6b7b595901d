/* The duplex search (HiDup Sec. 4): a Pareto dynamic program over a chain of nodes (private to
 * synth).
 *
 * Nodes run in order; a node is run under one of its choices, which say in which form it reads and
 * makes tensors. Between nodes a tensor is in one form; before a node any of its inputs can be
 * converted. Both microbatches run all of it in alternation (sim_duplex_time), and then backwards:
 * what is communicated before a node's forward computation goes the other way after its backward
 * computation. Whatever is communicated opens a stage, forward and backward each for itself (an
 * opening without communication never helps); but a sync may join what the open stage communicates
 * after its backward. */
#ifndef KILTER_SYNTH_HIDUP_DUPLEX_H
#define KILTER_SYNTH_HIDUP_DUPLEX_H

#include "synth/price.h"

enum { DUPLEX_MAX_IN = 4, DUPLEX_MAX_OUT = 2 };

/* Of a tensor from one form to another, and of its gradient back; times of one microbatch. */
typedef struct {
    bool can;
    bool opens; /* stages: something is communicated; local conversions do not */
    double forward_s, back_s;
} DuplexConversion;

/* The times of a node under a choice; [2]: of the first and of the second microbatch. */
typedef struct {
    Form in[DUPLEX_MAX_IN], out[DUPLEX_MAX_OUT];
    Times forward, back; /* of one microbatch */
    Times update;        /* of its parameters, once */
    double gather_s[2];  /* of its parameters, before its forward computation */
    double sync_s[2];    /* of their gradients, after its backward computation, */
    bool joins;  /* or with what the open backward stage communicates in the end */
    uint32_t id; /* the caller's */
} DuplexChoice;

typedef struct {
    uint32_t n_in, n_out;
    uint32_t in[DUPLEX_MAX_IN], out[DUPLEX_MAX_OUT]; /* tensors that nodes make */
    GArray *choices;                                 /* DuplexChoice */
} DuplexNode;

typedef const DuplexConversion DuplexConversions[FORM_MAX][FORM_MAX];

/* How the time of the two microbatches is put together. */
typedef enum {
    DUPLEX_OVERLAPPED, /* Eq. 5 forward and backward */
    /* Eq. 5 forward; the backward computes and communicates in turn. HiDup's artifact counts so,
     * less what the second microbatch computes backward in the last stage. */
    DUPLEX_SERIAL_BACK,
} DuplexCost;

typedef struct {
    uint32_t n_nodes, n_tensors, n_classes;
    DuplexNode *node;
    DuplexConversions **conversion; /* [tensor] */
    DuplexCost cost;
    Form goal; /* of the last node's output */
} DuplexProblem;

typedef struct {
    double time_s;
    const DuplexChoice **choice; /* [n_nodes] */
    /* [n_nodes]: forms of the inputs before the node, converted if they are not the choice's */
    Form (*in)[DUPLEX_MAX_IN];
    uint64_t states, labels, expansions;
} DuplexSolution;

/* Adds a choice unless another one with the same forms is nowhere slower; drops those that it beats
 * so. */
void duplex_add_choice(DuplexNode *node, uint32_t n_classes, const DuplexChoice *choice);

/* The fastest way to run the chain; false if there is none. */
bool duplex_solve(const DuplexProblem *problem, DuplexSolution *solution);
void duplex_solution_clear(DuplexSolution *solution);

#endif
