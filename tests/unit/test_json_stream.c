/* JSON as tools write it: all that is whole is read, and the place of the rest is known. */
#include "data/base/json_stream.h"
#include "tests/support/memory_file.h"
#include "tests/test.h"

/* Writes what it is told: `{` `[` key: "text" number, `!` for items that were lost. */
static bool begin(void *context, bool array)
{
    g_string_append(context, array ? "[" : "{");
    return true;
}

static void end(void *context)
{
    g_string_append(context, ".");
}

static void key(void *context, const char *text, size_t length)
{
    g_string_append_len(context, text, (gssize)length);
    g_string_append_c(context, ':');
}

static void text(void *context, const char *text, size_t length)
{
    g_string_append_printf(context, "'%.*s' ", (int)length, text);
}

static void number(void *context, double value)
{
    g_string_append_printf(context, "%g ", value);
}

static void lost(void *context, uint32_t depth)
{
    g_string_append_printf(context, "!%u", depth);
}

static const JsonEvents EVENTS = {begin, end, key, text, number, lost};

/* The calls as text, and the faults: numbers and places as "odd lost cut", each as
 * n@line:column. */
static char *told(const char *json, char **faults)
{
    JsonFaults f;
    g_autoptr(GString) out = g_string_new(NULL);
    int memory;
    g_autofree char *file = memory_file_open(json, strlen(json), &memory);
    g_autoptr(Stream) stream = stream_open(file, NULL);
    close(memory);
    assert_true(json_stream(stream, &EVENTS, out, &f));
    g_autoptr(GString) said = g_string_new(NULL);
    const JsonFault *const each[] = {&f.odd, &f.lost, &f.cut};
    for (size_t i = 0; i < G_N_ELEMENTS(each); i++)
        if (each[i]->n > 0)
            g_string_append_printf(said, "%c%d@%d:%d ", "olc"[i], (int)each[i] -> n,
                                   (int)each[i] -> line, (int)each[i] -> column);
    *faults = g_string_free(g_steal_pointer(&said), FALSE);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *json, *told, *faults;
    } CASE[] = {
        {"{\"a\": [1, -2.5e1, true, null, \"x\\n\\u00e9\\ud83d\\ude00\"]}",
         "{a:[1 -25 'x\n\xc3\xa9\xf0\x9f\x98\x80' ..", ""},
        {"\xef\xbb\xbf[]", "[.", ""},
        {"{\"a\": inf, \"b\": -Infinity, \"c\": NaN, \"d\": nan(ind), \"e\": 1.#INF, "
         "\"f\": None}",
         "{a:b:c:d:e:f:.", "o6@1:7 "},
        {"{\"a\": .5, \"b\": +1, \"c\": 07}", "{a:0.5 b:1 c:7 .", "o3@1:7 "},
        {"[\"\\x41 \\q\", \"C:\\Users\"]", "['\\x41 \\q' 'C:\\Users' .", "o3@1:3 "},
        {"[\"a\tb\"]", "['a\tb' .", "o1@1:4 "},
        {"[1, 2, ]", "[1 2 .", ""},
        {"[1 , , 2]", "[1 2 .", "o1@1:6 "},
        {"[{\"a\": 1} {\"a\": 2}]", "[{a:1 .{a:2 ..", "o1@1:11 "},
        {"[{\"a\": 1}, {\"a\" 2, \"b\": [3]}, {\"a\": 4}]", "[{a:1 .{!1{a:4 ..",
         "l1@1:17 "},
        {"{\"t\": [{\"a\": 1},\n {\"a\": @},\n {\"a\": 3}], \"u\": 5}",
         "{t:[{a:1 .{a:!2{a:3 ..u:5 .", "l1@2:8 "},
        {"{\"t\": [{\"a\": 1}, {\"a\": 2, \"b", "{t:[{a:1 .{a:2 ", "c1@1:29 "},
        {"[{\"a\": 12", "[{a:", "c1@1:10 "},
        {"[{\"a\": 1},\n{\"a\": 2},\n", "[{a:1 .{a:2 .", "c1@3:1 "},
        {"{\"a\" 1}", "{", "c1@1:6 "},
        {"", "", "c1@1:1 "},
        {"{} {}", "{.", "l1@1:4 "},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *faults = NULL, *got = told(CASE[i].json, &faults);
        assert_string_equal(got, CASE[i].told);
        if (strcmp(faults, CASE[i].faults) != 0)
            fail_msg("%s: '%s', not '%s'", CASE[i].json, faults, CASE[i].faults);
    }
}

/* Deeper than the limit an item is lost, and the next one is read. */
static void test_depth(void **state)
{
    (void)state;
    g_autofree char *deep = g_strnfill(1000, '['), *faults = NULL;
    g_autofree char *json = g_strdup_printf("[{\"a\": %s}, {\"b\": 1}]", deep);
    g_autofree char *got = told(json, &faults);
    assert_non_null(strstr(got, "!1{b:1 .."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
