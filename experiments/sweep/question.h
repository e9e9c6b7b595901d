/* Questions: what identifies a result. A question has three parts, each canonical JSON with a SHA-256 of its own, and a
 * seed:
 *
 *     subject   {"model": with every parameter} and, if it is in a file, {"content": SHA-256 of what the file says},
 *               {"exchange": ...}, {"program": ...} or {"trial": ...}
 *     cluster   the file's content without sources, and the tuning table that holds on it with the default rules
 *     method    planner, fidelity, granularity, every option (of files their contents), version */
#ifndef KILTER_EXPERIMENTS_SWEEP_QUESTION_H
#define KILTER_EXPERIMENTS_SWEEP_QUESTION_H

#include <jansson.h>

#include "data/data.h"

/* KILTER_ERROR_INPUT: the default tuning cannot be read. */
StorePart *question_cluster(const Cluster *cluster, GError **error);
/* A model, canonical; `content`: of its file, or NULL. */
StorePart *question_model(const char *model, const char *content);
/* A part of any other content. Takes the object. */
StorePart *question_part(json_t *object);
/* The same with the version. Takes the object. */
StorePart *question_method(json_t *object);

#endif
