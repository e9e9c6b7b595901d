/* kilter clusters. */
#include <stdio.h>

#include "experiments/cli/command.h"
#include "experiments/json_values.h"

static json_t *cluster_json(const char *name, const Cluster *cluster)
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

bool cmd_clusters(int argc, char **argv, GError **error)
{
    const CommandSyntax syntax = {
        .name = "clusters",
        .arguments = "",
        .summary = "Lists the clusters on the search path: clusters/NAME.yaml below the "
                   "folders of "
                   "KILTER_PATH,\nthen the bundled ones.",
        .example = "kilter clusters",
    };
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
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
        json_array_append_new(list, cluster_json(*name, cluster));
        if (!options.json && !options.quiet)
            print_text(*name, cluster);
    }
    if (options.json)
        command_print_json(list);
    else
        json_decref(list);
    return true;
}
