/* Every constant of the planners has a row in tests/same/constants.txt: what twice and half of it
 * change, or that it is no choice of a search. */
#include "tests/test.h"

/* The lines that tests/same/constants.py prints for a word. */
static char **lines_of(const char *python, const char *word)
{
    g_autofree char *tool =
        g_build_filename(KILTER_HOME, "tests/same/constants.py", NULL);
    const char *argv[] = {python, tool, word, NULL};
    g_autofree char *out = NULL;
    int status = 1;
    assert_true(g_spawn_sync(KILTER_HOME, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL,
                             NULL, &out, NULL, &status, NULL));
    assert_int_equal(status, 0);
    return g_strsplit(g_strstrip(out), "\n", -1);
}

static void test_every_constant_has_a_row(void **state)
{
    (void)state;
    g_autofree char *python = g_find_program_in_path("python3");
    if (!python)
        skip();
    g_auto(GStrv) all = lines_of(python, "all"), lacking = lines_of(python, "list"),
                  stale = lines_of(python, "stale");
    assert_true(g_strv_length(all) > 200);
    for (char **line = lacking; *line; line++)
        print_message("%s has no row in tests/same/constants.txt\n", *line);
    for (char **line = stale; *line; line++)
        print_message("%s is in tests/same/constants.txt, and no longer in the tree\n",
                      *line);
    assert_int_equal(g_strv_length(lacking) + g_strv_length(stale), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_constant_has_a_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
