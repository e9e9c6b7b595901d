/* Stored results as a table of all columns (private to experiments/cli). */
#pragma once

#include "experiments/cli/command.h"

/* kilter export RESULTS.db, the old form of kilter table --all --csv: writes the rows of one
 * experiment (NULL: of all experiments) as CSV or JSON to a file (NULL: to
 * the terminal). */
bool table_export(const char *database, const char *experiment, const char *output,
                  const CommandOptions *options, GError **error);
