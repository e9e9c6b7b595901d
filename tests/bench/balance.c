/* The ratio LP against GLPK's dual simplex on the LP as written: one column per device, stage and
 * term, one row per stage and device. Both solve the same instances in the same run; results are
 * medians over instances. The written LP of thousands of stages gets LIMIT_S seconds, so its ratio
 * may be a lower bound. */
#include <math.h>

#include "balance/balance.h"
#include "tests/bench/bench.h"
#include "tests/support/random_linear.h"
#include "tests/support/written_lp.h"

enum { LIMIT_S = 10, MAX_DEVICES = 64 };

/* Seconds of GLPK on the written LP; its objective plus the constant communication, or
 * NaN at the limit. */
static double solve_written(const SimLinear *linear, const ClusterView *view,
                            double *time_s)
{
    gint64 begin = g_get_monotonic_time();
    *time_s = written_lp_time(linear, view, LIMIT_S);
    return 1e-6 * (double)(g_get_monotonic_time() - begin);
}

static double median(GArray *seconds)
{
    g_array_sort(seconds, bench_order);
    return g_array_index(seconds, double, seconds->len / 2);
}

static void compare(uint32_t n_stages, uint32_t n_devices, uint32_t n_classes,
                    uint32_t instances)
{
    const RandomShape shape = {n_devices, n_classes, n_stages, 1, 0.5, true};
    g_autoptr(GArray) ours = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) written = g_array_new(FALSE, FALSE, sizeof(double));
    bool limited = false;
    double difference = 0;
    for (uint32_t seed = 0; seed < instances; seed++) {
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        ClusterView *view = random_view(random, &shape);
        g_autoptr(SimLinear) linear = random_linear(random, &shape);
        double ratio[MAX_DEVICES], time_s;
        BalanceReport report = {0};
        g_autoptr(GError) error = NULL;
        if (!balance_ratios(linear, NULL, view, 1, ratio, &report, &error))
            g_error("%s", error->message);
        double seconds = solve_written(linear, view, &time_s);
        g_array_append_val(ours, report.solve_s);
        g_array_append_val(written, seconds);
        limited = limited || isnan(time_s);
        if (!isnan(time_s))
            difference = fmax(difference, fabs(time_s / report.time_s - 1));
        random_view_free(view);
    }
    double a = median(ours), b = median(written);
    printf("%6u x %2u, %2u classes %11.3f %14.3f %s%8.1f", n_stages, n_devices, n_classes,
           1e3 * a, 1e3 * b, limited ? ">" : " ", b / a);
    if (limited)
        printf("\n");
    else
        printf(" %14.1e\n", difference);
}

int main(void)
{
    printf("%-23s %10s %14s %9s %14s\n", "stages x devices", "kilter ms", "written LP ms",
           "ratio", "difference");
    compare(50, 8, 2, 31);
    compare(50, 8, 4, 31);
    compare(50, 8, 8, 31);
    compare(500, 8, 2, 5);
    compare(500, 8, 8, 5);
    compare(5000, 8, 2, 1);
    compare(5000, 8, 8, 1);
    compare(500, 64, 64, 1);
    compare(5000, 64, 64, 1);
    return 0;
}
