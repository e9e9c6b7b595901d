/* The text form of networks: "tree:hosts=256,leaf=16,oversubscription=4". Private to
 * data. */
#ifndef KILTER_DATA_CLUSTER_NETWORK_SPEC_H
#define KILTER_DATA_CLUSTER_NETWORK_SPEC_H

#include "data/cluster/topology.h"

/* A text with its machines. */
typedef struct {
    NetworkSpec network;
    uint32_t hosts; /* 0: not given */
    uint32_t gpus;  /* of each host */
    LinkCost inner; /* bandwidth 0: not given */
    double rate;    /* FLOP/s of a GPU */
    double memory;  /* bytes of a GPU */
} HostSpec;

/* Whether a cluster's name is such a text: begins with the name of a builder and ':'. */
bool host_spec_is(const char *text);
bool host_spec_parse(const char *text, HostSpec *spec, GError **error);

/* The text of a built network with all of its builder's keys; network_spec_parse makes an equal one
 * of it. Caller frees. */
char *network_spec_text(const NetworkSpec *spec);

/* The cluster that a text describes. KILTER_ERROR_INPUT. */
Cluster *cluster_from_spec(const char *text, GError **error);

/* Whether a cluster's name is that of a random topology: begins with "random:". */
bool random_spec_is(const char *text);
/* "random:seed=N": the same for the same N. KILTER_ERROR_INPUT. */
Cluster *cluster_random(const char *name, GError **error);

/* NETWORK_LINKS if there is no such builder. */
NetworkKind network_kind_find(const char *name);

/* Whether the builder's numbers go with so many machines. */
bool network_spec_check(const NetworkSpec *spec, uint32_t n_machines, GError **error);

/* Groups of a dragonfly with that many machines. */
uint32_t network_groups(const NetworkSpec *spec, uint32_t n_machines);

#endif
