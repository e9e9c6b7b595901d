/* A program of many microbatches by the few that are unlike each other.
 *
 * A block is instructions of one group and one microbatch that follow one another, or instructions
 * of no microbatch. Blocks of unlike microbatches are often alike. A part of the program has all
 * instructions of a few microbatches, so that of each kind of block it has the first three and the
 * last two; the whole program is then a sequence of the part's blocks. */
#pragma once

#include "data/program/program.h"

typedef struct {
    uint32_t of; /* the block of the part that does the same */
    bool is_it;  /* it is that block itself */
    /* counted with microbatches that the program leaves out, or PROGRAM_WHOLE */
    uint32_t microbatch;
    uint32_t first; /* its first instruction in the program with what is left out */
} ProgramBlock;

typedef struct ProgramBlocks {
    Program *part;
    uint32_t n_of;
    uint32_t *first; /* [of]: its first instruction in the part; [n_of]: their number */
    uint32_t *mate;  /* [of]: another one that does the same, or itself */
    uint32_t n;
    ProgramBlock *block;
    uint32_t n_microbatches; /* with those that the program leaves out */
} ProgramBlocks;

/* NULL: a part would have no fewer than half of the microbatches, or it would be no program, as it
 * lacks what another microbatch makes. */
ProgramBlocks *program_blocks(const Program *program, const Graph *graph);
AUTOPTR(program_blocks_free, ProgramBlocks)
/* The instruction of the part that is instruction i of the program with what is left out. */
uint32_t program_blocks_place(const ProgramBlocks *blocks, uint32_t i);
/* [instr] of the part: how often it runs after instruction `at` of that. Without blocks the program
 * is no part. The caller frees it. */
uint32_t *program_left(const Program *program, const ProgramBlocks *blocks, uint32_t at);
