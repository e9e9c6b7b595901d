/* A program with the techniques, microbatches and recomputation (private to synth). */
#pragma once

#include "synth/answer/answer.h"

/* A planner's own program, to which the techniques are added, and the plan that gets the result. */
typedef struct {
    const Question *question;
    Answer *answer;
    Plan *plan;
    const Program *program;
    const Plan *made; /* with its ratios, segments and counts */
} Training;

/* Makes the plan of a planner without techniques with those that the options ask for. */
bool training_make(const Question *question, Answer *answer, GError **error);

/* Layers in the order of their recomputation, and the mode of the others. */
typedef struct {
    const uint32_t *order;
    uint32_t n;
    const char *mode;
} Again;

/* Gives updates, with the optimizer states that they read, ratios of their own (a segment) where
 * the program keeps them apart from the rest, as ZeRO does: so the batch can be divided by speed
 * and the states by memory. */
void training_set_apart(const Question *question, Plan *made);

/* Gives the plan the program with the techniques of the strategy, and the best ratios for it. */
bool training_give(const Training *training, const Strategy *strategy, GError **error);

/* The same with the first n_full layers of the order computed again. */
bool training_give_layers(const Training *training, const Again *again, uint32_t n_full,
                          GError **error);

/* The same with the layers that make the plan fit, or faster. */
bool training_choose_layers(const Training *training, GError **error);

/* Whether hundreds of plans of the graph are made in a moment. */
bool training_is_small(const Question *question);

/* An empty plan of the same kind. */
Plan *training_plan_like(const Plan *plan);

/* One that has the other plan's ratios and segments, too, with a program (taken over). */
Plan *training_plan_of(const Question *question, const Plan *like, Program *program);

/* Where memory binds: mixes of `first`, the plan made as if memory were no matter, with programs
 * that take less of it. *mixed: the plan of the best mix with its own program, or NULL; the caller
 * frees it. */
bool training_mix(const Question *question, Answer *answer, const Plan *first,
                  Plan **mixed, GError **error);
