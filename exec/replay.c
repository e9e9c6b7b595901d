#include "exec/replay.h"

#include <string.h>

/* Where the ranks' shares of a dimension of `units` pieces begin. */
typedef struct {
    uint32_t segment, units;
    uint32_t *from; /* [n_ranks + 1] */
} Cut;

struct ExecReplay {
    ExecBackend *backend;
    const Plan *plan;
    const Graph *graph;
    uint16_t *tensor_segment;
    GArray *cuts;
    ExecShard **held; /* [tensor * FORM_MAX + form]: [n_ranks], NULL until made */
    Form *rest;       /* [tensor] */
    double *seconds;  /* [program->n] */
    double slow;
    uint64_t bytes;
    uint32_t at; /* instruction that is being run */
};

static bool fail(const ExecReplay *replay, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool fail(const ExecReplay *replay, GError **error, const char *format, ...)
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

/* --- cuts --- */

static void cut_clear(void *cut)
{
    g_free(((Cut *)cut)->from);
}

static const Cut *find_cut(ExecReplay *replay, uint32_t segment, uint32_t units)
{
    for (uint32_t i = 0; i < replay->cuts->len; i++) {
        const Cut *cut = &g_array_index(replay->cuts, Cut, i);
        if (cut->segment == segment && cut->units == units)
            return cut;
    }
    const Plan *plan = replay->plan;
    const uint32_t n = plan->n_devices;
    g_autofree uint32_t *count = g_new(uint32_t, n);
    const Split *split =
        plan_find_split(plan, &(Split){.segment = segment, .units = units});
    if (split)
        memcpy(count, split->count, n * sizeof *count);
    else
        split_round(&plan->ratio[(size_t)segment * n], n, units, count);
    Cut cut = {segment, units, g_new0(uint32_t, n + 1)};
    for (uint32_t r = 0; r < n; r++)
        cut.from[r + 1] = cut.from[r] + count[r];
    g_array_append_val(replay->cuts, cut);
    return &g_array_index(replay->cuts, Cut, replay->cuts->len - 1);
}

void exec_replay_cut(ExecReplay *replay, TensorId id, Form form, uint32_t segment,
                     ExecShard *shard)
{
    const Tensor *tensor = graph_tensor(replay->graph, id);
    for (uint32_t r = 0; r < replay->backend->n_ranks; r++) {
        shard[r] = (ExecShard){.rank = tensor->rank};
        memcpy(shard[r].dim, tensor->dim, sizeof shard[r].dim);
        if (!form_is_gather(form))
            continue;
        const uint32_t d = form_dim(form), piece = tensor->dim[d] / tensor->units[d];
        const Cut *cut = find_cut(replay, segment, tensor->units[d]);
        shard[r].offset[d] = cut->from[r] * piece;
        shard[r].dim[d] = (cut->from[r + 1] - cut->from[r]) * piece;
    }
}

/* --- instances --- */

static bool is_local(const ExecReplay *replay, uint32_t r)
{
    return r >= replay->backend->first &&
           r < replay->backend->first + replay->backend->n_local;
}

/* Gives the local ones of `shard` memory, or says which lacks it. */
static bool allocate(ExecReplay *replay, ExecShard *shard, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t r = 0; r < backend->n_ranks; r++) {
        if (!is_local(replay, r))
            continue;
        const uint64_t n = exec_shard_elements(&shard[r]);
        shard[r].data = backend->ops->allocate(backend, r - backend->first, n);
        if (!shard[r].data)
            return fail(replay, error,
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

/* The instance, with memory; NULL and an error where that lacks. */
static ExecShard *make(ExecReplay *replay, TensorId tensor, Form form, GError **error)
{
    ExecShard **slot = &replay->held[(size_t)tensor * FORM_MAX + form];
    if (*slot)
        return *slot;
    ExecShard *shard = g_new0(ExecShard, replay->backend->n_ranks);
    exec_replay_cut(replay, tensor, form, replay->tensor_segment[tensor], shard);
    *slot = shard;
    return allocate(replay, shard, error) ? shard : NULL;
}

static ExecShard *use(ExecReplay *replay, TensorId tensor, Form form, GError **error)
{
    ExecShard *shard = replay->held[(size_t)tensor * FORM_MAX + form];
    char text[FORM_TEXT];
    if (!shard)
        fail(replay, error, "%s|%s was not made before",
             graph_tensor(replay->graph, tensor)->name, form_text(form, text));
    return shard;
}

/* --- instructions --- */

static bool same_cut(const ExecShard *a, const ExecShard *b, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++)
        if (memcmp(a[r].dim, b[r].dim, sizeof a[r].dim) != 0 ||
            memcmp(a[r].offset, b[r].offset, sizeof a[r].offset) != 0)
            return false;
    return true;
}

/* Fetches input `i` of an op as the op's segment cuts it; *owned gets shards to release where that is another cut than
 * the tensor's own. */
static const ExecShard *input_of(ExecReplay *replay, const Instr *instr, uint32_t i,
                                 ExecShard **owned, GError **error)
{
    ExecBackend *backend = replay->backend;
    const TensorId tensor = graph_get_op(replay->graph, instr->op)->in[i];
    const Form form = instr->form[i];
    const uint32_t segment = replay->plan->segment[instr->op];
    const ExecShard *held = use(replay, tensor, form, error);
    if (!held || !form_is_gather(form) || segment == replay->tensor_segment[tensor])
        return held;
    g_autofree ExecShard *cut = g_new0(ExecShard, backend->n_ranks);
    exec_replay_cut(replay, tensor, form, segment, cut);
    if (same_cut(cut, held, backend->n_ranks))
        return held;
    *owned = g_steal_pointer(&cut);
    const ExecExchange exchange = {COLLECTIVE_ALL_TO_ALL, held, *owned};
    if (!allocate(replay, *owned, error) ||
        !backend->ops->exchange(backend, &exchange, error))
        return NULL;
    return *owned;
}

/* Computation on local ranks one after the other, each stretched if it is slowed down. */
static void compute_ranks(ExecReplay *replay, const Instr *instr,
                          const ExecShard *const *in, ExecShard *const *out)
{
    ExecBackend *backend = replay->backend;
    const Op *op = graph_get_op(replay->graph, instr->op);
    const double start = exec_backend_seconds(backend);
    for (uint32_t local = 0; local < backend->n_local; local++) {
        ExecShard inputs[OP_MAX_IN], outputs[OP_MAX_OUT];
        for (uint32_t i = 0; i < op->n_in; i++)
            inputs[i] = in[i][backend->first + local];
        for (uint32_t o = 0; o < op->n_out; o++)
            outputs[o] = out[o][backend->first + local];
        backend->ops->run_op(backend, local, replay->graph, instr->op, inputs, outputs);
    }
    if (replay->slow <= 1)
        return;
    exec_backend_synchronise(backend);
    const double spent = exec_backend_seconds(backend) - start;
    while (exec_backend_seconds(backend) - start < replay->slow * spent)
        ;
}

/* Whether each loop is either cut in all operands that have it or in none: kernels rely on it to stay in bounds. */
static bool check_loops(const ExecReplay *replay, const Instr *instr, GError **error)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    OpSpace space;
    graph_op_space(replay->graph, instr->op, &space);
    int8_t cut[OP_MAX_LOOPS];
    memset(cut, -1, sizeof cut);
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const TensorId id = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        for (uint32_t d = 0; d < graph_tensor(replay->graph, id)->rank; d++) {
            const int8_t loop = space.dim_loop[i][d];
            const int8_t here = instr->form[i] == form_gather(d);
            if (here && loop < 0)
                return fail(replay, error, "dim %u of %s is whole to this op", d,
                            graph_tensor(replay->graph, id)->name);
            if (loop < 0)
                continue;
            if (cut[loop] >= 0 && cut[loop] != here)
                return fail(replay, error, "not all operands are cut alike");
            cut[loop] = here;
        }
    }
    return true;
}

static bool run_compute(ExecReplay *replay, const Instr *instr, GError **error)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    if (!check_loops(replay, instr, error))
        return false;
    const ExecShard *in[OP_MAX_IN];
    ExecShard *out[OP_MAX_OUT], *owned[OP_MAX_IN] = {0};
    bool good = true;
    for (uint32_t i = 0; good && i < op->n_in; i++)
        good = (in[i] = input_of(replay, instr, i, &owned[i], error)) != NULL;
    for (uint32_t o = 0; good && o < op->n_out; o++)
        good =
            (out[o] = make(replay, op->out[o], instr->form[op->n_in + o], error)) != NULL;
    if (good)
        compute_ranks(replay, instr, in, out);
    for (uint32_t i = 0; i < op->n_in; i++) {
        release(replay, owned[i]);
        g_free(owned[i]);
    }
    return good;
}

/* Slice, keep and pad need no other rank. */
static bool run_local(ExecReplay *replay, const Instr *instr, const ExecShard *from,
                      ExecShard *to, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        if (instr->collective != COLLECTIVE_KEEP || r == 0) {
            backend->ops->copy(backend, local, &from[r], &to[r]);
            continue;
        }
        backend->ops->release(backend, local, to[r].data);
        to[r].data = backend->ops->allocate(backend, local, exec_shard_elements(&to[r]));
        if (!to[r].data)
            return fail(replay, error, "rank %u has no memory", r);
    }
    return true;
}

static bool run_collective(ExecReplay *replay, const Instr *instr, GError **error)
{
    ExecBackend *backend = replay->backend;
    if (!collective_converts(instr->collective, instr->from, instr->to))
        return fail(replay, error, "no such conversion");
    const ExecShard *from = use(replay, instr->tensor, instr->from, error);
    ExecShard *to = from ? make(replay, instr->tensor, instr->to, error) : NULL;
    if (!to)
        return false;
    if (instr->collective >= (Collective)COLLECTIVES_PRICED)
        return run_local(replay, instr, from, to, error);
    const ExecExchange exchange = {instr->collective, from, to};
    return backend->ops->exchange(backend, &exchange, error);
}

static bool run_load(ExecReplay *replay, const Instr *instr, uint64_t seed,
                     GError **error)
{
    ExecBackend *backend = replay->backend;
    ExecShard *shard = make(replay, instr->tensor, instr->to, error);
    if (!shard)
        return false;
    replay->rest[instr->tensor] = instr->to;
    ExecTensor value = exec_value_new(replay->graph, instr->tensor, seed);
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const ExecShard *part = &shard[backend->first + local];
        if (!form_is_gather(instr->to)) {
            backend->ops->write(backend, local, part, value.data);
            continue;
        }
        const uint32_t d = form_dim(instr->to);
        ExecTensor slice =
            exec_tensor_slice(&value, d, part->offset[d], part->offset[d] + part->dim[d]);
        backend->ops->write(backend, local, part, slice.data);
        exec_tensor_clear(&slice);
    }
    exec_tensor_clear(&value);
    return true;
}

/* --- the whole program --- */

ExecReplay *exec_replay_new(ExecBackend *backend, const Plan *plan, const Graph *graph,
                            GError **error)
{
    if (plan->n_devices != backend->n_ranks) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "the plan is for %u devices, but there are %u ranks", plan->n_devices,
                    backend->n_ranks);
        return NULL;
    }
    if (!program_is_spmd(plan->program)) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "only programs of one group and one microbatch can be replayed");
        return NULL;
    }
    ExecReplay *replay = g_new0(ExecReplay, 1);
    *replay = (ExecReplay){.backend = backend, .plan = plan, .graph = graph, .slow = 1};
    replay->tensor_segment = plan_tensor_segments(graph, plan->segment);
    replay->cuts = g_array_new(false, false, sizeof(Cut));
    g_array_set_clear_func(replay->cuts, cut_clear);
    replay->held = g_new0(ExecShard *, (size_t)graph_n_tensors(graph) * FORM_MAX);
    replay->rest = g_new0(Form, graph_n_tensors(graph));
    replay->seconds = g_new0(double, plan->program->n + 1);
    return replay;
}

void exec_replay_free(ExecReplay *replay)
{
    if (!replay)
        return;
    for (size_t i = 0; i < (size_t)graph_n_tensors(replay->graph) * FORM_MAX; i++) {
        release(replay, replay->held[i]);
        g_free(replay->held[i]);
    }
    g_free(replay->held);
    g_free(replay->rest);
    g_free(replay->seconds);
    g_free(replay->tensor_segment);
    g_array_unref(replay->cuts);
    g_free(replay);
}

bool exec_replay_load(ExecReplay *replay, uint64_t seed, GError **error)
{
    const Program *program = replay->plan->program;
    for (replay->at = 0; replay->at < program->n; replay->at++) {
        const Instr *instr = &program->instr[replay->at];
        if (instr->kind == INSTR_LOAD && !run_load(replay, instr, seed, error))
            return false;
    }
    return true;
}

bool exec_replay_run(ExecReplay *replay, GError **error)
{
    const Program *program = replay->plan->program;
    for (replay->at = 0; replay->at < program->n; replay->at++) {
        const Instr *instr = &program->instr[replay->at];
        if (instr->kind == INSTR_LOAD)
            continue;
        const double start = exec_backend_seconds(replay->backend);
        if (instr->kind == INSTR_COMPUTE ? !run_compute(replay, instr, error)
                                         : !run_collective(replay, instr, error))
            return false;
        exec_backend_synchronise(replay->backend);
        replay->seconds[replay->at] = exec_backend_seconds(replay->backend) - start;
    }
    return exec_backend_check(replay->backend, error);
}

void exec_replay_slow(ExecReplay *replay, double factor)
{
    replay->slow = factor;
}

const ExecShard *exec_replay_shards(const ExecReplay *replay, TensorId tensor, Form form)
{
    return replay->held[(size_t)tensor * FORM_MAX + form];
}

Form exec_replay_rest(const ExecReplay *replay, TensorId tensor)
{
    return replay->rest[tensor];
}

const double *exec_replay_seconds(const ExecReplay *replay)
{
    return replay->seconds;
}

uint64_t exec_replay_bytes(const ExecReplay *replay)
{
    return replay->bytes;
}

uint64_t exec_replay_bytes_needed(ExecReplay *replay)
{
    const ExecBackend *backend = replay->backend;
    const Program *program = replay->plan->program;
    g_autofree bool *seen =
        g_new0(bool, (size_t)graph_n_tensors(replay->graph) * FORM_MAX);
    g_autofree ExecShard *shard = g_new0(ExecShard, backend->n_ranks);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        const bool computes = instr->kind == INSTR_COMPUTE;
        const Op *op = computes ? graph_get_op(replay->graph, instr->op) : NULL;
        for (uint32_t o = 0; o < (computes ? op->n_out : 1); o++) {
            const TensorId id = computes ? op->out[o] : instr->tensor;
            const Form form = computes ? instr->form[op->n_in + o] : instr->to;
            bool *known = &seen[(size_t)id * FORM_MAX + form];
            if (*known)
                continue;
            *known = true;
            exec_replay_cut(replay, id, form, replay->tensor_segment[id], shard);
            for (uint32_t r = 0; r < backend->n_local; r++)
                bytes += exec_shard_elements(&shard[backend->first + r]) *
                         backend->element_bytes;
        }
    }
    return bytes;
}
