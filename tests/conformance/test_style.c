/* Habits that let a reader find one place: names of functions, declarations, columns of comments,
 * formatting.
 *
 * Where the tree does not keep a rule everywhere yet, a count says how often it is broken, with
 * some room for changes that are under way; it may be lowered, and not be raised. */
#include "data/base/version.h"
#include "tests/conformance/tree.h"
#include "tests/test.h"

enum {
    COMMENT_COLUMN = 100,
    /* Functions that share their name with another one of their module. */
    MOST_SHARED = 24,
    /* Declarations whose type stands alone on its line. */
    MOST_TORN = 0,
    /* Lines of comments that end beyond COMMENT_COLUMN. */
    MOST_WIDE = 155,
    /* Files that clang-format 14 would change; tables among them. */
    MOST_UNFORMATTED = 0,
};

static const char *const C_FILES[] = {".c", NULL};
static const char *const CODE_FILES[] = {".c", ".h", NULL};

typedef void Visit(const char *path, const char *text, void *data);

/* Calls `visit` for each file of a module. */
static void visit_files(const char *module, const char *const *suffixes, Visit *visit,
                        void *data)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    tree_list(KILTER_HOME, module, suffixes, paths);
    assert_true(paths->len > 0);
    for (uint32_t i = 0; i < paths->len; i++) {
        g_autofree char *file = g_build_filename(KILTER_HOME, paths->pdata[i], NULL);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(file, &text, NULL, NULL));
        visit(paths->pdata[i], text, data);
    }
}

/* Counts how often a pattern is in the text. */
static uint32_t count(const char *pattern, const char *text)
{
    g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint32_t n = 0;
    assert_non_null(regex);
    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match); n++)
        g_match_info_next(match, NULL);
    return n;
}

/* Says which bound is broken, and whether it could be lowered by much. */
static void keep_below(uint32_t n, uint32_t most, const char *what)
{
    print_message("%u %s, at most %u\n", n, what, most);
    assert_true(n <= most);
}

/* --- names --- */

/* Adds the functions that a file defines: name -> how many of the module have it. */
static void add_functions(const char *path, const char *text, void *data)
{
    (void)path;
    g_autoptr(GRegex) regex =
        g_regex_new("^(?!typedef|struct|enum|union|#)[A-Za-z_][\\w \\t*]*?\\b(\\w+)\\("
                    "[^;{}]*\\)\\n\\{",
                    G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        char *name = g_match_info_fetch(match, 1);
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(data, name));
        g_hash_table_replace(data, name, GUINT_TO_POINTER(n + 1));
    }
}

/* The functions of a table that have their names with others; prints the most frequent ones. */
static uint32_t count_shared(const char *module, GHashTable *functions)
{
    enum { TELL = 8 };
    GHashTableIter iter;
    gpointer name, n;
    uint32_t shared = 0;
    g_hash_table_iter_init(&iter, functions);
    while (g_hash_table_iter_next(&iter, &name, &n)) {
        shared += GPOINTER_TO_UINT(n) > 1 ? GPOINTER_TO_UINT(n) : 0;
        if (GPOINTER_TO_UINT(n) >= TELL)
            print_message("%s has %u functions %s\n", module, GPOINTER_TO_UINT(n),
                          (char *)name);
    }
    return shared;
}

static void test_names_tell_functions_apart(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++) {
        g_autoptr(GHashTable) functions =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        visit_files(MODULES[m], C_FILES, add_functions, functions);
        assert_true(g_hash_table_size(functions) > 50);
        n += count_shared(MODULES[m], functions);
    }
    keep_below(n, MOST_SHARED, "functions share their names");
    g_autoptr(GHashTable) planted =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    add_functions("", "static int a(int x,\n         int y)\n{\n}\nint a(void);\n",
                  planted);
    add_functions("", "bool *b(void)\n{\n    c(x)\n    {\n}\nvoid a()\n{\n}\n", planted);
    assert_int_equal(count_shared("planted", planted), 2);
    assert_int_equal(g_hash_table_size(planted), 2);
}

/* --- declarations and comments --- */

static const char TORN[] = "^ +(?:const )?(?:[A-Z]\\w+|double|uint\\d+_t|bool|char)(?: "
                           "\\*+)?\\n +\\**\\w+(?:\\[\\w*\\])?[;,]";

static void count_torn(const char *path, const char *text, void *data)
{
    (void)path;
    *(uint32_t *)data += count(TORN, text);
}

static void count_wide(const char *path, const char *text, void *data)
{
    (void)path;
    g_autofree char *wide =
        g_strdup_printf("^(?=.{%d})(?: *(?:/\\*| \\*).*|.*/\\*.*)$", COMMENT_COLUMN + 1);
    *(uint32_t *)data += count(wide, text);
}

static void test_declarations_are_whole(void **state)
{
    (void)state;
    uint32_t n = 0, planted = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
        visit_files(MODULES[m], CODE_FILES, count_torn, &n);
    keep_below(n, MOST_TORN, "declarations have their type alone on a line");
    count_torn("", "struct {\n    ClusterView *\n        chosen;\n    int x;\n}",
               &planted);
    assert_int_equal(planted, 1);
}

static void test_comments_end_in_time(void **state)
{
    (void)state;
    uint32_t n = 0, planted = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
        visit_files(MODULES[m], CODE_FILES, count_wide, &n);
    keep_below(n, MOST_WIDE, "lines of comments are too long");
    g_autofree char *line = g_strnfill(COMMENT_COLUMN, 'x');
    g_autofree char *text = g_strdup_printf("/* %s */\nint %s;\n", line, line);
    count_wide("", text, &planted);
    assert_int_equal(planted, 1);
}

/* --- formatting --- */

static void test_files_are_formatted(void **state)
{
    (void)state;
    g_autofree char *tool = g_find_program_in_path("clang-format-14"), *err = NULL;
    if (!tool) {
        print_message("clang-format-14 is not installed: formatting is not checked\n");
        skip();
    }
    g_autoptr(GPtrArray) command = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(command, g_strdup(tool));
    g_ptr_array_add(command, g_strdup("-n"));
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
        tree_list(KILTER_HOME, MODULES[m], CODE_FILES, command);
    g_ptr_array_add(command, NULL);
    assert_true(g_spawn_sync(KILTER_HOME, (char **)command->pdata, NULL,
                             G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, &err, NULL,
                             NULL));
    g_autoptr(GHashTable) files =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(GStrv) line = g_strsplit(err, "\n", -1);
    for (char **l = line; *l; l++)
        if (strstr(*l, "clang-format-violations"))
            g_hash_table_add(files, g_strndup(*l, strcspn(*l, ":")));
    keep_below(g_hash_table_size(files), MOST_UNFORMATTED,
               "files are not as clang-format has them");
}

/* --- the version --- */

/* The project's version in CMakeLists.txt, which program, library, package and store have, is the
 * one that is cited, and the newest release of CHANGELOG.md. */
static void test_one_version(void **state)
{
    (void)state;
    static const struct {
        const char *file, *pattern;
    } PLACE[] = {{"CMakeLists.txt", "^project\\(kilter VERSION ([\\d.]+)"},
                 {"CITATION.cff", "^version: ([\\d.]+)$"},
                 {"CHANGELOG.md", "^## ([\\d.]+)$"}};
    g_autofree char *version = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PLACE); i++) {
        g_autofree char *file = g_build_filename(KILTER_HOME, PLACE[i].file, NULL);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(file, &text, NULL, NULL));
        g_autoptr(GRegex) regex =
            g_regex_new(PLACE[i].pattern, G_REGEX_MULTILINE, 0, NULL);
        g_autoptr(GMatchInfo) match = NULL;
        assert_true(g_regex_match(regex, text, 0, &match));
        g_autofree char *found = g_match_info_fetch(match, 1);
        if (!version)
            version = g_strdup(found);
        assert_string_equal(found, version);
    }
    assert_string_equal(version, KILTER_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_tell_functions_apart),
        cmocka_unit_test(test_declarations_are_whole),
        cmocka_unit_test(test_comments_end_in_time),
        cmocka_unit_test(test_files_are_formatted),
        cmocka_unit_test(test_one_version),
    };
    return cmocka_run_group_tests_name("style", tests, NULL, NULL);
}
