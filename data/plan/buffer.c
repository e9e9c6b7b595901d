/* Facts about one buffer of a program: its life, bytes and category. */
#include "data/base/names.h"
#include "data/plan/buffers.h"

bool graph_is_held(const Graph *graph, const Tensor *tensor)
{
    switch (tensor->role) {
    case ROLE_PARAMETER:
    case ROLE_OPTIMIZER:
    case ROLE_UPDATED:
        return true;
    case ROLE_GRADIENT:
        return tensor->of != GRAPH_NONE &&
               graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
    default:
        return false;
    }
}

double plan_buffer_whole_bytes(const Graph *graph, const PlanBuffer *buffer)
{
    return (double)tensor_elements(graph_tensor(graph, buffer->tensor)) *
           buffer->element_bytes;
}

uint32_t plan_buffer_first(const PlanBuffer *buffer)
{
    return buffer->at_rest || buffer->stands ? 0 : buffer->birth;
}

uint32_t plan_buffer_last(const Program *program, const PlanBuffer *buffer)
{
    return buffer->at_rest || buffer->stands ? program->n - 1 : buffer->busy_until;
}

#define MEMORY_TEXT(id, text) text,
NAMES_LIST(memory_category, MemoryCategory, MEMORY_CATEGORIES, MEMORY_TABLE(MEMORY_TEXT))

MemoryCategory plan_buffer_category(const Graph *graph, const PlanBuffer *buffer)
{
    if (buffer->beside)
        return MEMORY_BUFFERS;
    const Tensor *tensor = graph_tensor(graph, buffer->tensor);
    const Role of =
        tensor->of == GRAPH_NONE ? ROLES : graph_tensor(graph, tensor->of)->role;
    switch (tensor->role) {
    case ROLE_PARAMETER:
        return buffer->at_rest ? MEMORY_WEIGHTS : MEMORY_BUFFERS;
    case ROLE_OPTIMIZER:
        return buffer->at_rest ? MEMORY_OPTIMIZER : MEMORY_BUFFERS;
    case ROLE_GRADIENT:
        return of == ROLE_PARAMETER ? MEMORY_GRADIENTS : MEMORY_BUFFERS;
    case ROLE_UPDATED:
        return MEMORY_BUFFERS;
    default:
        return MEMORY_ACTIVATIONS;
    }
}

bool plan_buffer_is_kept(const Graph *graph, const PlanBuffer *buffer)
{
    return buffer->kept || plan_buffer_category(graph, buffer) == MEMORY_ACTIVATIONS;
}
