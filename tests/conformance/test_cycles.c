/* Files do not call each other in circles: where a function of one file calls a function of
 * another, no calls of the other lead back. Calls count, pointers do not: the rows of a table may
 * name functions of many files. Headers do not include each other in circles either. */
#include <string.h>

#include "tests/conformance/tree.h"
#include "tests/test.h"

typedef struct {
    GPtrArray *path, *text; /* of each file; without comments, strings and directives */
    GHashTable *home;       /* name of a function that others can call -> 1 + its file */
    bool *calls;            /* [file * n + file] */
} Sources;

static void sources_init(Sources *s)
{
    s->path = g_ptr_array_new_with_free_func(g_free);
    s->text = g_ptr_array_new_with_free_func(g_free);
    s->home = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    s->calls = NULL;
}

static void sources_clear(Sources *s)
{
    g_ptr_array_unref(s->path);
    g_ptr_array_unref(s->text);
    g_hash_table_unref(s->home);
    g_free(s->calls);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Sources, sources_clear)

static void sources_add(Sources *s, const char *path, const char *text)
{
    g_autoptr(GRegex) rest =
        g_regex_new("/\\*.*?\\*/|\"(?:[^\"\\\\\n]|\\\\.)*\"|^[ \t]*#(?:[^\\\\\n]|\\\\.)*",
                    G_REGEX_DOTALL | G_REGEX_MULTILINE, 0, NULL);
    g_ptr_array_add(s->path, g_strdup(path));
    g_ptr_array_add(s->text, g_regex_replace_literal(rest, text, -1, 0, "", 0, NULL));
}

/* The names that the pattern's first group finds in a file. */
static GPtrArray *names_by(const char *pattern, const char *text)
{
    g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_MULTILINE, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL))
        g_ptr_array_add(names, g_match_info_fetch(match, 1));
    return names;
}

/* The head of a definition begins its line, and its body is a line's first bracket. */
#define DEFINITION "[A-Za-z_][\\w \t\n*]*?\\b(\\w+)\\([^;{}]*\\)\\s*\n\\{"

static void find_homes(Sources *s)
{
    for (guint i = 0; i < s->text->len; i++) {
        g_autoptr(GPtrArray) names =
            names_by("^(?!static\\b)" DEFINITION, s->text->pdata[i]);
        for (guint k = 0; k < names->len; k++)
            g_hash_table_insert(s->home, g_strdup(names->pdata[k]),
                                GUINT_TO_POINTER(1 + i));
    }
}

static void find_calls(Sources *s)
{
    const guint n = s->text->len;
    s->calls = g_new0(bool, (gsize)n *n);
    for (guint i = 0; i < n; i++) {
        g_autoptr(GPtrArray) own =
            names_by("^static\\b[ \t]*" DEFINITION, s->text->pdata[i]);
        g_autoptr(GHashTable) hidden = g_hash_table_new(g_str_hash, g_str_equal);
        for (guint k = 0; k < own->len; k++)
            g_hash_table_add(hidden, own->pdata[k]);
        g_autoptr(GPtrArray) names = names_by("\\b([a-z_]\\w*)\\(", s->text->pdata[i]);
        for (guint k = 0; k < names->len; k++) {
            const guint home =
                GPOINTER_TO_UINT(g_hash_table_lookup(s->home, names->pdata[k]));
            if (home > 0 && !g_hash_table_contains(hidden, names->pdata[k]))
                s->calls[(gsize)i * n + home - 1] = home - 1 != i;
        }
    }
}

/* The number of pairs of files that call each other, in any number of steps; prints the calls. */
static uint32_t circles(Sources *s)
{
    const guint n = s->text->len;
    find_homes(s);
    find_calls(s);
    g_autofree bool *reaches = g_memdup2(s->calls, (gsize)n * n * sizeof *reaches);
    for (guint k = 0; k < n; k++)
        for (guint i = 0; i < n; i++) {
            if (!reaches[(gsize)i * n + k])
                continue;
            for (guint j = 0; j < n; j++)
                reaches[(gsize)i * n + j] |= reaches[(gsize)k * n + j];
        }
    uint32_t found = 0;
    for (guint i = 0; i < n; i++)
        for (guint j = 0; j < n; j++) {
            const bool back = reaches[(gsize)j * n + i];
            found += i < j && back && reaches[(gsize)i * n + j];
            if (back && s->calls[(gsize)i * n + j])
                print_message("%s calls %s, which comes back to it\n",
                              (char *)s->path->pdata[i], (char *)s->path->pdata[j]);
        }
    return found;
}

static void test_no_file_calls_in_circles(void **state)
{
    (void)state;
    static const char *const suffixes[] = {".c", NULL};
    g_auto(Sources) s;
    sources_init(&s);
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++) {
        g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
        tree_list(KILTER_HOME, MODULES[m], suffixes, paths);
        for (guint i = 0; i < paths->len; i++) {
            g_autofree char *file = g_build_filename(KILTER_HOME, paths->pdata[i], NULL);
            g_autofree char *text = NULL;
            assert_true(g_file_get_contents(file, &text, NULL, NULL));
            sources_add(&s, paths->pdata[i], text);
        }
    }
    assert_int_equal(circles(&s), 0);
    assert_true(g_hash_table_size(s.home) > s.path->len); /* functions were found */
}

/* Tests the check: a circle of three files; a table, a static function and a comment that make no
 * circle. */
static void test_planted_circle(void **state)
{
    (void)state;
    g_auto(Sources) s;
    sources_init(&s);
    sources_add(&s, "a.c", "void a(void)\n{\n    b(1);\n}\n");
    sources_add(&s, "b.c",
                "int b(int x,\n      int y)\n{\n    return c(x, \"a()\");\n}\n");
    sources_add(&s, "c.c", "const char *c(void)\n{\n    a();\n}\n");
    sources_add(&s, "d.c", "static Row row[] = {a, e};\nvoid d(void)\n{\n    e();\n}\n");
    sources_add(&s, "e.c",
                "static void d(void)\n{\n}\nvoid e(void)\n{ /* a(); */\n    d();\n}\n");
    assert_int_equal(circles(&s), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_circle),
        cmocka_unit_test(test_no_file_calls_in_circles),
    };
    return cmocka_run_group_tests_name("cycles", tests, NULL, NULL);
}
