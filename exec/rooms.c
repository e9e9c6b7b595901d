/* The memory of a replay that trains: a room for each buffer of the memory model, from the buffer's
 * first value to its last use, and rooms for values that lie apart. */
#include "data/base/free.h"
#include "exec/replay_state.h"

static Room *room_at(const ExecReplay *replay, uint32_t i)
{
    KILTER_ASSERT(i < replay->room->len);
    return &g_array_index(replay->room, Room, i);
}

PlanBuffers *replay_buffers(const ExecReplay *replay)
{
    return plan_buffers(replay->plan->program, replay->graph,
                        replay->cuts->layout.instances, replay->cuts->layout.segment);
}

/* Sorts the buffers by the instruction that uses them last. */
static void find_leaving(ExecReplay *replay)
{
    const uint32_t n = replay->plan->program->n;
    replay->first_leaving = g_new0(uint32_t, n + 2);
    replay->leaves = g_new(uint32_t, replay->buffers->n + 1);
    for (uint32_t b = 0; b < replay->buffers->n; b++)
        if (room_at(replay, b)->end != REPLAY_ALWAYS)
            replay->first_leaving[room_at(replay, b)->end + 2]++;
    for (uint32_t i = 2; i <= n + 1; i++)
        replay->first_leaving[i] += replay->first_leaving[i - 1];
    for (uint32_t b = 0; b < replay->buffers->n; b++)
        if (room_at(replay, b)->end != REPLAY_ALWAYS)
            replay->leaves[replay->first_leaving[room_at(replay, b)->end + 1]++] = b;
}

void replay_rooms_new(ExecReplay *replay)
{
    const PlanBuffers *buffers = replay->buffers = replay_buffers(replay);
    const size_t n = (size_t)replay->cuts->layout.instances->n_places * FORM_MAX;
    replay->lies = g_new0(uint32_t, n);
    replay->filled = g_new0(uint32_t, n);
    replay->room = g_array_new(false, false, sizeof(Room));
    items_each (const PlanBuffer, buffer, buffers->buffer, buffers->n) {
        const Room room = {.end = buffer->at_rest || buffer->stands
                                      ? REPLAY_ALWAYS
                                      : plan_buffer_last(replay->plan->program, buffer),
                           .category = plan_buffer_category(replay->graph, buffer)};
        g_array_append_val(replay->room, room);
    }
    find_leaving(replay);
}

static void empty(ExecReplay *replay, Room *room)
{
    replay_release(replay, room->category, room->shard);
    g_clear_pointer(&room->shard, g_free);
}

void replay_rooms_free(ExecReplay *replay)
{
    for (uint32_t i = 0; i < replay->room->len; i++)
        empty(replay, room_at(replay, i));
    g_array_unref(replay->room);
    plan_buffers_free(replay->buffers);
    free_each(replay->lies, replay->filled, replay->first_leaving, replay->leaves);
}

bool replay_rooms_hold(const ExecReplay *replay, size_t cell)
{
    if (!replay->room)
        return true;
    const Room *room = room_at(replay, replay->lies[cell]);
    return room->shard && room->filled == replay->filled[cell];
}

/* Whether values of these shapes [n_ranks] have as many bytes on every local rank. */
static bool same_size(const ExecReplay *replay, const ExecShard *a, const ExecShard *b)
{
    KILTER_ASSERT(a && b);
    const ExecBackend *backend = replay->backend;
    for (uint32_t r = backend->first; r < backend->first + backend->n_local; r++)
        if (exec_shard_bytes(backend, &a[r]) != exec_shard_bytes(backend, &b[r]))
            return false;
    return true;
}

/* The number of a fresh room apart from all buffers, or of one that has been left. */
static uint32_t room_apart(ExecReplay *replay, uint32_t end, MemoryCategory category)
{
    uint32_t i = replay->buffers->n;
    while (i < replay->room->len && room_at(replay, i)->shard)
        i++;
    if (i == replay->room->len) {
        const Room fresh = {0};
        g_array_append_val(replay->room, fresh);
    }
    room_at(replay, i)->end = end;
    room_at(replay, i)->category = category;
    return i;
}

/* The room of the value of which the running instruction makes a view, or GRAPH_NONE. */
static uint32_t room_viewed(const ExecReplay *replay, uint32_t buffer,
                            const ExecShard *shard)
{
    const Instr *instr = &replay->plan->program->instr[replay->at];
    const bool views = instr->kind == INSTR_COMPUTE
                           ? op_kind_is_view(graph_get_op(replay->graph, instr->op)->kind)
                           : instr_regroups(replay->plan->program, instr);
    PlacedOperand used[OP_MAX_IN];
    if (!views ||
        instances_uses(replay->cuts->layout.instances, replay->graph, instr, used) == 0)
        return GRAPH_NONE;
    const size_t cell = placed_cell(&used[0]);
    const uint32_t i = replay->lies[cell];
    /* a regrouped sum may begin a buffer of its own */
    const bool own = i < replay->buffers->n && i != buffer;
    return own || !replay_rooms_hold(replay, cell) ||
                   !same_size(replay, room_at(replay, i)->shard, shard)
               ? GRAPH_NONE
               : i;
}

/* Puts the instance into the room, which gets memory if it has none. */
static bool enter(ExecReplay *replay, size_t cell, uint32_t i, uint32_t group,
                  ExecShard *shard, GError **error)
{
    Room *room = room_at(replay, i);
    replay->lies[cell] = i;
    if (!room->shard) {
        room->shard = replay_shapes(replay, shard);
        room->filled++;
        if (!replay_reserve(replay, group, room->category, room->shard, error))
            return false;
    }
    replay->filled[cell] = room->filled;
    for (uint32_t r = 0; r < replay->backend->n_ranks; r++)
        shard[r].data = room->shard[r].data;
    return true;
}

/* Which output of the running instruction the tensor is. */
static uint32_t output_of(const ExecReplay *replay, TensorId tensor)
{
    const Instr *instr = &replay->plan->program->instr[replay->at];
    if (instr->kind != INSTR_COMPUTE)
        return 0;
    const Op *op = graph_get_op(replay->graph, instr->op);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (op->out[o] == tensor)
            return o;
    g_assert_not_reached();
}

/* Whether the instance is an updated value in the form in which the old value rests. */
static bool starts_next(const ExecReplay *replay, uint32_t group, TensorId tensor,
                        size_t cell)
{
    const Tensor *t = graph_tensor(replay->graph, tensor);
    const Form rest =
        t->role == ROLE_UPDATED ? exec_replay_rest(replay, group, t->of) : FORM_MAX;
    return rest != FORM_MAX && replay_instance(replay, group, 0, tensor, rest) == cell;
}

bool replay_rooms_take(ExecReplay *replay, size_t cell, uint32_t group, uint32_t part,
                       TensorId tensor, ExecShard *shard, GError **error)
{
    const PlanBuffers *buffers = replay->buffers;
    const size_t at = (size_t)replay->at * OP_MAX_OUT + output_of(replay, tensor);
    const bool load = replay->plan->program->instr[replay->at].kind == INSTR_LOAD;
    uint32_t i = buffers->made[at] + (load ? part : 0);
    if (load && !buffers->buffer[i].at_rest) /* an input, which stays as it is */
        i = room_apart(replay, REPLAY_ALWAYS, room_at(replay, i)->category);
    const uint32_t viewed = load ? GRAPH_NONE : room_viewed(replay, i, shard);
    if (viewed != GRAPH_NONE) {
        Room *room = room_at(replay, viewed);
        room->end = MAX(room->end, buffers->end[at]);
        i = viewed;
    } else if (room_at(replay, i)->shard &&
               !same_size(replay, room_at(replay, i)->shard, shard)) {
        i = room_apart(replay, buffers->end[at], room_at(replay, i)->category);
    }
    if (!load && starts_next(replay, group, tensor, cell) &&
        room_at(replay, i)->end != REPLAY_ALWAYS) /* it does not replace the old value */
        i = room_apart(replay, replay->plan->program->n - 1,
                       room_at(replay, i)->category);
    return enter(replay, cell, i, group, shard, error);
}

ExecShard *replay_rooms_join(ExecReplay *replay, const Instr *instr, size_t source,
                             size_t target, bool adds)
{
    const ExecShard *from = replay->held[source];
    ExecShard *to = replay_shaped(replay, instr->to_group, instr->microbatch,
                                  instr->tensor, instr->to);
    Room *room = room_at(replay, replay->lies[source]);
    room->end = MAX(room->end, replay->buffers->end[(size_t)replay->at * OP_MAX_OUT]);
    for (uint32_t r = 0; r < replay->backend->n_ranks; r++)
        if (!adds || replay_in_group(replay, instr->group, r))
            to[r].data = from[r].data;
    if (!adds) {
        replay->lies[target] = replay->lies[source];
        replay->filled[target] = replay->filled[source];
    }
    return to;
}

void replay_rooms_leave(ExecReplay *replay)
{
    const uint32_t at = replay->at;
    for (uint32_t k = replay->first_leaving[at]; k < replay->first_leaving[at + 1]; k++)
        empty(replay, room_at(replay, replay->leaves[k]));
    for (uint32_t i = replay->buffers->n; i < replay->room->len; i++)
        if (room_at(replay, i)->shard && room_at(replay, i)->end <= at)
            empty(replay, room_at(replay, i));
}

/* Copies an updated value to where the old one lies, unless it was made there. In another segment
 * it may be cut otherwise. */
static bool turn(ExecReplay *replay, uint32_t group, TensorId old, Form rest,
                 GError **error)
{
    KILTER_ASSERT(rest != FORM_MAX);
    const TensorId next = graph_updated(replay->graph, old);
    const size_t a = replay_instance(replay, group, 0, next, rest),
                 b = replay_instance(replay, group, 0, old, rest);
    const ExecShard *from = replay->held[a];
    ExecShard *to = replay->held[b];
    if (!from || !replay_rooms_hold(replay, a) || replay->lies[a] == replay->lies[b])
        return true;
    if (!replay_same_cut(from, to, replay->backend->n_ranks))
        return exec_replay_exchange(replay, group, EXEC_INSIDE, COLLECTIVE_ALL_TO_ALL,
                                    from, to, error);
    replay_pass(replay, from, to, false);
    return true;
}

bool replay_rooms_turn(ExecReplay *replay, GError **error)
{
    const uint32_t n_groups = replay->cuts->layout.n_groups;
    for (TensorId t = 0; t < graph_n_tensors(replay->graph); t++)
        for (uint32_t g = 0;
             graph_updated(replay->graph, t) != GRAPH_NONE && g < n_groups; g++) {
            const Form rest = exec_replay_rest(replay, g, t);
            if (rest != FORM_MAX && !turn(replay, g, t, rest, error))
                return false;
        }
    return true;
}
