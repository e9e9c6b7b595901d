/* Tries of a portfolio, and what its parts share (private to auto). */
#pragma once

#include "data/program/period.h"
#include "synth/auto/neighbours.h"
#include "synth/auto/portfolio.h"

/* Tries: a planner on a choice of machines, several at once.
 *
 * Tries are run in rounds. The fastest plan so far, with which a round's tries are compared, is
 * fixed before the round begins, and the plans of the round are taken in the order of the tries
 * after it. So the result does not depend on which try ends first. */

typedef struct {
    Portfolio *portfolio;
    const PortfolioOptions *how;
    const PlannerOptions *options;
    Graph *graph;
    TechniqueNeeds has; /* of what techniques need */
    SimMemoryFloor floor;
    gint64 deadline_us; /* 0: none */
    bool hasty, many;   /* try_is_hasty(), try_is_among_many() */
    double best_s;      /* least time of all choices; INFINITY at first */
    /* Task: the fastest plans that are not their choices' own, by their times */
    GPtrArray *others;
    GError *failure;  /* the failure that says most, NULL: none */
    uint32_t telling; /* how much it says */
} PortfolioRun;

/* Tries per round: few, so that each is compared with a recent best plan; first that of the planner
 * that is seldom beaten on the most promising machines. */
enum { FIRST_ROUND = 1, ROUND = 4 };

/* Times of the best plan: within the one plans are compared by flow, within the other techniques
 * that take long are tried. */
static const double TRIES_FAR = 1.5, TRIES_NEAR = 1.15;

/* Plans that are compared again in the end: those of so many choices, the first ones, and as many
 * others, each of so many instructions; then further ones, of so many together: choices of
 * MOST_INSTRUCTIONS, others of SHORT_INSTRUCTIONS. In flow messages share links, and steps
 * overlap. */
enum { MOST_FLOWS = 6, MOST_INSTRUCTIONS = 400000, SHORT_INSTRUCTIONS = 50000 };

/* Whether the i-th plan is among them. most: instructions of the further ones together; *work: of
 * those before. */
static inline bool portfolio_compares(uint32_t i, const Plan *plan, uint64_t most,
                                      uint64_t *work)
{
    *work += i < MOST_FLOWS ? 0 : plan->program->n;
    return *work <= most;
}

/* A try and its result. */
typedef struct {
    PortfolioChoice *choice;
    PortfolioTry *attempt;
    uint32_t phase, number; /* when it has its turn */
    double upper_s;         /* plans that are not faster are of no use */
    double enough_s;        /* and of these the memory is not counted; 0: it is */
    PlannerOptions options; /* with the try's techniques */
    ClusterView *view;
    Graph *graph;
    Plan *plan;
    SimReport *report;
    double flow_s;
    GError *error;
} Task;

typedef struct {
    const PortfolioRun *run;
    GPtrArray *task; /* Task */
    uint32_t first;  /* of the round */
    uint32_t done;
    GMutex lock;
} Tasks;

/* Frees what the choice did not take over. */
void task_clear(Task *task);
void task_free(Task *task);
AUTOPTR(task_free, Task)
/* The task of the planner manual with these options, and the try that it fills. */
Task *task_by_hand(PortfolioChoice *choice, PortfolioTry *attempt, const char *set,
                   const PlannerOptions *options);

/* How far to search, by the option `work`: with less than all, machines and planners that are not
 * promising are left out. */
typedef enum { EFFORT_QUICK, EFFORT_NORMAL, EFFORT_LONG } Effort;

Effort try_effort(const PortfolioRun *run);
/* Whether the first plan is wanted soon, and programs may be long. */
bool try_is_hasty(const PortfolioRun *run);
/* Whether there are so many GPUs that the planner that comes first elsewhere searches coarsely:
 * strategies come first then. */
bool try_is_among_many(const PortfolioRun *run);

/* Planners whose plans are seldom beaten come first, then the quick ones, then those that search
 * coarsely, then those that search long where memory is short. */
enum { EARLY, FIRST, QUICK, TECHNIQUES, COARSE, LONG, LONG_TECHNIQUES, LAST };

/* tries.c: the tries of all choices in their order, and one of them (of Tasks). */
GPtrArray *portfolio_tasks(const PortfolioRun *run);
bool portfolio_try(void *tasks, uint32_t i, GError **error);
/* Makes the task's plan, which it has not yet; and its time by flow, INFINITY if none fits. */
void portfolio_make(const PortfolioRun *run, Task *task);
void portfolio_make_flow(const PortfolioRun *run, Task *task);
double portfolio_flow_s(const PortfolioRun *run, const Plan *plan, const Graph *graph,
                        const ClusterView *view);
/* No plan of any try on the choice is faster; 0: not known. */
double portfolio_least_bound(const PortfolioRun *run, const PortfolioChoice *choice);

/* The sizes of the states and of the devices, and the options that take less. Caller frees. */
char *portfolio_floor_words(const PortfolioRun *run, const Cluster *cluster);

/* choices.c */
void portfolio_choice_free(PortfolioChoice *choice);
void portfolio_list_choices(Portfolio *portfolio, const Cluster *cluster,
                            const PortfolioOptions *how);
void portfolio_list_tries(const PortfolioRun *run, PortfolioChoice *choice);

/* rounds.c */
void portfolio_run(PortfolioRun *run);
void portfolio_keep(Task *task);
void portfolio_remember(PortfolioRun *run, Task *task);
bool portfolio_is_among_best(const PortfolioRun *run, const PortfolioChoice *choice);

/* climb.c: neighbours of the fastest strategies; by_flow.c: the order of the fastest plans;
 * climb_flow.c: neighbours of the fastest one by flow. */
void portfolio_improve(PortfolioRun *run);
void portfolio_rank_by_flow(PortfolioRun *run);
void portfolio_climb_by_flow(const PortfolioRun *run, PortfolioChoice *choice);
