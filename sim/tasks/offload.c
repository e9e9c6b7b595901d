/* States that lie in the host's memory (the strategy's `offload`). */
#include <math.h>

#include "sim/tasks/buffers.h"

/* Whether a tensor is an optimizer state, or its next value. */
static bool is_state(const Graph *graph, const Tensor *tensor)
{
    return tensor->role == ROLE_OPTIMIZER ||
           (tensor->role == ROLE_UPDATED &&
            graph_tensor(graph, tensor->of)->role == ROLE_OPTIMIZER);
}

/* Whether an update reads the buffer last, which holds a gradient. */
static bool is_updated_by(const PlanBuffers *buffers, const PlanBuffer *buffer,
                          const Program *program, const Graph *graph)
{
    if (graph_tensor(graph, buffer->tensor)->role != ROLE_GRADIENT || buffer->n == 0)
        return false;
    const Instr *last = &program->instr[buffers->use[buffer->first + buffer->n - 1]];
    return last->kind == INSTR_COMPUTE &&
           graph_get_op(graph, last->op)->pass == PASS_UPDATE;
}

/* Moves to the host what the strategy offloads. */
static void buffers_offload(PlanBuffers *buffers, const Strategy *strategy,
                            const Program *program, const Graph *graph)
{
    enum { GRADIENTS = 2, F32_BYTES = 4 };
    for (uint32_t b = 0; strategy->offload && b < buffers->n; b++) {
        PlanBuffer *buffer = &buffers->buffer[b];
        /* gradients are added up on the device, unless replicas divide them as they are made */
        const bool gradient =
            strategy->zero >= GRADIENTS && is_updated_by(buffers, buffer, program, graph);
        if (!gradient && !is_state(graph, graph_tensor(graph, buffer->tensor)))
            continue;
        buffer->host_bytes = gradient ? F32_BYTES : buffer->element_bytes;
        buffer->element_bytes = 0;
    }
}

PlanBuffers *sim_case_buffers(const SimCase *sim)
{
    const PlanLayout *layout = &sim->parts->layout;
    PlanBuffers *buffers =
        plan_buffers(sim->plan->program, sim->graph, layout->instances, layout->segment);
    buffers_offload(buffers, &sim->plan->strategy, sim->plan->program, sim->graph);
    return buffers;
}

double sim_host_bytes(const SimCase *sim, const PlanBuffers *buffers, uint32_t device)
{
    g_autofree uint32_t *place = sim_group_places(sim, device);
    double bytes = 0;
    for (uint32_t b = 0; b < buffers->n; b++) {
        PlanBuffer there = buffers->buffer[b];
        there.element_bytes = there.host_bytes;
        if (there.host_bytes > 0 && place[there.group] != SIM_NOT_THERE)
            bytes += sim_buffer_bytes(sim, &there, place[there.group]);
    }
    return bytes * fmax(sim->runtime ? sim->runtime->host : 1, 1) *
           sim->view->device[device].gpus;
}

double sim_offload_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                     uint32_t i)
{
    const Graph *graph = parts->layout.graph;
    const Op *op = graph_get_op(graph, instr->op);
    const Device *device = &view->device[parts->layout.group[instr->group].device[i]];
    const Machine *machine = &view->cluster->machine[device->machine];
    double sent = 0, passed = 0;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const TensorId t = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
        const Tensor *tensor = graph_tensor(graph, t);
        const double bytes = (double)tensor_bytes(tensor) *
                             sim_part_of(parts, instr->group, t, instr->form[k], i);
        const bool moves = tensor->role == ROLE_GRADIENT ||
                           (tensor->role == ROLE_UPDATED && !is_state(graph, tensor));
        sent += moves ? bytes : 0;
        passed += tensor->role == ROLE_GRADIENT || is_state(graph, tensor) ? bytes : 0;
    }
    const double memory = machine->host_bandwidth * device->gpus / machine->gpus;
    return sent / fmin(machine->host_link * device->gpus, memory) + passed / memory;
}
