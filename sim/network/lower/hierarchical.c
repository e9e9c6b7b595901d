/* Algorithms inside machines and between them: GPU l of every machine is in ring l, or sends the
 * other machines the parts for GPUs l there. */
#include <math.h>

#include "sim/network/lower/lower.h"

typedef struct {
    Lower *lower;
    uint32_t machines, gpus; /* per group; a position is machine * gpus + l */
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
                return refuse(error,
                              "hierarchical: needs equally many ranks in each machine, "
                              "got %u and %u",
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
    case TRAFFIC_ALL_REDUCE:
        inside(&hierarchy, (gpus - 1) * bytes / gpus);
        between(&hierarchy, 2 * (machines - 1),
                2 * (machines - 1) * bytes / ((double)machines * gpus));
        inside(&hierarchy, (gpus - 1) * bytes / gpus);
        break;
    case TRAFFIC_ALL_GATHER:
        between(&hierarchy, machines - 1, (machines - 1) * part);
        inside(&hierarchy, (gpus - 1) * machines * part);
        break;
    default:
        inside(&hierarchy, (gpus - 1) * machines * part);
        between(&hierarchy, machines - 1, (machines - 1) * part);
    }
    return true;
}

/* --- all-to-all --- */

/* Shares of the tensor: the share that the GPUs of position i's machine hold together (`from`), or
 * the share that the GPUs of i's index get on all machines together. */
static double sum_machine_from(const Hierarchy *h, const uint32_t *ring, uint32_t i)
{
    return sum_over(double, l, h->gpus,
                    lower_share_from(h->lower, ring[i / h->gpus * h->gpus + l]));
}

static double sum_index_to(const Hierarchy *h, const uint32_t *ring, uint32_t i)
{
    return sum_over(double, m, h->machines,
                    lower_share_to(h->lower, ring[m * h->gpus + i % h->gpus]));
}

/* One round: position i sends held[i] wanted[j] V to every j of its machine (`inside`) or of
 * its index. */
static void hierarchical_exchange(const Hierarchy *h, bool inside, const double *held,
                                  const double *wanted)
{
    Lower *lower = h->lower;
    const uint32_t n = lower->n, near = inside ? h->gpus : h->machines;
    double largest = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t g = 0; g < lower->n_groups; g++)
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 1; k < near; k++) {
                    const uint32_t j =
                        inside ? i / near * near + (i + k) % near : (i + k * h->gpus) % n;
                    const double share = held[g * n + i] * wanted[g * n + j];
                    if (pass == 0)
                        largest = fmax(largest, share);
                    else if (largest > 0)
                        lower_hop(lower, g, i, j, share / largest);
                }
    if (near > 1)
        lower_rounds(lower, 1, largest * lower->collective->bytes, 0);
}

bool lower_hierarchical_all_to_all(Lower *lower, GError **error)
{
    Hierarchy hierarchy = {.lower = lower};
    const uint32_t n = lower->n;
    if (!find_hierarchy(&hierarchy, error))
        return false;
    g_autofree double *held = g_new(double, (size_t)lower->n_groups *n);
    g_autofree double *wanted = g_new(double, (size_t)lower->n_groups *n);
    /* GPU l of the machine gets the parts for all GPUs l. */
    for (uint32_t k = 0; k < lower->n_groups * n; k++) {
        const uint32_t *ring = &lower->ring[(size_t)(k / n) * n];
        held[k] = lower_share_from(lower, ring[k % n]);
        wanted[k] = sum_index_to(&hierarchy, ring, k % n);
    }
    hierarchical_exchange(&hierarchy, true, held, wanted);
    /* GPU l elsewhere gets its parts from this machine. */
    for (uint32_t k = 0; k < lower->n_groups * n; k++) {
        const uint32_t *ring = &lower->ring[(size_t)(k / n) * n];
        held[k] = sum_machine_from(&hierarchy, ring, k % n);
        wanted[k] = lower_share_to(lower, ring[k % n]);
    }
    hierarchical_exchange(&hierarchy, false, held, wanted);
    return true;
}
