/* Search and linear program in turn, and the best plan of all that they meet: what the planner hap is
 * made of (private to experiments). */
#ifndef KILTER_EXPERIMENTS_PLANNERS_ALTERNATION_H
#define KILTER_EXPERIMENTS_PLANNERS_ALTERNATION_H

#include "experiments/planners/planning.h"

/* A program that was met, with its models for common ratios. */
typedef struct {
    Program *program;
    SimLinear *linear;
    SimMemory *memory;  /* NULL until it is asked for */
    double *balanced;   /* its best ratios; NULL until they are */
    bool roomy;         /* with ratios that leave memory free it misses by rounding */
    GArray *considered; /* ratios that it was considered with */
} Known;

typedef struct {
    const Planning *planning;
    const Graph *graph; /* the planning's, like view and options */
    const ClusterView *view;
    const PlannerOptions *options;
    GPtrArray *known;        /* Known: rounds and baselines meet the same again */
    Plan *best;              /* NULL until there is a candidate */
    bool pinned;             /* the ratios stay what they are */
    bool rough;              /* plans are not rounded by time: better ones are to come */
    const uint16_t *segment; /* [op] as asked for, or NULL: one */
    double search_s, balance_s;
    /* ratios that the program at hand is proved best for, or NULL */
    const double *proved;
} Alternation;

Alternation alternation_new(const Planning *planning);
/* Hands the times spent to the plan. */
void alternation_end(Alternation *a, Plan *plan);

/* Whether the best plan so far fits the memory. */
bool alternation_fits(const Alternation *a);

/* Facts about a program, which is copied if it is new. */
Known *alternation_know(Alternation *a, const Program *program);

/* Considers a plan of a known program. *feasible is set if the plan fits the memory, and left alone
 * otherwise. */
bool alternation_consider(Alternation *a, Known *known, const double *ratio,
                          bool *feasible, GError **error);

/* The linear program with a part of every GPU's memory. */
bool alternation_solve(Alternation *a, const SimLinear *linear, const SimMemory *memory,
                       double part, double *ratio, GError **error);

/* Considers a program with its best ratios; those that fit the memory if there are any. Rounding
 * can need more than the ratios do, so a plan that misses the memory is tried again with less of
 * it. */
bool alternation_balance(Alternation *a, Known *known, double *ratio, bool *feasible,
                         GError **error);

/* Rounds the best plan by time, if it was not. */
bool alternation_round_best(Alternation *a, GError **error);

/* Searches again at the shares of the best plan as rounded, where rounding costs something: programs
 * that were a little slower before it may be faster after it. */
bool alternation_settle(Alternation *a, GError **error);

/* Considers programs with their best ratios, and takes the better plans. */
bool alternation_consider_all(Alternation *a, const GPtrArray *programs,
                              const double *start, GError **error);

/* One round: the best program for the ratios, then the best ratios for it, in place. memory_s: as in
 * SynthOptions. *feasible: a plan of this round fits the memory. */
bool alternation_round(Alternation *a, double *ratio, const double *memory_s,
                       bool *feasible, GError **error);

/* Rounds until ratios repeat. history: ratios that were searched with memory_s; from there on rounds
 * only repeat. */
bool alternation_run(Alternation *a, const double *start, const double *memory_s,
                     GPtrArray *history, GError **error);

#endif
