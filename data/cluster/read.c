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
                        const CollectiveText *text, CollectivePieces *pieces,
                        GError **error)
{
    double before = 0;
    pieces->piece = g_new0(CollectivePiece, text->piece_count);
    for (; pieces->n < text->piece_count; pieces->n++) {
        const PieceText *from = &text->piece[pieces->n];
        CollectivePiece *piece = &pieces->piece[pieces->n];
        g_autofree char *entry = g_strdup_printf("%s.pieces[%u]", key, pieces->n);
        if (!yaml_quantity(
                reader->yaml, yaml_at(reader->yaml, "%s.up_to", entry), from->up_to,
                (YamlRange){QUANTITY_BYTES, fmax(nextafter(before, INFINITY), SMALLEST),
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
    bool good = true;
    if (n_kinds == 0)
        good = reader_note(reader, wire(reader, &reader->failure));
    cluster->collective_source = g_strdup(text && text->source ? text->source
                                          : cluster->wired     ? WIRED
                                                               : "");
    for (uint32_t kind = 0; n_kinds > 0 && kind < COLLECTIVES_PRICED; kind++) {
        g_autofree char *key = yaml_key("collectives", collective_name(kind));
        if (!text->kind[kind]) {
            good = reader_note(
                reader, yaml_fail(reader->yaml, &reader->failure, key,
                                  "missing; expected this kind as well, or none of "
                                  "the six where machines name their nic"));
            continue;
        }
        good &= reader_note(reader,
                            reader_link(reader, key, &text->kind[kind]->line,
                                        &cluster->collective[kind], &reader->failure) &&
                                read_pieces(reader, key, text->kind[kind],
                                            &cluster->pieces[kind], &reader->failure));
    }
    return good &
           reader_note(reader, !text || !text->send ||
                                   reader_link(reader, "collectives.send", text->send,
                                               &cluster->transfer, &reader->failure));
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
        good &= reader_note(
            reader,
            reader_link(reader,
                        yaml_at(reader->yaml, "topology.links[%u]", spec->n_links),
                        &cable->line, &link->cost, &reader->failure));
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
static bool cluster_read_regions(ClusterReader *reader, GError **error)
{
    const ClusterText *text = reader->text;
    Cluster *cluster = reader->cluster;
    cluster->region_link = g_new0(RegionLink, text->region_count);
    items_at (const RegionText, from, i, text->region, text->region_count) {
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
    const bool types = reader_types(reader);
    if (reader_machines(reader) & types)
        read_collectives(reader);
    reader_note(reader, read_curves(reader, &reader->failure));
    reader_note(reader, read_network(reader, &reader->failure));
    reader_note(reader, cluster_read_regions(reader, &reader->failure));
    reader_note(reader, read_tuning(reader, &reader->failure));
    reader_note(reader, read_fit(reader, &reader->failure));
    if (reader->failures->len > 0)
        return refuse(error, "%s", reader->failures->str);
    cluster_finish(reader->cluster);
    if (!cluster_check_parts(reader->cluster, error))
        return kilter_prefix(error, "%s: ", yaml_file(reader->yaml));
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
