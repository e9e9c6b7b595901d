/* Repetition in the program of a plan file (private to data): data/plan/json.h gives the format. */
#pragma once

#include "data/plan/plan.h"

#define PLAN_REPEAT "repeat"

/* Programs with at most so many instructions are written out, for readers and editors. */
enum { PLAN_WRITTEN_OUT = 2000 };

/* The difference between an instruction and the one that it repeats. */
typedef struct {
    int32_t layer; /* added to the first number in the name of the op or tensor */
    int32_t microbatch, group;
} PlanShift;

/* A piece of a program: n instructions as they are, or (back > 0) n that repeat those `back`
 * instructions before them, which may be repeated ones themselves. */
typedef struct {
    uint32_t n, back;
    PlanShift shift;
} PlanPiece;

/* The pieces of a program in order (PlanPiece). Free with g_array_unref. */
GArray *plan_fold(const Program *program, const Graph *graph);

/* Where the first number of a name begins, and its value and the text after it; NULL if the name
 * has none that can be counted. */
const char *plan_name_number(const char *name, uint32_t *number, const char **rest);
