/* kilter cluster import on topology files of others: each fact of the samples' expected.csv is a
 * key of its JSON; and the clusters that it makes. */
#include "tests/support/expected.h"
#include "tests/support/program_json.h"

static char *as_text(const json_t *value)
{
    if (json_is_integer(value))
        return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return g_strdup(json_string_value(value));
}

static gboolean check_file(void *key, void *value, void *data)
{
    const GPtrArray *facts = value;
    const Sandbox *sandbox = data;
    g_autofree char *relative = g_strconcat("samples/", (const char *)key, NULL);
    const char *path = test_shared(relative);
    assert_non_null(path);
    g_autofree char *line = g_strdup_printf("cluster import '%s' --json -q", path);
    const char *root = expected_fact(facts, "root"), *gpus = expected_fact(facts, "gpus");
    if (root && strcmp(root, "graphs") == 0) {
        program_refuses(sandbox, line, 2, "graphs");
        return FALSE;
    }
    if (strcmp(gpus, "0") == 0) {
        program_refuses(sandbox, line, 2, "no GPU in the file");
        return FALSE;
    }
    json_t *json = program_json(sandbox, line);
    for (guint i = 0; i < facts->len; i++) {
        const Expected *fact = facts->pdata[i];
        g_autofree char *got = as_text(json_object_get(json, fact->fact));
        if (strcmp(fact->fact, "trap") != 0 && g_strcmp0(got, fact->value) != 0)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s is %s, expected %s", (char *)key,
                         fact->fact, got, fact->value);
    }
    json_decref(json);
    return FALSE;
}

static void check_kind(const char *kind)
{
    GTree *files = expected_of(kind);
    if (!files)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_tree_foreach(files, check_file, sandbox);
    g_tree_unref(files);
}

static void test_nccl(void **state)
{
    (void)state;
    check_kind("nccl_topo");
}

static void test_nvidia_smi(void **state)
{
    (void)state;
    check_kind("nvidia_smi_topo");
}

/* --- made here --- */

/* Two GPUs behind NVSwitches, one NIC of 400 Gb/s and a bridge. */
static const char NVSWITCH[] =
    "<system version=\"1\"><cpu numaid=\"0\">\n"
    "<pci busid=\"0000:0e:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" "
    "speed=\"400000\"/></nic></pci><nic><net name=\"br0\" speed=\"10000\"/></nic>\n"
    "<pci busid=\"0000:0f:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
    "link_speed=\"32 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\">\n"
    "<nvlink target=\"0000:04:00.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n"
    "<pci busid=\"0000:34:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
    "link_speed=\"32 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"90\">\n"
    "<nvlink target=\"0000:05:00.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>\n"
    "</cpu></system>\n";

static void test_cluster_from_xml(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "topo.xml", NVSWITCH);
    json_t *json =
        program_json(sandbox, "cluster import topo.xml --nodes 4 -o mine.yaml --json");
    assert_close(number(json, "inner_bandwidth"), 18 * 20.6e9, 1e-12);
    assert_close(number(json, "net_bandwidth"), 50e9, 1e-12);
    assert_int_equal(number(json, "nics"), 1);
    assert_string_equal(json_string_value(json_object_get(json, "nvlink_per_gpu")),
                        "18;18");
    assert_string_equal(
        json_string_value(json_object_get(json, "nvlink_GBps_per_gpu_nccl")),
        "370.8;370.8");
    json_decref(json);
    /* The written file is a cluster on which plans can be made. */
    json = program_json(sandbox, "plan vgg19 mine.yaml --planner dp-ev --json");
    json_decref(json);
    g_autofree char *text = sandbox_read(sandbox, "mine.yaml");
    assert_non_null(strstr(text, "name: \"mine\"\n"));
    assert_non_null(strstr(text, "type: \"h100-sxm\"\n"));
    assert_non_null(strstr(text, "count: 4\n"));
    program_refuses(sandbox, "cluster import topo.xml --gpu h1000 -o x.yaml", 2,
                    "unknown device 'h1000'");
    program_refuses(sandbox, "cluster import topo.xml --nic ib-n -o x.yaml", 2,
                    "unknown link 'ib-n'");
    program_refuses(sandbox, "cluster import none.xml", 2, "none.xml: no such file");
}

static void test_absurd_speed(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_auto(GStrv) halves = g_strsplit(NVSWITCH, "\"400000\"", 2);
    g_autofree char *text = g_strjoinv("\"200000000\"", halves);
    sandbox_write(sandbox, "topo.xml", text);
    program_refuses(sandbox, "cluster import topo.xml --nodes 2 -o x.yaml", 2,
                    "net mlx5_0 has a speed of 200000000 Mb/s");
    g_auto(Ran) ran = program_run_good(
        sandbox, "cluster import topo.xml --nodes 2 --nic ib-ndr -o x.yaml --json");
    assert_non_null(strstr(ran.err, "200000000 Mb/s"));
}

/* A link element without a count has no links. */
static void test_links_without_count(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_auto(GStrv) halves = g_strsplit(NVSWITCH, " count=\"18\"", 2);
    g_autofree char *text = g_strjoinv("", halves);
    sandbox_write(sandbox, "topo.xml", text);
    json_t *json = program_json(sandbox, "cluster import topo.xml --json");
    assert_string_equal(json_string_value(json_object_get(json, "nvlink_per_gpu")),
                        "0;18");
    assert_int_equal(number(json, "nvlink_count_sum"), 18);
    json_decref(json);
}

static void test_entities_are_refused(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "topo.xml",
                  "<!DOCTYPE a [<!ENTITY b \"c\">]>\n<system version=\"1\"/>\n");
    program_refuses(sandbox, "cluster import topo.xml", 2,
                    "topo.xml:1: expected no document type and no entities");
}

/* GPUs that are joined by NVLink in pairs only reach each other over PCIe; with a switch each has
 * its 18 links whatever the number of peers. */
static void test_matrix(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "pairs.txt",
                  "GPU 0: NVIDIA RTX A6000 (UUID: GPU-0)\n"
                  "    GPU0 GPU1 GPU2 GPU3 CPU Affinity\n    GPU0 X NV4 SYS SYS 0-3\n"
                  "    GPU1 NV4 X SYS SYS 0-3\n    GPU2 SYS SYS X NV4 0-3\n"
                  "    GPU3 SYS SYS NV4 X 0-3\n");
    json_t *json = program_json(sandbox, "cluster import pairs.txt --json");
    assert_string_equal(json_string_value(json_object_get(json, "device")), "rtx-a6000");
    assert_close(number(json, "inner_bandwidth"), 31.5e9 * 0.51, 1e-9);
    json_decref(json);
    sandbox_write(sandbox, "all.txt",
                  "GPU0 GPU1 GPU2 NIC0\nGPU0 X NV18 NV18 PIX\nGPU1 NV18 X NV18 SYS\n"
                  "GPU2 NV18 NV18 X SYS\n");
    json =
        program_json(sandbox, "cluster import all.txt --gpu h100 --nodes 2 --nic ib-ndr "
                              "-o all.yaml --json");
    assert_close(number(json, "inner_bandwidth"), 18 * 20.6e9, 1e-12);
    assert_close(number(json, "net_bandwidth"), 50e9, 1e-12);
    json_decref(json);
    program_refuses(sandbox, "cluster import all.txt -o x.yaml", 2, "expected --gpu");
    program_refuses(sandbox, "cluster import all.txt --gpu h100 --nodes 2 -o x.yaml", 2,
                    "expected --nic");
    sandbox_write(sandbox, "bad.txt", "GPU0 GPU1\nGPU0 X FOO\n");
    program_refuses(sandbox, "cluster import bad.txt", 2, "bad.txt:2: expected codes");
    sandbox_write(sandbox, "links.txt", "GPU0 GPU1\nGPU0 X NV99\nGPU1 NV99 X\n");
    program_refuses(sandbox, "cluster import links.txt", 2,
                    "GPU0 and GPU1: expected at most 18 NVLinks, got NV99");
    sandbox_write(sandbox, "mig.txt",
                  "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0)\n"
                  "  MIG 3g.40gb     Device  0: (UUID: MIG-0)\nGPU0 CPU\nGPU0 X\n");
    program_refuses(sandbox, "cluster import mig.txt", 2,
                    "mig.txt:2: expected whole GPUs");
}

/* Some ranks of a machine with direct links have the rings among them, whatever the others have. */
static void test_rings_of_some(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "v.yaml", "machines: [{device: v100-16g, gpus: 8}]\n");
    double time_s[2];
    for (uint32_t i = 0; i < 2; i++) {
        g_autofree char *line = g_strdup_printf(
            "collective all_gather v.yaml --bytes 4GiB --ranks 0,%u --json", i ? 3 : 1);
        json_t *json = program_json(sandbox, line);
        time_s[i] = number(json, "time_s");
        json_decref(json);
    }
    assert_close(time_s[0], 2 * time_s[1], 1e-3); /* one link, and two */
}

/* Lists of nodes, as Slurm's tools print them. */
static void test_slurm(void **state)
{
    (void)state;
    static const char LONG[] =
        "NodeName=a001 Arch=x86_64 CoresPerSocket=32\n   AvailableFeatures=rome\n"
        "   Gres=gpu:a100_80gb:4(S:0-1),nvme:2\n   OS=Linux 5.14 Gres=no State=IDLE\n"
        "   State=IDLE\n   CfgTRES=cpu=64,gres/gpu=4,gres/gpu:a100_80gb=4\n\n"
        "NodeName=a002 Gres=gpu:h100:2,gpu:rtx_3090:1 State=DOWN+DRAIN "
        "AvailableFeatures=(null)\n"
        "NodeName=c001 Gres=(null) State=MIXED\n";
    static const char TABLE[] = "PARTITION NODES GRES NODELIST AVAIL_FEATURES STATE\n"
                                "debug 3 gpu:v100s:2(S:0) g[08-10] cascade idle\n"
                                "gpu 2 gpu:4 g[10,11] a100,ib drained*\n";
    g_autoptr(Sandbox) sandbox = sandbox_new();
    sandbox_write(sandbox, "long.txt", LONG);
    sandbox_write(sandbox, "table.txt", TABLE);
    sandbox_write(sandbox, "plain.txt",
                  "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
                  "gpu up infinite 2 idle g[1-2]\n");
    sandbox_write(sandbox, "none.txt", "NodeName=c001 Gres=(null)\n");
    sandbox_write(sandbox, "many.txt", "NODELIST GRES\ng[1-99999999] gpu:h100:8\n");
    json_t *json = program_json(
        sandbox, "cluster import long.txt --nic ib-ndr --nics 4 -o l.yaml --json");
    assert_int_equal(number(json, "nodes"), 2);
    assert_int_equal(number(json, "gpus"), 7);
    assert_int_equal(number(json, "nodes_without_gpus"), 1);
    assert_int_equal(number(json, "nodes_down"), 1);
    json_decref(json);
    json = program_json(sandbox, "clusters l.yaml --json");
    const json_t *machines = json_object_get(json, "machines");
    static const char *const TYPES[] = {"a100-80g", "2 h100-sxm + 1 rtx-3090"};
    for (uint32_t i = 0; i < 2; i++)
        assert_string_equal(
            json_string_value(json_object_get(json_array_get(machines, i), "type")),
            TYPES[i]);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(machines, 1), "name")), "a002");
    json_decref(json);
    json =
        program_json(sandbox, "cluster import table.txt --nic eth-100 -o t.yaml --json");
    assert_int_equal(number(json, "nodes"), 4);
    assert_int_equal(number(json_object_get(json, "types"), "v100s-32g"), 6);
    json_decref(json);
    program_runs(sandbox, "plan vgg19 t.yaml --planner dp-ev");
    program_refuses(sandbox, "cluster import long.txt -o x.yaml", 2,
                    "does not say how its 2 nodes are connected; expected --nic");
    program_refuses(sandbox, "cluster import plain.txt", 2, "expected a column GRES");
    /* names of a type without gaps, columns between bars, and no names of columns */
    sandbox_write(
        sandbox, "bars.txt",
        "NODELIST|GRES|STATE\na1|gpu:rtx3090:4|idle\na2|gpu:rtxa6000:2|maint\n");
    json = program_json(sandbox, "cluster import bars.txt --json");
    assert_int_equal(number(json_object_get(json, "types"), "rtx-3090"), 4);
    assert_int_equal(number(json_object_get(json, "types"), "rtx-a6000"), 2);
    assert_int_equal(number(json, "nodes_down"), 1);
    json_decref(json);
    program_refuses(sandbox, "cluster import none.txt", 2, "none.txt: no GPUs: 1 nodes");
    program_refuses(sandbox, "cluster import many.txt", 2, "many.txt:2: expected names");
    sandbox_write(sandbox, "odd.txt", "NodeName=x Gres=gpu:2 AvailableFeatures=big\n");
    program_refuses(sandbox, "cluster import odd.txt -o x.yaml", 2,
                    "the type of its 2 GPUs is not known");
    program_runs(sandbox, "cluster import odd.txt --gpu t4 -o x.yaml");
}

/* Features say what a type leaves open, and nothing against it. */
static void test_slurm_features(void **state)
{
    (void)state;
    static const struct {
        const char *gres, *features, *type;
    } NODE[] = {
        {"gpu:a100:1", "a100_40gb", "a100-40g"},
        {"gpu:a100:2", "ib,40gb,hdr", "a100-40g"},
        {"gpu:a100:4", "a100-pcie-40gb,sapphire", "a100-pcie-40g"},
        {"gpu:a100:8", "pcie,gpu_mem:40GB", "a100-pcie-40g"},
        {"gpu:a100:16", "h100,mem_512gb", "a100-80g"},
        {"gpu:v100:1", "v100_32gb", "v100-32g"},
        {"gpu:h100:1", "h100_nvl", "h100-nvl"},
        {"gpu:h100:2", "genoa,h100_pcie", "h100-pcie"},
        {"gpu:1", "CLASS:SH3_G4TF64,GPU_SKU:A100_SXM4,GPU_MEM:40GB", "a100-40g"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(NODE); i++) {
        g_autoptr(Sandbox) sandbox = sandbox_new();
        g_autofree char *list = g_strdup_printf(
            "NODELIST GRES AVAIL_FEATURES\nn1 %s %s\n", NODE[i].gres, NODE[i].features);
        sandbox_write(sandbox, "n.txt", list);
        json_t *json = program_json(sandbox, "cluster import n.txt --json");
        json_t *types = json_object_get(json, "types");
        if (!json_object_get(types, NODE[i].type) || json_object_size(types) != 1)
            fail_msg("%s", list);
        json_decref(json);
    }
}

static void test_slurm_samples(void **state)
{
    (void)state;
    const char *file = test_shared("samples/slurm/marcc-v100.txt");
    if (!file)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_autofree char *line = g_strdup_printf("cluster import '%s' -o m.yaml --json", file);
    json_t *json = program_json(sandbox, line);
    assert_int_equal(number(json, "nodes"), 1);
    assert_int_equal(number(json, "gpus"), 2);
    assert_int_equal(number(json_object_get(json, "types"), "v100-16g"), 2);
    json_decref(json);
    program_runs(sandbox, "clusters m.yaml");
}

/* Nodes of Kubernetes, as kubectl prints them; instances' names say their cards. */
static void test_kubernetes(void **state)
{
    (void)state;
    static const char LIST[] =
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    "
        "labels:\n"
        "      kubernetes.io/hostname: a\n"
        "      node.kubernetes.io/instance-type: p5.48xlarge\n"
        "      nvidia.com/gpu.count: \"8\"\n"
        "      nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3\n    name: a\n"
        "- apiVersion: v1\n  metadata:\n    labels:\n      kubernetes.io/hostname: cpu\n"
        "- apiVersion: v1\n  metadata:\n    labels:\n      kubernetes.io/hostname: b\n"
        "      node.kubernetes.io/instance-type: p4d.24xlarge\n  spec:\n"
        "    unschedulable: true\n  status:\n    capacity:\n      nvidia.com/gpu: "
        "\"8\"\n";
    static const char SHOWN[] =
        "Name:     amd-1\nLabels:   amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM\n"
        "          kubernetes.io/hostname=amd-1\nTaints:   "
        "amd.com/gpu=present:NoSchedule\n"
        "Capacity:\n  amd.com/gpu:   8\n";
    static const char TABLE[] = "NAME  STATUS ROLES  AGE VERSION GPU.PRODUCT GPU.COUNT\n"
                                "gpu-1 Ready  <none> 31d v1.31.2 NVIDIA-L40S 4\ncpu-1 "
                                "Ready <none> 31d v1.31.2 <none>\n";
    static const struct {
        const char *name, *text, *type;
        double gpus;
    } ROW[] = {{"list.yaml", LIST, "a100-40g", 8},
               {"shown.txt", SHOWN, "mi300x", 8},
               {"table.txt", TABLE, "l40s", 4}};
    g_autoptr(Sandbox) sandbox = sandbox_new();
    for (size_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        sandbox_write(sandbox, ROW[i].name, ROW[i].text);
        g_autofree char *line =
            g_strdup_printf("cluster import %s -o c.yaml --json", ROW[i].name);
        json_t *json = program_json(sandbox, line);
        assert_int_equal(number(json_object_get(json, "types"), ROW[i].type),
                         ROW[i].gpus);
        json_decref(json);
        g_autofree char *written = sandbox_read(sandbox, "c.yaml");
        assert_true((i == 0) ==
                    (strstr(written, "nics: 32") && strstr(written, "nics: 4")));
    }
}

/* GPUs as nvidia-smi -q, lspci and rocm-smi --showproductname list them. */
static void test_lists_of_gpus(void **state)
{
    (void)state;
    static const char *const ROW[][2] = {
        {"GPU 00000000:18:00.0\n    Product Name      : NVIDIA H100 80GB HBM3\n"
         "    MIG Mode\n        Current   : Disabled\n"
         "GPU 00000000:2A:00.0\n    Product Name      : NVIDIA H100 80GB HBM3\n",
         "h100-sxm"},
        {"18:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)\n"
         "2a:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)\n",
         "a100-80g"},
        {"=== ROCm System Management Interface ===\n"
         "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X OAM\n"
         "GPU[1]\t\t: Card Series: \t\tAMD Instinct MI300X OAM\n",
         "mi300x"}};
    g_autoptr(Sandbox) sandbox = sandbox_new();
    for (size_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        sandbox_write(sandbox, "gpus.txt", ROW[i][0]);
        json_t *json = program_json(sandbox, "cluster import gpus.txt --json");
        assert_int_equal(number(json, "gpus"), 2);
        assert_string_equal(json_string_value(json_object_get(json, "device")),
                            ROW[i][1]);
        json_decref(json);
    }
}

/* Unlike GPUs of a topology file: by their PCI ids. */
static void test_unlike(void **state)
{
    (void)state;
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_auto(GStrv) part = g_strsplit(NVSWITCH, "0x2330", 2);
    g_autofree char *text = g_strjoinv("0x20b2", part);
    sandbox_write(sandbox, "topo.xml", text);
    json_t *json = program_json(sandbox, "cluster import topo.xml -o u.yaml --json");
    assert_string_equal(json_string_value(json_object_get(json, "device")),
                        "1 a100-80g + 1 h100-sxm");
    json_decref(json);
    program_runs(sandbox, "plan --planner hap "
                          "bert-base:layers=2,hidden=96,ffn=192,vocab=640,seq=16 u.yaml");
    program_refuses(
        sandbox,
        "plan --planner hap bert-base:layers=2,hidden=96,ffn=192,vocab=640,seq=16 u.yaml "
        "--granularity machine",
        2, "has unlike GPUs (1 a100-80g + 1 h100-sxm)");
}

static gboolean check_index(void *key, void *facts, void *sandbox)
{
    g_autofree char *relative = g_strconcat("samples/", (const char *)key, NULL);
    g_autofree char *line = g_strdup_printf("models '%s' --json", test_shared(relative));
    json_t *json = program_json(sandbox, line);
    for (guint i = 0; i < ((GPtrArray *)facts)->len; i++) {
        const Expected *fact = g_ptr_array_index((GPtrArray *)facts, i);
        assert_close(number(json, fact->fact), g_ascii_strtod(fact->value, NULL), 1e-15);
    }
    json_decref(json);
    return FALSE;
}

/* Indexes of checkpoints. */
static void test_indexes(void **state)
{
    (void)state;
    GTree *files = expected_of("hf_index");
    if (!files)
        skip();
    g_autoptr(Sandbox) sandbox = sandbox_new();
    g_tree_foreach(files, check_index, sandbox);
    g_tree_unref(files);
    sandbox_write(sandbox, "i.json",
                  "{\"metadata\": {\"total_size\": -1}, \"weight_map\": {\"a\": \"b\"}}");
    program_refuses(sandbox, "models i.json", 2, "i.json: metadata.total_size: expected");
    sandbox_write(sandbox, "j.json",
                  "{\"metadata\": {\"total_size\": 8}, \"weight_map\": {}}");
    program_refuses(sandbox, "models j.json", 2, "j.json: weight_map: expected the file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_nvidia_smi),
        cmocka_unit_test(test_cluster_from_xml),
        cmocka_unit_test(test_absurd_speed),
        cmocka_unit_test(test_entities_are_refused),
        cmocka_unit_test(test_links_without_count),
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_rings_of_some),
        cmocka_unit_test(test_slurm),
        cmocka_unit_test(test_slurm_features),
        cmocka_unit_test(test_kubernetes),
        cmocka_unit_test(test_lists_of_gpus),
        cmocka_unit_test(test_slurm_samples),
        cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_indexes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
