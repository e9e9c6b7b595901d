/* The network of a cluster: nodes, full-duplex links, and static routes between devices.
 *
 * A NetworkSpec says how the machines are connected; a Topology is the resulting graph for a view's
 * devices. The links come from:
 *
 *     inside a machine   each GPU has one link to the machine's switch (NVSwitch or PCIe)
 *                        at the bandwidth of the machine's `inner` link;
 *     between machines   the cluster file's `topology` section: a builder (star, tree,
 *                        rail, dragonfly) or explicit links. Without one, each machine
 *                        has one port to an ideal switch, and the numbers are those of
 *                        the cluster's fitted collectives: the port has the largest of
 *                        their bandwidths, kind k gets the part efficiency_k = w_k / w of
 *                        it, and a hop has the share a / (2 (n-1)) of all-reduce's latency
 *                        a, so that a ring all-reduce among the n machines costs what the
 *                        formula says.
 *
 * The latency of an `inner` link is cut into hops in the same way, half a hop per link.
 *
 * Builders, as `NAME:key=value,...` (data/cluster/cluster.h: cluster_load takes them too, with
 * `hosts` and `gpus` for the machines). Every link has `bandwidth` and `latency`:
 *
 *     star        one switch
 *     tree        `leaf` machines per leaf switch; the leaf's links to `spines` spine
 *                 switches have leaf * bandwidth / oversubscription together. With `pod`
 *                 leaves per pod there is a third level, as wide as the second.
 *     rail        `rails` ports per machine, port r to switch r; a message takes the rail of
 *                 its receiver's index in the machine. Seen as one device, a machine has
 *                 one port that is as wide as all of them
 *     dragonfly   `leaf` machines per router, `group` routers per group, all connected in it;
 *                 one link between any two groups, at most `global` per router
 *
 * Routes have the fewest links, and devices pass messages on like switches; of several shortest
 * routes one is chosen by a hash of the ends (ECMP), always the same one. */
#pragma once

#include "data/cluster/tuning.h"

typedef enum {
    NETWORK_STAR,
    NETWORK_TREE,
    NETWORK_RAIL,
    NETWORK_DRAGONFLY,
    NETWORK_LINKS
} NetworkKind;

/* A cable. Its ends are a machine ("v100-0"), a GPU ("v100-0:3") or one of NetworkSpec.nodes. A
 * machine with cables at its GPUs has no other links inside. */
typedef struct {
    char *from, *to;
    LinkCost cost; /* of each direction */
} NetworkLink;

struct NetworkSpec {
    NetworkKind kind;
    LinkCost link;           /* of every link of a builder */
    uint32_t leaf;           /* machines per switch or router */
    uint32_t spines;         /* tree */
    uint32_t pod;            /* tree: leaves per pod; 0: two levels */
    uint32_t rails;          /* rail */
    uint32_t group;          /* dragonfly: routers per group */
    uint32_t global;         /* dragonfly: links to other groups per router */
    double oversubscription; /* tree */
    uint32_t n_nodes, n_links;
    char **node; /* NETWORK_LINKS: switches and the like */
    NetworkLink *explicit_link;
    char *source;
};

/* "tree:leaf=16,oversubscription=4,bandwidth=10Gb/s,latency=5us". KILTER_ERROR_INPUT. */
NetworkSpec *network_spec_parse(const char *text, GError **error);
void network_spec_free(NetworkSpec *spec);

typedef enum { NODE_DEVICE, NODE_INNER, NODE_SWITCH } NodeKind;

typedef struct {
    char *name;
    NodeKind kind;
} TopologyNode;

/* One direction of a cable; links 2c and 2c + 1 are the two directions of cable c. */
typedef struct {
    uint32_t from, to; /* nodes */
    double bandwidth;  /* bytes/s */
    double latency_s;
    bool inner; /* inside a machine */
} TopologyLink;

typedef struct {
    char *source;   /* source of the bandwidths */
    Tuning *tuning; /* the algorithms that collectives take on it */
    uint32_t n_nodes, n_links, n_devices;
    TopologyNode *node;
    TopologyLink *link;
    uint32_t *device;  /* [device]: its node */
    uint32_t *machine; /* [device]: its machine */
    /* [device]: its position in a walk over the network that visits neighbours one after another:
     * the order of rings */
    uint32_t *order;
    /* 0 to 1: the part of the bandwidth between machines that a collective of this kind gets */
    double efficiency[COLLECTIVES_PRICED];
    bool by_rail;         /* ties between routes are decided by the receiver's index */
    uint32_t *first_link; /* the links that leave node i are out[first_link[i]...] */
    uint32_t *out;
} Topology;

/* The network among the view's devices. KILTER_ERROR_INPUT when devices are not
 * connected or the builder's numbers do not fit the machines. */
Topology *topology_of_view(const ClusterView *view, GError **error);
AUTOPTR(topology_free, Topology)

/* [node]: links on the way from a node, TOPOLOGY_FAR where there is none. With `depth` [node] it
 * goes through nodes at depth 0 alone. The caller frees it. */
enum { TOPOLOGY_FAR = UINT16_MAX };
uint16_t *topology_distances(const Topology *topology, uint32_t from,
                             const uint32_t *depth);

/* Finds routes, and keeps distances for later routes: for one thread at a time. */
typedef struct Routes Routes;
Routes *routes_new(const Topology *topology);
AUTOPTR(routes_free, Routes)

enum { ROUTE_MAX_LINKS = 64 };

/* The links from device to device, in order; returns their number (0 from a device to itself). */
uint32_t routes_find(Routes *routes, uint32_t from, uint32_t to,
                     uint32_t link[ROUTE_MAX_LINKS]);
