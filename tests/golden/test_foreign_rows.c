/* Figures and claims use only the configurations that their experiment asks for now: in a store
 * with rows of other experiments, and of the same ones under other options, in any order and
 * repeated, they are the same byte for byte. */
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

/* Reproduces all of them, backwards or forwards, and gives the texts in the order of NAME. */
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
    test_needs("gnuplot");
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "foreign.yaml", FOREIGN);
    g_autofree char *alone = reproduce_all(box, "alone.db", "a", false);
    program_runs(box, "sweep foreign.yaml --db r.db -q");
    g_autofree char *first = reproduce_all(box, "r.db", "b", true);
    program_runs(box, "sweep hidup-tab4 --db r.db --set jitter=0.2 -q");
    g_autofree char *second = reproduce_all(box, "r.db", "c", false);
    assert_string_equal(first, alone);
    assert_string_equal(second, alone);
}

/* --- all of them --- */

/* Experiments with numbers that are wall-clock times of planners, which are the same only from the
 * same rows (of hap-fig13 the time that ratios take). */
static const char *const BY_THE_CLOCK[] = {"amp-tab2",    "hap-fig13", "hap-fig19",
                                           "hidup-fig14", "tag-fig8",  NULL};

/* The names that `reproduce all` goes through. Free with g_strfreev. */
static char **all_names(void)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    g_autoptr(GDir) dir = g_dir_open(KILTER_HOME "/experiments", 0, NULL);
    const char *file;
    while ((file = g_dir_read_name(dir)))
        if (g_str_has_suffix(file, ".yaml")) {
            g_autofree char *name = g_strndup(file, strlen(file) - strlen(".yaml"));
            g_strv_builder_add(list, name);
        }
    return g_strv_builder_end(list);
}

/* The pictures of an experiment, if it has some, and its claims in the output of `reproduce`. */
static char *made_of(const Sandbox *box, const char *folder, const char *name,
                     const char *out)
{
    g_autoptr(GString) text = g_string_new(NULL);
    static const char *const suffix[] = {".png", ".svg"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(suffix); i++) {
        g_autofree char *path =
            g_strdup_printf("%s/%s/%s%s", box->folder, folder, name, suffix[i]);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            add_file(text, box, folder, name, suffix[i]);
    }
    g_autofree char *head = g_strdup_printf("\"experiment\": \"%s\"", name);
    const char *from = strstr(out, head);
    assert_non_null(from);
    const char *claims = strstr(from, "\"claims\"");
    const char *next = strstr(from + 1, "\"experiment\": ");
    assert_true(claims && (!next || claims < next));
    /* The claims end where the experiment's object does. */
    const char *end = strstr(claims, "\n    }");
    assert_non_null(end);
    g_string_append_len(text, claims, end - claims);
    return g_strdup(text->str);
}

static void reproduce_in(const Sandbox *box, const char *what, const char *database,
                         const char *folder, GHashTable *made, char *const *names)
{
    g_autofree char *line =
        g_strdup_printf("reproduce %s --db %s -o %s --json -q", what, database, folder);
    g_auto(Ran) ran = program_run_good(box, line);
    for (char *const *name = names; *name; name++)
        g_hash_table_insert(made, g_strdup(*name), made_of(box, folder, *name, ran.out));
}

static GHashTable *new_table(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

/* The first line of `got` that is another one than in `want`, or NULL. */
static char *first_difference(const char *want, const char *got)
{
    g_auto(GStrv) a = g_strsplit(want, "\n", -1), b = g_strsplit(got, "\n", -1);
    uint32_t i = 0;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return a[i] || b[i] ? g_strdup_printf("line %u: %s\nin place of: %s", i + 1,
                                          b[i] ? b[i] : "-", a[i] ? a[i] : "-")
                        : NULL;
}

static void compare(GHashTable *want, GHashTable *got, char *const *names, bool clock)
{
    uint32_t n = 0;
    for (char *const *name = names; *name; name++) {
        if (!clock && g_strv_contains(BY_THE_CLOCK, *name))
            continue;
        g_autofree char *differs = first_difference(g_hash_table_lookup(want, *name),
                                                    g_hash_table_lookup(got, *name));
        n += differs != NULL;
        if (differs)
            print_error("%s differs: %s\n", *name, differs);
    }
    assert_int_equal(n, 0);
}

/* `reproduce all`; one by one backwards beside foreign rows; and all again there. */
static void test_all_twice(void **state)
{
    (void)state;
    test_needs("gnuplot");
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(GStrv) names = all_names();
    g_autoptr(GHashTable) alone = new_table(), backwards = new_table(),
                          again = new_table();
    assert_true(g_strv_length(names) > 20);
    reproduce_in(box, "all", "alone.db", "a", alone, names);
    program_runs(box, "report alone.db -o all.html");
    g_autofree char *page = sandbox_read(box, "all.html");
    assert_true(strlen(page) < 400000);
    sandbox_write(box, "foreign.yaml", FOREIGN);
    program_runs(box, "sweep foreign.yaml --db r.db -q");
    for (uint32_t i = g_strv_length(names); i-- > 0;) {
        char *const one[] = {names[i], NULL};
        reproduce_in(box, names[i], "r.db", "b", backwards, one);
    }
    program_runs(box, "sweep hap-fig15 --db r.db --set collectives=padded -q");
    reproduce_in(box, "all", "r.db", "c", again, names);
    compare(alone, backwards, names, false);
    compare(backwards, again, names, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_same_in_any_company)};
    const struct CMUnitTest all[] = {cmocka_unit_test(test_all_twice)};
    return g_getenv("KILTER_ALL") ? cmocka_run_group_tests(all, NULL, NULL)
                                  : cmocka_run_group_tests(tests, NULL, NULL);
}
