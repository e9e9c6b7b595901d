/* Clusters in the words of data sheets: missing numbers follow from devices and links by name, and
 * all errors of a file are reported together. */
#include <glib/gstdio.h>

#include "data/cluster/network_spec.h"
#include "data/data.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

static Cluster *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("my.yaml", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

static void expect_refusal(const char *text, const char *const *parts)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("my.yaml", text, strlen(text), &error);
    assert_null(cluster);
    for (; *parts; parts++)
        assert_error(error, KILTER_ERROR_INPUT, *parts);
}

/* Two machines of 4 A100 with 12 NVLinks each and a port of 100 Gb/s. */
static void test_one_line(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    g_autoptr(Cluster) cluster = parse("name: mine\nmachines: [{device: a100-80g, gpus: "
                                       "4, count: 2, inner: nvlink3, nic: "
                                       "eth-100}]\n");
    const DeviceSheet *sheet = sheets_device(sheets, "A100", NULL);
    const LinkSheet *nvlink = sheets_link(sheets, "nvlink3", NULL);
    const LinkSheet *nic = sheets_link(sheets, "eth-100", NULL);
    assert_int_equal(cluster->n_machines, 2);
    assert_string_equal(cluster->machine[1].name, "a100-80g-1");
    assert_close(cluster->machine[0].inner.bandwidth,
                 12 * nvlink->bandwidth * nvlink->share, 1e-12);
    assert_close(cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth,
                 nic->bandwidth * nic->share, 1e-12);
    assert_close(cluster->collective[COLLECTIVE_ALL_REDUCE].latency_s,
                 nic->base_s + 2 * nic->hop_s, 1e-12);
    assert_close(device_type_rate(&cluster->type[0], NUMBERS_BF16),
                 sheet->peak[SHEET_BF16] * sheet->share[SHEET_BF16], 1e-12);
    assert_true(device_type_rate(&cluster->type[0], NUMBERS_BF16) <
                sheet->peak[SHEET_BF16]);
    assert_int_equal(cluster->type[0].memory_bytes, 80ull << 30);
    assert_null(cluster->network);
    /* The written file has the same cluster in numbers. */
    g_autofree char *want = cluster_canonical(cluster), *text = cluster_write(cluster);
    g_autoptr(Cluster) again = parse(text);
    g_autofree char *got = cluster_canonical(again);
    assert_string_equal(got, want);
}

/* Six kinds of machines, all with rates in half precision and different ports. */
static void test_many_types(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster = parse(
        "name: mix\n"
        "machines:\n"
        "  - {device: a100-80g, gpus: 4, nic: eth-100}\n"
        "  - {device: a100-80g, gpus: 8, nic: eth-100}\n"
        "  - {device: h100, gpus: 8, nic: ib-ndr, nics: 8}\n"
        "  - {device: v100, gpus: 2, nic: eth-10}\n"
        "  - {device: t4, gpus: 1, nic: eth-10}\n"
        "  - {device: rtx-4090, gpus: 8, nic: eth-10}\n"
        "  - {device: mi300x, gpus: 8, inner: {link: xgmi3, count: 3}, nic: eth-400}\n");
    assert_int_equal(cluster->n_types, 6);
    assert_string_equal(cluster->machine[1].name, "a100-80g.2");
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    assert_int_equal(view->n_devices, 39);
    assert_int_equal(view->n_fitted, 6);
    /* The slowest port decides for collectives; where ports differ, each machine's flows use its
     * own port. */
    assert_close(cluster->collective[COLLECTIVE_ALL_GATHER].bandwidth, 1.25e9 * 0.85,
                 1e-9);
    g_autoptr(GError) error = NULL;
    g_autoptr(Topology) topology = topology_of_view(view, &error);
    assert_no_error(error);
    const uint32_t of_v100 = 4 + 8 + 8; /* its first GPU */
    double widest = 0;
    for (uint32_t l = 0; l < topology->n_links; l++)
        if (topology->node[topology->link[l].to].kind == NODE_SWITCH &&
            strcmp(topology->node[topology->link[l].from].name,
                   cluster->machine[topology->machine[of_v100]].name) == 0)
            widest = topology->link[l].bandwidth;
    assert_close(widest, 1.25e9 * 0.85, 1e-9);
}

/* One machine is a cluster; the name of a link may replace its numbers, and characters of several
 * bytes before it do not shift its place. */
static void test_one_machine(void **state)
{
    (void)state;
    g_autoptr(Cluster) fastest =
        parse("name: a\nmachines: [{device: mi300x, gpus: 8}]\n");
    g_autoptr(Cluster) named = parse("name: \"\xc3\xa9t\xc3\xa9\"\nmachines: [{device: "
                                     "mi300x, gpus: 8, inner: xgmi3}]\n");
    assert_close(fastest->machine[0].inner.bandwidth, named->machine[0].inner.bandwidth,
                 1e-15);
    g_autoptr(Cluster) pcie =
        parse("name: a\nmachines: [{device: mi300x, gpus: 8, inner: pcie5}]\n");
    assert_true(pcie->machine[0].inner.bandwidth <
                fastest->machine[0].inner.bandwidth / 3);
}

static void test_all_errors_at_once(void **state)
{
    (void)state;
    static const char *const NUMBERS_OF[] = {
        "my.yaml:3: device_types[0].rate: expected a rate",
        "my.yaml:3: device_types[0].memory: expected an amount of bytes",
        "my.yaml:5: machines[0].device: unknown device 'mi300'; did you mean 'mi300a' or "
        "'mi300x'?",
        "my.yaml:6: machines[1].gpus: expected a whole number",
        "my.yaml:6: machines[1].nic: unknown link 'eth-11'; did you mean 'eth-10'?",
        NULL};
    expect_refusal("name: one\n"
                   "device_types:\n"
                   "  - {name: x, rate: 10, memory: 3}\n"
                   "machines:\n"
                   "  - {device: mi300, gpus: 8}\n"
                   "  - {type: x, gpus: -1, nic: eth-11}\n",
                   NUMBERS_OF);
    static const char *const KEYS[] = {
        "my.yaml:3: machines[0].gpsu: unknown key; did you mean 'gpus'?",
        "my.yaml:4: topolgy: unknown key; did you mean 'topology'?", NULL};
    expect_refusal("name: one\n"
                   "machines:\n"
                   "  - {device: mi300x, gpsu: 8}\n"
                   "topolgy: 3\n",
                   KEYS);
    static const char *const GPUS[] = {
        "my.yaml:2: machines[0].gpus: missing; expected this key", NULL};
    expect_refusal("name: one\nmachines: [{device: mi300x}]\n", GPUS);
    static const char *const UNLIKE[] = {
        "machines[0].devices: expected either this list, or device and gpus",
        "machines[1].devices[0]", NULL};
    expect_refusal(
        "name: one\nmachines:\n  - {device: t4, gpus: 1, devices: [{device: l4, gpus: "
        "1}]}\n"
        "  - {devices: [{device: l5, gpus: 1}]}\n",
        UNLIKE);
    static const char *const NIC[] = {
        "collectives: missing; expected this key, for 2 machines, or "
        "the nic of each machine",
        NULL};
    expect_refusal("name: one\nmachines: [{device: t4, gpus: 1, count: 2}]\n", NIC);
    static const char *const BOTH[] = {"expected either device", NULL};
    expect_refusal("name: one\nmachines: [{device: t4, type: t4, gpus: 1}]\n", BOTH);
    static const char *const NICS[] = {"machines[0].nics: expected nic as well", NULL};
    expect_refusal("name: one\nmachines: [{device: t4, gpus: 1, nics: 2}]\n", NICS);
}

/* Every bundled device and link makes a cluster. */
static void test_bundled_sheets(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    assert_true(sheets->n_devices >= 20);
    for (uint32_t i = 0; i < sheets->n_devices; i++) {
        const DeviceSheet *sheet = &sheets->device[i];
        g_autofree char *text = g_strdup_printf(
            "name: a\nmachines: [{device: %s, gpus: 8, count: 2, nic: ib-ndr}]\n",
            sheet->name);
        g_autoptr(Cluster) cluster = parse(text);
        assert_non_null(cluster);
        assert_true(sheet->power_w > 0 && sheet->chip.bandwidth > 0 && *sheet->source);
        g_autoptr(KernelDevice) device = kernel_device_new(&cluster->type[0], &error);
        assert_no_error(error);
        assert_string_equal(device->missing, sheet->chip.sm || sheet->chip.gcn
                                                 ? ""
                                                 : "no sm: rules of new libraries");
        for (uint32_t format = 0; format < SHEET_FORMATS; format++)
            assert_true(sheet->share[format] > 0 && sheet->share[format] <= 1);
        for (char **pci = sheet->pci; *pci; pci++)
            assert_ptr_equal(sheets_find_pci(sheets, *pci), sheet);
        for (char **name = sheet->product; *name; name++)
            assert_ptr_equal(sheets_find_product(sheets, *name), sheet);
    }
}

/* Names as drivers print them: by whole words, with the memory that they state; what is not
 * known is not guessed. */
static void test_product_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *device; /* NULL: not known */
    } NAMES[] = {
        {"NVIDIA L40 (UUID: GPU-0)", "l40"},
        {"NVIDIA L40S", "l40s"},
        {"NVIDIA L4", "l4"},
        {"NVIDIA L40G", NULL},
        {"NVIDIA L20", "l20"},
        {"NVIDIA H20", "h20"},
        {"NVIDIA H20-3e", "h20-141g"},
        {"NVIDIA H200", "h200"},
        {"NVIDIA H200 NVL", "h200-nvl"},
        {"NVIDIA H100 80GB HBM3", "h100-sxm"},
        {"NVIDIA-H100-80GB-HBM3", "h100-sxm"},
        {"NVIDIA H100 96GB HBM3", "h100-sxm-96g"},
        {"NVIDIA H100 64GB HBM2", "h100-sxm-64g"},
        {"NVIDIA H100 40GB HBM3", NULL},
        {"NVIDIA H100 PCIe", "h100-pcie"},
        {"NVIDIA H100 NVL", "h100-nvl"},
        {"NVIDIA H800", "h800"},
        {"NVIDIA H800 PCIe", "h800-pcie"},
        {"NVIDIA GH200 480GB", "gh200"},
        {"NVIDIA GH200 120GB", "gh200"},
        {"NVIDIA GH200 144G HBM3e", "gh200-144g"},
        {"NVIDIA A100-SXM4-40GB", "a100-40g"},
        {"NVIDIA A100-SXM4-80GB", "a100-80g"},
        {"A100-SXM-80GB", "a100-80g"},
        {"NVIDIA A100-SXM-64GB", "a100-sxm-64g"},
        {"NVIDIA A100-PCIE-40GB", "a100-pcie-40g"},
        {"NVIDIA A100 80GB PCIe", "a100-pcie-80g"},
        {"NVIDIA A100-PCIE", NULL}, /* 40 or 80 GB */
        {"NVIDIA A100-SXM4-80GB MIG 1g.10gb", NULL},
        {"NVIDIA A800-SXM4-80GB", "a800-80g"},
        {"NVIDIA A800 80GB PCIe", "a800-pcie-80g"},
        {"NVIDIA A10", "a10"},
        {"NVIDIA A10G", "a10g"},
        {"NVIDIA A16", "a16"},
        {"NVIDIA A2", "a2"},
        {"NVIDIA A30", "a30"},
        {"NVIDIA A40", "a40"},
        {"NVIDIA A40-48Q", NULL},
        {"NVIDIA B200", "b200"},
        {"NVIDIA GB200", "gb200"},
        {"NVIDIA GB10", "gb10"},
        {"Tesla V100-SXM2-16GB", "v100-16g"},
        {"Tesla V100-SXM2-32GB", "v100-32g"},
        {"Tesla V100-SXM3-32GB", "v100-32g"},
        {"Tesla V100-PCIE-16GB", "v100-pcie-16g"},
        {"Tesla V100-PCIE-32GB", "v100-pcie-32g"},
        {"Tesla V100S-PCIE-32GB", "v100s-32g"},
        {"Tesla P100-SXM2-16GB", "p100-16g"},
        {"Tesla P100-PCIE-16GB", "p100-pcie-16g"},
        {"Tesla P100-PCIE-12GB", "p100-12g"},
        {"Tesla P40", "p40"},
        {"Tesla P4", "p4"},
        {"Tesla K80", "k80"},
        {"Tesla T4", "t4"},
        {"NVIDIA TITAN RTX", "titan-rtx"},
        {"NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"},
        {"NVIDIA GeForce RTX 2080", NULL},
        {"NVIDIA GeForce RTX 3090", "rtx-3090"},
        {"NVIDIA GeForce RTX 4070 Ti", NULL},
        {"NVIDIA GeForce RTX 4090", "rtx-4090"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL},
        {"NVIDIA GeForce RTX 4090 D", NULL},
        {"NVIDIA GeForce RTX 5090", "rtx-5090"},
        {"NVIDIA RTX A6000", "rtx-a6000"},
        {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
        {"Quadro RTX 6000", NULL},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
        {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation"},
        {"AMD Instinct MI100", "mi100"},
        {"AMD Instinct MI210", "mi210"},
        {"AMD INSTINCT MI250 (MCM) OAM AC MBA", "mi250"},
        {"AMD Instinct MI250X", "mi250x"},
        {"AMD Instinct MI300A", "mi300a"},
        {"AMD Instinct MI300X VF", "mi300x"},
        {"AMD Instinct MI308X", "mi308x"},
        {"AMD Instinct MI355X", "mi355x"},
        {"AMD Instinct MI3000", NULL},
        {"Ascend 910B", "ascend-910b"},
        {"Ascend910B3", "ascend-910b3"},
        {"", NULL},
        {"NVIDIA", NULL},
        {"80GB", NULL},
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    for (uint32_t i = 0; i < G_N_ELEMENTS(NAMES); i++) {
        const DeviceSheet *sheet = sheets_find_product(sheets, NAMES[i].text);
        if (g_strcmp0(sheet ? sheet->name : NULL, NAMES[i].device) != 0)
            fail_msg("'%s' is %s, not %s", NAMES[i].text,
                     sheet ? sheet->name : "not known", NAMES[i].device);
    }
}

/* Links that a device has several of need a number, unless its sheet has it. */
static void test_counts_of_links(void **state)
{
    (void)state;
    static const char OWN[] =
        "device_types: [{name: h20, rate: 44 TFLOP/s, memory: 96 GiB}]\n"
        "machines: [{type: h20, gpus: 8, inner: %s}]\n";
    static const struct {
        const char *inner, *message;
    } CASES[] = {
        {"nvlink4", "machines[0].inner.count: missing; expected how many nvlink4"},
        {"xgmi3", "expected how many xgmi3 links each GPU has"},
        {"{link: nvlink4, count: 18}", NULL},
        {"pcie5", NULL}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(OWN, CASES[i].inner);
        g_autoptr(Cluster) cluster =
            cluster_parse("own.yaml", text, strlen(text), &error);
        if (CASES[i].message)
            assert_error(error, KILTER_ERROR_INPUT, CASES[i].message);
        else
            assert_no_error(error);
    }
    static const char OTHER[] = "machines: [{device: rtx-4090, gpus: 4, inner: nvlink3}]";
    g_autoptr(GError) error = NULL;
    assert_null(cluster_parse("other.yaml", OTHER, strlen(OTHER), &error));
    assert_error(error, KILTER_ERROR_INPUT, "none is on the data sheet of rtx-4090");
}

/* The bundled clusters of today's machines. Ports: Gb/s per machine, before the share that
 * collectives reach. */
static void test_clusters_of_today(void **state)
{
    (void)state;
    static const struct {
        const char *name, *device;
        uint32_t machines;
        double port, share;
    } CLUSTERS[] = {{"dgx-a100", "a100-80g", 1, 0, 0},
                    {"dgx-h100", "h100-sxm", 1, 0, 0},
                    {"dgx-b200", "b200", 1, 0, 0},
                    {"aws-p4d", "a100-40g", 2, 400, 0.85},
                    {"aws-p5", "h100-sxm", 2, 3200, 0.85},
                    {"azure-nd-a100-v4", "a100-40g", 2, 1600, 0.9},
                    {"azure-nd-h100-v5", "h100-sxm", 2, 3200, 0.9},
                    {"mi300x-8", "mi300x", 1, 0, 0},
                    {"rtx-4090-8", "rtx-4090", 1, 0, 0}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CLUSTERS); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = cluster_load(CLUSTERS[i].name, &error);
        assert_no_error(error);
        assert_string_equal(cluster->name, CLUSTERS[i].name);
        assert_string_equal(cluster->type[0].name, CLUSTERS[i].device);
        assert_int_equal(cluster->n_machines, CLUSTERS[i].machines);
        assert_int_equal(cluster_gpus(cluster), 8 * CLUSTERS[i].machines);
        assert_true(strlen(cluster->machine[0].source) > 20);
        if (CLUSTERS[i].machines > 1)
            assert_close(cluster->collective[COLLECTIVE_ALL_REDUCE].bandwidth,
                         CLUSTERS[i].port * 1e9 / 8 * CLUSTERS[i].share, 1e-12);
    }
}

/* Sections that refer to others are read as well: cables, rules of tuning. */
static void test_all_sections_at_once(void **state)
{
    (void)state;
    expect_refusal("machines: [{device: a100-80g, gpus: 4, count: 2, nic: eth-99}]\n"
                   "topology:\n"
                   "  nodes: [a]\n"
                   "  links:\n"
                   "    - {from: x, to: a, latency: 5 us, bandwidth: 10 GB}\n"
                   "    - {from: y, to: a, latency: 5 m, bandwidth: 10 GB/s}\n"
                   "tuning:\n"
                   "  rules:\n"
                   "    - {collective: all_reduce, algorithm: wheel}\n"
                   "    - {collective: all_ruduce, algorithm: ring}\n",
                   (const char *[]){"my.yaml:1: machines[0].nic: unknown link 'eth-99'",
                                    "my.yaml:5: topology.links[0].bandwidth: ",
                                    "my.yaml:6: topology.links[1].latency: ",
                                    "my.yaml:9: tuning.rules[0].algorithm: ",
                                    "my.yaml:10: tuning.rules[1].collective: ", NULL});
}

/* The facts beside a plan's times: peaks and power from data sheets, prices from the file. */
static void test_facts(void **state)
{
    (void)state;
    g_autoptr(Cluster) cluster =
        parse("machines: [{device: h100-sxm, gpus: 8, count: 2, nic: ib-ndr, "
              "price: 98.32 USD/h}]\n");
    assert_string_equal(cluster->name, "my");
    assert_close(cluster->machine[1].price, 98.32, 1e-12);
    assert_close(cluster->type[0].peaks[NUMBERS_BF16], 989.4e12, 1e-12);
    assert_close(cluster->type[0].power_w, 700, 1e-12);
    g_autofree char *text = cluster_write(cluster);
    g_autoptr(Cluster) again = parse(text);
    assert_close(again->machine[1].price, 98.32, 1e-12);
    assert_close(again->type[0].peaks[NUMBERS_F8], 1978.9e12, 1e-12);
    assert_close(again->type[0].power_w, 700, 1e-12);
    expect_refusal(
        "machines: [{device: h100-sxm, gpus: 8, price: 3}]\n",
        (const char *[]){"my.yaml:1: machines[0].price: expected a price such as", NULL});
}

static GPtrArray *warnings_of(const char *text)
{
    g_autoptr(Cluster) cluster = parse(text);
    g_autoptr(GError) error = NULL;
    GPtrArray *warnings = sheets_warnings(cluster, &error);
    assert_no_error(error);
    return warnings;
}

/* A rate that equals a data sheet's peak causes a warning, not an error; so does each peak of
 * each sheet. */
static void test_peaks_are_asked_about(void **state)
{
    (void)state;
    g_autoptr(GPtrArray) two =
        warnings_of("name: a\ndevice_types: [{name: h, rate: 67 TFLOP/s, "
                    "rates: {bf16: 989.4 TFLOP/s}, "
                    "memory: 80 GiB}]\nmachines: [{type: h, gpus: 1}]\n");
    assert_int_equal(two->len, 2);
    assert_non_null(strstr(two->pdata[0], "is the peak of"));
    g_autoptr(GPtrArray) none =
        warnings_of("name: a\nmachines: [{device: h100, gpus: 1}]\n");
    assert_int_equal(none->len, 0);
    g_autoptr(Sheets) sheets = sheets_load(NULL);
    uint32_t n = 0;
    /* By chance, two fifths of one device's peak are another's in another format. */
    for (uint32_t i = 0; i < sheets->n_devices; i++) {
        g_autofree char *text = g_strdup_printf(
            "name: a\nmachines: [{device: %s, gpus: 1}]\n", sheets->device[i].name);
        g_autoptr(GPtrArray) of_sheet = warnings_of(text);
        assert_int_equal(of_sheet->len, 0);
    }
    /* Nobody trains in fp64: 7.8 TFLOP/s is that peak of a V100, and a measured rate of others. */
    g_autoptr(GPtrArray) measured =
        warnings_of("name: a\ndevice_types: [{name: g, rate: 7.8 TFLOP/s, memory: 11 "
                    "GiB}]\nmachines: [{type: g, gpus: 1}]\n");
    assert_int_equal(measured->len, 0);
    const uint32_t step = test_rounds(5, 1);
    for (uint32_t i = 0; i < sheets->n_devices; i += step)
        for (uint32_t f = SHEET_FP32; f < SHEET_FORMATS; f++)
            if (sheets->device[i].peak[f] > 0) {
                g_autofree char *text = g_strdup_printf(
                    "name: a\ndevice_types: [{name: h, rate: %.9g GFLOP/s, memory: 80 "
                    "GiB}]\nmachines: [{type: h, gpus: 1}]\n",
                    sheets->device[i].peak[f] / 1e9);
                g_autoptr(GPtrArray) one = warnings_of(text);
                assert_int_equal(one->len, 1);
                n++;
            }
    assert_true(n > 100 / step);
}

/* A cluster reads the sheets of its own devices only: another one that is damaged does not matter
 * until a name may be its alias. */
static void test_own_sheets_only(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL),
                    *devices = g_build_filename(folder, "devices", NULL),
                    *damaged = g_build_filename(devices, "a10.yaml", NULL);
    assert_int_equal(g_mkdir(devices, 0700), 0);
    assert_true(g_file_set_contents(damaged, "name: [\n", -1, NULL));
    g_setenv("KILTER_PATH", folder, TRUE);
    g_autoptr(Cluster) own = parse("name: c\nmachines: [{device: T4, gpus: 1}]\n");
    assert_string_equal(own->type[0].name, "t4");
    expect_refusal("name: c\nmachines: [{device: volta, gpus: 1}]\n",
                   (const char *const[]){"machines[0].device", "a10.yaml", NULL});
    expect_refusal("name: c\nmachines: [{device: a10, gpus: 1}]\n",
                   (const char *const[]){"machines[0].device", "a10.yaml", NULL});
    assert_null(sheets_load(&error));
    g_unsetenv("KILTER_PATH");
    g_unlink(damaged);
    g_rmdir(devices);
    g_rmdir(folder);
}

/* Parts of peaks whose device does not exist are refused, in the first row too. */
static void test_shares_of_no_device(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL), *text = NULL,
                    *path = g_build_filename(folder, "sustained.yaml", NULL);
    assert_true(g_file_get_contents("data/sustained.yaml", &text, NULL, &error));
    for (uint32_t row = 0; row < 3; row++) {
        char *device = strstr(text, "devices:\n");
        for (uint32_t r = 0; r <= row; r++)
            device = strstr(device, "{device: ") + strlen("{device: ");
        const char first = *device;
        *device = '_';
        assert_true(g_file_set_contents(path, text, -1, NULL));
        *device = first;
        g_setenv("KILTER_PATH", folder, TRUE);
        g_autoptr(GError) refused = NULL;
        g_autoptr(Sheets) sheets = sheets_load(&refused);
        g_unsetenv("KILTER_PATH");
        g_autofree char *expected = g_strdup_printf("devices[%u].device", row);
        assert_null(sheets);
        assert_error(refused, KILTER_ERROR_INPUT, expected);
    }
    g_unlink(path);
    g_rmdir(folder);
}

/* Curves of collectives go by the slowest port, wherever its machine stands. */
static void test_slowest_port(void **state)
{
    (void)state;
    static const char *const NAME[] = {
        "8xh100-sxm@8xib-ndr+8xb200@8xib-xdr+8xa100-80g@8xib-hdr",
        "8xb200@8xib-xdr+8xa100-80g@8xib-hdr+8xh100-sxm@8xib-ndr",
        "8xa100-80g@8xib-hdr+8xb200@8xib-xdr+8xh100-sxm@8xib-ndr"};
    double least = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(NAME); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = cluster_load(NAME[i], &error);
        assert_no_error(error);
        double slowest = INFINITY;
        for (uint32_t m = 0; m < cluster->n_machines; m++)
            slowest = fmin(slowest, cluster->machine[m].port.bandwidth);
        assert_int_equal(cluster->n_machines, 3);
        assert_true(cluster->curves.port.bandwidth == slowest);
        assert_true(i == 0 || slowest == least);
        least = slowest;
    }
}

/* Gaps in a user's own sheet are said: a number that its generation gives, or that its ops take a
 * share of the peak. Bundled sheets and types without a sheet have no gaps. */
static void test_gaps_of_sheets(void **state)
{
    (void)state;
    static const char SHEET[] = "name: mine\ndescription: d\npeak: [{format: fp32, rate: "
                                "31.2 TFLOP/s}]\nmemory: 24 GiB\n"
                                "bandwidth: 600 GB/s\nbus: 384\nprocess: 8\nlinks: "
                                "[{link: pcie4, count: 1}]\npower: 150 W\n"
                                "source: test\n";
    static const struct {
        const char *more, *said;
    } CASE[] = {{"clock: 1.7 GHz\nprocessors: 72\nsm: 86\n", "no l2: 5.26 MB"},
                {"l2: 6 MB\n", "a share of the peak (costs=shares)"},
                {"clock: 1.7 GHz\nprocessors: 72\nsm: 86\nl2: 6 MB\n", NULL}};
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", NULL),
                    *devices = g_build_filename(folder, "devices", NULL),
                    *sheet = g_build_filename(devices, "mine.yaml", NULL);
    assert_int_equal(g_mkdir(devices, 0700), 0);
    g_setenv("KILTER_PATH", folder, TRUE);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *text = g_strconcat(SHEET, CASE[i].more, NULL);
        assert_true(g_file_set_contents(sheet, text, -1, NULL));
        g_autoptr(Cluster) own =
            parse("name: c\nmachines: [{device: mine, gpus: 1, nic: eth-10}, "
                  "{device: t4, gpus: 1, nic: eth-10}]\n");
        g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
        sheets_gaps(own, list);
        assert_int_equal(list->len, CASE[i].said ? 1 : 0);
        assert_true(!CASE[i].said || strstr(list->pdata[0], CASE[i].said));
        assert_true(!CASE[i].said || strstr(list->pdata[0], "device type mine: "));
    }
    g_unsetenv("KILTER_PATH");
    g_unlink(sheet);
    g_rmdir(devices);
    g_rmdir(folder);
}

/* A machine with more GPUs than any that is sold is asked about: most are several machines. */
static void test_large_machines(void **state)
{
    (void)state;
    static const char *const WORD[] = {"16xh100-sxm", "8xh100-sxm", "72xgb200", "10xl40s",
                                       "16xa100-40g"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(WORD); i++) {
        g_autoptr(Cluster) cluster = cluster_load(WORD[i], NULL);
        g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
        sheets_gaps(cluster, list);
        assert_int_equal(list->len, i == 0);
        assert_true(i > 0 || strstr(list->pdata[0], "2x8xh100-sxm@"));
    }
}

/* One card for eight GPUs with NVLink is asked about; one for eight that share PCIe is usual. */
static void test_few_cards(void **state)
{
    (void)state;
    static const char *const WORD[] = {"2x8xh100-sxm@ib-ndr", "2x8xh100-sxm@8xib-ndr",
                                       "2x8xl40s@eth-100", "2x4xh100-sxm@ib-ndr",
                                       "8xh100-sxm@ib-ndr"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(WORD); i++) {
        g_autoptr(Cluster) cluster = cluster_load(WORD[i], NULL);
        g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
        sheets_gaps(cluster, list);
        assert_int_equal(list->len, i == 0);
        assert_true(i > 0 || strstr(list->pdata[0], "one network card for 8 GPUs"));
    }
}

/* Machines in one word are the file that lists them. */
static void test_machines_in_a_word(void **state)
{
    (void)state;
    static const struct {
        const char *word, *file;
    } same[] = {
        {"4x8xh100-sxm@8xib-ndr+2x8xh20",
         "machines: [{device: h100-sxm, gpus: 8, count: 4, nic: ib-ndr, nics: 8},\n"
         "           {device: h20, gpus: 8, count: 2, nic: ib-ndr, nics: 8}]\n"},
        {"8xh20@eth-100+2x4xv100@ib-edr",
         "machines: [{device: h20, gpus: 8, nic: eth-100},\n"
         "           {device: v100, gpus: 4, count: 2, nic: ib-edr}]\n"},
        {"8xh20", "machines: [{device: h20, gpus: 8}]\n"},
        {"4x8xh100-sxm@8xNDR",
         "machines: [{device: h100-sxm, gpus: 8, count: 4, nic: ib-ndr, nics: 8}]\n"},
        {"4x8xh100-sxm@8x400Gb/s",
         "machines: [{device: h100-sxm, gpus: 8, count: 4, nic: eth-400, nics: 8}]\n"},
        {"2 nodes of 8xH100 80GB @8xNDR400 + 1 machine 4xA100 40GB @ cx7",
         "machines: [{device: h100-sxm, gpus: 8, count: 2, nic: ib-ndr, nics: 8},\n"
         "           {device: a100-40g, gpus: 4, nic: ib-ndr}]\n"},
        {"8 A100_SXM4 80GB", "machines: [{device: a100-80g, gpus: 8}]\n"},
        {"2 servers x 4 v100_pcie@hdr200",
         "machines: [{device: v100-pcie-16g, gpus: 4, count: 2, nic: ib-hdr}]\n"},
        {"2x4xv100@25GbE", "machines: [{device: v100, gpus: 4, count: 2, nic: 25G}]\n"},
        {"8xh20,host_memory=2TB,price=9.5 USD/h+2x8xh20@ib-ndr,price=9USD/h",
         "machines: [{device: h20, gpus: 8, nic: ib-ndr, host_memory: 2TB, price: 9.5 "
         "USD/h},\n"
         "           {device: h20, gpus: 8, count: 2, nic: ib-ndr, price: 9USD/h}]\n"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(same); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) word = cluster_load(same[i].word, &error);
        assert_no_error(error);
        g_autofree char *text =
            g_strdup_printf("%sname: '%s'\n", same[i].file, word->name);
        g_autoptr(Cluster) file = parse(text);
        g_autofree char *got = cluster_canonical(word), *want = cluster_canonical(file);
        assert_string_equal(got, want);
        assert_string_equal(word->name, same[i].word);
    }
    static const struct {
        const char *word, *reason;
    } wrong[] = {
        {"4x8x", "expected machines such as"},
        {"8xh20+", "expected machines such as"},
        {"4x8xh20", "several machines need a network card"},
        {"8xh20+8xh100-sxm", "several machines need a network card"},
        {"4x8xh20@ib-ndr}", "expected a network card such as"},
        {"4x8xh20@100Tb/s", "unknown link '100Tb/s'"},
        {"4x8xh20@lace", "machines[0].nic: unknown link 'lace'"},
        {"8xh20,", "expected keys such as host_memory=2TB"},
        {"8xh20,price=1,", "expected keys such as host_memory=2TB"},
        {"8xh20,price={}", "expected keys such as host_memory=2TB"},
        {"8xh20,memory=2TB", "memory: unknown key"},
        {"8xh20@ib-ndr,region=a", "a region alone changes nothing"},
        {"tests/fuzz/seeds/machine_file/topo.txt",
         "looks like a table, list or matrix of nvidia-smi, which kilter cluster import"},
        {"rtx-4090", "it is a device: 1xrtx-4090 is a machine of one"},
        {"0x8xh20@ib-ndr", "machines[0].count: expected a whole number from 1"},
        {"1x99999999xh20", "machines[0].gpus"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(cluster_load(wrong[i].word, &error));
        assert_error(error, KILTER_ERROR_INPUT, wrong[i].word);
        assert_error(error, KILTER_ERROR_INPUT, wrong[i].reason);
    }
}

/* The spellings of drivers, clouds and people name the sheet that they mean. */
static void test_spellings(void **state)
{
    (void)state;
    static const char *const ROW[][2] = {{"H100-80GB-HBM3", "h100-sxm"},
                                         {"a100-80gb", "a100-80g"},
                                         {"a100-sxm4", "a100-80g"},
                                         {"a100-sxm4-40gb", "a100-40g"},
                                         {"a100_pcie_40gb", "a100-pcie-40g"},
                                         {"v100-32gb", "v100-32g"},
                                         {"v100-sxm2-16gb", "v100-16g"},
                                         {"RTX4090", "rtx-4090"},
                                         {"geforce-rtx-3090", "rtx-3090"},
                                         {"tesla-t4", "t4"},
                                         {"h20-141gb", "h20-141g"},
                                         {"a100-64tb", NULL},
                                         {"a100-16gb", NULL},
                                         {"h", NULL},
                                         {"rtx", NULL},
                                         {"80gb", NULL}};
    g_autoptr(Sheets) sheets = sheets_load(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        const DeviceSheet *found = sheets_device(sheets, ROW[i][0], NULL);
        g_autofree char *text = g_strdup_printf("1x%s", ROW[i][0]);
        g_autoptr(Cluster) cluster = cluster_from_machines(text, NULL);
        assert_true(!found == !ROW[i][1] && !cluster == !ROW[i][1]);
        assert_true(!found || (strcmp(found->name, ROW[i][1]) == 0 &&
                               strcmp(cluster->type[0].name, ROW[i][1]) == 0));
    }
}

/* Unlike machines joined by a comma, which begins keys, name the sign that joins them. */
static void test_joined_by_comma(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_null(cluster_from_machines("2x8xh100@ib-ndr,2x8x4090", &error));
    assert_error(error, KILTER_ERROR_INPUT, "expected '+' between unlike machines");
    g_autoptr(Cluster) cluster = cluster_from_machines("2x8xh100@ib-ndr+2x8x4090", NULL);
    assert_true(cluster && cluster->n_machines == 4);
}

/* Machines as people and clouds name them are those of the plain text beside it. */
static void test_names_of_machines(void **state)
{
    (void)state;
    static const char *const ROW[][2] = {
        {"p5.48xlarge", "8xh100-sxm@32xeth-100"},
        {"Standard_ND96isr_H100_v5", "8xh100-sxm@8xib-ndr"},
        {"2xp5.48xlarge+p4d.24xlarge", "2x8xh100-sxm@32xeth-100+8xa100-40g@4xeth-100"},
        {"2xBM.GPU.H100.8@8xib-ndr", "2x8xh100-sxm@8xib-ndr"},
        {"2xdgx-h100,host_memory=2TB", "2x8xh100-sxm@8xib-ndr,host_memory=2TB"},
        {"8x H100 SXM", "8xh100-sxm"},
        {"8 * NVIDIA H100 80GB HBM3", "8xh100-sxm"},
        {"2 x 8 x RTX 4090 @ 2x10G", "2x8xrtx-4090@2xeth-10"}};
    for (size_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        char *text[2];
        for (uint32_t k = 0; k < 2; k++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(Cluster) cluster = cluster_load(ROW[i][k], &error);
            assert_no_error(error);
            put_block(cluster->name, g_strdup("same"));
            text[k] = cluster_write(cluster);
        }
        assert_string_equal(text[0], text[1]);
        free_each(text[0], text[1]);
    }
    g_autofree char *path = path_find("instances.txt"), *all = text_read(path, NULL);
    g_auto(GStrv) line = g_strsplit(all, "\n", -1);
    for (uint32_t i = 0; line[i]; i++) {
        g_autoptr(GError) error = NULL;
        if (!g_str_has_prefix(line[i], "  "))
            continue;
        g_auto(GStrv) word = g_strsplit(line[i] + 2, "  ", 2);
        g_autofree char *two = g_strdup_printf("2x%s", word[0]);
        g_autoptr(Cluster) cluster = cluster_load(two, &error);
        assert_no_error(error);
    }
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_many_types),
        cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_all_errors_at_once),
        cmocka_unit_test(test_all_sections_at_once),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_bundled_sheets),
        cmocka_unit_test(test_product_names),
        cmocka_unit_test(test_counts_of_links),
        cmocka_unit_test(test_clusters_of_today),
        cmocka_unit_test(test_peaks_are_asked_about),
        cmocka_unit_test(test_large_machines),
        cmocka_unit_test(test_few_cards),
        cmocka_unit_test(test_own_sheets_only),
        cmocka_unit_test(test_shares_of_no_device),
        cmocka_unit_test(test_slowest_port),
        cmocka_unit_test(test_gaps_of_sheets),
        cmocka_unit_test(test_machines_in_a_word),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_joined_by_comma),
        cmocka_unit_test(test_names_of_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
