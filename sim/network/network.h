/* Flows over a topology: max-min fair sharing of links, on the event kernel. Private to
 * sim.
 *
 * A flow moves bytes at a rate x(t) over links, each of which it uses with a weight. Among
 * all active flows the rates are max-min fair under
 *
 *     sum over flows f of weight_fl x_f <= bandwidth_l          for every link l      (1)
 *
 * i.e. all rates grow together and a flow stops growing when one of its links is full. A message is
 * a flow with weight 1 on each link of its route. A flow with several messages in it (a step of a
 * collective: weight = messages on the link) moves them in lockstep: x is the rate of each message.
 * A flow first waits for its latency, during which it takes no bandwidth (SimGrid's CM02 without
 * correction factors), then shares.
 *
 * Rates are solved again only when the set of active flows or a bandwidth has changed,
 * only for flows that are connected to the change through shared links, and once for all
 * changes at one instant. Every link counts the bytes it carried. */
#pragma once

#include "data/cluster/topology.h"
#include "sim/event/engine.h"

typedef struct SimNetwork SimNetwork;

/* Priority of the network's events: after handlers of priority 0 at the same instant, so
 * that flows that start together are solved for once. */
enum { SIM_NETWORK_PRIORITY = 1 };

/* Engine and topology must outlive the network. */
SimNetwork *sim_network_new(SimEngine *engine, const Topology *topology);
AUTOPTR(sim_network_free, SimNetwork)

SimEngine *sim_network_engine(const SimNetwork *network);
const Topology *sim_network_topology(const SimNetwork *network);

/* The route between two devices: sets its links in order and returns their number. */
uint32_t sim_network_route(SimNetwork *network, uint32_t from, uint32_t to,
                           uint32_t link[ROUTE_MAX_LINKS]);

typedef struct {
    uint32_t link;
    double weight; /* above 0 */
} SimUse;

typedef struct {
    const SimUse *use; /* no link twice; must stay until the flow is done */
    uint32_t n_uses;   /* 0: the flow never shares, it is done after its latency */
    double bytes;      /* to move at weight 1 */
    double payload;    /* bytes that the links count as carried, per byte */
    /* 0 to 1: between machines a byte takes the room of 1/efficiency */
    double efficiency;
    double latency_s;
    SimHandler done; /* called once, at the instant the last byte has arrived */
    void *context;
    uint64_t argument;
} SimFlow;

/* Starts a flow now; returns its number, valid until it is done. */
typedef uint32_t SimFlowId;
SimFlowId sim_network_start(SimNetwork *network, const SimFlow *flow);

/* Cancels a flow that is not done, so that its handler is not called. *bytes and *latency_s get the
 * rest that it had to move and to wait. False if it has ended at this instant. */
bool sim_network_cancel(SimNetwork *network, SimFlowId flow, double *bytes,
                        double *latency_s);

/* Whether no flow moves or waits, and no bandwidth was ever changed. */
bool sim_network_is_idle(const SimNetwork *network);

/* `handler` is called once, before the next flow starts or bandwidth changes. There is one guard at
 * a time; NULL removes it. */
void sim_network_guard(SimNetwork *network, SimHandler handler, void *context);

/* Sets a link's bandwidth from now on; 0 is a failed link, whose flows stand still. */
void sim_network_set_bandwidth(SimNetwork *network, uint32_t link, double bandwidth);

/* --- state, of the present instant; all changes made at it count after it has passed --- */

double sim_network_link_bytes(const SimNetwork *network, uint32_t link); /* payload */
/* time with any flow */
double sim_network_link_busy_s(const SimNetwork *network, uint32_t link);

/* How many times rates were solved so far. */
uint64_t sim_network_solved(const SimNetwork *network);
