/* The text form of networks: "tree:hosts=256,leaf=16,oversubscription=4" (private to data). */
#pragma once

#include "data/cluster/topology.h"

/* A network's text with its machines. */
typedef struct {
    NetworkSpec network;
    uint32_t hosts; /* 0: not given */
    uint32_t gpus;  /* of each host */
    LinkCost inner; /* bandwidth 0: not given */
    double rate;    /* FLOP/s of a GPU */
    double memory;  /* bytes of a GPU */
} HostSpec;

/* Whether a cluster's name is such a text: it begins with the name of a builder and ':'. */
bool host_spec_is(const char *text);
bool host_spec_parse(const char *text, HostSpec *spec, GError **error);

/* The text of a built network with all of its builder's keys, from which network_spec_parse makes
 * an equal network. The caller frees it. */
char *network_spec_text(const NetworkSpec *spec);

/* The cluster that a text describes. KILTER_ERROR_INPUT. */
Cluster *cluster_from_spec(const char *text, GError **error);

/* Whether a cluster's name lists machines, "4x8xh100-sxm@8xib-ndr+2xp4d.24xlarge": it begins with a
 * number and 'x', or with a name of data/instances.txt. Groups without a network card have that of
 * the last one that names it. */
bool machines_spec_is(const char *text);
/* The machine that a cloud or a vendor calls so, "8xh100-sxm@32xeth-100", by data/instances.txt; ""
 * if none does. Caller frees. */
char *machines_instance(const char *name);
/* The cluster of these machines. KILTER_ERROR_INPUT. */
Cluster *cluster_from_machines(const char *text, GError **error);

/* Whether a cluster's name is that of a random topology: it begins with "random:". */
bool random_spec_is(const char *text);
/* The random cluster of "random:seed=N", a function of N. KILTER_ERROR_INPUT. */
Cluster *cluster_random(const char *name, GError **error);

/* Whether the builder's numbers suit n_machines. */
bool network_spec_check(const NetworkSpec *spec, uint32_t n_machines, GError **error);

/* Whether explicit links end at GPUs of the machine, "MACHINE:0". NULL: no network, so none do. */
bool network_spec_names_gpus(const NetworkSpec *spec, const char *machine);

/* The number of groups of a dragonfly with n_machines. */
uint32_t network_groups(const NetworkSpec *spec, uint32_t n_machines);
