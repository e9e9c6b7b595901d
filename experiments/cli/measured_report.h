/* What measurement files held, and what became of it: a table and JSON (kilter import, kilter calibrate). */
#ifndef KILTER_EXPERIMENTS_CLI_MEASURED_REPORT_H
#define KILTER_EXPERIMENTS_CLI_MEASURED_REPORT_H

#include <jansson.h>

#include "experiments/calibration/calibrate.h"

/* `calibration`: NULL where rows are only read. `tables`: MeasuredTable. */
void measured_report_print(const GArray *tables, const Calibration *calibration);
json_t *measured_report_json(const GArray *tables, const Calibration *calibration);

/* Reads argv[1..argc-1] into `list` and `tables`. */
bool measured_read_all(int argc, char **argv, GArray *list, GArray *tables,
                       GError **error);

#endif
