/* Shards that the ranks of a replay hold: their numbers, memory and exchange. */
#include <string.h>

#include "data/base/text.h"
#include "exec/replay_state.h"

bool replay_fail(const ExecReplay *replay, GError **error, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    g_autofree char *text =
        instr_text(&replay->plan->program->instr[replay->at], replay->graph);
    return kilter_fail(error, KILTER_ERROR_FAILED, "instruction %u (%s): %s", replay->at,
                       text, reason);
}

bool replay_in_group(const ExecReplay *replay, uint32_t group, uint32_t rank)
{
    KILTER_ASSERT(rank < replay->backend->n_ranks);
    const DeviceGroup *of = &replay->cuts->layout.group[group];
    return any_of(i, of->n_replicas * of->n_devices, of->device[i] == rank);
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
    const uint64_t bytes = exec_shard_bytes(replay->backend, shard);
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
        shard[r].data =
            exec_backend_reserve(backend, local, exec_shard_room(backend, &shard[r]));
        if (!shard[r].data)
            return replay_fail(replay, error,
                               "rank %u has no memory for %" G_GUINT64_FORMAT
                               " bytes more, it holds %" G_GUINT64_FORMAT,
                               r, exec_shard_bytes(backend, &shard[r]),
                               replay->now[local].total);
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

uint32_t replay_source(const ExecReplay *replay, const Instr *instr)
{
    return replay_instance(replay, instr->group, instr->microbatch, instr->tensor,
                           instr->from);
}

uint32_t replay_target(const ExecReplay *replay, const Instr *instr)
{
    return replay_instance(replay,
                           instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group,
                           instr->microbatch, instr->tensor, instr->to);
}

void replay_pass(const ExecReplay *replay, const ExecShard *from, const ExecShard *to,
                 bool adds)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        if (to[r].data && (adds || from[r].data != to[r].data))
            (adds ? backend->ops->add : backend->ops->copy)(backend, local, &from[r],
                                                            &to[r]);
    }
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

Form exec_replay_rest(const ExecReplay *replay, uint32_t group, TensorId tensor)
{
    KILTER_ASSERT(tensor < graph_n_tensors(replay->graph));
    return replay->rest[(size_t)group * graph_n_tensors(replay->graph) + tensor];
}

bool replay_same_cut(const ExecShard *a, const ExecShard *b, uint32_t n)
{
    KILTER_ASSERT(a && b);
    return !any_of(r, n,
                   memcmp(a[r].dim, b[r].dim, sizeof a[r].dim) != 0 ||
                       memcmp(a[r].offset, b[r].offset, sizeof a[r].offset) != 0);
}

/* --- exchanges --- */

bool replay_exchange_in(const ExecReplay *replay, uint32_t group, ExecMembers members,
                        ExecExchange exchange, GError **error)
{
    ExecBackend *backend = replay->backend;
    const DeviceGroup *of = &replay->cuts->layout.group[group];
    const uint32_t all = of->n_replicas * of->n_devices;
    const uint32_t extent[] = {of->n_devices, group_shards(of), group_parts(of)};
    uint32_t n = 1, stride = 1, step[3];
    for (uint32_t axis = 0; axis < 3; axis++) {
        step[axis] = stride;
        stride *= extent[axis];
        n *= members >> axis & 1u ? extent[axis] : 1;
    }
    g_autofree uint32_t *rank = g_new(uint32_t, n);
    if (program_is_spmd(replay->plan->program))
        return backend->ops->exchange(backend, &exchange, error);
    exchange.n_members = n;
    exchange.member = rank;
    for (uint32_t first = 0; first < all; first++) {
        bool leads = true;
        uint32_t k = 0;
        for (uint32_t axis = 0; axis < 3; axis++)
            leads &= !(members >> axis & 1u) || first / step[axis] % extent[axis] == 0;
        for (uint32_t i = first; leads && i < all; i++) {
            const bool belongs =
                all_of(axis, 3,
                       members >> axis & 1u || first / step[axis] % extent[axis] ==
                                                   i / step[axis] % extent[axis]);
            if (belongs)
                rank[k++] = of->device[i];
        }
        g_assert(!leads || k == n);
        if (leads && !backend->ops->exchange(backend, &exchange, error))
            return false;
    }
    return true;
}

bool exec_replay_exchange(const ExecReplay *replay, uint32_t group, ExecMembers members,
                          Collective kind, const ExecShard *from, ExecShard *to,
                          GError **error)
{
    const ExecExchange exchange = {.kind = kind, .from = from, .to = to};
    return replay_exchange_in(replay, group, members, exchange, error);
}

/* --- cuts --- */

void replay_cut(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                TensorId tensor, Form form, uint32_t segment, ExecShard *shard)
{
    const ExecNumbers numbers =
        exec_numbers_of(replay->backend, graph_tensor(replay->graph, tensor));
    exec_cut(replay->cuts, group, microbatch, tensor, form, segment, shard);
    for (uint32_t r = 0; r < replay->backend->n_ranks; r++)
        shard[r].numbers = numbers;
}

ExecShard *replay_shaped(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form)
{
    ExecShard **slot =
        &replay->held[replay_instance(replay, group, microbatch, tensor, form)];
    if (*slot)
        return *slot;
    *slot = g_new0(ExecShard, replay->backend->n_ranks);
    replay_cut(
        replay, group, microbatch, tensor, form,
        replay->cuts->layout.segment[(size_t)tensor * FORM_MAX + form_inside(form)],
        *slot);
    return *slot;
}
