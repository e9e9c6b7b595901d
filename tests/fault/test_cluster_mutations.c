/* The property of tests/fuzz/fuzz_cluster.c on bundled files with random damage (fixed
 * seeds): it aborts where it is broken. */
#include "data/path.h"
#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTANTS = 4000, DAMAGES = 4 };

/* Bytes and pieces that mean something in YAML or in a cluster file. */
static const char *const PIECE[] = {
    "\n",    " ",        "  ",
    ":",     ": ",       "-",
    "- ",    "[",        "]",
    "{",     "}",        ",",
    "#",     "&a ",      "*a",
    "!!int", "|",        ">-",
    "'",     "\"",       "\t",
    "---\n", "...",      "%YAML",
    "?",     "<<",       "~",
    "0",     "-1",       "1e400",
    "nan",   "gpus",     "count",
    "name",  "GB/s",     "999999999999",
    "\xff",  "\xc3\xa9", "\xef\xbb\xbf",
    "\r\n",
};

/* Replaces up to 40 bytes at a random place: by nothing, by a piece, or by bytes from
 * elsewhere in the file. */
static void damage(GString *text, GRand *rand)
{
    gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)text->len + 1);
    gsize most = MIN(text->len - at, 40);
    gsize gone = most ? (gsize)g_rand_int_range(rand, 0, (gint32)most + 1) : 0;
    gint32 how = g_rand_int_range(rand, 0, 4);
    g_autofree char *copy = NULL;
    if (how == 1 && text->len > 0) {
        gsize from = (gsize)g_rand_int_range(rand, 0, (gint32)text->len);
        copy = g_strndup(text->str + from, MIN(text->len - from, 200));
    }
    if (how == 2) /* one byte, any */
        gone = MIN(most, 1);
    g_string_erase(text, (gssize)at, (gssize)gone);
    if (how == 1 && copy)
        g_string_insert(text, (gssize)at, copy);
    else if (how == 2)
        g_string_insert_c(text, (gssize)at, (char)g_rand_int_range(rand, 0, 256));
    else if (how == 3)
        g_string_insert(text, (gssize)at,
                        PIECE[g_rand_int_range(rand, 0, G_N_ELEMENTS(PIECE))]);
}

static void test_mutated_files(void **state)
{
    (void)state;
    static const char *const FILE_NAME[] = {"clusters/hap-64.yaml", "clusters/hap-8.yaml",
                                            "clusters/hap-p100-16.yaml"};
    for (size_t i = 0; i < G_N_ELEMENTS(FILE_NAME); i++) {
        g_autofree char *path = path_find(FILE_NAME[i]);
        g_autofree char *text = NULL;
        gsize length;
        assert_true(g_file_get_contents(path, &text, &length, NULL));
        g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)i + 1);
        for (uint32_t n = 0; n < MUTANTS / G_N_ELEMENTS(FILE_NAME); n++) {
            g_autoptr(GString) mutant = g_string_new_len(text, (gssize)length);
            gint32 damages = g_rand_int_range(rand, 1, DAMAGES + 1);
            for (gint32 d = 0; d < damages; d++)
                damage(mutant, rand);
            LLVMFuzzerTestOneInput((const uint8_t *)mutant->str, mutant->len);
        }
    }
}

/* Undamaged, they pass as clusters. */
static void test_bundled_files(void **state)
{
    (void)state;
    g_auto(GStrv) names = path_list("clusters", ".yaml");
    assert_true(g_strv_length(names) > 0);
    for (char **name = names; *name; name++) {
        g_autofree char *relative = g_strdup_printf("clusters/%s.yaml", *name);
        g_autofree char *path = path_find(relative);
        g_autofree char *text = NULL;
        gsize length;
        assert_true(g_file_get_contents(path, &text, &length, NULL));
        LLVMFuzzerTestOneInput((const uint8_t *)text, length);
    }
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_files),
        cmocka_unit_test(test_mutated_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
