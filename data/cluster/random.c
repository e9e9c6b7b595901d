/* Random topologies, as TAG trains and tests with (TPDS 2023, Sec. 5.2, 5.7): "random:seed=7".
 * Ranges are those of data/random/topologies.csv; device types, the latency inside machines and the
 * lines of collectives come from the cluster that the file names, with bandwidths reduced in
 * proportion to the slowest port. */
#include <string.h>

#include "data/base/assert.h"
#include "data/base/csv.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/path.h"
#include "data/base/units.h"
#include "data/cluster/network_spec.h"

static const char PREFIX[] = "random:";

bool random_spec_is(const char *text)
{
    return g_str_has_prefix(text, PREFIX);
}

/* --- ranges --- */

enum { MACHINES, GPUS, INNER, BETWEEN, LATENCY, RANGES };

typedef struct {
    double low[RANGES], high[RANGES]; /* counts, bytes/s or s */
    bool known[RANGES];
    char *cluster;
} Ranges;

OWN_CLEAR_DEFINE(ranges_clear, Ranges, r, g_free(r->cluster));

static bool read_end(const Csv *csv, const char *column, uint32_t k, double *value,
                     GError **error)
{
    enum { MOST = 64 };
    if (k <= GPUS)
        return csv_number(csv, column, 1, MOST, value, error);
    g_autofree char *text =
        g_strdup_printf("%s %s", csv_text(csv, column), csv_text(csv, "unit"));
    return units_parse(text, k == LATENCY ? QUANTITY_TIME : QUANTITY_BANDWIDTH, value,
                       error);
}

static bool take_range(const Csv *csv, void *data, GError **error)
{
    static const char *const NAME[] = {"machines", "gpus",    "inner",
                                       "between",  "latency", NULL};
    Ranges *r = data;
    uint32_t k = 0;
    while (k < RANGES && strcmp(csv_text(csv, "what"), NAME[k]) != 0)
        k++;
    if (k == RANGES)
        return csv_fail(csv, "what", error,
                        "expected machines, gpus, inner, between or latency");
    if (!read_end(csv, "low", k, &r->low[k], error) ||
        !read_end(csv, "high", k, &r->high[k], error))
        return false;
    r->known[k] = true;
    put_block(r->cluster, g_strdup(csv_text(csv, "cluster")));
    return r->low[k] > 0 && r->low[k] <= r->high[k]
               ? true
               : csv_fail(csv, "high", error, "expected at least what is low");
}

static bool read_ranges(Ranges *r, GError **error)
{
    static const char *const columns[] = {"what",    "low",    "high", "unit",
                                          "cluster", "source", NULL};
    g_autofree char *path = path_find("random/topologies.csv");
    g_autoptr(Csv) csv = path ? csv_read(path, error) : NULL;
    if (!path)
        return refuse(error, "no bundled data found: random/topologies.csv");
    if (!csv || !csv_expect(csv, columns, NULL, error) ||
        !csv_each(csv, take_range, r, error))
        return false;
    for (uint32_t k = 0; k < RANGES; k++)
        if (!r->known[k])
            return refuse(error, "%s: a range is missing", path);
    return true;
}

/* --- a topology --- */

static void random_add_types(GString *text, const Cluster *like)
{
    g_string_append(text, "device_types:\n");
    items_each (const DeviceType, type, like->type, like->n_types) {
        g_autofree char *rate = units_exact(type->rate, QUANTITY_RATE);
        g_autofree char *memory = units_exact((double)type->memory_bytes, QUANTITY_BYTES);
        g_string_append_printf(text,
                               "  - {name: %s, rate: %s, memory: %s, source: as in %s}\n",
                               type->name, rate, memory, like->name);
    }
}

static void add_line(GString *text, LinkCost line, double scale)
{
    g_autofree char *latency = units_exact(line.latency_s, QUANTITY_TIME);
    g_autofree char *bandwidth = units_exact(line.bandwidth * scale, QUANTITY_BANDWIDTH);
    g_string_append_printf(text, "latency: %s, bandwidth: %s", latency, bandwidth);
}

static void add_collectives(GString *text, const Cluster *like, double scale)
{
    g_string_append(text, "collectives:\n");
    items_at (const CollectivePieces, pieces, kind, like->pieces, COLLECTIVES_PRICED) {
        g_string_append_printf(text, "  %s: {", collective_name(kind));
        add_line(text, like->collective[kind], scale);
        for (uint32_t p = 0; p < pieces->n; p++) {
            g_autofree char *up_to = units_exact(pieces->piece[p].up_to, QUANTITY_BYTES);
            g_string_append_printf(text, "%s{up_to: %s, ", p ? ", " : ", pieces: [",
                                   up_to);
            add_line(text, pieces->piece[p].line, scale);
            g_string_append(text, p + 1 == pieces->n ? "}]" : "}");
        }
        g_string_append(text, "}\n");
    }
    g_string_append_printf(text,
                           "  source: as in %s, bandwidths times %g, the slowest port "
                           "drawn over the widest there may be\n",
                           like->name, scale);
}

static uint32_t draw_count(GRand *rand, const Ranges *r, uint32_t k)
{
    KILTER_ASSERT(k < RANGES && r->low[k] <= r->high[k]);
    return (uint32_t)g_rand_int_range(rand, (gint32)r->low[k], (gint32)r->high[k] + 1);
}

/* A random bandwidth in whole megabytes a second, so that its text is short. */
static double draw_bandwidth(GRand *rand, const Ranges *r, uint32_t k)
{
    KILTER_ASSERT(k < RANGES && r->low[k] <= r->high[k]);
    return (double)(uint64_t)(g_rand_double_range(rand, r->low[k], r->high[k]) / 1e6) *
           1e6;
}

static char *make_text(const char *name, const Ranges *r, const Cluster *like,
                       uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GString) links = g_string_new("topology:\n  nodes: [switch]\n  links:\n");
    GString *text = g_string_new(NULL);
    const uint32_t n = draw_count(rand, r, MACHINES);
    double least = r->high[BETWEEN];
    g_autofree char *latency = units_exact(r->low[LATENCY], QUANTITY_TIME);
    g_string_append_printf(
        text, "name: '%s'\ndescription: a random topology (TAG, Sec. 5.2)\n", name);
    random_add_types(text, like);
    g_string_append(text, "machines:\n");
    for (uint32_t m = 0; m < n; m++) {
        const uint32_t gpus = draw_count(rand, r, GPUS);
        const char *type =
            like->type[g_rand_int_range(rand, 0, (gint32)like->n_types)].name;
        const double port = draw_bandwidth(rand, r, BETWEEN);
        g_string_append_printf(text, "  - {name: m%u, type: %s, gpus: %u, inner: {", m,
                               type, gpus);
        add_line(
            text,
            (LinkCost){like->machine[0].inner.latency_s, draw_bandwidth(rand, r, INNER)},
            1);
        g_string_append(text, "}, source: drawn}\n");
        g_autofree char *bandwidth = units_exact(port, QUANTITY_BANDWIDTH);
        g_string_append_printf(
            links, "    - {from: m%u, to: switch, latency: %s, bandwidth: %s}\n", m,
            latency, bandwidth);
        least = MIN(least, port);
    }
    add_collectives(text, like, least / r->high[BETWEEN]);
    if (n > 1)
        g_string_append_printf(text, "%s  source: drawn\n", links->str);
    return g_string_free(text, FALSE);
}

Cluster *cluster_random(const char *name, GError **error)
{
    g_auto(Ranges) ranges = {0};
    guint64 seed;
    const char *rest = name + strlen(PREFIX);
    if (!g_str_has_prefix(rest, "seed=") ||
        !g_ascii_string_to_unsigned(rest + strlen("seed="), 10, 0, UINT32_MAX, &seed,
                                    NULL))
        return refused(error, "'%.200s': expected random:seed=N, N from 0 to %u", name,
                       UINT32_MAX);
    if (!read_ranges(&ranges, error))
        return NULL;
    g_autofree char *bundled = g_strdup_printf("clusters/%s.yaml", ranges.cluster);
    g_autofree char *path = path_find(bundled);
    if (!path)
        return refused(error, "no bundled data found: %s", bundled);
    g_autoptr(Cluster) like = cluster_read(path, error);
    if (!like)
        return NULL;
    g_autofree char *text = make_text(name, &ranges, like, (uint32_t)seed);
    return cluster_parse(name, text, strlen(text), error);
}
