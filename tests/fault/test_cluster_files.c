/* Bad cluster files: each is refused with one line that names file, line and key, and
 * what was expected. Truncated ones never crash. */
#include "data/base/error.h"
#include "data/base/path.h"
#include "data/cluster/cluster.h"
#include "data/formats/machines/machine_file.h"
#include "tests/test.h"

/* A good file; each case breaks one place. */
static const char GOOD[] =
    "name: two\n"                                           /* 1 */
    "device_types:\n"                                       /* 2 */
    "  - name: v\n"                                         /* 3 */
    "    rate: 10.8 TFLOP/s\n"                              /* 4 */
    "    memory: 16 GiB\n"                                  /* 5 */
    "    source: data sheet\n"                              /* 6 */
    "machines:\n"                                           /* 7 */
    "  - name: a\n"                                         /* 8 */
    "    count: 2\n"                                        /* 9 */
    "    type: v\n"                                         /* 10 */
    "    gpus: 4\n"                                         /* 11 */
    "    inner: {latency: 5 us, bandwidth: 50 GB/s}\n"      /* 12 */
    "    source: fit\n"                                     /* 13 */
    "  - name: b\n"                                         /* 14 */
    "    type: v\n"                                         /* 15 */
    "    gpus: 1\n"                                         /* 16 */
    "    source: none\n"                                    /* 17 */
    "collectives:\n"                                        /* 18 */
    "  all_reduce: {latency: 65 us, bandwidth: 1.3 GB/s}\n" /* 19 */
    "  all_gather: {latency: 65 us, bandwidth: 1.3 GB/s}\n"
    "  grouped_all_gather: {latency: 65 us, bandwidth: 1.3 GB/s}\n"
    "  reduce_scatter: {latency: 65 us, bandwidth: 1.3 GB/s}\n"
    "  grouped_reduce_scatter: {latency: 65 us, bandwidth: 1.3 GB/s}\n"
    "  all_to_all: {latency: 65 us, bandwidth: 1.3 GB/s}\n" /* 24 */
    "  source: iperf3\n";                                   /* 25 */

typedef struct {
    const char *find, *replace; /* in GOOD; find == NULL: the whole text */
    const char *message;        /* after "bad.yaml" */
} Case;

static const Case CASE[] = {
    /* shape of the file */
    {"{latency: 5 us, bandwidth: 50 GB/s}", "",
     ":12: machines[0].inner: expected a mapping, got a text"},
    {NULL, "", ":1: expected a mapping, got nothing"},
    {NULL, "# only a comment\n", ":1: expected a mapping, got nothing"},
    {NULL, "two\n", ":1: expected a mapping, got a text"},
    {NULL, "\n- name: two\n", ":2: expected a mapping, got a list"},
    {NULL, "{}\n",
     ":1: machines: missing; expected this "
     "key"},
    {NULL, "[[[[[[[[[[[[[[[[[[[[", ":1: nested too deeply"},
    {NULL, "name: x\nname: y\n", ":2: name: given twice; the first is in line 1"},
    {NULL, "name: x\n? [a, b]\n: 3\n", ":2: expected a plain key"},
    {NULL, "name: \"a\\0b\"\n", ":1: expected a text without NUL bytes"},
    {NULL, "name: x\n---\nname: y\n", ":2: expected one document, got another"},
    {NULL, "name: x\n\tmachines: y\n",
     ":2: not valid YAML: found a tab character that violates indentation"},
    {NULL, "name: x\nmachines: [a, b\n",
     ":3: not valid YAML: did not find expected ',' or ']'"},
    {NULL, "name: \xff\n", ":1: not valid YAML: invalid leading UTF-8 octet"},

    /* keys */
    {"    gpus: 4", "    gpsu: 4",
     ":11: machines[0].gpsu: unknown key; did you mean 'gpus'?"},
    {NULL, "network: ib-ndr\nmachines: []\n",
     ":1: network: unknown key; did you mean 'machines[].nic'?; "
     "bad.yaml:2: machines: expected at least one entry"},
    {NULL, "nics: 8\nmachines: []\n",
     ":1: nics: unknown key; did you mean 'machines[].nics'?; "
     "bad.yaml:2: machines: expected at least one entry"},
    {"gpus: 4\n", "gpus: 4\n    peers: 0-1 2-4\n",
     ":12: machines[0].peers: expected links such as 0-1 or 0-3x2 between GPUs 0 to 3, "
     "each pair once, got '2-4'"},
    {"collectives:", "colectives:",
     ":18: colectives: unknown key; did you mean 'collectives'?"},
    {"bandwidth: 50 GB/s", "bandwith: 50 GB/s",
     ":12: machines[0].inner.bandwith: unknown key; did you mean 'bandwidth'?"},
    {"  all_to_all:", "  alltoall:",
     ":24: collectives.alltoall: unknown key; did you mean 'all_to_all'?"},
    {"    memory: 16 GiB\n", "",
     ":3: device_types[0].memory: missing; expected this key"},
    {"latency: 5 us, ", "", ":12: machines[0].inner.latency: missing; expected this key"},
    {"    type: v\n    gpus: 1", "    gpus: 1",
     ":14: machines[1].type: missing; expected this key, or device, a name of "
     "data/devices"},
    {"    source: fit", "    gpus: 8",
     ":13: machines[0].gpus: given twice; the first is in line 11"},
    {"name: two", "{}: two", ":1: expected a plain key"},

    /* kinds of values */
    {"name: two", "name: [two]", ":1: name: expected a text, got a list"},
    {"name: two", "name:", ":1: name: expected a text, got nothing"},
    {"    source: fit", "    source: ''",
     ":13: machines[0].source: expected a text, got nothing"},
    {"    type: v\n    gpus: 1", "    type: {v: 1}\n    gpus: 1",
     ":15: machines[1].type: expected a text, got a mapping"},
    {"    gpus: 1", "    gpus: *x", ":16: aliases (*name) are not supported"},
    {"  - name: v\n    rate: 10.8 TFLOP/s\n    memory: 16 GiB\n    source: data sheet\n",
     "  []\n", ":2: device_types: expected at least one entry"},

    /* numbers and units */
    {"10.8 TFLOP/s", "10.8 TFLOPS",
     ":4: device_types[0].rate: expected a rate such as 15.7 TFLOP/s, got '10.8 TFLOPS'"},
    {"10.8 TFLOP/s", "10.8",
     ":4: device_types[0].rate: expected a rate such as 15.7 TFLOP/s, got '10.8'"},
    {"10.8 TFLOP/s", "0 TFLOP/s",
     ":4: device_types[0].rate: expected 1 FLOP/s to 1e+03 PFLOP/s, got '0 TFLOP/s'"},
    {"16 GiB", "-16 GiB",
     ":5: device_types[0].memory: expected an amount of bytes such as 16 GiB, got '-16 "
     "GiB'"},
    {"16 GiB", "0 B",
     ":5: device_types[0].memory: expected 1 B to 9.09e+05 TiB, got '0 B'"},
    {"16 GiB", "1e9 TiB",
     ":5: device_types[0].memory: expected 1 B to 9.09e+05 TiB, got '1e9 TiB'"},
    {"    source: data sheet\n", "    slowdown: 0.9\n    source: data sheet\n",
     ":6: device_types[0].slowdown: expected a factor from 1 to 100, got '0.9'"},
    {"    source: data sheet\n", "    slowdown: 1.2x\n    source: data sheet\n",
     ":6: device_types[0].slowdown: expected a factor from 1 to 100, got '1.2x'"},
    {"50 GB/s", "50 GB",
     ":12: machines[0].inner.bandwidth: expected a bandwidth such as 10.4 Gb/s, got '50 "
     "GB'"},
    {"latency: 5 us", "latency: 2000 s",
     ":12: machines[0].inner.latency: expected 0 s to 16.7 min, got '2000 s'"},
    {"all_reduce: {latency: 65 us, bandwidth: 1.3 GB/s}",
     "all_reduce:\n    latency: 65 us\n    bandwidth: 0 GB/s",
     ":21: collectives.all_reduce.bandwidth: expected 1 B/s to 1e+06 TB/s, got '0 GB/s'"},
    {"    gpus: 4", "    gpus: 0",
     ":11: machines[0].gpus: expected a whole number from 1 to 131072, got '0'"},
    {"    gpus: 4", "    gpus: 3.5",
     ":11: machines[0].gpus: expected a whole number from 1 to 131072, got '3.5'"},
    {"    gpus: 4", "    gpus: \"4\\n\"",
     ":11: machines[0].gpus: expected a whole number from 1 to 131072, got '4 '"},
    {"    count: 2", "    count: many",
     ":9: machines[0].count: expected a whole number from 1 to 131072, got 'many'"},
    {"    count: 2", "    count: 60000",
     ":11: machines[0].gpus: expected at most 131072 GPUs in the cluster"},

    /* references, names, keys that belong together */
    {"    type: v\n    gpus: 1", "    type: w\n    gpus: 1",
     ":15: machines[1].type: expected one of device_types (v), got 'w'"},
    {"    type: v\n    gpus: 1", "    type: h100-sxm\n    gpus: 1",
     ":15: machines[1].type: expected one of device_types (v), got 'h100-sxm'; as a name "
     "of data/devices its key is 'device'"},
    {"  - name: b", "  - name: a-1",
     ":14: machines[1].name: expected a new name, got 'a-1' again"},
    {"machines:\n", "  - {name: v, rate: 1 FLOP/s, memory: 1 B, source: s}\nmachines:\n",
     ":7: device_types[1].name: expected a new name, got 'v' again"},
    {"    gpus: 1", "    gpus: 2",
     ":14: machines[1].inner: missing; expected the link between the machine's 2 GPUs"},
};

static char *text_of(const Case *one)
{
    if (!one->find)
        return g_strdup(one->replace);
    const char *at = strstr(GOOD, one->find);
    assert_non_null(at);
    return g_strdup_printf("%.*s%s%s", (int)(at - GOOD), GOOD, one->replace,
                           at + strlen(one->find));
}

static void refuses(const char *text, size_t length, const char *message)
{
    g_autofree char *whole = g_strconcat("bad.yaml", message, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("bad.yaml", text, length, &error);
    assert_null(cluster);
    assert_error(error, KILTER_ERROR_INPUT, "bad.yaml:");
    assert_string_equal(error->message, whole);
    assert_null(strchr(error->message, '\n'));
}

static void test_good_file(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("good.yaml", GOOD, strlen(GOOD), &error);
    assert_no_error(error);
    assert_int_equal(cluster->n_machines, 3);
    assert_int_equal(cluster_gpus(cluster), 9);
}

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *text = text_of(&CASE[i]);
        refuses(text, strlen(text), CASE[i].message);
    }
}

static void test_collectives_belong_to_several_machines(void **state)
{
    (void)state;
    const char *collectives = strstr(GOOD, "collectives:");
    g_autofree char *none = g_strndup(GOOD, (gsize)(collectives - GOOD));
    refuses(
        none, strlen(none),
        ":1: collectives: missing; expected this key, for 3 machines, or the nic of each "
        "machine, as in nic: ib-ndr");

    static const Case COUNT = {"    count: 2\n", "", NULL};
    g_autofree char *one = text_of(&COUNT);
    char *second = strstr(one, "  - name: b");
    g_autofree char *single =
        g_strdup_printf("%.*s%s", (int)(second - one), one, strstr(one, "collectives:"));
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) alone = cluster_parse("one.yaml", single, strlen(single), &error);
    assert_no_error(error); /* links between machines do not count */
    assert_non_null(alone);
}

static void test_long_texts(void **state)
{
    (void)state;
    g_autofree char *name = g_strnfill(101, 'x');
    g_autofree char *longer = g_strnfill(4001, 'x');
    g_autofree char *text = g_strdup_printf("name: %s\n", longer);
    refuses(text, strlen(text),
            ":1: name: expected a shorter text; bad.yaml:1: machines: missing; expected "
            "this key");
    g_autofree char *key = g_strdup_printf("%s: 1\n", name);
    refuses(key, strlen(key), ":1: expected a plain key");
}

static void test_no_such_file(void **state)
{
    (void)state;
    static const struct {
        const char *file, *says;
    } cases[] = {{"/nowhere/x.yaml", "no such file"},
                 {"nowhere.yaml", "no such file"},
                 {"/dev/zero", "expected a regular file or a pipe"},
                 {"./data", "expected a regular file or a pipe"}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *message = g_strconcat(cases[i].file, ": ", cases[i].says, NULL);
        g_autoptr(GError) error = NULL;
        assert_null(cluster_load(cases[i].file, &error));
        assert_error(error, KILTER_ERROR_INPUT, message);
    }
}

/* A file cut anywhere is a shorter cluster or an error that names the file; nothing in
 * between. */
static void test_truncated_files(void **state)
{
    (void)state;
    static const char *const FILE_NAME[] = {"clusters/hap-64.yaml",
                                            "clusters/hap-p100-8.yaml"};
    for (size_t i = 0; i < G_N_ELEMENTS(FILE_NAME); i++) {
        g_autofree char *path = path_find(FILE_NAME[i]);
        g_autofree char *text = NULL;
        gsize length;
        assert_true(g_file_get_contents(path, &text, &length, NULL));
        for (gsize cut = 0; cut < length; cut++) {
            /* A separate copy, so that a read beyond its end is detected. */
            g_autofree char *part = g_memdup2(text, cut);
            g_autoptr(GError) error = NULL;
            g_autoptr(Cluster) cluster = cluster_parse("cut.yaml", part, cut, &error);
            if (cluster)
                assert_true(!error && cluster->n_machines > 0);
            else
                assert_error(error, KILTER_ERROR_INPUT, "cut.yaml:");
        }
    }
}

/* A file of a machine without NICs: one machine is a cluster; of several the link is asked for, then
 * the number of its ports, and with both each machine has these. */
static void test_machines_without_nics(void **state)
{
    (void)state;
    static const char TEXT[] = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
                               "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
                               "GPU0\t X \tNV18\t0-31\t0\n"
                               "GPU1\tNV18\t X \t0-31\t0\n";
    g_autoptr(GError) failed = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&failed);
    assert_no_error(failed);
    g_autoptr(MachineFile) machine =
        machine_file_parse("topo.txt", TEXT, strlen(TEXT), sheets, &failed);
    assert_no_error(failed);
    const LinkSheet *nic = sheets_link(sheets, "eth-100", &failed);
    assert_no_error(failed);
    for (uint32_t i = 0; i < 3 * 2 * 2; i++) {
        const MachineImport import = {.name = "mine",
                                      .sheet = sheets_device(sheets, "h200", NULL),
                                      .nodes = 1 + i / 4,
                                      .nic = i % 2 ? nic : NULL,
                                      .nics = i / 2 % 2};
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster =
            machine_file_cluster(machine, sheets, &import, &error);
        const char *asks = import.nodes == 1                ? NULL
                           : !import.nic                    ? "expected --nic NAME"
                           : import.nics == 0 && import.nic ? "expected --nics N"
                                                            : NULL;
        assert_int_equal(cluster != NULL, asks == NULL);
        if (asks)
            assert_error(error, KILTER_ERROR_INPUT, asks);
        else
            assert_int_equal(cluster->n_machines, import.nodes);
    }
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_file),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_collectives_belong_to_several_machines),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_no_such_file),
        cmocka_unit_test(test_truncated_files),
        cmocka_unit_test(test_machines_without_nics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
