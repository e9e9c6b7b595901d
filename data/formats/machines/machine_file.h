/* Descriptions of a machine: topology files of NCCL and RCCL (XML), dumped (NCCL_TOPO_DUMP_FILE) or
 * written for them (NCCL_TOPO_FILE), the matrix of `nvidia-smi topo -m`, and the tables of
 * `rocm-smi --showtopo`; and clusters of equal machines made from them.
 *
 * A topology file describes one machine. Dumps have `gpu`, `nvlink` or `xgmi`, and `net` elements;
 * files written by hand mostly have PCI devices only, which are recognized by their class. */
#pragma once

#include "data/cluster/sheet.h"

typedef enum {
    MACHINE_FILE_NCCL,
    MACHINE_FILE_NVIDIA_SMI,
    MACHINE_FILE_ROCM_SMI
} MachineFileFormat;

typedef struct {
    char *bus, *pci; /* "0000:0f:00.0", "10de:2330"; "" where the file does not say */
    char *product;   /* its name, where a list of names is in the file; "" else */
    char *gcn;       /* as in the file ("gfx942", "910"); "" if it has none */
    uint32_t sm;     /* 0 without */
    uint32_t links;  /* NVLinks or xGMI links to others */
    uint32_t to_cpu; /* how many of them lead to a CPU */
    double link_bandwidth; /* bytes/s of one link, as NCCL counts; 0: not known */
    double pcie;           /* bytes/s, as NCCL counts */
    uint32_t group;        /* GPUs with the same number are connected by these links */
    /* by product or PCI id; NULL: there is none */
    const DeviceSheet *sheet;
} MachineGpu;

typedef struct {
    MachineFileFormat format;
    char *file;
    uint32_t version; /* of an NCCL file */
    /* numbers of elements; PCI devices of a GPU's class */
    uint32_t cpus, gpu_elements, gpu_pci;
    uint32_t net_elements, nic_pci;
    uint32_t nvlink_elements, nvlink_sum; /* sum of their counts */
    uint32_t xgmi_elements, xgmi_sum;
    bool nvswitch, listed; /* GPUs without links: a list */
    /* direct links between GPUs; n is 0 where the file shows none, or a switch */
    Peers peers;
    double net_mbps;    /* sum over all nets, in the file's numbers */
    uint32_t nets_fast; /* nets of 100 Gb/s and more */
    char *absurd;       /* a net faster than any real port, and its speed; NULL: none */
    uint32_t n_gpus, n_gpus_allocated;
    MachineGpu *gpu;
    uint32_t nics; /* ports, without bridges and virtual ports if there are others */
    /* ports that share a PCIe switch with a GPU; 0: not known */
    uint32_t nics_near;
    double net_bandwidth;      /* bytes/s of all of `nics`; 0: not known */
    char *gpu_pairs, *gpu_nic; /* matrices: "NV18=28", codes of pairs; else NULL */
    GPtrArray *warning;        /* texts */
} MachineFile;

/* Reads the file of any of the formats; `sheets` have to outlive it. KILTER_ERROR_INPUT names file
 * and line and says what was expected: also for NCCL's graph files, for files without GPUs, and for
 * other formats. */
MachineFile *machine_file_read(const char *file, const Sheets *sheets, GError **error);
/* The same from text, which ends in '\0' after `length` bytes; messages call it `file`. */
MachineFile *machine_file_parse(const char *file, const char *text, size_t length,
                                const Sheets *sheets, GError **error);
AUTOPTR(machine_file_free, MachineFile)

/* "h100-sxm", or "2 rtx-a6000 + 2 rtx-3090"; NULL if a GPU has no sheet. Caller frees. */
char *machine_file_devices(const MachineFile *machine, const DeviceSheet *all);

/* Bytes/s between GPUs of the machine, per GPU and direction, the least of all: of its NVLinks or
 * xGMI links where they connect all GPUs, else of PCIe. `all`: the data sheet of all GPUs; NULL: by
 * the file. The result may be 0, not known. */
double machine_file_inner(const MachineFile *machine, const Sheets *sheets,
                          const DeviceSheet *all);

typedef struct {
    const char *name;         /* name of the cluster */
    const DeviceSheet *sheet; /* sheet of all of its GPUs; NULL: by the file */
    const LinkSheet *nic;     /* link of each port; NULL: as fast as the file says */
    uint32_t nics;            /* ports; 0: as many as the file has */
    uint32_t nodes;
} MachineImport;

/* The cluster. KILTER_ERROR_INPUT if neither file nor options give a number. */
Cluster *machine_file_cluster(const MachineFile *machine, const Sheets *sheets,
                              const MachineImport *import, GError **error);

/* --- the formats (private to data) --- */

bool nccl_topology_parse(const char *text, size_t length, const Sheets *sheets,
                         MachineFile *machine, GError **error);
bool smi_matrix_parse(const char *text, const Sheets *sheets, MachineFile *machine,
                      GError **error);

bool rocm_smi_parse(const char *text, const Sheets *sheets, MachineFile *machine,
                    GError **error);

enum { MACHINE_MAX_GPUS = 1024, MACHINE_MAX_NICS = 4096, MACHINE_FILE_BYTES = 8 << 20 };

/* Appends a GPU. KILTER_ERROR_INPUT if there are too many. */
MachineGpu *machine_file_add_gpu(MachineFile *machine, const char *product,
                                 GError **error);
/* Puts two GPUs and those of their groups in one group. */
void machine_file_join(MachineFile *machine, uint32_t a, uint32_t b);
/* Adds direct links that a GPU lists to another one, which may list them as well, and joins the
 * two. */
void machine_file_add_links(MachineFile *machine, uint32_t from, uint32_t to,
                            uint32_t count);
void machine_file_warn(MachineFile *machine, const char *format, ...) G_GNUC_PRINTF(2, 3);
