/* Communication steps: which instructions join a step. */
#include "sim/cost/step.h"

bool sim_bucket_takes(Collective kind)
{
    return kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER;
}

bool sim_step_next(SimStep *step, const Graph *graph, const Instr *instr)
{
    KILTER_ASSERT(instr->kind <= INSTR_TRANSFER);
    if (instr->kind == INSTR_COMPUTE) {
        step->computed = true;
        step->bucket_open = false;
        return true;
    }
    if (!sim_is_priced_collective(instr))
        return true;
    if (step->computed)
        step->stage++;
    step->computed = false;
    const bool fuse = step->bucket_bytes > 0 && sim_bucket_takes(instr->collective) &&
                      !instr->server && graph_is_parameter_gradient(graph, instr->tensor);
    const uint64_t bytes = tensor_bytes(graph_tensor(graph, instr->tensor));
    const bool joins = fuse && step->bucket_open && step->across == instr->across &&
                       step->kind == instr->collective &&
                       step->bucket_fill + bytes <= step->bucket_bytes;
    step->across = instr->across;
    step->kind = instr->collective;
    step->bucket_fill = joins ? step->bucket_fill + bytes : bytes;
    step->bucket_open = fuse;
    return !joins;
}
