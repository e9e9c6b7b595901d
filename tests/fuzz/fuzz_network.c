/* Fuzz target: a text as a network ("star:hosts=8,...") is refused with one line, or makes a cluster whose network joins its
 * devices. */
#include "data/cluster/network_spec.h"
#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    enum { MOST_GPUS = 2000 };
    g_autofree char *text = g_strndup(data, size);
    g_autoptr(GError) error = NULL;
    if (!host_spec_is(text))
        return false;
    g_autoptr(Cluster) cluster = cluster_load(text, &error);
    fuzz_check(!cluster == !!error, "either a cluster or an error");
    if (!cluster) {
        fuzz_check_refused(error, NULL);
        return false;
    }
    if (cluster_gpus(cluster) > MOST_GPUS)
        return true;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Topology) topology = topology_of_view(view, NULL);
    fuzz_check(topology && topology->n_devices == view->n_devices,
               "a network of all devices");
    return true;
}
