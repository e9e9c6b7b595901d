/* Running collectives and transfers on a backend. */
#include "exec/replay_state.h"

/* --- collectives --- */

/* Whether the rank is the first one of a replica. */
static bool is_first(const ExecReplay *replay, uint32_t group, uint32_t rank)
{
    KILTER_ASSERT(rank < replay->backend->n_ranks);
    const DeviceGroup *of = &replay->cuts->layout.group[group];
    return any_of(r, of->n_replicas, of->device[r * of->n_devices] == rank);
}

/* Slice, keep and pad need no other rank. What lies in the same memory stays there. */
static void run_local(ExecReplay *replay, const Instr *instr, const ExecShard *from,
                      ExecShard *to)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        if (!to[r].data)
            continue;
        const bool empties =
            instr->collective == COLLECTIVE_KEEP && !is_first(replay, instr->group, r);
        if (empties || from[r].data != to[r].data)
            backend->ops->copy(backend, local, empties ? NULL : &from[r], &to[r]);
    }
}

/* An all-reduce over the replicas, in place. */
static bool run_across(ExecReplay *replay, const Instr *instr, GError **error)
{
    const uint32_t i = replay_source(replay, instr);
    ExecShard *sum = replay_use(replay, instr, instr->tensor, instr->from, error);
    if (!sum)
        return false;
    const ExecExchange exchange = {
        .kind = instr->collective, .from = sum, .to = sum, .server = instr->server};
    const bool good =
        replay_exchange_in(replay, instr->group, EXEC_ACROSS, exchange, error);
    replay->partial[i] = replay->partial[i] && !good;
    return good;
}

/* Moves the sum accumulated so far to the instance `to`, which has the same shards. The source
 * starts again from zero. */
static void move_sum(ExecReplay *replay, const Instr *instr, const ExecShard *from,
                     ExecShard *to, bool partial)
{
    const uint32_t source = replay_source(replay, instr),
                   target = replay_target(replay, instr);
    replay_pass(replay, from, to, replay->added[target] > 0);
    replay->added[target]++;
    replay->added[source] = 0;
    replay->moved[source] = true;
    replay->moved[target] = false;
    replay->partial[target] = partial;
}

/* A reduce-scatter of the sum accumulated so far; its result is added to the earlier ones. */
static bool run_moving(ExecReplay *replay, const Instr *instr, ExecMembers members,
                       const ExecShard *from, ExecShard *to, GError **error)
{
    ExecShard *part = replay_shapes(replay, to);
    const ExecExchange exchange = {.kind = instr->collective, .from = from, .to = part};
    const bool good = replay_allocate(replay, instr->group, part, error) &&
                      replay_exchange_in(replay, instr->group, members, exchange, error),
               several = group_parts(&replay->cuts->layout.group[instr->group]) > 1;
    if (good)
        move_sum(replay, instr, part, to, !instr->across && several);
    replay_drop(replay, part);
    return good;
}

bool replay_collective(ExecReplay *replay, const Instr *instr, GError **error)
{
    g_assert(instr->kind == INSTR_COLLECTIVE);
    const FormAxis axis = instr_axis(instr);
    const ExecMembers members = axis == AXIS_REPLICAS ? EXEC_ACROSS
                                : axis == AXIS_SHARDS ? EXEC_SHARDS
                                                      : EXEC_INSIDE;
    if (instr->across && instr->from == instr->to)
        return run_across(replay, instr, error);
    if (!instr->across &&
        !collective_converts(instr->collective, form_on(axis, instr->from),
                             form_on(axis, instr->to)))
        return replay_fail(replay, error, "no such conversion");
    const ExecShard *from = replay_use(replay, instr, instr->tensor, instr->from, error);
    ExecShard *to = from ? replay_make(replay, instr->group, instr->microbatch,
                                       instr->tensor, instr->to, error)
                         : NULL;
    if (!to)
        return false;
    if (instr->moves)
        return run_moving(replay, instr, members, from, to, error);
    replay->partial[replay_target(replay, instr)] =
        !instr->across && replay->partial[replay_source(replay, instr)];
    if (instr->collective >= (Collective)COLLECTIVES_PRICED)
        run_local(replay, instr, from, to);
    else
        return exec_replay_exchange(replay, instr->group, members, instr->collective,
                                    from, to, error);
    return true;
}

/* --- transfers --- */

/* Whether replica s of the senders holds a part that replica r of the receivers needs. */
static bool sends(const ExecReplay *replay, const Instr *instr, uint32_t s, uint32_t r)
{
    const DeviceGroup *from = &replay->cuts->layout.group[instr->group],
                      *to = &replay->cuts->layout.group[instr->to_group];
    if (instances_has_parts(replay->cuts->layout.instances, instr->tensor))
        return true; /* it sends what their parts have in common */
    if (from->n_replicas == to->n_replicas)
        return s == r;
    return s == (uint64_t)r * from->n_replicas / to->n_replicas;
}

/* Whether rank k sends to the receiver: of a whole tensor that the receiver has, only itself, else
 * as `otherwise` says. */
static bool sends_to(const ExecReplay *replay, const Instr *instr, uint32_t receiver,
                     uint32_t k, bool otherwise)
{
    if (instr->from != FORM_IDENTITY ||
        instances_has_parts(replay->cuts->layout.instances, instr->tensor) ||
        !replay_in_group(replay, instr->group, receiver))
        return otherwise;
    return k == receiver;
}

/* Sends receiver (r, p) its part, by an exchange between it and its senders. Where all devices of a
 * replica hold the same part, one of them sends. */
static bool receive(ExecReplay *replay, const Instr *instr, uint32_t r, uint32_t p,
                    const ExecShard *from, ExecShard *to, GError **error)
{
    ExecBackend *backend = replay->backend;
    const DeviceGroup *a = &replay->cuts->layout.group[instr->group],
                      *b = &replay->cuts->layout.group[instr->to_group];
    const uint32_t receiver = b->device[r * b->n_devices + p];
    g_autofree uint32_t *member = g_new(uint32_t, a->n_replicas * a->n_devices + 1);
    g_autofree ExecShard *have = replay_shapes(replay, from),
                         *need = replay_shapes(replay, to);
    uint32_t n = 0;
    bool sender = false;
    for (uint32_t k = 0; k < backend->n_ranks; k++)
        have[k] = need[k] = (ExecShard){.rank = from[k].rank, .numbers = from[k].numbers};
    for (uint32_t s = 0; s < a->n_replicas; s++)
        for (uint32_t q = 0; q < a->n_devices; q++) {
            /* a shard gets its part from the sender's shard at the same position */
            if (form_outer(instr->from) && s % group_shards(a) != r % group_shards(b))
                continue;
            const uint32_t k = a->device[s * a->n_devices + q];
            const bool chosen = sends(replay, instr, s, r) &&
                                (form_is_gather(instr->from) ||
                                 q == (uint64_t)p * a->n_devices / b->n_devices);
            ExecShard overlap;
            if (!sends_to(replay, instr, receiver, k, chosen) ||
                !exec_shard_overlap(&from[k], &to[receiver], &overlap))
                continue;
            have[k] = from[k];
            member[n++] = k;
            sender |= k == receiver;
        }
    need[receiver] = to[receiver];
    if (n == 0)
        return true;
    if (!sender)
        member[n++] = receiver;
    const ExecExchange exchange = {.kind = COLLECTIVE_ALL_TO_ALL,
                                   .from = have,
                                   .to = need,
                                   .n_members = n,
                                   .member = member};
    return backend->ops->exchange(backend, &exchange, error);
}

/* A transfer between groups of the same devices: each device already has the part that it needs. */
static bool run_regroup(ExecReplay *replay, const Instr *instr, const ExecShard *from,
                        ExecShard *to, GError **error)
{
    const bool partial =
        (instr->moves || replay->partial[replay_source(replay, instr)]) &&
        group_parts(&replay->cuts->layout.group[instr->to_group]) > 1;
    if (!replay_same_cut(from, to, replay->backend->n_ranks))
        return replay_fail(replay, error, "the groups do not cut it alike");
    if (instr->moves) {
        move_sum(replay, instr, from, to, partial);
        return true;
    }
    replay_pass(replay, from, to, false);
    replay->partial[replay_target(replay, instr)] = partial;
    return true;
}

/* Copies or adds what the devices of both groups have to the instance of the transfer's target. A
 * sum begins as zero on the devices that have not joined yet. */
static bool pass_across(ExecReplay *replay, const Instr *instr, const ExecShard *from,
                        ExecShard *to, bool adds, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        const bool has = replay_in_group(replay, instr->group, r);
        if (!replay_in_group(replay, instr->to_group, r) || from[r].data == to[r].data)
            continue;
        if (has && !replay_same_cut(&from[r], &to[r], 1))
            return replay_fail(replay, error, "the groups do not cut it alike");
        if (adds && has)
            backend->ops->add(backend, local, &from[r], &to[r]);
        else if (!adds)
            backend->ops->copy(backend, local, has ? &from[r] : NULL, &to[r]);
    }
    return true;
}

/* A transfer that joins the replicas of a larger group, or leaves it. */
static bool run_across_groups(ExecReplay *replay, const Instr *instr,
                              const ExecShard *from, GError **error)
{
    const uint32_t source = replay_source(replay, instr),
                   target = replay_target(replay, instr);
    const bool adds = instr->moves && replay->added[target] > 0;
    ExecShard *to = replay->room && instr->moves
                        ? replay_rooms_join(replay, instr, source, target, adds)
                        : replay_make(replay, instr->to_group, instr->microbatch,
                                      instr->tensor, instr->to, error);
    if (!to || !pass_across(replay, instr, from, to, adds, error))
        return false;
    replay->partial[target] = instr->moves;
    replay->moved[target] = false;
    if (instr->moves) {
        replay->added[target]++;
        replay->added[source] = 0;
        replay->moved[source] = true;
    }
    return true;
}

bool replay_transfer(ExecReplay *replay, const Instr *instr, GError **error)
{
    g_assert(instr->kind == INSTR_TRANSFER);
    const DeviceGroup *b = &replay->cuts->layout.group[instr->to_group];
    const ExecShard *from = replay_use(replay, instr, instr->tensor, instr->from, error);
    if (from && instr->across)
        return run_across_groups(replay, instr, from, error);
    ExecShard *to = from ? replay_make(replay, instr->to_group, instr->microbatch,
                                       instr->tensor, instr->to, error)
                         : NULL;
    if (!to)
        return false;
    if (instr_regroups(replay->plan->program, instr))
        return run_regroup(replay, instr, from, to, error);
    replay->partial[replay_target(replay, instr)] =
        replay->partial[replay_source(replay, instr)];
    for (uint32_t r = 0; r < b->n_replicas; r++)
        for (uint32_t p = 0; p < b->n_devices; p++)
            if (!receive(replay, instr, r, p, from, to, error))
                return false;
    return true;
}
