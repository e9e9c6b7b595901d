/* The MPI backend: one rank a process. Padded and grouped collectives really differ:
 *
 *     all_gather              one MPI_Allgather of blocks padded to the largest shard
 *     grouped_all_gather      an MPI_Bcast of the exact shard from each rank
 *     reduce_scatter          one MPI_Reduce_scatter_block of padded blocks
 *     grouped_reduce_scatter  an MPI_Reduce of the exact shard to each rank
 *     all_to_all              one MPI_Alltoallv of exact blocks
 *
 * Contractions are BLAS's; other ops run the reference's kernels, in float32 by way of float64. */
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <mpi.h>
#include <string.h>

#include "exec/blas.h"

typedef struct {
    ExecBackend base;
    MPI_Datatype type;
    uint32_t rank;
    void *buffer[2]; /* to send from, to receive into */
    uint64_t capacity[2];
    GHashTable *team; /* ranks as text -> Team */
    Blas blas;
} Mpi;

/* The ranks of an exchange. */
typedef struct {
    MPI_Comm comm;
    uint32_t n, me; /* me: of this process, below n */
} Team;

enum { SEND, RECEIVE };

static Mpi *as_mpi(ExecBackend *backend)
{
    return (Mpi *)(void *)backend;
}

/* --- memory --- */

static void *mpi_allocate(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    (void)local;
    return g_try_malloc0_n(elements + 1, backend->element_bytes);
}

static void mpi_release(ExecBackend *backend, uint32_t local, void *data)
{
    (void)backend;
    (void)local;
    g_free(data);
}

static void from_host(const double *from, void *to, uint64_t n, size_t size)
{
    if (size == sizeof(double)) {
        memcpy(to, from, n * size);
        return;
    }
    float *single = to;
    for (uint64_t i = 0; i < n; i++)
        single[i] = (float)from[i];
}

static void to_host(const void *from, double *to, uint64_t n, size_t size)
{
    if (size == sizeof(double)) {
        memcpy(to, from, n * size);
        return;
    }
    const float *single = from;
    for (uint64_t i = 0; i < n; i++)
        to[i] = (double)single[i];
}

static void mpi_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                      const double *from)
{
    (void)local;
    from_host(from, to->data, exec_shard_elements(to), backend->element_bytes);
}

static void mpi_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                     double *to)
{
    (void)local;
    to_host(from->data, to, exec_shard_elements(from), backend->element_bytes);
}

static void mpi_copy(ExecBackend *backend, uint32_t local, const ExecShard *from,
                     const ExecShard *to)
{
    (void)local;
    memset(to->data, 0, exec_shard_elements(to) * backend->element_bytes);
    exec_overlap_copy(from, to, backend->element_bytes);
}

static void mpi_add(ExecBackend *backend, uint32_t local, const ExecShard *from,
                    const ExecShard *to)
{
    (void)local;
    exec_shard_add(from, to, backend->element_bytes);
}

/* At least `elements` of scratch. */
static void *scratch(Mpi *mpi, int which, uint64_t elements)
{
    if (elements + 1 > mpi->capacity[which]) {
        g_free(mpi->buffer[which]);
        mpi->capacity[which] = elements + 1;
        mpi->buffer[which] = g_malloc_n(elements + 1, mpi->base.element_bytes);
    }
    return mpi->buffer[which];
}

/* --- ops --- */

/* In float64: on the shards themselves, or on copies. */
static ExecTensor host_tensor(const ExecShard *shard, size_t size, bool fill)
{
    ExecTensor tensor = {.rank = shard->rank, .data = shard->data};
    if (size != sizeof(double)) {
        tensor = exec_tensor_new(shard->rank, shard->dim);
        if (fill)
            to_host(shard->data, tensor.data, exec_shard_elements(shard), size);
    }
    memcpy(tensor.dim, shard->dim, sizeof tensor.dim);
    memcpy(tensor.offset, shard->offset, sizeof tensor.offset);
    return tensor;
}

static void run_kernel(const Graph *graph, OpId id, const ExecShard *in,
                       const ExecShard *out, size_t size)
{
    const Op *op = graph_get_op(graph, id);
    ExecTensor input[OP_MAX_IN], output[OP_MAX_OUT];
    for (uint32_t i = 0; i < op->n_in; i++)
        input[i] = host_tensor(&in[i], size, true);
    for (uint32_t o = 0; o < op->n_out; o++)
        output[o] = host_tensor(&out[o], size, false);
    exec_run_op(graph, id, input, output);
    if (size == sizeof(double))
        return;
    for (uint32_t i = 0; i < op->n_in; i++)
        exec_tensor_clear(&input[i]);
    for (uint32_t o = 0; o < op->n_out; o++) {
        from_host(output[o].data, out[o].data, exec_shard_elements(&out[o]), size);
        exec_tensor_clear(&output[o]);
    }
}

static void mpi_run_op(ExecBackend *backend, uint32_t local, const Graph *graph, OpId op,
                       const ExecShard *in, const ExecShard *out)
{
    (void)local;
    if (!blas_contract(&as_mpi(backend)->blas, graph, op, in, out,
                       backend->element_bytes))
        run_kernel(graph, op, in, out, backend->element_bytes);
}

/* --- collectives --- */

static bool check(int code, const char *call, GError **error)
{
    if (code == MPI_SUCCESS)
        return true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return kilter_fail(error, KILTER_ERROR_FAILED, "%s: %s", call, text);
}

/* MPI counts in int. */
static bool check_count(uint64_t elements, GError **error)
{
    return elements <= INT_MAX || kilter_fail(error, KILTER_ERROR_FAILED,
                                              "a message of %" G_GUINT64_FORMAT
                                              " elements is more than MPI takes",
                                              elements);
}

/* The shards of the i-th rank of a team. */
static const ExecShard *from_of(const ExecExchange *e, uint32_t i)
{
    return &e->from[exec_exchange_rank(e, i)];
}

static ExecShard *to_of(const ExecExchange *e, uint32_t i)
{
    return &e->to[exec_exchange_rank(e, i)];
}

static uint64_t largest(const Team *team, const ExecExchange *e, const ExecShard *shard)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < team->n; r++)
        n = MAX(n, exec_shard_elements(&shard[exec_exchange_rank(e, r)]));
    return n;
}

/* `shard`, with its data at element `at` of a buffer. */
static ExecShard placed(const Mpi *mpi, const ExecShard *shard, void *buffer, uint64_t at)
{
    ExecShard block = *shard;
    block.data = (char *)buffer + at * mpi->base.element_bytes;
    return block;
}

static bool all_reduce(Mpi *mpi, const Team *team, const ExecExchange *e, GError **error)
{
    const uint64_t n = exec_shard_elements(from_of(e, team->me));
    const int server = (int)e->server - 1;
    void *sum = to_of(e, team->me)->data;
    if (server >= 0)
        return check_count(n, error) &&
               check(MPI_Reduce(from_of(e, team->me)->data, sum, (int)n, mpi->type,
                                MPI_SUM, server, team->comm),
                     "MPI_Reduce", error) &&
               check(MPI_Bcast(sum, (int)n, mpi->type, server, team->comm), "MPI_Bcast",
                     error);
    return check_count(n, error) &&
           check(MPI_Allreduce(from_of(e, team->me)->data, to_of(e, team->me)->data,
                               (int)n, mpi->type, MPI_SUM, team->comm),
                 "MPI_Allreduce", error);
}

static bool all_gather(Mpi *mpi, const Team *team, const ExecExchange *e, GError **error)
{
    const uint64_t block = largest(team, e, e->from);
    const ExecShard *mine = from_of(e, team->me);
    void *send = scratch(mpi, SEND, block);
    void *receive = scratch(mpi, RECEIVE, block * team->n);
    memset(send, 0, block * mpi->base.element_bytes);
    memcpy(send, mine->data, exec_shard_elements(mine) * mpi->base.element_bytes);
    if (!check_count(block, error) ||
        !check(MPI_Allgather(send, (int)block, mpi->type, receive, (int)block, mpi->type,
                             team->comm),
               "MPI_Allgather", error))
        return false;
    for (uint32_t r = 0; r < team->n; r++) {
        const ExecShard part = placed(mpi, from_of(e, r), receive, r * block);
        exec_overlap_copy(&part, to_of(e, team->me), mpi->base.element_bytes);
    }
    return true;
}

static bool grouped_all_gather(Mpi *mpi, const Team *team, const ExecExchange *e,
                               GError **error)
{
    void *receive = scratch(mpi, RECEIVE, largest(team, e, e->from));
    for (uint32_t r = 0; r < team->n; r++) {
        const uint64_t n = exec_shard_elements(from_of(e, r));
        const ExecShard part =
            r == team->me ? *from_of(e, r) : placed(mpi, from_of(e, r), receive, 0);
        if (n == 0)
            continue;
        if (!check_count(n, error) ||
            !check(MPI_Bcast(part.data, (int)n, mpi->type, (int)r, team->comm),
                   "MPI_Bcast", error))
            return false;
        exec_overlap_copy(&part, to_of(e, team->me), mpi->base.element_bytes);
    }
    return true;
}

static bool reduce_scatter(Mpi *mpi, const Team *team, const ExecExchange *e,
                           GError **error)
{
    const size_t size = mpi->base.element_bytes;
    const uint64_t block = largest(team, e, e->to);
    void *send = scratch(mpi, SEND, block * team->n);
    void *receive = scratch(mpi, RECEIVE, block);
    memset(send, 0, block * team->n * size);
    for (uint32_t r = 0; r < team->n; r++) {
        const ExecShard part = placed(mpi, to_of(e, r), send, r * block);
        exec_overlap_copy(from_of(e, team->me), &part, size);
    }
    if (!check_count(block, error) ||
        !check(MPI_Reduce_scatter_block(send, receive, (int)block, mpi->type, MPI_SUM,
                                        team->comm),
               "MPI_Reduce_scatter_block", error))
        return false;
    memcpy(to_of(e, team->me)->data, receive,
           exec_shard_elements(to_of(e, team->me)) * size);
    return true;
}

static bool grouped_reduce_scatter(Mpi *mpi, const Team *team, const ExecExchange *e,
                                   GError **error)
{
    void *send = scratch(mpi, SEND, largest(team, e, e->to));
    for (uint32_t r = 0; r < team->n; r++) {
        const uint64_t n = exec_shard_elements(to_of(e, r));
        const ExecShard part = placed(mpi, to_of(e, r), send, 0);
        if (n == 0)
            continue;
        exec_overlap_copy(from_of(e, team->me), &part, mpi->base.element_bytes);
        if (!check_count(n, error) ||
            !check(MPI_Reduce(send, to_of(e, team->me)->data, (int)n, mpi->type, MPI_SUM,
                              (int)r, team->comm),
                   "MPI_Reduce", error))
            return false;
    }
    return true;
}

/* Blocks to or from each rank, one after the other in a buffer. */
typedef struct {
    ExecShard *block;
    int *count, *begin;
    uint64_t total;
} Blocks;

/* What `mine` shares with each of `other`. */
static Blocks blocks_new(const Team *team, const ExecExchange *e, const ExecShard *mine,
                         const ExecShard *other)
{
    const uint32_t n = team->n;
    Blocks blocks = {g_new0(ExecShard, n), g_new0(int, n), g_new0(int, n), 0};
    for (uint32_t r = 0; r < n; r++) {
        blocks.begin[r] = (int)MIN(blocks.total, INT_MAX);
        if (!exec_shard_overlap(mine, &other[exec_exchange_rank(e, r)], &blocks.block[r]))
            continue;
        const uint64_t elements = exec_shard_elements(&blocks.block[r]);
        blocks.count[r] = (int)MIN(elements, INT_MAX);
        blocks.total += elements;
    }
    return blocks;
}

static void blocks_clear(Blocks *blocks)
{
    g_free(blocks->block);
    g_free(blocks->count);
    g_free(blocks->begin);
}

/* Copies all blocks between `shard` and the buffer. */
static void blocks_copy(const Mpi *mpi, const Team *team, const Blocks *blocks,
                        const ExecShard *shard, void *buffer, bool pack)
{
    for (uint32_t r = 0; r < team->n; r++) {
        if (blocks->count[r] == 0)
            continue;
        const ExecShard block =
            placed(mpi, &blocks->block[r], buffer, (uint64_t)blocks->begin[r]);
        exec_overlap_copy(pack ? shard : &block, pack ? &block : shard,
                          mpi->base.element_bytes);
    }
}

static bool all_to_all(Mpi *mpi, const Team *team, const ExecExchange *e, GError **error)
{
    const ExecShard *from = from_of(e, team->me), *to = to_of(e, team->me);
    Blocks out = blocks_new(team, e, from, e->to), in = blocks_new(team, e, to, e->from);
    bool good = check_count(out.total, error) && check_count(in.total, error);
    if (good) {
        void *send = scratch(mpi, SEND, out.total),
             *receive = scratch(mpi, RECEIVE, in.total);
        blocks_copy(mpi, team, &out, from, send, true);
        good = check(MPI_Alltoallv(send, out.count, out.begin, mpi->type, receive,
                                   in.count, in.begin, mpi->type, team->comm),
                     "MPI_Alltoallv", error);
        if (good)
            blocks_copy(mpi, team, &in, to, receive, false);
    }
    blocks_clear(&out);
    blocks_clear(&in);
    return good;
}

/* --- teams --- */

static void team_free(gpointer data)
{
    Team *team = data;
    MPI_Comm_free(&team->comm);
    g_free(team);
}

/* A communicator of the exchange's ranks; only they come here. */
static const Team *team_of(Mpi *mpi, const ExecExchange *e, GError **error)
{
    g_autoptr(GString) key = g_string_new(NULL);
    g_autofree int *rank = g_new(int, e->n_members);
    for (uint32_t i = 0; i < e->n_members; i++) {
        rank[i] = (int)e->member[i];
        g_string_append_printf(key, "%d ", rank[i]);
    }
    Team *team = g_hash_table_lookup(mpi->team, key->str);
    if (team)
        return team;
    MPI_Group world, group;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, (int)e->n_members, rank, &group);
    const bool good = check(MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm),
                            "MPI_Comm_create_group", error);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    if (!good)
        return NULL;
    team = g_new(Team, 1);
    *team = (Team){.comm = comm, .n = e->n_members};
    while (e->member[team->me] != mpi->rank)
        team->me++;
    g_hash_table_insert(mpi->team, g_strdup(key->str), team);
    return team;
}

static bool takes_part(const Mpi *mpi, const ExecExchange *e)
{
    for (uint32_t i = 0; i < e->n_members; i++)
        if (e->member[i] == mpi->rank)
            return true;
    return e->n_members == 0;
}

static bool mpi_exchange(ExecBackend *backend, const ExecExchange *exchange,
                         GError **error)
{
    static bool (*const exchanges[COLLECTIVES_PRICED])(
        Mpi *, const Team *, const ExecExchange *, GError **) = {
        [COLLECTIVE_ALL_REDUCE] = all_reduce,
        [COLLECTIVE_ALL_GATHER] = all_gather,
        [COLLECTIVE_GROUPED_ALL_GATHER] = grouped_all_gather,
        [COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
        [COLLECTIVE_GROUPED_REDUCE_SCATTER] = grouped_reduce_scatter,
        [COLLECTIVE_ALL_TO_ALL] = all_to_all,
    };
    Mpi *mpi = as_mpi(backend);
    const Team world = {MPI_COMM_WORLD, backend->n_ranks, mpi->rank};
    if (!takes_part(mpi, exchange))
        return true;
    const Team *team = exchange->n_members ? team_of(mpi, exchange, error) : &world;
    return team && exchanges[exchange->kind](mpi, team, exchange, error);
}

static double mpi_seconds(ExecBackend *backend)
{
    (void)backend;
    return MPI_Wtime();
}

static void mpi_maximum(ExecBackend *backend, double *value, uint32_t n)
{
    (void)backend;
    exec_mpi_maximum(value, n);
}

static void mpi_free(ExecBackend *backend)
{
    Mpi *mpi = as_mpi(backend);
    g_hash_table_unref(mpi->team);
    g_free(mpi->buffer[SEND]);
    g_free(mpi->buffer[RECEIVE]);
    g_free(mpi);
}

static const ExecBackendOps MPI_OPS = {
    .name = "mpi",
    .allocate = mpi_allocate,
    .release = mpi_release,
    .write = mpi_write,
    .read = mpi_read,
    .copy = mpi_copy,
    .add = mpi_add,
    .run_op = mpi_run_op,
    .exchange = mpi_exchange,
    .free = mpi_free,
    .seconds = mpi_seconds,
    .maximum = mpi_maximum,
};

/* --- the world --- */

bool exec_mpi_built(void)
{
    return true;
}

/* Memory that was freed is used again instead of being given back and fetched anew, page by page,
 * by every op that needs scratch: times then grow evenly with sizes. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

bool exec_mpi_start(uint32_t *n_ranks, uint32_t *rank, GError **error)
{
    int provided, size = 0, place = 0;
    Blas blas;
    if (!blas_open(&blas, error) ||
        !check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init",
               error))
        return false;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    *n_ranks = (uint32_t)size;
    *rank = (uint32_t)place;
    keep_memory();
    return true;
}

void exec_mpi_stop(void)
{
    MPI_Finalize();
}

void exec_mpi_broadcast(void *data, size_t bytes)
{
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void exec_mpi_maximum(double *value, uint32_t n)
{
    MPI_Allreduce(MPI_IN_PLACE, value, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

ExecBackend *exec_mpi_new(size_t element_bytes)
{
    int size = 0, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Mpi *mpi = g_new0(Mpi, 1);
    mpi->base = (ExecBackend){.ops = &MPI_OPS,
                              .n_ranks = (uint32_t)size,
                              .first = (uint32_t)rank,
                              .n_local = 1,
                              .element_bytes = element_bytes};
    mpi->rank = (uint32_t)rank;
    const bool good = blas_open(&mpi->blas, NULL);
    g_assert(good); /* exec_mpi_start has seen it */
    mpi->team = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, team_free);
    mpi->type = element_bytes == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
    return &mpi->base;
}
