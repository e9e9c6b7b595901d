/* The duplex search (HiDup Sec. 4): a Pareto dynamic program over a chain of nodes (private to
 * synth).
 *
 * Nodes run in order, each under one of its choices, which give the forms in which it reads and
 * makes tensors. Between nodes a tensor has one form; before a node any of its inputs can be
 * converted. Both microbatches run all nodes in alternation (HiDup Eq. 4, 5), and then backwards:
 * a tensor communicated before a node's forward computation has its gradient communicated after the
 * node's backward computation. Every communication opens a stage, forward and backward separately
 * (opening one without communication never helps); but a sync may join the communication after the
 * open stage's backward. */
#pragma once

#include "synth/spmd/price.h"

enum { DUPLEX_MAX_IN = 4, DUPLEX_MAX_OUT = 2 };

/* A conversion of a tensor from one form to another, and of its gradient back; times are of one
 * microbatch. */
typedef struct {
    bool can;
    bool opens; /* it communicates and so opens stages; local conversions do not */
    double forward_s, back_s;
} DuplexConversion;

/* The times of a node under a choice; arrays [2] are for the first and the second microbatch. */
typedef struct {
    Form in[DUPLEX_MAX_IN], out[DUPLEX_MAX_OUT];
    Times forward, back; /* of one microbatch */
    Times update;        /* updates of its parameters, once */
    double gather_s[2];  /* gathering its parameters, before its forward */
    double sync_s[2];    /* synchronizing their gradients, after its backward */
    bool joins;  /* the sync joins the last communication of the open backward stage */
    uint32_t id; /* number for the caller's use */
} DuplexChoice;

typedef struct {
    uint32_t n_in, n_out;
    uint32_t in[DUPLEX_MAX_IN], out[DUPLEX_MAX_OUT]; /* tensors made by nodes */
    GArray *choices;                                 /* DuplexChoice */
} DuplexNode;

typedef const DuplexConversion DuplexConversions[FORM_MAX][FORM_MAX];

/* How the time of the two microbatches is computed. */
typedef enum {
    DUPLEX_OVERLAPPED, /* Eq. 5 forward and backward */
    /* Eq. 5 forward; the backward computes and communicates alternately. HiDup's artifact counts in
     * this way, but leaves out the second microbatch's backward computation in the last stage. */
    DUPLEX_SERIAL_BACK,
} DuplexCost;

typedef struct {
    uint32_t n_nodes, n_tensors, n_classes;
    DuplexNode *node;
    DuplexConversions **conversion; /* [tensor] */
    DuplexCost cost;
    Form goal; /* required form of the last node's output */
} DuplexProblem;

typedef struct {
    double time_s;
    const DuplexChoice **choice; /* [n_nodes] */
    /* [n_nodes]: forms of the inputs before the node, which are converted if the choice reads
     * others */
    Form (*in)[DUPLEX_MAX_IN];
    uint64_t states, labels, expansions;
    bool narrow; /* not all nondominated prefixes were kept */
} DuplexSolution;

/* Adds a choice unless another choice with the same forms is nowhere slower; drops the choices that
 * it beats in the same way. */
void duplex_add_choice(DuplexNode *node, uint32_t n_classes, const DuplexChoice *choice);

/* The fastest way to run the chain (if narrow: a fast one); false if there is none. */
bool duplex_solve(const DuplexProblem *problem, DuplexSolution *solution);
void duplex_solution_clear(DuplexSolution *solution);
