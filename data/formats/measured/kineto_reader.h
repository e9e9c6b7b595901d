/* The state of reading a trace of PyTorch's profiler (private to data):
 * data/formats/measured/kineto.c reads the file, data/formats/measured/kineto_events.c its
 * events. */
#pragma once

#include "data/base/json_stream.h"
#include "data/formats/measured/kineto.h"
#include "data/formats/measured/profile.h"

enum { MAX_DEPTH = JSON_MAX_DEPTH + 2, NAME_BYTES = 128, MAX_ROWS = 5000000 };

/* The relevant members of the event being read. */
typedef struct {
    char name[NAME_BYTES], category[NAME_BYTES], collective[NAME_BYTES],
        dtype[NAME_BYTES];
    char type[NAME_BYTES]; /* type of the first operand */
    double us, in, out, group;
    int64_t id, stream;
    ProfileOperands operands;
    uint32_t n_types;
    bool has_dims;
} Event;

/* The kernels that one op launched. */
typedef struct {
    double us;
    uint64_t n;
} KernelSum;

typedef struct {
    const char *file;
    KinetoFacts *facts;
    uint32_t depth;
    char key[MAX_DEPTH][32]; /* [depth]: in a mapping, the key whose value comes next */
    Event event;
    GHashTable *stream;
    GHashTable *op;     /* external id of an op with a shape -> ProfileBin */
    GHashTable *kernel; /* external id -> KernelSum */
    Profile *profile;
    uint64_t kept, n_shaped; /* n_shaped: ops with a shape beside matrix products */
    bool has_events, has_nodes;
    GError *failure;
} Reader;

extern const JsonEvents KINETO_EVENTS; /* their context is a Reader */
