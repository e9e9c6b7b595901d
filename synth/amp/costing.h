/* The inputs of both readings of the cost (private to synth). */
#pragma once

#include <string.h>

#include "synth/amp/cost.h"

typedef struct {
    const AmpModel *model;
    const AmpCluster *cluster;
    const AmpOptions *options;
    AmpLayers *layers;
    const AmpStrategy *s;
    uint32_t degree; /* index */
    uint32_t gas;
    uint32_t *member; /* scratch [machine] */
    double *part;     /* [type]: its part of the cluster's devices */
} AmpCosting;

static inline const uint32_t *amp_group_at(const AmpCosting *c, uint32_t stage,
                                           uint32_t replica)
{
    return c->s->device + ((size_t)(stage % c->s->pp) * c->s->dp + replica) * c->s->tmp;
}

static inline double amp_of_layer(const AmpCosting *c, const double *row, uint32_t l)
{
    return row[(size_t)c->degree * c->model->n_layers + l];
}

/* Finds the machines that a group is on. member: out, [machine], its number of devices there. */
static inline uint32_t amp_find_machines(const AmpCluster *cluster,
                                         const uint32_t *device, uint32_t n,
                                         uint32_t stride, uint32_t *member)
{
    uint32_t machines = 0;
    memset(member, 0, cluster->n_machines * sizeof *member);
    for (uint32_t i = 0; i < n; i++)
        machines += member[cluster->machine[device[(size_t)i * stride]]]++ == 0;
    return machines;
}

/* Fills times, transfers and all-reduces of a stage's layers as in the paper (faithful.c). */
void amp_fill_faithful(const AmpCosting *c, AmpRows *rows, uint32_t stage);
/* Fill them for the default reading, with everything else that the walk needs (detailed.c): the
 * first function per stage, then the second once for all stages. */
void amp_fill_detailed(const AmpCosting *c, AmpRows *rows, uint32_t stage);
void amp_find_meetings(const AmpCosting *c, AmpRows *rows);
