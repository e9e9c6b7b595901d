/* Behaviour that scripts rely on: keys of --json, equal output of equal runs, files that are
 * written. */
#include "tests/support/program_json.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"

/* Keys that every plan and simulation carries. */
static const char *const keys[] = {
    "model",          "cluster", "planner", "fidelity",      "iteration_time_s",
    "lower_bound_s",  "gap",     "optimal", "search_time_s", "stages",
    "balance_time_s", "ratios",  "seed",    "memory_bytes",  "feasible",
    "version"};

static void test_lists(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const struct {
        const char *line, *key[4];
    } cases[] = {{"models --json", {"name", "parameters", "ops", "source"}},
                 {"clusters --json", {"name", "description", "gpus", "machines"}},
                 {"planners --json", {"name", "description", "source", NULL}}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        json_t *object = program_json(box, cases[i].line);
        g_auto(GStrv) word = g_strsplit(cases[i].line, " ", 2);
        const json_t *list = json_object_get(object, word[0]);
        assert_true(json_array_size(list) >= 4);
        for (size_t k = 0; k < json_array_size(list); k++)
            for (guint j = 0; j < 4 && cases[i].key[j]; j++)
                assert_non_null(
                    json_object_get(json_array_get(list, k), cases[i].key[j]));
        json_decref(object);
    }
}

static void assert_keys(const json_t *object)
{
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++)
        if (!json_object_get(object, keys[i]))
            TEST_FAIL_AT(__FILE__, __LINE__, "no key '%s'", keys[i]);
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Simulating a plan file gives the same as planning and simulating at once, and by either fidelity
 * the plan's own time. */
static void test_plan_and_simulate(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *plan =
        program_json(box, "plan --planner hap " SMALL " hap-8 --json -o p.json");
    json_t *file = program_json(box, "simulate p.json --json");
    json_t *model = program_json(box, "simulate -p hap " SMALL " hap-8 --json");
    json_t *analytic = program_json(box, "simulate p.json --fidelity analytic --json");
    json_t *all[] = {plan, file, model, analytic};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        assert_keys(all[i]);
        assert_close(real(all[i], "iteration_time_s"), real(plan, "iteration_time_s"),
                     1e-9);
        assert_int_equal(json_array_size(json_object_get(all[i], "memory_bytes")), 8);
    }
    assert_string_equal(json_string_value(json_object_get(plan, "fidelity")), "analytic");
    assert_string_equal(json_string_value(json_object_get(file, "fidelity")), "stage");
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        json_decref(all[i]);
    /* without a planner, every command asks auto, as kilter plan does */
    static const char *const LINES[] = {
        "plan " SMALL " hap-8", "simulate " SMALL " hap-8", "memory " SMALL " hap-8",
        "sensitivity " SMALL " hap-8", "days 3 " SMALL " hap-8"};
    for (guint i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_auto(Ran) ran = program_run_good(box, LINES[i]);
        assert_non_null(strstr(ran.out, " with auto"));
    }
}

/* On one device there is one plan to find, and hap says so. */
static void test_one_device_is_optimal(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *plan = program_json(
        box, "plan " SMALL " star:hosts=1,bandwidth=10Gb/s --planner hap --json");
    assert_true(json_is_true(json_object_get(plan, "optimal")));
    assert_close(real(plan, "lower_bound_s"), real(plan, "iteration_time_s"), 1e-9);
    json_decref(plan);
}

/* A pipeline over two kinds of GPUs: what each stage has. */
static void test_devices_of_stages(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *plan = program_json(
        box, "plan --planner hap "
             "gpt2:layers=2,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=4 "
             "hap-8 "
             "--planner manual --set pp=2 --granularity gpu --json");
    const json_t *stages = json_object_get(plan, "pipeline");
    assert_int_equal(json_array_size(stages), 2);
    static const char *const DEVICES[] = {"2 v100 and 2 p100", "4 p100"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *stage = json_array_get(stages, i);
        assert_string_equal(json_string_value(json_object_get(stage, "devices")),
                            DEVICES[i]);
        assert_int_equal(json_integer_value(json_object_get(stage, "layers")), 2);
        assert_int_equal(json_integer_value(json_object_get(stage, "replicas")), 4);
    }
    json_decref(plan);
}

static char *without_wall_clock(const char *json)
{
    json_t *object = json_of(json);
    json_object_del(object, "search_time_s");
    json_object_del(object, "balance_time_s");
    json_object_del(object, "certificate_time_s");
    char *text = json_dumps(object, 0);
    json_decref(object);
    return text;
}

static void test_equal_runs(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const lines[] = {
        "plan " SMALL " hap-8 --planner hap --json -o p.json",
        "plan vgg19:width=8,fc=64 hap-32 --planner deepspeed --granularity gpu --json -o "
        "p.json",
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        char *text[4];
        for (guint k = 0; k < 2; k++) {
            g_auto(Ran) ran = program_run_good(box, lines[i]);
            g_autofree char *file = sandbox_read(box, "p.json");
            text[k] = without_wall_clock(ran.out);
            text[2 + k] = without_wall_clock(file);
        }
        assert_string_equal(text[0], text[1]);
        assert_string_equal(text[2], text[3]);
        for (guint k = 0; k < 4; k++)
            free(text[k]);
    }
}

static void test_quiet(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) plan = program_run_good(box, "plan " SMALL " hap-8 --planner dp-ev -q");
    assert_string_equal(plan.out, "");
    assert_string_equal(plan.err, "");
    g_auto(Ran) help = program_run_good(box, "plan --help");
    assert_non_null(strstr(help.out, "Example:"));
}

static void assert_starts(const Sandbox *box, const char *name, const char *start)
{
    g_autofree char *text = sandbox_read(box, name);
    if (!g_str_has_prefix(text, start))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s does not start with '%s'", name, start);
}

/* The text of a PNG's tEXt chunk, or NULL; every chunk up to the last one must be complete. */
static char *png_text(const char *bytes, gsize length, const char *keyword)
{
    char *found = NULL;
    gsize at = 8;
    while (at + 12 <= length) {
        guint32 size, crc = 0xffffffff, stated;
        memcpy(&size, bytes + at, 4);
        size = GUINT32_FROM_BE(size);
        assert_true(at + 12 + size <= length);
        for (gsize i = at + 4; i < at + 8 + size;
             i++) { /* its CRC, four bits at a time */
            static const guint32 table[] = {
                0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
            crc ^= (guint8)bytes[i];
            crc = crc >> 4 ^ table[crc & 15];
            crc = crc >> 4 ^ table[crc & 15];
        }
        memcpy(&stated, bytes + at + 8 + size, 4);
        assert_int_equal(GUINT32_FROM_BE(stated), ~crc);
        if (memcmp(bytes + at + 4, "tEXt", 4) == 0 &&
            strcmp(bytes + at + 8, keyword) == 0)
            found =
                g_strndup(bytes + at + 9 + strlen(keyword), size - strlen(keyword) - 1);
        at += 12 + size;
    }
    assert_int_equal(at, length);
    return found;
}

/* Pictures contain the command and the configurations that they are made from. */
static void assert_stamped(const Sandbox *box)
{
    g_autofree char *svg = sandbox_read(box, "pictures/hap-fig13.svg");
    g_autofree char *path = g_build_filename(box->folder, "pictures/hap-fig13.png", NULL);
    g_autofree char *png = NULL;
    gsize length;
    assert_true(g_file_get_contents(path, &png, &length, NULL));
    g_autofree char *command = png_text(png, length, "Command");
    g_autofree char *commit = png_text(png, length, "Commit");
    g_autofree char *configuration = png_text(png, length, "Configuration");
    assert_string_equal(command, "kilter reproduce hap-fig13");
    assert_non_null(commit);
    assert_int_equal(strlen(configuration), 64);
    assert_non_null(g_strstr_len(svg, -1, "<metadata>"));
    assert_non_null(g_strstr_len(svg, -1, "command=\"kilter reproduce hap-fig13\""));
    assert_non_null(g_strstr_len(svg, -1, configuration));
}

/* A figure is drawn from the results in the store, with the same bytes every time. */
static void test_figure(void **state)
{
    (void)state;
    test_needs("gnuplot");
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "part.yaml",
        "name: part\ngrid:\n  model: [vgg19, bert-moe]\n  cluster: [hap-8, hap-64]\n"
        "  planner: [dp-ev, deepspeed]\n");
    program_runs(box, "sweep part.yaml --db r.db");
    g_auto(Ran) first = program_run_good(box, "figure hap-fig13 --db r.db -o pictures");
    assert_string_equal(first.err, "");
    assert_starts(box, "pictures/hap-fig13.png", "\x89PNG");
    assert_starts(box, "pictures/hap-fig13.svg", "<?xml");
    g_autofree char *svg = sandbox_read(box, "pictures/hap-fig13.svg");
    /* Data parallelism does not fit BERT-MoE on 64 GPUs. */
    assert_non_null(strstr(svg, ">OOM<"));
    assert_non_null(strstr(svg, "DeepSpeed"));
    assert_null(strstr(svg, ">TAG<"));
    assert_non_null(strstr(svg, "VGG19 at 32 GPUs: speed-up over the best DP baseline"));
    assert_non_null(strstr(svg, "paper 2.41 \u00b1 0.24, here no result"));
    assert_stamped(box);
    program_runs(box, "figure hap-fig13 --db r.db -o pictures");
    g_autofree char *again = sandbox_read(box, "pictures/hap-fig13.svg");
    assert_string_equal(svg, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_plan_and_simulate),
        cmocka_unit_test(test_equal_runs),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_figure),
        cmocka_unit_test(test_one_device_is_optimal),
        cmocka_unit_test(test_devices_of_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
