/* Topology files of NCCL and RCCL, by expat: one element after the other, no DTD and entities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/text.h"
#include "data/formats/machines/machine_file.h"

#ifdef KILTER_EXPAT
#include <expat.h>

enum { MAX_DEPTH = 64, MAX_ATTRIBUTES = 64, MAX_ATTRIBUTE_BYTES = 255 };

/* An open element: a PCI device, or another element (then all members are empty). */
typedef struct {
    bool nic;
    int32_t gpu; /* index in the machine's list; -1: not a GPU */
} Level;

typedef struct {
    XML_Parser parser;
    const Sheets *sheets;
    MachineFile *machine;
    GError *failure;
    bool in_system;
    uint32_t depth;
    Level level[MAX_DEPTH];
    GPtrArray *target;      /* [links] bus ids that links lead to */
    GArray *origin, *count; /* [links] index of the GPU; uint32_t */
    GHashTable *unknown;    /* names of elements that were skipped */
    GArray *has_element;    /* [GPUs] bool: a `gpu` element, not only a PCI device */
    uint32_t physical;      /* nets below a PCI device of a NIC's class */
    double physical_bandwidth, all_bandwidth;
} Reader;

static void fail(Reader *reader, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void fail(Reader *reader, const char *format, ...)
{
    if (reader->failure)
        return;
    TEXT_OF_ARGUMENTS(text, format);
    refuse(&reader->failure, "%s:%lu: %s", reader->machine->file,
           (unsigned long)XML_GetCurrentLineNumber(reader->parser), text);
    XML_StopParser(reader->parser, XML_FALSE);
}

/* The value of an attribute; "" if it is missing. */
static const char *attribute(const char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return "";
}

static uint32_t count_at(Reader *reader, const char **attributes, const char *name,
                         uint32_t most)
{
    const char *text = attribute(attributes, name);
    guint64 number = 0;
    if (*text && !g_ascii_string_to_unsigned(text, 10, 0, most, &number, NULL))
        fail(reader, "%s: expected a whole number from 0 to %u, got '%.60s'", name, most,
             text);
    return (uint32_t)number;
}

/* "0x10de" and "0x2330" as "10de:2330". Caller frees. */
static char *pci_id(const char *vendor, const char *device)
{
    if (!g_str_has_prefix(vendor, "0x") || !g_str_has_prefix(device, "0x"))
        return g_strdup("");
    char *id = g_strconcat(vendor + 2, ":", device + 2, NULL);
    for (char *c = id; *c; c++)
        *c = g_ascii_tolower(*c);
    return id;
}

/* Whether a PCI device is a GPU: a display or accelerator of a GPU vendor, since mainboards have
 * small displays, too. */
static bool nccl_topology_is_gpu(const char *class, const char *vendor)
{
    const bool maker =
        !*vendor || strcmp(vendor, "0x10de") == 0 || strcmp(vendor, "0x1002") == 0;
    return maker &&
           (g_str_has_prefix(class, "0x0302") || g_str_has_prefix(class, "0x0300") ||
            g_str_has_prefix(class, "0x0380") || g_str_has_prefix(class, "0x1200"));
}

/* Bytes/s of a PCI device's link as NCCL counts it: an unknown speed as 8 GT/s, an unknown width as
 * 16. */
static double pcie_bandwidth(Reader *reader, const char **attributes)
{
    const double unknown_speed = 8;
    const uint32_t unknown_width = 16;
    const char *text = attribute(attributes, "link_speed");
    char *end;
    const double speed = g_ascii_strtod(text, &end);
    uint32_t width = count_at(reader, attributes, "link_width", 64);
    const bool known = end != text && g_str_has_prefix(g_strchug(end), "GT/s");
    const double lane =
        link_table_at(&reader->sheets->pcie, known ? speed : unknown_speed);
    return lane * (width ? width : unknown_width);
}

static MachineGpu *add_gpu(Reader *reader)
{
    const gboolean no = FALSE;
    MachineGpu *gpu = machine_file_add_gpu(reader->machine, NULL, NULL);
    if (!gpu)
        fail(reader, "expected at most %d GPUs in a machine", MACHINE_MAX_GPUS);
    else
        g_array_append_val(reader->has_element, no);
    return gpu;
}

static void begin_pci(Reader *reader, const char **attributes, Level *level)
{
    MachineFile *machine = reader->machine;
    const char *class = attribute(attributes, "class");
    const char *vendor = attribute(attributes, "vendor");
    level->nic = g_str_has_prefix(class, "0x02");
    machine->nic_pci += level->nic;
    if (machine->nic_pci > MACHINE_MAX_NICS)
        fail(reader, "expected at most %d NICs in a machine", MACHINE_MAX_NICS);
    if (!nccl_topology_is_gpu(class, vendor))
        return;
    MachineGpu *gpu = add_gpu(reader);
    if (!gpu)
        return;
    machine->gpu_pci++;
    level->gpu = (int32_t)machine->n_gpus - 1;
    free_each(gpu->bus, gpu->pci);
    gpu->bus = g_ascii_strdown(attribute(attributes, "busid"), -1);
    gpu->pci = pci_id(vendor, attribute(attributes, "device"));
    gpu->pcie = pcie_bandwidth(reader, attributes);
}

static MachineGpu *open_gpu(Reader *reader)
{
    for (uint32_t i = reader->depth; i-- > 0;)
        if (reader->level[i].gpu >= 0)
            return &reader->machine->gpu[reader->level[i].gpu];
    return NULL;
}

static void begin_gpu(Reader *reader, const char **attributes, Level *level)
{
    MachineGpu *gpu = open_gpu(reader);
    gpu = gpu ? gpu : add_gpu(reader);
    if (!gpu)
        return;
    const uint32_t index = (uint32_t)(gpu - reader->machine->gpu);
    reader->machine->gpu_elements++;
    g_array_index(reader->has_element, gboolean, index) = TRUE;
    level->gpu = (int32_t)index;
    gpu->sm = count_at(reader, attributes, "sm", 100000);
    put_block(gpu->gcn, g_strdup(attribute(attributes, "gcn")));
    gpu->link_bandwidth =
        *gpu->gcn ? link_table_at(
                        &reader->sheets->xgmi, /* "gfx942" or "910" */
                        g_ascii_strtod(gpu->gcn + strcspn(gpu->gcn, "0123456789"), NULL))
                  : link_table_at(&reader->sheets->nvlink, gpu->sm);
}

static void begin_link(Reader *reader, const char **attributes, bool nvlink)
{
    enum { MOST_LINKS = 1000 };
    static const char SWITCH[] = "0x068000", CPU[] = "0x068001";
    MachineFile *machine = reader->machine;
    MachineGpu *gpu = open_gpu(reader);
    const char *class = attribute(attributes, "tclass");
    const uint32_t count = count_at(reader, attributes, "count", MOST_LINKS);
    if (!gpu) {
        fail(reader, "expected a link inside of a gpu element");
        return;
    }
    const bool to_cpu = g_str_has_prefix(class, CPU);
    const bool to_switch = g_str_has_prefix(class, SWITCH);
    const uint32_t index = (uint32_t)(gpu - machine->gpu);
    *(nvlink ? &machine->nvlink_elements : &machine->xgmi_elements) += 1;
    *(nvlink ? &machine->nvlink_sum : &machine->xgmi_sum) += count;
    gpu->links += count;
    gpu->to_cpu += to_cpu ? count : 0;
    machine->nvswitch = machine->nvswitch || to_switch;
    if (reader->target->len >= MACHINE_MAX_GPUS * MAX_DEPTH) {
        fail(reader, "expected fewer links in a machine");
        return;
    }
    if (to_cpu || count == 0)
        return;
    g_ptr_array_add(reader->target,
                    to_switch ? g_strdup("")
                              : g_ascii_strdown(attribute(attributes, "target"), -1));
    g_array_append_val(reader->origin, index);
    g_array_append_val(reader->count, count);
}

static void begin_net(Reader *reader, const char **attributes)
{
    static const double FAST_MBPS = 100e3, BYTES_OF_MBPS = 1e6 / 8;
    MachineFile *machine = reader->machine;
    const char *text = attribute(attributes, "speed");
    char *end;
    const double mbps = *text ? g_ascii_strtod(text, &end) : 0;
    if (*text && (*end || !(fabs(mbps) <= 1e15))) {
        fail(reader, "speed: expected a number of Mb/s, got '%.60s'", text);
        return;
    }
    if (machine->net_elements++ >= MACHINE_MAX_NICS)
        fail(reader, "expected at most %d nets in a machine", MACHINE_MAX_NICS);
    machine->net_mbps += fmax(mbps, 0);
    machine->nets_fast += mbps >= FAST_MBPS;
    const double bandwidth =
        mbps > 0 ? mbps * BYTES_OF_MBPS : reader->sheets->unknown_port;
    if (bandwidth > reader->sheets->fastest_port && !machine->absurd)
        machine->absurd =
            g_strdup_printf("net %.60s has a speed of %.0f Mb/s, which no port has (at "
                            "most %.0f Mb/s)",
                            attribute(attributes, "name"), mbps,
                            reader->sheets->fastest_port / BYTES_OF_MBPS);
    const bool physical = any_of(i, reader->depth, reader->level[i].nic);
    reader->physical += physical;
    reader->physical_bandwidth += physical ? bandwidth : 0;
    reader->all_bandwidth += bandwidth;
}

static void begin_root(Reader *reader, const char *name, const char **attributes)
{
    if (strcmp(name, "graphs") == 0 || strcmp(name, "graph") == 0)
        fail(reader,
             "this is a file of NCCL's graphs (its choice of rings and trees), not a "
             "topology; expected <system>, as NCCL_TOPO_DUMP_FILE writes it");
    else if (strcmp(name, "system") != 0)
        fail(reader, "expected <system>, the topology of NCCL or RCCL, got <%.60s>",
             name);
    reader->in_system = true;
    reader->machine->version = count_at(reader, attributes, "version", 1000);
}

static void XMLCALL begin(void *data, const char *name, const char **attributes)
{
    Reader *reader = data;
    if (reader->failure)
        return;
    for (uint32_t i = 0; attributes[i]; i++)
        if (i >= 2 * MAX_ATTRIBUTES || strlen(attributes[i]) > MAX_ATTRIBUTE_BYTES) {
            fail(reader, "expected at most %d attributes of %d bytes", MAX_ATTRIBUTES,
                 MAX_ATTRIBUTE_BYTES);
            return;
        }
    if (reader->depth == MAX_DEPTH) {
        fail(reader, "nested too deeply");
        return;
    }
    Level level = {.gpu = -1};
    if (!reader->in_system)
        begin_root(reader, name, attributes);
    else if (strcmp(name, "cpu") == 0)
        reader->machine->cpus++;
    else if (strcmp(name, "pci") == 0)
        begin_pci(reader, attributes, &level);
    else if (strcmp(name, "gpu") == 0)
        begin_gpu(reader, attributes, &level);
    else if (strcmp(name, "nvlink") == 0 || strcmp(name, "xgmi") == 0)
        begin_link(reader, attributes, *name == 'n');
    else if (strcmp(name, "net") == 0)
        begin_net(reader, attributes);
    else if (strcmp(name, "nic") != 0 && strcmp(name, "c2c") != 0)
        g_hash_table_add(reader->unknown, g_strndup(name, 60));
    reader->level[reader->depth++] = level;
}

static void XMLCALL end(void *data, const char *name)
{
    (void)name;
    Reader *reader = data;
    if (!reader->failure && reader->depth > 0)
        reader->depth--;
}

static void XMLCALL refuse_doctype(void *data, const char *name, const char *system,
                                   const char *public, int internal)
{
    (void)name, (void)system, (void)public, (void)internal;
    fail(data, "expected no document type and no entities");
}

/* --- after the last element --- */

/* Removes PCI devices without a `gpu` element if the file has `gpu` elements. */
static void drop_mere_pci(Reader *reader)
{
    MachineFile *machine = reader->machine;
    uint32_t kept = 0;
    if (machine->gpu_elements == 0)
        return;
    g_autofree uint32_t *place = g_new0(uint32_t, machine->n_gpus);
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        place[i] = kept;
        if (g_array_index(reader->has_element, gboolean, i)) {
            const MachineGpu moved = machine->gpu[i];
            machine->gpu[i] = machine->gpu[kept];
            machine->gpu[kept++] = moved;
        }
    }
    for (uint32_t i = 0; i < reader->origin->len; i++)
        g_array_index(reader->origin, uint32_t, i) =
            place[g_array_index(reader->origin, uint32_t, i)];
    for (uint32_t i = kept; i < machine->n_gpus; i++) {
        free_each(machine->gpu[i].bus, machine->gpu[i].pci, machine->gpu[i].gcn,
                  machine->gpu[i].product);
    }
    machine->n_gpus = kept;
}

/* Groups GPUs by their links. All switches count as one node, as in NCCL; a virtual machine names a
 * switch that it cannot see "fffffff:ffff:ff", or gives its own GPU as the far end. */
static void find_groups(Reader *reader)
{
    MachineFile *machine = reader->machine;
    g_autoptr(GHashTable) by_bus = g_hash_table_new(g_str_hash, g_str_equal);
    int64_t at_switch = -1;
    for (uint32_t i = 0; i < machine->n_gpus; i++) {
        machine->gpu[i].group = i;
        if (*machine->gpu[i].bus)
            g_hash_table_insert(by_bus, machine->gpu[i].bus, GUINT_TO_POINTER(i + 1));
    }
    for (uint32_t i = 0; i < reader->target->len; i++) {
        const uint32_t from = g_array_index(reader->origin, uint32_t, i);
        const char *target = reader->target->pdata[i];
        const uint32_t to = GPOINTER_TO_UINT(g_hash_table_lookup(by_bus, target));
        if (to > 0 && to - 1 != from) {
            machine_file_add_links(machine, from, to - 1,
                                   g_array_index(reader->count, uint32_t, i));
        } else if (to > 0 || !*target || g_str_has_prefix(target, "ffff")) {
            if (at_switch >= 0)
                machine_file_join(machine, from, (uint32_t)at_switch);
            at_switch = from;
        }
    }
}

static void warn_unknown(Reader *reader)
{
    guint n;
    g_autofree void **names = g_hash_table_get_keys_as_array(reader->unknown, &n);
    qsort(names, n, sizeof *names, names_compare);
    for (guint i = 0; i < n; i++)
        machine_file_warn(reader->machine, "passed over the element <%s>",
                          (const char *)names[i]);
}

static bool nccl_topology_finish(Reader *reader, GError **error)
{
    MachineFile *machine = reader->machine;
    drop_mere_pci(reader);
    if (machine->n_gpus == 0)
        return refuse(error,
                      "%s: no GPU in the file: %u CPUs, no gpu element and no PCI device "
                      "of a GPU's class; expected a topology with its devices",
                      machine->file, machine->cpus);
    find_groups(reader);
    warn_unknown(reader);
    machine->nics = reader->physical        ? reader->physical
                    : machine->net_elements ? machine->net_elements
                                            : machine->nic_pci;
    machine->net_bandwidth =
        reader->physical ? reader->physical_bandwidth : reader->all_bandwidth;
    if (reader->physical && reader->physical < machine->net_elements)
        machine_file_warn(machine, "%u of %u nets are virtual and do not count as NICs",
                          machine->net_elements - reader->physical,
                          machine->net_elements);
    if (machine->absurd)
        machine->net_bandwidth = 0;
    if (machine->absurd)
        machine_file_warn(machine, "%s", machine->absurd);
    return true;
}

bool nccl_topology_parse(const char *text, size_t length, const Sheets *sheets,
                         MachineFile *machine, GError **error)
{
    Reader reader = {.parser = XML_ParserCreate(NULL),
                     .sheets = sheets,
                     .machine = machine,
                     .target = g_ptr_array_new_with_free_func(g_free),
                     .origin = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                     .count = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                     .has_element = g_array_new(FALSE, FALSE, sizeof(gboolean)),
                     .unknown = text_table(NULL)};
    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, begin, end);
    XML_SetStartDoctypeDeclHandler(reader.parser, refuse_doctype);
    bool good = XML_Parse(reader.parser, text, (int)length, 1) == XML_STATUS_OK;
    if (reader.failure)
        g_propagate_error(error, g_steal_pointer(&reader.failure));
    else if (!good)
        refuse(error, "%s:%lu: not XML: %s", machine->file,
               (unsigned long)XML_GetCurrentLineNumber(reader.parser),
               XML_ErrorString(XML_GetErrorCode(reader.parser)));
    else
        good = nccl_topology_finish(&reader, error);
    XML_ParserFree(reader.parser);
    g_ptr_array_unref(reader.target);
    unref_arrays(reader.origin, reader.count, reader.has_element);
    g_hash_table_unref(reader.unknown);
    return good;
}

#else

bool nccl_topology_parse(const char *text, size_t length, const Sheets *sheets,
                         MachineFile *machine, GError **error)
{
    (void)text, (void)length, (void)sheets;
    return kilter_fail(
        error, KILTER_ERROR_FAILED,
        "%s: this kilter was built without expat (Debian: libexpat1-dev) and "
        "reads no XML",
        machine->file);
}

#endif
