/* Networks: builders, the section of a cluster file, routes compared with an independent search,
 * and impossible networks. */
#include "data/data.h"
#include "tests/support/costs_text.h"
#include "tests/test.h"

static Topology *make(const char *cluster_name, Granularity granularity)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(cluster_name, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, granularity);
    Topology *topology = topology_of_view(view, &error);
    assert_no_error(error);
    return topology;
}

/* Links between devices, by Floyd and Warshall. */
static uint32_t *all_distances(const Topology *topology)
{
    const uint32_t n = topology->n_nodes;
    uint32_t *d = g_new(uint32_t, n * n);
    for (uint32_t i = 0; i < n * n; i++)
        d[i] = i % (n + 1) ? 1000 : 0;
    for (uint32_t l = 0; l < topology->n_links; l++)
        d[topology->link[l].from * n + topology->link[l].to] = 1;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                d[i * n + j] = MIN(d[i * n + j], d[i * n + k] + d[k * n + j]);
    return d;
}

static void check_routes(const Topology *topology)
{
    g_autoptr(Routes) routes = routes_new(topology), again = routes_new(topology);
    g_autofree uint32_t *d = all_distances(topology);
    for (uint32_t a = topology->n_devices; a-- > 0;)
        for (uint32_t b = 0; b < topology->n_devices; b++) {
            uint32_t link[ROUTE_MAX_LINKS], same[ROUTE_MAX_LINKS];
            const uint32_t n = routes_find(routes, a, b, link);
            uint32_t node = topology->device[a];
            assert_int_equal(n, d[node * topology->n_nodes + topology->device[b]]);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(topology->link[link[i]].from, node);
                node = topology->link[link[i]].to;
            }
            assert_int_equal(node, topology->device[b]);
            /* The route does not depend on the routes that were asked for before. */
            routes_find(again, b, a, same);
            assert_int_equal(routes_find(again, a, b, same), n);
            assert_memory_equal(same, link, n * sizeof *link);
        }
}

typedef struct {
    const char *name;
    Granularity granularity;
    uint32_t devices, nodes, cables;
} Built;

#define GPUS "gpus=4,inner_bandwidth=50GB/s,inner_latency=30us"

static const Built BUILT[] = {
    {"star:hosts=1", GRANULARITY_GPU, 1, 2, 1},
    {"star:hosts=5", GRANULARITY_GPU, 5, 6, 5},
    {"star:hosts=2," GPUS, GRANULARITY_GPU, 8, 11, 10},
    {"star:hosts=2," GPUS, GRANULARITY_MACHINE, 2, 3, 2},
    {"tree:hosts=8,leaf=4", GRANULARITY_GPU, 8, 11, 10},
    {"tree:hosts=9,leaf=4,spines=2", GRANULARITY_GPU, 9, 14, 15},
    {"tree:hosts=3,leaf=4", GRANULARITY_GPU, 3, 5, 4},
    /* 4 leaves in 2 pods, 2 spines per pod, 2 cores */
    {"tree:hosts=8,leaf=2,pod=2,spines=2", GRANULARITY_GPU, 8, 18, 24},
    {"rail:hosts=3,rails=2," GPUS, GRANULARITY_GPU, 12, 17, 18},
    {"rail:hosts=3,rails=2," GPUS, GRANULARITY_MACHINE, 3, 4, 3},
    /* 3 groups of 3 routers with 2 hosts: 9 in groups, 3 between */
    {"dragonfly:hosts=18,leaf=2,group=3,global=1", GRANULARITY_GPU, 18, 27, 30},
    {"hap-64", GRANULARITY_MACHINE, 8, 9, 8},
    {"hap-64", GRANULARITY_GPU, 64, 73, 72},
    {"hidup-1x4", GRANULARITY_GPU, 4, 5, 4},
    {"hidup-1x4", GRANULARITY_MACHINE, 1, 1, 0},
    {"amp-het-cluster", GRANULARITY_GPU, 16, 21, 20},
};

static void test_builders(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(BUILT); i++) {
        g_autoptr(Topology) topology = make(BUILT[i].name, BUILT[i].granularity);
        g_autofree bool *seen = g_new0(bool, topology->n_devices);
        assert_int_equal(topology->n_devices, BUILT[i].devices);
        assert_int_equal(topology->n_nodes, BUILT[i].nodes);
        assert_int_equal(topology->n_links, 2 * BUILT[i].cables);
        for (uint32_t l = 0; l < topology->n_links; l++) {
            assert_int_equal(topology->link[l].from, topology->link[l ^ 1].to);
            assert_close(topology->link[l].bandwidth, topology->link[l ^ 1].bandwidth, 0);
        }
        for (uint32_t j = 0; j < topology->n_devices; j++) {
            assert_false(seen[topology->order[j]]);
            seen[topology->order[j]] = true;
        }
        check_routes(topology);
    }
}

/* The total width of a leaf's links upwards. */
static void test_oversubscription(void **state)
{
    static const char *const NAME[] = {
        "tree:hosts=32,leaf=8,oversubscription=4,bandwidth=8GB/s",
        "tree:hosts=32,leaf=8,oversubscription=4,spines=4,bandwidth=8GB/s",
        "tree:hosts=32,leaf=8,oversubscription=4,spines=2,pod=2,bandwidth=8GB/s",
    };
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(NAME); i++) {
        g_autoptr(Topology) topology = make(NAME[i], GRANULARITY_GPU);
        double up = 0, top = 0;
        for (uint32_t l = 0; l < topology->n_links; l++) {
            const char *from = topology->node[topology->link[l].from].name;
            const char *to = topology->node[topology->link[l].to].name;
            if (strcmp(from, "leaf-1") == 0 && g_str_has_prefix(to, "spine"))
                up += topology->link[l].bandwidth;
            if (g_str_has_prefix(to, "core"))
                top += topology->link[l].bandwidth;
        }
        assert_close(up, 16e9, 1e-12);
        assert_close(top, i == 2 ? 4 * 16e9 : 0, 1e-12);
    }
}

/* A message takes the rail of its receiver's index. */
static void test_rails(void **state)
{
    (void)state;
    g_autoptr(Topology) topology = make("rail:hosts=3,rails=4," GPUS, GRANULARITY_GPU);
    g_autoptr(Routes) routes = routes_new(topology);
    for (uint32_t to = 4; to < 12; to++) {
        uint32_t link[ROUTE_MAX_LINKS];
        g_autofree char *rail = g_strdup_printf("rail-%u", to % 4);
        assert_int_equal(routes_find(routes, 1, to, link), 4);
        assert_string_equal(topology->node[topology->link[link[1]].to].name, rail);
    }
    g_autoptr(Topology) whole = make("rail:hosts=3,rails=4," GPUS, GRANULARITY_MACHINE);
    assert_close(whole->link[0].bandwidth, 4 * 1.25e9, 1e-12);
}

/* Messages between the same leaves spread over the spines. */
static void test_hash_spreads(void **state)
{
    (void)state;
    g_autoptr(Topology) topology =
        make("tree:hosts=64,leaf=32,spines=4", GRANULARITY_GPU);
    g_autoptr(Routes) routes = routes_new(topology);
    uint32_t used[4] = {0};
    for (uint32_t a = 0; a < 32; a++)
        for (uint32_t b = 32; b < 64; b++) {
            uint32_t link[ROUTE_MAX_LINKS];
            assert_int_equal(routes_find(routes, a, b, link), 4);
            const char *spine = topology->node[topology->link[link[1]].to].name;
            used[spine[strlen(spine) - 1] - '0']++;
        }
    for (uint32_t s = 0; s < 4; s++) { /* 1024 draws: 256, standard deviation 14 */
        assert_true(used[s] > 200);
        assert_true(used[s] < 312);
    }
}

/* --- the section of a cluster file --- */

static char *file_text(const char *topology)
{
    return g_strconcat(
        "name: two\n"
        "device_types:\n"
        "  - {name: v, rate: 1 TFLOP/s, memory: 1 GiB, source: s}\n"
        "machines:\n"
        "  - {name: a, type: v, gpus: 2, inner: {latency: 4 us, bandwidth: 9 GB/s}, "
        "source: s}\n"
        "  - {name: b, type: v, gpus: 2, inner: {latency: 4 us, bandwidth: 9 GB/s}, "
        "source: s}\n" COSTS_TEXT,
        topology, NULL);
}

static Topology *read_topology(const char *section, Granularity granularity,
                               GError **error)
{
    g_autofree char *text = file_text(section);
    g_autoptr(Cluster) cluster = cluster_parse("t.yaml", text, strlen(text), error);
    if (!cluster)
        return NULL;
    g_autoptr(ClusterView) view = cluster_view(cluster, granularity);
    return topology_of_view(view, error);
}

static void test_derived(void **state)
{
    g_autoptr(GError) error = NULL;
    (void)state;
    g_autoptr(Topology) topology = read_topology("", GRANULARITY_MACHINE, &error);
    assert_no_error(error);
    /* The widest of the fits; two links of a route and 2 (n-1) rounds make 8 us. */
    assert_close(topology->link[0].bandwidth, 2e9, 1e-12);
    assert_close(topology->link[0].latency_s, 2e-6, 1e-12);
    assert_close(topology->efficiency[COLLECTIVE_ALL_REDUCE], 0.5, 1e-12);
    assert_close(topology->efficiency[COLLECTIVE_ALL_TO_ALL], 0.25, 1e-12);
    g_autoptr(Topology) gpus = read_topology("", GRANULARITY_GPU, &error);
    assert_no_error(error);
    assert_true(gpus->link[0].inner);
    assert_close(gpus->link[0].bandwidth, 9e9, 1e-12);
    assert_close(gpus->link[0].latency_s, 1e-6, 1e-12);
}

/* NVLink between the GPUs of a, a network card at each of them. */
#define EXPLICIT                                                          \
    "topology:\n"                                                         \
    "  nodes: [leaf, 'a/nic0']\n"                                         \
    "  links:\n"                                                          \
    "    - {from: a:0, to: a:1, latency: 1 us, bandwidth: 25 GB/s}\n"     \
    "    - {from: a:0, to: a/nic0, latency: 0 us, bandwidth: 16 GB/s}\n"  \
    "    - {from: a/nic0, to: leaf, latency: 5 us, bandwidth: 10 Gb/s}\n" \
    "    - {from: a:1, to: leaf, latency: 5 us, bandwidth: 20 Gb/s}\n"    \
    "    - {from: b, to: leaf, latency: 5 us, bandwidth: 10 Gb/s}\n"

static void test_explicit_links(void **state)
{
    g_autoptr(GError) error = NULL;
    (void)state;
    g_autoptr(Topology) topology =
        read_topology(EXPLICIT "  source: drawn\n", GRANULARITY_GPU, &error);
    assert_no_error(error);
    check_routes(topology);
    assert_string_equal(topology->source, "drawn");
    g_autoptr(Routes) routes = routes_new(topology);
    uint32_t link[ROUTE_MAX_LINKS];
    assert_int_equal(routes_find(routes, 0, 1, link), 1);
    assert_true(topology->link[link[0]].inner);
    assert_close(topology->link[link[0]].bandwidth, 25e9, 1e-12);
    assert_int_equal(routes_find(routes, 1, 2, link), 3); /* leaf, b, b:0 */
    assert_close(topology->link[link[0]].bandwidth, 2.5e9, 1e-12);
    assert_false(topology->link[link[0]].inner);
    assert_int_equal(routes_find(routes, 2, 3, link), 2); /* b has inner links */
    g_autoptr(Topology) whole =
        read_topology(EXPLICIT "  source: drawn\n", GRANULARITY_MACHINE, &error);
    assert_no_error(error);
    check_routes(whole);
}

static void test_builder_section(void **state)
{
    g_autoptr(GError) error = NULL;
    (void)state;
    g_autoptr(Topology) topology = read_topology(
        "topology: {builder: 'tree:leaf=1,bandwidth=4GB/s,latency=1us', source: s}\n",
        GRANULARITY_MACHINE, &error);
    assert_no_error(error);
    assert_int_equal(topology->n_nodes, 5);
    assert_close(topology->link[0].bandwidth, 4e9, 1e-12);
}

typedef struct {
    const char *section, *message;
} Bad;

#define LINK(from, to, bandwidth)                                             \
    "topology:\n  links:\n    - {from: " from ", to: " to ", latency: 1 us, " \
    "bandwidth: " bandwidth "}\n  source: s\n"

static const Bad BAD[] = {
    {LINK("a", "b", "0 Gb/s"), "t.yaml:17: topology.links[0].bandwidth: expected 1 B/s "
                               "to 1e+06 TB/s, got '0 Gb/s'"},
    {LINK("a", "b", "10 Gb"),
     "t.yaml:17: topology.links[0].bandwidth: expected a bandwidth"},
    {LINK("a", "c", "1 Gb/s"), "t.yaml:15: topology: links[0]: expected a machine, a GPU "
                               "such as 'machine:0' or one "
                               "of nodes, got 'c'"},
    {LINK("a", "a", "1 Gb/s"), "links[0]: expected two ends, got 'a' twice"},
    {LINK("a:0", "b", "1 Gb/s"), "no route from"},
    {LINK("a:0", "a:2", "1 Gb/s"), "got 'a:2'"},
    {"topology: {nodes: [x, x], links: [{from: a, to: b, latency: 1 us, bandwidth: 1 "
     "GB/s}], source: s}\n",
     "nodes: expected a new name, got 'x' again"},
    {"topology: {nodes: [x], links: [{from: a, to: x, latency: 1 us, bandwidth: 1 "
     "GB/s}], "
     "source: s}\n",
     "t.yaml:15: topology: no route from 'a' to 'b'"},
    {"topology: {source: s}\n", "topology: expected either builder or links"},
    {"topology: {builder: 'star:', nodes: [x], source: s}\n",
     "topology.nodes: not expected: a builder makes its own"},
    {"topology: {builder: 'ring:hosts=2', source: s}\n",
     "topology.builder: 'ring:hosts=2': expected star, tree, rail or dragonfly, got "
     "'ring'"},
    {"topology: {builder: 'star:hosts=2', source: s}\n", "hosts: not expected"},
    {"topology: {builder: 'star:bandwidth=0Gb/s', source: s}\n",
     "bandwidth: expected 1 B/s"},
    {"topology: {builder: 'star:latency=-1us', source: s}\n", "latency: expected a time"},
    {"topology: {builder: 'tree:oversubscription=0', source: s}\n",
     "oversubscription: expected a number from 0.001 to 1e+06, got '0'"},
    {"topology: {builder: 'tree:leaf=1,leaf=2', source: s}\n", "leaf: given twice"},
    {"topology: {builder: 'dragonfly:leaf=1,group=1,global=1', source: s}\n", NULL},
    {"topology: {links: [], source: s}\n", "topology.links: expected at least one entry"},
    {"topology: {builder: 'star:latency=1us'}\n", NULL}, /* a source may be left out */
    {"topology: {builder: 'star:', source: s}\n", "got nothing"},
};

static void test_bad_sections(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Topology) topology =
            read_topology(BAD[i].section, GRANULARITY_GPU, &error);
        if (!BAD[i].message) { /* good: two groups of one router have just enough links */
            assert_no_error(error);
            continue;
        }
        assert_null(topology);
        assert_error(error, KILTER_ERROR_INPUT, BAD[i].message);
        assert_null(strchr(error->message, '\n'));
    }
}

/* A chain of switches that is too long for any route. */
static void test_long_chain(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new("topology:\n  nodes: [");
    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        g_string_append_printf(text, "%ss%u", i ? ", " : "", i);
    g_string_append(text, "]\n  links:\n");
    for (uint32_t i = 0; i <= 40; i++) {
        g_autofree char *from = i ? g_strdup_printf("s%u", i - 1) : g_strdup("a");
        g_autofree char *to = i < 40 ? g_strdup_printf("s%u", i) : g_strdup("b");
        g_string_append_printf(
            text, "    - {from: %s, to: %s, latency: 1 us, bandwidth: 1 GB/s}\n", from,
            to);
    }
    g_string_append(text, "  source: s\n");
    assert_null(read_topology(text->str, GRANULARITY_MACHINE, &error));
    assert_error(error, KILTER_ERROR_INPUT,
                 "41 links from 'a' to 'b'; expected at most 32");
}

static const Bad BAD_NAMES[] = {
    {"star:", "'star:': expected key=value after each colon and comma, got nothing"},
    {"star:latency=1us", "'star:latency=1us': hosts: missing"},
    {"star:hosts=0", "hosts: expected a whole number from 1 to 65536, got '0'"},
    {"star:hosts=4,leaf=2", "unknown key 'leaf'; expected one of hosts, gpus, bandwidth"},
    {"star:hosts", "got 'hosts'"},
    {"star:hosts=4,gpus=2", "inner_bandwidth: missing"},
    {"star:hosts=60000,gpus=8,inner_bandwidth=1GB/s", "at most 131072 GPUs"},
    {"dragonfly:hosts=4096", "make 64 groups, but a group has links to 8 others"},
    {"tree:hosts=65536,leaf=1,spines=4096", "at most 4194304 links"},
};

static void test_bad_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(BAD_NAMES); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(cluster_load(BAD_NAMES[i].section, &error));
        assert_error(error, KILTER_ERROR_INPUT, BAD_NAMES[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builders),        cmocka_unit_test(test_oversubscription),
        cmocka_unit_test(test_rails),           cmocka_unit_test(test_hash_spreads),
        cmocka_unit_test(test_derived),         cmocka_unit_test(test_explicit_links),
        cmocka_unit_test(test_builder_section), cmocka_unit_test(test_bad_sections),
        cmocka_unit_test(test_long_chain),      cmocka_unit_test(test_bad_names),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
