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

/* Allocates memory for the local shards of `shard` [n_ranks], or says which of them lacks it. */
bool replay_allocate(ExecReplay *replay, uint32_t group, ExecShard *shard, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t r = 0; r < backend->n_ranks; r++) {
        if (!is_local(replay, r) || !replay_in_group(replay, group, r))
            continue;
        const uint64_t n = exec_shard_elements(&shard[r]);
        shard[r].data = backend->ops->allocate(backend, r - backend->first, n);
        if (!shard[r].data)
            return replay_fail(replay, error,
                               "rank %u has no memory for %" G_GUINT64_FORMAT
                               " bytes more, it holds %" G_GUINT64_FORMAT,
                               r, n * backend->element_bytes, replay->bytes);
        replay->bytes += n * backend->element_bytes;
    }
    return true;
}

static void release(ExecReplay *replay, ExecShard *shard)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t r = 0; shard && r < backend->n_ranks; r++) {
        if (!shard[r].data)
            continue;
        backend->ops->release(backend, r - backend->first, shard[r].data);
        replay->bytes -= exec_shard_elements(&shard[r]) * backend->element_bytes;
        shard[r].data = NULL;
    }
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
    ExecShard **slot =
        &replay->held[replay_instance(replay, group, microbatch, tensor, form)];
    if (*slot)
        return *slot;
    ExecShard *shard = g_new0(ExecShard, replay->backend->n_ranks);
    exec_cut(replay->cuts, group, microbatch, tensor, form,
             replay->cuts->layout.segment[(size_t)tensor * FORM_MAX + form_inside(form)],
             shard);
    *slot = shard;
    return replay_allocate(replay, group, shard, error) ? shard : NULL;
}

ExecShard *replay_use(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form,
                      GError **error)
{
    ExecShard *shard = replay->held[replay_instance(replay, instr->group,
                                                    instr->microbatch, tensor, form)];
    char text[FORM_TEXT];
    if (!shard)
        replay_fail(replay, error, "%s|%s was not made before",
                    graph_tensor(replay->graph, tensor)->name, form_text(form, text));
    return shard;
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
    release(replay, shard);
    g_free(shard);
}

/* --- memory --- */

uint64_t exec_replay_bytes(const ExecReplay *replay)
{
    return replay->bytes;
}

/* Bytes of an instance on the local ranks, 0 if it was seen before. */
static uint64_t new_bytes(ExecReplay *replay, bool *seen, uint32_t group,
                          uint32_t microbatch, TensorId tensor, Form form)
{
    const ExecBackend *backend = replay->backend;
    g_autofree ExecShard *shard = g_new0(ExecShard, backend->n_ranks);
    bool *known = &seen[replay_instance(replay, group, microbatch, tensor, form)];
    uint64_t bytes = 0;
    if (*known)
        return 0;
    *known = true;
    exec_cut(replay->cuts, group, microbatch, tensor, form,
             replay->cuts->layout.segment[(size_t)tensor * FORM_MAX + form_inside(form)],
             shard);
    for (uint32_t r = backend->first; r < backend->first + backend->n_local; r++)
        if (replay_in_group(replay, group, r))
            bytes += exec_shard_elements(&shard[r]) * backend->element_bytes;
    return bytes;
}

uint64_t exec_replay_bytes_needed(ExecReplay *replay)
{
    const Program *program = replay->plan->program;
    g_autofree bool *seen =
        g_new0(bool, (size_t)replay->cuts->layout.instances->n_places *FORM_MAX);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        const bool computes = instr->kind == INSTR_COMPUTE;
        const Op *op = computes ? graph_get_op(replay->graph, instr->op) : NULL;
        const uint32_t group =
            instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
        const bool load = instr->kind == INSTR_LOAD;
        const uint32_t n_parts =
            load && instances_has_parts(replay->cuts->layout.instances, instr->tensor)
                ? program->n_microbatches
                : 1;
        for (uint32_t o = 0; o < (computes ? op->n_out : n_parts); o++)
            bytes += new_bytes(replay, seen, group, load ? o : instr->microbatch,
                               computes ? op->out[o] : instr->tensor,
                               computes ? instr->form[op->n_in + o] : instr->to);
    }
    return bytes;
}
