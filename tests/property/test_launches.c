/* Launches: what exporters write is read back as the same strategy; what a target admits is what
 * its exporter takes; scripts in the shape of public ones are read as by hand; contradictions are
 * named.
 *
 *     KILTER_ROUNDS=N    random strategies in place of 60 */
#include <stdlib.h>

#include "data/formats/launch/launch.h"
#include "data/formats/launch/names.h"
#include "data/models/model.h"
#include "tests/support/exported.h"
#include "tests/support/random_strategy.h"
#include "tests/support/strategy_text.h"

static const char MODEL[] =
    "llama:layers=6,hidden=64,heads=8,kv_heads=8,ffn=128,seq=16,vocab=64,global_batch=24,"
    "precision=bf16";
static const char CLUSTER[] = "dgx-a100";

/* --- read(export(p)) = p --- */

/* Everything that a layout says, as text. */
static char *layout_text(const StrategyLayout *l, const Graph *graph)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "pp=%u dp=%u cp=%u tp=%u m=%u ep=%u whole=%d cp_comm=%u",
                           l->pp, l->dp, l->cp, l->tp, l->n_microbatches, l->ep,
                           l->experts, l->cp > 1 ? l->cp_comm : 0);
    const bool one = l->pp == 1 && l->n_stages == 1, divided = l->zero_ranks > 1;
    g_string_append_printf(text, " schedule=%s zero=%u/%u layers=",
                           one || l->n_microbatches == 1 ? ""
                                                         : schedule_name(l->schedule),
                           divided ? l->zero : 0, divided && l->zero ? l->zero_ranks : 0);
    for (uint32_t s = 1; s <= l->n_stages; s++)
        g_string_append_printf(text, "%u ", l->first[s]);
    for (uint32_t k = 0; k < graph_n_layers(graph); k++)
        g_string_append_printf(text, "%d%d", (int)l->recompute[k],
                               l->tp > 1 && l->sequence[k]);
    return g_string_free(text, FALSE);
}

static char *strategy_text(const Strategy *strategy, const Graph *graph, uint32_t n)
{
    g_autoptr(GError) error = NULL;
    g_auto(StrategyLayout) layout = {0};
    strategy_lay_out(strategy, graph, n, &layout, &error);
    assert_no_error(error);
    return layout_text(&layout, graph);
}

/* Embedding and head are recomputed with the first and last stage by whole words, not by ranges. */
static void ignore_ends(char *text)
{
    char *modes = strrchr(text, ' ') + 1;
    modes[0] = modes[strlen(modes) - 2] = '-';
}

/* Reads an exported file as its framework's users would; false where its target refuses the
 * plan. */
static bool comes_back(const Made *made, const char *target)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) files =
        plan_export(made->plan, made->graph, made->view, target, "plan", &error);
    g_auto(StrategyLayout) layout = {0};
    assert_true(strategy_lay_out(&made->plan->strategy, made->graph, 8, &layout, NULL));
    g_autoptr(GError) refusal = NULL;
    const bool admitted =
        export_check(target, &layout, made->graph, made->view, &refusal);
    if (admitted != (files != NULL))
        fail_msg("%s: admitted %d, exported %d: %s", target, admitted, files != NULL,
                 error ? error->message : refusal->message);
    if (!files)
        return false;
    const char *text = file_text(files, 0);
    g_autoptr(GString) all = g_string_new(text);
    if (strcmp(target, "fsdp") == 0) { /* its batches are in a second file */
        for (const char *p = file_text(files, 1); *p; p++)
            if (!strchr("{}\", ", *p))
                g_string_append_printf(all, *p == ':' ? "%c " : "%c", *p);
    }
    g_autoptr(Launch) launch = launch_parse("launch", all->str, all->len, &error);
    assert_no_error(error);
    if (launch->unknown->len)
        fail_msg("%s: unknown %s", target, (char *)launch->unknown->pdata[0]);
    Strategy strategy;
    launch_strategy(launch, made->graph, 8, &strategy, &error);
    if (error)
        fail_msg("%s: %s\n%s", target, error->message, all->str);
    g_autofree char *a = strategy_text(&made->plan->strategy, made->graph, 8),
                    *b = strategy_text(&strategy, made->graph, 8);
    ignore_ends(a);
    ignore_ends(b);
    if (strcmp(a, b) != 0)
        fail_msg("%s: %s\n became %s\n by %s", target, a, b, all->str);
    return true;
}

static void test_random_strategies_come_back(void **state)
{
    (void)state;
    static const char *const TARGET[] = {"megatron", "flagscale", "torchtitan",
                                         "deepspeed", "fsdp"};
    const char *asked = g_getenv("KILTER_ROUNDS");
    const uint32_t rounds = asked ? (uint32_t)atoi(asked) : 60;
    uint32_t back[G_N_ELEMENTS(TARGET)] = {0};
    g_autoptr(GRand) rand = g_rand_new_with_seed(36);
    for (uint32_t i = 0; i < rounds; i++) {
        g_autoptr(GError) error = NULL;
        /* every fifth one has replicas alone */
        g_autofree char *set =
            i % 5 ? random_strategy(rand, true, false)
                  : g_strdup_printf("dp=8 zero=%u microbatches=%u recompute=%s",
                                    pick(rand, 4), pick(rand, 2) ? 3 : 1,
                                    pick(rand, 2) ? "full" : "none");
        g_auto(Made) made = make("manual", MODEL, CLUSTER, set, &error);
        for (uint32_t t = 0; made.plan && t < G_N_ELEMENTS(TARGET); t++)
            back[t] += comes_back(&made, TARGET[t]);
    }
    for (uint32_t t = 0; t < G_N_ELEMENTS(TARGET); t++)
        if (back[t] < rounds / 40 + 1)
            fail_msg("%s took %u of %u", TARGET[t], back[t], rounds);
}

/* torchtitan runs all schedules but two: by name, or by a file of steps, which is not opened. */
static void test_schedules_come_back(void **state)
{
    (void)state;
    static const char *const SCHEDULE[] = {"gpipe",         "1f1b",     "interleaved",
                                           "breadth-first", "zb-h1",    "zb-h2",
                                           "zb-v",          "dualpipev"};
    g_autoptr(GError) error = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(SCHEDULE); i++) {
        g_autofree char *set =
            g_strdup_printf("pp=2 tp=2 microbatches=4 schedule=%s", SCHEDULE[i]);
        g_auto(Made) made = make("manual", MODEL, CLUSTER, set, &error);
        assert_no_error(error);
        assert_true(comes_back(&made, "torchtitan"));
    }
    g_auto(Made) heads =
        make("manual", MODEL, CLUSTER, "cp=4 tp=2 cp_comm=a2a+p2p a2a_ranks=2", &error);
    assert_no_error(error);
    assert_true(comes_back(&heads, "megatron"));
    assert_false(comes_back(&heads, "torchtitan"));
    g_auto(Made) half = make("manual", MODEL, CLUSTER,
                             "pp=2 tp=2 microbatches=4 schedule=v-half", &error);
    assert_false(comes_back(&half, "torchtitan"));
    static const char OTHER[] = "[parallelism]\npipeline_parallel_degree = 2\n"
                                "pipeline_parallel_schedule = \"1F1B\"\n"
                                "pipeline_parallel_schedule_csv = \"own.csv\"\n";
    g_autoptr(Launch) launch = launch_parse("launch", OTHER, sizeof OTHER - 1, &error);
    assert_no_error(error);
    assert_int_equal(launch->unknown->len, 1);
    assert_string_equal(launch->unknown->pdata[0], "the steps in own.csv");
}

/* Where GPUs differ it matters which ones have a stage. */
static void test_ranks_come_back(void **state)
{
    (void)state;
    static const char *const TARGET[] = {"megatron", "flagscale", "torchtitan"};
    g_autoptr(GError) error = NULL;
    g_auto(Made) made = make("manual", MODEL, CLUSTER,
                             "pp=4 dp=2 micro_batch=1 ranks=2,3;4,5;7,6;1,0", &error);
    assert_no_error(error);
    for (uint32_t t = 0; t < G_N_ELEMENTS(TARGET); t++) {
        g_autoptr(GArray) files =
            plan_export(made.plan, made.graph, made.view, TARGET[t], "plan", &error);
        assert_no_error(error);
        const char *text = file_text(files, 0);
        g_autoptr(Launch) launch = launch_parse("launch", text, strlen(text), &error);
        assert_no_error(error);
        Strategy strategy;
        assert_true(launch_strategy(launch, made.graph, 8, &strategy, &error));
        launch_place(launch, made.view, &strategy);
        assert_int_equal(launch->unknown->len, 0);
        assert_string_equal(strategy.ranks, made.plan->strategy.ranks);
        /* other machines */
        g_autoptr(Cluster) dgx = cluster_load("hap-8", &error);
        g_autoptr(ClusterView) view = cluster_view(dgx, GRANULARITY_GPU);
        strategy.ranks = NULL;
        launch_place(launch, view, &strategy);
        assert_null(strategy.ranks);
        assert_int_equal(launch->unknown->len, 1);
    }
}

/* Tokens go to each machine once by DeepEP, and beside a microbatch in the other direction. */
static void test_dispatchers(void **state)
{
    (void)state;
    static const char *const FLAGS[][2] = {
        {"--moe-token-dispatcher-type alltoall", NULL},
        {"--moe-token-dispatcher-type alltoall --moe-enable-deepep", NULL},
        {"--moe-token-dispatcher-type flex --moe-enable-deepep", "once"},
        {"--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep",
         "once"},
        {"--moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm "
         "--delay-wgrad-compute",
         "alltoall-overlapped"},
        {"--moe-token-dispatcher-type flex --moe-enable-deepep "
         "--overlap-moe-expert-parallel-comm",
         "overlapped"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(FLAGS); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(
            "python pretrain_gpt.py --expert-model-parallel-size 4 %s\n", FLAGS[i][0]);
        g_autoptr(Launch) launch = launch_parse("launch", text, strlen(text), &error);
        assert_no_error(error);
        assert_int_equal(launch->unknown->len, 0);
        assert_true(g_strcmp0(launch_dispatcher(launch), FLAGS[i][1]) == 0);
    }
}

/* --- scripts --- */

static const char SCRIPT[] =
    "#!/bin/bash\n"
    "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
    "GPUS_PER_NODE=8\nNNODES=${SLURM_NNODES:-1}\n"
    "TP=2; PP=2\nNUM_LAYERS=6\n"
    "DISTRIBUTED_ARGS=(\n    --nproc_per_node $GPUS_PER_NODE \n    --nnodes $NNODES\n)\n"
    "# the model\n"
    "GPT_MODEL_ARGS=(\n  --num-layers ${NUM_LAYERS} # all of them\n  --hidden-size 64\n"
    "  --seq-length 16\n  --swiglu\n)\n"
    "MODEL_PARALLEL_ARGS=\"--tensor-model-parallel-size ${TP} \\\n"
    "    --pipeline-model-parallel-size $PP --sequence-parallel\"\n"
    "TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size $((NNODES * 24)) --bf16)\n"
    "TRAINING_ARGS+=(--use-distributed-optimizer --recompute-granularity selective)\n"
    "torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\\n"
    "    ${GPT_MODEL_ARGS[@]} \\\n    $MODEL_PARALLEL_ARGS \\\n"
    "    \"${TRAINING_ARGS[@]}\" --moe-unheard-of 7 --lr=3e-4\n";

static void test_script(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Launch) launch = launch_parse("run.sh", SCRIPT, strlen(SCRIPT), &error);
    assert_no_error(error);
    assert_int_equal(launch->unknown->len, 1);
    assert_string_equal(launch->unknown->pdata[0], "--moe-unheard-of 7");
    g_autofree char *keys = launch_model_keys(launch, 8);
    assert_string_equal(keys, "global_batch=24,seq=16,precision=bf16-fp32-grads");
    g_autoptr(Graph) graph = model_build(MODEL, 8, NULL, &error);
    Strategy strategy;
    assert_true(launch_strategy(launch, graph, 8, &strategy, &error));
    g_autofree char *text = strategy_write(&strategy);
    assert_string_equal(text, "pp: 2\ndp: 2\ntp: 2\nmicro_batch: 1\nlayers: 3 3\n"
                              "recompute: selective\nsequence_parallel: on\nzero: 1\n");
}

/* Cross entropy by Transformer Engine takes both flags of Megatron-LM. */
static void test_fused_loss(void **state)
{
    (void)state;
    static const char *const flags[] = {"--cross-entropy-loss-fusion",
                                        "--cross-entropy-fusion-impl te",
                                        "--cross-entropy-loss-fusion "
                                        "--cross-entropy-fusion-impl native",
                                        "--cross-entropy-loss-fusion "
                                        "--cross-entropy-fusion-impl te"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(flags); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("torchrun pretrain_gpt.py --bf16 %s\n", flags[i]);
        g_autoptr(Launch) launch = launch_parse("run.sh", text, strlen(text), &error);
        assert_no_error(error);
        assert_string_equal(launch->runtime, i == 3 ? "megatron-te-loss" : "");
        assert_int_equal(launch->unknown->len, 0);
    }
}

/* Files of the other frameworks, with the strategy that they mean for 8 GPUs, or the message
 * about what contradicts. */
static void test_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } CASE[] = {
        {"{\"train_batch_size\": 24, \"train_micro_batch_size_per_gpu\": \"auto\",\n"
         " \"gradient_accumulation_steps\": 3, \"zero_optimization\": {\"stage\": 2},\n"
         " \"bf16\": {\"enabled\": true}}",
         "dp: 8\nmicrobatches: 3\nzero: 2\n"},
        {"{\"train_batch_size\": 24, \"train_micro_batch_size_per_gpu\": \"auto\",\n"
         " \"gradient_accumulation_steps\": 3, \"sequence_parallel_size\": 2}",
         "dp: 4\ncp: 2\ncp_comm: a2a\nmicrobatches: 3\n"},
        {"{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 3,\n"
         " \"zero_optimization\": {\"stage\": 3}}",
         "!a global batch of 24 on 8 replicas in microbatches of 2: expected a multiple "
         "of 16"},
        {"[training]\nlocal_batch_size = 3\nseq_len = 16\n[parallelism]\n"
         "tensor_parallel_degree = 2\ndata_parallel_shard_degree = -1\n"
         "[activation_checkpoint]\nmode = 'full'  # all\n",
         "dp: 4\ntp: 2\nmicro_batch: 3\nrecompute: full\nsequence_parallel: on\nzero: "
         "3\n"},
        {"distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"
         "  fsdp_activation_checkpointing: true\nmixed_precision: bf16\nnum_processes: "
         "8\n",
         "dp: 8\nrecompute: full\nzero: 3\n"},
        {"per_device_train_batch_size: 1\ngradient_accumulation_steps: 3\nbf16: true\n"
         "gradient_checkpointing: true\n",
         "dp: 8\nmicro_batch: 1\nrecompute: full\n"},
        /* a file that is named says its stage */
        {"distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n"
         "  deepspeed_config_file: some/zero3_offload.json\n",
         "dp: 8\nzero: 3\noffload: optimizer+parameters\n"},
        {"accelerate launch --config_file some/deepspeed_zero3.yaml --num_processes 8 "
         "x.py --bf16 --per_device_train_batch_size 3",
         "dp: 8\nmicro_batch: 3\nzero: 3\n"},
        /* what is not said is the framework's */
        {"output_dir: x\nbf16: true\n", "!on 8 replicas in microbatches of 8"},
        {"[training]\nseq_len = 16\n[parallelism]\n"
         "data_parallel_shard_degree = -1\ntensor_parallel_degree = 8\n",
         "dp: 1\ntp: 8\nmicro_batch: 8\nsequence_parallel: on\n"},
        {"python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 "
         "--tensor-model-parallel-size 2 --num-layers 6",
         "dp: 4\ntp: 2\nmicro_batch: 1\nzero: 1\n"},
        {"distributed_type: MULTI_GPU\nnum_processes: 16\nmixed_precision: bf16\n",
         "!a world of 16 GPUs, and the cluster has 8"},
        {"torchrun x.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
         "--pipeline-model-parallel-layout 'Et|(tt)*2|tL' --num-layers 6 "
         "--micro-batch-size 1",
         "!a layout of 3 stages on 2 ranks: expected a multiple"},
        {"torchrun x.py --pipeline-model-parallel-size 2 "
         "--pipeline-model-parallel-layout 'Et*|ttttttL' --num-layers 6",
         "!6 layers on 2 stages by the layout: expected a division"},
        {"torchrun x.py --tensor-model-parallel-size 3 --num-layers 6",
         "!expected a divisor of 8 GPUs"},
        {"torchrun x.py --tensor-model-parallel-size 2 --num-layers 12",
         "!12 layers, and the model has 6"},
        /* products that 32 bits do not hold */
        {"torchrun x.py --tensor-model-parallel-size 65536 "
         "--pipeline-model-parallel-size 65536",
         "!expected a divisor of 8 GPUs"},
        {"torchrun --nnodes 65536 --nproc-per-node 65536 x.py --num-layers 6",
         "!a world of 4294967295 GPUs"},
        {"torchrun x.py --pipeline-model-parallel-size 4 --num-layers 6 "
         "--num-virtual-stages-per-pipeline-rank 1073741824",
         "!6 layers on 4294967295 stages"},
        {"torchrun x.py --pipeline-model-parallel-size 4 --num-layers 6 "
         "--num-virtual-stages-per-pipeline-rank 9999999 "
         "--decoder-first-pipeline-num-layers 6",
         "!6 layers on 39999996 stages"},
    };
    g_autoptr(GError) none = NULL;
    g_autoptr(Graph) graph = model_build(MODEL, 8, NULL, &none);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        const char *text = CASE[i].text, *want = CASE[i].want;
        Strategy strategy;
        g_autoptr(Launch) launch = launch_parse("f", text, strlen(text), &error);
        assert_no_error(error);
        assert_int_equal(launch->unknown->len, 0);
        if (!launch_strategy(launch, graph, 8, &strategy, &error)) {
            if (*want != '!' || !strstr(error->message, want + 1))
                fail_msg("%u: %s", i, error->message);
            continue;
        }
        g_autofree char *got = strategy_write(&strategy);
        assert_string_equal(got, want);
    }
}

/* A number that is none is told as not read, unless it leaves the number to the framework. */
static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_read;
    } CASE[] = {{"4", true},     {"0", true},   {"-1", true},         {"null", true},
                {"-4", false},   {"1e3", true}, {"[1, 2]", false},    {".nan", false},
                {"four", false}, {"4x", false}, {"4294967296", false}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("model:\n  tensor_model_parallel_size: %s\n"
                            "  micro_batch_size: 1\ntrainer:\n  devices: 8\n",
                            CASE[i].text);
        g_autoptr(Launch) launch = launch_parse("f", text, strlen(text), &error);
        assert_no_error(error);
        assert_int_equal(launch->unknown->len, CASE[i].is_read ? 0 : 1);
    }
}

/* Megatron-LM's block method runs the first N transformer layers of each stage again, also where a
 * stage has only the embedding or only the head. */
static void test_blocks_run_again(void **state)
{
    (void)state;
    static const char *const LAYOUT[] = {"Et|tt|tt|tL", "E|ttt|ttt|L", "Ettt|t|t|tL",
                                         "E|tttt|t|tL", "Etttt|t|t|L"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(MODEL, 8, NULL, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < 4 * G_N_ELEMENTS(LAYOUT); i++) {
        const char *layout = LAYOUT[i / 4];
        const uint32_t n = 1 + i % 4;
        g_autofree char *text = g_strdup_printf(
            "torchrun x.py --pipeline-model-parallel-size 4 --num-layers 6 "
            "--pipeline-model-parallel-layout '%s' --micro-batch-size 1 "
            "--recompute-granularity full --recompute-method block "
            "--recompute-num-layers %u",
            layout, n);
        Strategy strategy;
        g_auto(StrategyLayout) l = {0};
        g_autoptr(Launch) launch = launch_parse("f", text, strlen(text), &error);
        assert_no_error(error);
        if (!launch_strategy(launch, graph, 8, &strategy, &error) ||
            !strategy_lay_out(&strategy, graph, 8, &l, &error))
            fail_msg("%s: %s", text, error->message);
        uint32_t layer = 0, before = 0; /* before: transformer layers of its stage */
        for (const char *at = layout; *at; at++) {
            before = *at == '|' ? 0 : before;
            if (*at == '|')
                continue;
            const bool again = *at == 't' && before < n;
            if ((l.recompute[layer] == RECOMPUTE_FULL) != again)
                fail_msg("%s, %u: layer %u", layout, n, layer);
            before += *at == 't';
            layer++;
        }
        assert_int_equal(layer, graph_n_layers(graph));
    }
}

/* Every name that has the value of a word for a degree, a batch or a number of layers takes whole
 * numbers, and what leaves the number to the framework; no other text. Every other name takes any. */
static void test_words_of_names(void **state)
{
    (void)state;
    static const char *const WORD[] = {
#define X(id) #id,
        LAUNCH_WORDS(X)
#undef X
    };
    static const char *const NUMBER[] = {"world",
                                         "pp",
                                         "tp",
                                         "cp",
                                         "ep",
                                         "etp",
                                         "replicate",
                                         "shard",
                                         "micro_batch",
                                         "local_batch",
                                         "global_batch",
                                         "microbatches",
                                         "tokens_micro",
                                         "tokens_step",
                                         "seq",
                                         "virtual",
                                         "per_virtual",
                                         "first_layers",
                                         "last_layers",
                                         "zero",
                                         "layers",
                                         "recompute_layers",
                                         NULL};
    static const struct {
        const char *text;
        bool is_number;
    } CASE[] = {{"4", true},   {"-1", true},    {"null", true}, {"", true},
                {"-4", false}, {"four", false}, {"4.5", false}, {"2147483648", false}};
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) names = launch_names_read(&error);
    g_autofree char *file = NULL;
    uint32_t n[2] = {0};
    assert_no_error(error);
    assert_true(g_file_get_contents(KILTER_HOME "/data/launches.csv", &file, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(file, "\n", -1);
    for (char **at = line; *at; at++) {
        g_auto(GStrv) cell = g_strsplit(*at, ",", -1);
        uint32_t w = 0, others = 0;
        if (**at == '#' || g_strv_length(cell) != 4 || *cell[3] || strchr(cell[1], '*'))
            continue;
        while (w < WORDS && g_ascii_strcasecmp(WORD[w], cell[2]) != 0)
            w++;
        for (char **k = line; w < WORDS && *k; k++) { /* a name may have several words */
            g_auto(GStrv) other = g_strsplit(*k, ",", -1);
            const bool is_row =
                g_strv_length(other) == 4 && strcmp(other[0], cell[0]) == 0;
            others += is_row && g_pattern_match_simple(other[1], cell[1]);
        }
        if (w == WORDS || others > 1)
            continue;
        const bool is_number = g_strv_contains(NUMBER, cell[2]);
        for (uint32_t c = 0; c < G_N_ELEMENTS(CASE); c++) {
            char *value[WORDS] = {NULL};
            const bool taken = launch_take(names, cell[0], cell[1], CASE[c].text, value);
            if (taken != (!is_number || CASE[c].is_number))
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s' is %s", *at, CASE[c].text,
                             taken ? "taken" : "refused");
            assert_true(!taken || g_strcmp0(value[w], CASE[c].text) == 0);
            g_free(value[w]);
        }
        n[is_number]++;
    }
    print_message("%u names of numbers, %u of others\n", n[1], n[0]);
    assert_true(n[1] > 50 && n[0] > 50);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",
                                      "hello: world\n",
                                      "{\"a\": ",
                                      "A=( 1 2\n--tp 1",
                                      "run --lr ${X",
                                      "run --lr \"3",
                                      "run --lr $((1 + "};
    for (uint32_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(launch_parse("f", BAD[i], strlen(BAD[i]), &error));
        assert_non_null(error);
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
    }
}

/* The line of a refusal, after all that goes on over several lines: comments, quotes, arrays, ends of
 * lines that are continued. */
static void test_lines(void **state)
{
    (void)state;
    static const char *const BEFORE[] = {
        "# a comment\n\n", "A='1\n2\n3'\n",         "B=\"x\ny\"\n",
        "C=(1\n2\n)\n",    "run --a \\\n  --b 1\n", "run --name 'p\nq' --b 2\n",
        "D=\"1 \\\n2\"\n", "run --c 3; E=4\n"};
    static const char bad[] = "run --lr ${X";
    enum { N = G_N_ELEMENTS(BEFORE) };
    for (uint32_t set = 0; set < 1u << N; set++) {
        g_autoptr(GString) text = g_string_new(NULL);
        uint32_t line = 1;
        for (uint32_t i = 0; i < N; i++)
            if (set >> i & 1u)
                g_string_append(text, BEFORE[i]);
        for (const char *p = text->str; *p; p++)
            line += *p == '\n';
        g_string_append(text, bad);
        g_autoptr(GError) error = NULL;
        assert_null(launch_parse("f", text->str, text->len, &error));
        g_autofree char *begin = g_strdup_printf("f:%u: ", line);
        if (!g_str_has_prefix(error->message, begin))
            print_error("%s\n%s\n", text->str, error->message);
        assert_true(g_str_has_prefix(error->message, begin));
    }
}

/* The option has every target, and joint's and amp's plans for one are exported to it. */
static void test_for(void **state)
{
    (void)state;
    static const char *const PLANNER[] = {"joint", "amp"};
    PlannerOptions options;
    planner_options_init(&options);
    assert_null(planner_options_target(&options));
    for (uint32_t i = 0; i < export_target_count(); i++) {
        const char *name = export_target(i)->name;
        g_autoptr(GError) error = NULL;
        const bool known = planner_options_set(&options, "for", name, &error);
        assert_int_equal(known, strcmp(name, "json") != 0);
        if (known)
            assert_string_equal(planner_options_target(&options), name);
    }
    for (uint32_t p = 0; p < G_N_ELEMENTS(PLANNER); p++) {
        static const char MIXED[] = "gpt2:layers=8,global_batch=32,precision=mixed";
        g_auto(Made) any = made_plan(PLANNER[p], MIXED, "amp-het-cluster", "");
        g_auto(Made) made =
            made_plan(PLANNER[p], MIXED, "amp-het-cluster", "for=megatron");
        g_autoptr(GArray) files = export(&made, "megatron");
        assert_string_equal(made.plan->target, "megatron");
        assert_true(made.plan->any_time_s > 0 &&
                    made.plan->any_time_s <= made.plan->iteration_time_s);
        assert_true(any.plan->iteration_time_s <= made.plan->iteration_time_s * 1.000001);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_fused_loss),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_words_of_names),
        cmocka_unit_test(test_blocks_run_again),
        cmocka_unit_test(test_for),
        cmocka_unit_test(test_random_strategies_come_back),
        cmocka_unit_test(test_schedules_come_back),
        cmocka_unit_test(test_ranks_come_back),
        cmocka_unit_test(test_dispatchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
