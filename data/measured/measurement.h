/* Measurements: times of ops and collectives on real devices, to which calibration fits costs.
 *
 * A measurement file is CSV (data/base/csv.h) with these columns, in any order; lines that begin
 * with # tell its source.
 *
 *     device    type of the devices
 *     kind      an op kind of data/graph/op.h or a collective
 *     shape     description for people: operands as 4x128x512;512x512
 *     ranks     devices that worked at the same time
 *     share     op: the device's share; collective: the largest share of any rank; 1/ranks where
 *               nothing is cut
 *     flops     op: true FLOPs of this device; collective: 0
 *     bytes     op: all operands, as this device held them; collective: the whole tensor
 *     repeats   number of runs
 *     median_s, low_s, high_s    median and quartiles over the repeats, in seconds
 *     hosts     optional: number of machines of the ranks; empty or 0: not known
 *
 * Output of nccl-tests, text or JSON, is read as well, several tests in one file, as people's
 * wrappers write it: the out-of-place times of all_reduce_perf, all_gather_perf,
 * reduce_scatter_perf and alltoall_perf; broadcast_perf and reduce_perf count as one of the n
 * messages of a grouped all-gather or reduce-scatter; sendrecv_perf is the kind `send`, a message
 * of each rank to the next one. Tests that price nothing (gather, scatter, hypercube) are skipped
 * and counted. Reports of Nsight Systems (data/formats/measured/nsys.h) are read, too. */
#pragma once

#include "data/cluster/cluster.h"

typedef struct {
    char *device, *shape;
    OpKind op;             /* OP_KINDS for a collective */
    Collective collective; /* a priced collective; COLLECTIVES for an op or a send */
    bool send;             /* each rank sends `bytes` to the next rank */
    uint32_t ranks, repeats;
    uint32_t hosts; /* number of machines of the ranks; 0: not known */
    double share, flops, bytes;
    double median_s, low_s, high_s;
} Measurement;

/* The rows of one kind in a file: how many were read or skipped, and why. */
typedef struct {
    char *file, *device;
    char *test; /* "all_reduce_perf"; for a measurement file the kind */
    uint32_t ranks, hosts;
    uint32_t rows, passed;    /* numbers of rows read and skipped */
    double smallest, largest; /* range of the rows' sizes, as the file gives them */
    char *reason;             /* why rows were skipped; NULL: none were */
    uint32_t first;           /* index of the first row in the list; the others follow */
} MeasuredTable;

/* A list of MeasuredTable that owns their strings. Free with g_array_unref. */
GArray *measured_tables_new(void);

/* A list of Measurement that owns their strings. Free with g_array_unref. */
GArray *measurements_new(void);

/* Appends the file's measurements to `list` and their description to `tables` (may be NULL).
 * KILTER_ERROR_INPUT names file and line and says what was expected; then nothing is appended. */
bool measurements_read(const char *file, GArray *list, GArray *tables, GError **error);
/* The same from text, which ends in '\0' after `length` bytes; messages call it `file`. */
bool measurements_parse(const char *file, const char *text, size_t length, GArray *list,
                        GArray *tables, GError **error);

/* The text of a measurement file, with `comment` (one line, or NULL) before it, from which
 * measurements_parse makes equal measurements. The caller frees it. */
char *measurements_write(const GArray *list, const char *comment);

/* The kind as text: "linear", "all_reduce", "send". */
const char *measurement_kind(const Measurement *measurement);
