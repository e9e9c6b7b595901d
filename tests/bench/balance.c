/* The ratio LP against GLPK's dual simplex on the LP as written: a column for every
 * device, stage and term, a row for every stage and device. Same instances, same run;
 * medians over instances. The written LP of thousands of stages is given LIMIT_S seconds,
 * and its ratio is then a lower bound. */
#include <glpk.h>
#include <math.h>

#include "balance/balance.h"
#include "tests/bench/bench.h"
#include "tests/support/random_linear.h"

enum { LIMIT_S = 10 };

/* Seconds that a whole sharded dim takes on the device. */
static double slope(const SimLinear *linear, uint32_t i, const Device *device)
{
    SimWork work = linear->stage[i].fixed;
    double fixed = sim_work_s(&work, device, 0);
    work.flops += linear->flops[i];
    work.inner_bytes += linear->inner_bytes[i];
    return sim_work_s(&work, device, 0) - fixed;
}

/* Columns 1..n: ratios; then T_i, then M_t. Rows: sum of ratios, (1), (2) of balance.h.
 * One segment. */
static glp_prob *written_lp(const SimLinear *linear, const ClusterView *view)
{
    int n = (int)view->n_devices, n_stages = (int)linear->n_stages,
        n_terms = (int)linear->n_terms;
    glp_prob *lp = glp_create_prob();
    glp_add_cols(lp, n + n_stages + n_terms);
    for (int j = 1; j <= n + n_stages + n_terms; j++) {
        glp_set_col_bnds(lp, j, GLP_LO, 0, 0);
        glp_set_obj_coef(lp, j,
                         j <= n ? 0
                         : j <= n + n_stages
                             ? 1
                             : linear->term[j - n - n_stages - 1].seconds);
    }
    glp_add_rows(lp, 1 + (n_stages + n_terms) * n);
    g_autofree int *index = g_new(int, n + 3);
    g_autofree double *value = g_new(double, n + 3);
    for (int j = 1; j <= n; j++) {
        index[j] = j;
        value[j] = 1;
    }
    glp_set_row_bnds(lp, 1, GLP_FX, 1, 1);
    glp_set_mat_row(lp, 1, n, index, value);
    int row = 2;
    for (int i = 0; i < n_stages + n_terms; i++) {
        for (int j = 0; j < n; j++, row++) {
            const Device *device = &view->device[j];
            bool stage = i < n_stages;
            index[1] = n + 1 + i;
            value[1] = 1;
            index[2] = j + 1;
            value[2] = stage ? -slope(linear, (uint32_t)i, device) : -1;
            glp_set_row_bnds(lp, row, GLP_LO,
                             stage ? sim_work_s(&linear->stage[i].fixed, device, 0) : 0,
                             0);
            glp_set_mat_row(lp, row, 2, index, value);
        }
    }
    return lp;
}

/* Seconds of GLPK on the written LP; its objective plus the constant communication, or
 * NaN at the limit. */
static double solve_written(const SimLinear *linear, const ClusterView *view,
                            double *time_s)
{
    gint64 begin = g_get_monotonic_time();
    glp_term_out(GLP_OFF);
    glp_prob *lp = written_lp(linear, view);
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUAL;
    options.tm_lim = 1000 * LIMIT_S;
    int code = glp_simplex(lp, &options);
    *time_s = code == 0 && glp_get_status(lp) == GLP_OPT ? glp_get_obj_val(lp) : NAN;
    for (uint32_t i = 0; i < linear->n_stages; i++)
        *time_s += linear->stage[i].comm_s;
    glp_delete_prob(lp);
    glp_free_env();
    return 1e-6 * (double)(g_get_monotonic_time() - begin);
}

static double median(GArray *seconds)
{
    g_array_sort(seconds, bench_order);
    return g_array_index(seconds, double, seconds->len / 2);
}

static void compare(uint32_t n_stages, uint32_t n_classes, uint32_t instances)
{
    const RandomShape shape = {8, n_classes, n_stages, 1, 0.5, true};
    g_autoptr(GArray) ours = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) written = g_array_new(FALSE, FALSE, sizeof(double));
    bool limited = false;
    double difference = 0;
    for (uint32_t seed = 0; seed < instances; seed++) {
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        ClusterView *view = random_view(random, &shape);
        g_autoptr(SimLinear) linear = random_linear(random, &shape);
        double ratio[8], time_s;
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
    printf("%6u x 8, %u classes %12.3f %14.3f %s%8.1f", n_stages, n_classes, 1e3 * a,
           1e3 * b, limited ? ">" : " ", b / a);
    if (limited)
        printf("\n");
    else
        printf(" %14.1e\n", difference);
}

int main(void)
{
    printf("%-23s %10s %14s %9s %14s\n", "stages x devices", "kilter ms", "written LP ms",
           "ratio", "difference");
    compare(50, 2, 31);
    compare(50, 4, 31);
    compare(50, 8, 31);
    compare(500, 2, 5);
    compare(500, 8, 5);
    compare(5000, 2, 1);
    compare(5000, 8, 1);
    return 0;
}
