/* Templates, piece by piece (experiments/render.h). */
#include "experiments/render.h"
#include "tests/test.h"

/* clang-format off */
static const char VALUE[] =
    "{'name': 'vgg', 'flops': 1.0362e9, 'n': 1, 'time_s': 0.0123, 'part': 0.25, 'none': null, 'no': false, 'empty': '', 'zero': 0,"
    " 'in': {'deep': [10, 20.5]}, 'word': 'ring', 'list': ['a1', 'a2', 'a3', 'b', 'c', 'd'], 'nothing': [],"
    " 'rows': [{'name': 'x', 'n': 3}, {'name': 'y', 'n': 3}, {'name': 'z', 'n': 4, 'skip': true}]}";
static const struct {
    const char *text, *expected;
} CASES[] = {
    {"{name} {n} {part} {missing} {none}", "vgg 1 0.25 - -"},
    {"<{name:6}|{name:-6}>", "<   vgg|vgg   >"},
    {"{time_s:time} {time_s:9time}", "12.3 ms   12.3 ms"},
    {"{part:%} {part:.2%} {part:+8.0%} {part:+.3f} {time_s:.2ms} {part:g}",
     "25.0 % 25.00 %    +25 % +0.250 12.30 ms 0.25"},
    {"{flops:flop} {flops:si} {part:si} {n:si} {in.deep.1:flop}", "1.04 GFLOP 1.04 B 0 1 20.5 FLOP"},
    {"{n} rank{n:s}, {zero} rank{zero:s}", "1 rank, 0 ranks"},
    {"{in.deep.1} {in.deep} {list:count} {list:.4over}", "20.5 10, 20.5 6 2"},
    {"{list:names}", "a1, a2, a3, b and 2 more"},
    {"{list:rest}", "a2-3, b, c, d"},
    {"a[ {name}][ {none}][ {no}][ {empty}][ {nothing}][ {zero}]", "a vgg 0"},
    {"[{none}first|{name} second|third]", "vgg second"},
    {"[{none}first|{missing}]", ""},
    {"[outer [{none}inner]stays]", "outer stays"},
    {"[{?n}one][{?zero}two][{!zero}three][{?word=ring}four][{!word=tree}five][{?list>6}six][{?n>0}seven]",
     "onethreefourfiveseven"},
    {"[{n:.0over} more][{n:.1over} more]", "1 more"},
    {"[{list:.6over} more][{?list>5}many]", "many"},
    {"[=6:{name}]|[=-6:{name}]|", "   vgg|vgg   |"},
    {"[*list/, <2:{.}]", "a1, a2"},
    {"[*rows:{#}{name}{part};]", "0x0.25;1y0.25;2z0.25;"},
    {"[*rows/+:[{!skip}{name}]]", "x+y"},
    {"[*rows:{alike}{name}& {n};]", "2x 3;1z 4;"},
    {"[*rows:{alike}&;]", "3;"},
    {"[*rows:{alike}{name}& {n};&{name}]", "1x 3;1y 3;1z 4;"},
    {"[*rows:[{^n}{n}:]{name}]", "3:xy4:z"},
    {"[*rows:{.name}[{.part}!];]", "x;y;z;"},
    {"[*in/,:{key}={value}]", "deep=10, 20.5"},
    {"\\[{name}\\]", "[vgg]"},
};
/* clang-format on */

static void test_cases(void **state)
{
    (void)state;
    g_autofree char *text = g_strdelimit(g_strdup(VALUE), "'", '"');
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *got = render(CASES[i].text, value);
        assert_string_equal(got, CASES[i].expected);
    }
    json_decref(value);
}

/* Pages: members are escaped, and numbers keep their units. */
static void test_pages(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"<p>{a}</p>", "<p>x&lt;y &amp; z</p>"},
        {"{a:raw}", "x<y & z"},
        {"{b:n}, {c:n}, {d:n}, {e:n}, {f:n}", "114,000, 0.117, 8,192, 1.00, 0"},
        {"{b:time} {c:+time} {c:n%}", "31.7\u00a0h 117 <small>ms</small> 11.7\u00a0%"},
        {"[*l:<i>{.}</i>]", "<i>&lt;</i><i>2</i>"},
    };
    json_t *value =
        json_pack("{s:s, s:f, s:f, s:i, s:f, s:i, s:[s, i]}", "a", "x<y & z", "b",
                  114031.8, "c", 0.11692, "d", 8192, "e", 0.99999, "f", 0, "l", "<", 2);
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = render_html(cases[i].text, value);
        assert_string_equal(got, cases[i].expected);
    }
    json_decref(value);
}

/* Members of a manual page are escaped, what the template says is not. */
static void test_manual_pages(void **state)
{
    (void)state;
    json_t *value = json_pack("{s:s, s:s}", "a", ".x-y\n'z \\", "b", "run-trace");
    g_autofree char *got = render_roff(".B {a}\n{b:raw} {b}", value);
    assert_string_equal(got, ".B \\&.x\\-y\n\\&'z \\e\nrun-trace run\\-trace");
    json_decref(value);
}

/* A value is printed as it is, even if it looks like a template. */
static void test_values_are_no_templates(void **state)
{
    (void)state;
    json_t *value = json_pack("{s:s, s:[s]}", "name", "[{name}|%s\\", "list", "{#}");
    g_autofree char *got = render("{name} [*list:{.}]", value);
    assert_string_equal(got, "[{name}|%s\\ {#}");
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_manual_pages),
        cmocka_unit_test(test_values_are_no_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
