/* Known behaviour of plans: the strategy changes where it should. */
#include "synth/planners/planner.h"
#include "synth/synth.h"
#include "tests/support/two_linears.h"
#include "tests/test.h"

/* The program for two equal devices under pins; grouped collectives have 1.5 times the
 * bandwidth. */
static Program *search(const Graph *graph, const char *text, double share)
{
    Device device[] = {{.name = "a", .type_name = "a", .rate = 1e9, .gpus = 1},
                       {.name = "b", .type_name = "a", .rate = 1e9, .gpus = 1}};
    ClusterView view = {.n_devices = 2, .device = device};
    for (int kind = 0; kind < COLLECTIVES_PRICED; kind++)
        view.collective[kind] = (LinkCost){.latency_s = 1e-6, .bandwidth = 1e6};
    view.collective[COLLECTIVE_GROUPED_ALL_GATHER].bandwidth = 1.5e6;
    g_autoptr(GError) error = NULL;
    g_autoptr(SynthPins) pins = synth_pins_new(graph, text, &error);
    assert_no_error(error);
    g_autoptr(SynthSpace) space = synth_space_new(graph, pins);
    const SynthOptions options = {0};
    SynthResult result;
    synth_search(space, &view, (double[]){share, 1 - share}, &options, &result, &error);
    assert_no_error(error);
    return result.program;
}

static uint32_t count(const Program *program, Collective kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->n; i++)
        n += program->instr[i].kind == INSTR_COLLECTIVE &&
             program->instr[i].collective == kind;
    return n;
}

/* The form in which a tensor is made, or at rest. */
static Form form_of(const Graph *graph, const Program *program, const char *name)
{
    TensorId tensor = graph_find(graph, name);
    assert_int_not_equal(tensor, GRAPH_NONE);
    for (uint32_t i = 0; i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr->kind == INSTR_LOAD && instr->tensor == tensor)
            return instr->to;
        const Op *op =
            instr->kind == INSTR_COMPUTE ? graph_get_op(graph, instr->op) : NULL;
        for (uint32_t o = 0; op && o < op->n_out; o++)
            if (op->out[o] == tensor)
                return instr->form[op->n_in + o];
    }
    fail_msg("%s is not in the program", name);
    return FORM_MAX;
}

/* Data parallel over a slow link: factors of few samples are gathered, gradients from many are
 * all-reduced. */
static void test_sufficient_factors_for_small_batches(void **state)
{
    (void)state;
    static const char *const data_parallel = "y?=gather(0)->*; w?=identity";
    for (uint32_t large = 0; large < 2; large++) {
        g_autoptr(Graph) graph = two_linears(large ? 1024 : 4, 64);
        g_autoptr(Program) program = search(graph, data_parallel, 0.5);
        assert_int_equal(form_of(graph, program, "w2.grad"),
                         large ? FORM_REDUCE : FORM_IDENTITY);
        assert_int_equal(form_of(graph, program, "w1.grad"),
                         large ? FORM_REDUCE : FORM_IDENTITY);
    }
}

/* HAP Sec. 2.5.1: padding moves the largest shard once per device; groups move the actual bytes. */
static void test_skew_decides_how_shards_are_gathered(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = two_linears(64, 64);
    for (uint32_t skewed = 0; skewed < 2; skewed++) {
        g_autoptr(Program) program =
            search(graph, "w?=gather(0)->identity", skewed ? 0.9 : 0.5);
        assert_int_equal(count(program, COLLECTIVE_ALL_GATHER) > 0, !skewed);
        assert_int_equal(count(program, COLLECTIVE_GROUPED_ALL_GATHER) > 0, skewed);
    }
}

static Form planned(const char *model, const char *tensor)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Graph) graph = NULL;
    PlannerOptions options;
    planner_options_init(&options);
    g_autoptr(Plan) plan = planner_plan(planner_find("hap", NULL), model, "hap-8", view,
                                        &options, &graph, &error);
    assert_no_error(error);
    return form_of(graph, plan->program, tensor);
}

static void test_models_are_sharded_as_they_should_be(void **state)
{
    (void)state;
    const Form batch = form_gather(0);
    assert_int_equal(planned("vit:layers=2,batch=64", "layers.1.ffn.up"), batch);
    assert_int_not_equal(planned("vit:layers=2,batch=1", "layers.1.ffn.up"), batch);
    assert_true(form_is_gather(planned("vgg19", "classifier.0.weight")));
    assert_int_equal(planned("bert-moe:layers=2", "layers.1.moe.up"), form_gather(1));
}

/* A batch that cannot be cut, and a device that gets nothing. */
static void test_a_batch_of_one_and_an_idle_device(void **state)
{
    (void)state;
    g_autoptr(Graph) one = two_linears(1, 64);
    g_autoptr(Program) program = search(one, "", 1);
    g_autoptr(GError) error = NULL;
    program_check(program, one, &error);
    assert_no_error(error);
    assert_int_equal(form_of(one, program, "y1"), FORM_IDENTITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sufficient_factors_for_small_batches),
        cmocka_unit_test(test_skew_decides_how_shards_are_gathered),
        cmocka_unit_test(test_models_are_sharded_as_they_should_be),
        cmocka_unit_test(test_a_batch_of_one_and_an_idle_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
