/* Names of files and folders stay names: devices and links are not replaced, no file that is named
 * like a command is run, and bytes that are not text are refused, with their place. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/support/program.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"

static char *inside(const Sandbox *box, const char *name)
{
    return g_build_filename(box->folder, name, NULL);
}

static void run_good(const Sandbox *box, const char *line)
{
    g_auto(Ran) ran = program_run_good(box, line);
    (void)ran;
}

/* --- -o FILE --- */

static void test_links_are_followed(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *link = inside(box, "link.json");
    g_autofree char *dangling = inside(box, "dangling.json");
    g_autofree char *folder = inside(box, "deep");
    assert_int_equal(g_mkdir(folder, 0700), 0);
    sandbox_write(box, "deep/plan.json", "before");
    assert_int_equal(symlink("deep/plan.json", link), 0);
    assert_int_equal(symlink("deep/new.json", dangling), 0);
    run_good(box, "plan " SMALL " hap-8 -p dp-ev -o link.json");
    run_good(box, "plan " SMALL " hap-8 -p dp-ev -o dangling.json");
    assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    assert_true(g_file_test(dangling, G_FILE_TEST_IS_SYMLINK));
    g_autofree char *plan = sandbox_read(box, "deep/plan.json");
    g_autofree char *again = sandbox_read(box, "deep/new.json");
    assert_non_null(strstr(plan, "\"program\""));
    assert_non_null(strstr(again, "\"program\""));
}

/* A chain of links without an end. */
static void test_circle(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *a = inside(box, "a"), *b = inside(box, "b");
    assert_int_equal(symlink("b", a), 0);
    assert_int_equal(symlink("a", b), 0);
    program_refuses(box, "plan " SMALL " hap-8 -p dp-ev -o a", 2, "symbolic links");
}

/* A name that the file system, or what is written beside it first, cannot have is known before the
 * work. */
static void test_long_names(void **state)
{
    (void)state;
    static const char *const LINE[] = {"plan " SMALL " hap-8 -p dp-ev -o %s",
                                       "simulate " SMALL " hap-8 -p dp-ev --trace %s",
                                       "models " SMALL " -o %s",
                                       "simulate " SMALL " hap-8 -p dp-ev --dot %s"};
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint length = 240; length < 300; length += 15)
        for (guint i = 0; i < G_N_ELEMENTS(LINE); i++) {
            g_autofree char *name = g_strnfill(length, 'n');
            g_auto(GStrv) part = g_strsplit(LINE[i], "%s", 2);
            g_autofree char *line = g_strconcat(part[0], name, NULL);
            if (length == 240)
                run_good(box, line);
            else
                program_refuses(box, line, 2, "File name too long");
        }
}

/* skip() leaves by a jump, so that nothing is freed behind it. */
static void skip_without(Sandbox **box, char **text)
{
    g_clear_pointer(box, sandbox_free);
    g_clear_pointer(text, g_free);
    skip();
}

/* A node like /dev/null, which only root can make. */
static void test_devices_stay(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *node = inside(box, "null");
    if (mknod(node, S_IFCHR | 0600, makedev(1, 3)) != 0) {
        print_message("skipped: cannot make a device: %s\n", g_strerror(errno));
        skip_without(&box, &node);
    }
    const int works = open(node, O_WRONLY | O_CLOEXEC);
    if (works < 0) {
        print_message("skipped: devices do not work here: %s\n", g_strerror(errno));
        skip_without(&box, &node);
    }
    close(works);
    static const char *const lines[] = {"plan " SMALL " hap-8 -p dp-ev -q -o null",
                                        "simulate " SMALL
                                        " hap-8 -p dp-ev -f flow -q --trace null",
                                        "calibrate m.csv -q --ranks 1 -o null"};
    sandbox_write(
        box, "m.csv",
        "device,kind,shape,ranks,share,flops,bytes,repeats,median_s,low_s,high_s\n"
        "cpu,linear,,2,1,9,9,1,1e-3,1e-3,1e-3\n");
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        struct stat status;
        run_good(box, lines[i]);
        assert_int_equal(stat(node, &status), 0);
        assert_true(S_ISCHR(status.st_mode));
    }
}

static void test_pipes_are_written(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *pipe = inside(box, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    /* Opens both ends, so that the writer need not wait; a plan of this model fits into the
     * pipe. */
    const int fd = open(pipe, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    g_autofree char *text = g_strnfill(16, 'x');
    GError *error = NULL;
    output_write(pipe, text, -1, &error);
    assert_no_error(error);
    char got[32] = "";
    assert_int_equal(read(fd, got, sizeof got), 16);
    assert_string_equal(got, text);
    assert_true(output_check(pipe, &error));
    close(fd);
    struct stat status;
    assert_int_equal(stat(pipe, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

/* A plan from a pipe is read once: a second reading would find nothing, or wait for ever. */
static void test_pipes_are_read_once(void **state)
{
    (void)state;
    static const char *const COMMAND[] = {"simulate", "verify", "memory", "sensitivity"};
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "plan " SMALL " hap-8 -p dp-ev -q -o p.json");
    g_autofree char *pipe = inside(box, "pipe"), *plan = inside(box, "p.json");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (guint i = 0; i < G_N_ELEMENTS(COMMAND); i++) {
        g_autofree char *line =
            g_strdup_printf("cat '%s' > '%s' & timeout 60 '%s' %s '%s'", plan, pipe,
                            g_getenv("KILTER_BIN"), COMMAND[i], pipe);
        const char *const shell[] = {"sh", "-c", line, NULL};
        g_autofree char *out = NULL, *err = NULL;
        int status;
        assert_true(g_spawn_sync(box->folder, (char **)shell, NULL, G_SPAWN_SEARCH_PATH,
                                 NULL, NULL, &out, &err, &status, NULL));
        if (status != 0)
            fail_msg("kilter %s of a pipe: status %d, %s", COMMAND[i], status, err);
    }
}

/* An option's file is none of the arguments, under whatever name: it would be lost. */
static void test_arguments_are_not_written(void **state)
{
    (void)state;
    static const char *const LINE[] = {"table r.db -o r.db",
                                       "simulate p.json --trace p.json",
                                       "simulate p.json --dot ./p.json",
                                       "memory p.json --snapshot link.json",
                                       "report r.db -o hard.db",
                                       "models m.json -o m.json",
                                       "plan " SMALL " ./c.yaml -p dp-ev -o c.yaml",
                                       "figure all r.db -o r.db",
                                       "import p.json -o p.json",
                                       "export p.json --to ddp -o p.json",
                                       "fit c.yaml --cluster hap-8 -o c.yaml",
                                       "exec p.json --db p.json"};
    static const char *const FILES[] = {"p.json", "r.db", "c.yaml", "m.json"};
    g_autoptr(Sandbox) box = sandbox_new();
    program_runs(box, "plan " SMALL " hap-8 -p dp-ev -q -o p.json");
    sandbox_write(box, "x.yaml",
                  "name: s\ngrid: {model: ['" SMALL
                  "'], cluster: [hap-8], planner: [dp-ev]}\n");
    sandbox_write(box, "c.yaml",
                  "machines: [{device: t4, gpus: 2, inner: pcie3, nic: eth-100}]\n");
    sandbox_write(box, "m.json", "{}\n");
    program_runs(box, "sweep x.yaml --db r.db -q");
    g_autofree char *link = inside(box, "link.json"), *hard = inside(box, "hard.db"),
                    *db = inside(box, "r.db");
    assert_int_equal(symlink("p.json", link), 0);
    for (guint i = 0; i < G_N_ELEMENTS(LINE); i++) {
        gchar *before[G_N_ELEMENTS(FILES)];
        gsize n[G_N_ELEMENTS(FILES)];
        for (guint f = 0; f < G_N_ELEMENTS(FILES); f++) {
            g_autofree char *file = inside(box, FILES[f]);
            assert_true(g_file_get_contents(file, &before[f], &n[f], NULL));
        }
        if (strstr(LINE[i], "hard.db"))
            assert_int_equal(linkat(AT_FDCWD, db, AT_FDCWD, hard, 0), 0);
        program_refuses(box, LINE[i], 2, "expected another file than the argument");
        g_unlink(hard);
        for (guint f = 0; f < G_N_ELEMENTS(FILES); f++) {
            g_autofree char *file = inside(box, FILES[f]), *after = NULL;
            gsize length;
            assert_true(g_file_get_contents(file, &after, &length, NULL));
            if (length != n[f] || memcmp(before[f], after, length) != 0)
                fail_msg("kilter %s changed %s", LINE[i], FILES[f]);
            g_free(before[f]);
        }
    }
}

/* A file in the folder hides no cluster, device or model of its name, whatever it holds. */
static void test_names_are_not_hidden(void **state)
{
    (void)state;
    static const char *const NAME[] = {"hap-8", "1x2xh100-sxm", "h100-sxm", "vit",
                                       "dp-ev"};
    static const char *const LINE[] = {
        "memory " SMALL " hap-8 -p dp-ev", "clusters hap-8",
        "memory " SMALL " 1x2xh100-sxm -p dp-ev", "models " SMALL};
    static const char *const TEXT[] = {"{\"program\": []}", "machines: [", "\xff",
                                       "a,b\n"};
    g_autoptr(Sandbox) empty = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(TEXT); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        for (guint n = 0; n < G_N_ELEMENTS(NAME); n++)
            sandbox_write(box, NAME[n], TEXT[i]);
        for (guint l = 0; l < G_N_ELEMENTS(LINE); l++) {
            g_auto(Ran) good = program_run_good(empty, LINE[l]);
            g_auto(Ran) ran = program_run_good(box, LINE[l]);
            assert_string_equal(ran.out, good.out);
        }
    }
}

static void test_standard_output(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_auto(Ran) ran =
        program_run_good(box, "plan " SMALL " hap-8 -p dp-ev -q -o /dev/stdout");
    assert_true(g_str_has_prefix(ran.out, "{"));
    assert_non_null(strstr(ran.out, "\"program\""));
}

/* --- folders of figures --- */

static void assert_nothing_ran(const Sandbox *box, const char *line)
{
    g_autoptr(GDir) dir = g_dir_open(box->folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)))
        if (g_str_has_prefix(name, "PWNED"))
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s ran a command", line);
}

/* Every command that draws into a folder of the user's choice. */
static const struct {
    const char *line, *picture;
} drawing[] = {
    {"figure timeline -t t.json -q -o %s", "timeline.png"},
    {"validate v.csv -q --plot %s", "hap-fig18.png"},
    {"calibrate m.csv -q --base hap-8 -o c.yaml --plot %s", "calibration.png"},
    {"reproduce hap-fig4 -q -o %s", "hap-fig4.png"},
    {"figure hap-fig4 --db r.db -q -o %s", "hap-fig4.png"},
};

static void bring_inputs(const Sandbox *box)
{
    run_good(box, "simulate " SMALL " hap-8 -p dp-ev -f flow -q -t t.json");
    run_good(box, "sweep " KILTER_HOME "/experiments/hap-fig4.yaml -q --db r.db");
    sandbox_write(box, "v.csv", "plan,measured_s,predicted_s\nx,1,2\ny,2,3\n");
    GString *rows = g_string_new(
        "device,kind,shape,ranks,share,flops,bytes,repeats,median_s,low_s,high_s\n");
    for (int i = 1; i < 9; i++)
        g_string_append_printf(rows,
                               "p100,linear,,1,1,%d,%d,1,1e-3,1e-3,1e-3\n"
                               "p100,all_reduce,,8,0.125,0,%d,1,2e-3,2e-3,2e-3\n",
                               i * 1000, i * 100, i * 10000);
    sandbox_write(box, "m.csv", rows->str);
    g_string_free(rows, TRUE);
}

static void test_hostile_folders(void **state)
{
    (void)state;
    static const char *const folders[] = {"|touch PWNED;#", "< touch PWNED",
                                          "`touch PWNED`",  "$(touch PWNED)",
                                          "a'b\"c\\n@ARG3", "';system('touch PWNED');'"};
    g_autoptr(Sandbox) box = sandbox_new();
    bring_inputs(box);
    for (guint i = 0; i < G_N_ELEMENTS(drawing); i++)
        /* Tries all commands only where it is cheap: each picture takes gnuplot a while. */
        for (guint f = 0; f < (i == 0 ? G_N_ELEMENTS(folders) : 1); f++) {
            g_autofree char *quoted = g_shell_quote(folders[f]);
            g_auto(GStrv) part = g_strsplit(drawing[i].line, "%s", 2);
            g_autofree char *line = g_strconcat(part[0], quoted, part[1], NULL);
            run_good(box, line);
            assert_nothing_ran(box, line);
            g_autofree char *picture =
                g_build_filename(box->folder, folders[f], drawing[i].picture, NULL);
            if (!g_file_test(picture, G_FILE_TEST_IS_REGULAR))
                TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: no %s", line, picture);
        }
}

/* Names that come from a trace: of devices, of ops. */
static void test_hostile_traces(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(
        box, "|touch PWNED;#.json",
        "{\"traceEvents\": [{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, "
        "\"args\": {\"name\": \"`touch PWNED` $(touch PWNED) ';system('touch PWNED');' "
        "@ARG3 {/Symbol a\"}}, {\"ph\": \"X\", \"cat\": \"|touch PWNED\", \"name\": "
        "\"`touch PWNED`\", \"pid\": 0, \"tid\": 0, \"ts\": 0, \"dur\": 9}]}");
    const char *line = "figure timeline -q -t '|touch PWNED;#.json'";
    run_good(box, line);
    assert_nothing_ran(box, line);
}

/* The user's start files do not change figures. */
static void test_start_files(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    bring_inputs(box);
    sandbox_write(box, ".gnuplot", "system 'touch PWNED'\n");
    g_autofree char *home = g_strconcat("HOME=", box->folder, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(drawing); i++) {
        g_auto(GStrv) part = g_strsplit(drawing[i].line, "%s", 2);
        g_autofree char *line = g_strconcat(part[0], "out", part[1], NULL);
        g_auto(Ran) ran = program_run_in(box, line, home);
        assert_int_equal(ran.status, 0);
        assert_nothing_ran(box, line);
    }
}

/* --- bytes that are no text --- */

static void test_bytes_that_are_no_text(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {{"pins", "# one\nencoder*\xff=gather(0)\n"},
                 {"segments", "# one\nencoder*\xff=1\n"}};
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(files); i++)
        sandbox_write(box, files[i].name, files[i].text);
    static const char *const lines[] = {
        "plan --planner hap " SMALL " hap-8 --pins pins",
        "plan --planner hap " SMALL " hap-8 --set pins=pins",
        "plan --planner hap " SMALL " hap-8 --segments segments",
        "plan --planner hap " SMALL " hap-8 --set segments=segments"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        program_refuses(box, lines[i], 2,
                        ":2: expected text in UTF-8, got the byte 0xff");
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n"
                  "  planner: ['hap:pins=pins']\n");
    program_refuses(box, "sweep x.yaml --db r.db", 2, "pins:2: expected text in UTF-8");
    program_refuses(box, "plan --planner hap " SMALL " hap-8 --segments .", 2,
                    "regular file");
    program_refuses(box, "plan --planner hap " SMALL " hap-8 --pins /dev/zero", 2,
                    "regular file");
    /* Text after a zero byte used to be hidden. */
    g_autofree char *zero = inside(box, "zero");
    assert_true(g_file_set_contents(zero, "\n\0x", 3, NULL));
    program_refuses(box, "plan --planner hap " SMALL " hap-8 --pins zero", 2,
                    "zero:2: expected text in UTF-8, got the byte 0x00");
}

/* Removing a sandbox does not reach through a link. */
static void test_sandboxes_keep_to_themselves(void **state)
{
    (void)state;
    g_autoptr(Sandbox) other = sandbox_new();
    sandbox_write(other, "theirs", "kept");
    {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *link = g_build_filename(box->folder, "link", NULL);
        assert_int_equal(symlink(other->folder, link), 0);
    }
    g_autofree char *kept = sandbox_read(other, "theirs");
    assert_string_equal(kept, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sandboxes_keep_to_themselves),
        cmocka_unit_test(test_links_are_followed),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_devices_stay),
        cmocka_unit_test(test_pipes_are_written),
        cmocka_unit_test(test_pipes_are_read_once),
        cmocka_unit_test(test_arguments_are_not_written),
        cmocka_unit_test(test_names_are_not_hidden),
        cmocka_unit_test(test_standard_output),
        cmocka_unit_test(test_hostile_folders),
        cmocka_unit_test(test_hostile_traces),
        cmocka_unit_test(test_start_files),
        cmocka_unit_test(test_bytes_that_are_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
