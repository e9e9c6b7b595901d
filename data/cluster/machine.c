/* Machines of GPUs of one type, or of unlike ones. */
#include "data/base/assert.h"
#include "data/base/free.h"
#include "data/cluster/cluster.h"

CLEAR_DEFINE(machine_clear, Machine, machine,
             free_each(machine->name, machine->source, machine->peers, machine->part,
                       machine->domain, machine->region));

void machine_set_parts(Machine *machine, uint32_t n, const MachinePart *part)
{
    g_assert(n > 0);
    MachinePart *kept = g_new(MachinePart, n);
    uint32_t n_kept = 0;
    machine->gpus = 0;
    for (uint32_t p = 0; p < n; p++) {
        if (part[p].gpus == 0)
            continue;
        machine->gpus += part[p].gpus;
        if (n_kept > 0 && kept[n_kept - 1].type == part[p].type)
            kept[n_kept - 1].gpus += part[p].gpus;
        else
            kept[n_kept++] = part[p];
    }
    KILTER_ASSERT(n_kept > 0);
    machine->type = kept[0].type;
    g_free(machine->part);
    machine->n_parts = n_kept > 1 ? n_kept : 0;
    machine->part = kept;
    if (n_kept == 1)
        g_clear_pointer(&machine->part, g_free);
}

uint32_t machine_type_at(const Machine *machine, uint32_t gpu)
{
    KILTER_ASSERT(gpu < machine->gpus);
    for (uint32_t p = 0; p < machine->n_parts; p++) {
        if (gpu < machine->part[p].gpus)
            return machine->part[p].type;
        gpu -= machine->part[p].gpus;
    }
    return machine->type;
}

uint32_t machine_gpus_of(const Machine *machine, uint32_t type)
{
    if (machine->n_parts == 0)
        return machine->type == type ? machine->gpus : 0;
    uint32_t gpus = 0;
    for (uint32_t p = 0; p < machine->n_parts; p++)
        gpus += machine->part[p].type == type ? machine->part[p].gpus : 0;
    return gpus;
}

char *cluster_kinds_text(const Cluster *cluster)
{
    GString *text = g_string_new(NULL);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        const uint32_t gpus = sum_over(uint32_t, i, cluster->n_machines,
                                       machine_gpus_of(&cluster->machine[i], t));
        if (gpus > 0)
            g_string_append_printf(text, "%s%u %s", text->len ? ", " : "", gpus,
                                   cluster->type[t].name);
    }
    return g_string_free(text, FALSE);
}

char *machine_types(const Cluster *cluster, const Machine *machine)
{
    if (machine->n_parts == 0)
        return g_strdup(cluster->type[machine->type].name);
    GString *text = g_string_new(NULL);
    for (uint32_t p = 0; p < machine->n_parts; p++)
        g_string_append_printf(text, "%s%u %s", p ? " + " : "", machine->part[p].gpus,
                               cluster->type[machine->part[p].type].name);
    return g_string_free(text, FALSE);
}

const Machine *cluster_mixed(const Cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        if (cluster->machine[i].n_parts > 0)
            return &cluster->machine[i];
    return NULL;
}
