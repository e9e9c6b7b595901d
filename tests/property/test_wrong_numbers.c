/* Programs that pass program_check but compute something else are found by their numbers. The
 * backend of a right program is made to err once, in one op or exchange of one rank: a wrong scale,
 * a wrong axis of equal size, a stale value, a wrong mask. Whether that changes a result is decided
 * by comparing the results of the two runs shard by shard, without exec_verify; if it does,
 * exec_verify must say so. */
#include <math.h>
#include <string.h>

#include "tests/conformance/verify_cases.h"

enum { WANTED = 500, MOST_CASES = 400, ERRORS_A_CASE = 6 };
/* A result has changed if a number differs by this part of the largest result of its role. */
#define CHANGE 1e-7

typedef enum { SCALE, AXIS, STALE, MASK, ERRORS } ErrorKind;
static const char *const ERROR_NAME[ERRORS] = {"scale", "axis", "stale", "mask"};

/* A backend that passes all on to another one, but errs in its call number `at` of run_op or
 * exchange. */
typedef struct {
    ExecBackend base; /* first */
    ExecBackend *inner;
    ErrorKind kind;
    double factor;
    uint32_t at, n_calls, seed;
    bool fails; /* instead, its exchange number `at` fails */
} Erring;

static ExecBackend *inner_of(ExecBackend *backend)
{
    return ((Erring *)backend)->inner;
}

static void *pass_allocate(ExecBackend *backend, uint32_t local, uint64_t elements)
{
    return inner_of(backend)->ops->allocate(inner_of(backend), local, elements);
}

static void pass_release(ExecBackend *backend, uint32_t local, void *data)
{
    inner_of(backend)->ops->release(inner_of(backend), local, data);
}

static void pass_write(ExecBackend *backend, uint32_t local, const ExecShard *to,
                       const double *from)
{
    inner_of(backend)->ops->write(inner_of(backend), local, to, from);
}

static void pass_read(ExecBackend *backend, uint32_t local, const ExecShard *from,
                      double *to)
{
    inner_of(backend)->ops->read(inner_of(backend), local, from, to);
}

static void pass_copy(ExecBackend *backend, uint32_t local, const ExecShard *from,
                      const ExecShard *to)
{
    inner_of(backend)->ops->copy(inner_of(backend), local, from, to);
}

static void pass_add(ExecBackend *backend, uint32_t local, const ExecShard *from,
                     const ExecShard *to)
{
    inner_of(backend)->ops->add(inner_of(backend), local, from, to);
}

static void free_erring(ExecBackend *backend)
{
    exec_backend_free(inner_of(backend));
    g_free(backend);
}

/* Exchanges the last two dims of equal size of a shard; false if there are none. */
static bool transpose(const ExecShard *shard)
{
    double *data = shard->data;
    for (uint32_t e = shard->rank; e-- > 1;)
        for (uint32_t d = e; d-- > 0;) {
            const uint32_t n = shard->dim[e];
            if (n < 2 || shard->dim[d] != n)
                continue;
            uint64_t inside = 1, between = 1, outside = 1;
            for (uint32_t k = 0; k < shard->rank; k++)
                *(k < d   ? &outside
                  : k > e ? &inside
                          : &between) *= k == d || k == e ? 1 : shard->dim[k];
            for (uint64_t o = 0; o < outside; o++)
                for (uint32_t i = 0; i < n; i++)
                    for (uint64_t b = 0; b < between; b++)
                        for (uint32_t j = i + 1; j < n; j++)
                            for (uint64_t k = 0; k < inside; k++) {
                                double *x =
                                    &data[((((o * n + i) * between + b) * n) + j) *
                                              inside +
                                          k];
                                double *y =
                                    &data[((((o * n + j) * between + b) * n) + i) *
                                              inside +
                                          k];
                                const double was = *x;
                                *x = *y;
                                *y = was;
                            }
            return true;
        }
    return false;
}

/* Spoils a result; `before` are its numbers before the call. */
static void spoil(const Erring *erring, const ExecShard *shard, const double *before)
{
    const uint64_t n = exec_shard_elements(shard);
    double *data = shard->data;
    GRand *random = g_rand_new_with_seed(erring->seed);
    switch (erring->kind) {
    case SCALE:
        for (uint64_t i = 0; i < n; i++)
            data[i] *= erring->factor;
        break;
    case AXIS:
        transpose(shard);
        break;
    case STALE:
        if (n > 0) /* an empty shard has no numbers, and no address */
            memcpy(data, before, n * sizeof *data);
        break;
    case MASK:
        for (uint64_t i = 0; i < n; i++)
            if (g_rand_boolean(random))
                data[i] = 0;
        break;
    case ERRORS:
        g_assert_not_reached();
    }
    g_rand_free(random);
}

static double *numbers_of(const ExecShard *shard)
{
    return g_memdup2(shard->data, exec_shard_elements(shard) * sizeof(double));
}

static void err_in_op(ExecBackend *backend, uint32_t local, const Graph *graph, OpId op,
                      const ExecShard *in, const ExecShard *out)
{
    Erring *erring = (Erring *)backend;
    const bool errs = !erring->fails && erring->n_calls++ == erring->at;
    g_autofree double *before = errs ? numbers_of(&out[0]) : NULL;
    erring->inner->ops->run_op(erring->inner, local, graph, op, in, out);
    if (errs)
        spoil(erring, &out[0], before);
}

static bool err_in_exchange(ExecBackend *backend, const ExecExchange *exchange,
                            GError **error)
{
    Erring *erring = (Erring *)backend;
    const bool errs = erring->n_calls++ == erring->at;
    if (errs && erring->fails)
        return kilter_fail(error, KILTER_ERROR_FAILED, "the network is down");
    const uint32_t size = exec_exchange_size(exchange, backend->n_ranks);
    const ExecShard *shard =
        &exchange->to[exec_exchange_rank(exchange, erring->seed % size)];
    const bool spoils = errs && shard->data;
    g_autofree double *before = spoils ? numbers_of(shard) : NULL;
    if (!erring->inner->ops->exchange(erring->inner, exchange, error))
        return false;
    if (spoils)
        spoil(erring, shard, before);
    return true;
}

static const ExecBackendOps ERRING = {
    .name = "erring",
    .allocate = pass_allocate,
    .release = pass_release,
    .write = pass_write,
    .read = pass_read,
    .copy = pass_copy,
    .add = pass_add,
    .run_op = err_in_op,
    .exchange = err_in_exchange,
    .free = free_erring,
};

static ExecBackend *erring_new(uint32_t n_ranks, Erring how)
{
    Erring *erring = g_memdup2(&how, sizeof how);
    erring->inner = exec_reference_new(n_ranks);
    erring->base = *erring->inner;
    erring->base.ops = &ERRING;
    erring->n_calls = 0;
    return &erring->base;
}

/* --- results, compared without exec_verify --- */

static bool is_result(const Graph *graph, TensorId id)
{
    bool is = id == graph_loss(graph);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        is |= graph_updated(graph, t) == id ||
              (graph_tensor(graph, t)->role == ROLE_PARAMETER &&
               graph_gradient(graph, t) == id);
    return is;
}

/* The largest difference of a result's shards in two runs; *largest gets its largest number. */
static double difference(const RandomCase *c, const ExecReplay *a, const ExecReplay *b,
                         TensorId id, double *largest)
{
    double most = 0;
    const ExecCuts *cuts = exec_replay_cuts(a);
    for (uint32_t g = 0; g < cuts->layout.n_groups; g++)
        for (uint32_t form = 0; form < FORM_OUTERS * 8; form++) {
            const ExecShard *x = form_inside((Form)form) < FORM_MAX
                                     ? exec_replay_shards(a, g, 0, id, (Form)form)
                                     : NULL;
            const ExecShard *y = x ? exec_replay_shards(b, g, 0, id, (Form)form) : NULL;
            for (uint32_t r = 0; y && r < c->plan->n_devices; r++)
                for (uint64_t i = 0; x[r].data && i < exec_shard_elements(&x[r]); i++) {
                    const double p = ((double *)x[r].data)[i],
                                 q = ((double *)y[r].data)[i];
                    most = fmax(most, fabs(p - q));
                    *largest = fmax(*largest, fabs(p));
                }
        }
    return most;
}

static ExecReplay *run(const RandomCase *c, ExecBackend *backend)
{
    g_autoptr(GError) error = NULL;
    ExecReplay *replay = exec_replay_new(backend, c->plan, c->graph, &error);
    assert_no_error(error);
    assert_true(exec_replay_load(replay, 1, &error) && exec_replay_run(replay, &error));
    return replay;
}

/* Whether an erring run has other results than the right one. */
static bool changes_results(const RandomCase *c, const ExecReplay *right, Erring how)
{
    g_autoptr(ExecBackend) backend = erring_new(c->plan->n_devices, how);
    g_autoptr(ExecReplay) wrong = run(c, backend);
    double most[ROLES] = {0}, largest[ROLES] = {0};
    for (TensorId t = 0; t < graph_n_tensors(c->graph); t++) {
        const uint32_t role = graph_tensor(c->graph, t)->role;
        if (is_result(c->graph, t))
            most[role] = fmax(most[role], difference(c, right, wrong, t, &largest[role]));
    }
    for (uint32_t role = 0; role < ROLES; role++)
        if (most[role] > CHANGE * largest[role])
            return true;
    return false;
}

static bool is_found(const RandomCase *c, Erring how)
{
    g_autoptr(ExecBackend) backend = erring_new(c->plan->n_devices, how);
    g_auto(ExecVerdict) verdict = {0};
    g_autoptr(GError) error = NULL;
    assert_true(
        exec_verify(backend, c->plan, c->graph, 1, EXEC_TOLERANCE, &verdict, &error));
    return !verdict.right;
}

static void test_errors_are_found(void **state)
{
    uint32_t n_wrong = 0, n_found = 0, n_of[ERRORS] = {0};
    (void)state;
    for (uint32_t seed = 0; seed < MOST_CASES && n_wrong < WANTED; seed++) {
        g_autoptr(GRand) random = g_rand_new_with_seed(1000 + seed);
        RandomCase c = random_case(seed);
        g_autoptr(GError) error = NULL;
        assert_true(program_check(c.plan->program, c.graph, &error));
        const Erring never = {.at = UINT32_MAX};
        ExecBackend *backend = erring_new(c.plan->n_devices, never);
        ExecReplay *right = run(&c, backend);
        const uint32_t n_calls = ((Erring *)backend)->n_calls;
        assert_false(is_found(&c, never)); /* the backend itself is right */
        for (uint32_t i = 0; i < ERRORS_A_CASE && n_wrong < WANTED; i++) {
            static const double factor[] = {2, 0.5, -1, 1.001, 0};
            const Erring how = {
                .kind = (seed + i) % ERRORS,
                .factor = factor[g_rand_int_range(random, 0, 5)],
                .at = (uint32_t)g_rand_int_range(random, 0, (gint32)n_calls),
                .seed = g_rand_int(random)};
            if (!changes_results(&c, right, how))
                continue;
            n_wrong++;
            n_of[how.kind]++;
            const bool found = is_found(&c, how);
            n_found += found;
            if (!found)
                print_error("not found: case %u, %s (%g) in call %u\n", seed,
                            ERROR_NAME[how.kind], how.factor, how.at);
        }
        exec_replay_free(right);
        exec_backend_free(backend);
        random_case_clear(&c);
    }
    print_message("%u of %u wrong programs are found:", n_found, n_wrong);
    for (uint32_t k = 0; k < ERRORS; k++) {
        print_message(" %u %s", n_of[k], ERROR_NAME[k]);
        assert_true(n_of[k] >= 20);
    }
    print_message("\n");
    assert_int_equal(n_wrong, WANTED);
    assert_int_equal(n_found, n_wrong);
}

/* A failure of any exchange, of the program or of the sums that are compared, is an error and no
 * verdict. */
static void test_failures(void **state)
{
    enum { CASES = 6 };
    uint32_t n_failed = 0;
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        RandomCase c = random_case(seed);
        bool fails = true;
        for (uint32_t at = 0; fails; at++) {
            g_autoptr(ExecBackend) backend =
                erring_new(c.plan->n_devices, (Erring){.fails = true, .at = at});
            g_auto(ExecVerdict) verdict = {0};
            g_autoptr(GError) error = NULL;
            const bool good = exec_verify(backend, c.plan, c.graph, 1, EXEC_TOLERANCE,
                                          &verdict, &error);
            fails = ((Erring *)backend)->n_calls > at;
            assert_int_equal(good, !fails);
            if (fails)
                assert_error(error, KILTER_ERROR_FAILED, "the network is down");
            n_failed += fails;
        }
        random_case_clear(&c);
    }
    assert_true(n_failed > 10 * CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_found),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests_name("wrong_numbers", tests, NULL, NULL);
}
