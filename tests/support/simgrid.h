/* SimGrid beside our network: a platform with the topology's links and our routes, and SimGrid with
 * the fair sharing that both have (CM02, correction factors off). SimGrid runs once per process
 * only, so that callers fork. */
#ifndef KILTER_TESTS_SUPPORT_SIMGRID_H
#define KILTER_TESTS_SUPPORT_SIMGRID_H

#include <glib/gstdio.h>
#include <simgrid/engine.h>
#include <string.h>
#include <unistd.h>

#include "sim/network/network.h"

typedef struct {
    uint32_t from, to;
} SimgridPair;

/* One host per device, named h0, h1, ..., one link per direction, one route per different pair.
 * Caller frees. */
static inline char *simgrid_platform(const Topology *topology, SimNetwork *network,
                                     const SimgridPair *pair, uint32_t n)
{
    GString *xml = g_string_new("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
                                "\"https://simgrid.org/simgrid.dtd\">\n"
                                "<platform version=\"4.1\">\n"
                                "<zone id=\"z\" routing=\"Full\">\n");
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (uint32_t j = 0; j < topology->n_devices; j++)
        g_string_append_printf(xml, "<host id=\"h%u\" speed=\"1Gf\"/>\n", j);
    for (uint32_t l = 0; l < topology->n_links; l++)
        g_string_append_printf(
            xml, "<link id=\"l%u\" bandwidth=\"%.17gBps\" latency=\"%.17gs\"/>\n", l,
            topology->link[l].bandwidth, topology->link[l].latency_s);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t link[ROUTE_MAX_LINKS];
        if (!g_hash_table_add(seen, GUINT_TO_POINTER(pair[i].from << 16 | pair[i].to)))
            continue;
        const uint32_t n_links =
            sim_network_route(network, pair[i].from, pair[i].to, link);
        g_string_append_printf(xml, "<route src=\"h%u\" dst=\"h%u\" symmetrical=\"NO\">",
                               pair[i].from, pair[i].to);
        for (uint32_t k = 0; k < n_links; k++)
            g_string_append_printf(xml, "<link_ctn id=\"l%u\"/>", link[k]);
        g_string_append(xml, "</route>\n");
    }
    g_string_append(xml, "</zone>\n</platform>\n");
    return g_string_free(xml, FALSE);
}

/* Starts SimGrid in this process. Returns whether the platform could be given to it. */
static inline bool simgrid_begin(const char *xml)
{
    char *argv[] = {
        (char *)"kilter", (char *)"--cfg=network/model:CM02",
        (char *)"--cfg=network/TCP-gamma:0", (char *)"--cfg=network/weight-S:0",
        (char *)"--cfg=network/latency-factor:1",
        (char *)"--cfg=network/bandwidth-factor:1",
        (char *)"--cfg=network/crosstraffic:0", (char *)"--cfg=maxmin/precision:1e-12",
        (char *)"--cfg=surf/precision:1e-12",
        /* Its lazy updates (3.32) keep old rates when a latency has passed. */
        (char *)"--cfg=network/optim:Full", (char *)"--cfg=contexts/factory:thread",
        (char *)"--log=root.thres:critical", NULL};
    int argc = G_N_ELEMENTS(argv) - 1;
    g_autofree char *file = NULL;
    const int handle = g_file_open_tmp("kilter-XXXXXX.xml", &file, NULL);
    const ssize_t length = (ssize_t)strlen(xml);
    if (handle < 0)
        return false;
    const bool written = write(handle, xml, (size_t)length) == length;
    close(handle);
    if (written) {
        simgrid_init(&argc, argv);
        simgrid_load_platform(file);
    }
    g_unlink(file);
    return written;
}

#endif
