/* Random distributed programs of a graph: every op under a random rule, the conversions that it
 * needs before it, and sometimes an unnecessary conversion, or all gradients at once. They are
 * complete and pass program_check. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_PROGRAM_H
#define KILTER_TESTS_SUPPORT_RANDOM_PROGRAM_H

#include "data/data.h"

Program *random_program(GRand *rand, const Graph *graph);

#endif
