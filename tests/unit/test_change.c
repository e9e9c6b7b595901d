/* Changes of clusters: scaled numbers, machines left out and added, and refusals. */
#include "data/data.h"
#include "tests/test.h"

static Cluster *load(const char *name)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_load(name, &error);
    assert_no_error(error);
    return cluster;
}

static void apply(Cluster *cluster, ChangeKind kind, const char *text)
{
    g_autoptr(GError) error = NULL;
    cluster_change(cluster, kind, text, &error);
    assert_no_error(error);
}

/* Links between regions are a part of the network. */
static void test_scale_regions(void **state)
{
    (void)state;
    static const char TEXT[] =
        "machines: [{device: a100-80g, gpus: 4, nic: eth-100, region: a},\n"
        "           {device: h100, gpus: 4, nic: eth-100, region: b}]\n"
        "regions: [{from: a, to: b, latency: 30 ms, bandwidth: 5 Gb/s}]\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("r.yaml", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    apply(cluster, CHANGE_SCALE, "network=2");
    apply(cluster, CHANGE_SCALE, "latency=0.5");
    assert_close(cluster->region_link[0].link.bandwidth, 10e9 / 8, 1e-15);
    assert_close(cluster->region_link[0].link.latency_s, 0.015, 1e-15);
}

static void test_scale(void **state)
{
    (void)state;
    g_autoptr(Cluster) before = load("hap-16");
    g_autoptr(Cluster) after = load("hap-16");
    apply(after, CHANGE_SCALE, "network=2");
    apply(after, CHANGE_SCALE, "latency=0.5");
    apply(after, CHANGE_SCALE, "v*.rate=3");
    apply(after, CHANGE_SCALE, "p100.memory=0.5");
    apply(after, CHANGE_SCALE, "inner=4");
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        assert_close(after->collective[kind].bandwidth,
                     2 * before->collective[kind].bandwidth, 1e-15);
        assert_close(after->collective[kind].latency_s,
                     before->collective[kind].latency_s / 2, 1e-15);
    }
    for (uint32_t i = 0; i < after->n_types; i++) {
        const bool v100 = strcmp(after->type[i].name, "v100") == 0;
        assert_close(after->type[i].rate, (v100 ? 3 : 1) * before->type[i].rate, 1e-15);
        assert_int_equal(after->type[i].memory_bytes * (v100 ? 1 : 2),
                         before->type[i].memory_bytes);
    }
    for (uint32_t i = 0; i < after->n_machines; i++)
        assert_close(after->machine[i].inner.bandwidth,
                     4 * before->machine[i].inner.bandwidth, 1e-15);
    assert_string_equal(after->name, "hap-16 scale network=2 scale latency=0.5 scale "
                                     "v*.rate=3 scale p100.memory=0.5 scale inner=4");
}

static void test_choose(void **state)
{
    (void)state;
    g_autoptr(Cluster) only = load("hap-16");
    g_autoptr(Cluster) without = load("hap-16");
    apply(only, CHANGE_ONLY, "v100");
    apply(without, CHANGE_WITHOUT, "p100");
    assert_int_equal(only->n_machines, 2);
    assert_int_equal(without->n_machines, 2);
    assert_int_equal(only->n_types, 1);
    assert_string_equal(only->type[only->machine[1].type].name, "v100");
    /* One machine by its name, and all of a type. */
    g_autoptr(Cluster) some = load("hap-16");
    g_autofree char *text = g_strdup_printf("p100, %s", some->machine[0].name);
    apply(some, CHANGE_ONLY, text);
    assert_int_equal(some->n_machines, 7);
    g_autoptr(GError) error = NULL;
    g_autoptr(ClusterView) view = cluster_view(only, GRANULARITY_GPU);
    g_autoptr(Topology) topology = topology_of_view(view, &error);
    assert_no_error(error);
    assert_int_equal(topology->n_devices, 4);
}

static void test_add(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = load("hap-16");
    apply(cluster, CHANGE_ADD, "v100 x 8");
    assert_int_equal(cluster->n_machines, 9);
    const Machine *added = &cluster->machine[8];
    assert_int_equal(added->gpus, 8);
    assert_string_equal(cluster->type[added->type].name, "v100");
    for (uint32_t i = 0; i < 8; i++)
        assert_string_not_equal(added->name, cluster->machine[i].name);
    /* Its machines have one GPU each, and so no link between GPUs. */
    g_autoptr(Cluster) lone = load("hap-8");
    g_autoptr(GError) unlinked = NULL;
    assert_false(cluster_change(lone, CHANGE_ADD, "v100 x 8", &unlinked));
    assert_error(unlinked, KILTER_ERROR_INPUT, "no machine of several GPUs");
    g_autoptr(Cluster) network = load("star:hosts=4,gpus=2,inner_bandwidth=1GB/s");
    g_autofree char *text = g_strdup_printf("%sx1", network->type[0].name);
    apply(network, CHANGE_ADD, text);
    g_autoptr(ClusterView) view = cluster_view(network, GRANULARITY_GPU);
    g_autoptr(GError) error = NULL;
    g_autoptr(Topology) topology = topology_of_view(view, &error);
    assert_no_error(error);
    assert_int_equal(topology->n_devices, 9);
}

/* A device that the cluster does not have comes from the data sheets, under its name or an alias,
 * and a machine like an added one has the same type. */
static void test_add_device(void **state)
{
    (void)state;
    static const char *const other[] = {"rtx-4090x4", "mi250x x 8", "v100-32g x 1"};
    g_autoptr(Cluster) cluster = load("hap-16");
    g_autoptr(Cluster) sold = load("dgx-h100");
    const uint32_t n_types = cluster->n_types;
    apply(cluster, CHANGE_ADD, "h100 x 8");
    apply(cluster, CHANGE_ADD, "h100-sxm x 4");
    const Machine *added = &cluster->machine[8];
    assert_int_equal(cluster->n_types, n_types + 1);
    assert_int_equal(added->gpus, 8);
    assert_int_equal(cluster->machine[9].gpus, 4);
    assert_int_equal(cluster->machine[9].type, added->type);
    const DeviceType *type = &cluster->type[added->type], *same = &sold->type[0];
    assert_string_equal(type->name, same->name);
    assert_close(type->rate, same->rate, 1e-12);
    assert_int_equal(type->memory_bytes, same->memory_bytes);
    assert_close(added->inner.bandwidth, sold->machine[0].inner.bandwidth, 1e-12);
    for (uint32_t i = 0; i < G_N_ELEMENTS(other); i++)
        apply(cluster, CHANGE_ADD, other[i]);
    g_autofree char *text = cluster_write(cluster);
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) again = cluster_parse("again", text, strlen(text), &error);
    assert_no_error(error);
    assert_int_equal(cluster_gpus(again), 16 + 8 + 4 + 4 + 8 + 1);
    /* An alias of a type that is there adds a machine like its machines. */
    apply(sold, CHANGE_ADD, "h100 x 2");
    assert_int_equal(sold->n_types, 1);
}

/* A machine's links go with it. */
static void test_links(void **state)
{
    (void)state;
    static const char TEXT[] =
        "name: linked\n"
        "device_types:\n"
        "  - {name: v, rate: 10 TFLOP/s, memory: 16 GiB, source: s}\n"
        "machines:\n"
        "  - {name: a, type: v, gpus: 1, source: s}\n"
        "  - {name: b, type: v, gpus: 1, source: s}\n"
        "  - {name: ab, type: v, gpus: 1, source: s}\n"
        "collectives: {source: s,\n"
        "  all_reduce: {latency: 1 ms, bandwidth: 1 GB/s},\n"
        "  all_gather: {latency: 1 ms, bandwidth: 1 GB/s},\n"
        "  grouped_all_gather: {latency: 1 ms, bandwidth: 1 GB/s},\n"
        "  reduce_scatter: {latency: 1 ms, bandwidth: 1 GB/s},\n"
        "  grouped_reduce_scatter: {latency: 1 ms, bandwidth: 1 GB/s},\n"
        "  all_to_all: {latency: 1 ms, bandwidth: 1 GB/s}}\n"
        "topology:\n"
        "  source: s\n"
        "  nodes: [s]\n"
        "  links:\n"
        "    - {from: a, to: s, latency: 1 us, bandwidth: 1 GB/s}\n"
        "    - {from: b, to: s, latency: 1 us, bandwidth: 1 GB/s}\n"
        "    - {from: s, to: ab, latency: 1 us, bandwidth: 1 GB/s}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("linked.yaml", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    apply(cluster, CHANGE_WITHOUT, "a");
    assert_int_equal(cluster->n_machines, 2);
    assert_int_equal(cluster->network->n_links, 2);
    assert_false(cluster_change(cluster, CHANGE_ADD, "v x 1", &error));
    assert_error(error, KILTER_ERROR_INPUT, "names its links");
}

/* A type of single GPUs is not added a second time under an alias. */
static void test_add_alias(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = load("dgx-h100");
    cluster->machine[0].gpus = 1;
    g_autoptr(GError) error = NULL;
    assert_false(cluster_change(cluster, CHANGE_ADD, "h100 x 8", &error));
    assert_error(error, KILTER_ERROR_INPUT,
                 "no machine of several GPUs of device type 'h100-sxm'");
    assert_int_equal(cluster->n_types, 1);
}

static void test_refusals(void **state)
{
    static const struct {
        ChangeKind kind;
        const char *text, *message;
    } cases[] = {
        {CHANGE_SCALE, "network", "--scale: expected WHAT=FACTOR"},
        {CHANGE_SCALE, "network=", "expected WHAT=FACTOR"},
        {CHANGE_SCALE, "network=0", "expected WHAT=FACTOR"},
        {CHANGE_SCALE, "network=nan", "expected WHAT=FACTOR"},
        {CHANGE_SCALE, "network=2x", "expected WHAT=FACTOR"},
        {CHANGE_SCALE, "=2", "expected WHAT=FACTOR"},
        {CHANGE_SCALE, "warp=2", "expected network, latency, inner"},
        {CHANGE_SCALE, "h100.rate=2", "no device type 'h100'"},
        {CHANGE_SCALE, "v100.speed=2", "expected rate, bandwidth or memory"},
        {CHANGE_ONLY, "h100", "--only: cluster hap-16 has no machine or device type"},
        {CHANGE_ONLY, "v100,", "has no machine or device type ''"},
        {CHANGE_WITHOUT, "*", "no machine left"},
        {CHANGE_ADD, "v100", "--add: expected DEVICE x GPUS"},
        {CHANGE_ADD, "v100 x", "expected DEVICE x GPUS"},
        {CHANGE_ADD, "v100 x 0", "expected DEVICE x GPUS"},
        {CHANGE_ADD, "v100 x 2000", "expected DEVICE x GPUS"},
        {CHANGE_ADD, "x 8", "expected DEVICE x GPUS"},
        {CHANGE_ADD, "h101 x 8", "no machine of device type 'h101': "},
    };
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Cluster) cluster = load("hap-16");
        g_autoptr(GError) error = NULL;
        if (cluster_change(cluster, cases[i].kind, cases[i].text, &error))
            print_error("accepted: %s\n", cases[i].text);
        assert_error(error, KILTER_ERROR_INPUT, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_regions), cmocka_unit_test(test_scale),
        cmocka_unit_test(test_choose),        cmocka_unit_test(test_add),
        cmocka_unit_test(test_links),         cmocka_unit_test(test_add_device),
        cmocka_unit_test(test_add_alias),     cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
