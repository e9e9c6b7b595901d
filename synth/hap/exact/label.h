/* Labels: partial programs of one state, and the table that keeps those that nothing dominates
 * (private to synth).
 *
 * A prefix of the forward ops, each with its backward ops, costs more than one number: the
 * forward's last stage still grows at its end, the backward's first stage at its front, and the
 * final stage by updates. Where machines communicate inside, gathered parameters extend the
 * forward's first stage, and updated values a stage after the updates. A label is the closed cost
 * and these open vectors. Label 1 dominates label 2 of the same state if no completion takes longer
 * with it:
 *
 *     c1 + max(i1 - i2) + max(f1 - f2) + max(b1 - b2) + max(u1 - u2)
 *        + max(t1 - t2) <= c2                                (max over device classes)   (1)
 *
 * since max(f1 + x) <= max(f2 + x) + max(f1 - f2), also where the differences are negative.
 *
 * Where memory is limited (Pricer.rationed) a label has a time, without the charge for memory, and
 * a charge; it dominates labels that are no better in either. Very many labels differ by little;
 * then one label stands for others, and its drift says by how much these may be better than itself,
 * in time and in charge: at most by a tolerance times its own cost. */
#pragma once

#include "synth/hap/exact/transition.h"

typedef struct {
    uint32_t state;  /* of the cut */
    uint32_t parent; /* its label of the cut before */
    uint32_t next;   /* of the same state */
    bool begun;      /* the forward's first stage is closed, except for `initial` */
    bool final; /* the final step communicates; else the updates join the stage before */
    double closed_s; /* c, including the charge */
    /* its cost for each class if only that class counts. Plus the least that the class adds from
     * here on, it is at most the time of any completion */
    Times sum;
    double charge_s; /* the charge for memory */
    /* by how much the labels it stands for may be better */
    double drift_s, drift_charge_s;
    Times initial, forward, backward, update, tail; /* i, f, b, u, t */
    /* the transition that led here; NULL at the start */
    const Transition *transition;
} Label;

#define LABEL_NONE UINT32_MAX

typedef struct {
    GArray *labels; /* Label */
    Index states;   /* states that have labels -> index in `first` */
    GArray *first;  /* uint32_t: the first label of each state */
} LabelTable;

/* Empties a table, which may be zeroed. */
void label_table_empty(LabelTable *table);
void label_table_clear(LabelTable *table);

/* Keeps only the first n labels and frees spare memory; no label may be added afterwards. */
void label_table_trim(LabelTable *table, uint32_t n);

/* Adds a label unless a label of its state dominates it or, within the tolerance, stands for it; a
 * label that it dominates is overwritten. */
void label_table_add(LabelTable *table, const Pricer *pricer, double tolerance,
                     const Label *label);

/* The label after a transition; the caller sets its state and parent. */
Label label_extend(const Pricer *pricer, const Label *label,
                   const Transition *transition);

/* Iteration time of a label at the end of the forward, where the open stages of forward and
 * backward merge: exact if the final step communicates, else an upper bound. */
double label_total(const Pricer *pricer, const Label *label);
