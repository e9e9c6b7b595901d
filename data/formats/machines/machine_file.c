/* Machines as the files of others describe them: what is known of their GPUs, and the cluster that
 * they make. */
#include "data/formats/machines/machine_file.h"

#include <math.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/text.h"

FREE_DEFINE(machine_file_free, MachineFile, machine,
            free_column(machine->gpu, machine->n_gpus, bus),
            free_column(machine->gpu, machine->n_gpus, pci),
            free_column(machine->gpu, machine->n_gpus, gcn),
            free_column(machine->gpu, machine->n_gpus, product),
            free_each(machine->gpu, machine->file, machine->absurd, machine->gpu_pairs,
                      machine->gpu_nic),
            g_ptr_array_unref(machine->warning));

MachineGpu *machine_file_add_gpu(MachineFile *machine, const char *product,
                                 GError **error)
{
    if (machine->n_gpus == MACHINE_MAX_GPUS)
        return refused(error, "%s: expected at most %d GPUs in a machine", machine->file,
                       MACHINE_MAX_GPUS);
    if (machine->n_gpus == machine->n_gpus_allocated) {
        machine->n_gpus_allocated = 2 * machine->n_gpus_allocated + 8;
        machine->gpu = g_renew(MachineGpu, machine->gpu, machine->n_gpus_allocated);
    }
    MachineGpu *gpu = &machine->gpu[machine->n_gpus++];
    *gpu = (MachineGpu){.bus = g_strdup(""),
                        .pci = g_strdup(""),
                        .gcn = g_strdup(""),
                        .product = g_strdup(product ? product : "")};
    return gpu;
}

void machine_file_join(MachineFile *machine, uint32_t a, uint32_t b)
{
    g_assert(a < machine->n_gpus && b < machine->n_gpus);
    const uint32_t from = machine->gpu[a].group, to = machine->gpu[b].group;
    for (uint32_t i = 0; i < machine->n_gpus; i++)
        if (machine->gpu[i].group == from)
            machine->gpu[i].group = to;
}

void machine_file_add_links(MachineFile *machine, uint32_t from, uint32_t to,
                            uint32_t count)
{
    g_assert(from < machine->n_gpus && to < machine->n_gpus);
    if (from == to || count == 0)
        return;
    machine_file_join(machine, from, to);
    if (machine->n_gpus > PEERS_MAX_GPUS)
        return;
    uint8_t *links = &machine->peers.link[from][to];
    *links = (uint8_t)MIN(*links + count, PEERS_MAX_LINKS);
    machine->peers.n = machine->n_gpus;
}

void machine_file_warn(MachineFile *machine, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    g_ptr_array_add(machine->warning, g_steal_pointer(&text));
}

/* The data sheet of all GPUs, `all` if that is given; NULL if there is none, or if they differ. */
static const DeviceSheet *machine_file_sheet(const MachineFile *machine,
                                             const DeviceSheet *all)
{
    const DeviceSheet *sheet = all ? all : machine->gpu[0].sheet;
    for (uint32_t i = 1; !all && i < machine->n_gpus; i++)
        if (machine->gpu[i].sheet != sheet)
            return NULL;
    return sheet;
}

char *machine_file_devices(const MachineFile *machine, const DeviceSheet *all)
{
    const DeviceSheet *one = machine_file_sheet(machine, all);
    if (one)
        return g_strdup(one->name);
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t i = 0, n; i < machine->n_gpus; i += n) {
        const DeviceSheet *sheet = machine->gpu[i].sheet;
        if (!sheet)
            return NULL;
        for (n = 1; i + n < machine->n_gpus && machine->gpu[i + n].sheet == sheet;)
            n++;
        g_string_append_printf(text, "%s%u %s", i ? " + " : "", n, sheet->name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Bytes/s of one NVLink or xGMI link of the GPU; 0: not known. */
static double link_bandwidth(const MachineGpu *gpu, const Sheets *sheets,
                             const DeviceSheet *sheet)
{
    if (gpu->link_bandwidth > 0 || !sheet)
        return gpu->link_bandwidth;
    return sheet->chip.gcn ? link_table_at(&sheets->xgmi, sheet->chip.gcn)
                           : link_table_at(&sheets->nvlink, sheet->chip.sm);
}

static bool is_joined(const MachineFile *machine)
{
    bool joined = machine->n_gpus > 1;
    for (uint32_t i = 0; i < machine->n_gpus; i++)
        joined = joined && machine->gpu[i].links > machine->gpu[i].to_cpu &&
                 machine->gpu[i].group == machine->gpu[0].group;
    return joined;
}

/* Whether GPUs may have links that the file does not show, as in files written by hand, but that
 * the data sheet lists. */
static bool has_unseen_links(const MachineFile *machine, const DeviceSheet *sheet)
{
    /* `sheet`: of all GPUs */
    return (machine->listed ||
            (machine->format == MACHINE_FILE_NCCL && machine->gpu_elements == 0)) &&
           sheet && sheet->n_links > 0 && !g_str_has_prefix(sheet->link[0].name, "pcie");
}

double machine_file_inner(const MachineFile *machine, const Sheets *sheets,
                          const DeviceSheet *all)
{
    double least = INFINITY;
    const DeviceSheet *one = machine_file_sheet(machine, all);
    const bool unseen = has_unseen_links(machine, one);
    const bool joined = is_joined(machine);
    items_at (const MachineGpu, gpu, i, machine->gpu, machine->n_gpus) {
        const DeviceSheet *sheet = all ? all : gpu->sheet;
        const LinkSheet *pcie = device_sheet_link(sheets, sheet, "pcie");
        const uint32_t links = unseen ? one->link[0].count : gpu->links - gpu->to_cpu;
        const double bandwidth = joined || unseen
                                     ? links * link_bandwidth(gpu, sheets, sheet)
                                 : gpu->pcie > 0 ? gpu->pcie
                                 : pcie          ? pcie->bandwidth * pcie->share
                                                 : 0;
        least = fmin(least, bandwidth);
    }
    return least;
}

/* The words of the file about the first GPU without a data sheet. Caller frees. */
static char *name_device(const MachineFile *machine)
{
    uint32_t i = 0;
    while (i + 1 < machine->n_gpus && machine->gpu[i].sheet)
        i++;
    const MachineGpu *gpu = &machine->gpu[i];
    const char *words = *gpu->product ? gpu->product : gpu->pci;
    return !*words ? g_strdup("")
                   : g_strdup_printf(" (%s'%.60s' is not in data/devices)",
                                     *gpu->product ? "" : "PCI id ", words);
}

static bool check_import(const MachineFile *machine, const MachineImport *import,
                         const char *devices, GError **error)
{
    if (!devices) {
        g_autofree char *device = name_device(machine);
        return refuse(error,
                      "%s: the file does not say what its GPUs do%s; expected --gpu "
                      "NAME, as in --gpu h100-sxm",
                      machine->file, device);
    }
    if (import->nodes > 1 && !import->nic && machine->absurd)
        return refuse(error, "%s: %s; expected --nic NAME, as in --nic ib-ndr",
                      machine->file, machine->absurd);
    if (import->nodes > 1 && !import->nic && !(machine->net_bandwidth > 0))
        return refuse(error,
                      "%s: the file does not say how fast its %u NICs are; expected "
                      "--nic NAME, as in --nic ib-ndr",
                      machine->file, machine->nics);
    if (import->nodes > 1 && import->nic && machine->nics == 0 && import->nics == 0)
        return refuse(
            error,
            "%s: the file has no NIC; expected --nics N, how many each machine has",
            machine->file);
    return true;
}

static Port make_port(const MachineFile *machine, const Sheets *sheets,
                      const MachineImport *import)
{
    const LinkSheet *like = import->nic;
    const uint32_t nics = import->nics         ? import->nics
                          : machine->nics_near ? machine->nics_near
                                               : machine->nics;
    if (like)
        return link_sheet_port(like, nics, sheets, import->sheet);
    like = sheets_link(sheets, "ib-ndr", NULL);
    if (!like)
        return (Port){.bandwidth = machine->net_bandwidth};
    return link_sheet_port(like, machine->net_bandwidth / like->bandwidth, sheets,
                           import->sheet);
}

static LinkCost inner_line(const MachineFile *machine, const Sheets *sheets,
                           const DeviceSheet *all)
{
    if (machine->n_gpus == 1)
        return (LinkCost){0, INFINITY};
    const DeviceSheet *one = machine_file_sheet(machine, all);
    const bool fast = one && (is_joined(machine) || has_unseen_links(machine, one));
    double latency_s = 0;
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        const DeviceSheet *sheet = all ? all : machine->gpu[i].sheet;
        const LinkSheet *like = fast ? sheets_link(sheets, sheet->link[0].name, NULL)
                                     : device_sheet_link(sheets, sheet, "pcie");
        if (like)
            latency_s =
                fmax(latency_s, link_sheet_line(like, 1, machine->n_gpus).latency_s);
    }
    return (LinkCost){latency_s, machine_file_inner(machine, sheets, all)};
}

/* Adds the types of the GPUs, and gives the machine its GPUs. */
static void add_types(const MachineFile *machine, const DeviceSheet *all,
                      Cluster *cluster, Machine *made)
{
    g_autofree MachinePart *part = g_new(MachinePart, machine->n_gpus);
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        const DeviceSheet *sheet = all ? all : machine->gpu[i].sheet;
        part[i] = (MachinePart){cluster_type_of_sheet(cluster, sheet), 1};
    }
    machine_set_parts(made, machine->n_gpus, part);
}

/* One direct link, where they do not join all GPUs. */
static LinkCost peer_line(const MachineFile *machine, const Sheets *sheets,
                          const DeviceSheet *all)
{
    LinkCost line = {0, INFINITY};
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        const DeviceSheet *sheet = all ? all : machine->gpu[i].sheet;
        const char *name = sheet->bridge ? sheet->bridge : sheet->link[0].name;
        const LinkSheet *like = sheets_link(sheets, name, NULL);
        const double known = link_bandwidth(&machine->gpu[i], sheets, sheet);
        if (machine->gpu[i].links <= machine->gpu[i].to_cpu || !like)
            continue;
        line.latency_s =
            fmax(line.latency_s, link_sheet_line(like, 1, machine->n_gpus).latency_s);
        line.bandwidth =
            fmin(line.bandwidth, known > 0 ? known : like->bandwidth * like->share);
    }
    return line;
}

Cluster *machine_file_cluster(const MachineFile *machine, const Sheets *sheets,
                              const MachineImport *import, GError **error)
{
    g_autofree char *devices = machine_file_devices(machine, import->sheet);
    if (!check_import(machine, import, devices, error))
        return NULL;
    g_autofree char *base = g_path_get_basename(machine->file);
    const DeviceSheet *one = machine_file_sheet(machine, import->sheet);
    const bool joined = is_joined(machine) || (one && has_unseen_links(machine, one));
    const LinkSheet *fastest = one ? sheets_link(sheets, one->link[0].name, NULL) : NULL;
    Machine made = {.inner = inner_line(machine, sheets, import->sheet)};
    if (!joined && machine->peers.n > 0)
        made.peer = peer_line(machine, sheets, import->sheet);
    if (joined && machine->peers.n == 0 && machine->n_gpus > 2 && fastest)
        machine_sum_by(&made, fastest);
    if (import->nic || import->nodes > 1)
        made.port = make_port(machine, sheets, import);
    Cluster *cluster = g_new0(Cluster, 1);
    cluster->name = g_strdup(import->name);
    add_types(machine, import->sheet, cluster, &made);
    cluster->description =
        g_strdup_printf(made.n_parts > 0 ? "%u machines with %u GPUs (%s), from %s"
                                         : "%u machines with %u %s, from %s",
                        import->nodes, machine->n_gpus, devices, base);
    cluster->n_machines = import->nodes;
    cluster->machine = g_new0(Machine, import->nodes);
    for (uint32_t i = 0; i < import->nodes; i++) {
        cluster->machine[i] = made;
        cluster->machine[i].name =
            import->nodes > 1 ? g_strdup_printf("node-%u", i) : g_strdup("node");
        cluster->machine[i].part = g_memdup2(made.part, made.n_parts * sizeof *made.part);
        cluster->machine[i].peers =
            machine->peers.n > 0 ? peers_text(&machine->peers) : NULL;
        cluster->machine[i].source =
            g_strdup_printf("%s: bandwidth as NCCL counts its links; latency of "
                            "data/sustained.yaml",
                            base);
    }
    g_free(made.part);
    cluster->collective_source =
        import->nodes > 1
            ? g_strdup_printf("%s: %s; shares and latencies of data/sustained.yaml", base,
                              import->nic ? import->nic->name : "speeds of its NICs")
            : g_strdup("");
    cluster->wired = cluster->machine[0].port.bandwidth > 0;
    cluster_finish(cluster);
    if (!cluster_set_kernels(cluster, error))
        g_clear_pointer(&cluster, cluster_free);
    return cluster;
}
