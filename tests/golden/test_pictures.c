/* Pictures: no text is cut and none overlaps another one, on results and on random data; one
 * file by its name; charts of stored results. */
#include "tests/support/extents.h"

#include "experiments/figures/figure.h"
#include "tests/support/program_json.h"

static void run(const Sandbox *box, const char *line)
{
    program_runs(box, line);
}

static void check_file(const Sandbox *box, const char *file)
{
    g_autofree char *svg = sandbox_read(box, file);
    check_extents(file, svg);
}

static const char LAB[] =
    "name: lab\nmachines:\n"
    "  - {name: fast, device: h100-sxm, gpus: 4, nic: eth-100, price: 20 USD/h}\n"
    "  - {name: slow-machine-with-a-name, device: a100-80g, gpus: 4, count: 2, nic: "
    "eth-100, price: 6 USD/h}\n";
static const char SWEEP[] =
    "name: mine\ngrid:\n  model: ['vgg19:width=8', "
    "'gpt2:layers=2,hidden=64,heads=4,ffn=256,seq=32,vocab=64']\n"
    "  cluster: [hap-8]\n  cluster.scale.network: [1, 2, 4, 16]\n  planner: [hap, dp-ev, "
    "dp-cp, deepspeed, 'manual:tp=3']\n";

/* The pictures of commands. */
static void test_commands(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "lab.yaml", LAB);
    sandbox_write(box, "mine.yaml", SWEEP);
    run(box, "advise vgg19:width=8 lab.yaml -q --plot advise.svg");
    check_file(box, "advise.svg");
    run(box,
        "plan gpt2:layers=4,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=64 "
        "lab.yaml --granularity gpu --planner manual "
        "--set pp=3 --set dp=4 --set micro_batch=1 -q -o p.json");
    run(box, "simulate p.json --trace t.json -q");
    run(box, "figure timeline --trace t.json -q -o timeline.svg");
    check_file(box, "timeline.svg");
    g_autofree char *timeline = sandbox_read(box, "timeline.svg");
    assert_non_null(strstr(timeline, "slowest"));
    assert_non_null(strstr(timeline, "4 alike"));
    run(box, "sweep mine.yaml -q --db r.db");
    run(box, "league mine.yaml --db r.db -q --plot league.svg");
    check_file(box, "league.svg");
}

/* A device's label keeps the type, and the number of those that are alike, whatever the machine is
 * called. Days that are refused leave no trace. */
static void test_labels(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "long.yaml",
        "machines: [{name: a-machine-with-a-long-name-of-its-rack, device: h100-sxm-64g, "
        "gpus: 8, nic: ib-ndr, count: 2}, {name: b, device: a100-80g, gpus: 8, nic: "
        "ib-ndr}]");
    run(box, "simulate vit:layers=1,global_batch=48 long.yaml --planner dp-ev "
             "--granularity gpu -q -f flow --trace t.json");
    run(box, "figure timeline --trace t.json -q -o timeline.svg");
    check_file(box, "timeline.svg");
    g_autofree char *timeline = sandbox_read(box, "timeline.svg");
    assert_non_null(strstr(timeline, "\342\200\246 (h100-sxm-64g), 16 alike"));
    program_refuses(
        box, "simulate vit:layers=1 hap-8 --planner dp-ev --trace none.json --samples 3",
        2, "fidelity stage has no noise for --samples");
    g_autofree char *none = g_build_filename(box->folder, "none.json", NULL);
    assert_false(g_file_test(none, G_FILE_TEST_EXISTS));
}

/* Spans of a row that follow one another in one colour are one box; those after a gap or in another
 * colour are not. */
static void test_spans_that_go_on(void **state)
{
    (void)state;
#define SPAN(ts, dur, cat)                                                               \
    "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"cat\":\"" cat "\",\"ts\":" #ts ",\"dur\":" #dur \
    "},"
#define REST "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"cat\":\"update\",\"ts\":0,\"dur\":90}]}"
    static const char *const TRACE[] = {
        SPAN(1, 3, "forward") SPAN(4, 2, "backward") SPAN(7, 8, "backward"),
        SPAN(2, 2, "forward") SPAN(1, 1, "forward") SPAN(4, 2, "backward")
            SPAN(7, 5, "backward") SPAN(12, 3, "backward"),
        SPAN(1, 3, "forward") SPAN(4, 2, "backward") SPAN(6, 9, "backward")};
    g_autoptr(Sandbox) box = sandbox_new();
    char *picture[G_N_ELEMENTS(TRACE)];
    for (uint32_t i = 0; i < G_N_ELEMENTS(TRACE); i++) {
        g_autofree char *text = g_strconcat("{\"traceEvents\":[", TRACE[i], REST, NULL);
        sandbox_write(box, "t.json", text);
        run(box, "figure timeline --trace t.json -q -o timeline.svg");
        picture[i] = sandbox_read(box, "timeline.svg");
    }
    assert_string_equal(picture[0], picture[1]);
    assert_string_not_equal(picture[0], picture[2]);
    for (uint32_t i = 0; i < G_N_ELEMENTS(TRACE); i++)
        g_free(picture[i]);
}

/* `kilter plot`: kinds, formats, and what it refuses. */
static void test_plots(void **state)
{
    (void)state;
    static const char *const LINES[] = {
        "--x cluster.scale.network",
        "--x cluster.scale.network --by model --y samples_per_s",
        "--x model --by entry --kind bar",
        "--x entry --by model --kind heat",
        "--x planner --kind box",
        "--x model --y peak_memory_bytes --by cluster.scale.network"};
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "mine.yaml", SWEEP);
    run(box, "sweep mine.yaml -q --db r.db");
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_autofree char *line = g_strdup_printf("plot r.db -o plot.svg %s", LINES[i]);
        run(box, line);
        check_file(box, "plot.svg");
        g_autofree char *svg = sandbox_read(box, "plot.svg");
        if (strstr(LINES[i], "--y samples_per_s"))
            assert_non_null(strstr(svg, "; each the most of several results"));
        /* ticks of 1.5 and 2.0 G, which were both "2G" */
        if (strstr(LINES[i], "_bytes"))
            assert_true(g_regex_match_simple(">\\s*\\d+\\.\\d[kMG]", svg, 0, 0));
    }
    run(box, "plot r.db -o plot.pdf");
    g_autofree char *pdf = sandbox_read(box, "plot.pdf");
    assert_true(g_str_has_prefix(pdf, "%PDF"));
    json_t *root = program_json(box, "plot r.db --x cluster.scale.network --json");
    assert_string_equal(json_string_value(json_object_get(root, "kind")), "line");
    assert_int_equal((int)number(root, "places"), 4);
    assert_int_equal((int)number(root, "series"), 5);
    json_decref(root);
    program_refuses(box, "plot r.db --x modle", 2, "did you mean 'model'");
    program_refuses(box, "plot r.db --kind pie", 2, "--kind");
    program_refuses(box, "plot r.db --y message", 2, "expected numbers");
    program_refuses(box, "plot r.db --kind line", 2, "expected numbers in model");
    program_refuses(box, "figure all -o x.pdf", 2, "expected a folder");
}

static const char *name_of(GRand *rand)
{
    static const char *const NAMES[] = {
        "hap",   "joint",      "a-planner-with-a-very-long-name:and=its,options=too",
        "dp-ev", "amp:zero=1", "m"};
    return NAMES[g_rand_int_range(rand, 0, G_N_ELEMENTS(NAMES))];
}

/* Random numbers of all sizes, names of all lengths. */
static void test_random(void **state)
{
    (void)state;
    enum { INPUTS = 30 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(38);
    g_autoptr(Sandbox) box = sandbox_new();
    for (uint32_t input = 0; input < INPUTS; input++) {
        const bool league = input % 2 == 0;
        const int n = g_rand_int_range(rand, 1, 13),
                  series = g_rand_int_range(rand, 1, 9);
        const double scale = pow(10, g_rand_int_range(rand, -5, 7)),
                     spread = g_rand_double_range(rand, 0.1, 4);
        g_autoptr(GString) data =
            g_string_new(league ? "# rank\tplanner\tregret\tworst\tgap\n"
                                : "# place\tlabel\tx\tseries\n");
        g_autoptr(GError) error = NULL;
        for (int i = 0; i < n; i++) {
            const double y = scale * pow(10, spread * g_rand_double(rand));
            if (league)
                g_string_append_printf(data, "%d\t%s\t%.6g\t%.6g\t%.6g\n", i,
                                       name_of(rand), y, y * 2, y * 3);
            else {
                g_string_append_printf(data, "%d\t%.22s\t%d", i, name_of(rand), i + 1);
                for (int k = 0; k < series; k++)
                    g_string_append_printf(data, "\t%.9g", y * (1 + k));
                g_string_append_c(data, '\n');
            }
        }
        if (!league) {
            static const char *const KINDS[] = {"line", "bar", "heat", "box"};
            g_string_append(data, "\n\n");
            for (int k = 0; k < series; k++)
                g_string_append_printf(data, "%d\t%.22s\n", k, name_of(rand));
            g_string_append_printf(data,
                                   "\n\n%s\tcluster.scale.network\ttokens_per_"
                                   "s\tplanner\t%.9g\t%.9g\t%d\n\n\n",
                                   KINDS[input / 2 % 4], scale,
                                   scale * series * pow(10, spread), 50 * n);
            for (int i = 0; i < 5 * n; i++)
                g_string_append_printf(data, "%d\t%.9g\n", i % n,
                                       scale * pow(10, spread * g_rand_double(rand)));
        }
        g_autofree char *file = g_build_filename(box->folder, "x.svg", NULL);
        g_autofree char *picture = g_strdup_printf("input %u: %s", input, data->str);
        if (!figure_draw_text(league ? "league" : "plot", data->str, file, &error))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s", picture, error->message);
        g_autofree char *svg = sandbox_read(box, "x.svg");
        check_extents(picture, svg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_spans_that_go_on), cmocka_unit_test(test_plots),
        cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
