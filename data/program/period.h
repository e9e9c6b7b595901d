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

/* A part of the repetitions is worth looking at where all are at least so many times more. */
enum { PERIOD_FEWER = 3 };

/* The fewest repetitions that tell what any number of them does: those that a later one waits for,
 * twice, and some in which memory fills. 0: they spare too little to be worth it. */
static inline uint32_t program_few_repeats(const Program *program,
                                           const ProgramPeriod *period)
{
    enum { BESIDE = 6 };
    const uint32_t few = 2 * period->depth + BESIDE;
    return few <= program_all_repeats(program, period) / PERIOD_FEWER ? few : 0;
}

/* Where an instruction of the program with `from` repetitions stands in the one with `to`. */
static inline uint32_t program_place(const ProgramPeriod *period, uint32_t from,
                                     uint32_t to, uint32_t instr)
{
    const uint32_t n = period->n, last = period->first + MIN(from, to) * n;
    if (instr >= period->first + from * n)
        return instr - from * n + to * n;
    return instr >= last ? last - n + (instr - last) % n : instr;
}

/* The program with so many repetitions (at least 1, at most all), as an iteration on fewer
 * microbatches of the same size: it counts the others in `left_out`. */
Program *program_repeat(const Program *program, const ProgramPeriod *period,
                        uint32_t repeats);

/* Instructions of the program with those that it leaves out. */
uint64_t program_whole_n(const Program *program);

/* Puts the microbatches back that a program with a repeated middle leaves out. */
void program_whole(Program **program);
