/* Eq. 4 and 5 of HiDup against events: a device and a network that each serve the two microbatches
 * in turn, first come first served, each step when the microbatch's step before it is done. */
#include "tests/support/duplex_time.h"
#include "tests/test.h"

#include "sim/event/engine.h"
#include "sim/sim.h"

enum { RUNS = 300, MAX_STAGES = 40, NETWORK = 0, DEVICE = 1 };

typedef struct {
    SimEngine *engine;
    uint32_t n;
    const DuplexStage *stage;
    /* step of each resource that is served next: 2 stage + microbatch */
    uint32_t next[2];
    bool busy[2]; /* of each resource */
    /* steps of each microbatch that are done: communication and computation in turn */
    uint32_t done[2];
} Pair;

static void finish(SimEngine *engine, void *context, uint64_t resource);

static void serve(Pair *p, uint32_t resource)
{
    if (p->busy[resource] || p->next[resource] == 2 * p->n)
        return;
    const uint32_t i = p->next[resource] / 2, who = p->next[resource] % 2;
    if (p->done[who] != 2 * i + resource)
        return;
    p->busy[resource] = true;
    const double s =
        resource == NETWORK ? p->stage[i].comm_s[who] : p->stage[i].comp_s[who];
    sim_engine_schedule(p->engine, sim_engine_now(p->engine) + s, 0, finish, p, resource);
}

static void finish(SimEngine *engine, void *context, uint64_t resource)
{
    Pair *p = context;
    (void)engine;
    p->busy[resource] = false;
    p->done[p->next[resource]++ % 2]++;
    serve(p, NETWORK);
    serve(p, DEVICE);
}

static double run_events(uint32_t n, const DuplexStage *stage)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    Pair p = {.engine = engine, .n = n, .stage = stage};
    serve(&p, NETWORK);
    sim_engine_run(engine);
    assert_int_equal(p.done[0], 2 * n);
    assert_int_equal(p.done[1], 2 * n);
    return sim_engine_now(engine);
}

static double draw(GRand *random)
{
    return g_rand_int_range(random, 0, 4) ? g_rand_double(random) : 0;
}

static void test_formula_equals_events(void **state)
{
    (void)state;
    GRand *random = g_rand_new_with_seed(7);
    for (uint32_t run = 0; run < RUNS; run++) {
        DuplexStage stage[MAX_STAGES];
        const uint32_t n = (uint32_t)g_rand_int_range(random, 1, MAX_STAGES);
        const bool alike = run % 2;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t who = 0; who < 2; who++) {
                stage[i].comm_s[who] = alike && who ? stage[i].comm_s[0] : draw(random);
                stage[i].comp_s[who] = alike && who ? stage[i].comp_s[0] : draw(random);
            }
        assert_close(duplex_time(n, stage), run_events(n, stage), 1e-9);
    }
    g_rand_free(random);
}

/* Three stages by hand, as in the paper's Fig. 3. */
static void test_by_hand(void **state)
{
    (void)state;
    const DuplexStage stage[] = {{{0, 0}, {3, 3}}, {{2, 2}, {5, 5}}, {{6, 6}, {1, 1}}};
    /* 3, then 3 beside 2, 5 beside 2, 5 beside 6, 1 beside 6, and 1 */
    assert_close(duplex_time(3, stage), 3 + 3 + 5 + 6 + 6 + 1, 1e-15);
    assert_close(duplex_time(0, NULL), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula_equals_events),
        cmocka_unit_test(test_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
