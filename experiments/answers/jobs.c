/* Where several plans run on one cluster. */
#include "experiments/answers/jobs.h"

#include <string.h>

#include "data/base/names.h"

const char *const JOBS_ORDER_NAMES[] = {
    [JOBS_PACKED] = "packed", [JOBS_SPREAD] = "spread", [JOBS_ORDERS] = NULL};

/* A view's devices, machine by machine. */
typedef struct {
    const ClusterView *view;
    bool *taken; /* [device] */
} Places;

/* The devices of a machine are neighbours: sets the first one and returns their number. */
static uint32_t machine_devices(const ClusterView *view, uint32_t machine,
                                uint32_t *first)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < view->n_devices; d++)
        if (view->device[d].machine == machine && n++ == 0)
            *first = d;
    return n;
}

/* Takes free devices of a machine like the n devices, in their order; whether there are as many. */
static bool take(Places *places, uint32_t machine, const Device *device, uint32_t n,
                 uint32_t *place)
{
    uint32_t first = 0, found = 0;
    const uint32_t n_here = machine_devices(places->view, machine, &first);
    for (uint32_t d = first; d < first + n_here && found < n; d++)
        if (!places->taken[d] &&
            (strcmp(places->view->device[d].type_name, device[found].type_name) == 0 &&
             places->view->device[d].gpus == device[found].gpus &&
             places->view->device[d].rate == device[found].rate))
            place[found++] = d;
    for (uint32_t k = 0; found == n && k < n; k++)
        places->taken[place[k]] = true;
    return found == n;
}

/* Finds a place for one machine of a plan. */
static bool place_machine(Places *places, const Evaluation *plan, const char *name,
                          uint32_t machine, uint32_t *place, GError **error)
{
    const Cluster *cluster = places->view->cluster;
    const Machine *asked = &plan->view->cluster->machine[machine];
    uint32_t first = 0;
    const uint32_t n = machine_devices(plan->view, machine, &first);
    const uint32_t named =
        NAME_PLACE(cluster->machine, cluster->n_machines, name, asked->name);
    if (n == 0 || (named < cluster->n_machines &&
                   take(places, named, &plan->view->device[first], n, place + first)))
        return true;
    for (uint32_t m = 0; m < cluster->n_machines; m++)
        if (take(places, m, &plan->view->device[first], n, place + first))
            return true;
    g_autofree char *types = machine_types(plan->view->cluster, asked);
    return refuse(
        error, "%s: no machine of cluster %s has %u free GPUs for its machine %.60s (%s)",
        name, cluster->name, asked->gpus, asked->name, types);
}

static bool check_granularity(const Evaluation *plan, char *const *name, uint32_t n,
                              const ClusterView *view, GError **error)
{
    for (uint32_t i = 0; i < n; i++)
        if (plan[i].view->granularity != view->granularity)
            return refuse(error,
                          "%s is of another granularity than %s: expected plans of one "
                          "--granularity",
                          name[i], name[0]);
    return true;
}

bool jobs_place(const Evaluation *plan, char *const *name, uint32_t n,
                const ClusterView *view, JobsOrder order, uint32_t **place,
                GError **error)
{
    if (!check_granularity(plan, name, n, view, error))
        return false;
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        place[i] = g_new0(uint32_t, plan[i].view->n_devices);
        most = MAX(most, plan[i].view->cluster->n_machines);
    }
    g_autofree bool *taken = g_new0(bool, view->n_devices);
    Places places = {view, taken};
    const bool spread = order == JOBS_SPREAD;
    for (uint32_t outer = 0; outer < (spread ? most : n); outer++)
        for (uint32_t inner = 0; inner < (spread ? n : most); inner++) {
            const uint32_t i = spread ? inner : outer, m = spread ? outer : inner;
            if (m < plan[i].view->cluster->n_machines &&
                !place_machine(&places, &plan[i], name[i], m, place[i], error))
                return false;
        }
    return true;
}
