/* What a machine can check of how the sources read: every file begins with a comment, no comment has a turn of phrase that
 * native readers stumble over, and the modules assert what they rely on. */
#include "tests/conformance/tree.h"
#include "tests/test.h"

static const char *const CODE_FILES[] = {".c", ".h", ".cu", NULL};
static const char *const C_FILES[] = {".c", ".h", NULL};

static char *read_file(const char *path)
{
    g_autofree char *file = g_build_filename(KILTER_HOME, path, NULL);
    char *text = NULL;
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    return text;
}

static GPtrArray *list_files(const char *folder, const char *const *suffixes)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    tree_list(KILTER_HOME, folder, suffixes, paths);
    assert_true(paths->len > 0);
    return paths;
}

static uint32_t count_matches(const GRegex *regex, const char *text)
{
    uint32_t n = 0;
    g_autoptr(GMatchInfo) match = NULL;
    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL))
        n++;
    return n;
}

/* --- opening comments --- */

static void test_tests_begin_with_a_comment(void **state)
{
    (void)state;
    g_autoptr(GPtrArray) paths = list_files("tests", C_FILES);
    uint32_t n = 0;
    for (uint32_t i = 0; i < paths->len; i++) {
        g_autofree char *text = read_file(paths->pdata[i]);
        if (g_str_has_prefix(text, "/*"))
            continue;
        print_message("%s: begins without a comment\n", (char *)paths->pdata[i]);
        n++;
    }
    assert_int_equal(n, 0);
}

/* --- turns of phrase --- */

/* "one row a configuration" for "one row per configuration", but not "one of a pair"; "that of
 * theirs"; "what nobody makes". */
static const char STUMBLES[] =
    "\\b(?:a|an|one|once)(?: "
    "(?!of|in|on|at|to|as|by|is|or|and|for|from|with|than|over|has)\\w+)?"
    " an? "
    "(?:row|rank|layer|device|machine|stage|group|plan|op|tensor|microbatch|line|file|"
    "thread|planner|sample|token|GPU|process|kind|segment|instruction|message|"
    "configuration|"
    "model|channel|class|link|node|type|iteration|figure|query|member|task|lane|team|"
    "replica|"
    "element|trial|column|collective|bucket|gradient|parameter)\\b"
    "|\\bof theirs\\b|\\b[Ww]hat nobody\\b";

/* How many stumbles the comments of a text have; prints each. */
static uint32_t stumbles(const char *path, const char *text)
{
    g_autoptr(GRegex) comment =
        g_regex_new("/\\*.*?\\*/|//[^\n]*", G_REGEX_DOTALL, 0, NULL);
    g_autoptr(GRegex) margin = g_regex_new("\n[ \t]*(?:\\*|//)?[ \t]*", 0, 0, NULL);
    g_autoptr(GRegex) stumble = g_regex_new(STUMBLES, 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint32_t n = 0;
    for (g_regex_match(comment, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *raw = g_match_info_fetch(match, 0);
        g_autofree char *words =
            g_regex_replace_literal(margin, raw, -1, 0, " ", 0, NULL);
        g_autoptr(GMatchInfo) found = NULL;
        for (g_regex_match(stumble, words, 0, &found); g_match_info_matches(found);
             g_match_info_next(found, NULL)) {
            g_autofree char *phrase = g_match_info_fetch(found, 0);
            print_message("%s: \"%s\" in a comment; say \"per\", or the noun\n", path,
                          phrase);
            n++;
        }
    }
    return n;
}

static void test_comments_read_well(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++) {
        g_autoptr(GPtrArray) paths = list_files(MODULES[m], CODE_FILES);
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *text = read_file(paths->pdata[i]);
            n += stumbles(paths->pdata[i], text);
        }
    }
    assert_int_equal(n, 0);
}

/* The check itself, on planted comments. */
static void test_planted_stumbles(void **state)
{
    (void)state;
    assert_int_equal(stumbles("planted", "/* One GPU has one row a\n * layer. */ int a;"),
                     1);
    assert_int_equal(stumbles("planted", "/* An op runs once a microbatch. */"), 1);
    assert_int_equal(stumbles("planted", "// what nobody makes, and a part of theirs"),
                     2);
    assert_int_equal(
        stumbles("planted", "/* One of a machine's GPUs, 5 events a second. */"), 0);
    assert_int_equal(stumbles("planted", "const char *text = \"one row a layer\";"), 0);
}

/* --- asserts --- */

/* At least 10 asserts per 1000 lines are the aim; the floor, per 10,000 lines, leaves room for a
 * change that is under way. */
enum { LEAST_ASSERTS = 95 };

static void test_modules_assert_what_they_rely_on(void **state)
{
    (void)state;
    static const char *const BOUND[] = {"data", "sim", "synth", "balance", "exec"};
    g_autoptr(GRegex) assertion = g_regex_new(
        "\\b(?:g_assert|g_assert_not_reached|KILTER_ASSERT|G_STATIC_ASSERT)\\(", 0, 0,
        NULL);
    g_autoptr(GRegex) line = g_regex_new("\n", 0, 0, NULL);
    bool good = true;
    for (uint32_t m = 0; m < G_N_ELEMENTS(BOUND); m++) {
        g_autoptr(GPtrArray) paths = list_files(BOUND[m], C_FILES);
        uint64_t asserts = 0, lines = 0;
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *text = read_file(paths->pdata[i]);
            asserts += count_matches(assertion, text);
            lines += count_matches(line, text);
        }
        if (asserts * 10000 >= lines * LEAST_ASSERTS)
            continue;
        print_message("%s: %" G_GUINT64_FORMAT " asserts in %" G_GUINT64_FORMAT
                      " lines, at least %d per 10,000\n",
                      BOUND[m], asserts, lines, LEAST_ASSERTS);
        good = false;
    }
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_stumbles),
        cmocka_unit_test(test_tests_begin_with_a_comment),
        cmocka_unit_test(test_comments_read_well),
        cmocka_unit_test(test_modules_assert_what_they_rely_on),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
