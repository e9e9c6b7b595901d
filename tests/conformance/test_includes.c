/* Dependencies point one way only: data <- sim <- balance <- synth, data <- exec, experiments on
 * top of all; and of another module only its public headers are included. */
#include "tests/conformance/tree.h"
#include "tests/test.h"

/* The headers that each module may include, in the order of MODULES: "data/" stands for all of them
 * that do not say in their first comment that they are private. */
static const char *const ALLOWED[] = {
    "",
    "data/",
    "data/ sim/ balance/balance.h",
    "data/ sim/",
    "data/",
    "data/ sim/ synth/synth.h balance/balance.h exec/exec.h synth/planners/planner.h "
    "synth/auto/portfolio.h synth/answer/complete.h synth/answer/ratios.h "
    "synth/tag/sfb_file.h",
};

/* The file that a line includes with quotes, or NULL. Caller frees. */
static char *included_file(const char *line)
{
    g_autoptr(GRegex) regex =
        g_regex_new("^\\s*#\\s*include\\s*\"([^\"]*)\"", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    return g_regex_match(regex, line, 0, &match) ? g_match_info_fetch(match, 1) : NULL;
}

/* Whether a header's first comment does not call it private. */
static bool is_public(const char *file)
{
    g_autofree char *path = g_build_filename(KILTER_HOME, file, NULL), *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return strcmp(file, "data/base/version.h") == 0; /* made by cmake */
    g_autoptr(GRegex) regex = g_regex_new("^/\\*(?:(?!\\*/).)*\\bprivate\\s[\\s*]*to\\b",
                                          G_REGEX_DOTALL | G_REGEX_CASELESS, 0, NULL);
    return !g_regex_match(regex, text, 0, NULL);
}

/* data.h gathers the headers for programs; within modules, headers and sources name what they
 * need. */
static bool is_allowed(uint32_t module, const char *file)
{
    if (strcmp(file, "data/data.h") == 0)
        return false;
    g_autofree char *own = g_strconcat(MODULES[module], "/", NULL);
    if (strstr(file, ".."))
        return false;
    if (g_str_has_prefix(file, own))
        return true;
    g_auto(GStrv) allowed = g_strsplit(ALLOWED[module], " ", -1);
    for (char **a = allowed; *a; a++)
        if (g_str_has_suffix(*a, "/") ? g_str_has_prefix(file, *a) && is_public(file)
                                      : strcmp(file, *a) == 0)
            return true;
    return false;
}

/* The number of forbidden includes in `text`, a file of `module`; prints each. */
static uint32_t forbidden(uint32_t module, const char *path, const char *text)
{
    uint32_t n = 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (uint32_t i = 0; lines[i]; i++) {
        g_autofree char *file = included_file(lines[i]);
        if (!file || is_allowed(module, file))
            continue;
        print_message("%s:%u: %s may not include \"%s\"\n", path, i + 1, MODULES[module],
                      file);
        n++;
    }
    return n;
}

static void test_sources_keep_the_rule(void **state)
{
    (void)state;
    static const char *const suffixes[] = {".c", ".h", ".cu", ".inc", NULL};
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODULES); m++) {
        g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
        tree_list(KILTER_HOME, MODULES[m], suffixes, paths);
        assert_true(paths->len > 0);
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *full =
                g_build_filename(KILTER_HOME, g_ptr_array_index(paths, i), NULL);
            g_autofree char *text = NULL;
            assert_true(g_file_get_contents(full, &text, NULL, NULL));
            n += forbidden(m, g_ptr_array_index(paths, i), text);
        }
    }
    assert_int_equal(n, 0);
}

/* Who finds bundled files: readers of clusters and models, whose contents a result's identity has
 * whole, and the options. Whatever else planners and the simulation read would be missing from
 * the identity. */
static void test_bundled_files_come_by_options(void **state)
{
    (void)state;
    static const char *const FINDERS[] = {
        "path.c",        "load.c",    "random.c",          "sheet_read.c",
        "sheet_peaks.c", "tuning.c",  "runtime.c",         "kernel_constants.c",
        "model.c",       "options.c", "planner_options.c", "families.c",
        "model_file.c",  NULL};
    static const char *const FOLDERS[] = {"data", "sim", "synth", "balance", "exec"};
    static const char *const suffixes[] = {".c", ".h", NULL};
    uint32_t n = 0;
    for (uint32_t m = 0; m < G_N_ELEMENTS(FOLDERS); m++) {
        g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
        tree_list(KILTER_HOME, FOLDERS[m], suffixes, paths);
        for (uint32_t i = 0; i < paths->len; i++) {
            g_autofree char *name = g_path_get_basename(paths->pdata[i]), *text = NULL;
            g_autofree char *full = g_build_filename(KILTER_HOME, paths->pdata[i], NULL);
            assert_true(g_file_get_contents(full, &text, NULL, NULL));
            if (!strstr(text, "path_find(") || g_strv_contains(FINDERS, name) ||
                strcmp(name, "path.h") == 0)
                continue;
            print_message("%s finds a bundled file beside the options\n",
                          (char *)paths->pdata[i]);
            n++;
        }
    }
    assert_int_equal(n, 0);
}

static uint32_t module_index(const char *name)
{
    uint32_t m = 0;
    while (strcmp(MODULES[m], name))
        m++;
    return m;
}

/* Tests the check on planted lines that it must and must not report. */
static void test_planted_lines(void **state)
{
    (void)state;
    static const struct {
        const char *module, *line;
        bool bad;
    } cases[] = {
        {"data", "#include \"data/graph/graph.h\"", false},
        {"data", "#include \"data/models/transformer.h\"", false},
        {"data", "#include \"sim/sim.h\"", true},
        {"sim", "#include \"data/data.h\"", true},
        {"sim", "#include \"data/graph/graph.h\"", false},
        {"sim", "#include \"data/graph/build.h\"", true},
        {"synth", "#include \"sim/evaluate.h\"", true},
        {"synth", "#include \"sim/tasks/quick_parts.h\"", true},
        {"exec", "#include \"data/graph/nothing.h\"", true},
        {"sim", "#include \"synth/synth.h\"", true},
        {"synth", "#include \"sim/sim.h\"", false},
        {"synth", "#include \"balance/balance.h\"", false},
        {"synth", "  #  include \"exec/exec.h\"", true},
        {"balance", "#include \"synth/synth.h\"", true},
        {"exec", "#include \"sim/sim.h\"", true},
        {"exec", "#include \"../sim/sim.h\"", true},
        {"exec", "#include \"exec/../sim/sim.h\"", true},
        {"experiments", "#include \"synth/synth.h\"", false},
        {"experiments", "#include \"synth/emit.h\"", true},
        {"experiments", "#include \"tests/test.h\"", true},
        {"data", "#include \"graph.h\"", true},
        {"data", "#include <glib.h>", false},
        {"data", "/* what #include \"sim/sim.h\" would bring */", false},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("int a;\n%s\nint b;\n", cases[i].line);
        uint32_t n = forbidden(module_index(cases[i].module), "planted", text);
        if (n != (uint32_t)cases[i].bad)
            print_error("%s: %s\n", cases[i].module, cases[i].line);
        assert_int_equal(n, cases[i].bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_lines),
        cmocka_unit_test(test_sources_keep_the_rule),
        cmocka_unit_test(test_bundled_files_come_by_options),
    };
    return cmocka_run_group_tests_name("includes", tests, NULL, NULL);
}
