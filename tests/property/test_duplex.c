/* The duplex search compared with all choices for small random chains, each written out as stages
 * and timed by duplex_time. */
#include "tests/support/duplex_time.h"
#include "tests/test.h"

#include "synth/hidup/duplex.h"

enum { RUNS = 800, MAX_NODES = 6, FORMS = 3, MAX_STAGES = MAX_NODES + 1 };

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
        for (uint32_t m = 0; m < 2; m++) {
            choice.gather_s[m] = g_rand_boolean(random) ? draw(random) : 0;
            choice.sync_s[m] = g_rand_boolean(random) ? draw(random) : 0;
        }
        choice.joins = g_rand_boolean(random);
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

/* The stages for given choices, forward and backward, both in the order of the chain. */
typedef struct {
    uint32_t n_forward, n_back;
    double c[MAX_STAGES][2], d[MAX_STAGES][2];
    Times forward[MAX_STAGES], back[MAX_STAGES], update;
} Written;

/* The node's conversions together, from the current forms of its inputs, which change. */
static bool convert(const Chain *chain, const DuplexNode *node,
                    const DuplexChoice *choice, Form *form, DuplexConversion *all)
{
    *all = (DuplexConversion){0};
    Form before[2] = {0};
    for (uint32_t k = 0; k < node->n_in; k++)
        before[k] = form[node->in[k]];
    for (uint32_t k = 0; k < node->n_in; k++) {
        const DuplexConversion *one =
            &chain->conversion[node->in[k]][before[k]][choice->in[k]];
        if (before[k] == choice->in[k])
            continue;
        if (!one->can)
            return false;
        if (k && node->in[0] == node->in[1] && choice->in[0] == choice->in[1])
            continue;
        all->forward_s += one->forward_s;
        all->back_s += one->back_s;
    }
    for (uint32_t k = 0; k < node->n_in; k++) {
        const Form now = form[node->in[k]];
        if (now != choice->in[k] &&
            chain->conversion[node->in[k]][now][choice->in[k]].opens)
            form[node->in[k]] = choice->in[k];
    }
    return true;
}

static bool write_down(const Chain *chain, const uint32_t *which, Written *w)
{
    const uint32_t classes = chain->p.n_classes;
    Form form[MAX_NODES] = {0};
    *w = (Written){.n_forward = 1, .n_back = 1};
    for (uint32_t i = 0; i < chain->p.n_nodes; i++) {
        const DuplexNode *node = &chain->node[i];
        const DuplexChoice *choice =
            &g_array_index(node->choices, DuplexChoice, which[i]);
        DuplexConversion all;
        if (!convert(chain, node, choice, form, &all))
            return false;
        const double gather_s = choice->gather_s[0] + choice->gather_s[1],
                     sync_s = choice->sync_s[0] + choice->sync_s[1];
        w->n_forward += all.forward_s > 0 || gather_s > 0;
        w->n_back += all.back_s > 0 || (sync_s > 0 && !choice->joins);
        for (uint32_t m = 0; m < 2; m++) {
            w->c[w->n_forward - 1][m] += all.forward_s + choice->gather_s[m];
            w->d[w->n_back - 1][m] += all.back_s + choice->sync_s[m];
        }
        for (uint32_t h = 0; h < classes; h++) {
            w->forward[w->n_forward - 1].s[h] += choice->forward.s[h];
            w->back[w->n_back - 1].s[h] += choice->back.s[h];
            w->update.s[h] += choice->update.s[h];
        }
        form[i] = choice->out[0];
    }
    return form[chain->p.n_nodes - 1] == chain->p.goal;
}

static double serial_back_s(const Chain *chain, const Written *w)
{
    double s = 0;
    for (uint32_t i = 0; i < w->n_back; i++)
        s += 2 * most(&w->back[i], chain->p.n_classes) + w->d[i][0] + w->d[i][1];
    return s;
}

static double time_of(const Chain *chain, const Written *w)
{
    const uint32_t classes = chain->p.n_classes;
    DuplexStage stage[2 * MAX_STAGES + 1] = {{{0}, {0}}};
    const bool serial = chain->p.cost == DUPLEX_SERIAL_BACK;
    const uint32_t n = w->n_forward;
    for (uint32_t i = 0; i < n; i++) {
        const double s = most(&w->forward[i], classes);
        stage[i] = (DuplexStage){{w->c[i][0], w->c[i][1]}, {s, s}};
    }
    if (serial)
        return duplex_time(n, stage) + serial_back_s(chain, w) +
               most(&w->update, classes);
    Times turn =
        w->forward[n - 1]; /* the last forward stage continues in the backward pass */
    for (uint32_t i = w->n_back, at = n - 1; i-- > 0; at++) {
        for (uint32_t h = 0; h < classes; h++)
            turn.s[h] += w->back[i].s[h];
        stage[at].comp_s[0] = stage[at].comp_s[1] = most(&turn, classes);
        stage[at + 1] = (DuplexStage){{w->d[i][0], w->d[i][1]}, {0, 0}};
        turn = (Times){{0}};
    }
    return duplex_time(n + w->n_back, stage) + most(&w->update, classes);
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
