/* Turns of a program of one group whose microbatches alternate (sim/tasks/stage.c): each is a step of
 * collectives and the computations after it, of one microbatch. Private to sim.
 *
 * In a turn the collectives run one after the other, and beside them on each device its
 * computations, in program order. A computation that follows from a collective of its own turn
 * waits for it. What machines communicate inside for the collectives comes after all of them,
 * beside the computations too; those that follow from it wait for all of it. */
#ifndef KILTER_SIM_COST_TURNS_H
#define KILTER_SIM_COST_TURNS_H

#include "sim/sim.h"

/* [instr]: which turn it belongs to. Caller frees. */
uint32_t *sim_turns(const Program *program);

/* The stages of SimLinear that turns are made of. */
typedef struct {
    GArray *stages;  /* SimStage: instructions of their turn, joins, beside */
    uint32_t *stage; /* [instr]: the one of a collective or computation */
    /* [instr]: the one of what a collective makes machines communicate inside */
    uint32_t *inner;
} SimTurnStages;

/* `instances`: of the program. The stages are the caller's; clear frees the rest. */
SimTurnStages sim_turn_stages(const Program *program, const Graph *graph,
                              const ClusterView *view, const Instances *instances);
void sim_turn_stages_clear(SimTurnStages *stages);

#endif
