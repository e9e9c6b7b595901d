/* Subjects: a model for a number of GPUs, shared by many configurations of an experiment. Its spec
 * is resolved once; its graph is built when the first of them is evaluated and freed after the
 * last. All functions are safe for any thread. */
#pragma once

#include "data/graph/graph.h"

typedef struct StorePart StorePart; /* data/store/store.h */

typedef struct Subject Subject;

/* A spec that is not possible for that many GPUs still makes a subject; subject_take says why it is
 * not possible. */
Subject *subject_new(const char *model, uint32_t gpus);
void subject_free(Subject *subject);

/* The model with every parameter, or as it was asked for if it is not possible. */
const char *subject_model(const Subject *subject);
/* Its part of a question, with the file's content for a model in a file. Borrowed. */
StorePart *subject_part(const Subject *subject);

/* Announces that the graph will be taken once more; the subject keeps it while further uses are
 * expected. */
void subject_expect(Subject *subject);
/* The graph; the caller releases its reference with graph_free. */
Graph *subject_take(Subject *subject, GError **error);
