/* ./run train-tag makes the bundled weights and curves again, bit for bit. $KILTER_TRAIN_TAG is its
 * program; the test's limit of time is half an hour. */
#include <glib/gstdio.h>

#include "data/data.h"
#include "tests/test.h"

/* The lines of a file that are not comments; origins name the commit. */
static char *content(const char *folder, const char *name, const char *comment)
{
    g_autofree char *file = g_build_filename(folder, name, NULL);
    g_autofree char *text = NULL;
    GString *kept = g_string_new(NULL);
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        if (!g_str_has_prefix(*line, comment))
            g_string_append_printf(kept, "%s\n", *line);
    assert_true(kept->len > 1000);
    return g_string_free(kept, FALSE);
}

static void assert_same(const char *folder, const char *bundled, const char *name,
                        const char *comment)
{
    g_autofree char *now = content(folder, name, comment);
    g_autofree char *was = content(bundled, name, comment);
    if (strcmp(now, was) != 0)
        fail_msg("%s: ./run train-tag makes another file", name);
}

static void test_same_bits(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("kilter-train-XXXXXX", &error);
    assert_no_error(error);
    g_autofree char *curves = g_build_filename(folder, "tag-learning.sql", NULL);
    const char *const argv[] = {
        g_getenv("KILTER_TRAIN_TAG"), folder, curves, "test", "weights", NULL};
    int status;
    assert_true(g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL,
                             NULL, NULL, NULL, &status, &error));
    assert_no_error(error);
    assert_int_equal(status, 0);
    assert_same(folder, KILTER_HOME "/data/tag", "network.txt", "#");
    assert_same(folder, KILTER_HOME "/data/tag", "ahead.txt", "#");
    assert_same(folder, KILTER_HOME "/plots/shared", "tag-learning.sql", "--");
    static const char *const made[] = {"network.txt", "ahead.txt", "tag-learning.sql"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(made); i++) {
        g_autofree char *file = g_build_filename(folder, made[i], NULL);
        g_unlink(file);
    }
    g_rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
