/* Plans proved by running them: those of every planner, random ones, and wrong ones that must be
 * caught. */
#include "data/models/model.h"
#include "data/models/models.h"
#include "synth/planners/planner.h"
#include "tests/conformance/verify_cases.h"
#include "tests/support/made_plan.h"

/* --- plans of the planners --- */

static void test_plans_of_planners(void **state)
{
    (void)state;
    static const char *const models[] = {"vgg19",
                                         "vit:layers=2",
                                         "bert-base:layers=2",
                                         "bert-moe:layers=2",
                                         "bert-switch:layers=2,moe_group=4",
                                         "gpt2:layers=2,precision=mixed"};
    static const char *const planners[] = {"hap",       "dp-ev",  "dp-cp",
                                           "deepspeed", "gshard", "tensor-parallel"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (uint32_t p = 0; p < G_N_ELEMENTS(planners); p++) {
            PlannerOptions options;
            planner_options_init(&options);
            g_autoptr(Graph) graph = NULL;
            g_autoptr(Plan) plan =
                planner_plan(planner_find(planners[p], &error), models[m], "hap-8", view,
                             &options, &graph, &error);
            assert_no_error(error);
            g_autoptr(Graph) small = NULL;
            g_autoptr(Plan) shrunk = exec_shrink_plan(plan, graph, NULL, &small, &error);
            assert_no_error(error);
            assert_true(program_check(shrunk->program, small, &error));
            g_autofree char *name = g_strdup_printf("%s by %s", models[m], planners[p]);
            check_right(name, shrunk, small);
        }
}

static void test_random_plans(void **state)
{
    (void)state;
    check_random_cases(0, 50);
}

/* --- shrunk models --- */

static void test_shrunk_models_keep_their_structure(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < model_count(); m++)
        for (uint32_t seed = 0; seed < 4; seed++) {
            GRand *random = g_rand_new_with_seed(seed);
            g_autoptr(GError) error = NULL;
            g_autofree char *canonical = NULL, *unused = NULL;
            g_autoptr(Graph) graph =
                model_build(model_info(m)->name, 8, &canonical, &error);
            g_autofree char *spec = model_shrink(canonical, 2 + seed, 1, 0, random);
            g_autoptr(Graph) small = model_build(spec, 1, &unused, &error);
            assert_no_error(error);
            assert_true(exec_same_structure(graph, small, &error));
            assert_true(graph_parameter_count(small) < 800000);
            for (TensorId t = 0; t < graph_n_tensors(graph); t++)
                for (uint32_t d = 0; d < graph_tensor(graph, t)->rank; d++)
                    if (graph_tensor(graph, t)->units[d] > 1 &&
                        graph_tensor(small, t)->units[d] < 2)
                        fail_msg("%s: dim %u of %s is whole", spec, d,
                                 graph_tensor(small, t)->name);
            g_rand_free(random);
        }
}

/* The same of all models with names, on sequences within and beyond their windows; some matrices
 * become tall, or no longer are. */
static void test_shrunk_named_models(void **state)
{
    (void)state;
    static const char *const arguments[] = {"", ":seq=64,optimizer=muon", ":seq=512"};
    g_auto(GStrv) names = model_configs();
    for (uint32_t m = 0; names[m]; m++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(arguments); i++) {
            g_autoptr(GError) error = NULL;
            g_autofree char *canonical = NULL, *unused = NULL,
                            *large = g_strconcat(names[m], arguments[i], NULL);
            if (g_str_has_prefix(names[m], "vit-") && strstr(large, "seq="))
                continue; /* of images */
            g_autoptr(Graph) graph = model_build(large, 8, &canonical, &error);
            assert_no_error(error);
            const uint32_t devices = (m + i) % 2 ? 3 : 0; /* 0: as small as can be */
            g_autofree char *spec = model_shrink(canonical, devices, 1, 0, NULL);
            g_autoptr(Graph) small = model_build(spec, 1, &unused, &error);
            assert_no_error(error);
            if (!exec_same_structure(graph, small, &error) ||
                !exec_is_small(small, EXEC_SECONDS, &error))
                fail_msg("%s as %s: %s", large, spec, error->message);
        }
}

/* Many replicas, with which a small model has many elements unless it is as small as can be. */
static void test_least_model(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) small = NULL;
    g_auto(Made) made = made_plan("manual", "qwen3-30b-a3b:global_batch=1024",
                                  "64x8xh100-sxm@8xib-ndr", "pp=2 ep=4 micro_batch=1");
    g_autoptr(Plan) plan = exec_shrink_plan(made.plan, made.graph, NULL, &small, &error);
    assert_no_error(error);
    assert_non_null(strstr(plan->model, "small=1,"));
    assert_true(exec_is_small(small, EXEC_SECONDS, NULL));
}

/* A parameter that the table left out would keep its size. */
static void test_every_parameter_has_its_small_value(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < MODEL_TABLE_SIZE; m++)
        for (const ModelParam *param = MODEL_TABLE[m].param; param->key; param++) {
            uint32_t rows = 0;
            for (uint32_t i = 0; i < MODEL_SMALL_TABLE_SIZE; i++)
                rows += strcmp(MODEL_SMALL_TABLE[i].key, param->key) == 0;
            if (rows != 1)
                fail_msg("%s: %u rows say what %s is in a small model",
                         MODEL_TABLE[m].info.name, rows, param->key);
        }
}

static void test_other_models_differ(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) a = model_build("vit:layers=2", 1, NULL, &error);
    g_autoptr(Graph) b = model_build("vit:layers=3", 1, NULL, &error);
    g_autoptr(Graph) c = model_build("vit:layers=2,dropout=0", 1, NULL, &error);
    assert_no_error(error);
    assert_false(exec_same_structure(a, b, &error));
    assert_error(error, KILTER_ERROR_INPUT, "ops");
    g_clear_error(&error);
    assert_false(exec_same_structure(a, c, NULL));
}

/* --- wrong plans --- */

/* y = relu(x w1), loss of y w2: data parallelism over three devices. */
typedef struct {
    Graph *graph;
    Plan *plan;
    TensorId w1, w2;
} Small;

static OpId op_named(const Graph *graph, const char *name)
{
    OpId id = 0;
    while (strcmp(graph_get_op(graph, id)->name, name) != 0)
        id++;
    return id;
}

static Graph *small_graph(void)
{
    Graph *graph = graph_new("small");
    const TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){7, 4});
    const TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){7});
    const TensorId w1 = graph_parameter(graph, "w1", 2, (uint32_t[]){6, 4});
    const TensorId w2 = graph_parameter(graph, "w2", 2, (uint32_t[]){5, 6});
    const OpAttr none = {0};
    TensorId y = graph_op(graph, OP_LINEAR, "up", none, 2, (TensorId[]){x, w1}, NULL);
    y = graph_op(graph, OP_RELU, "relu", none, 1, &y, NULL);
    y = graph_op(graph, OP_LINEAR, "down", none, 2, (TensorId[]){y, w2}, NULL);
    y = graph_op(graph, OP_LOG_SOFTMAX, "logp", none, 1, &y, NULL);
    const TensorId loss =
        graph_op(graph, OP_NLL_SUM, "loss", none, 2, (TensorId[]){y, labels}, NULL);
    graph_differentiate(graph, loss, OPTIMIZER_ADAM);
    graph_seal(graph);
    return graph;
}

/* The form in which data parallelism holds a tensor before any collective: cut along the batch,
 * whole, or partial. */
static Form data_parallel_form(const Graph *graph, TensorId id)
{
    const Tensor *tensor = graph_tensor(graph, id);
    if (tensor->rank > 0 && tensor->dim[0] == 7)
        return form_gather(0);
    const bool of_parameter = tensor->role == ROLE_GRADIENT &&
                              graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
    return of_parameter || tensor->role == ROLE_LOSS ? FORM_REDUCE : FORM_IDENTITY;
}

static void append_op(Program *program, const Graph *graph, OpId id)
{
    const Op *op = graph_get_op(graph, id);
    Form form[OP_MAX_OPERANDS];
    const uint32_t n = op->n_in + op->n_out;
    g_assert(n <= OP_MAX_OPERANDS);
    for (uint32_t i = 0; i < n; i++)
        form[i] = op->pass == PASS_UPDATE
                      ? FORM_IDENTITY
                      : data_parallel_form(graph, i < op->n_in ? op->in[i]
                                                               : op->out[i - op->n_in]);
    program_compute(program, id, form, n);
}

static Small small_new(void)
{
    Small s = {.graph = small_graph(), .plan = plan_new()};
    Program *program = s.plan->program = program_new();
    for (TensorId t = 0; t < graph_n_tensors(s.graph); t++)
        if (graph_tensor(s.graph, t)->producer == GRAPH_NONE)
            program_load(program, t, data_parallel_form(s.graph, t));
    for (OpId id = 0; id < graph_n_ops(s.graph); id++) {
        const Op *op = graph_get_op(s.graph, id);
        for (uint32_t i = 0; op->pass == PASS_UPDATE && i < op->n_in; i++)
            if (graph_tensor(s.graph, op->in[i])->role == ROLE_GRADIENT)
                program_collective(program, COLLECTIVE_ALL_REDUCE, op->in[i], FORM_REDUCE,
                                   FORM_IDENTITY);
        append_op(program, s.graph, id);
    }
    static const double ratio[] = {0.5, 0.3, 0.2};
    s.plan->n_devices = G_N_ELEMENTS(ratio);
    s.plan->n_segments = 1;
    s.plan->ratio = g_memdup2(ratio, sizeof ratio);
    s.plan->n_ops = graph_n_ops(s.graph);
    s.plan->segment = g_new0(uint16_t, s.plan->n_ops);
    s.w1 = graph_find(s.graph, "w1");
    s.w2 = graph_find(s.graph, "w2");
    return s;
}

static void small_clear(Small *s)
{
    plan_free(s->plan);
    graph_free(s->graph);
}

/* The instruction that makes `tensor` in `form`. */
static Instr *maker_of(const Small *s, TensorId tensor, Form form)
{
    for (uint32_t i = 0; i < s->plan->program->n; i++) {
        Instr *instr = &s->plan->program->instr[i];
        if (instr->kind != INSTR_COMPUTE && instr->tensor == tensor && instr->to == form)
            return instr;
    }
    fail_msg("no such instruction");
    return NULL;
}

static void remove_instr(Program *program, const Instr *instr)
{
    const size_t i = (size_t)(instr - program->instr);
    memmove(&program->instr[i], &program->instr[i + 1],
            (program->n - i - 1) * sizeof *program->instr);
    program->n--;
}

static Instr *compute_of(const Small *s, const char *name)
{
    const OpId id = op_named(s->graph, name);
    for (uint32_t i = 0; i < s->plan->program->n; i++) {
        Instr *instr = &s->plan->program->instr[i];
        if (instr->kind == INSTR_COMPUTE && instr->op == id)
            return instr;
    }
    fail_msg("no such instruction");
    return NULL;
}

/* The plan computes wrong numbers, first in that tensor. */
static void check_wrong(const Small *s, const char *tensor)
{
    g_autoptr(ExecBackend) backend = exec_reference_new(s->plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    g_autoptr(GError) error = NULL;
    assert_true(
        exec_verify(backend, s->plan, s->graph, 1, EXEC_TOLERANCE, &verdict, &error));
    assert_false(verdict.right);
    assert_at_most(1e-6, verdict.error);
    assert_string_equal(verdict.wrong_tensor, tensor);
    assert_non_null(verdict.wrong_instr);
}

/* The plan cannot be run to its end. */
static void check_fails(const Small *s, const char *message)
{
    g_autoptr(ExecBackend) backend = exec_reference_new(s->plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    g_autoptr(GError) error = NULL;
    assert_false(
        exec_verify(backend, s->plan, s->graph, 1, EXEC_TOLERANCE, &verdict, &error));
    assert_error(error, KILTER_ERROR_FAILED, message);
}

static void test_the_right_small_plan(void **state)
{
    (void)state;
    Small s = small_new();
    g_autoptr(GError) error = NULL;
    program_check(s.plan->program, s.graph, &error);
    assert_no_error(error);
    check_right("small", s.plan, s.graph);
    small_clear(&s);
}

/* Partial sums taken for replicas: the all-reduce is left out and the update reads the partial
 * sums. */
static void test_missing_all_reduce(void **state)
{
    (void)state;
    Small s = small_new();
    const TensorId gradient = graph_gradient(s.graph, s.w1);
    Instr *instr = maker_of(&s, gradient, FORM_IDENTITY);
    remove_instr(s.plan->program, instr);
    check_fails(&s, "was not made before");
    const Op *producer = graph_get_op(s.graph, graph_tensor(s.graph, gradient)->producer);
    compute_of(&s, producer->name)->form[producer->n_in] = FORM_IDENTITY;
    check_wrong(&s, graph_tensor(s.graph, gradient)->name);
    small_clear(&s);
}

/* A sum over devices of a tensor that every device has in full, and a gather of the wrong
 * tensor. */
static void test_wrong_rules(void **state)
{
    (void)state;
    Small s = small_new();
    Instr *loss = compute_of(&s, "loss");
    loss->form[2] = FORM_IDENTITY;
    check_wrong(&s, "loss");
    small_clear(&s);

    s = small_new();
    Instr *first = compute_of(&s, "up");
    first->form[2] = FORM_IDENTITY;
    check_fails(&s, "not all operands are cut alike");
    small_clear(&s);
}

/* A tensor at rest in one form must be updated in that form. */
static void test_wrong_at_rest_form(void **state)
{
    (void)state;
    Small s = small_new();
    Program *program = s.plan->program;
    Instr *load = maker_of(&s, s.w2, FORM_IDENTITY);
    const uint32_t at = (uint32_t)(load - program->instr);
    load->to = form_gather(1);
    program_collective(program, COLLECTIVE_ALL_GATHER, s.w2, form_gather(1),
                       FORM_IDENTITY);
    const Instr gather = program->instr[program->n - 1];
    memmove(&program->instr[at + 2], &program->instr[at + 1],
            (program->n - at - 2) * sizeof *program->instr);
    program->instr[at + 1] = gather;
    check_fails(&s, "the form in which w2 rests");
    program_collective(program, COLLECTIVE_SLICE, graph_updated(s.graph, s.w2),
                       FORM_IDENTITY, form_gather(1));
    check_right("sliced", s.plan, s.graph);
    small_clear(&s);
}

static void test_wrong_number_of_ranks(void **state)
{
    (void)state;
    Small s = small_new();
    g_autoptr(ExecBackend) backend = exec_reference_new(2);
    g_auto(ExecVerdict) verdict = {0};
    g_autoptr(GError) error = NULL;
    assert_false(
        exec_verify(backend, s.plan, s.graph, 1, EXEC_TOLERANCE, &verdict, &error));
    assert_error(error, KILTER_ERROR_INPUT, "3 devices, but there are 2 ranks");
    small_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_of_planners),
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_shrunk_models_keep_their_structure),
        cmocka_unit_test(test_shrunk_named_models),
        cmocka_unit_test(test_least_model),
        cmocka_unit_test(test_every_parameter_has_its_small_value),
        cmocka_unit_test(test_other_models_differ),
        cmocka_unit_test(test_the_right_small_plan),
        cmocka_unit_test(test_missing_all_reduce),
        cmocka_unit_test(test_wrong_rules),
        cmocka_unit_test(test_wrong_at_rest_form),
        cmocka_unit_test(test_wrong_number_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
