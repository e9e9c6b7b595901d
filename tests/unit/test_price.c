/* Prices of collectives by ports, switches, direct links, domains and regions: the right values of
 * public reports, and what holds for all of them. */
#include "data/data.h"
#include "sim/network/collective_run.h"
#include "tests/test.h"

#include "experiments/calibration/calibrate.h"
#include "sim/network/measured.h"
#include "sim/sim.h"

/* --- cases --- */

typedef struct {
    const char *name, *cluster,
        *more; /* the case, its file, and a key to add to each group of machines */
    uint32_t first, ranks; /* ranks 0: all GPUs */
    uint32_t range;        /* which "A to B" of the text of the right value */
    bool bus; /* it is the bus bandwidth, else bytes of the tensor per second */
} Case;

static const Case CASES[] = {
    {"islands", "pairs", NULL, 0, 2, 0, true},
    {"islands", "pairs", NULL, 6, 2, 0, true},
    {"islands", "pairs", NULL, 0, 0, 1, true},
    {"ports_of_a_gpu", "one_gpu_four_ports", NULL, 0, 0, 0, false},
    {"two_machines", "two_nodes", NULL, 0, 0, 0, true},
    {"two_machines", "two_nodes", NULL, 0, 0, 1, false},
    {"two_machines", "four_nodes", NULL, 0, 0, 2, true},
    {"nvlink_domain", "nvl72_as_hosts", "domain: rack, ", 0, 0, 0, false},
};

/* The n-th "A to B" of a text. */
static void range_of(const char *text, uint32_t n, double *low, double *high)
{
    for (const char *to = text; (to = strstr(to, " to ")); to += 4) {
        const char *start = to;
        char *end;
        while (start > text && (g_ascii_isdigit(start[-1]) || start[-1] == '.'))
            start--;
        *low = g_ascii_strtod(start, NULL);
        *high = g_ascii_strtod(to + 4, &end);
        if (start < to && end > to + 4 && n-- == 0)
            return;
    }
    TEST_FAIL_AT(__FILE__, __LINE__, "no range in '%s'", text);
}

static bool take_case(const Csv *csv, void *data, GError **error)
{
    (void)error;
    g_hash_table_insert(data, g_strdup(csv_text(csv, "case")),
                        g_strdup(csv_text(csv, "right")));
    return true;
}

static Cluster *cluster_with(const char *name, const char *more)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_strdup_printf("cases/clusters/%s.yaml", name), *text = NULL;
    gsize length;
    g_file_get_contents(test_shared(file), &text, &length, &error);
    assert_no_error(error);
    GString *changed = g_string_new(text);
    if (more)
        g_string_insert(changed, (gssize)(strstr(changed->str, "[{") - changed->str) + 2,
                        more);
    Cluster *cluster = cluster_parse("case.yaml", changed->str, changed->len, &error);
    assert_no_error(error);
    g_string_free(changed, TRUE);
    return cluster;
}

static double tensor_rate(const ClusterView *view, uint32_t first, uint32_t n,
                          double bytes)
{
    g_autoptr(GError) error = NULL;
    g_autofree uint32_t *device = g_new(uint32_t, n);
    for (uint32_t k = 0; k < n; k++)
        device[k] = first + k;
    const SimCollectiveOptions what = {
        .kind = "all_reduce", .bytes = bytes, .device = device, .n_devices = n};
    g_autoptr(SimCollectiveRun) run = sim_collective_run(view, &what, &error);
    assert_no_error(error);
    return bytes / run->time_s;
}

static void test_cases(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    const char *file = test_shared("cases/expected.csv");
    if (!file)
        skip();
    g_autoptr(GHashTable) right =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(Csv) csv = csv_read(file, &error);
    assert_true(csv && csv_each(csv, take_case, right, &error));
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const Case *c = &CASES[i];
        double low = 0, high = 0;
        g_autoptr(Cluster) cluster = cluster_with(c->cluster, c->more);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        const uint32_t n = c->ranks ? c->ranks : view->n_devices;
        range_of(g_hash_table_lookup(right, c->name), c->range, &low, &high);
        const double bytes = c->ranks ? 4294967296.0 : 8589934592.0;
        const double rate = tensor_rate(view, c->first, n, bytes) / 1e9;
        const double got = rate * (c->bus ? 2 * (n - 1.0) / n : 1);
        print_message("%s, %u ranks: %.1f GB/s, right %g to %g\n", c->name, n, got, low,
                      high);
        assert_at_most(low, got);
        assert_at_most(got, high);
    }
}

/* --- what holds for all --- */

static const char *const CLUSTERS[] = {
    "machines: [{device: h100-sxm, gpus: 8, count: 2, nic: ib-ndr, nics: 8}]",
    "machines: [{device: a100-80g, gpus: 4, count: 3, nic: ib-hdr, nics: 4}, {device: "
    "l40s, gpus: 8, nic: eth-100}]",
    "machines: [{device: a100-pcie-40g, gpus: 8, count: 2, peers: 0-1x12 2-3x12 4-5x12 "
    "6-7x12, nic: ib-hdr}]",
    "machines: [{device: v100-16g, gpus: 8, count: 2, nic: ib-edr, nics: 4}]",
    "machines: [{device: gb200, gpus: 4, count: 6, domain: a, nic: ib-ndr, nics: 4}, "
    "{device: gb200, gpus: 4, count: 6, domain: b, nic: ib-ndr, nics: 4}]",
    "machines: [{device: h100-sxm, gpus: 4, count: 2, nic: ib-ndr, nics: 4, region: e}, "
    "{device: a100-80g, gpus: 4, count: 2, nic: ib-hdr, nics: 4, region: w}]\n"
    "regions: [{from: e, to: w, latency: 20 ms, bandwidth: 10 Gb/s}]",
    "machines: [{name: a, device: h100-sxm, gpus: 4, count: 2, nic: ib-ndr}, {name: b, "
    "device: l40s, gpus: 4, "
    "count: 2, nic: eth-100}]\n"
    "topology: {nodes: [x, y], links: [{from: a-0, to: x, latency: 5 us, bandwidth: 400 "
    "Gb/s}, "
    "{from: a-1, to: x, latency: 5 us, bandwidth: 400 Gb/s}, {from: b-0, to: y, latency: "
    "5 us, bandwidth: 100 Gb/s}, "
    "{from: b-1, to: y, latency: 5 us, bandwidth: 100 Gb/s}, {from: x, to: y, latency: 1 "
    "ms, bandwidth: 10 Gb/s}]}",
};

static Cluster *made(const char *text)
{
    g_autoptr(GError) error = NULL;
    Cluster *cluster = cluster_parse("made.yaml", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

/* Random sets of equal size without common devices. */
static uint32_t *random_sets(const ClusterView *view, GRand *rand, PriceSets *sets)
{
    uint32_t *device = g_new(uint32_t, view->n_devices);
    const bool mixed = g_rand_boolean(rand);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const uint32_t other =
            mixed ? (uint32_t)g_rand_int_range(rand, 0, (gint32)j + 1) : j;
        device[j] = device[other];
        device[other] = j;
    }
    sets->n = (uint32_t)g_rand_int_range(rand, 2, (gint32)view->n_devices + 1);
    sets->n_sets =
        (uint32_t)g_rand_int_range(rand, 1, (gint32)(view->n_devices / sets->n) + 1);
    sets->device = device;
    return device;
}

static double price_s(const PricePlace *place, Collective kind, double bytes)
{
    const double part = 1.0 / place->ranks;
    return sim_collective_over(price_line(place, kind, bytes, NULL), place->ranks, kind,
                               bytes, part, part);
}

/* Alone on the network a collective takes its price in the flow fidelity too, which is that of the
 * fidelity `stage`; it rises with bytes, falls with bandwidths, and pieces say the same. */
static void test_prices(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLUSTERS); c++) {
        g_autoptr(Cluster) cluster = made(CLUSTERS[c]);
        g_autoptr(Cluster) faster = made(CLUSTERS[c]);
        assert_true(cluster_change(faster, CHANGE_SCALE, "network=2", &error));
        assert_true(cluster_change(faster, CHANGE_SCALE, "inner=1.5", &error));
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        g_autoptr(ClusterView) more = cluster_view(faster, GRANULARITY_GPU);
        g_autoptr(SimAlone) alone = sim_alone_new(view, &error);
        assert_no_error(error);
        for (uint32_t trial = 0; trial < 60; trial++) {
            PriceSets sets;
            PricePlace place, quick;
            const Collective kind =
                (Collective)g_rand_int_range(rand, 0, COLLECTIVES_PRICED);
            g_autofree uint32_t *device = random_sets(view, rand, &sets);
            price_place(view, &sets, &place);
            price_place(more, &sets, &quick);
            assert_true(place.own);
            double before = 0;
            CollectivePieces pieces;
            LinkCost line;
            price_pieces(&place, kind, &pieces, &line);
            for (double bytes = 100; bytes < 1e11; bytes *= 30) {
                const double seconds = price_s(&place, kind, bytes), part = 1.0 / sets.n;
                const CollectivePiece *piece = pieces_find(&pieces, bytes);
                assert_true(isfinite(seconds) && seconds >= before);
                before = seconds;
                assert_at_most(price_s(&quick, kind, bytes), seconds * (1 + 1e-12));
                assert_close(sim_collective_over(piece ? piece->line : line, sets.n, kind,
                                                 bytes, part, part),
                             seconds, 1e-12);
                assert_close(sim_alone_collective_s(alone, kind, bytes, sets.n,
                                                    sets.n_sets, device),
                             seconds, 1e-9);
            }
            g_free(pieces.piece);
        }
    }
}

/* A cluster that is written reads as one with equal prices. */
static void test_written(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    for (uint32_t c = 0; c < G_N_ELEMENTS(CLUSTERS); c++) {
        g_autoptr(Cluster) cluster = made(CLUSTERS[c]);
        g_autofree char *text = cluster_write(cluster);
        g_autoptr(Cluster) again =
            cluster_parse("again.yaml", text, strlen(text), &error);
        assert_no_error(error);
        g_autofree char *first = cluster_canonical(cluster),
                        *second = cluster_canonical(again);
        assert_string_equal(first, second);
        for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
            g_autoptr(ClusterView) view = cluster_view(cluster, g);
            g_autoptr(ClusterView) other = cluster_view(again, g);
            for (Collective kind = 0; (int)kind < COLLECTIVES_PRICED; kind++)
                assert_true(sim_collective_s(view, kind, 1e8, 1, 1) ==
                            sim_collective_s(other, kind, 1e8, 1, 1));
        }
    }
}

/* The slow link counts for those who cross it, and for them alone. */
static void test_regions(void **state)
{
    (void)state;
    for (uint32_t c = 5; c < 7; c++) {
        g_autoptr(Cluster) cluster = made(CLUSTERS[c]);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        const uint32_t near[] = {0, 4}, far[] = {0, 8}, two[] = {0, 8, 1, 9};
        PricePlace place;
        price_place(view, &(PriceSets){1, 2, near}, &place);
        const double near_s = price_s(&place, COLLECTIVE_ALL_REDUCE, 1e9);
        price_place(view, &(PriceSets){1, 2, far}, &place);
        const double far_s = price_s(&place, COLLECTIVE_ALL_REDUCE, 1e9);
        price_place(view, &(PriceSets){2, 2, two}, &place);
        const double both_s = price_s(&place, COLLECTIVE_ALL_REDUCE, 1e9);
        assert_at_most(near_s, 0.06);
        assert_close(far_s, 1e9 / 1.25e9, 0.06);
        assert_close(both_s, 2e9 / 1.25e9, 0.06);
        assert_close(price_between(view, 0, 2).bandwidth, 1.25e9, 1e-12);
        assert_at_most(2e9, price_between(view, 0, 1).bandwidth);
    }
}

/* Two of four ranks in one of three regions share its links, whichever it is. */
static void test_three_regions(void **state)
{
    (void)state;
    static const uint32_t SET[][4] = {{0, 1, 4, 8}, {0, 4, 5, 8}, {0, 4, 8, 9}};
    g_autoptr(GError) error = NULL;
    static const char TEXT[] =
        "machines: [{device: l4, gpus: 4, nic: eth-100, region: a}, {device: l4, gpus: "
        "4, nic: eth-100, region: b}, {device: l4, gpus: 4, nic: eth-100, region: c}]\n"
        "regions: [{from: a, to: b, latency: 1 ms, bandwidth: 8 Gb/s}, {from: b, to: c, "
        "latency: 1 ms, bandwidth: 8 Gb/s}, {from: a, to: c, latency: 1 ms, bandwidth: 8 "
        "Gb/s}]";
    g_autoptr(Cluster) cluster = cluster_parse("three.yaml", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t s = 0; s < G_N_ELEMENTS(SET); s++) {
        PricePlace place;
        price_place(view, &(PriceSets){1, 4, SET[s]}, &place);
        assert_int_equal(place.sites, 3);
        assert_close(place.exchange, 1e9 / 2, 1e-12);
    }
}

/* --- refusals --- */

/* The ranks on the machine that has the most of a set, and the machines of one, in any order. */
static void test_ranks_of_machines(void **state)
{
    (void)state;
    static const uint32_t UP[] = {0, 1, 2, 8, 9}, DOWN[] = {9, 8, 2, 1, 0},
                          ALONE[] = {3, 11};
    static const struct {
        PriceSets sets;
        uint32_t most, hosts;
    } CASE[] = {{{1, 5, UP}, 3, 2},
                {{1, 5, DOWN}, 3, 2},
                {{1, 2, ALONE}, 1, 2},
                {{1, 3, UP}, 3, 1}};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster =
        cluster_load("8xh100-sxm@8xib-ndr+4xa100-80g@4xib-hdr", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t c = 0; c < G_N_ELEMENTS(CASE); c++) {
        PricePlace place;
        price_place(view, &CASE[c].sets, &place);
        assert_int_equal(place.most, CASE[c].most);
        assert_int_equal(place.hosts, CASE[c].hosts);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } BAD[] = {
        {"machines: [{device: l4, gpus: 4, peers: 0-1 2-3}]",
         "machines[0].peer: missing"},
        {"machines: [{device: l4, gpus: 4, peer: nvlink3}]", "expected peers as well"},
        {"machines: [{device: l4, gpus: 1, count: 2, nic: eth-10, port: {bandwidth: 1 "
         "GB/s}}]",
         "expected either nic"},
        {"machines: [{device: l4, gpus: 1, count: 2, nic: eth-10, region: a}]\n"
         "regions: [{from: a, to: a, latency: 1 ms, bandwidth: 1 Gb/s}]",
         "expected two regions"},
        {"machines: [{device: l4, gpus: 1, nic: eth-10, region: a}, {device: l4, gpus: "
         "1, nic: eth-10, region: b}]",
         "no link leads from 'a' to 'b'"},
        {"machines: [{device: l4, gpus: 1, nic: eth-10, region: a}, {device: l4, gpus: "
         "1, nic: eth-10}]",
         "region: missing"},
        {"machines: [{device: gb200, gpus: 4, domain: a, nic: ib-ndr}, {device: "
         "h100-sxm, gpus: 4, domain: a, nic: ib-ndr}]",
         "expected one inner link"},
        {"machines: [{device: l4, gpus: 1, count: 2}]", "the nic of each machine"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster =
            cluster_parse("bad.yaml", BAD[i].text, strlen(BAD[i].text), &error);
        assert_null(cluster);
        assert_error(error, KILTER_ERROR_INPUT, BAD[i].message);
    }
}

/* One region too many, of 65 in a row; 64 are taken. */
static void test_many_regions(void **state)
{
    (void)state;
    enum { MOST = 64 };
    for (uint32_t n = MOST; n <= MOST + 1; n++) {
        g_autoptr(GString) text = g_string_new("machines:\n");
        for (uint32_t i = 0; i < n; i++)
            g_string_append_printf(
                text, "  - {device: l4, gpus: 1, nic: eth-10, region: r%u}\n", i);
        g_string_append(text, "regions:\n");
        for (uint32_t i = 1; i < n; i++)
            g_string_append_printf(
                text, "  - {from: r%u, to: r%u, latency: 1 ms, bandwidth: 1 Gb/s}\n",
                i - 1, i);
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster =
            cluster_parse("many.yaml", text->str, text->len, &error);
        if (n > MOST)
            assert_error(error, KILTER_ERROR_INPUT, "regions: expected at most 64");
        else
            assert_no_error(error);
    }
}

/* --- logs --- */

/* Four worlds of one rank make no row; a domain's log calibrates it. */
static void test_logs(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    const char *worlds = test_shared("cases/nccl/all_reduce_four_worlds_of_one.txt");
    if (!worlds)
        skip();
    g_autoptr(GArray) list = measurements_new(), tables = measured_tables_new();
    assert_true(measurements_read(worlds, list, tables, &error));
    assert_int_equal(list->len, 0);
    const MeasuredTable *table = &g_array_index(tables, MeasuredTable, 0);
    assert_int_equal(table->rows, 0);
    assert_int_equal(table->passed, 28);
    assert_non_null(strstr(table->reason, "rank 0 occurs 4 times"));

    g_autoptr(Cluster) base = cluster_with("nvl72_as_hosts", "domain: rack, ");
    g_autoptr(GArray) rows = measurements_new(), of = measured_tables_new();
    assert_true(measurements_read(test_shared("cases/nccl/all_reduce_nvl72_18_hosts.txt"),
                                  rows, of, &error));
    const CalibrateOptions options = {.base = base, .name = "made", .source = "a test"};
    g_autoptr(Calibration) calibration = calibrate(rows, &options, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(calibration->cluster, GRANULARITY_GPU);
    assert_close(tensor_rate(view, 0, 72, 8589934592.0), 423e9, 0.03);
}

/* Little data of two equal machines takes about as long as inside one and then between two GPUs. */
static void test_small(void **state)
{
    (void)state;
    static const uint32_t TWO[] = {0,
                                   3}; /* those of CLUSTERS that are two equal machines */
    enum { GPUS = 8, BYTES = 8 };
    for (uint32_t i = 0; i < G_N_ELEMENTS(TWO); i++) {
        g_autoptr(Cluster) cluster = made(CLUSTERS[TWO[i]]);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        const double inside = BYTES / tensor_rate(view, 0, GPUS, BYTES),
                     between = BYTES / tensor_rate(view, GPUS - 1, 2, BYTES),
                     all = BYTES / tensor_rate(view, 0, 2 * GPUS, BYTES);
        print_message("8 bytes inside %.1f us, between %.1f us, of all %.1f us\n",
                      inside * 1e6, between * 1e6, all * 1e6);
        assert_at_most(fmax(inside, between), all);
        assert_at_most(all, 1.5 * (inside + between));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),         cmocka_unit_test(test_cases),
        cmocka_unit_test(test_prices),        cmocka_unit_test(test_written),
        cmocka_unit_test(test_regions),       cmocka_unit_test(test_ranks_of_machines),
        cmocka_unit_test(test_three_regions), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_regions),  cmocka_unit_test(test_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
