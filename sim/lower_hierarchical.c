/* Rings inside machines and rings between them: GPU l of every machine is in ring l. */
#include "data/data.h"
#include "sim/lower.h"

typedef struct {
    Lower *lower;
    uint32_t machines, gpus; /* of each group; positions are machine * gpus + l */
} Hierarchy;

/* Checks that each machine has equally many ranks, next to one another in the ring. */
static bool find_hierarchy(Hierarchy *hierarchy, GError **error)
{
    Lower *lower = hierarchy->lower;
    const Topology *topology = sim_network_topology(lower->network);
    const uint32_t n = lower->n;

    hierarchy->gpus = 0;
    for (uint32_t g = 0; g < lower->n_groups; g++) {
        const uint32_t *device = &lower->collective->device[(size_t)g * n];
        const uint32_t *ring = &lower->ring[(size_t)g * n];
        for (uint32_t i = 0, next; i < n; i = next) {
            const uint32_t machine = topology->machine[device[ring[i]]];
            next = i + 1;
            while (next < n && topology->machine[device[ring[next]]] == machine)
                next++;
            if (!hierarchy->gpus)
                hierarchy->gpus = next - i;
            if (next - i != hierarchy->gpus)
                return kilter_fail(error, KILTER_ERROR_INPUT,
                                   "hierarchical: needs equally many ranks in each "
                                   "machine, got %u and %u",
                                   hierarchy->gpus, next - i);
        }
    }
    hierarchy->machines = n / hierarchy->gpus;
    return true;
}

static void inside(const Hierarchy *hierarchy, double bytes)
{
    const uint32_t gpus = hierarchy->gpus;
    if (gpus == 1)
        return;
    for (uint32_t g = 0; g < hierarchy->lower->n_groups; g++)
        for (uint32_t i = 0; i < hierarchy->lower->n; i++)
            lower_hop(hierarchy->lower, g, i, i / gpus * gpus + (i + 1) % gpus, 1);
    lower_rounds(hierarchy->lower, gpus - 1, bytes, 0);
}

static void between(const Hierarchy *hierarchy, uint32_t steps, double bytes)
{
    if (hierarchy->machines == 1)
        return;
    for (uint32_t g = 0; g < hierarchy->lower->n_groups; g++)
        for (uint32_t i = 0; i < hierarchy->lower->n; i++)
            lower_hop(hierarchy->lower, g, i, (i + hierarchy->gpus) % hierarchy->lower->n,
                      1);
    lower_rounds(hierarchy->lower, steps, bytes, 0);
}

bool lower_hierarchical(Lower *lower, GError **error)
{
    Hierarchy hierarchy = {.lower = lower};
    if (!find_hierarchy(&hierarchy, error))
        return false;
    const double bytes = lower->collective->bytes;
    const uint32_t gpus = hierarchy.gpus, machines = hierarchy.machines;
    const double part = lower_part_bytes(lower);

    switch (lower->collective->traffic) {
    case SIM_ALL_REDUCE:
        inside(&hierarchy, (gpus - 1) * bytes / gpus);
        between(&hierarchy, 2 * (machines - 1),
                2 * (machines - 1) * bytes / ((double)machines * gpus));
        inside(&hierarchy, (gpus - 1) * bytes / gpus);
        break;
    case SIM_ALL_GATHER:
        between(&hierarchy, machines - 1, (machines - 1) * part);
        inside(&hierarchy, (gpus - 1) * machines * part);
        break;
    default:
        inside(&hierarchy, (gpus - 1) * machines * part);
        between(&hierarchy, machines - 1, (machines - 1) * part);
    }
    return true;
}
