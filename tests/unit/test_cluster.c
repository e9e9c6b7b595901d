/* Clusters: the bundled files with the sources of their numbers, and views of clusters. */
#include "tests/support/rows.h"

#include <glib/gstdio.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <stdlib.h>

/* The text of a cluster with two device types, the given machines, and a bandwidth of (i + 1) GB/s
 * for collective i. */
static char *cluster_text(const char *machines, bool collectives)
{
    GString *text =
        g_string_new("name: test\n"
                     "device_types:\n"
                     "  - {name: v, rate: 4 TFLOP/s, memory: 8 GiB, source: s}\n"
                     "  - {name: p, rate: 1 TFLOP/s, memory: 4 GiB, source: s}\n"
                     "machines:\n");
    g_string_append(text, machines);
    if (collectives) {
        g_string_append(text, "collectives:\n  source: s\n");
        for (uint32_t i = 0; i < COLLECTIVES_PRICED; i++)
            g_string_append_printf(text, "  %s: {latency: %u us, bandwidth: %u GB/s}\n",
                                   collective_name(i), 10 * i, i + 1);
    }
    return g_string_free(text, FALSE);
}

static Cluster *make_cluster(const char *machines, bool collectives)
{
    g_autofree char *text = cluster_text(machines, collectives);
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("test.yaml", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

#define FAST                                                                          \
    "  - {name: f, count: 2, type: v, gpus: 4, inner: {latency: 5 us, bandwidth: 50 " \
    "GB/s}, source: s}\n"
#define SLOW                                                                      \
    "  - {name: s, type: p, gpus: 2, inner: {latency: 7 us, bandwidth: 9 GB/s}, " \
    "source: s}\n"
#define LONE "  - {name: l, type: p, gpus: 1, source: s}\n"

/* --- bundled files --- */

typedef struct {
    const char *name;
    uint32_t fast, p100, gpus_each; /* machines of each type */
    bool a100;                      /* the fast ones; V100 otherwise */
} Bundled;

static const Bundled BUNDLED[] = {
    {"hap-8", 2, 6, 1, false},          {"hap-16", 2, 6, 2, false},
    {"hap-32", 2, 6, 4, false},         {"hap-64", 2, 6, 8, false},
    {"hap-p100-8", 0, 4, 2, false},     {"hap-p100-16", 0, 4, 4, false},
    {"hap-p100-32", 0, 4, 8, false},    {"hap-v100-16", 2, 0, 8, false},
    {"hap-p100x6-48", 0, 6, 8, false},  {"hap-a100-4", 2, 0, 2, true},
    {"hap-a100-p100-4", 1, 1, 2, true},
};

/* Files that have tests of their own. */
static const char *const OTHERS[] = {
    "hidup-1x4",
    "hidup-2x4-10",
    "hidup-2x4-30",
    "hidup-2x4-100",
    "hidup-8x8",
    "amp-homogeneous",
    "amp-het-model",
    "published-amp-het-model",
    "tag-testbed",
    "tag-sfb",
    "tag-2v100",
    "tag-cloud",
    "published-tag-testbed",
    "published-tag-sfb",
    "launches-tag-sfb",
    "launches-tag-sfb-conv",
    "published-tag-cloud",
    "measured-tag-testbed",
    "measured-tag-2v100",
    "measured-hap-8",
    "measured-hap-16",
    "measured-hap-32",
    "measured-hap-64",
    "measured-hap-p100-8",
    "measured-hap-p100-16",
    "measured-hap-p100-32",
    "amp-het-cluster",
    "fitted-amp-homogeneous",
    "fitted-amp-het-model",
    "fitted-amp-het-cluster",
    /* published ones with what data sheets say of the chips */
    "sheet-hap-32",
    "sheet-tag-sfb",
    "sheet-hap-64",
    "sheet-hap-p100-32",
    "sheet-hap-a100-p100-4",
    "sheet-amp-homogeneous",
    "sheet-amp-het-model",
    "hidup-1x8",
    "hidup-2x8",
    "hidup-4x8",
    /* today's machines, by data sheets: test_short_cluster.c */
    "dgx-a100",
    "dgx-h100",
    "dgx-b200",
    "aws-p4d",
    "aws-p5",
    "azure-nd-a100-v4",
    "azure-nd-h100-v5",
    "mi300x-8",
    "rtx-4090-8",
};
/* Clusters of which there is also one named published-NAME, with the numbers that the authors
 * published. */
static const char *const BY_AUTHORS[] = {
    "hap-8",       "hap-16",      "hap-32",        "hap-64",      "hap-p100-8",
    "hap-p100-16", "hap-p100-32", "hap-p100x6-48", "hap-v100-16", "hap-a100-p100-4",
};
enum {
    N_FILES = G_N_ELEMENTS(BUNDLED) + G_N_ELEMENTS(OTHERS) + G_N_ELEMENTS(BY_AUTHORS)
};

static Cluster *load(const char *name)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_load(name, &error);
    assert_no_error(error);
    return cluster;
}

static void test_bundled_machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(BUNDLED); i++) {
        const Bundled *want = &BUNDLED[i];
        g_autoptr(Cluster) cluster = load(want->name);
        assert_string_equal(cluster->name, want->name);
        assert_true(strlen(cluster->description) > 10);
        assert_true(strlen(cluster->collective_source) > 100);
        assert_int_equal(cluster->n_machines, want->fast + want->p100);
        assert_int_equal(cluster_gpus(cluster), cluster->n_machines * want->gpus_each);
        for (uint32_t m = 0; m < cluster->n_machines; m++) {
            const Machine *machine = &cluster->machine[m];
            const DeviceType *type = &cluster->type[machine->type];
            bool fast = m < want->fast, a100 = fast && want->a100;
            assert_string_equal(type->name, a100 ? "a100" : fast ? "v100" : "p100");
            assert_int_equal(machine->gpus, want->gpus_each);
            assert_int_equal(type->memory_bytes, (uint64_t)(a100 ? 40 : 16) << 30);
            assert_close(type->rate,
                         a100   ? 10.8e12 / 1.7954 * (5712013967207 / 1428003491801.75)
                         : fast ? 10.8e12
                                : 10.8e12 / 1.7954,
                         1e-4);
            assert_true(strlen(machine->source) > 20 && strlen(type->source) > 100);
        }
    }
}

/* Every file of the folder is one of the table, so each is tested. */
static void test_bundled_list(void **state)
{
    (void)state;
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    for (char **name = names; *name; name++) {
        bool known = false;
        for (size_t i = 0; i < G_N_ELEMENTS(BUNDLED); i++)
            known = known || strcmp(*name, BUNDLED[i].name) == 0;
        for (size_t i = 0; i < G_N_ELEMENTS(OTHERS); i++)
            known = known || strcmp(*name, OTHERS[i]) == 0;
        for (size_t i = 0; i < G_N_ELEMENTS(BY_AUTHORS); i++) {
            g_autofree char *published = g_strconcat("published-", BY_AUTHORS[i], NULL);
            known = known || strcmp(*name, published) == 0;
        }
        if (!known)
            fail_msg("cluster %s is not tested", *name);
    }
    assert_int_equal(g_strv_length(names), N_FILES);
}

/* HAP's artifact counts its own FLOPs, for BERT-Base 1.128 times the true ones. By these an A100
 * equals 4.0 P100. */
static double published_rate(const char *type)
{
    const double counted = 1.128, p100 = 2149250936815 / counted;
    return strcmp(type, "v100") == 0   ? 3858755112937 / counted
           : strcmp(type, "a100") == 0 ? p100 * (5712013967207 / 1428003491801.75)
                                       : p100;
}

static void test_published_numbers(void **state)
{
    (void)state;
    g_autoptr(Cluster) hidup = load("hidup-8x8"); /* HiDup's profile of such a testbed */
    for (size_t i = 0; i < G_N_ELEMENTS(BY_AUTHORS); i++) {
        g_autofree char *name = g_strconcat("published-", BY_AUTHORS[i], NULL);
        g_autoptr(Cluster) cluster = load(name), other = load(BY_AUTHORS[i]);
        assert_int_equal(cluster->n_machines, other->n_machines);
        for (uint32_t m = 0; m < cluster->n_machines; m++) {
            const Machine *machine = &cluster->machine[m];
            const DeviceType *type = &cluster->type[machine->type];
            assert_int_equal(machine->gpus, other->machine[m].gpus);
            assert_true(machine->inner.bandwidth == other->machine[m].inner.bandwidth);
            assert_int_equal(type->memory_bytes,
                             other->type[other->machine[m].type].memory_bytes);
            assert_close(type->rate, published_rate(type->name), 1e-3);
        }
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
            const double relative = hidup->collective[kind].bandwidth /
                                    hidup->collective[COLLECTIVE_ALL_REDUCE].bandwidth;
            assert_close(cluster->collective[kind].bandwidth, 10.4e9 / 8 * relative,
                         1e-3);
        }
    }
}

static void test_hidup_machine(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = load("hidup-1x4");
    g_autoptr(Cluster) hap = load("hap-32");
    assert_int_equal(cluster->n_machines, 1);
    assert_int_equal(cluster->machine[0].gpus, 4);
    assert_close(cluster->type[0].rate, hap->type[0].rate, 1e-12);
    assert_close(cluster->machine[0].inner.bandwidth, hap->machine[0].inner.bandwidth,
                 1e-12);
    assert_close(cluster->type[0].slowdown, 1.2, 1e-12);
    assert_close(hap->type[0].slowdown, 1, 1e-12);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    assert_close(view->device[3].slowdown, 1.2, 1e-12);
}

/* HAP's published profile, bytes/s of the full tensor at even shares on 8 devices, as
 * the cost model's bandwidth relative to all-reduce. All-reduce has the link's 10.4
 * Gb/s; without a link that HAP names, the profile's own. */
static void test_bundled_collectives(void **state)
{
    (void)state;
    const double n = 8;
    static const double PROFILE[COLLECTIVES_PRICED] = {
        [COLLECTIVE_ALL_REDUCE] = 5906161310,
        [COLLECTIVE_ALL_GATHER] = 9463184466,
        [COLLECTIVE_GROUPED_ALL_GATHER] = 9146232360,
        [COLLECTIVE_REDUCE_SCATTER] = 9740459122,
        [COLLECTIVE_GROUPED_REDUCE_SCATTER] = 8756865799,
        [COLLECTIVE_ALL_TO_ALL] = 24588140722,
    };
    const double factor[COLLECTIVES_PRICED] = {
        [COLLECTIVE_ALL_REDUCE] = 2 * (n - 1) / n,
        [COLLECTIVE_ALL_GATHER] = (n - 1) / n,
        [COLLECTIVE_GROUPED_ALL_GATHER] = 1,
        [COLLECTIVE_REDUCE_SCATTER] = (n - 1) / n,
        [COLLECTIVE_GROUPED_REDUCE_SCATTER] = 1,
        [COLLECTIVE_ALL_TO_ALL] = (n - 1) / n / n,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(BUNDLED); i++) {
        g_autoptr(Cluster) cluster = load(BUNDLED[i].name);
        double link = BUNDLED[i].a100
                          ? PROFILE[COLLECTIVE_ALL_REDUCE] * factor[COLLECTIVE_ALL_REDUCE]
                          : 10.4e9 / 8;
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
            double relative =
                PROFILE[kind] * factor[kind] /
                (PROFILE[COLLECTIVE_ALL_REDUCE] * factor[COLLECTIVE_ALL_REDUCE]);
            assert_close(cluster->collective[kind].bandwidth, relative * link, 5e-4);
            assert_close(cluster->collective[kind].latency_s, 65e-6, 1e-12);
        }
    }
}

/* Nothing crosses a link inside a machine of one GPU; NVLink is faster than PCIe, PCIe
 * below its nominal rate. */
static void test_bundled_inner_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(BUNDLED); i++) {
        g_autoptr(Cluster) cluster = load(BUNDLED[i].name);
        for (uint32_t m = 0; m < cluster->n_machines; m++) {
            LinkCost inner = cluster->machine[m].inner;
            if (BUNDLED[i].gpus_each == 1)
                assert_true(inner.latency_s == 0 && isinf(inner.bandwidth));
            else if (m < BUNDLED[i].fast)
                assert_true(inner.latency_s > 0 && inner.bandwidth > 15.75e9);
            else
                assert_true(inner.latency_s > 0 && inner.bandwidth < 15.75e9);
        }
    }
}

/* --- the bundled numbers against the measurements they are from --- */

typedef struct {
    const char *gpu, *n_gpus;
    GArray *bytes, *seconds, *weight;
} Fit;

static bool add_all_reduce(const Csv *csv, void *data, GError **error)
{
    (void)error;
    Fit *fit = data;
    if (!test_is(csv, "gpu", fit->gpu) || !test_is(csv, "n_gpus", fit->n_gpus))
        return true;
    double bytes = test_number(csv, "size_bytes"),
           seconds = test_number(csv, "time_us_outplace") / 1e6;
    double weight = 1 / (seconds * seconds);
    g_array_append_val(fit->bytes, bytes);
    g_array_append_val(fit->seconds, seconds);
    g_array_append_val(fit->weight, weight);
    return true;
}

static void test_nvlink_is_the_fit(void **state)
{
    (void)state;
    const char *path = test_shared("measured/vtrain/allreduce_nvlink_v100_a100.csv");
    if (!path)
        skip();
    static const char *const CLUSTER[] = {"hap-16", "hap-32", "hap-64", "hap-a100-4"};
    for (size_t i = 0; i < G_N_ELEMENTS(CLUSTER); i++) {
        g_autoptr(Cluster) cluster = load(CLUSTER[i]);
        double n = cluster->machine[0].gpus;
        g_autofree char *n_gpus = g_strdup_printf("%.0f", n);
        Fit fit = {cluster->type[0].name, n_gpus,
                   g_array_new(FALSE, FALSE, sizeof(double)),
                   g_array_new(FALSE, FALSE, sizeof(double)),
                   g_array_new(FALSE, FALSE, sizeof(double))};
        test_rows(path, add_all_reduce, &fit);
        double a, slope, c00, c01, c11, chi;
        gsl_fit_wlinear((double *)fit.bytes->data, 1, (double *)fit.weight->data, 1,
                        (double *)fit.seconds->data, 1, fit.bytes->len, &a, &slope, &c00,
                        &c01, &c11, &chi);
        assert_int_equal(fit.bytes->len, 1024);
        assert_close(cluster->machine[0].inner.bandwidth, 2 * (n - 1) / n / slope, 3e-3);
        assert_at_most(fabs(cluster->machine[0].inner.latency_s - a), 0.5e-6);
        g_array_unref(fit.bytes);
        g_array_unref(fit.seconds);
        g_array_unref(fit.weight);
    }
}

static bool add_flops(const Csv *csv, void *sum, GError **error)
{
    (void)error;
    if (test_is(csv, "trace", "1x4_ddp"))
        *(double *)sum += test_number(csv, "flop(2BMNK)");
    return true;
}

static bool add_compute_time(const Csv *csv, void *seconds, GError **error)
{
    (void)error;
    if (test_is(csv, "system", "ddp"))
        *(double *)seconds = test_number(csv, "compute_sum_us") / 1e6;
    return true;
}

static void test_v100_rate_is_measured(void **state)
{
    (void)state;
    const char *gemm = test_shared("measured/hidup_1x4_v100/gemm_with_shapes.csv");
    const char *mean = test_shared("measured/hidup_1x4_v100/summary_mean.csv");
    if (!gemm || !mean)
        skip();
    double flops = 0, seconds = 0;
    test_rows(gemm, add_flops, &flops);
    test_rows(mean, add_compute_time, &seconds);
    const double iterations = 4;
    g_autoptr(Cluster) cluster = load("hap-64");
    assert_close(cluster->type[0].rate, flops / iterations / seconds, 4e-3);
}

static bool add_latency(const Csv *csv, void *latency, GError **error)
{
    (void)error;
    if (test_number(csv, "size_bytes") > 1024)
        return true;
    double out_of_place = test_number(csv, "time_us_oop") / 1e6,
           in_place = test_number(csv, "time_us_ip") / 1e6;
    g_array_append_val((GArray *)latency, out_of_place);
    g_array_append_val((GArray *)latency, in_place);
    return true;
}

static void test_latency_is_measured(void **state)
{
    (void)state;
    const char *path = test_shared("measured/nccl_tests/h100_2x8_efa_allreduce.csv");
    if (!path)
        skip();
    g_autoptr(GArray) latency = g_array_new(FALSE, FALSE, sizeof(double));
    test_rows(path, add_latency, latency);
    gsl_sort((double *)latency->data, 1, latency->len);
    double median =
        gsl_stats_median_from_sorted_data((double *)latency->data, 1, latency->len);
    g_autoptr(Cluster) cluster = load("hap-64");
    assert_close(cluster->collective[COLLECTIVE_ALL_REDUCE].latency_s, median, 0.01);
}

/* --- views --- */

static void test_machine_view(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = make_cluster(FAST SLOW, true);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    static const struct {
        const char *name, *type;
        double rate;
        uint32_t gpus;
        uint64_t memory;
        double latency_s, bandwidth;
    } WANT[] = {
        {"f-0", "v", 16e12, 4, (uint64_t)8 << 30, 5e-6, 50e9},
        {"f-1", "v", 16e12, 4, (uint64_t)8 << 30, 5e-6, 50e9},
        {"s", "p", 2e12, 2, (uint64_t)4 << 30, 7e-6, 9e9},
    };
    assert_int_equal(view->n_devices, G_N_ELEMENTS(WANT));
    for (uint32_t i = 0; i < view->n_devices; i++) {
        const Device *device = &view->device[i];
        assert_string_equal(device->name, WANT[i].name);
        assert_string_equal(device->type_name, WANT[i].type);
        assert_close(device->rate, WANT[i].rate, 1e-15);
        assert_int_equal(device->gpus, WANT[i].gpus);
        assert_int_equal(device->memory_bytes, WANT[i].memory);
        assert_close(device->inner.latency_s, WANT[i].latency_s, 1e-15);
        assert_close(device->inner.bandwidth, WANT[i].bandwidth, 1e-15);
    }
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        assert_close(view->collective[kind].bandwidth, 1e9 * (kind + 1), 1e-15);
        assert_close(view->collective[kind].latency_s, 1e-5 * kind, 1e-15);
    }
}

static void test_gpu_view(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = make_cluster(SLOW FAST, true);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    static const char *const NAME[] = {"s:0",   "s:1",   "f-0:0", "f-0:1", "f-0:2",
                                       "f-0:3", "f-1:0", "f-1:1", "f-1:2", "f-1:3"};
    assert_int_equal(view->n_devices, G_N_ELEMENTS(NAME));
    for (uint32_t i = 0; i < view->n_devices; i++) {
        const Device *device = &view->device[i];
        assert_string_equal(device->name, NAME[i]);
        assert_int_equal(device->gpus, 1);
        assert_close(device->rate, i < 2 ? 1e12 : 4e12, 1e-15);
        assert_int_equal(device->memory_bytes, (uint64_t)(i < 2 ? 4 : 8) << 30);
    }
    /* Four GPUs share the port in an all-to-all, for the 6 parts of 9 that leave the machine; rings
     * keep the machine's bandwidth. */
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
        double share = kind == COLLECTIVE_ALL_TO_ALL ? 4 * 6 / 9.0 : 1;
        assert_close(view->collective[kind].bandwidth, 1e9 * (kind + 1) / share, 1e-15);
        assert_close(view->collective[kind].latency_s, 1e-5 * kind, 1e-15);
    }
}

static void test_single_machine_uses_its_inner_link(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = make_cluster(SLOW, false);
    for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
        g_autoptr(ClusterView) view = cluster_view(cluster, g);
        assert_int_equal(view->n_devices, g == GRANULARITY_GPU ? 2 : 1);
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
            assert_close(view->collective[kind].latency_s, 7e-6, 1e-15);
            assert_close(view->collective[kind].bandwidth, 9e9, 1e-15);
        }
    }
}

/* Devices of a view in the order of their names. */
static int by_device_name(const void *a, const void *b)
{
    return strcmp(((const Device *)a)->name, ((const Device *)b)->name);
}

/* Permuting the machines of a file permutes the devices and changes nothing else. */
static void test_permuted_machines(void **state)
{
    (void)state;
    static const char *const ORDER[] = {FAST SLOW LONE, SLOW LONE FAST, LONE FAST SLOW};
    g_autoptr(Cluster) first = make_cluster(ORDER[0], true);
    for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
        g_autoptr(ClusterView) want = cluster_view(first, g);
        qsort(want->device, want->n_devices, sizeof(Device), by_device_name);
        for (size_t i = 1; i < G_N_ELEMENTS(ORDER); i++) {
            g_autoptr(Cluster) cluster = make_cluster(ORDER[i], true);
            g_autoptr(ClusterView) view = cluster_view(cluster, g);
            assert_string_not_equal(view->device[0].name, want->device[0].name);
            qsort(view->device, view->n_devices, sizeof(Device), by_device_name);
            assert_int_equal(view->n_devices, want->n_devices);
            assert_memory_equal(view->collective, want->collective,
                                sizeof view->collective);
            for (uint32_t j = 0; j < view->n_devices; j++) {
                const Device *a = &view->device[j], *b = &want->device[j];
                assert_string_equal(a->name, b->name);
                assert_string_equal(a->type_name, b->type_name);
                assert_true(a->rate == b->rate && a->gpus == b->gpus);
                assert_true(a->memory_bytes == b->memory_bytes);
                assert_true(a->inner.bandwidth == b->inner.bandwidth);
            }
        }
    }
}

static void test_granularity_names(void **state)
{
    (void)state;
    for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
        Granularity back = GRANULARITY_GPU - g;
        assert_true(granularity_parse(granularity_name(g), &back));
        assert_int_equal(back, g);
    }
    Granularity none = GRANULARITY_GPU;
    assert_false(granularity_parse("rack", &none));
    assert_int_equal(none, GRANULARITY_GPU);
}

/* --- clusters of the other papers --- */

typedef struct {
    const char *name;
    uint32_t machines, gpus;
    double gbits; /* of all-reduce between machines */
} Published;

static const Published PUBLISHED[] = {
    {"hidup-8x8", 8, 64, 9.71},
    {"hidup-4x8", 4, 32, 9.71},
    {"hidup-2x8", 2, 16, 9.71},
    {"hidup-2x4-10", 2, 8, 10},
    {"hidup-2x4-30", 2, 8, 30},
    {"hidup-2x4-100", 2, 8, 100},
    {"amp-homogeneous", 4, 16, 50},
    {"amp-het-cluster", 4, 16, 10},
    {"amp-het-model", 4, 16, 10},
    {"tag-testbed", 7, 16, 46.48},
    {"tag-sfb", 2, 2, 46.48},
    {"tag-cloud", 6, 32, 10},
    {"published-tag-testbed", 7, 16, 50},
    {"published-tag-sfb", 2, 2, 50},
    {"published-tag-cloud", 6, 32, 10},
    {"measured-tag-testbed", 7, 16, 50},
    /* 476,774,816 bytes/s of the whole tensor, twice 7/8 of it over a port */
    {"measured-hap-8", 8, 8, 6.6748},
    {"measured-hap-16", 8, 16, 6.6748},
    {"measured-hap-32", 8, 32, 6.6748},
    {"measured-hap-64", 8, 64, 6.6748},
    {"measured-hap-p100-8", 4, 8, 6.6748},
    {"measured-hap-p100-16", 4, 16, 6.6748},
    {"measured-hap-p100-32", 4, 32, 6.6748},
};

static void test_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(PUBLISHED); i++) {
        const Published *want = &PUBLISHED[i];
        g_autoptr(Cluster) cluster = load(want->name);
        assert_string_equal(cluster->name, want->name);
        assert_int_equal(cluster->n_machines, want->machines);
        assert_int_equal(cluster_gpus(cluster), want->gpus);
        assert_close(cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth,
                     want->gbits * 1e9 / 8, 1e-4);
        assert_true(strlen(cluster->collective_source) > 80);
        for (uint32_t m = 0; m < cluster->n_machines; m++)
            assert_true(strlen(cluster->machine[m].source) > 40);
    }
}

/* TAG's artifact: what GPUs may hold, and the line fitted to all-reduces inside its machine of 4
 * V100,
 * 517.956 us + 0.1939 us a KiB from 1 MiB on. */
static void test_tag_measured(void **state)
{
    (void)state;
    g_autoptr(Cluster) testbed = load("measured-tag-testbed"),
                       pair = load("measured-tag-2v100");
    static const uint64_t GIB[] = {30, 9, 10};
    assert_int_equal(testbed->n_types, G_N_ELEMENTS(GIB));
    for (uint32_t k = 0; k < testbed->n_types; k++)
        assert_int_equal(testbed->type[k].memory_bytes, GIB[k] << 30);
    const CurvePlace place = {"v100", 4, 1};
    for (uint64_t kib = 1024; kib <= 1 << 20; kib *= 4) {
        LinkCost at, same;
        const double bytes = (double)kib * 1024,
                     wire = curve_wire(COLLECTIVE_ALL_REDUCE, place, 0, 0);
        assert_true(
            curves_line(&testbed->curves, COLLECTIVE_ALL_REDUCE, place, bytes, &at));
        assert_true(
            curves_line(&pair->curves, COLLECTIVE_ALL_REDUCE, place, bytes, &same));
        assert_close(at.latency_s + wire * bytes / at.bandwidth,
                     517.956e-6 + 0.1939005e-6 * (double)kib, 1e-3);
        assert_close(same.bandwidth, at.bandwidth, 1e-9);
    }
}

static bool check_machine(const Csv *csv, void *rows, GError **error)
{
    (void)error;
    g_autofree char *name = g_strdup_printf("amp-%s", csv_text(csv, "experiment"));
    g_strdelimit(name, "_", '-');
    g_autoptr(Cluster) cluster = load(name);
    const uint32_t node = (uint32_t)test_number(csv, "node");
    const Machine *machine = &cluster->machine[node];
    assert_int_equal(machine->gpus, test_number(csv, "gpus"));
    assert_int_equal(
        g_ascii_strcasecmp(cluster->type[machine->type].name, csv_text(csv, "gpu")), 0);
    assert_close(machine->inner.bandwidth, 1e9 / 8 * test_number(csv, "intra_node_Gbps"),
                 1e-9);
    const double port = cluster->network
                            ? cluster->network->explicit_link[node].cost.bandwidth
                            : cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth;
    assert_close(port, 1e9 / 8 * test_number(csv, "inter_node_Gbps"), 1e-9);
    ++*(uint32_t *)rows;
    return true;
}

/* AMP's bandwidths are those of its published specification. */
static void test_amp_specification(void **state)
{
    const char *path = test_shared("measured/amp/cluster_specs.csv");
    (void)state;
    if (!path)
        skip();
    uint32_t rows = 0;
    test_rows(path, check_machine, &rows);
    assert_int_equal(rows, 12);
}

/* --- search path --- */

static void test_search_path(void **state)
{
    (void)state;
    g_autofree char *root = g_dir_make_tmp("kilter-XXXXXX", NULL);
    g_autofree char *folder = g_build_filename(root, "clusters", NULL);
    g_autofree char *file = g_build_filename(folder, "mine.yaml", NULL);
    g_autofree char *path = g_strdup_printf("/nowhere::%s", root);
    g_autofree char *text = cluster_text(FAST, true);
    assert_int_equal(g_mkdir(folder, 0700), 0);
    assert_true(g_file_set_contents(file, text, -1, NULL));

    g_autoptr(GError) error = NULL;
    assert_null(cluster_load("mine", &error));
    assert_error(error, KILTER_ERROR_INPUT, "unknown cluster 'mine'");
    assert_non_null(strstr(error->message, "kilter clusters lists"));

    g_setenv("KILTER_PATH", path, TRUE);
    g_autoptr(Cluster) by_name = load("mine");
    g_autoptr(Cluster) by_file = load(file);
    g_autofree char *found = path_find("clusters/mine.yaml");
    g_autofree char *bundled = path_find("clusters/hap-8.yaml");
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    g_unsetenv("KILTER_PATH");
    g_remove(file);
    g_rmdir(folder);
    g_rmdir(root);

    assert_string_equal(by_name->name, "test");
    assert_string_equal(by_file->name, "test");
    assert_string_equal(found, file);
    assert_string_equal(bundled, KILTER_HOME "/data/clusters/hap-8.yaml");
    assert_int_equal(g_strv_length(names), N_FILES + 1);
    assert_true(g_strv_contains((const char *const *)names, "mine"));
    g_autofree char *absent = path_find("clusters/mine.yaml");
    assert_null(absent);
}

/* --- collectives --- */

static void test_collective_names(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < COLLECTIVES; kind++)
        assert_int_equal(collective_from_name(collective_name(kind)), kind);
    assert_int_equal(collective_from_name("broadcast"), COLLECTIVES);
    assert_int_equal(collective_from_name(""), COLLECTIVES);
}

/* Every kind on every pair of forms, against "from>to" with I, R and G; all-to-all
 * between different dims. */
static void test_collective_converts(void **state)
{
    (void)state;
    static const char *const WANT[COLLECTIVES] = {
        [COLLECTIVE_ALL_REDUCE] = "R>I",
        [COLLECTIVE_ALL_GATHER] = "G>I",
        [COLLECTIVE_GROUPED_ALL_GATHER] = "G>I",
        [COLLECTIVE_REDUCE_SCATTER] = "R>G",
        [COLLECTIVE_GROUPED_REDUCE_SCATTER] = "R>G",
        [COLLECTIVE_ALL_TO_ALL] = "G>G",
        [COLLECTIVE_SLICE] = "I>G",
        [COLLECTIVE_KEEP] = "I>R",
        [COLLECTIVE_PAD] = "G>R",
    };
    for (uint32_t kind = 0; kind < COLLECTIVES; kind++)
        for (Form from = 0; from < FORM_MAX; from++)
            for (Form to = 0; to < FORM_MAX; to++) {
                const char pair[] = {"IRG"[MIN(from, 2)], '>', "IRG"[MIN(to, 2)], '\0'};
                bool want = strcmp(pair, WANT[kind]) == 0 && from != to;
                assert_int_equal(collective_converts(kind, from, to), want);
            }
    assert_false(collective_converts(COLLECTIVE_SLICE, FORM_IDENTITY, FORM_MAX));
}

/* A device of a view computes at most as its GPUs' data sheets say, and at their rates where
 * these say nothing. */
static void test_peaks_of_machines(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = make_cluster(FAST SLOW LONE, true);
    cluster->type[0].peaks[NUMBERS_F16] = 100e12;
    ClusterView *view = cluster_view(cluster, GRANULARITY_MACHINE);
    for (Numbers n = NUMBERS_F32; n < NUMBERS; n++)
        assert_close(
            view->device[0].peaks[n],
            4 * (n == NUMBERS_F16 ? 100e12 : device_type_rate(&cluster->type[0], n)),
            1e-12);
    cluster_view_free(view);
}

/* Kilter 1.5.0 wrote the peak in fp4 below `chip` and below `peaks`: it is read from either, from
 * `peaks` where both say it, and written once. */
static void test_old_key_of_fp4(void **state)
{
    (void)state;
    static const char FORM[] =
        "device_types:\n"
        "  - {name: v, rate: 1 TFLOP/s, memory: 9 GB, peaks: {fp32: 2 TFLOP/s%s},\n"
        "     chip: {bandwidth: 1 TB/s, processors: 9%s}, source: s}\n"
        "machines: [{name: m, type: v, gpus: 1}]\n";
    static const char *const OLD = ", fp4: 30 TFLOP/s";
    const struct {
        const char *peaks, *chip;
        double fp4;
    } CASE[] = {{"", "", 0},
                {"", OLD, 30e12},
                {", fp4: 40 TFLOP/s", "", 40e12},
                {", fp4: 40 TFLOP/s", OLD, 40e12}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *text = g_strdup_printf(FORM, CASE[i].peaks, CASE[i].chip);
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster =
            cluster_parse("test.yaml", text, strlen(text), &error);
        assert_no_error(error);
        assert_close(cluster->type[0].peaks[NUMBERS_F4], CASE[i].fp4, 1e-12);
        g_autofree char *written = cluster_write(cluster);
        const char *first = strstr(written, "fp4");
        assert_int_equal(first != NULL, CASE[i].fp4 > 0);
        assert_false(first && strstr(first + 1, "fp4"));
    }
}

/* An order of devices: of two that differ one is first, from either side. Faster ones are, and of
 * equally fast ones those with more memory. */
static void test_order_of_devices(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(
        "1xa100-40g+1xa100-80g+1xv100-16g+1xh100-sxm+1xa100-80g@ib-hdr", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t i = 0; i < view->n_devices; i++)
        for (uint32_t j = 0; j < view->n_devices; j++) {
            const Device *a = &view->device[i], *b = &view->device[j];
            const int order = device_compare(a, b);
            assert_int_equal(order, -device_compare(b, a));
            if (a->rate != b->rate)
                assert_int_equal(order<0, a->rate> b->rate);
            else if (a->memory_bytes != b->memory_bytes)
                assert_int_equal(order<0, a->memory_bytes> b->memory_bytes);
        }
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_devices),
        cmocka_unit_test(test_peaks_of_machines),
        cmocka_unit_test(test_old_key_of_fp4),
        cmocka_unit_test(test_bundled_machines),
        cmocka_unit_test(test_bundled_list),
        cmocka_unit_test(test_published_numbers),
        cmocka_unit_test(test_hidup_machine),
        cmocka_unit_test(test_bundled_collectives),
        cmocka_unit_test(test_bundled_inner_links),
        cmocka_unit_test(test_nvlink_is_the_fit),
        cmocka_unit_test(test_v100_rate_is_measured),
        cmocka_unit_test(test_latency_is_measured),
        cmocka_unit_test(test_machine_view),
        cmocka_unit_test(test_gpu_view),
        cmocka_unit_test(test_single_machine_uses_its_inner_link),
        cmocka_unit_test(test_permuted_machines),
        cmocka_unit_test(test_granularity_names),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_tag_measured),
        cmocka_unit_test(test_amp_specification),
        cmocka_unit_test(test_search_path),
        cmocka_unit_test(test_collective_names),
        cmocka_unit_test(test_collective_converts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
