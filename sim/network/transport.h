/* Collectives of a task graph as flows over a topology. Private to sim. */
#pragma once

#include "sim/flow/flow.h"
#include "sim/network/network.h"

typedef struct SimTransport SimTransport;

/* A network that several cases share, each with devices of its own: device[d] is the place of a
 * case's device d in the fabric's view and topology. */
struct SimFabric {
    const ClusterView *view;
    SimNetwork *network;
    const uint32_t *device;
};

/* On a network of its own, of the case's topology, or on a fabric; all arguments must outlive the
 * transport. */
SimTransport *sim_transport_new(const SimFlowCase *flow, SimEngine *engine,
                                const SimFabric *fabric);
AUTOPTR(sim_transport_free, SimTransport)

/* Lowers all collectives and transfers of the case, and folds their links
 * (sim/network/lower/lowering.h). KILTER_ERROR_INPUT if one cannot be lowered. */
bool sim_transport_prepare(SimTransport *transport, GError **error);

/* The link of the network that stands for a link, once prepared. */
uint32_t sim_transport_stands(const SimTransport *transport, uint32_t link);

/* Starts a collective or a transfer now, on all its devices; `done` is called when it has ended.
 * The transport must be prepared. */
void sim_transport_start(SimTransport *transport, uint32_t task, SimHandler done,
                         void *context, uint64_t argument);

/* Lets go of what was started; all of it must have ended. */
void sim_transport_forget(SimTransport *transport);

/* Appends the messages (SimMessage) of a collective or a transfer. KILTER_ERROR_INPUT if it cannot
 * be lowered. */
bool sim_transport_messages(SimTransport *transport, uint32_t task, GArray *messages,
                            GError **error);

/* The US dollars for the messages of all collectives and transfers, by ClusterView.toll of the
 * case's view, which must not be NULL. Errors as sim_transport_messages. */
bool sim_transport_toll(SimTransport *transport, double *dollars, GError **error);

SimNetwork *sim_transport_network(SimTransport *transport);
