/* Predicted beside measured times of plans, as an answer and as a figure. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "experiments/calibration/validate.h"

/* The answer, with the members of data/schemas/validate.json. */
json_t *validate_json(const Validation *v);
/* Draws FOLDER/hap-fig18: measured, predicted, and the ends of its 90 % interval, 0 where it is not
 * known. */
bool validate_draw(const Validation *v, const char *folder, GError **error);
