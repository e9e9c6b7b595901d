/* The event kernel: total order, ties, and a large random run against a sorted array. */
#include "sim/event/engine.h"
#include "tests/test.h"

#include <stdlib.h>

/* Collects the handled events in their order. */
typedef struct {
    uint32_t n;
    uint64_t argument[8];
    double time_s[8];
} Log;

static void note(SimEngine *engine, void *context, uint64_t argument)
{
    Log *log = context;

    assert_true(log->n < G_N_ELEMENTS(log->argument));
    log->time_s[log->n] = sim_engine_now(engine);
    log->argument[log->n++] = argument;
}

static void test_order_and_ties(void **state)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    Log log = {0};
    const uint64_t want[] = {5, 3, 4, 1, 2, 0};

    (void)state;
    sim_engine_schedule(engine, 3.0, 0, note, &log, 0);
    sim_engine_schedule(engine, 2.0, 1, note, &log, 1);
    sim_engine_schedule(engine, 2.0, 1, note, &log, 2); /* same time, priority: later */
    sim_engine_schedule(engine, 2.0, 0, note, &log, 3);
    sim_engine_schedule(engine, 2.0, 0, note, &log, 4);
    sim_engine_schedule(engine, 0.0, 9, note, &log, 5);
    assert_int_equal(sim_engine_run(engine), 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(log.argument[i], want[i]);
    assert_true(sim_engine_now(engine) == 3.0);
}

static void test_empty(void **state)
{
    g_autoptr(SimEngine) engine = sim_engine_new();

    (void)state;
    assert_int_equal(sim_engine_run(engine), 0);
    assert_true(sim_engine_now(engine) == 0);
}

/* Reschedules itself until `argument` is 0, half a second later each time. */
static void count_down(SimEngine *engine, void *context, uint64_t argument)
{
    note(engine, context, argument);
    if (argument > 0)
        sim_engine_schedule(engine, sim_engine_now(engine) + 0.5, 0, count_down, context,
                            argument - 1);
}

static void test_handlers_schedule(void **state)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    Log log = {0};

    (void)state;
    sim_engine_schedule(engine, 1.0, 0, count_down, &log, 4);
    assert_int_equal(sim_engine_run(engine), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(log.argument[i], 4 - i);
        assert_true(log.time_s[i] == 1.0 + 0.5 * i);
    }
}

/* An event at the present time runs after those already there. */
static void spawn_now(SimEngine *engine, void *context, uint64_t argument)
{
    note(engine, context, argument);
    sim_engine_schedule(engine, sim_engine_now(engine), 0, note, context, 100);
}

static void test_present_goes_last(void **state)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    Log log = {0};
    const uint64_t want[] = {1, 2, 100};

    (void)state;
    sim_engine_schedule(engine, 1.0, 0, spawn_now, &log, 1);
    sim_engine_schedule(engine, 1.0, 0, note, &log, 2);
    sim_engine_run(engine);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(log.argument[i], want[i]);
}

enum { MANY = 100000 };

typedef struct {
    double time_s;
    uint32_t priority, sequence;
} Key;

static int compare(const void *a, const void *b)
{
    const Key *x = a, *y = b;

    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

typedef struct {
    const Key *key; /* sorted */
    uint32_t next;
} Check;

static void check_next(SimEngine *engine, void *context, uint64_t argument)
{
    Check *check = context;
    const Key *key = &check->key[check->next++];

    assert_int_equal(argument, key->sequence);
    assert_true(sim_engine_now(engine) == key->time_s);
}

/* Runs events, scheduled in the order of the keys, against these sorted. */
static void run_sorted(Key *key, uint32_t n)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    Check check = {key, 0};
    for (uint32_t i = 0; i < n; i++)
        sim_engine_schedule(engine, key[i].time_s, key[i].priority, check_next, &check,
                            key[i].sequence);
    qsort(key, n, sizeof *key, compare);
    assert_int_equal(sim_engine_run(engine), n);
    assert_int_equal(check.next, n);
}

static void test_random_against_sort(void **state)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    g_autofree Key *key = g_new(Key, MANY);

    (void)state;
    for (uint32_t i = 0; i < MANY; i++)
        /* coarse times: many ties */
        key[i] = (Key){g_rand_int_range(rand, 0, 5000) / 8.0,
                       (uint32_t)g_rand_int_range(rand, 0, 3), i};
    run_sorted(key, MANY);
}

/* Bursts that are far apart, as seen by the first of them: all months of a year between them are
 * empty. */
static void test_bursts(void **state)
{
    enum { ROUNDS = 40, MOST_BURSTS = 5, EVENTS = 2000 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    g_autofree Key *key = g_new(Key, EVENTS);

    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const int bursts = g_rand_int_range(rand, 2, MOST_BURSTS);
        double start_s[MOST_BURSTS] = {0};
        for (int b = 1; b < bursts; b++)
            start_s[b] = start_s[b - 1] + pow(10, g_rand_double_range(rand, 0, 9));
        for (uint32_t i = 0; i < EVENTS; i++) {
            const double at_s = start_s[g_rand_int_range(rand, 0, bursts)];
            key[i] = (Key){at_s + g_rand_double(rand), 0, i};
        }
        run_sorted(key, EVENTS);
    }
}

/* --- many pending events, uneven in time --- */

enum { PENDING = 20000, HELD = 100000 };

typedef struct {
    GRand *rand;
    uint32_t left;
    double last_s;
    uint32_t last_priority;
    uint64_t last_argument, next_argument;
    uint32_t spread; /* which distribution */
} Hold;

/* Waiting times of very unlike sizes. */
static double draw(Hold *h)
{
    switch (h->spread) {
    case 0: /* even */
        return g_rand_double(h->rand);
    case 1: /* ties: one of few instants, often the present one */
        return g_rand_int_range(h->rand, 0, 3);
    case 2: /* over twelve orders of magnitude */
        return pow(10, g_rand_double_range(h->rand, -6, 6));
    case 3: /* Pareto: no mean */
        return pow(1 - g_rand_double(h->rand), -1 / 0.7) - 1;
    default: /* two clusters, one of them far away */
        return g_rand_boolean(h->rand) ? 1e-9 * g_rand_double(h->rand) : 1e9;
    }
}

static void hold(SimEngine *engine, void *context, uint64_t argument);

/* The argument counts the events that were scheduled, as the sequence number does. */
static void schedule_one(SimEngine *engine, Hold *h)
{
    const uint32_t priority = (uint32_t)g_rand_int_range(h->rand, 0, 2);
    sim_engine_schedule(engine, sim_engine_now(engine) + draw(h), priority, hold, h,
                        h->next_argument++ << 1 | priority);
}

static void hold(SimEngine *engine, void *context, uint64_t argument)
{
    Hold *h = context;
    const uint32_t priority = argument & 1;
    const double now_s = sim_engine_now(engine);

    /* Within an instant, priorities rise unless an event was scheduled just now. */
    assert_true(now_s >= h->last_s);
    if (now_s == h->last_s && priority == h->last_priority)
        assert_true(argument >> 1 > h->last_argument);
    h->last_s = now_s;
    h->last_priority = priority;
    h->last_argument = argument >> 1;
    if (h->left > 0) {
        h->left--;
        schedule_one(engine, h);
    }
}

static void test_many_pending(void **state)
{
    (void)state;
    for (uint32_t spread = 0; spread < 5; spread++) {
        g_autoptr(SimEngine) engine = sim_engine_new();
        Hold h = {g_rand_new_with_seed(spread + 1), HELD, 0, 0, 0, 1, spread};
        for (uint32_t i = 0; i < PENDING; i++)
            schedule_one(engine, &h);
        assert_int_equal(sim_engine_run(engine), PENDING + HELD);
        g_rand_free(h.rand);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_ties),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_handlers_schedule),
        cmocka_unit_test(test_present_goes_last),
        cmocka_unit_test(test_random_against_sort),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_many_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
