/* Questions: the identity of a result. A question has three parts, each canonical JSON with a
 * SHA-256 of its own, and a seed:
 *
 *     subject   {"model": with every parameter} and, for a model in a file, {"content": SHA-256 of the file},
 *               {"exchange": ...}, {"program": ...} or {"trial": ...}
 *     cluster   the file's content without sources, and the tuning table that applies to it, with the default rules
 *     method    planner, fidelity, granularity, options (files by their contents), the number
 *               of the answers
 *
 * A question does not name the release that answers it (the store's table `run` does), so that a
 * sweep goes on where an earlier release stopped. What a release adds to a question (an option, a
 * parameter of a model, a key of a cluster) is left out where it has the default by which answers
 * stay as they were; tests/golden/identities.txt notices what is not. */
#pragma once

#include <jansson.h>

#include "data/cluster/cluster.h"

/* Raised by hand in a release that answers questions otherwise than the one before, by other
 * costs in the code, another search or another default: rows with a smaller number stay to be
 * read, and are evaluated anew. Costs in files need no raise, as a question has their contents. */
enum { QUESTION_ANSWERS = 3 };

typedef struct StorePart StorePart; /* data/store/store.h */

/* KILTER_ERROR_INPUT: the default tuning cannot be read. */
StorePart *question_cluster(const Cluster *cluster, GError **error);
/* The part of a model. `model`: canonical; `content`: the content of its file, or NULL. */
StorePart *question_model(const char *model, const char *content);
/* A part of any other content. Takes the object. */
StorePart *question_part(json_t *object);
/* A part with QUESTION_ANSWERS added. Takes the object. */
StorePart *question_method(json_t *object);
