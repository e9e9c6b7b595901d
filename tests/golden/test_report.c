/* Pages of kilter report on papers, a sweep and a plan: complete, in one file, with links that have
 * targets, and the same every time. */
#include <math.h>

#include "tests/support/page_rules.h"
#include "tests/support/program_json.h"

enum { MOST_BYTES = 400000 };

/* Every href="#..." has exactly one id as its target, and nothing is fetched from elsewhere. */
static void check_page(const char *text)
{
    g_autoptr(GHashTable) ids =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    assert_true(strlen(text) < MOST_BYTES);
    assert_true(g_str_has_prefix(text, "<!DOCTYPE html>"));
    assert_true(g_str_has_suffix(text, "</html>\n"));
    for (const char *at = text; (at = strstr(at, " id=\""));) {
        at += strlen(" id=\"");
        if (!g_hash_table_add(ids, g_strndup(at, strcspn(at, "\""))))
            TEST_FAIL_AT(__FILE__, __LINE__, "id %.40s is there twice", at);
    }
    assert_int_equal(count_of(text, "<h1"), 1);
    check_names(text);
    uint32_t n_links = 0;
    for (const char *at = text; (at = strstr(at, "href=\"")); n_links++) {
        at += strlen("href=\"");
        g_autofree char *id = g_strndup(at + 1, strcspn(at, "\"") - 1);
        if (*at != '#' || !g_hash_table_contains(ids, id))
            TEST_FAIL_AT(__FILE__, __LINE__, "a link leads to %.40s", at);
    }
    static const char *const FETCHES[] = {" src=", "http:", "https:", "url(", "@import"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(FETCHES); i++)
        if (strstr(text, FETCHES[i]))
            TEST_FAIL_AT(__FILE__, __LINE__, "the page has %.60s",
                         strstr(text, FETCHES[i]));
}

/* tidy finds no error, where it is installed. */
static void check_tidy(const Sandbox *box, const char *file)
{
    g_autofree char *tidy = g_find_program_in_path("tidy");
    g_autofree char *path = g_strdup_printf("%s/%s", box->folder, file);
    const char *const argv[] = {"tidy", "-e", "-q", "--drop-empty-elements",
                                "no",   path, NULL};
    g_autofree char *said = NULL;
    if (!tidy)
        return;
    assert_true(g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                             NULL, &said, NULL, NULL));
    if (*said)
        TEST_FAIL_AT(__FILE__, __LINE__, "tidy: %s", said);
}

/* Every bar and point of the page's only picture leads to a row. */
static void check_drawn(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, "Numbers of the picture", 2);
    g_auto(GStrv) table = g_strsplit(parts[1], "</details>", 2);
    assert_true(strstr(table[0], "<a href=") != NULL);
    assert_true(strstr(table[0], "<td></td>") == NULL);
}

static void run(const Sandbox *box, const char *line)
{
    program_runs(box, line);
}

/* The answer has every claim of the figure, in the order of the paper's file. */
static void check_claims(const Sandbox *box, const char *figure)
{
    g_autofree char *line = g_strdup_printf("reproduce %s --db r.db -q --json", figure),
                    *begin = g_strdup_printf("%s,", figure), *text = NULL;
    json_t *root = program_json(box, line);
    const json_t *claims =
        json_object_get(json_array_get(json_object_get(root, "reproduced"), 0), "claims");
    assert_true(
        g_file_get_contents(KILTER_HOME "/data/paper/hap.csv", &text, NULL, NULL));
    g_auto(GStrv) row = g_strsplit(text, "\n", -1);
    size_t n = 0;
    for (char **at = row; *at; at++) {
        if (!g_str_has_prefix(*at, begin))
            continue;
        const char *claim =
            json_string_value(json_object_get(json_array_get(claims, n++), "claim"));
        assert_non_null(claim);
        assert_true(g_str_has_prefix(*at + strlen(begin), claim));
    }
    assert_true(n > 0);
    assert_int_equal(json_array_size(claims), n);
    json_decref(root);
}

static void test_papers(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    run(box, "report hap-fig4 -q --db r.db -o a.html");
    run(box, "report hap-fig2 -q --db r.db -o b.html");
    run(box, "report r.db -o c.html");
    run(box, "report r.db -o d.html");
    run(box, "report r.db --markdown -o c.md");
    g_autofree char *a = sandbox_read(box, "a.html"), *c = sandbox_read(box, "c.html"),
                    *d = sandbox_read(box, "d.html"), *md = sandbox_read(box, "c.md");
    check_page(a);
    check_drawn(a);
    check_widths(box, a);
    check_page(c);
    assert_true(strlen(c) < MOST_BYTES / 10); /* a page of all figures has 37 */
    check_tidy(box, "c.html");
    check_claims(box, "hap-fig4");
    assert_string_equal(c, d);
    assert_null(strstr(a, "hap-fig2"));
    assert_non_null(strstr(c, "<h3 id=\"hap-fig2\">HAP"));
    assert_non_null(strstr(c, "HAP (EuroSys"));
    assert_non_null(strstr(md, "| hap-fig4 |"));
    program_refuses(box, "report hap-fig99 -o x.html", 2,
                    "no experiment or paper is named 'hap-fig99'");
    program_refuses(box, "report no-such.json -o x.html", 2,
                    "no-such.json: no such file");
    program_refuses(box, "report r.db -o missing/x.html", 2, "missing");
    sandbox_write(box, "x.yaml", "name: x\n");
    program_refuses(box, "report x.yaml -o x.html", 2,
                    "kilter sweep x.yaml --db results.db");
}

/* Each bar leads to the row that it is drawn from. */
static void test_bars(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    run(box, "report hidup-fig7 -q --db r.db -o a.html");
    g_autofree char *text = sandbox_read(box, "a.html");
    check_page(text);
    check_tidy(box, "a.html");
    for (uint32_t row = 1; row <= 20; row++) {
        g_autofree char *link = g_strdup_printf("<a href=\"#hidup-fig7-row-%u\">", row);
        assert_non_null(strstr(text, link));
    }
}

/* The columns of an experiment are evaluated, and claims have their values. */
static void test_columns(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    run(box, "report hidup-fig11 -q --db r.db -o a.html");
    run(box, "report r.db --markdown -o a.md");
    g_autofree char *text = sandbox_read(box, "a.html"), *md = sandbox_read(box, "a.md");
    check_page(text);
    assert_non_null(strstr(text, "serial yes (holds)"));
    assert_non_null(strstr(text, "paper <b>yes</b>, ours <b>"));
    assert_null(strstr(text, "(1: yes)"));
    assert_non_null(strstr(md, "serial yes (holds)"));
    assert_non_null(strstr(text, "Where the paper contradicts itself"));
    assert_non_null(strstr(text, "What is not covered"));
}

/* The number that follows `before` in the text. */
static double shown(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    if (!at)
        TEST_FAIL_AT(__FILE__, __LINE__, "no %s", before);
    return g_ascii_strtod(at + strlen(before), NULL);
}

static const char SWEEP[] = "name: mine\n"
                            "grid:\n"
                            "  model: [\"vgg19:width=8\"]\n"
                            "  cluster: [hap-8, hap-16]\n"
                            "  planner: [hap, dp-ev, dp-cp]\n";

/* The mean regret of the page is that of `kilter league`, a geometric mean. */
static void check_regret(const Sandbox *box)
{
    g_autofree char *page = sandbox_read(box, "r.html");
    g_auto(GStrv) league = g_strsplit(page, "<tr><th scope=\"row\">", -1);
    json_t *root = program_json(box, "league mine.yaml --db r.db --json");
    const json_t *planners = json_object_get(root, "planners");
    assert_int_equal(json_array_size(planners), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(planners, i);
        const char *name = json_string_value(json_object_get(row, "planner"));
        double regret = NAN;
        for (char **line = league; *line; line++)
            if (g_str_has_prefix(*line, name) && strstr(*line, " of "))
                regret = shown(strstr(*line, " of "), "data-v=\"");
        if (!(fabs(regret - number(row, "regret")) <= 1e-6))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s has regret %g, not %g", name, regret,
                         number(row, "regret"));
    }
    json_decref(root);
}

/* A user's own experiment. */
static void test_sweep(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "mine.yaml", SWEEP);
    run(box, "sweep mine.yaml -q --db r.db");
    run(box, "report r.db -o r.html");
    g_autofree char *text = sandbox_read(box, "r.html");
    check_page(text);
    check_tidy(box, "r.html");
    assert_non_null(strstr(text, "6 configurations of planner (3), cluster (2)."));
    assert_non_null(strstr(text, "is the fastest in all 2 settings"));
    assert_non_null(strstr(text, "<option>dp-ev</option>"));
    check_regret(box);
    check_widths(box, text);
    run(box, "sweep mine.yaml -q --db s.db --page live.html");
    g_autofree char *live = sandbox_read(box, "live.html");
    check_page(live);
    assert_non_null(strstr(live, "is the fastest in all 2 settings"));
    assert_null(strstr(live, "Running:"));
    program_refuses(box, "sweep mine.yaml -q --db s.db --page missing/x.html", 2,
                    "missing");
}

/* Planners with granularities of their own are compared with one another, and a cluster that an
 * axis changes is named once. */
static void test_sweep_of_clusters(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "mine.yaml",
        "name: mine\ngrid:\n  model: [\"vit:layers=2\"]\n  model.batch: [8, 16]\n"
        "  cluster: [hap-8, hap-16]\n  cluster.scale.network: [1, 2]\n"
        "  planner: [hap, amp, dp-ev]\n");
    run(box, "sweep mine.yaml -q --db r.db");
    run(box, "report r.db -o r.html");
    g_autofree char *text = sandbox_read(box, "r.html");
    assert_non_null(strstr(text,
                           "24 configurations of planner (3), cluster (2), network (2), "
                           "batch (2)."));
    assert_non_null(strstr(text, " of 8 settings"));
    assert_null(strstr(text, "scale network"));
    assert_non_null(strstr(text, "&nbsp;samples/s</td>"));
    assert_null(strstr(text, "tokens/s"));
    check_regret(box);
    check_widths(box, text);
}

/* A row without a plan has no numbers, nor those of what is around it. */
static void test_without(void **state)
{
    (void)state;
    static const char NUMBER[] = "<td class=\"n\" data-v=\"\">\u2014</td>";
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "some.yaml",
                  "name: some\ngrid:\n  model: [\"vgg19:width=8\"]\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev, manual]\n  granularity: [machine]\n");
    run(box, "sweep some.yaml -q --db s.db");
    run(box, "report s.db -o s.html");
    g_autofree char *text = sandbox_read(box, "s.html");
    g_auto(GStrv) row = g_strsplit(text, "<td>manual</td>", 2);
    assert_non_null(row[1]);
    *strstr(row[1], "</tr>") = '\0';
    assert_non_null(strstr(row[1], "<td>impossible</td>"));
    assert_int_equal(count_of(row[1], NUMBER), 7);
}

/* The cards have the numbers that `kilter simulate` answers, and the slowest row is the device that
 * computes longest. */
static void check_cards(const Sandbox *box, const char *plan, const char *text)
{
    g_autofree char *line = g_strdup_printf("simulate %s --json", plan);
    json_t *root = program_json(box, line);
    json_t *devices = json_object_get(root, "devices");
    const double ms = 1e3 * number(root, "iteration_time_s");
    size_t busiest = 0;
    assert_close(shown(text, "Iteration</p><p class=\"big\">"), ms, 5e-3);
    assert_close(shown(text, "MFU</p><p class=\"big\">"), 100 * number(root, "mfu"),
                 5e-3);
    for (size_t i = 1; i < json_array_size(devices); i++)
        if (number(json_array_get(devices, i), "computation_s") >
            (1 + 1e-9) * number(json_array_get(devices, busiest), "computation_s"))
            busiest = i;
    const char *slow = strstr(text, "<div class=\"lane slow\">");
    assert_non_null(slow);
    const char *label = strstr(slow, "aria-label=\"") + strlen("aria-label=\"");
    assert_true(g_str_has_prefix(label, json_string_value(json_object_get(
                                            json_array_get(devices, busiest), "name"))));
    json_decref(root);
}

/* The blocks of stages are not counted twice where their layers interleave. */
static void check_interleaved(const Sandbox *box)
{
    run(box,
        "plan gpt2:layers=8,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=16 "
        "hap-8 "
        "--planner manual --set pp=2 --set schedule=interleaved --set microbatches=4 -q "
        "-o i.json");
    run(box, "report i.json -o i-facts.json");
    g_autofree char *facts = sandbox_read(box, "i-facts.json");
    json_t *root = json_of(facts), *stage;
    json_int_t blocks = 0;
    size_t i;
    json_array_foreach (json_object_get(root, "pipeline"), i, stage)
        blocks += json_integer_value(json_object_get(stage, "blocks"));
    assert_int_equal(blocks, 8);
    /* all pieces are named, not the first and the last layer of all */
    assert_string_equal(
        json_string_value(json_object_get(
            json_array_get(json_object_get(root, "pipeline"), 0), "range")),
        "embedding to layers.1, layers.4 to layers.5");
    json_decref(root);
    /* many pieces have no place beside the timeline */
    run(box,
        "plan gpt2:layers=16,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=16 "
        "hap-8 --planner manual --set pp=2 --set schedule=interleaved --set "
        "virtual_stages=8 --set microbatches=4 -q -o many.json");
    run(box, "report many.json -o many-facts.json");
    g_autofree char *many = sandbox_read(box, "many-facts.json");
    root = json_of(many);
    const json_t *rows = json_object_get(json_object_get(root, "timeline"), "rows");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(rows, 0), "range")),
        "8 layers, listed below");
    json_decref(root);
}

static void test_plan(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    run(box, "plan --planner hap vgg19:width=8 hap-8 -q -o p.json");
    run(box, "report p.json -o p.html");
    run(box, "report p.json -f flow -o f.html");
    run(box, "report p.json -o facts.json");
    g_autofree char *text = sandbox_read(box, "p.html"),
                    *flow = sandbox_read(box, "f.html"),
                    *facts = sandbox_read(box, "facts.json");
    check_page(text);
    check_page(flow);
    check_tidy(box, "p.html");
    check_tidy(box, "f.html");
    check_cards(box, "p.json", text);
    assert_non_null(strstr(text, "id=\"timeline\""));
    assert_non_null(strstr(text, "activations: at most"));
    assert_null(strstr(text, "goodput"));
    assert_null(strstr(text, "The busiest links"));
    assert_non_null(strstr(flow, "The busiest links"));
    json_t *root = json_of(facts);
    assert_true(json_array_size(json_object_get(root, "limits")) > 0);
    assert_true(json_array_size(json_object_get(root, "exports")) > 3);
    assert_true(json_array_size(json_object_get(root, "memory_series")) > 0);
    assert_int_equal(json_array_size(json_object_get(root, "links")), 0);
    json_decref(root);
    run(box, "plan gpt2:layers=2,hidden=64,heads=4,ffn=256,seq=32,vocab=64,batch=2 hap-8 "
             "--planner manual --set pp=2 -q -o q.json");
    run(box, "report q.json -o q.html");
    g_autofree char *stages = sandbox_read(box, "q.html");
    check_page(stages);
    check_tidy(box, "q.html");
    check_widths(box, stages);
    check_cards(box, "q.json", stages);
    assert_non_null(strstr(stages, "A pipeline of 2 stages: "));
    assert_non_null(strstr(stages, "<td>layers.1 to decoder</td>"));
    check_interleaved(box);
    program_refuses(box, "report p.json --markdown -o p.md", 2,
                    "--markdown is for results");
}

/* Days of training: as text, where the time goes, and a picture; the same on any number of
 * threads. */
static void test_days(void **state)
{
    (void)state;
    static const char DAYS[] = "--days 30 --mtbf 200h --weibull 0.7 --spares 1 --runs 20";
    g_autoptr(Sandbox) box = sandbox_new();
    run(box, "plan --planner hap vgg19:width=8 hap-8 -q -o p.json");
    for (char threads = '1'; threads <= '3'; threads++) {
        g_autofree char *line =
            g_strdup_printf("report p.json %s -j %c -o %c.html", DAYS, threads, threads);
        run(box, line);
    }
    g_autofree char *text = sandbox_read(box, "1.html");
    g_autofree char *two = sandbox_read(box, "2.html");
    g_autofree char *three = sandbox_read(box, "3.html");
    check_page(text);
    check_tidy(box, "1.html");
    assert_string_equal(text, two);
    assert_string_equal(text, three);
    assert_non_null(strstr(text, "30 days      goodput"));
    assert_non_null(strstr(text, "the best interval lies between"));
    assert_non_null(strstr(text, "work lost to failures</th>"));
    assert_non_null(strstr(text, "aria-label=\"Goodput"));
    program_refuses(box, "report none --days 3", 2, "--days is for plans");
}

/* The style sheet and the script stay small, and colours can be read in light and dark. */
static void test_style_sheet(void **state)
{
    (void)state;
    g_autofree char *css = NULL, *js = NULL;
    assert_true(g_file_get_contents(KILTER_HOME "/plots/report.css", &css, NULL, NULL));
    assert_true(g_file_get_contents(KILTER_HOME "/plots/report.js", &js, NULL, NULL));
    check_contrasts(css);
    assert_true(count_of(js, "\n") < 120);
    assert_null(strstr(css, "url("));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_papers),
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_of_clusters),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_style_sheet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
