/* The toolbox: heaps and loops on threads. */
#include "data/data.h"
#include "tests/test.h"

/* --- heaps --- */

static inline bool before(const uint32_t *place, const uint32_t *a, const uint32_t *b)
{
    (void)place;
    return *a < *b;
}

static inline void moved(uint32_t *place, const uint32_t *item, uint32_t at)
{
    place[*item] = at;
}

HEAP_DEFINE(two, uint32_t, uint32_t, 2, before, moved)
HEAP_DEFINE(four, uint32_t, uint32_t, 4, before, moved)

enum { ITEMS = 200 };

static uint32_t first_of(uint32_t *place, uint32_t *heap, uint32_t *n, bool binary)
{
    const uint32_t first = heap[0];
    --*n;
    (binary ? two_sink : four_sink)(place, heap, *n, 0, heap[*n]);
    return first;
}

/* All numbers come back in order, in whatever order they went in, and each knows its place. */
static void test_heaps_sort(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (uint32_t round = 0; round < 100; round++) {
        const bool binary = round % 2;
        uint32_t heap[ITEMS], place[ITEMS], item[ITEMS], n = 0;
        const uint32_t items = (uint32_t)g_rand_int_range(rand, 1, ITEMS + 1);
        for (uint32_t i = 0; i < items; i++) {
            const uint32_t at = (uint32_t)g_rand_int_range(rand, 0, (gint32)i + 1);
            item[i] = item[at];
            item[at] = i;
        }
        for (uint32_t i = 0; i < items; i++) {
            (binary ? two_rise : four_rise)(place, heap, n, item[i]);
            n++;
            (binary ? two_walk : four_walk)(place, heap, n);
        }
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(place[heap[i]], i);
        for (uint32_t i = 0; i < items; i++)
            assert_int_equal(first_of(place, heap, &n, binary), i);
    }
}

/* An item that takes another's place goes up or down. */
static void test_heaps_settle(void **state)
{
    (void)state;
    uint32_t heap[] = {2, 10, 4, 12, 14}, place[20];
    two_settle(place, heap, 5, 3, 3);
    assert_int_equal(heap[1], 3);
    assert_int_equal(place[10], 3);
    two_settle(place, heap, 5, 0, 13);
    assert_int_equal(heap[0], 3);
    two_walk(place, heap, 5);
}

/* --- loops on threads --- */

typedef struct {
    gint begun[ITEMS];
    uint32_t bad; /* this round and all after it fail */
    gint threads;
} Rounds;

static void *begin(void *context)
{
    Rounds *rounds = context;
    g_atomic_int_inc(&rounds->threads);
    return g_new0(uint32_t, 1);
}

static bool step(void *context, void *own, uint32_t i, GError **error)
{
    Rounds *rounds = context;
    ++*(uint32_t *)own;
    g_atomic_int_inc(&rounds->begun[i]);
    return i < rounds->bad || kilter_fail(error, KILTER_ERROR_FAILED, "round %u", i);
}

static void test_every_round_is_run_once(void **state)
{
    (void)state;
    for (uint32_t threads = 0; threads < 6; threads++) {
        Rounds rounds = {.bad = ITEMS};
        const Parallel work = {ITEMS, threads, &rounds, begin, g_free, step};
        GError *error = NULL;
        assert_true(parallel_run(&work, NULL, &error));
        assert_no_error(error);
        assert_true(threads == 0 || rounds.threads == (gint)threads);
        for (uint32_t i = 0; i < ITEMS; i++)
            assert_int_equal(rounds.begun[i], 1);
    }
    const Parallel none = {.round = step};
    assert_true(parallel_run(&none, NULL, NULL));
}

/* However many threads there are, the error is that of the first round that fails. */
static void test_first_error(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        Rounds rounds = {.bad = 5 + i % 60};
        const Parallel work = {ITEMS, 1 + i % 8, &rounds, begin, g_free, step};
        g_autoptr(GError) error = NULL;
        g_autofree char *expected = g_strdup_printf("round %u", rounds.bad);
        uint32_t failed;
        assert_false(parallel_run(&work, &failed, &error));
        assert_string_equal(error->message, expected);
        assert_int_equal(failed, rounds.bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heaps_sort),
        cmocka_unit_test(test_heaps_settle),
        cmocka_unit_test(test_every_round_is_run_once),
        cmocka_unit_test(test_first_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
