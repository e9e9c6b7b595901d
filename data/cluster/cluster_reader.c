/* Numbers of cluster files, and a list of all that is wrong with one. */
#include "data/cluster/cluster_reader.h"

#include <string.h>

#include "data/base/error.h"

bool reader_note(ClusterReader *reader, bool good, GError **failure)
{
    if (!good)
        g_string_append_printf(reader->failures, "%s%s",
                               reader->failures->len ? "; " : "", (*failure)->message);
    g_clear_error(failure);
    return good;
}

static bool fail_missing(const ClusterReader *reader, const char *key, GError **error)
{
    return yaml_fail(reader->yaml, error, key, "missing; expected this key");
}

bool reader_link(const ClusterReader *reader, const char *key, const LinkText *text,
                 LinkCost *link, GError **error)
{
    g_autofree char *latency = yaml_key(key, "latency"),
                    *bandwidth = yaml_key(key, "bandwidth");
    if (!text->latency || !text->bandwidth)
        return fail_missing(reader, text->latency ? bandwidth : latency, error);
    return yaml_quantity(reader->yaml, latency, text->latency,
                         (YamlRange){QUANTITY_TIME, 0, LONGEST_S}, &link->latency_s,
                         error) &&
           yaml_quantity(reader->yaml, bandwidth, text->bandwidth,
                         (YamlRange){QUANTITY_BANDWIDTH, SMALLEST, LARGEST},
                         &link->bandwidth, error);
}

uint32_t reader_find_type(const Cluster *cluster, uint32_t n, const char *name)
{
    uint32_t i = 0;
    while (i < n && strcmp(cluster->type[i].name, name) != 0)
        i++;
    return i;
}

bool reader_factor(const ClusterReader *reader, const char *parent, const char *name,
                   const char *text, double largest, double *factor, GError **error)
{
    g_autofree char *key = yaml_key(parent, name);
    char *end;
    if (!text)
        return true;
    *factor = g_ascii_strtod(text, &end);
    if (end != text && *end == '\0' && *factor >= 1 && *factor <= largest)
        return true;
    return yaml_fail(reader->yaml, error, key, "expected a factor from 1 to %g, got '%s'",
                     largest, text);
}
