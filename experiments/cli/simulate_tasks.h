/* The part of `kilter simulate` that simulates task graphs from files. */
#pragma once

#include "experiments/cli/command.h"
#include "sim/sim.h"

/* Simulates the file under the simulation's options and prints time and peaks. */
bool command_simulate_tasks(const char *file, const CommandOptions *options,
                            GError **error);
