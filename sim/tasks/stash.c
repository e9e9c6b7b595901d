/* Activations that wait in the host's memory from the forward to the backward (the strategy's
 * `offload`), as buffers.
 *
 * What the forward keeps for the backward, or for computing a layer again, goes to the host after
 * the last computation of the forward that uses it, and comes back before its first later use, if a
 * whole run lies between. So it has three buffers: on the device before, on the host, and on the
 * device after. With these all buffers of a case are known. */
#include <math.h>

#include "sim/tasks/buffers.h"

/* The number of the buffer's uses in the forward after which it goes to the host, and the last
 * computation among them; 0: it stays. */
static uint32_t uses_before(const Program *program, const SimRuns *runs,
                            const PlanBuffer *buffer, const uint32_t *use, uint32_t *last)
{
    const Instr *instr = program->instr;
    uint32_t k = 0, run = 0;
    for (; k < buffer->n && !runs->again[runs->of[use[k]]]; k++)
        if (instr[use[k]].kind == INSTR_COMPUTE && instr[use[k]].group == buffer->group) {
            run = runs->of[use[k]];
            *last = use[k];
        }
    if (run == 0 || k == buffer->n || instr[use[k]].group != buffer->group)
        return 0;
    const uint32_t back = runs->of[use[k]];
    return run == back || run == runs->before[back] ? 0 : k;
}

/* Appends the buffer on the host and the one of the uses from k on, and ends the buffer before. */
static void split(PlanBuffers *buffers, uint32_t b, uint32_t k, uint32_t leaves)
{
    PlanBuffer there = buffers->buffer[b], back = there;
    const uint32_t *use = buffers->use + there.first;
    there.birth = use[k - 1];
    there.busy_until = back.birth = use[k];
    there.host_bytes = there.element_bytes;
    there.element_bytes = there.n = 0;
    back.returns = true;
    back.first += k;
    back.n -= k;
    buffers->buffer[b].busy_until = use[k - 1];
    buffers->buffer[b].leaves = leaves + 1;
    buffers->buffer[b].n = k;
    buffers->buffer[buffers->n++] = there;
    buffers->buffer[buffers->n++] = back;
}

/* Lets activations wait on hosts between the forward and the backward. */
static void buffers_stash(PlanBuffers *buffers, const Program *program,
                          const Graph *graph)
{
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_auto(SimRuns) runs = sim_runs(program, graph, layer);
    const uint32_t n = buffers->n;
    buffers->buffer = g_renew(PlanBuffer, buffers->buffer, 3 * (size_t)n + 1);
    items_at (const PlanBuffer, buffer, b, buffers->buffer, n) {
        uint32_t last = 0;
        const uint32_t k =
            plan_buffer_is_kept(graph, buffer)
                ? uses_before(program, &runs, buffer, buffers->use + buffer->first, &last)
                : 0;
        if (k > 0)
            split(buffers, b, k, last);
    }
}

PlanBuffers *sim_held_buffers(const SimCase *sim)
{
    const PlanLayout *layout = &sim->parts->layout;
    const Program *program = sim->plan->program;
    PlanBuffers *buffers =
        plan_buffers(program, sim->graph, layout->instances, layout->segment);
    sim_buffers_ring(buffers, &sim->plan->strategy, program, sim->graph);
    sim_buffers_offload(buffers, &sim->plan->strategy, program, sim->graph);
    sim_buffers_add_runtime(buffers, sim->runtime, program, sim->graph);
    if (strategy_offloads(&sim->plan->strategy, OFFLOAD_ACTIVATIONS))
        buffers_stash(buffers, program, sim->graph);
    return buffers;
}

PlanBuffers *sim_host_buffers(const SimCase *sim)
{
    const double states = fmax(sim->runtime ? sim->runtime->host : 1, 1);
    PlanBuffers *buffers = sim_held_buffers(sim);
    items_each (PlanBuffer, buffer, buffers->buffer, buffers->n)
        buffer->element_bytes =
            buffer->host_bytes * (plan_buffer_is_kept(sim->graph, buffer) ? 1 : states);
    return buffers;
}

double sim_host_bytes(const SimCase *sim, const PlanBuffers *buffers, uint32_t device)
{
    double peak;
    uint32_t instr;
    sim_buffers_peaks(sim, buffers, &device, 1, &peak, &instr);
    return peak * sim->view->device[device].gpus;
}
