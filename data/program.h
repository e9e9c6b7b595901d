/* The program: a sequence of instructions that the devices run (HAP Sec. 4.1).
 *
 * An instruction is an op of the graph run under a rule, a collective (or free local) conversion of one tensor
 * from one form to another, or a transfer between groups. Inputs, parameters and optimizer states
 * enter by LOAD instructions in the form in which they lie at rest.
 *
 * A tensor may be held in several forms at once. An *instance* is a (tensor, form); an instruction makes
 * instances and uses instances made before it. A program is complete when it holds the loss in Reduce
 * or Identity form and, for every parameter and optimizer state, its next value in the form it was loaded in.
 *
 * Stages (HAP Fig. 6): consecutive priced collectives open a stage; the computations up to the next
 * priced collective belong to it. */
#ifndef KILTER_DATA_PROGRAM_H
#define KILTER_DATA_PROGRAM_H

#include "data/cluster.h"
#include "data/rule.h"

typedef enum { INSTR_LOAD, INSTR_COMPUTE, INSTR_COLLECTIVE, INSTR_TRANSFER } InstrKind;

typedef struct {
    InstrKind kind;
    uint16_t group;      /* device group it runs on; 0 is all devices in SPMD programs */
    uint16_t microbatch; /* 0 unless the batch is split */
    uint8_t stream;      /* 0 computation, 1 communication */
    Collective collective;      /* COLLECTIVE */
    OpId op;                    /* COMPUTE */
    TensorId tensor;            /* LOAD, COLLECTIVE, TRANSFER */
    Form from, to;              /* COLLECTIVE, TRANSFER; LOAD: to */
    Form form[OP_MAX_OPERANDS]; /* COMPUTE: of inputs, then outputs */
} Instr;

typedef struct {
    uint32_t n;
    uint32_t capacity;
    Instr *instr;
} Program;

Program *program_new(void);
Program *program_copy(const Program *program);
void program_free(Program *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Program, program_free)

void program_load(Program *program, TensorId tensor, Form form);
void program_compute(Program *program, OpId op, const Form *form, uint32_t n_operands);
void program_collective(Program *program, Collective kind, TensorId tensor, Form from,
                        Form to);

/* Whether `kind` turns `from` into `to` for some dims. */
bool collective_converts(Collective kind, Form from, Form to);

/* Checks the whole program against the graph's rules: every used instance was made before, every computation is a
 * rule of its op, every conversion is one, sharded dims can be sharded, each op runs once, and the program is complete.
 * KILTER_ERROR_FAILED names the first instruction that is wrong. Shares no code with the searches. */
bool program_check(const Program *program, const Graph *graph, GError **error);

/* One instruction as text, "y|gather(0) <- linear(x|gather(0), w|identity)". Caller frees. */
char *instr_text(const Instr *instr, const Graph *graph);

#endif
