/* A plan carries its cluster whole: it can be evaluated after it was moved, and after the cluster's
 * file was changed or removed. */
#include <glib/gstdio.h>
#include <jansson.h>

#include "tests/support/program_json.h"

#define MODEL "vit:layers=1,hidden=64,heads=4,ffn=128,batch=4"

static double time_of(const Sandbox *box, const char *line)
{
    json_t *root = program_json(box, line);
    const double time_s = json_real_value(json_object_get(root, "iteration_time_s"));
    json_decref(root);
    assert_true(time_s > 0);
    return time_s;
}

/* A copy of a bundled cluster as mine.yaml. */
static void write_cluster(const Sandbox *box)
{
    g_autofree char *text = NULL;
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/clusters/hap-8.yaml", &text, NULL, NULL));
    sandbox_write(box, "mine.yaml", text);
}

static void test_moved(void **state)
{
    (void)state;
    static const char *const how[] = {"hap", "dp-cp", "amp --granularity gpu"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(how); i++) {
        g_autoptr(Sandbox) box = sandbox_new(), other = sandbox_new();
        write_cluster(box);
        g_autofree char *line = g_strdup_printf(
            "plan " MODEL " mine.yaml -o plan.json --json --planner %s", how[i]);
        const double made_s = time_of(box, line);
        g_autofree char *plan = sandbox_read(box, "plan.json");
        sandbox_write(other, "moved.json", plan);
        assert_true(time_of(other, "plan moved.json --json") == made_s);
        sandbox_write(box, "mine.yaml", "name: other\n");
        assert_true(time_of(box, "plan plan.json --json") == made_s);
        g_autofree char *path = g_build_filename(box->folder, "mine.yaml", NULL);
        assert_int_equal(g_remove(path), 0);
        assert_true(time_of(box, "plan plan.json --json") == made_s);
        assert_true(time_of(other, "simulate moved.json -f flow --json") > 0);
        program_refuses(other, "simulate moved.json hap-8", 2, "given without them");
    }
}

/* The cluster in the plan's file counts, not a bundled one of that name. */
static void test_edited(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    const double made_s =
        time_of(box, "plan --planner hap " MODEL " hap-8 -o plan.json --json");
    g_autofree char *plan = sandbox_read(box, "plan.json");
    g_autoptr(GRegex) regex = g_regex_new("\"rate\": *\"([0-9.]+)", 0, 0, NULL);
    g_autofree char *slower =
        g_regex_replace(regex, plan, -1, 0, "\"rate\": \"0.001", 0, NULL);
    assert_string_not_equal(plan, slower);
    sandbox_write(box, "slower.json", slower);
    assert_true(time_of(box, "plan slower.json --json") > 2 * made_s);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *content, *message;
    } cases[] = {
        {"[]", "cluster_content"},
        {"{\"name\": \"x\"}", "cluster_content"},
        {"{\"warp\": 1}", "unknown key"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    time_of(box, "plan --planner hap " MODEL " hap-8 -o plan.json --json");
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_build_filename(box->folder, "plan.json", NULL);
        json_t *root = json_load_file(path, 0, NULL);
        json_object_set_new(root, "cluster_content",
                            json_loads(cases[i].content, 0, NULL));
        g_autofree char *bad = g_build_filename(box->folder, "bad.json", NULL);
        assert_int_equal(json_dump_file(root, bad, 0), 0);
        json_decref(root);
        g_auto(Ran) ran = program_run(box, "plan bad.json");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, cases[i].message));
    }
}

/* Uneven heads of two replicas: the counts of the second one are checked like those of the
 * first. */
static void test_replicas_of_splits(void **state)
{
    (void)state;
    static const struct {
        const char *count, *message;
    } cases[] = {
        {"\"count\": [2, 1, 1, 2, 1, 1]", NULL},
        {"\"count\": [2, 1, 1, 1, 2, 1]",
         "splits[0]: expected the same counts in every replica"},
        {"\"count\": [2, 1, 1, 2, 2, 1]",
         "splits[0]: expected counts that sum to 4 units, got 5"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    time_of(box,
            "plan --planner hap "
            "gpt2:layers=1,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=4 "
            "star:hosts=6,bandwidth=10Gb/s --planner manual --set tp=3 --set dp=2 -o "
            "plan.json --json");
    g_autofree char *plan = sandbox_read(box, "plan.json");
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(GStrv) part = g_strsplit(plan, cases[0].count, 2);
        assert_int_equal(g_strv_length(part), 2);
        g_autofree char *text = g_strjoinv(cases[i].count, part);
        sandbox_write(box, "other.json", text);
        if (cases[i].message)
            program_refuses(box, "plan other.json", 2, cases[i].message);
        else
            time_of(box, "plan other.json --json");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_edited),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_replicas_of_splits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
