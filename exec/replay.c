/* Replaying a plan's program: loads, instructions, times. */
#include "data/base/free.h"
#include "exec/replay_state.h"

#include <string.h>

/* --- loads --- */

/* Writes the part of a tensor that a local rank holds. */
static void write_part(ExecReplay *replay, uint32_t local, const ExecTensor *value,
                       const ExecShard *part)
{
    KILTER_ASSERT(local < replay->backend->n_local);
    ExecTensor slice = exec_shard_of(value, part);
    replay->backend->ops->write(replay->backend, local, part, slice.data);
    if (slice.data != value->data)
        exec_tensor_clear(&slice);
}

static bool run_load(ExecReplay *replay, const Instr *instr, const ExecReading *readings,
                     uint64_t seed, GError **error)
{
    ExecBackend *backend = replay->backend;
    const uint32_t n = instances_has_parts(replay->cuts->layout.instances, instr->tensor)
                           ? replay->plan->program->n_microbatches
                           : 1;
    ExecTensor value = exec_value_new(replay->graph, readings, instr->tensor, seed);
    if (graph_loss(replay->graph) != GRAPH_NONE &&
        instr->tensor == graph_gradient(replay->graph, graph_loss(replay->graph)))
        value.data[0] *= exec_loss_scale(backend);
    bool good = true;
    replay->rest[(size_t)instr->group * graph_n_tensors(replay->graph) + instr->tensor] =
        instr->to;
    for (uint32_t m = 0; good && m < n; m++) {
        const ExecShard *shard =
            replay_make(replay, instr->group, m, instr->tensor, instr->to, error);
        good = shard != NULL;
        for (uint32_t local = 0; good && local < backend->n_local; local++)
            if (shard[backend->first + local].data)
                write_part(replay, local, &value, &shard[backend->first + local]);
    }
    exec_tensor_clear(&value);
    return good;
}

/* --- the whole program --- */

ExecReplay *exec_replay_new(ExecBackend *backend, const Plan *plan, const Graph *graph,
                            GError **error)
{
    if (plan->n_devices != backend->n_ranks)
        return refused(error, "the plan is for %u devices, but there are %u ranks",
                       plan->n_devices, backend->n_ranks);
    ExecCuts *cuts = exec_cuts_new(plan, graph, error);
    if (!cuts)
        return NULL;
    const size_t n_instances = (size_t)cuts->layout.instances->n_places * FORM_MAX;
    const size_t n_rests = (size_t)cuts->layout.n_groups * graph_n_tensors(graph);
    ExecReplay *replay = g_new0(ExecReplay, 1);
    *replay = (ExecReplay){.backend = backend, .plan = plan, .graph = graph, .slow = 1};
    replay->cuts = cuts;
    replay->held = g_new0(ExecShard *, n_instances);
    replay->partial = g_new0(bool, n_instances);
    replay->added = g_new0(uint32_t, n_instances);
    replay->moved = g_new0(bool, n_instances);
    replay->checked = g_new0(bool, plan->program->n + 1);
    replay->rest = g_new(Form, n_rests);
    memset(replay->rest, FORM_MAX, n_rests);
    replay->seconds = g_new0(double, plan->program->n + 1);
    replay->now = g_new0(ExecHeld, backend->n_local + 1);
    replay->peak = g_new0(ExecHeld, backend->n_local + 1);
    return replay;
}

void exec_replay_train(ExecReplay *replay)
{
    g_assert(!replay->room);
    replay_rooms_new(replay);
}

/* The instances that an instruction reads and makes; returns their number. */
static uint32_t replay_touches(const ExecReplay *replay, const Instr *instr,
                               PlacedOperand of[OP_MAX_IN + OP_MAX_OUT])
{
    const Instances *instances = replay->cuts->layout.instances;
    const uint32_t n = instances_uses(instances, replay->graph, instr, of);
    return n + instances_makes(instances, replay->graph, instr, of + n);
}

void exec_replay_lean(ExecReplay *replay, const bool *keep)
{
    const Program *program = replay->plan->program;
    PlacedOperand of[OP_MAX_IN + OP_MAX_OUT];
    g_assert(!replay->room && !replay->last);
    replay->keep = keep;
    replay->last =
        g_new0(uint32_t, (size_t)replay->cuts->layout.instances->n_places * FORM_MAX);
    items_at (const Instr, instr, i, program->instr, program->n) {
        const uint32_t n = replay_touches(replay, instr, of);
        for (uint32_t k = 0; k < n; k++)
            replay->last[placed_cell(&of[k])] = i;
    }
}

/* Frees what the running instruction was the last to use. */
static void drop_used(ExecReplay *replay, const Instr *instr)
{
    PlacedOperand of[OP_MAX_IN + OP_MAX_OUT];
    const uint32_t n = replay->last ? replay_touches(replay, instr, of) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const size_t cell = placed_cell(&of[k]);
        if (replay->last[cell] != replay->at || replay->keep[of[k].tensor])
            continue;
        replay_release(replay, MEMORY_BUFFERS, replay->held[cell]);
        g_clear_pointer(&replay->held[cell], g_free);
    }
}

void exec_replay_free(ExecReplay *replay)
{
    if (!replay)
        return;
    for (size_t i = 0; i < (size_t)replay->cuts->layout.instances->n_places * FORM_MAX;
         i++) {
        if (!replay->room)
            replay_release(replay, MEMORY_BUFFERS, replay->held[i]);
        g_free(replay->held[i]);
    }
    if (replay->room)
        replay_rooms_free(replay);
    free_each(replay->now, replay->peak, replay->held, replay->partial, replay->added,
              replay->moved, replay->checked, replay->rest, replay->seconds,
              replay->last);
    exec_cuts_free(replay->cuts);
    g_free(replay);
}

bool exec_replay_load(ExecReplay *replay, uint64_t seed, GError **error)
{
    const Program *program = replay->plan->program;
    g_autofree ExecReading *readings = exec_readings_new(replay->graph);
    for (replay->at = 0; replay->at < program->n; replay->at++) {
        const Instr *instr = &program->instr[replay->at];
        if (instr->kind == INSTR_LOAD && !run_load(replay, instr, readings, seed, error))
            return false;
    }
    return true;
}

static bool run_instr(ExecReplay *replay, const Instr *instr, GError **error)
{
    switch (instr->kind) {
    case INSTR_COMPUTE:
        return replay_compute(replay, instr, error);
    case INSTR_TRANSFER:
        return replay_transfer(replay, instr, error);
    case INSTR_COLLECTIVE:
        return replay_collective(replay, instr, error);
    case INSTR_LOAD:
        return true;
    }
    g_assert_not_reached();
}

static bool run_program(ExecReplay *replay, bool timed, GError **error)
{
    const Program *program = replay->plan->program;
    memset(replay->added, 0,
           (size_t)replay->cuts->layout.instances->n_places * FORM_MAX *
               sizeof *replay->added);
    for (replay->at = 0; replay->at < program->n; replay->at++) {
        const Instr *instr = &program->instr[replay->at];
        if (instr->kind == INSTR_LOAD)
            continue;
        const double start = timed ? exec_backend_seconds(replay->backend) : 0;
        if (!run_instr(replay, instr, error))
            return false;
        drop_used(replay, instr);
        if (timed) {
            exec_backend_synchronise(replay->backend);
            replay->seconds[replay->at] = exec_backend_seconds(replay->backend) - start;
        }
        if (replay->room && replay->at + 1 < program->n)
            replay_rooms_leave(replay);
    }
    if (replay->room && program->n > 0) {
        replay->at = program->n - 1;
        if (!replay_rooms_turn(replay, error))
            return false;
        replay_rooms_leave(replay);
    }
    exec_backend_synchronise(replay->backend);
    return exec_backend_check(replay->backend, error);
}

bool exec_replay_run(ExecReplay *replay, GError **error)
{
    return run_program(replay, false, error);
}

bool exec_replay_run_timed(ExecReplay *replay, GError **error)
{
    return run_program(replay, true, error);
}

void exec_replay_slow(ExecReplay *replay, double factor)
{
    g_assert(factor >= 1);
    replay->slow = factor;
}

const ExecShard *exec_replay_shards(const ExecReplay *replay, uint32_t group,
                                    uint32_t microbatch, TensorId tensor, Form form)
{
    const uint32_t i = replay_instance(replay, group, microbatch, tensor, form);
    return i == GRAPH_NONE || replay->moved[i] || !replay_rooms_hold(replay, i)
               ? NULL
               : replay->held[i];
}

bool exec_replay_is_partial(const ExecReplay *replay, uint32_t group, TensorId tensor,
                            Form form)
{
    const uint32_t i = replay_instance(replay, group, 0, tensor, form);
    return i != GRAPH_NONE && replay->partial[i];
}

const ExecCuts *exec_replay_cuts(const ExecReplay *replay)
{
    return replay->cuts;
}

const double *exec_replay_seconds(const ExecReplay *replay)
{
    return replay->seconds;
}
