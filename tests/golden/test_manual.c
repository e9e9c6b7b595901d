/* Manual pages, completions and descriptions have the content of --help, since they are made from
 * the same tables. */
#include "data/plan/fidelity.h"
#include "tests/support/program_commands.h"
#include "tests/support/program_json.h"

/* Calls `check` with each command that `kilter help` lists. */
static uint32_t each_command(const Sandbox *box,
                             void (*check)(const Sandbox *box, const char *command))
{
    g_auto(GStrv) commands = program_commands(box);
    for (char **command = commands; *command; command++)
        check(box, *command);
    return g_strv_length(commands);
}

static void check_words(const char *text, const char *where, const char *word)
{
    if (!strstr(text, word))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s lacks '%s'", where, word);
}

/* Every option of --help is in the page, the completions and the description. */
static void check_command(const Sandbox *box, const char *command)
{
    g_autofree char *help_line = g_strconcat("help ", command, NULL);
    g_autofree char *describe_line = g_strconcat(command, " --describe", NULL);
    g_autofree char *file = g_strdup_printf("out/man/man1/kilter-%s.1", command);
    g_auto(Ran) help = program_run_good(box, help_line);
    g_autofree char *page = sandbox_read(box, file);
    g_autofree char *bash = sandbox_read(box, "out/bash-completion/completions/kilter");
    g_autofree char *zsh = sandbox_read(box, "out/zsh/site-functions/_kilter");
    g_autofree char *fish =
        sandbox_read(box, "out/fish/vendor_completions.d/kilter.fish");
    json_t *about = program_json(box, describe_line);
    size_t i;
    json_t *option;
    assert_string_equal(json_string_value(json_object_get(about, "name")), command);
    assert_true(json_array_size(json_object_get(about, "options")) >= 5);
    check_words(json_string_value(json_object_get(about, "example")), "the example",
                command);
    json_array_foreach (json_object_get(about, "options"), i, option) {
        const char *name = json_string_value(json_object_get(option, "name"));
        g_autofree char *flag = g_strconcat("--", name, NULL);
        g_autofree char *fish_flag = g_strconcat("-l ", name, NULL);
        g_auto(GStrv) part = g_strsplit(flag, "-", -1);
        g_autofree char *roff = g_strjoinv("\\-", part);
        check_words(help.out, command, flag);
        check_words(page, file, roff);
        check_words(bash, "bash's completion", flag);
        check_words(zsh, "zsh's completion", flag);
        check_words(fish, "fish's completion", fish_flag);
    }
    json_decref(about);
}

/* --- data/commands --- */

/* The names of the lines "  --NAME=VALUE  HELP" of a file. */
static GHashTable *explained_in(const char *file)
{
    GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        if (g_str_has_prefix(*line, "  --"))
            assert_true(
                g_hash_table_add(names, g_strndup(*line + 4, strcspn(*line + 4, "= "))));
    return names;
}

static void check_none_left(GHashTable *names, const char *file)
{
    GHashTableIter left;
    gpointer name;
    g_hash_table_iter_init(&left, names);
    if (g_hash_table_iter_next(&left, &name, NULL))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: there is no option --%s", file,
                     (char *)name);
}

/* Takes the command's options out of those that data/commands/options.txt explains. */
static void check_explained(const Sandbox *box, const char *command, GHashTable *shared)
{
    g_autofree char *line = g_strconcat(command, " --describe", NULL);
    g_autofree char *file = g_strdup_printf(KILTER_HOME "/data/commands/%s.txt", command);
    g_autoptr(GHashTable) own = explained_in(file);
    json_t *about = program_json(box, line), *option;
    size_t i;
    json_array_foreach (json_object_get(about, "options"), i, option) {
        const char *name = json_string_value(json_object_get(option, "name")),
                   *help = json_string_value(json_object_get(option, "help")),
                   *argument = json_string_value(json_object_get(option, "argument"));
        if (!*help || g_strcmp0(argument, "VALUE") == 0)
            TEST_FAIL_AT(__FILE__, __LINE__, "%s does not explain --%s", file, name);
        if (!g_hash_table_remove(own, name))
            g_hash_table_remove(shared, name);
        if (strcmp(name, "fidelity") == 0 && strcmp(command, "memory") != 0)
            for (Fidelity f = 0; f < FIDELITIES; f++)
                check_words(help, file, fidelity_name(f));
    }
    check_none_left(own, file);
    json_decref(about);
}

/* Every option is explained by data/commands, with what stands for its value, and nothing is
 * explained there that is no option. */
static void test_options_explained(void **state)
{
    (void)state;
    static const char SHARED[] = KILTER_HOME "/data/commands/options.txt";
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(GStrv) commands = program_commands(box);
    g_autoptr(GHashTable) shared = explained_in(SHARED);
    assert_true(g_hash_table_size(shared) > 20);
    for (char **command = commands; *command; command++)
        check_explained(box, *command, shared);
    check_none_left(shared, SHARED);
}

/* Every planner says what it does, and which paper has it. */
static void test_planners_explained(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    json_t *answer = program_json(box, "planners --json"), *planner;
    size_t i;
    assert_true(json_array_size(json_object_get(answer, "planners")) > 20);
    json_array_foreach (json_object_get(answer, "planners"), i, planner)
        if (!*json_string_value(json_object_get(planner, "description")) ||
            !*json_string_value(json_object_get(planner, "source")))
            TEST_FAIL_AT(__FILE__, __LINE__,
                         "%s has no line in data/commands/methods.txt",
                         json_string_value(json_object_get(planner, "name")));
    json_decref(answer);
}

static void test_pages(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "help --write out");
    assert_true(each_command(box, check_command) >= 15);
    g_autofree char *page = sandbox_read(box, "out/man/man1/kilter.1");
    check_words(page, "kilter.1", ".B reproduce");
    check_words(page, "kilter.1", "KILTER_PATH");
    program_refuses(box, "help --write out/man/man1/kilter.1", 2,
                    "cannot make the folder");
}

/* Runs a line of a shell in the sandbox, with kilter on its path; NULL where there is no such
 * shell. Caller frees. */
static char *ask_shell(const Sandbox *box, const char *name, const char *line)
{
    g_autofree char *shell = g_find_program_in_path(name);
    g_autofree char *folder = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_autofree char *path = g_strconcat(folder, ":", g_getenv("PATH"), NULL);
    g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "PATH", path, TRUE);
    environment = g_environ_setenv(environment, "HOME", box->folder, TRUE);
    char *arguments[] = {shell, "-c", (char *)line, NULL}, *out = NULL;
    assert_true(g_spawn_sync(box->folder, arguments, environment,
                             G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL, NULL,
                             NULL));
    return g_strchomp(out);
}

static void test_bash_completes(void **state)
{
    (void)state;
    test_needs("bash");
    static const struct {
        const char *words, *replies;
    } cases[] = {{"kilter reprod", "reproduce"},
                 {"kilter help reprod", "reproduce"},
                 {"kilter plan vgg", "vgg19"},
                 {"kilter plan vgg19 hap-6", "hap-64"},
                 {"kilter reproduce hap-fig13", "hap-fig13"},
                 {"kilter simulate vgg", "vgg19"},
                 {"kilter kernel matmul h100-s", "h100-sxm h100-sxm-64g h100-sxm-96g"},
                 {"kilter plan --plan", "--planner"},
                 {"kilter plan vgg19 hap-8 --planner dp-",
                  "dp-ev dp-cp dp-nccl dp-nccl-p dp-nccl-sfb"},
                 {"kilter simulate --fidelity an", "analytic"},
                 {"kilter export p.json --to m", "megatron"},
                 {"kilter plan vgg19 hap-8 --for torch", "torchtitan"},
                 {"kilter sweep --emit k", "k8s"},
                 {"kilter plan vgg19 hap-8 --set re", ""}};
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "help --write out");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = g_strdup_printf(
            ". out/bash-completion/completions/kilter; COMP_WORDS=(%s); "
            "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _kilter; echo ${COMPREPLY[*]}",
            cases[i].words);
        g_autofree char *got = ask_shell(box, "bash", line);
        assert_string_equal(got, cases[i].replies);
    }
}

static void test_fish_completes(void **state)
{
    (void)state;
    test_needs("fish");
    static const char *const cases[][2] = {
        {"kilter reprod", "reproduce"},
        {"kilter plan vgg", "vgg19"},
        {"kilter plan vgg19 hap-6", "hap-64"},
        {"kilter reproduce hap-fig13", "hap-fig13"},
        {"kilter plan --plan", "--planner"},
        {"kilter plan vgg19 hap-8 --planner dp-c", "dp-cp"},
        {"kilter simulate --fidelity an", "analytic"}};
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "help --write out");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line =
            g_strdup_printf("source out/fish/vendor_completions.d/kilter.fish; "
                            "complete -C '%s' | string replace -r '\\t.*' ''",
                            cases[i][0]);
        g_autofree char *got = ask_shell(box, "fish", line);
        assert_string_equal(got, cases[i][1]);
    }
}

/* A zsh that believes to have a terminal: each line is followed by a tab, and then by a key that
 * prints the line as it is then. */
static const char ZSH[] =
    "zmodload zsh/zpty; zpty z zsh -f -i\n"
    "zpty -w z 'PS1=; fpath=($PWD/out/zsh/site-functions $fpath); autoload -U compinit; "
    "compinit -D -u; say() { print -r -- \"<\"\"$BUFFER\"\">\"; BUFFER=; zle accept-line "
    "}; "
    "zle -N say; bindkey \"^X\" say; bindkey \"^I\" complete-word; print \"rea\"\"dy\"'\n"
    "zpty -r z out '*ready*'\n"
    "for line in 'kilter reprod' 'kilter reproduce hap-fig2' 'kilter plan vgg' 'kilter "
    "plan vgg19 hap-6' "
    "'kilter plan --planne' 'kilter plan vgg19 hap-8 --planner dp-e' "
    "'kilter simulate --fidelity an'; do\n"
    "zpty -n -w z \"$line\"$'\\t\\x18'; zpty -r z out '*<kilter*>*'; print -r -- "
    "${${out##*<}%%>*}; done";

static void test_zsh_completes(void **state)
{
    (void)state;
    test_needs("zsh");
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "help --write out");
    g_autofree char *got = ask_shell(box, "zsh", ZSH);
    assert_string_equal(
        got, "kilter reproduce \nkilter reproduce hap-fig2 \nkilter plan vgg19 \n"
             "kilter plan vgg19 hap-64 \nkilter plan --planner \n"
             "kilter plan vgg19 hap-8 --planner dp-ev \n"
             "kilter simulate --fidelity analytic");
}

/* Manual pages without a warning of man's formatter. */
static void test_man_formats(void **state)
{
    (void)state;
    test_needs("groff");
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "help --write out");
    g_autofree char *got =
        ask_shell(box, "sh", "groff -man -ww -z -K utf8 -Tutf8 out/man/man1/*.1 2>&1");
    assert_string_equal(got, "");
}

/* --- --json --- */

static void check_format(const Sandbox *box, const char *line)
{
    json_t *object = program_json(box, line);
    g_auto(GStrv) word = g_strsplit(line, " ", 2);
    g_autofree char *name = g_strconcat("kilter ", word[0], NULL);
    json_t *format = json_object_get(object, "format");
    assert_string_equal(json_object_iter_key(json_object_iter(object)), "format");
    assert_string_equal(json_string_value(json_object_get(format, "name")), name);
    assert_int_equal(number(format, "version"), 1);
    json_decref(object);
}

static void test_formats(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "models --json",
        "clusters --json",
        "planners --json",
        "plan vit:layers=1 hap-8 -p dp-ev --json",
        "simulate vit:layers=1 hap-8 -p dp-ev --json",
        "collective all_reduce star:hosts=4 --bytes 1MB --json",
        "theory vit:layers=1 --json",
        "verify vit:layers=1 --shapes 1 --json",
        "reproduce hap-fig4 --json"};
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        check_format(box, lines[i]);
}

static void test_errors(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) ran = program_run(box, "plan vgg18 hap-8 --json");
    json_t *object = json_of(ran.err);
    const json_t *error = json_object_get(object, "error");
    assert_int_equal(ran.status, 2);
    assert_int_equal(number(error, "status"), 2);
    check_words(json_string_value(json_object_get(error, "message")), "the error",
                "did you mean 'vgg19'?");
    assert_string_equal(ran.out, "");
    json_decref(object);
}

static void test_misspelt_options(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plan vgg19 hap-8 --plannr hap", 2,
                    "Unknown option --plannr; did you mean '--planner'? See kilter plan "
                    "--help");
    program_refuses(box, "sweep x.yaml --shrd=0/2", 2, "did you mean '--shard'?");
    program_refuses(box, "plan vgg19 hap-8 --zzzzzz", 2,
                    "Unknown option --zzzzzz; see kilter plan --help");
    program_refuses(
        box, "plan vgg19 hap-8 --fidelity flow", 2,
        "Unknown option --fidelity; it is an option of kilter compare, "
        "days, memory, report, sensitivity, simulate. See kilter plan --help");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planners_explained),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_bash_completes),
        cmocka_unit_test(test_fish_completes),
        cmocka_unit_test(test_zsh_completes),
        cmocka_unit_test(test_man_formats),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_misspelt_options),
        cmocka_unit_test(test_options_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
