/* Labels: partial programs of one state, and the table that keeps those that nothing dominates
 * (private to synth).
 *
 * A prefix of the forward ops, each with its backward ops, costs more than one number: the
 * forward's last stage still grows at its end, the backward's first stage at its front, and the
 * final stage by updates; where machines communicate inside, the forward's first stage by
 * parameters that are gathered, and one after the updates by their values. A label is the closed
 * cost and those open vectors. Label 1 dominates label 2 of the same state when for every
 * completion it is at most as long:
 *
 *     c1 + max(i1 - i2) + max(f1 - f2) + max(b1 - b2) + max(u1 - u2)
 *        + max(t1 - t2) <= c2                                             (max over device classes)     (1)
 *
 * since max(f1 + x) <= max(f2 + x) + max(f1 - f2), also where the differences are negative.
 *
 * Where memory is limited (Pricer.rationed) a label has a time, without the charge for memory, and
 * a charge; it dominates what takes as long and is charged as much. Very many differ by little;
 * then one of them stands for others, and says how much better those may be than itself (its
 * drift), in time and in charge: at most a tolerance times its own cost. */
#ifndef KILTER_SYNTH_EXACT_LABEL_H
#define KILTER_SYNTH_EXACT_LABEL_H

#include "synth/exact/transition.h"

typedef struct {
    uint32_t state;  /* of the cut */
    uint32_t parent; /* label of the cut before */
    uint32_t next;   /* of the same state */
    bool begun;      /* the forward's first stage is closed, but for `initial` */
    bool final; /* something is communicated in the final step; else the updates join the
                   stage before */
    double closed_s;                                /* c, with */
    double charge_s;                                /* the charge for memory */
    double drift_s, drift_charge_s;                 /* of what it stands for */
    Times initial, forward, backward, update, tail; /* i, f, b, u, t */
    const Transition *transition;                   /* that led here; NULL at the start */
} Label;

#define LABEL_NONE UINT32_MAX

typedef struct {
    GArray *labels; /* Label */
    Index states;   /* that have labels -> */
    GArray *first;  /* uint32_t: the first label */
} LabelTable;

/* Empties a table, which may be zeroed. */
void label_table_empty(LabelTable *table);
void label_table_clear(LabelTable *table);

/* Keeps the first n labels, in no more memory than they need: for good, nothing is added after. */
void label_table_trim(LabelTable *table, uint32_t n);

/* Adds a label unless one of its state dominates it or, within the tolerance, stands for it; a
 * label that it dominates is overwritten. */
void label_table_add(LabelTable *table, const Pricer *pricer, double tolerance,
                     const Label *label);

/* The label after a transition; its state and parent are the caller's. */
Label label_extend(const Pricer *pricer, const Label *label,
                   const Transition *transition);

/* Iteration time of a label at the end of the forward, where the forward's and the backward's open
 * stage merge: exact if something is communicated in the final step, else an upper bound. */
double label_total(const Pricer *pricer, const Label *label);

/* The label's cost if each class alone counts: with the least that the class adds from here on, at
 * most the time of any completion. */
Times label_sums(const Pricer *pricer, const Label *label);

#endif
