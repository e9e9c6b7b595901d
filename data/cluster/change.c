/* Changes of a cluster: other numbers, fewer machines, more machines. */
#include "data/cluster/change.h"

#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/names.h"
#include "data/base/units.h"
#include "data/cluster/check.h"
#include "data/cluster/network_spec.h"
#include "data/cluster/sheet.h"

enum { MOST_GPUS = 1024, MOST_MACHINES = 65536 };
static const double LEAST_FACTOR = 1e-6, MOST_FACTOR = 1e6;

static const char *const NAMES[CHANGES] = {"add", "only", "without", "scale"};

NAMES_FUNCTION(change_name, ChangeKind, CHANGES, NAMES[of])

static bool has_type(const Cluster *cluster, const char *type)
{
    return NAME_ROW(cluster->type, cluster->n_types, name, type);
}

/* The cluster's type by the data sheet that has this alias; NULL: there is none. Caller frees. */
static char *type_of_alias(const Cluster *cluster, const char *alias)
{
    g_autoptr(Sheets) sheets = sheets_open(NULL);
    const DeviceSheet *sheet = sheets ? sheets_open_device(sheets, alias, NULL) : NULL;
    return sheet && has_type(cluster, sheet->name) ? g_strdup(sheet->name) : NULL;
}

char *cluster_types_named(const Cluster *cluster, const char *name, GError **error)
{
    items_each (const DeviceType, type, cluster->type, cluster->n_types)
        if (g_pattern_match_simple(name, type->name))
            return g_strdup(name);
    char *alias = type_of_alias(cluster, name);
    if (!alias)
        refuse(error, "cluster %s has no device type '%s'", cluster->name, name);
    return alias;
}

/* --- scale --- */

static void scale_line(LinkCost *line, double bandwidth, double latency)
{
    line->bandwidth *= bandwidth;
    line->latency_s *= latency;
}

/* Scales the curves between machines or inside them. */
static void scale_curves(Cluster *cluster, bool between, double bandwidth, double latency)
{
    items_each (CollectiveCurve, curve, cluster->curves.curve, cluster->curves.n)
        if ((curve->hosts > 1) == between)
            curve_scale(curve, bandwidth, latency, curve);
}

static void scale_network(Cluster *cluster, double bandwidth, double latency)
{
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        Port *port = &cluster->machine[i].port;
        const Port was = *port;
        *port = (Port){was.bandwidth * bandwidth, was.gpu * bandwidth,
                       was.base_s * latency, was.hop_s * latency, was.nics};
    }
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        scale_line(&cluster->collective[kind], bandwidth, latency);
        for (uint32_t i = 0; i < cluster->pieces[kind].n; i++)
            scale_line(&cluster->pieces[kind].piece[i].line, bandwidth, latency);
    }
    scale_line(&cluster->transfer, bandwidth, latency);
    scale_curves(cluster, true, bandwidth, latency);
    for (uint32_t i = 0; i < cluster->n_region_links; i++)
        scale_line(&cluster->region_link[i].link, bandwidth, latency);
    if (!cluster->network)
        return;
    scale_line(&cluster->network->link, bandwidth, latency);
    for (uint32_t i = 0; i < cluster->network->n_links; i++)
        scale_line(&cluster->network->explicit_link[i].cost, bandwidth, latency);
}

static void scale_rate(DeviceType *type, double factor)
{
    KILTER_ASSERT(factor > 0);
    type->rate *= factor;
    for (Numbers n = 0; n < NUMBERS; n++)
        type->rates[n] *= factor;
    for (uint32_t kind = 0; type->op && kind < OP_KINDS; kind++)
        type->op[kind].rate *= factor;
    KernelFactors *times = &type->kernel_times;
    double *const of_rate[] = {&times->products, &times->experts, &times->attention};
    for (uint32_t i = 0; type->kernels && i < G_N_ELEMENTS(of_rate); i++)
        *of_rate[i] = (*of_rate[i] > 0 ? *of_rate[i] : 1) / factor;
}

static void scale_bandwidth(DeviceType *type, double factor)
{
    KILTER_ASSERT(factor > 0);
    for (uint32_t kind = 0; type->op && kind < OP_KINDS; kind++)
        type->op[kind].bandwidth *= factor;
    KernelFactors *times = &type->kernel_times;
    double *const of_memory[] = {&times->memory, &times->loss, &times->update};
    for (uint32_t i = 0; type->kernels && i < G_N_ELEMENTS(of_memory); i++)
        *of_memory[i] = (*of_memory[i] > 0 ? *of_memory[i] : 1) / factor;
}

static bool scale_type(Cluster *cluster, const char *name, const char *what,
                       double factor, GError **error)
{
    g_autofree char *pattern = cluster_types_named(cluster, name, error);
    if (!pattern)
        return false;
    items_each (DeviceType, type, cluster->type, cluster->n_types) {
        if (!g_pattern_match_simple(pattern, type->name))
            continue;
        if (strcmp(what, "rate") == 0)
            scale_rate(type, factor);
        else if (strcmp(what, "bandwidth") == 0)
            scale_bandwidth(type, factor);
        else if (strcmp(what, "memory") == 0)
            type->memory_bytes = (uint64_t)llround((double)type->memory_bytes * factor);
        else
            return refuse(error,
                          "expected rate, bandwidth or memory behind '%s.', got '%s'",
                          pattern, what);
    }
    return true;
}

static bool scale(Cluster *cluster, const char *text, GError **error)
{
    const char *equals = strrchr(text, '=');
    double factor = 0;
    if (!equals || equals == text ||
        !number_read(equals + 1, LEAST_FACTOR, MOST_FACTOR, &factor))
        return refuse(error,
                      "expected WHAT=FACTOR, a factor from %g to %g, such as network=2 "
                      "or h100.rate=1.1, got '%s'",
                      LEAST_FACTOR, MOST_FACTOR, text);
    g_autofree char *what = g_strndup(text, (gsize)(equals - text));
    char *dot = strrchr(what, '.');
    if (dot) {
        *dot = '\0';
        return scale_type(cluster, what, dot + 1, factor, error);
    }
    if (strcmp(what, "network") == 0) {
        scale_network(cluster, factor, 1);
    } else if (strcmp(what, "latency") == 0) {
        scale_network(cluster, 1, factor);
    } else if (strcmp(what, "inner") == 0) {
        for (Machine *m = cluster->machine; m < cluster->machine + cluster->n_machines;
             m++)
            m->inner.bandwidth *= factor, m->peer.bandwidth *= factor,
                m->across.bandwidth *= factor;
        scale_curves(cluster, false, factor, 1);
    } else {
        static const char *const words[] = {"network", "latency", "inner", NULL};
        g_autofree char *hint = names_hint(what, words);
        return refuse(error,
                      "expected network, latency, inner or DEVICE.rate, .bandwidth, "
                      ".memory, got '%s'%s",
                      what, hint);
    }
    return true;
}

/* --- only, without --- */

/* Marks the GPUs of machines of that name, or those of the device type, which may be an alias of a
 * data sheet. */
static bool mark(const Cluster *cluster, const char *name, bool chosen, bool *keep)
{
    bool any = false;
    for (uint32_t i = 0, gpu = 0; i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i];
        const bool whole = g_pattern_match_simple(name, machine->name);
        for (uint32_t g = 0; g < machine->gpus; g++, gpu++) {
            const char *type = cluster->type[machine_type_at(machine, g)].name;
            if (!whole && !g_pattern_match_simple(name, type))
                continue;
            any = true;
            keep[gpu] = chosen;
        }
    }
    return any;
}

static bool choose(Cluster *cluster, const char *text, bool chosen, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    const uint32_t gpus = cluster_gpus(cluster);
    g_autofree bool *keep = g_new(bool, gpus);
    if (!*names)
        return refuse(error, "expected names of machines or device types, got ''");
    for (uint32_t i = 0; i < gpus; i++)
        keep[i] = !chosen;
    for (char **name = names; *name; name++) {
        g_strstrip(*name);
        g_autofree char *alias = NULL;
        if (!mark(cluster, *name, chosen, keep) &&
            !((alias = type_of_alias(cluster, *name)) &&
              mark(cluster, alias, chosen, keep)))
            return refuse(error, "cluster %s has no machine or device type '%s'",
                          cluster->name, *name);
    }
    if (!cluster_keep_gpus(cluster, keep, error))
        return false;
    cluster_finish(cluster);
    return true;
}

/* --- add --- */

/* A machine of that device type, if wanted with a link between its GPUs; NULL: there is none. */
static const Machine *find_alike(const Cluster *cluster, const char *type, bool linked)
{
    items_each (const Machine, machine, cluster->machine, cluster->n_machines)
        if (machine->n_parts == 0 &&
            strcmp(cluster->type[machine->type].name, type) == 0 &&
            (!linked || machine->gpus > 1))
            return machine;
    return NULL;
}

static Machine copy_of(const Machine *alike, uint32_t gpus)
{
    Machine machine = *alike;
    machine.name = NULL;
    machine.gpus = gpus;
    machine.source = g_strdup(alike->source);
    machine.domain = g_strdup(alike->domain);
    machine.region = g_strdup(alike->region);
    machine.peers = g_strdup(gpus == alike->gpus ? alike->peers : NULL);
    if (!machine.peers)
        machine.peer = machine.across = (LinkCost){0};
    return machine;
}

/* A machine of a type that the cluster gets from data sheets, with the device's fastest links. */
static Machine machine_of_sheet(Cluster *cluster, const Sheets *sheets,
                                const DeviceSheet *sheet, uint32_t gpus)
{
    const LinkSheet *link = sheets_link(sheets, sheet->link[0].name, NULL);
    g_assert(link); /* the sheets were checked */
    Machine machine = {.type = cluster_type_of_sheet(cluster, sheet),
                       .gpus = gpus,
                       .inner = gpus > 1
                                    ? link_sheet_line(link, sheet->link[0].count, gpus)
                                    : (LinkCost){0, INFINITY},
                       .peers = g_strdup(device_sheet_peers(sheet, gpus)),
                       .source = g_strdup(sheet->source)};
    if (gpus > 2 && !machine.peers)
        machine_sum_by(&machine, link);
    return machine;
}

/* The machine to add, but for its name: like one of the cluster, or by the data sheet that has the
 * name or alias. */
static bool make_machine(Cluster *cluster, const char *name, uint32_t gpus,
                         Machine *machine, GError **error)
{
    const Machine *alike = find_alike(cluster, name, gpus > 1);
    g_autoptr(Sheets) sheets = NULL;
    const DeviceSheet *sheet = NULL;
    if (!alike && !has_type(cluster, name)) {
        sheets = sheets_open(error);
        sheet = sheets ? sheets_open_device(sheets, name, error) : NULL;
        if (!sheet)
            return kilter_prefix(error, "cluster %s has no machine of device type '%s': ",
                                 cluster->name, name);
        name = sheet->name;
        alike = find_alike(cluster, name, gpus > 1);
    }
    if (!alike && has_type(cluster, name))
        return refuse(error,
                      "cluster %s has no machine%s of device type '%s' to add another%s; "
                      "a cluster file can state it: {type: %s, gpus: %u, inner: "
                      "{latency: ..., bandwidth: ...}}",
                      cluster->name, gpus > 1 ? " of several GPUs" : "", name,
                      gpus > 1 ? " with its link between them" : "", name, gpus);
    *machine =
        alike ? copy_of(alike, gpus) : machine_of_sheet(cluster, sheets, sheet, gpus);
    if (!alike && cluster->wired)
        machine_take_port(machine, cluster, device_sheet_link(sheets, sheet, "pcie"));
    return true;
}

static bool add(Cluster *cluster, const char *text, GError **error)
{
    char *last_x = strrchr(text, 'x'), *end = NULL;
    g_autofree char *name = g_strndup(text, last_x ? (gsize)(last_x - text) : 0);
    g_strstrip(name);
    const guint64 gpus = last_x ? g_ascii_strtoull(last_x + 1, &end, 10) : 0;
    if (!last_x || !*name || end == last_x + 1 || end[strspn(end, " ")] || gpus < 1 ||
        gpus > MOST_GPUS)
        return refuse(
            error,
            "expected DEVICE x GPUS, 1 to %d of them, such as 'h100 x 8', got '%s'",
            MOST_GPUS, text);
    if (cluster->n_machines == MOST_MACHINES)
        return refuse(error, "cluster %s has %d machines", cluster->name, MOST_MACHINES);
    if (cluster->network && cluster->network->kind == NETWORK_LINKS)
        return refuse(error, "cluster %s names its links, and none for another machine",
                      cluster->name);
    Machine machine = {0};
    if (!make_machine(cluster, name, (uint32_t)gpus, &machine, error))
        return false;
    uint32_t number = cluster->n_machines;
    do {
        put_block(machine.name, g_strdup_printf("%s-%u", name, number++));
    } while (NAME_ROW(cluster->machine, cluster->n_machines, name, machine.name));
    cluster->machine = g_renew(Machine, cluster->machine, cluster->n_machines + 1);
    cluster->machine[cluster->n_machines++] = machine;
    cluster_finish(cluster);
    return cluster_set_kernels(cluster, error);
}

bool cluster_change(Cluster *cluster, ChangeKind kind, const char *text, GError **error)
{
    bool ok = g_utf8_validate(text, -1, NULL) || refuse(error, "expected UTF-8");
    switch (ok ? kind : CHANGES) {
    case CHANGE_ADD:
        ok = add(cluster, text, error);
        break;
    case CHANGE_ONLY:
        ok = choose(cluster, text, true, error);
        break;
    case CHANGE_WITHOUT:
        ok = choose(cluster, text, false, error);
        break;
    case CHANGE_SCALE:
        ok = scale(cluster, text, error);
        break;
    case CHANGES:
        break;
    }
    if (!ok)
        return kilter_prefix(error, "--%s: ", change_name(kind));
    char *name = g_strdup_printf("%s %s %s", cluster->name, change_name(kind), text);
    put_block(cluster->name, name);
    if (cluster_check(cluster, error))
        return true;
    kilter_prefix(error, "--%s '%.60s': ", change_name(kind), text);
    return false;
}
