/* Direct links between GPUs: the rings of known machines, bounds that hold for all, and the links
 * of files that describe machines. */
#include "data/cluster/peers.h"
#include "data/cluster/price.h"
#include "data/formats/machines/machine_file.h"
#include "tests/test.h"
#include <time.h>

#include <string.h>

static Peers peers_of(const char *text, uint32_t gpus)
{
    g_autoptr(GError) error = NULL;
    Peers peers;
    assert_true(peers_parse(text, gpus, &peers, &error));
    assert_no_error(error);
    return peers;
}

/* The cube mesh of eight V100, whose published all-reduces have the bandwidth of 1, 2, 4, 1.7, 2, 4
 * and 6 links among 2 to 8 of them; a ring of five passes through another GPU. */
static void test_known(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    static const struct {
        const char *device;
        uint32_t gpus, rings[17];
    } row[] = {
        {"v100-32g", 8, {0, 0, 1, 2, 4, 2, 2, 4, 6}},
        {"p100-16g", 8, {0, 0, 1, 2, 2, 1, 2, 2, 4}},
        {"mi250x", 16, {0, 0, 4, 2, 2, 2, 2, 1, 2, 0, 0, 0, 0, 1, 2, 2, 6}},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        const DeviceSheet *sheet = sheets_device(sheets, row[i].device, &error);
        const Peers peers = peers_of(device_sheet_peers(sheet, row[i].gpus), row[i].gpus);
        assert_null(device_sheet_peers(sheet, row[i].gpus + 1));
        for (uint32_t n = 2; n <= row[i].gpus; n++)
            if (peers_rings(&peers, n) != row[i].rings[n])
                TEST_FAIL_AT(__FILE__, __LINE__, "%s among %u: %u rings", row[i].device,
                             n, peers_rings(&peers, n));
    }
    const Peers apart = peers_of("0-1x4 2-3x4", 4);
    assert_int_equal(peers_rings(&apart, 2), 4);
    assert_int_equal(peers_rings(&apart, 4), 0);
}

/* The least number of links between two parts of the first n GPUs. */
static uint32_t least_cut(const Peers *peers, uint32_t n)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t part = 1; part < (1U << n) - 1; part++) {
        uint32_t links = 0;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++)
                if ((part >> a & 1) && !(part >> b & 1))
                    links += peers->link[a][b];
        least = MIN(least, links);
    }
    return least;
}

/* Each ring crosses each cut at least once each way, so that there are no more rings than links
 * over it; the text makes the same links. */
static void test_random(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(16);
    uint32_t some = 0;
    for (uint32_t trial = 0; trial < 300; trial++) {
        const uint32_t n = (uint32_t)g_rand_int_range(rand, 2, 9);
        Peers peers = {.n = n};
        for (uint32_t links = (uint32_t)g_rand_int_range(rand, 1, 24); links > 0;
             links--) {
            const uint32_t a = (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
            const uint32_t b = (a + (uint32_t)g_rand_int_range(rand, 1, (gint32)n)) % n;
            peers.link[b][a] = ++peers.link[a][b];
        }
        const uint32_t rings = peers_rings(&peers, n);
        assert_true(rings <= least_cut(&peers, n));
        some += rings > 0;
        g_autofree char *text = peers_text(&peers);
        const Peers again = peers_of(text, n);
        assert_memory_equal(&again, &peers, sizeof peers);
    }
    assert_true(some > 100);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "0-0", "0-8",  "0-1x0", "0-1x65", "0-1 1-0",         "0",
        "a-b", "0-1x", "0-1,",  "0--1",   "0-99999999999999"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
        g_autoptr(GError) error = NULL;
        Peers peers;
        assert_false(peers_parse(BAD[i], 8, &peers, &error));
        assert_non_null(strstr(error->message, "expected links such as 0-1"));
    }
    g_autoptr(GError) error = NULL;
    Peers peers;
    assert_false(peers_parse("", 33, &peers, &error));
    const Peers none = peers_of(" \n", 8);
    assert_int_equal(peers_rings(&none, 8), 0);
}

/* Rings that are remembered are those that would be counted anew, for each set of each text. */
static void test_memo(void **state)
{
    (void)state;
    static const char *const TEXT[] = {"0-1x2 2-3 0-2 1-3", "0-1x12 2-3x12", "0-1 1-2"};
    PeersMemo *memo = peers_memo_new();
    uint32_t rings;
    for (uint32_t again = 0; again < 2; again++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(TEXT); i++) {
            const Peers peers = peers_of(TEXT[i], 4);
            for (uint32_t set = 3; set < 16; set++) {
                if (__builtin_popcount(set) < 2)
                    continue;
                assert_true(peers_memo_rings(memo, TEXT[i], 4, set, &rings));
                assert_int_equal(rings, peers_rings_among(&peers, set));
                assert_true(peers_memo_rings(NULL, TEXT[i], 4, set, &rings));
                assert_int_equal(rings, peers_rings_among(&peers, set));
            }
        }
    assert_false(peers_memo_rings(memo, "0-9", 4, 3, &rings));
    peers_memo_free(memo);
    peers_memo_free(NULL);
}

/* A search for a plan asks for the links of a few sets thousands of times; where rings are hard to
 * find, each search for them takes milliseconds. */
static void test_asked_often(void **state)
{
    (void)state;
    static const char TEXT[] =
        "machines: [{device: v100-16g, gpus: 8, peers: 0-1 0-2 0-3 0-4x2 1-2 1-3 1-5x2 "
        "2-3 2-6x2 3-7x2 4-5 4-6 4-7 5-6 5-7 6-7}]\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("c.yaml", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    const clock_t begin = clock();
    const LinkCost line = machine_line(cluster, cluster->machine, 0xff);
    assert_true(line.bandwidth > 0);
    for (uint32_t i = 0; i < 20000; i++)
        assert_true(machine_line(cluster, cluster->machine, 0xff).bandwidth ==
                    line.bandwidth);
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 10);
}

/* The matrix of nvidia-smi and the topology of NCCL become the links of a cluster's machines, which
 * its file keeps; where there is a switch there are none. */
static void test_files(void **state)
{
    (void)state;
    static const char
        SMI[] = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV1\tNV2\nGPU1\tNV1\t X "
                "\tNV2\nGPU2\tNV2\tNV2\t X \n",
        XML[] = "<system version=\"1\"><cpu>"
                "<pci busid=\"a\" class=\"0x030200\"><gpu dev=\"0\" sm=\"70\"><nvlink "
                "target=\"b\" count=\"1\" tclass=\"0x030200\"/><nvlink "
                "target=\"c\" count=\"2\" tclass=\"0x030200\"/></gpu></pci>"
                "<pci busid=\"b\" class=\"0x030200\"><gpu dev=\"1\" sm=\"70\"><nvlink "
                "target=\"a\" count=\"1\" tclass=\"0x030200\"/><nvlink "
                "target=\"c\" count=\"2\" tclass=\"0x030200\"/></gpu></pci>"
                "<pci busid=\"c\" class=\"0x030200\"><gpu dev=\"2\" sm=\"70\"/></pci>"
                "</cpu></system>";
    const char *const text[] = {SMI, XML};
    g_autoptr(GError) error = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&error);
    for (uint32_t i = 0; i < G_N_ELEMENTS(text); i++) {
        g_autoptr(MachineFile) file =
            machine_file_parse("a file", text[i], strlen(text[i]), sheets, &error);
        assert_no_error(error);
        file->gpu[2].links = 4; /* the XML leaves out what the others say */
        const MachineImport import = {
            .name = "made", .sheet = sheets_device(sheets, "v100-16g", NULL), .nodes = 1};
        g_autoptr(Cluster) cluster = machine_file_cluster(file, sheets, &import, &error);
        assert_no_error(error);
        assert_string_equal(cluster->machine[0].peers, "0-1 0-2x2 1-2x2");
        assert_int_equal(cluster->curves.rings[0].rings[2], 1);
        assert_int_equal(cluster->curves.rings[0].rings[3], 2);
        g_autofree char *written = cluster_write(cluster);
        g_autoptr(Cluster) again =
            cluster_parse("again", written, strlen(written), &error);
        assert_no_error(error);
        assert_string_equal(again->machine[0].peers, cluster->machine[0].peers);
    }
}

/* A list of GPUs is a machine with the links of data sheets; a list of other things is none. */
static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text, *devices;
        double inner;
    } CASE[] = {
        {"GPU 0: NVIDIA H100 80GB HBM3 (UUID: a)\nGPU 1: NVIDIA H100 80GB HBM3 "
         "(UUID: b)\n",
         "h100-sxm", 371e9},
        {"| GPU  Name                 Persistence-M | Bus-Id          Disp.A |\n"
         "|   0  NVIDIA L40S                    On  |   00000000:01:00.0 Off |\n"
         "| N/A   34C    P8             35W /  350W |       4MiB /  46068MiB |\n"
         "|   1  NVIDIA H100 80GB HBM3          On  |   00000000:41:00.0 Off |\n",
         "1 l40s + 1 h100-sxm", 16.1e9},
        {"index, name, memory.total [MiB]\n0, NVIDIA A40, 46068 MiB\n1, NVIDIA "
         "A40, 46068 "
         "MiB\n",
         "a40", 16.1e9},
        {"|   0  Tesla V100-SXM2...  On   | 00000000:00:1B.0 Off |            0 |\n"
         "| N/A   42C    P0    44W / 300W |      0MiB / 16160MiB |      0% |\n"
         "|   1  NVIDIA A100-SXM...  On   | 00000000:00:1C.0 Off |            0 |\n"
         "| N/A   43C    P0    45W / 400W |      0MiB / 81251MiB |      0% |\n",
         "1 v100-16g + 1 a100-80g", 7.875e9},
        {"|   0  NVIDIA H100 80G...  On   | 00000000:00:1B.0 Off |            0 |\n"
         "| N/A   42C    P0    44W / 700W |      0MiB / 81559MiB |      0% |\n"
         "|   1  NVIDIA A100 80GB...  On  | 00000000:00:1C.0 Off |            0 |\n"
         "| N/A   43C    P0    45W / 300W |      0MiB / 81920MiB |      0% |\n",
         "1 h100-sxm + 1 a100-pcie-80g", 16.1e9}};
    static const char ROCM[] = "=== ROCm System Management Interface ===\n"
                               "GPU[0] : Card series: AMD Instinct MI250X\n"
                               "GPU[1]\t: Card model: AMD Instinct MI250X \n"
                               "=== Hops between two GPUs ===\n"
                               "GPU0 GPU1\nGPU0 0 1\nGPU1 1 0\n"
                               "=== Link Type between two GPUs ===\n"
                               "GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n";
    g_autoptr(Sheets) sheets = sheets_load(NULL);
    g_autoptr(GError) cut = NULL;
    g_autofree char *line = g_strndup(CASE[3].text, strcspn(CASE[3].text, "\n"));
    assert_null(machine_file_parse("a file", line, strlen(line), sheets, &cut));
    assert_non_null(strstr(cut->message, "the memory below a name that is cut short"));
    g_autoptr(MachineFile) rocm =
        machine_file_parse("a file", ROCM, strlen(ROCM), sheets, NULL);
    assert_string_equal(rocm->gpu[0].product, "AMD Instinct MI250X");
    assert_string_equal(rocm->gpu[1].product, "AMD Instinct MI250X");
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(MachineFile) file = machine_file_parse(
            "a file", CASE[i].text, strlen(CASE[i].text), sheets, &error);
        assert_no_error(error);
        g_autofree char *devices = machine_file_devices(file, NULL);
        assert_string_equal(devices, CASE[i].devices);
        assert_int_equal(file->n_gpus, 2);
        assert_close(machine_file_inner(file, sheets, NULL), CASE[i].inner, 0.01);
    }
}

static void check_wrong_list(const char *text, const char *message)
{
    g_autoptr(Sheets) sheets = sheets_load(NULL);
    g_autoptr(GError) error = NULL;
    assert_null(machine_file_parse("a file", text, strlen(text), sheets, &error));
    assert_error(error, KILTER_ERROR_INPUT, message);
}

/* Nothing in a list is passed over: GPUs behind a gap, or more of them than a machine may
 * have; and a long line takes time by its length alone. */
static void test_wrong_lists(void **state)
{
    (void)state;
    check_wrong_list("Model name:    AMD EPYC 7763 64-Core Processor\n",
                     "the GPUs that nvidia-smi lists");
    check_wrong_list("GPU 0: NVIDIA A40 (UUID: a)\nGPU 2: Tesla T4 (UUID: b)\n",
                     "expected GPU 1 in the list, which has GPU 2");
    check_wrong_list("GPU 512: NVIDIA A40 (UUID: a)\n", "at most 512 GPUs");
    g_autoptr(GString) rows = g_string_new("name\n"), line = g_string_new("| 0 NVIDIA ");
    for (uint32_t i = 0; i <= 512; i++)
        g_string_append(rows, "NVIDIA A40, 46068 MiB\n");
    check_wrong_list(rows->str, "at most 512 GPUs");
    for (uint32_t i = 0; i < 400000; i++)
        g_string_append(line, "| ");
    check_wrong_list(line->str, "the GPUs that nvidia-smi lists");
}

/* A machine has 64 links for each of at most 1024 GPUs; one more is refused. */
static void test_most_links(void **state)
{
    (void)state;
    enum { MOST = 64 * MACHINE_MAX_GPUS };
    g_autoptr(Sheets) sheets = sheets_load(NULL);
    g_autoptr(GString) text =
        g_string_new("<system version=\"1\"><cpu><pci busid=\"a\" "
                     "class=\"0x030200\"><gpu dev=\"0\" sm=\"70\">");
    for (uint32_t i = 0; i < MOST; i++)
        g_string_append(text, "<nvlink target=\"b\" count=\"1\" tclass=\"0x030200\"/>");
    static const char END[] = "</gpu></pci><pci busid=\"b\" class=\"0x030200\"><gpu "
                              "dev=\"1\" sm=\"70\"/></pci></cpu></system>";
    for (uint32_t more = 0; more < 2; more++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *whole = g_strconcat(
            text->str,
            more ? "<nvlink target=\"b\" count=\"1\" tclass=\"0x030200\"/>" : "", END,
            NULL);
        g_autoptr(MachineFile) file =
            machine_file_parse("a file", whole, strlen(whole), sheets, &error);
        if (more)
            assert_error(error, KILTER_ERROR_INPUT, "expected fewer links in a machine");
        else
            assert_no_error(error);
        assert_int_equal(file != NULL, !more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),       cmocka_unit_test(test_random),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_memo),
        cmocka_unit_test(test_asked_often), cmocka_unit_test(test_files),
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_wrong_lists),
        cmocka_unit_test(test_most_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
