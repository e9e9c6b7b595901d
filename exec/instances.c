/* Instances of a replay: their memory, shapes and lifetime. */
#include "exec/replay_state.h"

ExecShard *replay_make(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form, GError **error)
{
    const size_t cell = replay_instance(replay, group, microbatch, tensor, form);
    if (replay->held[cell] && !replay->room)
        return replay->held[cell];
    ExecShard *shard = replay_shaped(replay, group, microbatch, tensor, form);
    const bool good =
        replay->room
            ? replay_rooms_take(replay, cell, group, microbatch, tensor, shard, error)
            : replay_reserve(replay, group, MEMORY_BUFFERS, shard, error);
    return good ? shard : NULL;
}

ExecShard *replay_use(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form,
                      GError **error)
{
    const size_t cell =
        replay_instance(replay, instr->group, instr->microbatch, tensor, form);
    char text[FORM_TEXT];
    if (replay->held[cell] && replay_rooms_hold(replay, cell))
        return replay->held[cell];
    replay_fail(replay, error, "%s|%s was not made before",
                graph_tensor(replay->graph, tensor)->name, form_text(form, text));
    return NULL;
}

/* --- memory --- */

const ExecHeld *exec_replay_peak(const ExecReplay *replay)
{
    const ExecHeld *most = &replay->peak[0];
    for (uint32_t local = 1; local < replay->backend->n_local; local++)
        if (replay->peak[local].total > most->total)
            most = &replay->peak[local];
    return most;
}

/* Bytes of a buffer on all local ranks. */
static uint64_t buffer_bytes(const ExecReplay *replay, const PlanBuffer *buffer)
{
    const ExecBackend *backend = replay->backend;
    g_autofree ExecShard *shard = g_new0(ExecShard, backend->n_ranks);
    uint64_t bytes = 0;
    replay_cut(replay, buffer->group, 0, buffer->tensor, buffer->form,
               replay->cuts->layout.segment[(size_t)buffer->tensor * FORM_MAX +
                                            form_inside(buffer->form)],
               shard);
    for (uint32_t r = backend->first; r < backend->first + backend->n_local; r++)
        if (replay_in_group(replay, buffer->group, r))
            bytes += exec_shard_bytes(backend, &shard[r]);
    return bytes;
}

uint64_t exec_replay_bytes_needed(ExecReplay *replay)
{
    const Program *program = replay->plan->program;
    g_autoptr(PlanBuffers) buffers = replay_buffers(replay);
    g_autofree int64_t *change = g_new0(int64_t, program->n + 1);
    int64_t now = 0, most = 0;
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n) {
        if (buffer->kept)
            continue;
        const int64_t bytes = (int64_t)buffer_bytes(replay, buffer);
        const bool stays = program->instr[buffer->birth].kind == INSTR_LOAD;
        change[stays ? 0 : plan_buffer_first(buffer)] += bytes;
        change[stays ? program->n : plan_buffer_last(program, buffer) + 1] -= bytes;
    }
    for (uint32_t i = 0; i < program->n; i++)
        most = MAX(most, now += change[i]);
    return (uint64_t)most;
}
