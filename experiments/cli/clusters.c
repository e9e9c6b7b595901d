/* kilter clusters. */
#include <stdio.h>
#include <string.h>

#include "experiments/cli/command.h"
#include "experiments/json_values.h"

static json_t *entry_json(const char *name, const Cluster *cluster)
{
    json_t *machines = json_array();
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        const Machine *machine = &cluster->machine[i];
        const DeviceType *type = &cluster->type[machine->type];
        json_array_append_new(machines, json_pack("{s:s, s:s, s:i, s:o, s:I}", "name",
                                                  machine->name, "type", type->name,
                                                  "gpus", (int)machine->gpus, "rate",
                                                  json_number(type->rate), "memory_bytes",
                                                  (json_int_t)type->memory_bytes));
    }
    return json_pack("{s:s, s:s, s:i, s:o}", "name", name, "description",
                     cluster->description ? cluster->description : "", "gpus",
                     (int)cluster_gpus(cluster), "machines", machines);
}

/* "2 V100, 6 P100 machines": machines by type, in the order of the file. */
static char *machine_counts(const Cluster *cluster)
{
    GString *text = g_string_new(NULL);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < cluster->n_machines; i++)
            n += cluster->machine[i].type == t;
        if (n > 0)
            g_string_append_printf(text, "%s%u %s", text->len ? ", " : "", n,
                                   cluster->type[t].name);
    }
    return g_string_free(text, FALSE);
}

static void print_text(const char *name, const Cluster *cluster)
{
    g_autofree char *counts = machine_counts(cluster);
    printf("%-15s %3u GPUs; machines: %s\n", name, cluster_gpus(cluster), counts);
    if (cluster->description && *cluster->description)
        printf("%-15s %s\n", "", cluster->description);
}

/* --- one cluster --- */

static void print_link(const char *what, const LinkCost *link)
{
    g_autofree char *latency = units_format(link->latency_s, QUANTITY_TIME);
    g_autofree char *bandwidth = units_format(link->bandwidth, QUANTITY_BANDWIDTH);
    printf("  %-24s latency %-8s bandwidth %s\n", what, latency, bandwidth);
}

static void print_type(const DeviceType *type)
{
    g_autofree char *memory = units_format((double)type->memory_bytes, QUANTITY_BYTES);
    printf("  %-24s memory %s;", type->name, memory);
    for (Numbers n = 0; n < NUMBERS; n++) {
        g_autofree char *rate = units_format(device_type_rate(type, n), QUANTITY_RATE);
        if (device_type_rate(type, n) > 0)
            printf(" %s %s", numbers_name(n), rate);
    }
    printf(type->op ? "; fitted ops\n" : "\n");
}

/* Equal machines in a row are one line. */
static void print_machines(const Cluster *cluster)
{
    for (uint32_t i = 0, n; i < cluster->n_machines; i += n) {
        const Machine *machine = &cluster->machine[i];
        for (n = 1; i + n < cluster->n_machines; n++) {
            const Machine *next = &cluster->machine[i + n];
            if (next->type != machine->type || next->gpus != machine->gpus ||
                memcmp(&next->inner, &machine->inner, sizeof next->inner) != 0)
                break;
        }
        g_autofree char *what = g_strdup_printf("%u x %u %s", n, machine->gpus,
                                                cluster->type[machine->type].name);
        if (machine->gpus > 1)
            print_link(what, &machine->inner);
        else
            printf("  %s\n", what);
    }
}

static void print_whole(const char *name, const Cluster *cluster)
{
    print_text(name, cluster);
    puts("devices");
    for (uint32_t i = 0; i < cluster->n_types; i++)
        print_type(&cluster->type[i]);
    puts("machines, and the link inside");
    print_machines(cluster);
    if (cluster->n_machines == 1)
        return;
    puts("between machines");
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        print_link(collective_name((Collective)kind), &cluster->collective[kind]);
    if (cluster->transfer.bandwidth > 0)
        print_link("send", &cluster->transfer);
    for (uint32_t i = 0; cluster->network && i < cluster->network->n_links; i++) {
        const NetworkLink *link = &cluster->network->explicit_link[i];
        g_autofree char *ends = g_strdup_printf("%s - %s", link->from, link->to);
        print_link(ends, &link->cost);
    }
    if (*cluster->collective_source)
        printf("  (%s)\n", cluster->collective_source);
}

static json_t *inner_json(const Machine *machine)
{
    return machine->gpus == 1
               ? json_null()
               : json_pack("{s:o, s:o}", "latency_s",
                           json_number(machine->inner.latency_s), "bandwidth",
                           json_number(machine->inner.bandwidth));
}

/* The keys of the list, the numbers of the links, and the cluster's file as JSON. */
static json_t *whole_json(const char *name, const Cluster *cluster,
                          const GPtrArray *warnings)
{
    json_t *json = entry_json(name, cluster), *collectives = json_object();
    json_t *machines = json_object_get(json, "machines"), *said = json_array();
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        json_object_set_new(json_array_get(machines, i), "inner",
                            inner_json(&cluster->machine[i]));
    for (uint32_t kind = 0; cluster->n_machines > 1 && kind < COLLECTIVES_PRICED; kind++)
        json_object_set_new(collectives, collective_name((Collective)kind),
                            json_pack("{s:o, s:o}", "latency_s",
                                      json_number(cluster->collective[kind].latency_s),
                                      "bandwidth",
                                      json_number(cluster->collective[kind].bandwidth)));
    for (guint i = 0; i < warnings->len; i++)
        json_array_append_new(said, json_string(warnings->pdata[i]));
    g_autofree char *text = cluster_json_text(cluster);
    json_object_set_new(json, "collectives", collectives);
    json_object_set_new(json, "warnings", said);
    json_object_set_new(json, "cluster", json_loads(text, 0, NULL));
    return json;
}

static bool show(const char *name, const CommandOptions *options, GError **error)
{
    g_autoptr(Cluster) cluster = cluster_load(name, error);
    g_autoptr(Sheets) sheets = cluster ? sheets_load(error) : NULL;
    if (!sheets)
        return false;
    g_autoptr(GPtrArray) warnings = sheets_warnings(sheets, cluster);
    for (guint i = 0; i < warnings->len && !options->quiet; i++)
        fprintf(stderr, "kilter: %s: %s\n", name, (char *)warnings->pdata[i]);
    if (options->json)
        command_print_json(whole_json(name, cluster, warnings));
    else if (!options->quiet)
        print_whole(name, cluster);
    return true;
}

bool cmd_clusters(int argc, char **argv, GError **error)
{
    const CommandSyntax syntax = {
        .name = "clusters",
        .arguments = "[NAME|FILE]",
        .max_arguments = 1,
        .summary = "Lists the clusters on the search path: clusters/NAME.yaml below the "
                   "folders of "
                   "KILTER_PATH,\nthen the bundled ones. With a cluster's name or file "
                   "it shows that one: devices, machines, "
                   "links,\nand what collectives follow from them.",
        .example = "kilter clusters\n  kilter clusters dgx-h100",
    };
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    if (argc > 1)
        return show(argv[1], &options, error);
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    if (!*names) {
        g_autofree char *searched = path_searched();
        return kilter_fail(error, KILTER_ERROR_INPUT,
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
        if (!options.json && !options.quiet)
            print_text(*name, cluster);
    }
    if (options.json)
        command_print_json(list);
    else
        json_decref(list);
    return true;
}
