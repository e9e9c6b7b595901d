/* The memory of runtimes beside a plan, compared with known bytes: of parameters by the model, of
 * logits by their extents. */
#include <string.h>

#include "data/data.h"
#include "synth/amp/amp.h"
#include "synth/planners/planner.h"
#include "tests/support/made_plan.h"
#include "tests/test.h"

static const char MODEL[] = "bert-base:layers=2,batch=32,seq=128,vocab=16384";
/* A model with 32 samples per GPU, so many that the peak is at the loss. */
static const double LOGITS = 32.0 * 128 * 16384 * 4;

typedef struct {
    SimMemoryRow row;
    double parameters; /* bytes, in float32 */
    uint64_t reported; /* of the row's device */
} Memory;

/* A plan in the runtime of that name; `zero`: the states that `manual` divides among replicas. */
static Memory memory_in(const char *planner, const char *zero, const char *runtime)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hidup-1x4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    PlannerOptions options;
    planner_options_init(&options);
    planner_options_set(&options, "runtime", runtime, &error);
    assert_no_error(error);
    planner_options_set(&options, "zero", zero, &error);
    assert_no_error(error);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = planner_plan(planner_find(planner, NULL), MODEL, "hidup-1x4",
                                        view, &options, &graph, &error);
    assert_no_error(error);
    g_autoptr(SimReport) report =
        sim_evaluate_with(plan, graph, view, "stage", &options.sim, &error);
    assert_no_error(error);
    g_autoptr(GArray) rows =
        sim_memory_table(plan, graph, view, runtime, false, report->memory_bytes, &error);
    assert_no_error(error);
    Memory memory = {.row = g_array_index(rows, SimMemoryRow, 0)};
    memory.reported = report->memory_bytes[memory.row.device];
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        if (graph_tensor(graph, t)->role == ROLE_PARAMETER)
            memory.parameters += (double)tensor_bytes(graph_tensor(graph, t));
    return memory;
}

/* Replicas of all parameters: without a runtime gradients are not there at the loss, with DDP there
 * are two of each, and copies of the logits. */
static void test_data_parallel(void **state)
{
    (void)state;
    const Memory none = memory_in("ddp", "0", ""),
                 ddp = memory_in("ddp", "0", "pytorch-ddp/allocated"),
                 horovod = memory_in("horovod", "0", "horovod/allocated");
    g_autoptr(Runtime) runtime = runtime_load("pytorch-ddp", NULL);
    const double copies = runtime->loss_copies;
    assert_true(none.row.bytes[MEMORY_GRADIENTS] == 0);
    assert_true((double)ddp.row.bytes[MEMORY_GRADIENTS] == ddp.parameters);
    assert_true((double)(ddp.row.total_bytes - none.row.total_bytes) ==
                2 * ddp.parameters + copies * LOGITS);
    assert_true((double)(horovod.row.total_bytes - none.row.total_bytes) ==
                ddp.parameters + copies * LOGITS);
}

/* Context, workspace, communicators and the reserve come on top, unless only allocated memory is
 * asked for. */
static void test_device(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Runtime) runtime = runtime_load("pytorch-ddp", &error);
    assert_no_error(error);
    const Memory all = memory_in("ddp", "0", "pytorch-ddp"),
                 part = memory_in("ddp", "0", "pytorch-ddp/allocated");
    const double fixed = (double)(runtime->context_bytes + runtime->workspace_bytes +
                                  runtime->communicator_bytes);
    assert_true(part.row.bytes[MEMORY_RUNTIME] == 0);
    assert_close((double)all.row.total_bytes,
                 runtime->reserve * (double)part.row.total_bytes + fixed, 1e-6);
    assert_close((double)all.reported, (double)all.row.total_bytes, 1e-6);
    assert_close((double)part.reported, (double)part.row.total_bytes, 1e-6);
}

/* Divided parameters: while one layer computes, the largest other layer is in memory, too. */
static void test_prefetch(void **state)
{
    (void)state;
    const Memory none = memory_in("manual", "3", ""),
                 fsdp = memory_in("manual", "3", "fsdp/allocated");
    assert_true(fsdp.row.total_bytes > none.row.total_bytes);
    assert_true((double)(fsdp.row.total_bytes - none.row.total_bytes) <=
                none.parameters + LOGITS);
}

/* Divided states: a replica's part of the gradients lies in the whole ones, all the time; divided
 * gradients move there. */
static void test_whole_gradients(void **state)
{
    (void)state;
    const Memory plain = memory_in("manual", "0", "megatron/allocated"),
                 divided = memory_in("manual", "1", "megatron/allocated"),
                 moved = memory_in("manual", "2", "megatron/allocated"),
                 parts = memory_in("manual", "1", "");
    assert_true((double)plain.row.bytes[MEMORY_GRADIENTS] == plain.parameters);
    assert_true((double)divided.row.bytes[MEMORY_GRADIENTS] == divided.parameters);
    assert_true((double)moved.row.bytes[MEMORY_GRADIENTS] < moved.parameters / 2);
    assert_true((double)parts.row.bytes[MEMORY_GRADIENTS] < parts.parameters / 2);
}

/* Peak bytes of a device of each stage: of a strategy's plan, and of the plan without its name. */
static void peaks_of(const char *set, const char *runtime, uint64_t peak[2][2])
{
    g_autoptr(GError) error = NULL;
    g_auto(Made) made =
        make("manual",
             "llama:layers=4,hidden=256,heads=4,kv_heads=4,ffn=512,seq=128,vocab=1024,"
             "batch=16,precision=bf16",
             "dgx-h100", set, &error);
    assert_no_error(error);
    PlannerOptions options;
    planner_options_init(&options);
    planner_options_set(&options, "runtime", runtime, &error);
    for (uint32_t without = 0; without < 2; without++) {
        if (without)
            strategy_init(&made.plan->strategy);
        g_autoptr(SimReport) report = sim_evaluate_with(made.plan, made.graph, made.view,
                                                        "stage", &options.sim, &error);
        assert_no_error(error);
        peak[without][0] = report->memory_bytes[0];
        peak[without][1] = report->memory_bytes[made.view->n_devices - 1];
    }
}

/* A runtime's memory follows from the program: it is the same without the strategy's name, as in
 * joint's plans of unlike stages; and of a stage, whatever the states of the other one. */
static void test_without_strategy(void **state)
{
    (void)state;
    static const char *const RUNTIME[] = {"megatron", "deepspeed-2", "fsdp", "none"},
                             *const DEGREES[] = {"dp=4 microbatches=1",
                                                 "tp=2 dp=2 microbatches=4"};
    for (uint32_t r = 0; r < G_N_ELEMENTS(RUNTIME); r++)
        for (uint32_t d = 0; d < G_N_ELEMENTS(DEGREES); d++) {
            uint64_t level[4][2][2], list[2][2];
            for (uint32_t zero = 0; zero < 4; zero++) {
                g_autofree char *set = g_strdup_printf("pp=2 %s zero=%u runtime=%s",
                                                       DEGREES[d], zero, RUNTIME[r]);
                peaks_of(set, RUNTIME[r], level[zero]);
                assert_memory_equal(level[zero][0], level[zero][1],
                                    sizeof level[zero][0]);
            }
            g_autofree char *set = g_strdup_printf("pp=2 %s stage_zero=1,2 runtime=%s",
                                                   DEGREES[d], RUNTIME[r]);
            peaks_of(set, RUNTIME[r], list);
            assert_memory_equal(list[0], list[1], sizeof list[0]);
            assert_true(list[0][0] == level[1][0][0] && list[0][1] == level[2][0][1]);
        }
}

/* A planner and an evaluation of its plan say the same, in every runtime. */
static void test_planners_and_runtimes(void **state)
{
    (void)state;
    static const char *const planner[] = {"hap",      "ddp",   "deepspeed", "amp",
                                          "megatron", "joint", "manual"},
                             *const runtime[] = {"none",          "pytorch",
                                                 "pytorch-ddp",   "megatron",
                                                 "fsdp/reserved", "megatron-deepspeed"};
    static const char small[] =
        "gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=64,vocab=512,global_batch=16";
    g_autoptr(Cluster) cluster = cluster_load("hidup-1x4", NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner) * G_N_ELEMENTS(runtime); i++) {
        g_autoptr(GError) error = NULL;
        const char *name = planner[i / G_N_ELEMENTS(runtime)],
                   *held = runtime[i % G_N_ELEMENTS(runtime)];
        PlannerOptions options;
        planner_options_init(&options);
        planner_options_set(&options, "runtime", held, &error);
        g_autoptr(Graph) graph = NULL;
        g_autoptr(Plan) plan = planner_plan(planner_find(name, NULL), small, "hidup-1x4",
                                            view, &options, &graph, &error);
        assert_no_error(error);
        g_autoptr(SimReport) report = sim_evaluate_with(
            plan, graph, view, plan_fidelity(plan), &options.sim, &error);
        assert_no_error(error);
        for (uint32_t j = 0; j < plan->n_devices; j++)
            if (plan->memory_bytes[j] != report->memory_bytes[j])
                fail_msg(
                    "%s in %s: device %u holds %g bytes by the plan, %g by an evaluation",
                    name, held, j, (double)plan->memory_bytes[j],
                    (double)report->memory_bytes[j]);
        assert_true(plan->feasible == report->feasible);
    }
}

/* The rows of AMP's search, which joint has, too: copies of gradients and logits are in them. */
static void test_rows_of_layers(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build("bert-base:layers=2,batch=32,seq=128,vocab=16384,precision=mixed", 1,
                    NULL, &error);
    g_autoptr(Cluster) cluster = cluster_load("hidup-1x4", NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Runtime) runtime = runtime_load("megatron-deepspeed", &error);
    g_autoptr(ClusterView) held = cluster_view_held(view, runtime, 1);
    g_autoptr(AmpModel) plain = synth_amp_model(graph, view, NULL, &error),
                        with = synth_amp_model(graph, held, NULL, &error);
    assert_no_error(error);
    double gradients = 0, logits = 0, parameters = 0;
    for (uint32_t l = 0; l < plain->n_layers; l++) { /* of the degree 1 */
        gradients += with->held[l] - plain->held[l];
        logits += with->activation[l] - plain->activation[l];
        parameters += plain->parameters[l];
    }
    assert_close(gradients, 4 * parameters, 1e-9);                  /* float32 copies */
    assert_close(logits, runtime->loss_copies * LOGITS / 32, 1e-9); /* for each sample */
}

/* Values that experts' products in 8 bits take wait in as many bytes as the runtime says: these,
 * and what their gates take, in one for two; and nothing else. */
static void test_narrow_experts(void **state)
{
    (void)state;
    static const char TEXT[] =
        "{name: a, description: b, source: c, expert_bytes: \"1\"}";
    g_autoptr(GError) error = NULL;
    g_autoptr(Runtime) runtime = runtime_parse("a", TEXT, strlen(TEXT), &error);
    assert_no_error(error);
    g_auto(Made) made = make(
        "manual",
        "mixtral:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,experts=4,top=2,seq=32,"
        "vocab=64,global_batch=8,precision=fp8",
        "dgx-h100", "", &error);
    assert_no_error(error);
    g_autoptr(PlanBuffers)
        wide = sim_runtime_buffers(made.plan->program, made.graph, NULL),
        narrow = sim_runtime_buffers(made.plan->program, made.graph, runtime);
    assert_int_equal(wide->n, narrow->n);
    uint32_t halved = 0;
    for (uint32_t b = 0; b < wide->n; b++) {
        const double bytes = wide->buffer[b].element_bytes;
        const bool half = narrow->buffer[b].element_bytes < bytes;
        const Tensor *tensor = graph_tensor(made.graph, wide->buffer[b].tensor);
        assert_close(narrow->buffer[b].element_bytes, half ? 1 : bytes, 1e-12);
        assert_true(!half || (bytes == 2 && tensor->role != ROLE_PARAMETER));
        halved += half;
    }
    assert_true(halved >= 2 * 5); /* slots, gates' inputs, their outputs and gradients */
}

/* All bundled runtimes can be read; damaged ones are refused in one line, or read. */
static void test_files(void **state)
{
    (void)state;
    g_auto(GStrv) name = runtime_names();
    assert_true(g_strv_length(name) >= 7);
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (uint32_t i = 0; name[i]; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Runtime) runtime = runtime_load(name[i], &error);
        assert_no_error(error);
        assert_string_equal(runtime->name, name[i]);
        assert_true(*runtime->source && *runtime->description);
    }
    static const char good[] = "name: a\ndescription: b\nsource: c\ngradients: \"1\"\n"
                               "context: 1 GiB\nreserve: 1.05\nprefetch: \"2\"\n";
    for (uint32_t round = 0; round < 2000; round++) {
        g_autofree char *text = g_strdup(good);
        for (int32_t k = g_rand_int_range(random, 1, 4); k > 0; k--)
            text[g_rand_int_range(random, 0, sizeof good - 1)] =
                (char)g_rand_int_range(random, 1, 127);
        g_autoptr(GError) error = NULL;
        g_autoptr(Runtime) runtime = runtime_parse("damaged", text, strlen(text), &error);
        assert_true((runtime == NULL) == (error != NULL));
        assert_true(!error || !strchr(error->message, '\n'));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"name: a\ndescription: b\nsource: c\nreserve: 0.5\n", "damaged:4: reserve"},
        {"name: a\ndescription: b\nsource: c\ngradients: \"2\"\n",
         "damaged:4: gradients"},
        {"name: a\ndescription: b\nsource: c\ncontext: 1e30 GiB\n", "damaged:4: context"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(runtime_parse("damaged", bad[i][0], strlen(bad[i][0]), &error));
        assert_error(error, KILTER_ERROR_INPUT, bad[i][1]);
    }
    g_autoptr(GError) error = NULL;
    assert_null(runtime_load("pytorch-dpp", &error));
    assert_error(error, KILTER_ERROR_INPUT, "did you mean 'pytorch-ddp'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_parallel),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_whole_gradients),
        cmocka_unit_test(test_without_strategy),
        cmocka_unit_test(test_planners_and_runtimes),
        cmocka_unit_test(test_rows_of_layers),
        cmocka_unit_test(test_narrow_experts),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
