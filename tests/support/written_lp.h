/* The ratio LP as written in balance.h, one segment, no memory: one column per device, stage and
 * term, one row per stage and device, solved by GLPK's dual simplex. */
#ifndef KILTER_TESTS_WRITTEN_LP_H
#define KILTER_TESTS_WRITTEN_LP_H

#include <glpk.h>
#include <math.h>

#include "sim/sim.h"

/* The seconds that the whole sharded work takes on the device. */
static inline double written_lp_slope(const SimLinear *linear, uint32_t i,
                                      const Device *device)
{
    SimWork work = linear->stage[i].fixed;
    double fixed = sim_work_s(&work, device, 0);
    work.flops += linear->flops[i];
    work.inner_bytes += linear->inner_bytes[i];
    return sim_work_s(&work, device, 0) - fixed;
}

/* Columns 1..n: ratios; then T_i, then M_t. Rows: sum of ratios, (1), (2) of balance.h.
 * One segment. */
static inline glp_prob *written_lp(const SimLinear *linear, const ClusterView *view)
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
            value[2] = stage ? -written_lp_slope(linear, (uint32_t)i, device) : -1;
            glp_set_row_bnds(lp, row, GLP_LO,
                             stage ? sim_work_s(&linear->stage[i].fixed, device, 0) : 0,
                             0);
            glp_set_mat_row(lp, row, 2, index, value);
        }
    }
    return lp;
}

/* The optimum with the constant communication, or NaN after limit_s seconds. */
static inline double written_lp_time(const SimLinear *linear, const ClusterView *view,
                                     int limit_s)
{
    glp_term_out(GLP_OFF);
    glp_prob *lp = written_lp(linear, view);
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUAL;
    options.tm_lim = 1000 * limit_s;
    int code = glp_simplex(lp, &options);
    double time_s =
        code == 0 && glp_get_status(lp) == GLP_OPT ? glp_get_obj_val(lp) : NAN;
    for (uint32_t i = 0; i < linear->n_stages; i++)
        time_s += linear->stage[i].comm_s;
    glp_delete_prob(lp);
    glp_free_env();
    return time_s;
}

#endif
