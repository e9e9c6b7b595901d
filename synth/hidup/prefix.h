/* A prefix of the duplex search's chain (private to synth). */
#pragma once

#include "synth/hidup/duplex.h"

/* A prefix of the chain, with the times of its open stages, which may still grow. Forward stages
 * have communication c before computation F, backward stages computation B before communication d,
 * for microbatches 1 and 2. Stages in the order of the chain:
 *
 *     max(F_(i-1), c1_i) + max(F_i, c2_i)    counted when stage i opens, and when it closes
 *     max(B_i, d1_i) + max(B_(i-1), d2_i)    both when stage i closes
 *
 * At the end of the chain the forward and the backward of the last stages are one computation. */
typedef struct {
    double closed_s;
    double c2, d[2], back_before; /* B_(i-1): largest over classes */
    Times forward, back, update;  /* F_i, B_i so far; all updates */
    /* label of the cut before; next label of the same state */
    uint32_t parent, next;
    const DuplexChoice *choice;
} DuplexLabel;

/* Appends a node under a choice, after the conversions of its inputs. */
void duplex_append(const DuplexProblem *p, DuplexLabel *label, const DuplexChoice *choice,
                   const DuplexConversion *step);
/* If an open forward stage takes longer than any communication beside it, its excess will count
 * twice in any case, so it is counted at once. Labels that differ in the excess only are then
 * compared by one number; otherwise each layer at which a stage can open would leave a label. */
void duplex_count_excess(const DuplexProblem *p, double longest_s, DuplexLabel *label);
/* Time of the whole chain. */
double duplex_total(const DuplexProblem *p, const DuplexLabel *label);
/* Whether every completion of `a` takes at most same_s longer than the same completion of `b`,
 * since max(a + x, b + y) - max(a' + x, b' + y) <= max(a - a', b - b') (HiDup's domination, with
 * stages still open). */
bool duplex_dominates(const DuplexProblem *p, double same_s, const DuplexLabel *a,
                      const DuplexLabel *b);
