/* Pins: programs keep them, searches lose nothing else to them, and impossible pins give an error
 * in one line. */
#include "tests/test.h"

#include "synth/synth.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_plan.h"

/* --- what a program does with each tensor --- */

typedef struct {
    Form *made; /* [tensor]: as it is loaded, or made by its op */
    /* [tensor]: bits of forms; the update of a parameter does not count */
    uint32_t *read;
} Use;

static Use use_of(const Graph *graph, const Program *program)
{
    Use use = {.made = g_new0(Form, graph_n_tensors(graph)),
               .read = g_new0(uint32_t, graph_n_tensors(graph))};
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind == INSTR_LOAD)
            use.made[instr->tensor] = instr->to;
        if (instr->kind != INSTR_COMPUTE)
            continue;
        const Op *op = graph_get_op(graph, instr->op);
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->pass != PASS_UPDATE ||
                graph_tensor(graph, op->in[k])->role != ROLE_PARAMETER)
                use.read[op->in[k]] |= 1u << instr->form[k];
        for (uint32_t k = 0; k < op->n_out; k++)
            use.made[op->out[k]] = instr->form[op->n_in + k];
    }
    return use;
}

static void use_clear(Use *use)
{
    g_free(use->made);
    g_free(use->read);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Use, use_clear)

/* Pins that fix the whole program. */
static char *pins_of(const Graph *graph, const Program *program)
{
    g_auto(Use) use = use_of(graph, program);
    GString *text = g_string_new("# every tensor\n");
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        char made[FORM_TEXT], read[FORM_TEXT] = "*";
        bool one = use.read[t] && !(use.read[t] & (use.read[t] - 1));
        if (one)
            form_text((Form)__builtin_ctz(use.read[t]), read);
        form_text(use.made[t], made);
        if (graph_tensor(graph, t)->role != ROLE_INPUT)
            g_string_append_printf(text, "%s = %s -> %s\n", graph_tensor(graph, t)->name,
                                   made, read);
        else if (one && !strstr(read, "reduce"))
            g_string_append_printf(text, "%s=%s;", graph_tensor(graph, t)->name, read);
    }
    return g_string_free(text, FALSE);
}

/* --- random cases --- */

typedef struct {
    GRand *rand;
    Graph *graph;
    Cluster *cluster;
    ClusterView *view;
    double *ratio;
    SynthResult free; /* without pins */
} Case;

static void case_clear(Case *c)
{
    synth_result_clear(&c->free);
    g_free(c->ratio);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
    graph_free(c->graph);
    g_rand_free(c->rand);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

/* False for graphs outside the space, and for large ones, which take their time. */
static bool make_case(uint32_t seed, Case *c)
{
    c->rand = g_rand_new_with_seed(seed);
    c->graph = random_graph(c->rand, 1);
    c->cluster = random_cluster(c->rand, 2);
    c->view = cluster_view(c->cluster, seed % 2 ? GRANULARITY_GPU : GRANULARITY_MACHINE);
    c->ratio = g_new(double, c->view->n_devices);
    double sum = 0;
    for (uint32_t j = 0; j < c->view->n_devices; j++)
        sum += c->ratio[j] = g_rand_double_range(c->rand, 0.05, 1);
    for (uint32_t j = 0; j < c->view->n_devices; j++)
        c->ratio[j] /= sum;
    const SynthOptions options = {0};
    g_autoptr(SynthSpace) space = synth_space_new(c->graph, NULL);
    return graph_n_ops(c->graph) < 34 &&
           synth_search(space, c->view, c->ratio, &options, &c->free, NULL);
}

/* Emission shares conversions that the search prices twice (synth.h): times may differ by these
 * conversions. */
static const double shared = 1.05;

static void check_bound(const Case *c, SynthSpace *space, double time_s)
{
    g_auto(SynthBound) bound = {0};
    g_autoptr(GError) error = NULL;
    const SynthBox box = {.lo = c->ratio, .hi = c->ratio, .upper_s = INFINITY};
    synth_bound(space, c->view, &box, &bound, &error);
    assert_no_error(error);
    assert_at_most(bound.bound_s, time_s * shared);
}

/* Searches under pins; the result's time, or NaN where they cannot hold. */
static double search_pinned(const Case *c, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SynthPins) pins = synth_pins_new(c->graph, text, &error);
    if (!pins) {
        assert_error(error, KILTER_ERROR_INPUT, "pin '");
        return NAN;
    }
    g_autoptr(SynthSpace) space = synth_space_new(c->graph, pins);
    const SynthOptions options = {0};
    SynthResult result;
    if (!synth_search(space, c->view, c->ratio, &options, &result, &error)) {
        assert_error(error, KILTER_ERROR_INPUT, "cannot hold");
        return NAN;
    }
    g_autoptr(Program) program = result.program;
    program_check(program, c->graph, &error);
    assert_no_error(error);
    assert_true(synth_pins_hold(pins, c->graph, program));
    check_bound(c, space, result.time_s);
    return result.time_s;
}

static void test_all_forms_of_a_program_lead_back_to_it(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 16; seed++) {
        g_auto(Case) c = {0};
        if (!make_case(seed, &c))
            continue;
        g_autofree char *pins = pins_of(c.graph, c.free.program);
        assert_close(search_pinned(&c, pins), c.free.time_s, shared - 1);
    }
}

static void test_a_strategy_is_completed_at_least_as_well(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t seed = 1; seed <= 16; seed++) {
        g_auto(Case) c = {0};
        if (!make_case(seed, &c))
            continue;
        for (Baseline b = 0; b < BASELINES; b++) {
            SynthResult known;
            if (!synth_baseline(c.graph, c.view, c.ratio, b, &known, NULL))
                continue;
            g_autofree char *pins = pins_of(c.graph, known.program);
            double time_s = search_pinned(&c, pins);
            assert_at_most(time_s, known.time_s * shared);
            assert_at_most(c.free.time_s, time_s * shared);
            synth_result_clear(&known);
            n++;
        }
    }
    assert_true(n > 25);
}

/* One tensor pinned to any form, for making, for reading, or for both. */
static char *random_pin(const Case *c, TensorId *tensor, Form *made, Form *read)
{
    const Graph *graph = c->graph;
    *tensor = (TensorId)g_rand_int_range(c->rand, 0, (gint32)graph_n_tensors(graph));
    *made = (Form)g_rand_int_range(c->rand, 0, FORM_MAX);
    *read = (Form)g_rand_int_range(c->rand, 0, FORM_MAX);
    char a[FORM_TEXT], b[FORM_TEXT];
    const char *name = graph_tensor(graph, *tensor)->name;
    switch (g_rand_int_range(c->rand, 0, 4)) {
    case 0:
        *made = FORM_MAX;
        return g_strdup_printf("%s=*->%s", name, form_text(*read, b));
    case 1:
        *read = FORM_MAX;
        return g_strdup_printf("%s=%s->*", name, form_text(*made, a));
    case 2:
        return g_strdup_printf("%s=%s->%s", name, form_text(*made, a),
                               form_text(*read, b));
    default:
        *read = *made;
        return g_strdup_printf("%s=%s", name, form_text(*made, a));
    }
}

static void test_random_pins_hold(void **state)
{
    (void)state;
    uint32_t held = 0, refused = 0;
    for (uint32_t seed = 100; seed <= 110; seed++) {
        g_auto(Case) c = {0};
        if (!make_case(seed, &c))
            continue;
        for (uint32_t i = 0; i < 6; i++) {
            TensorId tensor;
            Form made, read;
            g_autofree char *text = random_pin(&c, &tensor, &made, &read);
            g_autoptr(SynthPins) pins = synth_pins_new(c.graph, text, NULL);
            g_autoptr(SynthSpace) space = synth_space_new(c.graph, pins);
            const SynthOptions options = {0};
            SynthResult result = {0};
            double time_s = search_pinned(&c, text);
            if (isnan(time_s)) {
                refused++;
                continue;
            }
            assert_at_most(c.free.time_s, time_s * shared);
            assert_true(synth_search(space, c.view, c.ratio, &options, &result, NULL));
            g_auto(Use) use = use_of(c.graph, result.program);
            assert_true(made == FORM_MAX || use.made[tensor] == made);
            assert_true(read == FORM_MAX || !(use.read[tensor] & ~(1u << read)));
            synth_result_clear(&result);
            held++;
        }
    }
    assert_true(held > 15 && refused > 8);
}

/* --- one line --- */

/* x [8, 4] -> fc1 [12, 4] -> fc2 [10, 12] -> loss. */
static Graph *two_layers(void)
{
    Graph *graph = graph_new("two");
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){8, 4});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){8});
    TensorId w1 = graph_parameter(graph, "w1", 2, (uint32_t[]){12, 4});
    TensorId w2 = graph_parameter(graph, "w2", 2, (uint32_t[]){10, 12});
    TensorId y =
        graph_op(graph, OP_LINEAR, "fc1", (OpAttr){0}, 2, (TensorId[]){x, w1}, NULL);
    y = graph_op(graph, OP_LINEAR, "fc2", (OpAttr){0}, 2, (TensorId[]){y, w2}, NULL);
    y = graph_op(graph, OP_LOG_SOFTMAX, "log_p", (OpAttr){0}, 1, &y, NULL);
    y = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){y, labels},
                 NULL);
    graph_differentiate(graph, y, OPTIMIZER_SGD);
    graph_seal(graph);
    return graph;
}

static void test_wrong_pins_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *pins, *message;
    } wrong[] = {
        {"w1", "pin 'w1': expected TENSOR=FORM or TENSOR=MADE->READ"},
        {"=identity", "pin '=identity': expected TENSOR=FORM"},
        {"w1=", "pin 'w1=': expected TENSOR=FORM"},
        {"w1=gather", "got 'gather'"},
        {"w1=gather(0)->", "got ''"},
        {"w1=gather(0)->sum", "got 'sum'"},
        {"w3=identity", "model 'two' has no tensor 'w3'"},
        {"w*.m=identity", "model 'two' has no tensor 'w*.m'"},
        {"w1=gather(2)", "expected a dim below 2"},
        {"log_p=identity; w1=gather(4)", "pin 'w1=gather(4)'"},
        {"w1=reduce", "w1 cannot be in form reduce before the iteration"},
        {"x=reduce", "x cannot be in form reduce before the iteration"},
        {"labels=*->reduce", "integers have no partial sums"},
        {"x=identity->gather(0)", "expected one form, since x is an input"},
    };
    g_autoptr(Graph) graph = two_layers();
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(synth_pins_new(graph, wrong[i].pins, &error));
        assert_error(error, KILTER_ERROR_INPUT, wrong[i].message);
    }
}

static void test_pins_are_written_in_many_ways(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = synth_pins_text(
        "# Megatron's MLP\n\n w1 = gather(0)   # columns\nw2=gather(1);;fc2=reduce->*\n",
        &error);
    assert_no_error(error);
    assert_string_equal(text, "w1 = gather(0); w2=gather(1); fc2=reduce->*");
    g_autofree char *none = synth_pins_text(" # nothing\n", &error);
    assert_string_equal(none, "");
    assert_null(synth_pins_text("w1=gather(0); w2", &error));
    assert_error(error, KILTER_ERROR_INPUT, "pin 'w2'");
}

/* Pins that are possible for each tensor, but not together for any op. */
static void test_contradictions_name_the_op_and_its_pins(void **state)
{
    (void)state;
    static const struct {
        const char *pins, *message;
    } wrong[] = {
        {"log_p=gather(1)",
         "pin 'log_p=gather(1)' cannot hold: log_p has no rule for it"},
        {"w1=gather(0); fc1=gather(0); x=identity",
         "pins 'x=identity', 'w1=gather(0)', 'fc1=gather(0)' cannot hold together: fc1 "
         "has no "
         "rule for them"},
        {"w1=gather(0)->*; w1.grad=*->gather(1)",
         "pins 'w1=gather(0)->*', 'w1.grad=*->gather(1)' cannot hold together: "
         "w1.update"},
        {"fc1=gather(0)->gather(0); w2.grad=gather(0)",
         "cannot hold together: fc2.dw has no rule for them"},
    };
    g_auto(Case) c = {0};
    assert_true(make_case(1, &c));
    graph_free(c.graph);
    c.graph = two_layers();
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SynthPins) pins = synth_pins_new(c.graph, wrong[i].pins, &error);
        assert_no_error(error);
        g_autoptr(SynthSpace) space = synth_space_new(c.graph, pins);
        const SynthOptions options = {0};
        SynthResult result;
        assert_false(synth_search(space, c.view, c.ratio, &options, &result, &error));
        assert_error(error, KILTER_ERROR_INPUT, wrong[i].message);
    }
}

/* A pattern for all and an exception after it. */
static void test_the_last_pin_counts(void **state)
{
    (void)state;
    g_auto(Case) c = {0};
    assert_true(make_case(1, &c));
    graph_free(c.graph);
    c.graph = two_layers();
    g_autoptr(GError) error = NULL;
    g_autoptr(SynthPins) pins = synth_pins_new(
        c.graph, "w?=identity; w2=gather(1); fc2=reduce->identity", &error);
    assert_no_error(error);
    g_autoptr(SynthSpace) space = synth_space_new(c.graph, pins);
    const SynthOptions options = {0};
    SynthResult result;
    synth_search(space, c.view, c.ratio, &options, &result, &error);
    assert_no_error(error);
    g_auto(Use) use = use_of(c.graph, result.program);
    assert_int_equal(use.made[graph_find(c.graph, "w1")], FORM_IDENTITY);
    assert_int_equal(use.made[graph_find(c.graph, "w2")], form_gather(1));
    assert_int_equal(use.made[graph_find(c.graph, "fc2")], FORM_REDUCE);
    assert_int_equal(use.read[graph_find(c.graph, "fc2")], 1u << FORM_IDENTITY);
    synth_result_clear(&result);
}

/* A frozen parameter has no update that a pin could bind: it is kept, or refused by name. */
static void test_frozen_parameters_take_pins(void **state)
{
    static const struct {
        const char *pin, *wrong;
    } each[] = {{"embedding.weight=gather(0)", NULL},
                {"embedding.weight=gather(0); embedding=gather(0)",
                 "pins 'embedding.weight=gather(0)', 'embedding=gather(0)' cannot hold "
                 "together: embedding has no rule for them"}};
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(each); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(Case) c = {0};
        assert_true(make_case(1, &c));
        graph_free(c.graph);
        c.graph =
            model_build("llama:layers=1,hidden=64,heads=4,kv_heads=4,ffn=128,seq=32,"
                        "vocab=128,global_batch=8,train=lora:4",
                        1, NULL, &error);
        assert_no_error(error);
        g_autoptr(SynthPins) pins = synth_pins_new(c.graph, each[i].pin, &error);
        assert_no_error(error);
        g_autoptr(SynthSpace) space = synth_space_new(c.graph, pins);
        const SynthOptions options = {0};
        SynthResult result;
        const bool found =
            synth_search(space, c.view, c.ratio, &options, &result, &error);
        if (each[i].wrong) {
            assert_false(found);
            assert_error(error, KILTER_ERROR_INPUT, each[i].wrong);
            continue;
        }
        assert_no_error(error);
        g_auto(Use) use = use_of(c.graph, result.program);
        assert_int_equal(use.made[graph_find(c.graph, "embedding.weight")],
                         form_gather(0));
        synth_result_clear(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frozen_parameters_take_pins),
        cmocka_unit_test(test_wrong_pins_are_named),
        cmocka_unit_test(test_pins_are_written_in_many_ways),
        cmocka_unit_test(test_contradictions_name_the_op_and_its_pins),
        cmocka_unit_test(test_the_last_pin_counts),
        cmocka_unit_test(test_all_forms_of_a_program_lead_back_to_it),
        cmocka_unit_test(test_a_strategy_is_completed_at_least_as_well),
        cmocka_unit_test(test_random_pins_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
