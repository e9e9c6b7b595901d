/* Programs with the best ratios for as many segments as they keep apart (private to synth). */
#pragma once

#include "synth/hap/alternation.h"

/* The best ratios by segment of a program that was met. */
typedef struct {
    double time_s; /* before rounding */
    double *ratio; /* [Followed.n * n_devices] */
} Apart;

/* The segments asked for as a search takes them: with backward ops where their forward ops are,
 * since a search decides on both together, and numbered in the order of their first ops. Segments
 * of nothing but updates come last. */
typedef struct {
    uint32_t n, n_forward; /* segments; those that are not of updates alone */
    uint16_t *of;          /* [op] */
} Followed;

void followed_init(Followed *followed, const Alternation *a);
AUTOCLEAR(followed_clear, Followed)

/* Considers the program with different ratios for as many segments as it keeps apart, and remembers
 * these ratios as a place to search from. common: the ratios of ops without a share. */
bool apart_consider(Alternation *a, const Program *program, const double *common,
                    GError **error);

/* Frees an element of Alternation.apart. */
void apart_free(Apart *apart);
