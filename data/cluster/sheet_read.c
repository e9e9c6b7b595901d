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

/* clang-format off */
#define RANGE_SHARE RANGE_NUMBER(1e-3, 1)
#define DEVICE_MEMBERS(X)                                                                              \
    X(DeviceText, DeviceSheet, memory, memory_bytes, BYTES(SMALLEST), true, ALONE, NAN)                \
    X(DeviceText, DeviceSheet, power, power_w, QUANTITY(POWER, SMALLEST, LARGEST), true, ALONE, NAN)   \
    X(DeviceText, DeviceSheet, machine, most_gpus, COUNT(1, GPUS_MAX), false, ALONE, 0)
#define LINK_SHEET_MEMBERS(X)                                                                          \
    X(LinkText, LinkSheet, bandwidth, bandwidth, BANDWIDTH, true, ALONE, NAN)                          \
    X(LinkText, LinkSheet, sums, sums, NUMBER(1, LARGEST_SLOWDOWN), false, ALONE, 0)                   \
    X(LinkText, LinkSheet, tree_sums, tree_sums, NUMBER(1, LARGEST_SLOWDOWN), false, ALONE, 0)         \
    X(LinkText, LinkSheet, own, own, NUMBER(0, 1), false, ALONE, 0)
#define ROW_MEMBERS(X)                                                                                 \
    X(RowText, LinkRow, least, least, NUMBER(0, 1e6), true, ALONE, NAN)                                \
    X(RowText, LinkRow, bandwidth, bandwidth, BANDWIDTH, true, ALONE, NAN)
#define LINKS_MEMBERS(X)                                                                               \
    X(LinksText, Sheets, fastest_port, fastest_port, BANDWIDTH, true, ALONE, NAN)                      \
    X(LinksText, Sheets, unknown_port, unknown_port, BANDWIDTH, true, ALONE, NAN)                      \
    X(LinksText, Sheets, most_nvlinks, most_nvlinks, COUNT(1, 1000), true, ALONE, NAN)
#define LINK_SHARE_MEMBERS(X)                                                                          \
    X(LinkShareText, LinkSheet, share, share, SHARE, true, ALONE, NAN)                           \
    X(LinkShareText, LinkSheet, base, base_s, TIME, true, ALONE, NAN)                                  \
    X(LinkShareText, LinkSheet, hop, hop_s, TIME, true, ALONE, NAN)                                    \
    X(LinkShareText, LinkSheet, to_nic, to_nic, SHARE, false, ALONE, 0)
/* Of links without a row of their own. */
#define OTHERS_MEMBERS(X)                                                                              \
    X(OthersText, LinkSheet, link_share, share, SHARE, true, ALONE, NAN)                         \
    X(OthersText, LinkSheet, base, base_s, TIME, true, ALONE, NAN)                                     \
    X(OthersText, LinkSheet, hop, hop_s, TIME, true, ALONE, NAN)
/* clang-format on */

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
    char *name, *description, *bridge, *source;
    DEVICE_MEMBERS(MEMBER_TEXT)
    ChipText chip;
    char **alias, **product, **pci;
    PeakText *peak;
    PortText *port;
    PeersText *peers;
    uint32_t alias_count, product_count, pci_count, peak_count, port_count, peers_count;
} DeviceText;
typedef struct {
    char *name, *source, **alias;
    uint32_t alias_count;
    LINK_SHEET_MEMBERS(MEMBER_TEXT)
} LinkText;
typedef struct {
    ROW_MEMBERS(MEMBER_TEXT)
} RowText;
typedef struct {
    LinkText *link;
    RowText *nvlink, *xgmi, *pcie;
    uint32_t link_count, nvlink_count, xgmi_count, pcie_count;
    char *source;
    LINKS_MEMBERS(MEMBER_TEXT)
} LinksText;
typedef struct {
    char *device, *format, *share, *source;
} DeviceShareText;
typedef struct {
    char *link, *source;
    LINK_SHARE_MEMBERS(MEMBER_TEXT)
} LinkShareText;
typedef struct {
    char *device_share, *source;
    OTHERS_MEMBERS(MEMBER_TEXT)
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
#define NAMES(key, Text, member) \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, Text, member, &NAME, 1, SHEET_NAMES_MAX)
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
    NAMES("aliases", DeviceText, alias),
    NAMES("names", DeviceText, product),
    NAMES("pci", DeviceText, pci),
    CHIP_SHEET_MEMBERS(CHIP_FIELD)
    LIST("peak", DeviceText, peak, PeakText, PEAK, SHEET_FORMATS),
    LIST("links", DeviceText, port, PortText, PORT, SHEET_MAX_LINKS),
    OPTIONAL_LIST("peers", DeviceText, peers, PeersText, PEERS, SHEET_MAX_PEERS),
    DEVICE_MEMBERS(MEMBER_FIELD) OPTIONAL_TEXT("bridge", DeviceText, bridge, NAME_MAX_BYTES),
    TEXT("source", DeviceText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_value_t DEVICE_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, DeviceText, DEVICE)};

static const cyaml_schema_field_t LINK[] = {
    TEXT("name", LinkText, name, NAME_MAX_BYTES), NAMES("aliases", LinkText, alias),
    LINK_SHEET_MEMBERS(MEMBER_FIELD)
    TEXT("source", LinkText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t ROW[] = {ROW_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t LINKS[] = {
    LIST("links", LinksText, link, LinkText, LINK, SHEET_ROWS_MAX),
    LIST("nvlink", LinksText, nvlink, RowText, ROW, SHEET_ROWS_MAX), LIST("xgmi", LinksText, xgmi, RowText, ROW, SHEET_ROWS_MAX),
    LIST("pcie", LinksText, pcie, RowText, ROW, SHEET_ROWS_MAX),
    LINKS_MEMBERS(MEMBER_FIELD) TEXT("source", LinksText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_value_t LINKS_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, LinksText, LINKS)};

static const cyaml_schema_field_t DEVICE_SHARE[] = {
    TEXT("device", DeviceShareText, device, NAME_MAX_BYTES), TEXT("format", DeviceShareText, format, NAME_MAX_BYTES),
    TEXT("share", DeviceShareText, share, NAME_MAX_BYTES),
    TEXT("source", DeviceShareText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t LINK_SHARE[] = {
    TEXT("link", LinkShareText, link, NAME_MAX_BYTES), LINK_SHARE_MEMBERS(MEMBER_FIELD)
    TEXT("source", LinkShareText, source, SHEET_TEXT_MAX), CYAML_FIELD_END};
static const cyaml_schema_field_t OTHERS[] = {
    TEXT("device_share", OthersText, device_share, NAME_MAX_BYTES), OTHERS_MEMBERS(MEMBER_FIELD)
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

static const Member DEVICE_MEMBER[] = {DEVICE_MEMBERS(MEMBER_ROW)},
                    LINK_SHEET_MEMBER[] = {LINK_SHEET_MEMBERS(MEMBER_ROW)},
                    ROW_MEMBER[] = {ROW_MEMBERS(MEMBER_ROW)},
                    LINKS_MEMBER[] = {LINKS_MEMBERS(MEMBER_ROW)},
                    LINK_SHARE_MEMBER[] = {LINK_SHARE_MEMBERS(MEMBER_ROW)},
                    OTHERS_MEMBER[] = {OTHERS_MEMBERS(MEMBER_ROW)};

static Yaml *open_data(const char *name, const cyaml_schema_value_t *schema,
                       GError **error)
{
    g_autofree char *path = path_bundled(name, error);
    return path ? yaml_read(path, schema, error) : NULL;
}

static bool find_format(const Yaml *yaml, const char *key, const char *name,
                        SheetFormat *format)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (uint32_t i = 0; i < SHEET_FORMATS; i++) {
        *format = (SheetFormat)i;
        if (strcmp(sheet_format_name(*format), name) == 0)
            return true;
        g_string_append_printf(known, "%s%s", i ? ", " : "", sheet_format_name(*format));
    }
    return yaml_wrong(yaml, key, "expected one of %s, got '%s'", known->str, name);
}

static char **copy_names(char **name, uint32_t n)
{
    char **copy = g_new0(char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = g_strdup(name[i]);
    return copy;
}

static bool read_peaks(const Yaml *yaml, const DeviceText *text, DeviceSheet *device)
{
    for (uint32_t i = 0; i < text->peak_count; i++) {
        SheetFormat format;
        if (!find_format(yaml, yaml_at(yaml, "peak[%u].format", i), text->peak[i].format,
                         &format) ||
            !yaml_quantity(yaml, yaml_at(yaml, "peak[%u].rate", i), text->peak[i].rate,
                           (YamlRange){QUANTITY_RATE, SMALLEST, LARGEST},
                           &device->peak[format]))
            return false;
    }
    device->chip.tf32 = device->peak[SHEET_TF32];
    return device->peak[SHEET_FP32] > 0 ||
           yaml_wrong(yaml, "peak", "expected the format fp32");
}

static bool read_ports(const Yaml *yaml, const Sheets *sheets, const DeviceText *text,
                       DeviceSheet *device)
{
    for (uint32_t i = 0; i < text->port_count; i++) {
        g_autoptr(GError) failure = NULL;
        if (!sheets_link(sheets, text->port[i].link, &failure))
            return yaml_wrong(yaml, yaml_at(yaml, "links[%u].link", i), "%s",
                              failure->message);
        if (!yaml_uint(yaml, yaml_at(yaml, "links[%u].count", i), text->port[i].count, 1,
                       1000, &device->link[i].count))
            return false;
        device->link[device->n_links++].name = g_strdup(text->port[i].link);
    }
    device->bridge = g_strdup(text->bridge);
    g_autoptr(GError) failure = NULL;
    return !text->bridge || sheets_link(sheets, text->bridge, &failure) ||
           yaml_pass_on(yaml, failure);
}

static bool read_sheet_peers(const Yaml *yaml, const DeviceText *text,
                             DeviceSheet *device)
{
    for (uint32_t i = 0; i < text->peers_count; i++) {
        g_autoptr(GError) failure = NULL;
        Peers peers;
        uint32_t n;
        if (!yaml_uint(yaml, yaml_at(yaml, "peers[%u].gpus", i), text->peers[i].gpus, 2,
                       PEERS_MAX_GPUS, &n))
            return false;
        if (!peers_parse(text->peers[i].links, n, &peers, &failure))
            return yaml_wrong(yaml, yaml_at(yaml, "peers[%u].links", i), "%s",
                              failure->message);
        device->peers[device->n_peers].gpus = n;
        device->peers[device->n_peers++].links = peers_text(&peers);
    }
    return true;
}

static void read_device(const Yaml *yaml, const Sheets *sheets, DeviceSheet *device)
{
    const DeviceText *text = yaml_data(yaml);
    device->name = g_strdup(text->name);
    device->description = g_strdup(text->description);
    device->source = g_strdup(text->source);
    device->alias = copy_names(text->alias, text->alias_count);
    device->product = copy_names(text->product, text->product_count);
    device->pci = copy_names(text->pci, text->pci_count);
    MEMBERS_READ(yaml, "", DEVICE_MEMBER, text, device);
    members_read(yaml, "", CHIP_MEMBER, CHIP_SHEET_NUMBERS, &text->chip, &device->chip);
    if (!text->chip.bandwidth)
        yaml_wrong(yaml, "bandwidth", "missing; expected this key");
    read_peaks(yaml, text, device);
    read_ports(yaml, sheets, text, device);
    read_sheet_peers(yaml, text, device);
}

/* Reads a table, whose rows must rise. */
static void read_table(const Yaml *yaml, const char *name, const RowText *text,
                       uint32_t n, LinkTable *table)
{
    table->row = g_new0(LinkRow, n);
    for (; table->n < n; table->n++) {
        LinkRow *row = &table->row[table->n];
        const char *key = yaml_at(yaml, "%s[%u]", name, table->n);
        if (MEMBERS_READ(yaml, key, ROW_MEMBER, &text[table->n], row) && table->n > 0 &&
            row->least <= row[-1].least)
            yaml_wrong(yaml, key, "expected more than the row before has");
    }
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
        const LinkText *of = &text->link[i];
        link->name = g_strdup(of->name);
        link->source = g_strdup(of->source);
        link->alias = copy_names(of->alias, of->alias_count);
        MEMBERS_READ(yaml, yaml_at(yaml, "links[%u]", i), LINK_SHEET_MEMBER, of, link);
    }
    read_table(yaml, "nvlink", text->nvlink, text->nvlink_count, &sheets->nvlink);
    read_table(yaml, "xgmi", text->xgmi, text->xgmi_count, &sheets->xgmi);
    read_table(yaml, "pcie", text->pcie, text->pcie_count, &sheets->pcie);
    MEMBERS_READ(yaml, "", LINKS_MEMBER, text, sheets);
    return yaml_is_good(yaml, error);
}

static const double LEAST_SHARE = 1e-3;

static void read_others(const Yaml *yaml, const OthersText *text, Sheets *sheets)
{
    LinkSheet other = {0};
    yaml_number(yaml, "others.device_share", text->device_share, LEAST_SHARE, 1,
                &sheets->share);
    MEMBERS_READ(yaml, "others", OTHERS_MEMBER, text, &other);
    sheets->base_s = other.base_s;
    sheets->hop_s = other.hop_s;
    for (uint32_t i = 0; i < sheets->n_links; i++) {
        sheets->link[i].share = other.share;
        sheets->link[i].base_s = other.base_s;
        sheets->link[i].hop_s = other.hop_s;
    }
}

/* A share of fp16 also applies to bf16, of the same units, unless bf16 has a share of its own. */
static void set_share(DeviceSheet *device, SheetFormat format, double share,
                      const char *source)
{
    KILTER_ASSERT(format < SHEET_FORMATS && share >= 0 && share <= 1);
    device->share[format] = share;
    put_block(device->share_source[format], g_strdup(source));
    if (format == SHEET_FP16 && !device->share_source[SHEET_BF16])
        set_share(device, SHEET_BF16, share, source);
}

/* Gives row i of the devices' shares to `device` if it names that; NULL: checks the row. */
static void read_device_share(const Yaml *yaml, uint32_t i, DeviceSheet *device)
{
    const DeviceShareText *text = &((const SharesText *)yaml_data(yaml))->device[i];
    SheetFormat format;
    double share;
    if (device && !device_sheet_is_called(device, text->device))
        return;
    if (find_format(yaml, yaml_at(yaml, "devices[%u].format", i), text->format,
                    &format) &&
        yaml_number(yaml, yaml_at(yaml, "devices[%u].share", i), text->share, LEAST_SHARE,
                    1, &share) &&
        device)
        set_share(device, format, share, text->source);
}

static bool read_link_share(const Yaml *yaml, uint32_t i, const LinkShareText *text,
                            Sheets *sheets)
{
    const char *key = yaml_at(yaml, "links[%u]", i);
    g_autoptr(GError) failure = NULL;
    LinkSheet *link = (LinkSheet *)sheets_link(sheets, text->link, &failure);
    if (!link)
        return yaml_wrong(yaml, yaml_at(yaml, "%s.link", key), "%s", failure->message);
    put_block(link->share_source, g_strdup(text->source));
    return MEMBERS_READ(yaml, key, LINK_SHARE_MEMBER, text, link);
}

static bool read_shares(Sheets *sheets, GError **error)
{
    const Yaml *yaml = sheets->shares =
        open_data("sustained.yaml", &SHARES_SCHEMA, error);
    if (!yaml)
        return false;
    const SharesText *text = yaml_data(yaml);
    read_others(yaml, text->others, sheets);
    for (uint32_t i = 0; i < text->device_count; i++)
        read_device_share(yaml, i, NULL);
    for (uint32_t i = 0; i < text->link_count; i++)
        read_link_share(yaml, i, &text->link[i], sheets);
    return yaml_is_good(yaml, error);
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
    if (!yaml)
        return false;
    read_device(yaml, sheets, device);
    for (uint32_t format = 0; format < SHEET_FORMATS; format++)
        device->share[format] = sheets->share;
    for (uint32_t row = 0; row < shares->device_count; row++)
        read_device_share(sheets->shares, row, device);
    const bool good = yaml_is_good(yaml, error);
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
        g_autoptr(GError) failure = NULL;
        if (!sheets_device(sheets, shares->device[i].device, &failure))
            return yaml_fail(sheets->shares, error,
                             yaml_at(sheets->shares, "devices[%u].device", i), "%s",
                             failure->message);
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
