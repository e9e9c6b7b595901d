/* Collectives by MPI, and the communicators of teams. */
#include "data/base/free.h"
#include "exec/mpi_backend.h"

#include <limits.h>
#include <string.h>

/* Scratch memory for at least `elements` numbers, which are those of an earlier message. Nobody
 * reads what pads a block. */
static void *scratch(Mpi *mpi, int which, uint64_t elements)
{
    g_assert(which == SEND || which == RECEIVE);
    if (elements + 1 > mpi->capacity[which]) {
        g_free(mpi->buffer[which]);
        mpi->capacity[which] = elements + 1;
        mpi->buffer[which] = g_malloc0_n(elements + 1, mpi->base.element_bytes);
    }
    return mpi->buffer[which];
}

bool mpi_check(int code, const char *call, GError **error)
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
    KILTER_ASSERT(exec_exchange_rank(e, i) != UINT32_MAX);
    return &e->from[exec_exchange_rank(e, i)];
}

static ExecShard *to_of(const ExecExchange *e, uint32_t i)
{
    return &e->to[exec_exchange_rank(e, i)];
}

static uint64_t largest(const Team *team, const ExecExchange *e, const ExecShard *shard)
{
    return most_over(uint64_t, r, team->n, 0,
                     exec_shard_elements(&shard[exec_exchange_rank(e, r)]));
}

/* A copy of `shard` whose data lie at element `at` of a buffer. */
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
    const void *own = from_of(e, team->me)->data;
    if (!check_count(n, error))
        return false;
    if (server < 0)
        return mpi_check(MPI_Allreduce(own == sum ? MPI_IN_PLACE : own, sum, (int)n,
                                       mpi->type, MPI_SUM, team->comm),
                         "MPI_Allreduce", error);
    const bool sums = (uint32_t)server == team->me;
    return mpi_check(MPI_Reduce(sums && own == sum ? MPI_IN_PLACE : own,
                                sums ? sum : NULL, (int)n, mpi->type, MPI_SUM, server,
                                team->comm),
                     "MPI_Reduce", error) &&
           mpi_check(MPI_Bcast(sum, (int)n, mpi->type, server, team->comm), "MPI_Bcast",
                     error);
}

static bool all_gather(Mpi *mpi, const Team *team, const ExecExchange *e, GError **error)
{
    const uint64_t block = largest(team, e, e->from);
    const ExecShard *mine = from_of(e, team->me);
    void *send = scratch(mpi, SEND, block);
    void *receive = scratch(mpi, RECEIVE, block * team->n);
    memcpy(send, mine->data, exec_shard_elements(mine) * mpi->base.element_bytes);
    if (!check_count(block, error) ||
        !mpi_check(MPI_Allgather(send, (int)block, mpi->type, receive, (int)block,
                                 mpi->type, team->comm),
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
            !mpi_check(MPI_Bcast(part.data, (int)n, mpi->type, (int)r, team->comm),
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
    for (uint32_t r = 0; r < team->n; r++) {
        const ExecShard part = placed(mpi, to_of(e, r), send, r * block);
        exec_overlap_copy(from_of(e, team->me), &part, size);
    }
    if (!check_count(block, error) ||
        !mpi_check(MPI_Reduce_scatter_block(send, receive, (int)block, mpi->type, MPI_SUM,
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
            !mpi_check(MPI_Reduce(send, to_of(e, team->me)->data, (int)n, mpi->type,
                                  MPI_SUM, (int)r, team->comm),
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

/* The overlaps of `mine` with each of `other`. */
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

static CLEAR_DEFINE(blocks_clear, Blocks, blocks,
                    free_each(blocks->block, blocks->count, blocks->begin));

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
        good = mpi_check(MPI_Alltoallv(send, out.count, out.begin, mpi->type, receive,
                                       in.count, in.begin, mpi->type, team->comm),
                         "MPI_Alltoallv", error);
        if (good)
            blocks_copy(mpi, team, &in, to, receive, false);
    }
    blocks_clear(&out);
    blocks_clear(&in);
    return good;
}

void mpi_team_free(gpointer data)
{
    Team *team = data;
    MPI_Comm_free(&team->comm);
    g_free(team);
}

/* The communicator of the exchange's ranks; only these ranks call this function. */
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
    const bool good = mpi_check(MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm),
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
    g_assert(mpi->rank < mpi->base.n_ranks);
    return any_of(i, e->n_members, e->member[i] == mpi->rank) || e->n_members == 0;
}

bool mpi_exchange(ExecBackend *backend, const ExecExchange *exchange, GError **error)
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
