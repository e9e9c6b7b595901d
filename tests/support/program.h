/* Runs the program ($KILTER_BIN) in a temporary folder of the test. */
#ifndef KILTER_TESTS_SUPPORT_PROGRAM_H
#define KILTER_TESTS_SUPPORT_PROGRAM_H

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <sys/wait.h>

#include "tests/test.h"

/* A temporary folder, removed with its files by sandbox_free. */
typedef struct {
    char *folder;
} Sandbox;

static inline Sandbox *sandbox_new(void)
{
    Sandbox *sandbox = g_new0(Sandbox, 1);
    sandbox->folder = g_dir_make_tmp("kilter-test-XXXXXX", NULL);
    assert_non_null(sandbox->folder);
    return sandbox;
}

/* Removes a link, never its target, which may belong to somebody else. */
static inline void remove_tree(const char *path)
{
    const bool is_link = g_file_test(path, G_FILE_TEST_IS_SYMLINK);
    g_autoptr(GDir) dir = is_link ? NULL : g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *entry = g_build_filename(path, name, NULL);
        remove_tree(entry);
    }
    g_remove(path);
}

static inline void sandbox_free(Sandbox *sandbox)
{
    remove_tree(sandbox->folder);
    g_free(sandbox->folder);
    g_free(sandbox);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sandbox, sandbox_free)

static inline void sandbox_write(const Sandbox *sandbox, const char *name,
                                 const char *text)
{
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static inline char *sandbox_read(const Sandbox *sandbox, const char *name)
{
    g_autofree char *path = g_build_filename(sandbox->folder, name, NULL);
    char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static inline int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A checksum of the names and contents of all files below the folder, without the journals that
 * SQLite keeps beside a database that is only read. */
static inline void digest_tree(GChecksum *sum, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autofree char *text = NULL;
    gsize length;
    if (!dir && g_file_get_contents(path, &text, &length, NULL))
        g_checksum_update(sum, (const guchar *)text, (gssize)length);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        if (!g_str_has_suffix(name, "-wal") && !g_str_has_suffix(name, "-shm"))
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *entry = g_build_filename(path, names->pdata[i], NULL);
        g_checksum_update(sum, names->pdata[i], -1);
        digest_tree(sum, entry);
    }
}

static inline char *sandbox_digest(const Sandbox *sandbox)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    digest_tree(sum, sandbox->folder);
    return g_strdup(g_checksum_get_string(sum));
}

/* The output of a run. */
typedef struct {
    int status; /* exit status; -1: ended by a signal */
    char *out, *err;
} Ran;

static inline void ran_clear(Ran *ran)
{
    g_free(ran->out);
    g_free(ran->err);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ran, ran_clear)

/* The words of `kilter line`, split like a shell's. */
static inline char **program_arguments(const char *line)
{
    const char *program = g_getenv("KILTER_BIN");
    assert_non_null(program);
    g_autofree char *whole = g_strdup_printf("'%s' %s", program, line);
    char **arguments = NULL;
    assert_true(g_shell_parse_argv(whole, NULL, &arguments, NULL));
    return arguments;
}

/* Starts `kilter line` in the sandbox, to be killed or watched. `environment`: NULL or
 * KEY=VALUE. */
static inline GSubprocess *program_start(const Sandbox *sandbox, const char *line,
                                         const char *environment)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, sandbox->folder);
    if (environment) {
        g_auto(GStrv) pair = g_strsplit(environment, "=", 2);
        g_subprocess_launcher_setenv(launcher, pair[0], pair[1], TRUE);
    }
    g_auto(GStrv) arguments = program_arguments(line);
    GError *error = NULL;
    GSubprocess *process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)arguments, &error);
    assert_no_error(error);
    return process;
}

static inline Ran program_finish(GSubprocess *process)
{
    Ran ran = {.status = -1};
    assert_true(
        g_subprocess_communicate_utf8(process, NULL, NULL, &ran.out, &ran.err, NULL));
    if (g_subprocess_get_if_exited(process))
        ran.status = g_subprocess_get_exit_status(process);
    g_object_unref(process);
    return ran;
}

/* Starts it and waits for its end, without the threads of GIO, whose locks a sanitizer does not
 * see. `environment`: NULL or KEY=VALUE. */
static inline Ran program_run_in(const Sandbox *sandbox, const char *line,
                                 const char *environment)
{
    Ran ran = {.status = -1};
    int status;
    g_auto(GStrv) arguments = program_arguments(line), all = g_get_environ();
    if (environment) {
        g_auto(GStrv) pair = g_strsplit(environment, "=", 2);
        all = g_environ_setenv(all, pair[0], pair[1], TRUE);
    }
    GError *error = NULL;
    g_spawn_sync(sandbox->folder, arguments, all, G_SPAWN_DEFAULT, NULL, NULL, &ran.out,
                 &ran.err, &status, &error);
    assert_no_error(error);
    if (WIFEXITED(status))
        ran.status = WEXITSTATUS(status);
    return ran;
}

static inline Ran program_run(const Sandbox *sandbox, const char *line)
{
    return program_run_in(sandbox, line, NULL);
}

/* Runs and asserts success; the caller reads the output. */
static inline Ran program_run_good(const Sandbox *sandbox, const char *line)
{
    Ran ran = program_run(sandbox, line);
    if (ran.status != 0)
        TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: exit %d, %s", line, ran.status,
                     ran.err);
    return ran;
}

/* The same, where the output does not matter. */
static inline void program_runs(const Sandbox *sandbox, const char *line)
{
    g_auto(Ran) ran = program_run_good(sandbox, line);
    assert_int_equal(ran.status, 0);
}

/* Asserts this exit status, one line on stderr that contains `part`, nothing on stdout, and no
 * changed file. */
static inline void program_refuses_in(const Sandbox *sandbox, const char *line,
                                      const char *environment, int status,
                                      const char *part)
{
    g_autofree char *before = sandbox_digest(sandbox);
    g_auto(Ran) ran = program_run_in(sandbox, line, environment);
    g_autofree char *after = sandbox_digest(sandbox);
    const char *end = strchr(ran.err, '\n');
    if (ran.status != status || !strstr(ran.err, part) || !end || end[1] || *ran.out)
        TEST_FAIL_AT(
            __FILE__, __LINE__,
            "kilter %s: exit %d, stdout '%s', stderr '%s'; expected exit %d and one line "
            "with '%s'",
            line, ran.status, ran.out, ran.err, status, part);
    if (strcmp(before, after) != 0)
        TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: wrote something", line);
}

static inline void program_refuses(const Sandbox *sandbox, const char *line, int status,
                                   const char *part)
{
    program_refuses_in(sandbox, line, NULL, status, part);
}

#endif
