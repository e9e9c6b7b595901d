/* The middle of a long program: instructions that are repeated for later microbatches, as a
 * pipeline's are between its first and its last ones. */
#pragma once

#include "data/program/program.h"

typedef struct {
    uint32_t first, n;     /* the first repetition: n instructions from `first` on */
    uint32_t microbatches; /* by which each one is later than the one before */
    uint32_t repeats;      /* how many follow one another, the first one included */
    /* of one, a later one uses what at most so many before it have made */
    uint32_t depth;
} ProgramPeriod;

/* Whether instructions differ by their microbatch at most. */
bool instr_alike(const Instr *x, const Instr *y);

/* false: the program repeats nothing, or nothing often. */
bool program_find_period(const Program *program, ProgramPeriod *period);

/* How many repetitions the program has with those that it leaves out. */
static inline uint32_t program_all_repeats(const Program *program,
                                           const ProgramPeriod *period)
{
    return period->repeats + program->left_out / period->microbatches;
}

/* The program with so many repetitions (at least 1, at most all), as an iteration on fewer
 * microbatches of the same size: it counts the others in `left_out`. */
Program *program_repeat(const Program *program, const ProgramPeriod *period,
                        uint32_t repeats);

/* Instructions of the program with those that it leaves out. */
uint64_t program_whole_n(const Program *program);

/* Puts the microbatches back that a program with a repeated middle leaves out, if any. */
void program_whole(Program **program);
