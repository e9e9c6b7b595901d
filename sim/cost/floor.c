/* The least memory of any program of one microbatch: parameters, optimizer states, and all tensors
 * of the forward that the backward reads, each once on all devices together. */
#include "sim/sim.h"

/* For each root tensor the fewest bytes among its views that the backward reads; 0: none. */
static double *kept_bytes(const Graph *graph)
{
    double *kept = g_new0(double, graph_n_tensors(graph));
    ops_each (op, id, graph) {
        for (uint32_t i = 0; op->pass == PASS_BACKWARD && i < op->n_in; i++) {
            const Tensor *tensor = graph_tensor(graph, op->in[i]);
            if (tensor->role != ROLE_ACTIVATION)
                continue;
            const TensorId root = graph_viewed(graph, op->in[i]);
            const double bytes = (double)tensor_bytes(tensor);
            kept[root] = kept[root] > 0 ? MIN(kept[root], bytes) : bytes;
        }
    }
    return kept;
}

SimMemoryFloor sim_memory_floor(const Graph *graph)
{
    SimMemoryFloor floor = {0};
    g_autofree double *kept = kept_bytes(graph);
    tensors_each (tensor, id, graph) {
        floor.adapts |= tensor->frozen;
        if (tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER)
            floor.held_bytes += (double)tensor_bytes(tensor);
        else if (tensor->role == ROLE_ACTIVATION)
            floor.divided_bytes += kept[id];
    }
    return floor;
}

bool sim_memory_floor_fits(const SimMemoryFloor *floor, const ClusterView *view)
{
    double devices = 0, gpus = 0;
    uint32_t most = 1, least = UINT32_MAX;
    items_each (const Device, device, view->device, view->n_devices) {
        devices += (double)device->memory_bytes;
        gpus += (double)device->memory_bytes * device->gpus;
        most = MAX(most, device->gpus);
        least = MIN(least, device->gpus);
    }
    return floor->held_bytes + floor->divided_bytes / most <= devices &&
           floor->held_bytes * least + floor->divided_bytes <= gpus;
}
