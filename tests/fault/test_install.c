/* The files that `cmake --install` puts below a prefix work from any prefix, with their own data,
 * and as a library: for a client in C with the flags of pkg-config, and for Python. */
#include <stdlib.h>

#include "tests/support/program_json.h"

/* Runs a line of the shell in the sandbox; its output. */
static char *shell(const Sandbox *box, const char *line, int *status)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_set_cwd(launcher, box->folder);
    g_autofree char *build = g_path_get_dirname(g_getenv("KILTER_BIN"));
    g_subprocess_launcher_setenv(launcher, "BUILD", build, TRUE);
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawn(launcher, NULL, "sh", "-c", line, NULL);
    char *out = NULL;
    assert_true(g_subprocess_communicate_utf8(process, NULL, NULL, &out, NULL, NULL));
    *status =
        g_subprocess_get_if_exited(process) ? g_subprocess_get_exit_status(process) : -1;
    return out;
}

static char *shell_good(const Sandbox *box, const char *line)
{
    int status;
    char *out = shell(box, line, &status);
    if (status != 0)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: exit %d, %s", line, status, out);
    return out;
}

/* Installed, and moved from there. */
static Sandbox *install(void)
{
    Sandbox *box = sandbox_new();
    g_free(shell_good(
        box, "DESTDIR=/ cmake --install \"$BUILD\" --prefix \"$PWD/one\" && mv one two"));
    return box;
}

static void test_program(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = install();
    g_free(shell_good(
        box, "cd two/share/kilter/data/clusters && mv hap-8.yaml of-prefix.yaml && "
             "sed -i 's/^name: .*/name: of-prefix/' of-prefix.yaml"));
    g_autofree char *list = shell_good(box, "two/bin/kilter clusters");
    assert_non_null(strstr(list, "\nof-prefix "));
    assert_null(strstr(list, "\nhap-8 "));
    g_free(shell_good(
        box, "two/bin/kilter plan vit:layers=1 of-prefix -q -o plan.json && "
             "two/bin/kilter simulate plan.json -q && "
             "two/bin/kilter report plan.json -q -o plan.html && test -s plan.html && "
             "two/bin/kilter report hap-fig4 -q -o fig4.html && test -s fig4.html && "
             "two/bin/kilter reproduce hap-fig4 -q && test -s out/hap-fig4.png"));
    g_free(shell_good(box, "test -s two/share/kilter/data/schemas/plan.json && test -s "
                           "two/share/kilter/data/configs/deepseek-v3.json && test -s "
                           "two/share/kilter/data/pipelining.py && "
                           "test -z \"$(find two/share/kilter -type d -empty)\" && "
                           "test -s two/share/man/man1/kilter-plan.1 && "
                           "test -s two/share/bash-completion/completions/kilter && "
                           "test -s two/share/zsh/site-functions/_kilter && "
                           "test -s two/share/fish/vendor_completions.d/kilter.fish"));
}

/* The mpi backend is a module that the program finds, and does not need. */
static void test_module(void **state)
{
    (void)state;
    static const char RUN[] =
        "two/bin/kilter exec vit:layers=1,hidden=64,heads=4,ffn=128 "
        "2xa100-80g -p dp-ev --shrink --repeats 2 -q";
    g_autoptr(Sandbox) box = install();
    int status;
    g_free(shell(box, "test -e \"$BUILD\"/kilter_mpi.so && command -v mpirun", &status));
    if (status != 0)
        skip();
    g_free(shell_good(box, RUN));
    g_free(shell_good(box, "mv $(find two -name kilter_mpi.so) two/bin"));
    g_free(shell_good(box, RUN));
    g_free(shell_good(box, "rm two/bin/kilter_mpi.so"));
    g_autofree char *out = shell(box, RUN, &status);
    assert_int_equal(status, 1);
    assert_non_null(strstr(out, "kilter: no mpi backend: kilter_mpi.so is neither"));
}

/* A moved checkout finds its own data too. */
static void test_moved_checkout(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = install();
    g_free(shell_good(
        box, "mv two/share/kilter moved && mkdir moved/build && "
             "cp two/bin/kilter moved/build/ && "
             "mv moved/data/clusters/hap-8.yaml moved/data/clusters/moved.yaml && "
             "sed -i 's/^name: .*/name: moved/' moved/data/clusters/moved.yaml"));
    g_autofree char *list = shell_good(box, "moved/build/kilter clusters");
    assert_non_null(strstr(list, "\nmoved "));
}

static void test_client(void **state)
{
    (void)state;
    test_needs("cc");
    test_needs("pkg-config");
    g_autoptr(Sandbox) box = install();
    g_free(shell_good(box, "export PKG_CONFIG_PATH=$(dirname $(find $PWD/two -name "
                           "kilter.pc)); cc -Wall -Werror "
                           "-o client " KILTER_HOME "/tests/support/library_client.c "
                           "$(pkg-config --cflags --libs kilter)"));
    g_autofree char *out = shell_good(
        box,
        "./client vit:layers=1 hap dp-ev"); /* the loader knows where the library is */
    assert_non_null(strstr(out, "hap: status 0"));
    assert_non_null(strstr(out, "\"iteration_time_s\""));
    assert_non_null(strstr(out, "bad: status 2"));
    assert_non_null(strstr(out, "did you mean 'model'?"));
    /* The program gives the same answer. */
    json_t *object = program_json(box, "simulate vit:layers=1 hap-8 -p dp-ev --json");
    char *time = json_dumps(json_object_get(object, "iteration_time_s"), JSON_ENCODE_ANY);
    assert_non_null(strstr(out, time));
    free(time);
    json_decref(object);
}

/* The library exports its interface and nothing else. */
static void test_symbols(void **state)
{
    (void)state;
    test_needs("nm");
    g_autoptr(Sandbox) box = install();
    g_autofree char *out = shell_good(
        box, "nm -D --defined-only $(find two -name libkilter.so) | grep ' T ' | "
             "sed 's/.* T //; s/@.*//' | sort | tr '\\n' ' '");
    assert_string_equal(
        out, "kilter_clusters kilter_free kilter_hear kilter_models "
             "kilter_plan kilter_planners kilter_simulate kilter_verify kilter_version ");
    g_autofree char *name = shell_good(box, "ls -l $(find two -name libkilter.so)");
    assert_non_null(strstr(name, "libkilter.so.0"));
}

static void test_python(void **state)
{
    (void)state;
    test_needs("python3");
    g_autoptr(Sandbox) box = install();
    sandbox_write(
        box, "try.py",
        "import kilter\n"
        "ask = dict(model='vit:layers=1', cluster='hap-8', planner='dp-ev')\n"
        "assert 'vit' in [m['name'] for m in kilter.models()]\n"
        "assert kilter.simulate(**ask)['iteration_time_s'] > 0\n"
        "assert kilter.plan(**ask)['kilter']['format'] == 'plan'\n"
        "assert kilter.verify(**ask)['right']\n"
        "heard = []\n"
        "kilter.hear(lambda seconds, words: heard.append((seconds, words)))\n"
        "kilter.simulate(**{**ask, 'planner': 'hap'})\n"
        "try:\n"
        "    kilter.plan(model='vit:layers=1300', cluster='hap-8', planner='hap', "
        "set={'budget_s': '0.01'})\n"
        "except kilter.Error as error:\n"
        "    assert error.status == 1\n"
        "assert len(heard) == 1 and heard[0][0] > 20 and heard[0][1].startswith('hap on "
        "'), heard\n"
        "slow = kilter.simulate(**ask, fidelity='flow', set={'bucket': '1MiB'})\n"
        "assert slow['fidelity'] == 'flow'\n"
        "try:\n"
        "    kilter.plan(model='vit', cluster='hap-9')\n"
        "    assert False\n"
        "except kilter.Error as error:\n"
        "    assert error.status == 2 and 'hap-9' in str(error)\n");
    g_free(shell_good(box, "PYTHONPATH=two/share/kilter/python python3 try.py"));
    g_free(shell_good(
        box,
        "mkdir -p checkout/experiments && cp -r " KILTER_HOME
        "/experiments/library checkout/experiments/ && cp -r \"$BUILD\"/libkilter.so* "
        "two/share/kilter/plots checkout/ && mkdir checkout/build && mv "
        "checkout/libkilter* checkout/build/ && cp -r " KILTER_HOME "/data checkout/ && "
        "PYTHONPATH=checkout/experiments/library python3 try.py"));
}

/* Writes the block of docs/library.md that becomes this file. */
static void write_example(const Sandbox *box, const char *name)
{
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(KILTER_HOME "/docs/library.md", &text, NULL, NULL));
    g_autofree char *fence = g_strdup_printf(" %s\n", name);
    char *begin = strstr(text, fence);
    assert_non_null(begin);
    begin += strlen(fence);
    char *end = strstr(begin, "\n```");
    assert_non_null(end);
    end[1] = 0;
    sandbox_write(box, name, begin);
}

/* The examples of docs/library.md run as they are. */
static void test_examples(void **state)
{
    (void)state;
    test_needs("cc");
    test_needs("pkg-config");
    test_needs("python3");
    g_autoptr(Sandbox) box = install();
    write_example(box, "client.c");
    write_example(box, "cells.py");
    g_autofree char *client = shell_good(
        box, "export PKG_CONFIG_PATH=$(dirname $(find $PWD/two -name kilter.pc)); "
             "cc -o client client.c $(pkg-config --cflags --libs kilter) && ./client");
    assert_non_null(strstr(client, "\"iteration_time_s\""));
    g_autofree char *cells =
        shell_good(box, "PYTHONPATH=two/share/kilter/python python3 cells.py");
    assert_non_null(strstr(cells, " ms\n"));
    assert_non_null(strstr(cells, "True\n2 "));
}

/* find_package(Kilter) in a project of CMake. */
static void test_cmake(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = install();
    write_example(box, "client.c");
    write_example(box, "CMakeLists.txt");
    g_autofree char *out = shell_good(
        box,
        "cmake -B build -DCMAKE_PREFIX_PATH=$PWD/two > log 2>&1 && cmake --build build "
        ">> log 2>&1 && build/client || { cat log; exit 1; }");
    assert_non_null(strstr(out, "\"iteration_time_s\""));
}

/* The files of the last installation are removed again, and nothing else: not those of a package
 * that was made since. */
static void test_uninstall(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_free(shell_good(
        box,
        "list=\"$BUILD/installed.txt\"; mv \"$list\" old 2> /dev/null; "
        "cmake --install \"$BUILD\" --prefix \"$PWD/one\" && touch one/bin/other && "
        "DESTDIR=$PWD/pack cmake --install \"$BUILD\" --prefix /usr && "
        "(cd \"$BUILD\" && cmake -P " KILTER_HOME
        "/experiments/library/uninstall.cmake); "
        "test ! -e \"$list\"; removed=$?; mv old \"$list\" 2> /dev/null; "
        "test $removed = 0 && test -e pack/usr/bin/kilter && test -e one/bin/other && "
        "test \"$(find one -type f | wc -l)\" = 1 && test ! -e one/share/kilter"));
}

/* The folder of a user's own clusters. */
static void test_own_folder(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = install();
    g_free(shell_good(
        box,
        "mkdir -p conf/kilter/clusters && sed 's/^name: .*/name: mine/' "
        "two/share/kilter/data/clusters/hap-8.yaml > conf/kilter/clusters/mine.yaml"));
    g_autofree char *list =
        shell_good(box, "XDG_CONFIG_HOME=$PWD/conf two/bin/kilter clusters");
    assert_non_null(strstr(list, "\nmine "));
    g_autofree char *health =
        shell_good(box, "XDG_CONFIG_HOME=$PWD/conf two/bin/kilter doctor");
    assert_non_null(strstr(health, "/conf/kilter\n"));
    assert_non_null(strstr(health, "\n  NO_COLOR "));
}

/* The Debian package, unpacked where the sources are not to be seen: an empty disk is mounted
 * over them. */
static void test_package(void **state)
{
    (void)state;
    if (!g_getenv("KILTER_ALL"))
        skip(); /* dpkg-shlibdeps looks at every library for seconds */
    test_needs("cpack");
    test_needs("dpkg-deb");
    test_needs("dpkg-shlibdeps");
    g_autoptr(Sandbox) box = sandbox_new();
    g_free(shell_good(box,
                      "DESTDIR=/ cmake --install \"$BUILD\" --prefix \"$PWD/stage\" && "
                      "cpack -G DEB --config "
                      "\"$BUILD/CPackConfig.cmake\" -D CPACK_INSTALL_CMAKE_PROJECTS= -D "
                      "\"CPACK_INSTALLED_DIRECTORIES=$PWD/stage;usr\" -D "
                      "CPACK_PACKAGE_DIRECTORY=$PWD && dpkg-deb -x kilter_*.deb root"));
    g_autofree char *control = shell_good(box, "dpkg-deb -f kilter_*.deb");
    assert_non_null(strstr(control, "Package: kilter\n"));
    assert_non_null(strstr(control, "libglpk40"));
    g_free(shell_good(box,
                      "test -s root/usr/share/man/man1/kilter.1 && test -s "
                      "root/usr/share/kilter/data/schemas/plan.json && rm -r stage"));
    int status;
    g_free(shell(box, "unshare -m mount -t tmpfs kilter " KILTER_HOME, &status));
    if (status != 0) {
        print_message("skipped: no mounts here\n");
        g_clear_pointer(&control, g_free);
        g_clear_pointer(&box, sandbox_free);
        skip();
    }
    g_autofree char *out = shell_good(
        box,
        "unshare -m sh -c 'mount -t tmpfs kilter " KILTER_HOME
        " && test ! -e " KILTER_HOME "/data && root/usr/bin/kilter plan vit:layers=1 "
        "hap-8 -o plan.json && root/usr/bin/kilter simulate plan.json --fidelity flow'");
    assert_non_null(strstr(out, "iteration"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program),        cmocka_unit_test(test_module),
        cmocka_unit_test(test_moved_checkout), cmocka_unit_test(test_client),
        cmocka_unit_test(test_symbols),        cmocka_unit_test(test_python),
        cmocka_unit_test(test_examples),       cmocka_unit_test(test_cmake),
        cmocka_unit_test(test_uninstall),      cmocka_unit_test(test_own_folder),
        cmocka_unit_test(test_package),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
