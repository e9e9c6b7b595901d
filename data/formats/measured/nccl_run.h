/* Runs of nccl-tests, whose rows become measurements (private to data). */
#pragma once

#include "data/measured/measurement.h"

/* nccl-tests calls "size" the bytes that its bus bandwidth refers to: the whole tensor's, but one
 * rank's for all-to-all and sendrecv, and those of one of the n messages of a grouped collective
 * for broadcast and reduce. */
typedef enum { USE_COLLECTIVE, USE_SEND, USE_NOTHING } Use;
typedef struct {
    const char *program;
    Use use;
    Collective kind;
    bool per_rank, one_of_n;
} NcclTest;

enum { MOST_RANKS = 65536 };

/* A run of a test among ranks, to which rows are added. */
typedef struct {
    const char *file;
    GArray *list, *tables;
    const NcclTest *test;
    char *name; /* name of the test, known or not; NULL: not given */
    char *device;
    uint32_t ranks, hosts;
    bool open; /* the last of `tables` belongs to this test */
} NcclRun;

/* The test that `text` names ("build/all_reduce_perf"), or NULL; the longest of several names. */
const NcclTest *nccl_test_find(const char *text);
/* Any name of the form NAME_perf in a line; NULL: none. The caller frees it. */
char *nccl_perf_name(const char *line);
/* Whether size and time are within the bounds of a sound row, whatever the number of ranks
 * (data/measured/measurement.c). */
bool nccl_is_row(double size, double time_us);

/* The next row begins another table. */
void nccl_run_close(NcclRun *run);
void nccl_run_clear(NcclRun *run);
/* Counts a row that is not used. */
void nccl_run_pass_over(NcclRun *run, const char *reason);
/* Adds a row; sizes of 0 bytes, which small sweeps contain, are ignored. */
void nccl_run_add(NcclRun *run, double size, double time_us, double wrong);
