/* Strategies in random combinations, each refused with a reason or proved by running its program:
 * degrees of all kinds, schedules, microbatches, recomputation, sequence parallelism, uneven
 * shares, sharded states, precisions and optimizers, on small models; and the effect of each
 * technique on memory. */
#include <glib/gstdio.h>
#include <math.h>

#include "exec/exec.h"
#include "synth/planners/planner.h"
#include "tests/support/made_plan.h"
#include "tests/support/random_strategy.h"
#include "tests/support/transfers.h"
#include "tests/test.h"

#ifndef COMBINATIONS
#define COMBINATIONS 30
#endif

#define GPT \
    "gpt2:layers=4,hidden=16,heads=4,ffn=24,seq=8,vocab=24,global_batch=24,dropout=0.1"
#define MOE \
    "bert-moe:layers=4,hidden=8,heads=2,ffn=12,seq=4,vocab=16,global_batch=24,experts=4"
#define LLAMA \
    "llama:layers=4,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=24,global_batch=24"
#define MIXTRAL                                                                         \
    "mixtral:layers=4,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=24,global_batch=" \
    "24,"                                                                               \
    "experts=4"
#define CLUSTER "star:hosts=8,bandwidth=1Gb/s,latency=5us"

/* The plan of `planner` under "key=value" options, separated by spaces; NULL where they are refused
 * with a reason. */
static Plan *try_plan(const char *planner, const char *model, const char *set,
                      Graph **graph, ClusterView *view)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    set_options(&options, set, &error);
    assert_no_error(error);
    Plan *plan = planner_plan(planner_find(planner, NULL), model, CLUSTER, view, &options,
                              graph, &error);
    if (plan)
        return plan;
    print_message("%s, %s: %s\n", model, set, error->message);
    if (error->code != KILTER_ERROR_INPUT || strchr(error->message, '\n'))
        fail_msg("%s on %s with %s: %s", planner, model, set, error->message);
    return NULL;
}

static Plan *plan_under(const char *planner, const char *model, const char *set,
                        Graph **graph, ClusterView *view)
{
    Plan *plan = try_plan(planner, model, set, graph, view);
    assert_non_null(plan);
    return plan;
}

/* A plan that cuts everything evenly takes as long, and as many bytes, if its cuts are left to
 * its ratios. */
static void check_fractions(Plan *plan, const Graph *graph, const ClusterView *view)
{
    static const char *const fidelity[] = {"stage", "flow"};
    g_autoptr(GError) error = NULL;
    SimReport *report[2][G_N_ELEMENTS(fidelity)];
    for (uint32_t without = 0; without < 2; without++) {
        for (uint32_t f = 0; f < G_N_ELEMENTS(fidelity); f++) {
            report[without][f] = sim_evaluate(plan, graph, view, fidelity[f], &error);
            assert_no_error(error);
        }
        for (uint32_t i = 0; i < plan->n_splits; i++)
            g_free(plan->split[i].count);
        plan->n_splits = 0;
    }
    for (uint32_t f = 0; f < G_N_ELEMENTS(fidelity); f++) {
        const SimReport *a = report[0][f], *b = report[1][f];
        assert_close(a->iteration_time_s, b->iteration_time_s, 1e-9);
        for (uint32_t j = 0; j < plan->n_devices; j++)
            assert_close((double)a->memory_bytes[j], (double)b->memory_bytes[j], 1e-12);
        sim_report_free(report[0][f]);
        sim_report_free(report[1][f]);
    }
}

/* Whether there is a plan; if so, it is proved. */
static bool prove(const char *planner, const char *model, const char *set)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = try_plan(planner, model, set, &graph, view);
    if (!plan)
        return false;
    g_autoptr(ExecBackend) backend = exec_reference_new(plan->n_devices);
    g_auto(ExecVerdict) verdict = {0};
    exec_verify(backend, plan, graph, 3, EXEC_TOLERANCE, &verdict, &error);
    if (error || !verdict.right)
        fail_msg("%s on %s with %s: error %g of %s, %s", planner, model, set,
                 verdict.error, verdict.where, error ? error->message : "not right");
    assert_true(plan->iteration_time_s > 0 && isfinite(plan->iteration_time_s));
    uint64_t most = 0; /* op groups may leave devices idle */
    for (uint32_t j = 0; j < plan->n_devices; j++)
        most = MAX(most, plan->memory_bytes[j]);
    assert_in_range(most, 1, UINT64_C(1) << 30);
    check_known_transfers(plan, graph, view);
    if (plan_splits_evenly(plan))
        check_fractions(plan, graph, view);
    return true;
}

/* Batch norm by the moments of parts: microbatches, stages, and uneven parts of the batch. */
static void test_batch_norm(void **state)
{
    (void)state;
    static const char *const model[] = {
        "resnet50:edge=32,width=2,classes=4,global_batch=16,own_moments=1",
        "inceptionv3:edge=75,width=2,classes=4,global_batch=16,own_moments=1,dropout=0"};
    static const char *const set[] = {"microbatches=2", "dp=4 pp=2 microbatches=2",
                                      "dp=4 pp=2 microbatches=2 shares=1,1,2,4",
                                      "pp=4 dp=2 microbatches=4 schedule=zb-h1"};
    for (uint32_t m = 0; m < G_N_ELEMENTS(model); m++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(set) - 3 * m; i++)
            assert_true(prove("manual", model[m], set[i]));
}

/* A single sample: devices that share its sequence need no other. Replicas do. */
static void test_one_sample(void **state)
{
    (void)state;
    static const char *const set[] = {"cp=8 cp_comm=a2a zero=1", "cp=8",
                                      "cp=4 pp=2 recompute=full",
                                      "cp=4 tp=2 sequence_parallel=on zero=3"};
    static const char *const model = "llama:layers=2,hidden=64,heads=8,kv_heads=8,ffn=96,"
                                     "seq=64,vocab=24,global_batch=1";
    for (uint32_t i = 0; i < G_N_ELEMENTS(set); i++)
        assert_true(prove("manual", model, set[i]));
    assert_false(prove("manual", model, "dp=2 cp=4"));
}

static void test_random_strategies(void **state)
{
    (void)state;
    static const char *const model[] = {GPT, MOE, LLAMA, MIXTRAL};
    static const char *const precision[] = {"single", "mixed", "mixed-fp32-grads",
                                            "bf16-fsdp,train=lora:2,target=all"};
    static const char *const optimizer[] = {"adam",      "adamw", "sgd",
                                            "adafactor", "lion",  "muon"};
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    uint32_t proved = 0;
    for (uint32_t i = 0; i < COMBINATIONS; i++) {
        const uint32_t which = pick(rand, G_N_ELEMENTS(model));
        g_autofree char *set = random_strategy(rand, true, which % 2);
        const char *by = optimizer[pick(rand, G_N_ELEMENTS(optimizer))],
                   *in = precision[pick(rand, G_N_ELEMENTS(precision))];
        g_autofree char *spec =
            g_strdup_printf("%s,precision=%s,optimizer=%s", model[which], in, by);
        proved += prove("manual", spec, set);
    }
    assert_in_range(proved, COMBINATIONS * 3 / 5, COMBINATIONS);
}

/* Proves most of the strategies that a generator gives. */
static void prove_random(char *(*generate)(GRand *), uint32_t seed)
{
    static const char *const model[] = {GPT, MOE, LLAMA, MIXTRAL};
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    uint32_t proved = 0;
    for (uint32_t i = 0; i < COMBINATIONS / 2; i++) {
        g_autofree char *set = generate(rand);
        g_autofree char *spec =
            g_strdup_printf("%s,precision=%s", model[pick(rand, G_N_ELEMENTS(model))],
                            pick(rand, 2) ? "single" : "mixed-fp32-grads");
        proved += prove("manual", spec, set);
    }
    assert_in_range(proved, COMBINATIONS / 2 * 3 / 5, COMBINATIONS / 2);
}

static void test_random_pipelines(void **state)
{
    (void)state;
    prove_random(random_pipelines, 17);
}

static void test_random_stages(void **state)
{
    (void)state;
    prove_random(random_stages, 23);
}

static char *random_degrees(GRand *rand)
{
    return random_strategy(rand, true, false);
}

/* Parts of four replicas cannot go to two replicas of two shards. */
static void check_unlike_shards(const char *model)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = plan_under(
        "manual", model, "stage_dp=2,4 stage_cp=2,1 microbatches=2", &graph, view);
    Program *program = plan->program;
    uint32_t i = 0;
    while (i + 1 < program->n &&
           !(program->instr[i].across && program->instr[i].group == 1 &&
             program->instr[i + 1].kind == INSTR_TRANSFER))
        i++;
    assert_in_range(i, 1, program->n - 2);
    program->n--;
    memmove(&program->instr[i], &program->instr[i + 1],
            (program->n - i) * sizeof *program->instr);
    assert_false(program_check(program, graph, &error));
    assert_non_null(strstr(error->message, "cannot go to"));
}

/* Parameters that stages share, the embedding with the head and with the embedding of an encoder:
 * their gradients come from groups of other numbers of replicas and shards. */
static void test_shared_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *config, *arguments;
    } MODEL[] = {
        {"{\"model_type\": \"llama\", \"hidden_size\": 16, \"num_hidden_layers\": 4, "
         "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 24, "
         "\"intermediate_size\": 24, \"tie_word_embeddings\": true}",
         "seq=8,global_batch=24,precision=single"},
        {"{\"model_type\": \"t5\", \"d_model\": 16, \"num_layers\": 2, "
         "\"num_decoder_layers\": 1, \"num_heads\": 4, "
         "\"d_kv\": 4, \"d_ff\": 24, \"vocab_size\": 24, \"tie_word_embeddings\": true}",
         "seq=8,global_batch=24,precision=single"}};
    static char *(*const generate[])(GRand *) = {random_degrees, random_pipelines,
                                                 random_stages};
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kilter-XXXXXX", &error),
                    *file = g_build_filename(folder, "tied.json", NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(29);
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODEL); m++) {
        uint32_t proved = 0;
        g_autofree char *model = g_strconcat(file, ":", MODEL[m].arguments, NULL);
        assert_true(g_file_set_contents(file, MODEL[m].config, -1, &error));
        for (uint32_t i = 0; i < COMBINATIONS; i++) {
            g_autofree char *set = generate[i % 3](rand);
            proved += prove("manual", model, set);
        }
        assert_in_range(proved, COMBINATIONS / 2, COMBINATIONS);
        check_unlike_shards(model);
        assert_true(prove("manual", model,
                          m == 0
                              ? "pp=2 cp=2 dp=2 microbatches=4 schedule=dualpipe zero=1"
                              : "pp=2 dp=4 microbatches=6 schedule=dualpipe"));
    }
    g_remove(file);
    g_rmdir(folder);
}

typedef struct {
    double s[2]; /* by `stage` and by `flow` */
    uint64_t bytes;
} Cost;

static Cost cost_of(const char *set, ClusterView *view)
{
    static const char *const fidelity[] = {"stage", "flow"};
    Cost cost = {.bytes = 0};
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = plan_under("manual", GPT, set, &graph, view);
    for (uint32_t f = 0; f < 2; f++) {
        g_autoptr(SimReport) report =
            sim_evaluate(plan, graph, view, fidelity[f], &error);
        assert_no_error(error);
        cost.s[f] = report->iteration_time_s;
    }
    for (uint32_t j = 0; j < view->n_devices; j++)
        cost.bytes = MAX(cost.bytes, plan->memory_bytes[j]);
    return cost;
}

/* With parameters divided (ZeRO-3), those of a layer are gathered while the layer before it is
 * computed: on a replica the first gather of a layer comes before the first computation of the
 * layer before. */
static void test_layers_are_gathered_ahead(void **state)
{
    enum { LAYERS = 16 };
    (void)state;
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan =
        plan_under("manual", GPT, "dp=8 zero=3 microbatches=1", &graph, view);
    uint32_t gathered[LAYERS], computed[LAYERS], layer_of[512], ahead = 0;
    memset(gathered, 0xff, sizeof gathered);
    memset(computed, 0xff, sizeof computed);
    assert_true(graph_n_layers(graph) <= LAYERS && graph_n_tensors(graph) <= 512);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        for (uint32_t i = 0; op->pass == PASS_FORWARD && i < op->n_in; i++)
            layer_of[op->in[i]] = op->layer;
    }
    for (uint32_t i = 0; i < plan->program->n; i++) {
        const Instr *instr = &plan->program->instr[i];
        if (instr->kind == INSTR_COMPUTE) {
            const Op *op = graph_get_op(graph, instr->op);
            if (op->pass == PASS_FORWARD)
                computed[op->layer] = MIN(computed[op->layer], i);
        } else if (instr->kind == INSTR_COLLECTIVE &&
                   instr->collective == COLLECTIVE_ALL_GATHER &&
                   graph_tensor(graph, instr->tensor)->role == ROLE_PARAMETER) {
            uint32_t *first = &gathered[layer_of[instr->tensor]];
            *first = MIN(*first, i);
        }
    }
    for (uint32_t l = 1; l < graph_n_layers(graph); l++)
        if (gathered[l] != UINT32_MAX && computed[l - 1] != UINT32_MAX) {
            assert_true(gathered[l] < computed[l - 1]);
            ahead++;
        }
    assert_true(ahead >= 4);
}

/* Pipelines that are alike, with half of twice as many microbatches each, take the time and the
 * memory of replicas inside each stage. */
static void test_equal_pipelines_are_replicas(void **state)
{
    (void)state;
    static const char *const set[][2] = {
        {"pp=2 dp=4 microbatches=3", "pipeline_layers=2,2;2,2 microbatches=6"},
        {"pp=1 dp=8 microbatches=3", "pipeline_layers=4;4 microbatches=6"},
        {"pp=2 dp=4 microbatches=2 schedule=gpipe recompute=full",
         "pipeline_layers=2,2;2,2 microbatches=4 schedule=gpipe recompute=full"}};
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t i = 0; i < G_N_ELEMENTS(set); i++) {
        const Cost replicas = cost_of(set[i][0], view), own = cost_of(set[i][1], view);
        assert_close(own.s[0], replicas.s[0], 1e-4);
        assert_close(own.s[1], replicas.s[1], 1e-4);
        /* the loss lives until it joins */
        assert_in_range(own.bytes, replicas.bytes, replicas.bytes + sizeof(float));
    }
}

/* The bytes of a category on the fullest device. */
static uint64_t fullest(const char *model, const char *set, MemoryCategory category)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = plan_under("manual", model, set, &graph, view);
    g_autoptr(GArray) rows =
        sim_memory_table(plan, graph, view, "", false, plan->memory_bytes, &error);
    assert_no_error(error);
    return g_array_index(rows, SimMemoryRow, 0).bytes[category];
}

static double activations(const char *set)
{
    return (double)fullest("gpt2:layers=12,hidden=64,heads=4,ffn=256,seq=64,vocab=8,"
                           "global_batch=8,dropout=0.1,precision=mixed-fp32-grads",
                           set, MEMORY_ACTIVATIONS);
}

/* A strategy for 8 devices, with all numbers of the model divisible by 8. */
static uint64_t state_bytes(const char *set, MemoryCategory category)
{
    return fullest("gpt2:layers=2,hidden=64,heads=8,ffn=256,seq=64,vocab=64,"
                   "global_batch=64,dropout=0.1,precision=mixed-fp32-grads",
                   set, category);
}

/* DualPipe: with replicas, shards of sequences and of experts, and sharded states. With
 * two stages each device has the whole model. */
static void test_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *model, *set;
    } known[] = {
        {GPT, "pp=4 dp=2 microbatches=8"},
        {GPT, "pp=4 tp=2 microbatches=12 sequence_parallel=on recompute=full"},
        {GPT, "pp=4 dp=2 microbatches=12 zero=1"},
        {GPT, "pp=2 dp=4 microbatches=6 zero=1 zero_ranks=2"},
        {GPT, "pp=2 dp=2 tp=2 microbatches=4 shares=1,2 recompute=selective"},
        {LLAMA, "pp=4 cp=2 microbatches=8"},
        {LLAMA, "pp=2 cp=2 dp=2 microbatches=4 zero=1"},
        {LLAMA, "pp=2 cp=4 microbatches=4 cp_comm=p2p zero=1"},
        {MIXTRAL, "pp=2 dp=4 ep=4 microbatches=6 zero=1"},
        {MIXTRAL, "pp=2 dp=2 cp=2 ep=4 microbatches=6 zero=1"},
        {MIXTRAL, "pp=2 dp=2 tp=2 ep=2 etp=1 microbatches=6"},
        {MOE, "pp=4 dp=2 ep=2 microbatches=12"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autofree char *set = g_strconcat(known[i].set, " schedule=dualpipe", NULL);
        assert_true(prove("manual", known[i].model, set));
    }
    static const char *const refused[] = {"pp=3 tp=2 microbatches=8",
                                          "pp=4 microbatches=6",
                                          "pp=2 dp=4 microbatches=3",
                                          "pp=2 dp=4 microbatches=4 zero=2",
                                          "pp=2 microbatches=4 stage_tp=2,1 stage_dp=2,4",
                                          "pipeline_layers=2,2;2,2 microbatches=8"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *set = g_strconcat(refused[i], " schedule=dualpipe", NULL);
        assert_false(prove("manual", GPT, set));
    }
    for (MemoryCategory c = MEMORY_WEIGHTS; c <= MEMORY_OPTIMIZER; c++)
        assert_int_equal(state_bytes("pp=2 dp=4 microbatches=4 schedule=dualpipe", c),
                         state_bytes("dp=8 microbatches=2", c));
}

/* Adapters leave the products beside them cut: the devices that tp joins divide all weights but the
 * small ones. */
static void test_adapters(void **state)
{
    (void)state;
    static const char ADAPTED[] =
        "llama:layers=4,hidden=64,heads=8,kv_heads=8,ffn=96,seq=64,"
        "vocab=64,global_batch=64,train=lora:8";
    assert_at_most((double)fullest(ADAPTED, "tp=2 dp=4", MEMORY_WEIGHTS),
                   0.6 * (double)fullest(ADAPTED, "dp=8", MEMORY_WEIGHTS));
    assert_true(prove("manual", LLAMA ",train=lora:2",
                      "tp=2 dp=2 pp=2 microbatches=2 sequence_parallel=on"));
}

/* No instruction of the exchange can be left out or come before another, except that a pipeline may
 * leave for its gradient before others do. */
static void test_the_exchange_is_checked(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, &error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan =
        plan_under("manual", GPT, "pipeline_layers=4;2,2 microbatches=3", &graph, view);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->program->n; i++) {
        const Instr *instr = &plan->program->instr[i];
        if (!instr->across)
            continue;
        g_autoptr(Program) less = program_copy(plan->program);
        memmove(&less->instr[i], &less->instr[i + 1],
                (less->n - i - 1) * sizeof *less->instr);
        less->n--;
        if (program_check(less, graph, NULL))
            fail_msg("instruction %u is not missed", i);
        g_autoptr(Program) turned = program_copy(plan->program);
        Instr *pair = &turned->instr[i];
        const Instr other = pair[1];
        pair[1] = pair[0];
        pair[0] = other;
        const bool joins = instr_joins(instr) && other.tensor == instr->tensor;
        if (joins && program_check(turned, graph, NULL))
            fail_msg("instruction %u may come after the next", i);
        n++;
    }
    assert_in_range(n, 5 * 20, plan->program->n);
}

/* Techniques on the programs of planners that do not have them. */
static void test_techniques(void **state)
{
    (void)state;
    static const char *const planner[] = {
        "hap",    "dp-ev", "deepspeed", "tensor-parallel",
        "gshard", "tag",   "heterog",   "m-topo"};
    static const char *const set[] = {"microbatches=3", "recompute=full",
                                      "recompute=selective microbatches=2"};
    for (uint32_t p = 0; p < G_N_ELEMENTS(planner); p++)
        for (uint32_t s = 0; s < G_N_ELEMENTS(set); s++)
            assert_true(prove(planner[p], p == 4 ? MOE : GPT, set[s]));
}

/* Rajbhandari et al. 2020, Fig. 1: level 1 leaves 1/n of the optimizer states to each of n
 * replicas, level 2 of the gradients, level 3 of the parameters; tensors that a layer needs whole
 * come on top. */
static void test_memory_of_states(void **state)
{
    (void)state;
    static const MemoryCategory category[] = {MEMORY_OPTIMIZER, MEMORY_GRADIENTS,
                                              MEMORY_WEIGHTS};
    for (uint32_t c = 0; c < G_N_ELEMENTS(category); c++) {
        const uint64_t whole = state_bytes("dp=8 microbatches=2", category[c]);
        for (uint32_t zero = 1; zero <= 3; zero++) {
            g_autofree char *set = g_strdup_printf("dp=8 microbatches=2 zero=%u", zero);
            g_autofree char *hybrid = g_strdup_printf("%s zero_ranks=2", set);
            const bool divided = zero > c;
            /* the current layer's whole tensor: the largest parameter's gradient */
            const uint64_t layer = c == 1 ? 64 * 256 * 4 : 0;
            const uint64_t got = state_bytes(set, category[c]);
            assert_in_range(got, divided ? whole / 8 : whole,
                            (divided ? whole / 8 : whole) + layer);
            assert_in_range(state_bytes(hybrid, category[c]), divided ? whole / 2 : whole,
                            (divided ? whole / 2 : whole) + layer);
        }
    }
}

/* Korthikanti et al. 2022, Sec. 4: with s tokens of h features, a heads and t devices a layer keeps
 * sbh (10 + 24/t + 5as/(ht)) bytes; sbh (34/t + 5as/(ht)) with sequence parallelism; sbh 34/t with
 * selective recomputation beside; 2sbh with full recomputation. The rest, embedding, head and the
 * current layer (which is kept in part), is less than three more layers. */
static void test_memory_of_layers(void **state)
{
    (void)state;
    const double s = 64, b = 2, h = 64, a = 4, t = 2, layers = 12;
    const struct {
        const char *set;
        double layer;
    } known[] = {
        {"dp=4 tp=2", s * b * h * (10 + 24 / t + 5 * a * s / h / t)},
        {"dp=4 tp=2 sequence_parallel=on", s * b * h * (34 / t + 5 * a * s / h / t)},
        {"dp=4 tp=2 recompute=selective", s * b * h * (10 + 24 / t)},
        {"dp=4 tp=2 sequence_parallel=on recompute=selective", s * b * h * 34 / t},
        {"dp=4 tp=2 recompute=full", 2 * s * b * h},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        const double got = activations(known[i].set);
        assert_at_most((layers - 1) * known[i].layer, got);
        assert_at_most(got, layers * known[i].layer * 1.03 + 3 * known[0].layer);
    }
}

/* An op that joins samples leaves fewer pieces of the batch than it has samples: joint plans for
 * numbers of microbatches that divide these (before, it read beyond an array, or planned for
 * numbers that no program can have). */
static void test_joined_samples(void **state)
{
    (void)state;
    assert_true(prove("joint", MOE ",moe_group=2", ""));
    assert_true(prove("joint", MOE ",moe_group=2", "microbatches=12"));
    assert_false(prove("joint", MOE ",moe_group=2", "microbatches=24"));
}

/* Planners of op groups refuse microbatches that are not equally large. */
static void test_refusals(void **state)
{
    (void)state;
    static const char *const planner[] = {"tag", "heterog", "m-etf"};
    g_autoptr(Cluster) cluster = cluster_load(CLUSTER, NULL);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t i = 0; i < G_N_ELEMENTS(planner); i++) {
        g_autoptr(GError) error = NULL;
        PlannerOptions options;
        planner_options_init(&options);
        planner_options_set(&options, "microbatches", "5", &error);
        g_autoptr(Plan) plan = planner_plan(planner_find(planner[i], NULL), GPT, CLUSTER,
                                            view, &options, NULL, &error);
        assert_null(plan);
        assert_error(error, KILTER_ERROR_INPUT, "expected a divisor of the 24 pieces");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_one_sample),
        cmocka_unit_test(test_random_strategies),
        cmocka_unit_test(test_techniques),
        cmocka_unit_test(test_layers_are_gathered_ahead),
        cmocka_unit_test(test_random_pipelines),
        cmocka_unit_test(test_random_stages),
        cmocka_unit_test(test_shared_parameters),
        cmocka_unit_test(test_equal_pipelines_are_replicas),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_the_exchange_is_checked),
        cmocka_unit_test(test_memory_of_layers),
        cmocka_unit_test(test_joined_samples),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory_of_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
