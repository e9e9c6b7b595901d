/* A prefix of the duplex search's chain (private to synth). */
#ifndef KILTER_SYNTH_HIDUP_PREFIX_H
#define KILTER_SYNTH_HIDUP_PREFIX_H

#include "synth/hidup/duplex.h"

/* A prefix of the chain, and what its open stages may still add. Forward stages have communication
 * c before computation F, backward stages computation B before communication d, for microbatches 1
 * and 2. Stages in the order of the chain:
 *
 *     max(F_(i-1), c1_i) + max(F_i, c2_i)    counted when stage i opens, and when it closes
 *     max(B_i, d1_i) + max(B_(i-1), d2_i)    both when stage i closes
 *
 * At the end of the chain the forward and the backward of the last stages are one computation. */
typedef struct {
    double closed_s;
    double c2, d[2], back_before; /* B_(i-1): largest over classes */
    Times forward, back, update;  /* F_i, B_i so far; all updates */
    uint32_t parent, next;        /* of the cut before; of the same state */
    const DuplexChoice *choice;
} DuplexLabel;

/* Appends a node under a choice, after the conversions of its inputs. */
void duplex_append(const DuplexProblem *p, DuplexLabel *label, const DuplexChoice *choice,
                   const DuplexConversion *step);
/* An open forward stage that takes longer than any communication beside it counts twice whatever
 * comes: what it takes longer is counted at once. Labels that differ in that alone are compared by
 * one number, else each layer at which a stage can open leaves one. */
void duplex_count_excess(const DuplexProblem *p, double longest_s, DuplexLabel *label);
/* Time of the whole chain. */
double duplex_total(const DuplexProblem *p, const DuplexLabel *label);
/* Whether every completion of `a` takes at most as long as the same one of `b`, since max(a + x, b
 * + y) - max(a' + x, b' + y) <= max(a - a', b - b') (HiDup's domination, with stages still open). */
bool duplex_dominates(const DuplexProblem *p, const DuplexLabel *a, const DuplexLabel *b);

#endif
