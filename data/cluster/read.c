/* Cluster files. The shortest one, in words of data sheets (docs/clusters.md):
 *
 *     machines: [{device: a100-80g, gpus: 4, count: 2, inner: nvlink3, nic: eth-100}]
 *
 * All in one example:
 *
 *     name: pair                               # optional, the file's
 *     description: two kinds of machines       # optional
 *     device_types:
 *       - name: v100
 *         rate: 10.8 TFLOP/s                   # true FLOPs over a whole training step
 *         half_rate: 30 TFLOP/s                # optional: of ops on half-precision numbers
 *         rates: {bf16: 30 TFLOP/s}            # optional: fp32, fp16 (as half_rate), bf16, fp8
 *         peaks: {fp32: 15.7 TFLOP/s}          # optional: from the data sheet, for MFU, HFU
 *         power: 300 W                         # optional: of a board, for energy
 *         memory: 16 GiB                       # of one device
 *         runtime: 1 GiB                       # optional: the part that no plan can use
 *         slowdown: 1.2                        # optional: of computations while it communicates
 *         interference: 1.2                    # optional: of communication while it computes
 *         crowding: 0.02                       # optional: of launches, for each further GPU of the machine
 *         launch: 6 us                         # optional: of the host, for an op or a collective
 *         ops:                                 # optional: fitted times of op kinds, see OpCost
 *           - {kind: linear, overhead: 3 us, rate: 11 TFLOP/s, bandwidth: 700 GB/s,
 *              smallest: 4 kB, largest: 1 GB,  # rate, bandwidth: optional
 *              launch: 8 us, wave: 1327104,    # optional: else the type's; 81 tiles of 128^2
 *              fill: 64}                       # optional: terms that filling a tile takes
 *         source: where the two numbers are from
 *     machines:
 *       - name: fast                           # fast-0 and fast-1, as there are two
 *         count: 2                             # optional, 1
 *         type: v100
 *         gpus: 4
 *         inner: {latency: 45 us, bandwidth: 85.8 GB/s} # optional if gpus is 1
 *         stretch: 1.5                         # optional: factor on all its computation
 *         host_memory: 2 TB                    # optional, as are the next two, to offload states
 *         host_link: 31.5 GB/s                 # of each GPU, per direction
 *         host_bandwidth: 409.6 GB/s           # of the host's memory
 *         price: 12.2 USD/h                    # optional: of one machine, for the cost of tokens
 *         preemptible: 4.9 USD/h               # optional: the same where it may be taken away
 *         peers: 0-1 0-2 0-3x2 1-2x2 1-3 2-3x2  # optional: direct links, see data/cluster/peers.h
 *         peer: {latency: 12 us, bandwidth: 19 GB/s} # optional: one of them
 *         across: {latency: 20 us, bandwidth: 16 GB/s} # optional: without a ring on them
 *         sums: 1.18                           # optional: its switch sums up
 *         port: {bandwidth: 45 GB/s, gpu: 48 GB/s, base: 25 us, hop: 5 us}
 *                                              # or nic: ib-ndr, nics: 8
 *         source: where the inner link is from
 *         domain: rack-1                       # optional: machines on the same switch
 *         region: east                         # optional: see regions
 *       - name: box                            # unlike GPUs in one machine: devices in place of type and gpus
 *         devices: [{device: rtx-a6000, gpus: 2}, {type: v100, gpus: 2}]
 *         inner: pcie4                         # optional with data sheets: the slowest PCIe link
 *     collectives:                             # between machines: not with a single one
 *       all_reduce: {latency: 65 us, bandwidth: 1.3 GB/s}
 *       all_gather:
 *         latency: 65 us
 *         bandwidth: 1.3 GB/s
 *         pieces: [{up_to: 32 kB, latency: 20 us, bandwidth: 1 GB/s}] # optional: small tensors
 *         smallest: 1 kB                       # optional: what was measured
 *         largest: 1 GB
 *       (the other four kinds likewise)
 *       send: {latency: 20 us, bandwidth: 12 GB/s} # optional: between GPUs of two machines
 *       source: where these are from
 *     curves:                                  # optional: measured, see data/cluster/curve.h
 *       - collective: all_reduce
 *         device: v100                         # optional: of the machines, with hosts: 1
 *         ranks: 4
 *         hosts: 1
 *         step: 3 us                           # optional
 *         sums: 1.18                           # optional: switches sum up
 *         points: [{bytes: 1 MiB, time: 70 us}, {bytes: 64 MiB, time: 1.3 ms}]
 *         source: a log of nccl-tests
 *     regions:                                 # optional: between machines' regions, with NICs
 *       - {from: east, to: west, latency: 20 ms, bandwidth: 10 Gb/s, price: 0.02 USD/GB}
 *                                              # price: optional, of what is sent over it
 *     topology:                                # optional, see data/cluster/topology.h
 *       builder: tree:leaf=2,bandwidth=10Gb/s  # either this or:
 *       nodes: [a, b]                          # switches and the like
 *       links:
 *         - {from: fast-0, to: a, latency: 5 us, bandwidth: 10 Gb/s}
 *         - {from: fast-1:3, to: a, latency: 5 us, bandwidth: 10 Gb/s} # a GPU's own
 *       source: where these are from
 *     tuning:                                  # optional, see data/cluster/tuning.h
 *       rules:
 *         - {collective: all_reduce, most_bytes: 1 MiB, algorithm: tree}
 *       source: where these are from */
#include "data/cluster/cluster.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/cluster/check.h"
#include "data/cluster/cluster_reader.h"
#include "data/cluster/network_spec.h"

/* Reads the pieces, whose sizes must rise. */
static bool read_pieces(const ClusterReader *reader, const char *key,
                        const CollectiveText *text, CollectivePieces *pieces,
                        GError **error)
{
    double before = 0;
    pieces->piece = g_new0(CollectivePiece, text->piece_count);
    for (; pieces->n < text->piece_count; pieces->n++) {
        const PieceText *from = &text->piece[pieces->n];
        CollectivePiece *piece = &pieces->piece[pieces->n];
        g_autofree char *entry = g_strdup_printf("%s.pieces[%u]", key, pieces->n);
        g_autofree char *up_to = yaml_key(entry, "up_to");
        if (!yaml_quantity(reader->yaml, up_to, from->up_to,
                           (YamlRange){QUANTITY_BYTES,
                                       fmax(nextafter(before, INFINITY), SMALLEST),
                                       LARGEST},
                           &piece->up_to, error) ||
            !reader_link(reader, entry, &from->line, &piece->line, error))
            return false;
        before = piece->up_to;
    }
    return members_read(reader->yaml, key, PIECES_MEMBER, PIECES_NUMBERS, text, pieces,
                        error);
}

/* Makes a cluster wired, if the machines have ports. A single machine need not have one. */
static bool wire(ClusterReader *reader, GError **error)
{
    Cluster *cluster = reader->cluster;
    bool joined = true; /* in one domain */
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        joined = joined && cluster->machine[i].domain &&
                 strcmp(cluster->machine[i].domain, cluster->machine[0].domain) == 0;
    for (uint32_t i = 0; !joined && i < cluster->n_machines; i++)
        if (!(cluster->machine[i].port.bandwidth > 0))
            return cluster->n_machines == 1 ||
                   yaml_fail(reader->yaml, error, "collectives",
                             "missing; expected this key, for %u machines, or the nic of "
                             "each machine, as in nic: ib-ndr",
                             cluster->n_machines);
    cluster->wired = true;
    return true;
}

/* The number of kinds that the section states. */
static uint32_t count_kinds(const CollectivesText *text)
{
    uint32_t n = 0;
    for (uint32_t kind = 0; text && kind < COLLECTIVES_PRICED; kind++)
        n += text->kind[kind] != NULL;
    return n;
}

/* Reads the collectives. A single machine communicates over its inner link, whatever the section
 * says that may be left from a larger cluster. */
static bool read_collectives(ClusterReader *reader)
{
    static const char WIRED[] =
        "NICs of data/links.yaml, with the shares and latencies of data/sustained.yaml";
    Cluster *cluster = reader->cluster;
    const CollectivesText *text = reader->text->collectives;
    const uint32_t n_kinds = count_kinds(text);
    GError *failure = NULL;
    bool good = true;
    if (n_kinds == 0)
        good = reader_note(reader, wire(reader, &failure), &failure);
    cluster->collective_source = g_strdup(text && text->source ? text->source
                                          : cluster->wired     ? WIRED
                                                               : "");
    for (uint32_t kind = 0; n_kinds > 0 && kind < COLLECTIVES_PRICED; kind++) {
        g_autofree char *key = yaml_key("collectives", collective_name(kind));
        if (!text->kind[kind]) {
            good =
                reader_note(reader,
                            yaml_fail(reader->yaml, &failure, key,
                                      "missing; expected this kind as well, or none of "
                                      "the six where machines name their nic"),
                            &failure);
            continue;
        }
        good &= reader_note(reader,
                            reader_link(reader, key, &text->kind[kind]->line,
                                        &cluster->collective[kind], &failure) &&
                                read_pieces(reader, key, text->kind[kind],
                                            &cluster->pieces[kind], &failure),
                            &failure);
    }
    return good & reader_note(reader,
                              !text || !text->send ||
                                  reader_link(reader, "collectives.send", text->send,
                                              &cluster->transfer, &failure),
                              &failure);
}

/* Reads all cables; collects failures. */
static bool read_cables(ClusterReader *reader, NetworkSpec *spec)
{
    const TopologyText *text = reader->text->topology;
    bool good = true;
    spec->kind = NETWORK_LINKS;
    spec->node = g_new0(char *, text->node_count);
    for (; spec->n_nodes < text->node_count; spec->n_nodes++)
        spec->node[spec->n_nodes] = g_strdup(text->node[spec->n_nodes]);
    spec->explicit_link = g_new0(NetworkLink, text->cable_count);
    for (; spec->n_links < text->cable_count; spec->n_links++) {
        const CableText *cable = &text->cable[spec->n_links];
        NetworkLink *link = &spec->explicit_link[spec->n_links];
        g_autofree char *key = g_strdup_printf("topology.links[%u]", spec->n_links);
        GError *failure = NULL;
        good &= reader_note(reader,
                            reader_link(reader, key, &cable->line, &link->cost, &failure),
                            &failure);
        link->from = g_strdup(cable->from);
        link->to = g_strdup(cable->to);
    }
    return good;
}

/* Reads the network of the file. */
static bool read_network(ClusterReader *reader, GError **error)
{
    const TopologyText *text = reader->text->topology;
    Cluster *cluster = reader->cluster;
    g_autoptr(GError) failure = NULL;
    if (!text)
        return true;
    if (!text->builder == !text->cable)
        return yaml_fail(reader->yaml, error, "topology",
                         "expected either builder or links");
    if (text->builder && text->node)
        return yaml_fail(reader->yaml, error, "topology.nodes",
                         "not expected: a builder makes its own");
    if (text->builder) {
        cluster->network = network_spec_parse(text->builder, &failure);
        if (!cluster->network)
            return yaml_fail(reader->yaml, error, "topology.builder", "%s",
                             failure->message);
    } else {
        cluster->network = g_new0(NetworkSpec, 1);
        read_cables(reader, cluster->network);
    }
    cluster->network->source = g_strdup(text->source ? text->source : "");
    return true;
}

/* Builds the network once, so that a network that cannot be built is an error of the file. */
static bool try_network(const ClusterReader *reader, GError **error)
{
    g_autoptr(GError) failure = NULL;
    for (uint32_t i = 0; reader->text->topology && i < 2; i++) {
        g_autoptr(ClusterView) view =
            cluster_view(reader->cluster, i ? GRANULARITY_GPU : GRANULARITY_MACHINE);
        g_autoptr(Topology) topology = topology_of_view(view, &failure);
        if (!topology)
            return yaml_fail(reader->yaml, error, "topology", "%s", failure->message);
    }
    return true;
}

/* Reads what lies between regions. */
static bool read_regions(ClusterReader *reader, GError **error)
{
    const ClusterText *text = reader->text;
    Cluster *cluster = reader->cluster;
    cluster->region_link = g_new0(RegionLink, text->region_count);
    for (uint32_t i = 0; i < text->region_count; i++) {
        const RegionText *from = &text->region[i];
        RegionLink *link = &cluster->region_link[cluster->n_region_links++];
        g_autofree char *key = g_strdup_printf("regions[%u]", i);
        *link = (RegionLink){.from = g_strdup(from->from),
                             .to = g_strdup(from->to),
                             .source = g_strdup(from->source ? from->source : "")};
        if (!reader_link(reader, key, &from->line, &link->link, error) ||
            !members_read(reader->yaml, key, REGION_MEMBER, REGION_NUMBERS, from, link,
                          error))
            return false;
    }
    return true;
}

static bool read_curves(ClusterReader *reader, GError **error)
{
    const ClusterText *text = reader->text;
    return text->curve_count == 0 ||
           curves_read(reader->yaml, "curves", text->curve_count, text->curve,
                       &reader->cluster->curves, error);
}

static bool read_tuning(ClusterReader *reader, GError **error)
{
    if (reader->text->tuning)
        reader->cluster->tuning =
            tuning_read(reader->yaml, "tuning", reader->text->tuning, error);
    return !reader->text->tuning || reader->cluster->tuning;
}

static bool read_fit(ClusterReader *reader, GError **error)
{
    const FittedText *text = reader->text->fit;
    if (text)
        reader->cluster->fitted = fitted_read(reader->yaml, "fit", text, error);
    return !text || reader->cluster->fitted;
}

/* Reads all sections and reports all failures together; checks that need all sections come last. */
static bool read_parts(ClusterReader *reader, GError **error)
{
    GError *failure = NULL;
    const bool types = reader_types(reader);
    if (reader_machines(reader) & types)
        read_collectives(reader);
    reader_note(reader, read_curves(reader, &failure), &failure);
    reader_note(reader, read_network(reader, &failure), &failure);
    reader_note(reader, read_regions(reader, &failure), &failure);
    reader_note(reader, read_tuning(reader, &failure), &failure);
    reader_note(reader, read_fit(reader, &failure), &failure);
    if (reader->failures->len > 0)
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s", reader->failures->str);
    cluster_finish(reader->cluster);
    if (!cluster_check_parts(reader->cluster, error)) {
        kilter_prefix(error, "%s: ", yaml_file(reader->yaml));
        return false;
    }
    return cluster_set_kernels(reader->cluster, error) && try_network(reader, error);
}

/* The file's name without folders and .yaml. Caller frees. */
static char *file_name(const Yaml *yaml)
{
    char *name = g_path_get_basename(yaml_file(yaml));
    char *end = strrchr(name, '.');
    if (end && end > name)
        *end = '\0';
    return name;
}

static Cluster *read_yaml(const Yaml *yaml, GError **error)
{
    g_autoptr(Cluster) cluster = g_new0(Cluster, 1);
    ClusterReader reader = {.yaml = yaml,
                            .text = yaml_data(yaml),
                            .cluster = cluster,
                            .failures = g_string_new(NULL)};
    cluster->name = reader.text->name ? g_strdup(reader.text->name) : file_name(yaml);
    cluster->description =
        g_strdup(reader.text->description ? reader.text->description : "");
    const bool good = read_parts(&reader, error);
    sheets_free(reader.sheets);
    g_string_free(reader.failures, TRUE);
    return good ? g_steal_pointer(&cluster) : NULL;
}

Cluster *cluster_parse(const char *file, const char *text, size_t length, GError **error)
{
    g_autoptr(Yaml) yaml = yaml_parse(file, text, length, &CLUSTER_SCHEMA, error);
    return yaml ? read_yaml(yaml, error) : NULL;
}

Cluster *cluster_read(const char *file, GError **error)
{
    g_autoptr(Yaml) yaml = yaml_read(file, &CLUSTER_SCHEMA, error);
    return yaml ? read_yaml(yaml, error) : NULL;
}
