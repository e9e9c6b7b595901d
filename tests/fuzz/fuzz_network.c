/* Fuzz target: a text as a network ("star:hosts=8,...") is refused with one line, or makes a
 * cluster whose network joins its devices. As the network of listed machines, which has no
 * hosts, it is refused with one line, or reads as it was written. */
#include <string.h>

#include "data/cluster/network_spec.h"
#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static bool read_alone(const char *text)
{
    g_autoptr(GError) error = NULL;
    NetworkSpec *spec = network_spec_parse(text, &error);
    fuzz_check(!spec == !!error, "either a network or an error");
    if (!spec) {
        fuzz_check_refused(error, NULL);
        return false;
    }
    g_autofree char *written = network_spec_text(spec);
    NetworkSpec *again = network_spec_parse(written, NULL);
    fuzz_check(again && memcmp(spec, again, sizeof *spec) == 0,
               "reads as it was written");
    network_spec_free(spec);
    network_spec_free(again);
    return true;
}

bool fuzz_read(const void *data, size_t size)
{
    enum { MOST_GPUS = 2000 };
    g_autofree char *text = g_strndup(data, size);
    g_autoptr(GError) error = NULL;
    if (!host_spec_is(text))
        return false;
    const bool alone = read_alone(text);
    g_autoptr(Cluster) cluster = cluster_load(text, &error);
    fuzz_check(!cluster == !!error, "either a cluster or an error");
    if (!cluster) {
        fuzz_check_refused(error, NULL);
        return alone;
    }
    fuzz_check(!alone, "either the network of listed machines or a cluster");
    fuzz_note("%s %u", cluster->name, cluster_gpus(cluster));
    if (cluster_gpus(cluster) > MOST_GPUS)
        return true;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Topology) topology = topology_of_view(view, NULL);
    fuzz_check(topology && topology->n_devices == view->n_devices,
               "a network of all devices");
    return true;
}
