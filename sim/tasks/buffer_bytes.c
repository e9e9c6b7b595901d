/* Bytes of buffers on a device, and their peak. */
#include "data/base/free.h"
#include "sim/tasks/buffers.h"

#include <string.h>

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

/* Tables for several devices, and the changes of bytes on one of them. */
typedef struct {
    const SimCase *sim;
    const PlanBuffers *buffers;
    uint32_t *first,
        *of; /* [group + 1]: its first place in `of`, which has its buffers in order */
    double *change;     /* [instr]: of the bytes there */
    uint64_t *changes;  /* bits [instr]: whether they change there */
    double *last_bytes; /* [tensor]: of its last buffer */
    const PlanBuffer **last;
} Peaks;

/* Puts the buffers of each group one after another. */
static void peaks_by_group(Peaks *p)
{
    const uint32_t n_groups = p->sim->parts->layout.n_groups;
    p->first = g_new0(uint32_t, n_groups + 2);
    p->of = g_new(uint32_t, p->buffers->n + 1);
    items_each (const PlanBuffer, buffer, p->buffers->buffer, p->buffers->n)
        p->first[buffer->group + 2]++;
    for (uint32_t g = 0; g < n_groups; g++)
        p->first[g + 2] += p->first[g + 1];
    for (uint32_t i = 0; i < p->buffers->n; i++)
        p->of[p->first[p->buffers->buffer[i].group + 1]++] = i;
}

/* Whether buffers of a tensor, such as those of several microbatches, have the same bytes. */
static bool bytes_are_alike(const PlanBuffer *a, const PlanBuffer *b)
{
    return a->group == b->group && a->form == b->form && a->held == b->held &&
           a->element_bytes == b->element_bytes;
}

/* Adds a buffer at the device's place in its group. */
static void peaks_add(Peaks *p, const PlanBuffer *buffer, uint32_t place)
{
    const PlanBuffer **of = &p->last[buffer->tensor];
    double *bytes = &p->last_bytes[buffer->tensor];
    if (!*of || !bytes_are_alike(*of, buffer))
        *bytes = sim_buffer_bytes(p->sim, buffer, place);
    *of = buffer;
    const uint32_t at[] = {plan_buffer_first(buffer),
                           plan_buffer_last(p->sim->plan->program, buffer) + 1};
    for (uint32_t k = 0; k < 2; k++) {
        p->change[at[k]] += k ? -*bytes : *bytes;
        p->changes[at[k] / 64] |= UINT64_C(1) << at[k] % 64;
    }
}

/* The largest sum of the changes up to an instruction, which are 0 again then. */
static double peaks_take(Peaks *p, uint32_t *instr)
{
    const uint32_t n = p->sim->plan->program->n;
    double live = 0, peak = 0;
    *instr = 0;
    for (uint32_t w = 0; w <= n / 64; w++)
        for (; p->changes[w]; p->changes[w] &= p->changes[w] - 1) {
            const uint32_t i = 64 * w + (uint32_t)__builtin_ctzll(p->changes[w]);
            live += p->change[i];
            p->change[i] = 0;
            if (live > peak && i < n) {
                peak = live;
                *instr = i;
            }
        }
    return peak;
}

void sim_buffers_peaks(const SimCase *sim, const PlanBuffers *buffers,
                       const uint32_t *device, uint32_t n, double *peak, uint32_t *instr)
{
    const uint32_t n_tensors = graph_n_tensors(sim->graph),
                   end = sim->plan->program->n + 1;
    g_autofree double *change = g_new0(double, end),
                      *last_bytes = g_new(double, n_tensors);
    g_autofree uint64_t *changes = g_new0(uint64_t, end / 64 + 1);
    g_autofree const PlanBuffer **last = g_new(const PlanBuffer *, n_tensors);
    Peaks p = {.sim = sim,
               .buffers = buffers,
               .change = change,
               .changes = changes,
               .last_bytes = last_bytes,
               .last = last};
    peaks_by_group(&p);
    for (uint32_t k = 0; k < n; k++) {
        g_autofree uint32_t *place = sim_group_places(sim, device[k]);
        memset(last, 0, n_tensors * sizeof *last);
        for (uint32_t g = 0; g < sim->parts->layout.n_groups; g++)
            for (uint32_t i = p.first[g]; place[g] != SIM_NOT_THERE && i < p.first[g + 1];
                 i++)
                peaks_add(&p, &buffers->buffer[p.of[i]], place[g]);
        peak[k] = peaks_take(&p, &instr[k]);
    }
    free_each(p.first, p.of);
}
