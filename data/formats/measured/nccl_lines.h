/* Lines of logs of nccl-tests as launchers pass them on, and tables whose test no line names
 * (private to data). */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The line without what launchers put before it: "[1,0]<stdout>:" of mpirun, "0: " of srun, "name |
 * " of compose, the time of containers' logs. Colors of terminals are removed in place. */
char *nccl_line(char *line);

/* A row of a table. */
typedef struct {
    double size, time_us, wrong;
    double algbw, busbw; /* 0: not given */
    double root;         /* -1: none, or not given */
    bool reduces;        /* it names an operation */
} NcclRow;

/* The program of nccl-tests that printed the rows, NULL if that is not sure: the ratio of bus
 * bandwidth to bandwidth, the operation and the root tell. All-gather and all-to-all print the
 * same. */
const char *nccl_guess(const NcclRow *row, uint32_t n, uint32_t ranks);
