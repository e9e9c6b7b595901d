/* Random small training graphs from the op table, for property tests: linears, layer
 * norms, activations, dropout, residual adds, attention, MoE layers, embeddings
 * (sometimes tied to the head), convolutions and both losses; differentiated and sealed. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_GRAPH_H
#define KILTER_TESTS_SUPPORT_RANDOM_GRAPH_H

#include "data/data.h"

/* A graph of 1 to `max_blocks` blocks between an input and a loss. Dimensions are small
 * numbers with several divisors. */
Graph *random_graph(GRand *rand, uint32_t max_blocks);

/* One of `n` numbers. */
uint32_t random_choice(GRand *rand, uint32_t n, const uint32_t *choice);
#define RANDOM_CHOICE(rand, ...)                                     \
    random_choice((rand), G_N_ELEMENTS(((uint32_t[]){__VA_ARGS__})), \
                  (uint32_t[]){__VA_ARGS__})

#endif
