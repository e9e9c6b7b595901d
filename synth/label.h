/* Labels: partial programs of one state, and the table that keeps those that nothing dominates (private to synth).
 *
 * A prefix of the forward ops, each with its backward ops, costs more than one number: the forward's last stage still
 * grows at its end, the backward's first stage at its front, and the final stage by updates. A label is the closed cost
 * and those three open vectors. Label 1 dominates label 2 of the same state when for every completion it is at most as
 * long:
 *
 *     c1 + max(f1 - f2) + max(b1 - b2) + max(u1 - u2) <= c2        (max over device classes)             (1)
 *
 * since max(f1 + x) <= max(f2 + x) + max(f1 - f2), also where the differences are negative. */
#ifndef KILTER_SYNTH_LABEL_H
#define KILTER_SYNTH_LABEL_H

#include "synth/transition.h"

typedef struct {
    uint64_t state;                  /* forms of the live tensors, 6 bits each */
    double closed_s;                 /* c */
    Times forward, backward, update; /* f, b, u */
    uint32_t parent;                 /* index in the table of the cut before */
    const Transition *transition;    /* that led here; NULL at the start */
    uint32_t next;                   /* of the same state */
} Label;

#define LABEL_NONE UINT32_MAX

typedef struct {
    GArray *labels;     /* Label */
    GHashTable *states; /* state -> first label + 1 */
} LabelTable;

LabelTable *label_table_new(void);
void label_table_free(LabelTable *table);

/* Adds a label unless one of its state dominates it; a label that it dominates is overwritten. */
void label_table_add(LabelTable *table, const Pricer *pricer, const Label *label);

/* The label after a transition. */
Label label_extend(const Pricer *pricer, const Label *label,
                   const Transition *transition);

/* Iteration time of a label at the end of the forward: the forward's and the backward's open stage merge. */
double label_total(const Pricer *pricer, const Label *label);

/* At most the time of any completion, given the least work of each class that is still to come. Only one class's time is
 * counted, so that stages add up. */
double label_bound(const Pricer *pricer, const Label *label, const Times *rest);

#endif
