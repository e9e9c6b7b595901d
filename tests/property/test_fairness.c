/* Max-min fair rates after random changes: flows that start and end, links that lose, change
 * and regain their bandwidth, routes of up to 12 links, weights and efficiencies. After each
 * solve the rates must be max-min fair by definition, and equal to water-filling from nothing. */
#include <math.h>

#include "sim/network/fairness.h"
#include "tests/test.h"

enum { CASES = 1000, STEPS = 60, MAX_LINKS = 40, MAX_USES = 12, MAX_FLOWS = 256 };

typedef struct {
    GRand *rand;
    Topology topology;
    SimShare share;
    SimFlowId flow[MAX_FLOWS]; /* flows that share */
    uint32_t n;
    GArray *free_flows;
    GPtrArray *uses; /* of all flows so far */
    bool whole;      /* weights are 1, sizes equal */
} Case;

static uint32_t below(GRand *rand, uint32_t n)
{
    return (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
}

static void start_flow(Case *c, double now_s)
{
    SimUse *use = g_new(SimUse, MAX_USES);
    g_ptr_array_add(c->uses, use);
    const uint32_t n = MIN(1 + below(c->rand, MAX_USES), c->topology.n_links);
    const uint32_t first = below(c->rand, c->topology.n_links);
    const uint32_t stride = 1 + below(c->rand, 3);
    uint32_t n_uses = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t link = (first + k * stride) % c->topology.n_links;
        bool twice = false;
        for (uint32_t j = 0; j < n_uses; j++)
            twice |= use[j].link == link;
        if (!twice)
            use[n_uses++] =
                (SimUse){link, c->whole ? 1 : exp(g_rand_double_range(c->rand, -2, 2))};
    }
    const SimFlow flow = {.use = use,
                          .n_uses = n_uses,
                          .bytes = c->whole ? 1e6 : g_rand_double_range(c->rand, 1, 1e7),
                          .payload = 1,
                          .efficiency =
                              c->whole ? 1 : g_rand_double_range(c->rand, 0.3, 1)};
    SimFlowId id = UINT32_MAX;
    if (c->free_flows->len > 0) {
        id = g_array_index(c->free_flows, SimFlowId, c->free_flows->len - 1);
        g_array_set_size(c->free_flows, c->free_flows->len - 1);
    }
    id = share_new(&c->share, id, &flow);
    share_add(&c->share, id, now_s);
    c->flow[c->n++] = id;
}

static void drop(Case *c, SimFlowId id)
{
    uint32_t at = 0;
    while (c->flow[at] != id)
        at++;
    c->flow[at] = c->flow[--c->n];
    share_release(&c->share, id);
    g_array_append_val(c->free_flows, id);
}

static void end_flows(Case *c, const SimFlowId *id, uint32_t n)
{
    g_autoptr(GArray) emptied = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share_remove(&c->share, id, n, emptied);
    for (uint32_t i = 0; i < n; i++)
        drop(c, id[i]);
}

/* Equation (1) of network.h, by filling all links from zero. */
static void water_fill(const Case *c, double rate[MAX_FLOWS])
{
    double room[MAX_LINKS];
    bool fixed[MAX_FLOWS] = {false};
    for (uint32_t l = 0; l < c->topology.n_links; l++)
        room[l] = c->share.link[l].bandwidth;
    for (uint32_t left = c->n; left > 0;) {
        double weight[MAX_LINKS] = {0}, least = INFINITY;
        for (uint32_t i = 0; i < c->n; i++)
            for (uint32_t k = 0; !fixed[i] && k < c->share.flow[c->flow[i]].n_uses; k++)
                weight[c->share.flow[c->flow[i]].use[k].link] +=
                    share_weight(&c->share, c->flow[i], k);
        uint32_t full = 0;
        for (uint32_t l = 0; l < c->topology.n_links; l++)
            if (weight[l] > 0 && fmax(0, room[l]) / weight[l] < least) {
                least = fmax(0, room[l]) / weight[l];
                full = l;
            }
        for (uint32_t i = 0; i < c->n; i++) {
            const Sharer *f = &c->share.flow[c->flow[i]];
            bool crosses = false;
            for (uint32_t k = 0; !fixed[i] && k < f->n_uses; k++)
                crosses |= f->use[k].link == full;
            if (!crosses)
                continue;
            fixed[i] = true;
            rate[i] = least;
            left--;
            for (uint32_t k = 0; k < f->n_uses; k++)
                room[f->use[k].link] -= share_weight(&c->share, c->flow[i], k) * least;
        }
    }
}

static void check(Case *c, double now_s)
{
    double rate[MAX_FLOWS];
    share_solve(&c->share, now_s);
    assert_true(share_is_fair(&c->share, 1e-9));
    water_fill(c, rate);
    for (uint32_t i = 0; i < c->n; i++)
        assert_close(share_rate(&c->share, c->flow[i]), rate[i], 1e-9);
}

static void step(Case *c, double *now_s)
{
    g_autoptr(GArray) due = g_array_new(FALSE, FALSE, sizeof(SimFlowId));
    const uint32_t what = below(c->rand, 10);
    if (what < 5) {
        for (uint32_t n = 1 + below(c->rand, 6); n > 0 && c->n < MAX_FLOWS; n--)
            start_flow(c, *now_s);
    } else if (what < 8 && isfinite(share_next_end_s(&c->share))) {
        *now_s = fmax(*now_s, share_next_end_s(&c->share));
        share_take_due(&c->share, *now_s * (1 + 1e-12), due);
        assert_true(due->len > 0);
        for (guint i = 1; i < due->len; i++) /* in the order of their numbers */
            assert_true(g_array_index(due, SimFlowId, i - 1) <
                        g_array_index(due, SimFlowId, i));
        end_flows(c, (const SimFlowId *)(const void *)due->data, due->len);
    } else if (what == 8 && c->n > 0) {
        const SimFlowId id = c->flow[below(c->rand, c->n)];
        const double left = share_take_back(&c->share, id, *now_s);
        assert_true(left >= 0 && left <= c->share.rest[id].bytes);
        end_flows(c, &id, 1);
    } else {
        const uint32_t link = below(c->rand, c->topology.n_links);
        share_set_bandwidth(&c->share, link,
                            below(c->rand, 3) ? g_rand_double_range(c->rand, 1, 1e6) : 0);
    }
    *now_s += below(c->rand, 2) ? g_rand_double_range(c->rand, 0, 1) : 0;
}

static void test_random_changes(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        TopologyLink link[MAX_LINKS] = {{.from = 0}};
        Case c = {.rand = g_rand_new_with_seed(seed), .whole = seed % 3 == 0};
        c.topology.n_links = 1 + below(c.rand, MAX_LINKS);
        c.topology.link = link;
        for (uint32_t l = 0; l < c.topology.n_links; l++) {
            link[l].bandwidth = c.whole ? 1e6 * (1 + below(c.rand, 2))
                                        : exp(g_rand_double_range(c.rand, 0, 14));
            link[l].inner = below(c.rand, 2);
        }
        c.free_flows = g_array_new(FALSE, FALSE, sizeof(SimFlowId));
        c.uses = g_ptr_array_new_with_free_func(g_free);
        share_init(&c.share, &c.topology);
        double now_s = 0;
        for (uint32_t i = 0; i < STEPS; i++) {
            step(&c, &now_s);
            check(&c, now_s);
        }
        share_clear(&c.share);
        g_array_unref(c.free_flows);
        g_ptr_array_unref(c.uses);
        g_rand_free(c.rand);
    }
}

/* Tests the check: rates that are not fair must not pass. */
static void test_unfair_is_seen(void **state)
{
    (void)state;
    TopologyLink link[2] = {{.bandwidth = 2}, {.bandwidth = 1}};
    Topology topology = {.n_links = 2, .link = link};
    const SimUse both[2] = {{0, 1}, {1, 1}}, one[1] = {{0, 1}};
    SimShare share;
    share_init(&share, &topology);
    for (uint32_t i = 0; i < 2; i++) {
        const SimFlow flow = {.use = i ? both : one,
                              .n_uses = 1 + i,
                              .bytes = 1,
                              .payload = 1,
                              .efficiency = 1};
        share_add(&share, share_new(&share, UINT32_MAX, &flow), 0);
    }
    share_solve(&share, 0);
    assert_true(share_is_fair(&share, 1e-9));
    share.link[1].bandwidth = 0.5; /* unknown to the solver: over its bandwidth */
    assert_false(share_is_fair(&share, 1e-9));
    share.link[1].bandwidth = 1;
    share.link[0].bandwidth = 3; /* the first flow could be faster */
    assert_false(share_is_fair(&share, 1e-9));
    share_clear(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_changes),
        cmocka_unit_test(test_unfair_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
