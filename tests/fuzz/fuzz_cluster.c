/* Fuzz target: any bytes as a cluster file are either refused with a message or a valid cluster. */
#include "data/base/error.h"
#include "data/cluster/topology.h"

#include "tests/fuzz/fuzz.h"
#include <math.h>
#include <string.h>

static void check_link(LinkCost link, bool lone)
{
    fuzz_check(isfinite(link.latency_s) && link.latency_s >= 0, "latency");
    fuzz_check(link.bandwidth > 0 && (lone || isfinite(link.bandwidth)), "bandwidth");
}

/* A cluster that was read has a network, and a few routes on it lead to the right devices. */
static void check_network(const ClusterView *view)
{
    g_autoptr(Topology) topology = topology_of_view(view, NULL);
    fuzz_check(topology && topology->n_devices == view->n_devices,
               "a network of the devices");
    for (uint32_t l = 0; l < topology->n_links; l++)
        check_link((LinkCost){topology->link[l].latency_s, topology->link[l].bandwidth},
                   false);
    g_autoptr(Routes) routes = routes_new(topology);
    for (uint32_t i = 0; i < 20; i++) {
        const uint32_t from = i * 7 % view->n_devices, to = i * i * 31 % view->n_devices;
        uint32_t link[ROUTE_MAX_LINKS], node = topology->device[from];
        const uint32_t n = routes_find(routes, from, to, link);
        for (uint32_t k = 0; k < n; k++) {
            fuzz_check(topology->link[link[k]].from == node, "links in a row");
            node = topology->link[link[k]].to;
        }
        fuzz_check(node == topology->device[to], "a route to the device");
    }
}

static void check_view(const Cluster *cluster, Granularity granularity)
{
    g_autoptr(ClusterView) view = cluster_view(cluster, granularity);
    bool whole = granularity == GRANULARITY_MACHINE;
    bool lone = cluster_gpus(cluster) == 1;
    fuzz_check(view->n_devices == (whole ? cluster->n_machines : cluster_gpus(cluster)),
               "devices of a view");
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < view->n_devices; i++) {
        const Device *device = &view->device[i];
        gpus += device->gpus;
        fuzz_check(device->name && *device->name && device->type_name, "device names");
        fuzz_check(isfinite(device->rate) && device->rate > 0, "device rate");
        fuzz_check(device->memory_bytes > 0, "device memory");
        fuzz_check(whole || device->gpus == 1, "one GPU per device");
    }
    fuzz_check(gpus == cluster_gpus(cluster), "GPUs of a view");
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        check_link(view->collective[kind], lone);
        for (uint32_t p = 0; p < view->pieces[kind].n; p++) {
            const CollectivePiece *piece = &view->pieces[kind].piece[p];
            check_link(piece->line, lone);
            fuzz_check(piece->up_to > (p > 0 ? piece[-1].up_to : 0), "rising pieces");
        }
    }
    check_network(view);
}

static void check_cluster(const Cluster *cluster)
{
    fuzz_check(cluster->name && *cluster->name && cluster->description, "name");
    fuzz_check(cluster->n_types > 0 && cluster->n_machines > 0, "at least one of each");
    for (uint32_t i = 0; i < cluster->n_types; i++) {
        const DeviceType *type = &cluster->type[i];
        fuzz_check(*type->name && type->source, "type's texts");
        fuzz_check(isfinite(type->rate) && type->rate > 0 && type->memory_bytes > 0,
                   "type's numbers");
        fuzz_check(isfinite(type->rates[NUMBERS_F16]) && type->rates[NUMBERS_F16] >= 0,
                   "half rate");
        for (uint32_t kind = 0; type->op && kind < OP_KINDS; kind++) {
            const OpCost *cost = &type->op[kind];
            fuzz_check(cost->largest == 0 ||
                           (isfinite(cost->overhead_s) && cost->rate > 0 &&
                            cost->bandwidth > 0 && cost->smallest <= cost->largest),
                       "fitted op");
        }
        for (uint32_t j = 0; j < i; j++)
            fuzz_check(strcmp(type->name, cluster->type[j].name) != 0,
                       "type names differ");
    }
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i];
        fuzz_check(*machine->name && machine->source, "machine's texts");
        fuzz_check(g_hash_table_add(seen, machine->name), "machine names differ");
        fuzz_check(machine->type < cluster->n_types, "type of a machine");
        fuzz_check(machine->gpus > 0, "GPUs of a machine");
        check_link(machine->inner, machine->gpus == 1);
    }
}

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster =
        cluster_parse("fuzz.yaml", (const char *)data, size, &error);
    fuzz_check(!cluster == !!error, "either a cluster or an error");
    if (!cluster) {
        fuzz_check_refused(error, "fuzz.yaml");
        return false;
    }
    check_cluster(cluster);
    check_view(cluster, GRANULARITY_MACHINE);
    check_view(cluster, GRANULARITY_GPU);
    return true;
}
