/* The duplex search against all choices of small random chains, each written out as stages and timed by sim_duplex_time. */
#include "tests/test.h"

#include "synth/duplex.h"

enum { RUNS = 400, MAX_NODES = 6, FORMS = 3, MAX_STAGES = MAX_NODES + 1 };

typedef struct {
    DuplexProblem p;
    DuplexNode node[MAX_NODES];
    DuplexConversion conversion[MAX_NODES][FORM_MAX][FORM_MAX];
    DuplexConversions *table[MAX_NODES];
} Chain;

static double draw(GRand *random)
{
    return g_rand_int_range(random, 0, 4) ? g_rand_double(random) : 0;
}

static Times draw_times(GRand *random, uint32_t n_classes)
{
    Times times = {{0}};
    for (uint32_t h = 0; h < n_classes; h++)
        times.s[h] = draw(random);
    return times;
}

static void random_choices(Chain *chain, DuplexNode *node, GRand *random)
{
    const uint32_t n = (uint32_t)g_rand_int_range(random, 1, 5);
    for (uint32_t c = 0; c < n; c++) {
        DuplexChoice choice = {.id = c,
                               .forward = draw_times(random, chain->p.n_classes),
                               .back = draw_times(random, chain->p.n_classes),
                               .update = draw_times(random, chain->p.n_classes)};
        for (uint32_t k = 0; k < node->n_in; k++)
            choice.in[k] = (Form)g_rand_int_range(random, 0, FORMS);
        choice.out[0] = (Form)g_rand_int_range(random, 0, FORMS);
        if (g_rand_boolean(random))
            choice.gather_s[0] = draw(random);
        if (g_rand_boolean(random))
            choice.sync_s[1] = draw(random);
        duplex_add_choice(node, chain->p.n_classes, &choice);
    }
}

/* Each node reads the one before it and perhaps an earlier one. */
static void random_chain(Chain *chain, GRand *random)
{
    *chain = (Chain){
        .p = {.n_nodes = (uint32_t)g_rand_int_range(random, 1, MAX_NODES + 1),
              .n_classes = (uint32_t)g_rand_int_range(random, 1, 3),
              .node = chain->node,
              .conversion = chain->table,
              .cost = g_rand_boolean(random) ? DUPLEX_OVERLAPPED : DUPLEX_SERIAL_BACK}};
    chain->p.n_tensors = chain->p.n_nodes;
    for (uint32_t i = 0; i < chain->p.n_nodes; i++) {
        DuplexNode *node = &chain->node[i];
        node->choices = g_array_new(FALSE, FALSE, sizeof(DuplexChoice));
        node->n_out = 1;
        node->out[0] = i;
        if (i > 0)
            node->in[node->n_in++] = i - 1;
        if (i > 1 && g_rand_boolean(random))
            node->in[node->n_in++] = (uint32_t)g_rand_int_range(random, 0, (gint32)i);
        random_choices(chain, node, random);
        chain->table[i] = (DuplexConversions *)&chain->conversion[i];
        for (Form from = 0; from < FORMS; from++)
            for (Form to = 0; to < FORMS; to++) {
                const bool local = g_rand_int_range(random, 0, 4) == 0;
                chain->conversion[i][from][to] = (DuplexConversion){
                    from != to && g_rand_int_range(random, 0, 8) > 0, !local,
                    local ? 0 : draw(random), local ? 0 : draw(random)};
            }
    }
    const DuplexNode *last = &chain->node[chain->p.n_nodes - 1];
    chain->p.goal = g_array_index(last->choices, DuplexChoice, 0).out[0];
}

static double most(const Times *a, uint32_t n)
{
    return n > 1 ? fmax(a->s[0], a->s[1]) : a->s[0];
}

/* The stages of given choices, forward and then backward. */
typedef struct {
    uint32_t n;
    double c[MAX_STAGES][2], d[MAX_STAGES][2];
    Times forward[MAX_STAGES], back[MAX_STAGES], update;
} Written;

static bool write_down(const Chain *chain, const uint32_t *which, Written *w)
{
    Form form[MAX_NODES] = {0};
    *w = (Written){.n = 1};
    for (uint32_t i = 0; i < chain->p.n_nodes; i++) {
        const DuplexNode *node = &chain->node[i];
        const DuplexChoice *choice =
            &g_array_index(node->choices, DuplexChoice, which[i]);
        DuplexConversion all = {0};
        for (uint32_t k = 0; k < node->n_in; k++) {
            const Form from = form[node->in[k]];
            const DuplexConversion *one =
                &chain->conversion[node->in[k]][from][choice->in[k]];
            if (from == choice->in[k])
                continue;
            if (!one->can)
                return false;
            if (k && node->in[0] == node->in[1] && choice->in[0] == choice->in[1])
                continue;
            all.opens |= one->opens;
            all.forward_s += one->forward_s;
            all.back_s += one->back_s;
        }
        for (uint32_t k = 0; k < node->n_in; k++) {
            const Form from = form[node->in[k]];
            if (from != choice->in[k] &&
                chain->conversion[node->in[k]][from][choice->in[k]].opens)
                form[node->in[k]] = choice->in[k];
        }
        w->n += all.opens;
        for (uint32_t m = 0; m < 2; m++) {
            w->c[w->n - 1][m] += all.forward_s + choice->gather_s[m];
            w->d[w->n - 1][m] += all.back_s + choice->sync_s[m];
        }
        for (uint32_t h = 0; h < chain->p.n_classes; h++) {
            w->forward[w->n - 1].s[h] += choice->forward.s[h];
            w->back[w->n - 1].s[h] += choice->back.s[h];
            w->update.s[h] += choice->update.s[h];
        }
        form[i] = choice->out[0];
    }
    return form[chain->p.n_nodes - 1] == chain->p.goal;
}

static double time_of(const Chain *chain, const Written *w)
{
    const uint32_t classes = chain->p.n_classes;
    SimDuplexStage stage[2 * MAX_STAGES] = {{{0}, {0}}};
    const bool serial = chain->p.cost == DUPLEX_SERIAL_BACK;
    double serial_s = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++, n++)
        stage[n] = (SimDuplexStage){
            {w->c[i][0], w->c[i][1]},
            {most(&w->forward[i], classes), most(&w->forward[i], classes)}};
    for (uint32_t i = w->n; i-- > 0;) {
        Times both = w->back[i];
        if (serial)
            serial_s += 2 * most(&both, classes) + w->d[i][0] + w->d[i][1];
        for (uint32_t h = 0; h < classes && i + 1 == w->n; h++)
            both.s[h] += w->forward[i].s[h];
        SimDuplexStage *turn = &stage[i + 1 == w->n ? n - 1 : n++];
        turn->comp_s[0] = turn->comp_s[1] = most(&both, classes);
        stage[n] = (SimDuplexStage){{w->d[i][0], w->d[i][1]}, {0, 0}};
    }
    if (serial) {
        n = w->n;
        for (uint32_t m = 0; m < 2; m++)
            stage[n - 1].comp_s[m] = most(&w->forward[n - 1], classes);
        return sim_duplex_time(n, stage) + serial_s + most(&w->update, classes);
    }
    return sim_duplex_time(n + 1, stage) + most(&w->update, classes);
}

static double brute_force(const Chain *chain, uint32_t *which, uint32_t at)
{
    Written w;
    if (at == chain->p.n_nodes)
        return write_down(chain, which, &w) ? time_of(chain, &w) : INFINITY;
    double best = INFINITY;
    for (which[at] = 0; which[at] < chain->node[at].choices->len; which[at]++)
        best = fmin(best, brute_force(chain, which, at + 1));
    return best;
}

static void test_equals_brute_force(void **state)
{
    (void)state;
    GRand *random = g_rand_new_with_seed(11);
    uint32_t solved = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        Chain chain;
        random_chain(&chain, random);
        uint32_t which[MAX_NODES];
        const double best = brute_force(&chain, which, 0);
        DuplexSolution solution;
        const bool done = duplex_solve(&chain.p, &solution);
        assert_int_equal(done, isfinite(best));
        if (done) {
            assert_close(solution.time_s, best, 1e-9);
            for (uint32_t i = 0; i < chain.p.n_nodes; i++)
                which[i] =
                    (uint32_t)(solution.choice[i] -
                               (DuplexChoice *)(void *)chain.node[i].choices->data);
            Written w;
            assert_true(write_down(&chain, which, &w));
            assert_close(time_of(&chain, &w), best, 1e-9);
            solved++;
        }
        duplex_solution_clear(&solution);
        for (uint32_t i = 0; i < chain.p.n_nodes; i++)
            g_array_unref(chain.node[i].choices);
    }
    assert_true(solved > RUNS / 2);
    g_rand_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
