/* The content of measurement files and its use, as a table and as JSON (kilter import, kilter
 * calibrate). */
#pragma once

#include <jansson.h>

#include "experiments/calibration/calibrate.h"

/* `calibration`: NULL if rows are only read. `tables`: of MeasuredTable. */
json_t *measured_report_json(const GArray *tables, const Calibration *calibration);

/* Reads argv[1..argc-1] into `list` and `tables`. */
bool measured_read_all(int argc, char **argv, GArray *list, GArray *tables,
                       GError **error);
