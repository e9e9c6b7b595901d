/* The toolbox: heaps, loops on threads and texts of JSON. */
#include <float.h>
#include <glib/gstdio.h>
#include <jansson.h>

#include "data/base/json.h"
#include "data/base/text.h"
#include "data/data.h"
#include "tests/test.h"

/* --- heaps --- */

static inline bool before(const uint32_t *place, const uint32_t *a, const uint32_t *b)
{
    (void)place;
    return *a < *b;
}

static inline void moved(uint32_t *place, const uint32_t *item, uint32_t at)
{
    place[*item] = at;
}

HEAP_DEFINE(two, uint32_t, uint32_t, 2, before, moved)
HEAP_DEFINE(four, uint32_t, uint32_t, 4, before, moved)

enum { ITEMS = 200 };

static uint32_t first_of(uint32_t *place, uint32_t *heap, uint32_t *n, bool binary)
{
    const uint32_t first = heap[0];
    --*n;
    (binary ? two_sink : four_sink)(place, heap, *n, 0, heap[*n]);
    return first;
}

/* All numbers come out in order, whatever the order of insertion, and each knows its place. */
static void test_heaps_sort(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (uint32_t round = 0; round < 100; round++) {
        const bool binary = round % 2;
        uint32_t heap[ITEMS], place[ITEMS], item[ITEMS], n = 0;
        const uint32_t items = (uint32_t)g_rand_int_range(rand, 1, ITEMS + 1);
        for (uint32_t i = 0; i < items; i++) {
            const uint32_t at = (uint32_t)g_rand_int_range(rand, 0, (gint32)i + 1);
            item[i] = item[at];
            item[at] = i;
        }
        for (uint32_t i = 0; i < items; i++) {
            (binary ? two_rise : four_rise)(place, heap, n, item[i]);
            n++;
            (binary ? two_walk : four_walk)(place, heap, n);
        }
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(place[heap[i]], i);
        for (uint32_t i = 0; i < items; i++)
            assert_int_equal(first_of(place, heap, &n, binary), i);
    }
}

/* An item that replaces another one moves up or down. */
static void test_heaps_settle(void **state)
{
    (void)state;
    uint32_t heap[] = {2, 10, 4, 12, 14}, place[20];
    two_settle(place, heap, 5, 3, 3);
    assert_int_equal(heap[1], 3);
    assert_int_equal(place[10], 3);
    two_settle(place, heap, 5, 0, 13);
    assert_int_equal(heap[0], 3);
    two_walk(place, heap, 5);
}

/* --- loops on threads --- */

typedef struct {
    gint begun[ITEMS];
    uint32_t bad; /* this round and all after it fail */
    gint threads;
} Rounds;

static void *begin(void *context)
{
    Rounds *rounds = context;
    g_atomic_int_inc(&rounds->threads);
    return g_new0(uint32_t, 1);
}

static bool step(void *context, void *own, uint32_t i, GError **error)
{
    Rounds *rounds = context;
    ++*(uint32_t *)own;
    g_atomic_int_inc(&rounds->begun[i]);
    return i < rounds->bad || kilter_fail(error, KILTER_ERROR_FAILED, "round %u", i);
}

static void test_every_round_is_run_once(void **state)
{
    (void)state;
    for (uint32_t threads = 0; threads < 6; threads++) {
        Rounds rounds = {.bad = ITEMS};
        const Parallel work = {ITEMS, threads, &rounds, begin, g_free, step};
        GError *error = NULL;
        assert_true(parallel_run(&work, NULL, &error));
        assert_no_error(error);
        assert_true(threads == 0 || rounds.threads == (gint)threads);
        for (uint32_t i = 0; i < ITEMS; i++)
            assert_int_equal(rounds.begun[i], 1);
    }
    const Parallel none = {.round = step};
    assert_true(parallel_run(&none, NULL, NULL));
}

/* However many threads there are, the error is that of the first round that fails. */
static void test_first_error(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        Rounds rounds = {.bad = 5 + i % 60};
        const Parallel work = {ITEMS, 1 + i % 8, &rounds, begin, g_free, step};
        g_autoptr(GError) error = NULL;
        g_autofree char *expected = g_strdup_printf("round %u", rounds.bad);
        uint32_t failed;
        assert_false(parallel_run(&work, &failed, &error));
        assert_string_equal(error->message, expected);
        assert_int_equal(failed, rounds.bad);
    }
}

/* --- texts of JSON --- */

/* A random value; keys and texts have letters, quotes, controls and letters of two bytes. */
static json_t *random_json(GRand *rand, uint32_t depth)
{
    static const char *const text[] = {
        "",     "plain", "a \"quote\"", "back\\slash", "line\nbreak",
        "\x01", "\x7f",  "b\xc3\xa4r",  "a/b",         "z.grad|gather(0)"};
    static const double real[] = {0,     -0.0, 1,       -1.5,         0.1,
                                  1e300, 1e-7, DBL_MIN, 123456789.125};
    static const json_int_t whole[] = {0, -1, 9, 10, INT64_MAX, INT64_MIN, 1234567};
    const uint32_t kind = (uint32_t)g_rand_int_range(rand, 0, depth > 0 ? 8 : 6);
    json_t *value = kind == 6 ? json_array() : json_object();
    for (gint32 n = g_rand_int_range(rand, 0, 5); kind >= 6 && n > 0; n--) {
        json_t *member = random_json(rand, depth - 1);
        if (kind == 6)
            json_array_append_new(value, member);
        else
            json_object_set_new(
                value, text[g_rand_int_range(rand, 0, G_N_ELEMENTS(text))], member);
    }
    if (kind >= 6)
        return value;
    json_decref(value);
    return kind == 0   ? json_null()
           : kind == 1 ? json_boolean(g_rand_boolean(rand))
           : kind == 2
               ? json_integer(whole[g_rand_int_range(rand, 0, G_N_ELEMENTS(whole))])
           : kind == 3 ? json_real(real[g_rand_int_range(rand, 0, G_N_ELEMENTS(real))])
                       : json_string(text[g_rand_int_range(rand, 0, G_N_ELEMENTS(text))]);
}

/* The texts are jansson's, byte for byte. */
static void test_json_texts(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (uint32_t i = 0; i < 2000; i++) {
        json_t *value = random_json(rand, 4);
        for (int canonical = 0; canonical < 2; canonical++) {
            const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_DIGITS) |
                                 (canonical ? JSON_COMPACT | JSON_SORT_KEYS : 0);
            char *expected = json_dumps(value, flags);
            g_autoptr(GString) text = g_string_new("");
            json_append(text, value, canonical);
            assert_string_equal(text->str, expected);
            free(expected);
        }
        json_decref(value);
    }
}

/* A member is found where the parser finds it, in values of any shape. */
static void test_json_has(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    g_autofree char *folder = g_dir_make_tmp("kilter-json-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "value.json", NULL);
    uint32_t found = 0;
    for (uint32_t i = 0; i < 500; i++) {
        json_t *value = random_json(rand, 4);
        if (i % 3 == 0 && json_is_object(value))
            json_object_set_new(value, "task", random_json(rand, 2));
        if (i % 3 == 1) /* deeper, or as a value */
            value = json_pack("{s:{s:o}, s:s, s:s}", "a", "task", value, "b", "task",
                              "c\"", "\\\"task\": ");
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        assert_true(g_file_set_contents(file, text, -1, NULL));
        assert_int_equal(json_file_has(file, "task"),
                         json_object_get(value, "task") != NULL);
        found += json_file_has(file, "task");
        free(text);
        json_decref(value);
    }
    assert_true(found > 10);
    assert_true(
        g_file_set_contents(file, "{\"task\": [", -1, NULL)); /* meant to be one */
    assert_true(json_file_has(file, "task"));
    assert_true(g_file_set_contents(file, "{\"task", -1, NULL));
    assert_false(json_file_has(file, "task"));
    remove(file);
    assert_false(json_file_has(file, "task"));
    remove(folder);
}

/* A name that many folders of the search path have is listed once. */
static void test_names_of_many_folders(void **state)
{
    (void)state;
    enum { FOLDERS = 4 };
    g_autofree char *root = g_dir_make_tmp("kilter-path-XXXXXX", NULL);
    g_autoptr(GString) path = g_string_new("");
    for (int i = 0; i < FOLDERS; i++) {
        g_autofree char *folder = g_strdup_printf("%s/%d/odd", root, i);
        g_autofree char *file = g_strconcat(folder, "/one.odd", NULL);
        g_string_append_printf(path, "%s%s/%d", i ? ":" : "", root, i);
        assert_int_equal(g_mkdir_with_parents(folder, 0700), 0);
        assert_true(g_file_set_contents(file, "", 0, NULL));
    }
    g_setenv("KILTER_PATH", path->str, TRUE);
    g_auto(GStrv) names = path_list("odd", ".odd");
    g_unsetenv("KILTER_PATH");
    assert_int_equal(g_strv_length(names), 1);
    assert_string_equal(names[0], "one");
    for (int i = 0; i < FOLDERS; i++) {
        g_autofree char *file = g_strdup_printf("%s/%d/odd/one.odd", root, i);
        g_autofree char *odd = g_path_get_dirname(file);
        g_autofree char *folder = g_path_get_dirname(odd);
        g_remove(file);
        g_rmdir(odd);
        g_rmdir(folder);
    }
    assert_int_equal(g_rmdir(root), 0);
}

/* Colours of terminals go, with all of their numbers and nothing beside them. */
static void test_uncolour(void **state)
{
    (void)state;
    char line[] = "a \033[1;31mred\033[m and [2m\033[0m", open[] = "b\033[1",
         plain[] = "\033x";
    text_uncolour(line);
    assert_string_equal(line, "a red and [2m");
    text_uncolour(open);
    assert_string_equal(open, "b");
    text_uncolour(plain);
    assert_string_equal(plain, "\033x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_many_folders),
        cmocka_unit_test(test_heaps_sort),
        cmocka_unit_test(test_heaps_settle),
        cmocka_unit_test(test_every_round_is_run_once),
        cmocka_unit_test(test_first_error),
        cmocka_unit_test(test_json_texts),
        cmocka_unit_test(test_json_has),
        cmocka_unit_test(test_uncolour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
