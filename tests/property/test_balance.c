/* The ratio LP on random instances: compared with every vertex and with a grid, and changes that
 * must not matter. */
#include "balance/balance.h"
#include "tests/support/random_linear.h"
#include "tests/support/written_lp.h"
#include "tests/test.h"

/* A random instance; memory may be NULL. */
typedef struct {
    ClusterView *view;
    SimLinear *linear;
    SimMemory *memory;
    uint32_t n_segments;
} Instance;

static Instance instance_new(uint32_t seed, const RandomShape *shape, double tight)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    Instance it = {random_view(random, shape), random_linear(random, shape), NULL,
                   shape->n_segments};
    if (tight > 0)
        it.memory = random_memory(random, it.linear, it.view, 3, tight);
    return it;
}

static void instance_free(Instance *it)
{
    random_view_free(it->view);
    sim_linear_free(it->linear);
    sim_memory_free(it->memory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Instance, instance_free)

static double time_of(const Instance *it, const double *ratio)
{
    g_autofree double *share = sim_shares(it->linear, it->view, ratio);
    return sim_linear_time(it->linear, it->view, share, NULL, NULL);
}

/* The largest ratio of bytes to memory of any device. */
static double excess_of(const Instance *it, const double *ratio)
{
    if (!it->memory)
        return -INFINITY;
    g_autofree double *share = sim_shares(it->linear, it->view, ratio);
    double excess = -INFINITY;
    for (uint32_t j = 0; j < it->view->n_devices; j++) {
        uint32_t point;
        double peak = sim_memory_peak(it->memory, it->view, share, j, &point);
        excess = fmax(excess, peak - (double)it->view->device[j].memory_bytes);
    }
    return excess;
}

/* --- every vertex --- */

enum { MAX_DIM = 8 };

/* a B = b */
typedef struct {
    double a[MAX_DIM], b;
} Plane;

/* The objective is linear between the planes where two rows of one maximum are equal, a
 * ratio is 0 or a memory row binds; the ratios lie in a bounded set. Hence some point
 * where enough of these planes meet is optimal: all of them are tried. */
typedef struct {
    const Instance *it;
    uint32_t dim, n_planes;
    Plane plane[400];
    double best;
    double best_ratio[MAX_DIM];
} Enumeration;

static void add_plane(Enumeration *e, Plane plane)
{
    double largest = 0;
    for (uint32_t i = 0; i < e->dim; i++)
        largest = fmax(largest, fabs(plane.a[i]));
    if (largest == 0)
        return;
    for (uint32_t i = 0; i < e->dim; i++)
        plane.a[i] /= largest;
    plane.b /= largest;
    assert_true(e->n_planes < G_N_ELEMENTS(e->plane));
    e->plane[e->n_planes++] = plane;
}

/* Planes where rows p and q (value a B + b each) are equal, for all pairs. */
static void add_ties(Enumeration *e, const Plane *row, uint32_t n)
{
    for (uint32_t p = 0; p < n; p++) {
        for (uint32_t q = p + 1; q < n; q++) {
            Plane tie = {.b = row[q].b - row[p].b};
            for (uint32_t i = 0; i < e->dim; i++)
                tie.a[i] = row[p].a[i] - row[q].a[i];
            add_plane(e, tie);
        }
    }
}

/* comp_ij as a row, from two evaluations of the cost model for each segment. */
static Plane comp_row(const Instance *it, uint32_t stage, uint32_t j)
{
    uint32_t n = it->view->n_devices, n_splits = it->linear->n_splits;
    SimWork fixed = it->linear->stage[stage].fixed;
    Plane row = {.b = sim_work_s(&fixed, &it->view->device[j], 0)};
    for (uint32_t s = 0; s < n_splits; s++) {
        SimWork work = fixed;
        work.flops += it->linear->flops[stage * n_splits + s];
        work.inner_bytes += it->linear->inner_bytes[stage * n_splits + s];
        row.a[it->linear->split[s].segment * n + j] +=
            sim_work_s(&work, &it->view->device[j], 0) - row.b;
    }
    return row;
}

static void add_planes(Enumeration *e)
{
    const Instance *it = e->it;
    const SimLinear *linear = it->linear;
    uint32_t n = it->view->n_devices;
    Plane row[2 * MAX_DIM];
    for (uint32_t i = 0; i < e->dim; i++) {
        Plane zero = {0};
        zero.a[i] = 1;
        add_plane(e, zero);
    }
    for (uint32_t i = 0; i < linear->n_stages; i++) {
        for (uint32_t j = 0; j < n; j++)
            row[j] = comp_row(it, i, j);
        add_ties(e, row, n);
    }
    for (uint32_t t = 0; t < linear->n_terms; t++) {
        const SimTerm *term = &linear->term[t];
        for (uint32_t j = 0; j < 2 * n; j++) {
            uint32_t split = j < n ? term->from : term->to;
            row[j] = (Plane){0};
            row[j].a[linear->split[split].segment * n + j % n] = 1;
        }
        add_ties(e, row, term->from == term->to ? n : 2 * n);
    }
    for (uint32_t p = 0; it->memory && p < it->memory->n_points; p++) {
        for (uint32_t j = 0; j < n; j++) {
            const Device *device = &it->view->device[j];
            Plane full = {.b = (double)device->memory_bytes - it->memory->held[p] -
                               it->memory->divided[p] / device->gpus};
            for (uint32_t s = 0; s < linear->n_splits; s++)
                full.a[linear->split[s].segment * n + j] +=
                    it->memory->held_sharded[p * linear->n_splits + s] +
                    it->memory->divided_sharded[p * linear->n_splits + s] / device->gpus;
            add_plane(e, full);
        }
    }
}

/* Gauss with partial pivoting on m[dim][dim + 1]; false when singular. */
static bool solve_square(double m[MAX_DIM][MAX_DIM + 1], uint32_t dim, double *x)
{
    for (uint32_t k = 0; k < dim; k++) {
        uint32_t pivot = k;
        for (uint32_t r = k + 1; r < dim; r++)
            pivot = fabs(m[r][k]) > fabs(m[pivot][k]) ? r : pivot;
        if (fabs(m[pivot][k]) < 1e-11)
            return false;
        for (uint32_t c = 0; c <= dim; c++) {
            double swap = m[k][c];
            m[k][c] = m[pivot][c];
            m[pivot][c] = swap;
        }
        for (uint32_t r = 0; r < dim; r++) {
            double factor = r == k ? 0 : m[r][k] / m[k][k];
            for (uint32_t c = k; factor != 0 && c <= dim; c++)
                m[r][c] -= factor * m[k][c];
        }
    }
    for (uint32_t k = 0; k < dim; k++)
        x[k] = m[k][dim] / m[k][k];
    return true;
}

static void try_vertex(Enumeration *e, const uint32_t *chosen, uint32_t n_chosen)
{
    double m[MAX_DIM][MAX_DIM + 1] = {{0}}, x[MAX_DIM];
    uint32_t n = e->it->view->n_devices;
    for (uint32_t k = 0; k < e->it->n_segments; k++) {
        for (uint32_t j = 0; j < n; j++)
            m[k][k * n + j] = 1;
        m[k][e->dim] = 1;
    }
    for (uint32_t i = 0; i < n_chosen; i++) {
        const Plane *plane = &e->plane[chosen[i]];
        memcpy(m[e->it->n_segments + i], plane->a, e->dim * sizeof(double));
        m[e->it->n_segments + i][e->dim] = plane->b;
    }
    if (!solve_square(m, e->dim, x))
        return;
    for (uint32_t i = 0; i < e->dim; i++) {
        if (x[i] < -1e-10)
            return;
        x[i] = fmax(x[i], 0);
    }
    double time = time_of(e->it, x);
    if (time < e->best && excess_of(e->it, x) <= 1) {
        e->best = time;
        memcpy(e->best_ratio, x, sizeof x);
    }
}

static void choose(Enumeration *e, uint32_t *chosen, uint32_t n_chosen, uint32_t wanted,
                   uint32_t from)
{
    if (n_chosen == wanted) {
        try_vertex(e, chosen, n_chosen);
        return;
    }
    for (uint32_t p = from; p < e->n_planes; p++) {
        chosen[n_chosen] = p;
        choose(e, chosen, n_chosen + 1, wanted, p + 1);
    }
}

/* The optimum, INFINITY when no ratios fit. */
static double enumerate(const Instance *it)
{
    g_autofree Enumeration *e = g_new0(Enumeration, 1);
    uint32_t chosen[MAX_DIM];
    e->it = it;
    e->dim = it->n_segments * it->view->n_devices;
    e->best = INFINITY;
    assert_true(e->dim <= MAX_DIM);
    add_planes(e);
    choose(e, chosen, 0, e->dim - it->n_segments, 0);
    return e->best;
}

static const RandomShape SMALL[] = {
    {2, 2, 6, 1, 0.5, false}, {3, 3, 5, 1, 0.5, false}, {3, 2, 4, 1, 0.5, true},
    {4, 2, 3, 1, 0.5, true},  {2, 2, 6, 2, 0.5, true},  {2, 2, 5, 3, 0.3, false},
    {4, 4, 2, 1, 1, false},   {3, 1, 4, 1, 0.5, true},
};

static void test_equals_every_vertex(void **state)
{
    (void)state;
    uint32_t solved = 0, refused = 0;
    for (uint32_t trial = 0; trial < 480; trial++) {
        const RandomShape *shape = &SMALL[trial % G_N_ELEMENTS(SMALL)];
        static const double tights[] = {0, 0.6, 1.1};
        double tight = tights[trial / G_N_ELEMENTS(SMALL) % 3];
        g_auto(Instance) it = instance_new(trial, shape, tight);
        double ratio[MAX_DIM], best = enumerate(&it);
        BalanceReport report;
        g_autoptr(GError) error = NULL;
        bool ok = balance_ratios(it.linear, it.memory, it.view, it.n_segments, ratio,
                                 &report, &error);
        if (isinf(best)) {
            assert_false(ok);
            assert_error(error, KILTER_ERROR_INFEASIBLE, "no ratios fit the memory");
            refused++;
            continue;
        }
        assert_no_error(error);
        assert_close(report.time_s, best, 1e-9);
        assert_close(report.time_s, time_of(&it, ratio), 1e-12);
        assert_close(report.dual_s, report.time_s, 1e-9);
        assert_true(report.dual_s <= report.time_s);
        solved++;
    }
    assert_true(solved >= 300);
    assert_true(refused >= 10);
}

/* --- bounds --- */

static void assert_simplex(const Instance *it, const double *ratio)
{
    for (uint32_t k = 0; k < it->n_segments; k++) {
        double sum = 0;
        for (uint32_t j = 0; j < it->view->n_devices; j++) {
            assert_true(ratio[k * it->view->n_devices + j] >= 0);
            sum += ratio[k * it->view->n_devices + j];
        }
        assert_close(sum, 1, 1e-12);
    }
}

static void test_no_grid_point_beats_the_bound(void **state)
{
    (void)state;
    const RandomShape shape = {3, 3, 30, 1, 0.5, true};
    const uint32_t steps = 60;
    for (uint32_t seed = 0; seed < 15; seed++) {
        g_auto(Instance) it = instance_new(seed, &shape, 0);
        double ratio[3], nearest = INFINITY;
        BalanceReport report;
        g_autoptr(GError) error = NULL;
        assert_true(balance_ratios(it.linear, NULL, it.view, 1, ratio, &report, &error));
        for (uint32_t a = 0; a <= steps; a++) {
            for (uint32_t b = 0; a + b <= steps; b++) {
                double point[3] = {(double)a / steps, (double)b / steps,
                                   (double)(steps - a - b) / steps};
                nearest = fmin(nearest, time_of(&it, point));
            }
        }
        /* apart from the rounding of two sums */
        assert_at_most(report.dual_s, nearest * (1 + 1e-14));
        /* and the grid comes near it, so the bound is not trivial */
        assert_at_most(nearest, 1.1 * report.dual_s);
    }
}

static void test_larger_instances_are_proved(void **state)
{
    (void)state;
    static const RandomShape shapes[] = {
        {8, 2, 50, 1, 0.5, true}, {8, 4, 50, 2, 0.5, true},   {16, 4, 80, 3, 0.5, false},
        {8, 8, 40, 1, 0.5, true}, {12, 3, 60, 12, 0.3, true}, {8, 4, 300, 1, 0, false},
    };
    for (uint32_t trial = 0; trial < 60; trial++) {
        const RandomShape *shape = &shapes[trial % G_N_ELEMENTS(shapes)];
        g_auto(Instance) it = instance_new(1000 + trial, shape, trial % 2 * 0.6);
        g_autofree double *ratio = g_new(double, it.n_segments *it.view->n_devices);
        BalanceReport report;
        g_autoptr(GError) error = NULL;
        balance_ratios(it.linear, it.memory, it.view, it.n_segments, ratio, &report,
                       &error);
        assert_no_error(error);
        assert_simplex(&it, ratio);
        assert_close(report.dual_s, report.time_s, 1e-9);
        assert_true(excess_of(&it, ratio) <= 1);
    }
}

/* --- many classes --- */

static void test_many_classes_equal_the_written_lp(void **state)
{
    (void)state;
    static const uint32_t classes[] = {5, 6, 8, 12, 16, 24};
    for (uint32_t trial = 0; trial < 120; trial++) {
        uint32_t n = classes[trial % G_N_ELEMENTS(classes)];
        const RandomShape shape = {n + trial % 3, n, 10 + trial % 7 * 5, 1, 0.5,
                                   trial % 2 == 0};
        g_auto(Instance) it = instance_new(3000 + trial, &shape, 0);
        /* Sometimes a device that can do nothing. */
        if (trial % 5 == 0) {
            it.view->device[n - 1].rate = 0;
            for (uint32_t i = 0; i < shape.n_stages; i++)
                it.linear->stage[i].fixed.flops = 0;
        }
        /* The written LP has no rate 0: without the device. */
        ClusterView working = {.device = g_newa(Device, it.view->n_devices)};
        for (uint32_t j = 0; j < it.view->n_devices; j++) {
            if (it.view->device[j].rate > 0)
                working.device[working.n_devices++] = it.view->device[j];
        }
        double ratio[26], written = written_lp_time(it.linear, &working, 60);
        BalanceReport report;
        g_autoptr(GError) error = NULL;
        balance_ratios(it.linear, NULL, it.view, 1, ratio, &report, &error);
        assert_no_error(error);
        assert_simplex(&it, ratio);
        assert_close(report.time_s, written, 1e-7);
        assert_close(report.dual_s, report.time_s, 1e-9);
    }
}

static uint32_t kinds_of(const ClusterView *view)
{
    g_auto(DeviceKinds) kinds = {0};
    device_kinds(view, UINT32_MAX, &kinds);
    return kinds.n;
}

/* Up to 64 kinds of device, memory that does not bind, binds, or has no ratios. */
static void test_up_to_64_classes_are_proved(void **state)
{
    (void)state;
    static const double tights[] = {0, 0.6, 0.9, 1.2};
    uint32_t solved = 0, refused = 0;
    for (uint32_t trial = 0; trial < 60; trial++) {
        uint32_t n = 5 + trial;
        const RandomShape shape = {n, n, 20 + trial % 4 * 40, 1, 0.5, trial % 2 == 0};
        g_auto(Instance) it =
            instance_new(4000 + trial, &shape, tights[trial % G_N_ELEMENTS(tights)]);
        double ratio[64];
        BalanceReport report;
        g_autoptr(GError) error = NULL;
        if (!balance_ratios(it.linear, it.memory, it.view, 1, ratio, &report, &error)) {
            assert_error(error, KILTER_ERROR_INFEASIBLE, "no ratios fit the memory");
            refused++;
            continue;
        }
        assert_simplex(&it, ratio);
        assert_close(report.time_s, time_of(&it, ratio), 1e-12);
        assert_close(report.dual_s, report.time_s, 1e-9);
        assert_true(excess_of(&it, ratio) <= 1);
        /* The interior point closes the gap: it has a column for each piece, cutting planes one
         * for all. */
        assert_at_most(n + 15, report.columns);
        /* A row for each class of a piece, the sum of the ratios, and limits that may bind. */
        const uint32_t kinds = kinds_of(it.view), pieces = report.columns - kinds;
        assert_int_equal((report.rows - 1) % kinds, 0);
        assert_at_most(pieces, (report.rows - 1) / kinds);
        assert_at_most((report.rows - 1) / kinds,
                       pieces + (it.memory ? it.memory->n_points : 0));
        solved++;
    }
    assert_true(solved >= 40);
    assert_true(refused >= 3);
}

/* --- invariances --- */

static void test_permuting_devices_permutes_ratios(void **state)
{
    (void)state;
    const RandomShape shape = {7, 4, 20, 2, 0.5, true};
    enum { N = 7, CELLS = 14 };
    for (uint32_t seed = 0; seed < 40; seed++) {
        g_auto(Instance) it = instance_new(seed, &shape, seed % 2 * 0.8);
        double ratio[CELLS], permuted[CELLS];
        BalanceReport report, permuted_report;
        g_autoptr(GError) error = NULL;
        balance_ratios(it.linear, it.memory, it.view, 2, ratio, &report, &error);
        assert_no_error(error);
        g_autofree Device *device = g_memdup2(it.view->device, N * sizeof *device);
        for (uint32_t j = 0; j < N; j++)
            it.view->device[j] = device[(3 * j + seed) % N];
        balance_ratios(it.linear, it.memory, it.view, 2, permuted, &permuted_report,
                       &error);
        assert_no_error(error);
        for (uint32_t i = 0; i < CELLS; i++)
            assert_true(permuted[i] == ratio[i / N * N + (3 * (i % N) + seed) % N]);
        assert_close(permuted_report.time_s, report.time_s, 1e-12);
    }
}

/* Rates with immeasurably small differences put every device in its own class. */
static void test_classes_change_nothing(void **state)
{
    (void)state;
    const RandomShape shape = {8, 2, 25, 2, 0.5, true};
    for (uint32_t seed = 0; seed < 30; seed++) {
        g_auto(Instance) it = instance_new(seed, &shape, seed % 2 * 0.8);
        double ratio[16];
        BalanceReport together, apart;
        g_autoptr(GError) error = NULL;
        balance_ratios(it.linear, it.memory, it.view, 2, ratio, &together, &error);
        assert_no_error(error);
        for (uint32_t j = 0; j < 8; j++)
            it.view->device[j].rate *= 1 + j * 1e-13;
        balance_ratios(it.linear, it.memory, it.view, 2, ratio, &apart, &error);
        assert_no_error(error);
        assert_close(apart.time_s, together.time_s, 1e-9);
        assert_true(apart.columns > together.columns);
    }
}

/* Stages in another unit of time, or repeated, scale the optimum. */
static void test_scales_with_time(void **state)
{
    (void)state;
    const RandomShape shape = {6, 3, 20, 1, 0.5, false};
    for (uint32_t seed = 0; seed < 20; seed++) {
        g_auto(Instance) it = instance_new(seed, &shape, 0);
        double ratio[6], factor = seed % 2 ? 1e-6 : 1e6;
        BalanceReport before, after;
        g_autoptr(GError) error = NULL;
        balance_ratios(it.linear, NULL, it.view, 1, ratio, &before, &error);
        assert_no_error(error);
        for (uint32_t i = 0; i < it.linear->n_stages; i++) {
            it.linear->stage[i].comm_s *= factor;
            it.linear->stage[i].fixed.flops *= factor;
            it.linear->flops[i] *= factor;
        }
        for (uint32_t t = 0; t < it.linear->n_terms; t++)
            it.linear->term[t].seconds *= factor;
        balance_ratios(it.linear, NULL, it.view, 1, ratio, &after, &error);
        assert_no_error(error);
        assert_close(after.time_s, factor * before.time_s, 1e-9);
    }
}

/* --- memory --- */

static void test_memory_binds(void **state)
{
    (void)state;
    const RandomShape shape = {6, 3, 20, 2, 0.3, true};
    uint32_t bound = 0;
    for (uint32_t seed = 0; seed < 60; seed++) {
        g_auto(Instance) it = instance_new(seed, &shape, 0.9);
        double ratio[12];
        BalanceReport report, freely;
        g_autoptr(GError) error = NULL;
        balance_ratios(it.linear, NULL, it.view, 2, ratio, &freely, &error);
        assert_no_error(error);
        double wanted = excess_of(&it, ratio);
        balance_ratios(it.linear, it.memory, it.view, 2, ratio, &report, &error);
        assert_no_error(error);
        assert_true(excess_of(&it, ratio) <= 1);
        assert_at_most(freely.time_s, report.time_s * (1 + 1e-9));
        if (wanted <= 1) {
            assert_close(report.time_s, freely.time_s, 1e-9);
            continue;
        }
        /* The best ratios do not fit: those that do are at the limit. */
        assert_true(excess_of(&it, ratio) >= -1);
        bound++;
    }
    assert_true(bound >= 20);
}

/* The bytes in the message are the missing ones: with them the ratios fit, with fewer they do
 * not. */
static void test_missing_bytes_are_exact(void **state)
{
    (void)state;
    const RandomShape shape = {5, 3, 10, 2, 0.3, true};
    uint32_t refused = 0;
    for (uint32_t seed = 0; seed < 60; seed++) {
        g_auto(Instance) it = instance_new(seed, &shape, 1.3);
        double ratio[10];
        BalanceReport report;
        g_autoptr(GError) error = NULL;
        if (balance_ratios(it.linear, it.memory, it.view, 2, ratio, &report, &error))
            continue;
        assert_error(error, KILTER_ERROR_INFEASIBLE,
                     "no ratios fit the memory: device d");
        assert_error(error, KILTER_ERROR_INFEASIBLE, " of this kind) lacks at least ");
        const char *open = strstr(error->message, " bytes)");
        assert_non_null(open);
        while (open[-1] != '(')
            open--;
        uint64_t missing = g_ascii_strtoull(open, NULL, 10);
        for (uint32_t j = 0; j < 5; j++)
            it.view->device[j].memory_bytes += missing - missing / 1000 - 1;
        g_clear_error(&error);
        assert_false(
            balance_ratios(it.linear, it.memory, it.view, 2, ratio, &report, &error));
        g_clear_error(&error);
        for (uint32_t j = 0; j < 5; j++)
            it.view->device[j].memory_bytes += missing / 1000 + 2;
        balance_ratios(it.linear, it.memory, it.view, 2, ratio, &report, &error);
        assert_no_error(error);
        refused++;
    }
    assert_true(refused >= 20);
}

/* A cut is added where a bundle of pieces costs more than the LP said, and nowhere else: few
 * rows. */
static void test_few_cuts(void **state)
{
    (void)state;
    enum { SEEDS = 60 };
    uint32_t rows = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        g_autoptr(GError) error = NULL;
        BalanceReport report;
        double ratio[3 * 4];
        const RandomShape shape = {4, 3, 24, 3, 0, true};
        g_auto(Instance) it = instance_new(seed, &shape, 0);
        balance_ratios(it.linear, NULL, it.view, 3, ratio, &report, &error);
        assert_no_error(error);
        rows += report.rows;
    }
    print_message("%.1f rows in a problem\n", (double)rows / SEEDS);
    assert_at_most(rows, 29 * SEEDS); /* 27.9; 31.4 with cuts where the LP said enough */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_cuts),
        cmocka_unit_test(test_equals_every_vertex),
        cmocka_unit_test(test_no_grid_point_beats_the_bound),
        cmocka_unit_test(test_larger_instances_are_proved),
        cmocka_unit_test(test_many_classes_equal_the_written_lp),
        cmocka_unit_test(test_up_to_64_classes_are_proved),
        cmocka_unit_test(test_permuting_devices_permutes_ratios),
        cmocka_unit_test(test_classes_change_nothing),
        cmocka_unit_test(test_scales_with_time),
        cmocka_unit_test(test_memory_binds),
        cmocka_unit_test(test_missing_bytes_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
