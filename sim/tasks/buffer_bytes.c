/* Bytes of buffers on a device, and their peak. */
#include "sim/tasks/buffers.h"

double sim_buffer_bytes(const SimCase *sim, const PlanBuffer *buffer, uint32_t i)
{
    KILTER_ASSERT(i < sim->parts->layout.group[buffer->group].n_replicas *
                          sim->parts->layout.group[buffer->group].n_devices);
    const uint32_t device = sim->parts->layout.group[buffer->group].device[i];
    return plan_buffer_whole_bytes(sim->graph, buffer) *
           sim_part_of(sim->parts, buffer->group, buffer->tensor, buffer->form, i) /
           (buffer->held ? 1 : sim->view->device[device].gpus);
}

uint32_t *sim_group_places(const SimCase *sim, uint32_t device)
{
    g_assert(device < sim->view->n_devices);
    const SimParts *parts = sim->parts;
    uint32_t *place = g_new(uint32_t, parts->layout.n_groups);
    items_at (const DeviceGroup, group, g, parts->layout.group, parts->layout.n_groups) {
        place[g] = SIM_NOT_THERE;
        for (uint32_t i = 0; i < group->n_replicas * group->n_devices; i++)
            if (group->device[i] == device)
                place[g] = i;
    }
    return place;
}

/* Whether buffers of a tensor, such as those of several microbatches, have the same bytes. */
static bool is_alike(const PlanBuffer *a, const PlanBuffer *b)
{
    return a->group == b->group && a->form == b->form && a->held == b->held &&
           a->element_bytes == b->element_bytes;
}

double sim_buffers_peak(const SimCase *sim, const PlanBuffers *buffers, uint32_t device,
                        uint32_t *instr)
{
    const uint32_t n = sim->plan->program->n;
    g_autofree double *change = g_new0(double, (size_t)n + 1);
    g_autofree uint32_t *place = sim_group_places(sim, device);
    g_autofree double *last_bytes = g_new(double, graph_n_tensors(sim->graph));
    g_autofree const PlanBuffer **last =
        g_new0(const PlanBuffer *, graph_n_tensors(sim->graph));
    double live = 0, peak = 0;
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n) {
        if (place[buffer->group] == SIM_NOT_THERE)
            continue;
        const PlanBuffer **of = &last[buffer->tensor];
        double *bytes = &last_bytes[buffer->tensor];
        if (!*of || !is_alike(*of, buffer))
            *bytes = sim_buffer_bytes(sim, buffer, place[buffer->group]);
        *of = buffer;
        change[plan_buffer_first(buffer)] += *bytes;
        change[plan_buffer_last(sim->plan->program, buffer) + 1] -= *bytes;
    }
    *instr = 0;
    for (uint32_t i = 0; i < n; i++) {
        live += change[i];
        if (live > peak) {
            peak = live;
            *instr = i;
        }
    }
    return peak;
}
