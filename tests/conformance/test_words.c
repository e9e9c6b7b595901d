/* The readability that a machine can check: every file begins with a comment, no comment or
 * document has a turn of phrase that native readers stumble over, and the modules assert what they
 * rely on. */
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

/* The nouns that are often counted by another one. */
#define NOUNS                                                                           \
    "(?:row|rank|layer|device|machine|stage|group|plan|op|tensor|microbatch|line|file|" \
    "thread|planner|sample|token|GPU|process|kind|segment|instruction|message|"         \
    "configuration|model|channel|class|link|node|type|iteration|figure|query|member|"   \
    "task|lane|team|replica|element|trial|column|collective|bucket|gradient|parameter)"

/* "one row a configuration" for "one row per configuration", but not "one of a pair"; "equal shares
 * a GPU"; "that of theirs"; "what nobody makes"; "the memory that there is." for "the memory"; "has
 * as much."; "after so many seconds"; and comments that begin with "What" in place of a noun. */
static const char STUMBLES[] =
    "\\b(?:a|an|one|once)(?: "
    "(?!of|in|on|at|to|as|by|is|or|and|for|from|with|than|over|has)\\w+)?"
    " an? " NOUNS "\\b"
    "|\\b(?:shares|streams|choices|latencies|bytes|dollars|rows) an? "
    "(?:GPU|device|rank|replica|op|element|parameter|configuration|iteration)\\b"
    "|\\bof (?:theirs|yours)\\b|\\b[Ww]hat nobody\\b"
    "|\\b(?:that|than) there (?:is|are|was|were)(?=[.,;:)])"
    "|\\bhas as (?:much|many)(?=[.;)])|\\b(?:after|within) so many\\b|/[*/] What ";

/* The number of stumbles in a piece of prose; prints each. */
static uint32_t stumbles_in(const char *path, const char *prose)
{
    g_autoptr(GRegex) stumble = g_regex_new(STUMBLES, 0, 0, NULL);
    g_autoptr(GMatchInfo) found = NULL;
    uint32_t n = 0;
    for (g_regex_match(stumble, prose, 0, &found); g_match_info_matches(found);
         g_match_info_next(found, NULL), n++) {
        g_autofree char *phrase = g_match_info_fetch(found, 0);
        print_message("%s: \"%s\"; say \"per\", or the noun\n", path, phrase);
    }
    return n;
}

/* Counts the stumbling phrases in the parts of a text that match `part`, where `joint` is read
 * as `between`. */
static uint32_t stumbles_of(const char *path, const char *text, const char *part,
                            const char *joint, const char *between)
{
    g_autoptr(GRegex) parts = g_regex_new(part, G_REGEX_DOTALL, 0, NULL);
    g_autoptr(GRegex) joints = g_regex_new(joint, 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    uint32_t n = 0;
    for (g_regex_match(parts, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *raw = g_match_info_fetch(match, 0);
        g_autofree char *prose =
            g_regex_replace_literal(joints, raw, -1, 0, between, 0, NULL);
        n += stumbles_in(path, prose);
    }
    return n;
}

static uint32_t stumbles(const char *path, const char *text)
{
    return stumbles_of(path, text, "/\\*.*?\\*/|//[^\n]*", "\n[ \t]*(?:\\*|//)?[ \t]*",
                       " ");
}

/* In string literals, those that follow one another as one. */
static uint32_t stumbles_of_strings(const char *path, const char *text)
{
    return stumbles_of(
        path, text,
        "\"(?:[^\"\\\\\n]|\\\\.)*\"(?:\\s*\\\\?\\s*\"(?:[^\"\\\\\n]|\\\\.)*\")*",
        "\"\\s*\\\\?\\s*\"", "");
}

/* In prose between blank lines; code in fences and quoted phrases are no prose. */
static uint32_t stumbles_of_markdown(const char *path, const char *text)
{
    g_autoptr(GRegex) quoted =
        g_regex_new("```.*?```|\"[^\"\n]*\"", G_REGEX_DOTALL, 0, NULL);
    g_autofree char *prose = g_regex_replace_literal(quoted, text, -1, 0, "", 0, NULL);
    return stumbles_of(path, prose, "(?:[^\n]+\n?)+", "\n[ \t]*", " ");
}

/* The number of stumbles in the comments of a folder; this file shows some. */
static uint32_t stumbles_below(const char *folder)
{
    g_autoptr(GPtrArray) paths = list_files(folder, CODE_FILES);
    uint32_t n = 0;
    for (uint32_t i = 0; i < paths->len; i++) {
        g_autofree char *text = read_file(paths->pdata[i]);
        if (!g_str_has_suffix(paths->pdata[i], "test_words.c"))
            n += stumbles(paths->pdata[i], text);
    }
    return n;
}

static void test_comments_read_well(void **state)
{
    (void)state;
    uint32_t n = stumbles_below("tests");
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++)
        n += stumbles_below(MODULES[m]);
    assert_int_equal(n, 0);
}

/* Help texts and messages. */
static void test_strings_read_well(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++) {
        g_autoptr(GPtrArray) paths = list_files(MODULES[m], C_FILES);
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *text = read_file(paths->pdata[i]);
            n += stumbles_of_strings(paths->pdata[i], text);
        }
    }
    assert_int_equal(n, 0);
}

/* The comments of queries, gnuplot scripts and experiment files. */
static void test_scripts_read_well(void **state)
{
    (void)state;
    static const char *const FOLDERS[] = {"plots", "experiments", "data"};
    static const char *const SCRIPTS[] = {".sql", ".gp", ".yaml", NULL};
    uint32_t n = 0;
    for (uint32_t f = 0; f < G_N_ELEMENTS(FOLDERS); f++) {
        g_autoptr(GPtrArray) paths = list_files(FOLDERS[f], SCRIPTS);
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *text = read_file(paths->pdata[i]);
            n += stumbles_of(paths->pdata[i], text, "(?:[ \\t]*(?:--|#)[^\n]*\n)+",
                             "\n[ \\t]*(?:--|#)?[ \\t]*", " ");
        }
    }
    assert_int_equal(n, 0);
}

static void test_documents_read_well(void **state)
{
    (void)state;
    static const char *const MARKDOWN[] = {".md", NULL};
    g_autoptr(GPtrArray) paths = list_files("docs", MARKDOWN);
    g_ptr_array_add(paths, g_strdup("README.md"));
    g_ptr_array_add(paths, g_strdup("CONTRIBUTING.md"));
    uint32_t n = 0;
    for (uint32_t i = 0; i < paths->len; i++) {
        g_autofree char *text = read_file(paths->pdata[i]);
        n += stumbles_of_markdown(paths->pdata[i], text);
    }
    assert_int_equal(n, 0);
}

/* Tests the checks on planted comments, strings and documents. */
static void test_planted_stumbles(void **state)
{
    (void)state;
    assert_int_equal(stumbles("planted", "/* One GPU has one row a\n * layer. */ int a;"),
                     1);
    assert_int_equal(stumbles("planted", "/* An op runs once a microbatch. */"), 1);
    assert_int_equal(stumbles("planted", "// what nobody makes, and a part of theirs"),
                     2);
    assert_int_equal(
        stumbles("planted", "/* Fits the memory that there is. Has as much. */"), 1);
    assert_int_equal(
        stumbles("planted", "/* One of a machine's GPUs, 5 events a second. */"), 0);
    assert_int_equal(stumbles("planted", "/* The bytes that there are in a file. */"), 0);
    const char *const code = "const char *text = \"equal shares \"\n    \"a GPU\";";
    assert_int_equal(stumbles("planted", code), 0);
    assert_int_equal(stumbles_of_strings("planted", code), 1);
    const char *const document =
        "A plan has shares a\ndevice.\n\n```\none row a layer\n```\n"
        "Not \"one row a layer\".\n";
    assert_int_equal(stumbles_of_markdown("planted", document), 1);
}

/* --- long sentences --- */

enum { LONGEST_SENTENCE = 30 };

/* The text without what a pattern matches. */
static char *without(const char *pattern, const char *text, const char *instead)
{
    g_autoptr(GRegex) regex =
        g_regex_new(pattern, G_REGEX_MULTILINE | G_REGEX_DOTALL, 0, NULL);
    assert_non_null(regex);
    return g_regex_replace_literal(regex, text, -1, 0, instead, 0, NULL);
}

/* Sentences of prose with too many words; what stands in backquotes is one. Code, headings and
 * tables are no prose, and items of lists begin sentences of their own. */
static uint32_t long_sentences(const char *path, const char *text)
{
    g_autofree char *fenced = without("^```.*?^```", text, ""),
                    *plain = without("^(?:    |#|[|])[^\n]*$", fenced, ""),
                    *code = without("`[^`]*`", plain, "CODE"),
                    *named = without("\\]\\([^)]*\\)", code, "]"),
                    *items = without("^ *(?:-|[0-9]+[.]) ", named, "\n\n");
    g_auto(GStrv) sentence =
        g_regex_split_simple("\\n[ \t]*\\n|(?<=[.!?:;])\\s+(?=[A-Z*\\[(])", items, 0, 0);
    uint32_t n = 0;
    for (char **at = sentence; *at; at++) {
        g_auto(GStrv) word = g_regex_split_simple("[^\\s]*\\w[^\\s]*", *at, 0, 0);
        const guint words = g_strv_length(word) - 1;
        if (!**at || words <= LONGEST_SENTENCE)
            continue;
        print_message("%s: %u words: %.300s\n", path, words, *at);
        n++;
    }
    return n;
}

static void test_sentences_are_short(void **state)
{
    (void)state;
    static const char *const MARKDOWN[] = {".md", NULL};
    g_autoptr(GPtrArray) paths = list_files("docs", MARKDOWN);
    g_ptr_array_add(paths, g_strdup("README.md"));
    g_ptr_array_add(paths, g_strdup("CONTRIBUTING.md"));
    uint32_t n = 0;
    for (uint32_t i = 0; i < paths->len; i++) {
        g_autofree char *text = read_file(paths->pdata[i]);
        n += long_sentences(paths->pdata[i], text);
    }
    print_message("%u sentences of documents are too long, at most 3\n", n);
    assert_true(n <= 3);
    assert_int_equal(long_sentences("planted", "One two. `a b c` [x](y) is.\n"), 0);
    g_autoptr(GString) planted = g_string_new("Short. ");
    for (uint32_t i = 0; i <= LONGEST_SENTENCE; i++)
        g_string_append(planted, i % 2 ? "a, " : "`b c`\n");
    g_autofree char *fine = g_strconcat("```\n", planted->str, "\n```\n", NULL);
    assert_int_equal(long_sentences("planted", planted->str), 1);
    assert_int_equal(long_sentences("planted", fine), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_stumbles),
        cmocka_unit_test(test_tests_begin_with_a_comment),
        cmocka_unit_test(test_comments_read_well),
        cmocka_unit_test(test_strings_read_well),
        cmocka_unit_test(test_scripts_read_well),
        cmocka_unit_test(test_documents_read_well),
        cmocka_unit_test(test_sentences_are_short),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
