/* Every command that README.md, CONTRIBUTING.md, docs/ and the help texts show is run, in the order
 * of reading and in one folder per text, and must succeed. README, docs/commands.md and the help
 * texts share a folder. Commands that take seconds are left to the long test, and commands that
 * need measurements or models of others (DIR, ...) are left out. In a build without ranks, commands
 * that run ranks must say why they cannot, and commands that need their results are left out. */
#include "exec/exec.h"
#include "tests/support/program_commands.h"

static const char *const LEFT_OUT[] = {"--measured", "all_reduce.json", "all_reduce.log",
                                       "Llama-3.1-8B/config.json", "topo.xml"};
/* Execution traces of Chakra, which a build without protobuf-c neither writes nor reads. */
static const char *const CHAKRA[] = {"--chakra", ".et "};

static const char *const RUNS_RANKS[] = {"kilter exec", "kilter profile"};
/* Commands that take seconds, and those that read their results. */
static const char *const TAKES_LONG[] = {
    "kilter exec",      "kilter profile",
    "kilter calibrate", "kilter validate",
    "mine.yaml",        "kilter advise",
    "hap-fig13",        "hap-fig14",
    "--for megatron",   "export plan.json --to megatron",
    "--theory vit",     "--budget",
    "--segments ops",   "plot results.db",
    "tag-bert-large",   "mixed24.yaml -p joint",
    "other.json",       "--planner auto"};
static const char *const NEEDS_RANKS[] = {"kilter calibrate", "kilter validate",
                                          "mine.yaml"};

static bool has_any(const char *line, const char *const *words, guint n)
{
    for (guint i = 0; i < n; i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

/* The command of a line that starts with `prefix`, up to the remark behind two blanks; NULL: none.
 * Caller frees. */
static char *command_of(const char *line, const char *prefix)
{
    if (!g_str_has_prefix(line, prefix))
        return NULL;
    const char *rest = line + strlen(prefix), *remark = strstr(rest, "  ");
    g_autofree char *words =
        remark ? g_strndup(rest, (gsize)(remark - rest)) : g_strdup(rest);
    return g_strconcat("kilter ", words, NULL);
}

static void add_commands(GPtrArray *commands, const char *text, const char *prefix)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        char *command = command_of(lines[i], prefix);
        if (command)
            g_ptr_array_add(commands, command);
    }
}

/* Writes the files of fenced blocks whose first line ends in a file's name: "```yaml lab.yaml". */
static void write_blocks(const Sandbox *box, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        const char *name = strrchr(lines[i], ' ');
        if (!g_str_has_prefix(lines[i], "```") || !name)
            continue;
        g_autoptr(GString) block = g_string_new(NULL);
        while (lines[i + 1] && strcmp(lines[++i], "```") != 0)
            g_string_append_printf(block, "%s\n", lines[i]);
        sandbox_write(box, name + 1, block->str);
    }
}

static char *text_of(const char *file)
{
    g_autofree char *path = g_build_filename(KILTER_HOME, file, NULL);
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        TEST_FAIL_AT(__FILE__, __LINE__, "no %s", path);
    return text;
}

static void add_text(const Sandbox *box, GPtrArray *commands, const char *file)
{
    g_autofree char *text = text_of(file);
    write_blocks(box, text);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        char *command = command_of(lines[i], "    build/kilter ");
        if (!command)
            command = command_of(lines[i], "    kilter ");
        if (!command && g_str_has_prefix(lines[i], "    sqlite3 "))
            command = g_strdup(g_strstrip(lines[i]));
        if (command)
            g_ptr_array_add(commands, command);
    }
}

/* The examples of every command that `kilter --help` lists. */
static void add_help(const Sandbox *box, GPtrArray *commands)
{
    g_auto(GStrv) names = program_commands(box);
    for (char **name = names; *name; name++) {
        g_autofree char *line = g_strconcat(*name, " --help", NULL);
        g_auto(Ran) ran = program_run_good(box, line);
        const char *examples = strstr(ran.out, "Example:\n");
        if (!examples)
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s shows no example", line);
        add_commands(commands, examples, "  kilter ");
    }
    assert_true(g_strv_length(names) > 10);
}

/* Runs a line of the shell in which `kilter` is the program. Its output; *good: it succeeded. */
static char *run_shell(const Sandbox *box, const char *command, bool *good)
{
    g_autofree char *folder = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *path = g_strconcat(folder, ":", g_getenv("PATH"), NULL);
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_set_cwd(launcher, box->folder);
    g_subprocess_launcher_setenv(launcher, "PATH", path, TRUE);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawn(launcher, &error, "sh", "-c", command, NULL);
    assert_no_error(error);
    char *out = NULL;
    assert_true(g_subprocess_communicate_utf8(process, NULL, NULL, &out, NULL, NULL));
    *good =
        g_subprocess_get_if_exited(process) && g_subprocess_get_exit_status(process) == 0;
    return out;
}

static void run_command(const Sandbox *box, const char *command)
{
    bool good;
    const gint64 start = g_get_monotonic_time();
    g_autofree char *out = run_shell(box, command, &good);
    print_message("%s, %.1f s: %s\n", good ? "runs" : "fails",
                  (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC, command);
    if (!good)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s\n%s", command, out);
}

/* In a build without ranks the command must say that, and how to get them. */
static void refuse_command(const Sandbox *box, const char *command)
{
    bool good;
    g_autofree char *out = run_shell(box, command, &good);
    if (good || !strstr(out, "no mpi backend") || !strstr(out, "./run setup"))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s\n%s", command, out);
}

static void run_all(const Sandbox *box, const GPtrArray *commands)
{
    g_autofree char *sqlite = g_find_program_in_path("sqlite3");
    const bool ranks = exec_mpi_built();
#ifdef KILTER_PROTOBUF_C
    const bool chakra = true;
#else
    const bool chakra = false;
#endif
    for (guint i = 0; i < commands->len; i++) {
        const char *command = commands->pdata[i];
        if (has_any(command, LEFT_OUT, G_N_ELEMENTS(LEFT_OUT)) ||
            (g_str_has_prefix(command, "sqlite3") && !sqlite) ||
            (!chakra && has_any(command, CHAKRA, G_N_ELEMENTS(CHAKRA))))
            continue;
        if (!ranks && has_any(command, RUNS_RANKS, G_N_ELEMENTS(RUNS_RANKS)))
            refuse_command(box, command);
        else if (!g_getenv("KILTER_ALL") &&
                 has_any(command, TAKES_LONG, G_N_ELEMENTS(TAKES_LONG)))
            continue;
        else if (ranks || !has_any(command, NEEDS_RANKS, G_N_ELEMENTS(NEEDS_RANKS)))
            run_command(box, command);
    }
}

/* The text with one blank in place of all blanks and ends of lines. Caller frees. */
static char *without_blanks(const char *text)
{
    g_autoptr(GRegex) blanks = g_regex_new("\\s+", 0, 0, NULL);
    g_autofree char *one = g_regex_replace_literal(blanks, text, -1, 0, " ", 0, NULL);
    return g_strdup(g_strstrip(one));
}

/* The pieces of a block, between lines "...", are in the output, in this order. */
static void check_output(const char *command, const char *out, const char *block)
{
    g_autofree char *all = without_blanks(out);
    g_auto(GStrv) piece = g_strsplit(block, "...\n", -1);
    const char *at = all;
    for (char **next = piece; *next; next++) {
        g_autofree char *want = without_blanks(*next);
        const char *found = strstr(at, want);
        if (!found)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s\nprints\n%s\nexpected\n%s", command, out,
                         *next);
        at = found + strlen(want);
    }
}

/* README's blocks of output are what the commands before them print. */
static void test_outputs(void **state)
{
    (void)state;
    if (!g_getenv("KILTER_ALL"))
        skip(); /* they plan for seconds */
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *text = text_of("README.md"), *command = NULL;
    write_blocks(box, text);
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    uint32_t checked = 0;
    g_autofree char *out = NULL;
    for (uint32_t i = 0; line[i] && checked < 2; i++) {
        char *next = command_of(line[i], "    build/kilter ");
        if (next) {
            bool good;
            g_free(command);
            command = next;
            g_free(out);
            out = run_shell(box, command, &good);
            assert_true(good);
        } else if (strcmp(line[i], "```output") == 0) {
            g_autoptr(GString) block = g_string_new(NULL);
            while (line[i + 1] && strcmp(line[++i], "```") != 0)
                g_string_append_printf(block, "%s\n", line[i]);
            check_output(command, out, block->str);
            checked++;
        }
    }
    assert_int_equal(checked, 2);
}

/* Copies a file of the project, as README's commands are given in the project's folder. */
static void bring(const Sandbox *box, const char *file)
{
    g_autofree char *from = g_build_filename(KILTER_HOME, file, NULL);
    g_autofree char *to = g_build_filename(box->folder, file, NULL);
    g_autofree char *folder = g_path_get_dirname(to);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(from, &text, NULL, NULL));
    assert_int_equal(g_mkdir_with_parents(folder, 0700), 0);
    sandbox_write(box, file, text);
}

/* The list of all commands, in the folder of README's. */
static const char COMMANDS[] = "docs/commands.md";

static void test_readme(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    bring(box, "experiments/hap-fig13.yaml");
    sandbox_write(box, "tasks.json",
                  "{\"n_devices\": 1, \"link_bytes_per_us\": [], \"path\": [[]], "
                  "\"transfer_overhead_us\": 0, \"group\": [], \"buffer\": [[1024, 0]], "
                  "\"task\": [[\"C\", 0, 5, [], [], [0]]]}");
    g_autoptr(GPtrArray) commands = g_ptr_array_new_with_free_func(g_free);
    add_text(box, commands, "README.md");
    add_text(box, commands, COMMANDS);
    /* The trials that the example of `kilter fit` reads. */
    g_autofree char *trials = text_of("docs/calibration.md");
    write_blocks(box, trials);
    assert_true(commands->len > 10);
    add_help(box, commands);
    run_all(box, commands);
}

/* All texts but README. Free with g_strfreev. */
static char **other_texts(void)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    g_autoptr(GDir) dir = g_dir_open(KILTER_HOME "/docs", 0, NULL);
    const char *name;
    g_strv_builder_add(list, "CONTRIBUTING.md");
    while (dir && (name = g_dir_read_name(dir)))
        if (g_str_has_suffix(name, ".md")) {
            g_autofree char *file = g_build_filename("docs", name, NULL);
            g_strv_builder_add(list, file);
        }
    return g_strv_builder_end(list);
}

static void test_docs(void **state)
{
    (void)state;
    g_auto(GStrv) texts = other_texts();
    assert_true(g_strv_length(texts) > 5);
    for (char **file = texts; *file; file++) {
        /* Profiling a machine takes its time. */
        if (strcmp(*file, COMMANDS) == 0 ||
            (strcmp(*file, "docs/calibration.md") == 0 && !g_getenv("KILTER_ALL")))
            continue;
        g_autoptr(Sandbox) box = sandbox_new();
        g_autoptr(GPtrArray) commands = g_ptr_array_new_with_free_func(g_free);
        add_text(box, commands, *file);
        print_message("%s: %u commands\n", *file, commands->len);
        run_all(box, commands);
    }
}

/* Whether the name of a test contains the word, so that ctest -R finds it. */
static bool is_test(const char *word)
{
    g_autofree char *list = text_of("tests/CMakeLists.txt");
    g_autofree char *pattern = g_strdup_printf("kilter_test[a-z_]*\\([a-z_0-9]*%s", word);
    return g_regex_match_simple(pattern, list, 0, 0);
}

/* `./run WORD` is in its help, and `-R WORD` finds a test. */
static void check_front_door(const char *file, const char *help)
{
    g_autofree char *text = text_of(file);
    g_autoptr(GRegex) door =
        g_regex_new("\\./run ([a-z][a-z-]*)(?: -R ([a-z_]+))?", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    g_regex_match(door, text, 0, &match);
    for (; g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_autofree char *word = g_match_info_fetch(match, 1);
        g_autofree char *test = g_match_info_fetch(match, 2);
        g_autofree char *line = g_strdup_printf("\n  %s ", word);
        if (!strstr(help, line))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: ./run has no %s", file, word);
        if (test && *test && !is_test(test))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s: -R %s finds no test", file, test);
    }
}

static void test_front_door(void **state)
{
    (void)state;
    bool good;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *help = run_shell(box, KILTER_HOME "/run help", &good);
    assert_true(good);
    g_auto(GStrv) texts = other_texts();
    check_front_door("README.md", help);
    check_front_door("run", help);
    for (char **file = texts; *file; file++)
        check_front_door(*file, help);
}

/* Every relative link leads to a file. */
static void test_links(void **state)
{
    (void)state;
    g_auto(GStrv) texts = other_texts();
    g_autoptr(GRegex) link = g_regex_new("\\]\\(([^):#]+)[)#]", 0, 0, NULL);
    for (char **file = texts; *file; file++) {
        g_autofree char *text = text_of(*file);
        g_autofree char *folder = g_path_get_dirname(*file);
        g_autoptr(GMatchInfo) match = NULL;
        g_regex_match(link, text, 0, &match);
        for (; g_match_info_matches(match); g_match_info_next(match, NULL)) {
            g_autofree char *to = g_match_info_fetch(match, 1);
            g_autofree char *path = g_build_filename(KILTER_HOME, folder, to, NULL);
            if (!g_file_test(path, G_FILE_TEST_EXISTS))
                TEST_FAIL_AT(__FILE__, __LINE__, "%s: no %s", *file, to);
        }
    }
}

/* A page is read in one sitting, and README leads to each. */
static void test_pages(void **state)
{
    (void)state;
    g_autofree char *readme = text_of("README.md");
    g_auto(GStrv) texts = other_texts();
    for (char **file = texts + 1; *file; file++) {
        g_autofree char *text = text_of(*file);
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        if (g_strv_length(lines) > 150)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s has %u lines", *file,
                         g_strv_length(lines));
        g_autofree char *link = g_strdup_printf("](%s)", *file);
        if (!strstr(readme, link))
            TEST_FAIL_AT(__FILE__, __LINE__, "README.md has no link to %s", *file);
    }
}

/* Runs a notebook's cells: by nbclient where it is installed, as Jupyter does, else one by one. */
static const char NOTEBOOK[] =
    "import json, sys\n"
    "try:\n"
    "    import nbclient, nbformat\n"
    "    nbclient.NotebookClient(nbformat.read(sys.argv[1], 4)).execute()\n"
    "except ImportError:\n"
    "    for cell in json.load(open(sys.argv[1]))['cells']:\n"
    "        if cell['cell_type'] == 'code':\n"
    "            exec(''.join(cell['source']), globals())\n";

static void test_notebook(void **state)
{
    (void)state;
    if (!g_getenv("KILTER_ALL"))
        skip(); /* it plans for seconds */
    test_needs("python3");
    bool good;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "run.py", NOTEBOOK);
    g_autofree char *folder = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *line =
        g_strdup_printf("KILTER_LIBRARY=%s/libkilter.so.0 "
                        "PYTHONPATH=%s/experiments/library python3 run.py "
                        "%s/docs/notebook.ipynb && test -s chart.svg",
                        folder, KILTER_HOME, KILTER_HOME);
    g_autofree char *out = run_shell(box, line, &good);
    if (!good)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s", out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readme),     cmocka_unit_test(test_docs),
        cmocka_unit_test(test_front_door), cmocka_unit_test(test_links),
        cmocka_unit_test(test_pages),      cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_notebook)};
    return cmocka_run_group_tests_name("documentation", tests, NULL, NULL);
}
