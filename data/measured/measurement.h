/* Measurements: how long ops and collectives took on real devices; what calibration fits costs to.
 *
 * A measurement file is CSV (data/base/csv.h) with these columns, in any order; lines that begin
 * with # say where it is from.
 *
 *     device    type of the devices
 *     kind      an op kind of data/graph/op.h or a collective
 *     shape     what was run, for people: operands as 4x128x512;512x512
 *     ranks     devices that worked at the same time
 *     share     op: the device's share; collective: the largest share of any rank; 1/ranks where nothing is cut
 *     flops     op: true FLOPs of this device; collective: 0
 *     bytes     op: of all operands, as this device held them; collective: of the whole tensor
 *     repeats   how often it was run
 *     median_s, low_s, high_s    of the repeats: median and quartiles, in seconds
 *     hosts     optional: machines that the ranks were on; empty or 0: not known
 *
 * Output of nccl-tests, text or JSON, is read as well, several tests in one file, as people's wrappers
 * write it: the out-of-place times of all_reduce_perf, all_gather_perf, reduce_scatter_perf and
 * alltoall_perf; broadcast_perf and reduce_perf count as one of the n messages of a grouped all-gather
 * or reduce-scatter; sendrecv_perf is the kind `send`, a message of each rank to the next one. Tests
 * that nothing is priced by (gather, scatter, hypercube) are passed over and counted. */
#ifndef KILTER_DATA_MEASURED_MEASUREMENT_H
#define KILTER_DATA_MEASURED_MEASUREMENT_H

#include "data/cluster/cluster.h"

typedef struct {
    char *device, *shape;
    OpKind op;             /* OP_KINDS if it is a collective */
    Collective collective; /* a priced one, COLLECTIVES if it is an op or a send */
    bool send;             /* each rank's message of `bytes` to the next one */
    uint32_t ranks, repeats;
    uint32_t hosts; /* machines that the ranks were on; 0: not known */
    double share, flops, bytes;
    double median_s, low_s, high_s;
} Measurement;

/* What a file held of one kind: rows that were read, or passed over and why. */
typedef struct {
    char *file, *device;
    char *test; /* "all_reduce_perf"; of a measurement file the kind */
    uint32_t ranks, hosts;
    uint32_t rows, passed;    /* read, and passed over */
    double smallest, largest; /* size of the rows as the file has it */
    char *reason;             /* of those passed over; NULL: none are */
    uint32_t first;           /* index of the first row in the list; the others follow */
} MeasuredTable;

/* A list of MeasuredTable that owns their strings. Free with g_array_unref. */
GArray *measured_tables_new(void);

/* A list of Measurement that owns their strings. Free with g_array_unref. */
GArray *measurements_new(void);

/* Appends what the file holds, and to `tables` (NULL: not asked for) what that is. KILTER_ERROR_INPUT
 * names file and line and says what was expected; then nothing is appended. */
bool measurements_read(const char *file, GArray *list, GArray *tables, GError **error);
/* The same from text, which ends in '\0' after `length` bytes; messages call it `file`. */
bool measurements_parse(const char *file, const char *text, size_t length, GArray *list,
                        GArray *tables, GError **error);

/* The measurement file, with `comment` (one line, or NULL) before it. measurements_parse makes
 * equal ones of it. Caller frees. */
char *measurements_write(const GArray *list, const char *comment);

/* "linear", "all_reduce", "send". */
const char *measurement_kind(const Measurement *measurement);

#endif
