/* Texts on a narrow terminal: nothing is wider, no word is broken, and tables stay tables. */
#include "experiments/cli/screen.h"
#include "tests/test.h"

static const char TABLE[] =
    "Machines of the lab\n\n"
    "  machines                GPUs   iteration   tokens/s    MFU  planner, limit\n"
    "* 16 h100, 16 a100          32     46.8 ms     218898 58.9 %  joint (gpu), links\n"
    "  16 h100                   16     70.1 ms     146106 62.8 %  amp (gpu), h100\n"
    "\n  kilter plan llama70:seq=8192 lab.yaml --planner joint --granularity gpu\n";

/* Every line fits, and the words are the same ones in the same order. */
static void check_fits(const char *text, uint32_t width)
{
    g_autofree char *shown = screen_text(text, width, false);
    g_auto(GStrv) line = g_strsplit(shown, "\n", -1);
    for (char **at = line; *at; at++)
        if (g_utf8_strlen(*at, -1) > width)
            TEST_FAIL_AT(__FILE__, __LINE__, "wider than %u: %s", width, *at);
    g_autoptr(GRegex) blanks = g_regex_new("[ \\n]+|\\\\\\n", 0, 0, NULL);
    g_autofree char *before = g_regex_replace(blanks, text, -1, 0, "", 0, NULL);
    g_autofree char *after = g_regex_replace(blanks, shown, -1, 0, "", 0, NULL);
    assert_string_equal(after, before);
}

static void test_widths(void **state)
{
    (void)state;
    for (uint32_t width = 40; width < 120; width++)
        check_fits(TABLE, width);
    g_autofree char *whole = screen_text(TABLE, 0, false);
    assert_string_equal(whole, TABLE);
}

/* Narrower gutters come first, then columns below. */
static void test_tables(void **state)
{
    (void)state;
    g_autofree char *narrow = screen_text(TABLE, 72, false);
    if (!strstr(narrow,
                "\n* 16 h100, 16 a100    32    46.8 ms    218898 58.9 %  joint (gpu), "
                "links\n"))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s", narrow);
    g_autofree char *folded = screen_text(TABLE, 48, false);
    if (!strstr(folded, "\n* 16 h100, 16 a100    32    46.8 ms\n"))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s", folded);
}

/* Columns that do not fit below the first ones go below these. */
static void test_columns(void **state)
{
    (void)state;
    static const char WIDE[] =
        "  memory per GPU   weights  gradients  optimizer  total\n"
        "  a100            12.0 GiB   1.00 GiB   2.00 GiB  15.0 GiB of 80.0 GiB\n";
    for (uint32_t width = 40; width < 80; width++)
        check_fits(WIDE, width);
    g_autofree char *narrow = screen_text(WIDE, 40, false);
    if (!strstr(narrow, "\n  a100            12.0 GiB   1.00 GiB\n      2.00 GiB  15.0 "
                        "GiB of 80.0 GiB\n"))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s", narrow);
    /* beyond the columns that are looked at */
    g_autoptr(GString) long_row = g_string_new("");
    for (uint32_t i = 0; i < 2 * 60; i++)
        g_string_append_printf(long_row, "%u  %s", 100000000 + i,
                               i % 60 == 59 ? "\n" : "");
    check_fits(long_row->str, 100);
    /* a number keeps its unit */
    g_autofree char *line =
        screen_text("the iteration takes at most about 4.47 s\n", 39, false);
    assert_string_equal(line, "the iteration takes at most about\n    4.47 s\n");
}

/* A command goes on behind a backslash, so that it can be copied. */
static void test_commands(void **state)
{
    (void)state;
    g_autofree char *narrow = screen_text(TABLE, 50, false);
    assert_non_null(strstr(narrow, "lab.yaml \\\n"));
    /* A word longer than a line goes on without blanks, so that it stays one word. */
    static const char LONG[] =
        "  kilter plan llama:global_batch=128,seq=4096,precision=bf16,optimizer=sgd\n";
    check_fits(LONG, 40);
    g_autofree char *word = screen_text(LONG, 40, false);
    if (!strstr(word, ",\\\nprecision=bf16,"))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s", word);
    check_fits("  kilter plan llama:global_batch=128,seq=40960,tp=1,dp=2 "
               "machines-of-a-lab/with-a-long-name.yaml\n",
               40);
    /* Quoted text stays as it is. */
    static const char QUOTED[] = "'models of a lab/the first one, with a name.json'";
    g_autofree char *line = g_strdup_printf("  kilter plan %s dgx-a100\n", QUOTED);
    g_autofree char *quoted = screen_text(line, 40, false);
    if (!strstr(quoted, QUOTED))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s", quoted);
}

/* A specification longer than a line is broken behind commas; usage is no command to copy. */
static void test_long_words(void **state)
{
    (void)state;
    static const char SPEC[] =
        "vgg19:batch=64,global_batch=1024,image=32,width=64,pool=7 on hap-16\n"
        "  kilter plan [OPTION] MODEL CLUSTER | PLAN.json --cluster CLUSTER\n";
    check_fits(SPEC, 40);
    g_autofree char *narrow = screen_text(SPEC, 40, false);
    assert_non_null(strstr(narrow, "global_batch=1024,\n    image=32"));
    assert_null(strchr(narrow, '\\'));
}

static void test_colors(void **state)
{
    (void)state;
    g_autofree char *plain = screen_text("it " SCREEN_BAD "fails" SCREEN_END, 0, false),
                    *red = screen_text("it " SCREEN_BAD "fails" SCREEN_END, 80, true);
    assert_string_equal(plain, "it fails");
    assert_string_equal(red, "it \033[31mfails\033[0m");
    g_autoptr(GError) error = NULL;
    assert_true(screen_set_color("never", &error));
    assert_false(screen_set_color("alway", &error));
    assert_non_null(strstr(error->message, "did you mean 'always'?"));
}

static void test_terms(void **state)
{
    (void)state;
    g_autofree char *text =
        screen_refill("Plans a\nmodel.\n\n  MFU   what is\n        used\n"
                      "  HFU   the same",
                      60);
    assert_string_equal(text,
                        "Plans a model.\n\n  MFU   what is used\n  HFU   the same\n");
    g_autofree char *three = screen_paragraph("one two three four five six", 9, 2, 2);
    assert_string_equal(three, "one two\n  three ...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),   cmocka_unit_test(test_tables),
        cmocka_unit_test(test_commands), cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_columns),  cmocka_unit_test(test_colors),
        cmocka_unit_test(test_terms)};
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
