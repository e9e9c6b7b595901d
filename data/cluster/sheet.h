/* Data sheets: what devices and links do at best, and the share of it that training reaches.
 *
 * Devices are data/devices/NAME.yaml on the search path, links data/links.yaml, shares
 * data/sustained.yaml. Each number there has its unit and its source. Peaks are those of dense
 * numbers, per device; bandwidths of links are those of one direction. */
#ifndef KILTER_DATA_CLUSTER_SHEET_H
#define KILTER_DATA_CLUSTER_SHEET_H

#include "data/cluster/cluster.h"

/* Number formats that peaks are given for. */
#define SHEET_FORMAT_TABLE(X) \
    X(FP64, "fp64")           \
    X(FP32, "fp32")           \
    X(TF32, "tf32")           \
    X(FP16, "fp16")           \
    X(BF16, "bf16")           \
    X(FP8, "fp8")             \
    X(FP4, "fp4")

typedef enum {
#define X(id, name) SHEET_##id,
    SHEET_FORMAT_TABLE(X)
#undef X
        SHEET_FORMATS
} SheetFormat;

const char *sheet_format_name(SheetFormat format);

enum { SHEET_MAX_LINKS = 4 };

typedef struct {
    char *name, *description, *source;
    char **alias, **product,
        **pci;        /* names that people, drivers ("NVIDIA H200") and the PCI bus
                                     * ("10de:2335") give it; NULL after the last one */
    uint32_t sm, gcn; /* compute capability x 10, or AMD's number; 0: not given */
    double peak[SHEET_FORMATS];  /* FLOP/s; 0: the device has no such format */
    double share[SHEET_FORMATS]; /* 0 to 1: of the peak that training reaches */
    char *share_source
        [SHEET_FORMATS]; /* NULL: the share of devices that were not measured */
    uint64_t memory_bytes;
    double bandwidth; /* of its memory, bytes/s */
    double power_w;
    uint32_t n_links; /* kinds of links, the fastest first */
    struct {
        char *name;     /* in data/links.yaml */
        uint32_t count; /* of the device, to all others together */
    } link[SHEET_MAX_LINKS];
} DeviceSheet;

typedef struct {
    char *name, *source, *share_source;
    double bandwidth;     /* bytes/s of one direction of one link */
    double share;         /* 0 to 1: of large messages of collectives */
    double base_s, hop_s; /* a collective's latency: base + rounds x hop */
} LinkSheet;

/* What a link of a topology file counts: the last row whose `least` is not above the device's
 * number holds. */
typedef struct {
    double least, bandwidth;
} LinkRow;
typedef struct {
    uint32_t n;
    LinkRow *row;
} LinkTable;

typedef struct {
    uint32_t n_devices, n_links;
    DeviceSheet *device;
    LinkSheet *link;
    LinkTable nvlink;                  /* by the device's `sm` */
    LinkTable xgmi;                    /* by the digits of its `gcn` */
    LinkTable pcie;                    /* one lane, by GT/s */
    double fastest_port, unknown_port; /* bytes/s */
    uint32_t most_nvlinks;             /* of any device */
} Sheets;

/* Reads them all. KILTER_ERROR_INPUT with file, line, key and what was expected. */
Sheets *sheets_load(GError **error);
void sheets_free(Sheets *sheets);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sheets, sheets_free)

/* The device of that name or alias, in any case; KILTER_ERROR_INPUT lists the names. The others
 * give NULL for what no sheet names; a product's name may stand in a longer text, of which the
 * longest match counts ("NVIDIA H100 80GB HBM3 (UUID ...)"). */
const DeviceSheet *sheets_device(const Sheets *sheets, const char *name, GError **error);
const DeviceSheet *sheets_find_pci(const Sheets *sheets, const char *id);
const DeviceSheet *sheets_find_product(const Sheets *sheets, const char *text);

/* KILTER_ERROR_INPUT lists the names. */
const LinkSheet *sheets_link(const Sheets *sheets, const char *name, GError **error);

/* The row that holds; 0 below all of them. */
double link_table_at(const LinkTable *table, double number);

/* The device's type in a cluster: sustained rates, memory, sources. */
DeviceType device_sheet_type(const DeviceSheet *sheet);

/* Of `links` links of that kind together: the line of a collective among n ranks that passes each
 * port once (a ring). */
LinkCost link_sheet_line(const LinkSheet *link, double links, uint32_t n);

/* What a cluster's numbers give reason to ask: rates that are a data sheet's peak, which no training reaches. Texts; free
 * with g_ptr_array_unref. */
GPtrArray *sheets_warnings(const Sheets *sheets, const Cluster *cluster);

#endif
