/* The walks of CONTRIBUTING.md are true: the files that they name exist, and few files name an op,
 * an algorithm of a collective, or another thing that people add. */
#include "tests/conformance/tree.h"
#include "tests/test.h"

static char *read_file(const char *relative)
{
    g_autofree char *path = g_build_filename(KILTER_HOME, relative, NULL);
    char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

/* --- places that an id is named in --- */

/* The words of all sources, with the number of files for each. */
typedef struct {
    GHashTable *files;  /* word: number of files that hold it */
    GHashTable *latest; /* word: the last file that was counted for it, plus 1 */
} Places;

static void count_word(Places *places, const char *word, uint32_t file)
{
    if (GPOINTER_TO_UINT(g_hash_table_lookup(places->latest, word)) == file + 1)
        return;
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(places->files, word));
    g_hash_table_insert(places->latest, g_strdup(word), GUINT_TO_POINTER(file + 1));
    g_hash_table_insert(places->files, g_strdup(word), GUINT_TO_POINTER(n + 1));
}

static void count_file(Places *places, const char *path, uint32_t file)
{
    g_autofree char *text = read_file(path);
    g_auto(GStrv) word = g_strsplit_set(text, " \t\n()[]{}<>,;:.?!&|*+-/=%~^\"'#\\", -1);
    for (char **w = word; *w; w++)
        if (**w)
            count_word(places, *w, file);
}

/* All sources of the modules except models and their readers, which use ops as a user does. */
static Places count_all(void)
{
    static const char *const suffixes[] = {".c", ".h", ".cu", NULL};
    Places places = {g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                     g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (guint m = 0; m < G_N_ELEMENTS(MODULES); m++)
        tree_list(KILTER_HOME, MODULES[m], suffixes, paths);
    for (guint i = 0; i < paths->len; i++)
        if (!g_str_has_prefix(paths->pdata[i], "data/models/") &&
            !g_str_has_prefix(paths->pdata[i], "data/formats/"))
            count_file(&places, paths->pdata[i], i);
    return places;
}

static void places_clear(Places *places)
{
    g_hash_table_unref(places->files);
    g_hash_table_unref(places->latest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Places, places_clear)

static guint places_of(const Places *places, const char *prefix, const char *name)
{
    g_autofree char *word = g_strconcat(prefix, name, NULL);
    return GPOINTER_TO_UINT(g_hash_table_lookup(places->files, word));
}

static int compare(gconstpointer a, gconstpointer b)
{
    return *(const int *)a - *(const int *)b;
}

/* An op has its row, its gradient and at most two kernels. The graph also knows losses and
 * views. */
static void test_op(void **state)
{
    (void)state;
    enum { MOST = 9, USUAL = 4 };
    g_auto(Places) places = count_all();
    g_autofree char *table = read_file("data/graph/op.h");
    g_autoptr(GRegex) row =
        g_regex_new("X\\(([A-Z_0-9]+), +([a-z_0-9]+), +\"", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(int));
    for (g_regex_match(row, table, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *id = g_match_info_fetch(match, 1);
        g_autofree char *kernel = g_match_info_fetch(match, 2);
        const bool own = strcmp(kernel, "contract") != 0;
        /* 1: the row itself. */
        const int n = (int)(1 + places_of(&places, "OP_", id) +
                            (own ? places_of(&places, "kernel_", kernel) : 0) +
                            (own ? places_of(&places, "cuda_", kernel) : 0));
        if (n > MOST)
            TEST_FAIL_AT(__FILE__, __LINE__, "op %s is named in %d files", id, n);
        g_array_append_val(counts, n);
    }
    assert_true(counts->len > 60);
    g_array_sort(counts, compare);
    assert_true(g_array_index(counts, int, counts->len / 2) <= USUAL);
}

/* An algorithm has its row, its lowering, and possibly a default that chooses it. */
static void test_algorithm(void **state)
{
    (void)state;
    static const char *const names[] = {"RING",     "TREE",   "DOUBLE_TREE", "HALVING",
                                        "PAIRWISE", "DIRECT", "HIERARCHICAL"};
    g_auto(Places) places = count_all();
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const guint n = 1 + places_of(&places, "ALGORITHM_", names[i]);
        if (n > 4)
            TEST_FAIL_AT(__FILE__, __LINE__, "algorithm %s is named in %u files",
                         names[i], n);
    }
}

/* --- places of the usual changes --- */

enum { MOST_FILES = 6 };

/* The rows of the table under "Where a change goes": {change, files}. Free with g_strfreev each. */
static GPtrArray *read_changes(void)
{
    GPtrArray *changes = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    g_autofree char *text = read_file("CONTRIBUTING.md");
    g_auto(GStrv) part = g_strsplit(text, "\n## ", -1);
    for (char **p = part; *p; p++) {
        g_auto(GStrv) line = g_strsplit(*p, "\n", -1);
        for (char **l = line; g_str_has_prefix(*p, "Where a change goes") && *l; l++)
            if (g_str_has_prefix(*l, "| a"))
                g_ptr_array_add(changes, g_strsplit(*l + 2, " | ", 2));
    }
    return changes;
}

static void test_changes_touch_few_files(void **state)
{
    (void)state;
    g_autoptr(GPtrArray) changes = read_changes();
    assert_int_equal(changes->len, 12);
    for (guint i = 0; i < changes->len; i++) {
        char **change = changes->pdata[i];
        g_auto(GStrv) part =
            g_strsplit(change[1], "`", -1); /* names stand at odd places */
        const guint n = g_strv_length(part) / 2;
        if (n == 0 || n > MOST_FILES)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s touches %u files", change[0], n);
        for (guint k = 1; k < 2 * n; k += 2) {
            g_autofree char *path = g_build_filename(KILTER_HOME, part[k], NULL);
            if (!strstr(part[k], "NAME") && !strstr(part[k], "PAPER") &&
                !g_file_test(path, G_FILE_TEST_EXISTS))
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: no %s", change[0], part[k]);
        }
    }
}

/* Things that were added, and the names by which sources of the modules know them. */
static void test_examples_are_named_in_few_files(void **state)
{
    (void)state;
    static const struct {
        const char *change, *names;
    } EXAMPLE[] = {
        {"an op", "\\b(?:OP_RELU2|kernel_relu2|cuda_relu2)\\b|X\\(RELU2,"},
        {"an algorithm", "MACHINE_TREE|machine_tree"},
        {"a planner", "\\btag_make_list\\b"},
        {"an importer", "\\bFORMAT_SLURM|X\\(SLURM|sniff_SLURM|\\bslurm_[a-z]+\\("},
        {"an exporter", "X\\(torchtitan|export_torchtitan"},
        {"a category of memory", "MEMORY_OPTIMIZER|X\\(OPTIMIZER"},
        {"a fidelity", "\\bsim_flow\\b"},
        {"a number of an answer", "\\bwhole_layers\\b"},
        {"an option of a command", "\"virtual-ranks\""},
    };
    static const char *const suffixes[] = {".c", ".h", ".cu", NULL};
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (guint m = 0; m < G_N_ELEMENTS(MODULES); m++)
        tree_list(KILTER_HOME, MODULES[m], suffixes, paths);
    guint n[G_N_ELEMENTS(EXAMPLE)] = {0};
    for (guint i = 0; i < paths->len; i++) {
        g_autofree char *text = read_file(paths->pdata[i]);
        for (guint k = 0; k < G_N_ELEMENTS(EXAMPLE); k++)
            n[k] += g_regex_match_simple(EXAMPLE[k].names, text, 0, 0);
    }
    for (guint k = 0; k < G_N_ELEMENTS(EXAMPLE); k++)
        if (n[k] == 0 || n[k] > MOST_FILES)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s is named in %u files", EXAMPLE[k].change,
                         n[k]);
}

/* --- files that the text names --- */

static void test_files(void **state)
{
    (void)state;
    g_autofree char *text = read_file("CONTRIBUTING.md");
    g_autoptr(GRegex) named =
        g_regex_new("`((?:data|sim|synth|balance|exec|experiments|tests|plots|docs)/"
                    "[A-Za-z0-9_./-]+)`",
                    0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint32_t n = 0;
    for (g_regex_match(named, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *name = g_match_info_fetch(match, 1);
        g_autofree char *path = g_build_filename(KILTER_HOME, name, NULL);
        if (strstr(name, "NAME") || strstr(name, "PAPER"))
            continue;
        if (!g_file_test(path, G_FILE_TEST_EXISTS))
            TEST_FAIL_AT(__FILE__, __LINE__, "CONTRIBUTING.md: no %s", name);
        n++;
    }
    assert_true(n > 20);
}

/* All walks exist. */
static void test_walks(void **state)
{
    (void)state;
    static const char *const walks[] = {
        "**An op.**",       "**A model.**",
        "**A planner.**",   "**An algorithm of a collective.**",
        "**An importer.**", "**An exporter.**",
        "**A figure.**",    "**A command.**"};
    g_autofree char *text = read_file("CONTRIBUTING.md");
    for (guint i = 0; i < G_N_ELEMENTS(walks); i++)
        if (!strstr(text, walks[i]))
            TEST_FAIL_AT(__FILE__, __LINE__, "CONTRIBUTING.md: no %s", walks[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op),
        cmocka_unit_test(test_algorithm),
        cmocka_unit_test(test_changes_touch_few_files),
        cmocka_unit_test(test_examples_are_named_in_few_files),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
