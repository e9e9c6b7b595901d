/* Networks as text: NAME:key=value,.... */
#include "data/cluster/network_spec.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/names.h"
#include "data/cluster/members.h"

enum { HOSTS_MAX = 65536, CABLES_MAX = 1 << 22 };

static const char *const KIND_NAME[NETWORK_LINKS] = {
    [NETWORK_STAR] = "star",
    [NETWORK_TREE] = "tree",
    [NETWORK_RAIL] = "rail",
    [NETWORK_DRAGONFLY] = "dragonfly",
};

#define EVERY      0xf
#define ONLY(kind) (1 << NETWORK_##kind)

/* The keys of a text, the builders that accept them, and their defaults. The defaults are round
 * numbers of commodity clusters, meant for examples: a real cluster states its own. */
static const struct {
    Member number;
    const char *text; /* the default; NULL: none */
    uint32_t kinds;
} KEY[] = {
#define KEY_OF(name, of, range, text, kinds)              \
    {                                                     \
        MEMBER_OF(name, HostSpec, of, range), text, kinds \
    }
    KEY_OF("hosts", hosts, COUNT(1, HOSTS_MAX), NULL, EVERY),
    KEY_OF("gpus", gpus, COUNT(1, 1024), "1", EVERY),
    KEY_OF("bandwidth", network.link.bandwidth, BANDWIDTH, "10 Gb/s", EVERY),
    KEY_OF("latency", network.link.latency_s, TIME, "5 us", EVERY),
    KEY_OF("inner_bandwidth", inner.bandwidth, BANDWIDTH, NULL, EVERY),
    KEY_OF("inner_latency", inner.latency_s, TIME, "0 s", EVERY),
    KEY_OF("rate", rate, RATE, "1 TFLOP/s", EVERY),
    KEY_OF("memory", memory, SIZE, "16 GiB", EVERY),
    KEY_OF("leaf", network.leaf, COUNT(1, HOSTS_MAX), "16", ONLY(TREE) | ONLY(DRAGONFLY)),
    KEY_OF("spines", network.spines, COUNT(1, 4096), "1", ONLY(TREE)),
    KEY_OF("pod", network.pod, COUNT(0, HOSTS_MAX), "0", ONLY(TREE)),
    KEY_OF("oversubscription", network.oversubscription, NUMBER(1e-3, 1e6), "1",
           ONLY(TREE)),
    KEY_OF("rails", network.rails, COUNT(1, 64), "8", ONLY(RAIL)),
    KEY_OF("group", network.group, COUNT(1, 4096), "4", ONLY(DRAGONFLY)),
    KEY_OF("global", network.global, COUNT(1, 4096), "2", ONLY(DRAGONFLY)),
#undef KEY_OF
};

/* The builder of that name; NETWORK_LINKS if there is none. */
static NetworkKind network_kind_find(const char *name)
{
    uint32_t kind = 0;
    while (kind < NETWORK_LINKS && strcmp(name, KIND_NAME[kind]) != 0)
        kind++;
    return (NetworkKind)kind;
}

bool network_spec_names_gpus(const NetworkSpec *spec, const char *machine)
{
    g_autofree char *prefix = g_strconcat(machine, ":", NULL);
    for (uint32_t i = 0; spec && i < spec->n_links; i++)
        if (g_str_has_prefix(spec->explicit_link[i].from, prefix) ||
            g_str_has_prefix(spec->explicit_link[i].to, prefix))
            return true;
    return false;
}

bool host_spec_is(const char *text)
{
    const char *colon = strchr(text, ':');
    g_autofree char *name = colon ? g_strndup(text, (gsize)(colon - text)) : NULL;
    return name && network_kind_find(name) != NETWORK_LINKS;
}

/* Names of the keys that the kind has. Free the array only. */
static const char **known_keys(const HostSpec *spec)
{
    const char **known = g_new0(const char *, G_N_ELEMENTS(KEY) + 1);
    uint32_t n = 0;
    for (size_t key = 0; key < G_N_ELEMENTS(KEY); key++)
        if (KEY[key].kinds & (1U << spec->network.kind))
            known[n++] = KEY[key].number.key;
    return known;
}

static bool set_key(HostSpec *spec, const char *name, const char *value, GError **error)
{
    g_autofree const char **known = known_keys(spec);
    uint32_t index;
    size_t key = 0;
    if (!names_find("key", name, known, &index, error))
        return false;
    while (KEY[key].number.key != known[index])
        key++;
    if (!value)
        return refuse(error, "expected KEY=VALUE, got '%.60s'", name);
    if (member_parse(&KEY[key].number, value, spec, error))
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
        if (KEY[key].text && !member_parse(&KEY[key].number, KEY[key].text, spec, error))
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

char *network_spec_text(const NetworkSpec *spec)
{
    const size_t first = offsetof(HostSpec, network);
    const HostSpec whole = {.network = *spec};
    GString *text = g_string_new(KIND_NAME[spec->kind]);
    char separator = ':';
    for (size_t key = 0; key < G_N_ELEMENTS(KEY); key++) {
        const Member *number = &KEY[key].number;
        if (!(KEY[key].kinds & (1U << spec->kind)) || number->value < first ||
            number->value >= first + sizeof *spec)
            continue;
        g_autofree char *value = member_exact(number, &whole);
        g_string_append_printf(text, "%c%s=%s", separator, number->key, value);
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
