/* Attacks on the exact search: hill climbing, from random assignments and from the search's own,
 * finds assignments that are emitted and priced by the analytic model. Emission shares a form that
 * one op's conversion made with the backward of another, which the search's space leaves out
 * (synth/synth.h): the only way an attack may win, rarely and by little. */
#include "tests/support/rounds.h"
#include "tests/test.h"

#include "synth/spmd/assignment.h"
#include "synth/synth.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_plan.h"

#include <stdlib.h>

typedef struct {
    const Graph *graph;
    const Pricer *pricer;
    const double *ratio;
    GRand *rand;
    uint32_t n_rules[512];
    Rule rule[512][OP_MAX_RULES]; /* of each op */
    TensorId parameter[128];
    uint32_t n_parameters;
} Attack;

static bool holdable(const Graph *graph, const Op *op, const Rule *rule)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (!form_can_hold(graph, op->in[i], rule->form[i]))
            return false;
    return true;
}

static void attack_init(Attack *a)
{
    for (OpId id = 0; id < graph_n_ops(a->graph); id++) {
        Rule all[OP_MAX_RULES];
        uint32_t n = op_rules(a->graph, id, all);
        a->n_rules[id] = 0;
        for (uint32_t r = 0; r < n; r++)
            if (holdable(a->graph, graph_get_op(a->graph, id), &all[r]))
                a->rule[id][a->n_rules[id]++] = all[r];
    }
    a->n_parameters = 0;
    for (TensorId t = 0; t < graph_n_tensors(a->graph); t++)
        if (graph_tensor(a->graph, t)->role == ROLE_PARAMETER)
            a->parameter[a->n_parameters++] = t;
}

static uint32_t pick(Attack *a, uint32_t n)
{
    return (uint32_t)g_rand_int_range(a->rand, 0, (gint32)n);
}

/* Accumulating adds keep the form of their sum in the assignment. */
static bool is_accumulation(const Graph *graph, OpId id, TensorId *of)
{
    const Op *op = graph_get_op(graph, id);
    const Op *forward = graph_get_op(graph, op->of);
    for (uint32_t i = 0; op->pass == PASS_BACKWARD && i < forward->n_in; i++)
        if (graph_accumulation(graph, op->of, i) == id) {
            *of = forward->in[i];
            return true;
        }
    return false;
}

static bool set_gradient(Attack *a, Assignment *x, TensorId tensor, Form form)
{
    for (OpId id = 0; id < graph_n_ops(a->graph); id++) {
        TensorId of;
        Form forms[OP_MAX_OPERANDS];
        memset(forms, form, sizeof forms);
        if (is_accumulation(a->graph, id, &of) && of == tensor &&
            !op_rule_find(a->graph, id, forms, &x->rule[id]))
            return false;
    }
    x->gradient[tensor] = form;
    return true;
}

static void set_parameter(Attack *a, Assignment *x, TensorId parameter)
{
    FormSet forms = forms_of_tensor(a->graph, parameter) & (FormSet) ~(1u << FORM_REDUCE);
    Form update;
    do
        update = (Form)pick(a, FORM_MAX);
    while (!(forms >> update & 1u));
    ParameterPlan plan = {.rest = pick(a, 2) ? update : FORM_IDENTITY, .update = update};
    parameter_plan_apply(a->graph, parameter, &plan, x);
}

/* Changes one choice of an assignment at random. */
static void mutate(Attack *a, Assignment *x)
{
    uint32_t what = pick(a, graph_n_ops(a->graph) + a->n_parameters);
    if (what >= graph_n_ops(a->graph)) {
        set_parameter(a, x, a->parameter[what - graph_n_ops(a->graph)]);
        return;
    }
    OpId id = what;
    const Op *op = graph_get_op(a->graph, id);
    TensorId of;
    if (op->pass == PASS_UPDATE || is_accumulation(a->graph, id, &of))
        return;
    x->rule[id] = a->rule[id][pick(a, a->n_rules[id])];
    for (uint32_t o = 0; op->pass == PASS_FORWARD && o < op->n_out; o++) {
        Form form = pick(a, 2) ? x->rule[id].form[op->n_in + o] : (Form)pick(a, FORM_MAX);
        if (form_can_hold(a->graph, op->out[o], form))
            set_gradient(a, x, op->out[o], form);
    }
}

static void randomise(Attack *a, Assignment *x)
{
    for (OpId id = 0; id < graph_n_ops(a->graph); id++) {
        const Op *op = graph_get_op(a->graph, id);
        TensorId of;
        if (op->pass == PASS_UPDATE || is_accumulation(a->graph, id, &of))
            continue;
        x->rule[id] = a->rule[id][pick(a, a->n_rules[id])];
        for (uint32_t o = 0; o < op->n_out; o++)
            if (!set_gradient(a, x, op->out[o], x->rule[id].form[op->n_in + o]))
                set_gradient(a, x, op->out[o], FORM_IDENTITY);
    }
    for (uint32_t p = 0; p < a->n_parameters; p++)
        set_parameter(a, x, a->parameter[p]);
}

static double time_of(Attack *a, const Assignment *x)
{
    g_autoptr(Program) program = synth_emit(a->pricer, x, NULL);
    if (!program)
        return INFINITY;
    g_autoptr(GError) error = NULL;
    program_check(program, a->graph, &error);
    assert_no_error(error);
    return synth_time(a->pricer, program, a->ratio, 0);
}

static void copy(const Graph *graph, Assignment *to, const Assignment *from)
{
    memcpy(to->rule, from->rule, graph_n_ops(graph) * sizeof *to->rule);
    memcpy(to->gradient, from->gradient, graph_n_tensors(graph) * sizeof *to->gradient);
    memcpy(to->rest, from->rest, graph_n_tensors(graph) * sizeof *to->rest);
}

/* The assignment of a program, with gradients kept in the forms in which contributions are made. */
static void from_program(Attack *a, const Program *program, Assignment *x)
{
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind == INSTR_LOAD)
            x->rest[instr->tensor] = instr->to;
        if (instr->kind == INSTR_COMPUTE)
            op_rule_find(a->graph, instr->op, instr->form, &x->rule[instr->op]);
    }
    for (OpId id = 0; id < graph_n_ops(a->graph); id++) {
        const Op *op = graph_get_op(a->graph, id);
        for (uint32_t o = 0; op->pass == PASS_BACKWARD && o < op->n_out; o++) {
            TensorId of = graph_tensor(a->graph, op->out[o])->of;
            if (graph_tensor(a->graph, of)->role == ROLE_ACTIVATION)
                x->gradient[of] = x->rule[id].form[op->n_in + o];
        }
    }
}

/* The best time reached by single changes from the search's program (s == 0) and from random
 * assignments. */
static double climb(Attack *a, const Program *program, uint32_t starts, uint32_t steps)
{
    Assignment best, trial;
    assignment_init(&best, a->graph);
    assignment_init(&trial, a->graph);
    double least = INFINITY;
    for (uint32_t s = 0; s < starts; s++) {
        if (s == 0)
            from_program(a, program, &best);
        else
            randomise(a, &best);
        double time_s = time_of(a, &best);
        for (uint32_t i = 0; i < steps; i++) {
            copy(a->graph, &trial, &best);
            for (uint32_t k = 1 + pick(a, 3); k > 0; k--)
                mutate(a, &trial);
            double trial_s = time_of(a, &trial);
            if (trial_s <= time_s) {
                time_s = trial_s;
                copy(a->graph, &best, &trial);
            }
        }
        least = fmin(least, time_s);
    }
    assignment_clear(&best);
    assignment_clear(&trial);
    return least;
}

/* Machines of single GPUs and of several; ratios are even, proportional to speed, or random. */
static double *random_ratio(GRand *rand, const ClusterView *view)
{
    double *ratio = g_new(double, view->n_devices), sum = 0;
    uint32_t how = (uint32_t)g_rand_int_range(rand, 0, 3);
    for (uint32_t j = 0; j < view->n_devices; j++)
        sum += ratio[j] = how == 0   ? 1
                          : how == 1 ? view->device[j].rate
                                     : g_rand_double_range(rand, 0.05, 1);
    for (uint32_t j = 0; j < view->n_devices; j++)
        ratio[j] /= sum;
    return ratio;
}

typedef struct {
    uint32_t attacked, reached, beaten;
} Tally;

static void attack_one(uint32_t seed, uint32_t blocks, uint32_t starts, uint32_t steps,
                       Tally *tally)
{
    GRand *rand = g_rand_new_with_seed(seed);
    g_autoptr(Graph) graph = random_graph(rand, blocks);
    g_autoptr(Cluster) cluster = random_cluster(rand, 4);
    if (seed % 4 < 2)
        random_fit(rand, cluster);
    g_autoptr(ClusterView) view =
        cluster_view(cluster, seed % 2 ? GRANULARITY_GPU : GRANULARITY_MACHINE);
    g_autofree double *ratio = random_ratio(rand, view);
    g_autoptr(SynthSpace) space = synth_space_new(graph, NULL);
    SynthOptions options = {0};
    SynthResult result;
    g_autoptr(GError) error = NULL;
    if (graph_n_ops(graph) > 512 ||
        !synth_search(space, view, ratio, &options, &result, &error)) {
        if (error) /* outside the stated space: a tied parameter */
            assert_error(error, KILTER_ERROR_FAILED, "consumers");
        g_rand_free(rand);
        return;
    }
    program_check(result.program, graph, &error);
    assert_no_error(error);
    Pricer pricer;
    pricer_init(&pricer, graph, view, ratio, NULL);
    g_autofree Attack *a = g_new0(Attack, 1);
    a->graph = graph;
    a->pricer = &pricer;
    a->ratio = ratio;
    a->rand = rand;
    attack_init(a);
    double found = climb(a, result.program, starts, steps);
    if (found < result.time_s * (1 - 1e-9)) {
        print_message("seed %u: the search returned %.12g s, an attack found %.12g s\n",
                      seed, result.time_s, found);
        tally->beaten++;
    }
    assert_true(found >= result.time_s * 0.97);
    tally->reached += found <= result.time_s * (1 + 1e-9);
    tally->attacked++;
    pricer_clear(&pricer);
    synth_result_clear(&result);
    g_rand_free(rand);
}

static void test_nothing_beats_the_search(void **state)
{
    (void)state;
    const char *rounds = g_getenv("KILTER_ROUNDS");
    uint32_t n = rounds ? (uint32_t)strtoul(rounds, NULL, 10) : test_rounds(16, 40);
    Tally tally = {0};
    for (uint32_t seed = 1; seed <= n; seed++)
        attack_one(seed, 1 + seed % 3, 2, 150, &tally);
    print_message("%u attacks: %u reached the search's time, %u beat it\n",
                  tally.attacked, tally.reached, tally.beaten);
    assert_true(2 * tally.reached >
                tally.attacked); /* otherwise the attack proves nothing */
    assert_true(50 * tally.beaten <= tally.attacked);
}

enum { MOST_UNITS = 24 }; /* larger dims count as whole */

/* Random counts of units, for every number of units up to MOST_UNITS. */
static void draw_shares(GRand *rand, uint32_t n, uint32_t units[MOST_UNITS],
                        double *share)
{
    for (uint32_t u = 0; u < MOST_UNITS; u++) {
        units[u] = u + 1;
        for (uint32_t i = 0; i <= u; i++)
            share[u * n + (uint32_t)g_rand_int_range(rand, 0, (gint32)n)] +=
                1.0 / units[u];
    }
}

/* The time of a program at shares by units. */
static double rounded_time_of(const Graph *graph, const ClusterView *view,
                              const Program *program, const double *by_units)
{
    const uint32_t n = view->n_devices;
    g_autoptr(SimLinear) linear = sim_linear(program, graph, view, NULL, 0);
    g_autofree double *share = g_new(double, (size_t)linear->n_splits *n + 1);
    for (uint32_t i = 0; i < linear->n_splits; i++)
        for (uint32_t j = 0; j < n; j++)
            share[i * n + j] = linear->split[i].units > MOST_UNITS
                                   ? 1
                                   : by_units[(linear->split[i].units - 1) * n + j];
    return sim_linear_time(linear, view, share, NULL, NULL);
}

/* At rounded shares, the search finds a program that is faster than a known time. */
static void test_known_times(void **state)
{
    (void)state;
    /* the beam binds in graphs with many live tensors */
    enum { BEAM = 2000 };
    const uint32_t cases = test_rounds(20, 60);
    static const double above = 1e-6;
    uint32_t searched = 0;
    for (uint32_t seed = 1; seed <= cases; seed++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = random_graph(rand, 2);
        g_autoptr(Cluster) cluster = random_cluster(rand, 3);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
        const uint32_t n = view->n_devices;
        uint32_t units[MOST_UNITS];
        g_autofree double *share = g_new0(double, (size_t)MOST_UNITS *n);
        draw_shares(rand, n, units, share);
        const SynthShares shares = {MOST_UNITS, units, share};
        g_autofree double *ratio = g_new(double, n);
        for (uint32_t j = 0; j < n; j++)
            ratio[j] = 1.0 / n;
        g_autoptr(SynthSpace) space = synth_space_new(graph, NULL);
        SynthOptions options = {.shares = &shares, .beam = BEAM};
        g_auto(SynthResult) best = {0}, again = {0};
        if (!synth_search(space, view, ratio, &options, &best, NULL))
            continue; /* a parameter with several readers */
        const double known_s = rounded_time_of(graph, view, best.program, share);
        options.upper_s = known_s * (1 + above);
        synth_search(space, view, ratio, &options, &again, &error);
        assert_no_error(error);
        assert_non_null(again.program);
        assert_at_most(rounded_time_of(graph, view, again.program, share),
                       options.upper_s);
        searched += n > 1;
    }
    assert_true(searched > cases / 3);
}

/* Prices of a tensor's conversions where others were priced before are those where it is the only
 * one, though tensors that are alike share them. Returns how many share their bytes, but not the
 * units of their dims, with one before. */
static uint32_t check_sharing(const Graph *graph, const ClusterView *view,
                              const double *ratio, const SynthShares *shares)
{
    Pricer all, own;
    uint32_t unlike = 0;
    pricer_init(&all, graph, view, ratio, NULL);
    if (shares)
        pricer_round(&all, shares);
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const FormSet forms = forms_of_tensor(graph, t);
        pricer_init(&own, graph, view, ratio, NULL);
        if (shares)
            pricer_round(&own, shares);
        for (uint32_t i = 0; i < FORM_MAX * FORM_MAX; i++) {
            const uint32_t from = i / FORM_MAX, to = i % FORM_MAX;
            FormSet held = (FormSet)(1u << from), alone = held;
            Step a = {0}, b = {0};
            if (!(forms >> from & forms >> to & 1u) || from == to)
                continue;
            const bool can = price_reach(&all, t, &held, (FormSet)(1u << to), &a);
            assert_int_equal(can, price_reach(&own, t, &alone, (FormSet)(1u << to), &b));
            assert_true(a.comm_s == b.comm_s && a.closes == b.closes && held == alone);
            for (uint32_t h = 0; h < all.n_classes; h++)
                assert_true(a.inner.s[h] == b.inner.s[h]);
        }
        const Tensor *x = graph_tensor(graph, t);
        bool other = false;
        for (TensorId u = 0; u < t; u++) {
            const Tensor *y = graph_tensor(graph, u);
            other |= tensor_bytes(x) == tensor_bytes(y) && x->role == y->role &&
                     forms == forms_of_tensor(graph, u) &&
                     memcmp(x->units, y->units, sizeof x->units) != 0;
        }
        unlike += other;
        pricer_clear(&own);
    }
    pricer_clear(&all);
    return unlike;
}

static void test_shared_conversions(void **state)
{
    (void)state;
    static const char *const MODEL[] = {
        "gpt2:layers=2,hidden=4,heads=2,ffn=6,seq=2,vocab=5,global_batch=3",
        "bert-moe:layers=2,hidden=6,heads=3,ffn=4,seq=2,vocab=7,experts=3,global_batch=6",
        "vgg19:width=1,fc=5,image=32,global_batch=7"};
    uint32_t unlike = 0;
    for (uint32_t seed = 0; seed < 3 * G_N_ELEMENTS(MODEL); seed++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = random_cluster(rand, 3);
        g_autoptr(ClusterView) view =
            cluster_view(cluster, seed % 2 ? GRANULARITY_GPU : GRANULARITY_MACHINE);
        g_autoptr(Graph) graph =
            model_build(MODEL[seed % 3], view->n_devices, NULL, &error);
        assert_no_error(error);
        uint32_t units[MOST_UNITS];
        g_autofree double *share = g_new0(double, (size_t)MOST_UNITS * view->n_devices),
                          *ratio = random_ratio(rand, view);
        draw_shares(rand, view->n_devices, units, share);
        const SynthShares shares = {MOST_UNITS, units, share};
        unlike += check_sharing(graph, view, ratio, &shares);
        check_sharing(graph, view, ratio, NULL);
    }
    print_message("%u tensors have the bytes of another one, and other units\n", unlike);
    assert_true(unlike > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_beats_the_search),
                                       cmocka_unit_test(test_known_times),
                                       cmocka_unit_test(test_shared_conversions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
