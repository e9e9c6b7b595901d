/* From a program and ratios to a plan (private to synth). */
#pragma once

#include "synth/answer/answer.h"

/* Gives the plan a program (taken over) and one segment of ratios (copied). Here and below, the
 * plan's old splits are dropped, since they belong to another program. */
void plan_set(Plan *plan, const Graph *graph, const ClusterView *view, Program *program,
              const double *ratio);

/* Gives a plan with a program its segments [op] and ratios [n_segments * n_devices] (copied). */
void plan_set_segments(Plan *plan, const double *ratio, const uint16_t *segment,
                       uint32_t n_segments);

/* Gives a plan the program, segments, ratios and splits of another one, which loses its program and
 * splits. */
void plan_take(Plan *plan, Plan *from, const Question *question);

/* Cuts the batch of the plan's program into two microbatches that take turns. KILTER_ERROR_INPUT if
 * it cannot be cut. */
bool plan_duplex(Plan *plan, const Question *question, GError **error);

/* Gives the plan the time, stages, feasibility and memory of an evaluation. */
void plan_take_report(Plan *plan, const SimReport *report);

/* Rounds the ratios of a plan, unless it has splits, and evaluates it on the question's view:
 * splits, time, memory, feasibility, stages. The answer keeps the report. */
bool answer_complete(Answer *answer, Plan *plan, const Question *question,
                     GError **error);

/* A complete plan that is set aside while others are tried, with its report. */
typedef struct {
    Plan *plan; /* NULL: there is none */
    SimReport *report;
    const ClusterView *on;
} AnswerAside;

/* Moves the plan completed last aside, in the place of what was there. The plan is without a
 * program then. If it fits, the memory of slower ones is not counted until it is moved back. */
void answer_set_aside(Answer *answer, Plan *plan, const Question *question,
                      AnswerAside *aside);
/* Moves it back, if there is one, as answer_complete left it. */
void answer_put_back(Answer *answer, Plan *plan, const Question *question,
                     AnswerAside *aside);
AUTOCLEAR(answer_aside_clear, AnswerAside)

/* Completes the answer's plan on the cluster as it is, unless it was the last plan completed, and
 * sets its time before rounding. The answer keeps the report. */
bool answer_finish(Answer *answer, const Question *question, GError **error);

/* Gives the plan of a brief answer its whole program, and its time before rounding. */
void plan_make_whole(Plan *plan, const PlannerOptions *options, const Graph *graph,
                     const ClusterView *view);

/* Gives a complete plan the best ratios for its program (balance_ratios) if they make it better. */
bool answer_balance(Answer *answer, Plan *plan, const Question *question, GError **error);

/* Whether a complete plan is better than another one (NULL: there is none): it fits and the other
 * does not, or it is faster, or it is as fast and proved. */
bool plan_is_better(const Plan *a, const Plan *b);

/* Puts a complete plan in the place of the best one if it is better. Takes the plan over. */
void plan_keep_better(Plan **best, Plan *plan);

/* Copies the counts of the plan's cuts from another plan on the same devices, as far as that has
 * them. */
void plan_copy_counts(Plan *plan, const Plan *from);
