/* The answer of a planner to a question (private to synth): its plan, which the planner fills in,
 * and what was found on the way that a bound or a report needs. */
#pragma once

#include "synth/hap/search.h"
#include "synth/question/question.h"

struct Answer {
    Plan *plan;        /* program, ratios, times and bounds */
    ClusterView *view; /* the plan's view if the planner chose it, or NULL */
    SimReport *report; /* of the plan completed last, */
    const Plan *reported;
    const ClusterView *reported_on; /* and on which view */
    GPtrArray *notes;               /* answer_take_notes() */
    bool stopped;

    /* --- how far to search --- */
    SynthSpace *space;  /* the programs that keep the question's pins */
    gint64 deadline_us; /* when the budget ends (g_get_monotonic_time); 0: never */
    /* plans that take this long are of no use; INFINITY: all are of use */
    double upper_s;
    /* the memory of plans that take this long is not counted, and they fit; 0: it is counted */
    double enough_s;
    /* the caller will make room for the plan: neither memory nor rounding is searched for */
    bool roomy;
    bool unbounded; /* the plan needs no bound */
    bool brief;     /* of the limits */
    bool *beaten;   /* of the limits; NULL: nobody asks */

    /* --- what the search has seen --- */
    /* least time before rounding of all plans that fit; 0: none does */
    double seen_s;
    /* [SYNTH_POINTS * n_devices] multipliers of memory with which the best plan so far was found;
     * NULL: without any */
    double *memory_s;
    /* the fastest program's time before rounding if it does not fit, so that plans with less memory
     * were searched for; 0: it fits */
    double misfit_s;
    bool proof_tried; /* hap_disprove has run */
    char *misfit;     /* its proof that nothing fits, or NULL */
};

/* Whether the budget is spent. */
static inline bool answer_is_late(const Answer *answer)
{
    return answer->deadline_us > 0 && g_get_monotonic_time() >= answer->deadline_us;
}

/* Seconds until a deadline, at least those for the first plan found; 0: there is none. */
static inline double answer_seconds_left(gint64 deadline_us)
{
    static const double least_s = 1e-3;
    const gint64 left_us = deadline_us > 0 ? deadline_us - g_get_monotonic_time() : 0;
    return deadline_us > 0 ? MAX((double)left_us / G_USEC_PER_SEC, least_s) : 0;
}

/* Whether a plan that takes so long, without a limit of memory, is of no use. */
static inline bool answer_is_lost(const Answer *answer, double seconds)
{
    return seconds >= answer->upper_s;
}

/* Frees all parts but the space. */
void answer_clear(Answer *answer);

/* Lets the question's planner make `plan` in the place of the answer's own plan. */
static inline bool answer_make(Answer *answer, const Question *question, Plan *plan,
                               bool (*make)(const Question *question, Answer *answer,
                                            GError **error),
                               GError **error)
{
    Plan *own = answer->plan;
    answer->plan = plan;
    const bool made = make(question, answer, error);
    answer->plan = own;
    return made;
}
