/* Clusters of fewer machines, and machines of fewer GPUs. */
#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/cluster/change.h"
#include "data/cluster/network_spec.h"

/* Whether a link's end is the machine or one of its GPUs, `machine:0`. */
static bool ends_at(const char *end, const char *machine)
{
    const size_t length = strlen(machine);
    return strncmp(end, machine, length) == 0 &&
           (end[length] == '\0' || end[length] == ':');
}

/* Removes the links of a machine. */
static void drop_links(Cluster *cluster, const char *machine)
{
    NetworkSpec *network = cluster->network;
    uint32_t n = 0;
    items_each (NetworkLink, link, network->explicit_link, network->n_links) {
        if (ends_at(link->from, machine) || ends_at(link->to, machine)) {
            g_free(link->from);
            g_free(link->to);
        } else {
            network->explicit_link[n++] = *link;
        }
    }
    network->n_links = n;
}

static void drop_machine(Cluster *cluster, Machine *machine)
{
    if (cluster->network && cluster->network->kind == NETWORK_LINKS)
        drop_links(cluster, machine->name);
    machine_clear(machine);
}

/* Gives a type its index among the types that stay, which is not above the old one. */
static void rename_type(Machine *machine, uint32_t from, uint32_t to)
{
    KILTER_ASSERT(to <= from);
    if (machine->type == from)
        machine->type = to;
    for (uint32_t p = 0; p < machine->n_parts; p++)
        if (machine->part[p].type == from)
            machine->part[p].type = to;
}

/* Removes device types that no machine has any more, so that they do not count where all types of a
 * cluster must agree, as in the formats they compute with. */
static void drop_types(Cluster *cluster)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        const bool used =
            any_of(i, cluster->n_machines, machine_gpus_of(&cluster->machine[i], t) > 0);
        if (!used) {
            device_type_clear(&cluster->type[t]);
            continue;
        }
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            rename_type(&cluster->machine[i], t, n);
        cluster->type[n++] = cluster->type[t];
    }
    cluster->n_types = n;
}

Cluster *cluster_copy(const Cluster *cluster, GError **error)
{
    g_autofree char *text = cluster_write(cluster);
    return cluster_parse(cluster->name, text, strlen(text), error);
}

bool cluster_keep(Cluster *cluster, const bool *keep, GError **error)
{
    uint32_t n = sum_over(uint32_t, i, cluster->n_machines, keep[i]);
    if (n == 0)
        return refuse(error, "cluster %s has no machine left", cluster->name);
    n = 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        if (keep[i])
            cluster->machine[n++] = cluster->machine[i];
        else
            drop_machine(cluster, &cluster->machine[i]);
    cluster->n_machines = n;
    drop_types(cluster);
    cluster_finish(cluster);
    return !cluster->network || n == 1 || network_spec_check(cluster->network, n, error);
}

/* --- some of the GPUs --- */

/* The direct links among the GPUs that stay, as the machine's text. */
static void cut_peers(Machine *machine, const bool *keep)
{
    Peers all, left = {0};
    if (!machine->peers || !peers_parse(machine->peers, machine->gpus, &all, NULL))
        return;
    uint32_t place[PEERS_MAX_GPUS];
    for (uint32_t i = 0; i < all.n; i++)
        if (keep[i])
            place[left.n++] = i;
    for (uint32_t a = 0; a < left.n; a++)
        for (uint32_t b = 0; b < left.n; b++)
            left.link[a][b] = all.link[place[a]][place[b]];
    put_block(machine->peers, peers_text(&left));
    if (!*machine->peers)
        g_clear_pointer(&machine->peers, g_free);
}

/* Cuts a machine of which `left` GPUs stay, not all of them and at least one. */
static bool cut_machine(const Cluster *cluster, Machine *machine, const bool *keep,
                        uint32_t left, GError **error)
{
    g_autofree MachinePart *part = g_new(MachinePart, left);
    uint32_t n = 0;
    if (network_spec_names_gpus(cluster->network, machine->name))
        return refuse(error,
                      "cluster %s names links of the GPUs of machine %s: expected the "
                      "machine as a whole",
                      cluster->name, machine->name);
    cut_peers(machine, keep);
    for (uint32_t g = 0; g < machine->gpus; g++)
        if (keep[g])
            part[n++] = (MachinePart){machine_type_at(machine, g), 1};
    g_assert(n == left);
    machine_set_parts(machine, n, part);
    if (machine->gpus == 1)
        machine->inner = (LinkCost){0, INFINITY};
    return true;
}

bool cluster_keep_gpus(Cluster *cluster, const bool *keep, GError **error)
{
    g_autofree bool *machines = g_new(bool, cluster->n_machines);
    items_at (Machine, machine, i, cluster->machine, cluster->n_machines) {
        const uint32_t gpus = machine->gpus;
        const uint32_t left = sum_over(uint32_t, g, gpus, keep[g]);
        machines[i] = left > 0;
        if (left > 0 && left < gpus && !cut_machine(cluster, machine, keep, left, error))
            return false;
        keep += gpus;
    }
    return cluster_keep(cluster, machines, error);
}
