/* The theory, proved by running it: an op on shards, cut as a rule says, gives the whole op's
 * outputs once they are put together as the rule says. */
#pragma once

#include "data/graph/rule.h"
#include "exec/tensor.h"

/* Largest difference that a right rule may make in float64, relative to the tensor's largest
 * element (at least 1). */
#define EXEC_TOLERANCE 1e-10

/* Runs op `id` under `rule` on 2 to 4 devices with random uneven shards, empty ones among them;
 * partial sums are cut at random too. `value` holds the whole op's inputs and outputs. Returns the
 * largest relative error of an output. */
double exec_rule_error(const Graph *graph, OpId id, const ExecTensor *value,
                       const Rule *rule, GRand *random);

/* The result of checking a model's rules. */
typedef struct {
    uint32_t ops, rules; /* how many of them were run */
    double error;        /* largest relative error */
    /* NULL, or the first rule whose error is above the tolerance, as text; g_free */
    char *wrong;
} ExecTheory;

/* Runs every rule of every op of the graph once, on values of one iteration. Adds to *theory. */
void exec_theory_check(const Graph *graph, uint64_t seed, double tolerance,
                       ExecTheory *theory);
