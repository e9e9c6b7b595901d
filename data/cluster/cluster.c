/* Clusters, and views: their devices at a granularity. */
#include "data/cluster/cluster.h"

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/units.h"
#include "data/cluster/kernel_device.h"
#include "data/cluster/network_spec.h"
#include "data/cluster/price.h"
#include "data/cluster/sites.h"

#include <string.h>

/* --- cluster --- */

CLEAR_DEFINE(device_type_clear, DeviceType, type,
             free_each(type->name, type->source, type->op),
             kernel_device_free(type->kernels));

FREE_DEFINE(cluster_free, Cluster, cluster,
            clear_items(cluster->type, cluster->n_types, device_type_clear),
            free_column(cluster->pieces, COLLECTIVES_PRICED, piece),
            curves_clear(&cluster->curves),
            clear_items(cluster->machine, cluster->n_machines, machine_clear),
            free_column(cluster->region_link, cluster->n_region_links, from),
            free_column(cluster->region_link, cluster->n_region_links, to),
            free_column(cluster->region_link, cluster->n_region_links, source),
            free_each(cluster->region_link, cluster->type, cluster->machine,
                      cluster->name, cluster->description, cluster->collective_source),
            network_spec_free(cluster->network), tuning_free(cluster->tuning),
            fitted_free(cluster->fitted), peers_memo_free(cluster->rings));

uint32_t cluster_gpus(const Cluster *cluster)
{
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        gpus += cluster->machine[i].gpus;
    return gpus;
}

/* --- granularity --- */

static const char *const GRANULARITY_NAME[] = {
    [GRANULARITY_MACHINE] = "machine",
    [GRANULARITY_GPU] = "gpu",
};

Granularity granularity_default(const Cluster *cluster)
{
    return cluster_mixed(cluster) ? GRANULARITY_GPU : GRANULARITY_MACHINE;
}

bool granularity_check(const Cluster *cluster, Granularity granularity, GError **error)
{
    const Machine *mixed =
        granularity == GRANULARITY_MACHINE ? cluster_mixed(cluster) : NULL;
    if (!mixed)
        return true;
    g_autofree char *types = machine_types(cluster, mixed);
    return refuse(error,
                  "machine %s of cluster %s has unlike GPUs (%s), so it is not one "
                  "device: expected granularity gpu",
                  mixed->name, cluster->name, types);
}

NAMES_FUNCTION(granularity_name, Granularity, G_N_ELEMENTS(GRANULARITY_NAME),
               GRANULARITY_NAME[of])

bool granularity_parse(const char *text, Granularity *granularity)
{
    const uint32_t n = G_N_ELEMENTS(GRANULARITY_NAME);
    const uint32_t i = TEXT_PLACE(GRANULARITY_NAME, n, text);
    if (i < n)
        *granularity = (Granularity)i;
    return i < n;
}

/* --- stretching --- */

bool stretch_parse(const char *text, uint32_t n, uint32_t *device, double *factor,
                   GError **error)
{
    char *end = NULL;
    const guint64 number = g_ascii_strtoull(text, &end, 10);
    const bool has_device = end != text && *end == '=';
    const char *value = has_device ? end + 1 : text;
    if (!has_device || number >= n || !number_read(value, 1, CLUSTER_MAX_STRETCH, factor))
        return refuse(error,
                      "--slowdown: expected RANK=FACTOR, a rank below %u and a factor "
                      "from 1 to %d, got '%s'",
                      n, CLUSTER_MAX_STRETCH, text);
    *device = (uint32_t)number;
    return true;
}

bool cluster_stretch(Cluster *cluster, Granularity granularity, const char *text,
                     GError **error)
{
    const bool whole = granularity == GRANULARITY_MACHINE;
    uint32_t device = 0, machine = 0;
    double factor;
    if (!stretch_parse(text, whole ? cluster->n_machines : cluster_gpus(cluster), &device,
                       &factor, error))
        return false;
    for (; device >= (whole ? 1 : cluster->machine[machine].gpus); machine++)
        device -= whole ? 1 : cluster->machine[machine].gpus;
    if (!whole && cluster->machine[machine].gpus > 1)
        return refuse(
            error,
            "--slowdown: '%s' is one of several GPUs of machine %s, expected a machine",
            text, cluster->machine[machine].name);
    cluster->machine[machine].stretch = factor;
    return true;
}

const OpCost *device_type_cost(const DeviceType *type, OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    return type->op && type->op[kind].largest > 0 ? &type->op[kind] : NULL;
}

double device_type_rate(const DeviceType *type, Numbers numbers)
{
    KILTER_ASSERT(numbers < NUMBERS);
    if (type->rates[numbers] > 0)
        return type->rates[numbers];
    return numbers == NUMBERS_F32 || numbers == NUMBERS_F16 ? type->rate : 0;
}

/* Whether it has a rate of its own for some format. */
static bool has_rates(const DeviceType *type)
{
    bool any = false;
    for (Numbers n = 0; n < NUMBERS; n++)
        any |= type->rates[n] > 0;
    return any;
}

bool device_type_is_fitted(const DeviceType *type)
{
    return type->op || type->kernels || has_rates(type);
}

bool cluster_set_kernels(Cluster *cluster, GError **error)
{
    items_each (DeviceType, type, cluster->type, cluster->n_types) {
        g_clear_pointer(&type->kernels, kernel_device_free);
        if (!type->op && chip_is_known(&type->chip) &&
            !(type->kernels = kernel_device_new(type, error)))
            return false;
    }
    return true;
}

bool cluster_check_precision(const Cluster *cluster, Precision precision, GError **error)
{
    const Numbers needed[] = {precision_numbers(precision),
                              precision_least_numbers(precision)};
    for (uint32_t m = 0; m < cluster->n_machines; m++)
        for (uint32_t t = 0; t < cluster->n_types; t++)
            for (uint32_t i = 0; i < G_N_ELEMENTS(needed); i++)
                if (machine_gpus_of(&cluster->machine[m], t) > 0 &&
                    device_type_rate(&cluster->type[t], needed[i]) == 0)
                    return refuse(error,
                                  "precision=%s: cluster %s has no rate of %s numbers "
                                  "for device type %s (rates.%s)",
                                  precision_name(precision), cluster->name,
                                  numbers_name(needed[i]), cluster->type[t].name,
                                  numbers_name(needed[i]));
    return true;
}

/* --- view --- */

/* Makes a device of `gpus` GPUs of that type of the machine. It takes ownership of `name`. */
static Device make_device(const ClusterView *view, const Machine *machine,
                          uint32_t type_index, char *name, uint32_t gpus)
{
    g_assert(gpus > 0 && gpus <= machine->gpus);
    const DeviceType *type = &view->cluster->type[type_index];
    const double stretch = MAX(machine->stretch, 1),
                 crowd = 1 + type->crowding * (machine->gpus - 1);
    uint32_t fitted = 0;
    while (fitted < view->n_fitted && view->fitted[fitted] != type)
        fitted++;
    Device device = {
        .name = name,
        .type_name = type->name,
        .type = type_index,
        .fitted = device_type_is_fitted(type) ? fitted + 1 : 0,
        .stretch = stretch,
        .rate = type->rate * gpus / stretch,
        .gpus = gpus,
        .capacity_bytes = type->memory_bytes - type->runtime_bytes,
        .memory_bytes = type->memory_bytes - type->runtime_bytes,
        .runtime_bytes = type->runtime_bytes,
        .inner = machine->inner,
        .slowdown = type->slowdown,
        .interference = type->interference,
        .crowd = crowd,
        .launch_s = type->launch_s * crowd,
        .handover_s = type->handover_s,
    };
    for (Numbers n = 0; n < NUMBERS; n++)
        device.peaks[n] =
            gpus * (type->peaks[n] > 0 ? type->peaks[n] : device_type_rate(type, n));
    return device;
}

/* Unlike GPUs as one device, for bounds: rates together, the least memory. No plan runs on it
 * (granularity_check). */
static void add_parts(const ClusterView *view, const Machine *machine, Device *device)
{
    if (machine->n_parts == 0)
        return;
    device->mixed = machine;
    device->rate = 0;
    memset(device->peaks, 0, sizeof device->peaks);
    for (uint32_t p = 0; p < machine->n_parts; p++) {
        const Device part = make_device(view, machine, machine->part[p].type, NULL,
                                        machine->part[p].gpus);
        device->rate += part.rate;
        device->memory_bytes = MIN(device->memory_bytes, part.memory_bytes);
        device->capacity_bytes = device->memory_bytes;
        for (Numbers n = 0; n < NUMBERS; n++)
            device->peaks[n] += part.peaks[n];
    }
}

static void view_fitted(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    for (uint32_t i = 0; i < cluster->n_types; i++)
        if (device_type_is_fitted(&cluster->type[i])) {
            g_assert(view->n_fitted < CLUSTER_MAX_FITTED);
            view->fitted[view->n_fitted++] = &cluster->type[i];
        }
}

static void view_pricing(ClusterView *view)
{
    values_at (const DeviceType *, type, f, view->fitted, view->n_fitted) {
        KernelPricing *pricing = &view->pricing[f];
#define KERNEL_CLASS_FACTOR(id, name) [KERNEL_CLASS_##id] = type->kernel_times.name,
        const double factor[KERNEL_CLASSES] = {KERNEL_CLASS_TABLE(KERNEL_CLASS_FACTOR)};
        *pricing = (KernelPricing){.stack = STACK_DEFAULT};
        for (uint32_t c = 0; c < KERNEL_CLASSES; c++)
            pricing->factor[c] = factor[c] > 0 ? factor[c] : 1;
    }
}

/* Devices share work by their rates, unless a search finds otherwise. */
static void view_working(ClusterView *view)
{
    const double all = sum_over(double, j, view->n_devices, view->device[j].rate);
    items_each (Device, device, view->device, view->n_devices)
        if (device->fitted)
            view->pricing[device->fitted - 1].working = device->rate / device->gpus / all;
}

static void view_devices(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    bool whole = view->granularity == GRANULARITY_MACHINE;
    view->n_devices = whole ? cluster->n_machines : cluster_gpus(cluster);
    view->device = g_new0(Device, view->n_devices);
    Device *device = view->device;
    items_at (const Machine, machine, i, cluster->machine, cluster->n_machines) {
        if (whole) {
            *device = make_device(view, machine, machine->type, g_strdup(machine->name),
                                  machine->gpus);
            add_parts(view, machine, device);
            device++->machine = i;
            continue;
        }
        for (uint32_t gpu = 0; gpu < machine->gpus; gpu++) {
            char *name = g_strdup_printf("%s:%u", machine->name, gpu);
            *device = make_device(view, machine, machine_type_at(machine, gpu), name, 1);
            device++->machine = i;
        }
    }
}

static void view_links(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    const uint32_t most_gpus =
        most_over(uint32_t, i, cluster->n_machines, 1, cluster->machine[i].gpus);
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        view->collective[kind] = cluster->n_machines > 1 ? cluster->collective[kind]
                                                         : cluster->machine[0].inner;
        /* In an all-to-all the g GPUs of a machine send through its port at once, each to the n - g
         * GPUs of other machines among its n - 1 peers; a ring passes the port once. */
        if (kind == COLLECTIVE_ALL_TO_ALL && cluster->n_machines > 1 &&
            view->granularity == GRANULARITY_GPU)
            view->collective[kind].bandwidth *=
                (view->n_devices - 1.0) / (view->n_devices - most_gpus) / most_gpus;
    }
}

/* Fills in the view's pieces, whose bandwidth is shared as the links' is. */
static void view_pieces(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    for (uint32_t kind = 0; cluster->n_machines > 1 && kind < COLLECTIVES_PRICED;
         kind++) {
        CollectivePieces *pieces = &view->pieces[kind];
        const double share =
            view->collective[kind].bandwidth / cluster->collective[kind].bandwidth;
        *pieces = cluster->pieces[kind];
        pieces->piece = g_memdup2(pieces->piece, pieces->n * sizeof *pieces->piece);
        for (uint32_t i = 0; i < pieces->n; i++)
            pieces->piece[i].line.bandwidth *= share;
    }
}

/* The lines of ports, switches and direct links. */
static void view_prices(ClusterView *view)
{
    g_autofree uint32_t *device = g_new(uint32_t, view->n_devices);
    PricePlace place;
    for (uint32_t j = 0; j < view->n_devices; j++)
        device[j] = j;
    price_place(view, &(PriceSets){1, view->n_devices, device}, &place);
    for (uint32_t kind = 0; place.own && kind < COLLECTIVES_PRICED; kind++) {
        g_free(view->pieces[kind].piece);
        price_pieces(&place, (Collective)kind, &view->pieces[kind],
                     &view->collective[kind]);
    }
}

/* Puts measured collectives of all devices in front of the lines of links. */
static void view_curves(ClusterView *view)
{
    const Cluster *cluster = view->cluster;
    const CurvePlace place = {cluster->type[cluster->machine[0].type].name,
                              view->n_devices, cluster->n_machines};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        CollectivePieces pieces;
        if (!curves_pieces(&cluster->curves, (Collective)kind, place, &pieces,
                           &view->collective[kind]))
            continue;
        g_free(view->pieces[kind].piece);
        view->pieces[kind] = pieces;
    }
}

LinkCost cluster_view_line(const ClusterView *view, Collective kind, double bytes)
{
    KILTER_ASSERT((int)kind < COLLECTIVES_PRICED && bytes >= 0);
    const CollectivePiece *piece = pieces_find(&view->pieces[kind], bytes);
    return piece ? piece->line : view->collective[kind];
}

LinkCost cluster_view_set_line(const ClusterView *view, const Device *device,
                               CurvePlace place, uint32_t sets, Collective kind,
                               double bytes)
{
    g_assert(sets > 0);
    const Machine *machine = &view->cluster->machine[device->machine];
    LinkCost line =
        place.hosts == 1 ? device->inner : cluster_view_line(view, kind, bytes);
    PricePlace priced;
    if (view->granularity == GRANULARITY_GPU &&
        price_of_machine(view->cluster, machine, place.ranks, place.hosts, sets, &priced))
        line = price_line(&priced, kind, bytes, NULL);
    else if (place.hosts > 1)
        line.bandwidth /= sets;
    if (curves_line(&view->cluster->curves, kind, place, bytes, &line) && place.hosts > 1)
        line.bandwidth /= sets;
    return line;
}

double cluster_view_launch_s(const ClusterView *view, const Device *device, OpKind kind)
{
    KILTER_ASSERT(kind < OP_KINDS);
    if (op_kind_is_view(kind))
        return 0;
    const OpCost *cost =
        device->fitted ? device_type_cost(view->fitted[device->fitted - 1], kind) : NULL;
    return cost ? cost->launch_s * device->crowd : device->launch_s;
}

bool cluster_view_launches(const ClusterView *view)
{
    const Device *last = NULL; /* most devices are like the one before */
    for (const Device *d = view->device; d < view->device + view->n_devices; last = d++) {
        if (last && last->fitted == d->fitted && last->launch_s == d->launch_s &&
            last->handover_s == d->handover_s && last->crowd == d->crowd)
            continue;
        if (d->handover_s > 0)
            return true;
        for (uint32_t kind = 0; kind < OP_KINDS; kind++)
            if (cluster_view_launch_s(view, d, (OpKind)kind) > 0)
                return true;
    }
    return false;
}

/* The invariant of a view: its devices have every GPU of the cluster, machine by machine. */
static void walk_devices(const ClusterView *view)
{
    uint64_t gpus = 0;
    for (uint32_t j = 0; j < view->n_devices; j++) {
        g_assert(view->device[j].machine < view->cluster->n_machines);
        g_assert(j == 0 || view->device[j].machine >= view->device[j - 1].machine);
        g_assert(view->device[j].fitted <= view->n_fitted);
        gpus += view->device[j].gpus;
    }
    for (uint32_t m = 0; m < view->cluster->n_machines; m++)
        gpus -= view->cluster->machine[m].gpus;
    g_assert(gpus == 0);
}

ClusterView *cluster_view(const Cluster *cluster, Granularity granularity)
{
    ClusterView *view = g_new0(ClusterView, 1);
    view->cluster = cluster;
    view->granularity = granularity;
    view->priced = cluster->wired;
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        view->priced |= cluster->machine[i].peers || cluster->machine[i].sums > 0;
    view_fitted(view);
    view_pricing(view);
    view_devices(view);
    view_working(view);
    sites_find(view);
    view_links(view);
    view_pieces(view);
    if (view->n_devices > 1)
        view_prices(view);
    view_curves(view);
    KILTER_WALK(walk_devices(view));
    return view;
}

FREE_DEFINE(cluster_view_free, ClusterView, view,
            free_column(view->device, view->n_devices, name),
            free_column(view->pieces, COLLECTIVES_PRICED, piece),
            free_each(view->device, view->site, view->between, view->toll, view->cable),
            cluster_free(view->owned));

bool cluster_view_has_kernels(const ClusterView *view)
{
    const bool any = any_of(f, view->n_fitted, view->fitted[f]->kernels != NULL);
    return any;
}

void cluster_view_own(ClusterView *view, Cluster *cluster)
{
    g_assert(view->cluster == cluster && !view->owned);
    view->owned = cluster;
}
