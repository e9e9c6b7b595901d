/* Mistakes of users: exit status 2 (bad input) or 3 (nothing fits), one line that names the place,
 * and nothing written. */
#include <sqlite3.h>

#include "tests/support/program_json.h"

/* A model that is quick to plan. */
#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"
#define GRID(model, cluster, planner)                            \
    "name: x\ngrid:\n  model: [" model "]\n  cluster: [" cluster \
    "]\n  planner: [" planner "]\n"

static void test_usage(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plna vgg19 hap-8", 2, "unknown command 'plna'");
    program_refuses(box, "plna vgg19 hap-8", 2, "did you mean 'plan'?");
    program_refuses(box, "HAP", 2,
                    "unknown command 'HAP'; did you mean 'kilter reproduce HAP'?");
    program_refuses(box, "fig13", 2, "did you mean 'kilter reproduce fig13'?");
    program_refuses(box, "fig2", 2, "'kilter reproduce hap-fig2'?");
    program_refuses(box, "A100-PCIE-40G", 2,
                    "did you mean 'kilter devices a100-pcie-40g'?");
    program_refuses(box, "HAP-8", 2, "did you mean 'kilter clusters hap-8'");
    program_refuses(box, "sweep hap-fgi4", 2, "did you mean 'hap-fig4'?");
    program_refuses(box, "help plna", 2, "did you mean 'plan'?");
    program_refuses(box, "plan vgg19", 2, "expected MODEL CLUSTER");
    program_refuses(box, "plan vgg19 hap-8 tp=2", 2, "options as --set tp=2");
    program_refuses(box, "plan gpt2 hap-8 --set seq=64", 2,
                    "'seq' is a key of the model, as in llama-3.1-8b:seq=64");
    program_refuses(box, "theory vgg19 --gpus -2147483648", 2, "--gpus: expected 1 to");
    program_refuses(box, "days 3 vgg19 hap-8 -j -2147483648", 2, "--jobs: expected 0 to");
    program_refuses(box, "verify vgg19 --shapes 0", 2, "--shapes: expected 1 to 1000");
    program_refuses(box, "plan --planner hap vgg19 hap-8 extra", 2,
                    "expected MODEL CLUSTER");
    program_refuses(box, "models --no-such-option", 2, "no-such-option");
    program_refuses(box, "plan --planner hap " SMALL " hap-8 --seed one", 2, "--seed");
    program_refuses(box, "plan --planner hap " SMALL " hap-8 --set bucket", 2,
                    "key=value");
    program_refuses(box, "plan --planner hap " SMALL " hap-8 --set no_such_key=1", 2,
                    "no_such_key");
    program_refuses(box, "sweep x.yaml -j -1", 2, "-j");
    program_refuses(box, "sweep x.yaml -j1x", 2, "1x");
}

/* On a terminal no line is wider than it, whatever prints it. */
static void test_narrow_terminal(void **state)
{
    (void)state;
    static const char *const LINES[] = {"",
                                        "help --all",
                                        "simulate --help",
                                        "planners",
                                        "plan vgg19 hap-8 -p hap -e",
                                        "models",
                                        "doctor"};
    test_needs("script");
    test_needs("stty");
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_autofree char *line =
            g_strdup_printf("stty cols 72; %s %s", g_getenv("KILTER_BIN"), LINES[i]);
        g_autoptr(GSubprocess) script = g_subprocess_new(
            G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE, NULL,
            "script", "-qec", line, "/dev/null", NULL);
        char *out = NULL;
        assert_true(g_subprocess_communicate_utf8(script, "", NULL, &out, NULL, NULL));
        assert_non_null(strchr(out, '\n'));
        g_auto(GStrv) row = g_strsplit(out, "\r\n", -1);
        for (char **at = row; *at; at++)
            if (g_utf8_strlen(*at, -1) > 72)
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: wider than 72: %s", LINES[i], *at);
        g_free(out);
    }
}

/* Values may follow their letters at once, and letters one another. */
static void test_joined_options(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const PAIR[][2] = {
        {"plan --planner hap " SMALL " hap-8 -oa.json -q",
         "plan --planner hap " SMALL " hap-8 -o b.json -q"},
        {"simulate a.json -fflow", "simulate a.json -f flow"},
        {"simulate -vf flow a.json", "simulate -v -f flow a.json"},
        {"simulate -vfflow a.json", "simulate -v --fidelity flow a.json"},
        {"sweep hap-fig4 --dry-run -j1", "sweep -j 1 hap-fig4 --dry-run"},
        {"sweep --db -j1 hap-fig4 --dry-run", "sweep hap-fig4 --db -j1 --dry-run"},
        {"simulate --fidelity -fx a.json", "simulate --fidelity=-fx a.json"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(PAIR); i++) {
        g_auto(Ran) joined = program_run(box, PAIR[i][0]);
        g_auto(Ran) apart = program_run(box, PAIR[i][1]);
        assert_int_equal(joined.status, apart.status);
        if (!strstr(PAIR[i][0], "--dry-run")) /* which measures */
            assert_string_equal(joined.out, apart.out);
        assert_string_equal(joined.err, apart.err);
    }
    program_refuses(box, "plan --planner hap -- " SMALL " -oc.json", 2, "expected MODEL");
}

/* Without arguments, the program prints its help. */
static void test_help(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "help", "--help", "-h"};
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) plan = program_run_good(box, "plan --help");
    g_auto(Ran) help = program_run_good(box, "help plan");
    assert_string_equal(help.out, plan.out);
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_auto(Ran) ran = program_run_good(box, lines[i]);
        assert_non_null(strstr(ran.out, "kilter help --all"));
        assert_non_null(strstr(ran.out, "kilter reproduce hap-fig13\n"));
    }
    g_auto(Ran) all = program_run_good(box, "help --all");
    assert_non_null(strstr(all.out, "Commands:\n"));
    g_auto(Ran) version = program_run_good(box, "-V");
    assert_true(g_str_has_prefix(version.out, "kilter "));
}

static void test_unknown_names(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plan vgg20 hap-8 -o p.json", 2, "did you mean 'vgg19'?");
    program_refuses(box, "plan --planner hap vgg19 hap-8 --set bukket=1MB", 2,
                    "did you mean 'bucket'?");
    program_refuses(box, "plan --planner hap vgg19:layres=3 hap-8 -o p.json", 2,
                    "layres");
    program_refuses(box, "plan --planner hap vit:hidden=770 hap-8 -o p.json", 2, "heads");
    program_refuses(box, "plan --planner hap vgg19 hap-9 -o p.json", 2, "hap-9");
    program_refuses(box, "plan vgg19 hap-8 --planner hpa -o p.json", 2,
                    "did you mean 'hap'?");
    program_refuses(box, "plan --planner hap vgg19 hap-8 --granularity rack -o p.json", 2,
                    "rack");
    program_refuses(box, "simulate vgg19 hap-8 --fidelity exact", 2, "exact");
    program_refuses(box, "figure fig13", 2, "hap-fig13");
    program_refuses(box, "figure ../plots/hap-fig13", 2, "did you mean 'hap-fig13'?");
    program_refuses(box, "figure 17q", 2, "expected one of amp-fig2");
    program_refuses(box, "reproduce hapfig13", 2, "did you mean 'hap-fig13'?");
    program_refuses(box, "reproduce scorecard:nothing --measured .", 2,
                    "unknown data set");
}

static void test_experiment_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *part;
    } cases[] = {
        {"name: x\ngrid:\n  model: [vgg19]\n  modle: [vit]\n", "x.yaml:4:", "modle"},
        {GRID("vgg20", "hap-8", "hap"), "x.yaml:3:", "vgg20"},
        {GRID("'vit:hiden=8'", "hap-8", "hap"), "x.yaml:3:", "hiden"},
        {GRID("vgg19", "hap-8, hap-9", "hap"), "x.yaml:4:", "hap-9"},
        {GRID("vgg19", "hap-8", "dp-ev, hpa"), "x.yaml:5:", "hpa"},
        {GRID("vgg19", "", "hap"), "x.yaml:4:", "empty"},
        {"name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n",
         "x.yaml:2:", "planner"},
        {"name: x\n", "x.yaml:1:", "grid"},
        {"", "x.yaml:1:", "expected"},
        {"name: ../x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n  planner: [hap]\n",
         "x.yaml:1:", "name"},
        {GRID("vgg19", "hap-8", "hap") "  seed: [x]\n", "x.yaml:6:", "seed"},
        {GRID("vgg19", "hap-8", "hap") "  fidelity: [guess]\n", "x.yaml:6:", "guess"},
        {GRID("vgg19", "hap-8", "hap") "  granularity: [rack]\n", "x.yaml:6:", "rack"},
        {GRID("vgg19", "hap-8", "hap") "set: [bucket=much]\n", "x.yaml:6:", "bucket"},
        {GRID("vgg19", "hap-8", "hap") "set:\n  beam: 3\n", "x.yaml:6:", "set"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        sandbox_write(box, "x.yaml", cases[i].text);
        program_refuses(box, "sweep x.yaml --db r.db", 2, cases[i].place);
        program_refuses(box, "sweep x.yaml", 2, cases[i].part);
    }
    program_refuses(box, "sweep none.yaml --db r.db", 2, "none.yaml");
}

/* A model, a cluster and a planner that do not go together give rows that say so; an unknown word
 * is an error. */
static void test_impossible_pairs_are_rows(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "x.yaml",
        GRID("'vit:layers=1,hidden=63,heads=4', '" SMALL "'", "hap-8",
             "dp-ev, amp, 'dp-ev:pin=none.such=identity'") "  granularity: [machine]\n");
    g_auto(Ran) ran = program_run_good(box, "sweep x.yaml --db r.db");
    assert_non_null(strstr(ran.out, "6 configurations, 0 already there, 6 evaluated (0 "
                                    "out of memory, 5 impossible)"));
    g_auto(Ran) again = program_run_good(box, "sweep x.yaml --db r.db --json");
    assert_non_null(strstr(again.out, "\"present\": 6"));
    g_autofree char *path = g_build_filename(box->folder, "r.db", NULL);
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT count(*), count(iteration_time_s), count(DISTINCT "
                           "message) FROM answer WHERE status = 'impossible'",
                           -1, &query, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(query, 0), 5);
    assert_int_equal(sqlite3_column_int(query, 1), 0);
    assert_int_equal(sqlite3_column_int(query, 2), 3);
    sqlite3_finalize(query);
    sqlite3_close(db);
}

/* A bundled cluster with one unit that measures something else. */
static void test_wrong_unit(void **state)
{
    (void)state;
    g_autofree char *text = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/clusters/hap-8.yaml", &text, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(text, "10.8 TFLOP/s", -1);
    g_autofree char *wrong = g_strjoinv("10.8 GiB", parts);
    g_auto(GStrv) lines = g_strsplit(parts[0], "\n", -1);
    g_autofree char *place = g_strdup_printf("wrong.yaml:%u:", g_strv_length(lines));
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "wrong.yaml", wrong);
    program_refuses(box, "plan --planner hap " SMALL " ./wrong.yaml -o p.json", 2, place);
    program_refuses(box, "plan --planner hap " SMALL " ./wrong.yaml -o p.json", 2,
                    "10.8 GiB");
    sandbox_write(box, "x.yaml", GRID("vgg19", "./wrong.yaml", "hap"));
    program_refuses(box, "sweep x.yaml --db r.db", 2, "10.8 GiB");
}

static void test_unwritable_output(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "file", "not a folder");
    sandbox_write(box, "x.yaml", GRID("'" SMALL "'", "hap-8", "dp-ev"));
    program_refuses(box, "plan --planner hap " SMALL " hap-8 -o none/p.json", 2, "none");
    program_refuses(box, "plan --planner hap " SMALL " hap-8 -o .", 2, "folder");
    program_refuses(box, "sweep x.yaml --db none/r.db", 2, "none/r.db");
    program_refuses(box, "reproduce hap-fig13 -o file/below", 2, "file/below");
    program_refuses(box, "help --write ''", 2, "--write: expected a folder");
    program_refuses(box, "help --write file", 2, "cannot make the folder");
}

static void make_foreign_database(const Sandbox *box, const char *name)
{
    g_autofree char *path = g_build_filename(box->folder, name, NULL);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "CREATE TABLE t (x); PRAGMA user_version = 7", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

static void test_bad_database(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID("'" SMALL "'", "hap-8", "dp-ev"));
    sandbox_write(box, "text.db",
                  "not a database, but long enough to be taken for its header\n");
    make_foreign_database(box, "foreign.db");
    program_runs(box, "sweep x.yaml --db whole.db -q");
    g_autofree char *whole = g_build_filename(box->folder, "whole.db", NULL);
    g_autofree char *cut = g_build_filename(box->folder, "cut.db", NULL);
    g_autofree char *bytes = NULL;
    gsize length = 0;
    assert_true(g_file_get_contents(whole, &bytes, &length, NULL));
    assert_true(g_file_set_contents(cut, bytes, (gssize)length / 2, NULL));
    static const char *const files[] = {"text.db", "foreign.db", "cut.db"};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *sweep = g_strdup_printf("sweep x.yaml --db %s", files[i]);
        g_autofree char *figure = g_strdup_printf("figure hap-fig13 --db %s", files[i]);
        program_refuses(box, sweep, 2, files[i]);
        program_refuses(box, figure, 2, files[i]);
    }
    program_refuses(box, "figure hap-fig13 --db none.db", 2, "none.db");
    program_refuses(box, "figure hap-fig13", 2, "out/hap-fig13.db");
    /* A good store without this figure's results: the work fails, nothing is drawn. */
    program_refuses(box, "figure hap-fig13 --db whole.db", 1, "no results");
}

static void test_bad_plan(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "plan " SMALL " hap-8 --planner dp-ev -o p.json -q");
    g_autofree char *path = g_build_filename(box->folder, "p.json", NULL);
    json_t *plan = json_load_file(path, 0, NULL);
    json_t *row = json_array_get(json_object_get(plan, "ratios"), 0);
    assert_non_null(row);
    double first = json_number_value(json_array_get(row, 0));
    json_array_set_new(row, 0, json_real(first + 0.01));
    char *text = json_dumps(plan, 0);
    sandbox_write(box, "sum.json", text);
    free(text);
    json_decref(plan);
    program_refuses(box, "simulate sum.json", 2, "sum.json");
    program_refuses(box, "simulate sum.json", 2, "ratios");

    g_autofree char *whole = sandbox_read(box, "p.json");
    whole[strlen(whole) / 2] = '\0';
    sandbox_write(box, "cut.json", whole);
    program_refuses(box, "simulate cut.json", 2, "cut.json");
    program_refuses(box, "simulate none.json", 2, "none.json");
    program_refuses(box, "simulate p.json --planner hap", 2, "--planner");
}

static void test_plan_that_cannot_fit(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char big[] =
        "'bert-base:layers=4,hidden=8192,heads=64,ffn=32768' hap-8 --planner dp-ev";
    g_autofree char *plan = g_strdup_printf("plan --planner hap %s -o p.json", big);
    g_autofree char *simulate = g_strdup_printf("simulate %s --json", big);
    program_refuses(box, plan, 3, "bytes");
    program_refuses(box, plan, 3, "device ");
    program_refuses(
        box, "plan --planner hap " SMALL " star:hosts=2,bandwidth=1Gb/s,memory=1KiB", 3,
        "it is proved that no plan of 'hap' fits with these settings");
    program_refuses(box, plan, 3, "others that may fit: --planner auto");
    program_refuses(box,
                    "plan transgan amp-het-model --granularity gpu --planner megatron "
                    "--set rank=20",
                    3, "fit the memory, got 20");
    program_refuses(box, simulate, 3, "bytes");
}

/* Options that contradict each other or the planner, and degrees that do not divide. */
static void test_contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"--pin '*.weight=gather(7)'", "expected a form"},
        {"--pin 'nothing=gather(0)'", "no tensor 'nothing'"},
        {"--pin 'head.weight=reduce'", "cannot be in form reduce"},
        {"--pin 'loss=gather(0)'", "expected a dim below 0"},
        {"--pin 'head.weight=identity->gather(0)' --pin 'head.weight.next=reduce'",
         "cannot hold together"},
        {"--pin 'head.weight=gather(0)' --planner dp-ev", "'pin': expected planner hap"},
        {"--pin 'head.weight=gather(0)' --set search=reference",
         "'pin': expected search=exact"},
        {"--segments layers --planner dp-ev", "'segments': expected planner hap"},
        {"--segments layers --set ratios=even", "'segments': expected ratios=own"},
        {"--segments metis:1000", "at most 23 segments"},
        {"--segments metis:0", "got 'metis:0'"},
        {"--certify 0.1 --set duplex=on", "'certify': expected duplex=off"},
        {"--certify -1", "expected a number from 0 to 1"},
        {"--budget -1", "expected a number from 0"},
        {"--planner dp-ev --set pp=2", "one of the planners amp"},
        {"--planner amp --granularity machine", "expected --granularity gpu"},
        {"--planner amp --granularity gpu --certify 0.1", "no pipelines"},
        {"--planner amp --granularity gpu --set duplex=on",
         "'duplex': expected pieces=2"},
        {"--planner amp --granularity gpu --set ratios=best", "'ratios': expected own"},
        {"--planner amp --granularity gpu --set pp=3", "expected a product of 8"},
        {"--planner megatron --granularity gpu --set tmp=16", "expected a product of 8"},
        {"--planner amp --granularity gpu --set pp=8",
         "at most as many as the model has layers, 3"},
        {"--planner amp --granularity gpu --set schedule=interleaved --set chunks=9",
         "at most as many as the model has layers, 3"},
        {"--planner amp --granularity gpu --set dp=8 --set mbs=3",
         "expected a divisor of a replica's batch, 64"},
        {"--planner amp --granularity gpu --set rank=1000000", "'rank': expected one of"},
        {"--slowdown 0=0", "a factor from 1"},
        {"--slowdown 8=2", "a rank below 8"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = g_strdup_printf(
            "plan --planner hap " SMALL " hap-8 -o p.json %s", cases[i].line);
        program_refuses(box, line, 2, cases[i].part);
    }
}

static json_t *plan_of(const Sandbox *box, const char *arguments)
{
    g_autofree char *line = g_strdup_printf("plan --planner hap %s --json", arguments);
    json_t *plan = program_json(box, line);
    assert_true(number(plan, "iteration_time_s") > 0);
    return plan;
}

/* One device computes everything and never waits, whichever planner is used. */
static void test_one_device(void **state)
{
    (void)state;
    static const char *const planners[] = {
        "hap",     "dp-ev",  "dp-cp",      "deepspeed", "gshard", "tensor-parallel",
        "amp",     "amp-sa", "amp-random", "megatron",  "ddp",    "fastmoe",
        "horovod", "hidup"};
    g_autoptr(Sandbox) box = sandbox_new();
    double least_s = INFINITY, most_s = 0;
    for (guint i = 0; i < G_N_ELEMENTS(planners); i++) {
        g_autofree char *arguments = g_strdup_printf(
            SMALL " star:hosts=1,bandwidth=10Gb/s --granularity gpu --planner %s "
                  "--set pp=0 --set ratios=own",
            planners[i]);
        json_t *plan = plan_of(box, arguments);
        const double time_s =
            json_number_value(json_object_get(plan, "iteration_time_s"));
        least_s = fmin(least_s, time_s);
        most_s = fmax(most_s, time_s);
        json_decref(plan);
    }
    assert_close(least_s, most_s, 1e-9);
    program_refuses(box, "plan --planner hap " SMALL " star:hosts=0,bandwidth=1Gb/s", 2,
                    "hosts");
}

/* Devices without speed and links without bandwidth are refused. */
static void test_zero_rates(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *text = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/clusters/hap-8.yaml", &text, NULL, NULL));
    static const struct {
        const char *right, *zero, *part;
    } cases[] = {
        {"rate: 10.8 TFLOP/s", "rate: 0 TFLOP/s", "device_types[0].rate: expected 1"},
        {"memory: 16 GiB", "memory: 0 GiB", "memory: expected 1"},
        {"bandwidth: 1.3 GB/s", "bandwidth: 0 GB/s", "all_reduce.bandwidth: expected 1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(GStrv) parts = g_strsplit(text, cases[i].right, 2);
        assert_int_equal(g_strv_length(parts), 2);
        g_autofree char *wrong = g_strjoinv(cases[i].zero, parts);
        sandbox_write(box, "zero.yaml", wrong);
        program_refuses(box, "plan --planner hap " SMALL " ./zero.yaml -o p.json", 2,
                        cases[i].part);
    }
    program_refuses(
        box, "plan --planner hap " SMALL " star:hosts=2,bandwidth=1Gb/s,rate=0TFLOP/s", 2,
        "rate: expected 1");
}

/* Dims smaller than the number of devices: some devices have nothing, or the planner refuses. */
static void test_small_dims(void **state)
{
    (void)state;
#define TINY "vit:layers=1,hidden=8,heads=2,ffn=4,image=8,"
    static const char *const plans[] = {
        TINY "global_batch=3 hap-64 --granularity gpu",
        TINY "global_batch=3 hap-64 --granularity gpu --planner dp-ev",
        TINY "global_batch=3 hap-64 --granularity gpu --planner tensor-parallel",
        TINY "global_batch=1 hap-8",
        "bert-moe:layers=2,experts=2,hidden=8,heads=2,ffn=8,vocab=16 hap-16 "
        "--granularity gpu --planner fastmoe",
        "gpt2:layers=6,hidden=64,heads=2,ffn=64,vocab=128,global_batch=8 hap-8 "
        "--granularity gpu --planner amp --set tmp=8",
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(plans); i++)
        json_decref(plan_of(box, plans[i]));
    program_refuses(box, "plan " TINY "global_batch=1 hap-8 --planner deepspeed", 2,
                    "its batch cannot be sharded over 8 devices");
    program_refuses(box, "plan " TINY "global_batch=3 hap-8 --planner hidup", 2,
                    "a batch of 3 cannot be cut in two microbatches");
    program_refuses(
        box, "plan --planner hap " TINY "global_batch=7 hap-8 --set microbatches=2", 2,
        "it has 7 pieces, not a multiple of 2 microbatches");
    program_refuses(
        box,
        "plan --planner hap gpt2:layers=2,global_batch=7 hap-8 --granularity gpu "
        "--planner amp --set dp=8",
        2, "expected a divisor of the global batch, 7");
#undef TINY
}

/* Empty words, and options that say nothing where they stand, are not passed over. */
static void test_empty_words(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plan --planner hap profile: hap-8", 2, "unknown model ''");
    program_refuses(box, "theory profile:", 2, "unknown model ''");
    program_refuses(box, "verify ''", 2, "no such file");
    program_refuses(box, "plan --planner hap vgg19 hap-8 --without ''", 2,
                    "expected names of machines");
    program_refuses(box, "simulate vgg19 hap-8 --chakra ''", 2,
                    "--chakra: expected a name");
    program_refuses(box, "report p.json --mtbf 1h", 2, "--mtbf: expected --days");
    program_refuses(box, "days vgg19 hap-8", 2, "vgg19");
    program_refuses(box, "days 0 vgg19 hap-8", 2, "--days");
    program_refuses(box, "days 3 vgg19 hap-8 --mtbf garbage -q", 2, "--mtbf");
    program_refuses(box, "days 3 vgg19 hap-8 --parts leaf", 2, "such as leaf:64");
    program_refuses(box, "days 3 vgg19 hap-8 --parts leaf:1.5,9h,1", 2, "whole");
    program_refuses(box, "days 3 vgg19 hap-8 --parts leaf:1,0h,1", 2, "--parts");
    program_refuses(box, "days 3 vgg19 hap-8 --parts leaf:1,1ns,1", 2,
                    "failures and stragglers in a run");
}

static void test_kernel(void **state)
{
    static const struct {
        const char *line, *says;
    } CASE[] = {
        {"kernel matmul", "expected KIND DEVICE"},
        {"kernel matmull h100 --m 1 --n 1 --k 1", "unknown kernel 'matmull'"},
        {"kernel matmul h1000 --m 1 --n 1 --k 1", "unknown device 'h1000'"},
        {"kernel matmul h100 --m 1 --n 1", "expected --k"},
        {"kernel matmul h100 --m 0 --n 1 --k 1", "--m: expected a whole number"},
        {"kernel matmul h100 --m 1.5 --n 1 --k 1", "got '1.5'"},
        {"kernel matmul h100 --m 2147483648 --n 1 --k 1", "--m: expected a whole number"},
        {"kernel matmul h100 --m 1:8 --n 1 --k 1", "--plot: expected a folder"},
        {"kernel matmul h100 --m 1 --n 1 --k 1 --plot x", "--plot: expected a folder"},
        {"kernel matmul h100 --m 1:8 --n 1:8 --k 1 --plot x", "expected one range"},
        {"kernel matmul h100 --m 8:1 --n 1 --k 1 --plot x", "got '8:1'"},
        {"kernel matmul h100 --m 1:2:3 --n 1 --k 1 --plot x", "got '1:2:3'"},
        {"kernel matmul h100 --m 1 --n 1 --k 1 --width 3",
         "--width: kilter kernel matmul"},
        {"kernel matmul h100 --m 1 --n 1 --k 1 --causal", "--causal: expected"},
        {"kernel matmul h100 --m 1 --n 1 --k 1 --backward", "--backward: kilter kernel"},
        {"kernel matmul v100 --m 1 --n 1 --k 1 --format bf16", "fp32, tf32, fp16"},
        {"kernel matmul v100 --m 1 --n 1 --k 1 --format bf17", "did you mean 'bf16'?"},
        {"kernel attention h100 --queries 8 --heads 3 --kv-heads 2", "--kv-heads"},
        {"kernel attention h100 --queries 8 --keys 4 --heads 1 --causal", "--keys"},
        {"kernel conv v100 --batch 1 --in 6 --out 4 --height 1 --width 1 --groups 4",
         "--groups"},
    };
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++)
        program_refuses(box, CASE[i].line, 2, CASE[i].says);
}

/* A thousand segments give the same as one where no op needs ratios of its own. */
static void test_many_segments(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *one = plan_of(box, "vit:layers=80,hidden=64,heads=4,ffn=128 hap-8");
    json_t *many = plan_of(box, "vit:layers=80,hidden=64,heads=4,ffn=128 hap-8 "
                                "--segments metis:1000");
    assert_at_most(json_number_value(json_object_get(many, "iteration_time_s")),
                   json_number_value(json_object_get(one, "iteration_time_s")) * 1.001);
    json_decref(one);
    json_decref(many);
}

static void test_no_gnuplot(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID("vgg19", "hap-8", "dp-ev"));
    program_runs(box, "sweep x.yaml --db r.db -q");
    program_refuses_in(box, "figure hap-fig13 --db r.db -o .", "PATH=/nonexistent", 1,
                       "gnuplot");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_joined_options),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_experiment_file),
        cmocka_unit_test(test_impossible_pairs_are_rows),
        cmocka_unit_test(test_wrong_unit),
        cmocka_unit_test(test_unwritable_output),
        cmocka_unit_test(test_bad_database),
        cmocka_unit_test(test_bad_plan),
        cmocka_unit_test(test_plan_that_cannot_fit),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_zero_rates),
        cmocka_unit_test(test_narrow_terminal),
        cmocka_unit_test(test_small_dims),
        cmocka_unit_test(test_empty_words),
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_many_segments),
        cmocka_unit_test(test_no_gnuplot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
