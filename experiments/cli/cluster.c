/* kilter cluster. */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/text.h"
#include "data/formats/format.h"
#include "data/formats/machines/machine_file.h"
#include "data/formats/machines/slurm.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"

enum { NODES_MAX = 65536, NICS_MAX = 1000 };

/* clang-format off */
#define CLUSTER_OPTIONS(X)                      \
    X(COUNT, nodes, "nodes", 'n', 1, NODES_MAX) \
    X(TEXT, nic, "nic", 0)                      \
    X(COUNT, nics, "nics", 0, 0, NICS_MAX)      \
    X(TEXT, gpu, "gpu", 0)                      \
    X(TEXT, name, "name", 0)                    \
    X(FILE, output, "output", 'o')
/* clang-format on */
COMMAND_OPTIONS(How, how, CLUSTER_OPTIONS)

/* "90x8" or "910x16": each value of the GPUs with the number of GPUs, in the file's order. */
static char *cluster_values_of(const MachineFile *machine, bool gcn)
{
    GString *out = g_string_new(NULL);
    json_t *counts = json_object();
    items_each (const MachineGpu, gpu, machine->gpu, machine->n_gpus) {
        g_autofree char *number = g_strdup_printf("%u", gpu->sm);
        const char *key = gcn ? gpu->gcn : number;
        json_object_set_new(
            counts, key,
            json_integer(json_integer_value(json_object_get(counts, key)) + 1));
    }
    members_each (key, count, counts)
        g_string_append_printf(out, "%s%sx%d", out->len ? ";" : "", key,
                               (int)json_integer_value(count));
    json_decref(counts);
    return g_string_free(out, FALSE);
}

typedef enum { GPU_LINKS, GPU_LINKS_GBPS, GPU_PCIE_GBPS } GpuNumber;

/* A list of numbers, one per GPU: its links, or GB/s of these; or GB/s of PCIe, equal ones once. */
static char *numbers_of(const MachineFile *machine, GpuNumber what)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    items_each (const MachineGpu, gpu, machine->gpu, machine->n_gpus) {
        char *text = what == GPU_LINKS
                         ? g_strdup_printf("%u", gpu->links)
                         : g_strdup_printf("%.1f", (what == GPU_LINKS_GBPS
                                                        ? gpu->links * gpu->link_bandwidth
                                                        : gpu->pcie) /
                                                       1e9);
        if (what != GPU_PCIE_GBPS ||
            !g_ptr_array_find_with_equal_func(list, text, g_str_equal, NULL))
            g_ptr_array_add(list, text);
        else
            g_free(text);
    }
    g_ptr_array_add(list, NULL);
    return g_strjoinv(";", (char **)list->pdata);
}

static void cluster_set_text(json_t *json, const char *key, char *text)
{
    json_object_set_new(json, key, json_string(text));
    g_free(text);
}

/* Sets the keys of one kind of links. */
static void set_links(json_t *json, const MachineFile *machine, const char *kind,
                      uint32_t elements, uint32_t sum)
{
    g_autofree char *elements_key = g_strconcat(kind, "_elements", NULL);
    g_autofree char *sum_key = g_strconcat(kind, "_count_sum", NULL);
    g_autofree char *each_key = g_strconcat(kind, "_per_gpu", NULL);
    g_autofree char *rate_key = g_strconcat(kind, "_GBps_per_gpu_nccl", NULL);
    json_object_set_new(json, elements_key, json_integer(elements));
    json_object_set_new(json, sum_key, json_integer(sum));
    cluster_set_text(json, each_key, numbers_of(machine, GPU_LINKS));
    cluster_set_text(json, rate_key, numbers_of(machine, GPU_LINKS_GBPS));
}

static void set_nccl(json_t *json, const MachineFile *machine)
{
    const struct {
        const char *key;
        double value;
    } COUNT[] = {
        {"version", machine->version},
        {"cpus", machine->cpus},
        {"gpu_elements", machine->gpu_elements},
        {"gpu_class_pci", machine->gpu_pci},
        {"net_elements", machine->net_elements},
        {"nic_class_pci", machine->nic_pci},
        {"net_speed_sum_Mbps", machine->net_mbps},
        {"nets_ge_100Gbps", machine->nets_fast},
    };
    json_object_set_new(json, "root", json_string("system"));
    for (size_t i = 0; i < G_N_ELEMENTS(COUNT); i++)
        json_object_set_new(json, COUNT[i].key, json_integer((json_int_t)COUNT[i].value));
    if (machine->gpu_elements > 0)
        cluster_set_text(json, "sm", cluster_values_of(machine, false));
    if (machine->gpu_elements > 0 && *machine->gpu[0].gcn)
        cluster_set_text(json, "gcn", cluster_values_of(machine, true));
    if (machine->nvlink_elements > 0) {
        set_links(json, machine, "nvlink", machine->nvlink_elements, machine->nvlink_sum);
        json_object_set_new(json, "nvswitch", json_integer(machine->nvswitch));
    }
    if (machine->xgmi_elements > 0)
        set_links(json, machine, "xgmi", machine->xgmi_elements, machine->xgmi_sum);
    cluster_set_text(json, "gpu_pcie_GBps_nccl", numbers_of(machine, GPU_PCIE_GBPS));
}

/* The links of all GPUs by kind or, for a matrix, pairs of GPUs by code. */
static json_t *cluster_links_json(const MachineFile *machine)
{
    json_t *links = json_object();
    if (machine->nvlink_elements > 0)
        json_object_set_new(links, "nvlink", json_integer(machine->nvlink_sum));
    if (machine->xgmi_elements > 0)
        json_object_set_new(links, "xgmi", json_integer(machine->xgmi_sum));
    g_auto(GStrv) pairs =
        g_strsplit(machine->gpu_pairs ? machine->gpu_pairs : "", ";", -1);
    for (char **pair = pairs; *pair; pair++) {
        char *equals = strchr(*pair, '=');
        if (!equals)
            continue;
        *equals = '\0';
        json_object_set_new(links, *pair,
                            json_integer(g_ascii_strtoll(equals + 1, NULL, 10)));
    }
    return links;
}

static json_t *machine_json(const MachineFile *machine, const Sheets *sheets,
                            const MachineImport *import)
{
    static const char *const FORMAT[] = {[MACHINE_FILE_NCCL] = "nccl_topo",
                                         [MACHINE_FILE_NVIDIA_SMI] = "nvidia_smi_topo",
                                         [MACHINE_FILE_ROCM_SMI] = "rocm_smi_topo"};
    g_autofree char *devices = machine_file_devices(machine, import->sheet);
    const double net = import->nic ? (import->nics ? import->nics : machine->nics) *
                                         import->nic->bandwidth
                                   : machine->net_bandwidth;
    const double inner = machine_file_inner(machine, sheets, import->sheet);
    json_t *json =
        json_pack("{s:o, s:s, s:i, s:i, s:s?, s:o, s:i, s:s?, s:s*, s:o, s:o}", "file",
                  json_text(machine->file), "source_format", FORMAT[machine->format],
                  "gpus", (int)machine->n_gpus, "nics", (int)machine->nics, "device",
                  devices, "links", cluster_links_json(machine), "link_count",
                  (int)(machine->nvlink_sum + machine->xgmi_sum), "link_name",
                  machine->nvlink_sum ? "NVLink"
                  : machine->xgmi_sum ? "xGMI"
                                      : NULL,
                  "nic", import->nic ? import->nic->name : NULL, "inner_bandwidth",
                  json_number(inner > 0 ? inner : NAN), "net_bandwidth",
                  json_number(net > 0 ? net : NAN));
    if (machine->format == MACHINE_FILE_NCCL) {
        set_nccl(json, machine);
    } else {
        json_object_set_new(json, "gpu_pairs", json_string(machine->gpu_pairs));
        json_object_set_new(json, "gpu_nic", json_string(machine->gpu_nic));
    }
    json_object_set_new(json, "warnings", json_texts(machine->warning));
    return json;
}

static bool cluster_write_cluster(const Cluster *cluster, const How *how, GError **error)
{
    return output_check(how->output, error) &&
           output_take(how->output, cluster_write(cluster), error);
}

/* The cluster's name: by default that of the output file. */
static char *name_of(const How *how)
{
    if (how->name)
        return g_strdup(how->name);
    char *name = g_path_get_basename(how->output);
    if (g_str_has_suffix(name, ".yaml"))
        name[strlen(name) - strlen(".yaml")] = '\0';
    return name;
}

/* --- Slurm --- */

/* The GPUs of all nodes by their types, in the order of the file. */
static json_t *slurm_types(const SlurmFile *slurm, const Sheets *sheets)
{
    json_t *types = json_object();
    pointers_each (const SlurmNode, node, slurm->node) {
        array_each (const SlurmGpus, gpus, node->gpus) {
            const DeviceSheet *sheet = slurm_sheet(node, gpus, sheets);
            const char *name = sheet ? sheet->name : *gpus->type ? gpus->type : "gpu";
            const json_int_t before = json_integer_value(json_object_get(types, name));
            json_object_set_new(types, name, json_integer(before + gpus->gpus));
        }
    }
    return types;
}

static bool import_slurm(const char *file, const char *text, const Sheets *sheets,
                         const MachineImport *import, const How *how,
                         const CommandOptions *options, GError **error)
{
    g_autoptr(SlurmFile) slurm = slurm_parse(file, text, error);
    if (!slurm)
        return false;
    if (how->nodes > 1)
        return refuse(error, "--nodes: not expected: the file lists its nodes");
    if (how->output) {
        g_autoptr(Cluster) cluster = slurm_cluster(slurm, sheets, import, error);
        if (!cluster || !cluster_write_cluster(cluster, how, error))
            return false;
    }
    command_report(options,
                   json_pack("{s:s, s:s, s:i, s:i, s:o, s:i, s:i}", "file", file,
                             "source_format", "slurm", "nodes", (int)slurm->node->len,
                             "gpus", (int)slurm_gpus(slurm), "types",
                             slurm_types(slurm, sheets), "nodes_without_gpus",
                             (int)slurm->n_without, "nodes_down", (int)slurm->n_down),
                   ANSWER_SLURM, NULL);
    return true;
}

static bool import_file(const char *file, const How *how, const CommandOptions *options,
                        GError **error)
{
    gsize length;
    const FileFormat format = format_of_file(file, FORMAT_MACHINE);
    g_autoptr(Sheets) sheets = sheets_load(error);
    g_autofree char *text =
        sheets ? file_read(file, SLURM_FILE_BYTES, &length, error) : NULL;
    g_autofree char *hint = text && format == FORMATS ? format_hint(file, NULL, 0) : NULL;
    if (!text)
        return false;
    if (hint && *hint)
        return refuse(error,
                      "%s: expected a description of a machine or nodes of Slurm%s", file,
                      hint);
    g_autofree char *name = how->output ? name_of(how) : NULL;
    MachineImport import = {
        .name = name, .nodes = (uint32_t)how->nodes, .nics = (uint32_t)how->nics};
    if ((how->gpu && !(import.sheet = sheets_device(sheets, how->gpu, error))) ||
        (how->nic && !(import.nic = sheets_link(sheets, how->nic, error))))
        return false;
    if (strlen(text) == length && format == FORMAT_SLURM)
        return import_slurm(file, text, sheets, &import, how, options, error);
    g_autoptr(MachineFile) machine = machine_file_read(file, sheets, error);
    if (!machine)
        return false;
    if (how->output) {
        g_autoptr(Cluster) cluster =
            machine_file_cluster(machine, sheets, &import, error);
        if (!cluster || !cluster_write_cluster(cluster, how, error))
            return false;
    }
    for (guint i = 0; !options->quiet && i < machine->warning->len; i++)
        limits_note("%s: %s", machine->file, (char *)machine->warning->pdata[i]);
    command_report(options, machine_json(machine, sheets, &import), ANSWER_MACHINE, NULL);
    return true;
}

COMMAND(cluster, How, CLUSTER_OPTIONS, .nodes = 1)
{
    if (strcmp(argv[1], "import") != 0)
        return refuse(error,
                      "expected import FILE, got '%.60s'; see kilter cluster --help",
                      argv[1]);
    return import_file(argv[2], own, options, error);
}
