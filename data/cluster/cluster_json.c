/* A cluster as the tree of its file, which cluster_write and cluster_canonical print. Every member
 * of Cluster on which an answer can depend has a key here; tests/unit/test_identity.c walks the
 * reader's schema and fails on a key that is missing. */
#include "data/cluster/cluster_json.h"

#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/units.h"
#include "data/cluster/cluster_yaml.h"
#include "data/cluster/network_spec.h"

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(object, key, json_string(text));
}

/* Infinite quantities have no key. */
static void set_quantity(json_t *object, const char *key, double value, Quantity quantity)
{
    if (!isfinite(value))
        return;
    g_autofree char *text = units_exact(value, quantity);
    json_object_set_new(object, key, json_string(text));
}

static void set_link(json_t *object, const LinkCost *link)
{
    MEMBERS_JSON(LINK_MEMBER, link, object);
}

static void set_link_at(json_t *object, const char *key, const LinkCost *link)
{
    json_t *of = json_object();
    set_link(of, link);
    json_object_set_new(object, key, of);
}

/* --- device types --- */

/* Numbers by format that are known, or nothing. */
static void set_formats(json_t *object, const char *key, const double *rates)
{
    json_auto_t *known = json_object();
    for (Numbers n = 0; n < NUMBERS; n++)
        if (rates[n] > 0)
            set_quantity(known, numbers_name(n), rates[n], QUANTITY_RATE);
    if (json_object_size(known) > 0)
        json_object_set(object, key, known);
}

static json_t *type_json(const DeviceType *type)
{
    json_t *object = json_pack("{s:s}", "name", type->name);
    MEMBERS_JSON(TYPE_MEMBER, type, object);
    set_formats(object, "rates", type->rates);
    set_formats(object, "peaks", type->peaks);
    if (chip_is_known(&type->chip)) {
        json_t *chip = json_object();
        MEMBERS_JSON(CHIP_MEMBER, &type->chip, chip);
        json_object_set_new(object, "chip", chip);
        json_auto_t *kernels = json_object();
        MEMBERS_JSON(KERNEL_FACTOR, &type->kernel_times, kernels);
        if (json_object_size(kernels) > 0)
            json_object_set(object, "kernels", kernels);
    }
    set_text(object, "source", type->source);
    if (type->op)
        json_object_set_new(object, "ops", op_costs_json(type->op, type->launch_s));
    return object;
}

/* --- machines --- */

/* The length of NAME if the machine's name is "NAME-number", else 0. */
static size_t numbered(const Machine *machine, uint32_t number)
{
    g_autofree char *suffix = g_strdup_printf("-%u", number);
    size_t length = strlen(machine->name), n = strlen(suffix);
    return g_str_has_suffix(machine->name, suffix) ? length - n : 0;
}

static bool same_link(const LinkCost *a, const LinkCost *b)
{
    return a->latency_s == b->latency_s && a->bandwidth == b->bandwidth;
}

static bool same_port(const Port *a, const Port *b)
{
    return a->bandwidth == b->bandwidth && a->gpu == b->gpu && a->base_s == b->base_s &&
           a->hop_s == b->hop_s && a->nics == b->nics;
}

static bool alike(const Machine *a, const Machine *b)
{
    return (a->n_parts == b->n_parts &&
            (a->n_parts == 0 ||
             memcmp(a->part, b->part, a->n_parts * sizeof *a->part) == 0)) &&
           a->type == b->type && a->gpus == b->gpus && same_link(&a->inner, &b->inner) &&
           same_link(&a->peer, &b->peer) && same_link(&a->across, &b->across) &&
           same_port(&a->port, &b->port) && a->sums == b->sums &&
           a->tree_sums == b->tree_sums && a->stretch == b->stretch &&
           a->price == b->price && a->preemptible == b->preemptible &&
           a->host_memory_bytes == b->host_memory_bytes && a->host_link == b->host_link &&
           a->host_bandwidth == b->host_bandwidth &&
           g_strcmp0(a->domain, b->domain) == 0 && g_strcmp0(a->region, b->region) == 0 &&
           g_strcmp0(a->peers, b->peers) == 0 && g_strcmp0(a->source, b->source) == 0;
}

/* The number of equal machines from `first` on that are called NAME-0, NAME-1, ...; at least 1. */
static uint32_t run_of(const Cluster *cluster, uint32_t first)
{
    KILTER_ASSERT(first < cluster->n_machines);
    const Machine *machine = &cluster->machine[first];
    const size_t length = numbered(machine, 0);
    uint32_t n = 1;
    while (length > 0 && first + n < cluster->n_machines && alike(machine, &machine[n]) &&
           numbered(&machine[n], n) == length &&
           strncmp(machine->name, machine[n].name, length) == 0)
        n++;
    return n;
}

static json_t *parts_json(const Cluster *cluster, const Machine *machine)
{
    json_t *list = json_array();
    for (uint32_t p = 0; p < machine->n_parts; p++)
        json_array_append_new(list, json_pack("{s:s, s:i}", "type",
                                              cluster->type[machine->part[p].type].name,
                                              "gpus", (int)machine->part[p].gpus));
    return list;
}

static json_t *group_json(const Cluster *cluster, const Machine *machine, uint32_t n)
{
    KILTER_ASSERT(n > 0);
    g_autofree char *name =
        n > 1 ? g_strndup(machine->name, numbered(machine, 0)) : g_strdup(machine->name);
    json_t *object = json_pack("{s:s}", "name", name);
    if (n > 1)
        json_object_set_new(object, "count", json_integer(n));
    MEMBERS_JSON(MACHINE_MEMBER, machine, object);
    if (machine->n_parts == 0) {
        set_text(object, "type", cluster->type[machine->type].name);
    } else {
        json_object_set_new(object, "devices", parts_json(cluster, machine));
        json_object_del(object, "gpus");
    }
    if (isfinite(machine->inner.bandwidth))
        set_link_at(object, "inner", &machine->inner);
    if (machine->peer.bandwidth > 0)
        set_link_at(object, "peer", &machine->peer);
    if (machine->across.bandwidth > 0)
        set_link_at(object, "across", &machine->across);
    if (machine->port.bandwidth > 0) {
        json_t *port = json_object();
        MEMBERS_JSON(PORT_MEMBER, &machine->port, port);
        json_object_set_new(object, "port", port);
    }
    set_text(object, "peers", machine->peers);
    set_text(object, "domain", machine->domain);
    set_text(object, "region", machine->region);
    set_text(object, "source", machine->source);
    return object;
}

static json_t *machines_json(const Cluster *cluster)
{
    json_t *list = json_array();
    for (uint32_t i = 0, n; i < cluster->n_machines; i += n) {
        n = run_of(cluster, i);
        json_array_append_new(list, group_json(cluster, &cluster->machine[i], n));
    }
    return list;
}

/* --- between machines --- */

static json_t *collective_json(const Cluster *cluster, Collective kind)
{
    KILTER_ASSERT(kind < (Collective)COLLECTIVES_PRICED);
    const CollectivePieces *pieces = &cluster->pieces[kind];
    json_t *object = json_object();
    set_link(object, &cluster->collective[kind]);
    if (pieces->largest > 0)
        MEMBERS_JSON(PIECES_MEMBER, pieces, object);
    json_t *list = pieces->n > 0 ? json_array() : NULL;
    for (uint32_t i = 0; i < pieces->n; i++) {
        json_t *piece = json_object();
        set_quantity(piece, "up_to", pieces->piece[i].up_to, QUANTITY_BYTES);
        set_link(piece, &pieces->piece[i].line);
        json_array_append_new(list, piece);
    }
    if (list)
        json_object_set_new(object, "pieces", list);
    return object;
}

static json_t *collectives_json(const Cluster *cluster)
{
    json_t *object = json_object();
    for (uint32_t kind = 0; !cluster->wired && kind < COLLECTIVES_PRICED; kind++)
        json_object_set_new(object, collective_name((Collective)kind),
                            collective_json(cluster, (Collective)kind));
    if (cluster->transfer.bandwidth > 0)
        set_link_at(object, "send", &cluster->transfer);
    set_text(object, "source", cluster->collective_source);
    return object;
}

static json_t *regions_json(const Cluster *cluster)
{
    json_t *list = json_array();
    items_each (const RegionLink, link, cluster->region_link, cluster->n_region_links) {
        json_t *object = json_pack("{s:s, s:s}", "from", link->from, "to", link->to);
        set_link(object, &link->link);
        MEMBERS_JSON(REGION_MEMBER, link, object);
        set_text(object, "source", link->source);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *cable_json(const NetworkLink *link)
{
    json_t *object = json_pack("{s:s, s:s}", "from", link->from, "to", link->to);
    set_link(object, &link->cost);
    return object;
}

static json_t *topology_json(const NetworkSpec *network)
{
    json_t *object = json_object();
    if (network->kind != NETWORK_LINKS) {
        g_autofree char *builder = network_spec_text(network);
        set_text(object, "builder", builder);
    } else {
        json_t *nodes = json_array(), *links = json_array();
        for (uint32_t i = 0; i < network->n_nodes; i++)
            json_array_append_new(nodes, json_string(network->node[i]));
        for (uint32_t i = 0; i < network->n_links; i++)
            json_array_append_new(links, cable_json(&network->explicit_link[i]));
        if (network->n_nodes > 0)
            json_object_set(object, "nodes", nodes);
        json_decref(nodes);
        json_object_set_new(object, "links", links);
    }
    set_text(object, "source", network->source);
    return object;
}

json_t *cluster_json(const Cluster *cluster)
{
    json_t *object = json_pack("{s:s}", "name", cluster->name), *types = json_array();
    set_text(object, "description", cluster->description);
    for (uint32_t i = 0; i < cluster->n_types; i++)
        json_array_append_new(types, type_json(&cluster->type[i]));
    json_object_set_new(object, "device_types", types);
    json_object_set_new(object, "machines", machines_json(cluster));
    if (cluster->n_machines > 1)
        json_object_set_new(object, "collectives", collectives_json(cluster));
    if (cluster->curves.n > 0)
        json_object_set_new(object, "curves", curves_json(&cluster->curves));
    if (cluster->n_region_links > 0)
        json_object_set_new(object, "regions", regions_json(cluster));
    if (cluster->network)
        json_object_set_new(object, "topology", topology_json(cluster->network));
    if (cluster->tuning)
        json_object_set_new(object, "tuning", tuning_json(cluster->tuning));
    if (cluster->fitted)
        json_object_set_new(object, "fit", fitted_json(cluster->fitted));
    return object;
}
