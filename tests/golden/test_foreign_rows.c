/* Figures and claims are of what their experiment asks now: in a store with rows of other experiments, and of the same
 * ones under other options, in any order and again, they are the same byte for byte. */
#include "tests/support/program.h"

static const char *const NAME[] = {"hap-fig4", "hap-fig2", "hidup-tab4"};

/* Rows of the same models, clusters and planners, which a query by these alone would take. */
static const char FOREIGN[] = "name: foreign\n"
                              "grid:\n"
                              "  model: [bert-sgmoe]\n"
                              "  cluster: [hidup-1x4, hidup-2x4-30]\n"
                              "  planner: [hidup, fastmoe, deepspeed]\n"
                              "  granularity: [gpu]\n"
                              "  fidelity: [flow]\n"
                              "set: [jitter=0.3]\n";

static void add_file(GString *all, const Sandbox *box, const char *folder,
                     const char *name, const char *suffix)
{
    g_autofree char *path =
        g_strdup_printf("%s/%s/%s%s", box->folder, folder, name, suffix);
    g_autofree char *text = NULL;
    gsize length;
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    g_autofree char *sum =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (guchar *)text, length);
    g_string_append_printf(all, "%s%s %s\n", name, suffix, sum);
}

/* Reproduces one of them and appends the pictures' checksums and the claims. */
static void reproduce(GString *all, const Sandbox *box, const char *database,
                      const char *folder, uint32_t which)
{
    g_autofree char *line = g_strdup_printf("reproduce %s --db %s -o %s --json -q",
                                            NAME[which], database, folder);
    g_auto(Ran) ran = program_run_good(box, line);
    const char *claims = strstr(ran.out, "\"claims\"");
    assert_non_null(claims);
    add_file(all, box, folder, NAME[which], ".png");
    add_file(all, box, folder, NAME[which], ".svg");
    g_string_append(all, claims);
}

/* All of them; backwards or forwards, the texts in the order of NAME. */
static char *reproduce_all(const Sandbox *box, const char *database, const char *folder,
                           bool backwards)
{
    enum { N = G_N_ELEMENTS(NAME) };
    g_autoptr(GString) text = g_string_new(NULL);
    GString *one[N];
    for (uint32_t i = 0; i < N; i++)
        one[i] = g_string_new(NULL);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t which = backwards ? N - 1 - i : i;
        reproduce(one[which], box, database, folder, which);
    }
    for (uint32_t i = 0; i < N; i++) {
        g_string_append(text, one[i]->str);
        g_string_free(one[i], TRUE);
    }
    return g_strdup(text->str);
}

static void test_the_same_in_any_company(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot) {
        print_message("skipped: no gnuplot\n");
        skip();
    }
    sandbox_write(box, "foreign.yaml", FOREIGN);
    g_autofree char *alone = reproduce_all(box, "alone.db", "a", false);
    g_auto(Ran) before = program_run_good(box, "sweep foreign.yaml --db r.db -q");
    g_autofree char *first = reproduce_all(box, "r.db", "b", true);
    g_auto(Ran) other =
        program_run_good(box, "sweep hidup-tab4 --db r.db --set jitter=0.2 -q");
    g_autofree char *second = reproduce_all(box, "r.db", "c", false);
    assert_string_equal(first, alone);
    assert_string_equal(second, alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_same_in_any_company)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
