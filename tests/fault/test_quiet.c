/* A command with -q, or --json, does the same work: the same exit status, and the same files. By
 * hand, and with a wrong value of every option of every command (KILTER_ALL: all, else a
 * sample). */
#include "tests/support/program_json.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"
#define DAYS  "days 3 " SMALL " hap-8 -p dp-ev "
#define PLAN  "plan " SMALL " hap-8 -p dp-ev "

/* Each with one wrong value, or with a file that it writes. */
static const char *const LINES[] = {
    DAYS "--mtbf garbage",
    DAYS "--weibull 0",
    DAYS "--failures /nonexistent",
    DAYS "--checkpoint soon",
    DAYS "--save soon",
    DAYS "--write soon",
    DAYS "--restart soon",
    DAYS "--repair soon",
    DAYS "--spares many",
    DAYS "--stragglers 1h",
    DAYS "--parts leaf",
    DAYS "--replan 100000",
    DAYS "--runs -1",
    DAYS "--plot pictures",
    "days 3 " SMALL " hap-8 -p dp-ev --mtbf garbage",
    "simulate " SMALL " hap-8 -p dp-ev --samples -1",
    "simulate " SMALL " hap-8 -p dp-ev -f flow --trace t.json --dot g.dot",
    "simulate " SMALL " hap-8 -p dp-ev --chakra run",
    PLAN "-o p.json",
    PLAN "--pin nothing=identity",
    PLAN "--set bucket=garbage",
    PLAN "--explain --only none",
    "compare " SMALL " hap-8",
    "sensitivity " SMALL " hap-8 -p garbage",
    "memory " SMALL " hap-8 -p dp-ev --scale network=0",
    "collective all_reduce star:hosts=2 --bytes garbage",
    "collective all_reduce star:hosts=2 --bytes 1MB --shares 1,x",
    "verify " SMALL " hap-8 -p dp-ev --shapes 0",
    "advise " SMALL " hap-a100-4 --price a100=x",
    "models " SMALL " -o graph.json",
    "theory " SMALL " --gpus 0",
    "export p.json --to garbage",
    "table none.db",
    "report none.json -o r.html",
    "sweep none.yaml",
    "figure none",
};

static void test_same_work(void **state)
{
    (void)state;
    static const char *const MODE[] = {"", " -q", " --json"};
    for (guint i = 0; i < G_N_ELEMENTS(LINES); i++) {
        int status = 0;
        g_autofree char *files = NULL;
        for (guint m = 0; m < G_N_ELEMENTS(MODE); m++) {
            g_autoptr(Sandbox) box = sandbox_new();
            g_autofree char *line = g_strconcat(LINES[i], MODE[m], NULL);
            g_auto(Ran) ran = program_run(box, line);
            char *digest = sandbox_digest(box);
            /* A plan's file has the time that its search took. */
            const bool timed = strstr(line, "-o p.json") != NULL;
            if (m > 0 && (ran.status != status || (!timed && strcmp(digest, files) != 0)))
                TEST_FAIL_AT(__FILE__, __LINE__,
                             "kilter %s: exit %d, expected %d and the same files", line,
                             ran.status, status);
            status = ran.status;
            g_free(files);
            files = digest;
        }
    }
}

/* --- a wrong value of every option --- */

/* A line of each command that has options, which works as it stands in a folder with these seeds;
 * NULL: it would start processes, or take long, as it stands. */
static const char *const BASES[][2] = {
    {"models", "models " SMALL},
    {"clusters", "clusters hap-8"},
    {"cluster", "cluster import topo.txt --gpu a100-80g"},
    {"devices", "devices h100"},
    {"links", "links"},
    {"formats", "formats rows.csv"},
    {"planners", "planners"},
    {"plan", "plan " SMALL " hap-8 -p dp-ev"},
    {"advise", "advise " SMALL " hap-a100-4"},
    {"compare", "compare manual.json manual.json"},
    {"sensitivity", "sensitivity " SMALL " hap-8 -p dp-ev"},
    {"simulate", "simulate " SMALL " hap-8 -p dp-ev"},
    {"run-trace", "run-trace tasks.json"},
    {"days", "days 3 " SMALL " hap-8 -p dp-ev --mtbf 2000h"},
    {"memory", "memory " SMALL " hap-8 -p dp-ev"},
    {"export", "export pipeline.json --to megatron"},
    {"kernel", "kernel matmul h100-sxm --m 64 --n 64 --k 64"},
    {"collective", "collective all_reduce star:hosts=2 --bytes 1MB"},
    {"sfb", "sfb tiny.json"},
    {"theory", "theory " SMALL},
    {"verify", "verify " SMALL " hap-8 -p dp-ev"},
    {"exec", NULL},
    {"profile", NULL},
    {"import", "import rows.csv"},
    {"calibrate", "calibrate nccl.json --base hap-8 -o c.yaml"},
    {"fit", "fit t.csv --cluster hap-8 -o c.yaml"},
    {"validate", "validate v.csv"},
    {"sweep", "sweep s.yaml --db s.db"},
    {"merge", NULL},
    {"league", NULL},
    {"table", "table r.db"},
    {"show", NULL},
    {"rerun", NULL},
    {"figure", NULL},
    {"reproduce", NULL},
    {"report", "report r.db"},
};

/* Options that take any text as a value. */
static const char *const ANY[] = {"cluster --name", "sweep --db", NULL};

/* A folder with the files that the lines read. */
static Sandbox *sandbox_filled(void)
{
#define GPT2 "\"gpt2:layers=4,hidden=64,heads=4,ffn=64,seq=16,vocab=64,global_batch=64\""
    static const char TRIALS[] = "model,machines,tp,pp,micro_batch,seconds\n" GPT2
                                 ",2,1,1,4,1.84\n" GPT2 ",2,1,2,4,2.31\n";
    static const char *const SEED[][2] = {
        {"machine_file/topo.txt", "topo.txt"},  {"measurement/rows.csv", "rows.csv"},
        {"plan/manual.json", "manual.json"},    {"plan/pipeline.json", "pipeline.json"},
        {"task_file/tasks.json", "tasks.json"}, {"sfb/tiny.json", "tiny.json"},
        {"measurement/nccl.json", "nccl.json"}, {"store/rows-5", "r.db"}};
    Sandbox *box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(SEED); i++) {
        g_autofree char *from =
            g_build_filename(KILTER_HOME "/tests/fuzz/seeds", SEED[i][0], NULL);
        g_autofree char *to = g_build_filename(box->folder, SEED[i][1], NULL),
                        *text = NULL;
        gsize n;
        assert_true(g_file_get_contents(from, &text, &n, NULL));
        assert_true(g_file_set_contents(to, text, (gssize)n, NULL));
    }
    sandbox_write(box, "t.csv", TRIALS);
    sandbox_write(box, "v.csv", "plan,predicted_s,measured_s\na,1,1.1\nb,2,1.9\n");
    sandbox_write(box, "s.yaml",
                  "name: s\ngrid:\n  model: [\"" SMALL
                  "\"]\n  cluster: [hap-8]\n  planner: [dp-ev]\n");
    return box;
}

/* The exit status of a line in a folder of its own, and what its files are then. */
static int status_of(const char *line, char **files)
{
    g_autoptr(Sandbox) box = sandbox_filled();
    g_auto(Ran) ran = program_run(box, line);
    *files = sandbox_digest(box);
    if (ran.status == 2 && !*ran.err)
        TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: exit 2 without a reason", line);
    return ran.status;
}

/* Whether a wrong value is refused, in each mode alike. */
static bool refuses_alike(const char *line, const char *option)
{
    static const char *const MODE[] = {"", " -q", " --json"};
    g_autofree char *any =
        g_strdup_printf("%.*s --%s", (int)strcspn(line, " "), line, option);
    int status = 0;
    g_autofree char *files = NULL;
    bool good = true;
    for (guint m = 0; m < G_N_ELEMENTS(MODE); m++) {
        g_autofree char *wrong =
            g_strdup_printf("%s --%s=/dev/null/garbage%s", line, option, MODE[m]);
        char *digest = NULL;
        const int got = status_of(wrong, &digest);
        const bool alike = m == 0 || (got == status && strcmp(digest, files) == 0);
        const bool refused = got == 1 || got == 2 || g_strv_contains(ANY, any);
        if (!alike || !refused)
            print_error("kilter %s: exit %d, expected %s\n", wrong, got,
                        alike ? "a refusal" : "the same exit and files as without");
        good &= alike && refused;
        status = got;
        g_free(files);
        files = digest;
    }
    return good;
}

static void test_every_option(void **state)
{
    (void)state;
    enum { SAMPLE = 6, LEAST = 250 };
    const bool all = g_getenv("KILTER_ALL") != NULL;
    guint n = 0, wrong = 0;
    for (guint c = 0; c < G_N_ELEMENTS(BASES); c++) {
        if (!BASES[c][1])
            continue;
        g_autofree char *describe = g_strdup_printf("%s --describe", BASES[c][0]);
        g_autoptr(Sandbox) box = sandbox_new();
        json_t *about = program_json(box, describe);
        size_t i;
        json_t *option;
        char *files = NULL;
        if (all && status_of(BASES[c][1], &files) != 0)
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: fails as it stands",
                         BASES[c][1]);
        g_free(files);
        json_array_foreach (json_object_get(about, "options"), i, option) {
            if (json_object_get(option, "argument") && (n++ % SAMPLE == 0 || all))
                wrong += !refuses_alike(
                    BASES[c][1], json_string_value(json_object_get(option, "name")));
        }
        json_decref(about);
    }
    assert_true(n >= LEAST);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_work),
        cmocka_unit_test(test_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
