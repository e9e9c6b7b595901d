/* Turns of a duplex program, whose one group alternates between microbatches (sim/tasks/stage.c). A
 * turn is a step of collectives and the computations after it of one microbatch. Private to sim.
 *
 * In a turn the collectives run one after the other. Beside them each device runs its computations
 * in program order; a computation that depends on a collective of its own turn waits for it. The
 * communication inside machines comes after all collectives, also beside the computations; a
 * computation that depends on it waits for all of it. */
#pragma once

#include "sim/sim.h"

/* [instr]: the turn of each instruction. The caller frees it. */
uint32_t *sim_turns(const Program *program);

/* The stages of SimLinear that make up the turns. */
typedef struct {
    GArray *stages;  /* of SimStage: the instructions of their turn, joins, beside */
    uint32_t *stage; /* [instr]: the stage of a collective or computation */
    /* [instr]: the stage of a collective's communication inside machines */
    uint32_t *inner;
} SimTurnStages;

/* `instances` are those of the program. The caller owns the array of stages; clear frees the
 * rest. */
SimTurnStages sim_turn_stages(const Program *program, const Graph *graph,
                              const ClusterView *view, const Instances *instances);
void sim_turn_stages_clear(SimTurnStages *stages);
