/* The `analytic` fidelity: equation (1) of sim/sim.h, stage by stage. */
#include <math.h>

#include "sim/evaluate.h"

bool sim_analytic(const SimCase *sim, SimReport *report, GError **error)
{
    g_auto(SimKinds) kinds = sim_kinds(sim->view, sim->linear->n_splits, sim->share);
    g_autofree double *busy_s = g_new0(double, kinds.n);
    uint32_t term = 0;
    (void)error;
    items_at (SimStageReport, stage, i, report->stage, report->n_stages) {
        stage->start_s = report->iteration_time_s;
        stage->comm_s =
            sim_linear_comm_s(sim->linear, sim->view, &kinds, sim->share, i, &term);
        for (uint32_t k = 0; k < kinds.n; k++) {
            const double comp_s =
                sim_linear_comp_s(sim->linear, sim->view, sim->share, i, kinds.first[k]);
            busy_s[k] += comp_s;
            stage->comp_s = fmax(stage->comp_s, comp_s);
        }
        report->comm_s += stage->comm_s;
        report->comp_s += stage->comp_s;
        report->iteration_time_s = report->comm_s + report->comp_s;
    }
    for (uint32_t j = 0; j < report->n_devices; j++) {
        report->busy_s[j] = busy_s[kinds.of[j]];
        report->comm_busy_s[j] = report->comm_s;
    }
    return true;
}
