/* Questions: the identity of a result. A question has three parts, each canonical JSON with a
 * SHA-256 of its own, and a seed:
 *
 *     subject   {"model": with every parameter} and, for a model in a file, {"content": SHA-256 of the file},
 *               {"exchange": ...}, {"program": ...} or {"trial": ...}
 *     cluster   the file's content without sources, and the tuning table that applies to it, with the default rules
 *     method    planner, fidelity, granularity, every option (files by their contents), version */
#pragma once

#include <jansson.h>

#include "data/cluster/cluster.h"

typedef struct StorePart StorePart; /* data/store/store.h */

/* KILTER_ERROR_INPUT: the default tuning cannot be read. */
StorePart *question_cluster(const Cluster *cluster, GError **error);
/* The part of a model. `model`: canonical; `content`: the content of its file, or NULL. */
StorePart *question_model(const char *model, const char *content);
/* A part of any other content. Takes the object. */
StorePart *question_part(json_t *object);
/* A part with the version added. Takes the object. */
StorePart *question_method(json_t *object);
