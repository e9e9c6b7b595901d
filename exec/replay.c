#include "exec/replay.h"

#include <string.h>

struct ExecReplay {
    ExecBackend *backend;
    const Plan *plan;
    const Graph *graph;
    ExecCuts *cuts;
    ExecShard **held; /* [instance]: [n_ranks], NULL until made */
    bool *partial;    /* [instance]: over the replicas */
    uint32_t *added;  /* [instance]: microbatches that have added to it */
    Form *rest;       /* [group * n_tensors + tensor] */
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

/* --- instances --- */

static bool in_group(const ExecReplay *replay, uint32_t group, uint32_t rank)
{
    const DeviceGroup *of = &replay->cuts->group[group];
    for (uint32_t i = 0; i < of->n_replicas * of->n_devices; i++)
        if (of->device[i] == rank)
            return true;
    return false;
}

static bool is_local(const ExecReplay *replay, uint32_t r)
{
    return r >= replay->backend->first &&
           r < replay->backend->first + replay->backend->n_local;
}

/* Gives the local ones of `shard` memory, or says which lacks it. */
static bool allocate(ExecReplay *replay, uint32_t group, ExecShard *shard, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t r = 0; r < backend->n_ranks; r++) {
        if (!is_local(replay, r) || !in_group(replay, group, r))
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

/* Number of an instance, or GRAPH_NONE. */
static uint32_t instance(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form)
{
    const uint32_t place =
        instances_place(replay->cuts->instances, group, microbatch, tensor);
    return place == GRAPH_NONE ? GRAPH_NONE : place * FORM_MAX + form;
}

/* The instance, with memory; NULL and an error where that lacks. */
static ExecShard *make(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form, GError **error)
{
    ExecShard **slot = &replay->held[instance(replay, group, microbatch, tensor, form)];
    if (*slot)
        return *slot;
    ExecShard *shard = g_new0(ExecShard, replay->backend->n_ranks);
    exec_cut(replay->cuts, group, microbatch, tensor, form,
             replay->cuts->instance_segment[(size_t)tensor * FORM_MAX + form], shard);
    *slot = shard;
    return allocate(replay, group, shard, error) ? shard : NULL;
}

static ExecShard *make_for(ExecReplay *replay, const Instr *instr, TensorId tensor,
                           Form form, GError **error)
{
    return make(replay, instr->group, instr->microbatch, tensor, form, error);
}

static ExecShard *use(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form,
                      GError **error)
{
    ExecShard *shard =
        replay->held[instance(replay, instr->group, instr->microbatch, tensor, form)];
    char text[FORM_TEXT];
    if (!shard)
        fail(replay, error, "%s|%s was not made before",
             graph_tensor(replay->graph, tensor)->name, form_text(form, text));
    return shard;
}

/* --- exchanges --- */

bool exec_replay_exchange(const ExecReplay *replay, uint32_t group, ExecMembers members,
                          Collective kind, const ExecShard *from, ExecShard *to,
                          GError **error)
{
    ExecBackend *backend = replay->backend;
    const DeviceGroup *of = &replay->cuts->group[group];
    const uint32_t all = of->n_replicas * of->n_devices;
    const uint32_t n = members == EXEC_INSIDE   ? of->n_devices
                       : members == EXEC_ACROSS ? of->n_replicas
                                                : all;
    g_autofree uint32_t *rank = g_new(uint32_t, n);
    if (program_is_spmd(replay->plan->program))
        return backend->ops->exchange(backend, &(ExecExchange){kind, from, to, 0, NULL},
                                      error);
    for (uint32_t set = 0; set < all / n; set++) {
        for (uint32_t i = 0; i < n; i++)
            rank[i] = of->device[members == EXEC_ACROSS ? i * of->n_devices + set
                                                        : set * n + i];
        const ExecExchange exchange = {kind, from, to, n, rank};
        if (!backend->ops->exchange(backend, &exchange, error))
            return false;
    }
    return true;
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
    const ExecShard *held = use(replay, instr, tensor, form, error);
    if (!held || !form_is_gather(form) ||
        segment == replay->cuts->instance_segment[(size_t)tensor * FORM_MAX + form])
        return held;
    g_autofree ExecShard *cut = g_new0(ExecShard, backend->n_ranks);
    exec_cut(replay->cuts, instr->group, instr->microbatch, tensor, form, segment, cut);
    if (same_cut(cut, held, backend->n_ranks))
        return held;
    *owned = g_steal_pointer(&cut);
    if (!allocate(replay, instr->group, *owned, error) ||
        !exec_replay_exchange(replay, instr->group, EXEC_INSIDE, COLLECTIVE_ALL_TO_ALL,
                              held, *owned, error))
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
        if (!in_group(replay, instr->group, backend->first + local))
            continue;
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

/* Whether the output is a sum over the batch that earlier microbatches have begun. */
static bool adds(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form)
{
    const BatchForms *batch = replay->cuts->batch;
    if (!batch || batch->loop[instr->op] < 0 || batch->form[tensor] != FORM_REDUCE)
        return false;
    const uint32_t i = instance(replay, instr->group, instr->microbatch, tensor, form);
    replay->partial[i] = replay->cuts->group[instr->group].n_replicas > 1;
    return replay->added[i]++ > 0;
}

/* A copy of shards without their data. */
static ExecShard *shapes(const ExecReplay *replay, const ExecShard *shard)
{
    const uint32_t n = replay->backend->n_ranks;
    ExecShard *copy = g_memdup2(shard, n * sizeof *copy);
    for (uint32_t r = 0; r < n; r++)
        copy[r].data = NULL;
    return copy;
}

/* Where the op writes its outputs: in the instance, or, if it adds to that, apart. */
static bool make_outputs(ExecReplay *replay, const Instr *instr, ExecShard **out,
                         ExecShard **sum, GError **error)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Form form = instr->form[op->n_in + o];
        out[o] = make_for(replay, instr, op->out[o], form, error);
        if (!out[o])
            return false;
        if (!adds(replay, instr, op->out[o], form))
            continue;
        sum[o] = out[o];
        out[o] = shapes(replay, sum[o]);
        if (!allocate(replay, instr->group, out[o], error))
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

static void drop(ExecReplay *replay, ExecShard *shard)
{
    release(replay, shard);
    g_free(shard);
}

/* What an op that runs once makes of operands that are partial over the replicas is partial. */
static void pass_partial(ExecReplay *replay, const Instr *instr)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    const BatchForms *batch = replay->cuts->batch;
    bool partial = false;
    if (!batch || batch->loop[instr->op] >= 0)
        return;
    for (uint32_t i = 0; i < op->n_in; i++)
        partial |= replay->partial[instance(replay, instr->group, instr->microbatch,
                                            op->in[i], instr->form[i])];
    for (uint32_t o = 0; o < op->n_out; o++)
        replay->partial[instance(replay, instr->group, instr->microbatch, op->out[o],
                                 instr->form[op->n_in + o])] = partial;
}

static bool run_compute(ExecReplay *replay, const Instr *instr, GError **error)
{
    const Op *op = graph_get_op(replay->graph, instr->op);
    if (!check_loops(replay, instr, error))
        return false;
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
        drop(replay, owned[i]);
    for (uint32_t o = 0; o < op->n_out; o++)
        if (sum[o])
            drop(replay, out[o]);
    return good;
}

/* Whether the rank is the first one of a replica. */
static bool is_first(const ExecReplay *replay, uint32_t group, uint32_t rank)
{
    const DeviceGroup *of = &replay->cuts->group[group];
    for (uint32_t r = 0; r < of->n_replicas; r++)
        if (of->device[r * of->n_devices] == rank)
            return true;
    return false;
}

/* Slice, keep and pad need no other rank. */
static bool run_local(ExecReplay *replay, const Instr *instr, const ExecShard *from,
                      ExecShard *to, GError **error)
{
    ExecBackend *backend = replay->backend;
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        if (!to[r].data)
            continue;
        if (instr->collective != COLLECTIVE_KEEP || is_first(replay, instr->group, r)) {
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

/* An all-reduce over the replicas, in place. */
static bool run_across(ExecReplay *replay, const Instr *instr, GError **error)
{
    const uint32_t i =
        instance(replay, instr->group, instr->microbatch, instr->tensor, instr->from);
    ExecShard *from = use(replay, instr, instr->tensor, instr->from, error);
    if (!from)
        return false;
    ExecShard *to = shapes(replay, from);
    const bool good = allocate(replay, instr->group, to, error) &&
                      exec_replay_exchange(replay, instr->group, EXEC_ACROSS,
                                           instr->collective, from, to, error);
    replay->held[i] = good ? to : from;
    replay->partial[i] = replay->partial[i] && !good;
    drop(replay, good ? from : to);
    return good;
}

static bool run_collective(ExecReplay *replay, const Instr *instr, GError **error)
{
    if (instr->across)
        return run_across(replay, instr, error);
    if (!collective_converts(instr->collective, instr->from, instr->to))
        return fail(replay, error, "no such conversion");
    const ExecShard *from = use(replay, instr, instr->tensor, instr->from, error);
    ExecShard *to =
        from ? make_for(replay, instr, instr->tensor, instr->to, error) : NULL;
    if (!to)
        return false;
    replay->partial[instance(replay, instr->group, instr->microbatch, instr->tensor,
                             instr->to)] =
        replay->partial[instance(replay, instr->group, instr->microbatch, instr->tensor,
                                 instr->from)];
    if (instr->collective >= (Collective)COLLECTIVES_PRICED)
        return run_local(replay, instr, from, to, error);
    return exec_replay_exchange(replay, instr->group, EXEC_INSIDE, instr->collective,
                                from, to, error);
}

/* --- transfers --- */

/* Whether replica s of the senders has something that replica r of the receivers needs. */
static bool sends(const ExecReplay *replay, const Instr *instr, uint32_t s, uint32_t r)
{
    const DeviceGroup *from = &replay->cuts->group[instr->group],
                      *to = &replay->cuts->group[instr->to_group];
    if (instances_has_parts(replay->cuts->instances, instr->tensor))
        return true; /* as far as their parts overlap */
    if (from->n_replicas == to->n_replicas)
        return s == r;
    return s == (uint64_t)r * from->n_replicas / to->n_replicas;
}

/* What receiver (r, p) gets, by an exchange among it and its senders: where all devices of a replica have the same, one of
 * them sends. */
static bool receive(ExecReplay *replay, const Instr *instr, uint32_t r, uint32_t p,
                    const ExecShard *from, ExecShard *to, GError **error)
{
    ExecBackend *backend = replay->backend;
    const DeviceGroup *a = &replay->cuts->group[instr->group],
                      *b = &replay->cuts->group[instr->to_group];
    const uint32_t receiver = b->device[r * b->n_devices + p];
    g_autofree uint32_t *member = g_new(uint32_t, a->n_replicas * a->n_devices + 1);
    g_autofree ExecShard *have = shapes(replay, from), *need = shapes(replay, to);
    uint32_t n = 0;
    bool sender = false;
    for (uint32_t k = 0; k < backend->n_ranks; k++)
        have[k] = need[k] = (ExecShard){.rank = from[k].rank};
    for (uint32_t s = 0; s < a->n_replicas; s++)
        for (uint32_t q = 0; sends(replay, instr, s, r) && q < a->n_devices; q++) {
            const uint32_t k = a->device[s * a->n_devices + q];
            ExecShard overlap;
            if ((!form_is_gather(instr->from) &&
                 q != (uint64_t)p * a->n_devices / b->n_devices) ||
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
    const ExecExchange exchange = {COLLECTIVE_ALL_TO_ALL, have, need, n, member};
    return backend->ops->exchange(backend, &exchange, error);
}

static bool run_transfer(ExecReplay *replay, const Instr *instr, GError **error)
{
    const DeviceGroup *b = &replay->cuts->group[instr->to_group];
    const ExecShard *from = use(replay, instr, instr->tensor, instr->from, error);
    ExecShard *to = from ? make(replay, instr->to_group, instr->microbatch, instr->tensor,
                                instr->to, error)
                         : NULL;
    if (!to)
        return false;
    replay->partial[instance(replay, instr->to_group, instr->microbatch, instr->tensor,
                             instr->to)] =
        replay->partial[instance(replay, instr->group, instr->microbatch, instr->tensor,
                                 instr->from)];
    for (uint32_t r = 0; r < b->n_replicas; r++)
        for (uint32_t p = 0; p < b->n_devices; p++)
            if (!receive(replay, instr, r, p, from, to, error))
                return false;
    return true;
}

/* --- loads --- */

/* Writes the part of a tensor that a local rank has. */
static void write_part(ExecReplay *replay, uint32_t local, const ExecTensor *value,
                       const ExecShard *part)
{
    ExecTensor slice = *value;
    for (uint32_t d = 0; d < part->rank; d++) {
        if (part->dim[d] == slice.dim[d])
            continue;
        ExecTensor less =
            exec_tensor_slice(&slice, d, part->offset[d], part->offset[d] + part->dim[d]);
        if (slice.data != value->data)
            exec_tensor_clear(&slice);
        slice = less;
    }
    replay->backend->ops->write(replay->backend, local, part, slice.data);
    if (slice.data != value->data)
        exec_tensor_clear(&slice);
}

static bool run_load(ExecReplay *replay, const Instr *instr, uint64_t seed,
                     GError **error)
{
    ExecBackend *backend = replay->backend;
    const uint32_t n = instances_has_parts(replay->cuts->instances, instr->tensor)
                           ? replay->plan->program->n_microbatches
                           : 1;
    ExecTensor value = exec_value_new(replay->graph, instr->tensor, seed);
    bool good = true;
    replay->rest[(size_t)instr->group * graph_n_tensors(replay->graph) + instr->tensor] =
        instr->to;
    for (uint32_t m = 0; good && m < n; m++) {
        const ExecShard *shard =
            make(replay, instr->group, m, instr->tensor, instr->to, error);
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
    if (plan->n_devices != backend->n_ranks) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "the plan is for %u devices, but there are %u ranks", plan->n_devices,
                    backend->n_ranks);
        return NULL;
    }
    ExecCuts *cuts = exec_cuts_new(plan, graph, error);
    if (!cuts)
        return NULL;
    const size_t n_instances = (size_t)cuts->instances->n_places * FORM_MAX;
    const size_t n_rests = (size_t)cuts->n_groups * graph_n_tensors(graph);
    ExecReplay *replay = g_new0(ExecReplay, 1);
    *replay = (ExecReplay){.backend = backend, .plan = plan, .graph = graph, .slow = 1};
    replay->cuts = cuts;
    replay->held = g_new0(ExecShard *, n_instances);
    replay->partial = g_new0(bool, n_instances);
    replay->added = g_new0(uint32_t, n_instances);
    replay->rest = g_new(Form, n_rests);
    memset(replay->rest, FORM_MAX, n_rests);
    replay->seconds = g_new0(double, plan->program->n + 1);
    return replay;
}

void exec_replay_free(ExecReplay *replay)
{
    if (!replay)
        return;
    for (size_t i = 0; i < (size_t)replay->cuts->instances->n_places * FORM_MAX; i++)
        drop(replay, replay->held[i]);
    g_free(replay->held);
    g_free(replay->partial);
    g_free(replay->added);
    g_free(replay->rest);
    g_free(replay->seconds);
    exec_cuts_free(replay->cuts);
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

static bool run_instr(ExecReplay *replay, const Instr *instr, GError **error)
{
    switch (instr->kind) {
    case INSTR_COMPUTE:
        return run_compute(replay, instr, error);
    case INSTR_TRANSFER:
        return run_transfer(replay, instr, error);
    case INSTR_COLLECTIVE:
        return run_collective(replay, instr, error);
    case INSTR_LOAD:
        return true;
    }
    g_assert_not_reached();
}

static bool run_program(ExecReplay *replay, bool timed, GError **error)
{
    const Program *program = replay->plan->program;
    memset(replay->added, 0,
           (size_t)replay->cuts->instances->n_places * FORM_MAX * sizeof *replay->added);
    for (replay->at = 0; replay->at < program->n; replay->at++) {
        const Instr *instr = &program->instr[replay->at];
        if (instr->kind == INSTR_LOAD)
            continue;
        const double start = timed ? exec_backend_seconds(replay->backend) : 0;
        if (!run_instr(replay, instr, error))
            return false;
        if (!timed)
            continue;
        exec_backend_synchronise(replay->backend);
        replay->seconds[replay->at] = exec_backend_seconds(replay->backend) - start;
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
    replay->slow = factor;
}

const ExecShard *exec_replay_shards(const ExecReplay *replay, uint32_t group,
                                    uint32_t microbatch, TensorId tensor, Form form)
{
    const uint32_t i = instance(replay, group, microbatch, tensor, form);
    return i == GRAPH_NONE ? NULL : replay->held[i];
}

bool exec_replay_is_partial(const ExecReplay *replay, uint32_t group, TensorId tensor,
                            Form form)
{
    const uint32_t i = instance(replay, group, 0, tensor, form);
    return i != GRAPH_NONE && replay->partial[i];
}

Form exec_replay_rest(const ExecReplay *replay, uint32_t group, TensorId tensor)
{
    return replay->rest[(size_t)group * graph_n_tensors(replay->graph) + tensor];
}

const ExecCuts *exec_replay_cuts(const ExecReplay *replay)
{
    return replay->cuts;
}

const double *exec_replay_seconds(const ExecReplay *replay)
{
    return replay->seconds;
}

uint64_t exec_replay_bytes(const ExecReplay *replay)
{
    return replay->bytes;
}

/* Bytes on the local ranks of an instance that was not seen before. */
static uint64_t new_bytes(ExecReplay *replay, bool *seen, uint32_t group,
                          uint32_t microbatch, TensorId tensor, Form form)
{
    const ExecBackend *backend = replay->backend;
    g_autofree ExecShard *shard = g_new0(ExecShard, backend->n_ranks);
    bool *known = &seen[instance(replay, group, microbatch, tensor, form)];
    uint64_t bytes = 0;
    if (*known)
        return 0;
    *known = true;
    exec_cut(replay->cuts, group, microbatch, tensor, form,
             replay->cuts->instance_segment[(size_t)tensor * FORM_MAX + form], shard);
    for (uint32_t r = backend->first; r < backend->first + backend->n_local; r++)
        if (in_group(replay, group, r))
            bytes += exec_shard_elements(&shard[r]) * backend->element_bytes;
    return bytes;
}

uint64_t exec_replay_bytes_needed(ExecReplay *replay)
{
    const Program *program = replay->plan->program;
    g_autofree bool *seen =
        g_new0(bool, (size_t)replay->cuts->instances->n_places *FORM_MAX);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        const bool computes = instr->kind == INSTR_COMPUTE;
        const Op *op = computes ? graph_get_op(replay->graph, instr->op) : NULL;
        const uint32_t group =
            instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
        const bool load = instr->kind == INSTR_LOAD;
        const uint32_t n_parts =
            load && instances_has_parts(replay->cuts->instances, instr->tensor)
                ? program->n_microbatches
                : 1;
        for (uint32_t o = 0; o < (computes ? op->n_out : n_parts); o++)
            bytes += new_bytes(replay, seen, group, load ? o : instr->microbatch,
                               computes ? op->out[o] : instr->tensor,
                               computes ? instr->form[op->n_in + o] : instr->to);
    }
    return bytes;
}
