/* States that lie in the host's memory (the strategy's `offload`). */
#include <math.h>

#include "sim/tasks/buffers.h"

/* The level of ZeRO from which on gradients lie on the host, too. */
enum { GRADIENTS = 2 };

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

/* Whether an instruction only loads or updates what rests. */
static bool leaves_at_rest(const Instr *instr, const Graph *graph)
{
    return instr->kind == INSTR_LOAD ||
           (instr->kind == INSTR_COMPUTE &&
            graph_get_op(graph, instr->op)->pass == PASS_UPDATE);
}

/* The number of uses from the k-th one on that need one copy: one that gathers, or those of runs
 * with none between them. */
static uint32_t uses_of_copy(const PlanBuffers *buffers, const PlanBuffer *buffer,
                             uint32_t k, const Program *program, const Graph *graph,
                             const SimRuns *runs)
{
    const uint32_t *use = buffers->use + buffer->first;
    uint32_t n = 1;
    while (program->instr[use[k]].kind == INSTR_COMPUTE && k + n < buffer->n &&
           !leaves_at_rest(&program->instr[use[k + n]], graph) &&
           (runs->of[use[k + n]] == runs->of[use[k + n - 1]] ||
            runs->before[runs->of[use[k + n]]] == runs->of[use[k + n - 1]]))
        n++;
    return n;
}

/* Of a parameter on the host what is gathered or computed with, and of a gradient what is made, is
 * on the device as long as that takes. */
static void add_fetched(PlanBuffers *buffers, uint32_t b, const Program *program,
                        const Graph *graph, const SimRuns *runs)
{
    const PlanBuffer whole = buffers->buffer[b];
    for (uint32_t k = 0, n; k < whole.n; k += n) {
        PlanBuffer part = whole;
        n = uses_of_copy(buffers, &whole, k, program, graph, runs);
        part.birth = buffers->use[whole.first + k];
        if (leaves_at_rest(&program->instr[part.birth], graph))
            continue;
        part.busy_until = buffers->use[whole.first + k + n - 1];
        part.at_rest = part.stays = false;
        part.beside = true;
        part.returns = whole.at_rest;
        part.first += k;
        part.n = n;
        buffers->buffer = g_renew(PlanBuffer, buffers->buffer, buffers->n + 1);
        buffers->buffer[buffers->n++] = part;
    }
}

void sim_buffers_offload(PlanBuffers *buffers, const Strategy *strategy,
                         const Program *program, const Graph *graph)
{
    enum { F32_BYTES = 4 };
    const bool weights = strategy_offloads(strategy, OFFLOAD_PARAMETERS);
    const uint32_t n = strategy_offloads(strategy, OFFLOAD_OPTIMIZER) ? buffers->n : 0;
    g_autofree uint32_t *layer = graph_tensor_layers(graph);
    g_auto(SimRuns) runs = n > 0 ? sim_runs(program, graph, layer) : (SimRuns){0};
    for (uint32_t b = 0; b < n; b++) {
        const Tensor *tensor = graph_tensor(graph, buffers->buffer[b].tensor);
        const bool fetched =
            weights && buffers->buffer[b].at_rest && tensor->role == ROLE_PARAMETER;
        /* below that level gradients are added up on the device */
        const bool gradient =
            strategy->zero >= GRADIENTS &&
            sim_is_final_gradient(buffers->use, &buffers->buffer[b], program, graph);
        if (fetched || gradient)
            add_fetched(buffers, b, program, graph, &runs);
        PlanBuffer *buffer = &buffers->buffer[b];
        if (!gradient && !fetched && !is_state(graph, tensor))
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
    const Plan *plan = parts->layout.plan;
    const bool stays = strategy_offloads(&plan->strategy, OFFLOAD_PARAMETERS);
    const uint32_t times =
        plan->strategy.zero >= GRADIENTS ? MAX(plan->program->n_microbatches, 1) : 1;
    double sent = 0, passed = 0;
    for (uint32_t k = 0; k < op->n_in + op->n_out; k++) {
        const TensorId t = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
        const Tensor *tensor = graph_tensor(graph, t);
        const bool gradient = tensor->role == ROLE_GRADIENT;
        const double bytes = (gradient ? times : 1) * (double)tensor_bytes(tensor) *
                             sim_part_of(parts, instr->group, t, instr->form[k], i);
        const bool state = is_state(graph, tensor),
                   updated = tensor->role == ROLE_UPDATED && !state;
        sent += gradient || (updated && !stays) ? bytes : 0;
        passed += gradient || state || (updated && stays) ? bytes : 0;
    }
    return sim_link_s(view, device, sent) + passed / memory_rate(view, device);
}
