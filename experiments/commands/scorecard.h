/* kilter reproduce scorecard. Private to experiments. */
#ifndef KILTER_EXPERIMENTS_COMMANDS_SCORECARD_H
#define KILTER_EXPERIMENTS_COMMANDS_SCORECARD_H

#include "experiments/commands/command.h"

/* Scores all data sets, or the named one, with the measured data in `folder`; prints the table. threads 0: one a core. */
bool scorecard_run(const char *name, const char *folder, uint32_t threads,
                   const CommandOptions *options, GError **error);

#endif
