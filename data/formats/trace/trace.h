/* Execution traces: the work of one rank of a run, as nodes that wait for one another. Part of
 * data's public interface.
 *
 *     Chakra file  --trace_read-->  Trace  --trace_write-->  NAME.0.et, NAME.1.et, ...
 *                                   Trace of every rank  --goal_write-->  one GOAL file
 *
 * A Chakra file is a sequence of protocol-buffer messages, each preceded by its length, plain or
 * gzipped: one message of metadata, then one per node. Its times are whole microseconds. Attributes
 * that are read and written:
 *
 *     is_cpu_op               bool     ran on the host
 *     num_ops, tensor_size    FLOPs, and bytes that a computation touches
 *     comm_type               of a collective: TRACE_COLLECTIVE_TABLE
 *     comm_size               bytes of a collective, a send or a receive
 *     kilter_bytes            the rank's own part of these bytes if shares are uneven
 *     comm_src, comm_dst, comm_tag    of a send or a receive
 *     pg_name                 the group of ranks of a collective; "" or "0": all ranks
 *
 * GOAL has sends, receives and calculations in whole nanoseconds, so collectives must have been
 * lowered to messages. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/base/free.h"

/* id, Chakra's name; in the order of Chakra's numbers, from 1. */
#define TRACE_KIND_TABLE(X) \
    X(METADATA, "METADATA") \
    X(LOAD, "MEM_LOAD")     \
    X(STORE, "MEM_STORE")   \
    X(COMPUTE, "COMP")      \
    X(SEND, "SEND")         \
    X(RECEIVE, "RECV")      \
    X(COLLECTIVE, "COLL")

typedef enum {
    TRACE_NOTHING,
#define X(id, name) TRACE_##id,
    TRACE_KIND_TABLE(X)
#undef X
        TRACE_KINDS
} TraceKind;

/* Chakra's names, in the order of Chakra's numbers, from 0. */
/* clang-format off */
#define TRACE_COLLECTIVE_TABLE(X)                                                   \
    X(ALL_REDUCE) X(REDUCE) X(ALL_GATHER) X(GATHER) X(SCATTER) X(BROADCAST)         \
    X(ALL_TO_ALL) X(REDUCE_SCATTER) X(REDUCE_SCATTER_BLOCK) X(BARRIER)
/* clang-format on */

#define TRACE_COLLECTIVE_ID(id) TRACE_COMM_##id,
typedef enum {
    TRACE_COLLECTIVE_TABLE(TRACE_COLLECTIVE_ID) TRACE_COMM_TYPES,
    TRACE_COMM_NONE = TRACE_COMM_TYPES /* not said */
} TraceCollective;

const char *trace_kind_name(TraceKind kind);
const char *trace_collective_name(TraceCollective collective);

typedef struct {
    uint64_t id;
    const char *name, *group; /* interned in the trace; "" if there is none */
    TraceKind kind;
    bool host;
    TraceCollective collective;
    double start_s, duration_s;
    uint64_t flops, touched_bytes; /* of a computation */
    /* bytes of communication; for a collective equal on all ranks */
    uint64_t bytes;
    uint64_t own_bytes;         /* this rank's own part of it; 0: not given */
    uint32_t from, to, tag;     /* of a send or a receive */
    uint32_t first_dep, n_deps; /* range in Trace.dep, which has indices of nodes */
} TraceNode;

typedef struct {
    char *version;
    GArray *node;            /* TraceNode */
    GArray *dep;             /* uint32_t */
    uint64_t n_dependencies; /* dependencies in the file */
    /* how many of them name missing nodes: they are left out. A missing id 0 of nodes without id
     * does not count */
    uint64_t n_dangling;
    /* the first of them: node, and the missing one */
    uint64_t dangling_node, dangling_id;
    GStringChunk *text;
} Trace;

enum {
    TRACE_MAX_NODES = 1 << 24,
    TRACE_MAX_MESSAGE = 1 << 24, /* most bytes of one node */
    TRACE_MAX_RANKS = 1 << 17,
};

Trace *trace_new(void);
AUTOPTR(trace_free, Trace)

static inline const TraceNode *trace_node(const Trace *trace, uint32_t index)
{
    return &g_array_index(trace->node, TraceNode, index);
}

/* The nodes that a node waits for; NULL if it waits for none. */
static inline const uint32_t *trace_deps(const Trace *trace, const TraceNode *node)
{
    return node->n_deps == 0 ? NULL
                             : &g_array_index(trace->dep, uint32_t, node->first_dep);
}

/* trace_add appends a node and returns its index; name and group are copied, and the id becomes
 * index + 1. trace_wait adds the nodes that the last node waits for, one by one. */
uint32_t trace_add(Trace *trace, const TraceNode *node);
void trace_wait(Trace *trace, uint32_t other);

/* Whether the file begins like a trace of Chakra, unpacked if gzipped. */
bool trace_is(const char *file);

/* Reads a trace. KILTER_ERROR_INPUT names the file, the node and what was expected, or a node of a
 * cycle. KILTER_ERROR_FAILED: this build has no protobuf-c. */
Trace *trace_read(const char *file, GError **error);

/* The file NAME.groups.json beside traces, an object with the ranks of each group of collectives:
 * name -> GArray of uint32_t. KILTER_ERROR_INPUT names the file, the group, and what was expected.
 * Free with g_hash_table_unref. */
GHashTable *trace_groups_read(const char *file, GError **error);

/* The bytes of a Chakra file; free with g_bytes_unref. Durations are rounded so that no sum of
 * consecutive durations of a rank is off by more than a microsecond. KILTER_ERROR_FAILED: this
 * build has no protobuf-c. */
GBytes *trace_write(const Trace *trace, GError **error);

/* All ranks as one GOAL text. KILTER_ERROR_INPUT names the first collective, as collectives must
 * have been lowered to messages. The caller frees it. */
char *goal_write(const GPtrArray *traces, GError **error);
