/* Launches in the shape of those that projects publish (tests/support/launches): each is read as a
 * person reads it by hand. */
#include "data/formats/launch/launch.h"
#include "data/models/model.h"
#include "tests/support/strategy_text.h"
#include "tests/test.h"

/* A launch on so many GPUs of a model, here with as many layers but small ones: what the model
 * gets, the strategy, and the names that are not read. */
typedef struct {
    const char *file, *framework;
    uint32_t gpus;
    const char *model, *keys, *strategy, *unknown;
} Public;

#define LLAMA(layers) "llama:kv_heads=8,layers=" layers
#define STAGES_70     "layers: 5 6 6 6 6 6 6 6 6 6 6 5\n"
#define STAGES_96     "layers: 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6\n"
#define STAGES_61     "layers: 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 1\n"

static const Public PUBLIC[] = {
    {"gpt3_175b.sh", "Megatron-LM", 128, "gpt2:layers=96",
     "global_batch=1536,seq=2048,precision=mixed",
     "pp: 16\ndp: 1\ntp: 8\nmicro_batch: 1\n" STAGES_96, ""},
    {"llama3_8b_fp8.sh", "Megatron-LM", 8, LLAMA("32"),
     "global_batch=128,seq=8192,precision=fp8", "dp: 8\nmicro_batch: 1\nzero: 1\n", ""},
    {"mixtral_8x7b.sh", "Megatron-LM", 32, "mixtral:kv_heads=8,experts=8,layers=32",
     "global_batch=256,seq=4096,precision=bf16-fp32-grads",
     "pp: 4\ndp: 8\nep: 8\nmicro_batch: 1\nlayers: 8 8 8 8\nzero: 1\n", ""},
    {"nemo_gpt.yaml", "Megatron-LM", 16, LLAMA("32"),
     "global_batch=64,seq=4096,precision=bf16-fp32-grads",
     "pp: 2\ndp: 2\ntp: 4\nmicro_batch: 1\nlayers: 16 16\nrecompute: "
     "selective\nsequence_parallel: on\n",
     ""},
    {"deepseek_v3_bridge.py", "Megatron-LM", 1024,
     "mixtral:kv_heads=8,experts=64,layers=61",
     "global_batch=4096,seq=4096,precision=bf16-fp32-grads",
     "pp: 16\ndp: 32\ntp: 2\nep: 64\netp: 1\nmicro_batch: 1\n" STAGES_61
     "recompute: mla_up_proj+layernorm\nsequence_parallel: on\nzero: 1\n",
     "model AutoBridge.from_hf_pretrained(\"deepseek-, "
     "model.num_layers_per_virtual_pipeline_stage args.virtual"},
    {"bloom_176b.slurm", "Megatron-LM", 384, "gpt2:layers=70",
     "global_batch=2048,seq=2048,precision=bf16-fp32-grads",
     "pp: 12\ndp: 8\ntp: 4\nmicro_batch: 2\n" STAGES_70 "recompute: full\n",
     "the settings in ./ds_config..json, --embed-layernorm, "
     "--sync-tp-duplicated-parameters, --pad-vocab-size-to 250880, "
     "--train-weighted-split-paths-path /code/tr11-176B-ml/bigscience/train/tr11"},
    {"opt_175b.sh", "metaseq", 1024, "gpt2:layers=96",
     "global_batch=1024,seq=2048,precision=mixed",
     "dp: 128\ntp: 8\nmicro_batch: 8\nrecompute: full\nzero: 2\n", ""},
    {"titan_8b.toml", "torchtitan", 8, LLAMA("32"),
     "global_batch=8,seq=8192,precision=bf16-fsdp",
     "dp: 8\nmicro_batch: 1\nrecompute: alternate\nzero: 3\n", ""},
    {"titan_70b.toml", "torchtitan", 256, LLAMA("80"),
     "global_batch=256,seq=8192,precision=bf16-fsdp",
     "dp: 32\ntp: 8\nmicro_batch: 8\nrecompute: full\nsequence_parallel: on\nzero: 3\n",
     ""},
    /* two stages on each rank where nothing is said of layers_per_stage */
    {"titan_70b_pp.toml", "torchtitan", 32, LLAMA("80"),
     "global_batch=256,seq=8192,precision=bf16-fsdp",
     "pp: 2\ndp: 2\ntp: 8\nmicro_batch: 1\nschedule: interleaved\nvirtual_stages: 2\n"
     "recompute: full\nsequence_parallel: on\nzero: 2\n",
     ""},
    {"titan_405b.toml", "torchtitan", 512, LLAMA("126"),
     "global_batch=128,seq=8192,precision=fp8",
     "dp: 64\ntp: 8\nmicro_batch: 2\nrecompute: full\nsequence_parallel: on\nzero: 3\n",
     ""},
    {"ds_zero3.json", "DeepSpeed", 8, LLAMA("32"), "global_batch=64",
     "dp: 8\nmicro_batch: 2\nzero: 3\noffload: optimizer\n", ""},
    {"hf_alpaca.sh", "accelerate", 8, LLAMA("32"), "global_batch=128,precision=bf16-fsdp",
     "dp: 8\nmicro_batch: 2\nrecompute: full\nzero: 3\n", ""},
    {"accelerate_fsdp.yaml", "accelerate", 16, LLAMA("32"), "precision=bf16-fsdp",
     "dp: 16\nrecompute: full\nzero: 3\nzero_ranks: 8\n", ""},
    /* with the batches of the file beside it */
    {"exported_fsdp.yaml", "accelerate", 16, LLAMA("32"),
     "global_batch=64,precision=bf16-fsdp", "dp: 16\nmicro_batch: 1\nzero: 3\n", ""},
    {"flagscale_aquila.yaml", "FlagScale", 32, LLAMA("64"),
     "global_batch=1024,seq=4096,precision=bf16-fp32-grads",
     "pp: 4\ndp: 4\ntp: 2\nmicro_batch: 1\nlayers: 20 20 12 12\n"
     "sequence_parallel: on\nzero: 1\n",
     ""},
    /* calls in Python; variables of the script are put in, and what else is no literal is listed */
    {"trl_sft.py", "accelerate", 8, LLAMA("32"),
     "global_batch=128,seq=4096,precision=bf16-fsdp",
     "dp: 8\nmicro_batch: 2\nrecompute: full\nzero: 3\n", ""},
    {"hf_seq2seq.py", "DeepSpeed", 8, LLAMA("32"), "global_batch=256",
     "dp: 8\nmicro_batch: 8\nzero: 3\noffload: optimizer\n",
     "gradient_accumulation_steps args.steps, bf16 args.bf16, fp16 not args.bf16"},
    {"hf_deepspeed_dict.py", "DeepSpeed", 8, LLAMA("32"),
     "global_batch=64,precision=bf16",
     "dp: 8\nmicro_batch: 4\nzero: 2\noffload: optimizer\n", ""},
    {"accelerate_fsdp2.py", "accelerate", 16, LLAMA("32"), "precision=bf16-fsdp",
     "dp: 8\ntp: 2\nmicrobatches: 4\nrecompute: full\nzero: 3\nzero_ranks: 4\n", ""},
    {"nemo2_llama.py", "Megatron-LM", 32, LLAMA("80"), "global_batch=128,seq=8192",
     "pp: 4\ndp: 2\ntp: 4\nmicro_batch: 1\nschedule: interleaved\nvirtual_stages: 5\n"
     "layers: 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4\nsequence_parallel: on\nzero: 1\n",
     ""},
    {"bridge_container.py", "Megatron-LM", 32, LLAMA("80"),
     "global_batch=512,seq=8192,precision=bf16-fp32-grads",
     "pp: 4\ndp: 1\ntp: 4\ncp: 2\ncp_comm: p2p\nmicro_batch: 1\nlayers: 20 20 20 20\n"
     "recompute: full\nsequence_parallel: on\nzero: 1\n",
     ""},
    {"titan_registry.py", "torchtitan", 32, LLAMA("80"),
     "global_batch=32,seq=8192,precision=bf16-fsdp",
     "dp: 4\ntp: 8\nmicro_batch: 8\nrecompute: full\nsequence_parallel: on\nzero: 3\n",
     ""},
    {"axolotl_nd.yaml", "accelerate", 16, LLAMA("32"),
     "global_batch=16,seq=8192,precision=bf16-fsdp",
     "dp: 4\ntp: 2\ncp: 2\nmicro_batch: 1\nrecompute: full\nzero: 2\nzero_ranks: 4\n",
     "plugins axolotl.integrations.liger.LigerPlugin"},
    {"llama_factory_lora.yaml", "DeepSpeed", 8, LLAMA("32"),
     "global_batch=64,seq=2048,precision=bf16,train=lora:16,"
     "target=attention.q.+attention.values,weights=nf4",
     "dp: 8\nmicro_batch: 1\nrecompute: full\nzero: 3\noffload: optimizer\n", ""},
    {"nanotron.yaml", "nanotron", 16, LLAMA("32"),
     "global_batch=64,seq=4096,precision=bf16",
     "pp: 2\ndp: 4\ntp: 2\nmicro_batch: 2\nschedule: gpipe\nlayers: 16 16\n"
     "sequence_parallel: on\nzero: 1\n",
     ""},
    {"torchtune_lora.yaml", "torchtune", 8, LLAMA("32"),
     "global_batch=64,seq=8192,precision=bf16,train=lora:8,"
     "target=attention.q.+attention.values+attention.out",
     "dp: 4\ntp: 2\nmicro_batch: 2\nrecompute: full\nzero: 3\n", ""},
    {"verl_megatron.sh", "verl", 16, LLAMA("32"), "",
     "pp: 2\ndp: 2\ntp: 4\nmicro_batch: 2\nlayers: 16 16\nrecompute: full\nzero: 1\n",
     "actor_rollout_ref.actor.ppo_mini_batch_size 128"},
    {"unsloth.py", "accelerate", 1, LLAMA("32"),
     "global_batch=8,seq=4096,precision=bf16-fsdp,train=lora:32,"
     "target=attention.q.+attention.k.+attention.values+attention.out+ffn.gate+ffn.wide+"
     "ffn.down,weights=nf4",
     "dp: 1\nmicro_batch: 2\nrecompute: full\n", "model_name some/model-8b"},
    {"titan_flags.sh", "torchtitan", 8, LLAMA("32"),
     "global_batch=2,seq=8192,precision=bf16-fsdp",
     "dp: 2\ntp: 4\nmicro_batch: 1\nrecompute: alternate\nsequence_parallel: on\nzero: "
     "3\n",
     ""},
    {"ds_chat.sh", "DeepSpeed", 8, LLAMA("32"), "global_batch=64,seq=1024,precision=bf16",
     "dp: 8\nmicro_batch: 4\nrecompute: full\nzero: 3\noffload: optimizer+parameters\n",
     ""},
    /* drivers recompute unasked */
    {"swift_lora.sh", "DeepSpeed", 4, LLAMA("32"),
     "global_batch=32,seq=2048,precision=bf16,train=lora:16,"
     "target=all+scan+attention.values+ffn.gate",
     "dp: 4\nmicro_batch: 1\nrecompute: full\nzero: 2\noffload: optimizer\n", ""},
    {"megatron_swift.sh", "Megatron-LM", 8, LLAMA("32"),
     "global_batch=32,seq=4096,precision=bf16-fp32-grads",
     "dp: 4\ntp: 2\nmicro_batch: 1\nrecompute: selective\nsequence_parallel: on\n"
     "zero: 1\noffload: optimizer\n",
     ""},
    {"openrlhf_sft.sh", "DeepSpeed", 8, LLAMA("32"),
     "global_batch=256,seq=2048,precision=bf16",
     "dp: 8\nmicro_batch: 2\nrecompute: full\nzero: 2\n", ""},
    {"fsdp_offload.sh", "accelerate", 4, LLAMA("32"),
     "global_batch=128,seq=2048,precision=bf16-fsdp",
     "dp: 4\nmicro_batch: 2\nrecompute: full\nzero: 3\noffload: optimizer+parameters\n",
     ""},
    /* a file that is not there says its stage by its name */
    {"llama_factory_full.yaml", "DeepSpeed", 8, LLAMA("32"),
     "global_batch=16,seq=2048,precision=bf16",
     "dp: 8\nmicro_batch: 1\nrecompute: full\nzero: 3\noffload: optimizer+parameters\n",
     "the settings in examples/deepspeed/ds_z3_offload_config.json"},
    {"neox.yml", "DeepSpeed", 16, "gpt2:layers=32",
     "global_batch=128,seq=2048,precision=mixed",
     "pp: 4\ndp: 2\ntp: 2\nmicro_batch: 4\nlayers: 8 8 8 8\nrecompute: full\nzero: 1\n",
     ""},
    {"foundry.yaml", "LLM Foundry", 8, "gpt2:layers=32",
     "global_batch=256,seq=2048,precision=bf16-fsdp",
     "dp: 8\nmicro_batch: 4\nrecompute: full\nzero: 3\n", ""},
};

static char *text_of(const Public *p, Launch **launch)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_strconcat("tests/support/launches/", p->file, NULL);
    *launch = launch_read(path, &error);
    assert_no_error(error);
    gsize length;
    char *text = NULL;
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    return text;
}

/* The strategy as text, or the message about what contradicts. */
static char *strategy_of(const Public *p, const Launch *launch)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *keys = launch_model_keys(launch, p->gpus);
    g_autofree char *spec = g_strdup_printf(
        "%s,hidden=64,heads=8,ffn=64,vocab=64%s%s%s", p->model,
        strstr(keys, "global_batch") ? "" : ",global_batch=128", *keys ? "," : "", keys);
    g_autoptr(Graph) graph = model_build(spec, p->gpus, NULL, &error);
    assert_no_error(error);
    Strategy strategy;
    return launch_strategy(launch, graph, p->gpus, &strategy, &error)
               ? strategy_write(&strategy)
               : g_strdup(error->message);
}

static void test_read_as_by_hand(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PUBLIC); i++) {
        const Public *p = &PUBLIC[i];
        g_autoptr(Launch) launch = NULL;
        g_autofree char *text = text_of(p, &launch), *strategy = strategy_of(p, launch),
                        *keys = launch_model_keys(launch, p->gpus);
        g_ptr_array_add(launch->unknown, NULL);
        g_autofree char *unknown = g_strjoinv(", ", (char **)launch->unknown->pdata);
        assert_string_equal(launch->framework, p->framework);
        assert_string_equal(keys, p->keys);
        assert_string_equal(strategy, p->strategy);
        assert_string_equal(unknown, p->unknown);
    }
}

/* One change of a file, and what it contradicts or means. */
static void test_changes(void **state)
{
    (void)state;
    static const struct {
        const char *file, *was, *is, *want;
    } CHANGE[] = {
        {"gpt3_175b.sh", "NUM_NODES=16", "NUM_NODES=8",
         "a world of 64 GPUs, and the cluster has 128"},
        {"gpt3_175b.sh", "--num-layers 96", "--num-layers 100",
         "100 layers, and the model has 96: expected the launch of this model"},
        {"llama3_8b_fp8.sh", "TP_SIZE=1", "TP_SIZE=3",
         "degrees of pipelines, tensors and contexts with a product of 3: expected a "
         "divisor of 8 GPUs"},
        {"llama3_8b_fp8.sh", "TP_SIZE=1", "TP_SIZE=${TP:-2}",
         "dp: 4\ntp: 2\nmicro_batch: 1\nsequence_parallel: on\nzero: 1\n"},
        {"bloom_176b.slurm", "#SBATCH --nodes=48", "#SBATCH -N 24",
         "a world of 192 GPUs, and the cluster has 384"},
        {"bloom_176b.slurm", "NLAYERS=70", "NLAYERS=$((70 - 1))",
         "69 layers, and the model has 70: expected the launch of this model"},
        /* brackets count */
        {"bloom_176b.slurm", "NLAYERS=70", "NLAYERS=$((280 / (2 * 2) + 3 * 1))",
         "73 layers, and the model has 70: expected the launch of this model"},
        {"trl_sft.py", "\"full_shard\", \"auto", "\"shard_grad_op\", \"auto",
         "dp: 8\nmicro_batch: 2\nrecompute: full\nzero: 3\n"},
        {"trl_sft.py", "// (MICRO_BATCH * GPUS)", "// MICRO_BATCH // 16",
         "dp: 8\nmicro_batch: 2\nrecompute: full\nzero: 3\n"},
        {"trl_sft.py", "MICRO_BATCH = 2", "MICRO_BATCH = pick()",
         "dp: 8\nmicro_batch: 8\nrecompute: full\nzero: 3\n"},
        {"trl_sft.py", "gradient_checkpointing=True", "gradient_checkpointing=False",
         "dp: 8\nmicro_batch: 2\nzero: 3\n"},
        {"hf_seq2seq.py", "deepspeed=\"ds_zero3.json\"",
         "deepspeed={'zero_optimization':"
         " dict(stage=1)}",
         "dp: 8\nmicro_batch: 8\nzero: 1\n"},
        {"titan_registry.py", "tensor_parallel_degree=8", "tensor_parallel_degree=3",
         "degrees of pipelines"},
        {"opt_175b.sh", " --no-reshard-after-forward", "",
         "dp: 128\ntp: 8\nmicro_batch: 8\nrecompute: full\nzero: 3\n"},
        {"opt_175b.sh", "UPDATE_FREQ=1", "UPDATE_FREQ=3",
         "dp: 128\ntp: 8\nmicro_batch: 8\nrecompute: full\nzero: 2\n"},
        {"deepseek_v3_bridge.py", "first_pipeline_stage = 4", "first_pipeline_stage = 5",
         "61 layers on 16 stages: expected a division into whole layers"},
        {"mixtral_8x7b.sh", "--expert-model-parallel-size 8",
         "--expert-model-parallel-size 3", "ep=3"},
        {"accelerate_fsdp.yaml", "num_processes: 16", "num_processes: 32",
         "a world of 32 GPUs, and the cluster has 16"},
        {"hf_alpaca.sh", "full_shard auto_wrap", "shard_grad_op auto_wrap",
         "dp: 8\nmicro_batch: 2\nrecompute: full\nzero: 2\n"},
        {"swift_lora.sh", "--max_length", "--gradient_checkpointing false --max_length",
         "dp: 4\nmicro_batch: 1\nzero: 2\noffload: optimizer\n"},
        {"llama_factory_full.yaml",
         "bf16:", "disable_gradient_checkpointing: true\nbf16:",
         "dp: 8\nmicro_batch: 1\nzero: 3\noffload: optimizer+parameters\n"},
        {"swift_lora.sh", "$(expr 32 / $gpus)", "$(expr 8 \\* 2 - 8)",
         "dp: 4\nmicro_batch: 1\nrecompute: full\nzero: 2\noffload: optimizer\n"},
        {"hf_alpaca.sh", "--gradient_checkpointing True",
         "--gradient_checkpointing False", "dp: 8\nmicro_batch: 2\nzero: 3\n"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHANGE); i++) {
        g_autoptr(GError) error = NULL;
        uint32_t k = 0;
        while (strcmp(PUBLIC[k].file, CHANGE[i].file) != 0)
            k++;
        g_autoptr(Launch) whole = NULL, launch = NULL;
        g_autofree char *text = text_of(&PUBLIC[k], &whole);
        g_auto(GStrv) part = g_strsplit(text, CHANGE[i].was, 2);
        assert_non_null(part[1]);
        g_autofree char *changed = g_strjoinv(CHANGE[i].is, part);
        launch = launch_parse("f", changed, strlen(changed), &error);
        assert_no_error(error);
        g_autofree char *got = strategy_of(&PUBLIC[k], launch);
        const bool whole_text = strchr(CHANGE[i].want, '\n') != NULL;
        if (whole_text ? strcmp(got, CHANGE[i].want) != 0 : !strstr(got, CHANGE[i].want))
            fail_msg("%s: %s", CHANGE[i].is, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_as_by_hand),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
