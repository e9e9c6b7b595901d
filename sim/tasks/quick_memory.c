/* The memory that programs need on the devices of a quick simulation. */
#include "sim/tasks/buffers.h"
#include "sim/tasks/quick_parts.h"

bool sim_quick_memory(SimQuick *q, const Program *program, uint64_t *peak)
{
    const uint32_t n_lanes = q->teams->n_lanes;
    Plan plan = {.program = (Program *)program};
    SimCase sim = q->sim;
    sim.plan = &plan;
    g_autoptr(Instances) instances =
        instances_new(program, q->graph, q->parts->layout.batch);
    g_autofree uint16_t *segment = plan_segments(program, q->graph, NULL);
    g_autoptr(PlanBuffers) buffers = plan_buffers(program, q->graph, instances, segment);
    sim_buffers_add_runtime(buffers, q->view->runtime, NULL, program, q->graph);
    g_autofree double *of_lane = g_new(double, n_lanes);
    g_autofree uint32_t *instr = g_new(uint32_t, n_lanes);
    sim_buffers_peaks(&sim, buffers, q->teams->device, n_lanes, of_lane, instr);
    bool fits = true;
    for (uint32_t j = 0; j < q->view->n_devices; j++) {
        peak[j] = sim_whole_bytes(of_lane[q->teams->lane[j]]);
        fits = fits && peak[j] <= q->view->device[j].memory_bytes;
    }
    return fits;
}
