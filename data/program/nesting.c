/* The order of cuts where shards and positions cut the same dim. */
#include "data/program/nesting.h"

#include <string.h>

/* Whether dim 1 counts experts, and not places of a sequence. An op without experts of its own
 * passes it on from the first input that has it. */
static bool counts_experts(const Graph *graph, TensorId tensor)
{
    for (bool found = true; found;) {
        const Tensor *t = graph_tensor(graph, tensor);
        const Op *op =
            t->producer == GRAPH_NONE ? NULL : graph_get_op(graph, t->producer);
        OpSpace space;
        found = false;
        if (!op || t->rank < 2)
            return false;
        graph_op_space(graph, t->producer, &space);
        for (uint32_t o = 0; o < op->n_out; o++) {
            const int loop = space.dim_loop[op->n_in + o][1];
            if (op->out[o] != tensor || loop < 0)
                continue;
            if (space.loop[loop].letter == LOOP_EXPERT)
                return true;
            for (uint32_t i = 0; !found && i < op->n_in; i++)
                if (space.dim_loop[i][1] == loop) {
                    tensor = op->in[i];
                    found = true;
                }
            break;
        }
    }
    return false;
}

/* Whether the group has the devices of one before it. */
static bool is_added(const Program *program, uint32_t group)
{
    const DeviceGroup *own = group < program->n_groups ? &program->group[group] : NULL;
    for (uint32_t g = 0; own && g < group; g++) {
        const DeviceGroup *other = &program->group[g];
        if (own->n_replicas == other->n_replicas && own->n_devices == other->n_devices &&
            memcmp(own->device, other->device,
                   (size_t)own->n_replicas * own->n_devices * sizeof *own->device) == 0)
            return true;
    }
    return false;
}

bool nesting_starts_inside(const Program *program, const Graph *graph, uint32_t group,
                           TensorId tensor, Form form)
{
    return form_inside(form) != form_gather(1) ||
           (is_added(program, group) && counts_experts(graph, tensor));
}
