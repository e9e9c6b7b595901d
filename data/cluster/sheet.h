/* Data sheets: the peak rates of devices and links, and the share of them that training reaches.
 *
 * Devices are data/devices/NAME.yaml on the search path, links data/links.yaml, shares
 * data/sustained.yaml. Each number there has its unit and its source. Peaks are for dense numbers,
 * per device; bandwidths of links are for one direction. */
#pragma once

#include "data/cluster/cluster.h"

/* The number formats of peaks. */
#define SHEET_FORMAT_TABLE(X) \
    X(FP64, "fp64")           \
    X(FP32, "fp32")           \
    X(TF32, "tf32")           \
    X(FP16, "fp16")           \
    X(BF16, "bf16")           \
    X(FP8, "fp8")             \
    X(FP4, "fp4")

#define SHEET_FORMAT_ID(id, name) SHEET_##id,
typedef enum { SHEET_FORMAT_TABLE(SHEET_FORMAT_ID) SHEET_FORMATS } SheetFormat;

const char *sheet_format_name(SheetFormat format);

enum { SHEET_MAX_LINKS = 4, SHEET_MAX_PEERS = 4 };

typedef struct {
    char *name, *description, *source;
    char **alias, **product,
        /* names used by people, by drivers ("NVIDIA H200") and on the PCI bus ("10de:2335"); NULL
         * after the last */
        **pci;
    Chip chip;
    double peak[SHEET_FORMATS];  /* FLOP/s; 0: the device has no such format */
    double share[SHEET_FORMATS]; /* 0 to 1: the part of the peak that training reaches */
    char *share_source
        [SHEET_FORMATS]; /* NULL: the default share of devices that were not measured */
    uint64_t memory_bytes;
    double power_w;
    uint32_t most_gpus; /* in the largest machines that are sold; 0: not known */
    uint32_t n_links;   /* number of kinds of links, fastest first */
    struct {
        char *name;     /* in data/links.yaml */
        uint32_t count; /* links of the device, to all others together */
    } link[SHEET_MAX_LINKS];
    uint32_t n_peers;
    struct {
        uint32_t gpus;
        /* the direct links in every machine with so many (data/cluster/peers.h) */
        char *links;
    } peers[SHEET_MAX_PEERS];
    char *bridge; /* the link of bridges between GPUs of some machines; NULL: none */
} DeviceSheet;

typedef struct {
    char *name, *source, *share_source;
    char **alias;
    double bandwidth; /* bytes/s of one direction of one link */
    double share;     /* 0 to 1: the part that large messages of collectives reach */
    double to_nic; /* the part that a message to a NIC reaches; 0: it is no way to NICs */
    double base_s, hop_s; /* a collective's latency: base + rounds x hop */
    /* how much longer a byte takes in switches that sum up, and in trees with them between
     * machines; 0: they do not */
    double sums, tree_sums;
    double own; /* of a byte's time on the link, that one of a rank's own part takes */
} LinkSheet;

/* The bandwidth of a link in a topology file: the last row whose `least` is not above the device's
 * number applies. */
typedef struct {
    double least, bandwidth;
} LinkRow;
typedef struct {
    uint32_t n;
    LinkRow *row;
} LinkTable;

typedef struct {
    uint32_t n_devices, n_links;
    DeviceSheet *device; /* of these files; without a name where it was not read yet */
    char **file;
    struct Yaml *shares; /* data/sustained.yaml */
    double share;        /* of devices without a row of their own */
    LinkSheet *link;
    LinkTable nvlink;                  /* by the device's `sm` */
    LinkTable xgmi;                    /* by the digits of its `gcn` */
    LinkTable pcie;                    /* one lane, by GT/s */
    double base_s, hop_s;              /* of links without a row of their own */
    double fastest_port, unknown_port; /* bytes/s */
    uint32_t most_nvlinks;             /* most NVLinks of any device */
} Sheets;

/* Reads all sheets. KILTER_ERROR_INPUT with file, line, key and what was expected. */
Sheets *sheets_load(GError **error);
/* The same without the devices, each of which sheets_open_device reads when it is asked for by its
 * name; an alias reads all. The functions below search among those that were read. */
Sheets *sheets_open(GError **error);
const DeviceSheet *sheets_open_device(Sheets *sheets, const char *name, GError **error);
AUTOPTR(sheets_free, Sheets)

/* The device of that name or alias, in any case, else by its words; KILTER_ERROR_INPUT suggests the
 * nearest. The other functions return NULL if no sheet has the name. A product's name may come
 * before a parenthesis ("NVIDIA H100 80GB HBM3 (UUID ...)"); it has the words of the sheet's name
 * and no others but those of vendors and kinds of memory, in any order, and an amount of memory
 * that is the sheet's. */
const DeviceSheet *sheets_device(const Sheets *sheets, const char *name, GError **error);
const DeviceSheet *sheets_find_pci(const Sheets *sheets, const char *id);
const DeviceSheet *sheets_find_product(const Sheets *sheets, const char *text);
/* The one product whose name begins as one that was cut short, "Tesla V100-SXM2...", and that has
 * about so much memory. */
const DeviceSheet *sheets_find_cut(const Sheets *sheets, const char *text, double bytes);
/* The device by the words of its name, alias or product, in any order: "a100_80gb", "RTX4090",
 * "nvidia_h100_80gb_hbm3". */
const DeviceSheet *sheets_find_words(const Sheets *sheets, const char *text);

/* KILTER_ERROR_INPUT lists the names. */
const LinkSheet *sheets_link(const Sheets *sheets, const char *name, GError **error);

/* The bandwidth by the row that applies; 0 below all rows. */
double link_table_at(const LinkTable *table, double number);

void device_sheet_clear(DeviceSheet *device);
/* Whether that is the device's name or an alias, in any case. */
bool device_sheet_is_called(const DeviceSheet *device, const char *name);
/* The direct links in machines with so many of the devices; NULL: not known, or a switch. */
const char *device_sheet_peers(const DeviceSheet *sheet, uint32_t gpus);

/* The device's type in a cluster: sustained rates, memory, sources. */
DeviceType device_sheet_type(const DeviceSheet *sheet);
/* Its number among a cluster's types, to which it is added if it is new. */
uint32_t cluster_type_of_sheet(Cluster *cluster, const DeviceSheet *sheet);

/* The line of a collective among n ranks that passes each port once (a ring), over `links` links of
 * that kind together. */
LinkCost link_sheet_line(const LinkSheet *link, double links, uint32_t n);

/* The link of that kind, "pcie", of the device; NULL: its sheet has none. */
const LinkSheet *device_sheet_link(const Sheets *sheets, const DeviceSheet *sheet,
                                   const char *kind);
/* Its switches are of that link. */
void machine_sum_by(Machine *machine, const LinkSheet *link);
/* Gives a machine, whose GPUs have that PCIe link or NULL, the port and region of the cluster's
 * machine with the slowest port. */
void machine_take_port(Machine *machine, const Cluster *cluster, const LinkSheet *pcie);
/* The port that `nics` of these links make for devices with that sheet (NULL: not known). */
Port link_sheet_port(const LinkSheet *nic, double nics, const Sheets *sheets,
                     const DeviceSheet *sheet);

/* Appends warnings about device types whose data sheets lack numbers that times of kernels
 * follow from: what is taken instead. None for types whose ops were fitted, or whose chip the
 * file leaves out; and about machines with more GPUs than any that is sold. Texts, to be freed with
 * g_free. */
void sheets_gaps(const Cluster *cluster, GPtrArray *list);

/* Warnings about a cluster's numbers: rates that equal a data sheet's peak, which no training
 * reaches. Texts; free with g_ptr_array_unref. Reads the sheets only if one of them has such a
 * rate; NULL with KILTER_ERROR_INPUT if it then cannot. */
GPtrArray *sheets_warnings(const Cluster *cluster, GError **error);
