/* Starting the ranks of kilter exec --backend mpi, and knowing whether this process is one. */
#ifndef KILTER_EXPERIMENTS_COMMANDS_EXEC_LAUNCH_H
#define KILTER_EXPERIMENTS_COMMANDS_EXEC_LAUNCH_H

#include "data/data.h"

/* Whether mpirun (or a process manager that speaks PMI) started this process. */
bool exec_is_rank(void);
bool exec_is_first_rank(void);

/* Runs `kilter arguments...` on n_ranks ranks of this machine, more than it has cores if need be, and waits. What the ranks
 * write to stdout goes to ours. KILTER_ERROR_FAILED (or the ranks' own code) with their first message if they fail,
 * if there is no mpirun, or if they take more than timeout_s. */
bool exec_launch(uint32_t n_ranks, uint32_t timeout_s, const char *const *arguments,
                 GError **error);

#endif
