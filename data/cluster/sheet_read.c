/* Reads data sheets. data/schemas/device-file.json and links-file.json describe the keys. */
#include <cyaml/cyaml.h>
#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/path.h"
#include "data/cluster/chip_yaml.h"
#include "data/cluster/sheet.h"

enum { SHEET_TEXT_MAX = 1000, SHEET_NAMES_MAX = 16, SHEET_ROWS_MAX = 1000 };

/* --- texts --- */

typedef struct {
    char *format, *rate;
} PeakText;
typedef struct {
    char *link, *count;
} PortText;
typedef struct {
    char *gpus, *links, *source;
} PeersText;
typedef struct {
    char *name, *description, *memory, *power, *machine, *bridge, *source;
    ChipText chip;
    char **alias, **product, **pci;
    PeakText *peak;
    PortText *port;
    PeersText *peers;
    uint32_t alias_count, product_count, pci_count, peak_count, port_count, peers_count;
} DeviceText;
typedef struct {
    char *name, *bandwidth, *sums, *tree_sums, *own, *source;
} LinkText;
typedef struct {
    char *least, *bandwidth;
} RowText;
typedef struct {
    LinkText *link;
    RowText *nvlink, *xgmi, *pcie;
    uint32_t link_count, nvlink_count, xgmi_count, pcie_count;
    char *fastest_port, *unknown_port, *most_nvlinks, *source;
} LinksText;
typedef struct {
    char *device, *format, *share, *source;
} DeviceShareText;
typedef struct {
    char *link, *share, *base, *hop, *to_nic, *source;
} LinkShareText;
typedef struct {
    char *device_share, *link_share, *base, *hop, *source;
} OthersText;
typedef struct {
    DeviceShareText *device;
    LinkShareText *link;
    uint32_t device_count, link_count;
    OthersText *others;
} SharesText;

/* clang-format off */
static const cyaml_schema_value_t NAME = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, NAME_MAX_BYTES)};
#define NAMES(key, member) \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, DeviceText, member, &NAME, 1, SHEET_NAMES_MAX)
static const cyaml_schema_field_t PEAK[] = {
    TEXT("format", PeakText, format, NAME_MAX_BYTES),
    TEXT("rate", PeakText, rate, NAME_MAX_BYTES), CYAML_FIELD_END};
static const cyaml_schema_field_t PORT[] = {
    TEXT("link", PortText, link, NAME_MAX_BYTES),
    TEXT("count", PortText, count, NAME_MAX_BYTES), CYAML_FIELD_END};
static const cyaml_schema_field_t PEERS[] = {
    TEXT("gpus", PeersText, gpus, NAME_MAX_BYTES), TEXT("links", PeersText, links, SHEET_TEXT_MAX),
    TEXT("source", PeersText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
#define CHIP_FIELD(T, V, key, ...) OPTIONAL_TEXT(#key, DeviceText, chip.key, NAME_MAX_BYTES),
static const cyaml_schema_field_t DEVICE[] = {
    TEXT("name", DeviceText, name, NAME_MAX_BYTES), TEXT("description", DeviceText, description, SHEET_TEXT_MAX),
    NAMES("aliases", alias),
    NAMES("names", product),
    NAMES("pci", pci),
    CHIP_SHEET_MEMBERS(CHIP_FIELD)
    LIST("peak", DeviceText, peak, PeakText, PEAK, SHEET_FORMATS),
    TEXT("memory", DeviceText, memory, NAME_MAX_BYTES),
    LIST("links", DeviceText, port, PortText, PORT, SHEET_MAX_LINKS),
    OPTIONAL_LIST("peers", DeviceText, peers, PeersText, PEERS, SHEET_MAX_PEERS),
    OPTIONAL_TEXT("machine", DeviceText, machine, NAME_MAX_BYTES),
    OPTIONAL_TEXT("bridge", DeviceText, bridge, NAME_MAX_BYTES), TEXT("power", DeviceText, power, NAME_MAX_BYTES),
    TEXT("source", DeviceText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_value_t DEVICE_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, DeviceText, DEVICE)};

static const cyaml_schema_field_t LINK[] = {
    TEXT("name", LinkText, name, NAME_MAX_BYTES), TEXT("bandwidth", LinkText, bandwidth, NAME_MAX_BYTES),
    OPTIONAL_TEXT("sums", LinkText, sums, NAME_MAX_BYTES), OPTIONAL_TEXT("tree_sums", LinkText, tree_sums, NAME_MAX_BYTES),
    OPTIONAL_TEXT("own", LinkText, own, NAME_MAX_BYTES),
    TEXT("source", LinkText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t ROW[] = {
    TEXT("least", RowText, least, NAME_MAX_BYTES), TEXT("bandwidth", RowText, bandwidth, NAME_MAX_BYTES), CYAML_FIELD_END};
static const cyaml_schema_field_t LINKS[] = {
    LIST("links", LinksText, link, LinkText, LINK, SHEET_ROWS_MAX),
    LIST("nvlink", LinksText, nvlink, RowText, ROW, SHEET_ROWS_MAX), LIST("xgmi", LinksText, xgmi, RowText, ROW, SHEET_ROWS_MAX),
    LIST("pcie", LinksText, pcie, RowText, ROW, SHEET_ROWS_MAX),
    TEXT("fastest_port", LinksText, fastest_port, NAME_MAX_BYTES), TEXT("unknown_port", LinksText, unknown_port, NAME_MAX_BYTES),
    TEXT("most_nvlinks", LinksText, most_nvlinks, NAME_MAX_BYTES), TEXT("source", LinksText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_value_t LINKS_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, LinksText, LINKS)};

static const cyaml_schema_field_t DEVICE_SHARE[] = {
    TEXT("device", DeviceShareText, device, NAME_MAX_BYTES), TEXT("format", DeviceShareText, format, NAME_MAX_BYTES),
    TEXT("share", DeviceShareText, share, NAME_MAX_BYTES),
    TEXT("source", DeviceShareText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t LINK_SHARE[] = {
    TEXT("link", LinkShareText, link, NAME_MAX_BYTES), TEXT("share", LinkShareText, share, NAME_MAX_BYTES),
    TEXT("base", LinkShareText, base, NAME_MAX_BYTES), TEXT("hop", LinkShareText, hop, NAME_MAX_BYTES),
    OPTIONAL_TEXT("to_nic", LinkShareText, to_nic, NAME_MAX_BYTES), TEXT("source", LinkShareText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t OTHERS[] = {
    TEXT("device_share", OthersText, device_share, NAME_MAX_BYTES),
    TEXT("link_share", OthersText, link_share, NAME_MAX_BYTES), TEXT("base", OthersText, base, NAME_MAX_BYTES),
    TEXT("hop", OthersText, hop, NAME_MAX_BYTES),
    TEXT("source", OthersText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t SHARES[] = {
    LIST("devices", SharesText, device, DeviceShareText, DEVICE_SHARE, SHEET_ROWS_MAX),
    LIST("links", SharesText, link, LinkShareText, LINK_SHARE, SHEET_ROWS_MAX),
    CYAML_FIELD_MAPPING_PTR("others", CYAML_FLAG_POINTER, SharesText, others, OTHERS),
    CYAML_FIELD_END};
static const cyaml_schema_value_t SHARES_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, SharesText, SHARES)};
/* clang-format on */

/* --- numbers --- */

static Yaml *open_data(const char *name, const cyaml_schema_value_t *schema,
                       GError **error)
{
    g_autofree char *path = path_bundled(name, error);
    return path ? yaml_read(path, schema, error) : NULL;
}

static bool find_format(const Yaml *yaml, const char *key, const char *name,
                        SheetFormat *format, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (uint32_t i = 0; i < SHEET_FORMATS; i++) {
        *format = (SheetFormat)i;
        if (strcmp(sheet_format_name(*format), name) == 0)
            return true;
        g_string_append_printf(known, "%s%s", i ? ", " : "", sheet_format_name(*format));
    }
    return yaml_fail(yaml, error, key, "expected one of %s, got '%s'", known->str, name);
}

static char **copy_names(char **name, uint32_t n)
{
    char **copy = g_new0(char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = g_strdup(name[i]);
    return copy;
}

static bool read_peaks(const Yaml *yaml, const DeviceText *text, DeviceSheet *device,
                       GError **error)
{
    for (uint32_t i = 0; i < text->peak_count; i++) {
        g_autofree char *name = g_strdup_printf("peak[%u].format", i);
        g_autofree char *rate = g_strdup_printf("peak[%u].rate", i);
        SheetFormat format;
        if (!find_format(yaml, name, text->peak[i].format, &format, error) ||
            !yaml_quantity(yaml, rate, text->peak[i].rate,
                           (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST},
                           &device->peak[format], error))
            return false;
    }
    device->chip.tf32 = device->peak[SHEET_TF32];
    device->chip.fp4 = device->peak[SHEET_FP4];
    return device->peak[SHEET_FP32] > 0 ||
           yaml_fail(yaml, error, "peak", "expected the format fp32");
}

static bool read_ports(const Yaml *yaml, const Sheets *sheets, const DeviceText *text,
                       DeviceSheet *device, GError **error)
{
    for (uint32_t i = 0; i < text->port_count; i++) {
        g_autofree char *link = g_strdup_printf("links[%u].link", i);
        g_autofree char *count = g_strdup_printf("links[%u].count", i);
        g_autoptr(GError) failure = NULL;
        if (!sheets_link(sheets, text->port[i].link, &failure))
            return yaml_fail(yaml, error, link, "%s", failure->message);
        if (!yaml_uint(yaml, count, text->port[i].count, 1, 1000, &device->link[i].count,
                       error))
            return false;
        device->link[device->n_links++].name = g_strdup(text->port[i].link);
    }
    device->bridge = g_strdup(text->bridge);
    return !text->bridge || sheets_link(sheets, text->bridge, error);
}

static bool read_sheet_peers(const Yaml *yaml, const DeviceText *text,
                             DeviceSheet *device, GError **error)
{
    for (uint32_t i = 0; i < text->peers_count; i++) {
        g_autofree char *gpus = g_strdup_printf("peers[%u].gpus", i);
        g_autofree char *links = g_strdup_printf("peers[%u].links", i);
        g_autoptr(GError) failure = NULL;
        Peers peers;
        uint32_t n;
        if (!yaml_uint(yaml, gpus, text->peers[i].gpus, 2, PEERS_MAX_GPUS, &n, error))
            return false;
        if (!peers_parse(text->peers[i].links, n, &peers, &failure))
            return yaml_fail(yaml, error, links, "%s", failure->message);
        device->peers[device->n_peers].gpus = n;
        device->peers[device->n_peers++].links = peers_text(&peers);
    }
    return true;
}

static bool read_device(const Yaml *yaml, const Sheets *sheets, DeviceSheet *device,
                        GError **error)
{
    const DeviceText *text = yaml_data(yaml);
    device->name = g_strdup(text->name);
    device->description = g_strdup(text->description);
    device->source = g_strdup(text->source);
    device->alias = copy_names(text->alias, text->alias_count);
    device->product = copy_names(text->product, text->product_count);
    device->pci = copy_names(text->pci, text->pci_count);
    double bytes = 0;
    if (!yaml_quantity(yaml, "memory", text->memory,
                       (YamlRange){QUANTITY_BYTES, SMALLEST, LARGEST}, &bytes, error) ||
        !yaml_quantity(yaml, "power", text->power,
                       (YamlRange){QUANTITY_POWER, SMALLEST, LARGEST}, &device->power_w,
                       error) ||
        (text->machine && !yaml_uint(yaml, "machine", text->machine, 1, GPUS_MAX,
                                     &device->most_gpus, error)) ||
        !members_read(yaml, "", CHIP_MEMBER, CHIP_SHEET_NUMBERS, &text->chip,
                      &device->chip, error))
        return false;
    if (device->chip.bandwidth == 0)
        return yaml_fail(yaml, error, "bandwidth", "missing; expected this key");
    device->memory_bytes = (uint64_t)bytes;
    return read_peaks(yaml, text, device, error) &&
           read_ports(yaml, sheets, text, device, error) &&
           read_sheet_peers(yaml, text, device, error);
}

/* Reads a table, whose rows must rise. */
static bool read_table(const Yaml *yaml, const char *name, const RowText *text,
                       uint32_t n, LinkTable *table, GError **error)
{
    table->row = g_new0(LinkRow, n);
    for (; table->n < n; table->n++) {
        LinkRow *row = &table->row[table->n];
        g_autofree char *least = g_strdup_printf("%s[%u].least", name, table->n);
        g_autofree char *bandwidth = g_strdup_printf("%s[%u].bandwidth", name, table->n);
        const double low = table->n ? nextafter(row[-1].least, INFINITY) : 0;
        if (!yaml_number(yaml, least, text[table->n].least, low, 1e6, &row->least,
                         error) ||
            !yaml_quantity(yaml, bandwidth, text[table->n].bandwidth,
                           (YamlRange){QUANTITY_BANDWIDTH, SMALLEST, LARGEST},
                           &row->bandwidth, error))
            return false;
    }
    return true;
}

static bool read_factor(const Yaml *yaml, uint32_t i, const char *name, const char *text,
                        double low, double *value, GError **error)
{
    g_autofree char *key = g_strdup_printf("links[%u].%s", i, name);
    return !text || yaml_number(yaml, key, text, low, low > 0 ? LARGEST_SLOWDOWN : 1,
                                value, error);
}

static bool read_links(Sheets *sheets, GError **error)
{
    g_autoptr(Yaml) yaml = open_data("links.yaml", &LINKS_SCHEMA, error);
    if (!yaml)
        return false;
    const LinksText *text = yaml_data(yaml);
    sheets->link = g_new0(LinkSheet, text->link_count);
    for (uint32_t i = 0; i < text->link_count; i++) {
        LinkSheet *link = &sheets->link[sheets->n_links++];
        g_autofree char *key = g_strdup_printf("links[%u].bandwidth", i);
        const LinkText *of = &text->link[i];
        link->name = g_strdup(of->name);
        link->source = g_strdup(of->source);
        if (!yaml_quantity(yaml, key, of->bandwidth,
                           (YamlRange){QUANTITY_BANDWIDTH, SMALLEST, LARGEST},
                           &link->bandwidth, error) ||
            !read_factor(yaml, i, "sums", of->sums, 1, &link->sums, error) ||
            !read_factor(yaml, i, "tree_sums", of->tree_sums, 1, &link->tree_sums,
                         error) ||
            !read_factor(yaml, i, "own", of->own, 0, &link->own, error))
            return false;
    }
    return read_table(yaml, "nvlink", text->nvlink, text->nvlink_count, &sheets->nvlink,
                      error) &&
           read_table(yaml, "xgmi", text->xgmi, text->xgmi_count, &sheets->xgmi, error) &&
           read_table(yaml, "pcie", text->pcie, text->pcie_count, &sheets->pcie, error) &&
           yaml_quantity(yaml, "fastest_port", text->fastest_port,
                         (YamlRange){QUANTITY_BANDWIDTH, SMALLEST, LARGEST},
                         &sheets->fastest_port, error) &&
           yaml_quantity(yaml, "unknown_port", text->unknown_port,
                         (YamlRange){QUANTITY_BANDWIDTH, SMALLEST, LARGEST},
                         &sheets->unknown_port, error) &&
           yaml_uint(yaml, "most_nvlinks", text->most_nvlinks, 1, 1000,
                     &sheets->most_nvlinks, error);
}

static const double LEAST_SHARE = 1e-3;

static bool read_others(const Yaml *yaml, const OthersText *text, Sheets *sheets,
                        GError **error)
{
    double share;
    if (!yaml_number(yaml, "others.device_share", text->device_share, LEAST_SHARE, 1,
                     &sheets->share, error) ||
        !yaml_number(yaml, "others.link_share", text->link_share, LEAST_SHARE, 1, &share,
                     error) ||
        !yaml_quantity(yaml, "others.base", text->base,
                       (YamlRange){QUANTITY_TIME, 0, LONGEST_S}, &sheets->base_s,
                       error) ||
        !yaml_quantity(yaml, "others.hop", text->hop,
                       (YamlRange){QUANTITY_TIME, 0, LONGEST_S}, &sheets->hop_s, error))
        return false;
    for (uint32_t i = 0; i < sheets->n_links; i++) {
        sheets->link[i].share = share;
        sheets->link[i].base_s = sheets->base_s;
        sheets->link[i].hop_s = sheets->hop_s;
    }
    return true;
}

/* A share of fp16 also applies to bf16, of the same units, unless bf16 has a share of its own. */
static void set_share(DeviceSheet *device, SheetFormat format, double share,
                      const char *source)
{
    KILTER_ASSERT(format < SHEET_FORMATS && share >= 0 && share <= 1);
    device->share[format] = share;
    g_free(device->share_source[format]);
    device->share_source[format] = g_strdup(source);
    if (format == SHEET_FP16 && !device->share_source[SHEET_BF16])
        set_share(device, SHEET_BF16, share, source);
}

/* Gives row i of the devices' shares to `device` if it names that; NULL: checks the row. */
static bool read_device_share(const Yaml *yaml, uint32_t i, DeviceSheet *device,
                              GError **error)
{
    const DeviceShareText *text = &((const SharesText *)yaml_data(yaml))->device[i];
    if (device && !device_sheet_is_called(device, text->device))
        return true;
    g_autofree char *format_key = g_strdup_printf("devices[%u].format", i);
    g_autofree char *share_key = g_strdup_printf("devices[%u].share", i);
    SheetFormat format;
    double share;
    if (!find_format(yaml, format_key, text->format, &format, error) ||
        !yaml_number(yaml, share_key, text->share, LEAST_SHARE, 1, &share, error))
        return false;
    if (device)
        set_share(device, format, share, text->source);
    return true;
}

static bool read_link_share(const Yaml *yaml, uint32_t i, const LinkShareText *text,
                            Sheets *sheets, GError **error)
{
    g_autofree char *name = g_strdup_printf("links[%u].link", i);
    g_autofree char *share = g_strdup_printf("links[%u].share", i);
    g_autofree char *base = g_strdup_printf("links[%u].base", i);
    g_autofree char *hop = g_strdup_printf("links[%u].hop", i);
    g_autofree char *to_nic = g_strdup_printf("links[%u].to_nic", i);
    g_autoptr(GError) failure = NULL;
    LinkSheet *link = (LinkSheet *)sheets_link(sheets, text->link, &failure);
    if (!link)
        return yaml_fail(yaml, error, name, "%s", failure->message);
    g_free(link->share_source);
    link->share_source = g_strdup(text->source);
    return yaml_number(yaml, share, text->share, LEAST_SHARE, 1, &link->share, error) &&
           yaml_quantity(yaml, base, text->base, (YamlRange){QUANTITY_TIME, 0, LONGEST_S},
                         &link->base_s, error) &&
           yaml_quantity(yaml, hop, text->hop, (YamlRange){QUANTITY_TIME, 0, LONGEST_S},
                         &link->hop_s, error) &&
           (!text->to_nic || yaml_number(yaml, to_nic, text->to_nic, LEAST_SHARE, 1,
                                         &link->to_nic, error));
}

static bool read_shares(Sheets *sheets, GError **error)
{
    const Yaml *yaml = sheets->shares =
        open_data("sustained.yaml", &SHARES_SCHEMA, error);
    if (!yaml)
        return false;
    const SharesText *text = yaml_data(yaml);
    bool good = read_others(yaml, text->others, sheets, error);
    for (uint32_t i = 0; good && i < text->device_count; i++)
        good = read_device_share(yaml, i, NULL, error);
    for (uint32_t i = 0; good && i < text->link_count; i++)
        good = read_link_share(yaml, i, &text->link[i], sheets, error);
    return good;
}

/* --- all of them, or those that are asked for --- */

/* Reads the sheet of file i unless it is there. */
static bool load_device(Sheets *sheets, uint32_t i, GError **error)
{
    DeviceSheet *device = &sheets->device[i];
    if (device->name)
        return true;
    const SharesText *shares = yaml_data(sheets->shares);
    g_autofree char *file = g_strdup_printf("devices/%s.yaml", sheets->file[i]);
    g_autoptr(Yaml) yaml = open_data(file, &DEVICE_SCHEMA, error);
    bool good = yaml && read_device(yaml, sheets, device, error);
    for (uint32_t format = 0; format < SHEET_FORMATS; format++)
        device->share[format] = sheets->share;
    for (uint32_t row = 0; good && row < shares->device_count; row++)
        good = read_device_share(sheets->shares, row, device, error);
    if (!good)
        device_sheet_clear(device);
    return good;
}

static bool load_devices(Sheets *sheets, GError **error)
{
    const SharesText *shares = yaml_data(sheets->shares);
    for (uint32_t i = 0; i < sheets->n_devices; i++)
        if (!load_device(sheets, i, error))
            return false;
    for (uint32_t i = 0; i < shares->device_count; i++) {
        g_autofree char *name = g_strdup_printf("devices[%u].device", i);
        g_autoptr(GError) failure = NULL;
        if (!sheets_device(sheets, shares->device[i].device, &failure))
            return yaml_fail(sheets->shares, error, name, "%s", failure->message);
    }
    return true;
}

Sheets *sheets_open(GError **error)
{
    g_autoptr(Sheets) sheets = g_new0(Sheets, 1);
    sheets->file = path_list("devices", ".yaml");
    sheets->n_devices = g_strv_length(sheets->file);
    sheets->device = g_new0(DeviceSheet, sheets->n_devices + 1);
    return read_links(sheets, error) && read_shares(sheets, error)
               ? g_steal_pointer(&sheets)
               : NULL;
}

Sheets *sheets_load(GError **error)
{
    g_autoptr(Sheets) sheets = sheets_open(error);
    return sheets && load_devices(sheets, error) ? g_steal_pointer(&sheets) : NULL;
}

const DeviceSheet *sheets_open_device(Sheets *sheets, const char *name, GError **error)
{
    g_autofree char *file = g_ascii_strdown(name, -1);
    for (uint32_t i = 0; i < sheets->n_devices; i++)
        if (strcmp(sheets->file[i], file) == 0) {
            if (!load_device(sheets, i, error))
                return NULL;
            if (g_ascii_strcasecmp(sheets->device[i].name, name) == 0)
                return &sheets->device[i];
        }
    return load_devices(sheets, error) ? sheets_device(sheets, name, error) : NULL;
}
