/* Sweeps from the command line: axes by any key, exclusions, dry runs, scripts for many machines,
 * tables of results, and single results. */
#include <sqlite3.h>

#include "experiments/sweep/question.h"
#include "tests/support/program.h"

static const char GRID[] =
    "name: axes\n"
    "grid:\n"
    "  model: ['vit:batch=4,hidden=48,ffn=64', 'vgg19:width=8,fc=64,batch=4']\n"
    "  model.layers: [1, 2]\n"
    "  cluster: [hap-8, hap-a100-4]\n"
    "  cluster.scale.network: [1, 2]\n"
    "  cluster.only: [none, v100]\n"
    "  planner: [dp-ev]\n"
    "  planner.bucket: ['0', '25 MiB']\n"
    "  fidelity: [flow]\n"
    "  simulation.jitter: ['0', '0.1']\n"
    "exclude:\n"
    "  - {model: vgg*, model.layers: '2'}\n"
    "  - {cluster: hap-a100-4*, planner.bucket: '25 MiB'}\n";

/* The lines of a text, without the empty one at its end. */
static uint32_t n_lines(const char *text)
{
    uint32_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* A column of CSV without quoted fields before it. Caller frees. */
static char *field(const char *csv, uint32_t row, uint32_t column)
{
    g_auto(GStrv) lines = g_strsplit(csv, "\n", -1);
    g_auto(GStrv) fields = g_strsplit(lines[row], ",", -1);
    return g_strdup(fields[column]);
}

/* vit with 1 and 2 layers, vgg19, which has no such key, with 1: all on 2 clusters x 2 x 2 changes
 * x 2 jitters, and as many buckets as the exclusions leave. */
enum { ON_8 = 3 * 4 * 2 * 2, ON_4 = 3 * 4 * 2, ALL = ON_8 + ON_4 };

static void test_axes(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    g_auto(Ran) ran = program_run_good(box, "sweep x.yaml --db r.db --json");
    g_autofree char *all = g_strdup_printf("\"configurations\": %d,", ALL);
    assert_non_null(strstr(ran.out, all));
    /* vgg19 has no layers; a100 has no v100. */
    g_autofree char *impossible =
        g_strdup_printf("\"impossible\": %d", ALL / 3 + 2 * 2 * 2);
    assert_non_null(strstr(ran.out, impossible));
    g_auto(Ran) again = program_run_good(box, "sweep x.yaml --db r.db");
    g_autofree char *there = g_strdup_printf("%d already there, 0 evaluated", ALL);
    assert_non_null(strstr(again.out, there));
    g_auto(Ran) out = program_run_good(box, "table r.db --all --csv");
    assert_int_equal(n_lines(out.out), ALL + 1);
    assert_non_null(strstr(out.out,
                           ",run,cluster.only,cluster.scale.network,model.layers,"
                           "planner.bucket,simulation.jitter\n"));
    assert_non_null(strstr(out.out, "no machine or device type 'v100'"));
    assert_non_null(strstr(out.out, "unknown parameter 'layers'"));
    /* Every combination is a separate question. */
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (uint32_t i = 1; i <= ALL; i++)
        assert_true(g_hash_table_add(seen, field(out.out, i, 2)));
}

static void test_wrong_axes(void **state)
{
    (void)state;
    static const struct {
        const char *axes, *place, *part;
    } CASE[] = {
        {"  modle.layers: [1]\n", "x.yaml:6:", "modle.layers"},
        {"  model.layrs: [1]\n", "x.yaml:6:", "did you mean 'layers'"},
        {"  model.layers: []\n", "x.yaml:6:", "at least one value"},
        {"  planner.bukket: ['1']\n", "x.yaml:6:", "bucket"},
        {"  planner.bucket: [much]\n", "x.yaml:6:", "much"},
        {"  simulation.jitter: [x]\n", "x.yaml:6:", "jitter"},
        {"  cluster.hosts: [4]\n", "x.yaml:4:", "hap-8"},
        {"  cluster.scale.nwtwork: [1, 2]\n", "x.yaml:6:", "did you mean 'network'?"},
        {"  cluster.only: [none, v1000]\n", "x.yaml:6:", "type 'v1000'"},
        {"  network: [2]\n", "x.yaml:6: grid.network: unknown key",
         "did you mean 'cluster.scale.network'?"},
        {"  layers: [2]\n", "x.yaml:6:", "did you mean 'model.layers'?"},
        {"  zzzzzz: [2]\n", "x.yaml:6:", "cluster.scale.network, cluster.only"},
        {"exclude: [{modle: x}]\n", "x.yaml:6:", "modle"},
        {"exclude: [{model: '*'}]\n", "x.yaml:6:", "everything is excluded"}};
    g_autoptr(Sandbox) box = sandbox_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *text = g_strconcat("name: x\ngrid:\n  model: [vit]\n"
                                            "  cluster: [hap-8]\n  planner: [dp-ev]\n",
                                            CASE[i].axes, NULL);
        sandbox_write(box, "x.yaml", text);
        program_refuses(box, "sweep x.yaml --db r.db", 2, CASE[i].place);
        program_refuses(box, "sweep x.yaml --db r.db", 2, CASE[i].part);
    }
}

static const char SMALL[] =
    "name: small\ngrid:\n  model: ['vit:layers=1,batch=4,hidden=48,ffn=64']\n"
    "  cluster: [hap-8, hap-16, hap-32]\n  planner: [dp-ev, dp-cp]\n  seed: [1, 2, 3]\n";

static void test_said_without_running(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", SMALL);
    g_autofree char *before = sandbox_digest(box);
    g_auto(Ran) dry = program_run_good(box, "sweep x.yaml --db r.db --dry-run --json");
    assert_non_null(strstr(dry.out, "\"configurations\": 18,"));
    assert_non_null(strstr(dry.out, "\"missing\": 18,"));
    assert_non_null(strstr(dry.out, "\"tried\": "));
    g_autofree char *after = sandbox_digest(box);
    assert_string_equal(before, after);
    program_refuses(box, "sweep x.yaml --db r.db --status", 2, "r.db");
    program_refuses(box, "sweep x.yaml y.yaml", 2, "y.yaml");
    program_runs(box, "sweep x.yaml --db r.db --shard 0/3 -q");
    g_auto(Ran) some = program_run(box, "sweep --status r.db x.yaml --plan-shards 3");
    g_auto(Ran) same = program_run(box, "sweep --status x.yaml r.db --plan-shards 3");
    assert_int_equal(some.status, 1); /* until nothing is missing */
    assert_string_equal(same.out, some.out);
    assert_non_null(strstr(some.err, " of 18 configurations have no result"));
    assert_non_null(strstr(some.out, " with dp-ev by stage, seed 2: not tried\n"));
    assert_non_null(strstr(some.out, "small in r.db: 18 configurations"));
    assert_null(strstr(some.out, "shard 0:"));
    assert_non_null(strstr(some.out, "shard 1:"));
    /* configurations that differ in their fidelity or seed alone are told apart */
    sandbox_write(box, "two.yaml",
                  "name: two\ngrid:\n  model: ['vit:layers=1,batch=1']\n  cluster: "
                  "[hap-8]\n  planner: [dp-ev]\n  fidelity: [flow, stage]\n  seed: [1, "
                  "2]\n");
    program_runs(box, "sweep x.yaml --db two.db --shard 0/9 -q");
    g_auto(Ran) two = program_run(box, "sweep --status two.db two.yaml");
    assert_non_null(strstr(two.out, " with dp-ev by flow: not tried\n"));
    assert_non_null(strstr(two.out, " with dp-ev by stage, seed 2: not tried\n"));
    program_runs(box, "sweep x.yaml --db few.db --shard 0/9 -q");
    g_auto(Ran) few = program_run(box, "sweep --status few.db x.yaml");
    unsigned left = 0; /* ten are named, and the others counted */
    assert_int_equal(sscanf(few.err, "kilter: %u of 18", &left), 1);
    assert_true(left > 10);
    g_autofree char *others = g_strdup_printf("\nand %u more, not tried\n", left - 10);
    assert_non_null(strstr(few.out, others));
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) all = program_run_good(box, "sweep x.yaml --db r.db --status");
    assert_non_null(strstr(all.out, "18 ok"));
    assert_non_null(strstr(all.out, "0 missing"));
    g_auto(Ran) none = program_run_good(box, "sweep x.yaml --db r.db --dry-run");
    assert_non_null(strstr(none.out, "18 already there, 0 to evaluate"));
}

/* The rows without wall-clock times and their writers, sorted. Caller frees. */
static char *rows_of(const Sandbox *box, const char *database)
{
    g_autofree char *line = g_strdup_printf("table %s --all --csv", database);
    g_auto(Ran) ran = program_run_good(box, line);
    g_autoptr(GRegex) clock = g_regex_new(
        ",[0-9.e-]*,[0-9.e-]*((,[0-9.e-]*){5},\"[^\"]*\",\"[^\"]*\"),[0-9]+\n", 0, 0,
        NULL);
    char *text = g_regex_replace(clock, ran.out, -1, 0, "\\1\n", 0, NULL);
    assert_true(strlen(text) < strlen(ran.out));
    return text;
}

/* Stand-ins for the parts of Slurm and GNU parallel that the scripts use: they run each task one
 * after the other, and the last job at once. */
static const char FAKE_SBATCH[] =
    "#!/bin/sh\n"
    "for last do :; done\n"
    "case \"$*\" in\n"
    "*dependency=afterany:77*) exec sh \"$last\" > merged.log ;;\n"
    "*--parsable*) ;;\n"
    "*) exit 1 ;;\n"
    "esac\n"
    "n=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%.*/\\1/p' \"$last\")\n"
    "sed 's#^kilter=.*#kilter=./flaky#' \"$last\" > flaky.sh\n"
    "for i in $(seq 0 \"$n\"); do SLURM_ARRAY_TASK_ID=$i sh flaky.sh >> tasks.log || "
    "exit 1; done\n"
    "echo 77\n";
/* A program whose first process of part 1 is killed. */
static const char FLAKY[] = "#!/bin/sh\n"
                            "case \"$*\" in *'--shard 1/4'*) [ -e killed ] || { touch "
                            "killed; kill -9 $$; } ;; esac\n"
                            "exec \"$KILTER_BIN\" \"$@\"\n";
static const char FAKE_PARALLEL[] =
    "#!/bin/sh\n"
    "while [ \"${1#/}\" = \"$1\" ] && [ \"${1#\\'}\" = \"$1\" ]; do shift; done\n"
    "while read -r i; do\n"
    "  for a in \"$@\"; do printf '%s\\0' \"$a\" | sed \"s/{}/$i/g\"; done | xargs -0 "
    "env "
    "|| exit 1\n"
    "done\n";

static void run_script(const Sandbox *box, const char *kind, const char *database)
{
    g_autofree char *line = g_strdup_printf(
        "sweep x.yaml --emit %s --plan-shards 4 --db %s --json", kind, database);
    g_autofree char *plain =
        g_strdup_printf("sweep x.yaml --emit %s --plan-shards 4 --db %s", kind, database);
    g_auto(Ran) object = program_run_good(box, line);
    g_auto(Ran) script = program_run_good(box, plain);
    assert_non_null(strstr(object.out, "\"shards\": 4"));
    sandbox_write(box, "job.sh", script.out);
    g_autofree char *path = g_strdup_printf("%s/bin:%s", box->folder, g_getenv("PATH"));
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    g_subprocess_launcher_set_cwd(launcher, box->folder);
    g_subprocess_launcher_setenv(launcher, "PATH", path, TRUE);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawn(launcher, &error, "sh", "job.sh", NULL);
    assert_no_error(error);
    assert_true(g_subprocess_wait_check(process, NULL, &error));
    assert_no_error(error);
}

static void test_scripts(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *bin = g_build_filename(box->folder, "bin", NULL);
    g_autofree char *sbatch = g_build_filename(bin, "sbatch", NULL);
    g_autofree char *parallel = g_build_filename(bin, "parallel", NULL);
    assert_int_equal(g_mkdir(bin, 0700), 0);
    sandbox_write(box, "x.yaml", SMALL);
    sandbox_write(box, "bin/sbatch", FAKE_SBATCH);
    sandbox_write(box, "bin/parallel", FAKE_PARALLEL);
    g_autofree char *flaky = g_build_filename(box->folder, "flaky", NULL);
    sandbox_write(box, "flaky", FLAKY);
    assert_int_equal(
        g_chmod(sbatch, 0700) | g_chmod(parallel, 0700) | g_chmod(flaky, 0700), 0);
    program_refuses(box, "sweep x.yaml --emit slrm", 2, "slurm");
    program_runs(box, "sweep x.yaml --db one.db -j 1 -q");
    g_autofree char *want = rows_of(box, "one.db");
    run_script(box, "slurm", "slurm.db");
    g_autofree char *killed = g_build_filename(box->folder, "killed", NULL);
    assert_true(g_file_test(killed, G_FILE_TEST_EXISTS));
    g_autofree char *merged = sandbox_read(box, "merged.log");
    assert_non_null(strstr(merged, "18 results added from 4 stores"));
    assert_non_null(strstr(merged, "0 missing"));
    g_autofree char *by_slurm = rows_of(box, "slurm.db");
    assert_string_equal(by_slurm, want);
    run_script(box, "parallel", "parallel.db");
    g_autofree char *by_parallel = rows_of(box, "parallel.db");
    assert_string_equal(by_parallel, want);
}

/* The parts of a script count before they are merged. */
static void test_live_parts(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *parts = g_build_filename(box->folder, "small.parts", NULL);
    sandbox_write(box, "x.yaml", SMALL);
    assert_int_equal(g_mkdir(parts, 0700), 0);
    program_runs(box, "sweep x.yaml --shard 0/3 --db small.parts/part-0.db -q");
    g_auto(Ran) first = program_run(box, "sweep x.yaml --status --plan-shards 3");
    assert_int_equal(first.status, 1);
    assert_non_null(strstr(first.out, "small in small.parts: 18 configurations"));
    assert_null(strstr(first.out, "shard 0:"));
    program_runs(box, "sweep x.yaml --shard 1/3 --db small.parts/part-1.db -q");
    program_runs(box, "sweep x.yaml --shard 2/3 --db small.parts/part-2.db -q");
    g_auto(Ran) all = program_run_good(box, "sweep x.yaml --status");
    assert_non_null(strstr(all.out, "18 ok"));
}

/* The requests of a part are in the script, and words that would break it are refused. */
static void test_requests(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *lines[4];
    } CASE[] = {
        {"slurm",
         {"#SBATCH --cpus-per-task=3\n", "#SBATCH --mem=4G\n", "#SBATCH --time=1:00\n",
          "#SBATCH --partition=gpu\n"}},
        {"pbs",
         {"#PBS -l ncpus=3\n", "#PBS -l mem=4G\n", "#PBS -l walltime=1:00\n",
          "#PBS -q gpu\n"}},
        {"k8s",
         {"cpu: 3", "memory: 4G", "activeDeadlineSeconds: 60\n", "completions: 4\n"}},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", SMALL);
    for (guint i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *line =
            g_strdup_printf("sweep x.yaml --emit %s --plan-shards 4 --cpus-per-task 3 "
                            "--mem 4G --time 1:00 --partition gpu",
                            CASE[i].kind);
        g_auto(Ran) ran = program_run_good(box, line);
        for (guint k = 0; k < 4; k++)
            if (!strstr(ran.out, CASE[i].lines[k]))
                TEST_FAIL_AT(__FILE__, __LINE__, "no %s in %s", CASE[i].lines[k],
                             ran.out);
    }
    program_refuses(box, "sweep x.yaml --emit slurm --mem '4G;reboot'", 2,
                    "expected a word of the scheduler");
    program_refuses(box, "sweep x.yaml --emit slurm --time ''", 2, "expected a word");
    program_refuses(box, "sweep x.yaml --mem 4G", 2, "are for --emit");
    static const char *const TIME[][2] = {
        {"1.5h", "5400"}, {"1:30:00", "5400"}, {"90", "90"}, {"1:00", "60"}};
    for (guint i = 0; i < G_N_ELEMENTS(TIME); i++) {
        g_autofree char *line =
            g_strdup_printf("sweep x.yaml --emit k8s --time %s", TIME[i][0]);
        g_autofree char *want =
            g_strdup_printf("activeDeadlineSeconds: %s\n", TIME[i][1]);
        g_auto(Ran) ran = program_run_good(box, line);
        assert_non_null(strstr(ran.out, want));
    }
    static const char *const WRONG[] = {
        "soon", "0", "-1", "1:", "1:2:3:4", "1e30", "nan"};
    for (guint i = 0; i < G_N_ELEMENTS(WRONG); i++) {
        g_autofree char *line =
            g_strdup_printf("sweep x.yaml --emit k8s --time=%s", WRONG[i]);
        program_refuses(box, line, 2, "--time: expected a time such as");
    }
}

/* A text of the user's own is a further scheduler; a word that no sweep has is named. */
static void test_own_scheduler(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *folder = g_build_filename(box->folder, "schedulers", NULL);
    assert_int_equal(g_mkdir(folder, 0700), 0);
    sandbox_write(box, "x.yaml", SMALL);
    sandbox_write(box, "schedulers/lsf.txt",
                  "#BSUB -J @name@[1-@shards@]\n#BSUB -W @time@\n#BSUB -q @queue@\n");
    sandbox_write(box, "schedulers/bad.txt", "#BSUB -J @nam@\n");
    g_setenv("KILTER_PATH", box->folder, TRUE);
    g_auto(Ran) ran =
        program_run_good(box, "sweep x.yaml --emit lsf --plan-shards 4 --partition gpu");
    assert_non_null(strstr(ran.out, "[1-4]\n#BSUB -q gpu\n"));
    program_refuses(box, "sweep x.yaml --emit bad", 2, "no value of a sweep is @nam@");
    g_unsetenv("KILTER_PATH");
}

/* Files that an experiment names lie beside it, wherever the command runs. */
static void test_beside_the_file(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *folder = g_build_filename(box->folder, "study", NULL);
    assert_int_equal(g_mkdir(folder, 0700), 0);
    sandbox_write(box, "study/mine.yaml",
                  "machines: [{device: t4, gpus: 2, inner: pcie3, nic: eth-100}]\n");
    sandbox_write(
        box, "study/x.yaml",
        "name: beside\ngrid:\n  model: ['vit:layers=1,batch=4,hidden=48,ffn=64']\n"
        "  cluster: [mine.yaml, hap-8]\n  planner: [dp-ev]\n");
    program_runs(box, "sweep study/x.yaml --db r.db -q");
    g_auto(Ran) table = program_run_good(box, "table r.db --csv");
    assert_non_null(strstr(table.out, "study/mine.yaml,"));
    sandbox_write(box, "study/y.yaml",
                  "name: beside\ngrid:\n  model: ['vit:layers=1']\n"
                  "  cluster: [none.yaml]\n  planner: [dp-ev]\n");
    program_refuses(box, "sweep study/y.yaml --db r.db", 2, "study/y.yaml:4:");
}

static void test_tables(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml",
                  "name: t\ngrid:\n  model: ['synthetic:layers=1,gradient=4B']\n"
                  "  model.forward: [1s, 2s]\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev, 'dp-ev:pin=x=identity']\n");
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) csv = program_run_good(
        box, "table r.db --rows model.forward --columns entry --value stages --csv");
    assert_string_equal(csv.out, "model.forward,dp-ev,dp-ev:pin=x=identity\n"
                                 "1s,2,impossible\n2s,2,impossible\n");
    /* the least of several is that of a plan */
    g_auto(Ran) peak = program_run_good(
        box, "table r.db --rows cluster --columns planner --value peak_memory_bytes");
    assert_null(strstr(peak.out, "\nhap-8    0"));
    g_auto(Ran) md =
        program_run_good(box, "table r.db --rows model.forward --columns entry --md");
    assert_true(g_str_has_prefix(md.out, "| model.forward | dp-ev | dp-ev:pin=x=identity "
                                         "|\n|---|---|---|\n| 1s | 1.0"));
    assert_non_null(strstr(md.out, "| impossible |\n"));
    g_auto(Ran) tex = program_run_good(
        box, "table r.db --rows cluster --columns planner --reduce count --tex");
    assert_string_equal(tex.out, "\\begin{tabular}{ll}\n\\hline\ncluster & dp-ev \\\\\n"
                                 "\\hline\nhap-8 & 4 \\\\\n\\hline\n\\end{tabular}\n");
    /* bytes in full, which are no text of an integer where the least of several is taken */
    g_auto(Ran) left = program_run_good(
        box, "table r.db --rows cluster --value memory_left_bytes --columns planner");
    assert_non_null(strstr(left.out, "\nhap-8    171798691"));
    program_runs(
        box, "table r.db --rows cluster,seed --columns planner --value gpus -o t.txt");
    g_autofree char *written = sandbox_read(box, "t.txt");
    assert_string_equal(written, "cluster  seed  dp-ev\nhap-8    1     8\n");
    /* the most of throughput, as kilter plot shows, which is that of the 1 s forward */
    g_auto(Ran) best = program_run_good(
        box, "table r.db --rows cluster --value samples_per_s --columns planner --csv");
    g_auto(Ran) most = program_run_good(box, "table r.db --rows cluster --value "
                                             "samples_per_s --columns planner --csv "
                                             "--reduce max");
    assert_string_equal(best.out, most.out);
    program_refuses(box, "table r.db --rows modle", 2, "did you mean 'model'");
    program_refuses(box, "table r.db --reduce most", 2, "max");
    program_refuses(box, "table none.db", 2, "none.db");
    program_refuses(box, "table r.db --all --csv --experiment other", 2, "other");
}

static const char OWN_CLUSTER[] =
    "name: own\ndevice_types:\n  - {name: d, rate: %s, memory: 16 GiB, source: none}\n"
    "machines:\n  - {name: m, type: d, gpus: 1, count: 2, source: none}\n"
    "collectives:\n  all_reduce: {latency: 1 us, bandwidth: 1 GB/s}\n"
    "  all_gather: {latency: 1 us, bandwidth: 1 GB/s}\n"
    "  reduce_scatter: {latency: 1 us, bandwidth: 1 GB/s}\n"
    "  all_to_all: {latency: 1 us, bandwidth: 1 GB/s}\n"
    "  grouped_all_gather: {latency: 1 us, bandwidth: 1 GB/s}\n"
    "  grouped_reduce_scatter: {latency: 1 us, bandwidth: 1 GB/s}\n  source: none\n";

/* A plan that does not fit has no pace, as it has no time. */
static void test_no_pace_without_a_plan(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml",
                  "name: t\ngrid:\n  model: ['gpt2:layers=2,batch=4096']\n"
                  "  cluster: [hap-8]\n  planner: [dp-ev]\n");
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) table = program_run_good(box, "table r.db --csv --value tokens_per_s");
    assert_non_null(strstr(table.out, ",oom\n"));
}

/* A spreadsheet would run a cluster's name as a formula; numbers stay numbers. */
static void test_formulas(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *cluster = g_strdup_printf(OWN_CLUSTER, "10 TFLOP/s");
    sandbox_write(box, "=1+1.yaml", cluster);
    sandbox_write(box, "x.yaml",
                  "name: t\ngrid:\n  model: ['vgg19:width=4,fc=64']\n"
                  "  cluster: ['=1+1.yaml']\n  planner: [dp-ev]\n");
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) plain = program_run_good(box, "table r.db --csv");
    g_auto(Ran) safe = program_run_good(box, "table r.db --csv-safe");
    assert_non_null(strstr(plain.out, ",=1+1.yaml,"));
    assert_non_null(strstr(safe.out, ",'=1+1.yaml,"));
    g_auto(GStrv) parts = g_strsplit(safe.out, "'=", -1);
    g_autofree char *same = g_strjoinv("=", parts);
    assert_string_equal(same, plain.out);
}

/* Results from before a file changed are counted, and left out if the experiment is given by its
 * file. */
static void test_changed_files(void **state)
{
    (void)state;
    static const char by_name[] = "table r.db --experiment t --csv";
    static const char by_file[] = "table r.db --experiment x.yaml --csv";
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *fast = g_strdup_printf(OWN_CLUSTER, "10 TFLOP/s");
    g_autofree char *slow = g_strdup_printf(OWN_CLUSTER, "1 TFLOP/s");
    sandbox_write(box, "x.yaml",
                  "name: t\ngrid:\n  model: ['vgg19:width=4,fc=64']\n"
                  "  cluster: [own.yaml]\n  planner: [dp-ev, dp-cp]\n");
    sandbox_write(box, "own.yaml", fast);
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) first = program_run_good(box, by_name);
    assert_string_equal(first.err, "");
    sandbox_write(box, "own.yaml", slow);
    program_refuses(box, by_file, 2, "x.yaml as it is now");
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) mixed = program_run_good(box, by_name);
    assert_string_equal(mixed.out, first.out);
    assert_non_null(strstr(mixed.err, "2 of 4 results"));
    g_auto(Ran) now = program_run_good(box, by_file);
    assert_string_equal(now.err, "");
    assert_string_not_equal(now.out, first.out);
    sandbox_write(box, "own.yaml", fast);
    g_auto(Ran) back = program_run_good(box, by_file);
    assert_string_equal(back.out, first.out);
    g_auto(Ran) rows =
        program_run_good(box, "table r.db --all --csv --experiment x.yaml");
    program_runs(box, "report r.db -o r.html");
    g_autofree char *html = sandbox_read(box, "r.html");
    assert_non_null(strstr(html, "2 of these 4 rows"));
    assert_int_equal(n_lines(rows.out), 3);
}

static void test_single_results(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_auto(Ran) out = program_run_good(box, "table r.db --all --csv");
    for (uint32_t i = 1; i <= ALL; i += 7) {
        g_autofree char *hash = field(out.out, i, 2);
        g_autofree char *show = g_strdup_printf("show %.12s --db r.db --json", hash);
        g_auto(Ran) shown = program_run_good(box, show);
        assert_non_null(strstr(shown.out, hash));
        assert_non_null(strstr(shown.out, "\"config\": {"));
        if (strstr(shown.out, "\"status\": \"impossible\""))
            continue;
        g_autofree char *rerun = g_strdup_printf("rerun %.12s --db r.db --json", hash);
        g_auto(Ran) again = program_run_good(box, rerun);
        assert_non_null(strstr(again.out, "\"same\": true"));
        assert_non_null(strstr(again.out, "\"same_question\": true"));
    }
    g_autofree char *hash = field(out.out, 1, 2);
    g_autofree char *other =
        g_strdup_printf("rerun %s --db r.db --set bucket=1GiB --set jitter=0.5", hash);
    g_auto(Ran) differs = program_run(box, other);
    assert_int_equal(differs.status, 1);
    assert_non_null(strstr(differs.out, "iteration_time_s: stored"));
    assert_non_null(strstr(differs.err, "differ"));
    program_refuses(box, "show xyz --db r.db", 2, "hex");
    program_refuses(box, "show 0123456789 --db r.db", 2, "no result");
    program_refuses(box, "show ''", 2, "out/");
}

/* A part that cannot be merged is refused before the store is made, or gets a row. */
static void test_refused_merges(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    sandbox_write(box, "bad.db", "no store");
    program_runs(box, "sweep x.yaml --shard 0/2 --db good.db -q");
    program_runs(box, "sweep x.yaml --shard 1/2 --db there.db -q");
    program_refuses(box, "merge new.db bad.db", 2, "bad.db");
    program_refuses(box, "merge new.db good.db bad.db", 2, "bad.db");
    program_refuses(box, "merge there.db good.db bad.db", 2, "bad.db");
    program_refuses(box, "merge there.db good.db there.db", 2, "another store");
    program_runs(box, "merge there.db good.db");
}

/* --- rows of earlier releases --- */

static void make_store_5(const Sandbox *box)
{
    g_autofree char *sql = NULL, *path = g_build_filename(box->folder, "old.db", NULL);
    sqlite3 *db = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/tests/golden/store-5.sql", &sql, NULL, NULL));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A sweep goes on where the release stopped that wrote tests/golden/store-5.sql, if its answers
 * are today's; if not, its rows stay to be read, and all are evaluated anew. A change of
 * data/tuning.yaml makes the questions others: then the rows there need the new text of the
 * cluster. */
static void test_rows_of_the_release_before_count(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "c.yaml",
                  "name: c\n"
                  "device_types: [{name: g, rate: 10 TFLOP/s, memory: 16 GiB}]\n"
                  "machines: [{name: box, type: g, gpus: 8, inner: {latency: 38 us, "
                  "bandwidth: 16 GB/s}}]\n"
                  "tuning:\n"
                  "  rules: [{collective: all_reduce, algorithm: ring}]\n"
                  "  piece: 64 KiB\n");
    sandbox_write(box, "old.yaml",
                  "name: old\n"
                  "grid:\n"
                  "  model: ['synthetic:layers=1,gradient=4000B']\n"
                  "  model.batch: [1, 2, 3]\n"
                  "  cluster: [c.yaml]\n"
                  "  planner: [dp-ev, megatron]\n"
                  "  granularity: [machine]\n");
    make_store_5(box);
    g_auto(Ran) ran = program_run_good(box, "sweep old.yaml --db old.db");
    static const bool AS_BEFORE =
        QUESTION_ANSWERS == 1; /* which upgrades say of their rows */
    assert_non_null(
        strstr(ran.out, AS_BEFORE ? "6 configurations, 4 already there, 2 evaluated"
                                  : "6 configurations, 0 already there, 6 evaluated"));
    g_auto(Ran) table = program_run_good(box, "table old.db --all --csv");
    assert_int_equal(n_lines(table.out), (AS_BEFORE ? 6 : 10) + 1);
    g_auto(Ran) again = program_run_good(box, "sweep old.yaml --db old.db");
    assert_non_null(strstr(again.out, "6 already there, 0 evaluated"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_rows_of_the_release_before_count),
        cmocka_unit_test(test_wrong_axes),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_said_without_running),
        cmocka_unit_test(test_live_parts),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_own_scheduler),
        cmocka_unit_test(test_beside_the_file),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_no_pace_without_a_plan),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_changed_files),
        cmocka_unit_test(test_single_results),
        cmocka_unit_test(test_refused_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
