/* The memory that programs need, with each tensor's bytes on each device of a group looked up. */
#include <math.h>

#include "sim/tasks/buffers.h"
#include "sim/tasks/quick_parts.h"

/* Bytes of a buffer at the first device of a lane, which is the group's k-th. */
static double bytes_of(SimQuick *q, const SimCase *sim, const PlanBuffer *buffer,
                       uint32_t k)
{
    const SimGroupTeams *lanes = &q->teams->group[buffer->group];
    double **of = &q->part[buffer->group];
    const size_t n = (size_t)q->n_tensors * lanes->n_lanes;
    if (!*of) {
        *of = g_new(double, n + 1);
        for (size_t i = 0; i < n; i++)
            (*of)[i] = NAN;
    }
    double *part = &(*of)[(size_t)buffer->tensor * lanes->n_lanes + k];
    KILTER_ASSERT(buffer->form == FORM_IDENTITY);
    if (isnan(*part))
        *part = sim_part_of(sim->parts, buffer->group, buffer->tensor, buffer->form,
                            lanes->place[k]);
    return plan_buffer_whole_bytes(q->graph, buffer) * *part /
           (buffer->held ? 1 : sim->view->device[q->teams->device[lanes->lane[k]]].gpus);
}

/* [lane * (instructions + 1) + instruction]: how the bytes change there. */
static double *find_changes(SimQuick *q, const Program *program,
                            const PlanBuffers *buffers)
{
    const size_t stride = (size_t)program->n + 1;
    double *change = g_new0(double, q->teams->n_lanes *stride);
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n) {
        const SimGroupTeams *lanes = &q->teams->group[buffer->group];
        for (uint32_t k = 0; k < lanes->n_lanes; k++) {
            const double bytes = bytes_of(q, &q->sim, buffer, k);
            double *of = &change[lanes->lane[k] * stride];
            of[plan_buffer_first(buffer)] += bytes;
            of[plan_buffer_last(program, buffer) + 1] -= bytes;
        }
    }
    return change;
}

static uint64_t find_peak(const double *change, uint32_t n)
{
    double live = 0, peak = 0;
    for (uint32_t i = 0; i < n; i++) {
        live += change[i];
        peak = MAX(peak, live);
    }
    return sim_whole_bytes(peak);
}

bool sim_quick_memory(SimQuick *q, const Program *program, uint64_t *peak)
{
    g_autoptr(Instances) instances =
        instances_new(program, q->graph, q->parts->layout.batch);
    g_autofree uint16_t *segment = plan_segments(program, q->graph, NULL);
    g_autoptr(PlanBuffers) buffers = plan_buffers(program, q->graph, instances, segment);
    sim_buffers_add_runtime(buffers, q->view->runtime, program, q->graph);
    g_autofree double *change = find_changes(q, program, buffers);
    g_autofree uint64_t *of_lane = g_new(uint64_t, q->teams->n_lanes);
    bool fits = true;
    for (uint32_t l = 0; l < q->teams->n_lanes; l++)
        of_lane[l] = find_peak(&change[l * ((size_t)program->n + 1)], program->n);
    for (uint32_t j = 0; j < q->view->n_devices; j++) {
        peak[j] = of_lane[q->teams->lane[j]];
        fits = fits && peak[j] <= q->view->device[j].memory_bytes;
    }
    return fits;
}
