/* Files begin with a comment, public functions take few parameters, and every source
 * file is built: each .c of a module is in the module's CMakeLists.txt, each test in that of
 * tests/, and no source is outside the folders of the design. */
#include "tests/conformance/tree.h"
#include "tests/test.h"

static const char *const C_FILES[] = {".c", NULL};

/* Whether the list names `path` as a whole word. */
static bool lists(const char *list, const char *path)
{
    g_autofree char *quoted = g_regex_escape_string(path, -1);
    g_autofree char *pattern =
        g_strdup_printf("^[^#\n]*(?<![\\w./-])%s(?![\\w./-])", quoted);
    return g_regex_match_simple(pattern, list, G_REGEX_MULTILINE, 0);
}

/* The number of .c files below `folder` that its CMakeLists.txt does not name; prints each. */
static uint32_t orphans(const char *root, const char *folder)
{
    g_autofree char *file = g_build_filename(root, folder, "CMakeLists.txt", NULL);
    g_autofree char *list = NULL;
    assert_true(g_file_get_contents(file, &list, NULL, NULL));

    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    tree_list(root, folder, C_FILES, paths);
    uint32_t n = 0;
    for (uint32_t i = 0; i < paths->len; i++) {
        const char *path = g_ptr_array_index(paths, i);
        if (lists(list, path + strlen(folder) + 1))
            continue;
        print_message("%s is not in %s/CMakeLists.txt\n", path, folder);
        n++;
    }
    return n;
}

static void test_every_source_is_built(void **state)
{
    (void)state;
    uint32_t n = orphans(KILTER_HOME, "tests");
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
        n += orphans(KILTER_HOME, MODULES[m]);
    assert_int_equal(n, 0);
}

static void test_no_other_source_folder(void **state)
{
    (void)state;
    g_autoptr(GDir) dir = g_dir_open(KILTER_HOME, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir))) {
        bool known = name[0] == '.' || g_str_has_prefix(name, "build") ||
                     !strcmp(name, "out") || !strcmp(name, "tests");
        for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
            known = known || !strcmp(name, MODULES[m]);
        g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
        if (!known)
            tree_list(KILTER_HOME, name, C_FILES, paths);
        if (paths->len)
            print_error("%s: source outside the modules\n",
                        (char *)g_ptr_array_index(paths, 0));
        assert_int_equal(paths->len, 0);
    }
}

/* --- files and functions --- */

enum { MOST_PARAMETERS = 7 };

static const char *const CODE_FILES[] = {".c", ".h", ".cu", NULL};
static const char *const HEADERS[] = {".h", NULL};

/* The number of files of a module that begin without a comment; prints each. */
static uint32_t shapeless(const char *folder)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    tree_list(KILTER_HOME, folder, CODE_FILES, paths);
    assert_true(paths->len > 0);
    uint32_t n = 0;
    for (uint32_t i = 0; i < paths->len; i++) {
        g_autofree char *file = g_build_filename(KILTER_HOME, paths->pdata[i], NULL);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(file, &text, NULL, NULL));
        if (!g_str_has_prefix(text, "/*"))
            print_message("%s: begins without a comment\n", (char *)paths->pdata[i]);
        n += !g_str_has_prefix(text, "/*");
    }
    return n;
}

static void test_files_say_what_they_are(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
        n += shapeless(MODULES[m]);
    assert_int_equal(n, 0);
}

/* Parameters between the bracket before `at` and the one that closes it. */
static uint32_t parameters_at(const char *at)
{
    uint32_t n = 1, depth = 1;
    for (; *at && depth > 0; at++) {
        depth += *at == '(';
        depth -= *at == ')';
        n += *at == ',' && depth == 1;
    }
    return n;
}

/* A header without its comments and macros. */
static char *declarations(const char *text)
{
    g_autoptr(GRegex) rest =
        g_regex_new("/\\*.*?\\*/|^[ \t]*#(?:[^\\\\\n]|\\\\.|\\\\\n)*",
                    G_REGEX_DOTALL | G_REGEX_MULTILINE, 0, NULL);
    return g_regex_replace_literal(rest, text, -1, 0, "", 0, NULL);
}

/* The number of functions in a header with too many parameters; prints each. */
static uint32_t crowded(const char *path, const char *text)
{
    g_autofree char *plain = declarations(text);
    g_autoptr(GRegex) function =
        g_regex_new("^[A-Za-z_][\\w \t\n*]*?(\\w+)\\(", G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint32_t n = 0;
    for (g_regex_match(function, plain, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        int start, end;
        g_match_info_fetch_pos(match, 0, &start, &end);
        const uint32_t parameters = parameters_at(plain + end);
        if (parameters <= MOST_PARAMETERS)
            continue;
        g_autofree char *name = g_match_info_fetch(match, 1);
        print_message("%s: %s has %u parameters, at most %d\n", path, name, parameters,
                      MOST_PARAMETERS);
        n++;
    }
    return n;
}

static void test_functions_take_few_parameters(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++) {
        g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
        tree_list(KILTER_HOME, MODULES[m], HEADERS, paths);
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *file = g_build_filename(KILTER_HOME, paths->pdata[i], NULL);
            g_autofree char *text = NULL;
            assert_true(g_file_get_contents(file, &text, NULL, NULL));
            n += crowded(paths->pdata[i], text);
        }
    }
    assert_int_equal(n, 0);
}

/* Tests the check. */
static void test_planted_crowd(void **state)
{
    (void)state;
    static const char header[] = "/* f(a, b, c, d, e, f, g, h) */\n"
                                 "#define M(a, b, c, d, e, f, g, h) \\\n    x(a)\n"
                                 "bool few(int a, int (*b)(int, int), int c, int d,\n"
                                 "         int e, int f, int g);\n"
                                 "const char *many(int a, int b, int c, int d, int e,\n"
                                 "                 int f, int g, int h);\n";
    assert_int_equal(crowded("planted.h", header), 1);
}

/* Tests the check on a planted folder with one file that is listed and others that only seem to
 * be. */
static void test_planted_orphans(void **state)
{
    (void)state;
    static const char *const files[] = {"CMakeLists.txt", "in.c", "a-in.c", "off.c",
                                        "sub/in.c"};
    static const char list[] = "add_library(x\n  in.c  # not off.c\n  sub/in.c.txt)\n";
    g_autofree char *root = g_dir_make_tmp("kilter-sources-XXXXXX", NULL);
    assert_non_null(root);
    g_autofree char *folder = g_build_filename(root, "m", NULL);
    g_autofree char *sub = g_build_filename(folder, "sub", NULL);
    assert_int_equal(g_mkdir_with_parents(sub, 0700), 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i], NULL);
        assert_true(g_file_set_contents(path, i ? "" : list, -1, NULL));
    }
    uint32_t n = orphans(root, "m"); /* a-in.c, off.c, sub/in.c */

    for (uint32_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i], NULL);
        remove(path);
    }
    remove(sub);
    remove(folder);
    remove(root);
    assert_int_equal(n, 3);
}

/* Bugs that ./run planted makes still have their places in the sources. */
static void test_planted_bugs_have_places(void **state)
{
    (void)state;
    static const char *const LIST[] = {"tests/fuzz/planted.txt",
                                       "tests/conformance/planted.txt"};
    uint32_t lost = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(LIST); i++) {
        g_autofree char *path = g_build_filename(KILTER_HOME, LIST[i], NULL);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_auto(GStrv) line = g_strsplit(text, "\n", -1);
        for (char **at = line; *at; at++) {
            g_auto(GStrv) part = g_strsplit(*at, "\t", -1);
            if (**at == '#' || g_strv_length(part) < 4)
                continue;
            g_autofree char *file = g_build_filename(KILTER_HOME, part[1], NULL);
            g_autofree char *source = NULL;
            if (g_file_get_contents(file, &source, NULL, NULL) && strstr(source, part[2]))
                continue;
            print_message("%s: no '%s' in %s\n", LIST[i], part[2], part[1]);
            lost++;
        }
    }
    assert_int_equal(lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_orphans),
        cmocka_unit_test(test_planted_crowd),
        cmocka_unit_test(test_files_say_what_they_are),
        cmocka_unit_test(test_functions_take_few_parameters),
        cmocka_unit_test(test_every_source_is_built),
        cmocka_unit_test(test_no_other_source_folder),
        cmocka_unit_test(test_planted_bugs_have_places),
    };
    return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
