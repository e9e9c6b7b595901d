/* Collectives of a task graph as flows over a topology. Private to sim. */
#ifndef KILTER_SIM_NETWORK_TRANSPORT_H
#define KILTER_SIM_NETWORK_TRANSPORT_H

#include "sim/flow/flow.h"
#include "sim/network/network.h"

typedef struct SimTransport SimTransport;

/* The case must have a topology; it and the engine must outlive the transport. */
SimTransport *sim_transport_new(const SimFlowCase *flow, SimEngine *engine);
void sim_transport_free(SimTransport *transport);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTransport, sim_transport_free)

/* Starts a collective or a transfer now, on all its devices; `done` is called when it has ended.
 * KILTER_ERROR_INPUT if it cannot be lowered. */
bool sim_transport_start(SimTransport *transport, uint32_t task, SimHandler done,
                         void *context, uint64_t argument, GError **error);

/* Appends the messages (SimMessage) of a collective or a transfer. KILTER_ERROR_INPUT if it cannot
 * be lowered. */
bool sim_transport_messages(SimTransport *transport, uint32_t task, GArray *messages,
                            GError **error);

SimNetwork *sim_transport_network(SimTransport *transport);

#endif
