/* Subjects: a model for a number of GPUs, which many configurations of an experiment have in common. Its spec is resolved
 * once; its graph is built when the first of them is evaluated, and goes with the last. For any thread. */
#ifndef KILTER_EXPERIMENTS_SWEEP_SUBJECT_H
#define KILTER_EXPERIMENTS_SWEEP_SUBJECT_H

#include "data/data.h"

typedef struct Subject Subject;

/* A subject of a spec that cannot be for that many GPUs is one all the same (subject_check says why). */
Subject *subject_new(const char *model, uint32_t gpus);
void subject_free(Subject *subject);

/* KILTER_ERROR_INPUT: why its model cannot be. */
bool subject_check(const Subject *subject, GError **error);
/* The model with every parameter, or as it was asked for if it cannot be. */
const char *subject_model(const Subject *subject);
/* Its part of a question; of a model in a file with what the file holds. Borrowed. */
StorePart *subject_part(const Subject *subject);

/* One more graph will be taken: as long as some are expected, it is kept. */
void subject_expect(Subject *subject);
/* The graph; the caller gives its reference back with graph_free. */
Graph *subject_take(Subject *subject, GError **error);

#endif
