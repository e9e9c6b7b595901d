/* Numbers that follow from data sheets once they are read (data/cluster/sheet_read.c). */
#include "data/cluster/sheet.h"

#include <math.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/yaml.h"

#define SHEET_FORMAT_NAME(id, name) [SHEET_##id] = name,
static const char *const FORMAT_NAME[] = {SHEET_FORMAT_TABLE(SHEET_FORMAT_NAME)};

NAMES_FUNCTION(sheet_format_name, SheetFormat, SHEET_FORMATS, FORMAT_NAME[of])

CLEAR_DEFINE(device_sheet_clear, DeviceSheet, device,
             free_each(device->name, device->description, device->source),
             g_strfreev(device->alias), g_strfreev(device->product),
             g_strfreev(device->pci), free_items(device->share_source, SHEET_FORMATS),
             free_column(device->peers, device->n_peers, links),
             free_column(device->link, device->n_links, name), g_free(device->bridge),
             *device = (DeviceSheet){0});

static CLEAR_DEFINE(link_sheet_clear, LinkSheet, link,
                    free_each(link->name, link->source, link->share_source),
                    g_strfreev(link->alias), *link = (LinkSheet){0});

FREE_DEFINE(sheets_free, Sheets, sheets,
            clear_items(sheets->device, sheets->n_devices, device_sheet_clear),
            clear_items(sheets->link, sheets->n_links, link_sheet_clear),
            g_free(sheets->device), g_strfreev(sheets->file), yaml_close(sheets->shares),
            free_each(sheets->link, sheets->nvlink.row, sheets->xgmi.row,
                      sheets->pcie.row));

/* In any case, with '_' and blanks as '-'. */
static bool sheet_is_called(const char *own, char **alias, const char *name)
{
    g_autofree char *plain = g_strdelimit(g_strdup(name), "_ ", '-');
    bool called = own && g_ascii_strcasecmp(own, plain) == 0;
    for (; !called && alias && *alias; alias++)
        called = g_ascii_strcasecmp(*alias, plain) == 0;
    return called;
}

bool device_sheet_is_called(const DeviceSheet *device, const char *name)
{
    return sheet_is_called(device->name, device->alias, name);
}

const DeviceSheet *sheets_device(const Sheets *sheets, const char *name, GError **error)
{
    g_autofree const char **known = g_new0(const char *, sheets->n_devices + 1);
    for (uint32_t i = 0; i < sheets->n_devices; i++) {
        if (device_sheet_is_called(&sheets->device[i], name))
            return &sheets->device[i];
        known[i] = sheets->device[i].name;
    }
    const DeviceSheet *found = sheets_find_words(sheets, name);
    if (found)
        return found;
    g_autofree char *expected = names_meant(
        name, known, "expected a name that kilter devices lists (data/devices)");
    return refused(error, "unknown device '%.60s'; %s", name, expected);
}

const DeviceSheet *sheets_find_pci(const Sheets *sheets, const char *id)
{
    for (uint32_t i = 0; i < sheets->n_devices; i++)
        if (g_strv_contains((const char *const *)sheets->device[i].pci, id))
            return &sheets->device[i];
    return NULL;
}

const LinkSheet *sheets_link(const Sheets *sheets, const char *name, GError **error)
{
    g_autofree const char **known = g_new0(const char *, sheets->n_links + 1);
    for (uint32_t i = 0; i < sheets->n_links; i++) {
        if (sheet_is_called(sheets->link[i].name, sheets->link[i].alias, name))
            return &sheets->link[i];
        known[i] = sheets->link[i].name;
    }
    g_autofree char *expected = names_expected(name, known);
    return refused(error, "unknown link '%.60s'; %s (data/links.yaml)", name, expected);
}

double link_table_at(const LinkTable *table, double number)
{
    double bandwidth = 0;
    for (uint32_t i = 0; i < table->n && table->row[i].least <= number; i++)
        bandwidth = table->row[i].bandwidth;
    return bandwidth;
}

static double sustained(const DeviceSheet *sheet, SheetFormat format)
{
    return sheet->peak[format] * sheet->share[format];
}

static void describe(GString *out, const DeviceSheet *sheet, SheetFormat format)
{
    if (sheet->peak[format] > 0)
        g_string_append_printf(
            out, " %s: %.4g of %.4g TFLOP/s (%s).", sheet_format_name(format),
            sustained(sheet, format) / 1e12, sheet->peak[format] / 1e12,
            sheet->share_source[format] ? sheet->share_source[format]
                                        : "the share of devices that were not measured");
}

/* The sheet's format for each format that models compute in. */
static const SheetFormat FORMAT_OF[NUMBERS] = {[NUMBERS_F32] = SHEET_FP32,
                                               [NUMBERS_F16] = SHEET_FP16,
                                               [NUMBERS_BF16] = SHEET_BF16,
                                               [NUMBERS_F8] = SHEET_FP8,
                                               [NUMBERS_F4] = SHEET_FP4};

DeviceType device_sheet_type(const DeviceSheet *sheet)
{
    DeviceType type = {.name = g_strdup(sheet->name),
                       .rate = sustained(sheet, SHEET_FP32),
                       .memory_bytes = sheet->memory_bytes,
                       .power_w = sheet->power_w,
                       .chip = sheet->chip,
                       .slowdown = 1,
                       .interference = 1};
    GString *source = g_string_new(NULL);
    g_string_append_printf(source, "data/devices/%s.yaml.", sheet->name);
    for (Numbers n = 0; n < NUMBERS; n++) {
        type.rates[n] = n == NUMBERS_F32 ? 0 : sustained(sheet, FORMAT_OF[n]);
        type.peaks[n] = sheet->peak[FORMAT_OF[n]];
        describe(source, sheet, FORMAT_OF[n]);
    }
    type.source = g_string_free(source, FALSE);
    return type;
}

uint32_t cluster_type_of_sheet(Cluster *cluster, const DeviceSheet *sheet)
{
    const uint32_t type = NAME_PLACE(cluster->type, cluster->n_types, name, sheet->name);
    if (type == cluster->n_types) {
        cluster->type = g_renew(DeviceType, cluster->type, type + 1);
        cluster->type[cluster->n_types++] = device_sheet_type(sheet);
    }
    return type;
}

const char *device_sheet_peers(const DeviceSheet *sheet, uint32_t gpus)
{
    for (uint32_t i = 0; i < sheet->n_peers; i++)
        if (sheet->peers[i].gpus == gpus)
            return sheet->peers[i].links;
    return NULL;
}

/* While latency decides, trees and halving take ceil(log2 n) rounds up and as many down. */
LinkCost link_sheet_line(const LinkSheet *link, double links, uint32_t n)
{
    KILTER_ASSERT(links >= 0 && n > 0);
    const double rounds = 2 * ceil(log2(MAX(n, 2)));
    return (LinkCost){link->base_s + rounds * link->hop_s,
                      links * link->bandwidth * link->share};
}

const LinkSheet *device_sheet_link(const Sheets *sheets, const DeviceSheet *sheet,
                                   const char *kind)
{
    for (uint32_t i = 0; sheet && i < sheet->n_links; i++)
        if (g_str_has_prefix(sheet->link[i].name, kind))
            return sheets_link(sheets, sheet->link[i].name, NULL);
    return NULL;
}

Port link_sheet_port(const LinkSheet *nic, double nics, const Sheets *sheets,
                     const DeviceSheet *sheet)
{
    KILTER_ASSERT(nics >= 0);
    const LinkSheet *pcie = device_sheet_link(sheets, sheet, "pcie");
    return (Port){.bandwidth = nics * nic->bandwidth * nic->share,
                  .gpu = pcie ? pcie->bandwidth * pcie->to_nic : 0,
                  .base_s = nic->base_s,
                  .hop_s = nic->hop_s,
                  .nics = (uint32_t)fmax(nics, 1)};
}

void machine_sum_by(Machine *machine, const LinkSheet *link)
{
    machine->sums = link->sums;
    machine->tree_sums = link->tree_sums;
}
