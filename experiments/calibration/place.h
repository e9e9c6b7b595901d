/* Where measurements belong in a cluster: ranks of one machine tell its inner link, ranks of several ones what
 * is between machines. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_PLACE_H
#define KILTER_EXPERIMENTS_CALIBRATION_PLACE_H

#include "data/data.h"

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
    const char *reason; /* PLACE_NONE: why; lives as long as the program */
} Placing;

/* "between machines", "inside machines", ... */
const char *place_name(Place place);

/* For each measurement. Of several numbers of ranks of a kind the one that is most like the cluster's is taken:
 * one rank per machine, then all GPUs, then the nearest number of machines; inside of machines the largest. Caller
 * frees. */
Placing *place_measurements(const GArray *measurements, const Cluster *cluster,
                            const Sheets *sheets);

#endif
