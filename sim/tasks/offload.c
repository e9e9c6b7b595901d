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

bool sim_is_final_gradient(const uint32_t *use, const PlanBuffer *buffer,
                           const Program *program, const Graph *graph)
{
    if (graph_tensor(graph, buffer->tensor)->role != ROLE_GRADIENT || buffer->n == 0)
        return false;
    const Instr *last = &program->instr[use[buffer->first + buffer->n - 1]];
    return last->kind == INSTR_COMPUTE &&
           graph_get_op(graph, last->op)->pass == PASS_UPDATE;
}

/* Whether a buffer at rest is only gathered from and updated. */
static bool is_gathered(const PlanBuffers *buffers, uint32_t b, const Program *program,
                        const Graph *graph)
{
    const PlanBuffer *buffer = &buffers->buffer[b];
    bool gathered =
        buffer->at_rest && graph_tensor(graph, buffer->tensor)->role == ROLE_PARAMETER;
    for (uint32_t u = buffer->first; gathered && u < buffer->first + buffer->n; u++) {
        const Instr *instr = &program->instr[buffers->use[u]];
        gathered = instr->kind != INSTR_COMPUTE ||
                   graph_get_op(graph, instr->op)->pass == PASS_UPDATE;
    }
    return gathered;
}

/* Of a parameter on the host the part that is gathered is on the device as long as that takes. */
static void add_fetched(PlanBuffers *buffers, uint32_t b, const Program *program)
{
    for (uint32_t k = 0; k < buffers->buffer[b].n; k++) {
        PlanBuffer part = buffers->buffer[b];
        const uint32_t at = buffers->use[part.first + k];
        if (program->instr[at].kind != INSTR_COLLECTIVE)
            continue;
        part.birth = part.busy_until = at;
        part.at_rest = part.stays = false;
        part.beside = part.returns = true;
        part.first += k;
        part.n = 1;
        buffers->buffer = g_renew(PlanBuffer, buffers->buffer, buffers->n + 1);
        buffers->buffer[buffers->n++] = part;
    }
}

void sim_buffers_offload(PlanBuffers *buffers, const Strategy *strategy,
                         const Program *program, const Graph *graph)
{
    enum { GRADIENTS = 2, F32_BYTES = 4 };
    const bool weights = strategy_offloads(strategy, OFFLOAD_PARAMETERS);
    const uint32_t n = strategy_offloads(strategy, OFFLOAD_OPTIMIZER) ? buffers->n : 0;
    for (uint32_t b = 0; b < n; b++) {
        const bool fetched = weights && is_gathered(buffers, b, program, graph);
        if (fetched)
            add_fetched(buffers, b, program);
        PlanBuffer *buffer = &buffers->buffer[b];
        /* gradients are added up on the device, unless replicas divide them as they are made */
        const bool gradient = strategy->zero >= GRADIENTS &&
                              sim_is_final_gradient(buffers->use, buffer, program, graph);
        if (!gradient && !fetched &&
            !is_state(graph, graph_tensor(graph, buffer->tensor)))
            continue;
        buffer->stands |= gradient;
        buffer->host_bytes = gradient ? F32_BYTES : buffer->element_bytes;
        buffer->element_bytes = 0;
    }
}

/* Bytes per second of the host's memory that a device has. */
static double memory_rate(const ClusterView *view, const Device *device)
{
    const Machine *machine = &view->cluster->machine[device->machine];
    return machine->host_bandwidth * device->gpus / machine->gpus;
}

double sim_link_s(const ClusterView *view, const Device *device, double bytes)
{
    const Machine *machine = &view->cluster->machine[device->machine];
    return bytes / fmin(machine->host_link * device->gpus, memory_rate(view, device));
}

double sim_offload_s(const SimParts *parts, const ClusterView *view, const Instr *instr,
                     uint32_t i)
{
    const Graph *graph = parts->layout.graph;
    const Op *op = graph_get_op(graph, instr->op);
    const Device *device = &view->device[parts->layout.group[instr->group].device[i]];
    const bool stays =
        strategy_offloads(&parts->layout.plan->strategy, OFFLOAD_PARAMETERS);
    double sent = 0, passed = 0;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const TensorId t = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
        const Tensor *tensor = graph_tensor(graph, t);
        const double bytes = (double)tensor_bytes(tensor) *
                             sim_part_of(parts, instr->group, t, instr->form[k], i);
        const bool gradient = tensor->role == ROLE_GRADIENT,
                   state = is_state(graph, tensor),
                   updated = tensor->role == ROLE_UPDATED && !state;
        sent += gradient || (updated && !stays) ? bytes : 0;
        passed += gradient || state || (updated && stays) ? bytes : 0;
    }
    return sim_link_s(view, device, sent) + passed / memory_rate(view, device);
}
