/* A table with an option of each type: defaults, reading, writing, and refusals. */
#include "data/data.h"
#include "tests/test.h"

/* Keeps the longest text so far, none of which has a blank. */
static bool read_word(const char *text, const char **kept, GError **error)
{
    if (strchr(text, ' '))
        return kilter_fail(error, KILTER_ERROR_INPUT, "expected a word, got '%s'", text);
    if (strlen(text) > (*kept ? strlen(*kept) : 0))
        *kept = g_intern_string(text);
    return true;
}

#define LAW_WORDS(X) X(LAW_FLAT, "flat") X(LAW_NORMAL, "normal") X(LAW_GAMMA, "gamma")
#define SAMPLE_OPTION_TABLE(X)                 \
    X(CHOICE(LAW_WORDS), law, "law", "normal") \
    X(COUNT(1, 8), streams, "streams", "1")    \
    X(NUMBER(-1, 10), jitter, "jitter", "0.5") \
    X(BYTES, bucket, "bucket", "1MiB")         \
    X(TIME, restart, "restart", "0")           \
    X(TEXT, note, "note", "")                  \
    X(PARSED(read_word), word, "word", "")     \
    X(TEXT, way, "way", "none")

typedef struct {
    SAMPLE_OPTION_TABLE(OPTION_MEMBER)
} Sample;

static const Option row[] = {
#define X(...) OPTION_ROW(Sample, __VA_ARGS__)
    SAMPLE_OPTION_TABLE(X)
#undef X
};
static const OptionTable table = {row, G_N_ELEMENTS(row)};

static void set(Sample *sample, const char *key, const char *value)
{
    g_autoptr(GError) error = NULL;
    option_set(options_find(&table, key), sample, value, &error);
    assert_no_error(error);
}

static void test_defaults(void **state)
{
    (void)state;
    Sample sample;
    options_init(&table, &sample);
    assert_int_equal(sample.law, 1);
    assert_int_equal(sample.streams, 1);
    assert_true(sample.jitter == 0.5);
    assert_int_equal(sample.bucket, 1 << 20);
    assert_true(sample.restart == 0);
    assert_string_equal(sample.note, "");
    assert_null(sample.word);
    for (uint32_t i = 0; i < table.n; i++)
        assert_true(option_is_default(&table.row[i], &sample));
    assert_null(options_find(&table, "laws"));
}

/* A file of the search path with a default's name is no default. */
static void test_a_default_is_no_file(void **state)
{
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("kilter-test-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "none", NULL);
    assert_true(g_file_set_contents(file, "x", 1, NULL));
    g_setenv("KILTER_PATH", folder, TRUE);
    Sample sample;
    options_init(&table, &sample);
    assert_string_equal(sample.way, "none");
    set(&sample, "way", "none"); /* what is asked for is one */
    assert_string_equal(sample.way, file);
    g_unsetenv("KILTER_PATH");
    remove(file);
    remove(folder);
}

/* A set option keeps its value, is no longer at its default, and can be read again from its
 * text. */
static void test_set_and_get(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *text;
    } CASE[] = {{"law", "flat", "flat"},
                {"law", "gamma", "gamma"},
                {"streams", "8", "8"},
                {"jitter", "-1", "-1"},
                {"jitter", "0.1", "0.1"},
                {"bucket", "0", "0"},
                {"bucket", "25 MiB", "25 MiB"},
                {"bucket", "1.5kB", "1500 B"},
                {"restart", "0.0100s", "10 ms"},
                {"note", "of all", "of all"},
                {"word", "together", "together"},
                {"word", "all", "together"}};
    Sample sample, again;
    options_init(&table, &sample);
    options_init(&table, &again);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        const Option *option = options_find(&table, CASE[i].key);
        set(&sample, CASE[i].key, CASE[i].value);
        g_autofree char *text = option_get(option, &sample);
        assert_string_equal(text, CASE[i].text);
        assert_false(option_is_default(option, &sample));
        set(&again, CASE[i].key, text);
        g_autofree char *same = option_get(option, &again);
        assert_string_equal(same, text);
    }
    assert_memory_equal(&sample, &again, sizeof sample);
    set(&sample, "law", "normal");
    assert_true(option_is_default(options_find(&table, "law"), &sample));
}

/* The message names the option and what was expected; the value stays what it was. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message;
    } CASE[] = {
        {"law", "even", "option 'law': expected one of flat, normal, gamma, got 'even'"},
        {"streams", "0", "option 'streams': expected an integer from 1 to 8, got '0'"},
        {"streams", "9", "option 'streams': expected an integer from 1 to 8, got '9'"},
        {"streams", "2.5",
         "option 'streams': expected an integer from 1 to 8, got '2.5'"},
        {"streams", "", "option 'streams': expected an integer from 1 to 8, got ''"},
        {"jitter", "10.1",
         "option 'jitter': expected a number from -1 to 10, got '10.1'"},
        {"jitter", "nan", "option 'jitter': expected a number from -1 to 10, got 'nan'"},
        {"jitter", "1x", "option 'jitter': expected a number from -1 to 10, got '1x'"},
        {"bucket", "25", "option 'bucket': expected "},
        {"bucket", "-1 B", "option 'bucket': expected "},
        {"restart", "1 B", "option 'restart': expected "},
        {"word", "two words", "option 'word': expected a word, got 'two words'"},
    };
    Sample sample, before;
    options_init(&table, &sample);
    before = sample;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        const Option *option = options_find(&table, CASE[i].key);
        assert_false(option_set(option, &sample, CASE[i].value, &error));
        assert_error(error, KILTER_ERROR_INPUT, CASE[i].message);
        assert_memory_equal(&sample, &before, sizeof sample);
    }
}

static void test_help(void **state)
{
    (void)state;
    g_autoptr(GString) help = g_string_new(""), keys = g_string_new("first");
    options_help(&table, help);
    assert_non_null(strstr(help->str,
                           "\n  streams           1          communication streams per "
                           "device; "));
    assert_non_null(strstr(help->str, "\n  note              -          \n"));
    options_keys(&table, keys);
    assert_string_equal(keys->str,
                        "first, law, streams, jitter, bucket, restart, note, word, way");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_a_default_is_no_file),
        cmocka_unit_test(test_set_and_get), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
