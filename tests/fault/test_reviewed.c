/* The reproducers of a review, where they are at hand: none ends by a signal, and each is
 * answered as its first line says. */
#include <unistd.h>

#include "tests/support/program.h"

static const struct {
    const char *file, *command; /* NULL: a script, which is given the program */
    int status;
    const char *says; /* in what it prints */
} CASE[] = {
    {"alias-grid.sh", NULL, 0, "right"},
    {"deep-experiment.sh", NULL, 0, "80000"},
    {"file-size-limit.sh", NULL, 0, "plan rc 1"},
    {"joint-divides-by-zero.sh", NULL, 0, "80 kinds x 192 layers rc"},
    {"killed-twice.sh", NULL, 0, "rc 0"},
    {"many-threads.sh", NULL, 0, "r.db"},
    {"quiet-days.sh", NULL, 0, ""},
    {"amp-takes-22-GB.yaml", "plan vgg19 %s --planner amp -q", 2, "use joint"},
    {"grid-duplicates-use-after-free.yaml", "sweep %s --dry-run --db r.db", 0,
     "configurations"},
    {"tau-denormal-aborts.json", "sfb %s", 2, "at least 1e-9"},
};

/* The program by the names that its commands had when the reviews were written. */
static const char OLD_NAMES[] =
    "#!/bin/bash\n"
    "case \"$1 \" in\n"
    "export\\ ) shift; exec \"$KILTER_BIN\" table --all \"$@\" ;;\n"
    "simulate\\ )\n"
    "    for ((i = 1; i <= $#; i++)); do\n"
    "        [ \"${!i}\" != --days ] || {\n"
    "            n=$((i + 1))\n"
    "            exec \"$KILTER_BIN\" days \"${!n}\" \"${@:2:i - 2}\" \"${@:i + 2}\"\n"
    "        }\n"
    "    done ;;\n"
    "esac\n"
    "exec \"$KILTER_BIN\" \"$@\"\n";

/* Where scripts look: a program in build/, and data beside it. */
static void make_tree(const Sandbox *box)
{
    g_autofree char *build = g_build_filename(box->folder, "build", NULL),
                    *program = g_build_filename(build, "kilter", NULL),
                    *data = g_build_filename(box->folder, "data", NULL),
                    *home = g_canonicalize_filename("data", NULL);
    assert_int_equal(g_mkdir(build, 0755), 0);
    sandbox_write(box, "build/kilter", OLD_NAMES);
    assert_int_equal(g_chmod(program, 0755), 0);
    assert_int_equal(symlink(home, data), 0);
}

static void test_reproducers(void **state)
{
    (void)state;
    const char *folder = test_shared("reviews/faults");
    if (!folder)
        skip();
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        make_tree(box);
        g_autofree char *given = g_build_filename(folder, CASE[i].file, NULL),
                        *path = g_canonicalize_filename(given, NULL), *out = NULL,
                        *ask = CASE[i].command ? g_strdup_printf("$K %s", CASE[i].command)
                                               : g_strdup("bash %s"),
                        *line = g_strdup_printf(
                            "cd %s && exec 2>&1 && export K=$PWD/build/kilter && ",
                            box->folder);
        g_auto(GStrv) part = g_strsplit(ask, "%s", 2);
        g_autofree char *script = g_strconcat(line, part[0], path, part[1], NULL);
        char *argv[] = {"bash", "-c", script, NULL};
        int status = 0;
        g_autoptr(GError) error = NULL;
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, NULL,
                     &status, &error);
        assert_no_error(error);
        static const char *const SIGNAL[] = {"rc 134", "rc 135", "rc 136", "rc 139",
                                             "rc 153"};
        for (uint32_t s = 0; s < G_N_ELEMENTS(SIGNAL); s++)
            if (strstr(out, SIGNAL[s]))
                fail_msg("%s: %s", CASE[i].file, out);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != CASE[i].status ||
            !strstr(out, CASE[i].says))
            fail_msg("%s: status %d: %s", CASE[i].file, status, out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reproducers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
