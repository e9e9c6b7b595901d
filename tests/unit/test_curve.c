/* Curves of collectives: they recover a made network whose times are known, at sizes and numbers of
 * ranks that were not measured, and predict published measurements. */
#include <math.h>
#include <stdlib.h>

#include "experiments/calibration/calibrate.h"
#include "experiments/calibration/costs.h"
#include "experiments/calibration/curve_fit.h"
#include "sim/network/collective_run.h"
#include "sim/sim.h"
#include "tests/support/rows.h"

/* --- points --- */

static void test_points(void **state)
{
    (void)state;
    /* Medians of equal sizes; times that fall are pooled; sizes close to one another are one. */
    const double bytes[] = {1000, 1000, 1000, 4000, 2000, 8000, 8400, 16000};
    const double seconds[] = {5, 1, 2, 4, 9, 10, 12, 11};
    uint32_t n;
    g_autofree CurvePoint *point = curve_fit_points(bytes, seconds, 8, &n);
    assert_int_equal(n, 5);
    const double at[] = {1000, 2000, 4000, 8000, 16000}, of[] = {2, 6, 6, 10, 11};
    for (uint32_t i = 0; i < n; i++) {
        assert_close(point[i].bytes, at[i], 1e-12);
        assert_close(point[i].seconds, of[i], 1e-12);
    }
    const CollectiveCurve curve = {.n = n, .point = point};
    assert_close(curve_at(&curve, 1000), 2, 1e-12);
    assert_close(curve_at(&curve, 6000), 8, 1e-12);
    assert_close(curve_at(&curve, 3000), 6, 1e-12);
    /* above all: the slope over a factor of 8 */
    assert_close(curve_at(&curve, 30000), 11 + 14000 * (11 - 6) / 14000.0, 1e-12);
    /* Sizes grow faster than times at the beginning, so it has no latency. */
    assert_close(curve_at(&curve, 500), 1, 1e-12);
}

/* --- a made network --- */

typedef struct {
    double base_s, step_s, byte_s, sums, own;
} Truth;

static double truth_s(const Truth *t, Collective kind, CurvePlace place, double bytes)
{
    return t->base_s + t->step_s * curve_steps(kind, place) +
           t->byte_s * bytes * curve_wire(kind, place, t->sums, t->own);
}

static void add_rows(GArray *list, const char *device, const Truth *truth,
                     Collective kind, CurvePlace place)
{
    for (double bytes = 4096; bytes < 4e9; bytes *= 4) {
        Measurement m = {.device = g_strdup(device),
                         .shape = g_strdup(""),
                         .op = OP_KINDS,
                         .collective = kind,
                         .ranks = place.ranks,
                         .hosts = place.hosts,
                         .repeats = 1,
                         .share = 1.0 / place.ranks,
                         .bytes = bytes,
                         .median_s = truth_s(truth, kind, place, bytes)};
        m.low_s = m.high_s = m.median_s;
        g_array_append_val(list, m);
    }
}

static Cluster *machines_of(const char *text, GError **error)
{
    return cluster_parse("made.yaml", text, strlen(text), error);
}

static Cluster *calibrated(const GArray *list, Cluster *base)
{
    g_autoptr(GError) error = NULL;
    const CalibrateOptions options = {.base = base, .name = "made", .source = "a test"};
    g_autoptr(Calibration) c = calibrate(list, &options, &error);
    assert_no_error(error);
    /* as a file */
    g_autofree char *text = cluster_write(c->cluster);
    Cluster *cluster = cluster_parse("made", text, strlen(text), &error);
    assert_no_error(error);
    return cluster;
}

static double price_s(const Cluster *cluster, Collective kind, CurvePlace place,
                      double bytes)
{
    LinkCost line;
    assert_true(curves_line(&cluster->curves, kind, place, bytes, &line));
    return sim_collective_over(line, place.ranks, kind, bytes, 1.0 / place.ranks,
                               1.0 / place.ranks);
}

static const Collective KINDS[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER,
                                   COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_TO_ALL,
                                   COLLECTIVE_GROUPED_ALL_GATHER};

/* From two numbers of ranks the latency of a step and the bandwidth of the wire are found, and with
 * them the times among any number, inside machines whose switches sum up and between machines. */
static void test_recovers_ranks(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(Cluster) base =
        machines_of("machines: [{device: h100-sxm, gpus: 16, count: 8, inner: nvlink4, "
                    "nic: ib-ndr, nics: 8}]",
                    &error);
    assert_no_error(error);
    const Truth inner = {12e-6, 1.7e-6, 1 / 350e9, 1.18, 0.4},
                outer = {30e-6, 6e-6, 1 / 45e9, 0, 0};
    const CurvePlace measured[] = {
        {"h100-sxm", 4, 1}, {"h100-sxm", 16, 1}, {NULL, 32, 2}, {NULL, 128, 8}};
    for (uint32_t k = 0; k < G_N_ELEMENTS(KINDS); k++)
        for (uint32_t p = 0; p < G_N_ELEMENTS(measured); p++)
            add_rows(list, "h100-sxm", p < 2 ? &inner : &outer, KINDS[k], measured[p]);
    g_autoptr(Cluster) cluster = calibrated(list, base);
    const CurvePlace others[] = {{"h100-sxm", 2, 1}, {"h100-sxm", 8, 1}, {NULL, 64, 4}};
    for (uint32_t k = 0; k < G_N_ELEMENTS(KINDS); k++) {
        for (uint32_t p = 0; p < G_N_ELEMENTS(measured); p++)
            for (double bytes = 3000; bytes < 2e10; bytes *= 3)
                assert_close(
                    price_s(cluster, KINDS[k], measured[p], bytes),
                    truth_s(p < 2 ? &inner : &outer, KINDS[k], measured[p], bytes), 1e-4);
        for (uint32_t p = 0; p < G_N_ELEMENTS(others); p++)
            for (double bytes = 3000; bytes < 2e10; bytes *= 3)
                assert_close(price_s(cluster, KINDS[k], others[p], bytes),
                             truth_s(p < 2 ? &inner : &outer, KINDS[k], others[p], bytes),
                             0.02);
    }
}

/* From one number of ranks the sheet says what part of a latency grows with ranks. */
static void test_one_number_of_ranks(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(Cluster) base = cluster_load("dgx-a100", &error);
    assert_no_error(error);
    g_autoptr(Sheets) sheets = sheets_load(&error);
    const LinkSheet *link = sheets_link(sheets, "nvlink3", &error);
    const Truth truth = {1.5 * link->base_s, 1.5 * link->hop_s, 1 / 230e9, 0, 0.4};
    for (uint32_t k = 0; k < G_N_ELEMENTS(KINDS); k++)
        add_rows(list, "a100-80g", &truth, KINDS[k], (CurvePlace){"a100-80g", 4, 1});
    g_autoptr(Cluster) cluster = calibrated(list, base);
    for (uint32_t k = 0; k < G_N_ELEMENTS(KINDS); k++)
        for (uint32_t n = 2; n <= 8; n++)
            for (double bytes = 3000; bytes < 2e10; bytes *= 3) {
                const CurvePlace place = {"a100-80g", n, 1};
                assert_close(price_s(cluster, KINDS[k], place, bytes),
                             truth_s(&truth, KINDS[k], place, bytes), 1e-4);
            }
    /* All GPUs of the machine: the same by the view, and by kilter collective. */
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (double bytes = 3000; bytes < 2e10; bytes *= 7) {
        const double expected =
            truth_s(&truth, COLLECTIVE_ALL_REDUCE, (CurvePlace){"a100-80g", 8, 1}, bytes);
        const SimCollectiveOptions what = {.kind = "all_reduce", .bytes = bytes};
        g_autoptr(SimCollectiveRun) run = sim_collective_run(view, &what, &error);
        assert_no_error(error);
        assert_close(sim_collective_s(view, COLLECTIVE_ALL_REDUCE, bytes, 0.125, 0.125),
                     expected, 1e-4);
        assert_close(run->time_s, expected, 1e-4);
        assert_string_equal(run->algorithm, "measured times");
    }
    const SimCollectiveOptions ring = {
        .kind = "all_reduce", .bytes = 1e6, .algorithm = "ring"};
    g_autoptr(SimCollectiveRun) run = sim_collective_run(view, &ring, &error);
    assert_string_equal(run->algorithm, "ring");
}

/* Any curves make rising pieces with finite lines, and times that do not fall with size, among any
 * number of ranks. */
static void test_random(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(16);
    for (uint32_t trial = 0; trial < 400; trial++) {
        CollectiveCurve curve[3];
        const Collective kind = (Collective)g_rand_int_range(rand, 0, COLLECTIVES_PRICED);
        const bool inside = g_rand_boolean(rand);
        for (uint32_t c = 0; c < 3; c++) {
            const uint32_t hosts = inside ? 1 : (uint32_t)g_rand_int_range(rand, 2, 9);
            const uint32_t n = (uint32_t)g_rand_int_range(rand, 1, 12);
            g_autofree double *bytes = g_new(double, n), *s = g_new(double, n);
            for (uint32_t i = 0; i < n; i++) {
                bytes[i] = exp(g_rand_double_range(rand, 0, 24));
                s[i] = exp(g_rand_double_range(rand, -14, 2));
            }
            curve[c] =
                (CollectiveCurve){.kind = kind,
                                  .ranks = inside ? 2 + 3 * c : hosts * (1 + 2 * c),
                                  .hosts = hosts,
                                  .step_s = g_rand_double_range(rand, 0, 1e-4),
                                  .sums = g_rand_boolean(rand) ? 1.18 : 0,
                                  .own = g_rand_boolean(rand) ? 0.4 : 0};
            curve[c].point = curve_fit_points(bytes, s, n, &curve[c].n);
        }
        const CollectiveCurves curves = {.n = 3, .curve = curve};
        for (uint32_t ranks = 2; ranks <= 64; ranks += 5) {
            const CurvePlace place = {"any", ranks, inside ? 1 : 2};
            CollectivePieces pieces;
            LinkCost line;
            assert_true(curves_pieces(&curves, kind, place, &pieces, &line));
            double before = 0;
            for (uint32_t p = 0; p < pieces.n; p++) {
                const CollectivePiece *piece = &pieces.piece[p];
                assert_true(piece->up_to > (p > 0 ? piece[-1].up_to : 0));
                assert_true(isfinite(piece->line.latency_s) &&
                            piece->line.latency_s >= 0);
                assert_true(piece->line.bandwidth > 0 && isfinite(piece->line.bandwidth));
                assert_ptr_equal(pieces_find(&pieces, piece->up_to), piece);
            }
            assert_null(pieces_find(&pieces, 2 * pieces.piece[pieces.n - 1].up_to));
            for (double bytes = 1; bytes < 1e12; bytes *= 1.7) {
                assert_true(curves_line(&curves, kind, place, bytes, &line));
                const double own = sim_collective_over(line, ranks, kind, bytes,
                                                       1.0 / ranks, 1.0 / ranks);
                assert_true(isfinite(own) && own >= before * (1 - 1e-9));
                before = own;
            }
            g_free(pieces.piece);
        }
        for (uint32_t c = 0; c < 3; c++)
            g_free(curve[c].point);
    }
}

/* Costs of the network that trials are fitted to move the curves, too: of an affine curve, latency
 * and bandwidth by their own factors. Applying costs again begins at the same curve. */
static void test_costs(void **state)
{
    (void)state;
    static const char TEXT[] =
        "machines: [{device: a100-80g, gpus: 8, count: 2, inner: nvlink3, nic: ib-hdr}]\n"
        "curves:\n"
        "  - {collective: all_reduce, ranks: 8, hosts: 1, step: 1 us, points: [{bytes: 1 "
        "MB, "
        "time: 30 us}, {bytes: 2 MB, time: 40 us}]}\n"
        "  - {collective: all_reduce, ranks: 16, hosts: 2, points: [{bytes: 1 MB, time: "
        "90 us}, "
        "{bytes: 2 MB, time: 140 us}]}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) from = machines_of(TEXT, &error), to = machines_of(TEXT, &error);
    assert_no_error(error);
    const TypeStart start = {.bandwidth = 1e12, .attention = 1e11, .loss = 1e11};
    double log_of[COSTS] = {[COST_INNER_LATENCY] = log(2),
                            [COST_INNER_BANDWIDTH] = log(0.5),
                            [COST_OUTER_LATENCY] = log(3),
                            [COST_OUTER_BANDWIDTH] = log(0.25)};
    const CurvePlace inside = {"a100-80g", 8, 1}, between = {NULL, 16, 2};
    for (uint32_t again = 0; again < 2; again++) {
        costs_apply(from, &start, log_of, to);
        assert_close(price_s(to, COLLECTIVE_ALL_REDUCE, inside, 1.5e6),
                     2 * 20e-6 + 2 * 15e-6, 1e-9);
        assert_close(price_s(to, COLLECTIVE_ALL_REDUCE, between, 1.5e6),
                     3 * 40e-6 + 4 * 75e-6, 1e-9);
        assert_close(to->curves.curve[0].step_s, 2e-6, 1e-9);
    }
}

/* --- files --- */

static void test_refusals(void **state)
{
    (void)state;
    static const char HEAD[] = "machines: [{device: a100-80g, gpus: 8, inner: nvlink3}]\n"
                               "curves:\n";
    const struct {
        const char *curve, *part;
    } cases[] = {
        {"  - {collective: slice, ranks: 8, hosts: 1, points: [{bytes: 1 MB, time: 1 "
         "ms}]}",
         "curves[0].collective: expected all_reduce"},
        {"  - {collective: all_reduce, ranks: 1, hosts: 1, points: [{bytes: 1 MB, time: "
         "1 "
         "ms}]}",
         "curves[0].ranks: expected"},
        {"  - {collective: all_reduce, ranks: 2, hosts: 4, points: [{bytes: 1 MB, time: "
         "1 "
         "ms}]}",
         "curves[0].hosts: expected at most the number of ranks"},
        {"  - {collective: all_reduce, device: a, ranks: 8, hosts: 4, points: [{bytes: 1 "
         "MB, time: 1 ms}]}",
         "curves[0].device: not expected"},
        {"  - {collective: all_reduce, ranks: 8, hosts: 1, points: [{bytes: 1 MB, time: "
         "2 "
         "ms}, {bytes: 2 MB, time: 1 ms}]}",
         "curves[0].points[1]: expected a larger size"},
        {"  - {collective: all_reduce, ranks: 8, hosts: 1, points: [{bytes: 1 MB, time: "
         "2 "
         "ms}]}\n"
         "  - {collective: all_reduce, ranks: 8, hosts: 1, points: [{bytes: 1 MB, time: "
         "2 "
         "ms}]}",
         "curves[1].collective: expected a collective, ranks and hosts that were not"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat(HEAD, cases[i].curve, "\n", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = machines_of(text, &error);
        assert_null(cluster);
        assert_error(error, KILTER_ERROR_INPUT, cases[i].part);
    }
}

/* --- measured by others --- */

typedef struct {
    const char *device; /* of the rows to take; the column is `gpu` */
    GArray *list;
} Taken;

static void add_measured(GArray *list, const char *device, Collective kind,
                         uint32_t ranks, double bytes, double seconds)
{
    Measurement m = {.device = g_strdup(device),
                     .shape = g_strdup(""),
                     .op = OP_KINDS,
                     .collective = kind,
                     .ranks = ranks,
                     .hosts = 1,
                     .repeats = 1,
                     .share = 1.0 / ranks,
                     .bytes = kind == COLLECTIVE_ALL_TO_ALL ? bytes * ranks : bytes,
                     .median_s = seconds};
    m.low_s = m.high_s = seconds;
    g_array_append_val(list, m);
}

static bool take_h100(const Csv *csv, void *data, GError **error)
{
    (void)error;
    const Taken *taken = data;
    static const char *const name[] = {"all_reduce_perf", "all_gather_perf",
                                       "reduce_scatter_perf", "alltoall_perf"};
    for (uint32_t k = 0; k < G_N_ELEMENTS(name); k++)
        if (test_is(csv, "collective", name[k]))
            add_measured(
                taken->list, "h100-sxm", KINDS[k], (uint32_t)test_number(csv, "n_ranks"),
                test_number(csv, "size_bytes"), test_number(csv, "time_us_oop") * 1e-6);
    return true;
}

/* Logs of nccl-tests on one machine; the part of `alltoall` is each rank's, as elsewhere. */
static bool take_modern(const Csv *csv, void *data, GError **error)
{
    (void)error;
    const Taken *taken = data;
    static const char *const name[] = {"all_reduce", "all_gather", "reduce_scatter",
                                       "alltoall"};
    if (!test_is(csv, "lib", "nccl") || !test_is(csv, "device", taken->device))
        return true;
    for (uint32_t k = 0; k < G_N_ELEMENTS(name); k++)
        if (test_is(csv, "op", name[k]))
            add_measured(taken->list, "gpu", KINDS[k],
                         (uint32_t)test_number(csv, "ranks"), test_number(csv, "bytes"),
                         test_number(csv, "ms") * 1e-3);
    return true;
}

static bool take_vtrain(const Csv *csv, void *data, GError **error)
{
    (void)error;
    const Taken *taken = data;
    const double bytes = test_number(csv, "size_bytes");
    const bool power = fabs(log2(bytes) - round(log2(bytes))) < 1e-9;
    if (power && test_is(csv, "gpu", taken->device))
        add_measured(taken->list, "gpu", COLLECTIVE_ALL_REDUCE,
                     (uint32_t)test_number(csv, "n_gpus"), bytes,
                     test_number(csv, "time_us_outplace") * 1e-6);
    return true;
}

static bool take_mi200(const Csv *csv, void *data, GError **error)
{
    (void)error;
    const Taken *taken = data;
    static const char *const name[] = {"all reduce", "all gather", "reduce scatter",
                                       "all to all"};
    for (uint32_t k = 0; k < G_N_ELEMENTS(name); k++)
        if (test_is(csv, "collective", name[k]))
            add_measured(
                taken->list, "gpu", KINDS[k], (uint32_t)test_number(csv, "n_gpus"),
                test_number(csv, "size_MB") * 1048576, test_number(csv, "time_s"));
    return true;
}

/* The rows of a kind and number of ranks in the order of size, of equal sizes the median. */
static CollectiveCurve curve_of(const GArray *list, Collective kind, uint32_t ranks)
{
    g_autofree double *bytes = g_new(double, list->len), *s = g_new(double, list->len);
    CollectiveCurve curve = {.kind = kind, .ranks = ranks, .hosts = 1};
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        if (m->collective == kind && m->ranks == ranks) {
            bytes[n] = m->bytes;
            s[n++] = m->median_s;
        }
    }
    if (n > 0)
        curve.point = curve_fit_points(bytes, s, n, &curve.n);
    return curve;
}

static double log_log_at(const CollectiveCurve *curve, double bytes)
{
    uint32_t i = 1;
    while (i + 1 < curve->n && curve->point[i].bytes < bytes)
        i++;
    const CurvePoint *a = &curve->point[i - 1], *b = &curve->point[i];
    const double part = log(bytes / a->bytes) / log(b->bytes / a->bytes);
    return a->seconds * pow(b->seconds / a->seconds, part);
}

/* Mean errors of every second size, predicted by the other sizes. */
static void half_of_sizes(const GArray *list, double *own, double *log_log, uint32_t *n)
{
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t ranks = 2; ranks <= 16; ranks++) {
            CollectiveCurve all = curve_of(list, KINDS[k], ranks);
            g_autofree CurvePoint *half = g_new(CurvePoint, all.n + 1);
            for (uint32_t odd = 0; odd < 2; odd++) {
                CollectiveCurve known = all;
                known.point = half;
                known.n = 0;
                for (uint32_t i = odd; i < all.n; i += 2)
                    half[known.n++] = all.point[i];
                for (uint32_t i = 1 - odd; known.n > 1 && i < all.n; i += 2) {
                    const CurvePoint *p = &all.point[i];
                    if (i == 0 || i + 1 == all.n)
                        continue;
                    *own += fabs(curve_at(&known, p->bytes) / p->seconds - 1);
                    *log_log += fabs(log_log_at(&known, p->bytes) / p->seconds - 1);
                    ++*n;
                }
            }
            g_free(all.point);
        }
}

/* The mean error of the rows among other numbers of ranks than `from`, by curves of those; `but`:
 * kinds to leave out as bits. *sheet: by the data sheet alone. */
static double other_ranks(const GArray *list, const char *machine, const uint32_t *from,
                          uint32_t n_from, uint32_t but, double *sheet)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("machines: [{%s}]", machine);
    g_autoptr(Cluster) base = machines_of(text, &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(base, GRANULARITY_GPU);
    g_autoptr(GArray) own = measurements_new();
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        for (uint32_t f = 0; f < n_from; f++)
            if (m->ranks == from[f])
                add_measured(own, m->device, m->collective, m->ranks,
                             m->collective == COLLECTIVE_ALL_TO_ALL ? m->bytes / m->ranks
                                                                    : m->bytes,
                             m->median_s);
    }
    g_autoptr(Cluster) cluster = calibrated(own, base);
    for (uint32_t i = 0; i < list->len; i++) {
        const Measurement *m = &g_array_index(list, Measurement, i);
        bool known = but & 1U << m->collective;
        for (uint32_t f = 0; f < n_from; f++)
            known |= m->ranks == from[f];
        if (known)
            continue;
        const CurvePlace place = {base->type[0].name, m->ranks, 1};
        sum += fabs(price_s(cluster, m->collective, place, m->bytes) / m->median_s - 1);
        const LinkCost line =
            cluster_view_set_line(view, view->device, place, 1, m->collective, m->bytes);
        const double part = 1.0 / m->ranks,
                     bare_s = sim_collective_over(line, m->ranks, m->collective, m->bytes,
                                                  part, part);
        *sheet += fabs(bare_s / m->median_s - 1);
        n++;
    }
    assert_true(n > 10);
    *sheet /= n;
    return sum / n;
}

static void test_measured(void **state)
{
    (void)state;
    const char *single = test_shared("measured/nccl_tests/h100_single_node.csv");
    const char *amd = test_shared("measured/nccl_tests/mi200_collectives.csv");
    const char *vtrain = test_shared("measured/vtrain/allreduce_nvlink_v100_a100.csv");
    const char *modern = test_shared("measured/kernels/collectives_nvlink_modern.csv");
    if (!single || !amd || !vtrain || !modern)
        skip();
    g_autoptr(GArray) of_nccl_a100 = measurements_new(), of_h200 = measurements_new();
    test_rows(modern, take_modern, &(Taken){"A100-SXM", of_nccl_a100});
    test_rows(modern, take_modern, &(Taken){"H200-SXM", of_h200});
    g_autoptr(GArray) of_l40s = measurements_new(), of_pro = measurements_new();
    test_rows(modern, take_modern, &(Taken){"L40S", of_l40s});
    test_rows(modern, take_modern, &(Taken){"RTX-PRO-6000-S", of_pro});
    g_autoptr(GArray) of_h100 = measurements_new(), of_a100 = measurements_new(),
                      of_v100 = measurements_new(), of_mi200 = measurements_new();
    test_rows(single, take_h100, &(Taken){NULL, of_h100});
    test_rows(vtrain, take_vtrain, &(Taken){"a100", of_a100});
    test_rows(vtrain, take_vtrain, &(Taken){"v100", of_v100});
    test_rows(amd, take_mi200, &(Taken){NULL, of_mi200});
    double own = 0, log_log = 0;
    uint32_t n = 0;
    half_of_sizes(of_h100, &own, &log_log, &n);
    half_of_sizes(of_a100, &own, &log_log, &n);
    half_of_sizes(of_v100, &own, &log_log, &n);
    half_of_sizes(of_mi200, &own, &log_log, &n);
    print_message("half of the sizes: %u, MAPE %.2f %%, log-log %.2f %%\n", n,
                  100 * own / n, 100 * log_log / n);
    assert_at_most(own, log_log);
    static const char H100[] = "device: h100-sxm, gpus: 8",
                      A100[] = "device: a100-80g, gpus: 8",
                      V100[] = "device: v100-32g, gpus: 8",
                      H200[] = "device: h200, gpus: 8", L40S[] = "device: l40s, gpus: 8",
                      PRO[] = "device: rtx-pro-6000, gpus: 8",
                      MI250[] = "device: mi250x, gpus: 16";
    const struct {
        const GArray *list;
        const char *machine;
        uint32_t n_from, from[2];
        double most;
    } row[] = {
        {of_h100, H100, 1, {4}, 0.06},       {of_h100, H100, 1, {8}, 0.06},
        {of_a100, A100, 1, {2}, 0.1},        {of_a100, A100, 1, {4}, 0.08},
        {of_a100, A100, 1, {8}, 0.1},        {of_a100, A100, 2, {2, 8}, 0.08},
        {of_v100, V100, 1, {2}, 0.2},        {of_v100, V100, 1, {4}, 0.2},
        {of_v100, V100, 1, {8}, 0.2},        {of_v100, V100, 2, {2, 8}, 0.1},
        {of_nccl_a100, A100, 1, {2}, 0.15},  {of_nccl_a100, A100, 1, {4}, 0.15},
        {of_nccl_a100, A100, 1, {8}, 0.15},  {of_nccl_a100, A100, 2, {2, 8}, 0.08},
        {of_h200, H200, 1, {2}, 0.15},       {of_h200, H200, 1, {4}, 0.15},
        {of_h200, H200, 1, {8}, 0.2},        {of_h200, H200, 2, {2, 8}, 0.08},
        {of_mi200, MI250, 2, {2, 8}, 0.2},   {of_mi200, MI250, 2, {2, 16}, 0.2},
        {of_mi200, MI250, 2, {4, 8}, 0.2},   {of_mi200, MI250, 2, {2, 4}, 0.62},
        {of_mi200, MI250, 2, {4, 16}, 0.27}, {of_mi200, MI250, 2, {8, 16}, 0.35},
        {of_mi200, MI250, 1, {2}, 0.63},     {of_mi200, MI250, 1, {4}, 0.43},
        {of_mi200, MI250, 1, {8}, 0.29},     {of_mi200, MI250, 1, {16}, 0.28},
        {of_l40s, L40S, 2, {2, 8}, 0.2},     {of_l40s, L40S, 2, {2, 4}, 0.28},
        {of_l40s, L40S, 2, {4, 8}, 0.21},    {of_l40s, L40S, 1, {2}, 0.63},
        {of_l40s, L40S, 1, {4}, 0.21},       {of_l40s, L40S, 1, {8}, 0.2},
        {of_pro, PRO, 2, {2, 8}, 0.1},       {of_pro, PRO, 2, {2, 4}, 0.15},
        {of_pro, PRO, 2, {4, 8}, 0.15},      {of_pro, PRO, 1, {2}, 0.29},
        {of_pro, PRO, 1, {4}, 0.2},          {of_pro, PRO, 1, {8}, 0.2},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        double sheet = 0;
        const double error = other_ranks(row[i].list, row[i].machine, row[i].from,
                                         row[i].n_from, 0, &sheet);
        print_message("other ranks than %u and %u of '%s': %.1f %% (data sheet: %.1f "
                      "%%)\n",
                      row[i].from[0], row[i].from[1], row[i].machine, 100 * error,
                      100 * sheet);
        assert_at_most(error, row[i].most);
        assert_at_most(error, sheet);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_recovers_ranks),
        cmocka_unit_test(test_one_number_of_ranks),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
