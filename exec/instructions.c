/* Running a program's instructions on a backend. */
#include "exec/replay_state.h"

#include <string.h>

/* --- computation --- */

/* Fetches input `i` of an op as the op's segment cuts it. If the tensor itself is cut otherwise,
 * *owned gets the shards to release. */
static const ExecShard *input_of(ExecReplay *replay, const Instr *instr, uint32_t i,
                                 ExecShard **owned, GError **error)
{
    KILTER_ASSERT(i < graph_get_op(replay->graph, instr->op)->n_in);
    ExecBackend *backend = replay->backend;
    const TensorId tensor = graph_get_op(replay->graph, instr->op)->in[i];
    const Form form = instr->form[i];
    const uint32_t segment = replay->plan->segment[instr->op];
    const ExecShard *held = replay_use(replay, instr, tensor, form, error);
    if (!held || !form_is_gather(form) ||
        segment ==
            replay->cuts->layout.segment[(size_t)tensor * FORM_MAX + form_inside(form)])
        return held;
    g_autofree ExecShard *cut = g_new0(ExecShard, backend->n_ranks);
    replay_cut(replay, instr->group, instr->microbatch, tensor, form, segment, cut);
    if (replay_same_cut(cut, held, backend->n_ranks))
        return held;
    *owned = g_steal_pointer(&cut);
    if (!replay_allocate(replay, instr->group, *owned, error) ||
        !exec_replay_exchange(replay, instr->group, EXEC_INSIDE, COLLECTIVE_ALL_TO_ALL,
                              held, *owned, error))
        return NULL;
    return *owned;
}

/* Computes on the local ranks one after the other; a rank that is slowed down takes longer. */
static void compute_ranks(ExecReplay *replay, const Instr *instr,
                          const ExecShard *const *in, ExecShard *const *out)
{
    ExecBackend *backend = replay->backend;
    const Op *op = graph_get_op(replay->graph, instr->op);
    const double start = exec_backend_seconds(backend);
    for (uint32_t local = 0; local < backend->n_local; local++) {
        if (!replay_in_group(replay, instr->group, backend->first + local))
            continue;
        ExecShard inputs[OP_MAX_IN], outputs[OP_MAX_OUT];
        for (uint32_t i = 0; i < op->n_in; i++)
            inputs[i] = in[i][backend->first + local];
        for (uint32_t o = 0; o < op->n_out; o++)
            outputs[o] = out[o][backend->first + local];
        if (op_kind_is_view(op->kind) && inputs[0].data == outputs[0].data)
            continue;
        backend->ops->run_op(backend, local, replay->graph, instr->op, inputs, outputs);
    }
    if (replay->slow <= 1)
        return;
    exec_backend_synchronise(backend);
    const double spent = exec_backend_seconds(backend) - start;
    while (exec_backend_seconds(backend) - start < replay->slow * spent)
        ;
}

/* Whether each loop is cut either in all operands that have it or in none: kernels rely on this to
 * stay in bounds. */
static bool check_loops(const ExecReplay *replay, const Instr *instr, FormAxis axis,
                        GError **error)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    OpSpace space;
    graph_op_space(replay->graph, instr->op, &space);
    int8_t cut[OP_MAX_LOOPS];
    memset(cut, -1, sizeof cut);
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const Form form = form_on(axis, instr->form[i]);
        const TensorId id = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        for (uint32_t d = 0; d < graph_tensor(replay->graph, id)->rank; d++) {
            const int8_t loop = space.dim_loop[i][d];
            const int8_t here = form == form_gather(d);
            if (here && loop < 0)
                return replay_fail(replay, error, "dim %u of %s is whole to this op", d,
                                   graph_tensor(replay->graph, id)->name);
            if (loop < 0)
                continue;
            if (cut[loop] >= 0 && cut[loop] != here)
                return replay_fail(replay, error, "not all operands are cut alike");
            cut[loop] = here;
        }
    }
    return true;
}

/* Whether the output adds to a sum over the batch that earlier microbatches have begun. */
static bool adds(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form)
{
    const BatchForms *batch = replay->cuts->layout.batch;
    if (!batch || batch->loop[instr->op] < 0 || batch->form[tensor] != FORM_REDUCE)
        return false;
    const uint32_t i =
        replay_instance(replay, instr->group, instr->microbatch, tensor, form);
    replay->partial[i] = group_parts(&replay->cuts->layout.group[instr->group]) > 1;
    replay->moved[i] = false;
    return replay->added[i]++ > 0;
}

/* Sets where the op writes its outputs: to the instance, or, if it adds to the instance, to shards
 * apart. */
static bool make_outputs(ExecReplay *replay, const Instr *instr, ExecShard **out,
                         ExecShard **sum, GError **error)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Form form = instr->form[op->n_in + o];
        out[o] =
            replay_make(replay, instr->group, instr->microbatch, op->out[o], form, error);
        if (!out[o])
            return false;
        if (!adds(replay, instr, op->out[o], form))
            continue;
        sum[o] = out[o];
        out[o] = replay_shapes(replay, sum[o]);
        if (!replay_allocate(replay, instr->group, out[o], error))
            return false;
    }
    return true;
}

static void add_sums(ExecReplay *replay, const Op *op, ExecShard *const *out,
                     ExecShard *const *sum)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t o = 0; o < op->n_out; o++)
        for (uint32_t local = 0; sum[o] && local < backend->n_local; local++) {
            const uint32_t r = backend->first + local;
            if (sum[o][r].data)
                backend->ops->add(backend, local, &out[o][r], &sum[o][r]);
        }
}

/* An op whose operands are partial over the replicas makes results that are partial as well. */
static void pass_partial(ExecReplay *replay, const Instr *instr)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    const BatchForms *batch = replay->cuts->layout.batch;
    bool partial = false;
    if (!batch || batch->loop[instr->op] >= 0)
        return;
    for (uint32_t i = 0; i < op->n_in; i++)
        partial |= replay->partial[replay_instance(
            replay, instr->group, instr->microbatch, op->in[i], instr->form[i])];
    for (uint32_t o = 0; o < op->n_out; o++)
        replay->partial[replay_instance(replay, instr->group, instr->microbatch,
                                        op->out[o], instr->form[op->n_in + o])] = partial;
}

bool replay_compute(ExecReplay *replay, const Instr *instr, GError **error)
{
    g_assert(instr->kind == INSTR_COMPUTE);
    const Op *op = graph_get_op(replay->graph, instr->op);
    bool *checked = &replay->checked[replay->at];
    for (FormAxis axis = AXIS_POSITIONS; !*checked && axis <= AXIS_REPLICAS; axis++)
        if (!check_loops(replay, instr, axis, error))
            return false;
    *checked = true;
    const ExecShard *in[OP_MAX_IN];
    ExecShard *out[OP_MAX_OUT] = {0}, *sum[OP_MAX_OUT] = {0}, *owned[OP_MAX_IN] = {0};
    bool good = true;
    for (uint32_t i = 0; good && i < op->n_in; i++)
        good = (in[i] = input_of(replay, instr, i, &owned[i], error)) != NULL;
    good = good && make_outputs(replay, instr, out, sum, error);
    if (good) {
        compute_ranks(replay, instr, in, out);
        add_sums(replay, op, out, sum);
        pass_partial(replay, instr);
    }
    for (uint32_t i = 0; i < op->n_in; i++)
        replay_drop(replay, owned[i]);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (sum[o])
            replay_drop(replay, out[o]);
    return good;
}
