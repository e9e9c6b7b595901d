/* The walk of the exact search, which its bounds share (private to synth). */
#ifndef KILTER_SYNTH_EXACT_SEARCH_H
#define KILTER_SYNTH_EXACT_SEARCH_H

#include "synth/exact/label.h"
#include "synth/exact/space.h"
#include "synth/exact/states.h"

typedef struct {
    Pricer pricer;
    States *states;
    LabelTable *table; /* [cut] */
    double limit_s;    /* labels that cannot do better are dropped */
    double upper_s;    /* time of a known program */
    double free_s;     /* the charge for all memory that there is */
    double tolerance;  /* of labels */
    bool bound_only;   /* programs do not matter */
    /* nothing is faster: the relaxation's bound or better, or 0 at the deadline */
    double proved_s;
    bool complete; /* no label was lost to a beam or the deadline */
    double lost_s; /* none that was lost to a beam can do better */
    uint64_t labels, expansions;
    uint64_t effort; /* as in SynthBox */
} Search;

/* Rounding differences must not prune the optimum itself. */
static const double SEARCH_ROUNDING = 1 + 1e-12;

/* Takes the space's states at the prices of `s->pricer`, which is set, and relaxes them. */
bool search_start(Search *s, SynthSpace *space, gint64 deadline_us, GError **error);
void search_clear(Search *s);

/* Walks labels within limit_s from the first cut to the last, at most `beam` a cut unless it is 0. Nothing
 * is left of a walk that the deadline stops. */
void search_walk(Search *s, uint32_t beam);
/* Walks with wider and wider limits, until one holds a program or leaves nothing out that is faster than
 * the known one. */
void search_walk_widening(Search *s, uint32_t beam);

/* The relaxation's bound: the least cost from the start for any one class. */
double search_relaxed_bound(const Search *s);
/* Least that a label at the end takes; without a final step of their own updates join an earlier stage,
 * and may be free. */
double search_least_total(const Search *s, const Label *label);
/* The program of the label `index` at the last cut. */
Program *search_program(Search *s, uint32_t index, GError **error);

#endif
