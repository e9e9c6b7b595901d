/* Clusters written as one text: equal hosts on a built network, for experiments with
 * networks rather than with models; and machines of named devices, which are a file of one line. */
#include <math.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/path.h"
#include "data/cluster/members.h"
#include "data/cluster/network_spec.h"

/* Sets the lines by which the stage model prices collectives. Latencies are those of the rings of
 * sim/network/lower/lowering.h over the routes of largest latency; bandwidths are the host's. Only
 * the simulation of flows shows the effect of the network's inner links. */
static void price(Cluster *cluster, const HostSpec *spec)
{
    static const uint32_t HOPS[] = {[NETWORK_STAR] = 2,
                                    [NETWORK_TREE] = 4,
                                    [NETWORK_RAIL] = 2,
                                    [NETWORK_DRAGONFLY] = 5};
    const NetworkSpec *network = &spec->network;
    const uint32_t hops = network->pod ? 6 : HOPS[network->kind];
    const double route_s = hops * network->link.latency_s;
    const double rounds = spec->hosts - 1;
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->collective[kind] =
            (LinkCost){rounds * route_s, network->kind == NETWORK_RAIL
                                             ? network->rails * network->link.bandwidth
                                             : network->link.bandwidth};
    cluster->collective[COLLECTIVE_ALL_REDUCE].latency_s = 2 * rounds * route_s;
    cluster->collective[COLLECTIVE_ALL_TO_ALL].latency_s = route_s;
}

static Cluster *make(const char *text, const HostSpec *spec)
{
    Cluster *cluster = g_new0(Cluster, 1);
    cluster->name = g_strdup(text);
    cluster->description = g_strdup("equal hosts on a built network");
    cluster->n_types = 1;
    cluster->type = g_new0(DeviceType, 1);
    cluster->type[0] = (DeviceType){.name = g_strdup("gpu"),
                                    .rate = spec->rate,
                                    .memory_bytes = (uint64_t)spec->memory,
                                    .source = g_strdup("the cluster's text")};
    cluster->n_machines = spec->hosts;
    cluster->machine = g_new0(Machine, spec->hosts);
    for (uint32_t i = 0; i < spec->hosts; i++)
        cluster->machine[i] = (Machine){.name = g_strdup_printf("host-%u", i),
                                        .gpus = spec->gpus,
                                        .inner = spec->inner,
                                        .source = g_strdup("the cluster's text")};
    cluster->network = g_memdup2(&spec->network, sizeof spec->network);
    cluster->network->source = g_strdup("the cluster's text");
    cluster->collective_source = g_strdup("the cluster's text, see data/cluster/spec.c");
    price(cluster, spec);
    return cluster;
}

Cluster *cluster_from_spec(const char *text, GError **error)
{
    HostSpec spec;
    if (!host_spec_parse(text, &spec, error))
        return NULL;
    const char *missing = !spec.hosts ? "hosts"
                          : spec.gpus > 1 && !(spec.inner.bandwidth > 0)
                              ? "inner_bandwidth"
                              : NULL;
    if (missing)
        return refused(error, "'%.200s': %s: missing", text, missing);
    if (spec.gpus == 1)
        spec.inner = (LinkCost){0, INFINITY};
    if ((uint64_t)spec.hosts * spec.gpus > GPUS_MAX)
        return refused(error, "'%.200s': expected at most %d GPUs in the cluster", text,
                       GPUS_MAX);
    if (!network_spec_check(&spec.network, spec.hosts, error)) {
        kilter_prefix(error, "'%.200s': ", text);
        return NULL;
    }
    return make(text, &spec);
}

/* --- machines --- */

char *machines_instance(const char *name)
{
    g_autofree char *low = g_ascii_strdown(name, -1);
    const bool azure = g_str_has_prefix(g_strdelimit(low, "_", '-'), "standard-");
    return path_line("instances.txt", low + (azure ? strlen("standard-") : 0));
}

bool machines_spec_is(const char *text)
{
    g_autofree char *first = g_strndup(text, strcspn(text, "@+,")),
                    *instance = machines_instance(g_strstrip(first));
    return *instance ||
           g_regex_match_simple("^[0-9]+(?: *[x*]| +[a-zA-Z])(?!.*\\.yaml$)", text, 0, 0);
}

/* A text with what a pattern matches in another form. Caller frees. */
static char *replaced(const char *text, const char *pattern, const char *form)
{
    g_autoptr(GRegex) regex =
        g_regex_new(pattern, G_REGEX_RAW | G_REGEX_CASELESS, 0, NULL);
    return g_regex_replace(regex, text, -1, 0, form, 0, NULL);
}

/* A group without blanks: "8xH100-SXM" of "8 x H100 SXM" and of "8 H100 SXM", "2x8xH100" of "2 nodes
 * of 8 H100"; and with the machine that an instance's name stands for. Caller frees. */
static char *group_plain(char *group)
{
    g_autofree char *plain = replaced(
        g_strstrip(group),
        "^([0-9]+) +(?:node|machine|server|host)s?\\b(?: +(?:of|with)\\b| *[x*])? *",
        "\\1x");
    g_autofree char *close = replaced(plain, " *(?<=[0-9 ])([x*@,]) *", "\\1");
    g_autofree char *tight = replaced(close, "^((?:[0-9]+x)?[0-9]+) +(?=[a-z])", "\\1x");
    g_strdelimit(tight, "*", 'x');
    const size_t head = strcspn(tight, "@,"), digits = strspn(tight, "0123456789"),
                 count = digits && tight[digits] == 'x' ? digits + 1 : 0;
    g_autofree char *name = g_strndup(tight + count, head - count),
                    *instance = machines_instance(name);
    for (size_t i = 0; i < head; i++)
        tight[i] = tight[i] == ' ' ? '-' : tight[i];
    if (!*instance)
        return g_steal_pointer(&tight);
    const int gpus =
        (int)(tight[head] == '@' ? strcspn(instance, "@") : strlen(instance));
    return g_strdup_printf("%.*s%.*s%s", (int)count, tight, gpus, instance, tight + head);
}

/* Appends a group, "4x8xh100-sxm@8xib-ndr": machines, if more than one, GPUs of each, their device;
 * NICs of each, if more than one; behind a comma further keys. `nic`: of groups that name none. */
static bool add_group(GString *yaml, const char *text, const char *nic, GError **error)
{
    g_autoptr(GRegex) form = g_regex_new(
        "^(?:([0-9]+)x)?([0-9]+)x((?:[a-zA-Z]|[0-9]{3})[\\w.-]*)(?:@(.+))?$", 0, 0, NULL);
    g_autoptr(GRegex) link = g_regex_new("^(?:([0-9]+)x)?([\\w./-]+)(?:,|$)", 0, 0, NULL);
    g_autoptr(GMatchInfo) of = NULL, by = NULL;
    g_auto(GStrv) pair = g_strsplit(text, ",", -1);
    const char *group = pair[0] ? pair[0] : "", *keys = text + strlen(group);
    if (!g_regex_match(form, group, 0, &of))
        return refuse(error,
                      "expected machines such as 4x8xh100-sxm@8xib-ndr (4 machines of "
                      "8 GPUs and 8 network cards each), got '%.60s'",
                      group);
    g_autofree char *count = g_match_info_fetch(of, 1), *gpus = g_match_info_fetch(of, 2),
                    *device = g_match_info_fetch(of, 3), *own = g_match_info_fetch(of, 4);
    g_string_append_printf(yaml, "  - {device: '%s', gpus: %s, count: %s", device, gpus,
                           *count ? count : "1");
    if (own && *own)
        nic = own;
    if (nic && !g_regex_match(link, nic, 0, &by))
        return refuse(
            error,
            "expected a network card such as ib-ndr or 8xeth-100 ('kilter links' "
            "lists them), got '%.60s'",
            nic);
    if (nic) {
        g_autofree char *nics = g_match_info_fetch(by, 1),
                        *name = g_match_info_fetch(by, 2);
        g_string_append_printf(yaml, ", nic: '%s', nics: %s", name, *nics ? nics : "1");
    }
    if (g_regex_match_simple("^,[0-9]+x", keys, 0, 0))
        return refuse(error,
                      "expected '+' between unlike machines, as in "
                      "2x8xh100-sxm+2x8xh20@8xib-ndr, got '%.60s'",
                      keys);
    if (!g_regex_match_simple("^(,[a-z_]+=[\\w./ -]+)*$", keys, 0, 0))
        return refuse(error, "expected keys such as host_memory=2TB, got '%.60s'", keys);
    for (uint32_t i = 1; *keys && pair[i]; i++) {
        g_auto(GStrv) part = g_strsplit(pair[i], "=", 2);
        if (g_str_equal(part[0], "region"))
            return refuse(error, "region: a region alone changes nothing, and the links "
                                 "between regions need a file (docs/clusters.md)");
        g_string_append_printf(yaml, ", %s: %s", part[0], part[1]);
    }
    g_string_append(yaml, "}\n");
    return true;
}

Cluster *cluster_from_machines(const char *text, GError **error)
{
    enum { LONGEST = 1000 };
    g_auto(GStrv) group = g_strsplit(text, "+", -1);
    g_autoptr(GString) yaml = g_string_new("machines:\n");
    const char *nic = NULL;
    for (uint32_t i = 0; group[i]; i++) {
        char *plain = group_plain(group[i]);
        put_block(group[i], plain);
        nic = strchr(group[i], '@') ? strchr(group[i], '@') + 1 : nic;
    }
    bool good = strlen(text) <= LONGEST ||
                refuse(error, "expected at most %d characters", LONGEST);
    for (uint32_t i = 0; good && group[i]; i++)
        good = add_group(yaml, group[i], nic, error);
    if (good && !nic &&
        (group[1] || !g_regex_match_simple("count: 1[,}]", yaml->str, 0, 0)))
        good = refuse(error, "several machines need a network card, as in "
                             "4x8xh100-sxm@8xib-ndr ('kilter links' lists cards)");
    if (!good) {
        kilter_prefix(error, "cluster '%.200s': ", text);
        return NULL;
    }
    g_string_append_printf(yaml, "name: '%s'\n", text);
    return cluster_parse(text, yaml->str, yaml->len, error);
}
