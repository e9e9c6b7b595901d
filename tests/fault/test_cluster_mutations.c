/* The property of tests/fuzz/fuzz_cluster.c on bundled files with random damage (fixed
 * seeds): it aborts where it is broken. */
#include "data/base/error.h"
#include "data/base/path.h"
#include "data/cluster/network_spec.h"
#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The long run (tests/CMakeLists.txt) has more. */
#ifndef MUTANTS
#define MUTANTS 4000
#endif
enum { DAMAGES = 4 };

/* A topology and a tuning table of its own: mutated more than the rest of a file. */
static const char HEAD[] =
    "name: two\n"
    "device_types: [{name: v, rate: 1 TFLOP/s, memory: 1 GiB, source: s}]\n"
    "machines:\n"
    "  - {name: a, type: v, gpus: 2, inner: {latency: 4 us, bandwidth: 9 GB/s}, source: "
    "s}\n"
    "  - {name: b, type: v, gpus: 2, inner: {latency: 4 us, bandwidth: 9 GB/s}, source: "
    "s}\n"
    "collectives:\n"
    "  all_reduce: {latency: 8 us, bandwidth: 1 GB/s}\n"
    "  all_gather: {latency: 8 us, bandwidth: 1 GB/s}\n"
    "  grouped_all_gather: {latency: 8 us, bandwidth: 2 GB/s}\n"
    "  reduce_scatter: {latency: 8 us, bandwidth: 1 GB/s}\n"
    "  grouped_reduce_scatter: {latency: 8 us, bandwidth: 1 GB/s}\n"
    "  all_to_all: {latency: 8 us, bandwidth: 0.5 GB/s}\n"
    "  source: s\n";
static const char *const SECTION[] = {
    "topology:\n"
    "  nodes: [leaf, 'a/nic0']\n"
    "  links:\n"
    "    - {from: a:0, to: a:1, latency: 1 us, bandwidth: 25 GB/s}\n"
    "    - {from: a:0, to: a/nic0, latency: 0 us, bandwidth: 16 GB/s}\n"
    "    - {from: a/nic0, to: leaf, latency: 5 us, bandwidth: 10 Gb/s}\n"
    "    - {from: a:1, to: leaf, latency: 5 us, bandwidth: 20 Gb/s}\n"
    "    - {from: b, to: leaf, latency: 5 us, bandwidth: 10 Gb/s}\n"
    "  source: made up\n",
    "topology:\n"
    "  builder: tree:leaf=1,spines=2,oversubscription=2,bandwidth=10Gb/s,latency=5us\n"
    "  source: made up\n",
    "tuning:\n"
    "  rules:\n"
    "    - {collective: all_reduce, most_ranks: 4, most_bytes: 1 MB, algorithm: tree}\n"
    "    - {collective: all_to_all, power_of_two: true, algorithm: pairwise}\n"
    "  piece: 64 KiB\n"
    "  source: made up\n"};

/* Bytes and pieces that mean something in YAML or in a cluster file. */
static const char *const PIECE[] = {
    "\n",    " ",        "  ",
    ":",     ": ",       "-",
    "- ",    "[",        "]",
    "{",     "}",        ",",
    "#",     "&a ",      "*a",
    "!!int", "|",        ">-",
    "'",     "\"",       "\t",
    "---\n", "...",      "%YAML",
    "?",     "<<",       "~",
    "0",     "-1",       "1e400",
    "nan",   "gpus",     "count",
    "name",  "GB/s",     "999999999999",
    "\xff",  "\xc3\xa9", "\xef\xbb\xbf",
    "\r\n",
};

/* Replaces up to 40 bytes at a random place: by nothing, by a piece, or by bytes from
 * elsewhere in the file. */
static void damage(GString *text, GRand *rand)
{
    gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)text->len + 1);
    gsize most = MIN(text->len - at, 40);
    gsize gone = most ? (gsize)g_rand_int_range(rand, 0, (gint32)most + 1) : 0;
    gint32 how = g_rand_int_range(rand, 0, 4);
    g_autofree char *copy = NULL;
    if (how == 1 && text->len > 0) {
        gsize from = (gsize)g_rand_int_range(rand, 0, (gint32)text->len);
        copy = g_strndup(text->str + from, MIN(text->len - from, 200));
    }
    if (how == 2) /* one byte, any */
        gone = MIN(most, 1);
    g_string_erase(text, (gssize)at, (gssize)gone);
    if (how == 1 && copy)
        g_string_insert(text, (gssize)at, copy);
    else if (how == 2)
        g_string_insert_c(text, (gssize)at, (char)g_rand_int_range(rand, 0, 256));
    else if (how == 3)
        g_string_insert(text, (gssize)at,
                        PIECE[g_rand_int_range(rand, 0, G_N_ELEMENTS(PIECE))]);
}

static void test_mutated_files(void **state)
{
    (void)state;
    static const char *const FILE_NAME[] = {"clusters/hap-64.yaml", "clusters/hap-8.yaml",
                                            "clusters/hap-p100-16.yaml",
                                            "clusters/amp-het-cluster.yaml"};
    for (size_t i = 0; i < G_N_ELEMENTS(FILE_NAME); i++) {
        g_autofree char *path = path_find(FILE_NAME[i]);
        g_autofree char *text = NULL;
        gsize length;
        assert_true(g_file_get_contents(path, &text, &length, NULL));
        g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)i + 1);
        for (uint32_t n = 0; n < MUTANTS / G_N_ELEMENTS(FILE_NAME); n++) {
            g_autoptr(GString) mutant = g_string_new_len(text, (gssize)length);
            gint32 damages = g_rand_int_range(rand, 1, DAMAGES + 1);
            for (gint32 d = 0; d < damages; d++)
                damage(mutant, rand);
            LLVMFuzzerTestOneInput((const uint8_t *)mutant->str, mutant->len);
        }
    }
}

/* Damage to the section only, so that the reader gets as far as that. */
static void test_mutated_sections(void **state)
{
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(SECTION); i++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)i + 100);
        for (uint32_t n = 0; n < MUTANTS / G_N_ELEMENTS(SECTION); n++) {
            g_autoptr(GString) mutant = g_string_new(SECTION[i]);
            gint32 damages = n ? g_rand_int_range(rand, 1, DAMAGES + 1) : 0;
            for (gint32 d = 0; d < damages; d++)
                damage(mutant, rand);
            g_string_prepend(mutant, HEAD);
            LLVMFuzzerTestOneInput((const uint8_t *)mutant->str, mutant->len);
        }
    }
}

/* Networks written as one text: refused with a line, or a cluster that has a network. */
static void test_mutated_networks(void **state)
{
    static const char *const TEXT[] = {
        "star:hosts=16,bandwidth=10Gb/s,latency=5us",
        "tree:hosts=64,leaf=8,oversubscription=4,spines=2,pod=2",
        "rail:hosts=4,gpus=8,rails=8,inner_bandwidth=100GB/s,inner_latency=9us",
        "dragonfly:hosts=64,leaf=4,group=4,global=2"};
    static const char CHARACTERS[] = "0123456789.,=:-aeghlps /";
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    uint32_t good = 0, bad = 0;
    (void)state;
    for (uint32_t i = 0; i < MUTANTS / 2; i++) {
        g_autoptr(GString) text = g_string_new(TEXT[i % G_N_ELEMENTS(TEXT)]);
        for (gint32 n = g_rand_int_range(rand, 0, 3); n >= 0; n--) {
            const gssize at = g_rand_int_range(rand, 5, (gint32)text->len);
            g_string_erase(text, at, g_rand_int_range(rand, 0, 2));
            if (g_rand_boolean(rand))
                g_string_insert_c(
                    text, at,
                    CHARACTERS[g_rand_int_range(rand, 0, G_N_ELEMENTS(CHARACTERS) - 1)]);
        }
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster =
            host_spec_is(text->str) ? cluster_load(text->str, &error) : NULL;
        if (!cluster) {
            assert_true(!error || (error->code == KILTER_ERROR_INPUT &&
                                   !strchr(error->message, '\n')));
            bad++;
            continue;
        }
        if (cluster_gpus(cluster) > 2000)
            continue;
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        g_autoptr(Topology) topology = topology_of_view(view, &error);
        assert_no_error(error);
        good++;
    }
    assert_true(good > 100 && bad > 100);
}

/* Undamaged, they pass as clusters. */
static void test_bundled_files(void **state)
{
    (void)state;
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    assert_true(g_strv_length(names) > 0);
    for (char **name = names; *name; name++) {
        g_autofree char *relative = g_strdup_printf("clusters/%s.yaml", *name);
        g_autofree char *path = path_find(relative);
        g_autofree char *text = NULL;
        gsize length;
        assert_true(g_file_get_contents(path, &text, &length, NULL));
        LLVMFuzzerTestOneInput((const uint8_t *)text, length);
    }
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_files),
        cmocka_unit_test(test_mutated_files),
        cmocka_unit_test(test_mutated_sections),
        cmocka_unit_test(test_mutated_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
