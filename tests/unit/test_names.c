/* Finding things by name, and the message for an unknown name. */
#include "data/data.h"
#include "tests/test.h"

static const char *const KNOWN[] = {"vgg19",    "vit",  "bert-base",
                                    "bert-moe", "gpt2", NULL};

static void test_found(void **state)
{
    (void)state;
    uint32_t index;
    GError *error = NULL;
    assert_true(names_find("model", "bert-moe", KNOWN, &index, &error));
    assert_int_equal(index, 3);
}

static void test_hints(void **state)
{
    (void)state;
    static const struct {
        const char *name, *hint;
    } cases[] = {{"vgg18", "; did you mean 'vgg19'?"},
                 {"vgg", "; did you mean 'vgg19'?"},
                 {"VGG19", "; did you mean 'vgg19'?"},
                 {"Bert", "; did you mean 'bert-base' or 'bert-moe'?"},
                 {"moe", "; did you mean 'bert-moe'?"},
                 {"b-moe", "; did you mean 'bert-moe'?"},
                 {"oe", ""},
                 {"ert-ba", ""}, /* inside of a word */
                 {"itv", ""},
                 {"bert-mo", "; did you mean 'bert-moe'?"},
                 {"bretbase", "; did you mean 'bert-base'?"},
                 {"gtp2", "; did you mean 'gpt2'?"},
                 {"openai-community/GPT2", "; did you mean 'gpt2'?"},
                 {"google/vit-large-patch16", "; did you mean 'vit'?"},
                 {"bert-base-uncased", "; did you mean 'bert-base'?"},
                 {"vitamin", ""},
                 {"resnet", ""},
                 {"", ""}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *hint = names_hint(cases[i].name, KNOWN);
        if (strcmp(hint, cases[i].hint) != 0)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: '%s', expected '%s'", cases[i].name,
                         hint, cases[i].hint);
    }
    static const char *const llama[] = {"llama", "llama-3.1-8b", NULL};
    g_autofree char *other = names_hint("llama-3.1-9b", llama),
                    *tuned = names_hint("meta-llama/Llama-3.1-8B-Instruct", llama);
    assert_string_equal(other, "; did you mean 'llama-3.1-8b'?");
    assert_string_equal(tuned, "; did you mean 'llama-3.1-8b'?");
    static const char *const qwen[] = {"qwen3-14b", "qwen3-30b-a3b", "qwen3-8b", NULL};
    g_autofree char *base = names_hint("Qwen/Qwen3-8B-Base", qwen);
    assert_string_equal(base, "; did you mean 'qwen3-8b'?");
    static const char *const keys[] = {"batch", "global_batch", "seq", NULL};
    g_autofree char *same = names_hint("gbs", keys), *none = names_hint("mbs", keys);
    assert_string_equal(same, "; did you mean 'global_batch'?");
    assert_string_equal(none, "");
    g_autofree char *longer = g_strnfill(1000, 'v');
    g_autofree char *hint = names_hint(longer, KNOWN);
    assert_string_equal(hint, "");
}

static void test_unknown(void **state)
{
    (void)state;
    uint32_t index;
    g_autoptr(GError) error = NULL;
    assert_false(names_find("model", "vti", KNOWN, &index, &error));
    assert_error(error, KILTER_ERROR_INPUT, "unknown model 'vti'; did you mean 'vit'?");
    g_clear_error(&error);
    assert_false(names_find("model", "resnet", KNOWN, &index, &error));
    assert_error(
        error, KILTER_ERROR_INPUT,
        "unknown model 'resnet'; expected one of vgg19, vit, bert-base, bert-moe, "
        "gpt2");
    /* A long list ends where a line does. */
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    for (uint32_t i = 0; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("name-%02u", i);
        g_strv_builder_add(builder, name);
    }
    g_auto(GStrv) many = g_strv_builder_end(builder);
    g_autofree char *list = names_expected("xyz", (const char *const *)many);
    assert_true(strlen(list) < 200);
    assert_true(g_str_has_suffix(list, " more") && strstr(list, ", name-09"));
}

static void test_specs(void **state)
{
    (void)state;
    g_autoptr(Spec) bare = spec_read("vit");
    assert_string_equal(bare->word, "vit");
    assert_int_equal(bare->n, 0);
    g_autoptr(Spec) spec = spec_read("hap:segments=metis:4, ratios=even,odd,x=");
    assert_string_equal(spec->word, "hap");
    assert_int_equal(spec->n, 4);
    assert_string_equal(spec->key[0], "segments");
    assert_string_equal(spec->value[0], "metis:4");
    assert_string_equal(spec->key[1], "ratios");
    assert_string_equal(spec->key[2], "odd");
    assert_null(spec->value[2]);
    assert_string_equal(spec->value[3], "");
    g_autoptr(Spec) pairs = spec_read_pairs("a=b=c");
    assert_string_equal(pairs->key[0], "a");
    assert_string_equal(pairs->value[0], "b=c");
    g_autoptr(Spec) none = spec_read_pairs("");
    assert_int_equal(none->n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
