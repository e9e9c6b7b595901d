/* Where measurements belong in a cluster: measurements among the ranks of one machine tell about
 * its inner link, those among several machines about the links between them. */
#pragma once

#include "data/cluster/sheet.h"

typedef enum {
    PLACE_NONE,
    PLACE_OP,
    PLACE_BETWEEN, /* a collective among machines */
    PLACE_INNER,   /* among the GPUs of one machine */
    PLACE_SEND     /* a message from machine to machine */
} Place;

typedef struct {
    Place place;
    uint32_t type;   /* PLACE_INNER: device type of the machines, or UINT32_MAX for all */
    uint32_t a_host; /* PLACE_BETWEEN: ranks that share a machine's port */
    bool nearest;    /* its ranks are the most like the cluster's of all for its line */
    const char *reason; /* PLACE_NONE: why; lives as long as the program */
} Placing;

/* "between machines", "inside machines", ... */
const char *place_name(Place place);

/* The place of each measurement. Collectives among all numbers of ranks become curves. Where a line
 * was measured with several numbers of ranks, that most like the cluster is the nearest: between
 * machines one rank per machine, then all GPUs, then the nearest number of machines; inside a
 * machine the largest number. Other messages than the nearest have no place. Caller frees. */
Placing *place_measurements(const GArray *measurements, const Cluster *cluster,
                            const Sheets *sheets);
