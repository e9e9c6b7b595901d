/* What a trace of PyTorch's profiler is while it is read (private to data): data/measured/kineto.c has the file,
 * data/measured/kineto_events.c its events. */
#ifndef KILTER_DATA_MEASURED_KINETO_READER_H
#define KILTER_DATA_MEASURED_KINETO_READER_H

#include <yajl/yajl_parse.h>

#include "data/measured/kineto.h"

enum {
    MAX_DEPTH = 64,
    MAX_DIMS = 4,
    MAX_OPERANDS = 4,
    NAME_BYTES = 128,
    MAX_ROWS = 5000000
};

/* Of the event that is being read, what counts. */
typedef struct {
    char name[NAME_BYTES], category[NAME_BYTES], collective[NAME_BYTES],
        dtype[NAME_BYTES];
    char type[NAME_BYTES]; /* of the first operand */
    double us, in, out, group;
    int64_t id, stream;
    double dim[MAX_OPERANDS][MAX_DIMS];
    uint32_t n_dims[MAX_OPERANDS], n_operands, n_types;
    bool has_dims;
} Event;

/* What was measured together: a shape, or a collective. */
typedef struct {
    Measurement what; /* without times */
    GArray *seconds;
} Bin;

typedef struct {
    const char *file;
    KinetoFacts *facts;
    uint32_t depth;
    bool in_array[MAX_DEPTH];
    char key[MAX_DEPTH][32]; /* of the mapping at that depth: the key whose value comes */
    Event event;
    GHashTable *stream;
    GHashTable *matmul; /* external id -> Bin */
    GHashTable *kernel; /* external id -> double: microseconds of its kernels */
    GHashTable *bin;    /* text -> Bin */
    GPtrArray *order;   /* Bin, as they were seen */
    uint64_t kept;
    bool has_events, has_nodes;
    GError *failure;
} Reader;

void kineto_bin_free(void *bin);

/* Of a Reader. */
extern const yajl_callbacks KINETO_CALLBACKS;

#endif
