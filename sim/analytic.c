/* The `analytic` fidelity: equation (1) of sim/sim.h, stage by stage. */
#include <math.h>

#include "sim/evaluate.h"

static bool run(const SimCase *sim, SimReport *report, GError **error)
{
    uint32_t term = 0;

    (void)error;
    for (uint32_t i = 0; i < report->n_stages; i++) {
        SimStageReport *stage = &report->stage[i];
        stage->start_s = report->iteration_time_s;
        stage->comm_s = sim_linear_comm_s(sim->linear, sim->view, sim->share, i, &term);
        for (uint32_t j = 0; j < report->n_devices; j++) {
            const double comp_s =
                sim_linear_comp_s(sim->linear, sim->view, sim->share, i, j);
            report->busy_s[j] += comp_s;
            report->comm_busy_s[j] += stage->comm_s;
            stage->comp_s = fmax(stage->comp_s, comp_s);
        }
        report->comm_s += stage->comm_s;
        report->comp_s += stage->comp_s;
        report->iteration_time_s = report->comm_s + report->comp_s;
    }
    return true;
}

const SimEvaluator sim_analytic = {
    {"analytic", "the stage-synchronized formula (HAP Sec. 3.2)"},
    true,
    run,
};
