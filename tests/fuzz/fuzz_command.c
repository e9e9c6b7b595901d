/* Whole commands: arguments by a grammar that is made of the option tables, files that are damaged
 * seeds. Each run is a process of its own in an empty folder, with limits of time and memory:
 *
 *     fuzz_command [--runs N] [--seed S] [--first I] [--cpu SECONDS] [--leaks N] [--keep DIR]
 *                  [--show]
 *
 * DIR is on the file system of $TMPDIR.
 *
 * Run I of seed S is the same in every build. Broken, and so printed with its arguments, kept in
 * DIR, and an exit status of 1, are: a signal, a sanitizer's finding, a leak, a status that has no
 * meaning, a refusal that is no line or wrote files, an answer that is no JSON where JSON is
 * asked for, a number that is none, and more than 20 s or 2 GiB that were not said before. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/models/models.h"
#include "experiments/cli/describe.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/option_ranges.h"

/* The program's main(), under this name (tests/CMakeLists.txt). */
extern int kilter_main(int argc, char **argv);

enum { FINDING = 99, MEMORY_GIB = 2, MOST_MESSAGE = 2048 };

#ifndef KILTER_SANITIZED
enum { CPU_S = 20 };
#define MEMORY_LIMITS "1GiB|900MiB|1500MiB|1GiB|64MiB|1B"
#else
enum { CPU_S = 200 };
#define MEMORY_LIMITS \
    "1B|x" /* a sanitizer's own memory is more than any that is enough */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=99:hard_rss_limit_mb=6000:detect_stack_use_after_return=0";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1:exitcode=99";
}
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "exitcode=99:print_suppressions=0";
}
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:g_intern\nleak:g_quark\nleak:libgnutls\n";
}
#endif

/* --- the grammar --- */

/* Commands that start processes of their own, or run whole papers. */
static const char *const LEFT_OUT[] = {"exec", "profile", "reproduce", NULL};
/* Each of two draws in three is one of these, which do the most. */
static const char *const MOSTLY[] = {"plan",    "simulate", "sweep",       "memory",
                                     "days",    "advise",   "sensitivity", "run_trace",
                                     "compare", "verify",   "calibrate",   "collective"};

typedef struct {
    const char *name;
    CommandRun run;
    json_t *about; /* command_description() */
    uint64_t done; /* runs with status 0 */
} Grammar;

static Grammar GRAMMAR[] = {
#define X(name, ...) {#name, cmd_##name, NULL, 0},
    COMMAND_TABLE(X)
#undef X
};

/* The values of an argument or an option: texts between `|`; `@NAME` is a damaged seed of that
 * reader, `%MODEL` and `%CLUSTER` are made, `%OUT` is a name to write to, `%SET` a key and a
 * value. By the word of the syntax or the option's name, then by its placeholder. */
typedef struct {
    const char *word, *value;
} Values;

static const Values VALUES[] = {
    {"MODEL", "%MODEL"},
    {"MODEL...", "%MODEL"},
    {"CLUSTER", "%CLUSTER"},
    {"PLAN.json", "@plan"},
    {"PLAN.json...", "@plan|@plan @plan"},
    {"[NAME|FILE]", "%CLUSTER"},
    {"[MODEL]", "%MODEL"},
    {"[DEVICE]", "h100|v100|rtx-4090|x|GeForce RTX 3090"},
    {"validate FILE.csv", "@store|@store|@trials|@measurement"},
    {"kernel KIND", "matmul|matmul|matmul|matmul|attention|elementwise|softmax|norm|conv|"
                    "experts|x"},
    {"merge RESULTS.db", "out.db|new.db|@store|%OUT"},
    {"figure NAME|timeline|all|plan", "plan|plan|x|timeline|all"},
    {"[FILE...]", "@plan|@cluster|@nsys|@kineto @measurement|@launch|@snapshot|@lists"},
    {"import", "import"},
    {"collective KIND", "all_reduce|all_gather|reduce_scatter|all_to_all|broadcast|"
                        "grouped_all_gather|grouped_reduce_scatter|x"},
    {"kernel KIND", "matmul|attention|elementwise|softmax|norm|conv|experts|matmul|x"},
    {"...", "@plan|@plan @plan"},
    {"DEVICE", "h100-sxm|a100-80g|v100|mi300x|x"},
    {"DAYS", "1|3|0|0.01|400|1e6|-1|x"},
    {"TRACE.0.et", "@trace"},
    {"TASKS.json", "@task_file"},
    {"CASES.json", "@sfb"},
    {"FILE", "@machine_file|@slurm|@machine_file"},
    {"FILE...", "@measurement|@kineto|@nsys|@layer_profile|@measurement @kineto|"
                "@profile_table|@snapshot|@trace|@lists"},
    {"TRIALS.csv", "@trials"},
    {"FILE.csv", "@trials|@measurement"},
    {"RESULTS.db", "@store"},
    {"PART.db...", "@store|@store @store"},
    {"FILE.yaml", "@experiment"},
    {"EXPERIMENT", "@experiment|hap-fig4|x"},
    {"HASH", "AB|BB|DA|ab1e264c71be8620307a|x|0|0123456789abcdef"},
    {"NAME|FILE.yaml", "@experiment|hap-fig4|x"},
    {"NAME|PAPER|all", "x|@plan"},
    {"NAME|timeline|all|plan", "x|timeline|plan @plan"},
    {"planner", NULL}, /* its names */
    {"fidelity", "analytic|stage|flow|x"},
    {"granularity", "machine|gpu|x"},
    {"only", "v100|p100|none|v100,p100|a100|x|*|v100-0"},
    {"without", "v100|p100|none|x|*|v100-0|p100-1"},
    {"add", "v100 x 1|a100-80g x 8|h100 x 100000|p100 x 0|x|v100 x 4 x 2|h100"},
    {"scale", "network=2|*.rate=0.5|v100.memory=0.1|inner=1e-9|network=1e9|x=1|"
              "network=0|latency=3"},
    {"slowdown", "0=2|1=1e9|x=2|0=0|7=1.5|99=2|0=1e-30"},
    {"for", "any|megatron|flagscale|torchtitan|deepspeed|fsdp|ddp|pytorch|x"},
    {"to", "megatron|flagscale|torchtitan|deepspeed|fsdp|ddp|pytorch|x"},
    {"like", "@launch|@plan"},
    {"strategy", "@strategy"},
    {"pins", "@pins"},
    {"pin", "decoder.weight=gather(0)|nothing=identity|x|=|a=b=c|loss=identity"},
    {"segments", "none|layers|ops|metis:2|metis:0|x=1|@segments"},
    {"failures", "@csv"},
    {"snapshot", "@snapshot"},
    {"measured", "@csv|@measurement"},
    {"base", "%CLUSTER"},
    {"cluster", "%CLUSTER"},
    {"experiment", "@experiment|hap-fig4|x"},
    {"db", "@store|%OUT|%OUT"},
    {"price", "v100=2|p100=0.8|x=1|v100=-1|v100=1e300|v100"},
    {"power", "v100=300|x=1|v100=0"},
    {"parts", "gpu|host|gpu,host|leaf|x"},
    {"stragglers", "1h|0.1*2|x|0.5*1.5@1h"},
    {"place", "packed|spread|x"},
    {"most", "batch|layers|seq|x"},
    {"shares", "1,2|1,x|0,0|1,1,1,1,1,1,1,1"},
    {"ranks", "0,1|0-3|2|0,0|x|-1"},
    {"algorithm", "ring|tree|pairwise|direct|halving|x|auto"},
    {"format", "bf16|fp8|fp32|tf32|x"},
    {"prices", "flow|analytic|x|paper"},
    {"backend", "reference|x"},
    {"columns", "cluster|planner|x|"},
    {"rows", "model|model,planner|x|,"},
    {"value", "iteration_time_s|gap|x|peak_memory_bytes"},
    {"reduce", "min|mean|max|geomean|x"},
    {"shard", "0/2|1/2|2/2|x|0/0"},
    {"emit", "slurm|k8s|make|x"},
    {"nic", "ib-ndr|eth-25|x|ib-hdr"},
    {"gpu", "h100|a100-80g|x|l40"},
    {"name", "mine|a:b||../x|\xff"},
    {"target", "1h|10s|0s|x|1 ns"},
    {"memory-limit", MEMORY_LIMITS},
    {"color", "never|always|auto|x"},
    {"effort", "quick|normal|long|x"},
    {"calibrate FILE...",
     "@measurement|@measurement @measurement|@layer_profile|@nsys|@kineto"},
    {"seed", "0|7|1|2|3|9223372036854775807|-1|18446744073709551615"},
    {"N", "1|2|3|4|8|0|17|1000|-1|2147483647|4294967296|x||0.5"},
    {"GAP", "0|0.1|1|1e-30|-1|x"},
    {"SECONDS", "0|0.1|1|x|-1|1e-30"},
    {"S", "1|0|x"},
    {"SIZE", "1GiB|64MiB|1 B|0|-1|1PiB|1MB|1e300|x|3 kB"},
    {"BYTES", "1GiB|1 B|0|x"},
    {"TIME", "1h|10s|0s|1ns|1000000 s|30d|-1s|x|1e-300 s|2000h"},
    {"LIST", "x|0,1|1"},
    {"SHAPE", "1|0.7|0|x|1e9"},
    {"KEY=VALUE", "%SET"},
};

/* Options without which a command refuses every line; mostly given. */
static const Values NEEDED[] = {
    {"collective", "--bytes=1MB|--bytes=1 B|--bytes=3GB"},
    {"calibrate", "--output=made.yaml"},
    {"cluster", "--output=made.yaml|--gpu=a100-80g"},
    {"fit", "--cluster=dgx-h100|--cluster=hap-8"},
    {"export", "--to=megatron|--to=ddp|--to=flagscale"},
    {"kernel", "--m=64|--m=64|--elements=1000|--tokens=64|--queries=32"},
    {"kernel", "--n=64"},
    {"kernel", "--k=64"},
    {"show", "--db @store"},
    {"rerun", "--db @store"},
    {"league", "--db @store"},
    {"figure", "--output=out"},
};

static const char *const MODELS[] = {
    "vit:layers=1,hidden=64,heads=4,ffn=128,global_batch=32",
    "vgg19:width=4,fc=64,global_batch=8",
    "gpt2:layers=2,hidden=64,heads=4,seq=32,vocab=128,global_batch=16",
    "bert-base:layers=2,hidden=96,ffn=192,vocab=640,seq=16",
    "bert-moe:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=512,experts=8",
    "llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=128,seq=32,vocab=256,precision="
    "mixed",
    "mixtral:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64,experts=4,"
    "capacity_factor=0,global_batch=16",
    "nemotron-h-56b:small=64,seq=64,global_batch=4,precision=mixed",
    "llama:layers=4,hidden=64,heads=4,kv_heads=2,ffn=64,seq=16,vocab=32,global_batch=1,"
    "precision=nvfp4",
};
static const char *const CLUSTERS[] = {
    "hap-8",        "hap-a100-4",
    "star:hosts=2", "star:hosts=3,bandwidth=10Gb/s,latency=5us",
    "tag-sfb",      "amp-homogeneous",
    "dgx-h100",     "rail:hosts=2",
    "tree:hosts=4", "x",
    "8xb200",       "2x4xh100-sxm@4xib-ndr+2x4xa100-80g@4xib-hdr"};

/* Settings of a strategy, of which some fit together; lists among them. */
static const char *const STRATEGIES[] = {"pp=1",
                                         "pp=2",
                                         "pp=4",
                                         "dp=0",
                                         "dp=2",
                                         "tp=1",
                                         "tp=2",
                                         "cp=2",
                                         "cp=4",
                                         "cp_comm=a2a",
                                         "ep=2",
                                         "ep=4",
                                         "etp=1",
                                         "expert_tokens=1,2,3,10",
                                         "imbalance=1.5",
                                         "micro_batch=1",
                                         "microbatches=2",
                                         "microbatches=4",
                                         "schedule=interleaved",
                                         "schedule=zb-h1",
                                         "schedule=zb-v",
                                         "schedule=dualpipev",
                                         "schedule=dualpipe",
                                         "layers=1 1",
                                         "layers=1 2 1",
                                         "cuts=2",
                                         "stage_tp=2 1",
                                         "stage_dp=2 4",
                                         "ranks=0 1 2 3; 4 5 6 7",
                                         "ranks=0 1; 2 3 4 5 6 7",
                                         "pipeline_layers=2; 1 1",
                                         "pipeline_layers=2 2; 4",
                                         "pipeline_shares=1 3",
                                         "shares=1 3",
                                         "recompute=full@1-2",
                                         "recompute=selective",
                                         "recompute=auto",
                                         "sequence_parallel=on",
                                         "sequence_parallel=on off",
                                         "zero=1",
                                         "zero=2",
                                         "zero=3",
                                         "zero_ranks=2",
                                         "sync_every=4",
                                         "offload=optimizer",
                                         "offload=activations",
                                         "offload=optimizer+parameters"};

typedef struct {
    GRand *rand;
    const char *folder;
    uint32_t n_files;
    GPtrArray *argv; /* owned texts */
    Grammar *of;
} Made;

static uint32_t made_below(const Made *made, uint32_t n)
{
    return n > 1 ? (uint32_t)g_rand_int_range(made->rand, 0, (gint32)n) : 0;
}

static bool made_in(const Made *made, uint32_t n)
{
    return made_below(made, n) == 0;
}

/* --- files --- */

/* All seeds, and what their dictionaries say, by the reader's name; read once. */
static GHashTable *seeds_of, *pieces_of;

static void free_text(gpointer text)
{
    g_string_free(text, TRUE);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static GPtrArray *seeds_load(const char *folder)
{
    GPtrArray *seeds = g_ptr_array_new_with_free_func(free_text);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        g_ptr_array_add(names, g_build_filename(folder, name, NULL));
    g_ptr_array_sort(names, by_name);
    for (uint32_t i = 0; i < names->len; i++) {
        char *bytes = NULL;
        gsize n = 0;
        if (g_file_get_contents(names->pdata[i], &bytes, &n, NULL))
            g_ptr_array_add(seeds, g_string_new_len(bytes, (gssize)n));
        g_free(bytes);
    }
    return seeds;
}

/* Makes a file of a seed, damaged or not; its name. Readers tell formats by what files say, not
 * by names. */
static char *made_file(Made *made, const char *reader)
{
    static const uint32_t DAMAGES[] = {0, 0, 0, 0, 1, 2, 4};
    const GPtrArray *seeds = g_hash_table_lookup(seeds_of, reader);
    fuzz_check(seeds && seeds->len > 0, "the reader has seeds");
    const GString *seed = seeds->pdata[made_below(made, seeds->len)];
    g_autoptr(GString) text = g_string_new_len(seed->str, (gssize)seed->len);
    for (uint32_t n = DAMAGES[made_below(made, G_N_ELEMENTS(DAMAGES))]; n > 0; n--)
        fuzz_damage(text, g_hash_table_lookup(pieces_of, reader), made->rand);
    static const char *const SUFFIX[][2] = {
        {"plan", ".json"},    {"store", ".db"},   {"experiment", ".yaml"},
        {"trace", ".0.et"},   {"trials", ".csv"}, {"task_file", ".json"},
        {"cluster", ".yaml"}, {"sfb", ".json"},   {"measurement", ".csv"},
        {"model", ".json"},   {"onnx", ".onnx"},  {"network", ""}};
    const char *suffix = "";
    for (uint32_t i = 0; i < G_N_ELEMENTS(SUFFIX); i++)
        if (strcmp(SUFFIX[i][0], reader) == 0)
            suffix = SUFFIX[i][1];
    char *name = g_strdup_printf("in%u%s", made->n_files++, suffix);
    g_autofree char *path = g_build_filename(made->folder, name, NULL);
    fuzz_check(g_file_set_contents_full(path, text->str, (gssize)text->len,
                                        G_FILE_SET_CONTENTS_NONE, 0666, NULL),
               "the folder can be written");
    return name;
}

/* --- values --- */

/* A parameter of a model at one of its ends, or near its default. */
static char *made_param(const Made *made, const char *model)
{
    g_autofree char *name = g_strndup(model, strcspn(model, ":"));
    for (uint32_t m = 0; m < MODEL_TABLE_SIZE; m++) {
        const ModelParam *param = MODEL_TABLE[m].param;
        uint32_t n = 0;
        if (strcmp(MODEL_TABLE[m].info.name, name) != 0)
            continue;
        while (param[n].key)
            n++;
        param += made_below(made, n);
        const double value[] = {param->min, param->min + 1, 2 * param->min, 8,
                                made_in(made, 4) ? param->max : 3};
        return g_strdup_printf("%s=%.17g%s", param->key,
                               value[made_below(made, G_N_ELEMENTS(value))],
                               param->unit ? param->unit : "");
    }
    return g_strdup("x=1");
}

static char *made_model(Made *made)
{
    static const char *const MORE[] = {"precision=mixed", "optimizer=sgd", "batch=1",
                                       "train=lora",      "precision=fp8", "dropout=0.1",
                                       "attention=fused", "x=1",           ""};
    if (made_in(made, 6))
        return made_file(made, made_in(made, 4) ? "onnx" : "model");
    const char *base = MODELS[made_below(made, G_N_ELEMENTS(MODELS))];
    if (made_in(made, 3)) {
        g_autofree char *param = made_param(made, base);
        const char *at = NULL, *value = strchr(param, '=') + 1;
        g_autofree char *key = g_strdup_printf(",%.*s", (int)(value - param), param);
        if (!(at = strstr(base, key)))
            return g_strdup_printf("%s,%s", base, param);
        const char *end = at + 1 + strcspn(at + 1, ",");
        return g_strdup_printf("%.*s%s%s", (int)(at + strlen(key) - base), base, value,
                               end);
    }
    if (made_in(made, 8)) {
        const ModelEntry *entry = &MODEL_TABLE[made_below(made, MODEL_TABLE_SIZE)];
        g_autofree char *param = made_param(made, entry->info.name);
        return g_strdup_printf("%s:%s", entry->info.name, param);
    }
    return made_in(made, 6) ? g_strdup_printf("%s,%s", base,
                                              MORE[made_below(made, G_N_ELEMENTS(MORE))])
                            : g_strdup(base);
}

static char *made_cluster(Made *made)
{
    if (made_in(made, 3))
        return made_file(made, "cluster");
    return g_strdup(CLUSTERS[made_below(made, G_N_ELEMENTS(CLUSTERS))]);
}

/* Asks for a plan by hand: some settings that fit together, now and then one that does not. */
static void made_strategy(Made *made)
{
    static const char *const ALWAYS[] = {"--planner=manual", "--granularity=gpu"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(ALWAYS); i++)
        g_ptr_array_add(made->argv, g_strdup(ALWAYS[i]));
    for (uint32_t n = 1 + made_below(made, 5); n > 0; n--)
        g_ptr_array_add(
            made->argv,
            g_strdup_printf("--set=%s",
                            STRATEGIES[made_below(made, G_N_ELEMENTS(STRATEGIES))]));
}

static char *made_set(Made *made)
{
    static const char *const GARBAGE[] = {"",    "x", "-1",  "1e400", "nan", "0",
                                          "own", "1", "0.5", "2",     "\xff"};
    const Range *range = &RANGES[made_below(made, G_N_ELEMENTS(RANGES))];
    g_auto(GStrv) end = range_ends(range);
    const uint32_t n = g_strv_length(end);
    if (n == 0 || made_in(made, 4))
        return g_strdup_printf("%s=%s", range->key,
                               GARBAGE[made_below(made, G_N_ELEMENTS(GARBAGE))]);
    return g_strdup_printf("%s=%s", range->key, end[made_below(made, n)]);
}

static char *made_planner(Made *made)
{
    return g_strdup(
        made_in(made, 20) ? "x" : planner_at(made_below(made, planner_count()))->name);
}

/* Adds the arguments that one of the texts stands for; `option`: what stands before them, or
 * NULL. */
static void made_add(Made *made, const char *option, const char *values)
{
    static const char *const OUT[] = {"out",       "out.json", "deep/er/out", ".",     "",
                                      "/dev/full", "in0",      "a:b",         "out.db"};
    g_auto(GStrv) text = g_strsplit(values, "|", -1);
    /* Those that stand first, which are mostly right, more often. */
    const uint32_t n = g_strv_length(text), one = made_below(made, n),
                   other = made_below(made, n);
    g_auto(GStrv) word = g_strsplit(text[MIN(one, other)], " @", -1);
    for (uint32_t i = 0; word[i] || i == 0; i++) {
        const char *of = word[i] ? word[i] : "";
        char *made_text = i > 0 || of[0] == '@'         ? made_file(made, of + (i == 0))
                          : strcmp(of, "%MODEL") == 0   ? made_model(made)
                          : strcmp(of, "%CLUSTER") == 0 ? made_cluster(made)
                          : strcmp(of, "%SET") == 0     ? made_set(made)
                          : strcmp(of, "%OUT") == 0
                              ? g_strdup(OUT[made_below(made, G_N_ELEMENTS(OUT))])
                              : g_strdup(of);
        if (option && i == 0 && made_in(made, 2)) {
            char *joined = g_strdup_printf("%s=%s", option, made_text);
            g_free(made_text);
            made_text = joined;
        } else if (option && i == 0) {
            g_ptr_array_add(made->argv, g_strdup(option));
        }
        g_ptr_array_add(made->argv, made_text);
        if (!word[i])
            break;
    }
}

static const char *values_find(const char *word)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(VALUES); i++)
        if (strcmp(VALUES[i].word, word) == 0)
            return VALUES[i].value;
    return NULL;
}

/* --- a line --- */

static void made_option(Made *made, const json_t *option)
{
    const char *name = json_string_value(json_object_get(option, "name"));
    const char *argument = json_string_value(json_object_get(option, "argument"));
    g_autofree char *given = g_strconcat("--", name, NULL);
    if (!argument) {
        g_ptr_array_add(made->argv, g_strdup(given));
    } else if (strcmp(name, "planner") == 0) {
        g_ptr_array_add(made->argv, g_strdup(given));
        g_ptr_array_add(made->argv, made_planner(made));
    } else {
        const char *values = values_find(name);
        if (!values)
            values = values_find(argument);
        if (!values)
            values = json_is_true(json_object_get(option, "file")) ? "%OUT" : "x|1|0|";
        made_add(made, given, values);
    }
}

static bool has_option(const json_t *options, const char *name)
{
    size_t i;
    const json_t *option;
    json_array_foreach (options, i, option)
        if (strcmp(json_string_value(json_object_get(option, "name")), name) == 0)
            return true;
    return false;
}

static void made_line(Made *made)
{
    Grammar *of;
    const char *mostly =
        made_in(made, 3) ? NULL : MOSTLY[made_below(made, G_N_ELEMENTS(MOSTLY))];
    do
        of = &GRAMMAR[made_below(made, G_N_ELEMENTS(GRAMMAR))];
    while (mostly ? strcmp(of->name, mostly) != 0 : g_strv_contains(LEFT_OUT, of->name));
    made->of = of;
    g_ptr_array_add(made->argv, g_strdup("kilter"));
    g_ptr_array_add(made->argv, g_strdelimit(g_strdup(of->name), "_", '-'));
    g_auto(GStrv) form =
        g_strsplit(json_string_value(json_object_get(of->about, "arguments")), " | ", -1);
    const uint32_t n_forms = g_strv_length(form);
    g_auto(GStrv) word =
        g_strsplit(n_forms ? form[made_below(made, n_forms)] : "", " ", -1);
    for (char **at = word; *at && **at; at++) {
        g_autofree char *own = g_strdup_printf("%s %s", of->name, *at);
        const char *values = values_find(own);
        if (!values)
            values = values_find(*at);
        if (!made_in(made, 60))
            made_add(made, NULL, values ? values : *at);
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(NEEDED); i++)
        if (strcmp(NEEDED[i].word, of->name) == 0 && !made_in(made, 10))
            made_add(made, NULL, NEEDED[i].value);
    const json_t *options = json_object_get(of->about, "options");
    if (made_in(made, 3) && has_option(options, "planner"))
        made_strategy(made);
    static const uint32_t OPTIONS[] = {0, 0, 1, 1, 2, 2, 3, 5};
    for (uint32_t n = OPTIONS[made_below(made, G_N_ELEMENTS(OPTIONS))]; n > 0; n--)
        made_option(made,
                    json_array_get(options,
                                   made_below(made, (uint32_t)json_array_size(options))));
    if (made_in(made, 4))
        g_ptr_array_add(made->argv, g_strdup("--json"));
    g_ptr_array_add(made->argv, NULL);
}

/* --- a run --- */

typedef struct {
    uint64_t seed, first, runs, leaks;
    double cpu_s;
    char *keep;
    gboolean show;
    /* counts by status, and those that ended at a limit */
    uint64_t status[4], limited, said, broken;
} Campaign;

/* Looking for leaks takes longer than most commands; `leaks`: whether to. */
static int run_in(const char *folder, GPtrArray *argv, double cpu_s, bool leaks,
                  const int file[2])
{
    fflush(NULL);
    const pid_t child = fork();
    fuzz_check(child >= 0, "there is a process");
    if (child == 0) {
#ifndef KILTER_SANITIZED
        const struct rlimit memory = {(rlim_t)MEMORY_GIB << 30, (rlim_t)MEMORY_GIB << 30};
        setrlimit(RLIMIT_DATA, &memory);
#endif
        /* The timer is finer, the limit holds for processes that the command starts, too. */
        const rlim_t whole_s = (rlim_t)cpu_s + 1;
        const struct rlimit cpu = {whole_s, whole_s + 1}, core = {0, 0},
                            size = {1 << 28, 1 << 28};
        const suseconds_t us = (suseconds_t)((cpu_s - floor(cpu_s)) * G_USEC_PER_SEC);
        const struct itimerval timer = {.it_value = {(time_t)cpu_s, us}};
        setitimer(ITIMER_PROF, &timer, NULL);
        setrlimit(RLIMIT_CPU, &cpu);
        setrlimit(RLIMIT_CORE, &core);
        setrlimit(RLIMIT_FSIZE, &size);
        if (chdir(folder) != 0 || dup2(file[0], STDOUT_FILENO) < 0 ||
            dup2(file[1], STDERR_FILENO) < 0)
            _exit(FINDING);
        close(STDIN_FILENO);
        if (open("/dev/null", O_RDONLY) != STDIN_FILENO)
            _exit(FINDING);
        /* The program takes options out of its argv; those left in the array are no leaks. */
        static char **volatile words;
        words = g_memdup2(argv->pdata, argv->len * sizeof *argv->pdata);
        const int code = kilter_main((int)argv->len - 1, words);
        if (leaks)
            exit(code);
        fflush(NULL);
        _exit(code);
    }
    int status = 0;
    fuzz_check(waitpid(child, &status, 0) == child, "the process ends");
    return status;
}

/* All that was written to the file. Caller frees. */
static char *text_of(int file, gsize *n)
{
    const off_t end = lseek(file, 0, SEEK_END);
    char *text = g_malloc0((gsize)end + 1);
    *n = end > 0 ? (gsize)MAX(0, pread(file, text, (size_t)end, 0)) : 0;
    return text;
}

static uint32_t files_in(const char *folder)
{
    uint32_t n = 0;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));)
        n += !g_str_has_suffix(name, "-shm") && !g_str_has_suffix(name, "-wal");
    return n;
}

static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + n, word))
        if ((at == text || !g_ascii_isalnum(at[-1])) && !g_ascii_isalnum(at[n]))
            return true;
    return false;
}

/* The fault of an end of this status; NULL: none. */
static const char *wrong_with(Campaign *campaign, const Made *made, int status,
                              const char *out, const char *err)
{
    const bool json = g_strv_contains((const char *const *)made->argv->pdata, "--json");
    bool asked = false; /* for the limit that was met, which need not be said */
    bool given = false; /* a text that is no number, which answers repeat */
    for (guint a = 0; a + 1 < made->argv->len; a++) {
        asked |= g_str_has_prefix(made->argv->pdata[a], "--memory-limit");
        given |= strstr(made->argv->pdata[a], "nan") != NULL;
    }
    const bool said = asked || strstr(err, "may take") || strstr(err, "takes about") ||
                      strstr(err, "memory-limit");
    if (!WIFEXITED(status)) {
        const int by = WTERMSIG(status);
        const bool limit = by == SIGXCPU || by == SIGPROF || by == SIGKILL;
        campaign->limited += limit;
        campaign->said += limit && said;
        return !limit                            ? "a signal"
               : said || campaign->cpu_s < CPU_S ? NULL
                                                 : "more than 20 s that were not said";
    }
    const int code = WEXITSTATUS(status);
    if (code > 3)
        return code == FINDING ? "a finding" : "a status without meaning";
    campaign->status[code]++;
    if (code != 0 && !*err)
        return "no reason";
    if (!g_utf8_validate(err, -1, NULL))
        return "a message that is not UTF-8";
    if (strlen(err) > MOST_MESSAGE)
        return "a message that is too long";
    if (code == 1 && strstr(err, "out of memory") && !said)
        return "more than 2 GiB that were not said";
    if ((code == 2 || code == 3) && files_in(made->folder) > made->n_files)
        return "files of what was refused";
    json_t *object = json && code == 0 ? json_loads(out, 0, NULL) : NULL;
    const bool is_json = object != NULL;
    json_decref(object);
    if (json && code == 0 && !is_json)
        return "no JSON";
    if (code == 0 && !given && (has_word(out, "nan") || has_word(out, "-nan")))
        return "a number that is none";
    return NULL;
}

static void remove_all(const char *path)
{
    g_autoptr(GDir) dir =
        g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *entry = g_build_filename(path, name, NULL);
        remove_all(entry);
    }
    g_remove(path);
}

static void run_one(Campaign *campaign, uint64_t i)
{
    const guint32 seed[] = {(guint32)campaign->seed, (guint32)i};
    g_autofree char *folder = g_dir_make_tmp("kilter-fuzz-XXXXXX", NULL);
    fuzz_check(folder != NULL, "there is a folder");
    g_autoptr(GRand) rand = g_rand_new_with_seed_array(seed, G_N_ELEMENTS(seed));
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    Made made = {.rand = rand, .folder = folder, .argv = argv};
    made_line(&made);
    g_autoptr(GString) line = g_string_new("");
    for (uint32_t a = 0; a + 1 < argv->len; a++) {
        g_autofree char *quoted = g_shell_quote(argv->pdata[a]);
        g_string_append_printf(line, "%s%s", a ? " " : "", quoted);
    }
    if (campaign->show)
        printf("%" G_GUINT64_FORMAT ": %s\n", i, line->str);
    const int file[] = {memfd_create("out", MFD_CLOEXEC),
                        memfd_create("err", MFD_CLOEXEC)};
    const int status =
        run_in(folder, argv, campaign->cpu_s, i % campaign->leaks == 0, file);
    gsize n_out, n_err;
    g_autofree char *printed = text_of(file[0], &n_out), *said = text_of(file[1], &n_err);
    close(file[0]);
    close(file[1]);
    const char *wrong = wrong_with(campaign, &made, status, printed, said);
    if (campaign->show || wrong)
        printf(
            "%s%" G_GUINT64_FORMAT ": %s: %s %d\n  %s\n%.6000s\n", wrong ? "BROKEN " : "",
            i, wrong ? wrong : "good", WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), line->str, said);
    campaign->broken += wrong != NULL;
    made.of->done += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (wrong && campaign->keep) {
        g_autofree char *to = g_strdup_printf("%s/%" G_GUINT64_FORMAT, campaign->keep, i);
        g_autofree char *text = g_strdup_printf("%s\n", line->str);
        g_autofree char *path = g_build_filename(folder, "line", NULL);
        g_file_set_contents(path, text, -1, NULL);
        if (g_rename(folder, to) == 0)
            return;
    }
    remove_all(folder);
}

static void load(void)
{
    static const char folder[] = "tests/fuzz/seeds";
    seeds_of = g_hash_table_new(g_str_hash, g_str_equal);
    pieces_of = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *words = g_strconcat(path, ".dict", NULL);
        if (!g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        g_hash_table_insert(seeds_of, g_strdup(name), seeds_load(path));
        g_hash_table_insert(pieces_of, g_strdup(name), fuzz_pieces(words));
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(GRAMMAR); i++)
        GRAMMAR[i].about = command_description(GRAMMAR[i].name, GRAMMAR[i].run);
}

int main(int argc, char **argv)
{
    enum { ENOUGH = 200, ALL = 10000 };
    Campaign campaign = {.seed = 1, .runs = 100, .cpu_s = CPU_S, .leaks = 1};
    const GOptionEntry entries[] = {
        {"runs", 0, 0, G_OPTION_ARG_INT64, &campaign.runs, "Runs", "N"},
        {"seed", 0, 0, G_OPTION_ARG_INT64, &campaign.seed, "Seed", "S"},
        {"first", 0, 0, G_OPTION_ARG_INT64, &campaign.first, "The first run", "I"},
        {"cpu", 0, 0, G_OPTION_ARG_DOUBLE, &campaign.cpu_s, "Most seconds of a run", "S"},
        {"leaks", 0, 0, G_OPTION_ARG_INT64, &campaign.leaks,
         "Look for leaks in each Nth run", "N"},
        {"keep", 0, 0, G_OPTION_ARG_FILENAME, &campaign.keep, "For what is broken",
         "DIR"},
        {"show", 0, 0, G_OPTION_ARG_NONE, &campaign.show, "Print each line", NULL},
        G_OPTION_ENTRY_NULL};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_add_main_entries(context, entries, NULL);
    g_unsetenv("KILTER_PATH");
    if (!g_option_context_parse(context, &argc, &argv, NULL) || argc != 1 ||
        campaign.leaks < 1) {
        fprintf(stderr, "expected options alone\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    load();
    for (uint64_t i = 0; i < campaign.runs; i++)
        run_one(&campaign, campaign.first + i);
    printf("%" G_GUINT64_FORMAT " runs: %" G_GUINT64_FORMAT " done, %" G_GUINT64_FORMAT
           " failed, %" G_GUINT64_FORMAT " refused, %" G_GUINT64_FORMAT
           " without a plan, %" G_GUINT64_FORMAT " at a limit (%" G_GUINT64_FORMAT
           " said), %" G_GUINT64_FORMAT " broken\n",
           campaign.runs, campaign.status[0], campaign.status[1], campaign.status[2],
           campaign.status[3], campaign.limited, campaign.said, campaign.broken);
    /* A grammar whose lines are all refused reaches nothing. */
    bool reaches = campaign.runs < ENOUGH ||
                   6 * campaign.status[0] > campaign.runs - campaign.limited;
    for (uint32_t i = 0; i < G_N_ELEMENTS(GRAMMAR); i++)
        if (GRAMMAR[i].done == 0 && !g_strv_contains(LEFT_OUT, GRAMMAR[i].name)) {
            printf("no run of %s was done\n", GRAMMAR[i].name);
            reaches &= campaign.runs < ALL;
        }
    g_free(campaign.keep);
    return campaign.broken == 0 && reaches ? 0 : 1;
}
