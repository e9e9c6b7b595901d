/* Stored results as a table of all columns (private to experiments/cli). */
#ifndef KILTER_EXPERIMENTS_CLI_TABLE_H
#define KILTER_EXPERIMENTS_CLI_TABLE_H

#include "experiments/cli/command.h"

/* As CSV, or JSON; of one experiment (NULL: of all); to a file (NULL: the terminal). */
bool table_export(const char *database, const char *experiment, const char *output,
                  const CommandOptions *options, GError **error);

#endif
