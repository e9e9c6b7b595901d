/* Instances of sufficient factor broadcasting from files (TAG, TPDS 2023, Sec. 4.2.3).
 *
 * A file is a JSON array of objects, or a single object. An object has
 *
 *     case              a number, optional
 *     D                 devices;  tau_bytes_per_us: bandwidth between them
 *     op                names;    T_us: time of each op
 *     edge              [producer, reader, bytes of the whole tensor]
 *     gradient          [op that makes it, bytes]
 *     never_duplicated  ops, optional
 *
 * Ops are indices. The optimizer's operands other than gradients are left out; other keys are
 * ignored. */
#pragma once

#include "synth/tag/sfb_graph.h"

typedef struct {
    int64_t number; /* of the case; its place in the file where it has none */
    double tau;     /* bytes/us */
    uint32_t n_devices, n_ops, n_edges;
    char **op;
    double *compute_us; /* [op] */
    double *gradient;   /* [op]: bytes of the gradients that the op makes */
    bool *never;        /* [op] */
    SfbRead *edge;      /* op: the reader; tensor: the producer */
    double *edge_bytes; /* [edge] */
} SfbCase;

/* The cases of a file (SfbCase). KILTER_ERROR_INPUT names the file, the case, the key and what was
 * expected. */
GPtrArray *sfb_file_read(const char *file, GError **error);

/* The optimum by TAG's prices, SFB_PAPER or SFB_RING, in microseconds; duplicated: out, [op]. */
double sfb_case_solve(const SfbCase *sfb, SfbPrices prices, bool *duplicated);
