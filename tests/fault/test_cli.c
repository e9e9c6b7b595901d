/* What people get wrong: exit status 2 (bad input) or 3 (nothing fits), one line that names the place, nothing written. */
#include <jansson.h>
#include <sqlite3.h>

#include "tests/support/program.h"

/* A model that is quick to plan. */
#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"
#define GRID(model, cluster, planner)                            \
    "name: x\ngrid:\n  model: [" model "]\n  cluster: [" cluster \
    "]\n  planner: [" planner "]\n"

static void test_usage(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "", 2, "no command");
    program_refuses(box, "plna vgg19 hap-8", 2, "unknown command 'plna'");
    program_refuses(box, "plan vgg19", 2, "expected MODEL CLUSTER");
    program_refuses(box, "plan vgg19 hap-8 extra", 2, "expected MODEL CLUSTER");
    program_refuses(box, "models --no-such-option", 2, "no-such-option");
    program_refuses(box, "plan " SMALL " hap-8 --seed one", 2, "--seed");
    program_refuses(box, "plan " SMALL " hap-8 --set bucket", 2, "key=value");
    program_refuses(box, "plan " SMALL " hap-8 --set no_such_key=1", 2, "no_such_key");
    program_refuses(box, "sweep x.yaml -j -1", 2, "-j");
}

static void test_unknown_names(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plan vgg20 hap-8 -o p.json", 2, "vgg20");
    program_refuses(box, "plan vgg19:layres=3 hap-8 -o p.json", 2, "layres");
    program_refuses(box, "plan vit:hidden=770 hap-8 -o p.json", 2, "heads");
    program_refuses(box, "plan vgg19 hap-9 -o p.json", 2, "hap-9");
    program_refuses(box, "plan vgg19 hap-8 --planner hpa -o p.json", 2, "hpa");
    program_refuses(box, "plan vgg19 hap-8 --granularity rack -o p.json", 2, "rack");
    program_refuses(box, "simulate vgg19 hap-8 --fidelity exact", 2, "exact");
    program_refuses(box, "figure fig13", 2, "hap-fig13");
    program_refuses(box, "figure ../plots/hap-fig13", 2, "known figures");
    program_refuses(box, "reproduce hpa", 2, "hap-fig13");
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
    program_refuses(box, "plan " SMALL " ./wrong.yaml -o p.json", 2, place);
    program_refuses(box, "plan " SMALL " ./wrong.yaml -o p.json", 2, "10.8 GiB");
    sandbox_write(box, "x.yaml", GRID("vgg19", "./wrong.yaml", "hap"));
    program_refuses(box, "sweep x.yaml --db r.db", 2, "10.8 GiB");
}

static void test_unwritable_output(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "file", "not a folder");
    sandbox_write(box, "x.yaml", GRID("'" SMALL "'", "hap-8", "dp-ev"));
    program_refuses(box, "plan " SMALL " hap-8 -o none/p.json", 2, "none");
    program_refuses(box, "plan " SMALL " hap-8 -o .", 2, "folder");
    program_refuses(box, "sweep x.yaml --db none/r.db", 2, "none/r.db");
    program_refuses(box, "reproduce hap-fig13 -o file/below", 2, "file/below");
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
    g_auto(Ran) ran = program_run_good(box, "sweep x.yaml --db whole.db -q");
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
    g_auto(Ran) ran =
        program_run_good(box, "plan " SMALL " hap-8 --planner dp-ev -o p.json -q");
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
    g_autofree char *plan = g_strdup_printf("plan %s -o p.json", big);
    g_autofree char *simulate = g_strdup_printf("simulate %s --json", big);
    program_refuses(box, plan, 3, "bytes");
    program_refuses(box, plan, 3, "device ");
    program_refuses(box, simulate, 3, "bytes");
}

static void test_no_gnuplot(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID("vgg19", "hap-8", "dp-ev"));
    g_auto(Ran) ran = program_run_good(box, "sweep x.yaml --db r.db -q");
    program_refuses_in(box, "figure hap-fig13 --db r.db -o .", "PATH=/nonexistent", 1,
                       "gnuplot");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_experiment_file),
        cmocka_unit_test(test_wrong_unit),
        cmocka_unit_test(test_unwritable_output),
        cmocka_unit_test(test_bad_database),
        cmocka_unit_test(test_bad_plan),
        cmocka_unit_test(test_plan_that_cannot_fit),
        cmocka_unit_test(test_no_gnuplot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
