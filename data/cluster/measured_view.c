/* A cluster as planners see it whose graph has ops with measured times, of every type its own. */
#include "data/cluster/cluster.h"

#include <math.h>

#include "data/base/error.h"
#include "data/base/words.h"
#include "data/cluster/kernel_device.h"
#include "data/cluster/runtime.h"
#include "data/cluster/sites.h"

/* The op of a graph that has no times on a type; GRAPH_NONE: all have. */
static OpId unmeasured(const Graph *graph, const char *type)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpTimes *times = graph_op_times(graph, id);
        if (times ? !op_times_of(times, type)
                  : op_kind_is_opaque(graph_get_op(graph, id)->kind))
            return id;
    }
    return GRAPH_NONE;
}

static char *measured_types(const OpTimes *times)
{
    g_autoptr(GString) text = g_string_new(times ? "" : "no device type");
    for (uint32_t i = 0; times && i < times->n; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "", times->curve[i].type);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

bool cluster_view_check_times(const ClusterView *view, const Graph *graph, GError **error)
{
    uint32_t n = 0, last = UINT32_MAX;
    if (!graph_has_times(graph))
        return true;
    items_each (const Device, device, view->device, view->n_devices) {
        if (device->type == last)
            continue;
        last = device->type;
        n++;
        const OpId id = unmeasured(graph, device->type_name);
        if (id == GRAPH_NONE)
            continue;
        g_autofree char *types = measured_types(graph_op_times(graph, id));
        return refuse(error,
                      "%s: op %s has no times on device type %s of cluster %s; it was "
                      "measured on %s",
                      graph_name(graph), graph_get_op(graph, id)->name, device->type_name,
                      view->cluster->name, types);
    }
    return view->cluster->n_types <= CLUSTER_MAX_FITTED ||
           refuse(error,
                  "%s has measured times: expected a cluster of at most %d device types, "
                  "got %u",
                  graph_name(graph), CLUSTER_MAX_FITTED, view->cluster->n_types);
}

static ClusterView *view_copy(const ClusterView *view)
{
    ClusterView *copy = g_memdup2(view, sizeof *view);
    copy->owned = NULL;
    copy->device = g_memdup2(view->device, view->n_devices * sizeof *view->device);
    for (uint32_t j = 0; j < copy->n_devices; j++)
        copy->device[j].name = g_strdup(view->device[j].name);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        copy->pieces[kind].piece =
            g_memdup2(view->pieces[kind].piece,
                      view->pieces[kind].n * sizeof *view->pieces[kind].piece);
    sites_copy(copy);
    return copy;
}

/* Multiprocessors that the kernel of a collective takes: some for each of its rings. There is one
 * ring for each port between machines, and inside a machine one for so many bytes a second
 * (ncclTopoPostset in NCCL's src/graph/connect.cc, 20 GB/s of a link in topo.h). */
static double channels_of(const ClusterView *view, const Device *device)
{
    const Cluster *cluster = view->cluster;
    const Machine *machine = &cluster->machine[device->machine];
    const double ring = device->kernels->device->constants.stream.ring * 1e9,
                 inside = fmax(ceil(machine->inner.bandwidth / ring), 1),
                 rings = cluster->n_machines > 1
                             ? fmin(inside, MAX(machine->port.nics, 1))
                             : inside;
    return fmin(device->kernels->device->constants.stream.blocks * rings,
                device->kernels->stack.channels);
}

/* Of computation beside a collective, which by kernels has the other multiprocessors. A slowdown in
 * the cluster's file is a measured one and counts instead. */
static double slowdown_of(const ClusterView *view, const Device *device)
{
    const double measured = view->cluster->type[device->type].slowdown;
    if (measured > 1 || !device->kernels)
        return measured;
    const double all = device->kernels->device->chip.processors;
    return all / fmax(all - channels_of(view, device), 1);
}

/* Lets devices point to the prices of this view. */
static void view_price(ClusterView *view)
{
    items_each (Device, device, view->device, view->n_devices) {
        const KernelPricing *pricing =
            device->fitted ? &view->pricing[device->fitted - 1] : NULL;
        device->kernels = pricing && pricing->device && !device->mixed ? pricing : NULL;
        device->slowdown = slowdown_of(view, device);
    }
}

ClusterView *cluster_view_measured(const ClusterView *view)
{
    g_assert(view->cluster->n_types <= CLUSTER_MAX_FITTED);
    ClusterView *copy = view_copy(view);
    copy->n_fitted = view->cluster->n_types;
    for (uint32_t t = 0; t < copy->n_fitted; t++) {
        copy->fitted[t] = &view->cluster->type[t];
        copy->pricing[t] = (KernelPricing){0};
    }
    for (uint32_t f = 0; f < view->n_fitted; f++)
        copy->pricing[view->fitted[f] - view->cluster->type] = view->pricing[f];
    for (uint32_t j = 0; j < copy->n_devices; j++)
        copy->device[j].fitted = view->device[j].type + 1;
    view_price(copy);
    return copy;
}

ClusterView *cluster_view_held(const ClusterView *view, const Runtime *runtime,
                               uint32_t communicators)
{
    ClusterView *copy = view_copy(view);
    copy->runtime = runtime;
    view_price(copy);
    items_each (Device, device, copy->device, copy->n_devices)
        device->memory_bytes = runtime_left_bytes(
            runtime, device->capacity_bytes, device->runtime_bytes > 0, communicators);
    return copy;
}

uint64_t cluster_view_capacity(const ClusterView *view, uint32_t device)
{
    const Device *d = &view->device[device];
    return view->runtime ? d->capacity_bytes : d->memory_bytes;
}

bool cluster_is_bare(const Cluster *cluster)
{
    return any_of(t, cluster->n_types,
                  cluster->type[t].power_w > 0 && cluster->type[t].runtime_bytes == 0 &&
                      !cluster->type[t].op);
}

static void pricing_key(KernelPricing *pricing)
{
    enum {
        SHEET = offsetof(KernelDevice, missing) - offsetof(KernelDevice, constants),
        OWN = offsetof(KernelPricing, key) - offsetof(KernelPricing, factor)
    };
    const KernelDevice *device = pricing->device;
    pricing->key = device ? words_hash(words_hash(1, &device->constants, SHEET),
                                       pricing->factor, OWN)
                          : 0;
}

ClusterView *cluster_view_priced(const ClusterView *view, bool kernels,
                                 const Stack *stack)
{
    ClusterView *copy = view_copy(view);
    for (uint32_t f = 0; f < copy->n_fitted; f++) {
        copy->pricing[f].device =
            kernels && !copy->fitted[f]->op ? copy->fitted[f]->kernels : NULL;
        if (stack)
            copy->pricing[f].stack = *stack;
        pricing_key(&copy->pricing[f]);
    }
    view_price(copy);
    return copy;
}
