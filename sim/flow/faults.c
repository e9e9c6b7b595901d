/* Faults: devices and links that fail or slow down at given times. */
#include "sim/flow/faults.h"

#include <string.h>

#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/units.h"

/* --- reading --- */

static bool find_link(const Topology *topology, SimFault *fault, GError **error)
{
    if (!topology)
        return refuse(error, "no device '%s', and a crossbar has no links", fault->name);
    items_at (const TopologyLink, link, i, topology->link, topology->n_links) {
        g_autofree char *name = g_strdup_printf("%s>%s", topology->node[link->from].name,
                                                topology->node[link->to].name);
        if (strcmp(name, fault->name) == 0) {
            fault->index = i;
            return true;
        }
    }
    return refuse(error, "no device or link '%s', expected one such as %s>%s",
                  fault->name, topology->node[topology->link[0].from].name,
                  topology->node[topology->link[0].to].name);
}

static bool find_name(const SimCase *sim, const Topology *topology, SimFault *fault,
                      GError **error)
{
    const uint32_t n = sim->view->n_devices;
    fault->index = NAME_PLACE(sim->view->device, n, name, fault->name);
    fault->device = fault->factor == 0 && fault->index < n;
    return fault->device || find_link(topology, fault, error);
}

/* Reads "NAME@TIME", or "NAME*FACTOR@TIME" with a factor that divides the bandwidth. */
static bool read_fault(const char *text, bool slow, SimFault *fault, GError **error)
{
    const char *at = strrchr(text, '@');
    const char *star = slow ? strrchr(text, '*') : at;
    char *end = NULL;
    if (!at || !star || star > at ||
        !units_parse(at + 1, QUANTITY_TIME, &fault->time_s, NULL))
        return refuse(error, "expected %s@100ms, got '%s'",
                      slow ? "FROM>TO*FACTOR" : "NAME", text);
    if (slow) {
        const double factor = g_ascii_strtod(star + 1, &end);
        if (end != at || !number_in(factor, 1, 1 / NUMBER_LEAST))
            return refuse(error, "expected a factor of 1 or more after *, got '%s'",
                          text);
        fault->factor = 1 / factor;
    }
    fault->name = g_strndup(text, (gsize)(star - text));
    return true;
}

static bool read_list(const SimCase *sim, const Topology *topology, bool slow,
                      GArray *faults, GError **error)
{
    const char *list = slow ? sim->options->slow_link : sim->options->fail;
    g_auto(GStrv) texts = g_strsplit(list, "+", -1);
    for (char **text = texts; *text; text++) {
        SimFault fault = {0};
        bool good = read_fault(*text, slow, &fault, error);
        if (good) {
            g_array_append_val(faults, fault);
            good = find_name(sim, topology,
                             &g_array_index(faults, SimFault, faults->len - 1), error);
        }
        if (!good)
            return kilter_prefix(error, "option '%s': ", slow ? "slow_link" : "fail");
    }
    return true;
}

GArray *sim_faults_new(const SimCase *sim, const Topology *topology, GError **error)
{
    GArray *faults = array_owning(SimFault, free_first);
    if (read_list(sim, topology, true, faults, error) &&
        read_list(sim, topology, false, faults, error))
        return faults;
    g_array_unref(faults);
    return NULL;
}

/* --- in a run --- */

static void strike(SimEngine *engine, void *context, uint64_t argument)
{
    SimNetwork *network = context;
    const SimFault *fault = (const SimFault *)(uintptr_t)argument;
    const TopologyLink *link = &sim_network_topology(network)->link[fault->index];
    (void)engine;
    sim_network_set_bandwidth(network, fault->index, link->bandwidth * fault->factor);
}

void sim_faults_schedule(const GArray *faults, SimNetwork *network)
{
    g_assert(faults);
    array_each (const SimFault, fault, faults)
        if (!fault->device)
            sim_engine_schedule(sim_network_engine(network), fault->time_s, 0, strike,
                                network, (uint64_t)(uintptr_t)fault);
}

const SimFault *sim_faults_first(const GArray *faults, double end_s, bool stalled)
{
    const SimFault *first = NULL;
    array_each (const SimFault, fault, faults) {
        const bool counts = fault->factor == 0 &&
                            (fault->device ? stalled || fault->time_s < end_s : stalled);
        if (counts && (!first || fault->time_s < first->time_s))
            first = fault;
    }
    return first;
}
