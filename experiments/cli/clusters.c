/* kilter clusters. */

#include "data/base/json.h"
#include "data/base/path.h"
#include "data/cluster/sheet.h"
#include "data/cluster/topology.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"

/* "2 V100, 6 P100": machines by the types of their GPUs, in the order of the types. */
static char *machine_counts(const Cluster *cluster)
{
    GString *text = g_string_new(NULL);
    g_autoptr(GPtrArray) seen = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t t = 0; t < cluster->n_types; t++)
        for (uint32_t first = 0; first < cluster->n_machines; first++) {
            if (cluster->machine[first].type != t)
                continue;
            char *types = machine_types(cluster, &cluster->machine[first]);
            const bool again =
                g_ptr_array_find_with_equal_func(seen, types, g_str_equal, NULL);
            g_ptr_array_add(seen, types);
            if (again)
                continue;
            uint32_t n = 0;
            for (uint32_t i = first; i < cluster->n_machines; i++) {
                g_autofree char *other =
                    cluster->machine[i].type == t
                        ? machine_types(cluster, &cluster->machine[i])
                        : NULL;
                n += g_strcmp0(other, types) == 0;
            }
            g_string_append_printf(
                text, cluster->machine[first].n_parts > 0 ? "%s%u (%s)" : "%s%u %s",
                text->len ? ", " : "", n, types);
        }
    return g_string_free(text, FALSE);
}

static json_t *entry_json(const char *name, const Cluster *cluster)
{
    json_t *machines = json_array();
    items_each (const Machine, machine, cluster->machine, cluster->n_machines) {
        const DeviceType *type = &cluster->type[machine->type];
        g_autofree char *types = machine_types(cluster, machine);
        json_array_append_new(machines, json_pack("{s:s, s:s, s:i, s:o, s:I}", "name",
                                                  machine->name, "type", types, "gpus",
                                                  (int)machine->gpus, "rate",
                                                  json_number(type->rate), "memory_bytes",
                                                  (json_int_t)type->memory_bytes));
    }
    g_autofree char *counts = machine_counts(cluster);
    return json_pack("{s:s, s:s, s:i, s:s, s:o}", "name", name, "description",
                     cluster->description ? cluster->description : "", "gpus",
                     (int)cluster_gpus(cluster), "machine_counts", counts, "machines",
                     machines);
}

/* --- one cluster --- */

static json_t *clusters_link_json(const LinkCost *link, json_t *what)
{
    return json_pack("{s:o, s:o, s:o*}", "latency_s", json_number(link->latency_s),
                     "bandwidth", json_number(link->bandwidth), "what", what);
}

/* The costs between machines: collectives, then links. */
static json_t *between_json(const Cluster *cluster)
{
    json_t *list = json_array();
    if (cluster->n_machines == 1)
        return list;
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        json_array_append_new(
            list, clusters_link_json(&cluster->collective[kind],
                                     json_string(collective_name((Collective)kind))));
    if (cluster->transfer.bandwidth > 0)
        json_array_append_new(
            list, clusters_link_json(&cluster->transfer, json_string("send")));
    for (uint32_t i = 0; cluster->network && i < cluster->network->n_links; i++) {
        const NetworkLink *link = &cluster->network->explicit_link[i];
        json_array_append_new(
            list, clusters_link_json(&link->cost,
                                     json_sprintf("%s - %s", link->from, link->to)));
    }
    return list;
}

static json_t *type_json(const DeviceType *type)
{
    json_t *rates = json_object();
    for (Numbers n = 0; n < NUMBERS; n++)
        if (device_type_rate(type, n) > 0)
            json_object_set_new(rates, numbers_name(n),
                                json_number(device_type_rate(type, n)));
    return json_pack("{s:s, s:I, s:o, s:b}", "name", type->name, "memory_bytes",
                     (json_int_t)type->memory_bytes, "rates", rates, "fitted",
                     type->op != NULL);
}

/* The keys of the list, the numbers of the links, and the cluster's file as JSON. */
static json_t *whole_json(const char *name, const Cluster *cluster,
                          const GPtrArray *warnings)
{
    json_t *json = entry_json(name, cluster), *collectives = json_object();
    json_t *machines = json_object_get(json, "machines");
    json_t *devices =
        json_list(places_before(i, cluster->n_types), type_json(&cluster->type[i]));
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        json_object_set_new(json_array_get(machines, i), "inner",
                            cluster->machine[i].gpus == 1
                                ? json_null()
                                : clusters_link_json(&cluster->machine[i].inner, NULL));
    for (uint32_t kind = 0; cluster->n_machines > 1 && kind < COLLECTIVES_PRICED; kind++)
        json_object_set_new(collectives, collective_name((Collective)kind),
                            clusters_link_json(&cluster->collective[kind], NULL));
    g_autofree char *text = cluster_json_text(cluster);
    json_object_update_new(json, json_pack("{s:o, s:o*, s:s*, s:o, s:o, s:o*}", "devices",
                                           devices, "between", between_json(cluster),
                                           "collective_source",
                                           cluster->collective_source, "collectives",
                                           collectives, "warnings", json_texts(warnings),
                                           "cluster", json_loads(text, 0, NULL)));
    return json;
}

static bool clusters_show(const char *name, const CommandOptions *options, GError **error)
{
    g_autoptr(Cluster) cluster = cluster_load(name, error);
    g_autoptr(GPtrArray) warnings = cluster ? sheets_warnings(cluster, error) : NULL;
    if (!warnings)
        return false;
    sheets_gaps(cluster, warnings);
    for (guint i = 0; i < warnings->len && !options->quiet; i++)
        limits_note("%s: %s", name, (char *)warnings->pdata[i]);
    command_report(options, whole_json(name, cluster, warnings), ANSWER_CLUSTER, NULL);
    return true;
}

COMMAND_PLAIN(clusters)
{
    if (argc > 1)
        return clusters_show(argv[1], options, error);
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    if (!*names) {
        g_autofree char *searched = path_searched();
        return refuse(error,
                      "no bundled data found: no clusters/ in %s; KILTER_PATH names "
                      "further folders",
                      searched);
    }
    json_t *list = json_array();
    for (char **name = names; *name; name++) {
        g_autoptr(Cluster) cluster = cluster_load(*name, error);
        if (!cluster) {
            json_decref(list);
            return false;
        }
        json_array_append_new(list, entry_json(*name, cluster));
    }
    command_report(options, list, ANSWER_CLUSTERS, NULL);
    return true;
}
