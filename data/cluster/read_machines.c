/* Machines of a cluster file, by names of data sheets where it gives no numbers. */
#include <math.h>
#include <string.h>

#include "data/base/names.h"
#include "data/cluster/cluster_reader.h"

/* --- data sheets --- */

/* The sheets, opened once; NULL, and what is wrong with their files: they cannot be read. */
static Sheets *sheets_of(ClusterReader *reader)
{
    g_autoptr(GError) failure = NULL;
    if (!reader->sheets && !(reader->sheets = sheets_open(&failure)))
        yaml_pass_on(reader->yaml, failure);
    return reader->sheets;
}

/* Finds or makes the type of the device's sheet; a failure names `key`. */
static bool type_of_device(ClusterReader *reader, const char *key, const char *name,
                           uint32_t *type, const DeviceSheet **sheet)
{
    g_autoptr(GError) failure = NULL;
    Sheets *sheets = sheets_of(reader);
    if (!sheets)
        return false;
    *sheet = sheets_open_device(sheets, name, &failure);
    if (!*sheet)
        return yaml_wrong(reader->yaml, key, "%s", failure->message);
    *type = cluster_type_of_sheet(reader->cluster, *sheet);
    return true;
}

static bool find_link(ClusterReader *reader, const char *key, const char *name,
                      const LinkSheet **link)
{
    g_autoptr(GError) failure = NULL;
    const Sheets *sheets = sheets_of(reader);
    if (!sheets)
        return false;
    *link = sheets_link(sheets, name, &failure);
    return *link || yaml_wrong(reader->yaml, key, "%s", failure->message);
}

/* The number of links of that name that the device has; 0 if that is not known. A device has one
 * PCIe link of 16 lanes, and a network's link is a port. */
static uint32_t machines_links_of(const DeviceSheet *sheet, const char *name)
{
    static const char *const SEVERAL[] = {"nvlink", "xgmi", "hccs", "ub"};
    const uint32_t n = sheet ? sheet->n_links : 0;
    const uint32_t own = sheet ? NAME_PLACE(sheet->link, n, name, name) : 0;
    if (own < n)
        return sheet->link[own].count;
    for (size_t i = 0; i < G_N_ELEMENTS(SEVERAL); i++)
        if (g_str_has_prefix(name, SEVERAL[i]))
            return 0;
    return 1;
}

/* Sets the inner link: `inner: nvlink3` means all links of that kind that the device has; without
 * the key the fastest kind is taken. */
static bool named_inner(ClusterReader *reader, const char *key, const LinkText *text,
                        const DeviceSheet *sheet, Machine *machine)
{
    const LinkSheet *link;
    g_autofree char *link_key = text ? yaml_key(key, "link") : g_strdup(key);
    g_autofree char *count_key = yaml_key(key, "count");
    if (text && (text->latency || text->bandwidth))
        return yaml_wrong(reader->yaml, key,
                          "expected either a link's name or latency and bandwidth");
    const LinkSheet *pcie = device_sheet_link(reader->sheets, sheet, "pcie");
    const char *name = text                                ? text->link
                       : pcie && machine_is_split(machine) ? pcie->name
                                                           : sheet->link[0].name;
    if (!find_link(reader, link_key, name, &link))
        return false;
    uint32_t count = machines_links_of(sheet, link->name);
    if (text && text->count &&
        !yaml_uint(reader->yaml, count_key, text->count, 1, 1000, &count))
        return false;
    if (count == 0)
        return yaml_wrong(
            reader->yaml, count_key,
            "missing; expected how many %s links each GPU has, as in inner: "
            "{link: %s, count: 12}%s%s",
            link->name, link->name, sheet ? ": none is on the data sheet of " : "",
            sheet ? sheet->name : "");
    machine->inner = link_sheet_line(link, count, machine->gpus);
    if (machine->sums == 0 && (machine->gpus > 2 || machine->domain) && !machine->peers)
        machine_sum_by(machine, link);
    return true;
}

/* Reads a link of numbers, or one link of a name. */
static bool read_one_link(ClusterReader *reader, const char *key, const LinkText *text,
                          const Machine *machine, LinkCost *line)
{
    const LinkSheet *link;
    if (!text->link)
        return MEMBERS_READ(reader->yaml, key, LINK_MEMBER, text, line);
    if (text->latency || text->bandwidth || text->count)
        return yaml_wrong(reader->yaml, key,
                          "expected either a link's name or latency and bandwidth");
    if (!find_link(reader, yaml_at(reader->yaml, "%s.link", key), text->link, &link))
        return false;
    *line = link_sheet_line(link, 1, machine->gpus);
    return true;
}

/* The slowest of the PCIe links of unlike GPUs, by which they reach each other; a type without a
 * sheet needs `inner`. */
static bool mixed_inner(ClusterReader *reader, const char *key, Machine *machine)
{
    machine->inner.bandwidth = INFINITY;
    for (uint32_t p = 0; p < machine->n_parts; p++) {
        const char *name = reader->cluster->type[machine->part[p].type].name;
        Sheets *sheets = sheets_of(reader);
        const DeviceSheet *sheet = sheets ? sheets_open_device(sheets, name, NULL) : NULL;
        const LinkSheet *link = NULL;
        if (!sheets)
            return false;
        for (uint32_t i = 0; sheet && i < sheet->n_links; i++)
            if (g_str_has_prefix(sheet->link[i].name, "pcie"))
                link = sheets_link(sheets, sheet->link[i].name, NULL);
        if (!link)
            return yaml_wrong(reader->yaml, key,
                              "missing; expected the link between the machine's %u GPUs",
                              machine->gpus);
        const LinkCost line = link_sheet_line(link, 1, machine->gpus);
        machine->inner.latency_s = fmax(machine->inner.latency_s, line.latency_s);
        machine->inner.bandwidth = fmin(machine->inner.bandwidth, line.bandwidth);
    }
    return true;
}

static bool read_inner(ClusterReader *reader, const char *key, const GroupText *text,
                       const DeviceSheet *sheet, Machine *machine)
{
    g_autofree char *inner = yaml_key(key, "inner");
    Peers peers;
    const bool joined = machine->peers && !machine_is_split(machine) &&
                        peers_parse(machine->peers, machine->gpus, &peers, NULL);
    if (joined && !text->inner && (text->peer || (sheet && sheet->bridge))) {
        /* bridges between all GPUs: as many as there are rings */
        if (text->peer) {
            if (!read_one_link(reader, yaml_at(reader->yaml, "%s.peer", key), text->peer,
                               machine, &machine->inner))
                return false;
        } else {
            machine->inner = link_sheet_line(
                sheets_link(reader->sheets, sheet->bridge, NULL), 1, machine->gpus);
        }
        machine->inner.bandwidth *= peers_rings(&peers, machine->gpus);
        return true;
    }
    if (text->inner && !text->inner->link)
        return MEMBERS_READ(reader->yaml, inner, LINK_MEMBER, text->inner,
                            &machine->inner);
    if (machine->gpus == 1 && !machine->domain)
        return true;
    if (!text->inner && machine->n_parts > 0)
        return mixed_inner(reader, inner, machine);
    if (text->inner || sheet)
        return named_inner(reader, inner, text->inner, sheet, machine);
    return yaml_wrong(reader->yaml, inner,
                      "missing; expected the link between the machine's %u GPUs",
                      machine->gpus);
}

/* The direct links between the machine's GPUs: of the file, or of the device's sheet if its fastest
 * links are the inner ones. */
static bool read_peers(ClusterReader *reader, const char *key, const GroupText *text,
                       const DeviceSheet *sheet, Machine *machine)
{
    g_autoptr(GError) failure = NULL;
    Peers peers;
    if (text->peers) {
        if (!peers_parse(text->peers, machine->gpus, &peers, &failure))
            return yaml_wrong(reader->yaml, yaml_at(reader->yaml, "%s.peers", key), "%s",
                              failure->message);
        machine->peers = peers_text(&peers);
        return true;
    }
    const bool own =
        text->inner && !(text->inner->link && sheet &&
                         strcmp(text->inner->link, sheet->link[0].name) == 0);
    if (sheet && !own)
        machine->peers = g_strdup(device_sheet_peers(sheet, machine->gpus));
    return true;
}

/* The lines of GPUs that find a ring of direct links, and of those that find none. */
static bool read_islands(ClusterReader *reader, const char *key, const GroupText *text,
                         const DeviceSheet *sheet, Machine *machine)
{
    g_autofree char *peer = yaml_key(key, "peer"), *across = yaml_key(key, "across");
    const bool split = machine_is_split(machine);
    if ((text->peer || text->across) && !machine->peers)
        return yaml_wrong(reader->yaml, text->peer ? peer : across,
                          "expected peers as well, the direct links between GPUs");
    if ((text->peer &&
         !read_one_link(reader, peer, text->peer, machine, &machine->peer)) ||
        (text->across &&
         !read_one_link(reader, across, text->across, machine, &machine->across)))
        return false;
    const LinkSheet *pcie = device_sheet_link(reader->sheets, sheet, "pcie");
    if (machine->peers && !split && !text->across && !text->inner && pcie)
        machine->across = link_sheet_line(pcie, 1, machine->gpus);
    if (!split || text->peer)
        return true;
    const char *name = !sheet ? NULL
                       : !g_str_has_prefix(sheet->link[0].name, "pcie")
                           ? sheet->link[0].name
                           : sheet->bridge;
    if (!name) /* of a type without a sheet all have `inner` */
        return !sheet ||
               yaml_wrong(
                   reader->yaml, peer,
                   "missing; expected one of the direct links of peers, which do not "
                   "join all GPUs, as in peer: nvlink3");
    machine->peer =
        link_sheet_line(sheets_link(reader->sheets, name, NULL), 1, machine->gpus);
    return true;
}

static bool read_port(ClusterReader *reader, const char *key, const GroupText *text,
                      const DeviceSheet *sheet, Port *port)
{
    g_autofree char *nics = yaml_key(key, "nics"), *own = yaml_key(key, "port");
    const LinkSheet *link;
    uint32_t count = 1;
    *port = (Port){0};
    if (text->port && text->nic)
        return yaml_wrong(reader->yaml, own,
                          "expected either nic, a link's name, or the numbers of port");
    if (text->port)
        return MEMBERS_READ(reader->yaml, own, PORT_MEMBER, text->port, port);
    if (!text->nic)
        return !text->nics || yaml_wrong(reader->yaml, nics,
                                         "expected nic as well, what each of them is");
    if (!find_link(reader, yaml_at(reader->yaml, "%s.nic", key), text->nic, &link) ||
        (text->nics && !yaml_uint(reader->yaml, nics, text->nics, 1, 1000, &count)))
        return false;
    *port = link_sheet_port(link, count, reader->sheets, sheet);
    return true;
}

/* --- machines --- */

static bool fail_type(ClusterReader *reader, const char *key, const char *name)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (uint32_t i = 0; i < reader->cluster->n_types; i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "",
                               reader->cluster->type[i].name);
    Sheets *sheets = sheets_of(reader);
    const bool is_sheet = sheets && sheets_open_device(sheets, name, NULL);
    return yaml_wrong(reader->yaml, key, "expected one of device_types (%s), got '%s'%s",
                      known->str, name,
                      is_sheet ? "; as a name of data/devices its key is 'device'" : "");
}

static bool read_type_of(ClusterReader *reader, const char *key, const GroupText *text,
                         Machine *machine, const DeviceSheet **sheet)
{
    g_autofree char *type = yaml_key(key, "type"), *device = yaml_key(key, "device");
    const Cluster *cluster = reader->cluster;
    *sheet = NULL;
    if (text->device && text->type)
        return yaml_wrong(reader->yaml, device,
                          "expected either device, of data/devices, or type, of "
                          "device_types");
    if (text->device)
        return type_of_device(reader, device, text->device, &machine->type, sheet);
    if (!text->type)
        return yaml_wrong(
            reader->yaml, type,
            "missing; expected this key, or device, a name of data/devices");
    machine->type = NAME_PLACE(cluster->type, cluster->n_types, name, text->type);
    return machine->type < cluster->n_types || fail_type(reader, type, text->type);
}

/* A type by its name in device_types, or by a name of data/devices. */
static bool read_part_type(ClusterReader *reader, const char *key, const PartText *text,
                           uint32_t *type, const DeviceSheet **sheet)
{
    const GroupText as_group = {.type = text->type, .device = text->device};
    Machine machine = {0};
    if (!read_type_of(reader, key, &as_group, &machine, sheet))
        return false;
    *type = machine.type;
    return true;
}

/* Reads the list of unlike GPUs; of equal ones it is as if device and gpus were given. */
static bool read_devices(ClusterReader *reader, const char *key, const GroupText *text,
                         Machine *machine, const DeviceSheet **sheet)
{
    g_autofree char *devices = yaml_key(key, "devices");
    g_autofree MachinePart *part = g_new0(MachinePart, text->part_count);
    uint64_t gpus = 0;
    if (text->type || text->device || text->gpus)
        return yaml_wrong(reader->yaml, devices,
                          "expected either this list, or %s and gpus",
                          text->type ? "type" : "device");
    for (uint32_t p = 0; p < text->part_count; p++) {
        g_autofree char *entry = g_strdup_printf("%s[%u]", devices, p);
        if (!read_part_type(reader, entry, &text->part[p], &part[p].type, sheet) ||
            !yaml_uint(reader->yaml, yaml_at(reader->yaml, "%s.gpus", entry),
                       text->part[p].gpus, 1, GPUS_MAX, &part[p].gpus))
            return false;
        gpus += part[p].gpus;
    }
    if (gpus > GPUS_MAX)
        return yaml_wrong(reader->yaml, devices, "expected at most %d GPUs", GPUS_MAX);
    machine_set_parts(machine, text->part_count, part);
    *sheet = machine->n_parts > 0 ? NULL : *sheet;
    return true;
}

static bool read_gpus(ClusterReader *reader, const char *key, const GroupText *text,
                      Machine *machine, const DeviceSheet **sheet)
{
    if (text->part_count > 0)
        return read_devices(reader, key, text, machine, sheet);
    return read_type_of(reader, key, text, machine, sheet) &&
           (text->gpus || yaml_wrong(reader->yaml, yaml_at(reader->yaml, "%s.gpus", key),
                                     "missing; expected this key"));
}

/* Reads a group's machine and their number, collecting failures. `used`: GPUs of groups before. */
static bool read_group(ClusterReader *reader, const char *key, const GroupText *text,
                       uint32_t used, Machine *machine, uint32_t *count)
{
    const DeviceSheet *sheet = NULL;
    *machine = (Machine){.inner = {0, INFINITY}, /* a single GPU crosses no link */
                         .domain = text->domain,
                         .region = text->region,
                         .gpus = 1};
    *count = 1;
    bool good = read_gpus(reader, key, text, machine, &sheet);
    good &=
        !text->count || yaml_uint(reader->yaml, yaml_at(reader->yaml, "%s.count", key),
                                  text->count, 1, GPUS_MAX, count);
    good &= MEMBERS_READ(reader->yaml, key, MACHINE_MEMBER, text, machine);
    good &= read_port(reader, key, text, sheet, &machine->port);
    if (!good)
        return false;
    if ((uint64_t)*count * machine->gpus > GPUS_MAX - used)
        return yaml_wrong(reader->yaml, yaml_at(reader->yaml, "%s.gpus", key),
                          "expected at most %d GPUs in the cluster", GPUS_MAX);
    return read_peers(reader, key, text, sheet, machine) &&
           read_inner(reader, key, text, sheet, machine) &&
           read_islands(reader, key, text, sheet, machine);
}

/* The group's name: the file's, or its device's, with a number if that is taken. Caller frees. */
static char *group_name(const ClusterReader *reader, const GroupText *text,
                        const Machine *machine, GHashTable *seen)
{
    if (text->name)
        return g_strdup(text->name);
    const char *type =
        machine->n_parts > 0 ? "node" : reader->cluster->type[machine->type].name;
    char *name = g_strdup(type);
    for (uint32_t i = 2;; i++) {
        g_autofree char *first = g_strconcat(name, "-0", NULL);
        if (!g_hash_table_contains(seen, name) && !g_hash_table_contains(seen, first))
            return name;
        put_block(name, g_strdup_printf("%s.%u", type, i));
    }
}

/* Appends `count` machines like `machine` under new names. */
static bool machines_add_all(ClusterReader *reader, const char *key,
                             const GroupText *text, Machine machine, uint32_t count,
                             GHashTable *seen, GArray *list)
{
    g_autofree char *name = group_name(reader, text, &machine, seen);
    const char *peers = machine.peers; /* of the group */
    const MachinePart *part = machine.part;
    for (uint32_t n = 0; n < count; n++) {
        machine.name = count > 1 ? g_strdup_printf("%s-%u", name, n) : g_strdup(name);
        machine.source = g_strdup(text->source ? text->source : "");
        machine.peers = g_strdup(peers);
        machine.part = g_memdup2(part, machine.n_parts * sizeof *part);
        machine.domain = g_strdup(text->domain);
        machine.region = g_strdup(text->region);
        g_array_append_val(list, machine);
        if (!g_hash_table_add(seen, machine.name))
            return yaml_wrong(reader->yaml, yaml_at(reader->yaml, "%s.name", key),
                              "expected a new name, got '%s' again", machine.name);
    }
    return true;
}

bool reader_machines(ClusterReader *reader)
{
    Cluster *cluster = reader->cluster;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Machine));
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    bool all = true;
    uint32_t used = 0;
    items_at (const GroupText, text, i, reader->text->group, reader->text->group_count) {
        g_autofree char *key = g_strdup_printf("machines[%u]", i);
        Machine machine;
        uint32_t count;
        const bool good = read_group(reader, key, text, used, &machine, &count) &&
                          machines_add_all(reader, key, text, machine, count, seen, list);
        all &= good;
        used += good ? count * machine.gpus : 0;
        g_free(machine.peers);
        g_free(machine.part);
    }
    cluster->n_machines = list->len;
    cluster->machine = (Machine *)g_array_free(list, FALSE);
    return all;
}
