/* Plans side by side. */
#pragma once

#include <jansson.h>

#include "experiments/sweep/evaluation.h"

/* The answer for n plans and the files that they are from, with the members of
 * data/schemas/compare.json. */
json_t *compare_json(char *const *file, const Evaluation *evaluation, uint32_t n);
