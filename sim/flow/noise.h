/* Noise: how a run differs from the nominal run. Private to sim.
 *
 * Jitter multiplies the time of each computation by a draw with mean 1 and the standard deviation
 * of the options; a normal draw below 0 counts as 0. Each (device, op) has its own random stream in
 * each sample. A straggler takes longer for all its computations, by a factor. */
#pragma once

#include "sim/tasks/task.h"

typedef struct SimNoise SimNoise;

/* The noise that the options ask for in this case; borrows both. KILTER_ERROR_INPUT names an
 * unknown device or a bad factor. */
SimNoise *sim_noise_new(const SimCase *sim, const SimTasks *tasks, GError **error);
AUTOPTR(sim_noise_free, SimNoise)

/* Whether devices that are alike may differ in a run, so that each needs its own lane. */
bool sim_noise_separates(const SimOptions *options);

/* Durations of all tasks in sample number `sample`: out, [task]. Safe to call from
 * several threads. */
void sim_noise_durations(const SimNoise *noise, uint64_t sample, double *duration_s);
