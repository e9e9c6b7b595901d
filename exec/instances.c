/* Instances of a replay: their memory, shapes and lifetime. */
#include "exec/replay_state.h"

bool replay_fail(const ExecReplay *replay, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *reason = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *text =
        instr_text(&replay->plan->program->instr[replay->at], replay->graph);
    return kilter_fail(error, KILTER_ERROR_FAILED, "instruction %u (%s): %s", replay->at,
                       text, reason);
}

/* --- instances --- */

bool replay_in_group(const ExecReplay *replay, uint32_t group, uint32_t rank)
{
    KILTER_ASSERT(rank < replay->backend->n_ranks);
    const DeviceGroup *of = &replay->cuts->layout.group[group];
    for (uint32_t i = 0; i < of->n_replicas * of->n_devices; i++)
        if (of->device[i] == rank)
            return true;
    return false;
}

static bool is_local(const ExecReplay *replay, uint32_t r)
{
    KILTER_ASSERT(r < replay->backend->n_ranks);
    return r >= replay->backend->first &&
           r < replay->backend->first + replay->backend->n_local;
}

/* Adds to what a local rank holds, or takes away. */
static void count(ExecReplay *replay, uint32_t local, MemoryCategory category,
                  const ExecShard *shard, bool more)
{
    KILTER_ASSERT(local < replay->backend->n_local);
    const uint64_t bytes = exec_shard_elements(shard) * replay->backend->element_bytes;
    ExecHeld *now = &replay->now[local];
    now->total = more ? now->total + bytes : now->total - bytes;
    now->bytes[category] =
        more ? now->bytes[category] + bytes : now->bytes[category] - bytes;
    if (now->total > replay->peak[local].total)
        replay->peak[local] = *now;
}

bool replay_reserve(ExecReplay *replay, uint32_t group, MemoryCategory category,
                    ExecShard *shard, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t r = 0; r < backend->n_ranks; r++) {
        if (!is_local(replay, r) || !replay_in_group(replay, group, r))
            continue;
        const uint32_t local = r - backend->first;
        const uint64_t n = exec_shard_elements(&shard[r]);
        shard[r].data = exec_backend_reserve(backend, local, n);
        if (!shard[r].data)
            return replay_fail(replay, error,
                               "rank %u has no memory for %" G_GUINT64_FORMAT
                               " bytes more, it holds %" G_GUINT64_FORMAT,
                               r, n * backend->element_bytes, replay->now[local].total);
        count(replay, local, category, &shard[r], true);
    }
    return true;
}

void replay_release(ExecReplay *replay, MemoryCategory category, ExecShard *shard)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t r = 0; shard && r < backend->n_ranks; r++) {
        if (!shard[r].data)
            continue;
        backend->ops->release(backend, r - backend->first, shard[r].data);
        count(replay, r - backend->first, category, &shard[r], false);
        shard[r].data = NULL;
    }
}

bool replay_allocate(ExecReplay *replay, uint32_t group, ExecShard *shard, GError **error)
{
    return replay_reserve(replay, group, MEMORY_RUNTIME, shard, error);
}

uint32_t replay_instance(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form)
{
    const uint32_t place =
        instances_place(replay->cuts->layout.instances, group, microbatch, tensor, form);
    return place == GRAPH_NONE ? GRAPH_NONE : place * FORM_MAX + form_inside(form);
}

ExecShard *replay_make(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form, GError **error)
{
    const size_t cell = replay_instance(replay, group, microbatch, tensor, form);
    ExecShard **slot = &replay->held[cell];
    if (*slot && !replay->room)
        return *slot;
    if (!*slot) {
        *slot = g_new0(ExecShard, replay->backend->n_ranks);
        exec_cut(
            replay->cuts, group, microbatch, tensor, form,
            replay->cuts->layout.segment[(size_t)tensor * FORM_MAX + form_inside(form)],
            *slot);
    }
    const bool good =
        replay->room
            ? replay_rooms_take(replay, cell, group, microbatch, tensor, *slot, error)
            : replay_reserve(replay, group, MEMORY_BUFFERS, *slot, error);
    return good ? *slot : NULL;
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

ExecShard *replay_shapes(const ExecReplay *replay, const ExecShard *shard)
{
    const uint32_t n = replay->backend->n_ranks;
    ExecShard *copy = g_memdup2(shard, n * sizeof *copy);
    for (uint32_t r = 0; r < n; r++)
        copy[r].data = NULL;
    return copy;
}

void replay_drop(ExecReplay *replay, ExecShard *shard)
{
    replay_release(replay, MEMORY_RUNTIME, shard);
    g_free(shard);
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
    exec_cut(replay->cuts, buffer->group, 0, buffer->tensor, buffer->form,
             replay->cuts->layout
                 .segment[(size_t)buffer->tensor * FORM_MAX + form_inside(buffer->form)],
             shard);
    for (uint32_t r = backend->first; r < backend->first + backend->n_local; r++)
        if (replay_in_group(replay, buffer->group, r))
            bytes += exec_shard_elements(&shard[r]) * backend->element_bytes;
    return bytes;
}

uint64_t exec_replay_bytes_needed(ExecReplay *replay)
{
    const Program *program = replay->plan->program;
    g_autoptr(PlanBuffers) buffers = replay_buffers(replay);
    g_autofree int64_t *change = g_new0(int64_t, program->n + 1);
    int64_t now = 0, most = 0;
    for (uint32_t b = 0; b < buffers->n; b++) {
        const PlanBuffer *buffer = &buffers->buffer[b];
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
