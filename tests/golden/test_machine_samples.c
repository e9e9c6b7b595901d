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

/* GPUs that are joined by NVLink in pairs only reach each other over PCIe; with a switch each has its 18 links
 * whatever the number of peers. */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
