/* The reference search against brute force over its space, and against the exact search. */
#include "synth/hap/reference/reference.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_plan.h"
#include "tests/support/two_linears.h"
#include "tests/test.h"

/* --- brute force: every rule of every forward op, every conversion of every tensor --- */

typedef struct {
    const Pricer *pricer;
    const Graph *graph;
    const double *ratio;
    OpId n_ops;
    Assignment assignment;
    bool counting;             /* programs are not evaluated */
    FormSet *held;             /* [tensor] */
    double best_s;             /* of programs, emitted and evaluated */
    uint32_t steps, max_steps; /* ops chosen so far; the walk ends at the limit */
} Brute;

static bool is_made(const Graph *graph, TensorId tensor)
{
    const Role role = graph_tensor(graph, tensor)->role;
    return role == ROLE_ACTIVATION || role == ROLE_LOSS;
}

static Form adjoint(Form form)
{
    const Form of[] = {FORM_REDUCE, FORM_IDENTITY};
    return form < FORM_GATHER0 ? of[form] : form;
}

/* A tensor that no op makes is loaded whole or cut. */
static bool can_load(const Brute *b, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    for (uint32_t i = 0; i < op->n_in; i++) {
        const Form form = b->assignment.rule[id].form[i];
        if (!is_made(b->graph, op->in[i]) &&
            (form == FORM_REDUCE || !form_can_hold(b->graph, op->in[i], form)))
            return false;
    }
    return true;
}

/* All forms of a backward op's operands follow from those of the forward op. */
static bool choose_backward(Brute *b, OpId id)
{
    const Op *op = graph_get_op(b->graph, id);
    const Form *forward = b->assignment.rule[id].form;
    OpId backward[MAX_BACKWARD];
    const uint32_t n = backward_ops(b->graph, id, backward);
    for (uint32_t k = 0; k < n; k++) {
        const Op *back = graph_get_op(b->graph, backward[k]);
        Form forms[OP_MAX_OPERANDS] = {0};
        for (uint32_t p = 0; p < back->n_in + back->n_out; p++) {
            const TensorId t = p < back->n_in ? back->in[p] : back->out[p - back->n_in];
            for (uint32_t o = 0; o < op->n_out; o++)
                if (t == op->out[o])
                    forms[p] = forward[op->n_in + o];
                else if (t == graph_gradient(b->graph, op->out[o]))
                    forms[p] = adjoint(forward[op->n_in + o]);
            for (uint32_t i = 0; i < op->n_in; i++)
                if (p < back->n_in && t == op->in[i])
                    forms[p] = forward[i];
                else if (p >= back->n_in && t == graph_contribution(b->graph, id, i))
                    forms[p] = adjoint(forward[i]);
        }
        if (!op_rule_find(b->graph, backward[k], forms, &b->assignment.rule[backward[k]]))
            return false;
    }
    for (uint32_t i = 0; i < op->n_in; i++)
        if (graph_tensor(b->graph, op->in[i])->role == ROLE_PARAMETER) {
            const ParameterPlan plan = {.rest = forward[i], .update = forward[i]};
            parameter_plan_apply(b->graph, op->in[i], &plan, &b->assignment);
        }
    return true;
}

/* The form in which all consumers read `tensor`, or the one in which it is made. */
static Form gradient_form(const Brute *b, TensorId tensor)
{
    FormSet read = 0;
    Form form = FORM_IDENTITY;
    for (OpId id = 0; id < b->n_ops; id++) {
        const Op *op = graph_get_op(b->graph, id);
        for (uint32_t p = 0; p < op->n_in + op->n_out; p++)
            if (p < op->n_in && op->in[p] == tensor &&
                graph_contribution(b->graph, id, p) != GRAPH_NONE)
                read |= (FormSet)(1u << b->assignment.rule[id].form[p]);
            else if (p >= op->n_in && op->out[p - op->n_in] == tensor)
                form = b->assignment.rule[id].form[p];
    }
    for (Form f = 0; f < FORM_MAX; f++)
        if (read == 1u << f)
            form = f;
    return adjoint(form);
}

static void evaluate(Brute *b)
{
    for (OpId id = 0; id < b->n_ops; id++) {
        const Op *op = graph_get_op(b->graph, id);
        const bool chosen = choose_backward(b, id);
        assert_true(chosen);
        for (uint32_t o = 0; o < op->n_out; o++)
            b->assignment.gradient[op->out[o]] = gradient_form(b, op->out[o]);
    }
    for (OpId id = 0; id < b->n_ops; id++)
        for (uint32_t i = 0; i < graph_get_op(b->graph, id)->n_in; i++) {
            const OpId sum = graph_accumulation(b->graph, id, i);
            Form forms[OP_MAX_OPERANDS];
            memset(forms, b->assignment.gradient[graph_get_op(b->graph, id)->in[i]],
                   sizeof forms);
            if (sum != GRAPH_NONE)
                assert_true(op_rule_find(b->graph, sum, forms, &b->assignment.rule[sum]));
        }
    g_autoptr(GError) error = NULL;
    g_autoptr(Program) program = synth_emit(b->pricer, &b->assignment, &error);
    assert_no_error(error);
    b->best_s = fmin(b->best_s, synth_time(b->pricer, program, b->ratio, 0));
}

static void choose_op(Brute *b, OpId id);

static bool communicates(Form from, Form to)
{
    return collective_converts(COLLECTIVE_ALL_REDUCE, from, to) ||
           collective_converts(COLLECTIVE_REDUCE_SCATTER, from, to) ||
           collective_converts(COLLECTIVE_ALL_GATHER, from, to) ||
           collective_converts(COLLECTIVE_ALL_TO_ALL, from, to);
}

/* Reads the op's inputs from `i` on, converting those that are not held and were not converted
 * before. */
static void choose_inputs(Brute *b, OpId id, uint32_t i)
{
    const Op *op = graph_get_op(b->graph, id);
    const Rule *rule = &b->assignment.rule[id];
    if (b->steps > b->max_steps)
        return;
    if (i == op->n_in) {
        for (uint32_t o = 0; o < op->n_out; o++)
            b->held[op->out[o]] = (FormSet)(1u << rule->form[op->n_in + o]);
        choose_op(b, id + 1);
        return;
    }
    const Form form = rule->form[i];
    if (!is_made(b->graph, op->in[i])) {
        choose_inputs(b, id, i + 1);
        return;
    }
    const FormSet held = b->held[op->in[i]];
    if (held >> form & 1u) {
        choose_inputs(b, id, i + 1);
    } else if (!(held & (held - 1)) && form_can_hold(b->graph, op->in[i], form) &&
               communicates((Form)__builtin_ctz(held), form)) {
        b->held[op->in[i]] |= (FormSet)(1u << form);
        choose_inputs(b, id, i + 1);
        b->held[op->in[i]] = held;
    }
}

static void choose_op(Brute *b, OpId id)
{
    if (id == b->n_ops) {
        if (b->held[graph_loss(b->graph)] == 1u << FORM_REDUCE && !b->counting)
            evaluate(b);
        return;
    }
    Rule rule[OP_MAX_RULES];
    const uint32_t n = op_rules(b->graph, id, rule);
    b->steps++;
    for (uint32_t r = 0; r < n; r++) {
        b->assignment.rule[id] = rule[r];
        if (can_load(b, id) && choose_backward(b, id))
            choose_inputs(b, id, 0);
    }
}

/* Time of the best program; NaN if there are too many programs. */
static double brute_force(const Graph *graph, const ClusterView *view,
                          const double *ratio, uint32_t max_steps)
{
    Pricer pricer;
    pricer_init(&pricer, graph, view, ratio, NULL);
    pricer.direct = true;
    Brute b = {.pricer = &pricer,
               .graph = graph,
               .ratio = ratio,
               .n_ops = graph_tensor(graph, graph_loss(graph))->producer + 1,
               .held = g_new0(FormSet, graph_n_tensors(graph)),
               .best_s = INFINITY,
               .max_steps = max_steps};
    assignment_init(&b.assignment, graph);
    b.counting = true;
    choose_op(&b, 0);
    b.counting = false;
    if (b.steps <= max_steps) {
        b.steps = 0;
        choose_op(&b, 0);
    }
    assignment_clear(&b.assignment);
    g_free(b.held);
    pricer_clear(&pricer);
    return b.steps > max_steps ? NAN : b.best_s;
}

/* --- the tests --- */

typedef struct {
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    double *ratio;
} Case;

static Case case_new(uint32_t seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    Case c = {.graph = random_graph(rand, 1), .cluster = random_cluster(rand, 3)};
    c.view = cluster_view(c.cluster, GRANULARITY_GPU);
    c.ratio = g_new(double, c.view->n_devices);
    double sum = 0;
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        sum += c.ratio[j] = g_rand_double_range(rand, 0.1, 1);
    for (uint32_t j = 0; j < c.view->n_devices; j++)
        c.ratio[j] /= sum;
    return c;
}

static void case_free(Case *c)
{
    g_free(c->ratio);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
}

/* The time of the search's program, which is checked; infinite if there is none. */
static double time_of(const Case *c, ReferencePruning pruning)
{
    g_autoptr(GError) error = NULL;
    SynthResult result;
    if (!reference_search(c->graph, c->view, c->ratio, pruning, &result, &error)) {
        assert_int_equal(error->code, KILTER_ERROR_FAILED);
        return INFINITY;
    }
    program_check(result.program, c->graph, &error);
    assert_no_error(error);
    synth_result_clear(&result);
    return result.time_s;
}

/* Whether some op reads a tensor that needs a gradient and adds nothing to the gradient. */
static bool has_silent_readers(const Graph *graph)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            if (graph_gradient(graph, op->in[i]) != GRAPH_NONE &&
                graph_contribution(graph, id, i) == GRAPH_NONE)
                return true;
    }
    return false;
}

/* With sound pruning the search finds the best program of its space; as published it can miss it,
 * and does. Its price of a conversion includes the adjoint, which programs do not need where all
 * readers are silent. */
static void equals_brute_force(void **state)
{
    (void)state;
    enum { SEEDS = 80, MAX_STEPS = 4000, LEAST = 10 };
    uint32_t compared = 0, worse = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        Case c = case_new(seed);
        const double labels_s = time_of(&c, REFERENCE_LABELS);
        const double best_s =
            isfinite(labels_s) ? brute_force(c.graph, c.view, c.ratio, MAX_STEPS) : NAN;
        if (!isnan(best_s)) {
            const double scalar_s = time_of(&c, REFERENCE_SCALAR);
            if (has_silent_readers(c.graph))
                assert_at_most(best_s, labels_s * (1 + 1e-9));
            else
                assert_close(labels_s, best_s, 1e-9);
            assert_at_most(best_s, scalar_s * (1 + 1e-9));
            compared += !has_silent_readers(c.graph);
            worse += scalar_s > best_s * (1 + 1e-9);
        }
        case_free(&c);
    }
    print_message("%u graphs; pruned by one number, %u programs are worse\n", compared,
                  worse);
    assert_true(compared >= LEAST);
    assert_true(worse > 0);
}

static double exact_time(const Case *c)
{
    g_autoptr(GError) error = NULL;
    SynthResult result;
    g_autoptr(SynthSpace) space = synth_space_new(c->graph, NULL);
    synth_search(space, c->view, c->ratio, &(SynthOptions){0}, &result, &error);
    assert_no_error(error);
    synth_result_clear(&result);
    return result.time_s;
}

/* At even ratios the search pruned by one number finds the best program of the same space; at 0.89
 * : 0.11 the space itself, without an Identity gradient of an Identity tensor, lacks better
 * ones. */
static void one_number_is_not_enough(void **state)
{
    (void)state;
    Device device[2];
    ClusterView view = two_devices(device, 7e4);
    double ratio[][2] = {{0.5, 0.5}, {0.89, 0.11}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(ratio); i++) {
        Case c = {.graph = two_linears(16, 8), .view = &view, .ratio = ratio[i]};
        const double scalar_s = time_of(&c, REFERENCE_SCALAR),
                     labels_s = time_of(&c, REFERENCE_LABELS), exact_s = exact_time(&c);
        print_message(
            "%.2f : %.2f: %.3f ms as published, %.3f ms with labels, %.3f ms exact\n",
            ratio[i][0], ratio[i][1], 1e3 * scalar_s, 1e3 * labels_s, 1e3 * exact_s);
        if (i == 0)
            assert_true(labels_s < scalar_s * (1 - 1e-3));
        assert_at_most(labels_s, scalar_s);
        assert_true(exact_s < labels_s * (1 - 1e-3));
        graph_free(c.graph);
    }
}

/* HAP's models, shortened, on its testbeds with ratios proportional to speed. On BERT-MoE, pruning
 * by one number loses several percent. */
static void exact_is_never_slower(void **state)
{
    (void)state;
    const char *const model[] = {"vgg19", "vit:layers=1", "bert-base:layers=1",
                                 "bert-moe:layers=2"};
    const char *const cluster[] = {"hap-8", "hap-64"};
    for (uint32_t k = 0; k < G_N_ELEMENTS(cluster); k++) {
        g_autoptr(GError) error = NULL;
        Case c = {.cluster = cluster_load(cluster[k], &error)};
        assert_no_error(error);
        c.view = cluster_view(c.cluster, GRANULARITY_MACHINE);
        c.ratio = g_new(double, c.view->n_devices);
        double rate = 0;
        for (uint32_t j = 0; j < c.view->n_devices; j++)
            rate += c.view->device[j].rate;
        for (uint32_t j = 0; j < c.view->n_devices; j++)
            c.ratio[j] = c.view->device[j].rate / rate;
        for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++) {
            c.graph = model_build(model[m], cluster_gpus(c.cluster), NULL, &error);
            assert_no_error(error);
            const double scalar_s = time_of(&c, REFERENCE_SCALAR);
            assert_at_most(exact_time(&c), scalar_s * (1 + 1e-9));
            if (k == 0 && strcmp(model[m], "bert-moe:layers=2") == 0)
                assert_true(time_of(&c, REFERENCE_LABELS) < scalar_s * 0.99);
            g_clear_pointer(&c.graph, graph_free);
        }
        g_free(c.ratio);
        cluster_view_free(c.view);
        cluster_free(c.cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(one_number_is_not_enough),
        cmocka_unit_test(exact_is_never_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
