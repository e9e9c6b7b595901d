/* Declarations shared by the writer and the reader of graph files (private to data). */
#pragma once

#include "data/graph/graph.h"

#include <stddef.h>

#define GRAPH_FORMAT "kilter-graph"
enum { GRAPH_VERSION = 1 };

extern const char *const GRAPH_DTYPE_NAMES[DTYPES];

/* The constants of an op by key, with their place in OpAttr. */
typedef enum { ATTR_SIZE, ATTR_FLAG, ATTR_NUMBER, ATTR_DOCUMENTS } AttrType;
typedef struct {
    const char *key;
    size_t at;
    AttrType type;
} GraphAttr;
enum { GRAPH_ATTRS = 18 };
extern const GraphAttr GRAPH_ATTR[GRAPH_ATTRS];
