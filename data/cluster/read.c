/* Cluster files. The shortest one, in words of data sheets:
 *
 *     machines: [{device: a100-80g, gpus: 4, count: 2, inner: nvlink3, nic: eth-100}]
 *
 * docs/clusters.md has a table of all keys, and data/schemas/cluster-file.json, which a test
 * compares with the tables here, says of each what it holds. */
#include "data/cluster/cluster.h"

#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/cluster/check.h"
#include "data/cluster/cluster_reader.h"
#include "data/cluster/network_spec.h"

/* Reads the pieces, whose sizes must rise. */
static bool read_pieces(const ClusterReader *reader, const char *key,
                        const CollectiveText *text, CollectivePieces *pieces)
{
    double before = 0;
    pieces->piece = g_new0(CollectivePiece, text->piece_count);
    for (; pieces->n < text->piece_count; pieces->n++) {
        const PieceText *from = &text->piece[pieces->n];
        CollectivePiece *piece = &pieces->piece[pieces->n];
        const char *entry = yaml_at(reader->yaml, "%s.pieces[%u]", key, pieces->n);
        const double least = fmax(nextafter(before, INFINITY), SMALLEST);
        if (!yaml_quantity(reader->yaml, yaml_at(reader->yaml, "%s.up_to", entry),
                           from->up_to, (YamlRange){QUANTITY_BYTES, least, LARGEST},
                           &piece->up_to) ||
            !MEMBERS_READ(reader->yaml, entry, LINK_MEMBER, &from->line, &piece->line))
            return false;
        before = piece->up_to;
    }
    return MEMBERS_READ(reader->yaml, key, PIECES_MEMBER, text, pieces);
}

/* Makes a cluster wired, if the machines have ports. A single machine need not have one. */
static void wire(ClusterReader *reader)
{
    Cluster *cluster = reader->cluster;
    bool joined = true; /* in one domain */
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        joined = joined && cluster->machine[i].domain &&
                 strcmp(cluster->machine[i].domain, cluster->machine[0].domain) == 0;
    for (uint32_t i = 0; !joined && i < cluster->n_machines; i++)
        if (!(cluster->machine[i].port.bandwidth > 0)) {
            if (cluster->n_machines > 1)
                yaml_wrong(reader->yaml, "collectives",
                           "missing; expected this key, for %u machines, or the nic of "
                           "each machine, as in nic: ib-ndr",
                           cluster->n_machines);
            return;
        }
    cluster->wired = true;
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
static void read_collectives(ClusterReader *reader)
{
    static const char WIRED[] =
        "NICs of data/links.yaml, with the shares and latencies of data/sustained.yaml";
    Cluster *cluster = reader->cluster;
    const CollectivesText *text = reader->text->collectives;
    const uint32_t n_kinds = count_kinds(text);
    if (n_kinds == 0)
        wire(reader);
    cluster->collective_source = g_strdup(text && text->source ? text->source
                                          : cluster->wired     ? WIRED
                                                               : "");
    for (uint32_t kind = 0; n_kinds > 0 && kind < COLLECTIVES_PRICED; kind++) {
        const CollectiveText *of = text->kind[kind];
        g_autofree char *key = yaml_key("collectives", collective_name(kind));
        if (!of)
            yaml_wrong(reader->yaml, key,
                       "missing; expected this kind as well, or none of the six where "
                       "machines name their nic");
        else if (MEMBERS_READ(reader->yaml, key, LINK_MEMBER, &of->line,
                              &cluster->collective[kind]))
            read_pieces(reader, key, of, &cluster->pieces[kind]);
    }
    if (text && text->send)
        MEMBERS_READ(reader->yaml, "collectives.send", LINK_MEMBER, text->send,
                     &cluster->transfer);
}

static void read_cables(ClusterReader *reader, NetworkSpec *spec)
{
    const TopologyText *text = reader->text->topology;
    spec->kind = NETWORK_LINKS;
    spec->node = g_new0(char *, text->node_count);
    for (; spec->n_nodes < text->node_count; spec->n_nodes++)
        spec->node[spec->n_nodes] = g_strdup(text->node[spec->n_nodes]);
    spec->explicit_link = g_new0(NetworkLink, text->cable_count);
    for (; spec->n_links < text->cable_count; spec->n_links++) {
        const CableText *cable = &text->cable[spec->n_links];
        NetworkLink *link = &spec->explicit_link[spec->n_links];
        MEMBERS_READ(reader->yaml,
                     yaml_at(reader->yaml, "topology.links[%u]", spec->n_links),
                     LINK_MEMBER, &cable->line, &link->cost);
        link->from = g_strdup(cable->from);
        link->to = g_strdup(cable->to);
    }
}

/* Reads the network of the file. */
static bool read_network(ClusterReader *reader)
{
    const TopologyText *text = reader->text->topology;
    Cluster *cluster = reader->cluster;
    g_autoptr(GError) failure = NULL;
    if (!text)
        return true;
    if (!text->builder == !text->cable)
        return yaml_wrong(reader->yaml, "topology", "expected either builder or links");
    if (text->builder && text->node)
        return yaml_wrong(reader->yaml, "topology.nodes",
                          "not expected: a builder makes its own");
    if (text->builder) {
        cluster->network = network_spec_parse(text->builder, &failure);
        if (!cluster->network)
            return yaml_wrong(reader->yaml, "topology.builder", "%s", failure->message);
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
static void cluster_read_regions(ClusterReader *reader)
{
    const ClusterText *text = reader->text;
    Cluster *cluster = reader->cluster;
    cluster->region_link = g_new0(RegionLink, text->region_count);
    items_at (const RegionText, from, i, text->region, text->region_count) {
        RegionLink *link = &cluster->region_link[cluster->n_region_links++];
        const char *key = yaml_at(reader->yaml, "regions[%u]", i);
        *link = (RegionLink){.from = g_strdup(from->from),
                             .to = g_strdup(from->to),
                             .source = g_strdup(from->source ? from->source : "")};
        MEMBERS_READ(reader->yaml, key, LINK_MEMBER, &from->line, &link->link);
        MEMBERS_READ(reader->yaml, key, REGION_MEMBER, from, link);
    }
}

/* Reads all sections and reports all that is wrong together; checks that need all sections come
 * last. */
static bool read_parts(ClusterReader *reader, GError **error)
{
    Cluster *cluster = reader->cluster;
    const ClusterText *text = reader->text;
    const bool types = reader_types(reader);
    if (reader_machines(reader) & types)
        read_collectives(reader);
    if (text->curve_count > 0)
        curves_read(reader->yaml, "curves", text->curve_count, text->curve,
                    &cluster->curves);
    read_network(reader);
    cluster_read_regions(reader);
    if (text->tuning)
        cluster->tuning = tuning_read(reader->yaml, "tuning", text->tuning);
    if (text->fit)
        cluster->fitted = fitted_read(reader->yaml, "fit", text->fit);
    if (!yaml_is_good(reader->yaml, error))
        return false;
    cluster_finish(cluster);
    if (!cluster_check_parts(cluster, error))
        return kilter_prefix(error, "%s: ", yaml_file(reader->yaml));
    return cluster_set_kernels(cluster, error) && try_network(reader, error);
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
    ClusterReader reader = {.yaml = yaml, .text = yaml_data(yaml), .cluster = cluster};
    cluster->name = reader.text->name ? g_strdup(reader.text->name) : file_name(yaml);
    cluster->description =
        g_strdup(reader.text->description ? reader.text->description : "");
    const bool good = read_parts(&reader, error);
    sheets_free(reader.sheets);
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
