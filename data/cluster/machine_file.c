/* Machines as the files of others describe them: what is known of their GPUs, and the cluster that
 * they make. */
#include "data/cluster/machine_file.h"

#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/cluster/derive.h"

void machine_file_free(MachineFile *machine)
{
    if (!machine)
        return;
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        g_free(machine->gpu[i].bus);
        g_free(machine->gpu[i].pci);
        g_free(machine->gpu[i].gcn);
    }
    g_free(machine->gpu);
    g_free(machine->file);
    g_free(machine->absurd);
    g_free(machine->gpu_pairs);
    g_free(machine->gpu_nic);
    g_free(machine->product);
    g_ptr_array_unref(machine->warning);
    g_free(machine);
}

MachineGpu *machine_file_add_gpu(MachineFile *machine, GError **error)
{
    if (machine->n_gpus == MACHINE_MAX_GPUS) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: expected at most %d GPUs in a machine", machine->file,
                    MACHINE_MAX_GPUS);
        return NULL;
    }
    if (machine->n_gpus == machine->n_gpus_allocated) {
        machine->n_gpus_allocated = 2 * machine->n_gpus_allocated + 8;
        machine->gpu = g_renew(MachineGpu, machine->gpu, machine->n_gpus_allocated);
    }
    MachineGpu *gpu = &machine->gpu[machine->n_gpus++];
    *gpu = (MachineGpu){.bus = g_strdup(""), .pci = g_strdup(""), .gcn = g_strdup("")};
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
    va_list args;
    va_start(args, format);
    g_ptr_array_add(machine->warning, g_strdup_vprintf(format, args));
    va_end(args);
}

static const DeviceSheet *gpu_sheet(const MachineFile *machine, const Sheets *sheets,
                                    uint32_t i)
{
    KILTER_ASSERT(i < machine->n_gpus);
    return machine->product ? sheets_find_product(sheets, machine->product)
                            : sheets_find_pci(sheets, machine->gpu[i].pci);
}

const DeviceSheet *machine_file_sheet(const MachineFile *machine, const Sheets *sheets)
{
    const DeviceSheet *sheet = gpu_sheet(machine, sheets, 0);
    for (uint32_t i = 1; i < machine->n_gpus; i++)
        if (gpu_sheet(machine, sheets, i) != sheet)
            return NULL;
    return sheet;
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

/* The device's PCIe link by its data sheet. */
static const LinkSheet *pcie_of(const Sheets *sheets, const DeviceSheet *sheet)
{
    for (uint32_t i = 0; sheet && i < sheet->n_links; i++)
        if (g_str_has_prefix(sheet->link[i].name, "pcie"))
            return sheets_link(sheets, sheet->link[i].name, NULL);
    return NULL;
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
    return machine->format == MACHINE_FILE_NCCL && machine->gpu_elements == 0 && sheet &&
           sheet->n_links > 0 && !g_str_has_prefix(sheet->link[0].name, "pcie");
}

double machine_file_inner(const MachineFile *machine, const Sheets *sheets,
                          const DeviceSheet *sheet)
{
    double least = INFINITY;
    const bool unseen = has_unseen_links(machine, sheet);
    const bool joined = is_joined(machine);
    const LinkSheet *pcie = pcie_of(sheets, sheet);
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        const MachineGpu *gpu = &machine->gpu[i];
        const uint32_t links = unseen ? sheet->link[0].count : gpu->links - gpu->to_cpu;
        const double bandwidth = joined || unseen
                                     ? links * link_bandwidth(gpu, sheets, sheet)
                                 : gpu->pcie > 0 ? gpu->pcie
                                 : pcie          ? pcie->bandwidth * pcie->share
                                                 : 0;
        least = fmin(least, bandwidth);
    }
    return least;
}

static void name_device(GString *out, const MachineFile *machine)
{
    if (machine->product)
        g_string_append_printf(out, " ('%.60s' is not in data/devices)",
                               machine->product);
    else if (*machine->gpu[0].pci)
        g_string_append_printf(out, " (PCI id %.20s is not in data/devices)",
                               machine->gpu[0].pci);
}

static bool check_import(const MachineFile *machine, const MachineImport *import,
                         GError **error)
{
    g_autoptr(GString) device = g_string_new(NULL);
    name_device(device, machine);
    if (!import->sheet)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: the file does not say what its GPUs do%s; expected --gpu "
                           "NAME, as in --gpu h100-sxm",
                           machine->file, device->str);
    if (import->nodes > 1 && !import->nic && machine->absurd)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: %s; expected --nic NAME, as in --nic ib-ndr",
                           machine->file, machine->absurd);
    if (import->nodes > 1 && !import->nic && !(machine->net_bandwidth > 0))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: the file does not say how fast its %u NICs are; expected "
                           "--nic NAME, as in --nic ib-ndr",
                           machine->file, machine->nics);
    if (import->nodes > 1 && import->nic && machine->nics == 0 && import->nics == 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: the file has no NIC; expected --nics N, how many each "
                           "machine has",
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
        return (Port){nics * like->bandwidth * like->share, like->base_s, like->hop_s};
    like = sheets_link(sheets, "ib-ndr", NULL);
    return like ? (Port){machine->net_bandwidth * like->share, like->base_s, like->hop_s}
                : (Port){machine->net_bandwidth, 0, 0};
}

static LinkCost inner_line(const MachineFile *machine, const Sheets *sheets,
                           const MachineImport *import)
{
    if (machine->n_gpus == 1)
        return (LinkCost){0, INFINITY};
    const bool fast = is_joined(machine) || has_unseen_links(machine, import->sheet);
    const LinkSheet *like = fast ? sheets_link(sheets, import->sheet->link[0].name, NULL)
                                 : pcie_of(sheets, import->sheet);
    return (LinkCost){like ? link_sheet_line(like, 1, machine->n_gpus).latency_s : 0,
                      machine_file_inner(machine, sheets, import->sheet)};
}

Cluster *machine_file_cluster(const MachineFile *machine, const Sheets *sheets,
                              const MachineImport *import, GError **error)
{
    if (!check_import(machine, import, error))
        return NULL;
    g_autofree char *base = g_path_get_basename(machine->file);
    Cluster *cluster = g_new0(Cluster, 1);
    cluster->name = g_strdup(import->name);
    cluster->description =
        g_strdup_printf("%u machines with %u %s, from %s", import->nodes, machine->n_gpus,
                        import->sheet->name, base);
    cluster->n_types = 1;
    cluster->type = g_new0(DeviceType, 1);
    cluster->type[0] = device_sheet_type(import->sheet);
    cluster->n_machines = import->nodes;
    cluster->machine = g_new0(Machine, import->nodes);
    const LinkCost inner = inner_line(machine, sheets, import);
    for (uint32_t i = 0; i < import->nodes; i++)
        cluster->machine[i] = (Machine){
            .name = import->nodes > 1 ? g_strdup_printf("node-%u", i) : g_strdup("node"),
            .gpus = machine->n_gpus,
            .inner = inner,
            .peers = is_joined(machine) && machine->peers.n > 0
                         ? peers_text(&machine->peers)
                         : NULL,
            .source =
                g_strdup_printf("%s: bandwidth as NCCL counts its links; latency of "
                                "data/sustained.yaml",
                                base)};
    const Port port = make_port(machine, sheets, import);
    g_autofree Port *ports = g_new(Port, import->nodes);
    for (uint32_t i = 0; i < import->nodes; i++)
        ports[i] = port;
    cluster->collective_source =
        import->nodes > 1
            ? g_strdup_printf("%s: %s; shares and latencies of data/sustained.yaml", base,
                              import->nic ? import->nic->name : "speeds of its NICs")
            : g_strdup("");
    if (import->nodes > 1)
        derive_collectives(cluster, ports);
    cluster_find_rings(cluster);
    return cluster;
}
