/* The walk of the exact search, shared with the bounds (private to synth). */
#pragma once

#include "synth/hap/exact/label.h"
#include "synth/hap/exact/states.h"
#include "synth/hap/search.h"

/* The state shared by searches over the same programs. */
struct SynthSpace {
    const Graph *graph;
    const SynthPins *pins;
    const uint16_t *segment; /* [op]; NULL: one segment, and n_segments is 0 */
    uint32_t n_segments;
    bool large; /* a search asked for more states than can be tried */
    /* [0] without and [1] with a charge for memory; NULL until a search asks for them */
    States *states[2];
};

typedef struct {
    Pricer pricer;
    States *states;
    LabelTable *table; /* [cut] */
    double limit_s;    /* labels that cannot stay below it are dropped */
    double upper_s;    /* time of a known program */
    double free_s;     /* the charge for all memory of the cluster */
    double tolerance;  /* tolerance within which labels stand for others */
    bool bound_only;   /* programs do not matter */
    /* no program is faster: the relaxation's bound or better, or 0 at the deadline */
    double proved_s;
    bool complete; /* no label was lost to a beam or the deadline */
    double lost_s; /* no label lost to a beam can do better than this */
    uint64_t labels, expansions;
    uint64_t effort; /* as in SynthBox */
} Search;

/* Takes the space's states at the prices of `s->pricer`, which is set, and relaxes them. */
bool search_start(Search *s, SynthSpace *space, gint64 deadline_us, GError **error);
AUTOCLEAR(search_clear, Search)

/* Walks labels within limit_s from the first cut to the last, with at most `beam` labels per cut
 * unless it is 0. A walk that the deadline stops leaves no labels. */
void search_walk(Search *s, uint32_t beam);
/* Walks with wider and wider limits, until a walk finds a program or leaves out none that is faster
 * than the known program. */
void search_walk_widening(Search *s, uint32_t beam);

/* The relaxation's bound: the least cost from the start for any one class. */
double search_relaxed_bound(const Search *s);
/* The least time at the end; with `least` also of the programs that labels stand for, and without
 * updates that may be free; `rationed`: of those whose charge the free memory pays, without it. */
double search_best(const Search *s, bool least, bool rationed);
/* The program of the label `index` at the last cut. */
Program *search_program(Search *s, uint32_t index, GError **error);
