/* The check of a whole cluster, however it came about. */
#include "data/cluster/check.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/cluster/cluster_yaml.h"
#include "data/cluster/network_spec.h"
#include "data/cluster/sites.h"

static bool cluster_check_name(const char *what, const char *name, size_t most,
                               GError **error)
{
    const size_t length = strlen(name);
    return (length > 0 && length <= most) ||
           refuse(error, "%s: expected a name of 1 to %zu bytes, got %zu: '%.60s'", what,
                  most, length, name);
}

/* --- device types --- */

static bool check_rates(const char *what, const double *rates, GError **error)
{
    for (Numbers n = 0; n < NUMBERS; n++)
        if (rates[n] != 0 && !(rates[n] >= SMALLEST && rates[n] <= LARGEST))
            return refuse(error, "%s: %s: expected a rate from %g to %g FLOP/s, got %g",
                          what, numbers_name(n), SMALLEST, LARGEST, rates[n]);
    return true;
}

static bool check_type(const DeviceType *type, GError **error)
{
    g_autofree char *what = g_strdup_printf("device type %.60s", type->name);
    if (!cluster_check_name("a device type", type->name, NAME_MAX_BYTES, error) ||
        !MEMBERS_CHECK(TYPE_MEMBER, type, what, error) ||
        !check_rates(what, type->rates, error) || !check_rates(what, type->peaks, error))
        return false;
    for (uint32_t kind = 0; type->op && kind < OP_KINDS; kind++)
        if (type->op[kind].largest > 0 && !op_cost_check(&type->op[kind], what, error))
            return false;
    return true;
}

static bool check_types(const Cluster *cluster, GError **error)
{
    uint32_t fitted = 0;
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        if (!check_type(&cluster->type[t], error))
            return false;
        fitted += device_type_is_fitted(&cluster->type[t]);
    }
    return fitted <= CLUSTER_MAX_FITTED ||
           refuse(error,
                  "expected at most %d device types with ops or rates of formats, got %u",
                  CLUSTER_MAX_FITTED, fitted);
}

/* --- machines --- */

static bool check_link_of(const LinkCost *link, const char *what, GError **error)
{
    return link->bandwidth == 0 || MEMBERS_CHECK(LINK_MEMBER, link, what, error);
}

static bool check_machine(const Machine *machine, GError **error)
{
    g_autofree char *what = g_strdup_printf("machine %.60s", machine->name);
    g_autofree char *inner = g_strconcat(what, ": inner", NULL);
    Peers peers;
    uint32_t gpus = 0;
    for (uint32_t p = 0; p < machine->n_parts; p++)
        gpus += machine->part[p].gpus;
    g_assert(machine->n_parts == 0 || gpus == machine->gpus);
    return cluster_check_name("a machine", machine->name, NAME_MAX_BYTES, error) &&
           MEMBERS_CHECK(MACHINE_MEMBER, machine, what, error) &&
           (machine->gpus == 1 ||
            MEMBERS_CHECK(LINK_MEMBER, &machine->inner, inner, error)) &&
           check_link_of(&machine->peer, what, error) &&
           check_link_of(&machine->across, what, error) &&
           (machine->port.bandwidth == 0 ||
            MEMBERS_CHECK(PORT_MEMBER, &machine->port, what, error)) &&
           (!machine->peers || peers_parse(machine->peers, machine->gpus, &peers, error));
}

static bool check_machines(const Cluster *cluster, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    uint64_t gpus = 0;
    if (cluster->n_machines == 0)
        return refuse(error, "no machine is left");
    items_each (const Machine, machine, cluster->machine, cluster->n_machines) {
        if (!check_machine(machine, error))
            return false;
        if (!g_hash_table_add(seen, machine->name))
            return refuse(error, "machine %.60s: expected a name of its own",
                          machine->name);
        gpus += machine->gpus;
    }
    return gpus <= GPUS_MAX ||
           refuse(error,
                  "expected at most %d GPUs in the cluster, got %" G_GUINT64_FORMAT,
                  GPUS_MAX, (guint64)gpus);
}

/* --- between machines --- */

static bool check_line(const char *what, const LinkCost *line, GError **error)
{
    return MEMBERS_CHECK(LINK_MEMBER, line, what, error);
}

static bool check_collectives(const Cluster *cluster, GError **error)
{
    if (cluster->n_machines == 1)
        return true;
    if (!(cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth > 0))
        return refuse(error,
                      "no network between its %u machines: expected a NIC for each "
                      "machine in the cluster's file, as in nic: ib-ndr",
                      cluster->n_machines);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        const char *name = collective_name((Collective)kind);
        const CollectivePieces *pieces = &cluster->pieces[kind];
        if (!check_line(name, &cluster->collective[kind], error) ||
            (pieces->largest > 0 && !MEMBERS_CHECK(PIECES_MEMBER, pieces, name, error)))
            return false;
        for (uint32_t i = 0; i < pieces->n; i++)
            if (!check_line(name, &pieces->piece[i].line, error))
                return false;
    }
    return !(cluster->transfer.bandwidth > 0) ||
           check_line("send", &cluster->transfer, error);
}

static bool check_curves(const CollectiveCurves *curves, GError **error)
{
    items_each (const CollectiveCurve, curve, curves->curve, curves->n) {
        g_autofree char *what =
            g_strdup_printf("curve of %s", collective_name(curve->kind));
        if (!curve_check(curve, what, error))
            return false;
    }
    return true;
}

/* Links that a file names may leave machines apart, which shows once they are put together; the
 * networks of builders are whole. */
static bool check_network(const Cluster *cluster, GError **error)
{
    const NetworkSpec *network = cluster->network;
    if (!network || cluster->n_machines == 1)
        return true;
    if (network->kind != NETWORK_LINKS)
        return check_line("topology", &network->link, error) &&
               network_spec_check(network, cluster->n_machines, error);
    for (uint32_t i = 0; i < network->n_links; i++)
        if (!check_line("topology", &network->explicit_link[i].cost, error))
            return false;
    for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
        g_autoptr(ClusterView) view = cluster_view(cluster, g);
        g_autoptr(Topology) topology = topology_of_view(view, error);
        if (!topology)
            return false;
    }
    return true;
}

/* Regions need ports to count from, and links that join them. */
static bool check_regions(const Cluster *cluster, GError **error)
{
    bool any = cluster->n_region_links > 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        any |= cluster->machine[i].region != NULL;
    if (!any)
        return true;
    if ((!cluster->wired && cluster->n_machines > 1) || cluster->network)
        return refuse(
            error,
            "regions: expected machines with NICs, and neither collectives nor topology");
    items_at (const RegionLink, link, i, cluster->region_link, cluster->n_region_links) {
        g_autofree char *what = g_strdup_printf("regions[%u]", i);
        if (strcmp(link->from, link->to) == 0)
            return refuse(error, "%s: expected two regions, got '%.60s' twice", what,
                          link->from);
        if (!check_line(what, &link->link, error))
            return false;
    }
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        if (!cluster->machine[i].region)
            return refuse(error,
                          "machine %.60s: region: missing; expected one, as the cluster "
                          "has regions",
                          cluster->machine[i].name);
    return regions_are_joined(cluster, error);
}

static bool check_domains(const Cluster *cluster, GError **error)
{
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i],
                      *first = &cluster->machine[cluster_unit(cluster, i)];
        if (!machine->domain)
            continue;
        if (cluster->network || !cluster->wired)
            return cluster->n_machines == 1 ||
                   refuse(error,
                          "machine %.60s: domain: expected machines with NICs, and "
                          "neither collectives nor topology",
                          machine->name);
        if (machine->peers || !isfinite(machine->inner.bandwidth) ||
            machine->inner.bandwidth != first->inner.bandwidth ||
            machine->inner.latency_s != first->inner.latency_s ||
            g_strcmp0(machine->region, first->region) != 0)
            return refuse(error,
                          "machine %.60s: domain %.60s: expected one inner link, of a "
                          "switch, for all its machines, in one region",
                          machine->name, machine->domain);
    }
    return true;
}

bool cluster_check_parts(const Cluster *cluster, GError **error)
{
    return cluster_check_name("the cluster", cluster->name, CLUSTER_NAME_MAX, error) &&
           check_types(cluster, error) && check_machines(cluster, error) &&
           check_collectives(cluster, error) && check_curves(&cluster->curves, error) &&
           check_regions(cluster, error) && check_domains(cluster, error);
}

bool cluster_check(const Cluster *cluster, GError **error)
{
    return cluster_check_parts(cluster, error) && check_network(cluster, error);
}
