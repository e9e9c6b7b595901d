/* The part of `kilter simulate` that runs several plans on one cluster. */
#pragma once

#include "experiments/cli/command.h"

enum { JOBS_MOST = 64 }; /* plans */

/* Simulates the plans of n files side by side on a cluster, `iterations` of each (0: 10), and
 * prints what each loses by the others. order: how their machines are placed there (NULL: packed).
 */
bool command_simulate_jobs(char **file, uint32_t n, const char *cluster,
                           const char *order, uint32_t iterations,
                           const CommandOptions *options, GError **error);
