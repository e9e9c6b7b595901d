/* Making a topology node by node. Private to data. */
#pragma once

#include "data/cluster/topology.h"

typedef struct {
    const ClusterView *view;
    const NetworkSpec *spec; /* never NETWORK_LINKS in the builders */
    GArray *node, *link;     /* of TopologyNode, TopologyLink */
    uint32_t *port;          /* [machine]: the node that the network connects */
} Build;

/* Adds a node, which takes ownership of `name`. */
uint32_t build_node(Build *build, char *name, NodeKind kind);
void build_cable(Build *build, uint32_t a, uint32_t b, LinkCost cost, bool inner);

/* Adds the network of a builder between the ports. */
void build_network(Build *build);
