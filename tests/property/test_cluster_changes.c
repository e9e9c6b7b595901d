/* Every change of a valid cluster is a valid cluster, or refused: it is written as a file that
 * reads as an equal cluster, its networks can be built, and every planner makes a plan of a finite
 * time on it or says why there is none.
 *
 *     KILTER_ALL=1    all planners on every changed cluster (the test cluster_changes_long) */
#include <malloc.h>

#include "data/data.h"
#include "tests/support/rounds.h"
#include "tests/test.h"

#include "synth/planners/planner.h"

static const char *const CLUSTER[] = {
    "hap-8",
    "hap-16",
    "dgx-h100",
    "amp-het-cluster",
    "tag-sfb",
    "hap-a100-p100-4",
    "star:hosts=3,gpus=2,inner_bandwidth=10GB/s,bandwidth=10Gb/s,latency=5us",
    "tree:hosts=6,leaf=2,oversubscription=2,bandwidth=10Gb/s,latency=5us",
    "random:seed=3",
    "random:seed=4"};

/* Files of one machine, without a network and with one, of links that are named, and with the
 * longest names. */
static const char *const FILES[] = {
    "machines: [{device: a100-80g, gpus: 1}]",
    "machines: [{device: a100-80g, gpus: 1, nic: eth-100}]",
    "machines: [{device: v100-16g, gpus: 4, nic: ib-edr}, {device: p100, gpus: 2, nic: "
    "eth-10}]",
    "machines: [{name: "
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
    "nnnnnnnnnnnnnnn, device: t4, gpus: 1, count: 2, nic: eth-10}]",
    "machines: [{name: box, count: 2, devices: [{device: rtx-a6000, gpus: 2}, {device: "
    "rtx-3090, gpus: 1}], nic: eth-25}]",
    "machines: [{devices: [{device: rtx-a6000, gpus: 1}, {device: rtx-3090, gpus: 2}, "
    "{device: rtx-a6000, gpus: 1}]}]",
    "device_types: [{name: v, rate: 1 TFLOP/s, memory: 4 GiB, runtime: 3 GiB}]\n"
    "machines: [{name: a, type: v, gpus: 1}, {name: b, type: v, gpus: 2, inner: "
    "{latency: 1 us, bandwidth: 1 GB/s}}]\n"
    "collectives: {all_reduce: &c {latency: 1 us, bandwidth: 1 GB/s}, all_gather: "
    "{latency: 1 us, bandwidth: 1 GB/s}, "
    "grouped_all_gather: {latency: 1 us, bandwidth: 1 GB/s}, reduce_scatter: {latency: 1 "
    "us, bandwidth: 1 GB/s}, "
    "grouped_reduce_scatter: {latency: 1 us, bandwidth: 1 GB/s}, all_to_all: {latency: 1 "
    "us, bandwidth: 1 GB/s}}\n"
    "topology: {nodes: [s], links: [{from: a, to: s, latency: 1 us, bandwidth: 1 GB/s}, "
    "{from: b, to: s, latency: 1 us, bandwidth: 1 GB/s}]}"};

static Cluster *start(uint32_t i)
{
    g_autoptr(GError) error = NULL;
    const uint32_t n = G_N_ELEMENTS(CLUSTER);
    Cluster *cluster =
        i < n ? cluster_load(CLUSTER[i], &error)
              : cluster_parse("any.yaml", FILES[i - n], strlen(FILES[i - n]), NULL);
    assert_no_error(error);
    return cluster;
}

/* A change of the cluster, of which most can be made. */
static char *random_change(const Cluster *cluster, GRand *rand, ChangeKind *kind)
{
    static const char *const ADDED[] = {"h100", "rtx-4090", "v100-16g", "mi300x", "gpu"};
    static const char *const SCALED[] = {"network", "latency", "inner"};
    static const char *const PART[] = {"rate", "bandwidth", "memory"};
    static const double FACTOR[] = {1e-6, 1e-3, 0.5, 2, 1e3, 1e6};
    const Machine *machine =
        &cluster->machine[g_rand_int_range(rand, 0, (gint32)cluster->n_machines)];
    const char *type = cluster->type[machine->type].name;
    const double factor = FACTOR[g_rand_int_range(rand, 0, G_N_ELEMENTS(FACTOR))];
    *kind = (ChangeKind)g_rand_int_range(rand, 0, CHANGES);
    if (*kind == CHANGE_SCALE && g_rand_boolean(rand))
        return g_strdup_printf("%s.%s=%g", type,
                               PART[g_rand_int_range(rand, 0, G_N_ELEMENTS(PART))],
                               factor);
    if (*kind == CHANGE_SCALE)
        return g_strdup_printf(
            "%s=%g", SCALED[g_rand_int_range(rand, 0, G_N_ELEMENTS(SCALED))], factor);
    if (*kind == CHANGE_ADD)
        return g_strdup_printf(
            "%s x %d",
            g_rand_boolean(rand) ? type
                                 : ADDED[g_rand_int_range(rand, 0, G_N_ELEMENTS(ADDED))],
            1 << g_rand_int_range(rand, 0, 4));
    return g_strdup(g_rand_boolean(rand) ? type : machine->name);
}

/* The cluster's file reads as an equal cluster, and its networks can be built. */
static void check_valid(const Cluster *cluster)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = cluster_write(cluster),
                    *canonical = cluster_canonical(cluster);
    g_autoptr(Cluster) again = cluster_parse("again.yaml", text, strlen(text), &error);
    assert_no_error(error);
    g_autofree char *same = cluster_canonical(again);
    assert_string_equal(canonical, same);
    for (Granularity g = GRANULARITY_MACHINE; g <= GRANULARITY_GPU; g++) {
        g_autoptr(ClusterView) view = cluster_view(cluster, g);
        g_autoptr(Topology) topology = topology_of_view(view, &error);
        assert_no_error(error);
        for (uint32_t kind = 0; view->n_devices > 1 && kind < COLLECTIVES_PRICED;
             kind++) {
            const LinkCost line = cluster_view_line(view, (Collective)kind, 1e6);
            assert_true(line.bandwidth > 0 && line.latency_s >= 0);
        }
    }
}

/* Whether a planner's answer is a time, or one of its refusals. */
static void check_planner(const Planner *planner, const Cluster *cluster)
{
    static const char MODEL[] = "bert-base:layers=2,hidden=96,ffn=192,vocab=640,seq=16";
    g_autoptr(GError) error = NULL;
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    g_autoptr(Question) question = question_open(planner, MODEL, view, &options, &error);
    g_autoptr(Answer) answer =
        question ? question_answer(question, "any", NULL, &error) : NULL;
    g_autoptr(Plan) plan = answer ? answer_take_plan(answer) : NULL;
    assert_true(!plan == !!error);
    if (!plan)
        return;
    if (!(plan->iteration_time_s > 0 && isfinite(plan->iteration_time_s)))
        fail_msg("%s on %s: %g s", planner->name, cluster->name, plan->iteration_time_s);
}

static void check_planners(const Cluster *cluster, uint32_t *turn)
{
    const bool all = g_getenv("KILTER_ALL") != NULL;
    if (cluster_gpus(cluster) > 8)
        return;
    uint32_t n;
    const Planner *maker = planner_makers(&n);
    for (uint32_t p = 0; all && p < n; p++)
        check_planner(&maker[p], cluster);
    if (!all)
        check_planner(&maker[(*turn)++ % n], cluster);
}

static void test_changes(void **state)
{
    (void)state;
    const uint32_t runs = test_rounds(6, 100);
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    uint32_t made = 0, refused = 0, turn = 0;
    for (uint32_t r = 0; r < runs; r++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(CLUSTER) + G_N_ELEMENTS(FILES); i++) {
            g_autoptr(Cluster) cluster = start(i);
            bool good = cluster != NULL;
            for (uint32_t c = 0; good && c < 3; c++) {
                ChangeKind kind;
                g_autoptr(GError) error = NULL;
                g_autofree char *text = random_change(cluster, rand, &kind);
                good = cluster_change(cluster, kind, text, &error);
                assert_true(good == !error);
                if (good)
                    check_valid(cluster);
                else
                    assert_error(error, KILTER_ERROR_INPUT, change_name(kind));
                made += good;
                refused += !good;
            }
            if (good)
                check_planners(cluster, &turn);
        }
    assert_true(made > runs && refused > runs);
}

/* Every planner plans for unlike GPUs in one machine, each at its own speed: of equal numbers of
 * fast and slow GPUs, none takes a tenth longer than if all were slow. */
static void test_unlike(void **state)
{
    (void)state;
    static const char MODEL[] = "bert-base:layers=2,hidden=96,ffn=192,vocab=640,seq=16";
    static const char MIXED[] = "machines: [{devices: [{device: h100, gpus: 2}, {device: "
                                "t4, gpus: 2}], inner: pcie3}]",
                      SLOW[] = "machines: [{device: t4, gpus: 4, inner: pcie3}]";
    g_autoptr(Cluster) mixed = cluster_parse("m.yaml", MIXED, strlen(MIXED), NULL);
    g_autoptr(Cluster) slow = cluster_parse("s.yaml", SLOW, strlen(SLOW), NULL);
    uint32_t n;
    const Planner *maker = planner_makers(&n);
    assert_true(mixed && slow);
    for (uint32_t p = 0; p < n; p++) {
        double time_s[2] = {0};
        for (uint32_t c = 0; c < 2; c++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(ClusterView) view = cluster_view(c ? slow : mixed, GRANULARITY_GPU);
            PlannerOptions options;
            planner_options_init(&options);
            g_autoptr(Plan) plan =
                planner_plan(&maker[p], MODEL, "any", view, &options, NULL, &error);
            if (plan)
                time_s[c] = plan->iteration_time_s;
            else
                assert_int_equal(error->code, KILTER_ERROR_INPUT);
        }
        assert_true((time_s[0] > 0) == (time_s[1] > 0));
        if (time_s[0] > time_s[1] * 1.1 && strcmp(maker[p].name, "amp-random") != 0)
            fail_msg("%s: %g s with two H100, %g s without", maker[p].name, time_s[0],
                     time_s[1]);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(ClusterView) whole = cluster_view(mixed, GRANULARITY_MACHINE);
    PlannerOptions options;
    planner_options_init(&options);
    assert_null(question_open(&maker[0], MODEL, whole, &options, &error));
    assert_error(error, KILTER_ERROR_INPUT, "has unlike GPUs (2 h100-sxm + 2 t4)");
    assert_int_equal(granularity_default(mixed), GRANULARITY_GPU);
}

/* A device type, or an alias of it, means its GPUs in machines of unlike ones; links between
 * those that stay are kept. */
static void test_only(void **state)
{
    (void)state;
    static const char TEXT[] = "machines: [{devices: [{device: h100, gpus: 2}, {device: "
                               "t4, gpus: 2}], peers: 0-1x4 0-2 2-3x3}]";
    static const struct {
        ChangeKind kind;
        const char *text, *type, *peers;
    } CASES[] = {{CHANGE_ONLY, "h100", "h100-sxm", "0-1x4"},
                 {CHANGE_WITHOUT, "H100", "t4", "0-1x3"},
                 {CHANGE_ONLY, "h100-sxm", "h100-sxm", "0-1x4"},
                 {CHANGE_WITHOUT, "h100-*", "t4", "0-1x3"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = cluster_parse("m.yaml", TEXT, strlen(TEXT), &error);
        assert_no_error(error);
        assert_true(cluster_change(cluster, CASES[i].kind, CASES[i].text, &error));
        assert_no_error(error);
        assert_int_equal(cluster->n_types, 1);
        assert_int_equal(cluster->machine[0].gpus, 2);
        assert_int_equal(cluster->machine[0].n_parts, 0);
        assert_string_equal(cluster->type[0].name, CASES[i].type);
        assert_string_equal(cluster->machine[0].peers, CASES[i].peers);
        check_valid(cluster);
    }
}

static void without_h100(void)
{
    static const char TEXT[] = "machines: [{device: h100-sxm, gpus: 1, nic: eth-10}, "
                               "{device: t4, gpus: 1, nic: eth-10}]";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_parse("two.yaml", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    assert_true(cluster_change(cluster, CHANGE_ONLY, "t4", &error));
    assert_int_equal(cluster->n_types, 1);
}

/* A type that no machine has any more is freed whole, with the kernels of its chip. */
static void test_freed(void **state)
{
    (void)state;
    enum { TIMES = 100, CACHED = 2048 }; /* malloc keeps some of what was freed */
    without_h100();
    const size_t before = mallinfo2().uordblks;
    for (uint32_t i = 0; i < TIMES; i++)
        without_h100();
    assert_at_most(mallinfo2().uordblks, before + CACHED);
}

/* The same two machines are refused as a file and as a change. */
static void test_no_network(void **state)
{
    (void)state;
    static const char TWO[] = "machines: [{device: a100-80g, gpus: 1, count: 2}]";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) lone = start(G_N_ELEMENTS(CLUSTER));
    assert_false(cluster_change(lone, CHANGE_ADD, "a100-80g x 1", &error));
    assert_error(error, KILTER_ERROR_INPUT, "no network between its 2 machines");
    g_clear_error(&error);
    g_autoptr(Cluster) two = cluster_parse("two.yaml", TWO, strlen(TWO), &error);
    assert_null(two);
    assert_error(error, KILTER_ERROR_INPUT, "the nic of each machine");
    g_clear_error(&error);
    /* A machine with a NIC has a network for a second one. */
    g_autoptr(Cluster) wired = start(G_N_ELEMENTS(CLUSTER) + 1);
    assert_true(cluster_change(wired, CHANGE_ADD, "a100-80g x 1", &error));
    assert_no_error(error);
    check_valid(wired);
}

/* More device types with rates of their own than a cluster holds are refused, whoever adds them. */
static void test_many_types(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = path_list("devices", ".yaml");
    g_autoptr(Cluster) cluster = start(G_N_ELEMENTS(CLUSTER) + 1);
    g_autoptr(GString) file = g_string_new("machines:\n");
    bool good = true;
    for (char **name = names; *name; name++) {
        g_autofree char *text = g_strdup_printf("%s x 1", *name);
        good = good && cluster_change(cluster, CHANGE_ADD, text, &error);
        g_string_append_printf(file, "  - {device: %s, gpus: 1, nic: eth-10}\n", *name);
    }
    assert_false(good);
    assert_error(error, KILTER_ERROR_INPUT, "at most 16 device types");
    g_clear_error(&error);
    assert_null(cluster_parse("many.yaml", file->str, file->len, &error));
    assert_error(error, KILTER_ERROR_INPUT,
                 "many.yaml: expected at most 16 device types");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),    cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_only),       cmocka_unit_test(test_no_network),
        cmocka_unit_test(test_many_types), cmocka_unit_test(test_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
