/* Networks as text: NAME:key=value,.... */
#include "data/cluster/network_spec.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/units.h"

enum { HOSTS_MAX = 65536, CABLES_MAX = 1 << 22 };

static const char *const KIND_NAME[NETWORK_LINKS] = {
    [NETWORK_STAR] = "star",
    [NETWORK_TREE] = "tree",
    [NETWORK_RAIL] = "rail",
    [NETWORK_DRAGONFLY] = "dragonfly",
};

/* The keys of a text, the builders that accept them, and their defaults. The defaults are round
 * numbers of commodity clusters, meant for examples: a real cluster states its own. */
typedef enum { KEY_COUNT, KEY_FACTOR, KEY_QUANTITY } KeyType;

#define EVERY      0xf
#define ONLY(kind) (1 << NETWORK_##kind)

static const struct {
    const char *name, *text; /* `text` is the default; NULL: none */
    uint32_t kinds;
    KeyType type;
    Quantity quantity;
    double low, high;
    size_t offset;
} KEY[] = {
#define COUNT(key, member, text, kinds, low, high)                            \
    {                                                                         \
        key, text, kinds, KEY_COUNT, 0, low, high, offsetof(HostSpec, member) \
    }
#define SIZE(key, member, text, quantity, low, high)                                    \
    {                                                                                   \
        key, text, EVERY, KEY_QUANTITY, quantity, low, high, offsetof(HostSpec, member) \
    }
    COUNT("hosts", hosts, NULL, EVERY, 1, HOSTS_MAX),
    COUNT("gpus", gpus, "1", EVERY, 1, 1024),
    SIZE("bandwidth", network.link.bandwidth, "10 Gb/s", QUANTITY_BANDWIDTH, 1, 1e18),
    SIZE("latency", network.link.latency_s, "5 us", QUANTITY_TIME, 0, 1000),
    SIZE("inner_bandwidth", inner.bandwidth, NULL, QUANTITY_BANDWIDTH, 1, 1e18),
    SIZE("inner_latency", inner.latency_s, "0 s", QUANTITY_TIME, 0, 1000),
    SIZE("rate", rate, "1 TFLOP/s", QUANTITY_RATE, 1, 1e18),
    SIZE("memory", memory, "16 GiB", QUANTITY_BYTES, 1, 1e18),
    COUNT("leaf", network.leaf, "16", ONLY(TREE) | ONLY(DRAGONFLY), 1, HOSTS_MAX),
    COUNT("spines", network.spines, "1", ONLY(TREE), 1, 4096),
    COUNT("pod", network.pod, "0", ONLY(TREE), 0, HOSTS_MAX),
    {"oversubscription", "1", ONLY(TREE), KEY_FACTOR, 0, 1e-3, 1e6,
     offsetof(HostSpec, network.oversubscription)},
    COUNT("rails", network.rails, "8", ONLY(RAIL), 1, 64),
    COUNT("group", network.group, "4", ONLY(DRAGONFLY), 1, 4096),
    COUNT("global", network.global, "2", ONLY(DRAGONFLY), 1, 4096),
#undef COUNT
#undef SIZE
};

/* The builder of that name; NETWORK_LINKS if there is none. */
static NetworkKind network_kind_find(const char *name)
{
    uint32_t kind = 0;
    while (kind < NETWORK_LINKS && strcmp(name, KIND_NAME[kind]) != 0)
        kind++;
    return (NetworkKind)kind;
}

bool host_spec_is(const char *text)
{
    const char *colon = strchr(text, ':');
    g_autofree char *name = colon ? g_strndup(text, (gsize)(colon - text)) : NULL;
    return name && network_kind_find(name) != NETWORK_LINKS;
}

static bool assign_count(HostSpec *spec, size_t key, const char *text, GError **error)
{
    guint64 number;
    if (!g_ascii_string_to_unsigned(text, 10, (guint64)KEY[key].low,
                                    (guint64)KEY[key].high, &number, NULL))
        return refuse(error, "expected a whole number from %.0f to %.0f, got '%.60s'",
                      KEY[key].low, KEY[key].high, text);
    *(uint32_t *)(void *)((char *)spec + KEY[key].offset) = (uint32_t)number;
    return true;
}

static bool assign(HostSpec *spec, size_t key, const char *text, GError **error)
{
    if (KEY[key].type == KEY_COUNT)
        return assign_count(spec, key, text, error);
    double value;
    if (KEY[key].type == KEY_FACTOR) {
        if (!number_read(text, KEY[key].low, KEY[key].high, &value))
            return refuse(error, "expected a number from %g to %g, got '%.60s'",
                          KEY[key].low, KEY[key].high, text);
    } else {
        if (!units_parse(text, KEY[key].quantity, &value, error))
            return false;
        if (!(value >= KEY[key].low && value <= KEY[key].high)) {
            g_autofree char *low = units_format(KEY[key].low, KEY[key].quantity);
            g_autofree char *high = units_format(KEY[key].high, KEY[key].quantity);
            return refuse(error, "expected %s to %s, got '%.60s'", low, high, text);
        }
    }
    *(double *)(void *)((char *)spec + KEY[key].offset) = value;
    return true;
}

/* Names of the keys that the kind has. Free the array only. */
static const char **known_keys(const HostSpec *spec)
{
    const char **known = g_new0(const char *, G_N_ELEMENTS(KEY) + 1);
    uint32_t n = 0;
    for (size_t key = 0; key < G_N_ELEMENTS(KEY); key++)
        if (KEY[key].kinds & (1U << spec->network.kind))
            known[n++] = KEY[key].name;
    return known;
}

static bool set_key(HostSpec *spec, const char *name, const char *value, GError **error)
{
    g_autofree const char **known = known_keys(spec);
    uint32_t index;
    size_t key = 0;
    if (!names_find("key", name, known, &index, error))
        return false;
    while (KEY[key].name != known[index])
        key++;
    if (!value)
        return refuse(error, "expected KEY=VALUE, got '%.60s'", name);
    if (assign(spec, key, value, error))
        return true;
    kilter_prefix(error, "%s: ", name);
    return false;
}

static bool parse(const char *text, HostSpec *spec, GError **error)
{
    g_autoptr(Spec) parts = spec_read(text);
    *spec = (HostSpec){0};
    if (!spec_check_once(parts, NULL, error))
        return false;
    spec->network.kind = network_kind_find(parts->word);
    if (spec->network.kind == NETWORK_LINKS)
        return refuse(error, "expected star, tree, rail or dragonfly, got '%.60s'",
                      parts->word);
    for (size_t key = 0; key < G_N_ELEMENTS(KEY); key++)
        if (KEY[key].text && !assign(spec, key, KEY[key].text, error))
            return false;
    for (uint32_t i = 0; i < parts->n; i++)
        if (!set_key(spec, parts->key[i], parts->value[i], error))
            return false;
    return true;
}

bool host_spec_parse(const char *text, HostSpec *spec, GError **error)
{
    if (parse(text, spec, error))
        return true;
    kilter_prefix(error, "'%.200s': ", text);
    return false;
}

NetworkSpec *network_spec_parse(const char *text, GError **error)
{
    HostSpec spec;
    if (!host_spec_parse(text, &spec, error))
        return NULL;
    if (spec.hosts)
        return refused(error, "'%.200s': hosts: not expected, the machines are listed",
                       text);
    return g_memdup2(&spec.network, sizeof spec.network);
}

static char *value_text(const HostSpec *spec, size_t key)
{
    const void *member = (const char *)spec + KEY[key].offset;
    if (KEY[key].type == KEY_COUNT)
        return g_strdup_printf("%u", *(const uint32_t *)member);
    const double value = *(const double *)member;
    return KEY[key].type == KEY_FACTOR ? number_exact(value)
                                       : units_exact(value, KEY[key].quantity);
}

char *network_spec_text(const NetworkSpec *spec)
{
    const size_t first = offsetof(HostSpec, network);
    const HostSpec whole = {.network = *spec};
    GString *text = g_string_new(KIND_NAME[spec->kind]);
    char separator = ':';
    for (size_t key = 0; key < G_N_ELEMENTS(KEY); key++) {
        if (!(KEY[key].kinds & (1U << spec->kind)) || KEY[key].offset < first ||
            KEY[key].offset >= first + sizeof *spec)
            continue;
        g_autofree char *value = value_text(&whole, key);
        g_string_append_printf(text, "%c%s=%s", separator, KEY[key].name, value);
        separator = ',';
    }
    return g_string_free(text, FALSE);
}

FREE_DEFINE(network_spec_free, NetworkSpec, spec, free_items(spec->node, spec->n_nodes),
            free_column(spec->explicit_link, spec->n_links, from),
            free_column(spec->explicit_link, spec->n_links, to),
            free_each(spec->node, spec->explicit_link, spec->source));

uint32_t network_groups(const NetworkSpec *spec, uint32_t n_machines)
{
    uint32_t routers = (n_machines + spec->leaf - 1) / spec->leaf;
    return (routers + spec->group - 1) / spec->group;
}

bool network_spec_check(const NetworkSpec *spec, uint32_t n_machines, GError **error)
{
    double cables = n_machines;
    if (spec->kind == NETWORK_TREE)
        cables += ceil((double)n_machines / spec->leaf) * spec->spines +
                  (spec->pod ? ceil((double)n_machines / spec->leaf / spec->pod) : 0) *
                      spec->spines * spec->spines;
    if (spec->kind == NETWORK_RAIL)
        cables *= spec->rails;
    if (spec->kind == NETWORK_DRAGONFLY) {
        double groups = network_groups(spec, n_machines);
        if (groups - 1 > (double)spec->group * spec->global)
            return refuse(error,
                          "dragonfly: %u machines make %.0f groups, but a group has "
                          "links to %.0f others; expected a larger leaf, group or global",
                          n_machines, groups, (double)spec->group * spec->global);
        cables += groups * spec->group * spec->group / 2 + groups * groups / 2;
    }
    if (cables > CABLES_MAX)
        return refuse(error, "expected a network of at most %d links", CABLES_MAX);
    return true;
}
