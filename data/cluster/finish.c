/* Numbers of a cluster that follow from its machines. */
#include <math.h>

#include "data/cluster/sheet.h"

bool machine_is_split(const Machine *machine)
{
    Peers peers;
    return machine->peers && peers_parse(machine->peers, machine->gpus, &peers, NULL) &&
           peers_rings(&peers, machine->gpus) == 0;
}

/* The lines of collectives among the machines of a wired cluster by the slowest port. Latencies are
 * those of the algorithms that NCCL takes for small messages, base + rounds x hop: two trees for
 * all-reduce, halving or doubling for its halves, n - 1 simultaneous messages for all-to-all.
 * Bandwidths are the port's, which a ring passes once in each direction. */
static void derive_collectives(Cluster *cluster)
{
    const double rounds = ceil(log2(MAX(cluster->n_machines, 2)));
    const bool joined = all_of(i, cluster->n_machines, cluster_unit(cluster, i) == 0);
    if (joined) { /* one machine, or one domain */
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
            cluster->collective[kind] = cluster->machine[0].inner;
        return;
    }
    Port slow = {.bandwidth = INFINITY};
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const Port *port = &cluster->machine[i].port;
        slow.bandwidth =
            fmin(slow.bandwidth,
                 port_capacity(port, cluster->machine[i].gpus, cluster->machine[i].gpus));
        slow.base_s = fmax(slow.base_s, port->base_s);
        slow.hop_s = fmax(slow.hop_s, port->hop_s);
    }
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        const double hops = kind == COLLECTIVE_ALL_REDUCE   ? 2 * rounds
                            : kind == COLLECTIVE_ALL_TO_ALL ? 1
                                                            : rounds;
        cluster->collective[kind] =
            (LinkCost){slow.base_s + hops * slow.hop_s, slow.bandwidth};
    }
}

void cluster_finish(Cluster *cluster)
{
    const bool ports =
        all_of(i, cluster->n_machines, cluster->machine[i].port.bandwidth > 0);
    g_autoptr(GHashTable) domain = g_hash_table_new(g_str_hash, g_str_equal);
    items_at (Machine, machine, i, cluster->machine, cluster->n_machines) {
        gpointer first;
        machine->unit = 0;
        if (!machine->domain)
            continue;
        if (g_hash_table_lookup_extended(domain, machine->domain, NULL, &first))
            machine->unit = GPOINTER_TO_UINT(first);
        else
            g_hash_table_insert(domain, machine->domain,
                                GUINT_TO_POINTER(machine->unit = i + 1));
    }
    if (!cluster->rings)
        cluster->rings = peers_memo_new();
    if (cluster->wired)
        derive_collectives(cluster);
    cluster->curves.port.bandwidth = 0;
    for (uint32_t i = 0; ports && i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i];
        Port *least = &cluster->curves.port;
        if (i > 0 && port_capacity(&machine->port, machine->gpus, machine->gpus) >=
                         port_capacity(least, cluster->curves.port_gpus,
                                       cluster->curves.port_gpus))
            continue;
        *least = machine->port;
        cluster->curves.port_gpus = machine->gpus;
    }
    items_each (const Machine, machine, cluster->machine, cluster->n_machines) {
        Peers peers;
        if (machine->n_parts == 0 && machine->peers &&
            peers_parse(machine->peers, machine->gpus, &peers, NULL))
            curves_add_rings(&cluster->curves, cluster->type[machine->type].name, &peers);
    }
}

void machine_take_port(Machine *machine, const Cluster *cluster, const LinkSheet *pcie)
{
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        if (i == 0 || cluster->machine[i].port.bandwidth < machine->port.bandwidth) {
            machine->port = cluster->machine[i].port;
            put_block(machine->region, g_strdup(cluster->machine[i].region));
        }
    machine->port.gpu = pcie ? pcie->bandwidth * pcie->to_nic : 0;
}
