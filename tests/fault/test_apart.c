/* A command under tests/mutate/apart.sh, as the changed programs of ./run mutate, changes nothing
 * outside of its folder, even if it deletes recursively and through links. All files here belong
 * to the test. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/program.h"

/* Commands that a mutant may run in its folder; $1: a folder of root's beside it. */
static const char *const HARM[] = {
    "rm -rf \"$1\"/*",
    "rm -rf link/*",
    "rm -rf link/",
    "chmod -R 777 \"$1\"; rm -rf \"$1\"",
    "echo changed > \"$1\"/file; echo changed > link/file",
    "mv \"$1\"/file ./file",
    "ln \"$1\"/file hard; ln \"$1\"/inner/file hard2; echo changed > hard",
    "find -L . -name 'f*' -delete",
    "cd ..; rm -rf ./*/",
    "su -c \"rm -rf $1\"; sudo -n rm -rf \"$1\"",
    "touch \"$1\"/more \"$1\"/inner/more",
};

typedef struct {
    Sandbox *box;
    char *own, *others, *inner, *file, *deep;
} Place;

static void place_clear(Place *p)
{
    sandbox_free(p->box);
    g_free(p->own);
    g_free(p->others);
    g_free(p->inner);
    g_free(p->file);
    g_free(p->deep);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Place, place_clear)

/* A folder for the command with links to another folder, whose file is small. */
static Place place_new(void)
{
    Place p = {.box = sandbox_new()};
    p.own = g_build_filename(p.box->folder, "own", NULL);
    p.others = g_build_filename(p.box->folder, "others", NULL);
    p.inner = g_build_filename(p.others, "inner", NULL);
    p.file = g_build_filename(p.others, "file", NULL);
    p.deep = g_build_filename(p.inner, "file", NULL);
    assert_int_equal(chmod(p.box->folder, 0755), 0);
    assert_int_equal(g_mkdir_with_parents(p.own, 0755), 0);
    assert_int_equal(g_mkdir_with_parents(p.inner, 0755), 0);
    assert_true(g_file_set_contents(p.file, "whole", -1, NULL));
    assert_true(g_file_set_contents(p.deep, "whole", -1, NULL));
    g_autofree char *link = g_build_filename(p.own, "link", NULL);
    g_autofree char *file_link = g_build_filename(p.own, "file-link", NULL);
    assert_int_equal(symlink(p.others, link), 0);
    assert_int_equal(symlink(p.file, file_link), 0);
    return p;
}

/* Runs a command apart; returns its exit status. */
static int run_apart(const Place *p, const char *folder, const char *command)
{
    const char *const argv[] = {KILTER_HOME "/tests/mutate/apart.sh",
                                folder,
                                "sh",
                                "-c",
                                command,
                                "sh",
                                p->others,
                                NULL};
    int status = -1;
    g_autoptr(GError) error = NULL;
    g_spawn_sync(p->box->folder, (char **)argv, NULL,
                 G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                 NULL, NULL, &status, &error);
    assert_no_error(error);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_whole(const char *file)
{
    g_autofree char *text = NULL;
    struct stat is;
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    assert_string_equal(text, "whole");
    assert_int_equal(stat(file, &is), 0);
    assert_int_equal(is.st_uid, getuid());
    assert_int_equal(is.st_mode & 022, 0);
}

/* The files, their owner and the number of entries beside them. */
static void check_others(const Place *p)
{
    check_whole(p->file);
    check_whole(p->deep);
    g_autoptr(GDir) dir = g_dir_open(p->others, 0, NULL);
    assert_non_null(dir);
    uint32_t n = 0;
    while (g_dir_read_name(dir))
        n++;
    assert_int_equal(n, 2);
}

static bool can_run(void)
{
    g_autofree char *setpriv = g_find_program_in_path("setpriv");
    return getuid() == 0 && setpriv;
}

static void test_harm_stays_inside(void **state)
{
    (void)state;
    if (!can_run())
        skip();
    for (uint32_t i = 0; i < G_N_ELEMENTS(HARM); i++) {
        g_auto(Place) p = place_new();
        run_apart(&p, p.own, HARM[i]);
        check_others(&p);
        run_apart(&p, p.own, "echo changed > hard; echo changed > hard2; rm -rf link/*");
        check_others(&p);
    }
}

/* The command has its own folder, a private TMPDIR and none of the caller's variables; it is
 * nobody and stays it. */
static void test_own_folder(void **state)
{
    (void)state;
    if (!can_run())
        skip();
    g_auto(Place) p = place_new();
    g_setenv("KILTER_SECRET", "1", true);
    assert_int_equal(
        run_apart(&p, p.own,
                  "echo x > file && f=$(mktemp) && case $f in \"$PWD\"/tmp/*) "
                  "rm -rf tmp home file;; *) exit 1;; esac"),
        0);
    assert_int_equal(run_apart(&p, p.own, "[ -z \"${KILTER_SECRET:-}\" ]"), 0);
    assert_int_equal(run_apart(&p, p.own, "[ $(id -u) != 0 ] && [ $(id -un) = nobody ]"),
                     0);
    assert_int_equal(run_apart(&p, p.own, "exit 7"), 7);
    check_others(&p);
}

/* A link or a system folder is not given away. */
static void test_refused(void **state)
{
    (void)state;
    if (!can_run())
        skip();
    g_auto(Place) p = place_new();
    g_autofree char *link = g_build_filename(p.own, "link", NULL);
    const char *const folder[] = {link, "/tmp", "/", "/usr", "/work", "/does/not/exist"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(folder); i++)
        assert_int_equal(run_apart(&p, folder[i], "true"), 2);
    check_others(&p);
}

/* Each fuzz test has a target that builds it: the replay of its reader, or itself where its file
 * has a main() of its own. */
static void test_targets(void **state)
{
    (void)state;
    static const char SCRIPT[] =
        "set -e; eval \"$(sed -n '/^targets() {/,/^}/p' tests/mutate/mutate.sh)\"; cd "
        "tests/fuzz; "
        "for f in fuzz_*.c; do name=${f%.c}; expected=replay_${name#fuzz_}; "
        "! grep -q '^int main(' $f || expected=$name; "
        "[ \"$(echo $name | targets)\" = $expected ] || { echo $name; exit 1; }; done; "
        "[ \"$(echo cluster | targets)\" = test_cluster ]";
    g_autofree char *printed = NULL;
    int status = -1;
    assert_true(g_spawn_sync(NULL, (char *[]){"sh", "-c", (char *)SCRIPT, NULL}, NULL,
                             G_SPAWN_SEARCH_PATH, NULL, NULL, &printed, NULL, &status,
                             NULL));
    assert_string_equal(printed, "");
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_harm_stays_inside),
        cmocka_unit_test(test_own_folder),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("apart", tests, NULL, NULL);
}
