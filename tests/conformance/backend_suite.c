/* The contract of every backend: exchanges, ops and whole plans, compared with the interpreter. */
#include "tests/conformance/backend_suite.h"

#include "tests/conformance/sample.h"
#include "tests/conformance/verify_cases.h"

/* --- exchanges --- */

/* A tensor, and the forms in which the ranks hold it before and after. */
typedef struct {
    Collective kind;
    uint32_t rank, dim[TENSOR_MAX_RANK];
    Form from, to;
    uint32_t *cut[2]; /* [n_ranks + 1] cuts of the sharded dimension, before and after */
    bool in_place;
    uint32_t server, n_members, *member; /* as in ExecExchange */
} Case;

static uint32_t *random_cut(GRand *random, uint32_t n_ranks, uint32_t extent)
{
    uint32_t *cut = g_new0(uint32_t, n_ranks + 1);
    for (uint32_t e = 0; e < extent; e++)
        cut[1 + g_rand_int_range(random, 0, (gint32)n_ranks)]++;
    for (uint32_t r = 0; r < n_ranks; r++)
        cut[r + 1] += cut[r];
    return cut;
}

/* Some ranks, in any order, or all. */
static void random_members(GRand *random, Case *c, uint32_t n_ranks)
{
    if (n_ranks < 2 || g_rand_boolean(random))
        return;
    c->n_members = (uint32_t)g_rand_int_range(random, 1, (gint32)n_ranks + 1);
    c->member = g_new(uint32_t, n_ranks);
    for (uint32_t r = 0; r < n_ranks; r++)
        c->member[r] = r;
    for (uint32_t r = 0; r < n_ranks; r++) {
        const uint32_t other =
            (uint32_t)g_rand_int_range(random, (gint32)r, (gint32)n_ranks);
        const uint32_t kept = c->member[r];
        c->member[r] = c->member[other];
        c->member[other] = kept;
    }
}

/* Which of the ranks that take part a rank is; UINT32_MAX: none. */
static uint32_t place_of(const Case *c, uint32_t rank)
{
    for (uint32_t i = 0; i < c->n_members; i++)
        if (c->member[i] == rank)
            return i;
    return c->n_members ? UINT32_MAX : rank;
}

static Case random_exchange(GRand *random, Collective kind, uint32_t n_ranks)
{
    Case c = {.kind = kind, .rank = (uint32_t)g_rand_int_range(random, 1, 4)};
    for (uint32_t d = 0; d < c.rank; d++)
        c.dim[d] = (uint32_t)g_rand_int_range(random, 1, 9);
    const uint32_t a = (uint32_t)g_rand_int_range(random, 0, (gint32)c.rank),
                   b = (uint32_t)g_rand_int_range(random, 0, (gint32)c.rank);
    const bool sums = kind == COLLECTIVE_ALL_REDUCE ||
                      kind == COLLECTIVE_REDUCE_SCATTER ||
                      kind == COLLECTIVE_GROUPED_REDUCE_SCATTER;
    const bool whole = kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_ALL_GATHER ||
                       kind == COLLECTIVE_GROUPED_ALL_GATHER;
    c.from = sums ? FORM_REDUCE : form_gather(a);
    c.to = whole ? FORM_IDENTITY : form_gather(b);
    c.in_place = kind == COLLECTIVE_ALL_REDUCE && g_rand_boolean(random);
    random_members(random, &c, n_ranks);
    const uint32_t n = c.n_members ? c.n_members : n_ranks;
    if (kind == COLLECTIVE_ALL_REDUCE)
        c.server = (uint32_t)g_rand_int_range(random, 0, (gint32)n + 1);
    c.cut[0] = random_cut(random, n, c.dim[a]);
    c.cut[1] = random_cut(random, n, c.dim[b]);
    return c;
}

static ExecShard shard_of(const Case *c, Form form, const uint32_t *cut, uint32_t r)
{
    ExecShard shard = {.rank = c->rank};
    memcpy(shard.dim, c->dim, sizeof shard.dim);
    if (form_is_gather(form)) {
        shard.offset[form_dim(form)] = cut[r];
        shard.dim[form_dim(form)] = cut[r + 1] - cut[r];
    }
    return shard;
}

/* Element i of the whole tensor, or of rank r's part of its sum: integers, exact in any dtype. */
static double element(uint64_t i, uint32_t r)
{
    return (double)(i % 1000 + 7 * r);
}

static double *whole_of(const Case *c, uint32_t r, uint64_t *n)
{
    const ExecShard shard = shard_of(c, FORM_IDENTITY, NULL, 0);
    *n = exec_shard_elements(&shard);
    double *data = g_new(double, *n + 1);
    for (uint64_t i = 0; i < *n; i++)
        data[i] = element(i, r);
    return data;
}

/* The part of `whole` that a shard covers. Caller frees. */
static double *part_of(const Case *c, double *whole, const ExecShard *shard)
{
    ExecShard all = shard_of(c, FORM_IDENTITY, NULL, 0), part = *shard;
    all.data = whole;
    part.data = g_new0(double, exec_shard_elements(shard) + 1);
    exec_overlap_copy(&all, &part, sizeof(double));
    return part.data;
}

static void fill(ExecBackend *backend, const Case *c, ExecShard *from, ExecShard *to)
{
    for (uint32_t r = 0; r < backend->n_ranks; r++) {
        const uint32_t place = place_of(c, r);
        if (place == UINT32_MAX)
            continue;
        from[r] = shard_of(c, c->from, c->cut[0], place);
        to[r] = shard_of(c, c->to, c->cut[1], place);
        if (r < backend->first || r >= backend->first + backend->n_local)
            continue;
        const uint32_t local = r - backend->first;
        uint64_t n;
        from[r].data =
            backend->ops->allocate(backend, local, exec_shard_elements(&from[r]));
        to[r].data = c->in_place ? from[r].data
                                 : exec_backend_reserve(backend, local,
                                                        exec_shard_elements(&to[r]));
        g_autofree double *whole = whole_of(c, c->from == FORM_REDUCE ? r : 0, &n);
        g_autofree double *part = part_of(c, whole, &from[r]);
        backend->ops->write(backend, local, &from[r], part);
    }
}

static void check_exchange(ExecBackend *backend, const Case *c)
{
    const uint32_t n_ranks = backend->n_ranks;
    g_autofree ExecShard *from = g_new0(ExecShard, n_ranks),
                         *to = g_new0(ExecShard, n_ranks);
    fill(backend, c, from, to);
    g_autoptr(GError) error = NULL;
    const ExecExchange exchange = {.kind = c->kind,
                                   .from = from,
                                   .to = to,
                                   .server = c->server,
                                   .n_members = c->n_members,
                                   .member = c->member};
    backend->ops->exchange(backend, &exchange, &error);
    assert_no_error(error);
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        uint64_t n;
        if (place_of(c, r) == UINT32_MAX)
            continue;
        if (!c->in_place) /* while it may still be sent */
            backend->ops->release(backend, local, from[r].data);
        g_autofree double *whole = whole_of(c, 0, &n);
        for (uint64_t i = 0; c->from == FORM_REDUCE && i < n; i++)
            whole[i] = 0;
        for (uint32_t s = 0; c->from == FORM_REDUCE && s < n_ranks; s++)
            for (uint64_t i = 0; place_of(c, s) != UINT32_MAX && i < n; i++)
                whole[i] += element(i, s);
        g_autofree double *want = part_of(c, whole, &to[r]);
        const uint64_t elements = exec_shard_elements(&to[r]);
        g_autofree double *got = g_new0(double, elements + 1);
        backend->ops->read(backend, local, &to[r], got);
        if (exec_difference(got, want, elements, 1) > 0)
            fail_msg("%s: rank %u has other numbers", collective_name(c->kind), r);
        backend->ops->release(backend, local, to[r].data);
    }
}

/* An op writes at once where an exchange still reads. */
static void check_overwriting(ExecBackend *backend)
{
    enum { N = 96 };
    static const double X[N];
    g_autoptr(Graph) graph = graph_new("one op");
    const TensorId x = graph_input(graph, "x", DTYPE_F32, 1, (uint32_t[]){N});
    graph_op(graph, OP_RELU, "y", (OpAttr){0}, 1, &x, NULL);
    graph_seal(graph);
    const uint32_t n = backend->n_ranks;
    g_autofree ExecShard *zero = g_new0(ExecShard, n), *from = g_new0(ExecShard, n),
                         *to = g_new0(ExecShard, n);
    double sent[N], got[N];
    for (uint32_t i = 0; i < N; i++)
        sent[i] = element(i, 0);
    for (uint32_t r = 0; r < n; r++) {
        zero[r] = from[r] = to[r] = (ExecShard){.rank = 1, .dim = {N}};
        if (r < backend->first || r >= backend->first + backend->n_local)
            continue;
        ExecShard *const all[] = {&zero[r], &from[r], &to[r]};
        for (uint32_t i = 0; i < G_N_ELEMENTS(all); i++) {
            all[i]->data = exec_backend_reserve(backend, r - backend->first, N);
            backend->ops->write(backend, r - backend->first, all[i], i == 1 ? sent : X);
        }
    }
    g_autoptr(GError) error = NULL;
    backend->ops->exchange(
        backend, &(ExecExchange){.kind = COLLECTIVE_ALL_REDUCE, .from = from, .to = to},
        &error);
    assert_no_error(error);
    for (uint32_t local = 0; local < backend->n_local; local++)
        backend->ops->run_op(backend, local, graph, 0, &zero[backend->first + local],
                             &from[backend->first + local]);
    for (uint32_t local = 0; local < backend->n_local; local++) {
        const uint32_t r = backend->first + local;
        backend->ops->read(backend, local, &to[r], got);
        for (uint32_t i = 0; i < N; i++)
            if (got[i] != n * sent[i])
                fail_msg("rank %u: what is sent was overwritten", r);
        backend->ops->release(backend, local, zero[r].data);
        backend->ops->release(backend, local, from[r].data);
        backend->ops->release(backend, local, to[r].data);
    }
}

static void check_exchanges(ExecBackend *backend, uint32_t seed, uint32_t n)
{
    GRand *random = g_rand_new_with_seed(seed);
    check_overwriting(backend);
    for (Collective kind = 0; kind < (Collective)COLLECTIVES_PRICED; kind++)
        for (uint32_t i = 0; i < n; i++) {
            Case c = random_exchange(random, kind, backend->n_ranks);
            check_exchange(backend, &c);
            g_free(c.cut[0]);
            g_free(c.cut[1]);
            g_free(c.member);
        }
    g_rand_free(random);
}

/* --- ops --- */

static ExecShard upload(ExecBackend *backend, const ExecTensor *tensor,
                        ExecNumbers numbers, bool write)
{
    ExecShard shard = {.rank = tensor->rank, .numbers = numbers};
    memcpy(shard.dim, tensor->dim, sizeof shard.dim);
    memcpy(shard.offset, tensor->offset, sizeof shard.offset);
    shard.data = backend->ops->allocate(backend, 0, exec_shard_room(backend, &shard));
    if (write)
        backend->ops->write(backend, 0, &shard, tensor->data);
    return shard;
}

static ExecNumbers numbers_of(const ExecBackend *backend, const Graph *graph, TensorId id)
{
    return exec_numbers_of(backend, graph_tensor(graph, id));
}

/* Operand `i` under the rule: the first `units` units of a sharded dim, or all. */
static ExecTensor first_part(const ExecTensor *whole, const Rule *rule, uint32_t i,
                             uint32_t units)
{
    const Form form = rule->form[i];
    if (!form_is_gather(form))
        return whole->rank ? exec_tensor_slice(whole, 0, 0, whole->dim[0])
                           : exec_tensor_new(0, NULL);
    const uint32_t piece = whole->dim[form_dim(form)] / rule->units;
    return exec_tensor_slice(whole, form_dim(form), 0, units * piece);
}

/* Adds one shard to another, and to itself. */
static void check_add(ExecBackend *backend)
{
    enum { N = 35 };
    ExecTensor a = exec_tensor_new(2, (uint32_t[]){5, 7}),
               b = exec_tensor_new(2, (uint32_t[]){5, 7});
    for (uint32_t i = 0; i < N; i++) {
        a.data[i] = element(i, 1);
        b.data[i] = element(i, 3);
    }
    ExecShard from = upload(backend, &a, EXEC_PLAIN, true),
              to = upload(backend, &b, EXEC_PLAIN, true);
    backend->ops->add(backend, 0, &from, &to);
    backend->ops->add(backend, 0, &to, &to);
    double got[N];
    backend->ops->read(backend, 0, &to, got);
    for (uint32_t i = 0; i < N; i++)
        assert_true(got[i] == 2 * (a.data[i] + b.data[i]));
    backend->ops->release(backend, 0, from.data);
    backend->ops->release(backend, 0, to.data);
    exec_tensor_clear(&a);
    exec_tensor_clear(&b);
}

/* Runs the op on one shard, on the backend and in the reference. */
static void check_op(ExecBackend *backend, const Graph *graph, OpId id,
                     const ExecTensor *value, const Rule *rule, uint32_t units,
                     double tolerance)
{
    const Op *op = graph_get_op(graph, id);
    ExecTensor in[OP_MAX_IN], want[OP_MAX_OUT];
    ExecShard input[OP_MAX_IN], output[OP_MAX_OUT];
    for (uint32_t i = 0; i < op->n_in; i++) {
        in[i] = first_part(&value[op->in[i]], rule, i, units);
        if (in[i].rank == 0)
            in[i].data[0] = value[op->in[i]].data[0];
        input[i] = upload(backend, &in[i], numbers_of(backend, graph, op->in[i]), true);
        backend->ops->read(backend, 0, &input[i], in[i].data); /* as rounded */
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        want[o] = first_part(&value[op->out[o]], rule, op->n_in + o, units);
        output[o] =
            upload(backend, &want[o], numbers_of(backend, graph, op->out[o]), false);
    }
    exec_run_op(graph, id, in, want);
    backend->ops->run_op(backend, 0, graph, id, input, output);
    for (uint32_t o = 0; o < op->n_out; o++) {
        const uint64_t n = exec_tensor_elements(&want[o]);
        g_autofree double *got = g_new0(double, n + 1);
        backend->ops->read(backend, 0, &output[o], got);
        const double error =
            exec_difference(got, want[o].data, n, MAX(1, exec_magnitude(&want[o])));
        /* fp16 has no numbers above 65504; statistics at random make such gradients of attention */
        const bool beyond = backend->half == EXEC_FP16 && exec_magnitude(&want[o]) > 1e4;
        if (!(error <= tolerance) && !beyond)
            fail_msg("%s: error %g of output %u", op_kind_name(op->kind), error, o);
        backend->ops->release(backend, 0, output[o].data);
        exec_tensor_clear(&want[o]);
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        backend->ops->release(backend, 0, input[i].data);
        exec_tensor_clear(&in[i]);
    }
}

static void check_ops(ExecBackend *backend, double tolerance, uint32_t shape)
{
    GRand *random = g_rand_new_with_seed(9);
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        for (uint32_t seed = 0; seed < BACKEND_SHAPES; seed++) {
            g_autoptr(Graph) graph = graph_new("one op");
            graph_set_precision(graph, backend->half == EXEC_PLAIN  ? PRECISION_SINGLE
                                       : backend->half == EXEC_FP16 ? PRECISION_MIXED
                                                                    : PRECISION_BF16);
            const OpId id = sample_op(graph, kind, 2, false, random);
            graph_seal(graph);
            if (shape < BACKEND_SHAPES && seed != shape)
                continue;
            ExecTensor *value = exec_values_new(graph, seed);
            exec_run_graph(graph, value);
            Rule rule[OP_MAX_RULES];
            const uint32_t n = op_rules(graph, id, rule);
            for (uint32_t r = 0; r < n; r++) {
                const uint32_t units =
                    (uint32_t)g_rand_int_range(random, 0, (gint32)rule[r].units + 1);
                check_op(backend, graph, id, value, &rule[r], units, tolerance);
            }
            exec_values_free(graph, value);
        }
    g_rand_free(random);
}

/* --- plans --- */

/* n random programs from seed `first` on, on as many devices as there are ranks. */
static void check_plans(ExecBackend *backend, double tolerance, uint32_t first,
                        uint32_t n)
{
    uint32_t run = 0;
    for (uint32_t seed = first; run < n; seed++) {
        RandomCase c = random_case(seed);
        if (c.plan->n_devices == backend->n_ranks) {
            run++;
            g_auto(ExecVerdict) verdict = {0};
            g_autoptr(GError) error = NULL;
            exec_verify(backend, c.plan, c.graph, seed, tolerance, &verdict, &error);
            assert_no_error(error);
            if (!verdict.right)
                fail_msg("random case %u: error %g of %s; first wrong: %s", seed,
                         verdict.error, verdict.where, verdict.wrong_tensor);
        }
        random_case_clear(&c);
    }
}

void backend_suite(ExecBackend *backend, double tolerance, uint32_t shape)
{
    check_exchanges(backend, 5, 20);
    check_add(backend);
    check_ops(backend, tolerance, shape);
    check_plans(backend,
                backend->half == EXEC_PLAIN ? tolerance : exec_tolerance(backend), 0, 10);
}

void backend_traffic(ExecBackend *backend, double tolerance, uint32_t seed)
{
    check_exchanges(backend, seed, 2);
    if (backend->n_ranks <= MOST_RANDOM_DEVICES)
        check_plans(backend,
                    backend->half == EXEC_PLAIN ? tolerance : exec_tolerance(backend),
                    1000 * seed, 2);
}
