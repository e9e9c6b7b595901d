/* Machines of GPUs of one type, or of unlike ones. */
#include <math.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/cluster/change.h"
#include "data/cluster/network_spec.h"

void machine_clear(Machine *machine)
{
    g_free(machine->name);
    g_free(machine->source);
    g_free(machine->peers);
    g_free(machine->part);
    g_free(machine->domain);
    g_free(machine->region);
}

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

/* --- some of the GPUs --- */

/* The direct links among the GPUs that stay, as the machine's text. */
static void cut_peers(Machine *machine, const bool *keep)
{
    Peers all, left = {0};
    if (!machine->peers || !peers_parse(machine->peers, machine->gpus, &all, NULL))
        return;
    uint32_t place[PEERS_MAX_GPUS];
    for (uint32_t i = 0; i < all.n; i++)
        if (keep[i])
            place[left.n++] = i;
    for (uint32_t a = 0; a < left.n; a++)
        for (uint32_t b = 0; b < left.n; b++)
            left.link[a][b] = all.link[place[a]][place[b]];
    g_free(machine->peers);
    machine->peers = peers_text(&left);
    if (!*machine->peers)
        g_clear_pointer(&machine->peers, g_free);
}

static bool names_gpus(const Cluster *cluster, const Machine *machine)
{
    const NetworkSpec *network = cluster->network;
    g_autofree char *prefix = g_strconcat(machine->name, ":", NULL);
    for (uint32_t i = 0; network && i < network->n_links; i++)
        if (g_str_has_prefix(network->explicit_link[i].from, prefix) ||
            g_str_has_prefix(network->explicit_link[i].to, prefix))
            return true;
    return false;
}

/* Cuts a machine of which `left` GPUs stay, not all of them and at least one. */
static bool cut_machine(const Cluster *cluster, Machine *machine, const bool *keep,
                        uint32_t left, GError **error)
{
    g_autofree MachinePart *part = g_new(MachinePart, left);
    uint32_t n = 0;
    if (names_gpus(cluster, machine))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "cluster %s names links of the GPUs of machine %s: expected "
                           "the machine as a whole",
                           cluster->name, machine->name);
    cut_peers(machine, keep);
    for (uint32_t g = 0; g < machine->gpus; g++)
        if (keep[g])
            part[n++] = (MachinePart){machine_type_at(machine, g), 1};
    g_assert(n == left);
    machine_set_parts(machine, n, part);
    if (machine->gpus == 1)
        machine->inner = (LinkCost){0, INFINITY};
    return true;
}

bool cluster_keep_gpus(Cluster *cluster, const bool *keep, GError **error)
{
    g_autofree bool *machines = g_new(bool, cluster->n_machines);
    for (uint32_t i = 0; i < cluster->n_machines; i++) {
        Machine *machine = &cluster->machine[i];
        const uint32_t gpus = machine->gpus;
        uint32_t left = 0;
        for (uint32_t g = 0; g < gpus; g++)
            left += keep[g];
        machines[i] = left > 0;
        if (left > 0 && left < gpus && !cut_machine(cluster, machine, keep, left, error))
            return false;
        keep += gpus;
    }
    return cluster_keep(cluster, machines, error);
}
